/* First half of Rabenseifner's algorithms: fold to a power of two of ranks, reduce-scatter by recursive halving. */
#ifndef HALVING_H
#define HALVING_H

#include "algorithms/window.h"
#include "core/call.h"

enum { HALVING_MAX_STEPS = 31 };

struct halving {
    struct call *call;
    char *data, *incoming;
    MPI_Aint extent;
    int power, steps; /* number of participating ranks, and its base-2 logarithm */
    int folded;       /* number of rank pairs that act as one rank */
    int me;           /* index of this rank among the participants, -1 if it is none */
    struct window keep[HALVING_MAX_STEPS], give[HALVING_MAX_STEPS];
};

void halving_start(struct halving *h, struct call *call, char *data, char *incoming, MPI_Aint extent);
int halving_fold(struct halving *h);
int halving_reduce_scatter(struct halving *h);
int halving_rank(const struct halving *h, int index);
int halving_index(const struct halving *h, int rank);

#endif
