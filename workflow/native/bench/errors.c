#include "errors.h"
#include "benchmark.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes the whole line at once, so that the lines of several ranks do not mix. */
static void print_message(const char *format, va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "collbench_%s: %s\n", benchmark->name, text);
    fflush(stderr);
}

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
}

void give_up(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
#ifdef SMPI_H /* in the simulator MPI_Abort ends with exit status 0 */
    _Exit(EXIT_FAILURE);
#endif
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    exit(EXIT_FAILURE);
}

void check_mpi(int code, const char *call, const char *file, int line) {
    if (code == MPI_SUCCESS)
        return;
    char reason[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    MPI_Error_string(code, reason, &length);
    give_up("%s:%d: %s failed: %s (MPI error %d)", file, line, call, reason, code);
}
