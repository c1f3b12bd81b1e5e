/* Measuring loop of the collectives in windows: when all ranks have left a call, they agree on the instant of the
 * synchronised clocks (clocks.h) at which they start the next one (Round-Time of Hunold and Carpen-Amarie 2018). A
 * rank's time runs from that instant until it leaves the call. A call that any rank started late is dropped and
 * counted. With a spread each rank has its own instant, and the time runs from the last of them: no algorithm can save
 * the time before. The slowest rank varies from call to call, so max is the mean over calls of its time. */
#include "clocks.h"
#include "errors.h"
#include "measure.h"

#include <stdint.h>
#include <stdlib.h>

/* A rank is late if it starts more than this (s) after its window begins; reading the clock takes a fraction of it. */
#define LATE_AFTER 1e-6
/* From the last rank's call to agree to the agreed instant: this multiple of the fastest agreement plus a margin
 * (s). */
#define TIMES_AGREEING 4
#define LEAD_TIME_MARGIN 10e-6
/* This lead time doubles after each late call, up to this (s): longer than a process usually waits for its core. */
#define MAX_LEAD_TIME 10e-3

/* Returns a pseudo-random number from 0 to 1, the same in every launch (splitmix64). */
static double draw(uint64_t number) {
    number = (number + 1) * 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return (double)((number ^ (number >> 31)) >> 11) / 9007199254740992.0;
}

/* Computes the delays (s) of this rank and of the last rank in a call; every rank can compute those of all ranks. */
static void delays(const struct setup *setup, int number, double *mine, double *last) {
    const struct spreads *spreads = &setup->options.spreads;
    double spread = spreads->count ? spreads->us[number % spreads->count] : 0;
    *mine = *last = 0;
    for (int rank = 0; spread > 0 && rank < setup->world.ranks; rank++) {
        double delay = spread * 1e-6 * draw((uint64_t)number << 32 | (uint64_t)rank);
        *mine = rank == setup->world.rank ? delay : *mine;
        *last = delay > *last ? delay : *last;
    }
}

static void call(const struct setup *setup, size_t size) {
    MPI_CHECK(benchmark->collective->call(&setup->buffers, (int)size, &setup->world));
}

static double max_over_ranks(const struct world *world, double mine) {
    double all;
    MPI_CHECK(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, world->comm));
    return all;
}

/* Makes the warm-up calls; returns the lead time (s), from the fastest agreement as disturbances affect the mean. */
static double warm_up(const struct setup *setup, const struct clock *clock, size_t size, int calls) {
    double fastest = 0;
    for (int i = 0; i < calls || i == 0; i++) {
        call(setup, size);
        MPI_CHECK(MPI_Barrier(setup->world.comm));
        double start = global_time(clock);
        max_over_ranks(&setup->world, start);
        double took = global_time(clock) - start;
        fastest = i == 0 || took < fastest ? took : fastest;
    }
    return TIMES_AGREEING * max_over_ranks(&setup->world, fastest) + LEAD_TIME_MARGIN;
}

/* Stores the time (us) of each call on this rank, and whether any rank was late. */
static void call_in_windows(const struct setup *setup, const struct clock *clock, size_t size, double least_lead_time,
                            int calls, double *times, char *late) {
    double lead_time = least_lead_time;
    for (int i = 0; i < calls; i++) {
        double start = max_over_ranks(&setup->world, global_time(clock)) + lead_time, mine, last;
        delays(setup, i, &mine, &last);
        double now = wait_until(clock, start + mine);
        call(setup, size);
        double after = global_time(clock) - (start + last);
        times[i] = after > 0 ? after * 1e6 : 0;
        late[i] = max_over_ranks(&setup->world, now - (start + mine)) > LATE_AFTER;
        lead_time = !late[i] ? least_lead_time : 2 * lead_time < MAX_LEAD_TIME ? 2 * lead_time : MAX_LEAD_TIME;
    }
}

/* Returns on rank 0 the mean over calls (us) of the slowest rank's time. Overwrites `times`. */
static double mean_of_slowest(const struct world *world, double *times, int calls) {
    double total = 0;
    MPI_CHECK(
        MPI_Reduce(world->rank == ROOT ? MPI_IN_PLACE : times, times, calls, MPI_DOUBLE, MPI_MAX, ROOT, world->comm));
    for (int i = 0; i < calls; i++)
        total += times[i];
    return total / calls;
}

void measure_windows(const struct setup *setup, struct result *result) {
    const struct world *world = &setup->world;
    struct repetitions count = repetitions_for(&setup->options, result->size);
    double *times = malloc(count.iterations * sizeof times[0]), total = 0;
    char *late = malloc(count.iterations);
    if (!times || !late)
        give_up("rank %d: cannot allocate the times of %d iterations; use fewer (-i)", world->rank, count.iterations);
    struct clock clock = synchronise_clocks(world);
    double lead_time = warm_up(setup, &clock, result->size, count.warmup);
    call_in_windows(setup, &clock, result->size, lead_time, count.iterations, times, late);
    result->iterations = 0;
    for (int i = 0; i < count.iterations; i++) {
        if (late[i])
            continue;
        total += times[i];
        if (setup->samples)
            setup->samples[result->iterations] = times[i];
        times[result->iterations++] = times[i];
    }
    result->late = count.iterations - result->iterations;
    if (result->iterations == 0 && world->rank == ROOT)
        give_up("in every call of %zu bytes some rank started late; are there more ranks than cores?", result->size);
    if (result->iterations == 0) /* as on all ranks; the root ends them */
        MPI_CHECK(MPI_Barrier(world->comm));
    combine_ranks(world, &setup->options, total / result->iterations, setup->samples, result);
    if (setup->options.spreads.count > 0)
        result->max = mean_of_slowest(world, times, result->iterations);
    free(times);
    free(late);
}
