/* Ping-pong between ranks 0 and 1: half the round-trip time. */
#include "benchmark.h"

static const struct exchange exchange = {
    .call = ping_pong, .value = one_way_us, .column = "Avg Latency(us)", .percentile_column = "Tail Lat(us)"};

static const struct benchmark own = {.name = "latency",
                                     .title = "MPI point-to-point latency test",
                                     .small = {100, 10000},
                                     .large = {10, 1000},
                                     .exchange = &exchange,
                                     EXCHANGE_DEFAULTS};
LIST(own);
