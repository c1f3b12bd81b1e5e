/* Algorithm selection by the environment: COLL_<OP> and COLL_RULES. */
#ifndef INTERFACE_SELECT_H
#define INTERFACE_SELECT_H

#include "core/call.h"

struct choice {
    const struct algorithm *algorithm; /* NULL: the MPI library's own */
    struct params params;
};

/* Returns false if the call goes straight to the MPI library. */
#if COLL_SIMULATED
bool coll_is_active(enum coll_op kind);
#else
extern bool coll_active[COLL_OPS];

static inline bool coll_is_active(enum coll_op kind) {
    return coll_active[kind];
}
#endif

/* Reads the environment. Returns NULL, or a message about what is invalid. */
const char *coll_select_init(void);
void coll_select_free(void);
/* Returns a hash of the settings, by which processes with different settings are detected. */
unsigned coll_select_digest(void);
bool coll_select_needs_placement(enum coll_op kind);
/* Returns whether the rules for a placement depend on the message size. */
bool coll_select_needs_size(enum coll_op kind, int nodes, int ppn);
struct choice coll_select(enum coll_op kind, int nodes, int ppn, size_t bytes);

#endif
