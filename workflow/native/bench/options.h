/* The command line: the options of OMB 7, with their long names, and -d. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "benchmark.h"

#define MAX_PERCENTILES 5
#define MAX_DECIMALS 9
#define MAX_TURNS 256
#define MAX_TURN_TEXT 1024

/* A cell of a launch that has several: message sizes (bytes), spread, "NAME=VALUE ..." of the MPI library's variables,
 * where `prefer` names the preferred component. */
struct turn {
    const struct benchmark *benchmark;
    size_t min_size, max_size, size_factor;
    double spread;
    const char *variables;
};

struct options {
    size_t min_size, max_size; /* message sizes, bytes */
    size_t size_factor;        /* from one size to the next */
    size_t memory_limit;       /* largest buffer of a rank, bytes */
    struct repetitions small, large;
    bool full;     /* also minimum and maximum over ranks, and iterations */
    bool validate; /* check received data */
    bool windows;  /* calls start at instants of synchronised clocks */
    double spread; /* us over which the ranks enter a call, each at its own time; 0: together */
    int percentiles[MAX_PERCENTILES];
    int percentile_count;
    int decimals; /* of printed times and bandwidths */
    const struct turn *turns;
    int turn_count; /* 0: the launch is one cell */
};

enum request { REQUEST_RUN, REQUEST_HELP, REQUEST_VERSION, REQUEST_WRONG };

/* Reads the command line. With `loud`, reports errors on stderr with what is allowed. */
enum request parse_options(int argc, char *argv[], bool loud, struct options *options);

void print_help(void);

/* Repetitions for messages of `size` bytes. */
struct repetitions repetitions_for(const struct options *options, size_t size);

#endif
