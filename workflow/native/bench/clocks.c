/* Ranks on the same node share its clock. One rank of each node compares that clock with rank 0's in rounds over all
 * nodes. A round gives one clock difference, taken from the fastest of several ping-pongs; a line is fitted to the
 * differences (Jones and Koenig 2013; the hierarchy and its shared clock follow Hunold and Carpen-Amarie 2018, HCA3).
 * MPI_Wtime is unsuitable: in Open MPI each rank has its own time origin. The simulator has a single clock, which does
 * not advance while a rank only reads it. */
#include "clocks.h"
#include "errors.h"

#include <time.h>

#ifdef SMPI_H

struct clock synchronise_clocks(const struct world *world) {
    (void)world;
    return (struct clock){0};
}

double global_time(const struct clock *clock) {
    (void)clock;
    return MPI_Wtime();
}

double wait_until(const struct clock *clock, double instant) {
    double left = instant - global_time(clock);
    if (left > 0)
        smpi_execute_benched(left);
    return global_time(clock);
}

#else

/* Before a longer wait (s) a rank sleeps: a rank that busy-waits all the time could lose its core just at the end. */
#define LONG 500e-6

/* The rounds take POINTS * PAUSE_NS = 0.15 s: an error of 0.1 us in a difference is less than 1 us/s of drift. */
enum { POINTS = 30, EXCHANGES = 20, PAUSE_NS = 5000000, TAG_CLOCK = 200 };

static double local_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

double global_time(const struct clock *clock) {
    double now = local_time();
    return now + clock->behind + clock->drift * (now - clock->at);
}

double wait_until(const struct clock *clock, double instant) {
    double now, left = instant - global_time(clock) - LONG;
    const struct timespec pause = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    if (left > 0)
        nanosleep(&pause, NULL);
    while ((now = global_time(clock)) < instant)
        ;
    return now;
}

/* A measured clock difference: `behind` at local time `at`. */
struct difference {
    double at, behind; /* s */
};

/* Fits a line to the differences by least squares; a single difference gives a drift of 0. */
static struct clock fit_clock(const struct difference *found, int count) {
    double at = 0, behind = 0, square = 0, product = 0;
    for (int i = 0; i < count; i++) {
        at += found[i].at / count;
        behind += found[i].behind / count;
    }
    for (int i = 0; i < count; i++) {
        square += (found[i].at - at) * (found[i].at - at);
        product += (found[i].at - at) * (found[i].behind - behind);
    }
    return (struct clock){at, behind, square > 0 ? product / square : 0};
}

/* Rank 0's side of the ping-pongs: replies with its local time. */
static void tell_time(MPI_Comm leaders, int other) {
    for (int i = 0; i < EXCHANGES; i++) {
        MPI_CHECK(MPI_Recv(NULL, 0, MPI_CHAR, other, TAG_CLOCK, leaders, MPI_STATUS_IGNORE));
        double now = local_time();
        MPI_CHECK(MPI_Send(&now, 1, MPI_DOUBLE, other, TAG_CLOCK, leaders));
    }
}

/* The other side: assumes that rank 0 read its clock in the middle of the fastest exchange. */
static struct difference ask_time(MPI_Comm leaders) {
    struct difference best = {0};
    double fastest = 0;
    for (int i = 0; i < EXCHANGES; i++) {
        double theirs, sent = local_time();
        MPI_CHECK(MPI_Send(NULL, 0, MPI_CHAR, 0, TAG_CLOCK, leaders));
        MPI_CHECK(MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, TAG_CLOCK, leaders, MPI_STATUS_IGNORE));
        double got = local_time(), middle = sent + (got - sent) / 2;
        if (i == 0 || got - sent < fastest) {
            fastest = got - sent;
            best = (struct difference){middle, theirs - middle};
        }
    }
    return best;
}

static struct clock compare_nodes(MPI_Comm leaders) {
    int rank, count;
    struct difference found[POINTS];
    const struct timespec pause = {0, PAUSE_NS};
    MPI_CHECK(MPI_Comm_rank(leaders, &rank));
    MPI_CHECK(MPI_Comm_size(leaders, &count));
    for (int i = 0; i < POINTS && count > 1; i++) {
        for (int other = 1; other < count; other++) {
            if (rank == 0)
                tell_time(leaders, other);
            else if (rank == other)
                found[i] = ask_time(leaders);
        }
        if (rank == 0)
            nanosleep(&pause, NULL);
    }
    return rank == 0 ? (struct clock){0} : fit_clock(found, POINTS);
}

struct clock synchronise_clocks(const struct world *world) {
    MPI_Comm node, leaders;
    int rank;
    struct clock clock = {0};
    MPI_CHECK(MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &rank));
    MPI_CHECK(MPI_Comm_split(world->comm, rank == 0 ? 0 : MPI_UNDEFINED, world->rank, &leaders));
    if (leaders != MPI_COMM_NULL) {
        clock = compare_nodes(leaders);
        MPI_CHECK(MPI_Comm_free(&leaders));
    }
    MPI_CHECK(MPI_Bcast(&clock, 3, MPI_DOUBLE, 0, node));
    MPI_CHECK(MPI_Comm_free(&node));
    return clock;
}

#endif
