#include "benchmark.h"

static int start(const struct buffers *buffers, int bytes, const struct world *world, MPI_Request *request) {
    return MPI_Iallreduce(buffers->send, buffers->recv, bytes, MPI_CHAR, MPI_SUM, world->comm, request);
}

static const struct collective collective = {.start = start, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL, .sums = true};

static const struct benchmark own = {.name = "iallreduce",
                                     .title = "MPI_Iallreduce latency and overlap test",
                                     .collective = &collective,
                                     COLLECTIVE_DEFAULTS};
LIST(own);
