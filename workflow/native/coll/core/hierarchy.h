/* Sub-communicators for the nodes and groups of a communicator, and for their leaders. */
#ifndef CORE_HIERARCHY_H
#define CORE_HIERARCHY_H

#include "core/cache.h"

enum hierarchy_kind { HIERARCHY_NODE, HIERARCHY_GROUP, HIERARCHY_NODE_GROUP, HIERARCHY_REORDER };
enum { MAX_LEVELS = 3 };

/*
 * Communicators for one root, from the outermost level to the innermost. The root is rank 0 of each. A rank that is not
 * a leader at level l + 1 has MPI_COMM_NULL at level l.
 */
struct hierarchy {
    enum hierarchy_kind kind;
    int root;
    int n;
    MPI_Comm comm[MAX_LEVELS];
    int *below[MAX_LEVELS];   /* on rank 0 of a level: number of ranks that each member represents */
    bool uniform[MAX_LEVELS]; /* all members represent the same number of ranks */
    bool ordered;             /* below, uniform and order are set; only a gather needs them */
    int *order;               /* on the root: rank in the caller's communicator of the i-th gathered block */
    struct hierarchy *next;
};

/* Returns a hierarchy, which the first call for a root creates and the communicator keeps (the 16 last used). */
int coll_hierarchy_get(struct cache *cache, enum hierarchy_kind kind, int root, struct hierarchy **hierarchy);

#endif
