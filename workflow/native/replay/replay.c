/* Replay a trace in the simulator: the ranks of this program make the calls of the traced ranks, with the same
 * arguments and in the same order, and compute as long as these did.
 *
 *     smpirun ... replay FOLDER RANKS
 *
 * FOLDER has rank-000000.actions, ... of RANKS traced ranks (launch/actions.py writes them). The program
 * may have any multiple of RANKS ranks; then the traced application is copied side by side:
 *   - rank r does what traced rank r mod RANKS did, in copy r div RANKS;
 *   - a communicator of all traced ranks becomes one of all ranks; any other one becomes one in each copy;
 *   - every call keeps its arguments: bytes for each rank stay, totals of all-to-all grow with the ranks (weak
 * scaling); lists of block sizes are repeated;
 *   - a point-to-point message to a higher rank stays in its copy, one to a lower rank goes to the next copy (around
 * the last), as messages across the border of a periodic domain do when domains are put side by side. An order of calls
 * in which the traced ranks ended is one in which the copies end, so the rule cannot make a deadlock.
 *
 * An action is 12 + n numbers of 64 bits: operation, communicator (0: MPI_COMM_WORLD; -1: MPI_COMM_SELF), root, to,
 * from, send tag, receive tag, bytes sent, bytes received, request, nanoseconds of computation before the call, n; then
 * n numbers: bytes of blocks, or numbers of requests. FOLDER/communicators has for each communicator but
 * MPI_COMM_WORLD: number of members, members.
 *
 * With COLLSTUDY_CALLS=OUT every rank writes OUT/rank-000000.calls, one line per collective (launch/replay.py names the
 * columns), and a line of OUT/ranks.csv: rank, microseconds of computing, in point-to-point calls and in collectives,
 * and the end of its last call. */
#include "../trace/operations.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <simgrid/host.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Action {
    int64_t operation, communicator, root, to, from, send_tag, receive_tag, sent, received, request, compute_ns, listed;
    int64_t list[];
} Action;

typedef struct Numbers {
    const int64_t *first, *end;
} Numbers;

typedef struct Replay {
    int rank, size, traced_size, copy, traced_rank, copies;
    const char *folder;
    Numbers actions;
    int communicators;
    MPI_Comm *collective, *messages; /* by communicator */
    bool *everybody;                 /* whether a communicator has all ranks */
    int *members;                    /* traced members of a communicator */
    MPI_Request *requests;
    char *out, *in;
    int *counts[2], *places[2];
    double speed, started;
    FILE *calls;
    double spent[3]; /* seconds: computing, point to point, collectives */
} Replay;

static void fail(const char *what, const char *where) {
    fprintf(stderr, "replay: %s: %s\n", where, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *get(size_t count, size_t size) {
    void *room = calloc(count ? count : 1, size);
    if (!room)
        fail("out of memory", "replay");
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

/* What is being done, for the log of the traffic: the platform's library is in this process, but its names are not
 * ours. */
static void (*enter)(int rank, int operation);

static void find_log(void) {
    const char *path = getenv("COLLSTUDY_PLATFORM_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void (*name_them)(const char *const *, int, int, int) = NULL;
    if (library) {
        *(void **)&enter = dlsym(library, "traffic_enter");
        *(void **)&name_them = dlsym(library, "traffic_operations");
    }
    if (name_them)
        name_them(names, OP_COUNT, OP_FIRST_COLLECTIVE, OP_COUNT - 1);
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
    replay->collective = get((size_t)replay->communicators, sizeof(MPI_Comm));
    replay->messages = get((size_t)replay->communicators, sizeof(MPI_Comm));
    replay->everybody = get((size_t)replay->communicators, sizeof(bool));
    replay->members = get((size_t)replay->communicators, sizeof(int));
    replay->collective[0] = replay->messages[0] = MPI_COMM_WORLD;
    replay->everybody[0] = true;
    replay->members[0] = replay->traced_size;
    const int64_t *at = numbers.first;
    for (int i = 1; i < replay->communicators; i++, at += 1 + *at) {
        int place = -1, count = (int)*at;
        for (int m = 0; m < count; m++)
            if (at[1 + m] == replay->traced_rank)
                place = m;
        replay->everybody[i] = count == replay->traced_size;
        replay->members[i] = count;
        int color = place < 0 ? MPI_UNDEFINED : replay->everybody[i] ? 0 : replay->copy;
        MPI_Comm_split(MPI_COMM_WORLD, color, replay->copy * count + place, &replay->collective[i]);
        /* Messages go by ranks of MPI_COMM_WORLD; only their context is another one. */
        MPI_Comm_dup(MPI_COMM_WORLD, &replay->messages[i]);
    }
}

/* Sizes of buffers and the number of requests, from all actions. */
static void make_room(Replay *replay) {
    int64_t out = 1, in = 1, requests = 0;
    const Action *end = (const Action *)(const void *)replay->actions.end;
    for (const Action *a = (const Action *)(const void *)replay->actions.first; a < end; a = next(a)) {
        int64_t factor = a->operation >= OP_FIRST_COLLECTIVE ? replay->copies : 1;
        if (a->sent * factor > out)
            out = a->sent * factor;
        if (a->received * factor > in)
            in = a->received * factor;
        if (a->request > requests)
            requests = a->request;
    }
    /* All ranks have the same memory as buffers: what is in them does not matter, and the simulator does not copy it.
     */
    replay->out = SMPI_SHARED_MALLOC((size_t)(out > in ? out : in));
    replay->in = SMPI_SHARED_MALLOC((size_t)(out > in ? out : in));
    replay->requests = get((size_t)requests + 1, sizeof(MPI_Request));
    for (int64_t i = 0; i <= requests; i++)
        replay->requests[i] = MPI_REQUEST_NULL;
    for (int side = 0; side < 2; side++) {
        replay->counts[side] = get((size_t)replay->size, sizeof(int));
        replay->places[side] = get((size_t)replay->size, sizeof(int));
    }
}

/* The rank that stands for a traced rank; `lower`: where the message's target is below its source. */
static int partner(const Replay *replay, int64_t traced, bool is_target) {
    if (traced < 0)
        return traced == -1 ? MPI_ANY_SOURCE : MPI_PROC_NULL;
    bool lower = is_target ? traced < replay->traced_rank : replay->traced_rank < traced;
    int copy = replay->copy;
    if (lower)
        copy = is_target ? copy + 1 : copy - 1 + replay->copies;
    return (copy % replay->copies) * replay->traced_size + (int)traced;
}

static int bounded(int64_t bytes) {
    if (bytes > INT32_MAX)
        fail("a message of more than 2 GiB", "replay");
    return (int)bytes;
}

/* Block sizes of a list of traced ranks, repeated for the ranks of `comm`. */
static void blocks(Replay *replay, const Action *action, int64_t offset, int side, MPI_Comm comm) {
    int size, members = replay->members[action->communicator];
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        replay->counts[side][i] = bounded(action->list[offset + i % members]);
        replay->places[side][i] = 0; /* one place for all: contents do not matter */
    }
}

static void point_to_point(Replay *replay, const Action *a) {
    MPI_Comm comm = replay->messages[a->communicator < 0 ? 0 : a->communicator];
    int to = a->to == -1 ? MPI_PROC_NULL : partner(replay, a->to, true), from = partner(replay, a->from, false);
    int sent = bounded(a->sent), received = bounded(a->received);
    int send_tag = (int)a->send_tag, receive_tag = a->receive_tag == -1 ? MPI_ANY_TAG : (int)a->receive_tag;
    MPI_Request *request = &replay->requests[a->request];
    if (a->communicator < 0)
        to = from = replay->rank;
    switch (a->operation) {
    case OP_send:
    case OP_rsend:
        MPI_Send(replay->out, sent, MPI_BYTE, to, send_tag, comm);
        break;
    case OP_ssend:
        MPI_Ssend(replay->out, sent, MPI_BYTE, to, send_tag, comm);
        break;
    case OP_bsend: { /* it returns at once; nobody waits for it */
        MPI_Request mine;
        MPI_Isend(replay->out, sent, MPI_BYTE, to, send_tag, comm, &mine);
        MPI_Request_free(&mine);
        break;
    }
    case OP_recv:
        MPI_Recv(replay->in, received, MPI_BYTE, from, receive_tag, comm, MPI_STATUS_IGNORE);
        break;
    case OP_sendrecv:
        MPI_Sendrecv(replay->out, sent, MPI_BYTE, to, send_tag, replay->in, received, MPI_BYTE, from, receive_tag, comm,
                     MPI_STATUS_IGNORE);
        break;
    case OP_isend:
    case OP_irsend:
    case OP_ibsend:
        MPI_Isend(replay->out, sent, MPI_BYTE, to, send_tag, comm, request);
        break;
    case OP_issend:
        MPI_Issend(replay->out, sent, MPI_BYTE, to, send_tag, comm, request);
        break;
    case OP_irecv:
        MPI_Irecv(replay->in, received, MPI_BYTE, from, receive_tag, comm, request);
        break;
    case OP_wait:
    case OP_test: {
        MPI_Request ended[64];
        for (int64_t done = 0; done < a->listed;) {
            int n = 0;
            for (; n < 64 && done < a->listed; n++, done++) {
                ended[n] = replay->requests[a->list[done]];
                replay->requests[a->list[done]] = MPI_REQUEST_NULL;
            }
            MPI_Waitall(n, ended, MPI_STATUSES_IGNORE);
        }
        break;
    }
    }
}

/* Reductions are of doubles where the bytes allow it: algorithms look at the number of elements. */
static MPI_Datatype element(int64_t bytes) {
    return bytes % 8 == 0 ? MPI_DOUBLE : MPI_BYTE;
}

static int elements(int64_t bytes) {
    return bounded(bytes % 8 == 0 ? bytes / 8 : bytes);
}

static MPI_Op operator(int64_t bytes) {
    return bytes % 8 == 0 ? MPI_SUM : MPI_BOR;
}

/* Collectives to which each rank may contribute another number of bytes. */
static void collective_of_blocks(Replay *replay, const Action *a, MPI_Comm comm, int traced) {
    int root = (int)a->root, me;
    char *out = replay->out, *in = replay->in;
    int *out_counts = replay->counts[0], *in_counts = replay->counts[1];
    int *out_places = replay->places[0], *in_places = replay->places[1];
    MPI_Request *request = &replay->requests[a->request];
    MPI_Comm_rank(comm, &me);
    switch (a->operation) {
    case OP_gatherv:
        if (me == root)
            blocks(replay, a, 0, 1, comm);
        MPI_Gatherv(out, bounded(a->sent), MPI_BYTE, in, in_counts, in_places, MPI_BYTE, root, comm);
        break;
    case OP_scatterv:
        if (me == root)
            blocks(replay, a, 0, 0, comm);
        MPI_Scatterv(out, out_counts, out_places, MPI_BYTE, in, bounded(a->received), MPI_BYTE, root, comm);
        break;
    case OP_allgatherv:
        blocks(replay, a, 0, 1, comm);
        MPI_Allgatherv(out, bounded(a->sent), MPI_BYTE, in, in_counts, in_places, MPI_BYTE, comm);
        break;
    case OP_iallgatherv:
        blocks(replay, a, 0, 1, comm);
        MPI_Iallgatherv(out, bounded(a->sent), MPI_BYTE, in, in_counts, in_places, MPI_BYTE, comm, request);
        break;
    case OP_alltoallv:
    case OP_alltoallw:
        blocks(replay, a, 0, 0, comm);
        blocks(replay, a, traced, 1, comm);
        MPI_Alltoallv(out, out_counts, out_places, MPI_BYTE, in, in_counts, in_places, MPI_BYTE, comm);
        break;
    case OP_ialltoallv:
        blocks(replay, a, 0, 0, comm);
        blocks(replay, a, traced, 1, comm);
        MPI_Ialltoallv(out, out_counts, out_places, MPI_BYTE, in, in_counts, in_places, MPI_BYTE, comm, request);
        break;
    case OP_reduce_scatter:
        blocks(replay, a, 0, 1, comm);
        MPI_Reduce_scatter(out, in, in_counts, MPI_BYTE, MPI_BOR, comm);
        break;
    }
}

typedef int AllToAll(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

/* SimGrid's algorithm for blocks of these bytes. COLLSTUDY_ALLTOALL is "256:bruck 1024:default ring": up to so many
 * bytes the algorithm of that name, the last one beyond; `default` is what SimGrid was told to use. It can be told one
 * only. */
static AllToAll *all_to_all(int64_t bytes) {
    const char *rules = getenv("COLLSTUDY_ALLTOALL");
    for (const char *at = rules; at && *at; at += strspn(at, " ")) {
        char *name, symbol[256];
        long long most = strtoll(at, &name, 10);
        bool last = *name != ':';
        name = last ? (char *)at : name + 1;
        int length = (int)strcspn(name, " ");
        at = name + length;
        if (!last && bytes > most)
            continue;
        if (strncmp(name, "default", (size_t)length) == 0)
            return MPI_Alltoall;
        snprintf(symbol, sizeof symbol, "_ZN7simgrid4smpi%dalltoall__%.*sEPKviPNS0_8DatatypeEPviS4_PNS0_4CommE",
                 10 + length, length, name);
        AllToAll *found;
        *(void **)&found = dlsym(RTLD_DEFAULT, symbol);
        if (!found)
            fail("SimGrid has no such all-to-all", symbol);
        return found;
    }
    return MPI_Alltoall;
}

static void collective(Replay *replay, const Action *a) {
    MPI_Comm comm = a->communicator < 0 ? MPI_COMM_SELF : replay->collective[a->communicator];
    int traced = a->communicator < 0 ? 1 : replay->members[a->communicator], root = (int)a->root;
    int64_t sent = a->sent, received = a->received;
    char *out = replay->out, *in = replay->in;
    MPI_Request *request = &replay->requests[a->request];
    int64_t larger = sent > received ? sent : received;
    switch (a->operation) {
    case OP_barrier:
        MPI_Barrier(comm);
        break;
    case OP_ibarrier:
        MPI_Ibarrier(comm, request);
        break;
    case OP_bcast:
        MPI_Bcast(out, bounded(larger), MPI_BYTE, root, comm);
        break;
    case OP_ibcast:
        MPI_Ibcast(out, bounded(larger), MPI_BYTE, root, comm, request);
        break;
    case OP_reduce:
        MPI_Reduce(out, in, elements(sent), element(sent), operator(sent), root, comm);
        break;
    case OP_ireduce:
        MPI_Ireduce(out, in, elements(sent), element(sent), operator(sent), root, comm, request);
        break;
    case OP_allreduce:
        MPI_Allreduce(out, in, elements(sent), element(sent), operator(sent), comm);
        break;
    case OP_iallreduce:
        MPI_Iallreduce(out, in, elements(sent), element(sent), operator(sent), comm, request);
        break;
    case OP_scan:
        MPI_Scan(out, in, elements(sent), element(sent), operator(sent), comm);
        break;
    case OP_exscan:
        MPI_Exscan(out, in, elements(sent), element(sent), operator(sent), comm);
        break;
    case OP_gather:
        MPI_Gather(out, bounded(sent), MPI_BYTE, in, bounded(sent), MPI_BYTE, root, comm);
        break;
    case OP_igather:
        MPI_Igather(out, bounded(sent), MPI_BYTE, in, bounded(sent), MPI_BYTE, root, comm, request);
        break;
    case OP_scatter:
        MPI_Scatter(out, bounded(received), MPI_BYTE, in, bounded(received), MPI_BYTE, root, comm);
        break;
    case OP_iscatter:
        MPI_Iscatter(out, bounded(received), MPI_BYTE, in, bounded(received), MPI_BYTE, root, comm, request);
        break;
    case OP_allgather:
        MPI_Allgather(out, bounded(sent), MPI_BYTE, in, bounded(sent), MPI_BYTE, comm);
        break;
    case OP_iallgather:
        MPI_Iallgather(out, bounded(sent), MPI_BYTE, in, bounded(sent), MPI_BYTE, comm, request);
        break;
    case OP_alltoall:
        all_to_all(sent / traced)(out, bounded(sent / traced), MPI_BYTE, in, bounded(sent / traced), MPI_BYTE, comm);
        break;
    case OP_ialltoall:
        MPI_Ialltoall(out, bounded(sent / traced), MPI_BYTE, in, bounded(sent / traced), MPI_BYTE, comm, request);
        break;
    case OP_reduce_scatter_block:
        MPI_Reduce_scatter_block(out, in, elements(received), element(received), operator(received), comm);
        break;
    default:
        collective_of_blocks(replay, a, comm, traced);
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

/* The collectives library sets a communicator up in its first call, which a tuning file of an MPI library does not. */
static void set_up(const Replay *replay) {
    double out = 0, in = 0;
    for (int i = 0; i < replay->communicators; i++) {
        if (replay->collective[i] == MPI_COMM_NULL)
            continue;
        MPI_Bcast(&out, 1, MPI_DOUBLE, 0, replay->collective[i]);
        MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, replay->collective[i]);
    }
}

/* The same instant for all ranks, from which their times count. */
static double common_start(void) {
    double mine = MPI_Wtime(), last = mine;
    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last;
}

static void open_calls(Replay *replay, const char *folder) {
    char name[64];
    snprintf(name, sizeof name, "rank-%06d.calls", replay->rank);
    replay->calls = open_in(folder, name, "w");
}

/* A communicator that is not of everybody is another one in each copy. The bytes of an all-to-all grow with the ranks.
 */
static void write_call(const Replay *replay, const Action *a, double start, double end) {
    int ranks = 1, number = (int)a->communicator, traced = 1;
    if (number >= 0) {
        MPI_Comm_size(replay->collective[number], &ranks);
        traced = replay->members[number];
        if (!replay->everybody[number])
            number += replay->copy * replay->communicators;
    }
    bool all_to_all = a->operation == OP_alltoall || a->operation == OP_alltoallv || a->operation == OP_alltoallw;
    int64_t factor = all_to_all ? ranks / traced : 1;
    fprintf(replay->calls, "%d,%s,%.4f,%.4f,%d,%d,%lld,%lld\n", replay->rank, names[a->operation],
            (start - replay->started) * 1e6, (end - replay->started) * 1e6, number, ranks,
            (long long)(a->sent * factor), (long long)(a->received * factor));
}

static void close_calls(const Replay *replay, const char *folder, double end) {
    bool written = fclose(replay->calls) == 0;
    FILE *ranks = open_in(folder, "ranks.csv", "a");
    fprintf(ranks, "%d,%.4f,%.4f,%.4f,%.4f\n", replay->rank, replay->spent[0] * 1e6, replay->spent[1] * 1e6,
            replay->spent[2] * 1e6, (end - replay->started) * 1e6);
    if (fclose(ranks) != 0 || !written)
        fail("cannot be written", folder);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Replay replay = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &replay.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &replay.size);
    if (argc != 3)
        fail("usage: replay FOLDER RANKS", "replay");
    replay.folder = argv[1];
    replay.traced_size = atoi(argv[2]);
    if (replay.traced_size < 1 || replay.size % replay.traced_size != 0)
        fail("the number of ranks is not a multiple of that of the trace", argv[2]);
    replay.copies = replay.size / replay.traced_size;
    replay.copy = replay.rank / replay.traced_size;
    replay.traced_rank = replay.rank % replay.traced_size;
    replay.speed = sg_host_get_speed(sg_host_self());
    char name[64];
    snprintf(name, sizeof name, "rank-%06d.actions", replay.traced_rank);
    replay.actions = map_numbers(replay.folder, name);
    make_communicators(&replay);
    make_room(&replay);
    const char *calls = getenv("COLLSTUDY_CALLS");
    if (calls)
        set_up(&replay);
    MPI_Barrier(MPI_COMM_WORLD);
    replay.started = calls ? common_start() : MPI_Wtime();
    double at = replay.started;
    if (calls)
        open_calls(&replay, calls);
    find_log();
    note(&replay, 0);
    const Action *end = (const Action *)(const void *)replay.actions.end;
    for (const Action *a = (const Action *)(const void *)replay.actions.first; a < end; a = next(a)) {
        if (a->compute_ns > 0)
            smpi_execute_flops((double)a->compute_ns * 1e-9 * replay.speed);
        double start = MPI_Wtime();
        bool is_collective = a->operation >= OP_FIRST_COLLECTIVE;
        note(&replay, (int)a->operation);
        if (is_collective)
            collective(&replay, a);
        else
            point_to_point(&replay, a);
        note(&replay, 0);
        replay.spent[0] += start - at;
        at = MPI_Wtime();
        replay.spent[is_collective ? 2 : 1] += at - start;
        if (calls && is_collective)
            write_call(&replay, a, start, at);
    }
    if (calls)
        close_calls(&replay, calls, at);
    note(&replay, -1);
    if (!enter && replay.rank == 0)
        printf("makespan_us=%.3f (of rank 0)\n", (MPI_Wtime() - replay.started) * 1e6);
    MPI_Finalize();
    return 0;
}
