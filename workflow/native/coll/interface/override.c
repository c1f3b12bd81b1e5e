/* The MPI functions that programs call. Each calls the MPI library unless an algorithm is selected for it. */
/* All other symbols are hidden by a compiler option. MPICH's header, unlike Open MPI's, does not make these visible. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include "core/cache.h"
#include "core/counters.h"
#include "core/message.h"
#include "core/placement.h"
#include "core/signature.h"
#include "interface/registry.h"
#include "interface/select.h"

#include <limits.h>
#include <stdlib.h>

static bool is_intra(MPI_Comm comm, int *size) {
    int inter;
    return comm != MPI_COMM_NULL && PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter &&
           PMPI_Comm_size(comm, size) == MPI_SUCCESS && *size > 1;
}

static bool take_type(struct call *call, int count, MPI_Datatype type) {
    long long size;
    call->count = count;
    call->type = type;
    if (count <= 0 || type == MPI_DATATYPE_NULL || coll_type_bytes(type, &size) != MPI_SUCCESS)
        return false;
    call->bytes = (size_t)count * (size_t)size;
    return call->bytes > 0;
}

/* If the rules depend on the size, the ranks agree on that of an alltoallv: the most that any rank sends. */
static int decide_size(const struct call *call, int nodes, int ppn, size_t *bytes) {
    unsigned long long mine = call->bytes, most = mine;
    if (call->kind == COLL_ALLTOALLV && coll_select_needs_size(call->kind, nodes, ppn))
        TRY(PMPI_Allreduce(&mine, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, call->comm));
    *bytes = (size_t)most;
    return MPI_SUCCESS;
}

static int run_chosen(struct call *call) {
    int nodes = 0, ppn = 0;
    size_t bytes = call->bytes;
    if (coll_select_needs_placement(call->kind)) {
        TRY(coll_placement(call->cache));
        nodes = call->cache->placement.nodes;
        ppn = call->cache->placement.ppn;
        TRY(decide_size(call, nodes, ppn, &bytes));
    }
    struct choice choice = coll_select(call->kind, nodes, ppn, bytes);
    if (choice.algorithm == NULL)
        return COLL_USE_DEFAULT;
    call->params = choice.params;
    if (call->kind == COLL_BCAST) /* other ranks may describe the elements by another type */
        return coll_run_uniform(call, choice.algorithm->run);
    return choice.algorithm->run(call);
}

/*
 * Returns whether MPI_IN_PLACE, if given, is what this rank may give instead of the buffer of its own data, and whether
 * a rank that reduces to a buffer sends another one.
 */
static bool buffers_are_valid(const struct call *call, MPI_Comm user) {
    bool scatters = call->kind == COLL_SCATTER;
    bool rooted = scatters || call->kind == COLL_REDUCE || call->kind == COLL_GATHER;
    bool reduces = call->kind == COLL_REDUCE || call->kind == COLL_ALLREDUCE;
    const void *own = scatters ? call->recv : call->send, *other = scatters ? call->send : call->recv;
    bool same = reduces && own == other && own != MPI_BOTTOM;
    int rank = call->root;
    if (own != MPI_IN_PLACE && other != MPI_IN_PLACE && !same)
        return true;
    if (rooted && PMPI_Comm_rank(user, &rank) != MPI_SUCCESS)
        return false;
    return rank == call->root ? other != MPI_IN_PLACE && !same : own != MPI_IN_PLACE;
}

/*
 * Leaves calls with invalid arguments, an intercommunicator, a single rank or nothing to send to the MPI library, which
 * handles them. An error in the algorithm is raised on the caller's communicator.
 */
static int run(struct call *call, MPI_Comm user, bool valid) {
    int size;
    if (!valid || !is_intra(user, &size) || call->root < 0 || call->root >= size || !buffers_are_valid(call, user))
        return COLL_USE_DEFAULT;
    int rc = coll_cache_get(user, &call->cache);
    if (rc == MPI_SUCCESS) {
        call->comm = call->cache->comm;
        call->rank = call->cache->rank;
        call->size = call->cache->size;
        rc = run_chosen(call);
    }
    coll_count_call(call->kind, rc == COLL_USE_DEFAULT);
    if (rc != COLL_USE_DEFAULT && rc != MPI_SUCCESS)
        (void)PMPI_Comm_call_errhandler(user, rc);
    return rc;
}

/*
 * If no algorithm is selected, a call must only cost a test and a jump. The rest is in separate functions, so that the
 * test needs no stack frame.
 */
#define NOINLINE static __attribute__((noinline)) int

NOINLINE bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_BCAST, .recv = buffer, .root = root};
    int rc = run(&call, comm, take_type(&call, count, type));
    return rc == COLL_USE_DEFAULT ? PMPI_Bcast(buffer, count, type, root, comm) : rc;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return coll_is_active(COLL_BCAST) ? bcast(buffer, count, type, root, comm)
                                      : PMPI_Bcast(buffer, count, type, root, comm);
}

NOINLINE barrier(MPI_Comm comm) {
    struct call call = {.kind = COLL_BARRIER, .type = MPI_BYTE};
    int rc = run(&call, comm, true);
    return rc == COLL_USE_DEFAULT ? PMPI_Barrier(comm) : rc;
}

int MPI_Barrier(MPI_Comm comm) {
    return coll_is_active(COLL_BARRIER) ? barrier(comm) : PMPI_Barrier(comm);
}

NOINLINE reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_REDUCE, .send = send, .recv = recv, .op = op, .root = root};
    int rc = run(&call, comm, take_type(&call, count, type) && op != MPI_OP_NULL && coll_has_operation(op, type));
    return rc == COLL_USE_DEFAULT ? PMPI_Reduce(send, recv, count, type, op, root, comm) : rc;
}

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    return coll_is_active(COLL_REDUCE) ? reduce(send, recv, count, type, op, root, comm)
                                       : PMPI_Reduce(send, recv, count, type, op, root, comm);
}

NOINLINE allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct call call = {.kind = COLL_ALLREDUCE, .send = send, .recv = recv, .op = op};
    int rc = run(&call, comm, take_type(&call, count, type) && op != MPI_OP_NULL && coll_has_operation(op, type));
    return rc == COLL_USE_DEFAULT ? PMPI_Allreduce(send, recv, count, type, op, comm) : rc;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return coll_is_active(COLL_ALLREDUCE) ? allreduce(send, recv, count, type, op, comm)
                                          : PMPI_Allreduce(send, recv, count, type, op, comm);
}

NOINLINE gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_GATHER, .send = send, .recv = recv, .root = root};
    bool in_place = send == MPI_IN_PLACE;
    bool valid = take_type(&call, in_place ? recv_count : send_count, in_place ? recv_type : send_type);
    call.block_count = recv_count;
    call.block_type = recv_type;
    int rc = run(&call, comm, valid);
    return rc == COLL_USE_DEFAULT ? PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm)
                                  : rc;
}

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
               MPI_Datatype recv_type, int root, MPI_Comm comm) {
    return coll_is_active(COLL_GATHER)
               ? gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm)
               : PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

NOINLINE scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                 MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_SCATTER, .send = send, .recv = recv, .root = root};
    bool in_place = recv == MPI_IN_PLACE;
    bool valid = take_type(&call, in_place ? send_count : recv_count, in_place ? send_type : recv_type);
    call.block_count = send_count;
    call.block_type = send_type;
    int rc = run(&call, comm, valid);
    return rc == COLL_USE_DEFAULT ? PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm)
                                  : rc;
}

int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm) {
    return coll_is_active(COLL_SCATTER)
               ? scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm)
               : PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

NOINLINE allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                   MPI_Datatype recv_type, MPI_Comm comm) {
    struct call call = {.kind = COLL_ALLGATHER, .send = send, .recv = recv};
    bool in_place = send == MPI_IN_PLACE;
    bool valid = take_type(&call, in_place ? recv_count : send_count, in_place ? recv_type : send_type) &&
                 recv_count > 0 && recv_type != MPI_DATATYPE_NULL;
    call.block_count = recv_count;
    call.block_type = recv_type;
    int rc = run(&call, comm, valid);
    return rc == COLL_USE_DEFAULT ? PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm) : rc;
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm) {
    return coll_is_active(COLL_ALLGATHER)
               ? allgather(send, send_count, send_type, recv, recv_count, recv_type, comm)
               : PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

/* Describes the n blocks of an alltoall like those of an alltoallv. tables: room for 4 n numbers. */
static void take_blocks(struct call *call, int n, int send_count, int recv_count, int *tables) {
    for (int i = 0; i < n; i++) {
        tables[i] = send_count;
        tables[n + i] = i * send_count;
        tables[2 * n + i] = recv_count;
        tables[3 * n + i] = i * recv_count;
    }
    call->send_counts = tables;
    call->send_displs = tables + n;
    call->recv_counts = tables + 2 * n;
    call->recv_displs = tables + 3 * n;
}

/* Leaves calls to the MPI library of which an int cannot count all bytes: ranks may count in different types. */
static int run_alltoall(struct call *call, int send_count, int recv_count, MPI_Comm comm) {
    int n;
    if (!take_type(call, send_count, call->type) || recv_count <= 0 || call->recv_type == MPI_DATATYPE_NULL ||
        !is_intra(comm, &n) || call->bytes > (size_t)INT_MAX / (size_t)n)
        return COLL_USE_DEFAULT;
    int *tables = malloc(4 * (size_t)n * sizeof *tables);
    if (tables == NULL)
        return MPI_ERR_NO_MEM;
    take_blocks(call, n, send_count, recv_count, tables);
    int rc = run(call, comm, true);
    free(tables);
    return rc;
}

NOINLINE alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm) {
    bool in_place = send == MPI_IN_PLACE;
    struct call call = {.kind = COLL_ALLTOALL,
                        .in_place = in_place,
                        .send = in_place ? recv : send,
                        .recv = recv,
                        .type = in_place ? recv_type : send_type,
                        .recv_type = recv_type};
    int rc = run_alltoall(&call, in_place ? recv_count : send_count, recv_count, comm);
    return rc == COLL_USE_DEFAULT ? PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm) : rc;
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                 MPI_Datatype recv_type, MPI_Comm comm) {
    return coll_is_active(COLL_ALLTOALL)
               ? alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm)
               : PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

/* Adds up the counts. Returns false if there are none or one is negative, so that the MPI library reports the error. */
static bool add_up(const int counts[], int n, long *total) {
    *total = 0;
    for (int i = 0; counts != NULL && i < n; i++) {
        if (counts[i] < 0)
            return false;
        *total += counts[i];
    }
    return counts != NULL;
}

static bool take_alltoallv(struct call *call, MPI_Comm comm) {
    int size, bytes, n;
    long total, received;
    if (!is_intra(comm, &n) || call->type == MPI_DATATYPE_NULL || call->recv_type == MPI_DATATYPE_NULL ||
        PMPI_Type_size(call->type, &size) != MPI_SUCCESS || PMPI_Type_size(call->recv_type, &bytes) != MPI_SUCCESS ||
        !add_up(call->send_counts, n, &total) || !add_up(call->recv_counts, n, &received))
        return false;
    call->bytes = (size_t)total * (size_t)size;
    return true;
}

NOINLINE alltoallv(const void *send, const int send_counts[], const int send_displs[], MPI_Datatype send_type,
                   void *recv, const int recv_counts[], const int recv_displs[], MPI_Datatype recv_type,
                   MPI_Comm comm) {
    bool in_place = send == MPI_IN_PLACE;
    struct call call = {.kind = COLL_ALLTOALLV,
                        .in_place = in_place,
                        .send = in_place ? recv : send,
                        .recv = recv,
                        .type = in_place ? recv_type : send_type,
                        .recv_type = recv_type,
                        .send_counts = in_place ? recv_counts : send_counts,
                        .send_displs = in_place ? recv_displs : send_displs,
                        .recv_counts = recv_counts,
                        .recv_displs = recv_displs};
    int rc = run(&call, comm, take_alltoallv(&call, comm));
    return rc == COLL_USE_DEFAULT ? PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts,
                                                   recv_displs, recv_type, comm)
                                  : rc;
}

int MPI_Alltoallv(const void *send, const int send_counts[], const int send_displs[], MPI_Datatype send_type,
                  void *recv, const int recv_counts[], const int recv_displs[], MPI_Datatype recv_type, MPI_Comm comm) {
    return coll_is_active(COLL_ALLTOALLV)
               ? alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type, comm)
               : PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type,
                                comm);
}

/* Sets call->count to the sum of the counts, which every rank knows. */
static bool take_counts(struct call *call, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int n;
    long total;
    if (!is_intra(comm, &n) || op == MPI_OP_NULL || !add_up(counts, n, &total))
        return false;
    call->recv_counts = counts;
    call->op = op;
    return total == (int)total && take_type(call, (int)total, type) && coll_has_operation(op, type);
}

NOINLINE reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct call call = {.kind = COLL_REDUCE_SCATTER, .send = send, .recv = recv};
    int rc = run(&call, comm, take_counts(&call, counts, type, op, comm));
    return rc == COLL_USE_DEFAULT ? PMPI_Reduce_scatter(send, recv, counts, type, op, comm) : rc;
}

int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return coll_is_active(COLL_REDUCE_SCATTER) ? reduce_scatter(send, recv, counts, type, op, comm)
                                               : PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
}

static int reduce_scatter_block(struct call *call, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int n;
    if (count <= 0 || !is_intra(comm, &n))
        return COLL_USE_DEFAULT;
    int *counts = malloc((size_t)n * sizeof *counts);
    if (counts == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < n; i++)
        counts[i] = count;
    int rc = run(call, comm, take_counts(call, counts, type, op, comm));
    free(counts);
    return rc;
}

NOINLINE reduce_scatter_of_blocks(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                                  MPI_Comm comm) {
    struct call call = {.kind = COLL_REDUCE_SCATTER, .send = send, .recv = recv, .equal_counts = true};
    int rc = reduce_scatter_block(&call, count, type, op, comm);
    return rc == COLL_USE_DEFAULT ? PMPI_Reduce_scatter_block(send, recv, count, type, op, comm) : rc;
}

int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return coll_is_active(COLL_REDUCE_SCATTER) ? reduce_scatter_of_blocks(send, recv, count, type, op, comm)
                                               : PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}
