#include "output.h"

#include <stdio.h>

/* Widths of the columns. */
enum { SIZE_WIDTH = 10, LONE_WIDTH = 17, VALUE_WIDTH = 20, COUNT_WIDTH = 12 };

static const char *value_column(void) {
    return benchmark.exchange ? benchmark.exchange->column : "Avg Latency(us)";
}

static void print_percentile_columns(const struct options *options) {
    const char *what = benchmark.exchange ? benchmark.exchange->percentile_column : "Tail Lat(us)";
    for (int i = 0; i < options->percentile_count; i++) {
        char column[64];
        snprintf(column, sizeof column, "P%d %s", options->percentiles[i], what);
        printf("%*s", VALUE_WIDTH, column);
    }
}

void print_header(const struct options *options) {
    printf("# collbench %s %s\n", COLLBENCH_VERSION, benchmark.title);
    if (benchmark.sized)
        printf("# Datatype: MPI_CHAR.\n%-*s%*s", SIZE_WIDTH, "# Size", VALUE_WIDTH, value_column());
    else
        printf("# %s", value_column());
    if (options->full)
        printf("%*s%*s%*s", VALUE_WIDTH, "Min Latency(us)", VALUE_WIDTH, "Max Latency(us)", COUNT_WIDTH, "Iterations");
    if (options->validate)
        printf("%*s", VALUE_WIDTH, "Validation");
    print_percentile_columns(options);
    printf("\n");
    fflush(stdout);
}

void print_result(const struct options *options, const struct result *result) {
    if (benchmark.sized)
        printf("%-*zu%*.*f", SIZE_WIDTH, result->size, VALUE_WIDTH, options->decimals, result->mean);
    else
        printf("%*.*f", LONE_WIDTH, options->decimals, result->mean);
    if (options->full)
        printf("%*.*f%*.*f%*d", VALUE_WIDTH, options->decimals, result->min, VALUE_WIDTH, options->decimals,
               result->max, COUNT_WIDTH, result->iterations);
    if (options->validate)
        printf("%*s", VALUE_WIDTH, result->wrong_bytes > 0 ? "Fail" : "Pass");
    for (int i = 0; i < options->percentile_count; i++)
        printf("%*.*f", VALUE_WIDTH, options->decimals, result->percentiles[i]);
    printf("\n");
    fflush(stdout);
}
