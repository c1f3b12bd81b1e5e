/* The measuring loops: all repetitions for one message size. */
#ifndef MEASURE_H
#define MEASURE_H

#include "result.h"

/* Input of the measuring loops. */
struct setup {
    struct world world;
    struct options options;
    struct buffers buffers;
    double *samples; /* value of each iteration of the current size, or NULL if no percentiles are requested */
};

/* The caller sets result->size; the function sets wrong_bytes on all ranks, and the measured values on rank 0. */
void measure_collective(const struct setup *setup, struct result *result);
void measure_windows(const struct setup *setup, struct result *result);
void measure_nonblocking(const struct setup *setup, struct result *result);
void measure_exchange(const struct setup *setup, struct result *result);

/* On rank 0, stores the value of ranks i < j in pairs[i * ranks + j]. */
void measure_pairs(const struct setup *setup, size_t size, double *pairs);

#endif
