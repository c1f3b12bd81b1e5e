/* Datatypes and operations of collectives as texts, which are named as in the MPI standard, in lower case without MPI_.
 * Types that the program makes are `derived (8 B)`, with the bytes of their data, and `derived with gaps (8 B)` if
 * these are not contiguous in memory; its operations are `user`, or `user (not commutative)`. */
#include "calls.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The numbers of texts that were looked up before. Entries are added with the lock and read without. */
enum { KEPT = 256 };
typedef struct Kept {
    _Atomic int count;
    struct {
        uint64_t key;
        uint16_t number;
    } entries[KEPT];
} Kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint16_t find(const Kept *kept, uint64_t key) {
    for (int i = 0; i < kept->count; i++)
        if (kept->entries[i].key == key)
            return kept->entries[i].number;
    return 0;
}

static uint16_t keep(Kept *kept, uint64_t key, const char *text) {
    uint16_t number = text_number(text);
    pthread_mutex_lock(&lock);
    if (kept->count < KEPT) {
        kept->entries[kept->count].key = key;
        kept->entries[kept->count].number = number;
        kept->count++;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

/* Handles of predefined types, which are never freed. */
static Kept predefined;
/* Types of the program, whose handles may be used again: twice the bytes, and 1 if there are gaps. Those that find no
 * room are `derived` only. */
static Kept derived;

static bool is_predefined(MPI_Datatype type) {
    /* MPI 4 has this function for types that were made with counts of type MPI_Count; for others it works, too. */
    static int (*large)(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
    static _Atomic bool searched;
    int combiner, numbers[3];
    MPI_Count counts[4];
    if (!searched) {
        *(void **)&large = dlsym(RTLD_DEFAULT, "PMPI_Type_get_envelope_c");
        searched = true;
    }
    int code = large ? large(type, &counts[0], &counts[1], &counts[2], &counts[3], &combiner)
                     : PMPI_Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &combiner);
    return code == MPI_SUCCESS && combiner == MPI_COMBINER_NAMED;
}

static uint16_t predefined_number(MPI_Datatype type) {
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0;
    PMPI_Type_get_name(type, name, &length);
    char *text = strncmp(name, "MPI_", 4) == 0 ? name + 4 : name;
    /* In the table of calls, commas and semicolons separate. */
    for (char *c = text; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
    return keep(&predefined, (uint64_t)(uintptr_t)type, *text ? text : "unknown");
}

static uint16_t derived_number(MPI_Datatype type) {
    MPI_Count size = 0, lower, extent = 0, true_extent = 0;
    char text[64];
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lower, &extent);
    PMPI_Type_get_true_extent_x(type, &lower, &true_extent);
    bool gaps = extent != size || true_extent != size;
    uint64_t key = 2 * (uint64_t)size + gaps;
    uint16_t number = find(&derived, key);
    if (number)
        return number;
    if (derived.count == KEPT)
        return text_number("derived");
    snprintf(text, sizeof text, "derived %s(%lld B)", gaps ? "with gaps " : "", (long long)size);
    return keep(&derived, key, text);
}

uint16_t type_number(MPI_Datatype type) {
    uint16_t number = find(&predefined, (uint64_t)(uintptr_t)type);
    if (number)
        return number;
    return is_predefined(type) ? predefined_number(type) : derived_number(type);
}

/* A program may rename a predefined type, of which the name is then read before. */
EXPORT int MPI_Type_set_name(MPI_Datatype type, const char *name) {
    if (trace_is_open() && type != MPI_DATATYPE_NULL)
        type_number(type);
    return PMPI_Type_set_name(type, name);
}

uint16_t reduction_number(MPI_Op op) {
    static const struct {
        MPI_Op op;
        const char *name;
    } known[] = {
        {MPI_SUM, "sum"},   {MPI_MAX, "max"},   {MPI_MIN, "min"},       {MPI_PROD, "prod"},
        {MPI_LAND, "land"}, {MPI_BAND, "band"}, {MPI_LOR, "lor"},       {MPI_BOR, "bor"},
        {MPI_LXOR, "lxor"}, {MPI_BXOR, "bxor"}, {MPI_MAXLOC, "maxloc"}, {MPI_MINLOC, "minloc"},
    };
    enum { KNOWN = sizeof known / sizeof *known };
    static _Atomic uint16_t numbers[KNOWN + 2];
    int commutes = 1, i = 0;
    const char *text;
    while (i < KNOWN && known[i].op != op)
        i++;
    if (i == KNOWN) {
        PMPI_Op_commutative(op, &commutes);
        i += !commutes;
        text = commutes ? "user" : "user (not commutative)";
    } else {
        text = known[i].name;
    }
    if (!numbers[i])
        numbers[i] = text_number(text);
    return numbers[i];
}
