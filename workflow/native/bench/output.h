/* Standard output, in OMB's columns. Call on rank 0 only. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "result.h"

void print_header(const struct options *options);
void print_result(const struct options *options, const struct result *result);

/* Prints one line per pair of ranks; see measure_pairs(). */
void print_pairs(const struct options *options, size_t size, const double *pairs, int ranks);

#endif
