/*
 * Reductions by exchanges with rank XOR 2^k, for any number of ranks: of the first ranks, each even one gives its whole
 * vector to the odd one after it, so that a power of two of ranks takes part. The order of the operands is kept.
 */
#ifndef ALGORITHMS_FOLDING_H
#define ALGORITHMS_FOLDING_H

#include "algorithms/window.h"
#include "core/call.h"

struct folding {
    struct call *call;
    char *mine, *other; /* this rank's partial result, and what it receives: vectors of call->count elements */
    MPI_Aint extent;
    int power, pairs; /* number of ranks that take part, and of pairs of which only the odd rank does */
    int me;           /* index of this rank among those that take part, -1 if it does not */
};

int folding_start(struct folding *f, struct call *call, char *mine, char *other);
/* The exchange of each pair. */
int folding_fold(struct folding *f);
/* Returns the rank at an index, and the lowest rank for which it takes part. */
int folding_rank(const struct folding *f, int index);
int folding_lowest(const struct folding *f, int index);
/* Reduces a window of *mine and of *other, which came from a rank, into *mine. */
int folding_combine(struct folding *f, struct window window, int from);

#endif
