/* The table of collectives and their algorithms. */
#ifndef INTERFACE_REGISTRY_H
#define INTERFACE_REGISTRY_H

#include "core/call.h"

const char *coll_name(enum coll_op kind);     /* as in a decision file */
const char *coll_variable(enum coll_op kind); /* COLL_<OP> */
/* Returns the i-th algorithm of a collective in the order of algorithms.csv, or NULL if there are no more. */
const struct algorithm *coll_algorithm(enum coll_op kind, int i);

#endif
