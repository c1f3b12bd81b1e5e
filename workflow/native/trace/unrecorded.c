/* Collectives that are not recorded: of neighbourhoods, persistent ones, and some non-blocking ones. Each makes the
 * mark `unrecorded-MPI_<name>` (trace_mark) at its first call and calls its PMPI_ counterpart.
 *
 * One macro defines them all: their arguments are integers and pointers, which fit in a `long`, and at most 11; in the
 * calling conventions of Linux further arguments do no harm. In C they have names of their own, because mpi.h declares
 * MPI's. Only functions of the MPI library are defined: mpi4py calls those with counts of type MPI_Count if they exist.
 */
#include "trace.h"

#include <dlfcn.h>

#define ONE(NAME)                                                                                                      \
    __attribute__((visibility("default"))) int unrecorded_##NAME(                                                      \
        long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k) __asm__("MPI_" #NAME); \
    int unrecorded_##NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k) {    \
        static int (*real)(long, long, long, long, long, long, long, long, long, long, long);                          \
        static _Atomic bool marked;                                                                                    \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #NAME);                                                         \
        if (trace_is_open() && !marked) {                                                                              \
            marked = true;                                                                                             \
            trace_mark("unrecorded-MPI_" #NAME);                                                                       \
        }                                                                                                              \
        return real(a, b, c, d, e, f, g, h, i, j, k);                                                                  \
    }

/* With counts of type int, and of type MPI_Count. */
#if MPI_VERSION >= 4
#define BOTH(NAME) ONE(NAME) ONE(NAME##_c)
#else
#define BOTH(NAME) ONE(NAME)
#endif

#define NEIGHBOURS(NAME) BOTH(Neighbor_##NAME) BOTH(Ineighbor_##NAME)

NEIGHBOURS(allgather)
NEIGHBOURS(allgatherv)
NEIGHBOURS(alltoall)
NEIGHBOURS(alltoallv)
NEIGHBOURS(alltoallw)

BOTH(Igatherv)
BOTH(Iscatterv)
BOTH(Ialltoallw)
BOTH(Ireduce_scatter)
BOTH(Ireduce_scatter_block)
BOTH(Iscan)
BOTH(Iexscan)

/* Persistent ones are of MPI 4, but Open MPI has had them since 5.0. */
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
BOTH(Neighbor_allgather_init)
BOTH(Neighbor_allgatherv_init)
BOTH(Neighbor_alltoall_init)
BOTH(Neighbor_alltoallv_init)
BOTH(Neighbor_alltoallw_init)

ONE(Barrier_init)
BOTH(Bcast_init)
BOTH(Reduce_init)
BOTH(Allreduce_init)
BOTH(Gather_init)
BOTH(Gatherv_init)
BOTH(Scatter_init)
BOTH(Scatterv_init)
BOTH(Allgather_init)
BOTH(Allgatherv_init)
BOTH(Alltoall_init)
BOTH(Alltoallv_init)
BOTH(Alltoallw_init)
BOTH(Reduce_scatter_init)
BOTH(Reduce_scatter_block_init)
BOTH(Scan_init)
BOTH(Exscan_init)
#endif
