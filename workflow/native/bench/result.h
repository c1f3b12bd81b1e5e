/* From the times of each rank to the numbers of one line of output. */
#ifndef RESULT_H
#define RESULT_H

#include "options.h"

/* Latencies are in microseconds, bandwidths in MB/s (1 MB = 1e6 bytes). Valid on rank 0. */
struct result {
    size_t size; /* bytes */
    int iterations;
    /* Mean, minimum, maximum over ranks of each rank's mean over iterations; max is another one with a spread. */
    double mean, min, max;
    double percentiles[MAX_PERCENTILES];
    /* Of a non-blocking collective: means over ranks (us) of the calls that computed between start and wait. */
    double overall, compute, init, test, wait;
    int late;         /* calls in windows that some rank started late, and which were dropped */
    long wrong_bytes; /* over all ranks and iterations */
};

/* Percentiles of `count` values, which are sorted by it. */
void find_percentiles(const struct options *options, double *values, int count, double *percentiles);

/* Combines the ranks' means (us) and, with percentiles, their `samples` (us for each iteration). */
void combine_ranks(const struct world *world, const struct options *options, double mean, double *samples,
                   struct result *result);

#endif
