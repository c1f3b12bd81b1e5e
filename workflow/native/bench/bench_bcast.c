#include "benchmark.h"

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    return MPI_Bcast(buffers->send, bytes, MPI_CHAR, ROOT, world->comm);
}

static const struct collective collective = {
    .call = call, .sync = SYNC_AFTER_CALL | SYNC_AFTER_CALLS, .in_place = true, .root_sends = true};

static const struct benchmark own = {
    .name = "bcast", .title = "MPI_Bcast latency test", .collective = &collective, COLLECTIVE_DEFAULTS};
LIST(own);
