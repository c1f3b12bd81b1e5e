/* Communication with MPI, and what is specific to SimGrid's SMPI. */
#ifndef SVD_NO_MPI
#include "comm.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SMPI_H /* compiled with smpicc */
#include <simgrid/host.h>
#include <xbt/config.h>
#endif

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

static void check(int code, const char *call, const char *file, int line) {
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "svd: %s:%d: %s: %s\n", file, line, call, text);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

void comm_start(int *argc, char ***argv, Comm *comm) {
    *comm = (Comm){.column_a = MPI_DATATYPE_NULL, .column_all = MPI_DATATYPE_NULL};
    CHECK(MPI_Init(argc, argv));
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &comm->size));
    int open_ends = 0;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &comm->size, &open_ends, 0, &comm->line));
    CHECK(MPI_Comm_set_errhandler(comm->line, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_rank(comm->line, &comm->rank));
    CHECK(MPI_Cart_shift(comm->line, 0, 1, &comm->to_left, &comm->to_right));
#ifdef SMPI_H
    comm->simulated = true;
#endif
}

void comm_finish(Comm *comm) {
    if (comm->column_a != MPI_DATATYPE_NULL) {
        CHECK(MPI_Type_free(&comm->column_a));
        CHECK(MPI_Type_free(&comm->column_all));
    }
    CHECK(MPI_Comm_free(&comm->line));
    CHECK(MPI_Finalize());
}

void comm_use_layout(Comm *comm, const Layout *layout) {
    MPI_Datatype part;
    CHECK(MPI_Type_contiguous(layout->rows, MPI_DOUBLE, &part));
    CHECK(MPI_Type_create_resized(part, 0, (MPI_Aint)(layout->record * sizeof(double)), &comm->column_a));
    CHECK(MPI_Type_contiguous((int)layout->record, MPI_DOUBLE, &comm->column_all));
    CHECK(MPI_Type_commit(&comm->column_a));
    CHECK(MPI_Type_commit(&comm->column_all));
    CHECK(MPI_Type_free(&part));
}

double comm_clock(void) {
    return MPI_Wtime();
}

void comm_barrier(Comm *comm) {
    CHECK(MPI_Barrier(comm->line));
}

void comm_from_root(Comm *comm, int *values, int count) {
    CHECK(MPI_Bcast(values, count, MPI_INT, 0, comm->line));
}

double comm_max(Comm *comm, double value) {
    double start = MPI_Wtime(), result;
    CHECK(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, comm->line));
    comm->seconds += MPI_Wtime() - start;
    return result;
}

/* The result is valid on the root. */
Totals comm_totals(Comm *comm, double seconds, const Work *work) {
    double mine[] = {comm->seconds, seconds - comm->seconds, work->rotations, work->flops, seconds}, sum[5], max[5];
    CHECK(MPI_Reduce(mine, sum, 5, MPI_DOUBLE, MPI_SUM, 0, comm->line));
    CHECK(MPI_Reduce(mine, max, 5, MPI_DOUBLE, MPI_MAX, 0, comm->line));
    return (Totals){max[4], sum[0] / comm->size, max[0], sum[1] / comm->size, max[1], sum[2], sum[3]};
}

/* Counts or first columns of the left (side 0) or right (side 1) blocks of all processes, in the root's columns. */
static int *block_table(const Comm *comm, const Layout *layout, int side, int (*value)(const Layout *, int)) {
    int *table = allocate((size_t)comm->size * sizeof(int));
    for (int k = 0; k < comm->size; k++)
        table[k] = value(layout, 2 * k + side);
    return table;
}

void comm_scatter(Comm *comm, const Layout *layout, const double *columns, Block pair[2]) {
    double start = MPI_Wtime();
    for (int side = 0; side < 2; side++) {
        int *counts = block_table(comm, layout, side, block_count);
        int *firsts = block_table(comm, layout, side, block_first);
        CHECK(MPI_Scatterv(columns, counts, firsts, comm->column_a, pair[side].columns, pair[side].count,
                           comm->column_a, 0, comm->line));
        free(counts);
        free(firsts);
    }
    comm->seconds += MPI_Wtime() - start;
}

void comm_gather(Comm *comm, const Layout *layout, double *columns, const Block pair[2]) {
    double start = MPI_Wtime();
    for (int side = 0; side < 2; side++) {
        int *counts = block_table(comm, layout, side, block_count);
        int *firsts = block_table(comm, layout, side, block_first);
        CHECK(MPI_Gatherv(pair[side].columns, pair[side].count, comm->column_all, columns, counts, firsts,
                          comm->column_all, 0, comm->line));
        free(counts);
        free(firsts);
    }
    comm->seconds += MPI_Wtime() - start;
}

static void exchange(Block *a, Block *b) {
    Block old = *a;
    *a = *b;
    *b = old;
}

/* MPI counts are int, which limits a block to 17 GB. Does not use column_all, which SMPI would pack and copy. */
static int doubles_in(const Layout *layout, const Block *block) {
    size_t doubles = (size_t)block->count * layout->record;
    if (doubles > INT_MAX) {
        fprintf(stderr, "svd: a block of %d columns is too large for one message; use more processes\n", block->count);
        MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_INPUT);
    }
    return (int)doubles;
}

/* Shifts blocks to the right and to the left at the same time. Empty blocks are sent as empty messages. */
void comm_shift(Comm *comm, const Layout *layout, Block pair[2], Block next[2]) {
    enum { RIGHTWARDS, LEFTWARDS };
    double start = MPI_Wtime();
    bool first = comm->rank == 0, last = comm->rank == comm->size - 1;
    const Block *rightwards = &pair[first ? 1 : 0];
    MPI_Request requests[4];
    CHECK(MPI_Irecv(next[0].columns, doubles_in(layout, &next[0]), MPI_DOUBLE, comm->to_left, RIGHTWARDS, comm->line,
                    &requests[0]));
    CHECK(MPI_Irecv(next[1].columns, doubles_in(layout, &next[1]), MPI_DOUBLE, comm->to_right, LEFTWARDS, comm->line,
                    &requests[1]));
    CHECK(MPI_Isend(rightwards->columns, doubles_in(layout, rightwards), MPI_DOUBLE, comm->to_right, RIGHTWARDS,
                    comm->line, &requests[2]));
    CHECK(MPI_Isend(pair[1].columns, doubles_in(layout, &pair[1]), MPI_DOUBLE, comm->to_left, LEFTWARDS, comm->line,
                    &requests[3]));
    CHECK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));

    if (last) { /* its left block becomes its right one; the old right block's memory is free */
        exchange(&pair[0], &pair[1]);
        exchange(&pair[0], &next[0]);
    } else {
        exchange(&pair[1], &next[1]);
        if (!first)
            exchange(&pair[0], &next[0]);
    }
    comm->seconds += MPI_Wtime() - start;
}

bool comm_can_model(const Comm *comm) {
#ifdef SMPI_H
    if (!sg_cfg_get_boolean("smpi/simulate-computation"))
        return true;
    if (comm->rank == 0)
        fprintf(stderr, "svd: --flops-rate models the compute time: run with --cfg=smpi/simulate-computation:no, or "
                        "the time of this machine is added\n");
#else
    if (comm->rank == 0)
        fprintf(stderr, "svd: --flops-rate and --model-only need a program built with smpicc\n");
#endif
    return false;
}

void comm_charge(Comm *comm, double flops, double gflops) {
    (void)comm;
#ifdef SMPI_H /* independent of the host's speed in the platform */
    smpi_execute_flops(flops / (gflops * 1e9) * sg_host_get_speed(sg_host_self()));
#else
    (void)flops, (void)gflops;
#endif
}

double *comm_allocate_blocks(const Comm *comm, size_t doubles, bool values_matter) {
    (void)comm, (void)values_matter;
#ifdef SMPI_H
    if (!values_matter)
        return SMPI_SHARED_MALLOC(doubles * sizeof(double));
#endif
    return allocate(doubles * sizeof(double));
}

void comm_free_blocks(const Comm *comm, double *blocks, bool values_matter) {
    (void)comm;
#ifdef SMPI_H
    if (!values_matter) {
        SMPI_SHARED_FREE(blocks);
        return;
    }
#endif
    (void)values_matter;
    free(blocks);
}

#endif
