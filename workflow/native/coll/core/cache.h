/* Data that this library keeps with a communicator: an attribute, which is freed with it. */
#ifndef CORE_CACHE_H
#define CORE_CACHE_H

#include "core/call.h"

/* The node and the group of this rank in a communicator. */
struct placement {
    bool known;
    int node, group;   /* id: its lowest rank */
    int nodes, groups; /* number in the communicator */
    int ppn;           /* ranks per node, rounded up */
};

typedef void free_function(void *list);

struct kept;

struct cache {
    MPI_Comm comm; /* private to this library: its messages never match the caller's */
    int rank, size;
    struct placement placement;
    struct kept *kept;
};

int coll_cache_init(void);
int coll_cache_free(void);
/* Returns COLL_USE_DEFAULT if the library has no private communicator for `user` and may not create one. */
int coll_cache_get(MPI_Comm user, struct cache **cache);
/* Keeps the library from creating communicators from now on. */
void coll_cache_freeze(void);
bool coll_cache_is_frozen(void);
/* Returns in *list the address of a list (NULL at first) kept with the communicator; free_list identifies its owner. */
int coll_cache_kept(struct cache *cache, free_function *free_list, void ***list);

#endif
