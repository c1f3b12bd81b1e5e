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
/*
 * Runs a broadcast in the uniform form. Returns COLL_USE_DEFAULT, on all ranks, if there are more elements than an int
 * can count.
 */
int coll_run_uniform(const struct call *call, algorithm_function *run);

#endif
