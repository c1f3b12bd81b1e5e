/* [duro-redsea], section 3.2.2: one call becomes many non-blocking ones, each on a segment, and a wait for all. */
#include "algorithms/libnbc.h"
#include "core/counters.h"
#include "core/segment.h"

#include <stdlib.h>
#include <string.h>

typedef int start_function(struct call *call, int first, int count, MPI_Aint extent, MPI_Request *request);

static int start_bcast(struct call *call, int first, int count, MPI_Aint extent, MPI_Request *request) {
    return PMPI_Ibcast(coll_at(call->recv, first, extent), count, call->type, call->root, call->comm, request);
}

static int start_allreduce(struct call *call, int first, int count, MPI_Aint extent, MPI_Request *request) {
    const void *send = call->send == MPI_IN_PLACE ? MPI_IN_PLACE : coll_at(call->send, first, extent);
    return PMPI_Iallreduce(send, coll_at(call->recv, first, extent), count, call->type, call->op, call->comm, request);
}

/* After an error the remaining operations are still started and completed, as all ranks have to take part. */
static int start_all(struct call *call, start_function *start, int each, MPI_Aint extent, MPI_Request *requests) {
    int n = 0, rc = MPI_SUCCESS;
    for (long first = 0; first < call->count; first += each) {
        int count = call->count - first < each ? (int)(call->count - first) : each;
        requests[n] = MPI_REQUEST_NULL;
        rc = coll_first_error(rc, start(call, (int)first, count, extent, &requests[n]));
        n++;
    }
    return coll_first_error(rc, coll_wait_all(n, requests));
}

static int pipelined(struct call *call, start_function *start) {
    struct extent extent;
    TRY(coll_extent(call->type, &extent));
    int each = coll_chunk(call, call->count, extent.size);
    size_t n = ((size_t)call->count + (size_t)each - 1) / (size_t)each;
    MPI_Request *requests = malloc(n * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int rc = start_all(call, start, each, extent.extent, requests);
    free(requests);
    return rc;
}

int coll_pipelined_bcast(struct call *call) {
    return pipelined(call, start_bcast);
}

/* SimGrid's non-blocking reductions neither keep the order of the operands nor handle derived types. */
static bool simulator_fails(const struct call *call) {
    int integers, addresses, types, combiner;
    if (!COLL_SIMULATED)
        return false;
    return !coll_commutes(call) ||
           PMPI_Type_get_envelope(call->type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
           combiner != MPI_COMBINER_NAMED;
}

int coll_pipelined_allreduce(struct call *call) {
    if (simulator_fails(call))
        return COLL_USE_DEFAULT;
    return pipelined(call, start_allreduce);
}

/* ---- reduce-scatter: segment k holds the k-th part of every rank's block, so the vector is rearranged first ---- */

struct scattered {
    struct call *call;
    int n;       /* segments */
    int *counts; /* by segment, then by rank */
    char *vector;
    MPI_Aint extent;
    MPI_Request *requests;
};

static int part_first(int count, int parts, int i) {
    return (int)((long)count * i / parts);
}

static int rearrange(struct scattered *s) {
    struct call *call = s->call;
    const char *from = call->send == MPI_IN_PLACE ? call->recv : call->send;
    MPI_Aint to = 0;
    for (int k = 0; k < s->n; k++) {
        MPI_Aint block = 0;
        for (int r = 0; r < call->size; r++) {
            int all = call->recv_counts[r], first = part_first(all, s->n, k);
            int count = part_first(all, s->n, k + 1) - first;
            s->counts[(size_t)k * (size_t)call->size + (size_t)r] = count;
            TRY(coll_copy(coll_at(from, block + first, s->extent), coll_at(s->vector, to, s->extent), count,
                          call->type));
            to += count;
            block += all;
        }
    }
    return MPI_SUCCESS;
}

static int start_segments(struct scattered *s) {
    struct call *call = s->call;
    MPI_Aint from = 0;
    int rc = MPI_SUCCESS;
    for (int k = 0; k < s->n; k++) {
        const int *counts = &s->counts[(size_t)k * (size_t)call->size];
        int to = part_first(call->recv_counts[call->rank], s->n, k);
        s->requests[k] = MPI_REQUEST_NULL;
        rc = coll_first_error(rc, PMPI_Ireduce_scatter(coll_at(s->vector, from, s->extent),
                                                       coll_at(call->recv, to, s->extent), counts, call->type, call->op,
                                                       call->comm, &s->requests[k]));
        for (int r = 0; r < call->size; r++)
            from += counts[r];
    }
    return coll_first_error(rc, coll_wait_all(s->n, s->requests));
}

/* Like start_segments(), with the messages of Open MPI's coll/libnbc. */
static int schedule_segments(struct scattered *s) {
    struct call *call = s->call;
    struct schedules all;
    MPI_Aint from = 0;
    int rc = coll_schedules_init(&all, call, s->n);
    for (int k = 0; k < s->n && rc == MPI_SUCCESS; k++) {
        const int *counts = &s->counts[(size_t)k * (size_t)call->size];
        int to = part_first(call->recv_counts[call->rank], s->n, k);
        rc = coll_schedule_reduce_scatter(&all, k, coll_at(s->vector, from, s->extent),
                                          coll_at(call->recv, to, s->extent), counts);
        for (int r = 0; r < call->size; r++)
            from += counts[r];
    }
    if (rc == MPI_SUCCESS)
        rc = coll_schedules_run(&all);
    coll_schedules_free(&all);
    return rc;
}

static int reduce_scatter(struct call *call, int (*run)(struct scattered *s)) {
    struct scattered s = {.call = call};
    struct extent extent;
    char *raw = NULL;
    TRY(coll_extent(call->type, &extent));
    if (coll_above_limit(call, call->bytes))
        return COLL_USE_DEFAULT;
    int each = coll_chunk(call, call->count, extent.size);
    s.extent = extent.extent;
    s.n = (int)(((long)call->count + each - 1) / each);
    s.counts = malloc((size_t)s.n * (size_t)call->size * sizeof *s.counts);
    s.requests = malloc((size_t)s.n * sizeof *s.requests);
    int rc = coll_buffer(&extent, (size_t)call->count, &raw, &s.vector);
    if (s.counts == NULL || s.requests == NULL)
        rc = MPI_ERR_NO_MEM;
    if (rc == MPI_SUCCESS)
        rc = rearrange(&s);
    if (rc == MPI_SUCCESS)
        rc = run(&s);
    free(raw);
    free(s.counts);
    free(s.requests);
    return rc;
}

int coll_pipelined_reduce_scatter(struct call *call) {
    return simulator_fails(call) ? COLL_USE_DEFAULT : reduce_scatter(call, start_segments);
}

int libnbc_reduce_scatter(struct call *call) {
    return coll_commutes(call) ? reduce_scatter(call, schedule_segments) : COLL_USE_DEFAULT;
}
