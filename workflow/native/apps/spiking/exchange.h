/* Exchange of entries between all ranks as in NEST: in buffers of equal size, which grow when they overflow. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

/* Entries for one rank. */
typedef struct Entries {
    uint64_t *values; /* without the two highest bits, which are the markers */
    size_t count, room;
} Entries;

typedef struct Exchange {
    int size;
    Entries *for_rank; /* entries to send, by rank */
    size_t per_rank;   /* entries per rank in the buffers */
    double growth;
    uint64_t *out, *in;
    /* Statistics: rounds of MPI_Alltoall, times that the buffers grew, entries sent. */
    long rounds, growths, sent;
} Exchange;

void exchange_init(Exchange *exchange, int size, double growth);
void exchange_add(Exchange *exchange, int rank, uint64_t value);
/* Sends all entries and calls `receive` for each one that arrives. Collective over all ranks. */
void exchange_all(Exchange *exchange, void (*receive)(void *context, int from, uint64_t value), void *context);
void exchange_free(Exchange *exchange);

/* Like calloc(), but aborts the program if there is not enough memory. */
void *allocate(size_t count, size_t size);

#endif
