/* The collectives and the algorithms that exist. */
#ifndef INTERFACE_REGISTRY_H
#define INTERFACE_REGISTRY_H

#include "core/call.h"

const char *coll_name(enum coll_op kind);     /* as in a decision file */
const char *coll_variable(enum coll_op kind); /* COLL_<OP> */
/* The i-th algorithm of a collective, in the order of algorithms.csv; NULL: there are no more. */
const struct algorithm *coll_algorithm(enum coll_op kind, int i);

#endif
