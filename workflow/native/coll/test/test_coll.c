/*
 * Compares each collective with the MPI library's own result (PMPI_*), byte by byte: over communicators of 1 to all
 * ranks (in reversed and rotated order too), roots, types, counts and MPI_IN_PLACE. The algorithms are those that the
 * environment chose. Exits with 1, and says where, when a byte differs.
 *
 *   test_coll            everything
 *   test_coll threads    two threads, each with its own communicator (real MPI only)
 *   test_coll create     four threads that create communicators at the same time (real MPI only)
 *   test_coll errors     wrong arguments come back as the MPI library's errors
 *   test_coll inter      an intercommunicator passes through
 *   test_coll trace <n> <m>   n times by this library and m times by the MPI library, to be watched by a monitor
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { GUARD = 64, MAX_COUNT = 700 };

static int failures;
static MPI_Comm comm;
static int rank, size;
static const char *where;

struct kind {
    const char *name;
    MPI_Datatype type;
    MPI_Op op;      /* for reductions; MPI_OP_NULL: none */
    MPI_Aint bytes; /* extent */
};
static struct kind kinds[4];
static int n_kinds;

/* ---- types and operations ---- */

/* Composition of x -> a x + b: associative and not commutative. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
    unsigned *x = in, *y = inout;
    (void)type;
    for (int i = 0; i < *n; i++, x += 2, y += 2) {
        unsigned a = x[0] * y[0], b = x[0] * y[1] + x[1];
        y[0] = a;
        y[1] = b;
    }
}

/* The sum of elements of two ints with a gap between them. */
static void sum_with_gap(void *in, void *inout, int *n, MPI_Datatype *type) {
    int *x = in, *y = inout;
    (void)type;
    for (int i = 0; i < *n; i++, x += 4, y += 4) {
        y[0] += x[0];
        y[2] += x[2];
    }
}

static void make_kinds(void) {
    MPI_Datatype pair, strided, gaps;
    MPI_Op ordered, gap_sum;
    CHECK(MPI_Type_contiguous(2, MPI_UNSIGNED, &pair));
    CHECK(MPI_Type_commit(&pair));
    CHECK(MPI_Op_create(compose, 0, &ordered));
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &strided));
    CHECK(MPI_Type_create_resized(strided, 0, 16, &gaps));
    CHECK(MPI_Type_commit(&gaps));
    CHECK(MPI_Type_free(&strided));
    CHECK(MPI_Op_create(sum_with_gap, 1, &gap_sum));
    kinds[n_kinds++] = (struct kind){"int", MPI_INT, MPI_SUM, 4};
    kinds[n_kinds++] = (struct kind){"char", MPI_CHAR, MPI_OP_NULL, 1};
    kinds[n_kinds++] = (struct kind){"ordered pair", pair, ordered, 8};
    kinds[n_kinds++] = (struct kind){"with gaps", gaps, gap_sum, 16};
}

static void free_kinds(void) {
    CHECK(MPI_Op_free(&kinds[2].op));
    CHECK(MPI_Op_free(&kinds[3].op));
    CHECK(MPI_Type_free(&kinds[2].type));
    CHECK(MPI_Type_free(&kinds[3].type));
}

/* ---- buffers ---- */

struct buffers {
    char *send, *got, *expected;
    size_t bytes;
};

static void fill(char *buffer, size_t bytes, int seed) {
    memset(buffer, 0x5a, bytes);
    unsigned *u = (unsigned *)(void *)buffer;
    for (size_t i = 0; i < bytes / sizeof *u; i++)
        u[i] = (unsigned)(seed * 131 + (int)i * 17 + 3) & 0xffffu;
}

static struct buffers make(size_t elements, const struct kind *kind) {
    struct buffers b;
    b.bytes = (elements * (size_t)kind->bytes + GUARD + 7) / 8 * 8;
    b.send = malloc(b.bytes);
    b.got = malloc(b.bytes);
    b.expected = malloc(b.bytes);
    fill(b.send, b.bytes, rank);
    fill(b.got, b.bytes, rank + 1000);
    memcpy(b.expected, b.got, b.bytes);
    return b;
}

static void compare(const struct buffers *b, const char *collective, const struct kind *kind, int count, int root) {
    for (size_t i = 0; i < b->bytes; i++) {
        if (b->got[i] == b->expected[i])
            continue;
        if (failures++ < 5)
            fprintf(stderr, "%s: %s, %s, count %d, root %d: rank %d of %d differs at byte %zu\n", where, collective,
                    kind->name, count, root, rank, size, i);
        return;
    }
}

static void free_buffers(struct buffers *b) {
    free(b->send);
    free(b->got);
    free(b->expected);
}

/* ---- one collective, one case ---- */

static void test_bcast(const struct kind *kind, int count, int root) {
    struct buffers b = make((size_t)count, kind);
    CHECK(MPI_Bcast(b.got, count, kind->type, root, comm));
    CHECK(PMPI_Bcast(b.expected, count, kind->type, root, comm));
    compare(&b, "bcast", kind, count, root);
    free_buffers(&b);
}

static void test_reduce(const struct kind *kind, int count, int root, int in_place) {
    struct buffers b = make((size_t)count, kind);
    const void *send = in_place && rank == root ? MPI_IN_PLACE : b.send;
    CHECK(MPI_Reduce(send, b.got, count, kind->type, kind->op, root, comm));
    CHECK(PMPI_Reduce(send, b.expected, count, kind->type, kind->op, root, comm));
    if (rank == root)
        compare(&b, "reduce", kind, count, root);
    free_buffers(&b);
}

static void test_allreduce(const struct kind *kind, int count, int in_place) {
    struct buffers b = make((size_t)count, kind);
    const void *send = in_place ? MPI_IN_PLACE : b.send;
    CHECK(MPI_Allreduce(send, b.got, count, kind->type, kind->op, comm));
    CHECK(PMPI_Allreduce(send, b.expected, count, kind->type, kind->op, comm));
    compare(&b, "allreduce", kind, count, -1);
    free_buffers(&b);
}

/* The root receives plain elements where the others send derived ones, when that is possible. */
static void test_gather(const struct kind *kind, int count, int root, int in_place) {
    struct buffers b = make((size_t)count * (size_t)size, kind);
    int pair = strcmp(kind->name, "ordered pair") == 0;
    MPI_Datatype type = pair ? MPI_UNSIGNED : kind->type;
    int recv_count = pair ? 2 * count : count;
    const void *send = in_place && rank == root ? MPI_IN_PLACE : b.send;
    CHECK(MPI_Gather(send, count, kind->type, b.got, recv_count, type, root, comm));
    CHECK(PMPI_Gather(send, count, kind->type, b.expected, recv_count, type, root, comm));
    compare(&b, "gather", kind, count, root);
    free_buffers(&b);
}

/* Rank i sends (i + 2 j + count) % 5 * count / 4 elements to rank j, with holes between the blocks. */
static int block_count(int from, int to, int count) {
    return (from + 2 * to + count) % 5 * count / 4;
}

static void test_alltoallv(const struct kind *kind, int count) {
    int *t = malloc(4 * (size_t)size * sizeof *t), *scounts = t, *sdispls = t + size, *rcounts = t + 2 * size,
        *rdispls = t + 3 * size, most = 2 * count + 2;
    struct buffers b = make((size_t)most * (size_t)size, kind);
    for (int i = 0; i < size; i++) {
        scounts[i] = block_count(rank, i, count);
        rcounts[i] = block_count(i, rank, count);
        sdispls[i] = i * most + 1;
        rdispls[i] = (size - 1 - i) * most;
    }
    CHECK(MPI_Alltoallv(b.send, scounts, sdispls, kind->type, b.got, rcounts, rdispls, kind->type, comm));
    CHECK(PMPI_Alltoallv(b.send, scounts, sdispls, kind->type, b.expected, rcounts, rdispls, kind->type, comm));
    compare(&b, "alltoallv", kind, count, -1);
    free_buffers(&b);
    free(t);
}

static void test_alltoallv_in_place(const struct kind *kind, int count) {
    int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
    struct buffers b = make((size_t)count * (size_t)size, kind);
    for (int i = 0; i < size; i++) {
        counts[i] = (i + rank) % 3 * count / 2;
        displs[i] = i * count;
    }
    CHECK(MPI_Alltoallv(MPI_IN_PLACE, counts, displs, kind->type, b.got, counts, displs, kind->type, comm));
    CHECK(PMPI_Alltoallv(MPI_IN_PLACE, counts, displs, kind->type, b.expected, counts, displs, kind->type, comm));
    compare(&b, "alltoallv in place", kind, count, -1);
    free_buffers(&b);
    free(counts);
}

static void test_reduce_scatter(const struct kind *kind, int count, int in_place) {
    int *counts = malloc((size_t)size * sizeof *counts), total = 0;
    for (int i = 0; i < size; i++)
        total += counts[i] = (i % 3) * count / 2;
    struct buffers b = make((size_t)total + (size_t)count, kind);
    const void *send = in_place ? MPI_IN_PLACE : b.send;
    size_t bytes = b.bytes;
    CHECK(MPI_Reduce_scatter(send, b.got, counts, kind->type, kind->op, comm));
    CHECK(PMPI_Reduce_scatter(send, b.expected, counts, kind->type, kind->op, comm));
    if (in_place) /* what is left behind the result is nobody's business */
        b.bytes = (size_t)counts[rank] * (size_t)kind->bytes;
    compare(&b, "reduce_scatter", kind, count, -1);
    b.bytes = bytes;
    free_buffers(&b);
    free(counts);
}

static void test_reduce_scatter_block(const struct kind *kind, int count, int in_place) {
    struct buffers b = make((size_t)count * (size_t)size, kind);
    const void *send = in_place ? MPI_IN_PLACE : b.send;
    size_t bytes = b.bytes;
    CHECK(MPI_Reduce_scatter_block(send, b.got, count, kind->type, kind->op, comm));
    CHECK(PMPI_Reduce_scatter_block(send, b.expected, count, kind->type, kind->op, comm));
    if (in_place)
        b.bytes = (size_t)count * (size_t)kind->bytes;
    compare(&b, "reduce_scatter_block", kind, count, -1);
    b.bytes = bytes;
    free_buffers(&b);
}

/* Nobody leaves before the last one has come: each rank in turn comes late and says so beforehand. */
static void test_barrier(void) {
    for (int late = 0; late < size; late++) {
        int token = -1;
        MPI_Request request;
        CHECK(MPI_Irecv(&token, 1, MPI_INT, late, 77, comm, &request));
        if (rank == late)
            for (int to = 0; to < size; to++)
                CHECK(MPI_Send(&late, 1, MPI_INT, to, 77, comm));
        CHECK(MPI_Barrier(comm));
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        failures += token != late;
    }
}

/* ---- all cases ---- */

static int is_set(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

static void test_rooted(const struct kind *kind, int count, int in_place) {
    int step = count > 13 && size > 3 ? size / 3 : 1; /* large messages: a few roots */
    for (int root = 0; root < size; root += step) {
        if (is_set("COLL_BCAST") && !in_place)
            test_bcast(kind, count, root);
        if (is_set("COLL_REDUCE") && kind->op != MPI_OP_NULL)
            test_reduce(kind, count, root, in_place);
        if (is_set("COLL_GATHER"))
            test_gather(kind, count, root, in_place);
    }
}

/* SimGrid's own alltoallv in place takes elements to be as far apart as they are large. */
static int simulator_fails(const struct kind *kind) {
#ifdef SMPI_H
    return strcmp(kind->name, "with gaps") == 0;
#else
    (void)kind;
    return 0;
#endif
}

static void test_kind(const struct kind *kind, int count) {
    for (int in_place = 0; in_place < 2; in_place++) {
        test_rooted(kind, count, in_place);
        if (is_set("COLL_ALLREDUCE") && kind->op != MPI_OP_NULL)
            test_allreduce(kind, count, in_place);
        if (is_set("COLL_REDUCE_SCATTER") && kind->op != MPI_OP_NULL) {
            test_reduce_scatter(kind, count, in_place);
            test_reduce_scatter_block(kind, count, in_place);
        }
    }
    if (is_set("COLL_ALLTOALLV") && count < 100) {
        test_alltoallv(kind, count);
        if (!simulator_fails(kind))
            test_alltoallv_in_place(kind, count);
    }
}

static void test_communicator(MPI_Comm which, const char *name) {
    static const int counts[] = {0, 1, 5, 13, 64, MAX_COUNT};
    comm = which;
    where = name;
    CHECK(MPI_Comm_rank(comm, &rank));
    CHECK(MPI_Comm_size(comm, &size));
    for (int k = 0; k < n_kinds; k++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            test_kind(&kinds[k], counts[c]);
    if (is_set("COLL_BARRIER"))
        test_barrier();
}

static void test_all(void) {
    int me, all, least = is_set("TEST_LEAST") ? atoi(getenv("TEST_LEAST")) : 1;
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &all));
    make_kinds();
    for (int n = least; n <= all; n++) {
        MPI_Comm part;
        int key = n % 3 == 0 ? -me : n % 3 == 1 ? me : (me + 1) % n;
        CHECK(MPI_Comm_split(MPI_COMM_WORLD, me < n ? 0 : MPI_UNDEFINED, key, &part));
        if (part == MPI_COMM_NULL)
            continue;
        test_communicator(part, n % 3 == 0 ? "reversed" : n % 3 == 1 ? "in order" : "rotated");
        CHECK(MPI_Comm_free(&part));
    }
    test_communicator(MPI_COMM_WORLD, "world");
    free_kinds();
}

static int class_of(int rc) {
    int class;
    CHECK(MPI_Error_class(rc, &class));
    return class;
}

/* The same class of error from this library and from the MPI library. */
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

/* Wrong at the root only: it must have the error, whatever the others do (they send little, which needs no partner). */
static void test_wrong_at_root(MPI_Comm world, int me) {
    int in = 1, out[8] = {0};
    if (me != 0)
        return;
    SAME_ERROR(MPI_Gather, &in, 1, MPI_INT, out, -1, MPI_INT, 0, world);
    SAME_ERROR(MPI_Gather, &in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, 0, world);
}

static void test_errors(void) {
    int value[4] = {0, 0, 0, 0}, me;
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    test_wrong_arguments(MPI_COMM_WORLD);
    test_wrong_at_root(MPI_COMM_WORLD, me);
    CHECK(MPI_Barrier(MPI_COMM_WORLD));
    int rc = MPI_Bcast(value, me == 0 ? 4 : 1, MPI_INT, 0, MPI_COMM_WORLD);
    failures += me != 0 && class_of(rc) != MPI_ERR_TRUNCATE;
}

/* Half of the ranks on each side; of each collective what one rank or each rank of the other side gave. */
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
    CHECK(MPI_Alltoallv(mine, ones, where_, MPI_INT, got, ones, where_, MPI_INT, inter));
    for (int i = 0; i < remote; i++)
        failures += got[i] != 100 * (2 * i + !odd) + me / 2;
    CHECK(MPI_Reduce_scatter(mine, &sum, ones, MPI_INT, MPI_SUM, inter));
    CHECK(MPI_Reduce_scatter_block(mine, &value, 1, MPI_INT, MPI_SUM, inter));
    failures += sum != value || sum != 100 * remote * (remote - 1 + !odd) + remote * (me / 2);
    CHECK(MPI_Barrier(inter));
    CHECK(MPI_Comm_free(&inter));
    CHECK(MPI_Comm_free(&half));
}

#ifndef SMPI_H
#include <pthread.h>

struct worker {
    MPI_Comm comm;
    int failures;
};

static void *work(void *argument) {
    struct worker *w = argument;
    int n, me;
    CHECK(MPI_Comm_size(w->comm, &n));
    CHECK(MPI_Comm_rank(w->comm, &me));
    int all[16] = {0}, swapped[16], ones[16], twice[16], at[16];
    for (int k = 0; k < n; k++) {
        ones[k] = 1;
        twice[k] = 2;
        at[k] = k;
    }
    for (int i = 0; i < 200; i++) {
        int value = i * n + me, sum = 0, got = me == i % n ? i : -1;
        CHECK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, w->comm));
        CHECK(MPI_Bcast(&got, 1, MPI_INT, i % n, w->comm));
        CHECK(MPI_Barrier(w->comm));
        w->failures += got != i || sum != n * n * i + n * (n - 1) / 2;
        sum = 0;
        CHECK(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, i % n, w->comm));
        CHECK(MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, i % n, w->comm));
        for (int k = 0; k < n && me == i % n; k++)
            w->failures += all[k] != i * n + k;
        w->failures += me == i % n && sum != n * n * i + n * (n - 1) / 2;
        CHECK(MPI_Alltoallv(all, ones, at, MPI_INT, swapped, ones, at, MPI_INT, w->comm));
        CHECK(MPI_Reduce_scatter(twice, &sum, ones, MPI_INT, MPI_SUM, w->comm));
        w->failures += swapped[i % n] != i * n + me || sum != 2 * n;
    }
    return NULL;
}

static void test_threads(void) {
    struct worker workers[2] = {{MPI_COMM_NULL, 0}, {MPI_COMM_NULL, 0}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, work, &workers[i]) != 0)
            failures++;
    for (int i = 0; i < 2; i++) {
        failures += pthread_join(thread[i], NULL) != 0;
        failures += workers[i].failures;
        CHECK(MPI_Comm_free(&workers[i].comm));
    }
}

enum { CREATORS = 4, TIMES = 50 };

struct creator {
    int tag, failures;
};

static void create_and_use(struct creator *c, MPI_Group group, int root) {
    int one = 1, sum = 0, n;
    MPI_Comm part;
    CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, group, c->tag, &part));
    CHECK(MPI_Comm_size(part, &n));
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part));
    CHECK(MPI_Bcast(&sum, 1, MPI_INT, root % n, part));
    CHECK(MPI_Comm_free(&part));
    c->failures += sum != n;
}

/* Communicators of some ranks and of all in turn, as MPICH's comm_create_group_threads2 has them. */
static void *create(void *argument) {
    struct creator *c = argument;
    MPI_Group all, some;
    int n, me;
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    CHECK(MPI_Group_size(all, &n));
    CHECK(MPI_Group_rank(all, &me));
    int range[1][3] = {{0, n / 2, 1}};
    CHECK(MPI_Group_range_incl(all, 1, range, &some));
    for (int i = 0; i < TIMES; i++) {
        if (me <= n / 2)
            create_and_use(c, some, i);
        create_and_use(c, all, i);
    }
    CHECK(MPI_Group_free(&some));
    CHECK(MPI_Group_free(&all));
    return NULL;
}

static void test_create(void) {
    struct creator creators[CREATORS];
    pthread_t thread[CREATORS];
    int one = 1, sum = 0, n;
    for (int i = 0; i < CREATORS; i++) {
        creators[i] = (struct creator){.tag = i};
        failures += pthread_create(&thread[i], NULL, create, &creators[i]) != 0;
    }
    for (int i = 0; i < CREATORS; i++) {
        failures += pthread_join(thread[i], NULL) != 0;
        failures += creators[i].failures;
    }
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD));
    failures += sum != n;
}
#else
static void test_threads(void) {
}

static void test_create(void) {
}
#endif

/* One call of each collective that the environment names, by this library or by the MPI library. */
static void trace_own(int *in, int *out, int n, int root) {
    if (is_set("COLL_BCAST"))
        CHECK(MPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (is_set("COLL_REDUCE"))
        CHECK(MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (is_set("COLL_ALLREDUCE"))
        CHECK(MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (is_set("COLL_BARRIER"))
        CHECK(MPI_Barrier(MPI_COMM_WORLD));
}

static void trace_theirs(int *in, int *out, int n, int root) {
    if (is_set("COLL_BCAST"))
        CHECK(PMPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD));
    if (is_set("COLL_REDUCE"))
        CHECK(PMPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (is_set("COLL_ALLREDUCE"))
        CHECK(PMPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (is_set("COLL_BARRIER"))
        CHECK(PMPI_Barrier(MPI_COMM_WORLD));
}

static void trace(int own, int theirs) {
    static const int counts[] = {1, 10, 250, 2499, 17500};
    int n, *in = calloc(2 * 17500, sizeof *in), *out = in + 17500;
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        int root = i * (n / 2 + 1) % n;
        for (int times = 0; times < own; times++)
            trace_own(in, out, counts[i], root);
        for (int times = 0; times < theirs; times++)
            trace_theirs(in, out, counts[i], root);
    }
    free(in);
}

int main(int argc, char *argv[]) {
    const char *what = argc > 1 ? argv[1] : "";
    int provided, any, me;
    int threads = strcmp(what, "threads") == 0 || strcmp(what, "create") == 0;
    CHECK(MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    if (strcmp(what, "threads") == 0)
        test_threads();
    else if (strcmp(what, "create") == 0)
        test_create();
    else if (strcmp(what, "errors") == 0)
        test_errors();
    else if (strcmp(what, "inter") == 0)
        test_inter();
    else if (strcmp(what, "trace") == 0 && argc > 3)
        trace(atoi(argv[2]), atoi(argv[3]));
    else
        test_all();
    if (strcmp(what, "trace") != 0) {
        CHECK(PMPI_Allreduce(&failures, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(PMPI_Comm_rank(MPI_COMM_WORLD, &me));
        if (me == 0)
            printf("%d differences\n", any);
        failures = any;
    }
    CHECK(MPI_Finalize());
    return failures != 0;
}
