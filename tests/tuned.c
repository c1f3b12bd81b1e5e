/* A program for test_program.py, on two ranks: it broadcasts. Arguments: what, bytes, calls. `plain` does nothing else;
 * `across` broadcasts among the even and among the odd ranks; `slower` waits where it finds a tuning file; `quiet`
 * waits; `threads` has a second thread that calls MPI as well. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_US = 1000000 };

static void *broadcast(void *communicator) {
    char data[8] = {0};
    MPI_Bcast(data, sizeof data, MPI_BYTE, 0, *(MPI_Comm *)communicator);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int bytes = atoi(argv[2]), calls = atoi(argv[3]), level;
    int threads = strcmp(argv[1], "threads") == 0;
    char *data = calloc(1, bytes);
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    if (threads && level == MPI_THREAD_MULTIPLE) {
        MPI_Comm other, world = MPI_COMM_WORLD;
        MPI_Comm_dup(world, &other);
        pthread_t thread;
        pthread_create(&thread, NULL, broadcast, &other);
        broadcast(&world);
        pthread_join(thread, NULL);
        MPI_Comm_free(&other);
    }
    const int slower = strcmp(argv[1], "slower") == 0 && getenv("OMPI_MCA_coll_tuned_dynamic_rules_filename");
    /* A rank that loses its processor on a busy machine must still be little beside this. */
    const int waits = strcmp(argv[1], "quiet") == 0 || slower ? 4 : threads;
    for (int i = 0; i < waits; i++)
        usleep(WAIT_US);
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (strcmp(argv[1], "across") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    for (int i = 0; i < calls; i++)
        MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    MPI_Finalize();
    free(data);
    return 0;
}
