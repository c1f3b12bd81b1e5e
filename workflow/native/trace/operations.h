/* The operations of a trace, by the name of the MPI function without MPI_ and in lower case. Their order is part of the
 * format. Collectives come last. workflow/collstudy/sources/traces.py and the replay read this file as well. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

/* clang-format off */
#define TRACE_OPERATIONS(X) \
    X(init) X(finalize) X(communicator) X(send) X(ssend) X(bsend) X(rsend) X(recv) X(sendrecv) \
    X(isend) X(issend) X(ibsend) X(irsend) X(irecv) X(probe) X(wait) X(test) X(barrier) X(bcast) \
    X(reduce) X(allreduce) X(gather) X(gatherv) X(scatter) X(scatterv) X(allgather) X(allgatherv) \
    X(alltoall) X(alltoallv) X(alltoallw) X(reduce_scatter) X(reduce_scatter_block) X(scan) \
    X(exscan) X(ibarrier) X(ibcast) X(ireduce) X(iallreduce) X(igather) X(iscatter) X(iallgather) \
    X(ialltoall) X(ialltoallv) X(iallgatherv)
/* clang-format on */

enum operation {
    OP_END,
#define X(name) OP_##name,
    TRACE_OPERATIONS(X)
#undef X
        OP_COUNT,
    OP_FIRST_COLLECTIVE = OP_barrier,
    OP_LIST = 0xffff /* a slot with numbers of the record before it */
};

#endif
