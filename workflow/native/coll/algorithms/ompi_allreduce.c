/* The allreduces of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/folding.h"
#include "algorithms/halving.h"
#include "algorithms/ompi.h"
#include "algorithms/ring.h"
#include "core/message.h"
#include "core/segment.h"

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

/* ---- recursive doubling ---- */

static int doubling_steps(struct folding *f) {
    struct call *call = f->call;
    struct window all = {0, call->count};
    for (int bit = 1; bit < f->power; bit *= 2) {
        int partner = folding_rank(f, f->me ^ bit);
        TRY(coll_sendrecv(call, f->mine, call->count, partner, f->other, call->count, partner, MPI_STATUS_IGNORE));
        TRY(folding_combine(f, all, partner));
    }
    return MPI_SUCCESS;
}

static int fold_and_double(struct folding *f) {
    struct call *call = f->call;
    TRY(folding_fold(f));
    if (f->me < 0) {
        f->mine = call->recv;
        return coll_recv(call, call->recv, call->count, call->rank + 1, MPI_STATUS_IGNORE);
    }
    TRY(doubling_steps(f));
    return call->rank < 2 * f->pairs ? coll_send(call, f->mine, call->count, call->rank - 1) : MPI_SUCCESS;
}

int ompi_allreduce_recursive_doubling(struct call *call) {
    struct extent extent;
    struct folding f;
    char *raw, *buffer;
    TRY(coll_extent(call->type, &extent));
    TRY(coll_buffer(&extent, (size_t)call->count, &raw, &buffer));
    int rc = coll_copy(call->send == MPI_IN_PLACE ? call->recv : call->send, buffer, call->count, call->type);
    if (rc == MPI_SUCCESS)
        rc = folding_start(&f, call, buffer, call->recv);
    if (rc == MPI_SUCCESS)
        rc = fold_and_double(&f);
    if (rc == MPI_SUCCESS)
        rc = coll_copy(f.mine, call->recv, call->count, call->type);
    free(raw);
    return rc;
}

/* ---- ring: the first blocks are one element longer than the rest; in the segmented ring a block has several phases
 * ---- */

static struct window part(int count, int parts, int i) {
    int longer = count % parts, each = count / parts;
    return (struct window){i * each + (i < longer ? i : longer), each + (i < longer)};
}

static struct window block(const struct call *call, int i) {
    return part(call->count, call->size, (i + call->size) % call->size);
}

/* A phase of every block. */
static void find_phase(const struct call *call, int phases, int phase, struct window blocks[]) {
    for (int rank = 0; rank < call->size; rank++) {
        struct window all = block(call, rank), some = part(all.count, phases, phase);
        blocks[rank] = (struct window){all.first + some.first, some.count};
    }
}

static int ring_distribute(const struct ring *r) {
    struct call *call = r->call;
    int right = (call->rank + 1) % call->size, left = (call->rank + call->size - 1) % call->size;
    for (int k = 0; k < call->size - 1; k++) {
        struct window give = block(call, call->rank + 1 - k), take = block(call, call->rank - k);
        TRY(coll_sendrecv(call, coll_at(r->vector, give.first, r->extent), give.count, right,
                          coll_at(r->vector, take.first, r->extent), take.count, left, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int ring_run(struct ring *r, int phases, struct window blocks[]) {
    struct call *call = r->call;
    if (call->send != MPI_IN_PLACE)
        TRY(coll_copy(call->send, call->recv, call->count, call->type));
    for (int phase = 0; phase < phases; phase++) {
        find_phase(call, phases, phase, blocks);
        TRY(ring_reduce(r, blocks, call->rank));
    }
    return ring_distribute(r);
}

static int ring(struct call *call, int phases) {
    struct ring r;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    if (call->count < call->size)
        return ompi_allreduce_recursive_doubling(call);
    struct window *blocks = malloc((size_t)call->size * sizeof *blocks);
    if (blocks == NULL)
        return MPI_ERR_NO_MEM;
    find_phase(call, phases, 0, blocks);
    int rc = ring_start(&r, call, call->recv, blocks[0].count);
    if (rc == MPI_SUCCESS)
        rc = ring_run(&r, phases, blocks);
    ring_end(&r);
    free(blocks);
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

int ompi_allreduce_default(struct call *call) {
    return ompi_decide(coll_commutes(call) ? allreduce_commuting_decisions : allreduce_ordered_decisions, call);
}
