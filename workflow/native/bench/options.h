/* The command line: options of OMB 7 with their long names, and this project's -d, -p, -w, -s and -t. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "benchmark.h"

#define MAX_PERCENTILES 5
#define MAX_DECIMALS 9
#define MAX_TURNS 256
#define MAX_TURN_TEXT 1024
#define MAX_SPREADS 8

/* Successive calls take these in turn: each rank enters a call with its own delay of up to so many us. */
struct spreads {
    int count; /* 0: no delays */
    double us[MAX_SPREADS];
};

/* One cell of a launch that measures several: message sizes (bytes), spreads and the MPI library's variables as
 * "NAME=VALUE ...", where `prefer` names the preferred component. */
struct turn {
    const struct benchmark *benchmark;
    size_t min_size, max_size, size_factor;
    struct spreads spreads;
    const char *variables;
};

struct options {
    size_t min_size, max_size; /* message sizes, bytes */
    size_t size_factor;        /* ratio of consecutive sizes */
    size_t memory_limit;       /* largest buffer of a rank, bytes */
    struct repetitions small, large;
    bool full;     /* also print minimum and maximum over ranks, and iterations */
    bool validate; /* check received data */
    bool windows;  /* each call starts at an agreed instant of the synchronised clocks */
    bool place;    /* first print where each rank runs */
    struct spreads spreads;
    int percentiles[MAX_PERCENTILES];
    int percentile_count;
    int decimals; /* of printed times and bandwidths */
    const struct turn *turns;
    int turn_count; /* 0: the launch is one cell */
};

enum request { REQUEST_RUN, REQUEST_HELP, REQUEST_VERSION, REQUEST_WRONG };

/* Parses the command line. If `loud`, reports errors on stderr with the allowed values. */
enum request parse_options(int argc, char *argv[], bool loud, struct options *options);

void print_help(void);

/* Repetitions for messages of `size` bytes. */
struct repetitions repetitions_for(const struct options *options, size_t size);

#endif
