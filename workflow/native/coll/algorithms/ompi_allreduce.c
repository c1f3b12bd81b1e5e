/* The allreduces of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/halving.h"
#include "algorithms/ompi.h"
#include "core/message.h"
#include "core/segment.h"
#include "ompi_decisions.h"

#include <stdint.h>
#include <stdlib.h>

/* ---- reduce to rank 0, then broadcast ---- */

static int reduce_then_bcast(struct call *call, algorithm_function *reduce, algorithm_function *bcast) {
    struct call inner = *call;
    inner.root = 0;
    if (call->send == MPI_IN_PLACE && call->rank != 0)
        inner.send = call->recv;
    TRY(reduce(&inner));
    return bcast(&inner);
}

int ompi_allreduce_linear(struct call *call) {
    return reduce_then_bcast(call, ompi_reduce_linear, ompi_bcast_linear);
}

int ompi_allreduce_nonoverlapping(struct call *call) {
    return reduce_then_bcast(call, ompi_reduce_default, ompi_bcast_default);
}

/* ---- recursive doubling: keeps the order of the operands ---- */

struct doubling {
    struct call *call;
    char *mine, *other; /* this rank's partial result, and a buffer for a partner's */
    int folded;         /* number of rank pairs of which only the odd rank takes part */
};

static int doubling_steps(struct doubling *d, int me) {
    struct call *call = d->call;
    int power = coll_floor_power_of_two(call->size);
    for (int bit = 1; bit < power; bit *= 2) {
        int index = me ^ bit;
        int partner = index < d->folded ? 2 * index + 1 : index + d->folded;
        TRY(coll_sendrecv(call, d->mine, call->count, partner, d->other, call->count, partner, MPI_STATUS_IGNORE));
        if (call->rank < partner) {
            TRY(coll_reduce_local(d->mine, d->other, call->count, call->type, call->op));
            char *swap = d->mine;
            d->mine = d->other;
            d->other = swap;
        } else {
            TRY(coll_reduce_local(d->other, d->mine, call->count, call->type, call->op));
        }
    }
    return MPI_SUCCESS;
}

static int double_and_fold(struct doubling *d) {
    struct call *call = d->call;
    int rank = call->rank;
    if (rank >= 2 * d->folded)
        return doubling_steps(d, rank - d->folded);
    if (rank % 2 == 0) {
        TRY(coll_send(call, d->mine, call->count, rank + 1));
        d->mine = call->recv;
        return coll_recv(call, call->recv, call->count, rank + 1, MPI_STATUS_IGNORE);
    }
    TRY(coll_recv(call, d->other, call->count, rank - 1, MPI_STATUS_IGNORE));
    TRY(coll_reduce_local(d->other, d->mine, call->count, call->type, call->op));
    TRY(doubling_steps(d, rank / 2));
    return coll_send(call, d->mine, call->count, rank - 1);
}

int ompi_allreduce_recursive_doubling(struct call *call) {
    struct extent extent;
    char *raw, *buffer;
    TRY(coll_extent(call->type, &extent));
    TRY(coll_buffer(&extent, (size_t)call->count, &raw, &buffer));
    struct doubling d = {call, buffer, call->recv, call->size - coll_floor_power_of_two(call->size)};
    int rc = coll_copy(call->send == MPI_IN_PLACE ? call->recv : call->send, buffer, call->count, call->type);
    if (rc == MPI_SUCCESS)
        rc = double_and_fold(&d);
    if (rc == MPI_SUCCESS)
        rc = coll_copy(d.mine, call->recv, call->count, call->type);
    free(raw);
    return rc;
}

/* ---- ring: the first blocks are one element longer than the rest; in the segmented ring a block has several phases
 * ---- */

struct ring {
    struct call *call;
    int phases, room; /* elements in the largest message of the reduction */
    MPI_Aint extent;
    char *incoming[2];
    MPI_Request requests[2];
};

static struct window part(int count, int parts, int i) {
    int longer = count % parts, each = count / parts;
    return (struct window){i * each + (i < longer ? i : longer), each + (i < longer)};
}

static struct window block(const struct ring *r, int i) {
    return part(r->call->count, r->call->size, (i + r->call->size) % r->call->size);
}

static struct window phase_of_block(const struct ring *r, int i, int phase) {
    struct window all = block(r, i), some = part(all.count, r->phases, phase);
    return (struct window){all.first + some.first, some.count};
}

static char *ring_at(const struct ring *r, struct window window) {
    return coll_at(r->call->recv, window.first, r->extent);
}

/* In step k a rank receives and reduces block rank - k, and sends the block of the step before. */
static int ring_reduce(struct ring *r, int phase) {
    struct call *call = r->call;
    int right = (call->rank + 1) % call->size, left = (call->rank + call->size - 1) % call->size;
    struct window mine = phase_of_block(r, call->rank, phase);
    TRY(coll_irecv(call, r->incoming[0], r->room, left, &r->requests[0]));
    TRY(coll_send(call, ring_at(r, mine), mine.count, right));
    for (int k = 1; k < call->size; k++) {
        int now = (k - 1) % 2;
        mine = phase_of_block(r, call->rank - k, phase);
        if (k + 1 < call->size)
            TRY(coll_irecv(call, r->incoming[1 - now], r->room, left, &r->requests[1 - now]));
        TRY(PMPI_Wait(&r->requests[now], MPI_STATUS_IGNORE));
        TRY(coll_reduce_local(r->incoming[now], ring_at(r, mine), mine.count, call->type, call->op));
        if (k + 1 < call->size)
            TRY(coll_send(call, ring_at(r, mine), mine.count, right));
    }
    return MPI_SUCCESS;
}

static int ring_distribute(struct ring *r) {
    struct call *call = r->call;
    int right = (call->rank + 1) % call->size, left = (call->rank + call->size - 1) % call->size;
    for (int k = 0; k < call->size - 1; k++) {
        struct window give = block(r, call->rank + 1 - k), take = block(r, call->rank - k);
        TRY(coll_sendrecv(call, ring_at(r, give), give.count, right, ring_at(r, take), take.count, left,
                          MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int ring_run(struct ring *r) {
    struct call *call = r->call;
    if (call->send != MPI_IN_PLACE)
        TRY(coll_copy(call->send, call->recv, call->count, call->type));
    for (int phase = 0; phase < r->phases; phase++)
        TRY(ring_reduce(r, phase));
    return ring_distribute(r);
}

static int ring(struct call *call, int phases) {
    struct ring r = {.call = call, .phases = phases, .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    struct extent extent;
    char *raw[2] = {NULL, NULL};
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    if (call->count < call->size)
        return ompi_allreduce_recursive_doubling(call);
    TRY(coll_extent(call->type, &extent));
    r.extent = extent.extent;
    r.room = phase_of_block(&r, 0, 0).count;
    int rc = coll_buffer(&extent, (size_t)r.room, &raw[0], &r.incoming[0]);
    if (rc == MPI_SUCCESS)
        rc = coll_buffer(&extent, (size_t)r.room, &raw[1], &r.incoming[1]);
    if (rc == MPI_SUCCESS)
        rc = ring_run(&r);
    coll_cancel(2, r.requests);
    free(raw[0]);
    free(raw[1]);
    return rc;
}

int ompi_allreduce_ring(struct call *call) {
    return ring(call, 1);
}

int ompi_allreduce_segmented_ring(struct call *call) {
    int type_size;
    TRY(PMPI_Type_size(call->type, &type_size));
    long round =
        (long)call->size * coll_segment_count((size_t)call->params.segment_bytes, (size_t)type_size, call->count);
    if (call->count < round)
        return ring(call, 1);
    long rest = call->count % round;
    return ring(call, (int)(call->count / round + (rest >= call->size && rest > round / 2)));
}

/* ---- Rabenseifner: halve the vectors while reducing, then double them while gathering ---- */

static int allgather_windows(struct halving *h) {
    if (h->me < 0)
        return MPI_SUCCESS;
    for (int step = h->steps - 1; step >= 0; step--) {
        int other = halving_rank(h, h->me ^ (1 << step));
        struct window have = h->keep[step], take = h->give[step];
        TRY(coll_sendrecv(h->call, coll_at(h->data, have.first, h->extent), have.count, other,
                          coll_at(h->data, take.first, h->extent), take.count, other, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int rabenseifner(struct call *call, char *incoming, MPI_Aint extent) {
    struct halving h;
    if (call->send != MPI_IN_PLACE)
        TRY(coll_copy(call->send, call->recv, call->count, call->type));
    halving_start(&h, call, call->recv, incoming, extent);
    TRY(halving_fold(&h));
    TRY(halving_reduce_scatter(&h));
    TRY(allgather_windows(&h));
    if (call->rank >= 2 * h.folded)
        return MPI_SUCCESS;
    if (call->rank % 2 == 0)
        return coll_send(call, call->recv, call->count, call->rank + 1);
    return coll_recv(call, call->recv, call->count, call->rank - 1, MPI_STATUS_IGNORE);
}

int ompi_allreduce_rabenseifner(struct call *call) {
    struct extent extent;
    char *raw, *incoming;
    if (call->count < coll_floor_power_of_two(call->size) || !coll_commutes(call))
        return ompi_allreduce_linear(call);
    TRY(coll_extent(call->type, &extent));
    TRY(coll_buffer(&extent, (size_t)call->count, &raw, &incoming));
    int rc = rabenseifner(call, incoming, extent.extent);
    free(raw);
    return rc;
}

/* ---- the default ---- */

#define ROW(ranks, bytes, name) {ranks, bytes, ompi_allreduce_##name},
static const struct ompi_decision ordered[] = {OMPI_DECIDES_allreduce_ordered(ROW)};
static const struct ompi_decision commuting[] = {OMPI_DECIDES_allreduce_commuting(ROW)};
#undef ROW

int ompi_allreduce_default(struct call *call) {
    return ompi_decide(coll_commutes(call) ? commuting : ordered, call);
}
