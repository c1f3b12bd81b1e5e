/* Fortran programs: Open MPI's Fortran bindings (mpif.h, mpi, mpi_f08) call the C functions by their profiling names,
 * such as PMPI_Bcast, so preloading another MPI_Bcast does not intercept them. MPICH and Intel MPI do so in the
 * functions of mpi_f08 that have no buffers, such as MPI_Init and MPI_Barrier. When this library is loaded, it changes
 * the bindings' tables of imported functions from PMPI_X to its own MPI_X, which calls PMPI_X itself. Bindings that are
 * loaded later, by dlopen, are not intercepted. */
#include "calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The imports of a loaded library, from its dynamic section. */
typedef struct Imports {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * tables[2];
    size_t bytes[2];
} Imports;

static Imports imports_of(const ElfW(Dyn) * dynamic) {
    Imports found = {0};
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *place = (const void *)dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            found.symbols = place;
            break;
        case DT_STRTAB:
            found.names = place;
            break;
        case DT_RELA:
            found.tables[0] = place;
            break;
        case DT_RELASZ:
            found.bytes[0] = dynamic->d_un.d_val;
            break;
        case DT_JMPREL:
            found.tables[1] = place;
            break;
        case DT_PLTRELSZ:
            found.bytes[1] = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return found;
}

/* Parts of the names of Fortran bindings: Open MPI, MPICH and Intel MPI, MPICH of Debian. */
static const char *const bindings[] = {"libmpi_mpifh", "libmpi_usempi", "libmpifort", "libmpichfort"};

bool has_bindings(const char *library) {
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
        if (strstr(library, bindings[i]))
            return true;
    return false;
}

/* This library's function for an import by its profiling name; NULL for all other imports. */
static void *own_function(const char *name) {
    Dl_info here, there;
    void *found = strncmp(name, "PMPI_", 5) == 0 ? dlsym(RTLD_DEFAULT, name + 1) : NULL;
    bool own = found && dladdr((void *)imports_of, &here) && dladdr(found, &there) && here.dli_fbase == there.dli_fbase;
    return own ? found : NULL;
}

/* Stores to a table that may be read-only after relocation; leaves it writable. */
static void set_import(void **entry, void *function) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)entry & ~(page - 1);
    if (mprotect((void *)start, page, PROT_READ | PROT_WRITE) == 0)
        *entry = function;
}

static int look_at(struct dl_phdr_info *object, size_t bytes, void *nothing) {
    (void)bytes, (void)nothing;
    for (int i = 0; has_bindings(object->dlpi_name) && i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        Imports imports = imports_of((const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr));
        for (int table = 0; table < 2; table++)
            for (size_t k = 0; imports.tables[table] && k < imports.bytes[table] / sizeof(ElfW(Rela)); k++) {
                const ElfW(Rela) *import = &imports.tables[table][k];
                void *own = own_function(imports.names + imports.symbols[ELF64_R_SYM(import->r_info)].st_name);
                if (own)
                    set_import((void **)(object->dlpi_addr + import->r_offset), own);
            }
    }
    return 0;
}

__attribute__((constructor)) static void follow_fortran(void) {
    dl_iterate_phdr(look_at, NULL);
}
