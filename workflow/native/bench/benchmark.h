/* Definition of a benchmark. Each bench_*.c defines and registers one; no other file refers to a benchmark by name. */
#ifndef BENCHMARK_H
#define BENCHMARK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The root of rooted collectives. */
#define ROOT 0

/* Message buffers of a rank, allocated once for the largest message size and reused for all sizes. */
struct buffers {
    char *send;
    char *recv; /* the same as send for in-place benchmarks */
};

/* The communicator under test and this rank's place in it. */
struct world {
    MPI_Comm comm;
    int rank;
    int ranks;
    int *counts, *displacements; /* in bytes, for the current message size; NULL if the collective takes no counts */
};

/* Default number of calls per message size. */
struct repetitions {
    int warmup;     /* not timed; these calls precede the timed ones */
    int iterations; /* timed */
};

/* Where MPI_Barrier is called. OMB 7.4 differs between benchmarks, and each barrier affects simulated results. */
enum sync {
    SYNC_BEFORE_SIZE = 1,  /* before the first call of a message size */
    SYNC_BEFORE_CALL = 2,  /* before each call */
    SYNC_AFTER_CALL = 4,   /* after each call */
    SYNC_AFTER_CALLS = 8,  /* after the last call of a message size */
    SYNC_AFTER_RESULT = 16 /* after the result of a message size */
};

/* Per-rank counts and displacements of collectives that take them, recomputed for each message size. */
enum counts {
    COUNTS_NONE,
    COUNTS_EQUAL /* one message per rank */,
    COUNTS_SHARED /* one message, divided among the ranks */
};

/* The ranks whose blocks a rank receives the sum of. */
enum summed { ALL_RANKS, PREFIX /* those below it */, PREFIX_AND_OWN /* those up to itself */ };

/* A collective: how it is called and how its data move. A block is one message of the current size. */
struct collective {
    int (*call)(const struct buffers *buffers, int bytes, const struct world *world); /* returns an MPI error code */
    /* Only for non-blocking collectives, instead of `call`: starts the operation. */
    int (*start)(const struct buffers *buffers, int bytes, const struct world *world, MPI_Request *request);
    unsigned sync;      /* bitwise OR of enum sync */
    enum counts counts; /* how the counts of the ranks are set */
    bool in_place;      /* sends from and receives into the same buffer */
    bool root_sends;    /* only the root has data to send */
    bool root_receives; /* only the root gets data */
    bool personal;      /* sends a different block to each rank (otherwise the same block to all) */
    bool collects;      /* receives a block from each rank */
    bool sums;          /* receives the sum of blocks */
    enum summed summed; /* of which ranks */
    bool parts;         /* receives only its own part of the sum, given by the counts */
};

/* A point-to-point exchange: between ranks 0 and 1, between all pairs (r, r + P / 2) concurrently, or between every two
 * ranks, one pair at a time. */
struct exchange {
    int (*call)(const struct buffers *buffers, int bytes, const struct world *world); /* returns an MPI error code */
    bool one_way;                                                                     /* only rank 1 receives */
    double (*value)(double seconds, int bytes); /* converts the time of one exchange to the printed value */
    bool all_pairs;                             /* the printed value is the mean over the pairs */
    bool each_pair;                             /* one value per pair of ranks; `call` is not used */
    const char *column;                         /* column heading of the value, with its unit */
    const char *percentile_column;              /* column heading of a percentile of the value */
};

/* Exactly one of `collective` and `exchange` is set. */
struct benchmark {
    const char *name;                /* the program is collbench_<name> */
    const char *title;               /* first line of the output */
    bool sizeless;                   /* takes no message; prints one line */
    size_t max_size;                 /* default of the largest message size, bytes */
    struct repetitions small, large; /* defaults for sizes up to LARGE_MESSAGE, and above it */
    const struct collective *collective;
    const struct exchange *exchange;
};

/* The benchmark being run: the only one of its program, or in collbench_all that of the current turn. */
extern const struct benchmark *benchmark;

/* Registers a benchmark: the linker collects the pointers in the section `benchmarks`. */
#define LIST(OWN) static const struct benchmark *const listed __attribute__((used, section("benchmarks"))) = &(OWN)

/* Returns the benchmark registered under `name`, the first one if `name` is NULL, or NULL if there is none. */
const struct benchmark *find_benchmark(const char *name);

/* Messages larger than this (bytes) are repeated fewer times. */
#define LARGE_MESSAGE 8192

/* Defaults common to all collectives. */
#define COLLECTIVE_DEFAULTS .max_size = 1 << 20, .small = {100, 1000}, .large = {10, 100}

/* Defaults common to all point-to-point exchanges. */
#define EXCHANGE_DEFAULTS .max_size = 1 << 22

/* Ping-pong between all pairs (r, r + P / 2) concurrently: one message each way. Returns an MPI error code. */
int ping_pong(const struct buffers *buffers, int bytes, const struct world *world);

/* Returns the one-way latency (us) of a ping-pong that took `seconds`. */
double one_way_us(double seconds, int bytes);

#endif
