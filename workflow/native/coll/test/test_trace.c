/*
 * Makes calls for a monitor to record: for each collective that has a COLL_ variable, n calls by this library and m by
 * the MPI library.
 *
 *   test_trace <n> <m>
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdlib.h>

#include "check.h"

/* Calls this library (MPI_...), or the MPI library itself (PMPI_...). */
#define CALL(function, ...) CHECK((own ? MPI_##function : PMPI_##function)(__VA_ARGS__))

/* each: n for each rank; at: places of such blocks */
static void call_all(bool own, int *in, int *out, int n, int root, const int *each, const int *at) {
    if (in_environment("COLL_BCAST"))
        CALL(Bcast, in, n, MPI_INT, root, MPI_COMM_WORLD);
    if (in_environment("COLL_REDUCE"))
        CALL(Reduce, in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    if (in_environment("COLL_ALLREDUCE"))
        CALL(Allreduce, in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (in_environment("COLL_GATHER"))
        CALL(Gather, in, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD);
    if (in_environment("COLL_SCATTER"))
        CALL(Scatter, out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
    if (in_environment("COLL_ALLGATHER"))
        CALL(Allgather, in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    if (in_environment("COLL_ALLTOALL"))
        CALL(Alltoall, out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
    if (in_environment("COLL_ALLTOALLV"))
        CALL(Alltoallv, out, each, at, MPI_INT, in, each, at, MPI_INT, MPI_COMM_WORLD);
    if (in_environment("COLL_REDUCE_SCATTER"))
        CALL(Reduce_scatter, out, in, each, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (in_environment("COLL_BARRIER"))
        CALL(Barrier, MPI_COMM_WORLD);
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
        for (int times = 0; times < own + theirs; times++)
            call_all(times < own, in, out, counts[i], root, each, at);
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
