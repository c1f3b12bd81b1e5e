#include "algorithms/ring.h"
#include "core/message.h"

#include <stdlib.h>

int ring_start(struct ring *r, struct call *call, char *vector, int room) {
    struct extent extent;
    *r = (struct ring){.call = call, .vector = vector, .room = room, .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    TRY(coll_extent(call->type, &extent));
    r->extent = extent.extent;
    TRY(coll_buffer(&extent, (size_t)room, &r->raw[0], &r->incoming[0]));
    return coll_buffer(&extent, (size_t)room, &r->raw[1], &r->incoming[1]);
}

void ring_end(struct ring *r) {
    coll_cancel(2, r->requests);
    free(r->raw[0]);
    free(r->raw[1]);
}

static int start_receive(struct ring *r, int which) {
    int left = (r->call->rank + r->call->size - 1) % r->call->size;
    return coll_irecv(r->call, r->incoming[which], r->room, left, &r->requests[which]);
}

static int send_right(const struct ring *r, struct window block) {
    return coll_send(r->call, coll_at(r->vector, block.first, r->extent), block.count,
                     (r->call->rank + 1) % r->call->size);
}

int ring_reduce(struct ring *r, const struct window blocks[], int first) {
    struct call *call = r->call;
    TRY(start_receive(r, 0));
    TRY(send_right(r, blocks[first]));
    for (int k = 1; k < call->size; k++) {
        int now = (k - 1) % 2;
        bool last = k + 1 == call->size;
        struct window block = blocks[(first - k + call->size) % call->size];
        if (!last)
            TRY(start_receive(r, 1 - now));
        TRY(PMPI_Wait(&r->requests[now], MPI_STATUS_IGNORE));
        TRY(coll_reduce_local(r->incoming[now], coll_at(r->vector, block.first, r->extent), block.count, call->type,
                              call->op));
        if (!last)
            TRY(send_right(r, block));
    }
    return MPI_SUCCESS;
}
