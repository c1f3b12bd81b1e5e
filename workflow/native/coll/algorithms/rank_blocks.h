/* Blocks of several ranks in one buffer, as in a gather, a scatter or an allgather. */
#ifndef ALGORITHMS_RANK_BLOCKS_H
#define ALGORITHMS_RANK_BLOCKS_H

#include "core/call.h"
#include "core/tree.h"

struct rank_blocks {
    struct call call;        /* the call, with the count and the type of a block */
    const struct call *user; /* the call, with those of this rank's own block */
    MPI_Aint step;           /* bytes from one block to the next */
};

/*
 * Blocks as this rank holds them: as the buffer of all blocks describes them (COLL_USE_DEFAULT if that is invalid),
 * without such a buffer as this rank's own block. The type of that describes one block only; if several would overlap
 * or have gaps, they are held as packed bytes.
 */
int rank_blocks_of(struct rank_blocks *blocks, const struct call *call);
/* Returns whether a message of n blocks has a count that fits an int, on every rank the same. */
bool rank_blocks_fit(const struct call *call, int n);
char *rank_block_at(const struct rank_blocks *blocks, const void *buffer, int i);
/* Copies this rank's own block; with MPI_IN_PLACE from its place in the receive buffer. */
int rank_blocks_take_own(const struct rank_blocks *blocks, void *to);
/* Copies the blocks of all ranks, which are in the order of the ranks from `first` on, to the receive buffer. */
int rank_blocks_rotate(const struct rank_blocks *blocks, const void *from, int first);
/* Returns the number of ranks in the subtree of a rank of the in-order binomial tree. */
int rank_blocks_below(const struct call *call, int rank);
/* Allocates memory for n blocks: *buffer is that of the first, *raw is to be freed. */
int rank_blocks_buffer(const struct rank_blocks *blocks, int n, char **raw, char **buffer);

#endif
