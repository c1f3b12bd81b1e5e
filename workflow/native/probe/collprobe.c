/*
 * collprobe [-p PREFIX] COLLECTIVE BYTES... : calls one collective once for each message size and nothing else.
 *
 * With -p (Open MPI only) Open MPI's monitoring component writes the messages of each size to a separate file per rank,
 * PREFIX-BYTES.RANK.prof, so that one launch covers all sizes.
 *
 * Under the MPI library's monitoring it shows which ranks exchange messages in that collective alone, and so proves
 * which algorithm ran. Each rank also prints its place (place.h).
 */
#define _GNU_SOURCE
#include "../place/place.h"
#include "calls.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
/* Open MPI's monitoring writes its counts, to the file named by this variable, whenever the variable is stopped. */
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

/* A rank counts the messages that it sends. All are sent when its call returns, so each counts for its own size. */
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
    CHECK(MPI_Pcontrol(1)); /* libmessages.so records from here on */
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]);
        size_t room = ((size_t)bytes + 1) * (size_t)processes;
        char *send = calloc(room, 1), *receive = calloc(room, 1);
        if (send == NULL || receive == NULL) {
            fprintf(stderr, "collprobe: out of memory for %zu bytes on rank %d\n", 2 * room, rank);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        call(argv[1], bytes, send, receive, MPI_COMM_WORLD);
        free(send);
        free(receive);
        if (prefix != NULL)
            end_part(prefix, argv[i]);
    }
    CHECK(MPI_Pcontrol(0));
    CHECK(MPI_Finalize());
    return 0;
}
