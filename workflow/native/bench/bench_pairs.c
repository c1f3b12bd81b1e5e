/* Ping-pong of every two ranks, one pair after the other: half of the time for a message there and one back. */
#include "benchmark.h"

/* Microseconds one way. */
static double value(double seconds, int bytes) {
    (void)bytes;
    return seconds * 1e6 / 2;
}

static const struct exchange exchange = {.each_pair = true, .value = value, .column = "Avg Latency(us)"};

static const struct benchmark own = {.name = "pairs",
                                     .title = "MPI latency test of every pair of ranks",
                                     .sized = true,
                                     .max_size = 1 << 22,
                                     .small = {10, 100},
                                     .large = {2, 10},
                                     .exchange = &exchange};
LIST(own);
