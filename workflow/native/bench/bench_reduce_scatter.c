#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    (void)bytes; /* given by the counts */
    return MPI_Reduce_scatter(buffers->send, buffers->recv, world->counts, MPI_CHAR, MPI_SUM, world->comm);
}

static const struct collective collective = {.call = call,
                                             .counts = COUNTS_SHARED,
                                             .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT,
                                             .sums = true,
                                             .parts = true};

static const struct benchmark own = {.name = "reduce_scatter",
                                     .title = "MPI_Reduce_scatter latency test",
                                     .collective = &collective,
                                     COLLECTIVE_DEFAULTS};
LIST(own);
