/* Sweeps in the ordering of Brent and Luk (1985) on a line of processes, with blocks of columns in place of columns.
 *
 * Process k holds a left and a right block. A step rotates all pairs of the two blocks; then the blocks move: right
 * blocks to the left neighbour, left blocks to the right neighbour, except that process 0 keeps its left block and
 * sends its right block instead, and the last process turns its left block into its right one. After 2P - 1 steps every
 * two blocks have met once and all are back where they began. The pairs inside a block are rotated in the first step.
 */
#include "solve.h"

#include <stdlib.h>
#include <string.h>

/* order[2k], order[2k + 1]: the blocks at process k. */
static void shift_order(int *order, int processes) {
    if (processes == 1)
        return;
    int *old = allocate((size_t)processes * 2 * sizeof(int));
    memcpy(old, order, (size_t)processes * 2 * sizeof(int));
    for (int k = 0; k < processes; k++) {
        if (k > 0)
            order[2 * k] = k == 1 ? old[1] : old[2 * (k - 1)];
        order[2 * k + 1] = k == processes - 1 ? old[2 * k] : old[2 * (k + 1) + 1];
    }
    free(old);
}

static void name_blocks(const Layout *layout, const int *order, int rank, Block pair[2]) {
    for (int side = 0; side < 2; side++) {
        pair[side].id = order[2 * rank + side];
        pair[side].count = block_count(layout, pair[side].id);
    }
}

static void start_columns(const Layout *layout, Block block) {
    for (int i = 0; i < block.count; i++) {
        double *column = block.columns + (size_t)i * layout->record;
        column[layout->v + (size_t)(block_first(layout, block.id) + i)] = 1;
        column[layout->normsq] = column_normsq(column, layout->rows);
    }
}

/* Counts what rotate_within() and rotate_across() would count. */
static void model_pairs(const Layout *layout, double pairs, double rotated, Work *work) {
    work->rotations += rotated * pairs;
    work->flops += pair_flops(layout, pairs, rotated * pairs);
}

static void compute_step(Comm *comm, const Layout *layout, const Options *options, const Block pair[2], bool first,
                         Work *work) {
    double flops = work->flops;
    if (options->model_only) {
        double l = pair[0].count, r = pair[1].count;
        model_pairs(layout, l * r + (first ? 0.5 * (l * (l - 1) + r * (r - 1)) : 0), options->rotated, work);
    } else {
        if (first) {
            rotate_within(layout, pair[0], work);
            rotate_within(layout, pair[1], work);
        }
        rotate_across(layout, pair[0], pair[1], work);
    }
    if (options->flops_rate > 0)
        comm_charge(comm, work->flops - flops, options->flops_rate);
}

static void sweep(Comm *comm, const Layout *layout, const Options *options, int *order, Block pair[2], Block next[2],
                  Work *work) {
    work->off = 0;
    for (int step = 0; step < layout->blocks - 1; step++) {
        compute_step(comm, layout, options, pair, step == 0, work);
        shift_order(order, comm->size);
        if (comm->size == 1)
            continue;
        name_blocks(layout, order, comm->rank, next);
        comm_shift(comm, layout, pair, next);
    }
    work->off = comm_max(comm, work->off);
    work->sweeps++;
}

Work solve(Comm *comm, const Layout *layout, const Options *options, double *columns) {
    size_t capacity = layout->record * (size_t)block_count(layout, 0); /* block 0 is one of the largest */
    double *memory = comm_allocate_blocks(comm, 4 * capacity, !options->model_only);
    Block pair[2] = {{.columns = memory}, {.columns = memory + capacity}};
    Block next[2] = {{.columns = memory + 2 * capacity}, {.columns = memory + 3 * capacity}};
    int *order = allocate((size_t)layout->blocks * sizeof(int));
    for (int k = 0; k < layout->blocks; k++)
        order[k] = k;
    name_blocks(layout, order, comm->rank, pair);

    comm_scatter(comm, layout, columns, pair);
    if (!options->model_only)
        for (int side = 0; side < 2; side++)
            start_columns(layout, pair[side]);
    Work work = {0};
    while (!work.converged && work.sweeps < options->max_sweeps) {
        sweep(comm, layout, options, order, pair, next, &work);
        work.converged = !options->model_only && work.off <= tolerance(layout);
    }
    comm_gather(comm, layout, columns, pair);

    free(order);
    comm_free_blocks(comm, memory, !options->model_only);
    return work;
}
