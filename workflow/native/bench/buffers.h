/* Message buffers: page-aligned and large enough for the largest message. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "options.h"

/* Drops sizes whose buffers would exceed the memory limit, or their displacements an int; rank 0 reports it. Returns
 * false if no size is left. */
bool limit_sizes(const struct world *world, struct options *options);

/* Allocates and touches this rank's send and receive buffers; aborts all ranks if there is not enough memory. */
struct buffers allocate_buffers(const struct world *world, const struct options *options);

void free_buffers(struct buffers *buffers);

/* Allocates counts and displacements for collectives that take them; free_counts() frees them. */
void allocate_counts(struct world *world);
void free_counts(struct world *world);

/* Sets the counts and displacements for messages of `size` bytes, divided as in OMB 7.4. */
void fill_counts(const struct world *world, size_t size);

#endif
