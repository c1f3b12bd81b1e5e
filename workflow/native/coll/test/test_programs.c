/*
 * Tests uses of MPI that benchmarks lack, one per mode, against the MPI standard. The environment selects the
 * algorithms. Exits with 1 if something is wrong.
 *
 *   test_programs types [count]   broadcasts in which each rank describes the same elements by another type and count
 *   test_programs churn <n>       n communicators created, used and freed; the memory of the process must not grow
 *   test_programs leave           MPI_Finalize with communicators that were used and not freed
 *   test_programs large           MPI_Bcast_c; exits with 77 where the MPI library has none
 *   test_programs huge            broadcasts of more bytes than an int can count
 *   test_programs gaps            a reduction of more bytes than an int can count, of elements with gaps
 *   test_programs columns         collectives of blocks that alternate in memory: columns of matrices
 *   test_programs unseen          MPI is initialised by a function that the library does not replace
 *   test_programs undefined       reductions by operations that MPI does not define for the type: errors on all ranks
 *                                 or on none
 */
#include <mpi.h>

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int failures, rank, size;

static void wrong(const char *what, int a, int b) {
    if (failures++ < 5)
        fprintf(stderr, "rank %d: %s (%d, %d)\n", rank, what, a, b);
}

/* ---- the same elements, described in another way on each rank ---- */

enum { LAYOUTS = 5 };

/* n elements as `count` items of `type`; at() returns the position of the i-th element, a permutation. */
struct layout {
    MPI_Datatype type;
    int count;
    size_t room; /* in elements */
    size_t (*at)(int i, int n);
};

static size_t in_order(int i, int n) {
    (void)n;
    return (size_t)i;
}

/* Two elements, a gap of one. */
static size_t with_gaps(int i, int n) {
    (void)n;
    return (size_t)(i / 2 * 3 + i % 2);
}

/* The two elements of a pair change places. */
static size_t swapped(int i, int n) {
    (void)n;
    return (size_t)(i ^ 1);
}

static size_t backwards(int i, int n) {
    return (size_t)(n - 1 - i);
}

/* Makes a layout of n (a multiple of 4) elements of the basic type. */
static struct layout make_layout(int which, MPI_Datatype basic, MPI_Aint bytes, int n) {
    struct layout made = {basic, n, (size_t)n, in_order};
    MPI_Datatype inner = MPI_DATATYPE_NULL, outer;
    switch (which) {
    case 0:
        CHECK(MPI_Type_dup(basic, &made.type));
        break;
    case 1:
        CHECK(MPI_Type_contiguous(n, basic, &made.type));
        made.count = 1;
        break;
    case 2:
        CHECK(MPI_Type_contiguous(2, basic, &inner));
        CHECK(MPI_Type_create_resized(inner, 0, 3 * bytes, &made.type));
        made = (struct layout){made.type, n / 2, (size_t)(n / 2) * 3, with_gaps};
        break;
    case 3: {
        int lengths[2] = {1, 1}, displacements[2] = {1, 0};
        CHECK(MPI_Type_indexed(2, lengths, displacements, basic, &outer));
        CHECK(MPI_Type_create_resized(outer, 0, 2 * bytes, &made.type));
        CHECK(MPI_Type_free(&outer));
        made.count = n / 2;
        made.at = swapped;
        break;
    }
    default: {
        CHECK(MPI_Type_create_hvector(n, 1, -bytes, basic, &made.type));
        made.count = 1;
        made.at = backwards;
    }
    }
    if (inner != MPI_DATATYPE_NULL)
        CHECK(MPI_Type_free(&inner));
    CHECK(MPI_Type_commit(&made.type));
    return made;
}

struct mixed {
    double real;
    int whole;
};

/* An int and a double: in this order in the type, in the opposite order in memory. */
static MPI_Datatype make_mixed(void) {
    int lengths[2] = {1, 1};
    MPI_Aint displacements[2] = {offsetof(struct mixed, whole), offsetof(struct mixed, real)};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, made, whole;
    CHECK(MPI_Type_create_struct(2, lengths, displacements, types, &made));
    CHECK(MPI_Type_create_resized(made, 0, sizeof(struct mixed), &whole));
    CHECK(MPI_Type_free(&made));
    return whole;
}

static void set(void *at, MPI_Datatype basic, int value) {
    if (basic == MPI_INT)
        *(int *)at = value;
    else
        *(struct mixed *)at = (struct mixed){value * 0.5, value};
}

static int is_set(const void *at, MPI_Datatype basic, int value) {
    const struct mixed *m = at;
    return basic == MPI_INT ? *(const int *)at == value : m->real == value * 0.5 && m->whole == value;
}

static void broadcast(MPI_Datatype basic, size_t bytes, int n, int root, int turn) {
    int first = (rank + turn) % (LAYOUTS + (basic == MPI_INT));
    struct layout layout = {basic, n, (size_t)n, in_order};
    if (first < LAYOUTS)
        layout = make_layout(first, basic, (MPI_Aint)bytes, n);
    char *buffer = malloc(layout.room * bytes + 1);
    memset(buffer, 0xa5, layout.room * bytes + 1);
    for (int i = 0; i < n && rank == root; i++)
        set(buffer + layout.at(i, n) * bytes, basic, 7 * i + root);
    char *start = layout.at == backwards && n > 0 ? buffer + (size_t)(n - 1) * bytes : buffer;
    CHECK(MPI_Bcast(start, layout.count, layout.type, root, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        if (!is_set(buffer + layout.at(i, n) * bytes, basic, 7 * i + root)) {
            wrong("another element than the root sent", i, root);
            break;
        }
    free(buffer);
    if (layout.type != basic)
        CHECK(MPI_Type_free(&layout.type));
}

/* Odd ranks describe n elements by one of MPI's pair types, the others by the type of its two elements. */
static void broadcast_pairs(MPI_Datatype pair, MPI_Datatype of, int n, int root) {
    int bytes = 0;
    CHECK(MPI_Type_size(of, &bytes));
    if (bytes <= 0) /* an MPI library without Fortran's types */
        return;
    char *buffer = calloc((size_t)n + 1, (size_t)bytes);
    for (int i = 0; i < n * bytes && rank == root; i++)
        buffer[i] = (char)(i % 101 + root);
    CHECK(MPI_Bcast(buffer, rank % 2 != 0 ? n / 2 : n, rank % 2 != 0 ? pair : of, root, MPI_COMM_WORLD));
    for (int i = 0; i < n * bytes; i++)
        if (buffer[i] != (char)(i % 101 + root)) {
            wrong("another byte of a pair than the root sent", i, root);
            break;
        }
    free(buffer);
}

static void test_types(int n) {
    MPI_Datatype mixed = make_mixed();
    for (int turn = 0; turn < LAYOUTS + 1; turn++)
        for (int root = 0; root < size; root++) {
            broadcast(MPI_INT, sizeof(int), n, root, turn);
            broadcast(mixed, sizeof(struct mixed), n, root, turn);
            broadcast(MPI_INT, sizeof(int), 4, root, turn);
        }
    for (int root = 0; root < size; root++) {
        broadcast_pairs(MPI_2INT, MPI_INT, n, root);
        broadcast_pairs(MPI_2INTEGER, MPI_INTEGER, n, root);
        broadcast_pairs(MPI_2REAL, MPI_REAL, n, root);
        broadcast_pairs(MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, n, root);
    }
    CHECK(MPI_Type_free(&mixed));
}

/* ---- communicators that come and go ---- */

/* Returns the resident memory of this process in kilobytes. */
static long resident(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2)
        wrong("no /proc/self/statm", 0, 0);
    if (file != NULL)
        (void)fclose(file);
    return pages * 4;
}

enum { MOST_RANKS = 8 };

/* Calls the collectives that keep data with a communicator, if an algorithm is selected for them. */
static void use_others(MPI_Comm comm) {
    int got[MOST_RANKS] = {0}, ones[MOST_RANKS], at[MOST_RANKS], mine[MOST_RANKS], sum = 0;
    for (int i = 0; i < size; i++) {
        ones[i] = 1;
        at[i] = i;
        mine[i] = 10 * rank + i;
    }
    if (in_environment("COLL_REDUCE")) {
        CHECK(MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, size - 1, comm));
        if (rank == size - 1 && sum != size * (size - 1) / 2)
            wrong("MPI_Reduce on a new communicator", sum, size);
    }
    if (in_environment("COLL_GATHER")) {
        CHECK(MPI_Gather(&mine[1], 1, MPI_INT, got, 1, MPI_INT, 0, comm));
        if (rank == 0 && got[size - 1] != 10 * (size - 1) + 1)
            wrong("MPI_Gather on a new communicator", got[size - 1], size);
    }
    if (in_environment("COLL_ALLTOALLV")) {
        CHECK(MPI_Alltoallv(mine, ones, at, MPI_INT, got, ones, at, MPI_INT, comm));
        if (got[size - 1] != 10 * (size - 1) + rank)
            wrong("MPI_Alltoallv on a new communicator", got[size - 1], size);
    }
}

static void use(MPI_Comm comm) {
    int value = rank == 0 ? 5 : 0, sum = 0;
    CHECK(MPI_Bcast(&value, 1, MPI_INT, 0, comm));
    CHECK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(MPI_Barrier(comm));
    if (value != 5 || sum != 5 * size)
        wrong("a result on a new communicator", value, sum);
}

static void test_churn(int n) {
    long settled = 0;
    for (int i = 0; i < n; i++) {
        MPI_Comm comm;
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        use(comm);
        use_others(comm);
        CHECK(MPI_Comm_free(&comm));
        if (i == n / 10)
            settled = resident();
    }
    /* A leak of as little as 32 bytes for each communicator would be more than this for 10^5. */
    long growth = resident() - settled;
    if (growth > 2048 + n / 40)
        wrong("memory grew by this many kB", (int)growth, n);
}

static void test_leave(void) {
    MPI_Comm comm[20], half;
    for (int i = 0; i < 20; i++) {
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
        use(comm[i]);
    }
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    int value = 1;
    CHECK(MPI_Bcast(&value, 1, MPI_INT, 0, half));
    CHECK(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF));
    use(MPI_COMM_WORLD);
}

/* ---- large counts ---- */

/* MPI-4's functions with counts of MPI_Count go to the MPI library. */
static int test_large(void) {
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
    char page[4096];
    memset(page, rank == 0 ? 7 : 0, sizeof page);
    CHECK(MPI_Bcast_c(page, 4096, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (page[0] != 7 || page[4095] != 7)
        wrong("MPI_Bcast_c", page[0], page[4095]);
    return 1;
#else
    return 0;
#endif
}

/* Broadcasts whose count fits an int but whose bytes do not, with a basic and a derived type; and one of the largest
 * count. */
static void test_huge(void) {
    enum { BLOCK = 1 << 20, BLOCKS = 257 };
    const int n = BLOCK * BLOCKS;
    double *buffer = malloc((size_t)n * sizeof *buffer);
    MPI_Datatype block;
    CHECK(MPI_Type_contiguous(BLOCK, MPI_DOUBLE, &block));
    CHECK(MPI_Type_commit(&block));
    for (int derived = 0; derived < 2; derived++) {
        for (int i = 0; i < n; i++)
            buffer[i] = rank == derived ? i + derived : -1;
        CHECK(MPI_Bcast(buffer, derived ? BLOCKS : n, derived ? block : MPI_DOUBLE, derived, MPI_COMM_WORLD));
        for (int i = 0; i < n; i++)
            if (buffer[i] != i + derived) {
                wrong("another element than the root sent", i, derived);
                break;
            }
    }
    for (int i = 0; i < n; i++)
        buffer[i] = rank == 1 ? 3.0 * i : -1;
    CHECK(MPI_Bcast(buffer, INT_MAX, MPI_BYTE, 1, MPI_COMM_WORLD));
    for (int i = 0; i < INT_MAX / (int)sizeof *buffer; i++)
        if (buffer[i] != 3.0 * i) {
            wrong("another byte than the root sent", i, 1);
            break;
        }
    CHECK(MPI_Type_free(&block));
    free(buffer);
}

enum { FILLED = 255, ELEMENT = 256 };

/* The bitwise or of the filled bytes of elements. */
static void or_filled(void *in, void *inout, int *n, MPI_Datatype *type) {
    const char *x = in;
    char *y = inout;
    (void)type;
    for (int i = 0; i < *n; i++, x += ELEMENT, y += ELEMENT)
        for (int k = 0; k < FILLED; k++)
            y[k] |= x[k];
}

/* The last rank is the root, which copies its own elements first. */
static void test_gaps(void) {
    const int n = INT_MAX / FILLED + 2;
    char *sent = calloc((size_t)n, ELEMENT), *got = rank == size - 1 ? malloc((size_t)n * ELEMENT) : NULL;
    MPI_Datatype filled, element;
    MPI_Op op;
    CHECK(MPI_Type_contiguous(FILLED, MPI_BYTE, &filled));
    CHECK(MPI_Type_create_resized(filled, 0, ELEMENT, &element));
    CHECK(MPI_Type_commit(&element));
    CHECK(MPI_Op_create(or_filled, 1, &op));
    for (size_t i = 0; i < (size_t)n; i++)
        sent[i * ELEMENT + i % FILLED] = (char)(1 << rank);
    CHECK(MPI_Reduce(sent, got, n, element, op, size - 1, MPI_COMM_WORLD));
    for (size_t i = 0; i < (size_t)n && got != NULL; i++)
        if (got[i * ELEMENT + i % FILLED] != (1 << size) - 1) {
            wrong("another result of a reduction", got[i * ELEMENT + i % FILLED], (1 << size) - 1);
            break;
        }
    CHECK(MPI_Op_free(&op));
    CHECK(MPI_Type_free(&element));
    CHECK(MPI_Type_free(&filled));
    free(sent);
    free(got);
}

/* ---- columns of matrices ---- */

enum { ROWS = 6, COLUMNS = 4, ENTRIES = ROWS * COLUMNS };

/* Makes a type of one column of a matrix that is stored row by row; the next column begins one entry later. */
static MPI_Datatype make_column(int rows, int columns) {
    MPI_Datatype entries, column;
    CHECK(MPI_Type_vector(rows, 1, columns, MPI_INT, &entries));
    CHECK(MPI_Type_create_resized(entries, 0, sizeof(int), &column));
    CHECK(MPI_Type_free(&entries));
    CHECK(MPI_Type_commit(&column));
    return column;
}

/* Entry i of the block from one rank to another. */
static int entry(int from, int to, int i) {
    return (from * size + to) * ENTRIES + i;
}

/* Places of entry i: of a block that is sent or received as the columns of a matrix, and of the block of a rank that is
 * a column of a matrix with one for each rank. */
static int transposed(int i) {
    return i % ROWS * COLUMNS + i / ROWS;
}

static int alternate(int block, int i) {
    return i * size + block;
}

static void expect(int got, int wanted, const char *what) {
    if (got != wanted)
        wrong(what, got, wanted);
}

/* From the columns of one matrix on each rank to one column for each rank on the root. */
static void gather_columns(int root, MPI_Datatype own, MPI_Datatype each) {
    int sent[ENTRIES], *got = calloc((size_t)size * ENTRIES, sizeof *got);
    for (int i = 0; i < ENTRIES; i++)
        sent[transposed(i)] = entry(rank, root, i);
    CHECK(MPI_Gather(sent, COLUMNS, own, got, 1, each, root, MPI_COMM_WORLD));
    for (int k = 0; k < size * ENTRIES && rank == root; k++)
        expect(got[alternate(k / ENTRIES, k % ENTRIES)], entry(k / ENTRIES, root, k % ENTRIES), "MPI_Gather");
    CHECK(MPI_Allgather(sent, COLUMNS, own, got, 1, each, MPI_COMM_WORLD));
    for (int k = 0; k < size * ENTRIES; k++)
        expect(got[alternate(k / ENTRIES, k % ENTRIES)], entry(k / ENTRIES, root, k % ENTRIES), "MPI_Allgather");
    free(got);
}

static void scatter_columns(int root, MPI_Datatype own, MPI_Datatype each) {
    int got[ENTRIES] = {0}, *sent = malloc((size_t)size * ENTRIES * sizeof *sent);
    for (int k = 0; k < size * ENTRIES; k++)
        sent[alternate(k / ENTRIES, k % ENTRIES)] = entry(root, k / ENTRIES, k % ENTRIES);
    CHECK(MPI_Scatter(sent, 1, each, got, COLUMNS, own, root, MPI_COMM_WORLD));
    for (int i = 0; i < ENTRIES; i++)
        expect(got[transposed(i)], entry(root, rank, i), "MPI_Scatter");
    free(sent);
}

/* From the rows of a matrix to the columns of another one, as in a transposition. */
static void exchange_columns(MPI_Datatype each) {
    int *sent = malloc((size_t)size * ENTRIES * sizeof *sent), *got = calloc((size_t)size * ENTRIES, sizeof *got);
    for (int k = 0; k < size * ENTRIES; k++)
        sent[k] = entry(rank, k / ENTRIES, k % ENTRIES);
    CHECK(MPI_Alltoall(sent, ENTRIES, MPI_INT, got, 1, each, MPI_COMM_WORLD));
    for (int k = 0; k < size * ENTRIES; k++)
        expect(got[alternate(k / ENTRIES, k % ENTRIES)], entry(k / ENTRIES, rank, k % ENTRIES), "MPI_Alltoall");
    free(sent);
    free(got);
}

static void test_columns(void) {
    MPI_Datatype own = make_column(ROWS, COLUMNS), each = make_column(ENTRIES, size);
    for (int root = 0; root < size; root++) {
        gather_columns(root, own, each);
        scatter_columns(root, own, each);
    }
    exchange_columns(each);
    CHECK(MPI_Type_free(&own));
    CHECK(MPI_Type_free(&each));
}

/* ---- operations that are not defined ---- */

/* If the MPI library returns an error, every rank has to; if it reduces anyway, every rank has to. */
static void test_undefined(void) {
    const MPI_Op ops[] = {MPI_LXOR, MPI_BAND, MPI_MAXLOC, MPI_MAX, MPI_SUM};
    const MPI_Datatype types[] = {MPI_LONG_DOUBLE, MPI_DOUBLE, MPI_INT, MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT};
    long double in[800] = {0}, out[800];
    int counts[64];
    for (int i = 0; i < size; i++)
        counts[i] = 100;
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < 25; i++) {
        MPI_Op op = ops[i / 5];
        MPI_Datatype type = types[i % 5];
        int expected = PMPI_Allreduce(in, out, 100, type, op, MPI_COMM_WORLD) == MPI_SUCCESS;
        if ((MPI_Reduce(in, out, 100, type, op, 0, MPI_COMM_WORLD) == MPI_SUCCESS) != expected)
            wrong("MPI_Reduce by an operation that is not defined", i, expected);
        if ((MPI_Allreduce(in, out, 100, type, op, MPI_COMM_WORLD) == MPI_SUCCESS) != expected)
            wrong("MPI_Allreduce by an operation that is not defined", i, expected);
        if (size * 100 <= 800 &&
            (MPI_Reduce_scatter(in, out, counts, type, op, MPI_COMM_WORLD) == MPI_SUCCESS) != expected)
            wrong("MPI_Reduce_scatter by an operation that is not defined", i, expected);
    }
}

int main(int argc, char *argv[]) {
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 100, done = 1;
    CHECK(strcmp(what, "unseen") == 0 ? PMPI_Init(&argc, &argv) : MPI_Init(&argc, &argv));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (strcmp(what, "types") == 0)
        test_types(number);
    else if (strcmp(what, "churn") == 0)
        test_churn(number);
    else if (strcmp(what, "leave") == 0)
        test_leave();
    else if (strcmp(what, "large") == 0)
        done = test_large();
    else if (strcmp(what, "huge") == 0)
        test_huge();
    else if (strcmp(what, "gaps") == 0)
        test_gaps();
    else if (strcmp(what, "columns") == 0)
        test_columns();
    else if (strcmp(what, "unseen") == 0)
        use(MPI_COMM_WORLD);
    else if (strcmp(what, "undefined") == 0)
        test_undefined();
    else
        wrong("no such mode", 0, 0);
    int any = finish(failures);
    return done ? any : 77;
}
