/* The reduce-scatters of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/folding.h"
#include "algorithms/ompi.h"
#include "algorithms/ring.h"
#include "core/message.h"

#include <stdlib.h>

/* A copy of this rank's operands, which partial results replace, and the block of each rank. */
struct scattered {
    struct call *call;
    MPI_Aint extent;
    char *raw[2], *vector, *incoming;
    struct window *blocks; /* one more than there are ranks: the end of the vector */
};

typedef int scattered_function(struct scattered *s);

static int start(struct scattered *s, struct call *call) {
    struct extent extent;
    *s = (struct scattered){.call = call};
    TRY(coll_extent(call->type, &extent));
    s->extent = extent.extent;
    s->blocks = malloc(((size_t)call->size + 1) * sizeof *s->blocks);
    if (s->blocks == NULL)
        return MPI_ERR_NO_MEM;
    int first = 0;
    for (int rank = 0; rank < call->size; rank++) {
        s->blocks[rank] = (struct window){first, call->recv_counts[rank]};
        first += call->recv_counts[rank];
    }
    s->blocks[call->size] = (struct window){first, 0};
    TRY(coll_buffer(&extent, (size_t)call->count, &s->raw[0], &s->vector));
    TRY(coll_buffer(&extent, (size_t)call->count, &s->raw[1], &s->incoming));
    return coll_copy(call->send == MPI_IN_PLACE ? call->recv : call->send, s->vector, call->count, call->type);
}

/* MPI_Reduce_scatter_block, for which Open MPI has other algorithms, is left to the MPI library. */
static int run(struct call *call, scattered_function *algorithm) {
    struct scattered s;
    if (call->equal_counts)
        return COLL_USE_DEFAULT;
    int rc = start(&s, call);
    if (rc == MPI_SUCCESS)
        rc = algorithm(&s);
    free(s.raw[0]);
    free(s.raw[1]);
    free(s.blocks);
    return rc;
}

static char *block_at(const struct scattered *s, const char *vector, int rank) {
    return coll_at(vector, s->blocks[rank].first, s->extent);
}

/* Copies this rank's block from a vector to the caller's buffer. */
static int keep_own(const struct scattered *s, const char *vector) {
    const struct call *call = s->call;
    return coll_copy(block_at(s, vector, call->rank), call->recv, s->blocks[call->rank].count, call->type);
}

/* ---- reduce to rank 0, then scatter the blocks that are not empty one by one ---- */

static int scatter(const struct scattered *s) {
    const struct call *call = s->call;
    int own = s->blocks[call->rank].count;
    if (call->rank != 0)
        return own == 0 ? MPI_SUCCESS : coll_recv(call, call->recv, own, 0, MPI_STATUS_IGNORE);
    for (int rank = 1; rank < call->size; rank++)
        if (s->blocks[rank].count > 0)
            TRY(coll_send(call, block_at(s, s->vector, rank), s->blocks[rank].count, rank));
    return keep_own(s, s->vector);
}

static int nonoverlapping(struct scattered *s) {
    struct call inner = *s->call;
    inner.kind = COLL_REDUCE;
    inner.root = 0;
    inner.send = s->vector;
    inner.recv = s->incoming;
    TRY(ompi_reduce_default(&inner));
    s->vector = s->incoming;
    return scatter(s);
}

int ompi_reduce_scatter_nonoverlapping(struct call *call) {
    return run(call, nonoverlapping);
}

/* ---- ring ---- */

static int ring(struct scattered *s) {
    struct ring r;
    const struct call *call = s->call;
    int largest = 0;
    for (int rank = 0; rank < call->size; rank++)
        if (s->blocks[rank].count > largest)
            largest = s->blocks[rank].count;
    int rc = ring_start(&r, s->call, s->vector, largest);
    if (rc == MPI_SUCCESS)
        rc = ring_reduce(&r, s->blocks, (call->rank + call->size - 1) % call->size);
    ring_end(&r);
    return rc == MPI_SUCCESS ? keep_own(s, s->vector) : rc;
}

int ompi_reduce_scatter_ring(struct call *call) {
    return coll_commutes(call) ? run(call, ring) : COLL_USE_DEFAULT;
}

/* ---- recursive halving: the distance halves; empty windows are not sent ---- */

/* Returns the blocks of the ranks for which n participants from index `first` on take part. */
static struct window blocks_of(const struct scattered *s, const struct folding *f, int first, int n) {
    int from = s->blocks[folding_lowest(f, first)].first, to = s->blocks[folding_lowest(f, first + n)].first;
    return (struct window){from, to - from};
}

static int exchange_filled(struct folding *f, struct window give, struct window keep, int other) {
    struct call *call = f->call;
    MPI_Request request = MPI_REQUEST_NULL;
    char *mine = coll_at(f->mine, keep.first, f->extent), *theirs = coll_at(f->other, keep.first, f->extent);
    if (keep.count > 0)
        TRY(coll_irecv(call, theirs, keep.count, other, &request));
    int rc = MPI_SUCCESS;
    if (give.count > 0)
        rc = coll_send(call, coll_at(f->mine, give.first, f->extent), give.count, other);
    if (rc == MPI_SUCCESS && keep.count > 0)
        rc = PMPI_Wait(&request, MPI_STATUS_IGNORE);
    coll_cancel(1, &request);
    TRY(rc);
    return keep.count == 0 ? MPI_SUCCESS : coll_reduce_local(theirs, mine, keep.count, call->type, call->op);
}

static int halve(const struct scattered *s, struct folding *f) {
    int first = 0;
    for (int n = f->power / 2; n > 0; n /= 2) {
        int other = f->me ^ n, mine = f->me < other ? first : first + n, theirs = f->me < other ? first + n : first;
        TRY(exchange_filled(f, blocks_of(s, f, theirs, n), blocks_of(s, f, mine, n), folding_rank(f, other)));
        first = mine;
    }
    return keep_own(s, f->mine);
}

static int recursive_halving(struct scattered *s) {
    struct folding f;
    struct call *call = s->call;
    TRY(folding_start(&f, call, s->vector, s->incoming));
    TRY(folding_fold(&f));
    if (f.me >= 0)
        TRY(halve(s, &f));
    int even = call->rank - call->rank % 2, count = s->blocks[even].count;
    if (call->rank >= 2 * f.pairs || count == 0)
        return MPI_SUCCESS;
    if (f.me < 0)
        return coll_recv(call, call->recv, count, call->rank + 1, MPI_STATUS_IGNORE);
    return coll_send(call, block_at(s, f.mine, even), count, even);
}

int ompi_reduce_scatter_recursive_halving(struct call *call) {
    return coll_commutes(call) ? run(call, recursive_halving) : COLL_USE_DEFAULT;
}

/* ---- butterfly: the distance doubles, so the blocks end on the ranks with the bits of their indices reversed ---- */

static int reversed(int index, int power) {
    int found = 0;
    for (int bit = 1; bit < power; bit *= 2, index /= 2)
        found = 2 * found + index % 2;
    return found;
}

/* *first: the index whose blocks this rank has in the end. */
static int exchange_halves(const struct scattered *s, struct folding *f, int *first) {
    struct call *call = f->call;
    *first = 0;
    for (int bit = 1, n = f->power / 2; bit < f->power; bit *= 2, n /= 2) {
        int other = folding_rank(f, f->me ^ bit), upper = *first + n;
        struct window give = blocks_of(s, f, f->me & bit ? *first : upper, n);
        *first = f->me & bit ? upper : *first;
        struct window keep = blocks_of(s, f, *first, n);
        TRY(coll_sendrecv(call, coll_at(f->mine, give.first, f->extent), give.count, other,
                          coll_at(f->other, keep.first, f->extent), keep.count, other, MPI_STATUS_IGNORE));
        TRY(folding_combine(f, keep, other));
    }
    return MPI_SUCCESS;
}

/* The ranks for which index `first` takes part get their blocks. */
static int give_blocks(const struct scattered *s, const struct folding *f, int first) {
    struct call *call = f->call;
    int to = folding_rank(f, first);
    if (folding_lowest(f, first) != to)
        TRY(coll_send(call, block_at(s, f->mine, to - 1), s->blocks[to - 1].count, to - 1));
    if (to == call->rank)
        return keep_own(s, f->mine);
    return coll_sendrecv(call, block_at(s, f->mine, to), s->blocks[to].count, to, call->recv,
                         s->blocks[call->rank].count, to, MPI_STATUS_IGNORE);
}

static int butterfly(struct scattered *s) {
    struct folding f;
    struct call *call = s->call;
    int first;
    TRY(folding_start(&f, call, s->vector, s->incoming));
    TRY(folding_fold(&f));
    if (f.me < 0) {
        int from = folding_rank(&f, reversed(call->rank / 2, f.power));
        return coll_recv(call, call->recv, s->blocks[call->rank].count, from, MPI_STATUS_IGNORE);
    }
    TRY(exchange_halves(s, &f, &first));
    return give_blocks(s, &f, first);
}

int ompi_reduce_scatter_butterfly(struct call *call) {
    return run(call, butterfly);
}

/* ---- the default ---- */

int ompi_reduce_scatter_default(struct call *call) {
    return coll_commutes(call) ? ompi_decide(reduce_scatter_commuting_decisions, call)
                               : ompi_reduce_scatter_nonoverlapping(call);
}
