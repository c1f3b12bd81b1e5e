#include "core/placement.h"
#include "core/counters.h"
#include "core/host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Splits by name. Names with equal hashes are compared with the first rank's name until each part has one name. */
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

/* Sets *id to the lowest rank of the part and *n to the number of parts. Frees the part. */
static int number_parts(const struct cache *cache, MPI_Comm *part, int *id, int *n) {
    int rank, first;
    TRY(PMPI_Comm_rank(*part, &rank));
    TRY(PMPI_Allreduce(&cache->rank, id, 1, MPI_INT, MPI_MIN, *part));
    first = *id == cache->rank;
    TRY(PMPI_Allreduce(&first, n, 1, MPI_INT, MPI_SUM, cache->comm));
    return PMPI_Comm_free(part);
}

/* A host that is in no group forms its own; without COLL_GROUPS all hosts are one group. */
static void group_name(char *name, size_t room) {
    if (coll_group_of_host() != NULL)
        snprintf(name, room, "group %s", coll_group_of_host());
    else
        snprintf(name, room, "host %s", coll_groups_are_given() ? coll_host() : "any");
}

/* The simulator has its own notion of ranks that share memory, so there the platform's host names are compared. */
static int find_placement(struct cache *cache) {
    struct placement *p = &cache->placement;
    char name[MPI_MAX_PROCESSOR_NAME + 16];
    MPI_Comm part;
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
