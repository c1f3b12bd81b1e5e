/* Combines the times of all ranks into the values of one line of output. */
#ifndef RESULT_H
#define RESULT_H

#include "options.h"

/* Latencies are in microseconds, bandwidths in MB/s (1 MB = 1e6 bytes). Valid on rank 0. */
struct result {
    size_t size; /* bytes */
    int iterations;
    /* Mean, minimum, maximum over ranks of each rank's mean over iterations; max with a spread: measure_window.c. */
    double mean, min, max;
    double percentiles[MAX_PERCENTILES];
    /* Non-blocking collectives: means over ranks (us) for the calls with a computation between start and wait. */
    double overall, compute, init, test, wait;
    int late;         /* calls in windows that were dropped because some rank started late */
    long wrong_bytes; /* over all ranks and iterations */
};

/* Computes percentiles of `count` values. Sorts `values` in place. */
void find_percentiles(const struct options *options, double *values, int count, double *percentiles);

/* Combines the means (us) of all ranks and, if percentiles are requested, their `samples` (us per iteration). */
void combine_ranks(const struct world *world, const struct options *options, double mean, double *samples,
                   struct result *result);

#endif
