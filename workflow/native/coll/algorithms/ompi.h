/* Algorithms of Open MPI's coll/tuned, which other algorithms use, and its default decisions. */
#ifndef ALGORITHMS_OMPI_H
#define ALGORITHMS_OMPI_H

#include "algorithms.h"

#include <stdint.h>

/*
 * A row of the default decisions of Open MPI 4.1 (coll_tuned_decision_fixed.c). The tables are in ompi_decisions.csv,
 * from which the Makefile generates ompi_decisions.h (an array <table>_decisions of each).
 */
struct ompi_decision {
    size_t ranks, bytes; /* the row applies below these limits */
    algorithm_function *run;
};

#include "ompi_decisions.h"

/* Runs the algorithm of the first matching row, without segmentation and with fan-out 1 for a chain. */
int ompi_decide(const struct ompi_decision *row, struct call *call);

#endif
