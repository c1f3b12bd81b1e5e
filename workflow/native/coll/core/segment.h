/* Messages in segments: how many elements each has, and broadcast down and reduction up a tree in segments. */
#ifndef CORE_SEGMENT_H
#define CORE_SEGMENT_H

#include "core/call.h"
#include "core/tree.h"

/* Elements in a segment of Open MPI's algorithms. */
int coll_segment_count(size_t segment_bytes, size_t type_size, int count);
/* Elements in a segment of a call that is told segment_bytes or segments. */
int coll_chunk(const struct call *call, int count, int type_size);
int coll_bcast_tree(struct call *call, const struct tree *tree);
int coll_reduce_tree(struct call *call, const struct tree *tree, int root);

#endif
