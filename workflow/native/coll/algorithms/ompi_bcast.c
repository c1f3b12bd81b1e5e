/* The broadcasts of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/ompi.h"
#include "core/message.h"
#include "core/segment.h"

#include <stdlib.h>

static int send_to_all(struct call *call, MPI_Request requests[]) {
    int n = 0;
    for (int rank = 0; rank < call->size; rank++)
        if (rank != call->rank)
            TRY(coll_isend(call, call->recv, call->count, rank, &requests[n++]));
    return coll_wait_sends(n, requests);
}

int ompi_bcast_linear(struct call *call) {
    if (call->rank != call->root)
        return coll_recv(call, call->recv, call->count, call->root, MPI_STATUS_IGNORE);
    MPI_Request *requests = malloc((size_t)call->size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int rc = send_to_all(call, requests);
    free(requests);
    return rc;
}

int ompi_bcast_chain(struct call *call) {
    struct tree tree;
    coll_tree_chain(&tree, call->rank, call->size, call->root, (int)call->params.fanout);
    return coll_bcast_tree(call, &tree);
}

int ompi_bcast_pipeline(struct call *call) {
    struct tree tree;
    coll_tree_chain(&tree, call->rank, call->size, call->root, 1);
    return coll_bcast_tree(call, &tree);
}

int ompi_bcast_binary(struct call *call) {
    struct tree tree;
    coll_tree_binary(&tree, call->rank, call->size, call->root);
    return coll_bcast_tree(call, &tree);
}

int ompi_bcast_binomial(struct call *call) {
    struct tree tree;
    coll_tree_binomial(&tree, call->rank, call->size, call->root);
    return coll_bcast_tree(call, &tree);
}

int ompi_bcast_knomial(struct call *call) {
    struct tree tree;
    coll_tree_knomial(&tree, call->rank, call->size, call->root, (int)call->params.radix);
    return coll_bcast_tree(call, &tree);
}

/* ---- split binary tree: each half of the message goes down one side, then pairs of ranks exchange the halves ---- */

struct half {
    char *buffer;
    int count, each, segments;
};

static struct half make_half(const struct call *call, int first, int count, int type_size, MPI_Aint extent) {
    long bytes = call->params.segment_bytes;
    int each = bytes == 0 ? count : bytes < type_size ? 1 : (int)(bytes / type_size);
    return (struct half){coll_at(call->recv, first, extent), count, each, (count + each - 1) / each};
}

static int half_length(const struct half *half, int segment) {
    return segment == half->segments - 1 ? half->count - segment * half->each : half->each;
}

static int send_halves(struct call *call, const struct tree *tree, const struct half halves[2], MPI_Aint extent) {
    for (int s = 0; s < halves[0].segments; s++)
        for (int i = 0; i < tree->n; i++)
            if (s < halves[i].segments)
                TRY(coll_send(call, coll_at(halves[i].buffer, (MPI_Aint)s * halves[i].each, extent),
                              half_length(&halves[i], s), tree->child[i]));
    return MPI_SUCCESS;
}

static int forward_half(struct call *call, const struct tree *tree, const struct half *half, MPI_Aint extent,
                        MPI_Request requests[2]) {
    TRY(coll_irecv(call, half->buffer, half_length(half, 0), tree->parent, &requests[0]));
    for (int s = 0; s < half->segments; s++) {
        char *segment = coll_at(half->buffer, (MPI_Aint)s * half->each, extent);
        if (s + 1 < half->segments)
            TRY(coll_irecv(call, coll_at(segment, half->each, extent), half_length(half, s + 1), tree->parent,
                           &requests[(s + 1) % 2]));
        TRY(PMPI_Wait(&requests[s % 2], MPI_STATUS_IGNORE));
        for (int i = 0; i < tree->n; i++)
            TRY(coll_send(call, segment, half_length(half, s), tree->child[i]));
    }
    return MPI_SUCCESS;
}

static int take_half(struct call *call, const struct tree *tree, const struct half *half, MPI_Aint extent) {
    if (tree->n > 0) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int rc = forward_half(call, tree, half, extent, requests);
        coll_cancel(2, requests);
        return rc;
    }
    for (int s = 0; s < half->segments; s++)
        TRY(coll_recv(call, coll_at(half->buffer, (MPI_Aint)s * half->each, extent), half_length(half, s), tree->parent,
                      MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

/* Neighbours are on different sides of the tree. With an even number of ranks the last one's partner is the root. */
static int exchange_halves(struct call *call, const struct half halves[2]) {
    int me = (call->rank - call->root + call->size) % call->size;
    int last = (call->root + call->size - 1) % call->size;
    int side = (me + 1) % 2;
    int partner = (call->rank + (side == 0 ? 1 : call->size - 1)) % call->size;
    bool even = call->size % 2 == 0;
    if (me == 0)
        return even ? coll_send(call, halves[1].buffer, halves[1].count, last) : MPI_SUCCESS;
    if (even && call->rank == last)
        return coll_recv(call, halves[1].buffer, halves[1].count, call->root, MPI_STATUS_IGNORE);
    return coll_sendrecv(call, halves[side].buffer, halves[side].count, partner, halves[1 - side].buffer,
                         halves[1 - side].count, partner, MPI_STATUS_IGNORE);
}

int ompi_bcast_split_binary(struct call *call) {
    struct extent extent;
    struct tree tree;
    int right = call->count / 2, left = call->count - right;
    TRY(coll_extent(call->type, &extent));
    if (right == 0 || call->params.segment_bytes > (long)right * extent.size)
        return ompi_bcast_pipeline(call);
    struct half halves[2] = {make_half(call, 0, left, extent.size, extent.extent),
                             make_half(call, left, right, extent.size, extent.extent)};
    coll_tree_binary(&tree, call->rank, call->size, call->root);
    if (call->rank == call->root) {
        TRY(send_halves(call, &tree, halves, extent.extent));
    } else {
        int side = ((call->rank - call->root + call->size) % call->size + 1) % 2;
        TRY(take_half(call, &tree, &halves[side], extent.extent));
    }
    return exchange_halves(call, halves);
}

/* ---- scatter along a binomial tree, then allgather ---- */

/* Blocks of ceil(count / size) elements, one per rank relative to the root (me); the last may be short or empty. */
struct blocks {
    struct call *call;
    int me, each;
    MPI_Aint extent;
};

static int block_count(const struct blocks *b, int block) {
    long rest = (long)b->call->count - (long)block * b->each;
    return rest <= 0 ? 0 : rest < b->each ? (int)rest : b->each;
}

/* Returns the number of elements from a block to the end of the message. */
static int rest_count(const struct blocks *b, int block) {
    long rest = (long)b->call->count - (long)block * b->each;
    return rest <= 0 ? 0 : (int)rest;
}

static char *block_at(const struct blocks *b, int block) {
    return coll_at(b->call->recv, (MPI_Aint)block * b->each, b->extent);
}

static int real_rank(const struct blocks *b, int relative) {
    return (relative + b->call->root) % b->call->size;
}

static int recv_counted(struct blocks *b, int block, int from, int *count) {
    MPI_Status status;
    TRY(coll_recv(b->call, block_at(b, block), rest_count(b, block), from, &status));
    return PMPI_Get_count(&status, b->call->type, count);
}

static int scatter(struct blocks *b) {
    int bit = 1, have = b->me == 0 ? b->call->count : 0;
    while (bit < b->call->size && !(b->me & bit))
        bit *= 2;
    if (bit < b->call->size && rest_count(b, b->me) > 0)
        TRY(recv_counted(b, b->me, real_rank(b, b->me - bit), &have));
    for (bit /= 2; bit > 0; bit /= 2) {
        long count = (long)have - (long)b->each * bit;
        if (b->me + bit >= b->call->size || count <= 0)
            continue;
        TRY(coll_send(b->call, block_at(b, b->me + bit), (int)count, real_rank(b, b->me + bit)));
        have -= (int)count;
    }
    return MPI_SUCCESS;
}

/*
 * Some of the ranks [first, first + 2 bit) have no partner: those that exchanged forward what they received along a
 * halving tree to those that did not.
 */
static int pass_down(struct blocks *b, int first, int bit, int *received, int *have) {
    int complete = b->call->size - first - bit;
    for (int half = bit / 2; half > 0; half /= 2) {
        int other = b->me ^ half;
        int border = b->me / (2 * half) * (2 * half) + complete;
        if (other > b->me && b->me < border && other >= border) {
            TRY(coll_send(b->call, block_at(b, first + bit), *received, real_rank(b, other)));
        } else if (other < b->me && other < border && b->me >= border) {
            TRY(recv_counted(b, first + bit, real_rank(b, other), received));
            *have += *received;
        }
    }
    return MPI_SUCCESS;
}

static int allgather_doubling(struct blocks *b) {
    int have = block_count(b, b->me), received = 0, size = b->call->size;
    for (int bit = 1; bit < size; bit *= 2) {
        int other = b->me ^ bit;
        int first = b->me / bit * bit, other_first = other / bit * bit;
        if (other < size) {
            MPI_Status status;
            TRY(coll_sendrecv(b->call, block_at(b, first), have, real_rank(b, other), block_at(b, other_first),
                              rest_count(b, other_first), real_rank(b, other), &status));
            TRY(PMPI_Get_count(&status, b->call->type, &received));
            have += received;
        }
        if (other_first + bit > size)
            TRY(pass_down(b, first, bit, &received, &have));
    }
    return MPI_SUCCESS;
}

static int allgather_ring(struct blocks *b) {
    int size = b->call->size, rank = b->call->rank;
    for (int step = 1; step < size; step++) {
        int mine = (b->me - step + 1 + size) % size, next = (b->me - step + size) % size;
        TRY(coll_sendrecv(b->call, block_at(b, mine), block_count(b, mine), (rank + 1) % size, block_at(b, next),
                          block_count(b, next), (rank - 1 + size) % size, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int scatter_allgather(struct call *call, int (*allgather)(struct blocks *)) {
    struct extent extent;
    if (call->count < call->size)
        return ompi_bcast_linear(call);
    TRY(coll_extent(call->type, &extent));
    struct blocks blocks = {call, (call->rank - call->root + call->size) % call->size,
                            (int)(((long)call->count + call->size - 1) / call->size), extent.extent};
    TRY(scatter(&blocks));
    return allgather(&blocks);
}

int ompi_bcast_scatter_allgather(struct call *call) {
    return scatter_allgather(call, allgather_doubling);
}

int ompi_bcast_scatter_allgather_ring(struct call *call) {
    return scatter_allgather(call, allgather_ring);
}

/* ---- the default ---- */

int ompi_bcast_default(struct call *call) {
    return ompi_decide(bcast_decisions, call);
}
