/* Sub-communicators of the nodes of a communicator, its groups and their leaders. */
#ifndef CORE_HIERARCHY_H
#define CORE_HIERARCHY_H

#include "core/cache.h"

enum hierarchy_kind { HIERARCHY_NODE, HIERARCHY_GROUP, HIERARCHY_NODE_GROUP, HIERARCHY_REORDER };
enum { MAX_LEVELS = 3 };

/*
 * Communicators from the outermost level to the innermost, for one root. The root is rank 0 of each; a rank that does
 * not lead below a level has MPI_COMM_NULL there.
 */
struct hierarchy {
    enum hierarchy_kind kind;
    int root;
    int n;
    MPI_Comm comm[MAX_LEVELS];
    int *below[MAX_LEVELS];   /* at rank 0 of a level: how many ranks each member stands for */
    bool uniform[MAX_LEVELS]; /* all members stand for the same number */
    bool ordered;             /* below, uniform and order are known: only a gather needs them */
    int *order; /* at the root: rank in the caller's communicator of the i-th block that a gather brings */
    struct hierarchy *next;
};

/* Made in the first call for a root, kept with the communicator (the 16 last used). */
int coll_hierarchy_get(struct cache *cache, enum hierarchy_kind kind, int root, struct hierarchy **hierarchy);

#endif
