/* State of a replay, and the two functions that make the calls of an action. */
#ifndef REPLAY_H
#define REPLAY_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Action {
    int64_t operation, communicator, root, to, from, send_tag, receive_tag, sent, received, request;
    int64_t compute_ns, same_site, listed;
    int64_t list[];
} Action;

typedef struct Numbers {
    const int64_t *first, *end;
} Numbers;

typedef struct Replay {
    int rank, size, traced_size, copy, traced_rank, copies;
    const char *folder;
    Numbers actions;
    int communicators;
    MPI_Comm *collective_comm, *message_comm; /* by communicator */
    bool *has_all_ranks;                      /* whether a communicator has all traced ranks */
    int *members;                             /* number of traced members of a communicator */
    MPI_Request *requests;
    MPI_Request *buffered; /* of buffered sends */
    int64_t buffered_count;
    char *out, *in;
    int *counts[2], *places[2];
    double speed, started;
    FILE *calls; /* their rows in memory, or NULL; text and length are those of the last store_calls() */
    char *text;
    size_t length;
    double spent[3]; /* seconds: computing, point to point, collectives */
} Replay;

/* Ends the replay with a message; `where`: what it concerns, or NULL. */
void fail(const char *what, const char *where);

void point_to_point(Replay *replay, const Action *action);
void collective(Replay *replay, const Action *action);

#endif
