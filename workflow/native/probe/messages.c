/*
 * libmessages.so, for LD_PRELOAD: records which ranks exchange messages under MPICH, which lacks a counterpart of Open
 * MPI's monitoring.
 *
 * MPICH's netmod UCX posts every receive by ucp_tag_recv_nbx(), with the communicator's number and the sender's rank in
 * the tag. With MPIR_CVAR_NOLOCAL=1 this holds for all messages, including those within a node. MPI_Finalize writes the
 * receives between MPI_Pcontrol(1) and MPI_Pcontrol(0) to $COLLPROBE_MESSAGES.<rank>.prof, in the format of Open MPI's
 * monitoring: "I sender receiver bytes bytes messages msgs sent". Lines of communicators other than MPI_COMM_WORLD (a
 * hierarchy inside the collective) begin with S; their senders are ranks of that communicator.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ucx_types.h of MPICH 4 and 5: context (16 bits), rank (16 bits unless configured otherwise), tag (32 bits) */
enum { WORLD_COLLECTIVES = 1, MOST_MESSAGES = 1 << 20 };

struct message {
    unsigned context, sender;
    size_t bytes;
};

static struct message *messages;
static int n_messages;
static bool watching;

static void keep(uint64_t tag, size_t bytes) {
    if (messages == NULL)
        messages = calloc(MOST_MESSAGES, sizeof *messages);
    if (messages == NULL || n_messages == MOST_MESSAGES) {
        fprintf(stderr, "libmessages: no room for more than %d messages\n", n_messages);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    messages[n_messages++] = (struct message){tag >> 48, tag >> 32 & 0xffff, bytes};
}

void *ucp_tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t mask, const void *parameters) {
    typedef void *receive(void *, void *, size_t, uint64_t, uint64_t, const void *);
    static receive *real;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "ucp_tag_recv_nbx");
    if (watching)
        keep(tag, count);
    return real(worker, buffer, count, tag, mask, parameters);
}

int MPI_Pcontrol(const int level, ...) {
    watching = level > 0;
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    const char *prefix = getenv("COLLPROBE_MESSAGES");
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d.prof", prefix == NULL ? "messages" : prefix, rank);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        PMPI_Abort(MPI_COMM_WORLD, 3);
    }
    fprintf(file, "# sender, receiver, bytes, messages\n");
    for (int i = 0; i < n_messages; i++)
        fprintf(file, "%c %u %d %zu bytes 1 msgs sent\n", messages[i].context == WORLD_COLLECTIVES ? 'I' : 'S',
                messages[i].sender, rank, messages[i].bytes);
    if (fclose(file) != 0) {
        perror(path);
        PMPI_Abort(MPI_COMM_WORLD, 3);
    }
    return PMPI_Finalize();
}
