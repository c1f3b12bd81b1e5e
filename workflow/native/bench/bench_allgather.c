#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Allgather(buffers->send, bytes, MPI_CHAR, buffers->recv, bytes, MPI_CHAR, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_AFTER_CALLS | SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT, .collects = true};

static const struct benchmark own = {
    .name = "allgather", .title = "MPI_Allgather latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
