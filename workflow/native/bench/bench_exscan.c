#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Exscan(buffers->send, buffers->recv, bytes, MPI_CHAR, MPI_SUM, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT, .sums = true, .summed = PREFIX};

static const struct benchmark own = {
    .name = "exscan", .title = "MPI_Exscan latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
