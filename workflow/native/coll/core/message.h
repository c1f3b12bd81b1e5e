/* Buffers and messages. All messages use the private communicator, with the kind of collective as tag. */
#ifndef CORE_MESSAGE_H
#define CORE_MESSAGE_H

#include "core/call.h"

/* Extents and size of a type, in bytes. */
struct extent {
    MPI_Aint lb, extent, true_lb, true_extent;
    int size;
};
int coll_extent(MPI_Datatype type, struct extent *extent);
/* Allocates memory for `count` elements: *address is that of element 0, *raw is to be freed. */
int coll_buffer(const struct extent *extent, size_t count, char **raw, char **address);
enum { PIECE = 1 << 28 }; /* bytes packed at once: MPI_Pack counts bytes in an int */
/* Returns whether elements, one after the other, have neither gaps nor overlap. */
bool coll_is_dense(const struct extent *extent);
int coll_copy(const void *from, void *to, int count, MPI_Datatype type);
/* Copies elements to others of the same signature; of another type, at most as many bytes as an int counts. */
int coll_convert(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type);
/* Computes to = from (op) to. In the simulator this takes time at the rate COLL_REDUCE_MB_S. */
int coll_reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op);
/* Returns whether the operation of a reduction is commutative. */
bool coll_commutes(const struct call *call);
/*
 * Returns whether the MPI library defines an operation for a type. Asked before a call: an algorithm may apply the
 * operation on some ranks only, and an error there would leave the others waiting. User-defined operations accept any
 * type. Init and free are collective only over MPI_COMM_SELF.
 */
bool coll_has_operation(MPI_Op op, MPI_Datatype type);
int coll_operations_init(void);
int coll_operations_free(void);
int coll_sendrecv(const struct call *call, const void *send, int send_count, int to, void *recv, int recv_count,
                  int from, MPI_Status *status);
int coll_sendrecv_empty(const struct call *call, int to, int from);
/* Sends an empty synchronous message: returns when the receiver has acknowledged it. */
int coll_ssend_empty(const struct call *call, int to);
/* Receives and acknowledges a message of coll_ssend_empty(). */
int coll_recv_synchronous(const struct call *call, int from);
int coll_send(const struct call *call, const void *buffer, int count, int to);
int coll_isend(const struct call *call, const void *buffer, int count, int to, MPI_Request *request);
int coll_recv(const struct call *call, void *buffer, int count, int from, MPI_Status *status);
int coll_irecv(const struct call *call, void *buffer, int count, int from, MPI_Request *request);
int coll_wait_sends(int n, MPI_Request requests[]);
/* Waits for all requests, even after an error, as a collective cannot be cancelled; returns the first error. */
int coll_wait_all(int n, MPI_Request requests[]);
static inline int coll_first_error(int before, int now) {
    return before != MPI_SUCCESS ? before : now;
}
void coll_cancel(int n, MPI_Request requests[]);
static inline char *coll_at(const void *buffer, MPI_Aint index, MPI_Aint extent) {
    return (char *)buffer + index * extent;
}

#endif
