/* The allgathers of Open MPI's coll/tuned: the same messages in the same order as version 4.1. */
#include "algorithms/ompi.h"
#include "algorithms/rank_blocks.h"
#include "core/message.h"
#include "core/signature.h"
#include "core/tree.h"

#include <stdlib.h>

/* Sends n blocks from block `give` of a buffer on, and receives n blocks to block `take` on. */
static int exchange(const struct rank_blocks *blocks, char *buffer, int n, int give, int to, int take, int from) {
    const struct call *call = &blocks->call;
    return coll_sendrecv(call, rank_block_at(blocks, buffer, give), n * call->count, to,
                         rank_block_at(blocks, buffer, take), n * call->count, from, MPI_STATUS_IGNORE);
}

/* Describes the blocks in the receive buffer, and puts this rank's own block there. */
static int start(struct rank_blocks *blocks, const struct call *call) {
    TRY(rank_blocks_of(blocks, call));
    return rank_blocks_take_own(blocks, rank_block_at(blocks, call->recv, call->rank));
}

/* ---- gather to rank 0, then broadcast ---- */

static int bcast_all(const struct call *call) {
    struct call inner = *call;
    inner.kind = COLL_BCAST;
    inner.count = call->size * call->block_count;
    inner.type = call->block_type;
    inner.bytes = (size_t)call->size * call->bytes;
    return coll_run_uniform(&inner, ompi_bcast_default);
}

int ompi_allgather_linear(struct call *call) {
    struct rank_blocks blocks;
    struct call inner = *call;
    if (!rank_blocks_fit(call, call->size))
        return COLL_USE_DEFAULT;
    TRY(rank_blocks_of(&blocks, call));
    inner.kind = COLL_GATHER;
    inner.root = 0;
    if (call->send == MPI_IN_PLACE && call->rank != 0)
        inner.send = rank_block_at(&blocks, call->recv, call->rank);
    TRY(ompi_gather_default(&inner));
    inner.send = call->send;
    return bcast_all(&inner);
}

/* ---- Bruck: in each step a rank's blocks are those of the ranks from itself on ---- */

static int bruck(const struct rank_blocks *blocks, char *buffer) {
    int rank = blocks->call.rank, size = blocks->call.size;
    TRY(rank_blocks_take_own(blocks, buffer));
    for (int have = 1; have < size; have *= 2) {
        int n = have <= size / 2 ? have : size - have;
        TRY(exchange(blocks, buffer, n, 0, (rank - have + size) % size, have, (rank + have) % size));
    }
    return rank_blocks_rotate(blocks, buffer, rank);
}

int ompi_allgather_bruck(struct call *call) {
    struct rank_blocks blocks;
    char *raw, *buffer;
    if (!rank_blocks_fit(call, call->size))
        return COLL_USE_DEFAULT;
    TRY(rank_blocks_of(&blocks, call));
    if (call->rank == 0)
        return bruck(&blocks, call->recv);
    TRY(rank_blocks_buffer(&blocks, call->size, &raw, &buffer));
    int rc = bruck(&blocks, buffer);
    free(raw);
    return rc;
}

/* ---- every block goes directly to its place ---- */

int ompi_allgather_recursive_doubling(struct call *call) {
    struct rank_blocks blocks;
    if (coll_floor_power_of_two(call->size) != call->size)
        return ompi_allgather_bruck(call);
    if (!rank_blocks_fit(call, call->size))
        return COLL_USE_DEFAULT;
    TRY(start(&blocks, call));
    for (int have = 1; have < call->size; have *= 2) {
        int other = call->rank ^ have;
        TRY(exchange(&blocks, call->recv, have, call->rank / have * have, other, other / have * have, other));
    }
    return MPI_SUCCESS;
}

int ompi_allgather_ring(struct call *call) {
    struct rank_blocks blocks;
    int size = call->size, right = (call->rank + 1) % size, left = (call->rank - 1 + size) % size;
    TRY(start(&blocks, call));
    for (int step = 0; step < size - 1; step++)
        TRY(exchange(&blocks, call->recv, 1, (call->rank - step + size) % size, right, (left - step + size) % size,
                     left));
    return MPI_SUCCESS;
}

/* Pairs of blocks: those of the pair's other rank first, then those that the rank two below or above has had. */
int ompi_allgather_neighbor_exchange(struct call *call) {
    struct rank_blocks blocks;
    int rank = call->rank, size = call->size, way = rank % 2 == 0 ? 1 : -1, pair = rank - rank % 2;
    int neighbor[2] = {rank + way, (rank - way + size) % size};
    int offset[2] = {2 * way, -2 * way}, take[2] = {pair, pair}, give = pair;
    if (size % 2 != 0)
        return ompi_allgather_ring(call);
    if (!rank_blocks_fit(call, 2))
        return COLL_USE_DEFAULT;
    TRY(start(&blocks, call));
    TRY(exchange(&blocks, call->recv, 1, rank, neighbor[0], neighbor[0], neighbor[0]));
    for (int step = 1; step < size / 2; step++) {
        int side = step % 2;
        take[side] = (take[side] + offset[side] + size) % size;
        TRY(exchange(&blocks, call->recv, 2, give, neighbor[side], take[side], neighbor[side]));
        give = take[side];
    }
    return MPI_SUCCESS;
}

/* With two ranks, a ring is one message each way. */
int ompi_allgather_two_proc(struct call *call) {
    return call->size == 2 ? ompi_allgather_ring(call) : COLL_USE_DEFAULT;
}

/* ---- Sparbit, from Open MPI 5.0 on: the distance halves, and the blocks that a rank has are sent one by one ---- */

/* A rank has the blocks at even multiples of the distance below it, and receives those at odd multiples. */
static int exchange_blocks(const struct rank_blocks *blocks, int n, int distance, MPI_Request requests[]) {
    const struct call *call = &blocks->call;
    int rank = call->rank + call->size, size = call->size, to = (rank + distance) % size,
        from = (rank - distance) % size;
    for (int i = 0; i < n; i++) {
        char *give = rank_block_at(blocks, call->recv, (rank - 2 * i * distance) % size);
        char *take = rank_block_at(blocks, call->recv, (rank - (2 * i + 1) * distance) % size);
        TRY(coll_isend(call, give, call->count, to, &requests[i]));
        TRY(coll_irecv(call, take, call->count, from, &requests[n + i]));
    }
    return coll_wait_all(2 * n, requests);
}

static int sparbit(const struct rank_blocks *blocks, MPI_Request requests[]) {
    int size = blocks->call.size, distance = 1;
    while (2 * distance < size)
        distance *= 2;
    for (; distance > 0; distance /= 2) {
        int n = ((size - 1) / distance + 1) / 2; /* odd multiples of the distance below the number of ranks */
        TRY(exchange_blocks(blocks, n, distance, requests));
    }
    return MPI_SUCCESS;
}

int ompi_allgather_sparbit(struct call *call) {
    struct rank_blocks blocks;
    TRY(start(&blocks, call));
    MPI_Request *requests = malloc((size_t)call->size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < call->size; i++)
        requests[i] = MPI_REQUEST_NULL;
    int rc = sparbit(&blocks, requests);
    coll_cancel(call->size, requests);
    free(requests);
    return rc;
}

/* ---- the default (Open MPI decides a call with MPI_IN_PLACE by its send count, which has no meaning) ---- */

int ompi_allgather_default(struct call *call) {
    return ompi_decide(allgather_decisions, call);
}
