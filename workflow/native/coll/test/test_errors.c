/*
 * Tests errors and intercommunicators.
 *
 *   test_errors wrong   wrong arguments are returned as the MPI library's errors
 *   test_errors inter   calls on an intercommunicator pass through
 */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

#include "check.h"

static int failures;

static int class_of(int rc) {
    int class;
    CHECK(MPI_Error_class(rc, &class));
    return class;
}

/* Checks that this library returns the same error class as the MPI library. */
#define SAME_ERROR(function, ...)                                                                                      \
    do {                                                                                                               \
        int expected_ = class_of(P##function(__VA_ARGS__)), got_ = class_of(function(__VA_ARGS__));                    \
        if (expected_ == MPI_SUCCESS || got_ != expected_) {                                                           \
            fprintf(stderr, "%s, line %d: error class %d instead of %d\n", #function, __LINE__, got_, expected_);      \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

/* Arguments that are wrong on each rank. */
static void test_wrong_arguments(MPI_Comm world) {
    int n, in[64] = {0}, out[64], counts[8] = {0}, displs[8] = {0}, negative[8] = {0};
    CHECK(MPI_Comm_size(world, &n));
    negative[0] = -1;
    negative[n - 1] = -1;
    counts[n - 1] = 3;
    SAME_ERROR(MPI_Bcast, in, 1, MPI_INT, 1000, world);
    SAME_ERROR(MPI_Bcast, in, 1, MPI_INT, -1, world);
    SAME_ERROR(MPI_Bcast, in, -1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Bcast, in, 1, MPI_DATATYPE_NULL, 0, world);
    SAME_ERROR(MPI_Bcast, in, 1, MPI_INT, 0, MPI_COMM_NULL);
    SAME_ERROR(MPI_Barrier, MPI_COMM_NULL);
    SAME_ERROR(MPI_Reduce, in, out, 1, MPI_INT, MPI_SUM, 1000, world);
    SAME_ERROR(MPI_Reduce, in, out, -1, MPI_INT, MPI_SUM, 0, world);
    SAME_ERROR(MPI_Reduce, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, world);
    SAME_ERROR(MPI_Reduce, in, out, 1, MPI_INT, MPI_OP_NULL, 0, world);
    SAME_ERROR(MPI_Reduce, in, out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL);
    SAME_ERROR(MPI_Allreduce, in, out, -1, MPI_INT, MPI_SUM, world);
    SAME_ERROR(MPI_Allreduce, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world);
    SAME_ERROR(MPI_Allreduce, in, out, 1, MPI_INT, MPI_OP_NULL, world);
    SAME_ERROR(MPI_Allreduce, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    SAME_ERROR(MPI_Gather, in, 1, MPI_INT, out, 1, MPI_INT, 1000, world);
    SAME_ERROR(MPI_Gather, in, -1, MPI_INT, out, 1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Gather, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Gather, in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_NULL);
    SAME_ERROR(MPI_Scatter, in, 1, MPI_INT, out, 1, MPI_INT, 1000, world);
    SAME_ERROR(MPI_Scatter, in, 1, MPI_INT, out, -1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Scatter, in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, 0, world);
    SAME_ERROR(MPI_Scatter, in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_NULL);
    SAME_ERROR(MPI_Allgather, in, -1, MPI_INT, out, 1, MPI_INT, world);
    SAME_ERROR(MPI_Allgather, in, 1, MPI_INT, out, -1, MPI_INT, world);
    SAME_ERROR(MPI_Allgather, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, world);
    SAME_ERROR(MPI_Allgather, in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, world);
    SAME_ERROR(MPI_Alltoall, in, -1, MPI_INT, out, 1, MPI_INT, world);
    SAME_ERROR(MPI_Alltoall, in, 1, MPI_INT, out, -1, MPI_INT, world);
    SAME_ERROR(MPI_Alltoall, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, world);
    SAME_ERROR(MPI_Alltoall, in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, world);
    SAME_ERROR(MPI_Alltoall, in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL);
    SAME_ERROR(MPI_Alltoallv, in, negative, displs, MPI_INT, out, counts, displs, MPI_INT, world);
    SAME_ERROR(MPI_Alltoallv, in, counts, displs, MPI_INT, out, negative, displs, MPI_INT, world);
    SAME_ERROR(MPI_Alltoallv, in, counts, displs, MPI_DATATYPE_NULL, out, counts, displs, MPI_INT, world);
    SAME_ERROR(MPI_Alltoallv, in, counts, displs, MPI_INT, out, counts, displs, MPI_DATATYPE_NULL, world);
    SAME_ERROR(MPI_Alltoallv, in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_NULL);
    SAME_ERROR(MPI_Reduce_scatter, in, out, negative, MPI_INT, MPI_SUM, world);
    counts[0] = -1; /* and the sum is not negative */
    SAME_ERROR(MPI_Reduce_scatter, in, out, counts, MPI_INT, MPI_SUM, world);
    counts[0] = 1;
    SAME_ERROR(MPI_Reduce_scatter, in, out, counts, MPI_DATATYPE_NULL, MPI_SUM, world);
    SAME_ERROR(MPI_Reduce_scatter, in, out, counts, MPI_INT, MPI_OP_NULL, world);
    SAME_ERROR(MPI_Reduce_scatter, in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    SAME_ERROR(MPI_Reduce_scatter_block, in, out, -1, MPI_INT, MPI_SUM, world);
    SAME_ERROR(MPI_Reduce_scatter_block, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world);
    SAME_ERROR(MPI_Reduce_scatter_block, in, out, 1, MPI_INT, MPI_OP_NULL, world);
    SAME_ERROR(MPI_Reduce_scatter_block, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
}

/* MPI_IN_PLACE as the buffer for the result, and one buffer for both. */
static void test_wrong_buffers(MPI_Comm world) {
    int in[64] = {0}, counts[8] = {1, 1, 1, 1, 1, 1, 1, 1}, displs[8] = {0};
    SAME_ERROR(MPI_Allreduce, in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world);
    SAME_ERROR(MPI_Allreduce, in, in, 2, MPI_INT, MPI_SUM, world);
    SAME_ERROR(MPI_Allgather, in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world);
    SAME_ERROR(MPI_Alltoall, in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world);
    SAME_ERROR(MPI_Alltoallv, in, counts, displs, MPI_INT, MPI_IN_PLACE, counts, displs, MPI_INT, world);
    SAME_ERROR(MPI_Reduce_scatter, in, MPI_IN_PLACE, counts, MPI_INT, MPI_SUM, world);
    SAME_ERROR(MPI_Reduce_scatter_block, in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world);
#ifdef OPEN_MPI /* other libraries crash */
    SAME_ERROR(MPI_Bcast, MPI_IN_PLACE, 1, MPI_INT, 0, world);
#endif
}

/* Arguments that are wrong at the root only: it must return the error even if the other ranks do not call. */
static void test_wrong_at_root(MPI_Comm world, int me) {
    int in = 1, out[8] = {0};
    if (me != 0)
        return;
    SAME_ERROR(MPI_Gather, &in, 1, MPI_INT, out, -1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Gather, &in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, 0, world);
    SAME_ERROR(MPI_Gather, &in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Reduce, &in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, 0, world);
    SAME_ERROR(MPI_Reduce, &in, &in, 1, MPI_INT, MPI_SUM, 0, world);
    SAME_ERROR(MPI_Scatter, MPI_IN_PLACE, 1, MPI_INT, &in, 1, MPI_INT, 0, world);
}

/* MPI_IN_PLACE on another rank than the root, as if all ranks gave it. */
static void test_in_place_elsewhere(MPI_Comm world, int me) {
#ifdef OPEN_MPI /* other libraries crash */
    int out[8] = {0};
    if (me == 0)
        return;
    SAME_ERROR(MPI_Gather, MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Reduce, MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, 0, world);
    SAME_ERROR(MPI_Scatter, out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, world);
#else
    (void)world, (void)me;
#endif
}

static void test_errors(void) {
    int value[4] = {0, 0, 0, 0}, me;
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    test_wrong_arguments(MPI_COMM_WORLD);
    test_wrong_buffers(MPI_COMM_WORLD);
    test_wrong_at_root(MPI_COMM_WORLD, me);
    test_in_place_elsewhere(MPI_COMM_WORLD, me);
    CHECK(MPI_Barrier(MPI_COMM_WORLD));
    int rc = MPI_Bcast(value, me == 0 ? 4 : 1, MPI_INT, 0, MPI_COMM_WORLD);
    failures += me != 0 && class_of(rc) != MPI_ERR_TRUNCATE;
}

/* Half of the ranks are on each side; checks that each collective delivers the data of the other side. */
static void test_inter(void) {
    int me, value, sum = 0, got[16], ones[16], where_[16], odd, remote;
    MPI_Comm half, inter;
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    odd = me % 2;
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, odd, me, &half));
    CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - odd, 5, &inter));
    CHECK(MPI_Comm_remote_size(inter, &remote));
    int root = odd ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL; /* the even side has the root */
    value = me == 0 ? 42 : -1;
    CHECK(MPI_Bcast(&value, 1, MPI_INT, root, inter));
    failures += odd && value != 42;
    value = me + 1;
    CHECK(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root, inter));
    failures += me == 0 && sum != remote * (remote + 1); /* of 2, 4, ... */
    CHECK(MPI_Gather(&value, 1, MPI_INT, got, 1, MPI_INT, root, inter));
    for (int i = 0; i < remote && me == 0; i++)
        failures += got[i] != 2 * i + 2;
    for (int i = 0; i < 16; i++)
        got[i] = odd ? -1 : 7 * i;
    int block = -1;
    CHECK(MPI_Scatter(got, 1, MPI_INT, &block, 1, MPI_INT, root, inter));
    failures += odd && block != 7 * (me / 2);
    CHECK(MPI_Allgather(&value, 1, MPI_INT, got, 1, MPI_INT, inter));
    for (int i = 0; i < remote; i++)
        failures += got[i] != 2 * i + 1 + !odd;
    value = 1;
    CHECK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter));
    failures += sum != remote;
    for (int i = 0; i < remote; i++) {
        ones[i] = 1;
        where_[i] = i;
        got[i] = -1;
    }
    int mine[16];
    for (int i = 0; i < remote; i++)
        mine[i] = 100 * me + i;
    for (int counts = 0; counts < 2; counts++) {
        CHECK(counts ? MPI_Alltoallv(mine, ones, where_, MPI_INT, got, ones, where_, MPI_INT, inter)
                     : MPI_Alltoall(mine, 1, MPI_INT, got, 1, MPI_INT, inter));
        for (int i = 0; i < remote; i++) {
            failures += got[i] != 100 * (2 * i + !odd) + me / 2;
            got[i] = -1;
        }
    }
    CHECK(MPI_Reduce_scatter(mine, &sum, ones, MPI_INT, MPI_SUM, inter));
    CHECK(MPI_Reduce_scatter_block(mine, &value, 1, MPI_INT, MPI_SUM, inter));
    failures += sum != value || sum != 100 * remote * (remote - 1 + !odd) + remote * (me / 2);
    CHECK(MPI_Barrier(inter));
    CHECK(MPI_Comm_free(&inter));
    CHECK(MPI_Comm_free(&half));
}

int main(int argc, char *argv[]) {
    CHECK(MPI_Init(&argc, &argv));
    if (argc > 1 && strcmp(argv[1], "inter") == 0)
        test_inter();
    else
        test_errors();
    return finish(failures);
}
