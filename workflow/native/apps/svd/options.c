#include "svd.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: svd (--matrix FILE [--dims M N] | --random M N [--seed S] [--kind random|ill|rank|diagonal]) [options]\n"
    "  --matrix FILE    .csv, .mtx (MatrixMarket) or .bin (see README.md)\n"
    "  --dims M N       reject a file with other dimensions\n"
    "  --output DIR     write S.csv, U.csv, V.csv, and A.csv if generated, to this existing folder\n"
    "  --sweeps K       stop after K sweeps (default 60); with --model-only: do K sweeps (default 10)\n"
    "  --qr             precondition by a pivoted QR on rank 0: fewer sweeps for ill-conditioned, less work for tall "
    "matrices\n"
    "simulator only (built with smpicc, run with --cfg=smpi/simulate-computation:no):\n"
    "  --flops-rate GF  charge computation at a rate of GF GFlop/s\n"
    "  --model-only     communicate the same bytes, skip the arithmetic; needs --flops-rate\n"
    "  --rotated X      model-only: share of all pairs in all sweeps that are rotated (default 0.75)\n";

typedef struct {
    int argc, next;
    char **argv;
    bool speak, failed;
} Arguments;

static void complain(Arguments *arguments, const char *format, ...) {
    if (arguments->speak && !arguments->failed) {
        va_list values;
        va_start(values, format);
        fputs("svd: ", stderr);
        vfprintf(stderr, format, values);
        fputc('\n', stderr);
        va_end(values);
    }
    arguments->failed = true;
}

static const char *take_text(Arguments *arguments, const char *option) {
    if (arguments->next < arguments->argc)
        return arguments->argv[arguments->next++];
    complain(arguments, "%s needs a value; see svd --help", option);
    return "";
}

static int take_count(Arguments *arguments, const char *option) {
    const char *text = take_text(arguments, option);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > INT_MAX)
        complain(arguments, "%s: '%s' is not a whole number of at least 1", option, text);
    return (int)value;
}

static double take_number(Arguments *arguments, const char *option) {
    const char *text = take_text(arguments, option);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || isinf(value))
        complain(arguments, "%s: '%s' is not a positive number", option, text);
    return value;
}

static uint64_t take_seed(Arguments *arguments, const char *option) {
    const char *text = take_text(arguments, option);
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-')
        complain(arguments, "%s: '%s' is not a whole number of at least 0", option, text);
    return value;
}

static void take_option(Arguments *arguments, const char *name, Options *options) {
    if (strcmp(name, "--matrix") == 0)
        options->matrix = take_text(arguments, name);
    else if (strcmp(name, "--random") == 0 || strcmp(name, "--dims") == 0) {
        options->rows = take_count(arguments, name);
        options->cols = take_count(arguments, name);
        if (name[2] == 'r' && !options->kind)
            options->kind = "random";
    } else if (strcmp(name, "--kind") == 0)
        options->kind = take_text(arguments, name);
    else if (strcmp(name, "--seed") == 0)
        options->seed = take_seed(arguments, name);
    else if (strcmp(name, "--output") == 0)
        options->output = take_text(arguments, name);
    else if (strcmp(name, "--sweeps") == 0)
        options->max_sweeps = take_count(arguments, name);
    else if (strcmp(name, "--flops-rate") == 0)
        options->flops_rate = take_number(arguments, name);
    else if (strcmp(name, "--rotated") == 0)
        options->rotated = take_number(arguments, name);
    else if (strcmp(name, "--qr") == 0)
        options->qr = true;
    else if (strcmp(name, "--model-only") == 0)
        options->model_only = true;
    else
        complain(arguments, "unknown option '%s'; see svd --help", name);
}

static void check_together(Arguments *arguments, const Options *options) {
    if (!options->matrix == !options->kind)
        complain(arguments, "give either --matrix FILE or --random M N; see svd --help");
    else if (options->kind && !known_kind(options->kind))
        complain(arguments, "--kind: '%s' is not one of random, ill, rank, diagonal", options->kind);
    else if (options->kind && options->rows == 0)
        complain(arguments, "--kind needs --random M N");
    else if (options->model_only && !(options->flops_rate > 0))
        complain(arguments, "--model-only needs --flops-rate GF");
    else if (options->model_only && (options->output || options->matrix))
        complain(arguments, "--model-only computes nothing: it takes --random M N and no --output");
    else if (options->qr && options->flops_rate > 0)
        complain(arguments, "--qr cannot be combined with --flops-rate: the compute time of the QR is not modelled");
    else if (options->rotated > 1)
        complain(arguments, "--rotated must be at most 1");
}

bool parse_options(int argc, char **argv, bool speak, Options *options) {
    Arguments arguments = {.argc = argc, .next = 1, .argv = argv, .speak = speak};
    *options = (Options){.seed = 1, .rotated = 0.75};
    while (arguments.next < argc && !arguments.failed) {
        const char *name = argv[arguments.next++];
        if (strcmp(name, "--help") == 0) {
            if (speak)
                fputs(USAGE, stdout);
            return false;
        }
        take_option(&arguments, name, options);
    }
    if (options->max_sweeps == 0)
        options->max_sweeps = options->model_only ? 10 : 60;
    if (!arguments.failed)
        check_together(&arguments, options);
    return !arguments.failed;
}
