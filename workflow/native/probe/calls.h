/* Makes one call of a collective given by name; for the programs of this folder. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != MPI_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static void fail_unknown(const char *collective) {
    fprintf(stderr,
            "unknown collective '%s'; known: bcast barrier reduce allreduce gather scatter allgather "
            "allgatherv alltoall alltoallv ibcast iallreduce reduce_scatter ireduce_scatter reduce_scatter_block scan "
            "exscan\n",
            collective);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Collectives with counts: all ranks have the same. */
static void call_with_counts(const char *collective, int bytes, char *send, char *receive, MPI_Comm comm) {
    int processes;
    CHECK(MPI_Comm_size(comm, &processes));
    int *counts = malloc(2 * (size_t)processes * sizeof *counts), *displacements = counts + processes;
    for (int i = 0; counts != NULL && i < processes; i++) {
        counts[i] = bytes;
        displacements[i] = (int)((unsigned)i * (unsigned)bytes);
    }
    CHECK(counts == NULL ? MPI_ERR_NO_MEM
          : strcmp(collective, "alltoallv") == 0
              ? MPI_Alltoallv(send, counts, displacements, MPI_CHAR, receive, counts, displacements, MPI_CHAR, comm)
              : MPI_Allgatherv(send, bytes, MPI_CHAR, receive, counts, displacements, MPI_CHAR, comm));
    free(counts);
}

static void call_reduce_scatter(int bytes, char *send, char *receive, bool blocking, MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    int processes;
    CHECK(MPI_Comm_size(comm, &processes));
    int *counts = malloc((size_t)processes * sizeof *counts);
    for (int i = 0; counts != NULL && i < processes; i++)
        counts[i] = bytes / processes + (i < bytes % processes);
    CHECK(counts == NULL ? MPI_ERR_NO_MEM
          : blocking     ? MPI_Reduce_scatter(send, receive, counts, MPI_SIGNED_CHAR, MPI_SUM, comm)
                         : MPI_Ireduce_scatter(send, receive, counts, MPI_SIGNED_CHAR, MPI_SUM, comm, &request));
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(counts);
}

static void call_non_blocking(const char *collective, int bytes, char *send, char *receive, MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (strcmp(collective, "ibcast") == 0)
        CHECK(MPI_Ibcast(send, bytes, MPI_CHAR, 0, comm, &request));
    else if (strcmp(collective, "iallreduce") == 0)
        CHECK(MPI_Iallreduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm, &request));
    else if (strcmp(collective, "ireduce_scatter") == 0)
        call_reduce_scatter(bytes, send, receive, false, comm);
    else
        fail_unknown(collective);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Makes one call with `bytes` per rank (per block, if the collective has blocks); reductions add bytes. */
static void call(const char *collective, int bytes, char *send, char *receive, MPI_Comm comm) {
    if (strcmp(collective, "bcast") == 0) {
        CHECK(MPI_Bcast(send, bytes, MPI_CHAR, 0, comm));
    } else if (strcmp(collective, "barrier") == 0) {
        CHECK(MPI_Barrier(comm));
    } else if (strcmp(collective, "reduce") == 0) {
        CHECK(MPI_Reduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, 0, comm));
    } else if (strcmp(collective, "allreduce") == 0) {
        CHECK(MPI_Allreduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm));
    } else if (strcmp(collective, "gather") == 0) {
        CHECK(MPI_Gather(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, 0, comm));
    } else if (strcmp(collective, "scatter") == 0) {
        CHECK(MPI_Scatter(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, 0, comm));
    } else if (strcmp(collective, "allgather") == 0) {
        CHECK(MPI_Allgather(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, comm));
    } else if (strcmp(collective, "alltoall") == 0) {
        CHECK(MPI_Alltoall(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, comm));
    } else if (strcmp(collective, "alltoallv") == 0 || strcmp(collective, "allgatherv") == 0) {
        call_with_counts(collective, bytes, send, receive, comm);
    } else if (strcmp(collective, "reduce_scatter") == 0) {
        call_reduce_scatter(bytes, send, receive, true, comm);
    } else if (strcmp(collective, "reduce_scatter_block") == 0) {
        CHECK(MPI_Reduce_scatter_block(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm));
    } else if (strcmp(collective, "scan") == 0) {
        CHECK(MPI_Scan(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm));
    } else if (strcmp(collective, "exscan") == 0) {
        CHECK(MPI_Exscan(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm));
    } else if (collective[0] == 'i') {
        call_non_blocking(collective, bytes, send, receive, comm);
    } else {
        fail_unknown(collective);
    }
}
