/* Counters of a rank, reported with COLL_VERBOSE=1. */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include "core/call.h"

struct counters {
    long calls[COLL_OPS], left[COLL_OPS], above_limit[COLL_OPS]; /* left: calls left to the MPI library */
    long setups, setup_nanoseconds;
};

void coll_count_call(enum coll_op kind, bool left);
void coll_count_setup(double seconds);
/* Returns whether a leader needs more than COLL_MEMORY_LIMIT, so that the MPI library executes the call; counts it. */
bool coll_above_limit(const struct call *call, size_t bytes);
struct counters coll_counters(void);

#endif
