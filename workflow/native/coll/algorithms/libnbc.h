/*
 * Non-blocking collectives of Open MPI's coll/libnbc (version 4.1.4) on point-to-point: lists of sends, receives and
 * local steps in rounds. A round ends when its messages have; any number of lists make progress together.
 */
#ifndef LIBNBC_H
#define LIBNBC_H

#include "algorithms.h"
#include "core/message.h"

struct step;

/* One non-blocking call. */
struct schedule {
    struct step *steps;
    int n, room, at;
    int pending;     /* messages of the round that have not ended */
    char *memory[2]; /* buffers of its own, freed with it */
};

/* Several of them, on one communicator. */
struct schedules {
    struct call *call;
    struct extent extent;
    int n;
    struct schedule *list;
    MPI_Request *requests; /* of all current rounds */
    int *owners;           /* the schedule of each request */
    int active, room;
};

/* n empty schedules. COLL_USE_DEFAULT where there are more than there are tags. */
int coll_schedules_init(struct schedules *all, struct call *call, int n);
void coll_schedules_free(struct schedules *all);
/* Runs them to their end. */
int coll_schedules_run(struct schedules *all);

/* What the i-th does. counts has an entry for each rank; its sum is the length of the vector. */
int coll_schedule_reduce_scatter(struct schedules *all, int i, const void *vector, void *recv, const int *counts);

#endif
