/*
 * Type signature of a message, independent of how a rank describes it. The ranks of a broadcast may pass different
 * counts and types as long as the basic elements are the same in the same order (MPI 4.1, section 6.4). An algorithm
 * that splits the message into segments or blocks has to split it at the same places on all ranks, so it gets the
 * message in a uniform form, which depends on the basic elements only.
 */
#ifndef CORE_SIGNATURE_H
#define CORE_SIGNATURE_H

#include "core/call.h"

/* Size of a type in bytes, which may exceed an int. */
int coll_type_bytes(MPI_Datatype type, long long *bytes);
/* Returns whether a type has the uniform form already: all except derived types and MPI's pair types. */
bool coll_is_basic(MPI_Datatype type);

/* A broadcast in the uniform form. */
struct uniform {
    struct call call; /* the call to run instead */
    char *packed;     /* NULL: the elements are in the caller's buffer */
};

/* Returns COLL_USE_DEFAULT, on all ranks, if there are more elements than an int can count. */
int coll_uniform_start(const struct call *call, struct uniform *uniform);
/* Frees memory and, if rc is MPI_SUCCESS, unpacks received elements into the caller's buffer. Returns the error. */
int coll_uniform_end(const struct call *call, struct uniform *uniform, int rc);

#endif
