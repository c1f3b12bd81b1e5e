/*
 * libcollstudy: collective algorithms that replace those of the MPI library, chosen by environment variables.
 * README.md lists every algorithm, key and variable.
 *
 *   override.c   the MPI_* functions that programs call
 *   select.c     what COLL_<OP> and COLL_RULES ask for         catalogue.c  the algorithms that exist
 *   cache.c      what is kept with a communicator              hierarchy.c  its nodes, groups and leaders
 *   topology.c   the host and the group of this process        message.c    buffers and messages
 *   tree.c       who sends to whom                             segment.c    segmented trees
 *   ompi_*.c     algorithms of Open MPI's coll/tuned           levels.c, gather.c, alltoallv.c  seed 001
 *   pipelined.c  seed 002                                      base.c       collectives inside of collectives
 *   libnbc.c     non-blocking ones of Open MPI's coll/libnbc
 */
#ifndef COLLSTUDY_H
#define COLLSTUDY_H

/* Part of the identity of every measurement made with the library: raise it when what is sent, or when, changes. */
#define COLLSTUDY_VERSION "1.0"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef SMPI_H
#define COLL_SIMULATED 1 /* built with smpicc: all ranks share one environment, a core may be a host */
#else
#define COLL_SIMULATED 0
#endif

/* Returned by an algorithm, on all ranks alike and before any message, when the MPI library has to do the call. */
#define COLL_USE_DEFAULT (-1)

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        int error_ = (expression);                                                                                     \
        if (error_ != MPI_SUCCESS)                                                                                     \
            return error_;                                                                                             \
    } while (0)

enum coll_op {
    COLL_BCAST,
    COLL_BARRIER,
    COLL_REDUCE,
    COLL_ALLREDUCE,
    COLL_GATHER,
    COLL_ALLTOALLV,
    COLL_REDUCE_SCATTER,
    COLL_OPS
};

/* The keys of COLL_<OP>=<algorithm>:<key>=<value>; catalogue.c says which algorithm takes which. */
struct params {
    long segment_bytes; /* 0: one segment */
    long segments;      /* 0: not given */
    long fanout;
    long radix;
    long max_requests; /* 0: a leaf of a reduction sends with blocking sends */
};

struct choice {
    const struct algorithm *algorithm; /* NULL: the MPI library's own */
    struct params params;
};

/* One call of a collective. comm is private to this library, returns errors, and has the ranks of the caller's. */
struct call {
    enum coll_op kind;
    struct params params;
    struct cache *cache;
    MPI_Comm comm;
    int rank, size, root;
    const void *send;
    void *recv; /* of a broadcast: its one buffer */
    int count;
    MPI_Datatype type;
    MPI_Op op;
    size_t bytes; /* per rank for a gather; its own total for an alltoallv; the whole vector otherwise */
    int recv_count;
    MPI_Datatype recv_type;
    const int *send_counts, *send_displs, *recv_counts, *recv_displs;
};

typedef int algorithm_function(struct call *call);

enum param_key { KEY_SEGMENT_BYTES = 1, KEY_SEGMENTS = 2, KEY_FANOUT = 4, KEY_RADIX = 8, KEY_MAX_REQUESTS = 16 };

struct algorithm {
    const char *name;
    algorithm_function *run;
    unsigned keys;       /* of enum param_key */
    struct params given; /* what a key is when it is not given */
};

/* ---- catalogue.c ---- */
struct catalogue {
    const char *name;     /* as in a decision file */
    const char *variable; /* COLL_<OP> */
    const struct algorithm *algorithms;
    int n;
};
extern const struct catalogue coll_catalogue[COLL_OPS];

/* ---- select.c ---- */
extern bool coll_active[COLL_OPS]; /* false: the call goes straight to the MPI library */
/* Read the environment; NULL, or what is wrong with it. */
const char *coll_select_init(void);
void coll_select_free(void);
/* A number that differs, most likely, when two processes were given different settings. */
unsigned coll_select_digest(void);
bool coll_select_needs_placement(enum coll_op kind);
/* Whether the size of a message matters to the rules for a placement. */
bool coll_select_needs_size(enum coll_op kind, int nodes, int ppn);
struct choice coll_select(enum coll_op kind, int nodes, int ppn, size_t bytes);
size_t coll_memory_limit(void);
bool coll_verbose(void);
long coll_reduce_mb_s(void);  /* 0: summing takes no simulated time */
bool coll_base_is_ompi(void); /* COLL_BASE=ompi: what base.c calls */

/* ---- base.c ---- */
int coll_base_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int coll_base_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);

/* ---- topology.c ---- */
int coll_host_init(void);
const char *coll_host(void);          /* name of the node of this process */
bool coll_host_is_given(void);        /* by COLL_HOSTS */
const char *coll_group_of_host(void); /* NULL when COLL_GROUPS does not list the host */
void coll_host_free(void);

/* ---- cache.c ---- */
struct placement {
    bool known;
    int node, group;   /* id: the lowest rank there */
    int nodes, groups; /* how many in the communicator */
    int ppn;           /* ranks per node, rounded up */
};

struct cache {
    MPI_Comm comm;
    int rank, size;
    struct placement placement;
    struct levels *levels;     /* hierarchy.c; most recent first */
    struct exchange *exchange; /* alltoallv.c */
};

int coll_cache_init(void);
int coll_cache_free(void);
int coll_cache_get(MPI_Comm user, struct cache **cache);

/* ---- hierarchy.c ---- */
enum level_kind { LEVEL_NODE, LEVEL_GROUP, LEVEL_NODE_GROUP, LEVEL_REORDER };
enum { MAX_LEVELS = 3 };

/*
 * Communicators from the outermost level to the innermost, for one root. The root is rank 0 of each; a rank that does
 * not lead below a level has MPI_COMM_NULL there.
 */
struct levels {
    enum level_kind kind;
    int root;
    int n;
    MPI_Comm comm[MAX_LEVELS];
    int *below[MAX_LEVELS];   /* at rank 0 of a level: how many ranks each member stands for */
    bool uniform[MAX_LEVELS]; /* all members stand for the same number */
    bool ordered;             /* below, uniform and order are known: only a gather needs them */
    int *order; /* at the root: rank in the caller's communicator of the i-th block that a gather brings */
    struct levels *next;
};

int coll_placement(struct cache *cache);
int coll_levels_get(struct cache *cache, enum level_kind kind, int root, struct levels **levels);
void coll_levels_free(struct cache *cache);

/* ---- message.c ---- */
struct extent {
    MPI_Aint lb, extent, true_lb, true_extent;
    int size;
};
int coll_extent(MPI_Datatype type, struct extent *extent);
/* Bytes that count elements span, and memory for them: the address of element 0 (raw is what to free). */
size_t coll_span(const struct extent *extent, size_t count);
int coll_buffer(const struct extent *extent, size_t count, char **raw, char **address);
int coll_copy(const void *from, void *to, int count, MPI_Datatype type);
/* to = from (op) to. In the simulator it takes the time that COLL_REDUCE_MB_S says. */
int coll_reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op);
int coll_sendrecv(const struct call *call, const void *send, int send_count, int to, void *recv, int recv_count,
                  int from, MPI_Status *status);
int coll_sendrecv_empty(const struct call *call, int to, int from);
int coll_send(const struct call *call, const void *buffer, int count, int to);
int coll_isend(const struct call *call, const void *buffer, int count, int to, MPI_Request *request);
int coll_recv(const struct call *call, void *buffer, int count, int from, MPI_Status *status);
int coll_irecv(const struct call *call, void *buffer, int count, int from, MPI_Request *request);
int coll_wait_sends(int n, MPI_Request requests[]);
void coll_cancel(int n, MPI_Request requests[]);
static inline char *coll_at(const void *buffer, MPI_Aint index, MPI_Aint extent) {
    return (char *)buffer + index * extent;
}

/* ---- tree.c ---- */
enum { TREE_MAX_FANOUT = 32, TREE_MAX_CHILDREN = 256 };
struct tree {
    int parent; /* -1 at the root */
    int n;
    int child[TREE_MAX_CHILDREN];
};
void coll_tree_chain(struct tree *tree, int rank, int size, int root, int fanout);
void coll_tree_binary(struct tree *tree, int rank, int size, int root);
void coll_tree_binomial(struct tree *tree, int rank, int size, int root);
void coll_tree_in_order_binomial(struct tree *tree, int rank, int size, int root);
void coll_tree_knomial(struct tree *tree, int rank, int size, int root, int radix);
void coll_tree_in_order_binary(struct tree *tree, int rank, int size); /* the root is the last rank */
int coll_floor_power_of_two(int n);

/* ---- segment.c ---- */
int coll_segment_count(size_t segment_bytes, size_t type_size, int count);
int coll_bcast_tree(struct call *call, const struct tree *tree);
int coll_reduce_tree(struct call *call, const struct tree *tree, int root);

/* ---- algorithms ---- */
algorithm_function ompi_bcast_default, ompi_bcast_linear, ompi_bcast_chain, ompi_bcast_pipeline,
    ompi_bcast_split_binary, ompi_bcast_binary, ompi_bcast_binomial, ompi_bcast_knomial, ompi_bcast_scatter_allgather,
    ompi_bcast_scatter_allgather_ring;
algorithm_function ompi_barrier_default, ompi_barrier_linear, ompi_barrier_double_ring, ompi_barrier_recursive_doubling,
    ompi_barrier_bruck, ompi_barrier_two_proc, ompi_barrier_tree, aligned_barrier;
algorithm_function ompi_reduce_default, ompi_reduce_linear, ompi_reduce_chain, ompi_reduce_pipeline, ompi_reduce_binary,
    ompi_reduce_binomial, ompi_reduce_in_order_binary, ompi_reduce_rabenseifner;
algorithm_function ompi_allreduce_default, ompi_allreduce_linear, ompi_allreduce_nonoverlapping,
    ompi_allreduce_recursive_doubling, ompi_allreduce_ring, ompi_allreduce_segmented_ring, ompi_allreduce_rabenseifner;
algorithm_function level_bcast_node, level_bcast_group, level_bcast_node_group, level_bcast_reorder,
    level_bcast_pipelined, level_bcast_chain, level_bcast_seed001;
algorithm_function level_reduce_node, level_reduce_group, level_reduce_node_group, level_reduce_chain,
    level_reduce_reorder, level_reduce_seed001;
algorithm_function gather_node, gather_group, gather_node_group, gather_reorder, gather_seed001;
algorithm_function alltoallv_node, alltoallv_group, alltoallv_node_group, alltoallv_reorder, alltoallv_node_gatherv,
    alltoallv_seed001;
algorithm_function pipelined_bcast, pipelined_allreduce, pipelined_reduce_scatter;
algorithm_function libnbc_bcast_binomial, libnbc_bcast_chain, libnbc_allreduce_ring,
    libnbc_allreduce_recursive_doubling, libnbc_allreduce_binomial, libnbc_reduce_scatter;
void coll_exchange_free(struct cache *cache);

/* Elements in each segment of a pipelined call. */
int coll_chunk(const struct call *call, int count, int type_size);
/* Above the limit on the memory of a leader: count it and use the MPI library's algorithm. */
bool coll_above_limit(const struct call *call, size_t bytes);
void coll_count_setup(double seconds);
bool coll_commutes(const struct call *call);

#endif
