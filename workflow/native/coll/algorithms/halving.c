#include "algorithms/halving.h"
#include "core/message.h"
#include "core/tree.h"

int halving_rank(const struct halving *h, int index) {
    return index < h->folded ? 2 * index : index + h->folded;
}

/* For a participating rank only. */
int halving_index(const struct halving *h, int rank) {
    return rank < 2 * h->folded ? rank / 2 : rank - h->folded;
}

void halving_start(struct halving *h, struct call *call, char *data, char *incoming, MPI_Aint extent) {
    *h = (struct halving){.call = call, .data = data, .incoming = incoming, .extent = extent};
    h->power = coll_floor_power_of_two(call->size);
    while (1 << h->steps < h->power)
        h->steps++;
    h->folded = call->size - h->power;
    h->me = call->rank < 2 * h->folded && call->rank % 2 != 0 ? -1 : halving_index(h, call->rank);
}

static int exchange_and_reduce(struct halving *h, struct window give, struct window keep, int other) {
    char *mine = coll_at(h->data, keep.first, h->extent), *theirs = coll_at(h->incoming, keep.first, h->extent);
    TRY(coll_sendrecv(h->call, coll_at(h->data, give.first, h->extent), give.count, other, theirs, keep.count, other,
                      MPI_STATUS_IGNORE));
    return coll_reduce_local(theirs, mine, keep.count, h->call->type, h->call->op);
}

/* Each rank of a pair reduces one half; then the odd one sends its half to the even one and takes no further part. */
int halving_fold(struct halving *h) {
    struct call *call = h->call;
    struct window left = {0, call->count / 2}, right = {call->count / 2, call->count - call->count / 2};
    if (call->rank >= 2 * h->folded)
        return MPI_SUCCESS;
    if (call->rank % 2 != 0) {
        TRY(exchange_and_reduce(h, left, right, call->rank - 1));
        return coll_send(call, coll_at(h->data, right.first, h->extent), right.count, call->rank - 1);
    }
    TRY(exchange_and_reduce(h, right, left, call->rank + 1));
    return coll_recv(call, coll_at(h->data, right.first, h->extent), right.count, call->rank + 1, MPI_STATUS_IGNORE);
}

/* In each step the window of this rank becomes the half that it keeps; the distance doubles. */
int halving_reduce_scatter(struct halving *h) {
    struct window window = {0, h->call->count};
    if (h->me < 0)
        return MPI_SUCCESS;
    for (int step = 0; step < h->steps; step++) {
        int other = h->me ^ (1 << step);
        struct window left = {window.first, window.count / 2};
        struct window right = {window.first + left.count, window.count - left.count};
        h->keep[step] = h->me < other ? left : right;
        h->give[step] = h->me < other ? right : left;
        TRY(exchange_and_reduce(h, h->give[step], h->keep[step], halving_rank(h, other)));
        window = h->keep[step];
    }
    return MPI_SUCCESS;
}
