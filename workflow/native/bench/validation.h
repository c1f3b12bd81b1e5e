/* Data validation: fill the buffers before a call and check what was received after it, outside the timed region. */
#ifndef VALIDATION_H
#define VALIDATION_H

#include "benchmark.h"

/* Fills this rank's send buffer with data of this iteration, and clears its receive buffer. */
void fill_buffers(const struct buffers *buffers, size_t size, int iteration, const struct world *world);

/* Returns the number of received bytes that differ from what the senders filled in. */
long count_wrong_bytes(const struct buffers *buffers, size_t size, int iteration, const struct world *world);

#endif
