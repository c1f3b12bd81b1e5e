#include "exchange.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An empty entry, and the mark of the last entry of a block whose sender has nothing left to send. */
#define EMPTY ((uint64_t)1 << 63)
#define COMPLETE ((uint64_t)1 << 62)

void *allocate(size_t count, size_t size) {
    void *room = calloc(count ? count : 1, size);
    if (!room) {
        fprintf(stderr, "spiking: out of memory (%zu bytes)\n", count * size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return room;
}

static void set_buffers(Exchange *exchange) {
    free(exchange->out);
    free(exchange->in);
    exchange->out = allocate((size_t)exchange->size * exchange->per_rank, sizeof(uint64_t));
    exchange->in = allocate((size_t)exchange->size * exchange->per_rank, sizeof(uint64_t));
}

void exchange_init(Exchange *exchange, int size, double growth) {
    *exchange = (Exchange){.size = size, .per_rank = 2, .growth = growth};
    exchange->for_rank = allocate((size_t)size, sizeof(Entries));
    set_buffers(exchange);
}

void exchange_add(Exchange *exchange, int rank, uint64_t value) {
    Entries *entries = &exchange->for_rank[rank];
    if (entries->count == entries->room) {
        entries->room = entries->room ? 2 * entries->room : 64;
        entries->values = realloc(entries->values, entries->room * sizeof *entries->values);
        if (!entries->values) {
            fprintf(stderr, "spiking: out of memory\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    entries->values[entries->count++] = value;
}

/* Fills the block of each rank from entry number done[rank] on; returns whether all entries fit. */
static int fill(Exchange *exchange, size_t *done) {
    int complete = 1;
    for (int rank = 0; rank < exchange->size; rank++) {
        const Entries *entries = &exchange->for_rank[rank];
        uint64_t *block = exchange->out + (size_t)rank * exchange->per_rank;
        size_t left = entries->count - done[rank], count = left < exchange->per_rank ? left : exchange->per_rank;
        if (count)
            memcpy(block, entries->values + done[rank], count * sizeof *block);
        for (size_t i = count; i < exchange->per_rank; i++)
            block[i] = EMPTY;
        done[rank] += count;
        exchange->sent += (long)count;
        complete &= done[rank] == entries->count;
    }
    for (int rank = 0; complete && rank < exchange->size; rank++)
        exchange->out[(size_t)(rank + 1) * exchange->per_rank - 1] |= COMPLETE;
    return complete;
}

void exchange_all(Exchange *exchange, void (*receive)(void *context, int from, uint64_t value), void *context) {
    size_t *done = allocate((size_t)exchange->size, sizeof *done);
    for (int all_complete = 0; !all_complete;) {
        fill(exchange, done);
        MPI_Alltoall(exchange->out, (int)exchange->per_rank, MPI_UINT64_T, exchange->in, (int)exchange->per_rank,
                     MPI_UINT64_T, MPI_COMM_WORLD);
        exchange->rounds++;
        all_complete = 1;
        for (int from = 0; from < exchange->size; from++) {
            const uint64_t *block = exchange->in + (size_t)from * exchange->per_rank;
            for (size_t i = 0; i < exchange->per_rank; i++)
                if (!(block[i] & EMPTY))
                    receive(context, from, block[i] & ~COMPLETE);
            all_complete &= (block[exchange->per_rank - 1] & COMPLETE) != 0;
        }
        if (!all_complete) { /* all ranks see the same marks, so all grow together */
            size_t grown = (size_t)(exchange->growth * (double)exchange->per_rank);
            exchange->per_rank = grown > exchange->per_rank ? grown : exchange->per_rank + 1;
            exchange->growths++;
            set_buffers(exchange);
        }
    }
    for (int rank = 0; rank < exchange->size; rank++)
        exchange->for_rank[rank].count = 0;
    free(done);
}

void exchange_free(Exchange *exchange) {
    for (int rank = 0; rank < exchange->size; rank++)
        free(exchange->for_rank[rank].values);
    free(exchange->for_rank);
    free(exchange->out);
    free(exchange->in);
}
