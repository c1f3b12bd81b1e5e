/*
 * The cores of this node in the order in which hwloc, and so Open MPI, numbers them: by socket, NUMA node, L3 cache,
 * and then by the numbers of their processors. The operating system's numbers differ from these: consecutive ones may
 * alternate between the sockets, or be two hardware threads of one core.
 *
 * Only processors on which this process may run count (a job may have a part of the node). As for hwloc, HWLOC_FSROOT
 * is the folder that contains the /sys to read.
 */
#ifndef CORES_H
#define CORES_H
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A core: the lowest processors of its socket, NUMA node, L3 cache and itself, by which cores are ordered. */
enum { SOCKET, NUMA, L3, SELF, LEVELS };
struct core {
    int lowest[LEVELS];
    int processor; /* the lowest one on which this process may run */
};

struct cores {
    struct core core[CPU_SETSIZE];
    int count;
    int numa[CPU_SETSIZE]; /* the lowest processor of each processor's NUMA node */
};

static FILE *open_system(const char *file) {
    const char *root = getenv("HWLOC_FSROOT");
    char path[4096];

    snprintf(path, sizeof path, "%s/sys/devices/system/%s", root ? root : "", file);
    return fopen(path, "r");
}

/* Returns the first number in a file about a processor; `otherwise` if this node has no such file. */
static int first_in(int processor, const char *file, int otherwise) {
    char path[128];
    int first;

    snprintf(path, sizeof path, "cpu/cpu%d/%s", processor, file);
    FILE *opened = open_system(path);
    if (opened == NULL)
        return otherwise;
    if (fscanf(opened, "%d", &first) != 1)
        first = otherwise;
    fclose(opened);
    return first;
}

/* Writes the lowest processor of each processor's NUMA node to `lowest`; 0 if the system does not tell. */
static void find_numa_nodes(int lowest[CPU_SETSIZE]) {
    memset(lowest, 0, CPU_SETSIZE * sizeof *lowest);
    for (int node = 0; node < CPU_SETSIZE; node++) {
        char path[64];
        int first = -1, from, to;
        snprintf(path, sizeof path, "node/node%d/cpulist", node);
        FILE *opened = open_system(path);
        if (opened == NULL)
            continue;
        while (fscanf(opened, "%d", &from) == 1) { /* 0-11,24-35 */
            to = from;
            if (fscanf(opened, "-%d", &to) == EOF)
                to = from;
            first = first < 0 ? from : first;
            for (int processor = from; processor <= to && processor < CPU_SETSIZE; processor++)
                lowest[processor] = first;
            if (fgetc(opened) != ',')
                break;
        }
        fclose(opened);
    }
}

static int compare_cores(const void *one, const void *other) {
    const struct core *a = one, *b = other;

    for (int level = 0; level < LEVELS; level++)
        if (a->lowest[level] != b->lowest[level])
            return a->lowest[level] < b->lowest[level] ? -1 : 1;
    return 0;
}

/* Returns the index of a core; their number if it is not among them. */
static int index_of(const struct core *core, const struct cores *cores) {
    int index = 0;

    while (index < cores->count && compare_cores(core, &cores->core[index]) != 0)
        index++;
    return index;
}

/* The core of a processor. Before Linux 5.4 the files have other names; without any, processors are cores of one
 * socket. */
static struct core core_of(int processor, const int numa[CPU_SETSIZE]) {
    struct core core = {.processor = processor};

    core.lowest[SOCKET] = first_in(processor, "topology/core_siblings_list", 0);
    core.lowest[SOCKET] = first_in(processor, "topology/package_cpus_list", core.lowest[SOCKET]);
    core.lowest[NUMA] = numa[processor];
    core.lowest[L3] = first_in(processor, "cache/index3/shared_cpu_list", core.lowest[SOCKET]);
    core.lowest[SELF] = first_in(processor, "topology/thread_siblings_list", processor);
    core.lowest[SELF] = first_in(processor, "topology/core_cpus_list", core.lowest[SELF]);
    return core;
}

/* Finds the cores in their order; none if the kernel does not say on which processors this process may run. */
static void find_cores(struct cores *found) {
    cpu_set_t own, allowed;

    /* The kernel reduces a mask to the processors of the job, whatever this process is bound to. */
    memset(&allowed, 0xff, sizeof allowed);
    found->count = 0;
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        return;
    sched_setaffinity(0, sizeof allowed, &allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    sched_setaffinity(0, sizeof own, &own);

    find_numa_nodes(found->numa);
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, &allowed))
            continue;
        struct core core = core_of(processor, found->numa);
        if (index_of(&core, found) == found->count)
            found->core[found->count++] = core;
    }
    qsort(found->core, (size_t)found->count, sizeof *found->core, compare_cores);
}
#endif
