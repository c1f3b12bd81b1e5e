/* Ids of communicators, and ranks in MPI_COMM_WORLD. */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>

/* Data of a communicator, stored as its attribute. */
typedef struct Known {
    uint64_t id;
    int size;
    int world[]; /* rank in MPI_COMM_WORLD of each rank */
} Known;

/* Number of communicators with the same members so far. */
typedef struct Made {
    uint64_t members;
    uint64_t count;
    struct Made *next;
} Made;

static Made *made;
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

static Known *attach(MPI_Comm comm, uint64_t id) {
    int size;
    PMPI_Comm_size(comm, &size);
    Known *known = malloc(sizeof *known + (size_t)size * sizeof(int));
    int *ranks = malloc((size_t)size * sizeof(int));
    if (!known || !ranks) {
        free(known);
        free(ranks);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Group mine, world;
    PMPI_Comm_group(comm, &mine);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(mine, size, ranks, world, known->world);
    PMPI_Group_free(&mine);
    PMPI_Group_free(&world);
    free(ranks);
    known->id = id;
    known->size = size;
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    PMPI_Comm_set_attr(comm, keyval, known);
    return known;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    /* FNV-1a over eight bytes. */
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3;
    return hash;
}

/* Returns an id that is the same on all members, without a message: it is the n-th communicator with these members, as
 * they make communicators in the same order. How: 0 for those numbered when they are made, 1 when they are first used.
 */
static uint64_t new_id(const Known *known, int how) {
    uint64_t members = mix(0xcbf29ce484222325, (uint64_t)how), count = 0;
    for (int i = 0; i < known->size; i++)
        members = mix(members, (uint64_t)known->world[i]);
    pthread_mutex_lock(&lock);
    Made *same = made;
    while (same && same->members != members)
        same = same->next;
    if (!same && (same = calloc(1, sizeof *same))) {
        same->members = members;
        same->next = made;
        made = same;
    }
    if (same)
        count = ++same->count;
    pthread_mutex_unlock(&lock);
    return mix(members, count) | 2;
}

/* Gives a communicator its id, and records its members. */
static void number(Known *known, int how) {
    int64_t *members = malloc((size_t)known->size * sizeof *members);
    known->id = new_id(known, how);
    if (!members)
        return;
    for (int i = 0; i < known->size; i++)
        members[i] = known->world[i];
    Record record = {.operation = OP_communicator, .communicator = known->id, .root = NONE, .to = NONE, .from = NONE};
    trace_note(&record, members, (uint32_t)known->size);
    free(members);
}

static Known *find(MPI_Comm comm) {
    if (last.known && comm == last.comm && last.freed == freed)
        return last.known;
    Known *known = NULL;
    int found = 0;
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_get_attr(comm, keyval, &known, &found);
    if (!found) {
        /* MPI_COMM_WORLD: id 0; MPI_COMM_SELF: id 1; else made by a function that is not recorded (MPI_Comm_idup). */
        known = attach(comm, comm == MPI_COMM_WORLD ? 0 : 1);
        if (known && comm != MPI_COMM_WORLD && known->size > 1)
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
    return known ? known->size : 1;
}

int world_rank(MPI_Comm comm, int rank) {
    if (rank < 0)
        return rank;
    Known *known = find(comm);
    return known && rank < known->size ? known->world[rank] : NONE;
}

void communicator_created(MPI_Comm created) {
    int inter = 0;
    if (created == MPI_COMM_NULL || PMPI_Comm_test_inter(created, &inter) != MPI_SUCCESS || inter)
        return;
    Known *known = attach(created, 0);
    if (known)
        number(known, 0);
}
