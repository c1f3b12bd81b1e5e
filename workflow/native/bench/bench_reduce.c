#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Reduce(buffers->send, buffers->recv, bytes, MPI_CHAR, MPI_SUM, ROOT, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_BEFORE_SIZE | SYNC_BEFORE_CALL | SYNC_AFTER_RESULT, .root_receives = true, .sums = true};

static const struct benchmark own = {
    .name = "reduce", .title = "MPI_Reduce latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
