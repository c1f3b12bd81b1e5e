/* Messages to stderr, and the check of every MPI call. */
#ifndef ERRORS_H
#define ERRORS_H

/* Checks an MPI call; if it failed, reports the call and its place, and ends all ranks. */
#define MPI_CHECK(call) check_mpi((call), #call, __FILE__, __LINE__)

void check_mpi(int code, const char *call, const char *file, int line);

/* Prints "collbench_<name>: <message>\n" to stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* complain, then end all ranks with exit status 1: for errors that one rank sees alone. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
