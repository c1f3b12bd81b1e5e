/* The collectives that are recorded: each calls its PMPI_ counterpart between trace_enter() and trace_leave(). */
#include "calls.h"

#include <stdlib.h>

/* Returns the record of a collective that has just returned. */
static Record collective(enum operation operation, MPI_Comm comm) {
    Record record = {.operation = (uint16_t)operation, .root = NONE, .communicator = communicator_id(comm)};
    record.ran = ran_number(comm, operation);
    return record;
}

/* Notes the type of `bytes` bytes of data. */
static void add_type(Record *record, uint64_t bytes, MPI_Datatype type) {
    if (bytes == 0)
        return;
    uint16_t number = type_number(type);
    int i = 0;
    while (i < CALL_TYPES && record->types[i] != 0 && record->types[i] != number)
        i++;
    if (i < CALL_TYPES)
        record->types[i] = number;
}

/* Returns the bytes of a buffer, whose type it notes. */
static uint64_t in_buffer(Record *record, Count count, MPI_Datatype type) {
    uint64_t bytes = bytes_of(count, type);
    add_type(record, bytes, type);
    return bytes;
}

/* Notes the operation of a reduction that has data. */
static void add_reduction(Record *record, MPI_Op op) {
    record->reduction = record->sent + record->received ? reduction_number(op) : 0;
}

/* Executes CALL, then stores a record whose fields FILL sets. FILL can use `me` and `size`, rank and size in the
 * communicator. REQUEST is 0 for a blocking collective. */
#define COLLECTIVE(OPERATION, COMM, CALL, FILL, REQUEST)                                                               \
    if (!is_followed(COMM))                                                                                            \
        return CALL;                                                                                                   \
    Call call = trace_enter();                                                                                         \
    int code = CALL;                                                                                                   \
    Record record = {0};                                                                                               \
    int me, size = 0;                                                                                                  \
    if (is_recorded(&call, code)) {                                                                                    \
        record = collective(OPERATION, COMM);                                                                          \
        size = communicator_size(COMM);                                                                                \
        PMPI_Comm_rank(COMM, &me);                                                                                     \
        (void)me, (void)size;                                                                                          \
        FILL;                                                                                                          \
        record.request = REQUEST;                                                                                      \
        record.site = SITE_NUMBER();                                                                                   \
    }                                                                                                                  \
    trace_leave(&call, &record, NULL, 0);                                                                              \
    return code

#define STARTED request_started(*request, false, comm)

/* With MPI_IN_PLACE as send buffer, a rank sends its own block of the receive buffer. */
#define FILL_BCAST                                                                                                     \
    record.root = root;                                                                                                \
    *(me == root ? &record.sent : &record.received) = in_buffer(&record, count, type)
#define FILL_REDUCE                                                                                                    \
    record.root = root;                                                                                                \
    record.sent = in_buffer(&record, count, type);                                                                     \
    record.received = me == root ? record.sent : 0;                                                                    \
    add_reduction(&record, op)
#define FILL_BOTH                                                                                                      \
    record.sent = record.received = in_buffer(&record, count, type);                                                   \
    add_reduction(&record, op)
#define FILL_GATHER                                                                                                    \
    record.root = root;                                                                                                \
    record.received = me == root ? (uint64_t)size * in_buffer(&record, in_count, in_type) : 0;                         \
    record.sent = out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : in_buffer(&record, out_count, out_type)
#define FILL_SCATTER                                                                                                   \
    record.root = root;                                                                                                \
    record.sent = me == root ? (uint64_t)size * in_buffer(&record, out_count, out_type) : 0;                           \
    record.received = in == MPI_IN_PLACE ? bytes_of(out_count, out_type) : in_buffer(&record, in_count, in_type)
#define FILL_ALLGATHER                                                                                                 \
    record.received = (uint64_t)size * in_buffer(&record, in_count, in_type);                                          \
    record.sent = out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : in_buffer(&record, out_count, out_type)
#define FILL_ALLTOALL                                                                                                  \
    record.received = (uint64_t)size * in_buffer(&record, in_count, in_type);                                          \
    record.sent = out == MPI_IN_PLACE ? record.received : (uint64_t)size * in_buffer(&record, out_count, out_type)

#define OUT const void *out, Count out_count, MPI_Datatype out_type
#define IN void *in, Count in_count, MPI_Datatype in_type
#define OUT_IN out, out_count, out_type, in, in_count, in_type
#define REDUCING const void *out, void *in, Count count, MPI_Datatype type, MPI_Op op

/* Defines the blocking and the non-blocking form of a collective without lists. */
#define BOTH_FORMS(Name, name, iname, PARAMETERS, ARGUMENTS, FILL)                                                     \
    EXPORT int MPI(Name)(PARAMETERS, MPI_Comm comm) {                                                                  \
        COLLECTIVE(OP_##name, comm, PMPI(Name)(ARGUMENTS, comm), FILL, 0);                                             \
    }                                                                                                                  \
    EXPORT int MPI(I##name)(PARAMETERS, MPI_Comm comm, MPI_Request * request) {                                        \
        COLLECTIVE(OP_##iname, comm, PMPI(I##name)(ARGUMENTS, comm, request), FILL, STARTED);                          \
    }
#define COMMA ,

BOTH_FORMS(Bcast, bcast, ibcast, void *buffer COMMA Count count COMMA MPI_Datatype type COMMA int root,
           buffer COMMA count COMMA type COMMA root, FILL_BCAST)
BOTH_FORMS(Reduce, reduce, ireduce, REDUCING COMMA int root, out COMMA in COMMA count COMMA type COMMA op COMMA root,
           FILL_REDUCE)
BOTH_FORMS(Allreduce, allreduce, iallreduce, REDUCING, out COMMA in COMMA count COMMA type COMMA op, FILL_BOTH)
BOTH_FORMS(Gather, gather, igather, OUT COMMA IN COMMA int root, OUT_IN COMMA root, FILL_GATHER)
BOTH_FORMS(Scatter, scatter, iscatter, OUT COMMA IN COMMA int root, OUT_IN COMMA root, FILL_SCATTER)
BOTH_FORMS(Allgather, allgather, iallgather, OUT COMMA IN, OUT_IN, FILL_ALLGATHER)
BOTH_FORMS(Alltoall, alltoall, ialltoall, OUT COMMA IN, OUT_IN, FILL_ALLTOALL)

#ifndef LARGE
EXPORT int MPI_Barrier(MPI_Comm comm) {
    COLLECTIVE(OP_barrier, comm, PMPI_Barrier(comm), , 0);
}

EXPORT int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    COLLECTIVE(OP_ibarrier, comm, PMPI_Ibarrier(comm, request), , STARTED);
}
#endif

EXPORT int MPI(Scan)(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_scan, comm, PMPI(Scan)(out, in, count, type, op, comm), FILL_BOTH, 0);
}

EXPORT int MPI(Exscan)(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_exscan, comm, PMPI(Exscan)(out, in, count, type, op, comm), FILL_BOTH, 0);
}

EXPORT int MPI(Reduce_scatter_block)(REDUCING, MPI_Comm comm) {
    COLLECTIVE(OP_reduce_scatter_block, comm, PMPI(Reduce_scatter_block)(out, in, count, type, op, comm),
               record.received = in_buffer(&record, count, type);
               record.sent = (uint64_t)size * record.received; add_reduction(&record, op), 0);
}

/* Collectives whose blocks differ: the list has the bytes of each block. ------------------------------------------- */

/* Stores the bytes of `size` blocks in `list`, and their type in the record; returns their sum. */
static uint64_t list_blocks(Record *record, int64_t *list, const Count *counts, MPI_Datatype type, int size) {
    uint64_t sum = 0, each = bytes_of(1, type);
    for (int i = 0; i < size; i++) {
        list[i] = counts[i] * (int64_t)each;
        sum += (uint64_t)list[i];
    }
    add_type(record, sum, type);
    return sum;
}

/* Allocates the lists of one call (at most LISTS x the size of the communicator), then executes CALL. */
#define WITH_LISTS(LISTS, COMM, CALL)                                                                                  \
    if (!is_followed(COMM))                                                                                            \
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
    if (call.recorded)                                                                                                 \
        record.site = SITE_NUMBER();                                                                                   \
    trace_leave(&call, &record, list, listed);                                                                         \
    if (list != short_list)                                                                                            \
        free(list);                                                                                                    \
    return code

EXPORT int MPI(Gatherv)(OUT, void *in, const Count counts[], const Place places[], MPI_Datatype in_type, int root,
                        MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI(Gatherv)(out, out_count, out_type, in, counts, places, in_type, root, comm));
    if (is_recorded(&call, code)) {
        record = collective(OP_gatherv, comm);
        record.root = root;
        if (me == root) {
            record.received = list_blocks(&record, list, counts, in_type, size);
            listed = (uint32_t)size;
        }
        record.sent = out == MPI_IN_PLACE ? (uint64_t)list[me] : in_buffer(&record, out_count, out_type);
    }
    END_LISTS;
}

EXPORT int MPI(Scatterv)(const void *out, const Count counts[], const Place places[], MPI_Datatype out_type, IN,
                         int root, MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI(Scatterv)(out, counts, places, out_type, in, in_count, in_type, root, comm));
    if (is_recorded(&call, code)) {
        record = collective(OP_scatterv, comm);
        record.root = root;
        if (me == root) {
            record.sent = list_blocks(&record, list, counts, out_type, size);
            listed = (uint32_t)size;
        }
        record.received = in == MPI_IN_PLACE ? (uint64_t)list[me] : in_buffer(&record, in_count, in_type);
    }
    END_LISTS;
}

static Record all_gathered(enum operation operation, OUT, const Count *counts, MPI_Datatype in_type, int64_t *list,
                           int me, int size, MPI_Comm comm) {
    Record record = collective(operation, comm);
    record.received = list_blocks(&record, list, counts, in_type, size);
    record.sent = out == MPI_IN_PLACE ? (uint64_t)list[me] : in_buffer(&record, out_count, out_type);
    return record;
}

EXPORT int MPI(Allgatherv)(OUT, void *in, const Count counts[], const Place places[], MPI_Datatype in_type,
                           MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI(Allgatherv)(out, out_count, out_type, in, counts, places, in_type, comm));
    if (is_recorded(&call, code)) {
        record = all_gathered(OP_allgatherv, out, out_count, out_type, counts, in_type, list, me, size, comm);
        listed = (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI(Iallgatherv)(OUT, void *in, const Count counts[], const Place places[], MPI_Datatype in_type,
                            MPI_Comm comm, MPI_Request *request) {
    WITH_LISTS(1, comm, PMPI(Iallgatherv)(out, out_count, out_type, in, counts, places, in_type, comm, request));
    if (is_recorded(&call, code)) {
        record = all_gathered(OP_iallgatherv, out, out_count, out_type, counts, in_type, list, me, size, comm);
        listed = (uint32_t)size;
        record.request = STARTED;
    }
    END_LISTS;
}

static Record all_exchanged(enum operation operation, const void *out, const Count *out_counts, MPI_Datatype out_type,
                            const Count *in_counts, MPI_Datatype in_type, int64_t *list, int size, MPI_Comm comm) {
    Record record = collective(operation, comm);
    record.received = list_blocks(&record, list + size, in_counts, in_type, size);
    record.sent = out == MPI_IN_PLACE ? list_blocks(&record, list, in_counts, in_type, size)
                                      : list_blocks(&record, list, out_counts, out_type, size);
    return record;
}

/* The list has the bytes sent to each rank, then those received from each rank. */
EXPORT int MPI(Alltoallv)(const void *out, const Count out_counts[], const Place out_places[], MPI_Datatype out_type,
                          void *in, const Count in_counts[], const Place in_places[], MPI_Datatype in_type,
                          MPI_Comm comm) {
    WITH_LISTS(2, comm,
               PMPI(Alltoallv)(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm));
    if (is_recorded(&call, code)) {
        record = all_exchanged(OP_alltoallv, out, out_counts, out_type, in_counts, in_type, list, size, comm);
        listed = 2 * (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI(Ialltoallv)(const void *out, const Count out_counts[], const Place out_places[], MPI_Datatype out_type,
                           void *in, const Count in_counts[], const Place in_places[], MPI_Datatype in_type,
                           MPI_Comm comm, MPI_Request *request) {
    WITH_LISTS(
        2, comm,
        PMPI(Ialltoallv)(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm, request));
    if (is_recorded(&call, code)) {
        record = all_exchanged(OP_ialltoallv, out, out_counts, out_type, in_counts, in_type, list, size, comm);
        listed = 2 * (uint32_t)size;
        record.request = STARTED;
    }
    END_LISTS;
}

EXPORT int MPI(Alltoallw)(const void *out, const Count out_counts[], const Place out_places[],
                          const MPI_Datatype out_types[], void *in, const Count in_counts[], const Place in_places[],
                          const MPI_Datatype in_types[], MPI_Comm comm) {
    WITH_LISTS(2, comm,
               PMPI(Alltoallw)(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm));
    if (is_recorded(&call, code)) {
        record = collective(OP_alltoallw, comm);
        for (int i = 0; i < size; i++) {
            list[size + i] = (int64_t)bytes_of(in_counts[i], in_types[i]);
            list[i] = out == MPI_IN_PLACE ? list[size + i] : (int64_t)bytes_of(out_counts[i], out_types[i]);
            record.sent += (uint64_t)list[i];
            record.received += (uint64_t)list[size + i];
            add_type(&record, (uint64_t)list[size + i], in_types[i]);
            if (out != MPI_IN_PLACE)
                add_type(&record, (uint64_t)list[i], out_types[i]);
        }
        listed = 2 * (uint32_t)size;
    }
    END_LISTS;
}

EXPORT int MPI(Reduce_scatter)(const void *out, void *in, const Count counts[], MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
    WITH_LISTS(1, comm, PMPI(Reduce_scatter)(out, in, counts, type, op, comm));
    if (is_recorded(&call, code)) {
        record = collective(OP_reduce_scatter, comm);
        record.sent = list_blocks(&record, list, counts, type, size);
        record.received = (uint64_t)list[me];
        add_reduction(&record, op);
        listed = (uint32_t)size;
    }
    END_LISTS;
}
