/*
 * Collectives that algorithms call on the communicators that they create: the MPI library's own, or (COLL_BASE=ompi)
 * this library's re-implementation of Open MPI's default decisions. The simulator's own variants send other messages:
 * with them the levels of a hierarchy would run other algorithms than the default that they are compared with.
 */
#include "algorithms/base.h"
#include "algorithms/ompi.h"
#include "core/message.h"
#include "core/settings.h"

static int prepare(struct call *call, MPI_Comm comm, int count, MPI_Datatype type) {
    int size;
    call->comm = comm;
    call->count = count;
    call->type = type;
    call->params = (struct params){.fanout = 1, .radix = 4};
    TRY(PMPI_Comm_rank(comm, &call->rank));
    TRY(PMPI_Comm_size(comm, &call->size));
    TRY(PMPI_Type_size(type, &size));
    call->bytes = (size_t)count * (size_t)size;
    return MPI_SUCCESS;
}

int coll_base_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_BCAST, .recv = buffer, .root = root};
    int rc = COLL_USE_DEFAULT;
    TRY(prepare(&call, comm, count, type));
    if (call.size == 1)
        return MPI_SUCCESS;
    if (coll_base_is_ompi() && call.bytes > 0)
        rc = ompi_bcast_default(&call);
    return rc == COLL_USE_DEFAULT ? PMPI_Bcast(buffer, count, type, root, comm) : rc;
}

int coll_base_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_REDUCE, .send = send, .recv = recv, .op = op, .root = root};
    int rc = COLL_USE_DEFAULT;
    TRY(prepare(&call, comm, count, type));
    if (call.size == 1) /* a binary tree of one rank ends the simulator */
        return send == MPI_IN_PLACE ? MPI_SUCCESS : coll_copy(send, recv, count, type);
    if (coll_base_is_ompi() && call.bytes > 0)
        rc = ompi_reduce_default(&call);
    return rc == COLL_USE_DEFAULT ? PMPI_Reduce(send, recv, count, type, op, root, comm) : rc;
}

int coll_base_gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                     MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct call call = {.kind = COLL_GATHER,
                        .send = send,
                        .recv = recv,
                        .block_count = recv_count,
                        .block_type = recv_type,
                        .root = root};
    int rc = COLL_USE_DEFAULT;
    TRY(prepare(&call, comm, send_count, send_type));
    if (coll_base_is_ompi() && call.bytes > 0 && call.size > 1)
        rc = ompi_gather_default(&call);
    return rc == COLL_USE_DEFAULT ? PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm)
                                  : rc;
}
