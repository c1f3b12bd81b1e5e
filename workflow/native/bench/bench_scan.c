#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Scan(buffers->send, buffers->recv, bytes, MPI_CHAR, MPI_SUM, world->comm);
}

static const struct collective collective = {.call = call,
                                             .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT,
                                             .sums = true,
                                             .summed = PREFIX_AND_OWN};

static const struct benchmark own = {
    .name = "scan", .title = "MPI_Scan latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
