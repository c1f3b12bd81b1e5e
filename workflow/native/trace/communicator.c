/* Ids of communicators, and ranks in MPI_COMM_WORLD. */
#include "trace.h"

#include <stdlib.h>

/* Data of a communicator, stored as its attribute. */
typedef struct Known {
    uint64_t id;
    uint64_t children;
    int size;
    int world[]; /* rank in MPI_COMM_WORLD of each rank */
} Known;

static int keyval = MPI_KEYVAL_INVALID;
/* Most calls use the communicator of the call before. */
static MPI_Comm last_comm;
static Known *last_known;

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
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
    known->children = 0;
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

static Known *find(MPI_Comm comm) {
    if (last_known && comm == last_comm)
        return last_known;
    Known *known = NULL;
    int found = 0;
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_get_attr(comm, keyval, &known, &found);
    if (!found)
        /* MPI_COMM_WORLD: id 0; MPI_COMM_SELF and communicators made by functions that are not recorded: id 1. */
        known = attach(comm, comm == MPI_COMM_WORLD ? 0 : 1);
    last_comm = comm;
    last_known = known;
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

void communicator_created(MPI_Comm parent, MPI_Comm created) {
    /* Every member of the parent counts the call, including those that get no communicator. */
    Known *from = find(parent);
    uint64_t number = from ? ++from->children : 0;
    int inter = 0;
    if (created == MPI_COMM_NULL || PMPI_Comm_test_inter(created, &inter) != MPI_SUCCESS || inter)
        return;
    Known *known = attach(created, 0);
    if (!known)
        return;
    /* The same on all members: computed from what they agree on. Parts of a split differ in their members. */
    uint64_t id = mix(mix(0xcbf29ce484222325, from ? from->id : 0), number);
    for (int i = 0; i < known->size; i++)
        id = mix(id, (uint64_t)known->world[i]);
    known->id = id | 2;
    last_known = NULL;
    int64_t *members = malloc((size_t)known->size * sizeof *members);
    if (!members)
        return;
    for (int i = 0; i < known->size; i++)
        members[i] = known->world[i];
    Call call = trace_enter();
    Record record = {.operation = OP_communicator, .communicator = known->id, .root = NONE, .to = NONE, .from = NONE};
    trace_leave(&call, &record, members, (uint32_t)known->size);
    free(members);
}

void communicator_freed(MPI_Comm comm) {
    if (comm == last_comm)
        last_known = NULL;
}
