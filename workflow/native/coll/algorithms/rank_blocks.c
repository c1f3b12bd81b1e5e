#include "algorithms/rank_blocks.h"
#include "core/message.h"

#include <limits.h>

int rank_blocks_of(struct rank_blocks *blocks, const struct call *call) {
    struct extent extent;
    bool has_all = call->rank == call->root || call->kind == COLL_ALLGATHER;
    blocks->call = *call;
    blocks->user = call;
    if (has_all) {
        if (call->block_count < 0 || call->block_type == MPI_DATATYPE_NULL)
            return COLL_USE_DEFAULT;
        blocks->call.count = call->block_count;
        blocks->call.type = call->block_type;
    }
    TRY(coll_extent(blocks->call.type, &extent));
    if (!has_all && !coll_is_dense(&extent)) {
        blocks->call.count = (int)call->bytes;
        blocks->call.type = MPI_PACKED;
        TRY(coll_extent(MPI_PACKED, &extent));
    }
    blocks->step = blocks->call.count * extent.extent;
    return MPI_SUCCESS;
}

/* The ranks may count in different types, so the bytes decide: there is at least one in each element. */
bool rank_blocks_fit(const struct call *call, int n) {
    return call->bytes <= (size_t)INT_MAX / (size_t)n;
}

char *rank_block_at(const struct rank_blocks *blocks, const void *buffer, int i) {
    return coll_at(buffer, i, blocks->step);
}

int rank_blocks_take_own(const struct rank_blocks *blocks, void *to) {
    const struct call *user = blocks->user, *call = &blocks->call;
    if (user->send == MPI_IN_PLACE)
        return coll_copy(rank_block_at(blocks, call->recv, call->rank), to, call->count, call->type);
    return coll_convert(user->send, user->count, user->type, to, call->count, call->type);
}

int rank_blocks_rotate(const struct rank_blocks *blocks, const void *from, int first) {
    const struct call *call = &blocks->call;
    int after = call->size - first;
    TRY(coll_copy(from, rank_block_at(blocks, call->recv, first), after * call->count, call->type));
    return coll_copy(rank_block_at(blocks, from, after), call->recv, first * call->count, call->type);
}

int rank_blocks_below(const struct call *call, int rank) {
    int place = (int)(((long)rank - call->root + call->size) % call->size);
    int lowest = place & -place;
    return place == 0 ? call->size : lowest < call->size - place ? lowest : call->size - place;
}

int rank_blocks_buffer(const struct rank_blocks *blocks, int n, char **raw, char **buffer) {
    struct extent extent;
    TRY(coll_extent(blocks->call.type, &extent));
    return coll_buffer(&extent, (size_t)n * (size_t)blocks->call.count, raw, buffer);
}
