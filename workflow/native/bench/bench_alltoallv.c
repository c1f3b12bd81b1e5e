#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    (void)bytes; /* given by the counts */
    return MPI_Alltoallv(buffers->send, world->counts, world->displacements, MPI_CHAR, buffers->recv, world->counts,
                         world->displacements, MPI_CHAR, world->comm);
}

static const struct collective collective = {.call = call,
                                             .counts = COUNTS_EQUAL,
                                             .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT,
                                             .personal = true,
                                             .collects = true};

static const struct benchmark own = {
    .name = "alltoallv", .title = "MPI_Alltoallv latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
