/*
 * Preloaded into every task of the emulated cluster: the process believes in FAKECPU_COUNT processors.
 *
 * Binding a process to a processor that this host does not have succeeds, is remembered, is reported back, and is
 * inherited over exec, also by a process that another one binds. It has no effect on where the kernel runs the process.
 * So a launcher can place 24 ranks on a host with two processors and report where it put them.
 *
 * Ranks that wait give their processor away for real: 48 ranks that only sched_yield() on two processors have stopped
 * the whole computer for two minutes (Linux 6.18).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef FAKECPU_COUNT
#define FAKECPU_COUNT 24
#endif
#define MASK_BYTES 128 /* 1024 processors: the size of a cpu_set_t */
#define VARIABLE "FAKECPU_MASK="

static unsigned char mask[MASK_BYTES];
static int initialised; /* mask holds a value */
static int bound;       /* somebody set the mask: tell the children */

static void initialise(void) {
    if (initialised)
        return;
    initialised = 1;
    const char *text = getenv("FAKECPU_MASK"); /* two hexadecimal digits a byte, processor 0 first */
    if (text) {
        unsigned byte;
        for (int i = 0; i < MASK_BYTES && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
            mask[i] = (unsigned char)byte;
        bound = 1;
        return;
    }
    for (int i = 0; i < FAKECPU_COUNT; i++)
        mask[i / 8] |= (unsigned char)(1 << (i % 8));
}

/* A process before its exec can be bound by another one, as Slurm does; the mask waits for it in a file of the node. */
static FILE *open_mask_of(pid_t pid, const char *mode, char *path, size_t size) {
    snprintf(path, size, "/dev/shm/fakecpu-%d", (int)pid);
    return fopen(path, mode);
}

static int bind_other(pid_t pid, const unsigned char *asked) {
    char path[64];
    FILE *file = open_mask_of(pid, "w", path, sizeof path);

    if (!file)
        return -1;
    fwrite(asked, 1, MASK_BYTES, file);
    return fclose(file);
}

static void read_mask_from_other(void) {
    char path[64];
    FILE *file = open_mask_of(getpid(), "r", path, sizeof path);

    if (!file)
        return;
    if (fread(mask, 1, MASK_BYTES, file) == MASK_BYTES)
        initialised = bound = 1;
    fclose(file);
    unlink(path);
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) {
    unsigned char asked[MASK_BYTES] = {0};
    int some = 0;
    memcpy(asked, set, size < sizeof asked ? size : sizeof asked);
    /* Like the kernel: processors that there are not are left out, and a mask without any is an error. */
    for (int i = 0; i < MASK_BYTES * 8; i++) {
        if (i >= FAKECPU_COUNT)
            asked[i / 8] &= (unsigned char)~(1 << (i % 8));
        some |= asked[i / 8] & (1 << (i % 8));
    }
    if (!some) {
        errno = EINVAL;
        return -1;
    }
    if (pid != 0 && pid != getpid())
        return bind_other(pid, asked);
    memcpy(mask, asked, sizeof mask);
    initialised = bound = 1;
    return 0;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    initialise();
    memset(set, 0, size);
    memcpy(set, mask, size < sizeof mask ? size : sizeof mask);
    return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
    (void)thread;
    return sched_setaffinity(0, size, set);
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set) {
    (void)thread;
    return sched_getaffinity(0, size, set);
}

int sched_yield(void) {
    const struct timespec moment = {0, 1000};
    return nanosleep(&moment, NULL);
}

/* The kernel would hand the mask to the new program; here the environment does. */
static void write_mask(char *variable) {
    strcpy(variable, VARIABLE);
    for (int i = 0; i < MASK_BYTES; i++)
        sprintf(variable + strlen(VARIABLE) + 2 * i, "%02x", mask[i]);
}

static size_t count_variables(char *const *environment) {
    size_t n = 0;
    while (environment && environment[n])
        n++;
    return n;
}

/* Copies the environment to `copy`, with the mask in it. Only the stack is used: a child of fork calls this. */
static char **add_mask(char *const *environment, char **copy, char *variable) {
    size_t n = 0;
    initialise();
    read_mask_from_other();
    if (!bound)
        return (char **)environment;
    for (char *const *entry = environment; entry && *entry; entry++)
        if (strncmp(*entry, VARIABLE, strlen(VARIABLE)) != 0)
            copy[n++] = *entry;
    write_mask(variable);
    copy[n++] = variable;
    copy[n] = NULL;
    return copy;
}

#define EXEC_WITH_MASK(name, path, arguments, environment)                                                             \
    do {                                                                                                               \
        int (*real)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, name);                              \
        char *copy[count_variables(environment) + 2];                                                                  \
        char variable[sizeof VARIABLE + 2 * MASK_BYTES];                                                               \
        return real(path, arguments, add_mask(environment, copy, variable));                                           \
    } while (0)

int execve(const char *path, char *const arguments[], char *const environment[]) {
    EXEC_WITH_MASK("execve", path, arguments, environment);
}

int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    EXEC_WITH_MASK("execvpe", file, arguments, environment);
}

int execv(const char *path, char *const arguments[]) {
    return execve(path, arguments, environ);
}

int execvp(const char *file, char *const arguments[]) {
    return execvpe(file, arguments, environ);
}
