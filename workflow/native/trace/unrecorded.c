/* Collectives that are not recorded: of neighbourhoods, persistent ones, and some non-blocking ones. Each makes the
 * mark `unrecorded-MPI_<name>` (trace_mark) at its first call and calls its PMPI_ counterpart.
 *
 * This file does not include mpi.h, because one macro defines them all: their arguments are integers and pointers,
 * which fit in a `long`, and at most 11; in the calling conventions of Linux further arguments do no harm. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

bool trace_is_open(void);
void trace_mark(const char *name);

#define ONE(NAME)                                                                                                      \
    __attribute__((visibility("default"))) int MPI_##NAME(long a, long b, long c, long d, long e, long f, long g,      \
                                                          long h, long i, long j, long k) {                            \
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
#define BOTH(NAME) ONE(NAME) ONE(NAME##_c)
#define NEIGHBOURS(NAME) BOTH(Neighbor_##NAME) BOTH(Ineighbor_##NAME) BOTH(Neighbor_##NAME##_init)

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
