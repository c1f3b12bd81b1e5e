/* What one benchmark is. Each bench_*.c lists its own; the other files know no benchmark by name. */
#ifndef BENCHMARK_H
#define BENCHMARK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The root of rooted collectives. */
#define ROOT 0

/* Message buffers of a rank. The same for every message size: allocated for the largest. */
struct buffers {
    char *send;
    char *recv; /* the same as send for in-place benchmarks */
};

/* The processes that take part. */
struct world {
    MPI_Comm comm;
    int rank;
    int ranks;
    int *counts, *displacements; /* bytes, of the message size that is measured; NULL where no counts are needed */
};

/* Default number of calls for a message size. */
struct repetitions {
    int warmup;     /* not timed, before the timed ones */
    int iterations; /* timed */
};

/* Where barriers are. OMB 7.4 differs from benchmark to benchmark, and in a simulator every one of them counts. */
enum sync {
    SYNC_BEFORE_SIZE = 1,  /* before the first call of a message size */
    SYNC_BEFORE_CALL = 2,  /* before each call */
    SYNC_AFTER_CALL = 4,   /* after each call */
    SYNC_AFTER_CALLS = 8,  /* after the last call of a message size */
    SYNC_AFTER_RESULT = 16 /* after the result of a message size */
};

/* Counts and displacements of collectives that take them: one entry for each rank, made anew for each message size. */
enum counts {
    COUNTS_NONE,
    COUNTS_EQUAL /* each rank a message */,
    COUNTS_SHARED /* the message, divided among ranks */
};

/* A collective: the call, and where its data come from and go to. A block is one message of the size measured. */
struct collective {
    int (*call)(const struct buffers *buffers, int bytes, const struct world *world); /* returns an MPI error code */
    /* Of a non-blocking collective, in place of call: starts it. */
    int (*start)(const struct buffers *buffers, int bytes, const struct world *world, MPI_Request *request);
    unsigned sync;      /* of enum sync */
    enum counts counts; /* meaning of the counts of each rank, for collectives that take them */
    bool in_place;      /* one buffer to send from and to receive into */
    bool root_sends;    /* only the root has data to send */
    bool root_receives; /* only the root gets data */
    bool personal;      /* sends a block to each rank (else the same block to all) */
    bool collects;      /* receives a block from each rank */
    bool sums;          /* receives the sum of all blocks */
    bool parts;         /* receives its part of the sum only: the counts say which */
};

/* A point-to-point exchange between ranks 0 and 1, in all pairs (r, r + P / 2) at once, or of each two ranks in turn.
 */
struct exchange {
    int (*call)(const struct buffers *buffers, int bytes, const struct world *world); /* returns an MPI error code */
    bool one_way;                                                                     /* only rank 1 receives */
    double (*value)(double seconds, int bytes); /* of one exchange: the number that is printed */
    bool all_pairs;                             /* the number is the mean over the pairs */
    bool each_pair;                             /* a number for each two ranks; call is not used */
    const char *column;                         /* what it is, with its unit */
    const char *percentile_column;              /* the same for a percentile */
};

/* Exactly one of `collective` and `exchange` is set. */
struct benchmark {
    const char *name;                /* the program is collbench_<name> */
    const char *title;               /* first line of the output */
    bool sizeless;                   /* no message, one line of output */
    size_t max_size;                 /* default of the largest message, bytes */
    struct repetitions small, large; /* defaults up to LARGE_MESSAGE bytes, and above */
    const struct collective *collective;
    const struct exchange *exchange;
};

/* The benchmark that runs: the only one of its program, or in collbench_all that of the turn. */
extern const struct benchmark *benchmark;

/* Makes a benchmark one of its program's: the linker gathers what is in this section. */
#define LIST(OWN) static const struct benchmark *const listed __attribute__((used, section("benchmarks"))) = &(OWN)

/* The program's benchmark of this name, any where it is NULL; NULL where there is none. */
const struct benchmark *find_benchmark(const char *name);

/* Messages of more bytes are repeated less often. */
#define LARGE_MESSAGE 8192

/* Defaults common to all collectives. */
#define COLLECTIVE_DEFAULTS .max_size = 1 << 20, .small = {100, 1000}, .large = {10, 100}

/* Defaults common to all point-to-point exchanges. */
#define EXCHANGE_DEFAULTS .max_size = 1 << 22

/* An exchange of all pairs (r, r + P / 2) at once: a message there and one back. Returns an MPI error code. */
int ping_pong(const struct buffers *buffers, int bytes, const struct world *world);

/* Microseconds one way of a ping-pong that took so many seconds. */
double one_way_us(double seconds, int bytes);

#endif
