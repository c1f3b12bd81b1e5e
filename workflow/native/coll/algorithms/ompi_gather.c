/* The gathers of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/ompi.h"
#include "algorithms/rank_blocks.h"
#include "core/message.h"

#include <stdlib.h>

int ompi_gather_linear(struct call *call) {
    struct rank_blocks blocks;
    if (call->rank != call->root)
        return coll_send(call, call->send, call->count, call->root);
    TRY(rank_blocks_of(&blocks, call));
    for (int rank = 0; rank < call->size; rank++) {
        char *to = rank_block_at(&blocks, call->recv, rank);
        TRY(rank == call->root ? rank_blocks_take_own(&blocks, to)
                               : coll_recv(&blocks.call, to, blocks.call.count, rank, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

/* ---- linear with synchronisation: the root asks each rank in turn; the second part of a block is empty ---- */

static int answer(const struct call *call) {
    TRY(coll_recv(call, NULL, 0, call->root, MPI_STATUS_IGNORE));
    TRY(coll_send(call, call->send, call->count, call->root));
    return coll_send(call, NULL, 0, call->root);
}

static int ask(const struct rank_blocks *blocks, int rank, MPI_Request *second) {
    MPI_Request first;
    TRY(coll_irecv(&blocks->call, rank_block_at(blocks, blocks->call.recv, rank), blocks->call.count, rank, &first));
    TRY(coll_send(&blocks->call, NULL, 0, rank));
    TRY(coll_irecv(&blocks->call, NULL, 0, rank, second));
    return PMPI_Wait(&first, MPI_STATUS_IGNORE);
}

int ompi_gather_linear_sync(struct call *call) {
    struct rank_blocks blocks;
    int n = 0;
    if (call->rank != call->root)
        return answer(call);
    TRY(rank_blocks_of(&blocks, call));
    MPI_Request *seconds = malloc((size_t)call->size * sizeof *seconds);
    if (seconds == NULL)
        return MPI_ERR_NO_MEM;
    int rc = MPI_SUCCESS;
    for (int rank = 0; rank < call->size && rc == MPI_SUCCESS; rank++)
        if (rank != call->root)
            rc = ask(&blocks, rank, &seconds[n++]);
    if (rc == MPI_SUCCESS)
        rc = rank_blocks_take_own(&blocks, rank_block_at(&blocks, call->recv, call->root));
    if (rc == MPI_SUCCESS)
        rc = coll_wait_all(n, seconds);
    free(seconds);
    return rc;
}

/* ---- binomial: each rank collects the blocks of its subtree, which are those of the ranks after it ---- */

/* *into: the blocks of this rank's subtree, the own one first. */
static int collect(const struct rank_blocks *blocks, const struct tree *tree, char *into) {
    int have = 1;
    for (int i = 0; i < tree->n; i++) {
        int n = rank_blocks_below(&blocks->call, tree->child[i]);
        TRY(coll_recv(&blocks->call, rank_block_at(blocks, into, have), n * blocks->call.count, tree->child[i],
                      MPI_STATUS_IGNORE));
        have += n;
    }
    return MPI_SUCCESS;
}

static int collect_and_send(const struct rank_blocks *blocks, const struct tree *tree, char *into) {
    const struct call *call = &blocks->call;
    TRY(rank_blocks_take_own(blocks, into));
    TRY(collect(blocks, tree, into));
    return coll_send(call, into, rank_blocks_below(call, call->rank) * call->count, tree->parent);
}

/* At the root, the blocks are in the order of the ranks from itself on. */
static int collect_and_rotate(const struct rank_blocks *blocks, const struct tree *tree, char *into) {
    TRY(rank_blocks_take_own(blocks, into));
    TRY(collect(blocks, tree, into));
    return rank_blocks_rotate(blocks, into, blocks->call.root);
}

int ompi_gather_binomial(struct call *call) {
    struct rank_blocks blocks;
    struct tree tree;
    char *raw, *into;
    if (!rank_blocks_fit(call, call->size))
        return COLL_USE_DEFAULT;
    coll_tree_in_order_binomial(&tree, call->rank, call->size, call->root);
    if (call->rank != call->root && tree.n == 0)
        return coll_send(call, call->send, call->count, tree.parent);
    TRY(rank_blocks_of(&blocks, call));
    if (call->rank == 0 && call->root == 0) {
        TRY(rank_blocks_take_own(&blocks, call->recv));
        return collect(&blocks, &tree, call->recv);
    }
    TRY(rank_blocks_buffer(&blocks, rank_blocks_below(call, call->rank), &raw, &into));
    int rc =
        call->rank == call->root ? collect_and_rotate(&blocks, &tree, into) : collect_and_send(&blocks, &tree, into);
    free(raw);
    return rc;
}

/* ---- the default ---- */

int ompi_gather_default(struct call *call) {
    return ompi_decide(gather_decisions, call);
}
