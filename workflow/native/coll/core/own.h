/* Per-rank variables.
 *
 * Outside the simulator a rank is a process, and these are its static variables. In the simulator all ranks run in one
 * process, so each has a copy. SMPI could load the program once for each rank instead, but with thousands of ranks that
 * takes longer than many simulations. */
#ifndef CORE_OWN_H
#define CORE_OWN_H

#include "core/call.h"

enum own { OWN_CACHE, OWN_COUNTERS, OWN_HOST, OWN_MESSAGE, OWN_SETTINGS, OWN_SELECT, OWNS };

/* Defines `struct <name> *<name>(void)`, which returns this rank's variables; they start as a copy of `initial`. */
#if COLL_SIMULATED
/* Returns this rank's copy, made from the initial values in the first call. Ends the program if memory is exhausted. */
void *coll_own(enum own which, const void *initial, size_t size);

#define OWN_VARIABLES(which, name)                                                                                     \
    static struct name *name(void) {                                                                                   \
        return coll_own(which, &initial, sizeof initial);                                                              \
    }
#else
#define OWN_VARIABLES(which, name)                                                                                     \
    static inline struct name *name(void) {                                                                            \
        return &initial;                                                                                               \
    }
#endif

#endif
