/* Bandwidth: rank 0 sends a window of messages; rank 1 replies with one byte when it has received them all. */
#include "benchmark.h"

enum { WINDOW = 64, TAG_MESSAGE = 100, TAG_ANSWER = 101 };

static int call(const struct buffers *buffers, int bytes, const struct world *world) {
    MPI_Request requests[WINDOW];
    char answer = 0;
    bool sender = world->rank == 0;
    for (int i = 0; i < WINDOW; i++) {
        int code = sender ? MPI_Isend(buffers->send, bytes, MPI_CHAR, 1, TAG_MESSAGE, world->comm, &requests[i])
                          : MPI_Irecv(buffers->recv, bytes, MPI_CHAR, 0, TAG_MESSAGE, world->comm, &requests[i]);
        if (code != MPI_SUCCESS)
            return code;
    }
    int code = MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
        return code;
    return sender ? MPI_Recv(&answer, 1, MPI_CHAR, 1, TAG_ANSWER, world->comm, MPI_STATUS_IGNORE)
                  : MPI_Send(&answer, 1, MPI_CHAR, 0, TAG_ANSWER, world->comm);
}

/* Returns MB/s, 1 MB = 1e6 bytes. */
static double value(double seconds, int bytes) {
    return bytes / 1e6 * WINDOW / seconds;
}

static const struct exchange exchange = {
    .call = call, .one_way = true, .value = value, .column = "Bandwidth (MB/s)", .percentile_column = "Tail BW(MB/s)"};

static const struct benchmark own = {.name = "bw",
                                     .title = "MPI point-to-point bandwidth test",
                                     .small = {10, 100},
                                     .large = {2, 20},
                                     .exchange = &exchange,
                                     EXCHANGE_DEFAULTS};
LIST(own);
