/* Measuring loop of the collectives: each rank measures the time from entering the call to leaving it. */
#include "errors.h"
#include "measure.h"
#include "validation.h"

/* Calls MPI_Barrier if this benchmark has one at this place. */
static void synchronise(const struct world *world, enum sync place) {
    if (benchmark->collective->sync & place)
        MPI_CHECK(MPI_Barrier(world->comm));
}

/* Makes one call between its barriers; returns its time in seconds. */
static double time_call(const struct setup *setup, size_t size) {
    const struct collective *collective = benchmark->collective;
    synchronise(&setup->world, SYNC_BEFORE_CALL);
    double start = MPI_Wtime();
    MPI_CHECK(collective->call(&setup->buffers, (int)size, &setup->world));
    double stop = MPI_Wtime();
    synchronise(&setup->world, SYNC_AFTER_CALL);
    return stop - start;
}

/* Like time_call(), with known data that are checked afterwards. */
static double time_checked_call(const struct setup *setup, size_t size, int iteration, long *wrong_bytes) {
    fill_buffers(&setup->buffers, size, iteration, &setup->world);
    MPI_CHECK(MPI_Barrier(setup->world.comm));
    double seconds = time_call(setup, size);
    *wrong_bytes += count_wrong_bytes(&setup->buffers, size, iteration, &setup->world);
    return seconds;
}

/* Makes all calls of one size; returns this rank's mean in microseconds. */
static double time_calls(const struct setup *setup, size_t size, struct repetitions count, long *wrong_bytes) {
    double total = 0;
    for (int i = -count.warmup; i < count.iterations; i++) {
        double seconds = setup->options.validate ? time_checked_call(setup, size, i + count.warmup, wrong_bytes)
                                                 : time_call(setup, size);
        if (i < 0)
            continue;
        total += seconds;
        if (setup->samples)
            setup->samples[i] = seconds * 1e6;
    }
    return total * 1e6 / count.iterations;
}

void measure_collective(const struct setup *setup, struct result *result) {
    const struct world *world = &setup->world;
    struct repetitions count = repetitions_for(&setup->options, result->size);
    long wrong_bytes = 0;
    result->iterations = count.iterations;
    synchronise(world, SYNC_BEFORE_SIZE);
    double mean = time_calls(setup, result->size, count, &wrong_bytes);
    synchronise(world, SYNC_AFTER_CALLS);
    combine_ranks(world, &setup->options, mean, setup->samples, result);
    if (setup->options.validate)
        MPI_CHECK(MPI_Allreduce(&wrong_bytes, &result->wrong_bytes, 1, MPI_LONG, MPI_SUM, world->comm));
    synchronise(world, SYNC_AFTER_RESULT);
}
