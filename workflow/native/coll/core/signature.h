/*
 * What a message consists of, however a rank describes it. The ranks of a broadcast may give different counts and types
 * as long as the basic elements are the same ones in the same order (MPI 4.1, section 6.4). An algorithm that cuts the
 * message into segments or blocks has to cut it at the same places on all ranks, so it gets it in a form that depends
 * on the elements only.
 */
#ifndef CORE_SIGNATURE_H
#define CORE_SIGNATURE_H

#include "core/call.h"

/* Bytes of the elements, which may be more than an int counts. */
int coll_type_bytes(MPI_Datatype type, long long *bytes);
/* Whether no other type can describe the same elements: all but derived types and MPI's pairs. */
bool coll_is_basic(MPI_Datatype type);

/* A broadcast in that form. */
struct uniform {
    struct call call; /* to be run instead */
    char *packed;     /* NULL: in the caller's buffer */
};

/* COLL_USE_DEFAULT, on all ranks alike, when there are more elements than an int counts. */
int coll_uniform_start(const struct call *call, struct uniform *uniform);
/* Frees, and puts what came into the caller's buffer if rc says that it did. */
int coll_uniform_end(const struct call *call, struct uniform *uniform, int rc);

#endif
