/*
 * collprobe [-p PREFIX] COLLECTIVE BYTES... : call one collective once for each message size and nothing else.
 *
 * With -p (Open MPI only) its monitoring component writes the messages of each size to files of their own,
 * PREFIX-BYTES.RANK.prof, so that one launch tells of all sizes.
 *
 * Run under the MPI library's monitoring it shows which ranks exchange messages in that collective alone: the proof of
 * which algorithm really ran. Every rank prints one line, "rank R of P host H cpus LIST", so that the same launch tells
 * where the ranks landed (the affinity mask of the process as the kernel has it).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != MPI_SUCCESS) {                                                                                   \
            fprintf(stderr, "collprobe: %s failed\n", #call);                                                          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static void print_place(int rank, int processes) {
    char host[MPI_MAX_PROCESSOR_NAME], line[8192];
    int length, at;
    cpu_set_t set;

    CHECK(MPI_Get_processor_name(host, &length));
    at = snprintf(line, sizeof line, "rank %d of %d host %s cpus", rank, processes, host);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        char separator = ' ';
        for (int cpu = 0; cpu < CPU_SETSIZE && at < (int)sizeof line - 16; cpu++) {
            if (CPU_ISSET(cpu, &set)) {
                at += snprintf(line + at, sizeof line - (size_t)at, "%c%d", separator, cpu);
                separator = ',';
            }
        }
    }
    /* One write: where stdout is not buffered (MPICH) the lines of several ranks would mix. */
    snprintf(line + at, sizeof line - (size_t)at, "\n");
    fflush(stdout);
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        perror("collprobe");
}

static void fail_unknown(const char *collective) {
    fprintf(stderr,
            "collprobe: unknown collective '%s'; known: bcast barrier reduce allreduce gather scatter allgather "
            "alltoall alltoallv ibcast iallreduce reduce_scatter ireduce_scatter latency bw multi_lat\n",
            collective);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void call_alltoallv(int bytes, char *send, char *receive) {
    int processes;
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &processes));
    int *counts = malloc(2 * (size_t)processes * sizeof *counts), *displacements = counts + processes;
    for (int i = 0; counts != NULL && i < processes; i++) {
        counts[i] = bytes;
        displacements[i] = i * bytes;
    }
    CHECK(counts == NULL ? MPI_ERR_NO_MEM
                         : MPI_Alltoallv(send, counts, displacements, MPI_CHAR, receive, counts, displacements,
                                         MPI_CHAR, MPI_COMM_WORLD));
    free(counts);
}

static void call_reduce_scatter(int bytes, char *send, char *receive, bool blocking) {
    MPI_Request request = MPI_REQUEST_NULL;
    int processes;
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &processes));
    int *counts = malloc((size_t)processes * sizeof *counts);
    for (int i = 0; counts != NULL && i < processes; i++)
        counts[i] = bytes / processes + (i < bytes % processes);
    CHECK(counts == NULL ? MPI_ERR_NO_MEM
          : blocking     ? MPI_Reduce_scatter(send, receive, counts, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD)
                     : MPI_Ireduce_scatter(send, receive, counts, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD, &request));
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(counts);
}

static void call_non_blocking(const char *collective, int bytes, char *send, char *receive) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (strcmp(collective, "ibcast") == 0)
        CHECK(MPI_Ibcast(send, bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &request));
    else if (strcmp(collective, "iallreduce") == 0)
        CHECK(MPI_Iallreduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD, &request));
    else if (strcmp(collective, "ireduce_scatter") == 0)
        call_reduce_scatter(bytes, send, receive, false);
    else
        fail_unknown(collective);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* One call with `bytes` per rank (per block where the collective has blocks); reductions add bytes. */
static void call(const char *collective, int bytes, char *send, char *receive) {
    if (strcmp(collective, "bcast") == 0) {
        CHECK(MPI_Bcast(send, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
    } else if (strcmp(collective, "barrier") == 0) {
        CHECK(MPI_Barrier(MPI_COMM_WORLD));
    } else if (strcmp(collective, "reduce") == 0) {
        CHECK(MPI_Reduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, 0, MPI_COMM_WORLD));
    } else if (strcmp(collective, "allreduce") == 0) {
        CHECK(MPI_Allreduce(send, receive, bytes, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
    } else if (strcmp(collective, "gather") == 0) {
        CHECK(MPI_Gather(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
    } else if (strcmp(collective, "scatter") == 0) {
        CHECK(MPI_Scatter(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
    } else if (strcmp(collective, "allgather") == 0) {
        CHECK(MPI_Allgather(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, MPI_COMM_WORLD));
    } else if (strcmp(collective, "alltoall") == 0) {
        CHECK(MPI_Alltoall(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, MPI_COMM_WORLD));
    } else if (strcmp(collective, "alltoallv") == 0) {
        call_alltoallv(bytes, send, receive);
    } else if (strcmp(collective, "reduce_scatter") == 0) {
        call_reduce_scatter(bytes, send, receive, true);
    } else if (collective[0] == 'i') {
        call_non_blocking(collective, bytes, send, receive);
    } else {
        fail_unknown(collective);
    }
}

#ifdef OPEN_MPI
/* Open MPI's monitoring writes what it saw, to the file that was named, whenever this variable is stopped. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle flush;

static void begin_parts(void) {
    MPI_Comm world = MPI_COMM_WORLD;
    int provided, index, count;

    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (MPI_T_pvar_get_index("pml_monitoring_flush", MPI_T_PVAR_CLASS_GENERIC, &index) != MPI_SUCCESS) {
        fprintf(stderr, "collprobe: -p needs Open MPI's pml/monitoring (--mca pml_monitoring_enable 2)\n");
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    CHECK(MPI_T_pvar_session_create(&session));
    CHECK(MPI_T_pvar_handle_alloc(session, index, &world, &flush, &count));
    CHECK(MPI_T_pvar_start(session, flush));
}

/* A rank counts what it sends, all of which it has sent when its call returns: nothing gets into another size's part.
 */
static void end_part(const char *prefix, const char *bytes) {
    char name[4096];

    snprintf(name, sizeof name, "%s-%s", prefix, bytes);
    CHECK(MPI_T_pvar_write(session, flush, name));
    CHECK(MPI_T_pvar_stop(session, flush));
    CHECK(MPI_T_pvar_start(session, flush));
}
#else
static void begin_parts(void) {
    fprintf(stderr, "collprobe: -p needs Open MPI\n");
    MPI_Abort(MPI_COMM_WORLD, 4);
}

static void end_part(const char *prefix, const char *bytes) {
    (void)prefix;
    (void)bytes;
}
#endif

int main(int argc, char **argv) {
    int rank, processes;
    const char *prefix = NULL;

    CHECK(MPI_Init(&argc, &argv));
    if (argc > 2 && strcmp(argv[1], "-p") == 0) {
        prefix = argv[2];
        argv += 2;
        argc -= 2;
    }
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &processes));
    if (argc < 3) {
        if (rank == 0) {
            fprintf(stderr, "usage: collprobe [-p PREFIX] COLLECTIVE BYTES...\n");
        }
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    print_place(rank, processes);
    if (prefix != NULL)
        begin_parts();
    CHECK(MPI_Pcontrol(1)); /* libmessages.so watches from here */
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]);
        size_t room = ((size_t)bytes + 1) * (size_t)processes;
        char *send = calloc(room, 1), *receive = calloc(room, 1);
        if (send == NULL || receive == NULL) {
            fprintf(stderr, "collprobe: out of memory for %zu bytes on rank %d\n", 2 * room, rank);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        call(argv[1], bytes, send, receive);
        free(send);
        free(receive);
        if (prefix != NULL)
            end_part(prefix, argv[i]);
    }
    CHECK(MPI_Pcontrol(0));
    CHECK(MPI_Finalize());
    return 0;
}
