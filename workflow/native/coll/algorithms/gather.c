/* [bijlani2021]: gather level by level; the root puts the blocks into the order of the caller's ranks. */
#include "algorithms.h"
#include "algorithms/base.h"
#include "core/counters.h"
#include "core/hierarchy.h"
#include "core/message.h"
#include "core/placement.h"

#include <limits.h>
#include <stdlib.h>

/* What one rank contributes, and how a leader lays out each rank's contribution. */
struct block {
    const void *own;
    int own_count, count;
    MPI_Datatype own_type, type;
};

static int gather_uniform(const struct block *in, int n, void *out, const struct block *block, MPI_Comm comm) {
    return coll_base_gather(in->own, in->own_count, in->own_type, out, n * block->count, block->type, 0, comm);
}

static int gather_counted(const struct block *in, const int below[], int members, void *out, const struct block *block,
                          MPI_Comm comm) {
    int *counts = malloc(2 * (size_t)members * sizeof *counts), *displs = counts + members;
    if (counts == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0, at = 0; i < members && below != NULL; i++) {
        displs[i] = at;
        counts[i] = below[i] * block->count;
        at += counts[i];
    }
    int rc = PMPI_Gatherv(in->own, in->own_count, in->own_type, out, counts, displs, block->type, 0, comm);
    free(counts);
    return rc;
}

/* Gathers at one level. *n: number of ranks that this one represents, before and after. */
static int gather_level(const struct hierarchy *hierarchy, int l, const struct block *block, struct block *in, int *n,
                        char **raw) {
    struct extent extent;
    char *fresh = NULL, *out = NULL;
    int rank, members, before = *n;
    TRY(PMPI_Comm_rank(hierarchy->comm[l], &rank));
    TRY(PMPI_Comm_size(hierarchy->comm[l], &members));
    if (rank == 0) {
        TRY(coll_extent(block->type, &extent));
        *n = 0;
        for (int i = 0; i < members; i++)
            *n += hierarchy->below[l][i];
        TRY(coll_buffer(&extent, (size_t)*n * (size_t)block->count, &fresh, &out));
    }
    int rc = hierarchy->uniform[l] ? gather_uniform(in, before, out, block, hierarchy->comm[l])
                                   : gather_counted(in, hierarchy->below[l], members, out, block, hierarchy->comm[l]);
    free(*raw);
    *raw = fresh;
    *in = (struct block){.own = out, .own_count = *n * block->count, .own_type = block->type};
    return rc;
}

/* On the root, *all points to the blocks of all ranks in the order of hierarchy->order. The caller frees *raw. */
static int gather_up(const struct hierarchy *hierarchy, const struct block *block, char **raw, const char **all) {
    struct block in = *block;
    int n = 1;
    *raw = NULL;
    for (int l = hierarchy->n - 1; l >= 0 && hierarchy->comm[l] != MPI_COMM_NULL; l--)
        TRY(gather_level(hierarchy, l, block, &in, &n, raw));
    *all = in.own;
    return MPI_SUCCESS;
}

/* ---- once for each hierarchy: how many ranks are below each leader, and the order of the blocks ---- */

static int count_level(struct hierarchy *hierarchy, int l, int *n) {
    int rank, members, same = 1;
    TRY(PMPI_Comm_rank(hierarchy->comm[l], &rank));
    TRY(PMPI_Comm_size(hierarchy->comm[l], &members));
    if (rank == 0) {
        hierarchy->below[l] = malloc((size_t)members * sizeof *hierarchy->below[l]);
        if (hierarchy->below[l] == NULL)
            return MPI_ERR_NO_MEM;
    }
    TRY(PMPI_Gather(n, 1, MPI_INT, hierarchy->below[l], 1, MPI_INT, 0, hierarchy->comm[l]));
    *n = 0;
    for (int i = 0; rank == 0 && i < members; i++) {
        *n += hierarchy->below[l][i];
        same = same && hierarchy->below[l][i] == hierarchy->below[l][0];
    }
    TRY(PMPI_Bcast(&same, 1, MPI_INT, 0, hierarchy->comm[l]));
    hierarchy->uniform[l] = same;
    return MPI_SUCCESS;
}

static int find_order(struct call *call, struct hierarchy *hierarchy) {
    struct block rank = {&call->rank, 1, 1, MPI_INT, MPI_INT};
    const char *all;
    char *raw;
    int n = 1;
    for (int l = hierarchy->n - 1; l >= 0 && hierarchy->comm[l] != MPI_COMM_NULL; l--)
        TRY(count_level(hierarchy, l, &n));
    TRY(gather_up(hierarchy, &rank, &raw, &all));
    if (call->rank == call->root)
        hierarchy->order = (int *)(void *)raw;
    else
        free(raw);
    hierarchy->ordered = true;
    return MPI_SUCCESS;
}

/* ---- the gather ---- */

static int put_in_order(struct call *call, const struct hierarchy *hierarchy, const char *all) {
    struct extent extent;
    TRY(coll_extent(call->block_type, &extent));
    MPI_Aint step = call->block_count * extent.extent;
    for (int i = call->send == MPI_IN_PLACE; i < call->size; i++)
        TRY(coll_copy(coll_at(all, i, step), coll_at(call->recv, hierarchy->order[i], step), call->block_count,
                      call->block_type));
    return MPI_SUCCESS;
}

/* The root describes blocks as in its receive buffer. The type of another rank describes one block only: if several
 * would overlap or have gaps, it is packed. The caller frees *packed. */
static int own_block(struct call *call, struct block *block, char **packed) {
    struct extent extent;
    *block = (struct block){call->send, call->count, call->count, call->type, call->type};
    if (call->rank == call->root) {
        block->count = call->block_count;
        block->type = call->block_type;
        TRY(coll_extent(call->block_type, &extent));
        if (call->send == MPI_IN_PLACE)
            block->own = coll_at(call->recv, (MPI_Aint)call->root * call->block_count, extent.extent);
        return MPI_SUCCESS;
    }
    TRY(coll_extent(call->type, &extent));
    if (coll_is_dense(&extent))
        return MPI_SUCCESS;
    int bytes = (int)call->bytes;
    *packed = malloc(call->bytes);
    if (*packed == NULL)
        return MPI_ERR_NO_MEM;
    *block = (struct block){*packed, bytes, bytes, MPI_PACKED, MPI_PACKED};
    return coll_convert(call->send, call->count, call->type, *packed, bytes, MPI_PACKED);
}

static int gather_blocks(struct call *call, const struct hierarchy *hierarchy, const struct block *block) {
    const char *all;
    char *raw;
    int rc = gather_up(hierarchy, block, &raw, &all);
    if (rc == MPI_SUCCESS && call->rank == call->root)
        rc = put_in_order(call, hierarchy, all);
    free(raw);
    return rc;
}

static int gather(struct call *call, enum hierarchy_kind kind) {
    struct hierarchy *hierarchy;
    struct block block;
    char *packed = NULL;
    size_t bytes = call->bytes * (size_t)call->size;
    bool wrong = call->rank == call->root && (call->block_count < 0 || call->block_type == MPI_DATATYPE_NULL);
    if (wrong || bytes > INT_MAX || coll_above_limit(call, bytes))
        return COLL_USE_DEFAULT;
    TRY(coll_hierarchy_get(call->cache, kind, call->root, &hierarchy));
    if (!hierarchy->ordered)
        TRY(find_order(call, hierarchy));
    int rc = own_block(call, &block, &packed);
    if (rc == MPI_SUCCESS)
        rc = gather_blocks(call, hierarchy, &block);
    free(packed);
    return rc;
}

int coll_gather_node(struct call *call) {
    return gather(call, HIERARCHY_NODE);
}

int coll_gather_group(struct call *call) {
    return gather(call, HIERARCHY_GROUP);
}

int coll_gather_node_group(struct call *call) {
    return gather(call, HIERARCHY_NODE_GROUP);
}

int coll_gather_reorder(struct call *call) {
    return gather(call, HIERARCHY_REORDER);
}

/* The rule of [bijlani2021]. */
int coll_gather_seed001(struct call *call) {
    TRY(coll_placement(call->cache));
    return gather(call, call->cache->placement.nodes > 13 ? HIERARCHY_GROUP : HIERARCHY_REORDER);
}
