/* Ping-pong: half of the time for a message to rank 1 and one back. */
#include "benchmark.h"

enum { TAG = 1 };

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    int other = 1 - world->rank;
    for (int turn = 0; turn < 2; turn++) {
        int code = turn == world->rank
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
    .call = call, .value = value, .column = "Avg Latency(us)", .percentile_column = "Tail Lat(us)"};

static const struct benchmark own = {.name = "latency",
                                     .title = "MPI point-to-point latency test",
                                     .sized = true,
                                     .max_size = 1 << 22,
                                     .small = {100, 10000},
                                     .large = {10, 1000},
                                     .exchange = &exchange};
LIST(own);
