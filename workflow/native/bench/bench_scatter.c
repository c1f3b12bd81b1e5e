#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Scatter(buffers->send, bytes, MPI_CHAR, buffers->recv, bytes, MPI_CHAR, ROOT, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_BEFORE_SIZE | SYNC_AFTER_CALL | SYNC_AFTER_RESULT, .root_sends = true, .personal = true};

static const struct benchmark own = {
    .name = "scatter", .title = "MPI_Scatter latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
