/* Shared by the test programs. */
#ifndef COLL_TEST_CHECK_H
#define COLL_TEST_CHECK_H

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

/* Aborts with status 3 after printing the failed call and its place. PMPI_Abort bypasses the library under test. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != MPI_SUCCESS) {                                                                                      \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, rc_);                                \
            PMPI_Abort(MPI_COMM_WORLD, 3);                                                                             \
        }                                                                                                              \
    } while (0)

/* Whether a variable of the environment is set. */
static inline int in_environment(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

/* Prints the number of failures on all ranks and finalizes MPI. Returns the program's exit status. */
static inline int finish(int failures) {
    int any, rank;
    CHECK(PMPI_Allreduce(&failures, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0)
        printf("%d differences\n", any);
    CHECK(MPI_Finalize());
    return any != 0;
}

#endif
