/* Blocks of several ranks in one buffer, as in a gather or a scatter. */
#ifndef ALGORITHMS_RANK_BLOCKS_H
#define ALGORITHMS_RANK_BLOCKS_H

#include "core/call.h"
#include "core/tree.h"

struct rank_blocks {
    struct call call; /* the call, with the count and the type of a block */
    MPI_Aint step;    /* bytes from one block to the next */
};

/* Blocks as this rank holds them: at the root as its buffer describes them (COLL_USE_DEFAULT if that is invalid). */
int rank_blocks_of(struct rank_blocks *blocks, const struct call *call);
char *rank_block_at(const struct rank_blocks *blocks, const void *buffer, int i);
/* Returns the number of ranks in the subtree of a rank of the in-order binomial tree. */
int rank_blocks_below(const struct call *call, int rank);
/* Allocates memory for the blocks of this rank's subtree: *buffer is that of the first, *raw is to be freed. */
int rank_blocks_buffer(const struct rank_blocks *blocks, char **raw, char **buffer);

#endif
