/* Replays a trace in the simulator: the ranks of this program make the calls of the traced ranks, with the same
 * arguments and in the same order, and compute as long as these did.
 *
 *     smpirun ... replay FOLDER RANKS
 *
 * FOLDER has rank-000000.actions, ... of RANKS traced ranks (launch/actions.py writes them). The program may have any
 * multiple of RANKS ranks; then the traced application is copied side by side:
 *   - rank r does what traced rank r mod RANKS did, in copy r div RANKS;
 *   - a communicator of all traced ranks becomes one of all ranks; any other one becomes one in each copy;
 *   - every call keeps its arguments: bytes per rank are the same, totals of all-to-all grow with the ranks (weak
 *     scaling), and lists of block sizes are repeated;
 *   - a point-to-point message to a higher rank stays in its copy, one to a lower rank goes to the next copy (from the
 *     last to the first), like messages across the border of a periodic domain when domains are put side by side. An
 *     order of calls in which the traced ranks ended is one in which the copies end, so the rule cannot cause a
 *     deadlock;
 *   - copy c computes before a call as long as the traced rank did at the same site of the program c times later
 *     (after the last time, the first one follows). With the same times, the copies of a rank would arrive together.
 *
 * An action is 13 + n numbers of 64 bits: operation, communicator (0: MPI_COMM_WORLD; -1: MPI_COMM_SELF), root, to,
 * from, send tag, receive tag, bytes sent, bytes received, request, nanoseconds of computation before the call, the
 * place of the nanoseconds of the next computation at the same site of the program (of the first one after the last
 * one), n; then n numbers: bytes of blocks, or numbers of requests. FOLDER/communicators has for each communicator but
 * MPI_COMM_WORLD: number of members, members.
 *
 * With COLLSTUDY_CALLS=OUT every rank writes OUT/rank-000000.calls, one line per collective (launch/replay.py names the
 * columns), and a line of OUT/ranks.csv: rank, microseconds of computing, in point-to-point calls and in collectives,
 * and the end of its last call. */
#include "replay.h"

#include "../trace/operations.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <simgrid/host.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of rows that a rank keeps in memory. */
enum { room_for_calls = 1 << 16 };

void fail(const char *what, const char *where) {
    fprintf(stderr, "replay: %s%s%s\n", where ? where : "", where ? ": " : "", what);
    _Exit(1); /* in the simulator MPI_Abort ends with exit status 0 */
}

static void *get(size_t count, size_t size) {
    void *room = calloc(count ? count : 1, size);
    if (!room)
        fail("out of memory", NULL);
    return room;
}

static Numbers map_numbers(const char *folder, const char *name) {
    char path[4096];
    struct stat state;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &state) != 0)
        fail("cannot be read", path);
    Numbers numbers = {0};
    if (state.st_size > 0) {
        numbers.first = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_SHARED, file, 0);
        if (numbers.first == MAP_FAILED)
            fail("cannot be mapped", path);
        numbers.end = numbers.first + state.st_size / 8;
    }
    close(file);
    return numbers;
}

static const char *const names[] = {"compute",
#define X(name) #name,
                                    TRACE_OPERATIONS(X)
#undef X
};

/* Reports the current operation to the traffic log, if there is one: a function of the platform's library, which is
 * loaded but whose symbols are not visible here. */
static void (*enter)(int rank, int operation);

static void find_log(void) {
    const char *path = getenv("COLLSTUDY_PLATFORM_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void (*register_names)(const char *const *, int, int, int) = NULL;
    if (library) {
        *(void **)&enter = dlsym(library, "traffic_enter");
        *(void **)&register_names = dlsym(library, "traffic_operations");
    }
    if (register_names)
        register_names(names, OP_COUNT, OP_FIRST_COLLECTIVE, OP_COUNT - 1);
}

static void note(const Replay *replay, int operation) {
    if (enter)
        enter(replay->rank, operation);
}

static const Action *next(const Action *action) {
    return (const Action *)(const void *)(action->list + action->listed);
}

static void make_communicators(Replay *replay) {
    Numbers numbers = map_numbers(replay->folder, "communicators");
    replay->communicators = 1;
    for (const int64_t *at = numbers.first; at < numbers.end; at += 1 + *at)
        replay->communicators++;
    replay->collective_comm = get((size_t)replay->communicators, sizeof(MPI_Comm));
    replay->message_comm = get((size_t)replay->communicators, sizeof(MPI_Comm));
    replay->has_all_ranks = get((size_t)replay->communicators, sizeof(bool));
    replay->members = get((size_t)replay->communicators, sizeof(int));
    replay->collective_comm[0] = replay->message_comm[0] = MPI_COMM_WORLD;
    replay->has_all_ranks[0] = true;
    replay->members[0] = replay->traced_size;
    const int64_t *at = numbers.first;
    for (int i = 1; i < replay->communicators; i++, at += 1 + *at) {
        int place = -1, count = (int)*at;
        for (int m = 0; m < count; m++)
            if (at[1 + m] == replay->traced_rank)
                place = m;
        replay->has_all_ranks[i] = count == replay->traced_size;
        replay->members[i] = count;
        int color = place < 0 ? MPI_UNDEFINED : replay->has_all_ranks[i] ? 0 : replay->copy;
        MPI_Comm_split(MPI_COMM_WORLD, color, replay->copy * count + place, &replay->collective_comm[i]);
        /* Messages use ranks of MPI_COMM_WORLD; only their context differs. */
        MPI_Comm_dup(MPI_COMM_WORLD, &replay->message_comm[i]);
    }
}

/* Allocates the buffers and requests that the actions need. */
static void make_room(Replay *replay) {
    int64_t out = 1, in = 1, requests = 0, buffered = 0;
    const Action *end = (const Action *)(const void *)replay->actions.end;
    for (const Action *a = (const Action *)(const void *)replay->actions.first; a < end; a = next(a)) {
        int64_t factor = a->operation >= OP_FIRST_COLLECTIVE ? replay->copies : 1;
        if (a->sent * factor > out)
            out = a->sent * factor;
        if (a->received * factor > in)
            in = a->received * factor;
        if (a->request > requests)
            requests = a->request;
        buffered += a->operation == OP_bsend || a->operation == OP_ibsend;
    }
    /* All ranks share the memory of the buffers: contents do not matter, and the simulator does not copy them. */
    replay->out = SMPI_SHARED_MALLOC((size_t)(out > in ? out : in));
    replay->in = SMPI_SHARED_MALLOC((size_t)(out > in ? out : in));
    replay->requests = get((size_t)requests + 1, sizeof(MPI_Request));
    for (int64_t i = 0; i <= requests; i++)
        replay->requests[i] = MPI_REQUEST_NULL;
    replay->buffered = get((size_t)buffered, sizeof(MPI_Request));
    for (int side = 0; side < 2; side++) {
        replay->counts[side] = get((size_t)replay->size, sizeof(int));
        replay->places[side] = get((size_t)replay->size, sizeof(int));
    }
}

static FILE *open_in(const char *folder, const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (!file)
        fail("cannot be written", path);
    return file;
}

/* Lets the collectives library set up communicators before the start; an MPI library's tuning file needs none. */
static void set_up(const Replay *replay) {
    double out = 0, in = 0;
    for (int i = 0; i < replay->communicators; i++) {
        if (replay->collective_comm[i] == MPI_COMM_NULL)
            continue;
        MPI_Bcast(&out, 1, MPI_DOUBLE, 0, replay->collective_comm[i]);
        MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, replay->collective_comm[i]);
    }
}

/* Returns one instant for all ranks, from which their times count. */
static double common_start(void) {
    double mine = MPI_Wtime(), last = mine;
    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last;
}

static void open_calls(Replay *replay) {
    replay->calls = open_memstream(&replay->text, &replay->length);
    if (!replay->calls)
        fail("out of memory", NULL);
}

/* Appends the rows to the rank's file: with thousands of ranks, a process may not keep a file open for each. */
static void store_calls(Replay *replay, const char *folder) {
    char name[64];
    snprintf(name, sizeof name, "rank-%06d.calls", replay->rank);
    bool made = fclose(replay->calls) == 0;
    FILE *file = open_in(folder, name, "a");
    bool written = fwrite(replay->text, 1, replay->length, file) == replay->length;
    if (fclose(file) != 0 || !made || !written)
        fail("cannot be written", folder);
    free(replay->text);
}

/* A communicator of some ranks is a separate one in each copy. The bytes of an all-to-all grow with the ranks. */
static void write_call(Replay *replay, const Action *a, double start, double end) {
    int ranks = 1, number = (int)a->communicator, traced = 1;
    if (number >= 0) {
        MPI_Comm_size(replay->collective_comm[number], &ranks);
        traced = replay->members[number];
        if (!replay->has_all_ranks[number])
            number += replay->copy * replay->communicators;
    }
    bool all_to_all = strstr(names[a->operation], "alltoall") != NULL;
    int64_t factor = all_to_all ? ranks / traced : 1;
    fprintf(replay->calls, "%d,%s,%.4f,%.4f,%d,%d,%lld,%lld\n", replay->rank, names[a->operation],
            (start - replay->started) * 1e6, (end - replay->started) * 1e6, number, ranks,
            (long long)(a->sent * factor), (long long)(a->received * factor));
    if (ftell(replay->calls) < room_for_calls)
        return;
    store_calls(replay, getenv("COLLSTUDY_CALLS"));
    open_calls(replay);
}

static void close_calls(Replay *replay, const char *folder, double end) {
    store_calls(replay, folder);
    FILE *ranks = open_in(folder, "ranks.csv", "a");
    fprintf(ranks, "%d,%.4f,%.4f,%.4f,%.4f\n", replay->rank, replay->spent[0] * 1e6, replay->spent[1] * 1e6,
            replay->spent[2] * 1e6, (end - replay->started) * 1e6);
    if (fclose(ranks) != 0)
        fail("cannot be written", folder);
}

/* Reads the arguments and the trace. */
static Replay open_replay(int argc, char **argv) {
    Replay replay = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &replay.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &replay.size);
    if (argc != 3)
        fail("usage: replay FOLDER RANKS", NULL);
    replay.folder = argv[1];
    replay.traced_size = atoi(argv[2]);
    if (replay.traced_size < 1 || replay.size % replay.traced_size != 0)
        fail("the number of ranks must be a multiple of the trace's", argv[2]);
    replay.copies = replay.size / replay.traced_size;
    replay.copy = replay.rank / replay.traced_size;
    replay.traced_rank = replay.rank % replay.traced_size;
    replay.speed = sg_host_get_speed(sg_host_self());
    char name[64];
    snprintf(name, sizeof name, "rank-%06d.actions", replay.traced_rank);
    replay.actions = map_numbers(replay.folder, name);
    make_communicators(&replay);
    make_room(&replay);
    return replay;
}

/* Executes all actions; returns the time at which the last one ended. */
static double act(Replay *replay) {
    double at = replay->started;
    const Action *end = (const Action *)(const void *)replay->actions.end;
    for (const Action *a = (const Action *)(const void *)replay->actions.first; a < end; a = next(a)) {
        const int64_t *computed = &a->compute_ns;
        for (int copy = 0; copy < replay->copy; copy++)
            computed = replay->actions.first + computed[1];
        if (*computed > 0)
            smpi_execute_flops((double)*computed * 1e-9 * replay->speed);
        double start = MPI_Wtime();
        bool is_collective = a->operation >= OP_FIRST_COLLECTIVE;
        note(replay, (int)a->operation);
        if (is_collective)
            collective(replay, a);
        else
            point_to_point(replay, a);
        note(replay, 0);
        replay->spent[0] += start - at;
        at = MPI_Wtime();
        replay->spent[is_collective ? 2 : 1] += at - start;
        if (replay->calls && is_collective)
            write_call(replay, a, start, at);
    }
    return at;
}

/* Waits for the sends for which the program did not wait: the simulator drops those of a rank that has ended. */
static void complete_sends(Replay *replay) {
    const Action *end = (const Action *)(const void *)replay->actions.end;
    for (const Action *a = (const Action *)(const void *)replay->actions.first; a < end; a = next(a))
        if ((a->operation == OP_isend || a->operation == OP_issend || a->operation == OP_irsend) &&
            replay->requests[a->request] != MPI_REQUEST_NULL)
            MPI_Wait(&replay->requests[a->request], MPI_STATUS_IGNORE);
    for (int64_t i = 0; i < replay->buffered_count; i++)
        MPI_Wait(&replay->buffered[i], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Replay replay = open_replay(argc, argv);
    const char *calls = getenv("COLLSTUDY_CALLS");
    if (calls)
        set_up(&replay);
    MPI_Barrier(MPI_COMM_WORLD);
    replay.started = calls ? common_start() : MPI_Wtime();
    if (calls)
        open_calls(&replay);
    find_log();
    note(&replay, 0);
    double end = act(&replay);
    if (calls)
        close_calls(&replay, calls, end);
    note(&replay, -1);
    if (!enter && replay.rank == 0)
        printf("makespan_us=%.3f (of rank 0)\n", (MPI_Wtime() - replay.started) * 1e6);
    complete_sends(&replay);
    MPI_Finalize();
    return 0;
}
