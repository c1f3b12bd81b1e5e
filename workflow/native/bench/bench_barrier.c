#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    (void)buffers;
    (void)bytes;
    return MPI_Barrier(world->comm);
}

static const struct collective collective = {.call = call, .sync = SYNC_AFTER_CALLS};

static const struct benchmark own = {.name = "barrier",
                                     .title = "MPI_Barrier latency test",
                                     .sizeless = true,
                                     .collective = &collective,
                                     COLLECTIVE_DEFAULTS};
LIST(own);
