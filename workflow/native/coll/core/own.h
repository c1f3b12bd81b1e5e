/* Variables that each rank has of its own.
 *
 * A rank is a process, whose static variables they are. In the simulator all ranks are threads of control of one
 * process: each has a copy there. SMPI could load the program once for each rank instead, but with thousands of ranks
 * that takes longer than many a simulation. */
#ifndef CORE_OWN_H
#define CORE_OWN_H

#include "core/call.h"

enum own { OWN_CACHE, OWN_COUNTERS, OWN_HOST, OWN_MESSAGE, OWN_SETTINGS, OWN_SELECT, OWNS };

/* Defines `struct <name> *<name>(void)`, the variables of this rank. They begin as the static variable `initial`. */
#if COLL_SIMULATED
/* The copy of this rank; made from the initial values at the first call. Ends the program when there is no memory. */
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
