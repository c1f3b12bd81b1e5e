/* The nodes and groups of the ranks of a communicator. */
#ifndef CORE_PLACEMENT_H
#define CORE_PLACEMENT_H

#include "core/cache.h"

/* Fills cache->placement. The first call for a communicator is collective and sends messages. */
int coll_placement(struct cache *cache);

#endif
