#include "core/cache.h"
#include "core/counters.h"
#include "core/own.h"

#include <stdlib.h>

static struct kept_with {
    int keyval;
    bool frozen;
} initial = {.keyval = MPI_KEYVAL_INVALID};

OWN_VARIABLES(OWN_CACHE, kept_with)

/* A list that an algorithm or a part of the core keeps with a communicator. */
struct kept {
    free_function *free_list;
    void *list;
    struct kept *next;
};

int coll_cache_kept(struct cache *cache, free_function *free_list, void ***list) {
    struct kept *kept = cache->kept;
    while (kept != NULL && kept->free_list != free_list)
        kept = kept->next;
    if (kept == NULL) {
        kept = malloc(sizeof *kept);
        if (kept == NULL)
            return MPI_ERR_NO_MEM;
        *kept = (struct kept){.free_list = free_list, .next = cache->kept};
        cache->kept = kept;
    }
    *list = &kept->list;
    return MPI_SUCCESS;
}

static int free_cache(MPI_Comm comm, int key, void *value, void *extra) {
    struct cache *cache = value;
    (void)comm, (void)key, (void)extra;
    while (cache->kept != NULL) {
        struct kept *next = cache->kept->next;
        cache->kept->free_list(cache->kept->list);
        free(cache->kept);
        cache->kept = next;
    }
    int rc = PMPI_Comm_free(&cache->comm);
    free(cache);
    return rc;
}

int coll_cache_init(void) {
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_cache, &kept_with()->keyval, NULL);
}

void coll_cache_freeze(void) {
    kept_with()->frozen = true;
}

bool coll_cache_is_frozen(void) {
    return kept_with()->frozen;
}

int coll_cache_free(void) {
    void *value;
    int found = 0;
    int *keyval = &kept_with()->keyval;
    if (*keyval == MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    TRY(PMPI_Comm_get_attr(MPI_COMM_WORLD, *keyval, &value, &found));
    if (found)
        TRY(PMPI_Comm_delete_attr(MPI_COMM_WORLD, *keyval));
    return PMPI_Comm_free_keyval(keyval);
}

/*
 * Creates the private communicator, which separates this library's messages from the caller's. It is created from the
 * group, as MPI_Comm_dup would call the copy functions of the caller's attributes.
 */
static int make_private(MPI_Comm user, MPI_Comm *comm) {
    MPI_Group group;
    TRY(PMPI_Comm_group(user, &group));
    int rc = PMPI_Comm_create(user, group, comm);
    TRY(PMPI_Group_free(&group));
    TRY(rc);
    return PMPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
}

static int make_cache(MPI_Comm user, struct cache *cache) {
    TRY(make_private(user, &cache->comm));
    TRY(PMPI_Comm_rank(cache->comm, &cache->rank));
    TRY(PMPI_Comm_size(cache->comm, &cache->size));
    return PMPI_Comm_set_attr(user, kept_with()->keyval, cache);
}

int coll_cache_get(MPI_Comm user, struct cache **cache) {
    int found = 0;
    TRY(PMPI_Comm_get_attr(user, kept_with()->keyval, cache, &found));
    if (found)
        return MPI_SUCCESS;
    if (kept_with()->frozen)
        return COLL_USE_DEFAULT;
    *cache = calloc(1, sizeof **cache);
    if (*cache == NULL)
        return MPI_ERR_NO_MEM;
    double start = PMPI_Wtime();
    int rc = make_cache(user, *cache);
    if (rc != MPI_SUCCESS)
        free(*cache);
    coll_count_setup(PMPI_Wtime() - start);
    return rc;
}
