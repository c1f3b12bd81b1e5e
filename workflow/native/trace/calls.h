/* Shared by the recorded functions. */
#ifndef CALLS_H
#define CALLS_H

#include "trace.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* large.c compiles files again with LARGE, for the functions with counts of type MPI_Count (MPI 4). */
#ifdef LARGE
typedef MPI_Count Count;
typedef MPI_Aint Place;
#define MPI(NAME) MPI_##NAME##_c
#define PMPI(NAME) PMPI_##NAME##_c
#else
typedef int Count;
typedef int Place;
#define MPI(NAME) MPI_##NAME
#define PMPI(NAME) PMPI_##NAME
#endif

static inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size_x(type, &size);
    return (uint64_t)count * (uint64_t)size;
}

/* Calls on intercommunicators are not recorded: the format has no room for their two groups. */
static inline bool is_followed(MPI_Comm comm) {
    static _Atomic bool marked;
    int inter = 0;
    if (!trace_is_open() || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return false;
    if (inter && !marked) {
        marked = true;
        trace_mark("unrecorded-calls on intercommunicators");
    }
    return !inter;
}

static inline Call enter_on(MPI_Comm comm) {
    Call call = trace_enter();
    call.recorded = call.recorded && is_followed(comm);
    return call;
}

/* Returns whether to record a call that has returned `code`. A call with an error did nothing. */
static inline bool is_recorded(Call *call, int code) {
    call->recorded = call->recorded && code == MPI_SUCCESS;
    return call->recorded;
}

/* Returns a record without bytes, ranks and tags. */
static inline Record blank(enum operation operation) {
    return (Record){.operation = (uint16_t)operation, .root = NONE, .to = NONE, .from = NONE};
}

#endif
