/* Ping-pong between every two ranks, one pair at a time: half the round-trip time. */
#include "benchmark.h"

static const struct exchange exchange = {.each_pair = true, .value = one_way_us, .column = "Avg Latency(us)"};

static const struct benchmark own = {.name = "pairs",
                                     .title = "MPI latency test of every pair of ranks",
                                     .small = {10, 100},
                                     .large = {2, 10},
                                     .exchange = &exchange,
                                     EXCHANGE_DEFAULTS};
LIST(own);
