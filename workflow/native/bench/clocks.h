/* The clocks of all ranks as one. */
#ifndef CLOCKS_H
#define CLOCKS_H

#include "benchmark.h"

/* A rank's clock against rank 0's: how far it is behind at its own time `at`, and how much that grows in a second. */
struct clock {
    double at, behind, drift; /* s, s, s/s */
};

/* Finds each rank's clock. All ranks call it. */
struct clock synchronise_clocks(const struct world *world);

/* Now, by rank 0's clock (s). */
double global_time(const struct clock *clock);

/* Waits until an instant (s, by rank 0's clock) and returns the time then: later, if it has passed or the rank lost its
 * core. */
double wait_until(const struct clock *clock, double instant);

#endif
