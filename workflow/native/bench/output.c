#include "output.h"

#include <stdio.h>

/* Widths of the columns. */
enum { SIZE_COLUMN = 10, LONE_COLUMN = 17, VALUE_COLUMN = 20, ITERATIONS_COLUMN = 12 };

static const char *value_column(void) {
    return benchmark.exchange ? benchmark.exchange->column : "Avg Latency(us)";
}

static void print_percentile_columns(const struct options *options) {
    const char *what = benchmark.exchange ? benchmark.exchange->percentile_column : "Tail Lat(us)";
    for (int i = 0; i < options->percentile_count; i++) {
        char column[64];
        snprintf(column, sizeof column, "P%d %s", options->percentiles[i], what);
        printf("%*s", VALUE_COLUMN, column);
    }
}

void print_header(const struct options *options) {
    printf("# collbench %s %s\n", COLLBENCH_VERSION, benchmark.title);
    if (benchmark.exchange && benchmark.exchange->each_pair)
        printf("# Datatype: MPI_CHAR.\n%-*s%*s%*s%*s", SIZE_COLUMN, "# From", SIZE_COLUMN, "To", SIZE_COLUMN, "Size",
               VALUE_COLUMN, value_column());
    else if (benchmark.sized)
        printf("# Datatype: MPI_CHAR.\n%-*s%*s", SIZE_COLUMN, "# Size", VALUE_COLUMN, value_column());
    else
        printf("# %s", value_column());
    if (options->full)
        printf("%*s%*s%*s", VALUE_COLUMN, "Min Latency(us)", VALUE_COLUMN, "Max Latency(us)", ITERATIONS_COLUMN,
               "Iterations");
    if (options->validate)
        printf("%*s", VALUE_COLUMN, "Validation");
    print_percentile_columns(options);
    printf("\n");
    fflush(stdout);
}

void print_result(const struct options *options, const struct result *result) {
    if (benchmark.sized)
        printf("%-*zu%*.*f", SIZE_COLUMN, result->size, VALUE_COLUMN, options->decimals, result->mean);
    else
        printf("%*.*f", LONE_COLUMN, options->decimals, result->mean);
    if (options->full)
        printf("%*.*f%*.*f%*d", VALUE_COLUMN, options->decimals, result->min, VALUE_COLUMN, options->decimals,
               result->max, ITERATIONS_COLUMN, result->iterations);
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
