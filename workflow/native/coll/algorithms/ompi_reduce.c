/* The reductions of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/halving.h"
#include "algorithms/ompi.h"
#include "core/message.h"
#include "core/segment.h"

#include <stdlib.h>

/* Combines from the last rank to the first, which keeps the order of the operands. */
static int combine_all(struct call *call, const void *own, void *result, void *incoming) {
    int last = call->size - 1;
    if (call->rank == last)
        TRY(coll_copy(own, result, call->count, call->type));
    else
        TRY(coll_recv(call, result, call->count, last, MPI_STATUS_IGNORE));
    for (int rank = last - 1; rank >= 0; rank--) {
        if (rank != call->rank)
            TRY(coll_recv(call, incoming, call->count, rank, MPI_STATUS_IGNORE));
        TRY(coll_reduce_local(rank == call->rank ? own : incoming, result, call->count, call->type, call->op));
    }
    return MPI_SUCCESS;
}

static int combine_in_place(struct call *call, void *incoming, const struct extent *extent) {
    char *raw, *result;
    TRY(coll_buffer(extent, (size_t)call->count, &raw, &result));
    int rc = combine_all(call, call->recv, result, incoming);
    if (rc == MPI_SUCCESS)
        rc = coll_copy(result, call->recv, call->count, call->type);
    free(raw);
    return rc;
}

int ompi_reduce_linear(struct call *call) {
    struct extent extent;
    char *raw, *incoming;
    if (call->rank != call->root)
        return coll_send(call, call->send, call->count, call->root);
    TRY(coll_extent(call->type, &extent));
    TRY(coll_buffer(&extent, (size_t)call->count, &raw, &incoming));
    int rc = call->send == MPI_IN_PLACE ? combine_in_place(call, incoming, &extent)
                                        : combine_all(call, call->send, call->recv, incoming);
    free(raw);
    return rc;
}

/* These trees do not keep the order of the ranks, so the operation has to commute. */

int ompi_reduce_chain(struct call *call) {
    struct tree tree;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    coll_tree_chain(&tree, call->rank, call->size, call->root, (int)call->params.fanout);
    return coll_reduce_tree(call, &tree, call->root);
}

int ompi_reduce_pipeline(struct call *call) {
    struct tree tree;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    coll_tree_chain(&tree, call->rank, call->size, call->root, 1);
    return coll_reduce_tree(call, &tree, call->root);
}

int ompi_reduce_binary(struct call *call) {
    struct tree tree;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    coll_tree_binary(&tree, call->rank, call->size, call->root);
    return coll_reduce_tree(call, &tree, call->root);
}

int ompi_reduce_binomial(struct call *call) {
    struct tree tree;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    coll_tree_in_order_binomial(&tree, call->rank, call->size, call->root);
    return coll_reduce_tree(call, &tree, call->root);
}

/* The root of the tree is the last rank, which sends the result to the call's root. */
static int reduce_to_last(struct call *call, const struct tree *tree, char *buffer) {
    struct call inner = *call;
    int last = call->size - 1;
    if (call->rank == call->root && call->send == MPI_IN_PLACE) {
        TRY(coll_copy(call->recv, buffer, call->count, call->type));
        inner.send = buffer;
    }
    if (call->rank == last)
        inner.recv = buffer;
    TRY(coll_reduce_tree(&inner, tree, last));
    if (call->rank == call->root)
        return coll_recv(call, call->recv, call->count, last, MPI_STATUS_IGNORE);
    return call->rank == last ? coll_send(call, buffer, call->count, call->root) : MPI_SUCCESS;
}

int ompi_reduce_in_order_binary(struct call *call) {
    struct extent extent;
    struct tree tree;
    char *raw = NULL, *buffer = NULL;
    int last = call->size - 1;
    coll_tree_in_order_binary(&tree, call->rank, call->size);
    if (call->root == last)
        return coll_reduce_tree(call, &tree, last);
    TRY(coll_extent(call->type, &extent));
    if (call->rank == last || (call->rank == call->root && call->send == MPI_IN_PLACE))
        TRY(coll_buffer(&extent, (size_t)call->count, &raw, &buffer));
    int rc = reduce_to_last(call, &tree, buffer);
    free(raw);
    return rc;
}

/* ---- Rabenseifner: halve the vectors while reducing, then gather the parts along a binomial tree ---- */

/* A root that was folded away takes the place of rank 0, which sends its part to it. */
static int replace_first(struct halving *h, int root) {
    struct call *call = h->call;
    int part = call->count;
    for (int bit = 1; bit < h->power; bit *= 2)
        part /= 2;
    if (call->rank == root) {
        int count = call->count;
        for (int step = 0; step < h->steps; step++) {
            h->keep[step] = (struct window){0, count / 2};
            h->give[step] = (struct window){count / 2, count - count / 2};
            count /= 2;
        }
        h->me = 0;
        return coll_recv(call, h->data, part, 0, MPI_STATUS_IGNORE);
    }
    if (h->me != 0)
        return MPI_SUCCESS;
    h->me = -1;
    return coll_send(call, h->data, part, root);
}

static int gather_parts(struct halving *h, int root) {
    bool replaced = root < 2 * h->folded && root % 2 != 0;
    int target = replaced ? 0 : halving_index(h, root);
    if (replaced)
        TRY(replace_first(h, root));
    if (h->me < 0)
        return MPI_SUCCESS;
    for (int step = h->steps - 1; step >= 0; step--) {
        int other = h->me ^ (1 << step);
        int rank = replaced && other == 0 ? root : halving_rank(h, other);
        struct window keep = h->keep[step], give = h->give[step];
        if (other >> step == target >> step)
            return coll_send(h->call, coll_at(h->data, keep.first, h->extent), keep.count, rank);
        TRY(coll_recv(h->call, coll_at(h->data, give.first, h->extent), give.count, rank, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int rabenseifner(struct call *call, char *data, char *incoming, MPI_Aint extent) {
    struct halving halving;
    const void *own = call->send == MPI_IN_PLACE ? call->recv : call->send;
    TRY(coll_copy(own, data, call->count, call->type));
    halving_start(&halving, call, data, incoming, extent);
    TRY(halving_fold(&halving));
    TRY(halving_reduce_scatter(&halving));
    return gather_parts(&halving, call->root);
}

int ompi_reduce_rabenseifner(struct call *call) {
    struct extent extent;
    char *raw[2] = {NULL, NULL}, *incoming, *data = call->recv;
    if (call->count < coll_floor_power_of_two(call->size) || !coll_commutes(call))
        return ompi_reduce_linear(call);
    TRY(coll_extent(call->type, &extent));
    int rc = coll_buffer(&extent, (size_t)call->count, &raw[0], &incoming);
    if (rc == MPI_SUCCESS && call->rank != call->root)
        rc = coll_buffer(&extent, (size_t)call->count, &raw[1], &data);
    if (rc == MPI_SUCCESS)
        rc = rabenseifner(call, data, incoming, extent.extent);
    free(raw[0]);
    free(raw[1]);
    return rc;
}

/* ---- the default ---- */

int ompi_reduce_default(struct call *call) {
    return ompi_decide(coll_commutes(call) ? reduce_commuting_decisions : reduce_ordered_decisions, call);
}
