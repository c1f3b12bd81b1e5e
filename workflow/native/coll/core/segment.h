/* Segmented messages: elements per segment, and segmented broadcast and reduction along a tree. */
#ifndef CORE_SEGMENT_H
#define CORE_SEGMENT_H

#include "core/call.h"
#include "core/tree.h"

/* Returns the elements per segment as in Open MPI's algorithms. */
int coll_segment_count(size_t segment_bytes, size_t type_size, int count);
/* Returns the elements per segment of a call with the parameter segment_bytes or segments. */
int coll_chunk(const struct call *call, int count, int type_size);
int coll_bcast_tree(struct call *call, const struct tree *tree);
int coll_reduce_tree(struct call *call, const struct tree *tree, int root);

#endif
