/* The trace file of this rank. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The file grows, and is mapped, in windows of this size: a multiple of the page size and of 1024 slots. */
#define SLOTS_PER_WINDOW (1 << 16)
#define WINDOW_BYTES ((size_t)SLOTS_PER_WINDOW * sizeof(Record))

_Static_assert(sizeof(Record) == 88, "the format is known to workflow/collstudy/launch/tracefile.py");
_Static_assert(WINDOW_BYTES % 4096 == 0, "a window begins at a page");

static struct {
    int file;
    Record *window;
    size_t used, windows;
    int64_t origin;
    pthread_mutex_t lock;
    bool open;
} trace = {.file = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Calls within calls (a library that implements one MPI function by another) are not the application's. */
static _Thread_local int depth;

/* Reading the CPU time is a system call. An interval shorter than this was not interrupted by another process, so its
 * CPU time equals its duration and the system call is saved. */
#define SHORT_NS 5000
static _Thread_local int64_t last_end, last_cpu_end;

static int64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Ends tracing; the application continues, as a run is worth more than its trace. The trace stays, without its end. */
static void give_up(const char *what) {
    fprintf(stderr, "libcolltrace: %s: %s; the rest of this rank is not traced\n", what, strerror(errno));
    trace.open = false;
}

static bool next_window(void) {
    if (trace.window && munmap(trace.window, WINDOW_BYTES) != 0)
        return false;
    trace.window = NULL;
    off_t offset = 4096 + (off_t)(trace.windows * WINDOW_BYTES);
    /* Not ftruncate(): on a full disk a store to a hole in the file would raise SIGBUS. */
    int error = posix_fallocate(trace.file, offset, (off_t)WINDOW_BYTES);
    if (error) {
        errno = error;
        return false;
    }
    void *mapped = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, trace.file, offset);
    if (mapped == MAP_FAILED)
        return false;
    trace.window = mapped;
    trace.windows++;
    trace.used = 0;
    return true;
}

static const char operation_names[] =
#define X(name) #name " "
    TRACE_OPERATIONS(X)
#undef X
    ;
_Static_assert(sizeof operation_names <= sizeof((Header *)0)->operations, "the header has room for all names");
_Static_assert(sizeof(Header) <= 4096, "the header is the first page");

void trace_open(int rank, int size) {
    const char *folder = getenv("COLLTRACE_FOLDER");
    if (!folder || !*folder) {
        if (rank == 0)
            fprintf(stderr, "libcolltrace: COLLTRACE_FOLDER is not set: nothing is traced\n");
        return;
    }
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/rank-%06d.trace", folder, rank) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        give_up(folder);
        return;
    }
    /* A rank may run several programs one after the other (sh -c), and a launcher that does not connect its ranks
     * starts several ranks 0. Only the first one is traced: truncating its file would kill it. */
    trace.file = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
    if (trace.file < 0 && errno == EEXIST) {
        trace_mark("several");
        return;
    }
    Header header = {.magic = TRACE_MAGIC, .version = TRACE_VERSION, .record_bytes = sizeof(Record), .rank = rank};
    header.size = size;
    header.started = (int64_t)time(NULL);
    gethostname(header.host, sizeof header.host - 1);
    memcpy(header.operations, operation_names, sizeof operation_names);
    if (trace.file < 0 || pwrite(trace.file, &header, sizeof header, 0) != sizeof header || !next_window()) {
        give_up(path);
        return;
    }
    trace.open = true;
}

void trace_close(void) {
    if (!trace.open)
        return;
    trace.open = false;
    munmap(trace.window, WINDOW_BYTES);
    /* Cuts off the unused rest of the last window. */
    off_t end = 4096 + (off_t)((trace.windows - 1) * WINDOW_BYTES + trace.used * sizeof(Record));
    if (ftruncate(trace.file, end) != 0 || close(trace.file) != 0)
        fprintf(stderr, "libcolltrace: closing the trace: %s\n", strerror(errno));
}

void trace_mark(const char *name) {
    char path[PATH_MAX];
    const char *folder = getenv("COLLTRACE_FOLDER");
    if (folder && snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        close(open(path, O_WRONLY | O_CREAT, 0644));
}

static _Atomic int threads;

bool trace_has_threads(void) {
    return threads > 1;
}

/* Notes a second thread that makes calls: the processor times of threads have nothing to do with each other. */
static void count_thread(void) {
    static _Thread_local bool counted;
    if (!counted && ++threads == 2)
        trace_mark("threads");
    counted = true;
}

bool trace_is_open(void) {
    return trace.open;
}

void trace_set_origin(void) {
    trace.origin = nanoseconds(CLOCK_MONOTONIC);
}

Call trace_enter(void) {
    Call call = {.recorded = trace.open && depth == 0};
    depth++;
    if (call.recorded) {
        count_thread();
        ran_begin();
        call.start = nanoseconds(CLOCK_MONOTONIC);
        int64_t since = call.start - last_end;
        call.cpu_start = since < SHORT_NS ? last_cpu_end + since : nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    }
    return call;
}

static Record *next_slot(void) {
    if (trace.used == SLOTS_PER_WINDOW && !next_window())
        return NULL;
    return &trace.window[trace.used++];
}

void trace_keep(const Record *record, const int64_t *list, uint32_t listed) {
    pthread_mutex_lock(&trace.lock);
    Record *slot = next_slot();
    if (slot) {
        uint16_t operation = record->operation;
        memcpy((char *)slot + 8, (const char *)record + 8, sizeof *slot - 8);
        slot->ran = record->ran;
        slot->listed = listed;
        /* Stored last: the call of a rank that dies before this line is not in the trace. */
        __atomic_store_n(&slot->operation, operation, __ATOMIC_RELEASE);
    }
    for (uint32_t done = 0; slot && done < listed; done += NUMBERS_PER_SLOT) {
        slot = next_slot();
        if (!slot)
            break;
        uint32_t count = listed - done < NUMBERS_PER_SLOT ? listed - done : (uint32_t)NUMBERS_PER_SLOT;
        memcpy((char *)slot + 8, list + done, count * sizeof *list);
        __atomic_store_n(&slot->operation, (uint16_t)OP_LIST, __ATOMIC_RELEASE);
    }
    if (!slot)
        give_up("the trace cannot grow");
    pthread_mutex_unlock(&trace.lock);
}

void trace_note(Record *record, const int64_t *list, uint32_t listed) {
    if (!trace.open)
        return;
    record->start = record->end = nanoseconds(CLOCK_MONOTONIC) - trace.origin;
    /* The computation since the last call counts for the next one. */
    record->cpu_start = record->cpu_end = last_cpu_end;
    trace_keep(record, list, listed);
}

void trace_leave(const Call *call, Record *record, const int64_t *list, uint32_t listed) {
    depth--;
    if (!call->recorded || !trace.open)
        return;
    record->start = call->start - trace.origin;
    record->cpu_start = call->cpu_start;
    record->listed = listed;
    last_end = nanoseconds(CLOCK_MONOTONIC);
    record->end = last_end - trace.origin;
    int64_t took = last_end - call->start;
    last_cpu_end = took < SHORT_NS ? call->cpu_start + took : nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    record->cpu_end = last_cpu_end;
    trace_keep(record, list, listed);
}
