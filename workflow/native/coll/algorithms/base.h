/* Collectives that algorithms call on the communicators that they create: the MPI library's own, or (COLL_BASE=ompi)
 * this library's re-implementation of Open MPI's default decisions. */
#ifndef ALGORITHMS_BASE_H
#define ALGORITHMS_BASE_H

#include "core/call.h"

int coll_base_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int coll_base_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int coll_base_gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                     MPI_Datatype recv_type, int root, MPI_Comm comm);

#endif
