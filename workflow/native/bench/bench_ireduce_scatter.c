#include "benchmark.h"

static int start(const struct buffers *buffers, int bytes, const struct world *world, MPI_Request *request) {
    (void)bytes; /* given by the counts */
    return MPI_Ireduce_scatter(buffers->send, buffers->recv, world->counts, MPI_CHAR, MPI_SUM, world->comm, request);
}

static const struct collective collective = {
    .start = start, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL, .counts = COUNTS_SHARED, .sums = true, .parts = true};

static const struct benchmark own = {.name = "ireduce_scatter",
                                     .title = "MPI_Ireduce_scatter latency and overlap test",
                                     .collective = &collective,
                                     COLLECTIVE_DEFAULTS};
LIST(own);
