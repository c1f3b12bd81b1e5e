/* A program with known collectives, for test_what_ran.py, on any even number of ranks from 2. With an argument, what
 * the name says: `spawn`, `hang`, `die`, `reads` (standard input), `blocks` (of each rank), `threads` (two, each with a
 * communicator), `others` (calls that are not recorded), `silent` (no MPI), `communicators` (made by many functions),
 * `large` (a type of 4 GiB, and counts of type MPI_Count where the library has them). */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 16 };

static void call_on(MPI_Comm comm) {
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_disconnect(&comm);
}

static void make_communicators(int rank, int size) {
    MPI_Comm half, both, comm;
    MPI_Group group;
    MPI_Request request;
    int periodic = 1, next = (rank + 1) % size, single = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm);
    call_on(comm);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    call_on(comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
    MPI_Intercomm_merge(both, rank % 2, &comm);
    call_on(comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
    call_on(comm);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &single, &next, &single, MPI_INFO_NULL, 0, &comm);
    call_on(comm);
}

static void call_large(void) {
    MPI_Datatype type;
    char data[8] = {0};
    MPI_Type_contiguous(1 << 30, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(data, 1, type, 0, MPI_COMM_SELF); /* transfers nothing */
#if MPI_VERSION >= 4
    MPI_Bcast_c(data, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    MPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
#endif
}

static void call_with_blocks(void) {
    int counts[64], places[64], data = 1, all[64] = {0};
    for (int i = 0; i < 64; i++)
        counts[i] = 1, places[i] = i;
    MPI_Gatherv(&data, 1, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(all, counts, places, MPI_INT, &data, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void call_others(int rank, int size) {
    MPI_Comm ring, half, both;
    MPI_Request request;
    int periodic = 1, one = 1, sum, out[2] = {0}, in[2];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Iscan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
    MPI_Barrier(both);
    if (sum != rank + 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *reduce_often(void *comm) {
    int one = 1, sum;
    for (int i = 0; i < 1000; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm);
    return NULL;
}

static void call_from_threads(void) {
    MPI_Comm comms[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reduce_often, &comms[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "silent") == 0)
        return 0;
    int rank, size, level;
    MPI_Init_thread(&argc, &argv, *what == 't' ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "communicators") == 0 || strcmp(what, "large") == 0) {
        *what == 'l' ? call_large() : make_communicators(rank, size);
        MPI_Finalize();
        return 0;
    }
    if (strcmp(what, "others") == 0)
        call_others(rank, size);
    if (strcmp(what, "blocks") == 0 || strcmp(what, "threads") == 0) {
        *what == 'b' ? call_with_blocks() : call_from_threads();
        MPI_Finalize();
        return 0;
    }
    char *out = calloc(64, LARGE), *in = calloc(64, LARGE);
    if (strcmp(what, "spawn") == 0) {
        MPI_Comm parent, children;
        MPI_Comm_get_parent(&parent);
        if (parent == MPI_COMM_NULL)
            MPI_Comm_spawn(argv[0], &argv[1], 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        else
            children = parent;
        MPI_Comm_disconnect(&children);
    }
    for (int i = 0; i < 3; i++)
        MPI_Bcast(out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, 8, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (strcmp(what, "die") == 0 && rank == 1)
        raise(SIGKILL);
    if (strcmp(what, "hang") == 0)
        pause();
    while (strcmp(what, "reads") == 0 && getchar() != EOF)
        ;
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(out, in, 5, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    MPI_Alltoall(out, 16, MPI_BYTE, in, 16, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Ibcast(out, 8, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
