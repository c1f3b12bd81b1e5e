#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Alltoall(buffers->send, bytes, MPI_CHAR, buffers->recv, bytes, MPI_CHAR, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT, .personal = true, .collects = true};

static const struct benchmark own = {
    .name = "alltoall", .title = "MPI_Alltoall latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
