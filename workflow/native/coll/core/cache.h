/* What this library keeps with a communicator: an attribute, freed with it. */
#ifndef CORE_CACHE_H
#define CORE_CACHE_H

#include "core/call.h"

/* Where the ranks of a communicator are. */
struct placement {
    bool known;
    int node, group;   /* id: the lowest rank there */
    int nodes, groups; /* how many in the communicator */
    int ppn;           /* ranks per node, rounded up */
};

typedef void free_function(void *list);

struct kept;

struct cache {
    MPI_Comm comm; /* private to this library: its messages never meet the caller's */
    int rank, size;
    struct placement placement;
    struct kept *kept;
};

int coll_cache_init(void);
int coll_cache_free(void);
/* COLL_USE_DEFAULT: the library has none of its own for that communicator, and may not create one. */
int coll_cache_get(MPI_Comm user, struct cache **cache);
/* From now on this library creates no communicators. */
void coll_cache_freeze(void);
bool coll_cache_is_frozen(void);
/* The place of a list (NULL at first) that its owner, known by the function that frees it, keeps with a communicator.
 */
int coll_cache_kept(struct cache *cache, free_function *free_list, void ***list);

#endif
