#include "algorithms/folding.h"
#include "core/message.h"
#include "core/tree.h"

int folding_start(struct folding *f, struct call *call, char *mine, char *other) {
    struct extent extent;
    int power = coll_floor_power_of_two(call->size), pairs = call->size - power;
    TRY(coll_extent(call->type, &extent));
    *f = (struct folding){
        .call = call, .mine = mine, .other = other, .extent = extent.extent, .power = power, .pairs = pairs};
    if (call->rank >= 2 * pairs)
        f->me = call->rank - pairs;
    else
        f->me = call->rank % 2 == 0 ? -1 : call->rank / 2;
    return MPI_SUCCESS;
}

int folding_rank(const struct folding *f, int index) {
    return index < f->pairs ? 2 * index + 1 : index + f->pairs;
}

int folding_lowest(const struct folding *f, int index) {
    return index < f->pairs ? 2 * index : index + f->pairs;
}

int folding_fold(struct folding *f) {
    struct call *call = f->call;
    if (call->rank >= 2 * f->pairs)
        return MPI_SUCCESS;
    if (f->me < 0)
        return coll_send(call, f->mine, call->count, call->rank + 1);
    TRY(coll_recv(call, f->other, call->count, call->rank - 1, MPI_STATUS_IGNORE));
    return coll_reduce_local(f->other, f->mine, call->count, call->type, call->op);
}

int folding_combine(struct folding *f, struct window window, int from) {
    const struct call *call = f->call;
    char *mine = coll_at(f->mine, window.first, f->extent), *other = coll_at(f->other, window.first, f->extent);
    if (from < call->rank)
        return coll_reduce_local(other, mine, window.count, call->type, call->op);
    TRY(coll_reduce_local(mine, other, window.count, call->type, call->op));
    char *swap = f->mine;
    f->mine = f->other;
    f->other = swap;
    return MPI_SUCCESS;
}
