/* Call sites: where the program calls a collective. In a Fortran program the return address of a recorded function is
 * in the bindings of the MPI library, and the call stack has the site. The sites of a program in Python are those of
 * mpi4py. */
#include "trace.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

/* The addresses that were looked up before. */
enum { KEPT = 256 };
typedef struct Kept {
    const void *address;
    uint16_t number;
    /* In the bindings: where the program's address is on the stack, in bytes from the frame of the recorded function.
     */
    bool bindings;
    ptrdiff_t offset;
} Kept;
static _Thread_local Kept kept[KEPT];

static Kept *look_up(const void *address) {
    Kept *found = &kept[((uintptr_t)address >> 2) % KEPT];
    if (found->address == address)
        return found;
    *found = (Kept){.address = address};
    Dl_info place;
    struct link_map *object;
    /* The return address of a call that ends its function is that of the next function. */
    uintptr_t call = (uintptr_t)address - 1;
    if (!address || !dladdr1((const void *)call, &place, (void **)&object, RTLD_DL_LINKMAP) || !place.dli_fname)
        return found;
    found->bindings = has_bindings(place.dli_fname);
    if (found->bindings)
        return found;
    /* The name of the program itself may be relative to another folder. */
    char program[PATH_MAX] = "", text[TEXT_BYTES];
    bool is_program = object->l_name[0] == '\0' && readlink("/proc/self/exe", program, sizeof program - 1) > 0;
    int length = snprintf(text, sizeof text, "%#zx %s %s", (size_t)(call - object->l_addr),
                          place.dli_sname && strlen(place.dli_sname) < sizeof text / 2 ? place.dli_sname : "-",
                          is_program ? program : place.dli_fname);
    found->number = length < (int)sizeof text ? text_number(text) : 0;
    return found;
}

typedef struct Walk {
    const void *from; /* the return address of the recorded function */
    bool begun;
    const void *site;
    const char *stored; /* where the site is on the stack; NULL: unknown */
} Walk;

/* Goes from frame to frame up to the first one after the bindings. */
static _Unwind_Reason_Code next_frame(struct _Unwind_Context *context, void *data) {
    Walk *walk = data;
    const void *address = (const void *)_Unwind_GetIP(context);
    walk->begun = walk->begun || address == walk->from;
    if (!walk->begun || look_up(address)->bindings)
        return _URC_NO_REASON;
    walk->site = address;
    /* A call on x86-64 pushes the return address; elsewhere the address need not be there. */
    const void **pushed = (const void **)_Unwind_GetCFA(context) - 1;
    if (*pushed == address)
        walk->stored = (const char *)pushed;
    return _URC_END_OF_STACK;
}

uint16_t site_number(const void *address, const void *frame) {
    Kept *found = look_up(address);
    if (!found->bindings)
        return found->number;
    /* Walking takes microseconds. The frames of the bindings have the same sizes in each call. */
    if (found->offset) {
        const void *site = *(const void *const *)((const char *)frame + found->offset);
        const Kept *known = &kept[((uintptr_t)site >> 2) % KEPT];
        if (site && known->address == site && known->number)
            return known->number;
    }
    Walk walk = {.from = address};
    _Unwind_Backtrace(next_frame, &walk);
    found->offset = walk.stored ? walk.stored - (const char *)frame : 0;
    return walk.site ? look_up(walk.site)->number : 0;
}
