#include "benchmark.h"

/* The message size is that of the block which each rank receives. */
static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Reduce_scatter_block(buffers->send, buffers->recv, bytes, MPI_CHAR, MPI_SUM, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT, .personal = true, .sums = true};

static const struct benchmark own = {.name = "reduce_scatter_block",
                                     .title = "MPI_Reduce_scatter_block latency test",
                                     .collective = &collective,
                                     COLLECTIVE_DEFAULTS};
LIST(own);
