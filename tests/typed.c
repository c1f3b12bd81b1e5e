/* A program for test_datatypes.py, on two ranks: collectives with datatypes and operations of all kinds. Each is on a
 * communicator of its own, so that the test tells them apart. */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

static int rank;
static double out[64], in[64];

static void keep_first(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)from, (void)to, (void)count, (void)type;
}

static void named(MPI_Comm comm) {
    MPI_Allreduce(out, in, 2, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_INT, MPI_MAX, comm);
    MPI_Allreduce(out, in, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    MPI_Request request;
    MPI_Iallreduce(out, in, 1, MPI_UNSIGNED_LONG, MPI_BOR, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void fortran(MPI_Comm comm) {
    MPI_Reduce(out, in, 2, MPI_DOUBLE_PRECISION, MPI_PROD, 0, comm);
}

/* A predefined type that the program renames keeps the standard's name. */
static void renamed(MPI_Comm comm) {
    MPI_Type_set_name(MPI_FLOAT, "mine, for now");
    MPI_Bcast(out, 2, MPI_FLOAT, 0, comm);
}

/* Every other double of eight: sent as such, and received as four. */
static void gaps(MPI_Comm comm) {
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Bcast(out, rank == 0 ? 1 : 4, rank == 0 ? column : MPI_DOUBLE, 0, comm);
    MPI_Type_free(&column);
}

/* The handle of the second type may be that of the first. */
static void freed(MPI_Comm comm) {
    for (int i = 1; i <= 2; i++) {
        MPI_Datatype block;
        MPI_Type_contiguous(i, MPI_DOUBLE, &block);
        MPI_Type_commit(&block);
        MPI_Bcast(out, 1, block, 0, comm);
        MPI_Type_free(&block);
    }
}

static void counted(MPI_Comm comm) {
#if MPI_VERSION >= 4
    MPI_Datatype block;
    MPI_Type_contiguous_c(3, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    MPI_Bcast_c(out, 1, block, 0, comm);
    MPI_Type_free(&block);
#else
    (void)comm;
#endif
}

/* Arguments that do not count: types of the receive buffer of other ranks than the root, of the send buffer in place.
 */
static void ignored(MPI_Comm comm) {
    MPI_Datatype none = MPI_DATATYPE_NULL;
    int counts[2] = {1, 1}, places[2] = {0, 1};
    if (rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, none, in, 1, MPI_SHORT, 0, comm);
    else
        MPI_Gather(out, 1, MPI_SHORT, NULL, 0, none, 0, comm);
    if (rank == 0)
        MPI_Scatterv(out, counts, places, MPI_SHORT, MPI_IN_PLACE, 0, none, 0, comm);
    else
        MPI_Scatterv(NULL, NULL, NULL, none, in, 1, MPI_SHORT, 0, comm);
    MPI_Allgatherv(MPI_IN_PLACE, 0, none, in, counts, places, MPI_SHORT, comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, none, in, 1, MPI_SHORT, comm);
}

static void empty(MPI_Comm comm) {
    int counts[2] = {0, 0};
    MPI_Allreduce(out, in, 0, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allgatherv(out, 0, MPI_DOUBLE, in, counts, counts, MPI_DOUBLE, comm);
    MPI_Bcast(NULL, 0, MPI_INT, 0, comm);
    MPI_Barrier(comm);
}

/* Two bytes to rank 0, an integer and an empty block of another type to rank 1. */
static void listed(MPI_Comm comm) {
    int to[2] = {2, 1}, from[2] = {rank == 0 ? 2 : 1, rank == 0 ? 2 : 1}, places[2] = {0, 64};
    MPI_Datatype sent[2] = {MPI_BYTE, MPI_INT}, received[2];
    received[0] = received[1] = rank == 0 ? MPI_BYTE : MPI_INT;
    MPI_Alltoallw(out, to, places, sent, in, from, places, received, comm);
}

static void own(MPI_Comm comm) {
    MPI_Op operation, ordered;
    MPI_Datatype pair;
    MPI_Op_create(keep_first, 1, &operation);
    MPI_Op_create(keep_first, 0, &ordered);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Scan(out, in, 2, pair, operation, comm);
    MPI_Reduce_scatter_block(out, in, 1, pair, ordered, comm);
    MPI_Type_free(&pair);
    MPI_Op_free(&operation);
    MPI_Op_free(&ordered);
}

int main(int argc, char **argv) {
    void (*const cases[])(MPI_Comm) = {named, fortran, renamed, gaps, freed, counted, ignored, empty, listed, own};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        cases[i](comm);
        MPI_Comm_free(&comm);
    }
    return MPI_Finalize();
}
