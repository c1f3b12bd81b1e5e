#include "algorithms/rank_blocks.h"
#include "core/message.h"

int rank_blocks_of(struct rank_blocks *blocks, const struct call *call) {
    struct extent extent;
    blocks->call = *call;
    if (call->rank == call->root) {
        if (call->root_count < 0 || call->root_type == MPI_DATATYPE_NULL)
            return COLL_USE_DEFAULT;
        blocks->call.count = call->root_count;
        blocks->call.type = call->root_type;
    }
    TRY(coll_extent(blocks->call.type, &extent));
    blocks->step = blocks->call.count * extent.extent;
    return MPI_SUCCESS;
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
