/* Ranks send long messages of random sizes to two of them, all at once, ten times. For test_calibrated.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 300000, ROUNDS = 10, EACH = 3 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *room = malloc(2 * BYTES);
    MPI_Request *all = malloc((size_t)ranks * EACH * sizeof *all);
    for (int i = 0; i < ROUNDS; i++) {
        int n = 0;
        unsigned seed = 2000 + i;
        for (int j = 0; j < EACH; j++)
            for (int from = 0; from < ranks; from++) {
                int to = rand_r(&seed) % 2, size = BYTES + rand_r(&seed) % BYTES;
                if (from == rank && to != rank)
                    MPI_Isend(room, size, MPI_BYTE, to, j, MPI_COMM_WORLD, &all[n++]);
                if (to == rank && from != rank)
                    MPI_Irecv(room, 2 * BYTES, MPI_BYTE, from, j, MPI_COMM_WORLD, &all[n++]);
            }
        MPI_Waitall(n, all, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        printf("done\n");
    free(all);
    free(room);
    return MPI_Finalize();
}
