/* Every algorithm, with the keys that it takes. README.md says the same in words: change both. */
#include "collstudy.h"

#define PLAIN .keys = 0
#define SEGMENTED .keys = KEY_SEGMENT_BYTES
#define REDUCE_TREE .keys = KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS
#define PIPELINED .keys = KEY_SEGMENT_BYTES | KEY_SEGMENTS, .given = {.segments = 4}
#define CHAIN .keys = KEY_SEGMENT_BYTES, .given = {.segment_bytes = 65536}
#define LIBNBC .keys = KEY_SEGMENT_BYTES | KEY_SEGMENTS, .given = {.segments = 1}
#define ENTRIES(table) table, sizeof table / sizeof *table

static const struct algorithm bcast[] = {
    {"ompi_default", ompi_bcast_default, .given = {.fanout = 1, .radix = 4}},
    {"ompi_linear", ompi_bcast_linear, PLAIN},
    {"ompi_chain", ompi_bcast_chain, .keys = KEY_FANOUT | KEY_SEGMENT_BYTES, .given = {.fanout = 4}},
    {"ompi_pipeline", ompi_bcast_pipeline, SEGMENTED},
    {"ompi_split_binary_tree", ompi_bcast_split_binary, SEGMENTED},
    {"ompi_binary_tree", ompi_bcast_binary, SEGMENTED},
    {"ompi_binomial", ompi_bcast_binomial, SEGMENTED},
    {"ompi_knomial", ompi_bcast_knomial, .keys = KEY_RADIX | KEY_SEGMENT_BYTES, .given = {.radix = 4}},
    {"ompi_scatter_allgather", ompi_bcast_scatter_allgather, PLAIN},
    {"ompi_scatter_allgather_ring", ompi_bcast_scatter_allgather_ring, PLAIN},
    {"node", level_bcast_node, PLAIN},
    {"group", level_bcast_group, PLAIN},
    {"node_group", level_bcast_node_group, PLAIN},
    {"node_group_pipelined", level_bcast_pipelined, PIPELINED},
    {"node_group_chain", level_bcast_chain, CHAIN},
    {"rank_reorder", level_bcast_reorder, PLAIN},
    {"seed001", level_bcast_seed001, PLAIN},
    {"pipelined", pipelined_bcast, PIPELINED},
    {"libnbc_binomial", libnbc_bcast_binomial, LIBNBC},
    {"libnbc_chain", libnbc_bcast_chain, LIBNBC},
};

static const struct algorithm barrier[] = {
    {"ompi_default", ompi_barrier_default, PLAIN},
    {"ompi_linear", ompi_barrier_linear, PLAIN},
    {"ompi_double_ring", ompi_barrier_double_ring, PLAIN},
    {"ompi_recursive_doubling", ompi_barrier_recursive_doubling, PLAIN},
    {"ompi_bruck", ompi_barrier_bruck, PLAIN},
    {"ompi_two_proc", ompi_barrier_two_proc, PLAIN},
    {"ompi_tree", ompi_barrier_tree, PLAIN},
    {"aligned", aligned_barrier, PLAIN},
};

static const struct algorithm reduce[] = {
    {"ompi_default", ompi_reduce_default, .given = {.fanout = 1}},
    {"ompi_linear", ompi_reduce_linear, PLAIN},
    {"ompi_chain", ompi_reduce_chain, .keys = KEY_FANOUT | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS,
     .given = {.fanout = 4}},
    {"ompi_pipeline", ompi_reduce_pipeline, REDUCE_TREE},
    {"ompi_binary", ompi_reduce_binary, REDUCE_TREE},
    {"ompi_binomial", ompi_reduce_binomial, REDUCE_TREE},
    {"ompi_in_order_binary", ompi_reduce_in_order_binary, REDUCE_TREE},
    {"ompi_rabenseifner", ompi_reduce_rabenseifner, PLAIN},
    {"node", level_reduce_node, PLAIN},
    {"group", level_reduce_group, PLAIN},
    {"node_group", level_reduce_node_group, PLAIN},
    {"node_group_chain", level_reduce_chain, CHAIN},
    {"rank_reorder", level_reduce_reorder, PLAIN},
    {"seed001", level_reduce_seed001, PLAIN},
};

static const struct algorithm allreduce[] = {
    {"ompi_default", ompi_allreduce_default, .given = {.fanout = 1, .radix = 4}},
    {"ompi_linear", ompi_allreduce_linear, PLAIN},
    {"ompi_nonoverlapping", ompi_allreduce_nonoverlapping, .given = {.fanout = 1, .radix = 4}},
    {"ompi_recursive_doubling", ompi_allreduce_recursive_doubling, PLAIN},
    {"ompi_ring", ompi_allreduce_ring, PLAIN},
    {"ompi_segmented_ring", ompi_allreduce_segmented_ring, SEGMENTED},
    {"ompi_rabenseifner", ompi_allreduce_rabenseifner, PLAIN},
    {"pipelined", pipelined_allreduce, PIPELINED},
    {"libnbc_ring", libnbc_allreduce_ring, LIBNBC},
    {"libnbc_recursive_doubling", libnbc_allreduce_recursive_doubling, LIBNBC},
    {"libnbc_binomial", libnbc_allreduce_binomial, LIBNBC},
};

static const struct algorithm gather[] = {
    {"node", gather_node, PLAIN},
    {"group", gather_group, PLAIN},
    {"node_group", gather_node_group, PLAIN},
    {"rank_reorder", gather_reorder, PLAIN},
    {"seed001", gather_seed001, PLAIN},
};

static const struct algorithm alltoallv[] = {
    {"node", alltoallv_node, PLAIN},
    {"group", alltoallv_group, PLAIN},
    {"node_group", alltoallv_node_group, PLAIN},
    {"rank_reorder", alltoallv_reorder, PLAIN},
    {"node_gatherv", alltoallv_node_gatherv, PLAIN},
    {"seed001", alltoallv_seed001, PLAIN},
};

static const struct algorithm reduce_scatter[] = {
    {"pipelined", pipelined_reduce_scatter, PIPELINED},
    {"libnbc_binomial", libnbc_reduce_scatter, LIBNBC},
};

const struct catalogue coll_catalogue[COLL_OPS] = {
    [COLL_BCAST] = {"bcast", "COLL_BCAST", ENTRIES(bcast)},
    [COLL_BARRIER] = {"barrier", "COLL_BARRIER", ENTRIES(barrier)},
    [COLL_REDUCE] = {"reduce", "COLL_REDUCE", ENTRIES(reduce)},
    [COLL_ALLREDUCE] = {"allreduce", "COLL_ALLREDUCE", ENTRIES(allreduce)},
    [COLL_GATHER] = {"gather", "COLL_GATHER", ENTRIES(gather)},
    [COLL_ALLTOALLV] = {"alltoallv", "COLL_ALLTOALLV", ENTRIES(alltoallv)},
    [COLL_REDUCE_SCATTER] = {"reduce_scatter", "COLL_REDUCE_SCATTER", ENTRIES(reduce_scatter)},
};
