#include "result.h"
#include "errors.h"

#include <stdlib.h>

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* As in OMB, a percentile p is the value at position floor(count * p / 100), counted from 1. */
void find_percentiles(const struct options *options, double *values, int count, double *percentiles) {
    if (options->percentile_count == 0)
        return;
    qsort(values, count, sizeof values[0], compare_doubles);
    for (int i = 0; i < options->percentile_count; i++) {
        long long position = (long long)count * options->percentiles[i] / 100;
        percentiles[i] = values[position > 0 ? position - 1 : 0];
    }
}

/* Computes the percentiles, over iterations, of each iteration's mean over ranks. */
static void combine_samples(const struct world *world, const struct options *options, double *samples,
                            struct result *result) {
    double *sums = malloc(result->iterations * sizeof sums[0]);
    if (!sums)
        give_up("rank %d: cannot allocate the times of %d iterations; use fewer (-i) or no percentiles (-z)",
                world->rank, result->iterations);
    MPI_CHECK(MPI_Reduce(samples, sums, result->iterations, MPI_DOUBLE, MPI_SUM, ROOT, world->comm));
    if (world->rank == ROOT) {
        for (int i = 0; i < result->iterations; i++)
            sums[i] /= world->ranks;
        find_percentiles(options, sums, result->iterations, result->percentiles);
    }
    free(sums);
}

void combine_ranks(const struct world *world, const struct options *options, double mean, double *samples,
                   struct result *result) {
    MPI_CHECK(MPI_Reduce(&mean, &result->min, 1, MPI_DOUBLE, MPI_MIN, ROOT, world->comm));
    MPI_CHECK(MPI_Reduce(&mean, &result->max, 1, MPI_DOUBLE, MPI_MAX, ROOT, world->comm));
    MPI_CHECK(MPI_Reduce(&mean, &result->mean, 1, MPI_DOUBLE, MPI_SUM, ROOT, world->comm));
    result->mean /= world->ranks;
    if (options->percentile_count > 0)
        combine_samples(world, options, samples, result);
}
