#include "output.h"

#include <stdio.h>

/* Widths of the columns. */
enum { SIZE_COLUMN = 10, LONE_COLUMN = 17, VALUE_COLUMN = 20, ITERATIONS_COLUMN = 12 };

static bool nonblocking(void) {
    return benchmark->collective && benchmark->collective->start;
}

static const char *value_column(void) {
    if (nonblocking())
        return "Overall(us)";
    return benchmark->exchange ? benchmark->exchange->column : "Avg Latency(us)";
}

/* Columns as in OMB 7.4: "pure" is the time of a call that is followed by its wait at once. */
static void print_columns_nonblocking(const struct options *options) {
    static const char *const full[] = {"Compute(us)",    "Coll. Init(us)", "MPI_Test(us)",  "MPI_Wait(us)",
                                       "Pure Comm.(us)", "Min Comm.(us)",  "Max Comm.(us)", "Overlap(%)"};
    static const char *const brief[] = {"Compute(us)", "Pure Comm.(us)", "Overlap(%)"};
    const char *const *columns = options->full ? full : brief;
    size_t n = options->full ? sizeof full / sizeof *full : sizeof brief / sizeof *brief;
    for (size_t i = 0; i < n; i++)
        printf("%*s", VALUE_COLUMN, columns[i]);
}

/* Returns the share of the communication time that the computation hid, in percent. */
static double overlap(const struct result *result) {
    double hidden = 100 - (result->overall - result->compute) / result->mean * 100;
    return hidden > 0 ? hidden : 0;
}

static void print_nonblocking(const struct options *options, const struct result *result) {
    const double full[] = {result->compute, result->init, result->test, result->wait,
                           result->mean,    result->min,  result->max,  overlap(result)};
    const double brief[] = {result->compute, result->mean, overlap(result)};
    const double *values = options->full ? full : brief;
    size_t n = options->full ? sizeof full / sizeof *full : sizeof brief / sizeof *brief;
    for (size_t i = 0; i < n; i++)
        printf("%*.*f", VALUE_COLUMN, options->decimals, values[i]);
}

static void print_percentile_columns(const struct options *options) {
    const char *what = benchmark->exchange ? benchmark->exchange->percentile_column : "Tail Lat(us)";
    for (int i = 0; i < options->percentile_count; i++) {
        char column[64];
        snprintf(column, sizeof column, "P%d %s", options->percentiles[i], what);
        printf("%*s", VALUE_COLUMN, column);
    }
}

void print_header(const struct options *options) {
    printf("# collbench %s %s\n", COLLBENCH_VERSION, benchmark->title);
    if (benchmark->exchange && benchmark->exchange->each_pair)
        printf("# Datatype: MPI_CHAR.\n%-*s%*s%*s%*s", SIZE_COLUMN, "# From", SIZE_COLUMN, "To", SIZE_COLUMN, "Size",
               VALUE_COLUMN, value_column());
    else if (benchmark->sizeless)
        printf("# %s", value_column());
    else
        printf("# Datatype: MPI_CHAR.\n%-*s%*s", SIZE_COLUMN, "# Size", VALUE_COLUMN, value_column());
    if (nonblocking())
        print_columns_nonblocking(options);
    else if (options->full)
        printf("%*s%*s%*s", VALUE_COLUMN, "Min Latency(us)", VALUE_COLUMN, "Max Latency(us)", ITERATIONS_COLUMN,
               "Iterations");
    if (options->windows)
        printf("%*s", ITERATIONS_COLUMN, "Late");
    if (options->validate)
        printf("%*s", VALUE_COLUMN, "Validation");
    print_percentile_columns(options);
    printf("\n");
    fflush(stdout);
}

void print_result(const struct options *options, const struct result *result) {
    if (benchmark->sizeless)
        printf("%*.*f", LONE_COLUMN, options->decimals, result->mean);
    else
        printf("%-*zu%*.*f", SIZE_COLUMN, result->size, VALUE_COLUMN, options->decimals,
               nonblocking() ? result->overall : result->mean);
    if (nonblocking())
        print_nonblocking(options, result);
    else if (options->full)
        printf("%*.*f%*.*f%*d", VALUE_COLUMN, options->decimals, result->min, VALUE_COLUMN, options->decimals,
               result->max, ITERATIONS_COLUMN, result->iterations);
    if (options->windows)
        printf("%*d", ITERATIONS_COLUMN, result->late);
    if (options->validate)
        printf("%*s", VALUE_COLUMN, result->wrong_bytes > 0 ? "Fail" : "Pass");
    for (int i = 0; i < options->percentile_count; i++)
        printf("%*.*f", VALUE_COLUMN, options->decimals, result->percentiles[i]);
    printf("\n");
    fflush(stdout);
}

void print_pairs(const struct options *options, size_t size, const double *pairs, int ranks) {
    for (int from = 0; from < ranks; from++)
        for (int to = from + 1; to < ranks; to++)
            printf("%-*d%*d%*zu%*.*f\n", SIZE_COLUMN, from, SIZE_COLUMN, to, SIZE_COLUMN, size, VALUE_COLUMN,
                   options->decimals, pairs[(size_t)from * (size_t)ranks + (size_t)to]);
    fflush(stdout);
}
