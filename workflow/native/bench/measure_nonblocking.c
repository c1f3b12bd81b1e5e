/*
 * Measuring loop of the non-blocking collectives, as in OMB 7.4: first the call followed by its wait, then with a
 * computation between them that takes as long as the communication did.
 */
#include "errors.h"
#include "measure.h"
#include "validation.h"

/* Times of the parts of one call (s), or their means (us). */
struct parts {
    double overall, init, compute, wait;
};

/* Keeps the core busy for `seconds`. In the simulator a busy loop takes no simulated time. */
static void compute(double seconds) {
#ifdef SMPI_H
    smpi_execute_benched(seconds);
#else
    for (double start = MPI_Wtime(); MPI_Wtime() - start < seconds;)
        ;
#endif
}

static struct parts time_parts(const struct setup *setup, size_t size, double seconds) {
    MPI_Request request;
    double start = MPI_Wtime();
    MPI_CHECK(benchmark->collective->start(&setup->buffers, (int)size, &setup->world, &request));
    double started = MPI_Wtime();
    if (seconds > 0)
        compute(seconds);
    double computed = MPI_Wtime();
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    double stop = MPI_Wtime();
    return (struct parts){stop - start, started - start, computed - started, stop - computed};
}

static struct parts call_once(const struct setup *setup, size_t size, double seconds, int iteration,
                              long *wrong_bytes) {
    if (setup->options.validate) {
        fill_buffers(&setup->buffers, size, iteration, &setup->world);
        MPI_CHECK(MPI_Barrier(setup->world.comm));
    }
    struct parts parts = time_parts(setup, size, seconds);
    MPI_CHECK(MPI_Barrier(setup->world.comm));
    if (setup->options.validate)
        *wrong_bytes += count_wrong_bytes(&setup->buffers, size, iteration, &setup->world);
    return parts;
}

/* Makes all calls, each with a computation of `seconds`; returns this rank's means (us). `samples` may be NULL. */
static struct parts call_often(const struct setup *setup, size_t size, double seconds, double *samples,
                               long *wrong_bytes) {
    struct repetitions count = repetitions_for(&setup->options, size);
    struct parts total = {0};
    MPI_CHECK(MPI_Barrier(setup->world.comm));
    for (int i = -count.warmup; i < count.iterations; i++) {
        struct parts parts = call_once(setup, size, seconds, i + count.warmup, wrong_bytes);
        if (i < 0)
            continue;
        total.overall += parts.overall * 1e6 / count.iterations;
        total.init += parts.init * 1e6 / count.iterations;
        total.compute += parts.compute * 1e6 / count.iterations;
        total.wait += parts.wait * 1e6 / count.iterations;
        if (samples)
            samples[i] = parts.overall * 1e6;
    }
    MPI_CHECK(MPI_Barrier(setup->world.comm));
    return total;
}

static double mean_over_ranks(const struct world *world, double mine) {
    double sum = 0;
    MPI_CHECK(MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, ROOT, world->comm));
    return sum / world->ranks;
}

void measure_nonblocking(const struct setup *setup, struct result *result) {
    const struct world *world = &setup->world;
    long wrong_bytes = 0;
    result->iterations = repetitions_for(&setup->options, result->size).iterations;
    struct parts pure = call_often(setup, result->size, 0, NULL, &wrong_bytes);
    struct parts busy = call_often(setup, result->size, pure.overall * 1e-6, setup->samples, &wrong_bytes);
    combine_ranks(world, &setup->options, pure.overall, setup->samples, result);
    result->overall = mean_over_ranks(world, busy.overall);
    result->compute = mean_over_ranks(world, busy.compute);
    result->init = mean_over_ranks(world, busy.init);
    result->wait = mean_over_ranks(world, busy.wait);
    if (setup->options.validate)
        MPI_CHECK(MPI_Allreduce(&wrong_bytes, &result->wrong_bytes, 1, MPI_LONG, MPI_SUM, world->comm));
    MPI_CHECK(MPI_Barrier(world->comm));
}
