#include "benchmark.h"

static int start(const struct buffers *buffers, int bytes, const struct world *world, MPI_Request *request) {
    return MPI_Ibcast(buffers->send, bytes, MPI_CHAR, ROOT, world->comm, request);
}

static const struct collective collective = {
    .start = start, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL, .in_place = true, .root_sends = true};

static const struct benchmark own = {
    .name = "ibcast", .title = "MPI_Ibcast latency and overlap test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
