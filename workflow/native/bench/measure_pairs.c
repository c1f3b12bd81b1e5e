/* Measuring loop of the benchmark `pairs`: while two ranks communicate, all others block in a receive. */
#include "errors.h"
#include "measure.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_MESSAGE = 1, TAG_TURN = 2 };

static void send_to(const struct setup *setup, int other, size_t size) {
    MPI_CHECK(MPI_Send(setup->buffers.send, (int)size, MPI_CHAR, other, TAG_MESSAGE, setup->world.comm));
}

static void receive_from(const struct setup *setup, int other, size_t size) {
    MPI_CHECK(
        MPI_Recv(setup->buffers.recv, (int)size, MPI_CHAR, other, TAG_MESSAGE, setup->world.comm, MPI_STATUS_IGNORE));
}

/* The rank that sends first: returns the mean round-trip time in seconds. */
static double time_round_trips(const struct setup *setup, int other, size_t size, struct repetitions count) {
    double start = 0;
    for (int i = -count.warmup; i < count.iterations; i++) {
        if (i == 0)
            start = MPI_Wtime();
        send_to(setup, other, size);
        receive_from(setup, other, size);
    }
    return (MPI_Wtime() - start) / count.iterations;
}

static void answer_round_trips(const struct setup *setup, int other, size_t size, struct repetitions count) {
    for (int i = -count.warmup; i < count.iterations; i++) {
        receive_from(setup, other, size);
        send_to(setup, other, size);
    }
}

/* A rank first follows all lower ranks, then waits for its turn, leads with all higher ranks and passes the turn on. */
static void measure_row(const struct setup *setup, size_t size, struct repetitions count, double *row) {
    const struct world *world = &setup->world;
    for (int other = 0; other < world->rank; other++)
        answer_round_trips(setup, other, size, count);
    if (world->rank > 0)
        MPI_CHECK(MPI_Recv(NULL, 0, MPI_CHAR, world->rank - 1, TAG_TURN, world->comm, MPI_STATUS_IGNORE));
    for (int other = world->rank + 1; other < world->ranks; other++)
        row[other] = benchmark->exchange->value(time_round_trips(setup, other, size, count), (int)size);
    if (world->rank + 1 < world->ranks)
        MPI_CHECK(MPI_Send(NULL, 0, MPI_CHAR, world->rank + 1, TAG_TURN, world->comm));
}

void measure_pairs(const struct setup *setup, size_t size, double *pairs) {
    const struct world *world = &setup->world;
    struct repetitions count = repetitions_for(&setup->options, size);
    double *row = calloc((size_t)world->ranks, sizeof row[0]);
    if (!row)
        give_up("rank %d: cannot allocate the times of %d ranks", world->rank, world->ranks);
    memset(setup->buffers.send, 'a', size);
    memset(setup->buffers.recv, 'b', size);
    MPI_CHECK(MPI_Barrier(world->comm));
    measure_row(setup, size, count, row);
    MPI_CHECK(MPI_Gather(row, world->ranks, MPI_DOUBLE, pairs, world->ranks, MPI_DOUBLE, ROOT, world->comm));
    free(row);
}
