#include "core/hierarchy.h"
#include "core/counters.h"
#include "core/placement.h"

#include <stdlib.h>

enum { MAX_KEPT = 16 }; /* hierarchies per communicator; each root has its own */

static int leads(MPI_Comm comm) {
    int rank;
    return comm != MPI_COMM_NULL && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == 0;
}

/* The root has the lowest key, so it is rank 0 of every communicator that it is in ([bijlani2021], section 1.2). */
static int split(const struct cache *cache, int root, int color, MPI_Comm *part) {
    return PMPI_Comm_split(cache->comm, color, cache->rank == root ? -1 : cache->rank, part);
}

static int build_two(const struct cache *cache, struct hierarchy *hierarchy, int part) {
    hierarchy->n = 2;
    TRY(split(cache, hierarchy->root, part, &hierarchy->comm[1]));
    return split(cache, hierarchy->root, leads(hierarchy->comm[1]) ? 0 : MPI_UNDEFINED, &hierarchy->comm[0]);
}

static int build_node_group(const struct cache *cache, struct hierarchy *hierarchy) {
    const struct placement *p = &cache->placement;
    hierarchy->n = 3;
    TRY(split(cache, hierarchy->root, p->node, &hierarchy->comm[2]));
    TRY(split(cache, hierarchy->root, leads(hierarchy->comm[2]) ? p->group : MPI_UNDEFINED, &hierarchy->comm[1]));
    return split(cache, hierarchy->root, leads(hierarchy->comm[1]) ? 0 : MPI_UNDEFINED, &hierarchy->comm[0]);
}

/*
 * Creates one communicator in which the ranks of a node are consecutive, and so are the nodes of a group; first the
 * root, then its node and group. Sorts by rank, node, then group: a split keeps the order of equal keys.
 */
static int build_reorder(const struct cache *cache, struct hierarchy *hierarchy) {
    const struct placement *p = &cache->placement;
    int at_root[2] = {p->node, p->group};
    MPI_Comm by_rank, by_node;
    hierarchy->n = 1;
    TRY(PMPI_Bcast(at_root, 2, MPI_INT, hierarchy->root, cache->comm));
    TRY(split(cache, hierarchy->root, 0, &by_rank));
    TRY(PMPI_Comm_split(by_rank, 0, p->node == at_root[0] ? -1 : p->node, &by_node));
    TRY(PMPI_Comm_split(by_node, 0, p->group == at_root[1] ? -1 : p->group, &hierarchy->comm[0]));
    TRY(PMPI_Comm_free(&by_rank));
    return PMPI_Comm_free(&by_node);
}

static int build(const struct cache *cache, struct hierarchy *hierarchy) {
    switch (hierarchy->kind) {
    case HIERARCHY_NODE:
        return build_two(cache, hierarchy, cache->placement.node);
    case HIERARCHY_GROUP:
        return build_two(cache, hierarchy, cache->placement.group);
    case HIERARCHY_NODE_GROUP:
        return build_node_group(cache, hierarchy);
    default:
        return build_reorder(cache, hierarchy);
    }
}

static void free_hierarchy(struct hierarchy *hierarchy) {
    for (int l = 0; l < hierarchy->n; l++) {
        if (hierarchy->comm[l] != MPI_COMM_NULL)
            (void)PMPI_Comm_free(&hierarchy->comm[l]);
        free(hierarchy->below[l]);
    }
    free(hierarchy->order);
    free(hierarchy);
}

static void free_hierarchies(void *list) {
    for (struct hierarchy *hierarchy = list; hierarchy != NULL;) {
        struct hierarchy *next = hierarchy->next;
        free_hierarchy(hierarchy);
        hierarchy = next;
    }
}

/* Moves what it finds to the front. All ranks make the same requests in the same order, so they drop the same ones. */
static struct hierarchy *find(struct hierarchy **first, enum hierarchy_kind kind, int root) {
    for (struct hierarchy **at = first; *at != NULL; at = &(*at)->next) {
        struct hierarchy *hierarchy = *at;
        if (hierarchy->kind != kind || hierarchy->root != root)
            continue;
        *at = hierarchy->next;
        hierarchy->next = *first;
        return *first = hierarchy;
    }
    return NULL;
}

static void drop_oldest(struct hierarchy **at) {
    for (int kept = 0; *at != NULL; kept++) {
        struct hierarchy *hierarchy = *at;
        if (kept < MAX_KEPT) {
            at = &hierarchy->next;
        } else {
            *at = hierarchy->next;
            free_hierarchy(hierarchy);
        }
    }
}

static int make(struct cache *cache, enum hierarchy_kind kind, int root, struct hierarchy **hierarchy) {
    struct hierarchy *made = calloc(1, sizeof *made);
    if (made == NULL)
        return MPI_ERR_NO_MEM;
    made->kind = kind;
    made->root = root;
    for (int l = 0; l < MAX_LEVELS; l++)
        made->comm[l] = MPI_COMM_NULL;
    int rc = build(cache, made);
    if (rc == MPI_SUCCESS)
        *hierarchy = made;
    else
        free_hierarchy(made);
    return rc;
}

int coll_hierarchy_get(struct cache *cache, enum hierarchy_kind kind, int root, struct hierarchy **hierarchy) {
    void **list;
    TRY(coll_placement(cache));
    TRY(coll_cache_kept(cache, free_hierarchies, &list));
    struct hierarchy *first = *list;
    *hierarchy = find(&first, kind, root);
    if (*hierarchy == NULL && coll_cache_is_frozen())
        return COLL_USE_DEFAULT;
    if (*hierarchy == NULL) {
        double start = PMPI_Wtime();
        TRY(make(cache, kind, root, hierarchy));
        (*hierarchy)->next = first;
        first = *hierarchy;
        drop_oldest(&first);
        coll_count_setup(PMPI_Wtime() - start);
    }
    *list = first;
    return MPI_SUCCESS;
}
