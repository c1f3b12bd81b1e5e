/* What COLL_VERBOSE=1 reports of a rank. */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include "core/call.h"

struct counters {
    long calls[COLL_OPS], left[COLL_OPS], above_limit[COLL_OPS]; /* left: to the MPI library */
    long setups, setup_nanoseconds;
};

void coll_count_call(enum coll_op kind, bool left);
void coll_count_setup(double seconds);
/* Whether a leader would need more than COLL_MEMORY_LIMIT, so that the MPI library has to do the call; counts it. */
bool coll_above_limit(const struct call *call, size_t bytes);
struct counters coll_counters(void);

#endif
