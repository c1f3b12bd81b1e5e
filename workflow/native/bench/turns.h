/* Turns: several cells in one launch, each with its own values of the MPI library's control variables (MPI_T). */
#ifndef TURNS_H
#define TURNS_H

#include "measure.h"

/* For each turn of the options, sets its variables, creates a communicator and calls `measure` for it. Rank 0 first
 * prints "# Turn N". Returns false as soon as `measure` does; aborts all ranks if a variable cannot be set. */
bool take_turns(const struct setup *setup, bool (*measure)(struct setup *setup));

#endif
