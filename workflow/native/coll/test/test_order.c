/*
 * Checks that the algorithms ompi_* do what Open MPI's own do, in the same order. For Open MPI 4.1 and 5.0: replaces
 * the internal functions that send, receive and wait, in their tables, by ones that record each operation. Then each
 * rank compares its record of MPI_<collective> (this library) with that of PMPI_<collective> (coll/tuned, with the
 * algorithm set by --mca).
 *
 *   mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_bcast_algorithm chain test_order
 *
 * with COLL_BCAST=ompi_chain. Algorithms libnbc_* are compared with the non-blocking PMPI_I<collective> (coll/libnbc):
 * only in what they start, as it waits in its progress function. Exits with 77 if the tables do not exist (another MPI
 * library).
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MAX_EVENTS = 1 << 16, EXIT_SKIP = 77 };

/* What: 's' send, 'S' start sending, 'r' receive, 'R' start receiving, 'w' wait. */
struct event {
    char what;
    int peer, mode; /* mode of a wait: event that started the receive, -1 for sends (which may share a request) */
    size_t bytes;   /* sent */
};
struct notes {
    int n;
    struct event events[MAX_EVENTS];
    void *request[MAX_EVENTS];
};
static struct notes own, theirs, *notes;

typedef int send_function(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm);
typedef int isend_function(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request *);
typedef int recv_function(void *, size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
typedef int irecv_function(void *, size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int wait_function(MPI_Request *, MPI_Status *);
typedef int wait_all_function(size_t, MPI_Request *, MPI_Status *);

static send_function *real_send;
static isend_function *real_isend, *real_isend_init;
static recv_function *real_recv;
static irecv_function *real_irecv, *real_irecv_init;
static wait_function *real_wait;
static wait_all_function *real_wait_all;

static void note(char what, int peer, int mode, size_t bytes, void *request) {
    if (notes == NULL || notes->n == MAX_EVENTS)
        return;
    notes->request[notes->n] = request;
    notes->events[notes->n++] = (struct event){what, peer, mode, bytes};
}

static size_t size_of(size_t count, MPI_Datatype type) {
    int size;
    CHECK(PMPI_Type_size(type, &size));
    return count * (size_t)size;
}

static int note_send(const void *b, size_t n, MPI_Datatype type, int to, int tag, int mode, MPI_Comm comm) {
    note('s', to, mode, size_of(n, type), NULL);
    return real_send(b, n, type, to, tag, mode, comm);
}

static int note_isend(const void *b, size_t n, MPI_Datatype type, int to, int tag, int mode, MPI_Comm comm,
                      MPI_Request *r) {
    int rc = real_isend(b, n, type, to, tag, mode, comm, r);
    note('S', to, mode, size_of(n, type), (void *)*r);
    return rc;
}

static int note_recv(void *b, size_t n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    note('r', from, 0, 0, NULL);
    return real_recv(b, n, type, from, tag, comm, status);
}

static int note_irecv(void *b, size_t n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *r) {
    int rc = real_irecv(b, n, type, from, tag, comm, r);
    note('R', from, 0, 0, (void *)*r);
    return rc;
}

/* Persistent requests, which coll/tuned starts in this order, count as started. */
static int note_isend_init(const void *b, size_t n, MPI_Datatype type, int to, int tag, int mode, MPI_Comm comm,
                           MPI_Request *r) {
    int rc = real_isend_init(b, n, type, to, tag, mode, comm, r);
    note('S', to, mode, size_of(n, type), (void *)*r);
    return rc;
}

static int note_irecv_init(void *b, size_t n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *r) {
    int rc = real_irecv_init(b, n, type, from, tag, comm, r);
    note('R', from, 0, 0, (void *)*r);
    return rc;
}

static void note_wait_for(MPI_Request request) {
    int i = notes == NULL ? -1 : notes->n - 1;
    while (i >= 0 && notes->request[i] != (void *)request)
        i--;
    if (i >= 0)
        note('w', -1, notes->events[i].what == 'S' ? -1 : i, 0, NULL);
}

static int note_wait(MPI_Request *request, MPI_Status *status) {
    note_wait_for(*request);
    return real_wait(request, status);
}

static int note_wait_all(size_t n, MPI_Request *requests, MPI_Status *statuses) {
    for (size_t i = 0; i < n; i++)
        note_wait_for(requests[i]);
    return real_wait_all(n, requests, statuses);
}

static void *replace(void **table, int index, void *function) {
    void *real = table[index];
    table[index] = function;
    return real;
}

#define REPLACE(real, table, index, function)                                                                          \
    do {                                                                                                               \
        void *real_ = replace(table, index, (void *)(size_t)(function));                                               \
        memcpy(&(real), &real_, sizeof real_);                                                                         \
    } while (0)

/* In version 5 there is one more function before these in the table. */
static int version_5;
static int hook(void) {
    void **pml = dlsym(RTLD_DEFAULT, "mca_pml"), **wait = dlsym(RTLD_DEFAULT, "ompi_request_functions");
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    CHECK(MPI_Get_library_version(version, &length));
    int more = version_5 = strstr(version, "Open MPI v5.") != NULL;
    if (pml == NULL || wait == NULL || (!more && strstr(version, "Open MPI v4.1") == NULL))
        return 0;
    REPLACE(real_irecv_init, pml, 6 + more, note_irecv_init);
    REPLACE(real_irecv, pml, 7 + more, note_irecv);
    REPLACE(real_recv, pml, 8 + more, note_recv);
    REPLACE(real_isend_init, pml, 9 + more, note_isend_init);
    REPLACE(real_isend, pml, 10 + more, note_isend);
    REPLACE(real_send, pml, 11 + more, note_send);
    REPLACE(real_wait, wait, 4, note_wait);
    REPLACE(real_wait_all, wait, 6, note_wait_all);
    return 1;
}

static int rank, size;

static void print_event(const char *who, const struct notes *which, int i) {
    const struct event *e = &which->events[i];
    if (i < which->n)
        fprintf(stderr, " %s: %c %d mode %d %zu bytes;", who, e->what, e->peer, e->mode, e->bytes);
    else
        fprintf(stderr, " %s: nothing more;", who);
}

static int same(const struct event *a, const struct event *b) {
    return a->what == b->what && a->peer == b->peer && a->mode == b->mode && a->bytes == b->bytes;
}

static int compare(const char *collective, int count, int root) {
    int i = 0;
    while (i < own.n && i < theirs.n && same(&own.events[i], &theirs.events[i]))
        i++;
    if (i == own.n && i == theirs.n)
        return 0;
    fprintf(stderr, "%s of %d from %d, rank %d of %d, event %d of %d and %d:", collective, count, root, rank, size, i,
            own.n, theirs.n);
    print_event("own", &own, i);
    print_event("Open MPI", &theirs, i);
    fprintf(stderr, "\n");
    return 1;
}

static int is_libnbc(const char *variable) {
    return in_environment(variable) && strncmp(getenv(variable), "libnbc_", strlen("libnbc_")) == 0;
}

static void begin(struct notes *which) {
    memset(which, 0, sizeof which->n + sizeof which->events);
    notes = which;
}

#define COMPARE(name, function, arguments)                                                                             \
    do {                                                                                                               \
        begin(&own);                                                                                                   \
        CHECK(MPI_##function arguments);                                                                               \
        begin(&theirs);                                                                                                \
        CHECK(PMPI_##function arguments);                                                                              \
        notes = NULL;                                                                                                  \
        differences += compare(name, count, root);                                                                     \
    } while (0)

#define COMPARE_NON_BLOCKING(name, function, arguments, non_blocking, arguments_and_request)                           \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        begin(&own);                                                                                                   \
        CHECK(MPI_##function arguments);                                                                               \
        begin(&theirs);                                                                                                \
        CHECK(PMPI_##non_blocking arguments_and_request);                                                              \
        CHECK(PMPI_Wait(&request, MPI_STATUS_IGNORE));                                                                 \
        notes = NULL;                                                                                                  \
        differences += compare(name, count, root);                                                                     \
    } while (0)

/* Counts of a reduce-scatter whose sum is `count`; `uneven`: every third is 0. */
static void split(int count, int uneven, int counts[]) {
    int ranks = uneven ? size - (size + 2) / 3 : size, used = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = uneven && i % 3 == 0 ? 0 : count / ranks + (used < count % ranks);
        used += counts[i] > 0;
    }
}

static int compare_non_blocking(int *in, int *out, int count, int root) {
    int differences = 0, counts[size];
    split(count, 0, counts);
    if (is_libnbc("COLL_BCAST"))
        COMPARE_NON_BLOCKING("ibcast", Bcast, (in, count, MPI_INT, root, MPI_COMM_WORLD), Ibcast,
                             (in, count, MPI_INT, root, MPI_COMM_WORLD, &request));
    if (is_libnbc("COLL_ALLREDUCE"))
        COMPARE_NON_BLOCKING("iallreduce", Allreduce, (in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD), Iallreduce,
                             (in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    if (is_libnbc("COLL_REDUCE_SCATTER"))
        COMPARE_NON_BLOCKING("ireduce_scatter", Reduce_scatter, (in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                             Ireduce_scatter, (in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    return differences;
}

/*
 * Open MPI omits empty messages in linear from 4.1.5 on and in pairwise from 5.0 on; the library only in linear. So
 * other ranks get empty blocks where both do the same. The own block is empty: pairwise of 5.0 sends it as a message.
 */
static int compare_alltoallv(int *in, int *out, int count, int root) {
    const char *algorithm = getenv("COLL_ALLTOALLV");
    int empty = strcmp(algorithm, version_5 ? "ompi_linear" : "ompi_pairwise") == 0;
    int differences = 0, sent[size], received[size], at[size];
    for (int i = 0; i < size; i++) {
        at[i] = i * count;
        sent[i] = i == rank || (empty && (2 * rank + i) % 3 == 0) ? 0 : count - (rank + i) % 2 * count / 2;
        received[i] = i == rank || (empty && (2 * i + rank) % 3 == 0) ? 0 : count - (rank + i) % 2 * count / 2;
    }
    COMPARE("alltoallv", Alltoallv, (in, sent, at, MPI_INT, out, received, at, MPI_INT, MPI_COMM_WORLD));
    return differences;
}

static int compare_all(int *in, int *out, int count, int root) {
    int differences = compare_non_blocking(in, out, count, root), counts[size];
    if (in_environment("COLL_BCAST") && !is_libnbc("COLL_BCAST"))
        COMPARE("bcast", Bcast, (in, count, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_REDUCE"))
        COMPARE("reduce", Reduce, (in, out, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLREDUCE") && !is_libnbc("COLL_ALLREDUCE"))
        COMPARE("allreduce", Allreduce, (in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (in_environment("COLL_GATHER"))
        COMPARE("gather", Gather, (in, count, MPI_INT, out, count, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_SCATTER"))
        COMPARE("scatter", Scatter, (out, count, MPI_INT, in, count, MPI_INT, root, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLGATHER"))
        COMPARE("allgather", Allgather, (in, count, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALL"))
        COMPARE("alltoall", Alltoall, (in, count, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD));
    if (in_environment("COLL_ALLTOALLV"))
        differences += compare_alltoallv(in, out, count, root);
    if (in_environment("COLL_REDUCE_SCATTER") && !is_libnbc("COLL_REDUCE_SCATTER"))
        for (int uneven = 0; uneven < 2; uneven++) {
            split(count, uneven, counts);
            COMPARE("reduce_scatter", Reduce_scatter, (in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        }
    if (in_environment("COLL_BARRIER"))
        COMPARE("barrier", Barrier, (MPI_COMM_WORLD));
    return differences;
}

int main(int argc, char *argv[]) {
    static const int counts[] = {1, 3, 10, 250, 2499, 17500, 140000};
    enum { MOST = 140000 };
    int differences;
    CHECK(MPI_Init(&argc, &argv));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *in = calloc(2 * (size_t)size * MOST, sizeof *in), *out = in + (size_t)size * MOST;
    differences = compare_all(in, out, 1, 0); /* nothing is recorded yet: creates the private communicator */
    if (!hook())
        exit(EXIT_SKIP);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int root = 0; root < size; root += size / 3 + 1)
            differences += compare_all(in, out, counts[i], root);
    free(in);
    return finish(differences);
}
