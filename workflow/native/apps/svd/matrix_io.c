/* Reads a matrix from .csv, .mtx (MatrixMarket: array or coordinate; real or integer; general or symmetric) or .bin
 * ("SVDMAT01", rows and columns as int32, then the float64 entries column by column, little-endian). Writes .csv.
 */
#include "svd.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char MAGIC[] = "SVDMAT01";
enum { MAGIC_BYTES = 8, BINARY_HEADER = MAGIC_BYTES + 2 * sizeof(int32_t) };

typedef struct {
    const char *path, *at;
    char *bytes;
    size_t size;
    long line;
} File;

static bool refuse(const File *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "svd: %s: ", file->path);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return false;
}

/* Loads the whole file, followed by a 0. */
static bool load(File *file) {
    FILE *stream = fopen(file->path, "rb");
    if (!stream)
        return refuse(file, "%s", strerror(errno));
    size_t room = 1 << 16;
    file->bytes = malloc(room);
    while (file->bytes) {
        file->size += fread(file->bytes + file->size, 1, room - 1 - file->size, stream);
        if (file->size < room - 1)
            break;
        room *= 2;
        char *larger = realloc(file->bytes, room);
        if (!larger)
            free(file->bytes);
        file->bytes = larger;
    }
    bool failed = ferror(stream);
    fclose(stream);
    if (failed || !file->bytes)
        return refuse(file, failed ? "cannot be read" : "does not fit into memory");
    file->bytes[file->size] = 0;
    file->at = file->bytes;
    file->line = 1;
    return true;
}

static void skip_blanks(File *file) {
    while (*file->at == ' ' || *file->at == '\t' || *file->at == '\r')
        file->at++;
}

static void skip_space(File *file) {
    while (isspace((unsigned char)*file->at))
        if (*file->at++ == '\n')
            file->line++;
}

static bool take_value(File *file, double *value) {
    char *end;
    *value = strtod(file->at, &end);
    if (end == file->at || isspace((unsigned char)*file->at)) /* strtod() would continue on the next line */
        return refuse(file, "line %ld: '%.*s' is not a number", file->line, (int)strcspn(file->at, ",;\r\n \t"),
                      file->at);
    file->at = end;
    return true;
}

static bool take_size(File *file, int *size) {
    double value;
    skip_space(file);
    if (!*file->at)
        return refuse(file, "truncated: its size line is missing");
    if (!take_value(file, &value))
        return false;
    if (!(value >= 1 && value <= INT_MAX) || value != floor(value))
        return refuse(file, "line %ld: wrong dimensions: %g is not a whole number of at least 1", file->line, value);
    *size = (int)value;
    return true;
}

static bool check_room(const File *file, int rows, int cols) {
    /* The root holds about five copies: rejects what no machine has memory for. */
    if ((double)rows * cols > 1e10)
        return refuse(file, "wrong dimensions: %d x %d is too large", rows, cols);
    return true;
}

static bool read_binary(File *file, Matrix *a) {
    int32_t dims[2];
    if (file->size < BINARY_HEADER || memcmp(file->bytes, MAGIC, MAGIC_BYTES) != 0)
        return refuse(file, "not a matrix file, or truncated: it must start with %s and two int32", MAGIC);
    memcpy(dims, file->bytes + MAGIC_BYTES, sizeof dims);
    if (dims[0] < 1 || dims[1] < 1)
        return refuse(file, "wrong dimensions: %d x %d", (int)dims[0], (int)dims[1]);
    size_t wanted = (size_t)dims[0] * (size_t)dims[1] * sizeof(double), present = file->size - BINARY_HEADER;
    if (wanted != present)
        return refuse(file, "%s: %d x %d needs %zu bytes of entries, the file has %zu",
                      present < wanted ? "truncated" : "wrong dimensions", (int)dims[0], (int)dims[1], wanted, present);
    *a = new_matrix(dims[0], dims[1]);
    memcpy(a->at, file->bytes + BINARY_HEADER, wanted);
    return true;
}

/* Reads one line into row, which has room for cols values; with cols 0 it only counts them. */
static bool read_csv_row(File *file, double *row, int cols, int *found) {
    for (*found = 0;;) {
        double value;
        skip_blanks(file);
        if (!take_value(file, &value))
            return false;
        if (*found < cols)
            row[*found] = value;
        ++*found;
        skip_blanks(file);
        if (*file->at == ',' || *file->at == ';') {
            file->at++;
            continue;
        }
        if (*file->at && *file->at != '\n')
            return refuse(file, "line %ld: a comma is missing before '%.10s'", file->line, file->at);
        return true;
    }
}

static bool count_csv(File *file, int *rows, int *cols) {
    int found;
    skip_space(file);
    if (!*file->at)
        return refuse(file, "empty");
    for (*rows = 0, *cols = 0; *file->at; ++*rows) {
        if (!read_csv_row(file, NULL, 0, &found))
            return false;
        if (*rows > 0 && found != *cols)
            return refuse(file, "line %ld: wrong dimensions: %d values, the lines before have %d", file->line, found,
                          *cols);
        *cols = found;
        skip_space(file);
    }
    return true;
}

static bool read_csv(File *file, Matrix *a) {
    int rows = 0, cols = 0, found;
    if (!count_csv(file, &rows, &cols))
        return false;
    *a = new_matrix(rows, cols);
    double *row = allocate((size_t)cols * sizeof(double));
    file->at = file->bytes;
    for (int i = 0; i < rows; i++) {
        skip_space(file);
        read_csv_row(file, row, cols, &found); /* cannot fail: counted before */
        for (int j = 0; j < cols; j++)
            a->at[(size_t)j * (size_t)rows + (size_t)i] = row[j];
    }
    free(row);
    return true;
}

typedef struct {
    bool coordinate, symmetric;
} Market;

/* The words after the first one may be in upper case. */
static bool read_market_header(File *file, Market *market) {
    char object[16] = "", layout[16] = "", field[16] = "", symmetry[16] = "";
    sscanf(file->at, "%%%%MatrixMarket %15s %15s %15s %15s", object, layout, field, symmetry);
    market->coordinate = strcasecmp(layout, "coordinate") == 0;
    market->symmetric = strcasecmp(symmetry, "symmetric") == 0;
    bool known = strcasecmp(object, "matrix") == 0 && (market->coordinate || strcasecmp(layout, "array") == 0) &&
                 (strcasecmp(field, "real") == 0 || strcasecmp(field, "integer") == 0) &&
                 (market->symmetric || strcasecmp(symmetry, "general") == 0);
    if (!known)
        return refuse(
            file,
            "unsupported MatrixMarket header: must be array or coordinate, real or integer, general or symmetric");
    while (*file->at == '%') {
        file->at += strcspn(file->at, "\n");
        skip_space(file);
    }
    return true;
}

/* Finds the next entry's place: given by the file (coordinate), or one below the last (symmetric: lower triangle). */
static bool next_place(File *file, const Market *market, const Matrix *a, int *i, int *j) {
    if (!market->coordinate) {
        if (++*i == a->rows)
            *i = market->symmetric ? *j + 1 : 0, ++*j;
        return true;
    }
    if (!take_size(file, i) || !take_size(file, j))
        return false;
    if (*i > a->rows || *j > a->cols)
        return refuse(file, "line %ld: wrong dimensions: entry (%d, %d) of a %d x %d matrix", file->line, *i, *j,
                      a->rows, a->cols);
    --*i, --*j;
    return true;
}

static bool read_market_entries(File *file, const Market *market, size_t count, Matrix *a) {
    int i = -1, j = 0;
    for (size_t k = 0; k < count; k++) {
        double value;
        skip_space(file);
        if (!*file->at)
            return refuse(file, "truncated: %zu of %zu entries", k, count);
        if (!next_place(file, market, a, &i, &j))
            return false;
        skip_space(file);
        if (!*file->at)
            return refuse(file, "truncated: %zu of %zu entries", k, count);
        if (!take_value(file, &value))
            return false;
        a->at[(size_t)j * (size_t)a->rows + (size_t)i] = value;
        if (market->symmetric)
            a->at[(size_t)i * (size_t)a->rows + (size_t)j] = value;
    }
    skip_space(file);
    return *file->at ? refuse(file, "line %ld: wrong dimensions: more than %zu entries", file->line, count) : true;
}

static bool read_market(File *file, Matrix *a) {
    Market market;
    int rows, cols;
    if (!read_market_header(file, &market) || !take_size(file, &rows) || !take_size(file, &cols) ||
        !check_room(file, rows, cols))
        return false;
    if (market.symmetric && rows != cols)
        return refuse(file, "wrong dimensions: symmetric, but %d x %d", rows, cols);
    size_t count = market.symmetric ? (size_t)rows * ((size_t)rows + 1) / 2 : (size_t)rows * (size_t)cols;
    if (market.coordinate) {
        skip_space(file);
        double stored;
        if (!take_value(file, &stored))
            return false;
        if (!(stored >= 0 && stored <= (double)count) || stored != floor(stored))
            return refuse(file, "line %ld: wrong dimensions: %g entries in a %d x %d matrix", file->line, stored, rows,
                          cols);
        count = (size_t)stored;
    }
    *a = new_matrix(rows, cols);
    return read_market_entries(file, &market, count, a);
}

static bool check_matrix(const File *file, const Options *options, Matrix a) {
    if (options->rows && (a.rows != options->rows || a.cols != options->cols))
        return refuse(file, "wrong dimensions: %d x %d, --dims asks for %d x %d", a.rows, a.cols, options->rows,
                      options->cols);
    for (size_t k = 0; k < (size_t)a.rows * (size_t)a.cols; k++)
        if (!isfinite(a.at[k]))
            return refuse(file, "entry (%zu, %zu) is %s", k % (size_t)a.rows + 1, k / (size_t)a.rows + 1,
                          isnan(a.at[k]) ? "NaN" : "Inf");
    return true;
}

bool read_matrix(const Options *options, Matrix *a) {
    File file = {.path = options->matrix};
    const char *extension = strrchr(file.path, '.');
    bool (*read)(File *, Matrix *) = NULL;
    if (extension && strcmp(extension, ".csv") == 0)
        read = read_csv;
    else if (extension && strcmp(extension, ".mtx") == 0)
        read = read_market;
    else if (extension && strcmp(extension, ".bin") == 0)
        read = read_binary;
    if (!read)
        return refuse(&file, "the name must end in .csv, .mtx or .bin");
    bool ok = load(&file) && read(&file, a) && check_matrix(&file, options, *a);
    free(file.bytes);
    if (!ok) {
        free(a->at);
        a->at = NULL;
    }
    return ok;
}

bool write_csv(const char *folder, const char *name, Matrix a) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        fprintf(stderr, "svd: --output: the folder's name is too long\n");
        return false;
    }
    FILE *stream = fopen(path, "w");
    if (!stream) {
        fprintf(stderr, "svd: %s: %s\n", path, strerror(errno));
        return false;
    }
    for (int i = 0; i < a.rows; i++)
        for (int j = 0; j < a.cols; j++)
            fprintf(stream, "%.17g%c", a.at[(size_t)j * (size_t)a.rows + (size_t)i], j + 1 < a.cols ? ',' : '\n');
    bool failed = ferror(stream);
    if (fclose(stream) != 0 || failed) {
        fprintf(stderr, "svd: %s: cannot be written (disk full?)\n", path);
        return false;
    }
    return true;
}
