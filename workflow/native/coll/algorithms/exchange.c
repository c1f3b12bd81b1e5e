#include "algorithms/exchange.h"
#include "core/counters.h"
#include "core/message.h"
#include "core/placement.h"

#include <limits.h>
#include <stdlib.h>

struct place {
    int major, minor, rank;
};

static int compare_places(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void free_exchange(struct exchange *e) {
    if (e == NULL)
        return;
    free_exchange(e->inner);
    if (e->part != MPI_COMM_NULL)
        (void)PMPI_Comm_free(&e->part);
    if (e->leaders != MPI_COMM_NULL)
        (void)PMPI_Comm_free(&e->leaders);
    free(e->order);
    free(e->first);
    free(e);
}

static void free_exchanges(void *list) {
    for (struct exchange *e = list; e != NULL;) {
        struct exchange *next = e->next;
        free_exchange(e);
        e = next;
    }
}

/* A unit's id is its lowest rank, so units in the order of ids have leaders in the order of ranks. */
static int sort_ranks(struct exchange *e, struct place mine, struct place *places) {
    TRY(PMPI_Allgather(&mine, 3, MPI_INT, places, 3, MPI_INT, e->comm));
    qsort(places, (size_t)e->size, sizeof *places, compare_places);
    for (int p = 0; p < e->size; p++) {
        e->order[p] = places[p].rank;
        if (p == 0 || places[p].major != places[p - 1].major)
            e->first[e->units++] = p;
        if (places[p].rank == mine.rank)
            e->unit = e->units - 1;
    }
    e->first[e->units] = e->size;
    return MPI_SUCCESS;
}

static int make_order(struct exchange *e, struct place mine) {
    struct place *places = malloc((size_t)e->size * sizeof *places);
    e->order = malloc((size_t)e->size * sizeof *e->order);
    e->first = malloc(((size_t)e->size + 1) * sizeof *e->first);
    int rc = MPI_ERR_NO_MEM;
    if (places != NULL && e->order != NULL && e->first != NULL)
        rc = sort_ranks(e, mine, places);
    free(places);
    return rc;
}

static int build(struct exchange *e, int unit, int group) {
    struct place mine = {unit, 0, 0};
    int leader;
    TRY(PMPI_Comm_rank(e->comm, &mine.rank));
    TRY(PMPI_Comm_size(e->comm, &e->size));
    TRY(PMPI_Comm_split(e->comm, unit, mine.rank, &e->part));
    TRY(PMPI_Allreduce(&mine.rank, &mine.major, 1, MPI_INT, MPI_MIN, e->part));
    leader = mine.major == mine.rank;
    TRY(make_order(e, mine));
    TRY(PMPI_Comm_split(e->comm, leader ? 0 : MPI_UNDEFINED, mine.rank, &e->leaders));
    if (e->kind != BY_NODE_AND_GROUP || !leader)
        return MPI_SUCCESS;
    e->inner = calloc(1, sizeof *e->inner);
    if (e->inner == NULL)
        return MPI_ERR_NO_MEM;
    *e->inner =
        (struct exchange){.kind = BY_GROUP, .comm = e->leaders, .part = MPI_COMM_NULL, .leaders = MPI_COMM_NULL};
    return build(e->inner, group, group);
}

static int build_reordered(struct exchange *e, const struct placement *p) {
    struct place mine = {p->group, p->node, 0};
    TRY(PMPI_Comm_rank(e->comm, &mine.rank));
    TRY(PMPI_Comm_size(e->comm, &e->size));
    TRY(make_order(e, mine));
    for (int position = 0; position < e->size; position++)
        if (e->order[position] == mine.rank)
            return PMPI_Comm_split(e->comm, 0, position, &e->part);
    return MPI_ERR_INTERN;
}

int coll_exchange_get(struct cache *cache, enum exchange_kind kind, struct exchange **exchange) {
    const struct placement *p = &cache->placement;
    void **list;
    TRY(coll_placement(cache));
    TRY(coll_cache_kept(cache, free_exchanges, &list));
    for (*exchange = *list; *exchange != NULL; *exchange = (*exchange)->next)
        if ((*exchange)->kind == kind)
            return MPI_SUCCESS;
    if (coll_cache_is_frozen())
        return COLL_USE_DEFAULT;
    double start = PMPI_Wtime();
    struct exchange *e = calloc(1, sizeof *e);
    if (e == NULL)
        return MPI_ERR_NO_MEM;
    *e = (struct exchange){.kind = kind, .comm = cache->comm, .part = MPI_COMM_NULL, .leaders = MPI_COMM_NULL};
    int rc = kind == REORDERED ? build_reordered(e, p) : build(e, kind == BY_GROUP ? p->group : p->node, p->group);
    if (rc != MPI_SUCCESS) {
        free_exchange(e);
        return rc;
    }
    e->next = *list;
    *list = *exchange = e;
    coll_count_setup(PMPI_Wtime() - start);
    return MPI_SUCCESS;
}

/* ---- packed data of this rank, by position ---- */

void coll_flow_free(struct flow *flow) {
    free(flow->data);
    free(flow->counts);
    *flow = (struct flow){NULL, NULL, 0};
}

bool coll_flow_make(struct flow *flow, const struct exchange *e, const int counts[], int type_size) {
    *flow = (struct flow){NULL, malloc((size_t)e->size * sizeof *flow->counts), 0};
    for (int p = 0; p < e->size && flow->counts != NULL; p++) {
        size_t bytes = (size_t)counts[e->order[p]] * (size_t)type_size;
        flow->counts[p] = (int)(bytes > INT_MAX ? INT_MAX : bytes);
        flow->bytes += bytes;
    }
    if (flow->counts == NULL || flow->bytes > INT_MAX)
        return false;
    flow->data = malloc(flow->bytes + 1);
    return flow->data != NULL;
}

int coll_flow_pack(struct call *call, const struct exchange *e, struct flow *flow) {
    struct extent extent;
    int at = 0, room = (int)flow->bytes;
    TRY(coll_extent(call->type, &extent));
    for (int p = 0; p < e->size; p++) {
        int rank = e->order[p];
        TRY(PMPI_Pack(coll_at(call->send, call->send_displs[rank], extent.extent), call->send_counts[rank], call->type,
                      flow->data, room, &at, call->comm));
    }
    return at == room ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int coll_flow_unpack(struct call *call, const struct exchange *e, const struct flow *flow) {
    struct extent extent;
    int at = 0;
    TRY(coll_extent(call->recv_type, &extent));
    for (int p = 0; p < e->size; p++) {
        int rank = e->order[p];
        TRY(PMPI_Unpack(flow->data, (int)flow->bytes, &at, coll_at(call->recv, call->recv_displs[rank], extent.extent),
                        call->recv_counts[rank], call->recv_type, call->comm));
    }
    return MPI_SUCCESS;
}
