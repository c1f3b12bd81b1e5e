#include "svd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed and aligned to a cache line. */
void *allocate(size_t bytes) {
    size_t rounded = (bytes + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, rounded);
    if (!memory) {
        fprintf(stderr, "svd: out of memory (%zu bytes)\n", bytes);
        abort();
    }
    return memset(memory, 0, rounded);
}

Matrix new_matrix(int rows, int cols) {
    return (Matrix){rows, cols, allocate((size_t)rows * (size_t)cols * sizeof(double))};
}
