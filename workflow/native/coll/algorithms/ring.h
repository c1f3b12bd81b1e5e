/* The reduce-scatter around a ring of Open MPI's ring algorithms. */
#ifndef ALGORITHMS_RING_H
#define ALGORITHMS_RING_H

#include "algorithms/window.h"
#include "core/call.h"

struct ring {
    struct call *call;
    char *vector; /* this rank's operands, which partial results replace */
    int room;     /* elements in the largest block */
    MPI_Aint extent;
    char *raw[2], *incoming[2];
    MPI_Request requests[2];
};

/* Allocates memory, which ring_end() frees, also after an error. */
int ring_start(struct ring *r, struct call *call, char *vector, int room);
void ring_end(struct ring *r);
/*
 * Reduces one block for each rank. In step k a rank receives and reduces block first - k, and sends the block of the
 * step before; so in the end it has the result of block first + 1.
 */
int ring_reduce(struct ring *r, const struct window blocks[], int first);

#endif
