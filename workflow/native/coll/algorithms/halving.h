/* The first half of Rabenseifner's algorithms: fold to a power of two of ranks, then reduce-scatter by halving. */
#ifndef HALVING_H
#define HALVING_H

#include "core/call.h"

enum { HALVING_MAX_STEPS = 31 };

struct window {
    int first, count;
};

struct halving {
    struct call *call;
    char *data, *incoming;
    MPI_Aint extent;
    int power, steps; /* ranks that take part, and its logarithm */
    int folded;       /* that many pairs of ranks act as one */
    int me;           /* this rank among those that take part, -1 if it does not */
    struct window keep[HALVING_MAX_STEPS], give[HALVING_MAX_STEPS];
};

void halving_start(struct halving *h, struct call *call, char *data, char *incoming, MPI_Aint extent);
int halving_fold(struct halving *h);
int halving_reduce_scatter(struct halving *h);
int halving_rank(const struct halving *h, int index);
int halving_index(const struct halving *h, int rank);

#endif
