/* Which component and which algorithm ran a collective, for `./study what-ran` (COLLTRACE_RAN): of Open MPI as follows,
 * of MPICH and Intel MPI see symbols.c.
 *
 * Component: a communicator of Open MPI has a table with a function and a module for each collective, and a module's
 * class is named after its component. The table is searched for in the communicator, because its offset differs between
 * builds, and read defensively, as any pointer may be invalid. The order of the table is that of
 * mca_coll_base_comm_coll_t in ompi/mca/coll/coll.h, which is the same in 4.1 and 5.0.
 *
 * Algorithm: the algorithms that components share are functions that libmpi exports (ompi_coll_base_*, of
 * ompi/mca/coll/base/coll_base_functions.h). The functions of the same names below are called instead and call them
 * with all arguments unchanged. All arguments are integers and pointers, which fit in a `long`.
 *
 * A text (texts.c) is `component|function|ranks|algorithms`; empty parts are unknown. The first text of a rank is the
 * version of the library. */
#include "trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_BYTES = 2048, OUTER = 32 };

static bool enabled;

void ran_open(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING], text[TEXT_BYTES];
    int length;
    enabled = getenv("COLLTRACE_RAN") != NULL && trace_is_open();
    if (!enabled)
        return;
    PMPI_Get_library_version(version, &length);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(version, "\n"), version);
    text_number(text);
    symbols_open();
}

#ifdef OPEN_MPI
/* The algorithms of the current call; those called by another one follow it in parentheses. */
static _Thread_local char steps[STEPS_BYTES];
static _Thread_local size_t used;
static _Thread_local int inside;
/* The outermost algorithms: where their texts are in `steps`, and the communicators on which they ran. */
static _Thread_local struct Outer {
    size_t start, end;
    long comm;
} outermost[OUTER];
static _Thread_local int outermost_count;

static void add(const char *text) {
    size_t length = strlen(text);
    if (used + length >= sizeof steps)
        return;
    memcpy(steps + used, text, length + 1);
    used += length;
}

static void step_begin(const char *name, long comm, const char *format, int first, int second) {
    char text[128];
    if (inside == 0 && outermost_count < OUTER)
        outermost[outermost_count] = (struct Outer){.start = used, .comm = comm};
    else if (used > 0 && steps[used - 1] != '(')
        add("+");
    add(name);
    snprintf(text, sizeof text, format, first, second);
    add(text);
    inside++;
    add("(");
}

static void step_end(void) {
    inside--;
    if (used > 0 && steps[used - 1] == '(')
        steps[--used] = '\0';
    else
        add(")");
    if (inside == 0 && outermost_count < OUTER)
        outermost[outermost_count++].end = used;
}

/* Wraps an algorithm; see algorithms.h. */
#define ALGORITHM_WITH(NAME, COUNT, COMM, FORMAT, FIRST, SECOND)                                                       \
    __attribute__((visibility("default"))) int ompi_coll_base_##NAME(P##COUNT) {                                       \
        static int (*real)(P##COUNT);                                                                                  \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, "ompi_coll_base_" #NAME);                                               \
        if (!enabled)                                                                                                  \
            return real(A##COUNT);                                                                                     \
        step_begin(#NAME, COMM, FORMAT, (int)(FIRST), (int)(SECOND));                                                  \
        int code = real(A##COUNT);                                                                                     \
        step_end();                                                                                                    \
        return code;                                                                                                   \
    }
#include "algorithms.h"

void ran_begin(void) {
    steps[0] = '\0';
    used = 0;
    outermost_count = 0;
}

/* The table of a communicator -------------------------------------------------------------------------------------- */

enum { BLOCKING = 17, COMMUNICATOR_BYTES = 2048 };

typedef struct Entry {
    void *function;
    void *module;
} Entry;

/* Position in the table, from 1. */
static const int position[OP_COUNT] = {
    [OP_allgather] = 1,       [OP_allgatherv] = 2,
    [OP_allreduce] = 3,       [OP_alltoall] = 4,
    [OP_alltoallv] = 5,       [OP_alltoallw] = 6,
    [OP_barrier] = 7,         [OP_bcast] = 8,
    [OP_exscan] = 9,          [OP_gather] = 10,
    [OP_gatherv] = 11,        [OP_reduce] = 12,
    [OP_reduce_scatter] = 13, [OP_reduce_scatter_block] = 14,
    [OP_scan] = 15,           [OP_scatter] = 16,
    [OP_scatterv] = BLOCKING, [OP_iallgather] = 18,
    [OP_iallgatherv] = 19,    [OP_iallreduce] = 20,
    [OP_ialltoall] = 21,      [OP_ialltoallv] = 22,
    [OP_ibarrier] = 24,       [OP_ibcast] = 25,
    [OP_igather] = 27,        [OP_ireduce] = 29,
    [OP_iscatter] = 33,
};

/* Reads memory of this process that may not be mapped; returns the number of bytes read. */
static size_t peek(const void *from, void *to, size_t bytes) {
    static int memory = -1;
    if (memory < 0)
        memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t count = memory < 0 ? -1 : pread(memory, to, bytes, (off_t)(uintptr_t)from);
    return count < 0 ? 0 : (size_t)count;
}

/* Finds the component of a module: its class is named mca_coll_<component>_module_t, or ompi_coll_<...>. */
static bool component_of(const void *module, char *name, size_t room) {
    char read[80] = "";
    const char *class[2] = {NULL, NULL}, *text;
    /* In debug builds a number precedes the class. */
    if (!module || peek(module, class, sizeof class) != sizeof class)
        return false;
    for (int i = 0; i < 2; i++) {
        if (!class[i] || peek(class[i], &text, sizeof text) != sizeof text || !text ||
            peek(text, read, sizeof read - 1) == 0)
            continue;
        char *start = strstr(read, "_coll_"), *end = start ? strstr(start, "_module_t") : NULL;
        if (!end || end[strlen("_module_t")] != '\0' || end - start - 6 <= 0 || (size_t)(end - start - 6) >= room)
            continue;
        memcpy(name, start + 6, (size_t)(end - start - 6));
        name[end - start - 6] = '\0';
        return true;
    }
    return false;
}

/* Returns a communicator's table. Its offset is searched for in the first communicator and is the same in all. */
static const Entry *table_of(MPI_Comm comm) {
    static size_t place;
    static bool searched, found;
    const Entry *table = NULL;
    if (!searched) {
        const Entry *words[COMMUNICATOR_BYTES / sizeof(Entry *)];
        size_t count = peek((const void *)comm, words, sizeof words) / sizeof *words;
        searched = true;
        for (size_t i = 0; i < count && !found; i++) {
            Entry entries[BLOCKING];
            char name[40];
            found = words[i] && peek(words[i], entries, sizeof entries) == sizeof entries;
            for (int k = 0; found && k < BLOCKING; k++)
                found = entries[k].function && component_of(entries[k].module, name, sizeof name);
            place = i * sizeof *words;
        }
    }
    if (!found || peek((const char *)comm + place, &table, sizeof table) != sizeof table)
        return NULL;
    return table;
}

/* Lists the algorithms that did the work of a call. A component that combines communicators (coll/han) works on others
 * than the call's, on which it only finds its nodes. coll/tuned calls one algorithm, after those of a component that
 * tried before it and gave up. */
static void list_algorithms(MPI_Comm comm, const char *component, char *text, size_t room) {
    bool others = false;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < outermost_count; i++)
        others |= outermost[i].comm != (long)comm;
    for (int i = 0; i < outermost_count; i++) {
        bool own = outermost[i].comm == (long)comm;
        if (others ? own : strcmp(component, "tuned") == 0 && i < outermost_count - 1)
            continue;
        int bytes = (int)(outermost[i].end - outermost[i].start);
        length += (size_t)snprintf(text + length, room - length, "%s%.*s", length ? "+" : "", bytes,
                                   steps + outermost[i].start);
        if (length >= room)
            return;
    }
}

/* Returns the name of a component's function. dladdr() searches all names of a library, which takes up to 0.1 ms. */
static const char *name_of(void *function, enum operation operation) {
    static _Thread_local struct {
        void *function;
        const char *name;
    } last[OP_COUNT];
    if (last[operation].function != function) {
        Dl_info found;
        bool exact = dladdr(function, &found) && found.dli_saddr == function && found.dli_sname;
        last[operation].function = function;
        last[operation].name = exact ? found.dli_sname : "";
    }
    return last[operation].name;
}

uint16_t ran_number(MPI_Comm comm, enum operation operation) {
    char component[40] = "", algorithms[STEPS_BYTES], text[TEXT_BYTES];
    const char *function = "";
    int size;
    Entry entry;
    if (!enabled)
        return 0;
    const Entry *table = position[operation] ? table_of(comm) : NULL;
    if (table && peek(&table[position[operation] - 1], &entry, sizeof entry) == sizeof entry) {
        component_of(entry.module, component, sizeof component);
        function = name_of(entry.function, operation);
    }
    PMPI_Comm_size(comm, &size);
    list_algorithms(comm, component, algorithms, sizeof algorithms);
    if (snprintf(text, sizeof text, "%s|%s|%d|%s", component, function, size, algorithms) >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    return text_number(text);
}
#else
void ran_begin(void) {
    if (enabled)
        symbols_begin();
}

/* Other libraries have no components: `-`, or nothing if their functions cannot be seen. */
uint16_t ran_number(MPI_Comm comm, enum operation operation) {
    char algorithms[STEPS_BYTES], text[TEXT_BYTES];
    int size;
    (void)operation;
    if (!enabled)
        return 0;
    /* What one thread executes first is not seen in the calls of the others. */
    bool visible = symbols_end(algorithms, sizeof algorithms) && !trace_has_threads();
    PMPI_Comm_size(comm, &size);
    if (snprintf(text, sizeof text, "%s||%d|%s", visible ? "-" : "", size, algorithms) >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    return text_number(text);
}
#endif
