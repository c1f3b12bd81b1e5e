/* The MPI functions that are recorded: each calls its PMPI_ twin between trace_enter() and trace_leave(). */
#include "trace.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static uint64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size(type, &size);
    return (uint64_t)count * (uint64_t)size;
}

/* A record without bytes, ranks and tags. */
static Record blank(enum operation operation) {
    return (Record){.operation = (uint16_t)operation, .root = NONE, .to = NONE, .from = NONE};
}

/* The record of a collective that has just returned. */
static Record collective(enum operation operation, MPI_Comm comm) {
    Record record = blank(operation);
    record.communicator = communicator_id(comm);
    record.ran = ran_number(comm, operation);
    return record;
}

/* Collectives of intercommunicators have two groups, for which the format has no room: they are not recorded. */
static bool is_inter(MPI_Comm comm) {
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter != 0;
}

/* Start and end -------------------------------------------------------------------------------------------------- */

static void started(void) {
    int rank, size;
    MPI_Comm parent;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        /* A second MPI_COMM_WORLD, whose ranks have the numbers of those that are traced. */
        trace_spawned();
        return;
    }
    trace_open(rank, size);
    ran_open();
    communicator_id(MPI_COMM_WORLD);
    /* The clocks of the ranks agree to within a barrier from here on. */
    PMPI_Barrier(MPI_COMM_WORLD);
    trace_set_origin();
    Call call = trace_enter();
    Record record = blank(OP_init);
    trace_leave(&call, &record, NULL, 0);
}

EXPORT int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        started();
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        started();
    return code;
}

EXPORT int MPI_Finalize(void) {
    Call call = trace_enter();
    Record record = blank(OP_finalize);
    trace_leave(&call, &record, NULL, 0);
    trace_close();
    return PMPI_Finalize();
}

/* Started ranks are not traced (see started()). */
EXPORT int MPI_Comm_spawn(const char *command, char *words[], int ranks, MPI_Info info, int root, MPI_Comm comm,
                          MPI_Comm *created, int errors[]) {
    trace_spawned();
    return PMPI_Comm_spawn(command, words, ranks, info, root, comm, created, errors);
}

EXPORT int MPI_Comm_spawn_multiple(int count, char *commands[], char **words[], const int ranks[],
                                   const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *created, int errors[]) {
    trace_spawned();
    return PMPI_Comm_spawn_multiple(count, commands, words, ranks, infos, root, comm, created, errors);
}

/* Communicators -------------------------------------------------------------------------------------------------- */

/* A function that makes a communicator: what it sends is the library's business and not recorded; what it makes is. */
#define COMMUNICATOR(NAME, PARAMETERS, ARGUMENTS, PARENT)                                                              \
    EXPORT int MPI_##NAME PARAMETERS {                                                                                 \
        int code = PMPI_##NAME ARGUMENTS;                                                                              \
        if (code == MPI_SUCCESS && trace_is_open())                                                                    \
            communicator_created(PARENT, *created);                                                                    \
        return code;                                                                                                   \
    }

COMMUNICATOR(Comm_dup, (MPI_Comm comm, MPI_Comm *created), (comm, created), comm)
COMMUNICATOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *created), (comm, info, created), comm)
COMMUNICATOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *created), (comm, color, key, created), comm)
COMMUNICATOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *created),
             (comm, type, key, info, created), comm)
COMMUNICATOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *created), (comm, group, created), comm)
COMMUNICATOR(Cart_create,
             (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm *created),
             (comm, dimensions, sizes, periods, reorder, created), comm)
COMMUNICATOR(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *created), (comm, remain, created), comm)
COMMUNICATOR(Graph_create,
             (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *created),
             (comm, nodes, index, edges, reorder, created), comm)
COMMUNICATOR(Dist_graph_create_adjacent,
             (MPI_Comm comm, int in, const int from[], const int in_weights[], int out, const int to[],
              const int out_weights[], MPI_Info info, int reorder, MPI_Comm *created),
             (comm, in, from, in_weights, out, to, out_weights, info, reorder, created), comm)

EXPORT int MPI_Comm_free(MPI_Comm *comm) {
    communicator_freed(*comm);
    return PMPI_Comm_free(comm);
}

/* Point to point ------------------------------------------------------------------------------------------------- */

static Record sending(enum operation operation, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    Record record = blank(operation);
    record.communicator = communicator_id(comm);
    record.to = world_rank(comm, to);
    record.send_tag = tag;
    record.sent = bytes_of(count, type);
    return record;
}

static Record receiving(enum operation operation, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
    Record record = blank(operation);
    record.communicator = communicator_id(comm);
    record.from = world_rank(comm, from);
    record.receive_tag = tag;
    record.received = bytes_of(count, type);
    return record;
}

#define SEND(NAME, OPERATION)                                                                                          \
    EXPORT int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {          \
        Call call = trace_enter();                                                                                     \
        int code = PMPI_##NAME(buffer, count, type, to, tag, comm);                                                    \
        Record record = {0};                                                                                           \
        if (call.recorded)                                                                                             \
            record = sending(OPERATION, count, type, to, tag, comm);                                                   \
        trace_leave(&call, &record, NULL, 0);                                                                          \
        return code;                                                                                                   \
    }

SEND(Send, OP_send)
SEND(Ssend, OP_ssend)
SEND(Bsend, OP_bsend)
SEND(Rsend, OP_rsend)

#define ISEND(NAME, OPERATION)                                                                                         \
    EXPORT int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,            \
                          MPI_Request *request) {                                                                      \
        Call call = trace_enter();                                                                                     \
        int code = PMPI_##NAME(buffer, count, type, to, tag, comm, request);                                           \
        Record record = {0};                                                                                           \
        if (call.recorded) {                                                                                           \
            record = sending(OPERATION, count, type, to, tag, comm);                                                   \
            record.request = request_started(*request, false, comm);                                                   \
        }                                                                                                              \
        trace_leave(&call, &record, NULL, 0);                                                                          \
        return code;                                                                                                   \
    }

ISEND(Isend, OP_isend)
ISEND(Issend, OP_issend)
ISEND(Ibsend, OP_ibsend)
ISEND(Irsend, OP_irsend)

/* From whom and with which tag a message came that might have come from anybody. */
static void note_source(Record *record, const MPI_Status *status, MPI_Comm comm) {
    if (record->from == MPI_ANY_SOURCE)
        record->from = world_rank(comm, status->MPI_SOURCE);
    if (record->receive_tag == MPI_ANY_TAG)
        record->receive_tag = status->MPI_TAG;
}

EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    Call call = trace_enter();
    int code = PMPI_Recv(buffer, count, type, from, tag, comm, told);
    Record record = {0};
    if (call.recorded) {
        record = receiving(OP_recv, count, type, from, tag, comm);
        note_source(&record, told, comm);
    }
    trace_leave(&call, &record, NULL, 0);
    return code;
}

EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request) {
    Call call = trace_enter();
    int code = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
    Record record = {0};
    if (call.recorded) {
        record = receiving(OP_irecv, count, type, from, tag, comm);
        record.request = request_started(*request, from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG, comm);
    }
    trace_leave(&call, &record, NULL, 0);
    return code;
}

EXPORT int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int send_tag, void *in,
                        int in_count, MPI_Datatype in_type, int from, int receive_tag, MPI_Comm comm,
                        MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    Call call = trace_enter();
    int code =
        PMPI_Sendrecv(out, out_count, out_type, to, send_tag, in, in_count, in_type, from, receive_tag, comm, told);
    Record record = {0};
    if (call.recorded) {
        record = receiving(OP_sendrecv, in_count, in_type, from, receive_tag, comm);
        note_source(&record, told, comm);
        record.to = world_rank(comm, to);
        record.send_tag = send_tag;
        record.sent = bytes_of(out_count, out_type);
    }
    trace_leave(&call, &record, NULL, 0);
    return code;
}

EXPORT int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag, int from,
                                int receive_tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    Call call = trace_enter();
    int code = PMPI_Sendrecv_replace(buffer, count, type, to, send_tag, from, receive_tag, comm, told);
    Record record = {0};
    if (call.recorded) {
        record = receiving(OP_sendrecv, count, type, from, receive_tag, comm);
        note_source(&record, told, comm);
        record.to = world_rank(comm, to);
        record.send_tag = send_tag;
        record.sent = record.received;
    }
    trace_leave(&call, &record, NULL, 0);
    return code;
}

EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;
    Call call = trace_enter();
    int code = PMPI_Probe(from, tag, comm, told);
    Record record = {0};
    if (call.recorded) {
        record = receiving(OP_probe, 0, MPI_DATATYPE_NULL, from, tag, comm);
        note_source(&record, told, comm);
    }
    trace_leave(&call, &record, NULL, 0);
    return code;
}

/* Persistent requests: each start is recorded as the call that it stands for. */

#define SEND_INIT(NAME, OPERATION)                                                                                     \
    EXPORT int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,            \
                          MPI_Request *request) {                                                                      \
        int code = PMPI_##NAME(buffer, count, type, to, tag, comm, request);                                           \
        Record record = sending(OPERATION, count, type, to, tag, comm);                                                \
        request_initialised(*request, &record, false, comm);                                                           \
        return code;                                                                                                   \
    }

SEND_INIT(Send_init, OP_isend)
SEND_INIT(Ssend_init, OP_issend)
SEND_INIT(Bsend_init, OP_ibsend)
SEND_INIT(Rsend_init, OP_irsend)

EXPORT int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request *request) {
    int code = PMPI_Recv_init(buffer, count, type, from, tag, comm, request);
    Record record = receiving(OP_irecv, count, type, from, tag, comm);
    request_initialised(*request, &record, from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG, comm);
    return code;
}

static void record_start(const Call *call, MPI_Request handle) {
    Record record = {0};
    bool any_source;
    MPI_Comm comm;
    Call mine = *call;
    if (call->recorded && request_template(handle, &record, &any_source, &comm))
        record.request = request_started(handle, any_source, comm);
    else
        mine.recorded = false;
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

/* Ends of requests ----------------------------------------------------------------------------------------------- */

/* The requests of a call before it (MPI sets handles to MPI_REQUEST_NULL), and the statuses that it needs. */
typedef struct Waited {
    int count;
    MPI_Request *handles;
    Pending *pending;
    MPI_Status *statuses; /* the caller's or our own */
    MPI_Status *own_statuses;
    int64_t *list;
    bool ready;
    char small[2048];
} Waited;

static void waited_begin(Waited *waited, int count, const MPI_Request *requests, MPI_Status *statuses) {
    waited->count = count;
    waited->statuses = statuses;
    waited->own_statuses = NULL;
    size_t each = sizeof(MPI_Request) + sizeof(Pending) + 3 * sizeof(int64_t);
    char *room = (size_t)count * each <= sizeof waited->small ? waited->small : malloc((size_t)count * each);
    waited->ready = room != NULL;
    if (!room)
        return;
    waited->list = (int64_t *)(void *)room;
    waited->pending = (Pending *)(void *)(waited->list + 3 * count);
    waited->handles = (MPI_Request *)(void *)(waited->pending + count);
    bool any = false;
    for (int i = 0; i < count; i++) {
        waited->handles[i] = requests[i];
        waited->pending[i] = request_find(requests[i]);
        any |= waited->pending[i].any_source;
    }
    if (any && statuses == MPI_STATUSES_IGNORE) {
        waited->own_statuses = malloc((size_t)count * sizeof(MPI_Status));
        if (waited->own_statuses)
            waited->statuses = waited->own_statuses;
    }
}

/* Request `index` has ended, with `status`: three numbers of the list (number, source, tag; the latter two where any
 * would do). */
static uint32_t waited_ended(Waited *waited, int index, const MPI_Status *status, uint32_t listed) {
    Pending pending = waited->pending[index];
    request_ended(waited->handles[index]);
    if (pending.number == 0)
        return listed;
    bool told = pending.any_source && status != MPI_STATUS_IGNORE;
    waited->list[listed] = pending.number;
    waited->list[listed + 1] = told ? world_rank(pending.comm, status->MPI_SOURCE) : NONE;
    waited->list[listed + 2] = told ? status->MPI_TAG : NONE;
    return listed + 3;
}

static void waited_end(Waited *waited, const Call *call, enum operation operation, uint32_t listed) {
    Record record = blank(operation);
    Call mine = *call;
    /* A test that finds nothing is no event, only a way to wait. */
    if (operation == OP_test && listed == 0)
        mine.recorded = false;
    trace_leave(&mine, &record, waited->list, listed);
    if ((char *)waited->list != waited->small)
        free(waited->list);
    free(waited->own_statuses);
}

/* `CALL` with the statuses in `told`; then `ENDED`, with `listed` counting. */
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

/* Collectives ---------------------------------------------------------------------------------------------------- */

/* `CALL`, then a record with what `FILL` says of `record`; P ranks, of which this is `me`. REQUEST is 0 for a blocking
 * one. */
#define COLLECTIVE(OPERATION, COMM, CALL, FILL, REQUEST, LIST, LISTED)                                                 \
    if (!trace_is_open() || is_inter(COMM))                                                                            \
        return CALL;                                                                                                   \
    Call call = trace_enter();                                                                                         \
    int code = CALL;                                                                                                   \
    Record record = {0};                                                                                               \
    int me, size = 0;                                                                                                  \
    if (call.recorded) {                                                                                               \
        record = collective(OPERATION, COMM);                                                                          \
        size = communicator_size(COMM);                                                                                \
        PMPI_Comm_rank(COMM, &me);                                                                                     \
        (void)me, (void)size;                                                                                          \
        FILL;                                                                                                          \
        record.request = REQUEST;                                                                                      \
    }                                                                                                                  \
    trace_leave(&call, &record, LIST, LISTED);                                                                         \
    return code

#define STARTED request_started(*request, false, comm)

/* Where the send buffer is MPI_IN_PLACE, the rank's own block of the receive buffer is what it sends. */
#define FILL_BCAST                                                                                                     \
    record.root = root;                                                                                                \
    *(me == root ? &record.sent : &record.received) = bytes_of(count, type)
#define FILL_REDUCE                                                                                                    \
    record.root = root;                                                                                                \
    record.sent = bytes_of(count, type);                                                                               \
    record.received = me == root ? record.sent : 0
#define FILL_BOTH record.sent = record.received = bytes_of(count, type)
#define FILL_GATHER                                                                                                    \
    record.root = root;                                                                                                \
    record.received = me == root ? (uint64_t)size * bytes_of(in_count, in_type) : 0;                                   \
    record.sent = out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : bytes_of(out_count, out_type)
#define FILL_SCATTER                                                                                                   \
    record.root = root;                                                                                                \
    record.sent = me == root ? (uint64_t)size * bytes_of(out_count, out_type) : 0;                                     \
    record.received = in == MPI_IN_PLACE ? bytes_of(out_count, out_type) : bytes_of(in_count, in_type)
#define FILL_ALLGATHER                                                                                                 \
    record.received = (uint64_t)size * bytes_of(in_count, in_type);                                                    \
    record.sent = out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : bytes_of(out_count, out_type)
#define FILL_ALLTOALL                                                                                                  \
    record.received = (uint64_t)size * bytes_of(in_count, in_type);                                                    \
    record.sent = out == MPI_IN_PLACE ? record.received : (uint64_t)size * bytes_of(out_count, out_type)

#define OUT const void *out, int out_count, MPI_Datatype out_type
#define IN void *in, int in_count, MPI_Datatype in_type
#define OUT_IN out, out_count, out_type, in, in_count, in_type
#define REDUCING const void *out, void *in, int count, MPI_Datatype type, MPI_Op op

#define WITH_REQUEST , MPI_Request *request
/* The blocking and the non-blocking form of a collective without lists. */
#define BOTH_FORMS(Name, name, iname, PARAMETERS, ARGUMENTS, FILL)                                                     \
    EXPORT int MPI_##Name(PARAMETERS, MPI_Comm comm) {                                                                 \
        COLLECTIVE(OP_##name, comm, PMPI_##Name(ARGUMENTS, comm), FILL, 0, NULL, 0);                                   \
    }                                                                                                                  \
    EXPORT int MPI_I##name(PARAMETERS, MPI_Comm comm, MPI_Request *request) {                                          \
        COLLECTIVE(OP_##iname, comm, PMPI_I##name(ARGUMENTS, comm, request), FILL, STARTED, NULL, 0);                  \
    }
#define COMMA ,

BOTH_FORMS(Bcast, bcast, ibcast, void *buffer COMMA int count COMMA MPI_Datatype type COMMA int root,
           buffer COMMA count COMMA type COMMA root, FILL_BCAST)
BOTH_FORMS(Reduce, reduce, ireduce, REDUCING COMMA int root, out COMMA in COMMA count COMMA type COMMA op COMMA root,
           FILL_REDUCE)
BOTH_FORMS(Allreduce, allreduce, iallreduce, REDUCING, out COMMA in COMMA count COMMA type COMMA op, FILL_BOTH)
BOTH_FORMS(Gather, gather, igather, OUT COMMA IN COMMA int root, OUT_IN COMMA root, FILL_GATHER)
BOTH_FORMS(Scatter, scatter, iscatter, OUT COMMA IN COMMA int root, OUT_IN COMMA root, FILL_SCATTER)
BOTH_FORMS(Allgather, allgather, iallgather, OUT COMMA IN, OUT_IN, FILL_ALLGATHER)
BOTH_FORMS(Alltoall, alltoall, ialltoall, OUT COMMA IN, OUT_IN, FILL_ALLTOALL)

EXPORT int MPI_Barrier(MPI_Comm comm) {
    COLLECTIVE(OP_barrier, comm, PMPI_Barrier(comm), , 0, NULL, 0);
}

EXPORT int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    COLLECTIVE(OP_ibarrier, comm, PMPI_Ibarrier(comm, request), , STARTED, NULL, 0);
}

EXPORT int MPI_Scan(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_scan, comm, PMPI_Scan(out, in, count, type, op, comm), FILL_BOTH, 0, NULL, 0);
}

EXPORT int MPI_Exscan(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_exscan, comm, PMPI_Exscan(out, in, count, type, op, comm), FILL_BOTH, 0, NULL, 0);
}

EXPORT int MPI_Reduce_scatter_block(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_reduce_scatter_block, comm, PMPI_Reduce_scatter_block(out, in, count, type, op, comm),
               record.received = bytes_of(count, type);
               record.sent = (uint64_t)size * record.received, 0, NULL, 0);
}

/* Collectives whose blocks differ: the list has the bytes of each block. ------------------------------------------- */

/* Bytes of `size` blocks after `list`; returns their sum. */
static uint64_t list_blocks(int64_t *list, const int *counts, MPI_Datatype type, int size) {
    uint64_t sum = 0, each = bytes_of(1, type);
    for (int i = 0; i < size; i++) {
        list[i] = counts[i] * (int64_t)each;
        sum += (uint64_t)list[i];
    }
    return sum;
}

/* Room for the lists of one call: at most `lists` x the size of the communicator. */
#define WITH_LISTS(LISTS, COMM, CALL)                                                                                  \
    if (!trace_is_open() || is_inter(COMM))                                                                            \
        return CALL;                                                                                                   \
    int me, size = communicator_size(COMM);                                                                            \
    PMPI_Comm_rank(COMM, &me);                                                                                         \
    int64_t short_list[256];                                                                                           \
    size_t wanted = (size_t)(LISTS) * (size_t)size;                                                                    \
    int64_t *list = wanted <= 256 ? short_list : malloc(wanted * sizeof *list);                                        \
    if (!list)                                                                                                         \
        return CALL;                                                                                                   \
    uint32_t listed = 0;                                                                                               \
    Call call = trace_enter();                                                                                         \
    int code = CALL;                                                                                                   \
    Record record = {0}

#define END_LISTS                                                                                                      \
    trace_leave(&call, &record, list, listed);                                                                         \
    if (list != short_list)                                                                                            \
        free(list);                                                                                                    \
    return code

EXPORT int MPI_Gatherv(OUT, void *in, const int counts[], const int places[], MPI_Datatype in_type, int root,
                       MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI_Gatherv(out, out_count, out_type, in, counts, places, in_type, root, comm));
    if (call.recorded) {
        record = collective(OP_gatherv, comm);
        record.root = root;
        if (me == root) {
            record.received = list_blocks(list, counts, in_type, size);
            listed = (uint32_t)size;
        }
        record.sent = out == MPI_IN_PLACE ? (uint64_t)list[me] : bytes_of(out_count, out_type);
    }
    END_LISTS;
}

EXPORT int MPI_Scatterv(const void *out, const int counts[], const int places[], MPI_Datatype out_type, IN, int root,
                        MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI_Scatterv(out, counts, places, out_type, in, in_count, in_type, root, comm));
    if (call.recorded) {
        record = collective(OP_scatterv, comm);
        record.root = root;
        if (me == root) {
            record.sent = list_blocks(list, counts, out_type, size);
            listed = (uint32_t)size;
        }
        record.received = in == MPI_IN_PLACE ? (uint64_t)list[me] : bytes_of(in_count, in_type);
    }
    END_LISTS;
}

static Record all_gathered(enum operation operation, const void *out, uint64_t mine, const int *counts,
                           MPI_Datatype in_type, int64_t *list, int me, int size, MPI_Comm comm) {
    Record record = collective(operation, comm);
    record.received = list_blocks(list, counts, in_type, size);
    record.sent = out == MPI_IN_PLACE ? (uint64_t)list[me] : mine;
    return record;
}

EXPORT int MPI_Allgatherv(OUT, void *in, const int counts[], const int places[], MPI_Datatype in_type, MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI_Allgatherv(out, out_count, out_type, in, counts, places, in_type, comm));
    if (call.recorded) {
        uint64_t mine = out == MPI_IN_PLACE ? 0 : bytes_of(out_count, out_type);
        record = all_gathered(OP_allgatherv, out, mine, counts, in_type, list, me, size, comm);
        listed = (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI_Iallgatherv(OUT, void *in, const int counts[], const int places[], MPI_Datatype in_type, MPI_Comm comm,
                           MPI_Request *request) {
    WITH_LISTS(1, comm, PMPI_Iallgatherv(out, out_count, out_type, in, counts, places, in_type, comm, request));
    if (call.recorded) {
        uint64_t mine = out == MPI_IN_PLACE ? 0 : bytes_of(out_count, out_type);
        record = all_gathered(OP_iallgatherv, out, mine, counts, in_type, list, me, size, comm);
        listed = (uint32_t)size;
        record.request = STARTED;
    }
    END_LISTS;
}

static Record all_exchanged(enum operation operation, const void *out, const int *out_counts, MPI_Datatype out_type,
                            const int *in_counts, MPI_Datatype in_type, int64_t *list, int size, MPI_Comm comm) {
    Record record = collective(operation, comm);
    record.received = list_blocks(list + size, in_counts, in_type, size);
    record.sent = out == MPI_IN_PLACE ? list_blocks(list, in_counts, in_type, size)
                                      : list_blocks(list, out_counts, out_type, size);
    return record;
}

/* The list has what goes to each rank, then what comes from each. */
EXPORT int MPI_Alltoallv(const void *out, const int out_counts[], const int out_places[], MPI_Datatype out_type,
                         void *in, const int in_counts[], const int in_places[], MPI_Datatype in_type, MPI_Comm comm) {
    WITH_LISTS(2, comm, PMPI_Alltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm));
    if (call.recorded) {
        record = all_exchanged(OP_alltoallv, out, out_counts, out_type, in_counts, in_type, list, size, comm);
        listed = 2 * (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI_Ialltoallv(const void *out, const int out_counts[], const int out_places[], MPI_Datatype out_type,
                          void *in, const int in_counts[], const int in_places[], MPI_Datatype in_type, MPI_Comm comm,
                          MPI_Request *request) {
    WITH_LISTS(
        2, comm,
        PMPI_Ialltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm, request));
    if (call.recorded) {
        record = all_exchanged(OP_ialltoallv, out, out_counts, out_type, in_counts, in_type, list, size, comm);
        listed = 2 * (uint32_t)size;
        record.request = STARTED;
    }
    END_LISTS;
}

EXPORT int MPI_Alltoallw(const void *out, const int out_counts[], const int out_places[],
                         const MPI_Datatype out_types[], void *in, const int in_counts[], const int in_places[],
                         const MPI_Datatype in_types[], MPI_Comm comm) {
    WITH_LISTS(2, comm,
               PMPI_Alltoallw(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm));
    if (call.recorded) {
        record = collective(OP_alltoallw, comm);
        for (int i = 0; i < size; i++) {
            list[size + i] = (int64_t)bytes_of(in_counts[i], in_types[i]);
            list[i] = out == MPI_IN_PLACE ? list[size + i] : (int64_t)bytes_of(out_counts[i], out_types[i]);
            record.sent += (uint64_t)list[i];
            record.received += (uint64_t)list[size + i];
        }
        listed = 2 * (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI_Reduce_scatter(out, in, counts, type, op, comm));
    if (call.recorded) {
        record = collective(OP_reduce_scatter, comm);
        record.sent = list_blocks(list, counts, type, size);
        record.received = (uint64_t)list[me];
        listed = (uint32_t)size;
    }
    END_LISTS;
}
