/* svd: options, the matrix, the sweeps, the result and one line about the run. */
#include "comm.h"
#include "solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Matrix transpose(Matrix a) {
    Matrix t = new_matrix(a.cols, a.rows);
    for (int j = 0; j < a.cols; j++)
        for (int i = 0; i < a.rows; i++)
            t.at[(size_t)i * (size_t)a.cols + (size_t)j] = a.at[(size_t)j * (size_t)a.rows + (size_t)i];
    return t;
}

/* Loads the root's matrix, transposed to rows >= cols; all ranks get its size. False: failed, and the root reported
 * why. */
static bool load_matrix(Comm *comm, const Options *options, Matrix *a, bool *transposed) {
    enum { OK, ROWS, COLS, COUNT };
    int header[COUNT] = {1, options->rows, options->cols};
    if (comm->rank == 0 && !options->model_only) {
        if (options->matrix)
            header[OK] = read_matrix(options, a);
        else
            *a = generate_matrix(options);
        if (header[OK]) {
            header[ROWS] = a->rows;
            header[COLS] = a->cols;
        }
    }
    comm_from_root(comm, header, COUNT);
    *transposed = header[ROWS] < header[COLS];
    if (*transposed && a->at) {
        Matrix wide = *a;
        *a = transpose(wide);
        free(wide.at);
    } else {
        a->rows = header[*transposed ? COLS : ROWS];
        a->cols = header[*transposed ? ROWS : COLS];
    }
    return header[OK];
}

static double *make_records(const Layout *layout, Matrix a, int exponent, const int *order) {
    double *columns = allocate(layout->record * (size_t)layout->cols * sizeof(double));
    for (int j = 0; order && j < a.cols; j++) {
        const double *from = a.at + (size_t)a.rows * (size_t)order[j];
        double *to = columns + layout->record * (size_t)j;
        for (int i = 0; i < a.rows; i++)
            to[i] = ldexp(from[i], -exponent);
    }
    return columns;
}

static void print_line(const Comm *comm, const Options *options, Matrix a, bool transposed, const Work *work,
                       const Totals *totals, double residue) {
    printf("P=%d m=%d n=%d kind=%s qr=%d sweeps=%d converged=%s", comm->size, transposed ? a.cols : a.rows,
           transposed ? a.rows : a.cols, options->kind ? options->kind : "file", options->qr, work->sweeps,
           options->model_only ? "NA"
           : work->converged   ? "1"
                               : "0");
    printf(" seconds=%.9g comm_mean_seconds=%.9g comm_max_seconds=%.9g", totals->seconds, totals->comm_mean,
           totals->comm_max);
    printf(" compute_mean_seconds=%.9g compute_max_seconds=%.9g", totals->compute_mean, totals->compute_max);
    double pairs = 0.5 * a.cols * (a.cols - 1.0) * work->sweeps;
    printf(" flops=%.0f rotated=%.4f", totals->flops, pairs > 0 ? totals->rotations / pairs : 0);
    if (options->model_only)
        printf(" off=NA residual=NA");
    else
        printf(" off=%.3g residual=%.3g", work->off, residue);
    printf(" simulated=%d modelled_compute=%d\n", comm->simulated, options->flops_rate > 0);
}

static bool write_results(const Options *options, Matrix a, const Svd *svd, bool transposed) {
    if (options->kind) {
        Matrix original = transposed ? transpose(a) : a;
        bool ok = write_csv(options->output, "A.csv", original);
        if (transposed)
            free(original.at);
        if (!ok)
            return false;
    }
    return write_csv(options->output, "S.csv", svd->s) &&
           write_csv(options->output, "U.csv", transposed ? svd->v : svd->u) &&
           write_csv(options->output, "V.csv", transposed ? svd->u : svd->v);
}

static int report(const Comm *comm, const Options *options, Matrix a, bool transposed, const Work *work,
                  const Totals *totals, const Svd *svd) {
    double residue = options->model_only ? 0 : residual(a, svd);
    print_line(comm, options, a, transposed, work, totals, residue);
    if (options->model_only)
        return EXIT_OK;
    if (!work->converged) {
        fprintf(
            stderr,
            "svd: not converged after %d sweeps: columns are orthogonal to %.3g only, residual %.3g; raise --sweeps "
            "(nothing is written)\n",
            work->sweeps, work->off, residue);
        return EXIT_NOT_CONVERGED;
    }
    if (options->output && !write_results(options, a, svd, transposed))
        return EXIT_BAD_INPUT;
    return EXIT_OK;
}

/* The timed part: from the root's matrix to the root's U, S, V. a has values on the root only. */
static Work decompose(Comm *comm, const Options *options, Matrix a, Svd *svd) {
    bool root = comm->rank == 0, has_values = root && !options->model_only;
    Qr qr = {0};
    if (options->qr && has_values)
        qr = factorise(a, scale_exponent(a));
    Matrix work_on = qr.lower.at ? qr.lower : a;
    Layout layout = make_layout(options->qr ? a.cols : a.rows, a.cols, comm->size);
    comm_use_layout(comm, &layout);
    int exponent = has_values ? scale_exponent(work_on) : 0;
    int *order = has_values ? order_by_norm(work_on, exponent) : NULL;
    double *columns = root ? make_records(&layout, work_on, exponent, order) : NULL;

    Work work = solve(comm, &layout, options, columns);
    if (has_values)
        *svd = assemble_svd(&layout, columns, order, exponent);
    if (qr.lower.at) {
        Svd of_lower = *svd;
        *svd = undo_qr(&qr, &of_lower);
        free_svd(&of_lower);
        free(qr.reflectors.at);
        free(qr.lower.at);
        free(qr.order);
    }
    free(columns);
    free(order);
    return work;
}

static int run(Comm *comm, const Options *options) {
    Matrix a = {0};
    bool transposed;
    if (!load_matrix(comm, options, &a, &transposed))
        return EXIT_BAD_INPUT;
    Svd svd = {0};
    comm_barrier(comm);
    double start = comm_clock();
    Work work = decompose(comm, options, a, &svd);
    double seconds = comm_clock() - start;

    Totals totals = comm_totals(comm, seconds, &work);
    int status = EXIT_OK;
    if (comm->rank == 0)
        status = report(comm, options, a, transposed, &work, &totals, &svd);
    comm_from_root(comm, &status, 1);
    free_svd(&svd);
    free(a.at);
    return status;
}

static bool wants_help(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], "--help") == 0;
}

int main(int argc, char **argv) {
    Comm comm;
    comm_start(&argc, &argv, &comm);
    Options options;
    int status = EXIT_BAD_INPUT;
    if (!parse_options(argc, argv, comm.rank == 0, &options))
        status = wants_help(argc, argv) ? EXIT_OK : EXIT_BAD_INPUT;
    else if (!(options.flops_rate > 0) || comm_can_model(&comm))
        status = run(&comm, &options);
    comm_finish(&comm);
    return status;
}
