#include "benchmark.h"

#include <string.h>

/* By the linker. Hidden: simulated programs are libraries, each with its own. */
extern const struct benchmark *const __start_benchmarks[] __attribute__((visibility("hidden")));
extern const struct benchmark *const __stop_benchmarks[] __attribute__((visibility("hidden")));

const struct benchmark *benchmark;

const struct benchmark *find_benchmark(const char *name) {
    for (const struct benchmark *const *one = __start_benchmarks; one < __stop_benchmarks; one++)
        if (name == NULL || strcmp((*one)->name, name) == 0)
            return *one;
    return NULL;
}
