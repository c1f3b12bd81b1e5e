/* Jacobi rotations of column pairs, which take most of the time.
 *
 * For columns x, y with x'y = g the rotation that makes them orthogonal is (Hestenes 1958; Golub and Van Loan, 8.4)
 *     zeta = (y'y - x'x) / (2 g),  t = sign(zeta) / (|zeta| + sqrt(1 + zeta^2)),  c = 1 / sqrt(1 + t^2),  s = c t,
 *     x <- c x - s y,  y <- s x + c y.
 * A pair is not rotated if |g| <= tol |x| |y|, relative to the two columns: this keeps small singular values accurate
 * (Demmel and Veselic 1992). The longer column goes first, so that the columns become sorted (de Rijk 1989).
 * Squared norms are stored with the columns and recomputed while rotating, so they never drift.
 */
#include "svd.h"

#include <float.h>
#include <math.h>

enum { LANES = 8, TILE = 16 };

/* Columns whose squared norm is below this (the matrix is scaled to entries below 1) count as zero. */
static const double NEGLIGIBLE = 1e-200;

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

static size_t lane_count(int doubles) {
    return ((size_t)doubles + LANES - 1) / LANES;
}

static double sum_lanes(const lanes *sum) {
    double total = 0;
    for (int k = 0; k < LANES; k++)
        total += (*sum)[k];
    return total;
}

/* Four sums, so that additions do not wait for the latency of the one before. */
static double dot(const double *restrict x, const double *restrict y, size_t count) {
    const lanes *p = (const lanes *)x, *q = (const lanes *)y;
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        s0 += p[i] * q[i];
        s1 += p[i + 1] * q[i + 1];
        s2 += p[i + 2] * q[i + 2];
        s3 += p[i + 3] * q[i + 3];
    }
    for (; i < count; i++)
        s0 += p[i] * q[i];
    s0 += s1 + (s2 + s3);
    return sum_lanes(&s0);
}

double column_normsq(const double *a, int rows) {
    return dot(a, a, lane_count(rows));
}

static void rotate(double *restrict x, double *restrict y, size_t count, double c, double s) {
    lanes *p = (lanes *)x, *q = (lanes *)y;
    for (size_t i = 0; i < count; i++) {
        lanes u = p[i], w = q[i];
        p[i] = c * u - s * w;
        q[i] = s * u + c * w;
    }
}

/* Like rotate(); also computes the squared norms of the results. */
static void rotate_and_sum(double *restrict x, double *restrict y, size_t count, double c, double s, double normsq[2]) {
    lanes *p = (lanes *)x, *q = (lanes *)y;
    lanes sum_x = {0}, sum_y = {0};
    for (size_t i = 0; i < count; i++) {
        lanes u = p[i], w = q[i];
        lanes new_u = c * u - s * w, new_w = s * u + c * w;
        p[i] = new_u;
        q[i] = new_w;
        sum_x += new_u * new_u;
        sum_y += new_w * new_w;
    }
    normsq[0] = sum_lanes(&sum_x);
    normsq[1] = sum_lanes(&sum_y);
}

/* The rounding error of dot products grows like sqrt(rows) epsilon. */
double tolerance(const Layout *layout) {
    return DBL_EPSILON * fmax(10, sqrt(layout->rows));
}

static void rotate_pair(const Layout *layout, double tol, double *x, double *y, Work *work) {
    double xx = x[layout->normsq], yy = y[layout->normsq];
    if (xx < NEGLIGIBLE || yy < NEGLIGIBLE)
        return;
    size_t a_count = lane_count(layout->rows), v_count = lane_count(layout->cols);
    double g = dot(x, y, a_count);
    double off = fabs(g) / (sqrt(xx) * sqrt(yy));
    work->off = fmax(work->off, off);
    if (off <= tol)
        return;

    double zeta = (yy - xx) / (2 * g);
    double t = copysign(1 / (fabs(zeta) + sqrt(1 + zeta * zeta)), zeta);
    double c = 1 / sqrt(1 + t * t), s = c * t;
    if (xx - t * g < yy + t * g) { /* y would be the longer: exchange the two (and one sign) */
        double old_c = c;
        c = s;
        s = -old_c;
    }
    double normsq[2];
    rotate_and_sum(x, y, a_count, c, s, normsq);
    rotate(x + layout->v, y + layout->v, v_count, c, s);
    x[layout->normsq] = normsq[0];
    y[layout->normsq] = normsq[1];
    work->rotations++;
}

/* Per pair one dot product; per rotation 6 flops for each entry of A and V, and 4 more for each entry of A (norms). */
double pair_flops(const Layout *layout, double pairs, double rotations) {
    return 2.0 * layout->rows * pairs + (10.0 * layout->rows + 6.0 * layout->cols) * rotations;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* Tile by tile, so that the columns of two tiles stay in the cache. */
void rotate_within(const Layout *layout, Block block, Work *work) {
    const double tol = tolerance(layout);
    double *columns = block.columns, before = work->rotations;
    for (int ti = 0; ti < block.count; ti += TILE)
        for (int tj = ti; tj < block.count; tj += TILE)
            for (int i = ti; i < smaller(ti + TILE, block.count); i++)
                for (int j = (tj == ti ? i + 1 : tj); j < smaller(tj + TILE, block.count); j++)
                    rotate_pair(layout, tol, columns + (size_t)i * layout->record, columns + (size_t)j * layout->record,
                                work);
    work->flops += pair_flops(layout, 0.5 * block.count * (block.count - 1), work->rotations - before);
}

void rotate_across(const Layout *layout, Block x, Block y, Work *work) {
    const double tol = tolerance(layout);
    double before = work->rotations;
    Block first = x.id < y.id ? x : y, second = x.id < y.id ? y : x;
    for (int ti = 0; ti < first.count; ti += TILE)
        for (int tj = 0; tj < second.count; tj += TILE)
            for (int i = ti; i < smaller(ti + TILE, first.count); i++)
                for (int j = tj; j < smaller(tj + TILE, second.count); j++)
                    rotate_pair(layout, tol, first.columns + (size_t)i * layout->record,
                                second.columns + (size_t)j * layout->record, work);
    work->flops += pair_flops(layout, (double)first.count * second.count, work->rotations - before);
}
