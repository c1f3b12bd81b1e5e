#include "core/signature.h"
#include "core/message.h"

#include <limits.h>
#include <stdlib.h>

/* The basic elements of a type. */
struct signature {
    MPI_Datatype basic; /* MPI_BYTE if there are several */
    long long n;        /* number of basic elements in the type */
    long long bytes;    /* in the type */
    bool in_order;      /* the basic elements are contiguous and in this order in memory */
};

/* ---- the basic elements of a type ---- */

/* Returns whether a type is one of MPI's pairs. *of: the type of both elements, MPI_DATATYPE_NULL if they differ. */
static bool is_pair(MPI_Datatype type, MPI_Datatype *of) {
    const MPI_Datatype equal[][2] = {{MPI_2INT, MPI_INT},
                                     {MPI_2INTEGER, MPI_INTEGER},
                                     {MPI_2REAL, MPI_REAL},
                                     {MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION}};
    *of = MPI_DATATYPE_NULL;
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++)
        if (type == equal[i][0]) {
            *of = equal[i][1];
            return true;
        }
    return type == MPI_FLOAT_INT || type == MPI_DOUBLE_INT || type == MPI_LONG_INT || type == MPI_SHORT_INT ||
           type == MPI_LONG_DOUBLE_INT;
}

static bool is_named(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    return PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
           combiner == MPI_COMBINER_NAMED;
}

/* Returns whether a type has the uniform form already: all except derived types and MPI's pair types. */
static bool is_basic(MPI_Datatype type) {
    MPI_Datatype of;
    return is_named(type) && !is_pair(type, &of);
}

int coll_type_bytes(MPI_Datatype type, long long *bytes) {
#if COLL_SIMULATED
    int size;
    TRY(PMPI_Type_size(type, &size));
#else
    MPI_Count size;
    TRY(PMPI_Type_size_x(type, &size));
#endif
    *bytes = size;
    return MPI_SUCCESS;
}

/* Adds elements: if their type differs from *basic, *basic becomes MPI_BYTE. */
static void add_basic(MPI_Datatype type, MPI_Datatype *basic) {
    if (*basic == MPI_DATATYPE_NULL)
        *basic = type;
    else if (*basic != type)
        *basic = MPI_BYTE;
}

static int find_basic(MPI_Datatype type, MPI_Datatype *basic, bool *in_order);

static int find_in_parts(const int integers[], MPI_Datatype types[], int n, int combiner, MPI_Datatype *basic,
                         bool *in_order) {
    int rc = MPI_SUCCESS;
    *in_order = *in_order && (combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP);
    for (int i = 0; i < n; i++) {
        long long bytes = 0;
        /* A part with a count of 0 has no elements; only a structure has a count per part. */
        bool there = combiner != MPI_COMBINER_STRUCT || integers[i + 1] > 0;
        if (rc == MPI_SUCCESS)
            rc = coll_type_bytes(types[i], &bytes);
        if (rc == MPI_SUCCESS && there && bytes != 0)
            rc = find_basic(types[i], basic, in_order);
        if (!is_named(types[i]))
            (void)PMPI_Type_free(&types[i]);
    }
    return rc;
}

/* Sets *basic to the basic type of all elements, MPI_BYTE if there are several. Ignores types without elements. */
static int find_basic(MPI_Datatype type, MPI_Datatype *basic, bool *in_order) {
    int n_integers, n_addresses, n_types, combiner;
    MPI_Datatype of;
    TRY(PMPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner));
    if (is_pair(type, &of)) {
        add_basic(of == MPI_DATATYPE_NULL ? MPI_BYTE : of, basic);
        *in_order = *in_order && of != MPI_DATATYPE_NULL; /* pairs of two types have gaps */
        return MPI_SUCCESS;
    }
    if (combiner == MPI_COMBINER_NAMED || n_types == 0) {
        add_basic(type, basic);
        return MPI_SUCCESS;
    }
    int *integers = malloc(((size_t)n_integers + 1) * sizeof *integers);
    MPI_Aint *addresses = malloc(((size_t)n_addresses + 1) * sizeof *addresses);
    MPI_Datatype *types = malloc((size_t)n_types * sizeof(MPI_Datatype));
    int rc = MPI_ERR_NO_MEM;
    if (integers != NULL && addresses != NULL && types != NULL)
        rc = PMPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, types);
    if (rc == MPI_SUCCESS)
        rc = find_in_parts(integers, types, n_types, combiner, basic, in_order);
    free(integers);
    free(addresses);
    free(types);
    return rc;
}

static int signature_of(MPI_Datatype type, struct signature *signature) {
    long long each = 1;
    *signature = (struct signature){.basic = MPI_DATATYPE_NULL, .in_order = true};
    TRY(coll_type_bytes(type, &signature->bytes));
    TRY(find_basic(type, &signature->basic, &signature->in_order));
    if (signature->basic == MPI_DATATYPE_NULL)
        signature->basic = MPI_BYTE;
    if (signature->basic == MPI_BYTE)
        signature->in_order = false;
    TRY(coll_type_bytes(signature->basic, &each));
    signature->n = signature->bytes / each;
    return MPI_SUCCESS;
}

/* ---- a broadcast of these elements ---- */

/* Packs all elements of the call's buffer, or unpacks them if `back`. */
static int pack(const struct call *call, const struct signature *signature, char *packed, bool back) {
    struct extent extent;
    int at = 0, each = signature->bytes < PIECE ? (int)(PIECE / signature->bytes) : 1;
    if (signature->bytes > INT_MAX)
        return MPI_ERR_COUNT;
    TRY(coll_extent(call->type, &extent));
    for (long first = 0; first < call->count; first += each, at = 0) {
        int count = call->count - first < each ? (int)(call->count - first) : each;
        int bytes = (int)(signature->bytes * count);
        char *here = coll_at(call->recv, first, extent.extent), *there = packed + first * signature->bytes;
        TRY(back ? PMPI_Unpack(there, bytes, &at, here, count, call->type, call->comm)
                 : PMPI_Pack(here, count, call->type, there, bytes, &at, call->comm));
        if (at != bytes)
            return MPI_ERR_INTERN;
    }
    return MPI_SUCCESS;
}

/* A broadcast in the uniform form. */
struct uniform {
    struct call call; /* the call to run instead */
    char *packed;     /* NULL: the elements are in the caller's buffer */
};

static int start(const struct call *call, struct uniform *uniform) {
    struct signature signature;
    *uniform = (struct uniform){.call = *call};
    TRY(signature_of(call->type, &signature));
    if (signature.n > INT_MAX / call->count)
        return COLL_USE_DEFAULT;
    uniform->call.type = signature.basic;
    uniform->call.count = (int)(signature.n * call->count);
    if (signature.in_order)
        return MPI_SUCCESS;
    uniform->packed = malloc((size_t)signature.bytes * (size_t)call->count);
    if (uniform->packed == NULL)
        return MPI_ERR_NO_MEM;
    uniform->call.recv = uniform->packed;
    return call->rank == call->root ? pack(call, &signature, uniform->packed, false) : MPI_SUCCESS;
}

/* Frees memory and, if rc is MPI_SUCCESS, unpacks received elements into the caller's buffer. Returns the error. */
static int end(const struct call *call, struct uniform *uniform, int rc) {
    struct signature signature;
    if (rc == MPI_SUCCESS && uniform->packed != NULL && call->rank != call->root) {
        rc = signature_of(call->type, &signature);
        if (rc == MPI_SUCCESS)
            rc = pack(call, &signature, uniform->packed, true);
    }
    free(uniform->packed);
    return rc;
}

int coll_run_uniform(const struct call *call, algorithm_function *run) {
    struct uniform uniform = {.call = *call};
    if (is_basic(call->type))
        return run(&uniform.call);
    int rc = start(call, &uniform);
    if (rc == MPI_SUCCESS)
        rc = run(&uniform.call);
    return end(call, &uniform, rc);
}
