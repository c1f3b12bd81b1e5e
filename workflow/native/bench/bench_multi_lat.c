/* Ping-pong in all pairs (r, r + P / 2) at once: half of the time for a message there and one back, mean over the
 * pairs. */
#include "benchmark.h"

enum { TAG = 1 };

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    int half = world->ranks / 2;
    int second = world->rank >= half;
    int other = second ? world->rank - half : world->rank + half;
    for (int turn = 0; turn < 2; turn++) {
        int code = turn == second
                       ? MPI_Send(buffers->send, bytes, MPI_CHAR, other, TAG, world->comm)
                       : MPI_Recv(buffers->recv, bytes, MPI_CHAR, other, TAG, world->comm, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

/* Microseconds one way. */
static double value(double seconds, int bytes) {
    (void)bytes;
    return seconds * 1e6 / 2;
}

static const struct exchange exchange = {
    .call = call, .all_pairs = true, .value = value, .column = "Avg Latency(us)", .percentile_column = "Tail Lat(us)"};

static const struct benchmark own = {.name = "multi_lat",
                                     .title = "MPI multi-pair latency test",
                                     .sized = true,
                                     .max_size = 1 << 22,
                                     .small = {100, 10000},
                                     .large = {10, 1000},
                                     .exchange = &exchange};
LIST(own);
