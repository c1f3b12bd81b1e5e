/* Prints where a rank runs, by which its placement is verified. */
#ifndef PLACE_H
#define PLACE_H
#include "cores.h"

#include <mpi.h>
#include <unistd.h>

/* Returns the index of the core to which all processors of `set` belong; -1 if they belong to several. */
static int core_with(const cpu_set_t *set, const struct cores *cores) {
    int index = -1;

    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, set))
            continue;
        struct core core = core_of(processor, cores->numa);
        if (index >= 0 && compare_cores(&core, &cores->core[index]) != 0)
            return -1;
        index = index_of(&core, cores);
    }
    return index;
}

/* Returns the number of the socket of a core, in the order of the cores. */
static int socket_of(int index, const struct cores *cores) {
    int socket = 0;

    for (int i = 1; i <= index; i++)
        socket += cores->core[i].lowest[SOCKET] != cores->core[i - 1].lowest[SOCKET];
    return socket;
}

/*
 * Prints "rank R of P host H cpus LIST", with the processors to which the kernel has bound this rank. If they belong to
 * one core, the line ends with " socket S core C", its numbers on the node (cores.h).
 */
static void print_place(int rank, int processes) {
    char host[MPI_MAX_PROCESSOR_NAME], line[8192];
    int length, at;
    cpu_set_t set;

    if (MPI_Get_processor_name(host, &length) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    at = snprintf(line, sizeof line, "rank %d of %d host %s cpus", rank, processes, host);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        static struct cores cores;
        char separator = ' ';
        for (int cpu = 0; cpu < CPU_SETSIZE && at < (int)sizeof line - 16; cpu++) {
            if (CPU_ISSET(cpu, &set)) {
                at += snprintf(line + at, sizeof line - (size_t)at, "%c%d", separator, cpu);
                separator = ',';
            }
        }
        find_cores(&cores);
        int core = core_with(&set, &cores);
        if (core >= 0)
            at += snprintf(line + at, sizeof line - (size_t)at, " socket %d core %d", socket_of(core, &cores), core);
    }
    /* One write: if stdout is not buffered (MPICH), the lines of several ranks would mix otherwise. */
    snprintf(line + at, sizeof line - (size_t)at, "\n");
    fflush(stdout);
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        perror("place of a rank");
}
#endif
