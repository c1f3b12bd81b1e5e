/* Reads A.csv (rows columns given) and times LAPACK's dgesvj on it: A to U S V', like svd does. Prints the best of
 * runs. usage: svd_vs_dgesvj A.csv M N RUNS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern void dgesvj_(const char *joba, const char *jobu, const char *jobv, const int *m, const int *n, double *a,
                    const int *lda, double *sva, const int *mv, double *v, const int *ldv, double *work,
                    const int *lwork, int *info);

static double now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    FILE *file = argc == 5 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: svd_vs_dgesvj A.csv M N RUNS\n");
        return 1;
    }
    const int m = atoi(argv[2]), n = atoi(argv[3]), runs = atoi(argv[4]), lwork = m + n > 6 ? m + n : 6;
    double *input = malloc(sizeof(double) * (size_t)m * (size_t)n), *a = malloc(sizeof(double) * (size_t)m * (size_t)n);
    double *v = malloc(sizeof(double) * (size_t)n * (size_t)n), *s = malloc(sizeof(double) * (size_t)n);
    double *work = malloc(sizeof(double) * (size_t)lwork);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            if (fscanf(file, "%lf%*[,\n]", &input[(size_t)j * (size_t)m + (size_t)i]) != 1)
                return 1;
    fclose(file);
    double best = INFINITY, sweeps = 0;
    for (int run = 0; run < runs; run++) {
        memcpy(a, input, sizeof(double) * (size_t)m * (size_t)n);
        int info;
        double start = now();
        dgesvj_("G", "U", "V", &m, &n, a, &m, s, &n, v, &n, work, &lwork, &info);
        best = fmin(best, now() - start);
        sweeps = work[3];
        if (info != 0)
            return 1;
    }
    printf("m=%d n=%d sweeps=%.0f seconds=%.6f largest=%.17g\n", m, n, sweeps, best, s[0] * work[0]);
    return 0;
}
