/* Program start, command line and the loop over message sizes. */
#include "../place/place.h"
#include "buffers.h"
#include "errors.h"
#include "measure.h"
#include "output.h"
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>

/* MPI returns errors instead of aborting: check_mpi() reports them with file and line. */
static struct world start_mpi(int *argc, char ***argv) {
    struct world world = {.comm = MPI_COMM_WORLD};
    MPI_CHECK(MPI_Init(argc, argv));
    MPI_CHECK(MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN));
    MPI_CHECK(MPI_Comm_rank(world.comm, &world.rank));
    MPI_CHECK(MPI_Comm_size(world.comm, &world.ranks));
    return world;
}

/* Returns false, with a message from rank 0, if this benchmark cannot run on this number of ranks. */
static bool enough_ranks(const struct world *world) {
    bool pairs = benchmark->exchange && benchmark->exchange->all_pairs;
    bool pair = benchmark->exchange && !pairs && !benchmark->exchange->each_pair;
    if (pair ? world->ranks == 2 : world->ranks >= 2 && !(pairs && world->ranks % 2))
        return true;
    if (world->rank == ROOT && pairs)
        complain("needs an even number of processes, started with %d", world->ranks);
    else if (world->rank == ROOT)
        complain("needs %s 2 processes, started with %d", pair ? "exactly" : "at least", world->ranks);
    return false;
}

/* Allocates one value per iteration if percentiles are requested; otherwise returns NULL. */
static double *allocate_samples(const struct setup *setup) {
    const struct options *options = &setup->options;
    if (options->percentile_count == 0)
        return NULL;
    int most =
        options->small.iterations > options->large.iterations ? options->small.iterations : options->large.iterations;
    double *samples = malloc(most * sizeof samples[0]);
    if (!samples)
        give_up("rank %d: cannot allocate the times of %d iterations; use fewer (-i) or no percentiles (-z)",
                setup->world.rank, most);
    return samples;
}

static void run_pairs(const struct setup *setup, size_t size) {
    int ranks = setup->world.ranks;
    double *pairs = NULL;
    if (setup->world.rank == ROOT && !(pairs = malloc((size_t)ranks * (size_t)ranks * sizeof pairs[0])))
        give_up("rank %d: cannot allocate the times of %d x %d ranks", ROOT, ranks, ranks);
    measure_pairs(setup, size, pairs);
    if (setup->world.rank == ROOT)
        print_pairs(&setup->options, size, pairs, ranks);
    free(pairs);
}

/* Measures one message size. Returns false if received data were wrong. */
static bool run_size(const struct setup *setup, size_t size) {
    if (benchmark->exchange && benchmark->exchange->each_pair) {
        run_pairs(setup, size);
        return true;
    }
    struct result result = {.size = size};
    fill_counts(&setup->world, size);
    if (benchmark->collective && benchmark->collective->start)
        measure_nonblocking(setup, &result);
    else if (setup->options.windows)
        measure_windows(setup, &result);
    else if (benchmark->collective)
        measure_collective(setup, &result);
    else
        measure_exchange(setup, &result);
    if (setup->world.rank == ROOT) {
        print_result(&setup->options, &result);
        if (result.wrong_bytes > 0)
            complain("data validation failed: %ld wrong bytes over all ranks and calls at message size %zu",
                     result.wrong_bytes, size);
    }
    return result.wrong_bytes == 0;
}

/* Measures all message sizes; stops at the first one with wrong data. */
static bool run_sizes(struct setup *setup) {
    if (!limit_sizes(&setup->world, &setup->options))
        return false;
    setup->buffers = allocate_buffers(&setup->world, &setup->options);
    setup->samples = allocate_samples(setup);
    allocate_counts(&setup->world);
    if (setup->world.rank == ROOT)
        print_header(&setup->options);
    bool valid = true;
    if (benchmark->sizeless)
        valid = run_size(setup, 0);
    else
        for (size_t size = setup->options.min_size; valid && size <= setup->options.max_size;
             size *= setup->options.size_factor)
            valid = run_size(setup, size);
    free(setup->samples);
    free_counts(&setup->world);
    free_buffers(&setup->buffers);
    return valid;
}

static bool serve(enum request request, struct setup *setup) {
    bool first = setup->world.rank == ROOT;
    bool turns = setup->options.turn_count > 0;
    switch (request) {
    case REQUEST_HELP:
        if (first)
            print_help();
        return true;
    case REQUEST_VERSION:
        if (first)
            printf("collbench %s\n", COLLBENCH_VERSION);
        return true;
    case REQUEST_RUN:
        if (setup->options.place)
            print_place(setup->world.rank, setup->world.ranks);
        return enough_ranks(&setup->world) && (turns ? take_turns(setup, run_sizes) : run_sizes(setup));
    default:
        return false;
    }
}

int main(int argc, char *argv[]) {
    benchmark = find_benchmark(NULL);
    struct setup setup = {.world = start_mpi(&argc, &argv)};
    enum request request = parse_options(argc, argv, setup.world.rank == ROOT, &setup.options);
    bool good = serve(request, &setup);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("cannot write to standard output");
        good = false;
    }
    MPI_CHECK(MPI_Finalize());
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
