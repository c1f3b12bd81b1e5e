/*
 * collcores : prints the processor (the operating system's number) of each core of this node, in the order in which
 * hwloc numbers the cores. Launchers that take numbers of processors need it to start ranks on given cores.
 */
#define _GNU_SOURCE
#include "cores.h"

int main(void) {
    static struct cores cores;

    find_cores(&cores);
    if (cores.count == 0) {
        perror("collcores: the processors of this process");
        return 1;
    }
    for (int i = 0; i < cores.count; i++)
        printf("%d\n", cores.core[i].processor);
    return 0;
}
