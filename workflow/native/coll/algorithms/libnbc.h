/*
 * Non-blocking collectives of Open MPI's coll/libnbc (version 4.1.4) on point-to-point messages. A schedule lists
 * sends, receives and local steps in rounds; a round ends when its messages complete. Schedules progress together.
 */
#ifndef LIBNBC_H
#define LIBNBC_H

#include "algorithms.h"
#include "core/message.h"

struct step;

/* The schedule of one non-blocking call. */
struct schedule {
    struct step *steps;
    int n, room, at;
    int pending;     /* incomplete messages of the current round */
    char *memory[2]; /* temporary buffers, freed with the schedule */
};

/* Several schedules on one communicator. */
struct schedules {
    struct call *call;
    struct extent extent;
    int n;
    struct schedule *list;
    MPI_Request *requests; /* of all current rounds */
    int *owners;           /* the schedule of each request */
    int active, room;
};

/* Creates n empty schedules. Returns COLL_USE_DEFAULT if there are not enough tags for them. */
int coll_schedules_init(struct schedules *all, struct call *call, int n);
void coll_schedules_free(struct schedules *all);
/* Runs all schedules to completion. */
int coll_schedules_run(struct schedules *all);

/* Fills the i-th schedule. counts has one entry per rank; their sum is the length of the vector. */
int coll_schedule_reduce_scatter(struct schedules *all, int i, const void *vector, void *recv, const int *counts);

#endif
