/*
 * collask COLLECTIVE RANKS:BYTES... : prints which algorithm Open MPI's coll/tuned selects for calls of one collective.
 *
 * One process can ask for any number of ranks: it creates a communicator in which it is every rank, for whose size the
 * library reads its rules and decides. The algorithm that the library then calls (../trace/algorithms.h) is a function
 * of this program, which returns at once. No message is sent. Prints one line per question, "RANKS BYTES
 * ALGORITHM[PARAMETERS]".
 *
 * Must be started without a launcher and with --mca mpi_param_check 0, as the ranks of a group have to differ. Only
 * components whose algorithms are all in that list may be enabled (--mca coll tuned,basic,libnbc,self): any other
 * algorithm would wait for messages. Nothing is freed, as the library's messages for that would have no receiver.
 */
#include <mpi.h>
#include <stdio.h>

#ifdef OPEN_MPI
#include "calls.h"

#include <unistd.h>

static char answer[256];

static int noted(const char *name, const char *format, int first, int second) {
    int length = snprintf(answer, sizeof answer, "%s", name);
    snprintf(answer + length, sizeof answer - (size_t)length, format, first, second);
    return MPI_SUCCESS;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ALGORITHM_WITH(NAME, COUNT, COMM, FORMAT, FIRST, SECOND)                                                       \
    int ompi_coll_base_##NAME(P##COUNT);                                                                               \
    int ompi_coll_base_##NAME(P##COUNT) {                                                                              \
        return noted(#NAME, FORMAT, (int)(FIRST), (int)(SECOND));                                                      \
    }
#include "../trace/algorithms.h"

/* Creates a communicator of `ranks` ranks, all of which are this process. */
static MPI_Comm imagine(int ranks) {
    MPI_Group here, all;
    MPI_Comm comm;
    int *zeros = calloc((size_t)ranks, sizeof *zeros);
    CHECK(zeros == NULL ? MPI_ERR_NO_MEM : MPI_Comm_group(MPI_COMM_WORLD, &here));
    CHECK(MPI_Group_incl(here, ranks, zeros, &all));
    CHECK(MPI_Comm_create(MPI_COMM_WORLD, all, &comm));
    free(zeros);
    return comm;
}

int main(int argc, char **argv) {
    static char nothing[8]; /* never read or written */
    MPI_Comm comm = MPI_COMM_NULL;
    int processes, last = 0, ranks, bytes;

    CHECK(MPI_Init(&argc, &argv));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &processes));
    if (argc < 3 || processes != 1) {
        fprintf(stderr, "usage: collask COLLECTIVE RANKS:BYTES... (one process)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "%d:%d", &ranks, &bytes) != 2 || ranks < 2 || bytes < 1) {
            fprintf(stderr, "collask: '%s' must be RANKS:BYTES with at least 2 ranks and 1 byte\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        if (ranks != last)
            comm = imagine(ranks);
        last = ranks;
        answer[0] = '\0';
        call(argv[1], bytes, nothing, nothing, comm);
        printf("%d %d %s\n", ranks, bytes, answer);
        fflush(stdout);
    }
    _exit(0);
}
#else
int main(int argc, char **argv) {
    (void)argc;
    fprintf(stderr, "%s: needs Open MPI\n", argv[0]);
    return 4;
}
#endif
