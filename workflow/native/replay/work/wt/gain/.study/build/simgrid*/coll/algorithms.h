#include "core/call.h"
algorithm_function coll_bcast_node;
algorithm_function coll_bcast_group;
algorithm_function coll_bcast_node_group;
algorithm_function coll_bcast_pipelined;
algorithm_function coll_bcast_chain;
algorithm_function coll_bcast_reorder;
algorithm_function coll_bcast_seed001;
algorithm_function libnbc_bcast_binomial;
algorithm_function libnbc_bcast_chain;
algorithm_function ompi_bcast_default;
algorithm_function ompi_bcast_linear;
algorithm_function ompi_bcast_chain;
algorithm_function ompi_bcast_pipeline;
algorithm_function ompi_bcast_split_binary;
algorithm_function ompi_bcast_binary;
algorithm_function ompi_bcast_binomial;
algorithm_function ompi_bcast_knomial;
algorithm_function ompi_bcast_scatter_allgather;
algorithm_function ompi_bcast_scatter_allgather_ring;
algorithm_function coll_pipelined_bcast;
algorithm_function ompi_barrier_default;
algorithm_function ompi_barrier_linear;
algorithm_function ompi_barrier_double_ring;
algorithm_function ompi_barrier_recursive_doubling;
algorithm_function ompi_barrier_bruck;
algorithm_function ompi_barrier_two_proc;
algorithm_function ompi_barrier_tree;
algorithm_function coll_aligned;
algorithm_function coll_reduce_node;
algorithm_function coll_reduce_group;
algorithm_function coll_reduce_node_group;
algorithm_function coll_reduce_chain;
algorithm_function coll_reduce_reorder;
algorithm_function coll_reduce_seed001;
algorithm_function ompi_reduce_default;
algorithm_function ompi_reduce_linear;
algorithm_function ompi_reduce_chain;
algorithm_function ompi_reduce_pipeline;
algorithm_function ompi_reduce_binary;
algorithm_function ompi_reduce_binomial;
algorithm_function ompi_reduce_in_order_binary;
algorithm_function ompi_reduce_rabenseifner;
algorithm_function libnbc_allreduce_ring;
algorithm_function libnbc_allreduce_recursive_doubling;
algorithm_function libnbc_allreduce_binomial;
algorithm_function ompi_allreduce_default;
algorithm_function ompi_allreduce_linear;
algorithm_function ompi_allreduce_nonoverlapping;
algorithm_function ompi_allreduce_recursive_doubling;
algorithm_function ompi_allreduce_ring;
algorithm_function ompi_allreduce_segmented_ring;
algorithm_function ompi_allreduce_rabenseifner;
algorithm_function coll_pipelined_allreduce;
algorithm_function coll_gather_node;
algorithm_function coll_gather_group;
algorithm_function coll_gather_node_group;
algorithm_function coll_gather_reorder;
algorithm_function coll_gather_seed001;
algorithm_function coll_alltoallv_node;
algorithm_function coll_alltoallv_group;
algorithm_function coll_alltoallv_node_group;
algorithm_function coll_alltoallv_reorder;
algorithm_function coll_alltoallv_node_gatherv;
algorithm_function coll_alltoallv_seed001;
algorithm_function coll_pipelined_reduce_scatter;
algorithm_function libnbc_reduce_scatter;
#define COLL_ALGORITHMS(X) \
    X(BCAST, node, coll_bcast_node, 0, ) \
    X(BCAST, group, coll_bcast_group, 0, ) \
    X(BCAST, node_group, coll_bcast_node_group, 0, ) \
    X(BCAST, node_group_pipelined, coll_bcast_pipelined, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 4, ) \
    X(BCAST, node_group_chain, coll_bcast_chain, 0 | KEY_SEGMENT_BYTES, .segment_bytes = 65536, ) \
    X(BCAST, rank_reorder, coll_bcast_reorder, 0, ) \
    X(BCAST, seed001, coll_bcast_seed001, 0, ) \
    X(BCAST, libnbc_binomial, libnbc_bcast_binomial, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, ) \
    X(BCAST, libnbc_chain, libnbc_bcast_chain, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, ) \
    X(BCAST, ompi_default, ompi_bcast_default, 0, ) \
    X(BCAST, ompi_linear, ompi_bcast_linear, 0, ) \
    X(BCAST, ompi_chain, ompi_bcast_chain, 0 | KEY_FANOUT | KEY_SEGMENT_BYTES, .fanout = 4, ) \
    X(BCAST, ompi_pipeline, ompi_bcast_pipeline, 0 | KEY_SEGMENT_BYTES, ) \
    X(BCAST, ompi_split_binary_tree, ompi_bcast_split_binary, 0 | KEY_SEGMENT_BYTES, ) \
    X(BCAST, ompi_binary_tree, ompi_bcast_binary, 0 | KEY_SEGMENT_BYTES, ) \
    X(BCAST, ompi_binomial, ompi_bcast_binomial, 0 | KEY_SEGMENT_BYTES, ) \
    X(BCAST, ompi_knomial, ompi_bcast_knomial, 0 | KEY_RADIX | KEY_SEGMENT_BYTES, .radix = 4, ) \
    X(BCAST, ompi_scatter_allgather, ompi_bcast_scatter_allgather, 0, ) \
    X(BCAST, ompi_scatter_allgather_ring, ompi_bcast_scatter_allgather_ring, 0, ) \
    X(BCAST, pipelined, coll_pipelined_bcast, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 4, ) \
    X(BARRIER, ompi_default, ompi_barrier_default, 0, ) \
    X(BARRIER, ompi_linear, ompi_barrier_linear, 0, ) \
    X(BARRIER, ompi_double_ring, ompi_barrier_double_ring, 0, ) \
    X(BARRIER, ompi_recursive_doubling, ompi_barrier_recursive_doubling, 0, ) \
    X(BARRIER, ompi_bruck, ompi_barrier_bruck, 0, ) \
    X(BARRIER, ompi_two_proc, ompi_barrier_two_proc, 0, ) \
    X(BARRIER, ompi_tree, ompi_barrier_tree, 0, ) \
    X(BARRIER, aligned, coll_aligned, 0, ) \
    X(REDUCE, node, coll_reduce_node, 0, ) \
    X(REDUCE, group, coll_reduce_group, 0, ) \
    X(REDUCE, node_group, coll_reduce_node_group, 0, ) \
    X(REDUCE, node_group_chain, coll_reduce_chain, 0 | KEY_SEGMENT_BYTES, .segment_bytes = 65536, ) \
    X(REDUCE, rank_reorder, coll_reduce_reorder, 0, ) \
    X(REDUCE, seed001, coll_reduce_seed001, 0, ) \
    X(REDUCE, ompi_default, ompi_reduce_default, 0, ) \
    X(REDUCE, ompi_linear, ompi_reduce_linear, 0, ) \
    X(REDUCE, ompi_chain, ompi_reduce_chain, 0 | KEY_FANOUT | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS, .fanout = 4, ) \
    X(REDUCE, ompi_pipeline, ompi_reduce_pipeline, 0 | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS, ) \
    X(REDUCE, ompi_binary, ompi_reduce_binary, 0 | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS, ) \
    X(REDUCE, ompi_binomial, ompi_reduce_binomial, 0 | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS, ) \
    X(REDUCE, ompi_in_order_binary, ompi_reduce_in_order_binary, 0 | KEY_SEGMENT_BYTES | KEY_MAX_REQUESTS, ) \
    X(REDUCE, ompi_rabenseifner, ompi_reduce_rabenseifner, 0, ) \
    X(ALLREDUCE, libnbc_ring, libnbc_allreduce_ring, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, ) \
    X(ALLREDUCE, libnbc_recursive_doubling, libnbc_allreduce_recursive_doubling, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, ) \
    X(ALLREDUCE, libnbc_binomial, libnbc_allreduce_binomial, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, ) \
    X(ALLREDUCE, ompi_default, ompi_allreduce_default, 0, ) \
    X(ALLREDUCE, ompi_linear, ompi_allreduce_linear, 0, ) \
    X(ALLREDUCE, ompi_nonoverlapping, ompi_allreduce_nonoverlapping, 0, ) \
    X(ALLREDUCE, ompi_recursive_doubling, ompi_allreduce_recursive_doubling, 0, ) \
    X(ALLREDUCE, ompi_ring, ompi_allreduce_ring, 0, ) \
    X(ALLREDUCE, ompi_segmented_ring, ompi_allreduce_segmented_ring, 0 | KEY_SEGMENT_BYTES, ) \
    X(ALLREDUCE, ompi_rabenseifner, ompi_allreduce_rabenseifner, 0, ) \
    X(ALLREDUCE, pipelined, coll_pipelined_allreduce, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 4, ) \
    X(GATHER, node, coll_gather_node, 0, ) \
    X(GATHER, group, coll_gather_group, 0, ) \
    X(GATHER, node_group, coll_gather_node_group, 0, ) \
    X(GATHER, rank_reorder, coll_gather_reorder, 0, ) \
    X(GATHER, seed001, coll_gather_seed001, 0, ) \
    X(ALLTOALLV, node, coll_alltoallv_node, 0, ) \
    X(ALLTOALLV, group, coll_alltoallv_group, 0, ) \
    X(ALLTOALLV, node_group, coll_alltoallv_node_group, 0, ) \
    X(ALLTOALLV, rank_reorder, coll_alltoallv_reorder, 0, ) \
    X(ALLTOALLV, node_gatherv, coll_alltoallv_node_gatherv, 0, ) \
    X(ALLTOALLV, seed001, coll_alltoallv_seed001, 0, ) \
    X(REDUCE_SCATTER, pipelined, coll_pipelined_reduce_scatter, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 4, ) \
    X(REDUCE_SCATTER, libnbc_binomial, libnbc_reduce_scatter, 0 | KEY_SEGMENT_BYTES | KEY_SEGMENTS, .segments = 1, )
