#include "interface/registry.h"
#include "algorithms.h"

static const struct algorithm algorithms[] = {
#define X(OP, name, run, keys, ...) {COLL_##OP, #name, run, keys, {__VA_ARGS__}},
    COLL_ALGORITHMS(X)
#undef X
};

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
    for (size_t row = 0; row < sizeof algorithms / sizeof *algorithms; row++)
        if (algorithms[row].kind == kind && i-- == 0)
            return &algorithms[row];
    return NULL;
}
