#include "core/counters.h"
#include "core/own.h"
#include "core/settings.h"

#include <stdatomic.h>

static struct counted {
    atomic_long calls[COLL_OPS], left[COLL_OPS], above_limit[COLL_OPS];
    atomic_long setups, setup_nanoseconds;
} initial;

OWN_VARIABLES(OWN_COUNTERS, counted)

void coll_count_call(enum coll_op kind, bool was_left) {
    atomic_fetch_add(&counted()->calls[kind], 1);
    atomic_fetch_add(&counted()->left[kind], was_left);
}

void coll_count_setup(double seconds) {
    atomic_fetch_add(&counted()->setups, 1);
    atomic_fetch_add(&counted()->setup_nanoseconds, (long)(seconds * 1e9));
}

bool coll_above_limit(const struct call *call, size_t bytes) {
    if (bytes <= coll_memory_limit())
        return false;
    atomic_fetch_add(&counted()->above_limit[call->kind], 1);
    return true;
}

struct counters coll_counters(void) {
    struct counters now = {.setups = atomic_load(&counted()->setups),
                           .setup_nanoseconds = atomic_load(&counted()->setup_nanoseconds)};
    for (int kind = 0; kind < COLL_OPS; kind++) {
        now.calls[kind] = atomic_load(&counted()->calls[kind]);
        now.left[kind] = atomic_load(&counted()->left[kind]);
        now.above_limit[kind] = atomic_load(&counted()->above_limit[kind]);
    }
    return now;
}
