/* Ping-pong between all pairs (r, r + P / 2) concurrently: half the round-trip time, averaged over the pairs. */
#include "benchmark.h"

static const struct exchange exchange = {.call = ping_pong,
                                         .all_pairs = true,
                                         .value = one_way_us,
                                         .column = "Avg Latency(us)",
                                         .percentile_column = "Tail Lat(us)"};

static const struct benchmark own = {.name = "multi_lat",
                                     .title = "MPI multi-pair latency test",
                                     .small = {100, 10000},
                                     .large = {10, 1000},
                                     .exchange = &exchange,
                                     EXCHANGE_DEFAULTS};
LIST(own);
