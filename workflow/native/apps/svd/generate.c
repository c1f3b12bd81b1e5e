/* Test matrices. random: uniform in (-1, 1). ill, rank: H1 D H2 with random Householder reflectors H = I - 2 w w', so
 * the singular values are known: 1 to 1e-12 in even ratios (ill), half of them 0 (rank). diagonal: D itself, unsorted.
 */
#include "svd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const KINDS[] = {"random", "ill", "rank", "diagonal"};

bool known_kind(const char *kind) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(kind, KINDS[i]) == 0)
            return true;
    return false;
}

/* splitmix64 (Steele, Lea, Flood 2014), the upper 53 bits as a number in (-1, 1). */
static double uniform(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-52 - 1;
}

static double *random_unit_vector(int length, uint64_t *state) {
    double *w = allocate((size_t)length * sizeof(double)), normsq = 0;
    for (int i = 0; i < length; i++) {
        w[i] = uniform(state);
        normsq += w[i] * w[i];
    }
    for (int i = 0; i < length; i++)
        w[i] /= sqrt(normsq);
    return w;
}

static void reflect_rows(Matrix a, const double *w) {
    for (int j = 0; j < a.cols; j++) {
        double *column = a.at + (size_t)j * (size_t)a.rows, sum = 0;
        for (int i = 0; i < a.rows; i++)
            sum += w[i] * column[i];
        for (int i = 0; i < a.rows; i++)
            column[i] -= 2 * sum * w[i];
    }
}

static void reflect_columns(Matrix a, const double *w) {
    double *sum = allocate((size_t)a.rows * sizeof(double));
    for (int j = 0; j < a.cols; j++)
        for (int i = 0; i < a.rows; i++)
            sum[i] += a.at[(size_t)j * (size_t)a.rows + (size_t)i] * w[j];
    for (int j = 0; j < a.cols; j++)
        for (int i = 0; i < a.rows; i++)
            a.at[(size_t)j * (size_t)a.rows + (size_t)i] -= 2 * sum[i] * w[j];
    free(sum);
}

static double diagonal_entry(const char *kind, int k, int count, uint64_t *state) {
    if (strcmp(kind, "ill") == 0)
        return count > 1 ? pow(10, -12.0 * k / (count - 1)) : 1;
    if (strcmp(kind, "rank") == 0 && k >= (count + 1) / 2)
        return 0;
    return uniform(state);
}

Matrix generate_matrix(const Options *options) {
    Matrix a = new_matrix(options->rows, options->cols);
    uint64_t state = options->seed;
    if (strcmp(options->kind, "random") == 0) {
        for (size_t i = 0; i < (size_t)a.rows * (size_t)a.cols; i++)
            a.at[i] = uniform(&state);
        return a;
    }
    int count = a.rows < a.cols ? a.rows : a.cols;
    for (int k = 0; k < count; k++)
        a.at[(size_t)k * (size_t)a.rows + (size_t)k] = diagonal_entry(options->kind, k, count, &state);
    if (strcmp(options->kind, "diagonal") == 0)
        return a;
    double *w = random_unit_vector(a.rows, &state);
    reflect_rows(a, w);
    free(w);
    w = random_unit_vector(a.cols, &state);
    reflect_columns(a, w);
    free(w);
    return a;
}
