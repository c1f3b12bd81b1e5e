/* Parallel one-sided Jacobi SVD: the types and functions that its files share.
 *
 * One-sided Jacobi (Hestenes 1958): plane rotations from the right make the columns of A orthogonal, A V = U S. Every
 * rotation uses two columns of A and the same two of V, so disjoint pairs of column blocks can be processed in
 * parallel; the ordering of Brent and Luk (1985) defines which blocks meet when. All code here assumes rows >= columns:
 * a wide matrix is transposed on input, and U and V are exchanged on output. */
#ifndef SVD_H
#define SVD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_OK = 0, EXIT_BAD_INPUT = 1, EXIT_NOT_CONVERGED = 2 };

/* A dense matrix, column by column. */
typedef struct {
    int rows, cols;
    double *at;
} Matrix;

/* Layout of a column record: [a: rows | v: cols | a'a], each part padded with zeros to whole cache lines. */
typedef struct {
    int rows, cols;   /* of A, rows >= cols */
    int blocks;       /* two per process; sizes differ by at most one column, some are empty if there are few columns */
    size_t v, normsq; /* offsets of v and a'a in a record */
    size_t record;    /* doubles from one column to the next */
} Layout;

typedef struct {
    int id, count;
    double *columns;
} Block;

/* Work done by one process. */
typedef struct {
    double off;       /* max |x'y| / (|x| |y|) in the last sweep, before rotating */
    double rotations; /* of all sweeps */
    double flops;
    int sweeps;
    bool converged;
} Work;

typedef struct {
    const char *matrix, *kind, *output;
    int rows, cols; /* of the generated matrix, or what the file must have; 0: not given */
    uint64_t seed;
    int max_sweeps;
    bool qr;           /* precondition */
    bool model_only;   /* simulator only: communicate the same bytes, do no arithmetic */
    double flops_rate; /* simulator only: rate at which compute is charged, GFlop/s; 0: off */
    double rotated;    /* model_only: rotations / (pairs x sweeps) */
} Options;

/* options.c */
bool parse_options(int argc, char **argv, bool speak, Options *options);

/* memory.c: never return NULL */
void *allocate(size_t bytes);
Matrix new_matrix(int rows, int cols);

/* matrix_io.c: true, or false after one message on stderr */
bool read_matrix(const Options *options, Matrix *a);
bool write_csv(const char *folder, const char *name, Matrix a);

/* generate.c */
bool known_kind(const char *kind);
Matrix generate_matrix(const Options *options);

/* layout.c */
Layout make_layout(int rows, int cols, int processes);
int block_first(const Layout *layout, int id);
int block_count(const Layout *layout, int id);

/* rotate.c: Jacobi rotations for all pairs within a block, or of two blocks */
void rotate_within(const Layout *layout, Block block, Work *work);
void rotate_across(const Layout *layout, Block x, Block y, Work *work);
double column_normsq(const double *a, int rows);
double tolerance(const Layout *layout);
double pair_flops(const Layout *layout, double pairs, double rotations);

/* finish.c: on the root, from rotated columns to the decomposition */
typedef struct {
    Matrix s, u, v; /* s: one column, descending */
} Svd;
int scale_exponent(Matrix a);
double norm(const double *x, int length);
int *order_by_norm(Matrix a, int exponent);
Svd assemble_svd(const Layout *layout, const double *columns, const int *order, int exponent);
double residual(Matrix a, const Svd *svd);
void free_svd(Svd *svd);

/* qr.c: on the root, if asked for */
typedef struct {
    Matrix reflectors, lower;
    int *order;
} Qr;
Qr factorise(Matrix a, int exponent);
Svd undo_qr(const Qr *qr, const Svd *lower);

#endif
