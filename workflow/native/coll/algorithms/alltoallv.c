/*
 * [bijlani2021]: alltoallv by way of leaders. Ranks of one unit (a node or a group) hand their data to the unit's
 * leader, the leaders exchange, and each leader hands out what came for its unit. Data travel as packed bytes, in the
 * order of positions: the ranks sorted by unit.
 */
#include "algorithms.h"
#include "algorithms/exchange.h"
#include "core/counters.h"
#include "core/message.h"
#include "core/placement.h"
#include "core/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a leader knows of its unit ---- */

struct leader {
    const struct exchange *e;
    int n;                      /* ranks in the unit */
    int *send, *recv;           /* bytes, by member and position */
    int *part_send, *part_recv; /* bytes, by member */
    struct flow out, in;        /* with the other leaders, by position of their units in e->inner */
    size_t sent, received;
};

static const int *row(const struct leader *l, const int *table, int member) {
    return table + (size_t)member * (size_t)l->e->size;
}

static size_t sum(const int counts[], int first, int last) {
    size_t total = 0;
    for (int i = first; i < last; i++)
        total += (size_t)counts[i];
    return total;
}

/* The unit that the i-th block of a leader's exchange is for. */
static int unit_at(const struct exchange *e, int i) {
    return e->inner != NULL ? e->inner->order[i] : i;
}

static void free_leader(struct leader *l) {
    free(l->send);
    free(l->recv);
    free(l->part_send);
    free(l->part_recv);
    coll_flow_free(&l->out);
    coll_flow_free(&l->in);
}

static int allocate_tables(struct leader *l, bool leads) {
    size_t table = leads ? (size_t)l->n * (size_t)l->e->size : 1, members = (size_t)l->n;
    l->send = malloc(table * sizeof *l->send);
    l->recv = malloc(table * sizeof *l->recv);
    l->part_send = calloc(members, sizeof *l->part_send);
    l->part_recv = calloc(members, sizeof *l->part_recv);
    return l->send && l->recv && l->part_send && l->part_recv ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int collect_counts(struct leader *l, const struct flow *send, const struct flow *recv) {
    const struct exchange *e = l->e;
    TRY(PMPI_Comm_size(e->part, &l->n));
    TRY(allocate_tables(l, e->leaders != MPI_COMM_NULL));
    TRY(PMPI_Gather(send->counts, e->size, MPI_INT, l->send, e->size, MPI_INT, 0, e->part));
    TRY(PMPI_Gather(recv->counts, e->size, MPI_INT, l->recv, e->size, MPI_INT, 0, e->part));
    for (int i = 0; i < l->n && e->leaders != MPI_COMM_NULL; i++) {
        size_t sent = sum(row(l, l->send, i), 0, e->size), received = sum(row(l, l->recv, i), 0, e->size);
        l->part_send[i] = (int)sent;
        l->part_recv[i] = (int)received;
        l->sent += sent;
        l->received += received;
    }
    return MPI_SUCCESS;
}

/* All ranks use the default if one leader would need too much. */
static int agree(const struct exchange *e, unsigned long long need, const struct call *call) {
    unsigned long long most;
    TRY(PMPI_Allreduce(&need, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, e->comm));
    return coll_above_limit(call, (size_t)most) ? COLL_USE_DEFAULT : MPI_SUCCESS;
}

/* ---- gather at leaders, exchange, scatter ---- */

static bool allocate_flows(struct leader *l) {
    size_t units = (size_t)l->e->units;
    if (l->sent > INT_MAX || l->received > INT_MAX)
        return false;
    l->out = (struct flow){malloc(l->sent + 1), malloc(units * sizeof(int)), l->sent};
    l->in = (struct flow){malloc(l->received + 1), malloc(units * sizeof(int)), l->received};
    return l->out.data && l->out.counts && l->in.data && l->in.counts;
}

static int *displacements(const int counts[], int n) {
    int *displs = malloc((size_t)n * sizeof *displs);
    for (int i = 0, at = 0; i < n && displs != NULL; at += counts[i++])
        displs[i] = at;
    return displs;
}

static int gather_part(const struct leader *l, const struct flow *send, char *all) {
    int *displs = displacements(l->part_send, l->n);
    int rc = displs == NULL ? MPI_ERR_NO_MEM
                            : PMPI_Gatherv(send->data, (int)send->bytes, MPI_BYTE, all, l->part_send, displs, MPI_BYTE,
                                           0, l->e->part);
    free(displs);
    return rc;
}

static int scatter_part(const struct leader *l, const char *all, struct flow *recv) {
    int *displs = displacements(l->part_recv, l->n);
    int rc = displs == NULL ? MPI_ERR_NO_MEM
                            : PMPI_Scatterv(all, l->part_recv, displs, MPI_BYTE, recv->data, (int)recv->bytes, MPI_BYTE,
                                            0, l->e->part);
    free(displs);
    return rc;
}

/* Of each unit: what each member sends to it. */
static void sort_by_unit(struct leader *l, const char *all) {
    const struct exchange *e = l->e;
    char *to = l->out.data;
    for (int u = 0; u < e->units; u++) {
        int unit = unit_at(e, u);
        const char *from = all, *start = to;
        for (int i = 0; i < l->n; i++) {
            size_t before = sum(row(l, l->send, i), 0, e->first[unit]);
            size_t bytes = sum(row(l, l->send, i), e->first[unit], e->first[unit + 1]);
            memcpy(to, from + before, bytes);
            to += bytes;
            from += l->part_send[i];
        }
        l->out.counts[u] = (int)(to - start);
    }
}

static void count_incoming(struct leader *l) {
    for (int u = 0; u < l->e->units; u++) {
        int unit = unit_at(l->e, u);
        size_t bytes = 0;
        for (int i = 0; i < l->n; i++)
            bytes += sum(row(l, l->recv, i), l->e->first[unit], l->e->first[unit + 1]);
        l->in.counts[u] = (int)bytes;
    }
}

/* A block that came holds, for each rank of its unit, what that rank sends to each member here. */
static int sort_by_member(const struct leader *l, char *all) {
    const struct exchange *e = l->e;
    const char *from = l->in.data;
    char **to = malloc((size_t)l->n * (size_t)e->size * sizeof *to);
    if (to == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < l->n; i++)
        for (int p = 0; p < e->size; all += row(l, l->recv, i)[p++])
            to[(size_t)i * (size_t)e->size + (size_t)p] = all;
    for (int u = 0; u < e->units; u++) {
        int unit = unit_at(e, u);
        for (int p = e->first[unit]; p < e->first[unit + 1]; p++)
            for (int i = 0; i < l->n; from += row(l, l->recv, i++)[p])
                memcpy(to[(size_t)i * (size_t)e->size + (size_t)p], from, (size_t)row(l, l->recv, i)[p]);
    }
    free(to);
    return MPI_SUCCESS;
}

static int through_leaders(const struct exchange *e, struct call *call, bool fits, struct flow *send,
                           struct flow *recv);

static int plain_exchange(const struct leader *l) {
    int *out = displacements(l->out.counts, l->e->units), *in = displacements(l->in.counts, l->e->units);
    int rc = out == NULL || in == NULL ? MPI_ERR_NO_MEM
                                       : PMPI_Alltoallv(l->out.data, l->out.counts, out, MPI_BYTE, l->in.data,
                                                        l->in.counts, in, MPI_BYTE, l->e->leaders);
    free(out);
    free(in);
    return rc;
}

/* The same with the blocks in the order of e->inner, which is not that of the leaders' ranks. */
static int plain_inner_exchange(const struct leader *l) {
    const struct exchange *inner = l->e->inner;
    int n = inner->size;
    int *tables = malloc(4 * (size_t)n * sizeof *tables);
    int *out = displacements(l->out.counts, n), *in = displacements(l->in.counts, n);
    int rc = MPI_ERR_NO_MEM;
    if (tables != NULL && out != NULL && in != NULL) {
        for (int p = 0; p < n; p++) {
            int rank = inner->order[p];
            tables[rank] = l->out.counts[p];
            tables[n + rank] = out[p];
            tables[2 * n + rank] = l->in.counts[p];
            tables[3 * n + rank] = in[p];
        }
        rc = PMPI_Alltoallv(l->out.data, tables, tables + n, MPI_BYTE, l->in.data, tables + 2 * n, tables + 3 * n,
                            MPI_BYTE, inner->comm);
    }
    free(tables);
    free(out);
    free(in);
    return rc;
}

static int exchange_among_leaders(struct leader *l, struct call *call) {
    if (l->e->inner == NULL)
        return plain_exchange(l);
    int rc = through_leaders(l->e->inner, call, true, &l->out, &l->in);
    return rc == COLL_USE_DEFAULT ? plain_inner_exchange(l) : rc;
}

static int work_of_leader(struct leader *l, struct call *call, const struct flow *send, struct flow *recv, char *all) {
    TRY(gather_part(l, send, all));
    sort_by_unit(l, all);
    count_incoming(l);
    TRY(exchange_among_leaders(l, call));
    TRY(sort_by_member(l, all));
    return scatter_part(l, all, recv);
}

static int work(struct leader *l, struct call *call, bool fits, const struct flow *send, struct flow *recv) {
    bool leads = l->e->leaders != MPI_COMM_NULL;
    char *all = NULL; /* first the data of the members, later those for them */
    unsigned long long need = leads ? 2ull * l->sent + 2ull * l->received : 0;
    if (leads && need <= coll_memory_limit()) {
        all = malloc((l->sent > l->received ? l->sent : l->received) + 1);
        fits = fits && all != NULL && allocate_flows(l);
    }
    int rc = agree(l->e, fits ? need : ULLONG_MAX, call);
    if (rc == MPI_SUCCESS && leads) {
        rc = work_of_leader(l, call, send, recv, all);
    } else if (rc == MPI_SUCCESS) {
        rc = gather_part(l, send, NULL);
        if (rc == MPI_SUCCESS)
            rc = scatter_part(l, NULL, recv);
    }
    free(all);
    return rc;
}

static int through_leaders(const struct exchange *e, struct call *call, bool fits, struct flow *send,
                           struct flow *recv) {
    struct leader leader = {.e = e};
    int rc = collect_counts(&leader, send, recv);
    if (rc == MPI_SUCCESS)
        rc = work(&leader, call, fits, send, recv);
    free_leader(&leader);
    return rc;
}

/* ---- the sequence of gatherv: for each rank in turn, its data are gathered at its leader, who passes them on ---- */

struct sequence {
    struct leader *l;
    struct call *call;
    char *from_part, *from_leaders; /* what the members here send to one rank; all that it receives */
    int *counts, *displs;
};

/* What each unit sends to a member of this one. */
static void count_units(struct sequence *s, int member) {
    const struct exchange *e = s->l->e;
    for (int u = 0, at = 0; u < e->units; u++) {
        s->counts[u] = (int)sum(row(s->l, s->l->recv, member), e->first[u], e->first[u + 1]);
        s->displs[u] = at;
        at += s->counts[u];
    }
}

static int gather_in_part(struct sequence *s, const struct flow *send, int position, size_t at, int *bytes) {
    const struct exchange *e = s->l->e;
    int *counts = NULL, *displs = NULL;
    *bytes = 0;
    if (e->leaders != MPI_COMM_NULL) {
        counts = s->counts;
        displs = s->displs;
        for (int i = 0; i < s->l->n; i++) {
            counts[i] = row(s->l, s->l->send, i)[position];
            displs[i] = *bytes;
            *bytes += counts[i];
        }
    }
    return PMPI_Gatherv(send->data + at, send->counts[position], MPI_BYTE, s->from_part, counts, displs, MPI_BYTE, 0,
                        e->part);
}

static int gather_for(struct sequence *s, const struct flow *send, struct flow *recv, int position, int unit,
                      size_t at) {
    const struct exchange *e = s->l->e;
    int bytes, member = position - e->first[unit], me;
    TRY(gather_in_part(s, send, position, at, &bytes));
    TRY(PMPI_Comm_rank(e->part, &me));
    if (e->leaders != MPI_COMM_NULL) {
        if (unit == e->unit)
            count_units(s, member);
        char *into = member == 0 ? recv->data : s->from_leaders;
        TRY(PMPI_Gatherv(s->from_part, bytes, MPI_BYTE, into, s->counts, s->displs, MPI_BYTE, unit, e->leaders));
        if (unit == e->unit && member > 0)
            TRY(PMPI_Send(into, s->l->part_recv[member], MPI_BYTE, member, COLL_ALLTOALLV, e->part));
    } else if (unit == e->unit && member == me) {
        TRY(PMPI_Recv(recv->data, (int)recv->bytes, MPI_BYTE, 0, COLL_ALLTOALLV, e->part, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int run_sequence(struct sequence *s, const struct flow *send, struct flow *recv) {
    const struct exchange *e = s->l->e;
    size_t at = 0;
    for (int unit = 0; unit < e->units; unit++) {
        for (int position = e->first[unit]; position < e->first[unit + 1]; position++) {
            TRY(gather_for(s, send, recv, position, unit, at));
            at += (size_t)send->counts[position];
        }
    }
    return MPI_SUCCESS;
}

/* The most that a leader holds at a time: for one rank, from the members here and from all. */
static size_t largest_step(const struct leader *l, size_t *from_part, size_t *from_leaders) {
    *from_part = *from_leaders = 0;
    for (int p = 0; p < l->e->size; p++) {
        size_t bytes = 0;
        for (int i = 0; i < l->n; i++)
            bytes += (size_t)row(l, l->send, i)[p];
        *from_part = bytes > *from_part ? bytes : *from_part;
    }
    for (int i = 0; i < l->n; i++) {
        size_t bytes = sum(row(l, l->recv, i), 0, l->e->size);
        *from_leaders = bytes > *from_leaders ? bytes : *from_leaders;
    }
    return *from_part + *from_leaders;
}

static bool allocate_sequence(struct sequence *s, size_t from_part, size_t from_leaders) {
    size_t most = (size_t)(s->l->e->units > s->l->n ? s->l->e->units : s->l->n);
    s->from_part = malloc(from_part + 1);
    s->from_leaders = malloc(from_leaders + 1);
    s->counts = malloc(most * sizeof *s->counts);
    s->displs = malloc(most * sizeof *s->displs);
    return s->from_part && s->from_leaders && s->counts && s->displs && from_part <= INT_MAX;
}

static int in_sequence(const struct exchange *e, struct call *call, bool fits, struct flow *send, struct flow *recv) {
    struct leader leader = {.e = e};
    struct sequence s = {.l = &leader, .call = call};
    size_t need = 0, from_part, from_leaders;
    int rc = collect_counts(&leader, send, recv);
    if (rc == MPI_SUCCESS && e->leaders != MPI_COMM_NULL) {
        need = largest_step(&leader, &from_part, &from_leaders);
        fits = fits && need <= coll_memory_limit() && allocate_sequence(&s, from_part, from_leaders);
    }
    if (rc == MPI_SUCCESS)
        rc = agree(e, fits ? need : ULLONG_MAX, call);
    if (rc == MPI_SUCCESS)
        rc = run_sequence(&s, send, recv);
    free(s.from_part);
    free(s.from_leaders);
    free(s.counts);
    free(s.displs);
    free_leader(&leader);
    return rc;
}

/* ---- the calls ---- */

typedef int exchange_function(const struct exchange *, struct call *, bool, struct flow *, struct flow *);

static int run_packed(struct call *call, const struct exchange *e, exchange_function *exchange, struct flow *send,
                      struct flow *recv) {
    int send_size, recv_size;
    TRY(PMPI_Type_size(call->type, &send_size));
    TRY(PMPI_Type_size(call->recv_type, &recv_size));
    bool fits = coll_flow_make(send, e, call->send_counts, send_size);
    fits = coll_flow_make(recv, e, call->recv_counts, recv_size) && fits;
    if (send->counts == NULL || recv->counts == NULL)
        return MPI_ERR_NO_MEM;
    if (fits)
        TRY(coll_flow_pack(call, e, send));
    TRY(exchange(e, call, fits, send, recv));
    return coll_flow_unpack(call, e, recv);
}

static int alltoallv(struct call *call, enum exchange_kind kind, exchange_function *exchange) {
    struct exchange *e;
    struct flow send = {NULL, NULL, 0}, recv = {NULL, NULL, 0};
    TRY(coll_exchange_get(call->cache, kind, &e));
    int rc = run_packed(call, e, exchange, &send, &recv);
    coll_flow_free(&send);
    coll_flow_free(&recv);
    return rc;
}

int coll_alltoallv_node(struct call *call) {
    return alltoallv(call, BY_NODE, through_leaders);
}

int coll_alltoallv_group(struct call *call) {
    return alltoallv(call, BY_GROUP, through_leaders);
}

int coll_alltoallv_node_group(struct call *call) {
    return alltoallv(call, BY_NODE_AND_GROUP, through_leaders);
}

int coll_alltoallv_node_gatherv(struct call *call) {
    return alltoallv(call, BY_NODE, in_sequence);
}

int coll_alltoallv_reorder(struct call *call) {
    struct exchange *e;
    TRY(coll_exchange_get(call->cache, REORDERED, &e));
    int n = e->size;
    int *tables = malloc(4 * (size_t)n * sizeof *tables);
    if (tables == NULL)
        return MPI_ERR_NO_MEM;
    for (int p = 0; p < n; p++) {
        int rank = e->order[p];
        tables[p] = call->send_counts[rank];
        tables[n + p] = call->send_displs[rank];
        tables[2 * n + p] = call->recv_counts[rank];
        tables[3 * n + p] = call->recv_displs[rank];
    }
    const void *send = call->send == call->recv ? MPI_IN_PLACE : call->send;
    int rc = PMPI_Alltoallv(send, tables, tables + n, call->type, call->recv, tables + 2 * n, tables + 3 * n,
                            call->recv_type, e->part);
    free(tables);
    return rc;
}

/* The rule of [bijlani2021]; the ranks agree on the number of elements, the most that one sends. */
int coll_alltoallv_seed001(struct call *call) {
    long mine = 0, most;
    TRY(coll_placement(call->cache));
    if (call->cache->placement.ppn < 4)
        return COLL_USE_DEFAULT;
    for (int i = 0; i < call->size; i++)
        mine += call->send_counts[i];
    TRY(PMPI_Allreduce(&mine, &most, 1, MPI_LONG, MPI_MAX, call->comm));
    return most < 2000000 ? coll_alltoallv_node(call) : COLL_USE_DEFAULT;
}
