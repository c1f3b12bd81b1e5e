#include "core/message.h"
#include "core/own.h"
#include "core/settings.h"

#include <stdlib.h>
#include <string.h>

#if COLL_SIMULATED
#include "../simulator/sender.h"
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#endif

int coll_extent(MPI_Datatype type, struct extent *extent) {
    TRY(PMPI_Type_size(type, &extent->size));
    TRY(PMPI_Type_get_extent(type, &extent->lb, &extent->extent));
    return PMPI_Type_get_true_extent(type, &extent->true_lb, &extent->true_extent);
}

static size_t span(const struct extent *extent, size_t count) {
    MPI_Aint step = extent->extent < 0 ? -extent->extent : extent->extent;
    return count == 0 ? 0 : (size_t)extent->true_extent + (count - 1) * (size_t)step;
}

int coll_buffer(const struct extent *extent, size_t count, char **raw, char **address) {
    size_t bytes = span(extent, count);
    *raw = malloc(bytes == 0 ? 1 : bytes);
    if (*raw == NULL)
        return MPI_ERR_NO_MEM;
    /* With a negative extent, element 0 is the last one in memory. */
    MPI_Aint first = extent->extent < 0 && count > 0 ? (MPI_Aint)(count - 1) * -extent->extent : 0;
    *address = *raw + first - extent->true_lb;
    return MPI_SUCCESS;
}

static int copy_packed(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type) {
    int bytes, packed = 0, unpacked = 0;
    TRY(PMPI_Pack_size(count, type, MPI_COMM_SELF, &bytes));
    char *buffer = malloc(bytes == 0 ? 1 : (size_t)bytes);
    if (buffer == NULL)
        return MPI_ERR_NO_MEM;
    int rc = PMPI_Pack(from, count, type, buffer, bytes, &packed, MPI_COMM_SELF);
    if (rc == MPI_SUCCESS)
        rc = PMPI_Unpack(buffer, packed, &unpacked, to, to_count, to_type, MPI_COMM_SELF);
    free(buffer);
    return rc;
}

static int copy_in_pieces(const void *from, void *to, int count, MPI_Datatype type, const struct extent *extent) {
    long each = extent->size > 0 && extent->size < PIECE ? PIECE / extent->size : 1;
    for (long first = 0; first < count; first += each) {
        int n = (int)(count - first < each ? count - first : each);
        TRY(copy_packed(coll_at(from, first, extent->extent), n, type, coll_at(to, first, extent->extent), n, type));
    }
    return MPI_SUCCESS;
}

bool coll_is_dense(const struct extent *extent) {
    return extent->size == extent->extent && extent->true_lb == 0 && extent->size == extent->true_extent;
}

int coll_convert(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type) {
    struct extent extent;
    if (count == 0 || (from == to && type == to_type))
        return MPI_SUCCESS;
    TRY(coll_extent(type, &extent));
    if (type != to_type)
        return copy_packed(from, count, type, to, to_count, to_type);
    if (!coll_is_dense(&extent))
        return copy_in_pieces(from, to, count, type, &extent);
    memcpy(to, from, (size_t)count * (size_t)extent.size);
    return MPI_SUCCESS;
}

int coll_copy(const void *from, void *to, int count, MPI_Datatype type) {
    return coll_convert(from, count, type, to, count, type);
}

int coll_reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op) {
    TRY(PMPI_Reduce_local(from, to, count, type, op));
#if COLL_SIMULATED
    int size;
    TRY(PMPI_Type_size(type, &size));
    if (coll_reduce_mb_s() > 0)
        smpi_execute_benched((double)count * size / (1e6 * (double)coll_reduce_mb_s()));
#endif
    return MPI_SUCCESS;
}

static struct own_message {
    MPI_Comm self; /* a duplicate of MPI_COMM_SELF that returns errors */
    bool attached; /* in the simulator: whether a buffer for MPI_Bsend is attached */
} initial = {.self = MPI_COMM_NULL};

OWN_VARIABLES(OWN_MESSAGE, own_message)

int coll_operations_init(void) {
    TRY(PMPI_Comm_dup(MPI_COMM_SELF, &own_message()->self));
    return PMPI_Comm_set_errhandler(own_message()->self, MPI_ERRORS_RETURN);
}

/* Nothing is there if the library does not know that MPI was initialised: by a function that it does not replace. */
int coll_operations_free(void) {
    return own_message()->self == MPI_COMM_NULL ? MPI_SUCCESS : PMPI_Comm_free(&own_message()->self);
}

static bool is_own_operation(MPI_Op op) {
    const MPI_Op own[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
                          MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (op == own[i])
            return true;
    return false;
}

bool coll_has_operation(MPI_Op op, MPI_Datatype type) {
    /* Caches the last answer: programs repeat their reductions, and handles of predefined objects never change. */
    static _Thread_local MPI_Op last_op;
    static _Thread_local MPI_Datatype last_type;
    static _Thread_local bool known, found;
    int integers, addresses, types, combiner;
    if (COLL_SIMULATED || !is_own_operation(op))
        return true;
    if (known && op == last_op && type == last_type)
        return found;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
        combiner != MPI_COMBINER_NAMED)
        return false;
    long double one[4] = {0}, result[4]; /* the largest type consists of two of these */
    found = PMPI_Allreduce(one, result, 1, type, op, own_message()->self) == MPI_SUCCESS;
    last_op = op;
    last_type = type;
    known = true;
    return found;
}

bool coll_commutes(const struct call *call) {
    int commutes = 0;
    return PMPI_Op_commutative(call->op, &commutes) == MPI_SUCCESS && commutes;
}

#if COLL_SIMULATED
/* Sets *copied: whether MPI_Send copies the message, so that it may return before the receive. */
static int is_copied(const struct sender *core, const struct call *call, int count, bool *copied) {
    int size;
    TRY(PMPI_Type_size(call->type, &size));
    double bytes = (double)size * count;
    *copied = bytes >= core->copied_from && bytes < core->copied_to;
    return MPI_SUCCESS;
}

/* Sends with MPI_Bsend. SMPI requires a buffer, which it never uses. */
static int send_copied(const struct sender *core, const struct call *call, const void *buffer, int count, int to) {
    static char unused;
    if (!own_message()->attached)
        TRY(PMPI_Buffer_attach(&unused, (int)core->copied_to + MPI_BSEND_OVERHEAD));
    own_message()->attached = true;
    return PMPI_Bsend(buffer, count, call->type, to, call->kind, call->comm);
}

int coll_send(const struct call *call, const void *buffer, int count, int to) {
    /* Only the platform of a calibrated machine attaches data to a core. */
    struct sender *core = sg_host_get_data(sg_host_self());
    bool copied;
    if (core == NULL)
        return PMPI_Send(buffer, count, call->type, to, call->kind, call->comm);
    TRY(is_copied(core, call, count, &copied));
    core->ended = 0;
    if (copied)
        TRY(send_copied(core, call, buffer, count, to));
    else
        TRY(PMPI_Send(buffer, count, call->type, to, call->kind, call->comm));
    double rest = core->ended - simgrid_get_clock(); /* negative if it has ended */
    if (rest > 0)
        sg_actor_sleep_for(rest);
    return MPI_SUCCESS;
}
#else
int coll_send(const struct call *call, const void *buffer, int count, int to) {
    return PMPI_Send(buffer, count, call->type, to, call->kind, call->comm);
}
#endif

int coll_isend(const struct call *call, const void *buffer, int count, int to, MPI_Request *request) {
#if COLL_SIMULATED
    struct sender *core = sg_host_get_data(sg_host_self());
    if (core != NULL && call->kind == COLL_SCATTER) {
        core->distinct = (double)call->bytes * call->size;
        int rc = PMPI_Isend(buffer, count, call->type, to, call->kind, call->comm, request);
        core->distinct = 0;
        return rc;
    }
#endif
    return PMPI_Isend(buffer, count, call->type, to, call->kind, call->comm, request);
}

int coll_recv(const struct call *call, void *buffer, int count, int from, MPI_Status *status) {
    return PMPI_Recv(buffer, count, call->type, from, call->kind, call->comm, status);
}

int coll_irecv(const struct call *call, void *buffer, int count, int from, MPI_Request *request) {
    return PMPI_Irecv(buffer, count, call->type, from, call->kind, call->comm, request);
}

/* Called after an error, so that no receive writes into a buffer that is about to be freed. */
void coll_cancel(int n, MPI_Request requests[]) {
    for (int i = 0; i < n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        if (PMPI_Cancel(&requests[i]) == MPI_SUCCESS)
            (void)PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
}

/* Waits for all requests; returns the first real error, as a collective may not return MPI_ERR_IN_STATUS. */
int coll_wait_sends(int n, MPI_Request requests[]) {
    if (n == 0)
        return MPI_SUCCESS;
    int rc = PMPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (rc != MPI_ERR_IN_STATUS)
        return rc;
    for (int i = 0; i < n; i++) {
        int error = requests[i] == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS)
            return error;
    }
    return MPI_ERR_OTHER;
}

int coll_wait_all(int n, MPI_Request requests[]) {
    int rc = n == 0 ? MPI_SUCCESS : PMPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (rc == MPI_SUCCESS)
        return rc;
    int first = rc == MPI_ERR_IN_STATUS ? MPI_SUCCESS : rc;
    for (int i = 0; i < n; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            first = coll_first_error(first, PMPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    return first == MPI_SUCCESS ? MPI_ERR_OTHER : first;
}

/* As in Open MPI: posts the receive, sends with a blocking send, then waits for the receive. */
int coll_sendrecv(const struct call *call, const void *send, int send_count, int to, void *recv, int recv_count,
                  int from, MPI_Status *status) {
    MPI_Request request = MPI_REQUEST_NULL;
    TRY(coll_irecv(call, recv, recv_count, from, &request));
    int rc = coll_send(call, send, send_count, to);
    if (rc == MPI_SUCCESS)
        return PMPI_Wait(&request, status);
    coll_cancel(1, &request);
    return rc;
}

int coll_sendrecv_empty(const struct call *call, int to, int from) {
    return coll_sendrecv(call, NULL, 0, to, NULL, 0, from, MPI_STATUS_IGNORE);
}

#if COLL_SIMULATED
/* Bytes of an empty synchronous message on a calibrated machine: UCX sends it from a buffer, as it does a message of
 * this size. SMPI's acknowledgement takes no time, so the receiver replies with a message. */
enum { buffered = 256 };

int coll_ssend_empty(const struct call *call, int to) {
    char message[buffered] = {0};
    /* Only the platform of a calibrated machine attaches data to a core. */
    if (sg_host_get_data(sg_host_self()) == NULL)
        TRY(PMPI_Ssend(NULL, 0, MPI_BYTE, to, call->kind, call->comm));
    else
        TRY(PMPI_Send(message, buffered, MPI_BYTE, to, call->kind, call->comm));
    return coll_recv(call, NULL, 0, to, MPI_STATUS_IGNORE);
}

int coll_recv_synchronous(const struct call *call, int from) {
    char message[buffered];
    TRY(PMPI_Recv(message, buffered, MPI_BYTE, from, call->kind, call->comm, MPI_STATUS_IGNORE));
    return coll_send(call, NULL, 0, from);
}
#else
int coll_ssend_empty(const struct call *call, int to) {
    return PMPI_Ssend(NULL, 0, MPI_BYTE, to, call->kind, call->comm);
}

int coll_recv_synchronous(const struct call *call, int from) {
    return coll_recv(call, NULL, 0, from, MPI_STATUS_IGNORE);
}
#endif
