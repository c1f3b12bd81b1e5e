/* The nodes and groups of the ranks of a communicator. */
#ifndef CORE_PLACEMENT_H
#define CORE_PLACEMENT_H

#include "core/cache.h"

/* Fills cache->placement; the first call sends messages between all ranks. */
int coll_placement(struct cache *cache);

#endif
