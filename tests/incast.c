/* Ranks 8 and 9 each send a message of 1 MiB to rank 0, which prints when it has both (us). */
#include <mpi.h>
#include <stdio.h>

static char bytes[2][1 << 20];

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Request requests[2];
        for (int i = 0; i < 2; i++)
            MPI_Irecv(bytes[i], sizeof bytes[i], MPI_CHAR, 8 + i, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        printf("%.3f\n", (MPI_Wtime() - start) * 1e6);
    } else if (rank == 8 || rank == 9) {
        MPI_Send(bytes[0], sizeof bytes[0], MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
