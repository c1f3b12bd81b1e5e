/* Shared by the recorded functions. */
#ifndef CALLS_H
#define CALLS_H

#include "trace.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

static inline uint64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size(type, &size);
    return (uint64_t)count * (uint64_t)size;
}

/* Returns a record without bytes, ranks and tags. */
static inline Record blank(enum operation operation) {
    return (Record){.operation = (uint16_t)operation, .root = NONE, .to = NONE, .from = NONE};
}

#endif
