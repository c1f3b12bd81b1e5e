/* Preconditioning by QR with column pivoting (Businger and Golub 1965): A P = Q R, then Jacobi on R', which is closer
 * to diagonal than A (Drmac and Veselic 2008). R' W = Y S gives A = (Q W) S (P Y)'. Serial, on the root.
 */
#include "svd.h"

#include <math.h>
#include <stdlib.h>

static double *column_of(Matrix a, int j) {
    return a.at + (size_t)j * (size_t)a.rows;
}

static double dot_from(const double *x, const double *y, int from, int to) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = from; i < to; i++)
        sum += x[i] * y[i];
    return sum;
}

/* x <- (I - w w') x for the reflector w that is zero above k and has w'w = 2 (or is zero). */
static void reflect(const double *restrict w, double *restrict x, int k, int rows) {
    double factor = dot_from(w, x, k, rows);
    for (int i = k; i < rows; i++)
        x[i] -= factor * w[i];
}

static void exchange(double *x, double *y) {
    double old = *x;
    *x = *y;
    *y = old;
}

/* The longest remaining column becomes column k; the finished part of R moves with it. */
static void pivot(Qr *qr, double *normsq, int k) {
    int best = k;
    for (int j = k; j < qr->reflectors.cols; j++)
        if (normsq[j] > normsq[best])
            best = j;
    if (best == k)
        return;
    for (int i = 0; i < qr->reflectors.rows; i++)
        exchange(column_of(qr->reflectors, k) + i, column_of(qr->reflectors, best) + i);
    for (int j = 0; j < k; j++)
        exchange(column_of(qr->lower, j) + k, column_of(qr->lower, j) + best);
    exchange(&normsq[k], &normsq[best]);
    int old = qr->order[k];
    qr->order[k] = qr->order[best];
    qr->order[best] = old;
}

/* Turns column k into its reflector; stores row k of R as column k of the lower triangle. */
static void eliminate(Qr *qr, double *normsq, int k) {
    const Matrix a = qr->reflectors;
    double *w = column_of(a, k), *row = column_of(qr->lower, k);
    double length = norm(w + k, a.rows - k);
    row[k] = w[k] > 0 ? -length : length;
    w[k] -= row[k];
    double scale = norm(w + k, a.rows - k) / sqrt(2);
    for (int i = k; i < a.rows && scale > 0; i++)
        w[i] /= scale;
    for (int j = k + 1; j < a.cols; j++) {
        double *x = column_of(a, j);
        reflect(w, x, k, a.rows);
        row[j] = x[k];
        x[k] = 0;
        normsq[j] = dot_from(x, x, k + 1, a.rows);
    }
}

/* Factorises a (rows >= cols), scaled by 2^-exponent; lower is R' in the scale of a. */
Qr factorise(Matrix a, int exponent) {
    Qr qr = {new_matrix(a.rows, a.cols), new_matrix(a.cols, a.cols), allocate((size_t)a.cols * sizeof(int))};
    double *normsq = allocate((size_t)a.cols * sizeof(double));
    for (size_t i = 0; i < (size_t)a.rows * (size_t)a.cols; i++)
        qr.reflectors.at[i] = ldexp(a.at[i], -exponent);
    for (int j = 0; j < a.cols; j++) {
        qr.order[j] = j;
        normsq[j] = dot_from(column_of(qr.reflectors, j), column_of(qr.reflectors, j), 0, a.rows);
    }
    for (int k = 0; k < a.cols; k++) {
        pivot(&qr, normsq, k);
        eliminate(&qr, normsq, k);
    }
    for (size_t i = 0; i < (size_t)a.cols * (size_t)a.cols; i++)
        qr.lower.at[i] = ldexp(qr.lower.at[i], exponent);
    free(normsq);
    return qr;
}

/* Returns the decomposition of a, from that of lower. */
Svd undo_qr(const Qr *qr, const Svd *lower) {
    const int rows = qr->reflectors.rows, cols = qr->reflectors.cols;
    Svd svd = {new_matrix(cols, 1), new_matrix(rows, cols), new_matrix(cols, cols)};
    for (int j = 0; j < cols; j++) {
        double *u = column_of(svd.u, j), *v = column_of(svd.v, j);
        svd.s.at[j] = lower->s.at[j];
        for (int i = 0; i < cols; i++) {
            u[i] = column_of(lower->v, j)[i];
            v[qr->order[i]] = column_of(lower->u, j)[i];
        }
        for (int k = cols - 1; k >= 0; k--)
            reflect(column_of(qr->reflectors, k), u, k, rows);
    }
    return svd;
}
