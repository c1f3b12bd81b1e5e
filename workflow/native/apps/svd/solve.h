#ifndef SOLVE_H
#define SOLVE_H

#include "comm.h"

/* Sweeps over a's columns until all are orthogonal or the limit is reached. columns: the root's records, in and out. */
Work solve(Comm *comm, const Layout *layout, const Options *options, double *columns);

#endif
