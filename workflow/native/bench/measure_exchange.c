/* Measuring loop of the point-to-point benchmarks: rank 0 (all pairs: the first half of the ranks) takes the time. */
#include "errors.h"
#include "measure.h"
#include "validation.h"

#include <string.h>

static bool takes_time(const struct world *world) {
    return benchmark->exchange->all_pairs ? world->rank < world->ranks / 2 : world->rank == 0;
}

/* Makes one exchange; returns its time (s) on ranks that take it, else 0. No rank reads its clock in warm-up. */
static double time_exchange(const struct setup *setup, size_t size, bool timed) {
    timed = timed && takes_time(&setup->world);
    double start = timed ? MPI_Wtime() : 0;
    MPI_CHECK(benchmark->exchange->call(&setup->buffers, (int)size, &setup->world));
    return timed ? MPI_Wtime() - start : 0;
}

/* Makes all exchanges of one size; returns this rank's mean in seconds. */
static double time_exchanges(const struct setup *setup, size_t size, struct repetitions count, long *wrong_bytes) {
    double total = 0;
    for (int i = -count.warmup; i < count.iterations; i++) {
        if (setup->options.validate) {
            fill_buffers(&setup->buffers, size, i + count.warmup, &setup->world);
            MPI_CHECK(MPI_Barrier(setup->world.comm));
        }
        double seconds = time_exchange(setup, size, i >= 0);
        if (setup->options.validate)
            *wrong_bytes += count_wrong_bytes(&setup->buffers, size, i + count.warmup, &setup->world);
        total += seconds;
        if (setup->samples && i >= 0)
            setup->samples[i] = benchmark->exchange->value(seconds, (int)size);
    }
    return total / count.iterations;
}

/* Returns the mean over the pairs on rank 0. */
static double mean_over_pairs(double mean, const struct world *world) {
    double sum = 0;
    MPI_CHECK(MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, world->comm));
    return sum / (world->ranks / 2);
}

void measure_exchange(const struct setup *setup, struct result *result) {
    const struct world *world = &setup->world;
    struct repetitions count = repetitions_for(&setup->options, result->size);
    long wrong_bytes = 0;
    result->iterations = count.iterations;
    memset(setup->buffers.send, 'a', result->size);
    memset(setup->buffers.recv, 'b', result->size);
    MPI_CHECK(MPI_Barrier(world->comm));
    double mean = time_exchanges(setup, result->size, count, &wrong_bytes);
    if (benchmark->exchange->all_pairs)
        mean = mean_over_pairs(mean, world);
    if (world->rank == 0) {
        result->mean = benchmark->exchange->value(mean, (int)result->size);
        find_percentiles(&setup->options, setup->samples, count.iterations, result->percentiles);
    }
    if (setup->options.validate)
        MPI_CHECK(MPI_Allreduce(&wrong_bytes, &result->wrong_bytes, 1, MPI_LONG, MPI_SUM, world->comm));
}
