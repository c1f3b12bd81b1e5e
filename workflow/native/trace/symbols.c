/* Which algorithms an MPI library runs that does not export them: MPICH and Intel MPI, unless they were stripped.
 *
 * Their algorithms are local functions, whose addresses are in the symbol table of the library's file. While a call is
 * watched, each of them begins with a breakpoint; at its first execution the signal handler notes the function and
 * restores its first byte. Arguments are not seen. Only x86-64 has breakpoints of one byte, which are written in one
 * step. */
#include "trace.h"

#if !defined OPEN_MPI && defined __x86_64__
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { BREAKPOINT = 0xCC, MOST_SEEN = 64 };

static struct Function {
    const char *name;
    unsigned char *start, first;
} * functions;
static size_t function_count;
/* Those of the current call, in the order of their first execution. */
static _Thread_local const char *seen[MOST_SEEN];
static _Thread_local int seen_count;

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* An algorithm, as against the selection of one; SHMGR: the steps of Intel MPI's algorithms in shared memory. */
static bool is_algorithm(const char *name) {
    static const char *const others[] = {"_auto", "_auto_safe", "_check", "_cnt"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_with(name, others[i]))
            return false;
    return strncmp(name, "MPI", 3) == 0 &&
           (strstr(name, "_intra_") || strstr(name, "_inter_") || strstr(name, "_allcomm_") ||
            strstr(name, "SHMGR_Gather") || strstr(name, "SHMGR_Release"));
}

static int by_start(const void *a, const void *b) {
    const struct Function *first = a, *second = b;
    return first->start < second->start ? -1 : first->start > second->start;
}

static void at_breakpoint(int signal, siginfo_t *about, void *context) {
    greg_t *next = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    struct Function wanted = {.start = (unsigned char *)*next - 1};
    struct Function *found = bsearch(&wanted, functions, function_count, sizeof wanted, by_start);
    (void)signal;
    (void)about;
    if (!found)
        return; /* a breakpoint of the program itself, which goes on behind it */
    *found->start = found->first;
    *next = (greg_t)found->start;
    if (seen_count < MOST_SEEN)
        seen[seen_count++] = found->name;
}

/* Lists the algorithms in the file of the library, which is mapped at `file` and loaded at `base`. */
static void list_functions(const char *file, unsigned char *base) {
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
        const char *names = file + sections[sections[i].sh_link].sh_offset;
        size_t count = sections[i].sh_size / sizeof *symbols;
        functions = malloc(count * sizeof *functions);
        for (size_t k = 0; functions && k < count; k++) {
            unsigned char *start = base + symbols[k].st_value;
            const char *name = names + symbols[k].st_name;
            if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && symbols[k].st_value && is_algorithm(name))
                functions[function_count++] = (struct Function){name, start, *start};
        }
    }
}

void symbols_open(void) {
    struct sigaction action = {.sa_sigaction = at_breakpoint, .sa_flags = SA_SIGINFO | SA_NODEFER};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct stat about;
    Dl_info library;
    if (!dladdr(dlsym(RTLD_NEXT, "PMPI_Bcast"), &library))
        return;
    int file = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0)
        return;
    /* Stays mapped, as it contains the names. */
    void *mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return;
    list_functions(mapped, library.dli_fbase);
    qsort(functions, function_count, sizeof *functions, by_start);
    for (size_t i = 0; i < function_count; i++)
        if (mprotect((void *)((uintptr_t)functions[i].start & ~(page - 1)), page, PROT_READ | PROT_WRITE | PROT_EXEC)) {
            function_count = 0; /* the system forbids it */
            return;
        }
    sigaction(SIGTRAP, &action, NULL);
}

void symbols_begin(void) {
    seen_count = 0;
    for (size_t i = 0; i < function_count; i++)
        *functions[i].start = BREAKPOINT;
}

bool symbols_end(char *text, size_t room) {
    size_t length = 0;
    for (size_t i = 0; i < function_count; i++)
        *functions[i].start = functions[i].first;
    text[0] = '\0';
    for (int i = 0; i < seen_count && length < room; i++)
        length += (size_t)snprintf(text + length, room - length, "%s%s", length ? "+" : "", seen[i]);
    return function_count > 0;
}
#else
void symbols_open(void) {
}

void symbols_begin(void) {
}

bool symbols_end(char *text, size_t room) {
    if (room > 0)
        text[0] = '\0';
    return false;
}
#endif
