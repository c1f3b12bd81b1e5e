#include "buffers.h"
#include "errors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Blocks in the send buffer. */
static size_t send_blocks(const struct world *world) {
    return benchmark->collective && benchmark->collective->personal ? world->ranks : 1;
}

/* Blocks in the receive buffer. */
static size_t recv_blocks(const struct world *world) {
    return benchmark->collective && benchmark->collective->collects ? world->ranks : 1;
}

bool limit_sizes(const struct world *world, struct options *options) {
    size_t blocks = send_blocks(world) > recv_blocks(world) ? send_blocks(world) : recv_blocks(world);
    bool counted = benchmark->collective && benchmark->collective->counts == COUNTS_EQUAL;
    size_t limit = counted && options->memory_limit > INT_MAX ? INT_MAX : options->memory_limit;
    if (benchmark->sizeless || options->max_size <= limit / blocks)
        return true;
    options->max_size = limit / blocks;
    if (world->rank == ROOT && limit < options->memory_limit)
        complain("skipping sizes above %zu bytes: their displacements would exceed an int", options->max_size);
    else if (world->rank == ROOT)
        complain("skipping sizes above %zu bytes: their buffers would exceed the memory limit of %zu bytes (-M)",
                 options->max_size, options->memory_limit);
    return options->min_size <= options->max_size;
}

/* Touches the memory only if this rank uses it: unused buffers of a rooted collective take no physical memory. */
static char *allocate(const struct world *world, const char *what, size_t bytes, bool used, int value) {
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes) != 0)
        give_up("rank %d: cannot allocate %zu bytes to %s; use smaller messages (-m) or fewer ranks", world->rank,
                bytes, what);
    if (used)
        memset(memory, value, bytes);
    return memory;
}

/* Returns the largest size that the sweep reaches, which may be far below max_size. */
static size_t largest_message(const struct options *options) {
    size_t size = options->min_size;
    while (size <= options->max_size / options->size_factor)
        size *= options->size_factor;
    return size;
}

struct buffers allocate_buffers(const struct world *world, const struct options *options) {
    struct buffers buffers = {NULL, NULL};
    if (benchmark->sizeless)
        return buffers;
    const struct collective *collective = benchmark->collective;
    size_t bytes = largest_message(options);
    bool sends = !collective || !collective->root_sends || world->rank == ROOT;
    bool receives = !collective || !collective->root_receives || world->rank == ROOT;
    buffers.recv = allocate(world, "receive", bytes * recv_blocks(world), receives, 0);
    if (collective && collective->in_place)
        buffers.send = buffers.recv;
    else
        buffers.send = allocate(world, "send", bytes * send_blocks(world), sends, 1);
    return buffers;
}

void free_buffers(struct buffers *buffers) {
    if (buffers->send != buffers->recv)
        free(buffers->send);
    free(buffers->recv);
}

void allocate_counts(struct world *world) {
    world->counts = world->displacements = NULL;
    if (!benchmark->collective || benchmark->collective->counts == COUNTS_NONE)
        return;
    world->counts = malloc(2 * (size_t)world->ranks * sizeof world->counts[0]);
    if (!world->counts)
        give_up("rank %d: cannot allocate the counts of %d ranks", world->rank, world->ranks);
    world->displacements = world->counts + world->ranks;
}

void free_counts(struct world *world) {
    free(world->counts);
    world->counts = world->displacements = NULL;
}

void fill_counts(const struct world *world, size_t size) {
    int at = 0;
    if (!world->counts)
        return;
    bool equal = benchmark->collective->counts == COUNTS_EQUAL;
    int each = (int)(equal ? size : size / world->ranks), more = (int)(equal ? 0 : size % world->ranks);
    for (int i = 0; i < world->ranks; i++) {
        world->counts[i] = each + (i < more);
        world->displacements[i] = at;
        at += world->counts[i];
    }
}
