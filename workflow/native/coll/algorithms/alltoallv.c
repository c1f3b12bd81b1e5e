/*
 * [bijlani2021]: alltoallv through leaders. The ranks of a unit (a node or a group) send their data to the unit's
 * leader, the leaders exchange them, and each leader distributes what its unit receives. The data are packed bytes in
 * the order of positions, that is, of the ranks sorted by unit.
 */
#include "algorithms.h"
#include "algorithms/leader.h"
#include "core/placement.h"
#include "core/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- gather at leaders, exchange, scatter ---- */

/* Returns the destination unit of the i-th block of a leader's exchange. */
static int unit_at(const struct exchange *e, int i) {
    return e->inner != NULL ? e->inner->order[i] : i;
}

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

/* Sorts the members' data by destination unit, then by member. */
static void sort_by_unit(struct leader *l, const char *all) {
    const struct exchange *e = l->e;
    char *to = l->out.data;
    for (int u = 0; u < e->units; u++) {
        int unit = unit_at(e, u);
        const char *from = all, *start = to;
        for (int i = 0; i < l->n; i++) {
            size_t before = sum_bytes(leader_row(l, l->send, i), 0, e->first[unit]);
            size_t bytes = sum_bytes(leader_row(l, l->send, i), e->first[unit], e->first[unit + 1]);
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
            bytes += sum_bytes(leader_row(l, l->recv, i), l->e->first[unit], l->e->first[unit + 1]);
        l->in.counts[u] = (int)bytes;
    }
}

/* Sorts received blocks by member. A block holds, for each rank of its unit, that rank's data for each member here. */
static int sort_by_member(const struct leader *l, char *all) {
    const struct exchange *e = l->e;
    const char *from = l->in.data;
    char **to = malloc((size_t)l->n * (size_t)e->size * sizeof *to);
    if (to == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < l->n; i++)
        for (int p = 0; p < e->size; all += leader_row(l, l->recv, i)[p++])
            to[(size_t)i * (size_t)e->size + (size_t)p] = all;
    for (int u = 0; u < e->units; u++) {
        int unit = unit_at(e, u);
        for (int p = e->first[unit]; p < e->first[unit + 1]; p++)
            for (int i = 0; i < l->n; from += leader_row(l, l->recv, i++)[p])
                memcpy(to[(size_t)i * (size_t)e->size + (size_t)p], from, (size_t)leader_row(l, l->recv, i)[p]);
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

/* Like plain_exchange(), with the blocks in the order of e->inner, which differs from that of the leaders' ranks. */
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
    char *all = NULL; /* first the data from the members, later those for them */
    unsigned long long need = leads ? 2ull * l->sent + 2ull * l->received : 0;
    if (leads && need <= coll_memory_limit()) {
        all = malloc((l->sent > l->received ? l->sent : l->received) + 1);
        fits = fits && all != NULL && allocate_flows(l);
    }
    int rc = coll_leaders_agree(l->e, fits ? need : ULLONG_MAX, call);
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
    int rc = coll_leader_counts(&leader, send, recv);
    if (rc == MPI_SUCCESS)
        rc = work(&leader, call, fits, send, recv);
    coll_leader_free(&leader);
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
    return alltoallv(call, BY_NODE, coll_exchange_in_sequence);
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
    const void *send = call->in_place ? MPI_IN_PLACE : call->send;
    int rc = PMPI_Alltoallv(send, tables, tables + n, call->type, call->recv, tables + 2 * n, tables + 3 * n,
                            call->recv_type, e->part);
    free(tables);
    return rc;
}

/* The rule of [bijlani2021]; the ranks agree on the largest number of elements that any of them sends. */
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
