/* The exchange of entries between all ranks in buffers of a fixed size that grow when they overflow, as NEST does it.
 */
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
    Entries *for_rank; /* what is to be sent, by rank */
    size_t per_rank;   /* entries of the buffer for each rank */
    double growth;
    uint64_t *out, *in;
    /* What happened: rounds of MPI_Alltoall, times that the buffers grew, entries sent. */
    long rounds, growths, sent;
} Exchange;

void exchange_init(Exchange *exchange, int size, double growth);
void exchange_add(Exchange *exchange, int rank, uint64_t value);
/* Send all entries; `receive` is called for each one that arrives. All ranks call it at the same time. */
void exchange_all(Exchange *exchange, void (*receive)(void *context, int from, uint64_t value), void *context);
void exchange_free(Exchange *exchange);

/* calloc or the end of the program. */
void *allocate(size_t count, size_t size);

#endif
