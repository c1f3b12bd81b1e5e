/* What algorithms call on the communicators that they make: the MPI library's own collectives, or (COLL_BASE=ompi) this
 * library's re-implementation of what Open MPI decides. */
#ifndef ALGORITHMS_BASE_H
#define ALGORITHMS_BASE_H

#include "core/call.h"

int coll_base_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int coll_base_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);

#endif
