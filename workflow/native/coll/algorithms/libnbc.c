/* Open MPI's coll/libnbc, version 4.1.4: nbc_iallreduce.c, nbc_ibcast.c, nbc_ireduce_scatter.c and the rounds of nbc.c.
 */
#include "algorithms/libnbc.h"
#include "core/segment.h"
#include "core/tree.h"

#include <stdlib.h>

enum step_kind { SEND, RECEIVE, REDUCE, COPY };

struct step {
    enum step_kind kind;
    const void *from;
    void *to;
    int count, peer;
    bool last; /* last step of its round */
};

enum { MOST_TAG = 32767 }; /* the minimum of MPI_TAG_UB that MPI guarantees */

/* ---- making a schedule ---- */

static int add(struct schedule *s, struct step step) {
    if (s->n == s->room) {
        int room = s->room == 0 ? 16 : 2 * s->room;
        struct step *steps = realloc(s->steps, (size_t)room * sizeof *steps);
        if (steps == NULL)
            return MPI_ERR_NO_MEM;
        s->steps = steps;
        s->room = room;
    }
    s->steps[s->n++] = step;
    return MPI_SUCCESS;
}

static int add_send(struct schedule *s, const void *from, int count, int to, bool last) {
    return add(s, (struct step){.kind = SEND, .from = from, .count = count, .peer = to, .last = last});
}

static int add_receive(struct schedule *s, void *to, int count, int from, bool last) {
    return add(s, (struct step){.kind = RECEIVE, .to = to, .count = count, .peer = from, .last = last});
}

/* to = from (op) to */
static int add_reduce(struct schedule *s, const void *from, void *to, int count) {
    return add(s, (struct step){.kind = REDUCE, .from = from, .to = to, .count = count, .last = true});
}

static int add_copy(struct schedule *s, const void *from, void *to, int count) {
    return add(s, (struct step){.kind = COPY, .from = from, .to = to, .count = count, .last = true});
}

/* Ends the round with the latest step. */
static void end_round(struct schedule *s) {
    if (s->n > 0)
        s->steps[s->n - 1].last = true;
}

/* ---- running all ---- */

int coll_schedules_init(struct schedules *all, struct call *call, int n) {
    *all = (struct schedules){.call = call, .n = n};
    if (n > MOST_TAG / COLL_OPS - 1)
        return COLL_USE_DEFAULT;
    TRY(coll_extent(call->type, &all->extent));
    all->list = calloc((size_t)n, sizeof *all->list);
    return all->list == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void coll_schedules_free(struct schedules *all) {
    coll_cancel(all->active, all->requests);
    for (int i = 0; i < all->n && all->list != NULL; i++) {
        free(all->list[i].steps);
        free(all->list[i].memory[0]);
        free(all->list[i].memory[1]);
    }
    free(all->list);
    free(all->requests);
    free(all->owners);
}

static int room_for_request(struct schedules *all) {
    if (all->active < all->room)
        return MPI_SUCCESS;
    int room = all->room == 0 ? 64 : 2 * all->room;
    MPI_Request *requests = realloc(all->requests, (size_t)room * sizeof *requests);
    if (requests != NULL)
        all->requests = requests;
    int *owners = realloc(all->owners, (size_t)room * sizeof *owners);
    if (owners != NULL)
        all->owners = owners;
    if (requests == NULL || owners == NULL)
        return MPI_ERR_NO_MEM;
    all->room = room;
    return MPI_SUCCESS;
}

/* Each schedule has a tag of its own, so messages of different schedules never match. */
static int start_message(struct schedules *all, int i, const struct step *step) {
    const struct call *call = all->call;
    int tag = (int)call->kind + COLL_OPS * (i + 1);
    TRY(room_for_request(all));
    MPI_Request *request = &all->requests[all->active];
    TRY(step->kind == SEND ? PMPI_Isend(step->from, step->count, call->type, step->peer, tag, call->comm, request)
                           : PMPI_Irecv(step->to, step->count, call->type, step->peer, tag, call->comm, request));
    all->owners[all->active++] = i;
    all->list[i].pending++;
    return MPI_SUCCESS;
}

static int take_step(struct schedules *all, int i, const struct step *step) {
    const struct call *call = all->call;
    if (step->kind == REDUCE)
        return coll_reduce_local(step->from, step->to, step->count, call->type, call->op);
    if (step->kind == COPY)
        return coll_copy(step->from, step->to, step->count, call->type);
    return start_message(all, i, step);
}

/* Starts rounds until one has messages; rounds without messages complete at once. */
static int start_rounds(struct schedules *all, int i) {
    struct schedule *s = &all->list[i];
    while (s->at < s->n && s->pending == 0) {
        const struct step *step;
        do {
            step = &s->steps[s->at++];
            TRY(take_step(all, i, step));
        } while (!step->last && s->at < s->n);
    }
    return MPI_SUCCESS;
}

int coll_schedules_run(struct schedules *all) {
    for (int i = 0; i < all->n; i++)
        TRY(start_rounds(all, i));
    while (all->active > 0) {
        int done;
        TRY(PMPI_Waitany(all->active, all->requests, &done, MPI_STATUS_IGNORE));
        int owner = all->owners[done];
        all->requests[done] = all->requests[--all->active];
        all->owners[done] = all->owners[all->active];
        if (--all->list[owner].pending == 0)
            TRY(start_rounds(all, owner));
    }
    return MPI_SUCCESS;
}

/* ---- contents of a schedule; count elements, from send to recv ---- */

struct part {
    const char *send;
    char *recv;
    int count;
};

/* Allocates a temporary vector of a schedule. */
static int own_vector(struct schedules *all, int i, int which, int count, char **vector) {
    return coll_buffer(&all->extent, (size_t)count, &all->list[i].memory[which], vector);
}

static int floor_mod(int a, int n) {
    return (a % n + n) % n;
}

static int first_of(int count, int parts, int i) {
    int more = count % parts;
    return i * (count / parts) + (i < more ? i : more);
}

/* allred_sched_ring(): p - 1 rounds of reduce-scatter, then p - 1 rounds of allgather. */
static int ring(struct schedules *all, int i, const struct part *part) {
    struct schedule *s = &all->list[i];
    int r = all->call->rank, p = all->call->size;
    for (int round = 0; round < 2 * p - 2; round++) {
        int out = floor_mod(r + 1 - round, p), in = floor_mod(r - round, p);
        int to = first_of(part->count, p, out), from = first_of(part->count, p, in);
        int in_count = first_of(part->count, p, in + 1) - from;
        const char *data = round == 0 ? part->send : part->recv;
        TRY(add_send(s, coll_at(data, to, all->extent.extent), first_of(part->count, p, out + 1) - to, (r + 1) % p,
                     false));
        TRY(add_receive(s, coll_at(part->recv, from, all->extent.extent), in_count, (r + p - 1) % p, true));
        if (round < p - 1)
            TRY(add_reduce(s, coll_at(part->send, from, all->extent.extent),
                           coll_at(part->recv, from, all->extent.extent), in_count));
    }
    return MPI_SUCCESS;
}

/* Returns the rank of virtual rank r; virtual ranks do not count the ranks that sit out. */
static int real_rank(int r, int extra) {
    return r < extra ? 2 * r + 1 : r + extra;
}

/* allred_sched_recursivedoubling() */
static int recursive_doubling(struct schedules *all, int i, const struct part *part) {
    struct schedule *s = &all->list[i];
    int r = all->call->rank, p = all->call->size, power = coll_floor_power_of_two(p), extra = p - power;
    int n = part->count, me = r < 2 * extra ? (r % 2 == 0 ? -1 : r / 2) : r - extra;
    char *mine, *theirs = part->recv;
    TRY(own_vector(all, i, 0, n, &mine));
    TRY(add_copy(s, part->send, mine, n));
    if (me < 0) {
        TRY(add_send(s, mine, n, r + 1, true));
        return add_receive(s, part->recv, n, r + 1, true);
    }
    if (r < 2 * extra) {
        TRY(add_receive(s, theirs, n, r - 1, true));
        TRY(add_reduce(s, theirs, mine, n));
    }
    for (int distance = 1; distance < power; distance *= 2) {
        int peer = real_rank(me ^ distance, extra);
        TRY(add_send(s, mine, n, peer, false));
        TRY(add_receive(s, theirs, n, peer, true));
        TRY(add_reduce(s, theirs, mine, n));
    }
    if (r < 2 * extra)
        TRY(add_send(s, mine, n, r - 1, false));
    return add_copy(s, mine, part->recv, n);
}

/* Returns rank r with the root and rank 0 exchanged. */
static int swapped(int r, int root) {
    return r == 0 ? root : r == root ? 0 : r;
}

/* In round k the ranks below 2^k send to the rank 2^k above them. */
static int binomial_bcast(struct schedules *all, int i, const struct part *part, int root) {
    struct schedule *s = &all->list[i];
    int p = all->call->size, r = swapped(all->call->rank, root);
    for (int bit = 1; bit < p; bit *= 2)
        if (r >= bit && r < 2 * bit)
            TRY(add_receive(s, part->recv, part->count, swapped(r - bit, root), true));
    for (int bit = 1; bit < p; bit *= 2)
        if (r < bit && r + bit < p)
            TRY(add_send(s, part->recv, part->count, swapped(r + bit, root), false));
    return MPI_SUCCESS;
}

/*
 * The reduction to rank 0 of allred_sched_diss() and nbc_ireduce_scatter(). *result: the vector with the result on rank
 * 0. Two vectors alternate: the newest partial result is reduced into the data received, which then become the newest.
 */
static int binomial_reduce(struct schedules *all, int i, const struct part *part, char **result) {
    struct schedule *s = &all->list[i];
    int r = all->call->rank, p = all->call->size;
    char *in, *sum;
    const char *newest = part->send;
    TRY(own_vector(all, i, 0, part->count, &in));
    TRY(own_vector(all, i, 1, part->count, &sum));
    for (int bit = 1; bit < p; bit *= 2) {
        if (r % (2 * bit) != 0) {
            TRY(add_send(s, newest, part->count, r - bit, false));
            break;
        }
        if (r + bit >= p)
            continue;
        TRY(add_receive(s, in, part->count, r + bit, true));
        TRY(add_reduce(s, newest, in, part->count));
        char *swap = in;
        in = sum;
        sum = swap;
        newest = sum;
    }
    end_round(s);
    *result = sum;
    return MPI_SUCCESS;
}

/* allred_sched_diss() */
static int binomial(struct schedules *all, int i, const struct part *part) {
    char *result;
    TRY(binomial_reduce(all, i, part, &result));
    if (all->call->rank == 0)
        TRY(add_copy(&all->list[i], result, part->recv, part->count));
    return binomial_bcast(all, i, part, 0);
}

/* bcast_sched_chain(): fragments of 16 KiB, as when the chain is forced. */
static int chain(struct schedules *all, int i, const struct part *part) {
    struct schedule *s = &all->list[i];
    int p = all->call->size, root = all->call->root, r = swapped(all->call->rank, root);
    size_t bytes = (size_t)part->count * (size_t)all->extent.size;
    int fragments = (int)((bytes + 16383) / 16384), each = part->count / (fragments > 0 ? fragments : 1);
    for (int f = 0; f < fragments; f++) {
        void *at = coll_at(part->recv, (MPI_Aint)f * each, all->extent.extent);
        int count = f == fragments - 1 ? part->count - f * each : each;
        if (r != 0)
            TRY(add_receive(s, at, count, swapped(r - 1, root), true));
        if (r != p - 1)
            TRY(add_send(s, at, count, swapped(r + 1, root), r == 0));
    }
    return MPI_SUCCESS;
}

static int binomial_from_root(struct schedules *all, int i, const struct part *part) {
    return binomial_bcast(all, i, part, all->call->root);
}

/* nbc_ireduce_scatter(): a binomial reduction to rank 0, which sends each rank its block. */
int coll_schedule_reduce_scatter(struct schedules *all, int i, const void *vector, void *recv, const int *counts) {
    struct schedule *s = &all->list[i];
    struct part part = {.send = vector};
    MPI_Aint at = 0;
    char *result;
    for (int r = 0; r < all->call->size; r++)
        part.count += counts[r];
    TRY(binomial_reduce(all, i, &part, &result));
    if (all->call->rank != 0)
        return add_receive(s, recv, counts[all->call->rank], 0, true);
    for (int r = 1; r < all->call->size; r++) {
        at += counts[r - 1];
        TRY(add_send(s, coll_at(result, at, all->extent.extent), counts[r], r, false));
    }
    return add_copy(s, result, recv, counts[0]);
}

/* ---- one schedule for each segment of a call ---- */

typedef int make_function(struct schedules *all, int i, const struct part *part);

static int run_segments(struct schedules *all, make_function *make, const char *send, int each) {
    const struct call *call = all->call;
    for (int i = 0; i < all->n; i++) {
        int first = i * each, left = call->count - first;
        struct part part = {.recv = coll_at(call->recv, first, all->extent.extent), .count = left < each ? left : each};
        part.send = send == NULL ? NULL : coll_at(send, first, all->extent.extent);
        TRY(make(all, i, &part));
    }
    return coll_schedules_run(all);
}

static int in_segments(struct call *call, make_function *make, const char *send) {
    struct schedules all;
    int size;
    TRY(PMPI_Type_size(call->type, &size));
    int each = coll_chunk(call, call->count, size);
    int rc = coll_schedules_init(&all, call, (call->count - 1) / each + 1);
    if (rc == MPI_SUCCESS)
        rc = run_segments(&all, make, send, each);
    coll_schedules_free(&all);
    return rc;
}

/* With MPI_IN_PLACE, the rank's own data are copied first. */
static int allreduce(struct call *call, make_function *make) {
    struct extent extent;
    char *raw = NULL, *copy = NULL;
    if (!coll_commutes(call))
        return COLL_USE_DEFAULT;
    TRY(coll_extent(call->type, &extent));
    if (call->send != MPI_IN_PLACE)
        return in_segments(call, make, call->send);
    TRY(coll_buffer(&extent, (size_t)call->count, &raw, &copy));
    int rc = coll_copy(call->recv, copy, call->count, call->type);
    if (rc == MPI_SUCCESS)
        rc = in_segments(call, make, copy);
    free(raw);
    return rc;
}

int libnbc_allreduce_ring(struct call *call) {
    return allreduce(call, ring);
}

int libnbc_allreduce_recursive_doubling(struct call *call) {
    return allreduce(call, recursive_doubling);
}

int libnbc_allreduce_binomial(struct call *call) {
    return allreduce(call, binomial);
}

int libnbc_bcast_binomial(struct call *call) {
    return in_segments(call, binomial_from_root, NULL);
}

int libnbc_bcast_chain(struct call *call) {
    return in_segments(call, chain, NULL);
}
