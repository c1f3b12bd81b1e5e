/*
 * check.h - end the test program when an MPI call fails
 */
#ifndef COLL_TEST_CHECK_H
#define COLL_TEST_CHECK_H

#include <mpi.h>

#include <stdio.h>

/* Status 3, with the place and the call in front; PMPI, so that the library under test takes no part in it. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != MPI_SUCCESS) {                                                                                      \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, rc_);                                \
            PMPI_Abort(MPI_COMM_WORLD, 3);                                                                             \
        }                                                                                                              \
    } while (0)

#endif
