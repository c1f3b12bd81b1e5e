/* Known data before a call, and the check of what arrived after it. Neither is in a timed region. */
#ifndef VALIDATION_H
#define VALIDATION_H

#include "benchmark.h"

/* Fills what this rank sends with data of this iteration, and clears what it receives. */
void fill_buffers(const struct buffers *buffers, size_t size, int iteration, const struct world *world);

/* Number of received bytes that are not what the senders filled in. */
long count_wrong_bytes(const struct buffers *buffers, size_t size, int iteration, const struct world *world);

#endif
