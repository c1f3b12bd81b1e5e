/* The functions with counts of type MPI_Count, which mpi4py calls where the library has them. */
#include <mpi.h>

#if MPI_VERSION >= 4
#define LARGE
#include "collectives.c"
#include "point_to_point.c"
#endif
