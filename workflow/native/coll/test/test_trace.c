/*
 * Makes calls for a monitor to record: for each collective that has a COLL_ variable, n calls by this library and m by
 * the MPI library.
 *
 *   test_trace <n> <m>
 */
#include <mpi.h>

#include <stdlib.h>

#include "check.h"

/* each: n for each rank; at: places of such blocks */
static void trace_own(int *in, int *out, int n, int root, const int *each, const int *at) {
    if (in_environment("COLL_BCAST"))
        CHECK(MPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_REDUCE"))
        CHECK(MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLREDUCE"))
        CHECK(MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (in_environment("COLL_GATHER"))
        CHECK(MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_SCATTER"))
        CHECK(MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLGATHER"))
        CHECK(MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALL"))
        CHECK(MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALLV"))
        CHECK(MPI_Alltoallv(out, each, at, MPI_INT, in, each, at, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_REDUCE_SCATTER"))
        CHECK(MPI_Reduce_scatter(out, in, each, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (in_environment("COLL_BARRIER"))
        CHECK(MPI_Barrier(MPI_COMM_WORLD));
}

static void trace_theirs(int *in, int *out, int n, int root, const int *each, const int *at) {
    if (in_environment("COLL_BCAST"))
        CHECK(PMPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_REDUCE"))
        CHECK(PMPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLREDUCE"))
        CHECK(PMPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (in_environment("COLL_GATHER"))
        CHECK(PMPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_SCATTER"))
        CHECK(PMPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLGATHER"))
        CHECK(PMPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALL"))
        CHECK(PMPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALLV"))
        CHECK(PMPI_Alltoallv(out, each, at, MPI_INT, in, each, at, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_REDUCE_SCATTER"))
        CHECK(PMPI_Reduce_scatter(out, in, each, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (in_environment("COLL_BARRIER"))
        CHECK(PMPI_Barrier(MPI_COMM_WORLD));
}

static void trace(int own, int theirs) {
    static const int counts[] = {1, 10, 250, 2499, 17500};
    int n;
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    int *in = calloc(2 * (size_t)n * 17500, sizeof *in), *out = in + (size_t)n * 17500;
    int *each = malloc(2 * (size_t)n * sizeof *each), *at = each + n;
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        int root = i * (n / 2 + 1) % n;
        for (int rank = 0; rank < n; rank++) {
            each[rank] = counts[i];
            at[rank] = rank * counts[i];
        }
        for (int times = 0; times < own; times++)
            trace_own(in, out, counts[i], root, each, at);
        for (int times = 0; times < theirs; times++)
            trace_theirs(in, out, counts[i], root, each, at);
    }
    free(in);
    free(each);
}

int main(int argc, char *argv[]) {
    CHECK(MPI_Init(&argc, &argv));
    if (argc > 2)
        trace(atoi(argv[1]), atoi(argv[2]));
    CHECK(MPI_Finalize());
    return argc <= 2;
}
