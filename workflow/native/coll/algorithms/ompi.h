/* Algorithms of Open MPI's coll/tuned that other algorithms are made of, and how its defaults are decided. */
#ifndef ALGORITHMS_OMPI_H
#define ALGORITHMS_OMPI_H

#include "algorithms.h"

/*
 * A row of what Open MPI 4.1 chooses by default (coll_tuned_decision_fixed.c). The tables are data:
 * ompi_decisions.csv, of which the Makefile makes ompi_decisions.h (a macro OMPI_DECIDES_<table>(X) of all rows).
 */
struct ompi_decision {
    size_t ranks, bytes; /* fewer than that many */
    algorithm_function *run;
};

/* The first row that fits runs. Nothing is segmented, and a chain has fan-out 1. */
int ompi_decide(const struct ompi_decision *row, struct call *call);

#endif
