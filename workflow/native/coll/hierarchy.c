/* Where the ranks of a communicator are, and sub-communicators of its nodes, its groups and their leaders. */
#include "collstudy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 16 }; /* hierarchies per communicator; each root has its own */

/* ---- placement ---- */

struct label {
    char name[MPI_MAX_PROCESSOR_NAME + 16];
    int rank;
};

static int hash(const char *name) {
    unsigned h = 2166136261u;
    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (int)(h & INT_MAX);
}

/* Names that share a hash are told apart by comparing with the first rank's, until all in a part have one name. */
static int split_by_name(MPI_Comm comm, const char *name, MPI_Comm *part) {
    int color = hash(name), rank, same, all_same;
    TRY(PMPI_Comm_rank(comm, &rank));
    TRY(PMPI_Comm_split(comm, color, rank, part));
    for (;;) {
        struct label first;
        MPI_Comm narrower;
        snprintf(first.name, sizeof first.name, "%s", name);
        TRY(PMPI_Bcast(first.name, sizeof first.name, MPI_CHAR, 0, *part));
        same = strcmp(first.name, name) == 0;
        TRY(PMPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_LAND, *part));
        if (all_same)
            return MPI_SUCCESS;
        TRY(PMPI_Comm_split(*part, same, 0, &narrower));
        TRY(PMPI_Comm_free(part));
        *part = narrower;
    }
}

/* A part's id is its lowest rank; n: how many parts there are. Frees the part. */
static int number_parts(const struct cache *cache, MPI_Comm *part, int *id, int *n) {
    int rank, first;
    TRY(PMPI_Comm_rank(*part, &rank));
    TRY(PMPI_Allreduce(&cache->rank, id, 1, MPI_INT, MPI_MIN, *part));
    first = *id == cache->rank;
    TRY(PMPI_Allreduce(&first, n, 1, MPI_INT, MPI_SUM, cache->comm));
    return PMPI_Comm_free(part);
}

/* A host in no group is a group of its own; without COLL_GROUPS all hosts are one group. */
static void group_name(char *name, size_t room) {
    const char *variable = getenv("COLL_GROUPS");
    bool grouped = variable != NULL && *variable != '\0';
    if (coll_group_of_host() != NULL)
        snprintf(name, room, "group %s", coll_group_of_host());
    else
        snprintf(name, room, "host %s", grouped ? coll_host() : "any");
}

/* The simulator counts ranks on one host as sharing memory in a way of its own: names are what the platform says. */
static int find_placement(struct cache *cache) {
    struct placement *p = &cache->placement;
    char name[MPI_MAX_PROCESSOR_NAME + 16];
    MPI_Comm part;
    TRY(coll_host_init());
    if (COLL_SIMULATED || coll_host_is_given())
        TRY(split_by_name(cache->comm, coll_host(), &part));
    else
        TRY(PMPI_Comm_split_type(cache->comm, MPI_COMM_TYPE_SHARED, cache->rank, MPI_INFO_NULL, &part));
    TRY(number_parts(cache, &part, &p->node, &p->nodes));
    group_name(name, sizeof name);
    TRY(split_by_name(cache->comm, name, &part));
    TRY(number_parts(cache, &part, &p->group, &p->groups));
    p->ppn = (cache->size + p->nodes - 1) / p->nodes;
    p->known = true;
    return MPI_SUCCESS;
}

int coll_placement(struct cache *cache) {
    if (cache->placement.known)
        return MPI_SUCCESS;
    double start = PMPI_Wtime();
    int rc = find_placement(cache);
    coll_count_setup(PMPI_Wtime() - start);
    return rc;
}

/* ---- levels ---- */

static int leads(MPI_Comm comm) {
    int rank;
    return comm != MPI_COMM_NULL && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == 0;
}

/* The root's key is the lowest, so that it is rank 0 wherever it is (seed 001, section 1.2). */
static int split(const struct cache *cache, int root, int color, MPI_Comm *part) {
    return PMPI_Comm_split(cache->comm, color, cache->rank == root ? -1 : cache->rank, part);
}

static int build_two(const struct cache *cache, struct levels *levels, int part) {
    levels->n = 2;
    TRY(split(cache, levels->root, part, &levels->comm[1]));
    return split(cache, levels->root, leads(levels->comm[1]) ? 0 : MPI_UNDEFINED, &levels->comm[0]);
}

static int build_node_group(const struct cache *cache, struct levels *levels) {
    const struct placement *p = &cache->placement;
    levels->n = 3;
    TRY(split(cache, levels->root, p->node, &levels->comm[2]));
    TRY(split(cache, levels->root, leads(levels->comm[2]) ? p->group : MPI_UNDEFINED, &levels->comm[1]));
    return split(cache, levels->root, leads(levels->comm[1]) ? 0 : MPI_UNDEFINED, &levels->comm[0]);
}

/*
 * One communicator in which the ranks of a node follow each other, and the nodes of a group; first the root, then its
 * node and its group. Sorting by rank, then by node, then by group: a split keeps the order of equal keys.
 */
static int build_reorder(const struct cache *cache, struct levels *levels) {
    const struct placement *p = &cache->placement;
    int at_root[2] = {p->node, p->group};
    MPI_Comm by_rank, by_node;
    levels->n = 1;
    TRY(PMPI_Bcast(at_root, 2, MPI_INT, levels->root, cache->comm));
    TRY(split(cache, levels->root, 0, &by_rank));
    TRY(PMPI_Comm_split(by_rank, 0, p->node == at_root[0] ? -1 : p->node, &by_node));
    TRY(PMPI_Comm_split(by_node, 0, p->group == at_root[1] ? -1 : p->group, &levels->comm[0]));
    TRY(PMPI_Comm_free(&by_rank));
    return PMPI_Comm_free(&by_node);
}

static int build(const struct cache *cache, struct levels *levels) {
    switch (levels->kind) {
    case LEVEL_NODE:
        return build_two(cache, levels, cache->placement.node);
    case LEVEL_GROUP:
        return build_two(cache, levels, cache->placement.group);
    case LEVEL_NODE_GROUP:
        return build_node_group(cache, levels);
    default:
        return build_reorder(cache, levels);
    }
}

static void free_levels(struct levels *levels) {
    for (int l = 0; l < levels->n; l++) {
        if (levels->comm[l] != MPI_COMM_NULL)
            (void)PMPI_Comm_free(&levels->comm[l]);
        free(levels->below[l]);
    }
    free(levels->order);
    free(levels);
}

void coll_levels_free(struct cache *cache) {
    while (cache->levels != NULL) {
        struct levels *next = cache->levels->next;
        free_levels(cache->levels);
        cache->levels = next;
    }
}

/* All ranks ask for the same in the same order, so they find, build and drop the same. */
static struct levels *find(struct cache *cache, enum level_kind kind, int root) {
    for (struct levels **at = &cache->levels; *at != NULL; at = &(*at)->next) {
        struct levels *levels = *at;
        if (levels->kind != kind || levels->root != root)
            continue;
        *at = levels->next;
        levels->next = cache->levels;
        return cache->levels = levels;
    }
    return NULL;
}

static void drop_oldest(struct cache *cache) {
    struct levels **at = &cache->levels;
    for (int kept = 0; *at != NULL; kept++) {
        struct levels *levels = *at;
        if (kept < MAX_KEPT) {
            at = &levels->next;
        } else {
            *at = levels->next;
            free_levels(levels);
        }
    }
}

int coll_levels_get(struct cache *cache, enum level_kind kind, int root, struct levels **levels) {
    TRY(coll_placement(cache));
    *levels = find(cache, kind, root);
    if (*levels != NULL)
        return MPI_SUCCESS;
    double start = PMPI_Wtime();
    struct levels *made = calloc(1, sizeof *made);
    if (made == NULL)
        return MPI_ERR_NO_MEM;
    made->kind = kind;
    made->root = root;
    for (int l = 0; l < MAX_LEVELS; l++)
        made->comm[l] = MPI_COMM_NULL;
    int rc = build(cache, made);
    if (rc != MPI_SUCCESS) {
        free_levels(made);
        return rc;
    }
    made->next = cache->levels;
    cache->levels = *levels = made;
    drop_oldest(cache);
    coll_count_setup(PMPI_Wtime() - start);
    return MPI_SUCCESS;
}
