/* The root's work before and after the sweeps: scaling, sorting, and U, S, V from the rotated columns. */
#include "svd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Power of two that scales the largest entry to [1/2, 1): exact, and squares neither overflow nor underflow. */
int scale_exponent(Matrix a) {
    double largest = 0;
    for (size_t i = 0; i < (size_t)a.rows * (size_t)a.cols; i++)
        largest = fmax(largest, fabs(a.at[i]));
    int exponent = 0;
    frexp(largest, &exponent);
    return exponent;
}

typedef struct {
    double norm;
    int column;
} Ranked;

static int longer_first(const void *x, const void *y) {
    const Ranked *a = x, *b = y;
    if (a->norm != b->norm)
        return a->norm < b->norm ? 1 : -1;
    return a->column - b->column;
}

/* Scales by the largest entry, which is also correct for columns whose squares would underflow. */
double norm(const double *x, int length) {
    double largest = 0, sum = 0;
    for (int i = 0; i < length; i++)
        largest = fmax(largest, fabs(x[i]));
    if (largest == 0)
        return 0;
    for (int i = 0; i < length; i++)
        sum += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(sum);
}

/* Returns the columns in descending order of their norms, and stores the norms in `norms`. */
static int *sort_columns(const double *columns, size_t stride, int rows, int cols, int exponent, double *norms) {
    Ranked *ranked = allocate((size_t)cols * sizeof(Ranked));
    int *order = allocate((size_t)cols * sizeof(int));
    for (int j = 0; j < cols; j++)
        ranked[j] = (Ranked){ldexp(norm(columns + stride * (size_t)j, rows), exponent), j};
    qsort(ranked, (size_t)cols, sizeof *ranked, longer_first);
    for (int j = 0; j < cols; j++) {
        order[j] = ranked[j].column;
        norms[j] = ranked[j].norm;
    }
    free(ranked);
    return order;
}

int *order_by_norm(Matrix a, int exponent) {
    double *norms = allocate((size_t)a.cols * sizeof(double));
    int *order = sort_columns(a.at, (size_t)a.rows, a.rows, a.cols, -exponent, norms);
    free(norms);
    return order;
}

/* Makes x orthogonal to the columns of u (Gram-Schmidt, twice) and of length 1; false if too little of x is left. */
static bool orthogonalise(double *x, const double *u, int columns, int rows) {
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < columns; k++) {
            const double *column = u + (size_t)k * (size_t)rows;
            double sum = 0;
            for (int i = 0; i < rows; i++)
                sum += column[i] * x[i];
            for (int i = 0; i < rows; i++)
                x[i] -= sum * column[i];
        }
    double left = norm(x, rows);
    if (left * left * rows < 0.5)
        return false;
    for (int i = 0; i < rows; i++)
        x[i] /= left;
    return true;
}

/* Columns of U whose singular value is zero, or so small that the sweeps left it alone, are completed to an orthonormal
 * basis: from themselves if they can be, else from unit vectors (one with 1/rows or more of its square left exists). */
static void complete_u(Svd *svd) {
    const int rows = svd->u.rows;
    int unit = 0;
    for (int j = 0; j < svd->u.cols; j++) {
        if (svd->s.at[j] > 1e-99 * svd->s.at[0])
            continue;
        double *column = svd->u.at + (size_t)j * (size_t)rows;
        while (!orthogonalise(column, svd->u.at, j, rows)) {
            memset(column, 0, (size_t)rows * sizeof(double));
            column[unit] = 1;
            unit = (unit + 1) % rows;
        }
    }
}

/* The sweeps turned the sorted columns A P into U S W', so A = U S (P W)'. */
Svd assemble_svd(const Layout *layout, const double *columns, const int *order, int exponent) {
    const int rows = layout->rows, cols = layout->cols;
    Svd svd = {new_matrix(cols, 1), new_matrix(rows, cols), new_matrix(cols, cols)};
    int *sorted = sort_columns(columns, layout->record, rows, cols, 0, svd.s.at);
    for (int j = 0; j < cols; j++) {
        const double *column = columns + layout->record * (size_t)sorted[j];
        double *u = svd.u.at + (size_t)j * (size_t)rows, *v = svd.v.at + (size_t)j * (size_t)cols;
        for (int i = 0; i < rows; i++)
            u[i] = svd.s.at[j] > 0 ? column[i] / svd.s.at[j] : 0;
        for (int i = 0; i < cols; i++)
            v[order[i]] = column[layout->v + (size_t)i];
    }
    free(sorted);
    complete_u(&svd);
    for (int j = 0; j < cols; j++)
        svd.s.at[j] = ldexp(svd.s.at[j], exponent);
    return svd;
}

void free_svd(Svd *svd) {
    free(svd->s.at);
    free(svd->u.at);
    free(svd->v.at);
}

/* |A - U S V'| / |A| in the Frobenius norm; absolute when A = 0. */
double residual(Matrix a, const Svd *svd) {
    const int rows = a.rows;
    const double scale = svd->s.at[0] > 0 ? svd->s.at[0] : 1;
    double *left = allocate((size_t)rows * sizeof(double)), error = 0, size = 0;
    for (int j = 0; j < a.cols; j++) {
        for (int i = 0; i < rows; i++) {
            left[i] = a.at[(size_t)j * (size_t)rows + (size_t)i] / scale;
            size += left[i] * left[i];
        }
        for (int k = 0; k < svd->s.rows; k++) {
            const double *u = svd->u.at + (size_t)k * (size_t)rows;
            double factor = svd->s.at[k] / scale * svd->v.at[(size_t)k * (size_t)svd->v.rows + (size_t)j];
            for (int i = 0; i < rows; i++)
                left[i] -= factor * u[i];
        }
        for (int i = 0; i < rows; i++)
            error += left[i] * left[i];
    }
    free(left);
    return size > 0 ? sqrt(error / size) : sqrt(error);
}
