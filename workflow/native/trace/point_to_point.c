/* Point-to-point and completion calls: each calls its PMPI_ counterpart between trace_enter() and trace_leave(). */
#include "calls.h"

#include <stdlib.h>

static Record sending(enum operation operation, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    Record record = blank(operation);
    record.communicator = communicator_id(comm);
    record.to = world_rank(comm, to);
    record.send_tag = tag;
    record.sent = bytes_of(count, type);
    return record;
}

static Record receiving(enum operation operation, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
    Record record = blank(operation);
    record.communicator = communicator_id(comm);
    record.from = world_rank(comm, from);
    record.receive_tag = tag;
    record.received = bytes_of(count, type);
    return record;
}

/* Executes CALL, then stores a record of it, which FILL makes. */
#define RECORDED(COMM, CALL, FILL)                                                                                     \
    Call call = enter_on(COMM);                                                                                        \
    int code = CALL;                                                                                                   \
    Record record = {0};                                                                                               \
    if (is_recorded(&call, code)) {                                                                                    \
        FILL;                                                                                                          \
    }                                                                                                                  \
    trace_leave(&call, &record, NULL, 0);                                                                              \
    return code

#define SEND(NAME, OPERATION)                                                                                          \
    EXPORT int MPI(NAME)(const void *buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {         \
        RECORDED(comm, PMPI(NAME)(buffer, count, type, to, tag, comm),                                                 \
                 record = sending(OPERATION, count, type, to, tag, comm));                                             \
    }

SEND(Send, OP_send)
SEND(Ssend, OP_ssend)
SEND(Bsend, OP_bsend)
SEND(Rsend, OP_rsend)

#define ISEND(NAME, OPERATION)                                                                                         \
    EXPORT int MPI(NAME)(const void *buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,           \
                         MPI_Request *request) {                                                                       \
        RECORDED(comm, PMPI(NAME)(buffer, count, type, to, tag, comm, request),                                        \
                 record = sending(OPERATION, count, type, to, tag, comm);                                              \
                 record.request = request_started(*request, false, comm));                                             \
    }

ISEND(Isend, OP_isend)
ISEND(Issend, OP_issend)
ISEND(Ibsend, OP_ibsend)
ISEND(Irsend, OP_irsend)

/* The same for a call that has returned: wildcards are replaced by the message's source and tag. */
static Record received(enum operation operation, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                       const MPI_Status *status) {
    Record record = receiving(operation, count, type, from, tag, comm);
    if (from == MPI_ANY_SOURCE)
        record.from = world_rank(comm, status->MPI_SOURCE);
    if (tag == MPI_ANY_TAG)
        record.receive_tag = status->MPI_TAG;
    return record;
}

EXPORT int MPI(Recv)(void *buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    RECORDED(comm, PMPI(Recv)(buffer, count, type, from, tag, comm, told),
             record = received(OP_recv, count, type, from, tag, comm, told));
}

EXPORT int MPI(Irecv)(void *buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request) {
    RECORDED(comm, PMPI(Irecv)(buffer, count, type, from, tag, comm, request),
             record = receiving(OP_irecv, count, type, from, tag, comm);
             record.request = request_started(*request, from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG, comm));
}

EXPORT int MPI(Sendrecv)(const void *out, Count out_count, MPI_Datatype out_type, int to, int send_tag, void *in,
                         Count in_count, MPI_Datatype in_type, int from, int receive_tag, MPI_Comm comm,
                         MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    RECORDED(
        comm,
        PMPI(Sendrecv)(out, out_count, out_type, to, send_tag, in, in_count, in_type, from, receive_tag, comm, told),
        record = received(OP_sendrecv, in_count, in_type, from, receive_tag, comm, told);
        record.to = world_rank(comm, to); record.send_tag = send_tag; record.sent = bytes_of(out_count, out_type));
}

EXPORT int MPI(Sendrecv_replace)(void *buffer, Count count, MPI_Datatype type, int to, int send_tag, int from,
                                 int receive_tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    RECORDED(comm, PMPI(Sendrecv_replace)(buffer, count, type, to, send_tag, from, receive_tag, comm, told),
             record = received(OP_sendrecv, count, type, from, receive_tag, comm, told);
             record.to = world_rank(comm, to); record.send_tag = send_tag; record.sent = record.received);
}

/* Persistent requests: each start is recorded as the equivalent non-blocking call. */

#define SEND_INIT(NAME, OPERATION)                                                                                     \
    EXPORT int MPI(NAME)(const void *buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,           \
                         MPI_Request *request) {                                                                       \
        int code = PMPI(NAME)(buffer, count, type, to, tag, comm, request);                                            \
        if (code == MPI_SUCCESS && is_followed(comm)) {                                                                \
            Record record = sending(OPERATION, count, type, to, tag, comm);                                            \
            request_initialised(*request, &record, false, comm);                                                       \
        }                                                                                                              \
        return code;                                                                                                   \
    }

SEND_INIT(Send_init, OP_isend)
SEND_INIT(Ssend_init, OP_issend)
SEND_INIT(Bsend_init, OP_ibsend)
SEND_INIT(Rsend_init, OP_irsend)

EXPORT int MPI(Recv_init)(void *buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                          MPI_Request *request) {
    int code = PMPI(Recv_init)(buffer, count, type, from, tag, comm, request);
    if (code == MPI_SUCCESS && is_followed(comm)) {
        Record record = receiving(OP_irecv, count, type, from, tag, comm);
        request_initialised(*request, &record, from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG, comm);
    }
    return code;
}

#ifndef LARGE
EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    RECORDED(comm, PMPI_Probe(from, tag, comm, told),
             record = received(OP_probe, 0, MPI_DATATYPE_NULL, from, tag, comm, told));
}

/* A matched message is recorded as received here: MPI_Mrecv and MPI_Imrecv do not tell from whom it is. */
static Record matched(int from, int tag, MPI_Comm comm, const MPI_Status *status) {
    MPI_Count bytes = 0;
    Record record = received(OP_recv, 0, MPI_BYTE, from, tag, comm, status);
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    record.received = (uint64_t)bytes;
    return record;
}

EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    RECORDED(comm, PMPI_Mprobe(from, tag, comm, message, told), record = matched(from, tag, comm, told));
}

EXPORT int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    Call call = enter_on(comm);
    int code = PMPI_Improbe(from, tag, comm, flag, message, told);
    Record record = {0};
    call.recorded = is_recorded(&call, code) && *flag;
    if (call.recorded)
        record = matched(from, tag, comm, told);
    trace_leave(&call, &record, NULL, 0);
    return code;
}

static void record_start(const Call *call, MPI_Request handle) {
    Record record = {0};
    Call mine = *call;
    mine.recorded = call->recorded && request_restarted(handle, &record);
    trace_leave(&mine, &record, NULL, 0);
}

EXPORT int MPI_Start(MPI_Request *request) {
    Call call = trace_enter();
    int code = PMPI_Start(request);
    record_start(&call, *request);
    return code;
}

EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
    int code = MPI_SUCCESS;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = MPI_Start(&requests[i]);
    return code;
}

EXPORT int MPI_Request_free(MPI_Request *request) {
    request_freed(*request);
    return PMPI_Request_free(request);
}

EXPORT int MPI_Cancel(MPI_Request *request) {
    request_cancelled(*request);
    return PMPI_Cancel(request);
}

/* Completion of requests ---------------------------------------------------------------------------------------- */

/* A call's requests, saved before it (MPI sets handles to MPI_REQUEST_NULL), and the statuses that it needs. */
typedef struct Waited {
    int count;
    MPI_Request *handles;
    MPI_Status *statuses; /* the caller's or our own */
    MPI_Status *own_statuses;
    int64_t *list;
    bool ready;
    _Alignas(int64_t) char small[2048];
} Waited;

static void waited_begin(Waited *waited, int count, const MPI_Request *requests, MPI_Status *statuses) {
    waited->count = count;
    waited->statuses = statuses;
    waited->own_statuses = NULL;
    size_t each = sizeof(MPI_Request) + 3 * sizeof(int64_t);
    char *room = (size_t)count * each <= sizeof waited->small ? waited->small : malloc((size_t)count * each);
    waited->ready = room != NULL;
    if (!room)
        return;
    waited->list = (int64_t *)(void *)room;
    waited->handles = (MPI_Request *)(void *)(waited->list + 3 * count);
    bool any = false;
    for (int i = 0; i < count; i++) {
        waited->handles[i] = requests[i];
        Pending pending = request_find(requests[i]);
        any |= pending.wildcard || pending.cancelled;
    }
    if (any && statuses == MPI_STATUSES_IGNORE) {
        waited->own_statuses = malloc((size_t)count * sizeof(MPI_Status));
        if (waited->own_statuses)
            waited->statuses = waited->own_statuses;
    }
}

static bool was_cancelled(const Pending *pending, const MPI_Status *status) {
    int cancelled = 0;
    return pending->cancelled && PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled;
}

/* Adds request `index`, which has completed, to the list: number, source, tag (the latter two only for wildcards; the
 * source of a receive that was cancelled is MPI_PROC_NULL). Returns the new length of the list. */
static uint32_t waited_ended(Waited *waited, int index, const MPI_Status *status, uint32_t listed) {
    Pending pending = request_ended(waited->handles[index]);
    if (pending.number == 0)
        return listed;
    bool has_status = status != MPI_STATUS_IGNORE, cancelled = has_status && was_cancelled(&pending, status);
    bool told = has_status && pending.wildcard && !cancelled;
    waited->list[listed] = pending.number;
    waited->list[listed + 1] = cancelled ? MPI_PROC_NULL
                               : told    ? world_rank_of(pending.members, status->MPI_SOURCE)
                                         : NONE;
    waited->list[listed + 2] = told ? status->MPI_TAG : NONE;
    return listed + 3;
}

static void waited_end(Waited *waited, const Call *call, enum operation operation, uint32_t listed) {
    Record record = blank(operation);
    Call mine = *call;
    /* A test that completes nothing is not recorded: it is only a way to wait. */
    if (operation == OP_test && listed == 0)
        mine.recorded = false;
    trace_leave(&mine, &record, waited->list, listed);
    if ((char *)waited->list != waited->small)
        free(waited->list);
    free(waited->own_statuses);
}

/* Executes CALL with the statuses in `told`, then ENDED, which lists completed requests and updates `listed`. */
#define WAITING(OPERATION, COUNT, REQUESTS, STATUSES, CALL, ENDED)                                                     \
    Call call = trace_enter();                                                                                         \
    Waited waited;                                                                                                     \
    if (call.recorded)                                                                                                 \
        waited_begin(&waited, COUNT, REQUESTS, STATUSES);                                                              \
    bool follow = call.recorded && waited.ready;                                                                       \
    MPI_Status *told = follow ? waited.statuses : STATUSES;                                                            \
    int code = CALL;                                                                                                   \
    if (!follow) {                                                                                                     \
        Record none = {0};                                                                                             \
        call.recorded = false;                                                                                         \
        trace_leave(&call, &none, NULL, 0);                                                                            \
        return code;                                                                                                   \
    }                                                                                                                  \
    uint32_t listed = 0;                                                                                               \
    ENDED;                                                                                                             \
    waited_end(&waited, &call, OPERATION, listed);                                                                     \
    return code

#define STATUS_AT(I) (told == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &told[I])
#define ALL_ENDED                                                                                                      \
    for (int i = 0; i < waited.count; i++)                                                                             \
    listed = waited_ended(&waited, i, STATUS_AT(i), listed)

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    WAITING(OP_wait, 1, request, status, PMPI_Wait(request, told), ALL_ENDED);
}

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    WAITING(OP_wait, count, requests, statuses, PMPI_Waitall(count, requests, told), ALL_ENDED);
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *one = status == MPI_STATUS_IGNORE ? &own : status;
    WAITING(OP_wait, count, requests, MPI_STATUSES_IGNORE, ((void)told, PMPI_Waitany(count, requests, index, one)),
            if (*index != MPI_UNDEFINED) listed = waited_ended(&waited, *index, one, listed));
}

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[]) {
    WAITING(OP_wait, count, requests, statuses, PMPI_Waitsome(count, requests, ended, indices, told),
            for (int i = 0; *ended != MPI_UNDEFINED && i < *ended; i++) listed =
                waited_ended(&waited, indices[i], STATUS_AT(i), listed));
}

EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    WAITING(OP_test, 1, request, status, PMPI_Test(request, flag, told), if (*flag) ALL_ENDED);
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    WAITING(OP_test, count, requests, statuses, PMPI_Testall(count, requests, flag, told), if (*flag) ALL_ENDED);
}

EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *one = status == MPI_STATUS_IGNORE ? &own : status;
    WAITING(OP_test, count, requests, MPI_STATUSES_IGNORE,
            ((void)told, PMPI_Testany(count, requests, index, flag, one)),
            if (*flag && *index != MPI_UNDEFINED) listed = waited_ended(&waited, *index, one, listed));
}

EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[]) {
    WAITING(OP_test, count, requests, statuses, PMPI_Testsome(count, requests, ended, indices, told),
            for (int i = 0; *ended != MPI_UNDEFINED && i < *ended; i++) listed =
                waited_ended(&waited, indices[i], STATUS_AT(i), listed));
}
#endif
