/* The operations of a trace, named after the MPI function, in lower case and without MPI_. They are listed in
 * operations.csv, from which operations.awk generates operation_list.h (the macro TRACE_OPERATIONS(X) of all of them).
 * Their order is part of the format; collectives come last. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "operation_list.h"

enum operation {
    OP_END,
#define X(name) OP_##name,
    TRACE_OPERATIONS(X)
#undef X
        OP_COUNT,
    OP_FIRST_COLLECTIVE = TRACE_FIRST_COLLECTIVE,
    OP_LIST = 0xffff /* a slot with numbers of the record before it */
};

#endif
