/* Message buffers: aligned to a page, as large as the largest message needs. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "options.h"

/* Leaves out sizes whose buffers would exceed the memory limit, with a message by rank 0; false where none is left.
 */
bool limit_sizes(const struct world *world, struct options *options);

/* Allocates and touches what this rank sends and receives; ends all ranks where there is not enough memory. */
struct buffers allocate_buffers(const struct world *world, const struct options *options);

void free_buffers(struct buffers *buffers);

/* Allocates counts and displacements for collectives that take them; free_counts() frees them. */
void allocate_counts(struct world *world);
void free_counts(struct world *world);

/* Counts and displacements for messages of `size` bytes, as OMB 7.4 divides them. */
void fill_counts(const struct world *world, size_t size);

#endif
