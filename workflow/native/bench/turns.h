/* Turns: several cells in one launch, each with variables of the MPI library's tool interface of its own. */
#ifndef TURNS_H
#define TURNS_H

#include "measure.h"

/* Gives each turn of the options a communicator that is made under its variables, and lets `measure` run there.
 * Rank 0 prints "# Turn N" before each. False where `measure` was; ends all ranks where a variable cannot be set. */
bool take_turns(const struct setup *setup, bool (*measure)(struct setup *setup));

#endif
