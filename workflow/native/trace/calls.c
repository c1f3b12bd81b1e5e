/* Start and end of the program, and the functions that create communicators. */
#include "calls.h"

static void started(void) {
    int rank, size;
    MPI_Comm parent;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        /* Spawned processes have an MPI_COMM_WORLD of their own, whose ranks have the numbers of the traced ones. */
        trace_mark("spawned");
        return;
    }
    trace_open(rank, size);
    ran_open();
    communicator_id(MPI_COMM_WORLD);
    communicator_id(MPI_COMM_SELF);
    /* The ranks' time origins agree to within the duration of a barrier. */
    PMPI_Barrier(MPI_COMM_WORLD);
    trace_set_origin();
    Call call = trace_enter();
    Record record = blank(OP_init);
    trace_leave(&call, &record, NULL, 0);
}

EXPORT int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        started();
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        started();
    return code;
}

EXPORT int MPI_Finalize(void) {
    Call call = trace_enter();
    Record record = blank(OP_finalize);
    trace_leave(&call, &record, NULL, 0);
    trace_close();
    return PMPI_Finalize();
}

/* Spawned ranks are not traced (see started()). */
EXPORT int MPI_Comm_spawn(const char *command, char *words[], int ranks, MPI_Info info, int root, MPI_Comm comm,
                          MPI_Comm *created, int errors[]) {
    trace_mark("spawned");
    return PMPI_Comm_spawn(command, words, ranks, info, root, comm, created, errors);
}

EXPORT int MPI_Comm_spawn_multiple(int count, char *commands[], char **words[], const int ranks[],
                                   const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *created, int errors[]) {
    trace_mark("spawned");
    return PMPI_Comm_spawn_multiple(count, commands, words, ranks, infos, root, comm, created, errors);
}

/* Most algorithms of reductions give wrong results with operations that do not commute. */
EXPORT int MPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op) {
    if (!commutes)
        trace_mark("ordered");
    return PMPI_Op_create(function, commutes, op);
}

#if MPI_VERSION >= 4
EXPORT int MPI_Op_create_c(MPI_User_function_c *function, int commutes, MPI_Op *op) {
    if (!commutes)
        trace_mark("ordered");
    return PMPI_Op_create_c(function, commutes, op);
}
#endif

/* Communicators -------------------------------------------------------------------------------------------------- */

/* Defines a function that creates a communicator, which is recorded; messages of the MPI library for it are not. */
#define COMMUNICATOR(NAME, PARAMETERS, ARGUMENTS)                                                                      \
    EXPORT int MPI_##NAME PARAMETERS {                                                                                 \
        int code = PMPI_##NAME ARGUMENTS;                                                                              \
        if (code == MPI_SUCCESS && trace_is_open())                                                                    \
            communicator_created(*created);                                                                            \
        return code;                                                                                                   \
    }

COMMUNICATOR(Comm_dup, (MPI_Comm comm, MPI_Comm *created), (comm, created))
COMMUNICATOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *created), (comm, info, created))
COMMUNICATOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *created), (comm, color, key, created))
COMMUNICATOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *created),
             (comm, type, key, info, created))
COMMUNICATOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *created), (comm, group, created))
COMMUNICATOR(Cart_create,
             (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm *created),
             (comm, dimensions, sizes, periods, reorder, created))
COMMUNICATOR(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *created), (comm, remain, created))
COMMUNICATOR(Graph_create,
             (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *created),
             (comm, nodes, index, edges, reorder, created))
COMMUNICATOR(Dist_graph_create_adjacent,
             (MPI_Comm comm, int in, const int from[], const int in_weights[], int out, const int to[],
              const int out_weights[], MPI_Info info, int reorder, MPI_Comm *created),
             (comm, in, from, in_weights, out, to, out_weights, info, reorder, created))
COMMUNICATOR(Dist_graph_create,
             (MPI_Comm comm, int count, const int from[], const int degrees[], const int to[], const int weights[],
              MPI_Info info, int reorder, MPI_Comm *created),
             (comm, count, from, degrees, to, weights, info, reorder, created))
COMMUNICATOR(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *created),
             (comm, group, tag, created))
COMMUNICATOR(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *created), (comm, high, created))

/* Defines a function that begins to duplicate a communicator. */
#define DUPLICATE(NAME, PARAMETERS, ARGUMENTS)                                                                         \
    EXPORT int MPI_##NAME PARAMETERS {                                                                                 \
        if (!is_followed(comm))                                                                                        \
            return PMPI_##NAME ARGUMENTS;                                                                              \
        communicator_duplicating(comm, true);                                                                          \
        int code = PMPI_##NAME ARGUMENTS;                                                                              \
        communicator_duplicating(comm, false);                                                                         \
        return code;                                                                                                   \
    }

DUPLICATE(Comm_idup, (MPI_Comm comm, MPI_Comm *created, MPI_Request *request), (comm, created, request))

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
DUPLICATE(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *created, MPI_Request *request),
          (comm, info, created, request))
COMMUNICATOR(Comm_create_from_group,
             (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *created),
             (group, tag, info, handler, created))
#endif
