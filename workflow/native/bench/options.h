/* The command line: the options of OMB 7, with their long names, and -d. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "benchmark.h"

#define MAX_PERCENTILES 5
#define MAX_DECIMALS 9

struct options {
    size_t min_size, max_size; /* message sizes, bytes */
    size_t size_factor;        /* from one size to the next */
    size_t memory_limit;       /* largest buffer of a rank, bytes */
    struct repetitions small, large;
    bool full;     /* also minimum and maximum over ranks, and iterations */
    bool validate; /* check received data */
    bool windows;  /* calls start at instants of synchronised clocks */
    int percentiles[MAX_PERCENTILES];
    int percentile_count;
    int decimals; /* of printed times and bandwidths */
};

enum request { REQUEST_RUN, REQUEST_HELP, REQUEST_VERSION, REQUEST_WRONG };

/* Reads the command line. With `loud`, says on stderr what is wrong and what is allowed. */
enum request parse_options(int argc, char *argv[], bool loud, struct options *options);

void print_help(void);

/* Repetitions for messages of `size` bytes. */
struct repetitions repetitions_for(const struct options *options, size_t size);

#endif
