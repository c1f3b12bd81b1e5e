/* Ranks 0 to 7 each send three messages to their partner at once; much later rank 0 alone sends one, whose time (us) is
 * printed. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    char bytes[3] = {0};
    MPI_Request requests[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sleep(1);
    for (int i = 0; i < 3; i++)
        if (rank < 8)
            MPI_Isend(&bytes[i], 1, MPI_CHAR, rank + 8, i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(&bytes[i], 1, MPI_CHAR, rank - 8, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    sleep(rank == 8 ? 1 : 2); /* rank 8 is waiting when the message is sent */
    double sent = MPI_Wtime();
    if (rank == 0)
        MPI_Send(&sent, 1, MPI_DOUBLE, 8, 3, MPI_COMM_WORLD);
    if (rank == 8) {
        MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%.3f\n", (MPI_Wtime() - sent) * 1e6);
    }
    MPI_Finalize();
    return 0;
}
