/* Shared by all parts of the library: a call, the parameters of an algorithm, and the description of an algorithm. */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef SMPI_H
#define COLL_SIMULATED 1 /* built with smpicc: all ranks share one environment, and a core may be a host */
#else
#define COLL_SIMULATED 0
#endif

/* Returned by an algorithm, on all ranks and before any message, if the MPI library has to execute the call. */
#define COLL_USE_DEFAULT (-1)

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        int error_ = (expression);                                                                                     \
        if (error_ != MPI_SUCCESS)                                                                                     \
            return error_;                                                                                             \
    } while (0)

/* Every collective that can be replaced, with its name in a decision file; COLL_<OP> is its variable. */
#define COLL_COLLECTIVES(X)                                                                                            \
    X(BCAST, bcast)                                                                                                    \
    X(BARRIER, barrier)                                                                                                \
    X(REDUCE, reduce)                                                                                                  \
    X(ALLREDUCE, allreduce)                                                                                            \
    X(GATHER, gather)                                                                                                  \
    X(SCATTER, scatter)                                                                                                \
    X(ALLGATHER, allgather)                                                                                            \
    X(ALLTOALL, alltoall)                                                                                              \
    X(ALLTOALLV, alltoallv)                                                                                            \
    X(REDUCE_SCATTER, reduce_scatter)

enum coll_op {
#define X(OP, name) COLL_##OP,
    COLL_COLLECTIVES(X)
#undef X
        COLL_OPS
};

/* The keys of COLL_<OP>=<algorithm>:<key>=<value>. */
struct params {
    long segment_bytes; /* 0: one segment */
    long segments;      /* 0: not given */
    long fanout;
    long radix;
    long max_requests; /* 0: leaves of a reduction use blocking sends */
};

enum param_key { KEY_SEGMENT_BYTES = 1, KEY_SEGMENTS = 2, KEY_FANOUT = 4, KEY_RADIX = 8, KEY_MAX_REQUESTS = 16 };

struct cache;

/* One call of a collective. comm is private to this library, returns errors and has the same ranks as the caller's. */
struct call {
    enum coll_op kind;
    struct params params;
    struct cache *cache;
    MPI_Comm comm;
    int rank, size, root;
    const void *send;
    void *recv; /* broadcast: the only buffer */
    int count;
    MPI_Datatype type;
    MPI_Op op;
    /*
     * gather, scatter, allgather: of one rank; alltoall: of one block; alltoallv: all that this rank sends; otherwise:
     * of the whole vector
     */
    size_t bytes;
    /*
     * gather, scatter, allgather: elements of each block in the buffer that holds the blocks of all ranks (of gather
     * and scatter at the root only); count and type are those of this rank's own block in its other buffer.
     */
    int block_count;
    MPI_Datatype block_type;
    /* alltoall, alltoallv; reduce_scatter: recv_counts */
    MPI_Datatype recv_type;
    const int *send_counts, *send_displs, *recv_counts, *recv_displs;
    bool in_place;     /* alltoall, alltoallv: `send` is `recv` */
    bool equal_counts; /* reduce_scatter: MPI_Reduce_scatter_block */
};

typedef int algorithm_function(struct call *call);

/* A row of algorithms/algorithms.csv. */
struct algorithm {
    enum coll_op kind;
    const char *name;
    algorithm_function *run;
    unsigned keys;       /* accepted keys, a bitwise OR of enum param_key */
    struct params given; /* values of keys that the user does not give */
};

#endif
