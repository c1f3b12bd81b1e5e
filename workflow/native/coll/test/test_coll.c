/*
 * Compares each collective with the MPI library's own result (PMPI_*), byte by byte: over communicators of 1 to all
 * ranks (in reversed and rotated order too), roots, types, counts and MPI_IN_PLACE. The algorithms are those that the
 * environment chose. Exits with 1, and says where, when a byte differs.
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

/* Sums elements that consist of two ints with a gap between them. */
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

/* The root sends plain elements where the others receive derived ones, when that is possible. */
static void test_scatter(const struct kind *kind, int count, int root, int in_place) {
    struct buffers b = make((size_t)count * (size_t)size, kind);
    int pair = strcmp(kind->name, "ordered pair") == 0, keeps = in_place && rank == root;
    MPI_Datatype type = pair ? MPI_UNSIGNED : kind->type;
    int send_count = pair ? 2 * count : count;
    CHECK(MPI_Scatter(b.send, send_count, type, keeps ? MPI_IN_PLACE : b.got, count, kind->type, root, comm));
    CHECK(PMPI_Scatter(b.send, send_count, type, keeps ? MPI_IN_PLACE : b.expected, count, kind->type, root, comm));
    compare(&b, "scatter", kind, count, root);
    free_buffers(&b);
}

/*
 * Of an allgather and an alltoall, odd ranks receive plain elements where the others send and receive derived ones,
 * when that is possible.
 */
static void test_allgather(const struct kind *kind, int count, int in_place) {
    struct buffers b = make((size_t)count * (size_t)size, kind);
    int plain = strcmp(kind->name, "ordered pair") == 0 && rank % 2 != 0;
    MPI_Datatype type = plain ? MPI_UNSIGNED : kind->type;
    int recv_count = plain ? 2 * count : count;
    const void *send = in_place ? MPI_IN_PLACE : b.send;
    CHECK(MPI_Allgather(send, count, kind->type, b.got, recv_count, type, comm));
    CHECK(PMPI_Allgather(send, count, kind->type, b.expected, recv_count, type, comm));
    compare(&b, "allgather", kind, count, -1);
    free_buffers(&b);
}

static void test_alltoall(const struct kind *kind, int count, int in_place) {
    struct buffers b = make((size_t)count * (size_t)size, kind);
    int plain = strcmp(kind->name, "ordered pair") == 0 && rank % 2 != 0;
    MPI_Datatype type = plain ? MPI_UNSIGNED : kind->type;
    int recv_count = plain ? 2 * count : count;
    const void *send = in_place ? MPI_IN_PLACE : b.send;
    CHECK(MPI_Alltoall(send, count, kind->type, b.got, recv_count, type, comm));
    CHECK(PMPI_Alltoall(send, count, kind->type, b.expected, recv_count, type, comm));
    compare(&b, "alltoall", kind, count, -1);
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
    if (in_place) /* the contents beyond the result are unspecified */
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

/* No rank leaves before the last one has arrived: each rank in turn arrives late and announces it. */
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

static void test_rooted(const struct kind *kind, int count, int in_place) {
    int step = count > 13 && size > 3 ? size / 3 : 1; /* large messages: a few roots */
    for (int root = 0; root < size; root += step) {
        if (in_environment("COLL_BCAST") && !in_place)
            test_bcast(kind, count, root);
        if (in_environment("COLL_REDUCE") && kind->op != MPI_OP_NULL)
            test_reduce(kind, count, root, in_place);
        if (in_environment("COLL_GATHER"))
            test_gather(kind, count, root, in_place);
        if (in_environment("COLL_SCATTER"))
            test_scatter(kind, count, root, in_place);
    }
}

/* SimGrid's own exchanges in place assume that a type's extent equals its size. */
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
        if (in_environment("COLL_ALLREDUCE") && kind->op != MPI_OP_NULL)
            test_allreduce(kind, count, in_place);
        if (in_environment("COLL_ALLGATHER"))
            test_allgather(kind, count, in_place);
        if (in_environment("COLL_ALLTOALL") && !(in_place && simulator_fails(kind)))
            test_alltoall(kind, count, in_place);
        if (in_environment("COLL_REDUCE_SCATTER") && kind->op != MPI_OP_NULL) {
            test_reduce_scatter(kind, count, in_place);
            test_reduce_scatter_block(kind, count, in_place);
        }
    }
    if (in_environment("COLL_ALLTOALLV") && count < 100) {
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
    if (in_environment("COLL_BARRIER"))
        test_barrier();
}

static void test_all(void) {
    int me, all, least = in_environment("TEST_LEAST") ? atoi(getenv("TEST_LEAST")) : 1;
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

int main(int argc, char *argv[]) {
    CHECK(MPI_Init(&argc, &argv));
    test_all();
    return finish(failures);
}
