/* A program with known collectives, for test_what_ran.py, on any even number of ranks from 2. With an argument, what
 * the name says: `spawn`, `hang`, `die`, `silent` (no MPI). */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 16 };

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "silent") == 0)
        return 0;
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = calloc(64, LARGE), *in = calloc(64, LARGE);
    if (strcmp(what, "spawn") == 0) {
        MPI_Comm parent, children;
        MPI_Comm_get_parent(&parent);
        if (parent == MPI_COMM_NULL)
            MPI_Comm_spawn(argv[0], &argv[1], 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        else
            children = parent;
        MPI_Comm_disconnect(&children);
    }
    for (int i = 0; i < 3; i++)
        MPI_Bcast(out, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, 8, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (strcmp(what, "die") == 0 && rank == 1)
        raise(SIGKILL);
    if (strcmp(what, "hang") == 0)
        pause();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(out, in, 5, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    MPI_Alltoall(out, 16, MPI_BYTE, in, 16, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Ibcast(out, 8, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
