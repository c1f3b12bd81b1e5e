/* Start and end of the library, in MPI_Init and MPI_Finalize: settings are read, compared between ranks and freed. */
/* All other symbols are hidden by a compiler option. MPICH's header, unlike Open MPI's, does not make these visible. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include "core/cache.h"
#include "core/counters.h"
#include "core/host.h"
#include "core/message.h"
#include "core/placement.h"
#include "core/settings.h"
#include "interface/registry.h"
#include "interface/select.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends all ranks; one of them reports the reason. */
static int stop(const char *wrong, int reporter) {
    int rank;
    TRY(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == reporter)
        fprintf(stderr, "libcollstudy: %s\n", wrong);
    TRY(PMPI_Barrier(MPI_COMM_WORLD));
    if (COLL_SIMULATED) /* in the simulator MPI_Abort ends with exit status 0 */
        exit(2);
    return PMPI_Abort(MPI_COMM_WORLD, 2);
}

/* Ranks that choose different algorithms deadlock: report it instead. */
static int check_same_settings(void) {
    unsigned mine[2], most[2];
    mine[0] = coll_select_digest();
    mine[1] = ~mine[0];
    TRY(PMPI_Allreduce(mine, most, 2, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD));
    if (most[0] == ~most[1])
        return MPI_SUCCESS;
    return stop(
        "the COLL_ variables differ between ranks; set them on all ranks, for instance with mpirun -x COLL_BCAST", 0);
}

/* The lowest rank with an error reports it: a file may be missing on some ranks only. */
static int check_all_ranks(const char *wrong) {
    int rank, size, first, listed = coll_group_of_host() != NULL, any = 0;
    char message[256];
    TRY(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    TRY(PMPI_Comm_size(MPI_COMM_WORLD, &size));
    int mine = wrong == NULL ? size : rank;
    TRY(PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (first < size)
        return stop(wrong, first);
    if (!coll_groups_are_given())
        return MPI_SUCCESS;
    TRY(PMPI_Allreduce(&listed, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
    snprintf(message, sizeof message, "COLL_GROUPS: lists none of the hosts of this program, such as %.100s",
             coll_host());
    return any ? MPI_SUCCESS : stop(message, 0);
}

/*
 * Open MPI can deadlock when several threads create communicators at the same time: in comm_cid.c (5.0.11) a process
 * advances only its lowest communicator, which may wait for another process that waits for this one. Collectives of a
 * program whose threads create communicators must not create more of them. So if there may be such threads, the library
 * creates its communicator for MPI_COMM_WORLD now, and none later.
 */
static int freeze_with_threads(void) {
#ifdef OPEN_MPI
    int mine, most, size;
    struct cache *cache;
    TRY(PMPI_Query_thread(&mine));
    TRY(PMPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    TRY(PMPI_Comm_size(MPI_COMM_WORLD, &size));
    if (most < MPI_THREAD_MULTIPLE || coll_creates() || size == 1)
        return MPI_SUCCESS;
    TRY(coll_cache_get(MPI_COMM_WORLD, &cache));
    TRY(coll_placement(cache));
    coll_cache_freeze();
#endif
    return MPI_SUCCESS;
}

/* The simulator does not compare ranks: all have one environment and see the same files, and messages take time. */
static int start(void) {
    const char *wrong = coll_select_init();
    if (wrong == NULL && !coll_host_init())
        wrong = coll_what_is_wrong();
    if (!COLL_SIMULATED) {
        TRY(check_same_settings());
        TRY(check_all_ranks(wrong));
    } else if (wrong != NULL) {
        return stop(wrong, 0);
    }
    TRY(coll_operations_init());
    TRY(coll_cache_init());
    return freeze_with_threads();
}

int MPI_Init(int *argc, char ***argv) {
    TRY(PMPI_Init(argc, argv));
    return start();
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    TRY(PMPI_Init_thread(argc, argv, required, provided));
    return start();
}

static void print_report(const struct counters *most) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (most->calls[kind] > 0)
            fprintf(stderr, "libcollstudy: %s: %ld calls, %ld left to the MPI library (%ld above the memory limit)\n",
                    coll_name((enum coll_op)kind), most->calls[kind], most->left[kind], most->above_limit[kind]);
    fprintf(stderr, "libcollstudy: set-up of communicators: %ld times, %.6f s in total (not part of the algorithms)\n",
            most->setups, (double)most->setup_nanoseconds * 1e-9);
}

/* Reports the maximum over ranks of each counter. */
static int report(void) {
    struct counters mine = coll_counters(), most;
    int rank;
    TRY(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    TRY(PMPI_Reduce(&mine, &most, (int)(sizeof mine / sizeof(long)), MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0)
        print_report(&most);
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    if (coll_verbose())
        TRY(report());
    TRY(coll_cache_free());
    TRY(coll_operations_free());
    coll_select_free();
    coll_host_free();
    return PMPI_Finalize();
}
