/* All communication of the program: with MPI in comm_mpi.c, for one process (-DSVD_NO_MPI) in comm_serial.c. */
#ifndef COMM_H
#define COMM_H

#include "svd.h"

#ifndef SVD_NO_MPI
#include <mpi.h>
#endif

typedef struct {
    int rank, size;
    bool simulated;
    double seconds; /* spent in communication so far */
#ifndef SVD_NO_MPI
    MPI_Comm line;                     /* 1-D topology, not periodic */
    int to_left, to_right;             /* neighbours on it, MPI_PROC_NULL at the ends */
    MPI_Datatype column_a, column_all; /* the part a of a column record; the whole record */
#endif
} Comm;

typedef struct {
    double seconds, comm_mean, comm_max, compute_mean, compute_max, rotations, flops;
} Totals;

void comm_start(int *argc, char ***argv, Comm *comm);
void comm_finish(Comm *comm);
void comm_use_layout(Comm *comm, const Layout *layout);

double comm_clock(void);
void comm_barrier(Comm *comm);
void comm_from_root(Comm *comm, int *values, int count);
double comm_max(Comm *comm, double value);
Totals comm_totals(Comm *comm, double seconds, const Work *work);

/* Scatters the root's columns (part a only) and gathers whole records. pair: this process's left and right block. */
void comm_scatter(Comm *comm, const Layout *layout, const double *columns, Block pair[2]);
void comm_gather(Comm *comm, const Layout *layout, double *columns, const Block pair[2]);

/* One step of the ordering: sends `pair` to the neighbours and receives `next`, whose ids and counts are set. */
void comm_shift(Comm *comm, const Layout *layout, Block pair[2], Block next[2]);

/* Simulator: returns false, with a message, if flops cannot be charged deterministically; charges flops (GFlop/s). */
bool comm_can_model(const Comm *comm);
void comm_charge(Comm *comm, double flops, double gflops);

/* Memory for blocks, shared by all simulated processes if the values do not matter. */
double *comm_allocate_blocks(const Comm *comm, size_t doubles, bool values_matter);
void comm_free_blocks(const Comm *comm, double *blocks, bool values_matter);

#endif
