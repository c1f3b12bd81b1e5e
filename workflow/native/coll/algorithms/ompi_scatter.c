/* The scatters of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/ompi.h"
#include "algorithms/rank_blocks.h"
#include "core/message.h"

#include <stdlib.h>

/* Copies the root's own block to its receive buffer. */
static int give_own(const struct call *call, const void *from) {
    if (call->recv == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_convert(from, call->block_count, call->block_type, call->recv, call->count, call->type);
}

int ompi_scatter_linear(struct call *call) {
    struct rank_blocks blocks;
    if (call->rank != call->root)
        return coll_recv(call, call->recv, call->count, call->root, MPI_STATUS_IGNORE);
    TRY(rank_blocks_of(&blocks, call));
    for (int rank = 0; rank < call->size; rank++) {
        const char *from = rank_block_at(&blocks, call->send, rank);
        TRY(rank == call->root ? give_own(call, from) : coll_send(&blocks.call, from, blocks.call.count, rank));
    }
    return MPI_SUCCESS;
}

/* Every max_requests-th rank gets its block by a blocking send; 0 and 1: none. */
static int start_all(const struct call *call, const struct rank_blocks *blocks, MPI_Request requests[], int *n) {
    long each = call->params.max_requests;
    for (int rank = 0; rank < call->size; rank++) {
        const char *from = rank_block_at(blocks, call->send, rank);
        if (rank == call->root)
            TRY(give_own(call, from));
        else if (each > 1 && rank % each == 0)
            TRY(coll_send(&blocks->call, from, blocks->call.count, rank));
        else
            TRY(coll_isend(&blocks->call, from, blocks->call.count, rank, &requests[(*n)++]));
    }
    return MPI_SUCCESS;
}

int ompi_scatter_linear_nb(struct call *call) {
    struct rank_blocks blocks;
    int n = 0;
    if (call->rank != call->root)
        return coll_recv(call, call->recv, call->count, call->root, MPI_STATUS_IGNORE);
    TRY(rank_blocks_of(&blocks, call));
    MPI_Request *requests = malloc((size_t)call->size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int rc = start_all(call, &blocks, requests, &n);
    rc = coll_first_error(rc, coll_wait_sends(n, requests));
    free(requests);
    return rc;
}

/* ---- binomial: each rank passes on the blocks of its subtree, which are those of the ranks after it ---- */

/* Sends to the last child first. *from: the blocks of this rank's subtree, the own one first. */
static int pass_on(const struct rank_blocks *blocks, const struct tree *tree, const char *from) {
    int left = rank_blocks_below(&blocks->call, blocks->call.rank);
    for (int i = tree->n - 1; i >= 0; i--) {
        int n = rank_blocks_below(&blocks->call, tree->child[i]);
        left -= n;
        TRY(coll_send(&blocks->call, rank_block_at(blocks, from, left), n * blocks->call.count, tree->child[i]));
    }
    return MPI_SUCCESS;
}

static int receive_and_pass_on(const struct rank_blocks *blocks, const struct tree *tree, char *buffer) {
    const struct call *call = &blocks->call, *user = blocks->user;
    TRY(coll_recv(call, buffer, rank_blocks_below(call, call->rank) * call->count, tree->parent, MPI_STATUS_IGNORE));
    TRY(coll_convert(buffer, call->count, call->type, user->recv, user->count, user->type));
    return pass_on(blocks, tree, buffer);
}

/* At the root, the blocks are sent in the order of the ranks from itself on. */
static int rotate_and_pass_on(const struct rank_blocks *blocks, const struct tree *tree, char *buffer) {
    const struct call *call = &blocks->call;
    int after = call->size - call->root;
    TRY(coll_copy(rank_block_at(blocks, call->send, call->root), buffer, after * call->count, call->type));
    TRY(coll_copy(call->send, rank_block_at(blocks, buffer, after), call->root * call->count, call->type));
    TRY(give_own(blocks->user, buffer));
    return pass_on(blocks, tree, buffer);
}

int ompi_scatter_binomial(struct call *call) {
    struct rank_blocks blocks;
    struct tree tree;
    char *raw, *buffer;
    if (!rank_blocks_fit(call, call->size))
        return COLL_USE_DEFAULT;
    coll_tree_in_order_binomial(&tree, call->rank, call->size, call->root);
    if (call->rank != call->root && tree.n == 0)
        return coll_recv(call, call->recv, call->count, tree.parent, MPI_STATUS_IGNORE);
    TRY(rank_blocks_of(&blocks, call));
    if (call->rank == 0 && call->root == 0) {
        TRY(give_own(call, call->send));
        return pass_on(&blocks, &tree, call->send);
    }
    TRY(rank_blocks_buffer(&blocks, rank_blocks_below(call, call->rank), &raw, &buffer));
    int rc = call->rank == call->root ? rotate_and_pass_on(&blocks, &tree, buffer)
                                      : receive_and_pass_on(&blocks, &tree, buffer);
    free(raw);
    return rc;
}

/* ---- the default ---- */

int ompi_scatter_default(struct call *call) {
    return ompi_decide(scatter_decisions, call);
}
