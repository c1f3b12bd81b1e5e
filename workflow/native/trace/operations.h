/* The operations of a trace, by the name of the MPI function without MPI_ and in lower case. They are data:
 * operations.csv, of which operations.awk makes operation_list.h (the macro TRACE_OPERATIONS(X) of all of them). Their
 * order is part of the format; collectives come last. */
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
