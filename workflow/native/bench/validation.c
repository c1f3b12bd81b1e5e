#include "validation.h"

#include <string.h>

/* A message: its sender, its destination (0 if all ranks get the same), the iteration and the number of ranks. */
struct message {
    size_t source, destination, iteration, ranks;
};

/* Byte at `offset`: 1 to 101 (a cleared buffer has 0), different for neighbouring ranks, iterations and offsets. */
static char message_byte(const struct message *message, size_t offset) {
    return (char)(1 + (offset + 7 * message->source + 31 * message->destination + 13 * message->iteration) % 101);
}

/* For sums, one rank in turn contributes to each byte and the others add 0: no number of ranks overflows a byte. */
static size_t contributor(const struct message *message, size_t offset) {
    return (offset + message->iteration) % message->ranks;
}

static char summand_byte(const struct message *message, size_t offset) {
    struct message anonymous = {ROOT, message->destination, message->iteration, message->ranks};
    return contributor(message, offset) == message->source ? message_byte(&anonymous, offset) : 0;
}

static bool sums(void) {
    return benchmark->collective && benchmark->collective->sums;
}

static void fill_message(char *buffer, size_t size, const struct message *message) {
    for (size_t offset = 0; offset < size; offset++)
        buffer[offset] = sums() ? summand_byte(message, offset) : message_byte(message, offset);
}

/* Counts the wrong bytes in a buffer that holds the message from byte `first` on. */
static long count_wrong(const char *buffer, size_t size, size_t first, const struct message *message) {
    long wrong = 0;
    for (size_t offset = 0; offset < size; offset++)
        wrong += buffer[offset] != message_byte(message, first + offset);
    return wrong;
}

/* Counts the wrong bytes in a sum of the blocks of the first `summed` ranks; nothing is defined if there are none. */
static long count_wrong_prefix(const char *buffer, size_t size, size_t summed, const struct message *message) {
    long wrong = 0;
    for (size_t offset = 0; summed > 0 && offset < size; offset++)
        wrong += buffer[offset] != (contributor(message, offset) < summed ? message_byte(message, offset) : 0);
    return wrong;
}

void fill_buffers(const struct buffers *buffers, size_t size, int iteration, const struct world *world) {
    const struct collective *collective = benchmark->collective;
    if (!collective || !collective->root_receives || world->rank == ROOT)
        memset(buffers->recv, 0, size * (collective && collective->collects ? world->ranks : 1));
    if (collective && collective->root_sends && world->rank != ROOT)
        return;
    int blocks = collective && collective->personal ? world->ranks : 1;
    for (int block = 0; block < blocks; block++) {
        struct message message = {world->rank, block, iteration, world->ranks};
        fill_message(buffers->send + block * size, size, &message);
    }
}

long count_wrong_bytes(const struct buffers *buffers, size_t size, int iteration, const struct world *world) {
    const struct collective *collective = benchmark->collective;
    if (!collective) { /* the sender is the partner rank */
        int half = world->ranks / 2;
        if (benchmark->exchange->one_way && world->rank == 0)
            return 0;
        struct message message = {(world->rank + half) % world->ranks, 0, iteration, world->ranks};
        return count_wrong(buffers->recv, size, 0, &message);
    }
    if (collective->root_receives && world->rank != ROOT)
        return 0;
    if (collective->parts)
        return count_wrong(buffers->recv, world->counts[world->rank], world->displacements[world->rank],
                           &(struct message){ROOT, 0, iteration, world->ranks});
    if (collective->summed != ALL_RANKS)
        return count_wrong_prefix(buffers->recv, size, world->rank + (collective->summed == PREFIX_AND_OWN),
                                  &(struct message){ROOT, 0, iteration, world->ranks});
    long wrong = 0;
    int blocks = collective->collects ? world->ranks : 1;
    for (int block = 0; block < blocks; block++) {
        struct message message = {collective->collects ? block : ROOT, collective->personal ? world->rank : 0,
                                  iteration, world->ranks};
        wrong += count_wrong(buffers->recv + block * size, size, 0, &message);
    }
    return wrong;
}
