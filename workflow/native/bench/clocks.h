/* A common clock for all ranks. */
#ifndef CLOCKS_H
#define CLOCKS_H

#include "benchmark.h"

/* A rank's clock relative to rank 0's: how far it lags at local time `at`, and by how much the lag grows per second. */
struct clock {
    double at, behind, drift; /* s, s, s/s */
};

/* Determines the clock of each rank. Collective over all ranks. */
struct clock synchronise_clocks(const struct world *world);

/* Returns the current time on rank 0's clock (s). */
double global_time(const struct clock *clock);

/* Waits until `instant` (s, on rank 0's clock) and returns the time at the end: later than `instant` if that had
 * already passed or if the rank lost its core. */
double wait_until(const struct clock *clock, double instant);

#endif
