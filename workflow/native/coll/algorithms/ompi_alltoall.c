/*
 * The alltoalls and alltoallvs of Open MPI's coll/tuned: the same messages in the same order as version 4.1. An
 * alltoall is described like an alltoallv. Calls with MPI_IN_PLACE are left to the MPI library.
 */
#include "algorithms/ompi.h"
#include "core/message.h"

#include <stdlib.h>

/* What a rank sends, or what it receives. */
struct side {
    struct call call; /* with the type of this side */
    struct extent extent;
    const void *buffer;
    const int *counts, *displs;
};

struct exchanged {
    struct side out, in;
};

static int sides_of(struct exchanged *x, const struct call *call) {
    x->out =
        (struct side){.call = *call, .buffer = call->send, .counts = call->send_counts, .displs = call->send_displs};
    x->in =
        (struct side){.call = *call, .buffer = call->recv, .counts = call->recv_counts, .displs = call->recv_displs};
    x->in.call.type = call->recv_type;
    TRY(coll_extent(x->out.call.type, &x->out.extent));
    return coll_extent(x->in.call.type, &x->in.extent);
}

static char *block_at(const struct side *side, int rank) {
    return coll_at(side->buffer, side->displs[rank], side->extent.extent);
}

static int copy_own(const struct exchanged *x) {
    int rank = x->out.call.rank;
    return coll_convert(block_at(&x->out, rank), x->out.counts[rank], x->out.call.type, block_at(&x->in, rank),
                        x->in.counts[rank], x->in.call.type);
}

static int start_receive(const struct exchanged *x, int from, MPI_Request *request) {
    return coll_irecv(&x->in.call, block_at(&x->in, from), x->in.counts[from], from, request);
}

static int start_send(const struct exchanged *x, int to, MPI_Request *request) {
    return coll_isend(&x->out.call, block_at(&x->out, to), x->out.counts[to], to, request);
}

/* ---- pairwise: in step k with the ranks k above and k below; two_proc is its only step ---- */

static int exchange(const struct exchanged *x, int to, int from) {
    MPI_Request request = MPI_REQUEST_NULL;
    TRY(start_receive(x, from, &request));
    int rc = coll_send(&x->out.call, block_at(&x->out, to), x->out.counts[to], to);
    if (rc == MPI_SUCCESS)
        return PMPI_Wait(&request, MPI_STATUS_IGNORE);
    coll_cancel(1, &request);
    return rc;
}

int ompi_alltoall_pairwise(struct call *call) {
    struct exchanged x;
    int rank = call->rank, size = call->size;
    if (call->in_place)
        return COLL_USE_DEFAULT;
    TRY(sides_of(&x, call));
    for (int step = 1; step < size; step++)
        TRY(exchange(&x, (rank + step) % size, (rank - step + size) % size));
    return copy_own(&x);
}

int ompi_alltoall_two_proc(struct call *call) {
    return call->size == 2 ? ompi_alltoall_pairwise(call) : COLL_USE_DEFAULT;
}

/* ---- linear: all at once; alltoallv omits empty messages (from Open MPI 4.1.5 on) ---- */

/* The rank of the i-th message, of `size`, of which one is the rank itself; way: 1 for receives, -1 for sends. */
static int peer(const struct call *call, int i, int way) {
    return call->kind == COLL_ALLTOALLV ? i : (call->rank + way * i + call->size) % call->size;
}

static bool has_message(const struct side *side, int rank) {
    return rank != side->call.rank && side->counts[rank] > 0 && side->extent.size > 0;
}

static int start_all(const struct exchanged *x, MPI_Request requests[], int *n) {
    const struct call *call = &x->out.call;
    for (int i = 0, from; i < call->size; i++)
        if (has_message(&x->in, from = peer(call, i, 1)))
            TRY(start_receive(x, from, &requests[(*n)++]));
    for (int i = 0, to; i < call->size; i++)
        if (has_message(&x->out, to = peer(call, i, -1)))
            TRY(start_send(x, to, &requests[(*n)++]));
    return MPI_SUCCESS;
}

static int linear(const struct exchanged *x, MPI_Request requests[]) {
    int n = 0;
    TRY(start_all(x, requests, &n));
    return coll_wait_all(n, requests);
}

/* Each request that ends is replaced by the next of its kind. */
static int linear_with_limit(const struct exchanged *x, MPI_Request requests[]) {
    const struct call *call = &x->out.call;
    int most = (int)call->params.max_requests, received = 0, sent = 0, ended;
    while (received < most) {
        received++;
        TRY(start_receive(x, peer(call, received, 1), &requests[received - 1]));
    }
    while (sent < most) {
        sent++;
        TRY(start_send(x, peer(call, sent, -1), &requests[most + sent - 1]));
    }
    for (int n = 0; n < 2 * (call->size - 1); n++) {
        TRY(PMPI_Waitany(2 * most, requests, &ended, MPI_STATUS_IGNORE));
        if (ended < most && received < call->size - 1)
            TRY(start_receive(x, peer(call, ++received, 1), &requests[ended]));
        else if (ended >= most && sent < call->size - 1)
            TRY(start_send(x, peer(call, ++sent, -1), &requests[ended]));
    }
    return MPI_SUCCESS;
}

static int run_linear(struct call *call, int (*run)(const struct exchanged *, MPI_Request[])) {
    struct exchanged x;
    int most = 2 * call->size;
    if (call->in_place)
        return COLL_USE_DEFAULT;
    TRY(sides_of(&x, call));
    TRY(copy_own(&x));
    MPI_Request *requests = malloc((size_t)most * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < most; i++)
        requests[i] = MPI_REQUEST_NULL;
    int rc = run(&x, requests);
    coll_cancel(most, requests);
    free(requests);
    return rc;
}

int ompi_alltoall_linear(struct call *call) {
    return run_linear(call, linear);
}

int ompi_alltoall_linear_sync(struct call *call) {
    long most = call->params.max_requests;
    return run_linear(call, most > 0 && most < call->size - 1 ? linear_with_limit : linear);
}

/* ---- Bruck, of an alltoall: in step k the blocks with bit k of the distance that they still have to go ---- */

struct bruck {
    struct call call; /* with the count and the type of a received block */
    MPI_Aint step;
    char *blocks, *give, *take; /* blocks[i]: first for the rank i above, in the end from the rank i below */
};

/* Copies the blocks of a step to consecutive places, or back. Returns their number in *n. */
static int collect(const struct bruck *b, int distance, char *packed, bool back, int *n) {
    *n = 0;
    for (int first = distance; first < b->call.size; first += 2 * distance) {
        int blocks = first + distance < b->call.size ? distance : b->call.size - first;
        char *here = coll_at(b->blocks, first, b->step), *there = coll_at(packed, *n, b->step);
        TRY(coll_copy(back ? there : here, back ? here : there, blocks * b->call.count, b->call.type));
        *n += blocks;
    }
    return MPI_SUCCESS;
}

static int bruck(const struct bruck *b, const struct exchanged *x) {
    const struct call *call = &b->call;
    int rank = call->rank, size = call->size;
    for (int i = 0; i < size; i++)
        TRY(coll_convert(block_at(&x->out, (rank + i) % size), x->out.counts[0], x->out.call.type,
                         coll_at(b->blocks, i, b->step), call->count, call->type));
    for (int distance = 1, n; distance < size; distance *= 2) {
        TRY(collect(b, distance, b->give, false, &n));
        TRY(coll_sendrecv(call, b->give, n * call->count, (rank + distance) % size, b->take, n * call->count,
                          (rank - distance + size) % size, MPI_STATUS_IGNORE));
        TRY(collect(b, distance, b->take, true, &n));
    }
    for (int i = 0; i < size; i++)
        TRY(coll_copy(coll_at(b->blocks, i, b->step), block_at(&x->in, (rank - i + size) % size), call->count,
                      call->type));
    return MPI_SUCCESS;
}

/* Of at most as many blocks as a rank receives: if the caller places the elements of different blocks alternately,
 * further blocks would overlap these. */
int ompi_alltoall_bruck(struct call *call) {
    struct exchanged x;
    char *raw[3] = {NULL, NULL, NULL};
    if (call->in_place)
        return COLL_USE_DEFAULT;
    TRY(sides_of(&x, call));
    int count = x.in.counts[0];
    size_t all = (size_t)call->size * (size_t)count, half = (size_t)(call->size + 1) / 2 * (size_t)count;
    struct bruck b = {.call = x.in.call, .step = count * x.in.extent.extent};
    b.call.count = count;
    int rc = coll_buffer(&x.in.extent, all, &raw[0], &b.blocks);
    if (rc == MPI_SUCCESS)
        rc = coll_buffer(&x.in.extent, half, &raw[1], &b.give);
    if (rc == MPI_SUCCESS)
        rc = coll_buffer(&x.in.extent, half, &raw[2], &b.take);
    if (rc == MPI_SUCCESS)
        rc = bruck(&b, &x);
    for (int i = 0; i < 3; i++)
        free(raw[i]);
    return rc;
}

/* ---- the defaults ---- */

int ompi_alltoall_default(struct call *call) {
    return ompi_decide(alltoall_decisions, call);
}

int ompi_alltoallv_default(struct call *call) {
    return ompi_decide(alltoallv_decisions, call);
}
