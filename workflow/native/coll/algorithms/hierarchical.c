/* [bijlani2021]: broadcast and reduce level by level. The MPI library's own algorithm runs on each level. */
#include "algorithms.h"
#include "algorithms/base.h"
#include "core/counters.h"
#include "core/hierarchy.h"
#include "core/message.h"
#include "core/placement.h"
#include "core/segment.h"

#include <stdlib.h>

static int bcast(struct call *call, enum hierarchy_kind kind) {
    struct hierarchy *hierarchy;
    TRY(coll_hierarchy_get(call->cache, kind, call->root, &hierarchy));
    for (int l = 0; l < hierarchy->n; l++)
        if (hierarchy->comm[l] != MPI_COMM_NULL)
            TRY(coll_base_bcast(call->recv, call->count, call->type, 0, hierarchy->comm[l]));
    return MPI_SUCCESS;
}

int coll_bcast_node(struct call *call) {
    return bcast(call, HIERARCHY_NODE);
}

int coll_bcast_group(struct call *call) {
    return bcast(call, HIERARCHY_GROUP);
}

int coll_bcast_node_group(struct call *call) {
    return bcast(call, HIERARCHY_NODE_GROUP);
}

int coll_bcast_reorder(struct call *call) {
    return bcast(call, HIERARCHY_REORDER);
}

/* ---- broadcast in chunks that overlap between the levels ([bijlani2021], section 2, item 5) ---- */

struct pipeline {
    struct call *call;
    const struct hierarchy *hierarchy;
    struct extent extent;
    int each, chunks;
    int source;            /* the level at which this rank receives; -1 at the root */
    MPI_Request *requests; /* by level, then by chunk */
};

static int start_chunk(struct pipeline *p, int level, int chunk) {
    int first = chunk * p->each;
    int count = p->call->count - first < p->each ? p->call->count - first : p->each;
    MPI_Request *request = &p->requests[(size_t)level * (size_t)p->chunks + (size_t)chunk];
    return PMPI_Ibcast(coll_at(p->call->recv, first, p->extent.extent), count, p->call->type, 0,
                       p->hierarchy->comm[level], request);
}

/* A rank leads every level below the one at which it receives; the root leads all. */
static int find_source(const struct hierarchy *hierarchy, int *source) {
    *source = -1;
    for (int l = 0; l < hierarchy->n; l++) {
        int rank = 0;
        if (hierarchy->comm[l] != MPI_COMM_NULL)
            TRY(PMPI_Comm_rank(hierarchy->comm[l], &rank));
        if (rank != 0)
            *source = l;
    }
    return MPI_SUCCESS;
}

/* After an error the remaining operations are still started and completed: other ranks wait for them, and none may
 * outlive the caller's buffer. Returns the first error. */
static int run_pipeline(struct pipeline *p) {
    size_t n = (size_t)p->hierarchy->n * (size_t)p->chunks;
    int first = MPI_SUCCESS;
    for (size_t i = 0; i < n; i++)
        p->requests[i] = MPI_REQUEST_NULL;
    for (int c = 0; c < p->chunks && p->source >= 0; c++)
        first = coll_first_error(first, start_chunk(p, p->source, c));
    for (int c = 0; c < p->chunks; c++) {
        MPI_Request *request = &p->requests[(size_t)(p->source < 0 ? 0 : p->source) * (size_t)p->chunks + (size_t)c];
        if (p->source >= 0)
            first = coll_first_error(first, PMPI_Wait(request, MPI_STATUS_IGNORE));
        for (int l = p->source + 1; l < p->hierarchy->n; l++)
            if (p->hierarchy->comm[l] != MPI_COMM_NULL)
                first = coll_first_error(first, start_chunk(p, l, c));
    }
    return coll_first_error(first, coll_wait_all((int)n, p->requests));
}

int coll_bcast_pipelined(struct call *call) {
    struct pipeline p = {.call = call};
    struct hierarchy *hierarchy;
    TRY(coll_hierarchy_get(call->cache, HIERARCHY_NODE_GROUP, call->root, &hierarchy));
    TRY(coll_extent(call->type, &p.extent));
    TRY(find_source(hierarchy, &p.source));
    p.hierarchy = hierarchy;
    p.each = coll_chunk(call, call->count, p.extent.size);
    p.chunks = (int)(((long)call->count + p.each - 1) / p.each);
    p.requests = malloc((size_t)hierarchy->n * (size_t)p.chunks * sizeof *p.requests);
    if (p.requests == NULL)
        return MPI_ERR_NO_MEM;
    int rc = run_pipeline(&p);
    free(p.requests);
    return rc;
}

/* ---- reduce ---- */

/* Partial results are passed from the innermost level outwards; a leader keeps its own in `result`. */
static int reduce_levels(struct call *call, const struct hierarchy *hierarchy, void *result) {
    const void *in = call->send;
    for (int l = hierarchy->n - 1; l >= 0 && hierarchy->comm[l] != MPI_COMM_NULL; l--) {
        int rank;
        TRY(PMPI_Comm_rank(hierarchy->comm[l], &rank));
        if (rank != 0 && in == MPI_IN_PLACE)
            in = result;
        TRY(coll_base_reduce(in, result, call->count, call->type, call->op, 0, hierarchy->comm[l]));
        in = MPI_IN_PLACE;
    }
    return MPI_SUCCESS;
}

static int reduce(struct call *call, enum hierarchy_kind kind) {
    struct hierarchy *hierarchy;
    struct extent extent;
    char *raw = NULL, *result = call->recv;
    TRY(coll_extent(call->type, &extent));
    if (!coll_commutes(call) || coll_above_limit(call, call->bytes))
        return COLL_USE_DEFAULT;
    TRY(coll_hierarchy_get(call->cache, kind, call->root, &hierarchy));
    if (call->rank != call->root)
        TRY(coll_buffer(&extent, (size_t)call->count, &raw, &result));
    int rc = reduce_levels(call, hierarchy, result);
    free(raw);
    return rc;
}

int coll_reduce_node(struct call *call) {
    return reduce(call, HIERARCHY_NODE);
}

int coll_reduce_group(struct call *call) {
    return reduce(call, HIERARCHY_GROUP);
}

int coll_reduce_node_group(struct call *call) {
    return reduce(call, HIERARCHY_NODE_GROUP);
}

int coll_reduce_reorder(struct call *call) {
    return reduce(call, HIERARCHY_REORDER);
}

/* ---- one segmented tree through all levels ---- */

/* Builds a tree of chains: from the root through the group leaders, from each of these through the node leaders of its
 * group, and from each of these through the ranks of its node. Different levels transfer different segments at the same
 * time. Children: the innermost level first. */
static int tree_of_chains(const struct hierarchy *hierarchy, MPI_Group all, struct tree *tree) {
    tree->parent = -1;
    tree->n = 0;
    for (int l = hierarchy->n - 1; l >= 0 && hierarchy->comm[l] != MPI_COMM_NULL; l--) {
        MPI_Group part;
        int rank, size;
        TRY(PMPI_Comm_rank(hierarchy->comm[l], &rank));
        TRY(PMPI_Comm_size(hierarchy->comm[l], &size));
        TRY(PMPI_Comm_group(hierarchy->comm[l], &part));
        int before = rank - 1, after = rank + 1, rc = MPI_SUCCESS;
        if (before >= 0)
            rc = PMPI_Group_translate_ranks(part, 1, &before, all, &tree->parent);
        if (after < size && rc == MPI_SUCCESS)
            rc = PMPI_Group_translate_ranks(part, 1, &after, all, &tree->child[tree->n++]);
        TRY(PMPI_Group_free(&part));
        TRY(rc);
    }
    return MPI_SUCCESS;
}

static int find_chains(struct call *call, struct tree *tree) {
    struct hierarchy *hierarchy;
    MPI_Group all;
    TRY(coll_hierarchy_get(call->cache, HIERARCHY_NODE_GROUP, call->root, &hierarchy));
    TRY(PMPI_Comm_group(call->comm, &all));
    int rc = tree_of_chains(hierarchy, all, tree);
    TRY(PMPI_Group_free(&all));
    return rc;
}

int coll_bcast_chain(struct call *call) {
    struct tree tree;
    TRY(find_chains(call, &tree));
    if (tree.n > 1) { /* the longest path first */
        int inner = tree.child[0];
        tree.child[0] = tree.child[tree.n - 1];
        tree.child[tree.n - 1] = inner;
    }
    return coll_bcast_tree(call, &tree);
}

int coll_reduce_chain(struct call *call) {
    struct tree tree;
    if (!coll_commutes(call) || coll_above_limit(call, call->bytes))
        return COLL_USE_DEFAULT;
    TRY(find_chains(call, &tree));
    return coll_reduce_tree(call, &tree, call->root);
}

/* ---- the rules of [bijlani2021] ---- */

enum { LARGE = 2048 * 1024, MANY_NODES = 13 };

int coll_bcast_seed001(struct call *call) {
    const struct placement *p = &call->cache->placement;
    TRY(coll_placement(call->cache));
    if (p->ppn == 1)
        return bcast(call, p->nodes > MANY_NODES && call->bytes >= LARGE ? HIERARCHY_GROUP : HIERARCHY_REORDER);
    return bcast(call, call->bytes < LARGE ? HIERARCHY_NODE : HIERARCHY_NODE_GROUP);
}

int coll_reduce_seed001(struct call *call) {
    TRY(coll_placement(call->cache));
    if (call->cache->placement.ppn == 1)
        return reduce(call, call->bytes < LARGE ? HIERARCHY_REORDER : HIERARCHY_GROUP);
    return reduce(call, call->bytes < LARGE ? HIERARCHY_NODE : HIERARCHY_NODE_GROUP);
}
