/* Ids of communicators, and ranks in MPI_COMM_WORLD. */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The members of communicators. They are kept until the program ends, because a receive may end after its communicator
 * was freed. */
struct Members {
    struct Members *next;
    uint64_t hash;
    uint64_t made[2]; /* number of communicators with these members so far, by `how` of new_id() */
    int size;
    int world[]; /* rank in MPI_COMM_WORLD of each rank */
};

/* Data of a communicator, stored as its attribute. */
typedef struct Known {
    uint64_t id;
    Members *members;
} Known;

static Members *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
/* Most calls use the communicator of the thread's call before; it is looked up again once any communicator was freed.
 */
static _Atomic unsigned freed;
static _Thread_local struct {
    MPI_Comm comm;
    Known *known;
    unsigned freed;
} last;

/* MPI calls it when a communicator is freed or disconnected. */
static int forget(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    freed++;
    free(value);
    return MPI_SUCCESS;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    /* FNV-1a over eight bytes. */
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3;
    return hash;
}

static bool are_equal(const Members *one, const Members *other) {
    return one->hash == other->hash && one->size == other->size &&
           memcmp(one->world, other->world, (size_t)one->size * sizeof *one->world) == 0;
}

/* Returns the known members that equal `found`, which it keeps or frees. */
static Members *known_or_kept(Members *found) {
    found->hash = 0xcbf29ce484222325;
    for (int i = 0; i < found->size; i++)
        found->hash = mix(found->hash, (uint64_t)found->world[i]);
    pthread_mutex_lock(&lock);
    Members *same = all;
    while (same && !are_equal(same, found))
        same = same->next;
    if (!same) {
        found->next = all;
        all = same = found;
    }
    pthread_mutex_unlock(&lock);
    if (same != found)
        free(found);
    return same;
}

static void number(Known *known, int how);
static Known *find(MPI_Comm comm);
static _Thread_local bool duplicating;

/* MPI calls it when a communicator is duplicated. Only a duplicate that is made in the background, which cannot be used
 * yet, gets its id here, as its members may use several of them in different orders. */
static int copy(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag) {
    (void)comm, (void)key, (void)extra;
    Known *known = duplicating ? malloc(sizeof *known) : NULL;
    *flag = known != NULL;
    if (known) {
        known->members = ((Known *)value)->members;
        number(known, 0);
        *(Known **)copied = known;
    }
    return MPI_SUCCESS;
}

void communicator_duplicating(MPI_Comm comm, bool begins) {
    if (begins)
        find(comm);
    duplicating = begins;
}

static Known *attach(MPI_Comm comm, uint64_t id) {
    int size;
    PMPI_Comm_size(comm, &size);
    Known *known = malloc(sizeof *known);
    Members *members = calloc(1, sizeof *members + (size_t)size * sizeof(int));
    int *ranks = malloc((size_t)size * sizeof(int));
    if (!known || !members || !ranks) {
        free(known);
        free(members);
        free(ranks);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Group mine, world;
    PMPI_Comm_group(comm, &mine);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(mine, size, ranks, world, members->world);
    PMPI_Group_free(&mine);
    PMPI_Group_free(&world);
    free(ranks);
    members->size = size;
    *known = (Known){id, known_or_kept(members)};
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(copy, forget, &keyval, NULL);
    PMPI_Comm_set_attr(comm, keyval, known);
    return known;
}

/* Returns an id that is the same on all members, without a message: it is the n-th communicator with these members, as
 * they make communicators in the same order. How: 0 for those numbered when they are made, 1 when they are first used.
 */
static uint64_t new_id(Members *members, int how) {
    pthread_mutex_lock(&lock);
    uint64_t count = ++members->made[how];
    pthread_mutex_unlock(&lock);
    return mix(mix(members->hash, (uint64_t)how), count) | 2;
}

/* Gives a communicator its id, and records its members. */
static void number(Known *known, int how) {
    int size = known->members->size;
    int64_t *list = malloc((size_t)size * sizeof *list);
    known->id = new_id(known->members, how);
    if (!list)
        return;
    for (int i = 0; i < size; i++)
        list[i] = known->members->world[i];
    Record record = {.operation = OP_communicator, .communicator = known->id, .root = NONE, .to = NONE, .from = NONE};
    trace_note(&record, list, (uint32_t)size);
    free(list);
}

static Known *find(MPI_Comm comm) {
    if (last.known && comm == last.comm && last.freed == freed)
        return last.known;
    Known *known = NULL;
    int found = 0;
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_get_attr(comm, keyval, &known, &found);
    if (!found) {
        /* MPI_COMM_WORLD: id 0; MPI_COMM_SELF: id 1; else made by a function that is not recorded. */
        known = attach(comm, comm == MPI_COMM_WORLD ? 0 : 1);
        if (known && comm != MPI_COMM_WORLD && known->members->size > 1)
            number(known, 1);
    }
    last.comm = comm;
    last.known = known;
    last.freed = freed;
    return known;
}

uint64_t communicator_id(MPI_Comm comm) {
    Known *known = find(comm);
    return known ? known->id : 1;
}

int communicator_size(MPI_Comm comm) {
    Known *known = find(comm);
    return known ? known->members->size : 1;
}

const Members *members_of(MPI_Comm comm) {
    Known *known = find(comm);
    return known ? known->members : NULL;
}

int world_rank_of(const Members *members, int rank) {
    if (rank < 0)
        return rank;
    return members && rank < members->size ? members->world[rank] : NONE;
}

int world_rank(MPI_Comm comm, int rank) {
    return rank < 0 ? rank : world_rank_of(members_of(comm), rank);
}

void communicator_created(MPI_Comm created) {
    int inter = 0;
    if (created == MPI_COMM_NULL || PMPI_Comm_test_inter(created, &inter) != MPI_SUCCESS || inter)
        return;
    Known *known = attach(created, 0);
    if (known)
        number(known, 0);
}
