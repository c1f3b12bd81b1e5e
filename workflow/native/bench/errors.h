/* Error messages on stderr, and the check of MPI return codes. */
#ifndef ERRORS_H
#define ERRORS_H

/* Checks an MPI call; if it failed, reports the call with file and line and aborts all ranks. */
#define MPI_CHECK(call) check_mpi((call), #call, __FILE__, __LINE__)

void check_mpi(int code, const char *call, const char *file, int line);

/* Prints "collbench_<name>: <message>\n" to stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like complain(), then aborts all ranks with exit status 1: for errors that only one rank detects. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
