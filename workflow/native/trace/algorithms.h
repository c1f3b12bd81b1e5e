/* The algorithms that components of Open MPI share: ompi_coll_base_* of ompi/mca/coll/base/coll_base_functions.h. The
 * file that includes this one defines ALGORITHM_WITH(NAME, COUNT, COMM, FORMAT, FIRST, SECOND): a function that
 * replaces ompi_coll_base_NAME, with COUNT arguments (P<COUNT>: parameters, A<COUNT>: to pass on) and communicator
 * COMM; FORMAT prints the numbers FIRST and SECOND. All arguments are integers and pointers, which fit in a `long`. */
#define P2 long a, long b
#define P6 P2, long c, long d, long e, long f
#define P7 P6, long g
#define P8 P7, long h
#define P9 P8, long i
#define P10 P9, long j
#define P11 P10, long k
#define A2 a, b
#define A6 A2, c, d, e, f
#define A7 A6, g
#define A8 A7, h
#define A9 A8, i
#define A10 A9, j
#define A11 A10, k

#define ALGORITHM(NAME, COUNT, COMM) ALGORITHM_WITH(NAME, COUNT, COMM, "%.0d%.0d", 0, 0)
#define SEGMENTED(NAME, COUNT, COMM, SEGMENT) ALGORITHM_WITH(NAME, COUNT, COMM, "[segment %d]%.0d", SEGMENT, 0)

ALGORITHM(allgather_intra_bruck, 8, g)
ALGORITHM(allgather_intra_recursivedoubling, 8, g)
ALGORITHM(allgather_intra_sparbit, 8, g)
ALGORITHM(allgather_intra_ring, 8, g)
ALGORITHM(allgather_intra_neighborexchange, 8, g)
ALGORITHM(allgather_intra_basic_linear, 8, g)
ALGORITHM(allgather_intra_two_procs, 8, g)
ALGORITHM(allgatherv_intra_bruck, 9, h)
ALGORITHM(allgatherv_intra_sparbit, 9, h)
ALGORITHM(allgatherv_intra_ring, 9, h)
ALGORITHM(allgatherv_intra_neighborexchange, 9, h)
ALGORITHM(allgatherv_intra_basic_default, 9, h)
ALGORITHM(allgatherv_intra_two_procs, 9, h)
ALGORITHM(allreduce_intra_nonoverlapping, 7, f)
ALGORITHM(allreduce_intra_recursivedoubling, 7, f)
ALGORITHM(allreduce_intra_ring, 7, f)
SEGMENTED(allreduce_intra_ring_segmented, 8, f, h)
ALGORITHM(allreduce_intra_basic_linear, 7, f)
ALGORITHM(allreduce_intra_redscat_allgather, 7, f)
ALGORITHM(alltoall_intra_pairwise, 8, g)
ALGORITHM(alltoall_intra_bruck, 8, g)
ALGORITHM(alltoall_intra_basic_linear, 8, g)
ALGORITHM_WITH(alltoall_intra_linear_sync, 9, g, "[requests %d]%.0d", i, 0)
ALGORITHM(alltoall_intra_two_procs, 8, g)
ALGORITHM(alltoallv_intra_pairwise, 10, i)
ALGORITHM(alltoallv_intra_basic_linear, 10, i)
ALGORITHM(barrier_intra_doublering, 2, a)
ALGORITHM(barrier_intra_recursivedoubling, 2, a)
ALGORITHM(barrier_intra_bruck, 2, a)
ALGORITHM(barrier_intra_two_procs, 2, a)
ALGORITHM(barrier_intra_tree, 2, a)
ALGORITHM(barrier_intra_basic_linear, 2, a)
ALGORITHM(bcast_intra_basic_linear, 6, e)
ALGORITHM_WITH(bcast_intra_chain, 8, e, "[segment %d, fan-out %d]", g, h)
SEGMENTED(bcast_intra_pipeline, 7, e, g)
SEGMENTED(bcast_intra_binomial, 7, e, g)
SEGMENTED(bcast_intra_bintree, 7, e, g)
SEGMENTED(bcast_intra_split_bintree, 7, e, g)
ALGORITHM_WITH(bcast_intra_knomial, 8, e, "[segment %d, radix %d]", g, h)
SEGMENTED(bcast_intra_scatter_allgather, 7, e, g)
SEGMENTED(bcast_intra_scatter_allgather_ring, 7, e, g)
ALGORITHM(exscan_intra_recursivedoubling, 7, f)
ALGORITHM(exscan_intra_linear, 7, f)
ALGORITHM(gather_intra_basic_linear, 9, h)
ALGORITHM(gather_intra_binomial, 9, h)
ALGORITHM_WITH(gather_intra_linear_sync, 10, h, "[first segment %d]%.0d", j, 0)
ALGORITHM(reduce_intra_basic_linear, 8, g)
ALGORITHM_WITH(reduce_intra_chain, 11, g, "[segment %d, fan-out %d]", i, j)
SEGMENTED(reduce_intra_pipeline, 10, g, i)
SEGMENTED(reduce_intra_binary, 10, g, i)
SEGMENTED(reduce_intra_binomial, 10, g, i)
SEGMENTED(reduce_intra_in_order_binary, 10, g, i)
ALGORITHM(reduce_intra_redscat_gather, 8, g)
ALGORITHM(reduce_scatter_intra_nonoverlapping, 7, f)
ALGORITHM(reduce_scatter_intra_basic_recursivehalving, 7, f)
ALGORITHM(reduce_scatter_intra_ring, 7, f)
ALGORITHM(reduce_scatter_intra_butterfly, 7, f)
ALGORITHM(reduce_scatter_block_basic_linear, 7, f)
ALGORITHM(reduce_scatter_block_intra_recursivedoubling, 7, f)
ALGORITHM(reduce_scatter_block_intra_recursivehalving, 7, f)
ALGORITHM(reduce_scatter_block_intra_butterfly, 7, f)
ALGORITHM(scan_intra_recursivedoubling, 7, f)
ALGORITHM(scan_intra_linear, 7, f)
ALGORITHM(scatter_intra_basic_linear, 9, h)
ALGORITHM(scatter_intra_binomial, 9, h)
ALGORITHM_WITH(scatter_intra_linear_nb, 10, h, "[requests %d]%.0d", j, 0)
