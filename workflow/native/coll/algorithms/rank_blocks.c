#include "algorithms/rank_blocks.h"
#include "core/message.h"

int rank_blocks_of(struct rank_blocks *blocks, const struct call *call) {
    struct extent extent;
    blocks->call = *call;
    TRY(coll_extent(call->type, &extent));
    blocks->step = call->count * extent.extent;
    return MPI_SUCCESS;
}

int rank_blocks_of_root(struct rank_blocks *blocks, const struct call *call) {
    struct call of_root = *call;
    if (call->root_count < 0 || call->root_type == MPI_DATATYPE_NULL)
        return COLL_USE_DEFAULT;
    of_root.count = call->root_count;
    of_root.type = call->root_type;
    return rank_blocks_of(blocks, &of_root);
}

char *rank_block_at(const struct rank_blocks *blocks, const void *buffer, int i) {
    return coll_at(buffer, i, blocks->step);
}

int rank_blocks_below(const struct call *call, int rank) {
    int place = (int)(((long)rank - call->root + call->size) % call->size);
    int lowest = place & -place;
    return place == 0 ? call->size : lowest < call->size - place ? lowest : call->size - place;
}

int rank_blocks_buffer(const struct rank_blocks *blocks, char **raw, char **buffer) {
    struct extent extent;
    TRY(coll_extent(blocks->call.type, &extent));
    size_t n = (size_t)rank_blocks_below(&blocks->call, blocks->call.rank);
    return coll_buffer(&extent, n * (size_t)blocks->call.count, raw, buffer);
}
