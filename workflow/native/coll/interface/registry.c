#include "interface/registry.h"

/* The linker's names for the ends of the section that ANNOUNCE() fills. */
extern const struct family *const __start_coll_families[] __attribute__((visibility("hidden")));
extern const struct family *const __stop_coll_families[] __attribute__((visibility("hidden")));

const char *coll_name(enum coll_op kind) {
    static const char *const names[] = {
#define X(OP, name) #name,
        COLL_COLLECTIVES(X)
#undef X
    };
    return names[kind];
}

const char *coll_variable(enum coll_op kind) {
    static const char *const variables[] = {
#define X(OP, name) "COLL_" #OP,
        COLL_COLLECTIVES(X)
#undef X
    };
    return variables[kind];
}

const struct algorithm *coll_algorithm(enum coll_op kind, int i) {
    for (const struct family *const *family = __start_coll_families; family < __stop_coll_families; family++) {
        if ((*family)->kind != kind)
            continue;
        if (i < (*family)->n)
            return &(*family)->algorithms[i];
        i -= (*family)->n;
    }
    return NULL;
}
