#include "benchmark.h"

#include <string.h>

/* Bounds set by the linker. Hidden: simulated programs are shared libraries, each with its own section of this name. */
extern const struct benchmark *const __start_benchmarks[] __attribute__((visibility("hidden")));
extern const struct benchmark *const __stop_benchmarks[] __attribute__((visibility("hidden")));

const struct benchmark *benchmark;

const struct benchmark *find_benchmark(const char *name) {
    for (const struct benchmark *const *one = __start_benchmarks; one < __stop_benchmarks; one++)
        if (name == NULL || strcmp((*one)->name, name) == 0)
            return *one;
    return NULL;
}
