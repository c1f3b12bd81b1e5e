/* The communication of one process: copies. */
#ifdef SVD_NO_MPI
#include "comm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void comm_start(int *argc, char ***argv, Comm *comm) {
    (void)argc, (void)argv;
    *comm = (Comm){.size = 1};
}

void comm_finish(Comm *comm) {
    (void)comm;
}

void comm_use_layout(Comm *comm, const Layout *layout) {
    (void)comm, (void)layout;
}

double comm_clock(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void comm_barrier(Comm *comm) {
    (void)comm;
}

void comm_from_root(Comm *comm, int *values, int count) {
    (void)comm, (void)values, (void)count;
}

double comm_max(Comm *comm, double value) {
    (void)comm;
    return value;
}

Totals comm_totals(Comm *comm, double seconds, const Work *work) {
    double compute = seconds - comm->seconds;
    return (Totals){seconds, comm->seconds, comm->seconds, compute, compute, work->rotations, work->flops};
}

static size_t block_bytes(const Layout *layout, Block block) {
    return (size_t)block.count * layout->record * sizeof(double);
}

void comm_scatter(Comm *comm, const Layout *layout, const double *columns, Block pair[2]) {
    (void)comm;
    for (int side = 0; side < 2; side++)
        memcpy(pair[side].columns, columns + layout->record * (size_t)block_first(layout, side),
               block_bytes(layout, pair[side]));
}

void comm_gather(Comm *comm, const Layout *layout, double *columns, const Block pair[2]) {
    (void)comm;
    for (int side = 0; side < 2; side++)
        memcpy(columns + layout->record * (size_t)block_first(layout, side), pair[side].columns,
               block_bytes(layout, pair[side]));
}

void comm_shift(Comm *comm, const Layout *layout, Block pair[2], Block next[2]) {
    (void)comm, (void)layout, (void)pair, (void)next; /* one process has both blocks already */
}

bool comm_can_model(const Comm *comm) {
    (void)comm;
    return false;
}

void comm_charge(Comm *comm, double flops, double gflops) {
    (void)comm, (void)flops, (void)gflops;
}

double *comm_allocate_blocks(const Comm *comm, size_t doubles, bool values_matter) {
    (void)comm, (void)values_matter;
    return allocate(doubles * sizeof(double));
}

void comm_free_blocks(const Comm *comm, double *blocks, bool values_matter) {
    (void)comm, (void)values_matter;
    free(blocks);
}

#endif
