/* The measuring loops: all repetitions for one message size. */
#ifndef MEASURE_H
#define MEASURE_H

#include "result.h"

/* What both loops need. */
struct setup {
    struct world world;
    struct options options;
    struct buffers buffers;
    double *samples; /* value of each iteration of a size, where there are percentiles; else NULL */
};

/* result->size is given; the rest is filled in. wrong_bytes is valid on all ranks, the numbers on rank 0. */
void measure_collective(const struct setup *setup, struct result *result);
void measure_windows(const struct setup *setup, struct result *result);
void measure_nonblocking(const struct setup *setup, struct result *result);
void measure_exchange(const struct setup *setup, struct result *result);

/* pairs (on rank 0): value of the ranks i < j at i * ranks + j. */
void measure_pairs(const struct setup *setup, size_t size, double *pairs);

#endif
