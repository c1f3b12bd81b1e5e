/* Segmented broadcast and reduction along a tree, with the messages in the same order as in Open MPI 4.1. */
#include "core/segment.h"
#include "core/message.h"

#include <stdlib.h>

/* Rounds the segment size to the nearest number of elements. */
int coll_segment_count(size_t segment_bytes, size_t type_size, int count) {
    if (type_size == 0 || segment_bytes < type_size || segment_bytes >= type_size * (size_t)count)
        return count;
    size_t elements = segment_bytes / type_size;
    return (int)(elements + (segment_bytes % type_size > type_size / 2));
}

int coll_chunk(const struct call *call, int count, int type_size) {
    long bytes = call->params.segment_bytes, each;
    if (bytes > 0)
        each = bytes < type_size ? 1 : bytes / type_size;
    else
        each = call->params.segments > 0 ? ((long)count + call->params.segments - 1) / call->params.segments : count;
    return each < count ? (int)each : count;
}

struct segments {
    int n, each, last; /* elements in each but the last, and in the last */
};

static struct segments split(const struct call *call, int type_size) {
    int each = coll_segment_count((size_t)call->params.segment_bytes, (size_t)type_size, call->count);
    int n = (int)(((long)call->count + each - 1) / each);
    return (struct segments){n, each, call->count - (n - 1) * each};
}

static int length(const struct segments *segments, int i) {
    return i == segments->n - 1 ? segments->last : segments->each;
}

static int send_to_children(struct call *call, const struct tree *tree, const void *buffer, int count) {
    MPI_Request requests[TREE_MAX_CHILDREN];
    for (int i = 0; i < tree->n; i++)
        TRY(coll_isend(call, buffer, count, tree->child[i], &requests[i]));
    return coll_wait_sends(tree->n, requests);
}

/* Posts the receive of the next segment before it waits for this one and forwards it. */
static int bcast_below_root(struct call *call, const struct tree *tree, const struct segments *segments,
                            MPI_Aint extent, MPI_Request requests[2]) {
    TRY(coll_irecv(call, call->recv, length(segments, 0), tree->parent, &requests[0]));
    for (int i = 0; i < segments->n; i++) {
        char *segment = coll_at(call->recv, (MPI_Aint)i * segments->each, extent);
        if (i + 1 < segments->n)
            TRY(coll_irecv(call, coll_at(segment, segments->each, extent), length(segments, i + 1), tree->parent,
                           &requests[(i + 1) % 2]));
        TRY(PMPI_Wait(&requests[i % 2], MPI_STATUS_IGNORE));
        TRY(send_to_children(call, tree, segment, length(segments, i)));
    }
    return MPI_SUCCESS;
}

int coll_bcast_tree(struct call *call, const struct tree *tree) {
    struct extent extent;
    TRY(coll_extent(call->type, &extent));
    struct segments segments = split(call, extent.size);
    if (tree->parent >= 0) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int rc = bcast_below_root(call, tree, &segments, extent.extent, requests);
        coll_cancel(2, requests);
        return rc;
    }
    for (int i = 0; i < segments.n; i++) {
        char *segment = coll_at(call->recv, (MPI_Aint)i * segments.each, extent.extent);
        TRY(send_to_children(call, tree, segment, length(&segments, i)));
    }
    return MPI_SUCCESS;
}

/* State of a rank with children in a reduction. Receives alternate between two buffers. */
struct reduction {
    struct call *call;
    const struct tree *tree;
    struct segments segments;
    MPI_Aint extent;
    bool direct; /* the first child's data are received in the accumulator, then reduced with this rank's own */
    const char *own;
    char *accumulator;
    char *incoming[2];
    MPI_Request requests[2];
};

/* Step i receives segment i / n from child i % n. */
static char *receive_buffer(const struct reduction *r, long step) {
    int segment = (int)(step / r->tree->n);
    bool first_child = step % r->tree->n == 0;
    if (r->direct && first_child)
        return coll_at(r->accumulator, (MPI_Aint)segment * r->segments.each, r->extent);
    return r->incoming[step % 2];
}

static int post_step(struct reduction *r, long step) {
    return coll_irecv(r->call, receive_buffer(r, step), length(&r->segments, (int)(step / r->tree->n)),
                      r->tree->child[step % r->tree->n], &r->requests[step % 2]);
}

static int complete_step(struct reduction *r, long step) {
    int segment = (int)(step / r->tree->n), child = (int)(step % r->tree->n);
    MPI_Aint at = (MPI_Aint)segment * r->segments.each;
    int count = length(&r->segments, segment);
    char *accumulator = coll_at(r->accumulator, at, r->extent);
    const char *operand = r->direct && child == 0 ? coll_at(r->own, at, r->extent) : r->incoming[step % 2];
    TRY(PMPI_Wait(&r->requests[step % 2], MPI_STATUS_IGNORE));
    TRY(coll_reduce_local(operand, accumulator, count, r->call->type, r->call->op));
    if (child == r->tree->n - 1 && r->tree->parent >= 0)
        return coll_send(r->call, accumulator, count, r->tree->parent);
    return MPI_SUCCESS;
}

static int run_reduction(struct reduction *r) {
    long steps = (long)r->segments.n * r->tree->n;
    for (long step = 0; step <= steps; step++) {
        if (step < steps)
            TRY(post_step(r, step));
        if (step > 0)
            TRY(complete_step(r, step - 1));
    }
    return MPI_SUCCESS;
}

static int reduce_inner(struct call *call, const struct tree *tree, const struct segments *segments,
                        const struct extent *extent) {
    struct reduction r = {.call = call, .tree = tree, .segments = *segments, .extent = extent->extent};
    char *raw[3] = {NULL, NULL, NULL};
    bool at_root = tree->parent < 0, in_place = call->send == MPI_IN_PLACE, commutes = coll_commutes(call);
    int rc = MPI_SUCCESS;
    r.direct = commutes && !in_place;
    r.own = in_place ? call->recv : call->send;
    r.accumulator = call->recv;
    r.requests[0] = r.requests[1] = MPI_REQUEST_NULL;
    if (!at_root)
        rc = coll_buffer(extent, (size_t)call->count, &raw[2], &r.accumulator);
    for (int i = 0; i < 2 && rc == MPI_SUCCESS; i++)
        rc = coll_buffer(extent, (size_t)segments->each, &raw[i], &r.incoming[i]);
    if (rc == MPI_SUCCESS && !r.direct)
        rc = coll_copy(r.own, r.accumulator, call->count, call->type);
    if (rc == MPI_SUCCESS)
        rc = run_reduction(&r);
    coll_cancel(2, r.requests);
    for (int i = 0; i < 3; i++)
        free(raw[i]);
    return rc;
}

/* Sends the segments with synchronous sends, of which at most max_requests are outstanding. */
static int reduce_leaf_limited(struct call *call, int parent, const struct segments *segments, MPI_Aint extent) {
    int limit = (int)call->params.max_requests;
    MPI_Request *requests = malloc((size_t)limit * sizeof *requests);
    int rc = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    int posted = 0;
    for (int i = 0; i < segments->n && rc == MPI_SUCCESS; i++) {
        MPI_Request *request = &requests[i % limit];
        if (i >= limit)
            rc = PMPI_Wait(request, MPI_STATUS_IGNORE);
        if (rc == MPI_SUCCESS)
            rc = PMPI_Issend(coll_at(call->send, (MPI_Aint)i * segments->each, extent), length(segments, i), call->type,
                             parent, call->kind, call->comm, request);
        if (rc == MPI_SUCCESS && posted < limit)
            posted++;
    }
    if (rc == MPI_SUCCESS)
        rc = coll_wait_sends(posted, requests);
    free(requests);
    return rc;
}

static int reduce_leaf(struct call *call, int parent, const struct segments *segments, MPI_Aint extent) {
    if (call->params.max_requests > 0 && segments->n > call->params.max_requests)
        return reduce_leaf_limited(call, parent, segments, extent);
    for (int i = 0; i < segments->n; i++)
        TRY(coll_send(call, coll_at(call->send, (MPI_Aint)i * segments->each, extent), length(segments, i), parent));
    return MPI_SUCCESS;
}

int coll_reduce_tree(struct call *call, const struct tree *tree, int root) {
    struct extent extent;
    TRY(coll_extent(call->type, &extent));
    struct segments segments = split(call, extent.size);
    if (tree->n == 0 && call->rank != root)
        return reduce_leaf(call, tree->parent, &segments, extent.extent);
    return reduce_inner(call, tree, &segments, &extent);
}
