#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Allgatherv(buffers->send, bytes, MPI_CHAR, buffers->recv, world->counts, world->displacements, MPI_CHAR,
                          world->comm);
}

static const struct collective collective = {.call = call,
                                             .counts = COUNTS_EQUAL,
                                             .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT,
                                             .collects = true};

static const struct benchmark own = {
    .name = "allgatherv", .title = "MPI_Allgatherv latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
