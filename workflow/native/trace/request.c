/* Requests by handle: a hash table with open addressing and linear probing (Knuth, vol. 3, 6.4, algorithms L and R). */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>

/* Open MPI and MPICH give all requests that are complete at once the same handle. */
typedef struct Other {
    struct Other *next;
    Pending pending;
} Other;

typedef struct Entry {
    MPI_Request handle;
    Pending pending; /* number 0: persistent and not started */
    Other *others;   /* earlier requests with this handle */
    Record what;     /* of a persistent request */
    bool used, persistent;
} Entry;

static Entry *table;
static size_t capacity, count;
static uint32_t numbers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t home(MPI_Request handle) {
    return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 32) & (capacity - 1);
}

static Entry *look_up(MPI_Request handle) {
    if (!capacity)
        return NULL;
    for (size_t i = home(handle); table[i].used; i = (i + 1) & (capacity - 1))
        if (table[i].handle == handle)
            return &table[i];
    return NULL;
}

static Entry *insert(MPI_Request handle) {
    Entry *known = look_up(handle);
    if (known)
        return known;
    if (2 * (count + 1) > capacity) {
        Entry *old = table;
        size_t old_capacity = capacity, new_capacity = capacity ? 2 * capacity : 256;
        Entry *larger = calloc(new_capacity, sizeof *larger);
        if (!larger)
            return NULL;
        table = larger;
        capacity = new_capacity;
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].used) {
                size_t at = home(old[i].handle);
                while (table[at].used)
                    at = (at + 1) & (capacity - 1);
                table[at] = old[i];
            }
        free(old);
    }
    size_t at = home(handle);
    while (table[at].used)
        at = (at + 1) & (capacity - 1);
    table[at] = (Entry){.handle = handle, .used = true};
    count++;
    return &table[at];
}

static void erase(Entry *entry) {
    size_t hole = (size_t)(entry - table);
    for (size_t i = (hole + 1) & (capacity - 1); table[i].used; i = (i + 1) & (capacity - 1)) {
        size_t from_home = (i - home(table[i].handle)) & (capacity - 1), from_hole = (i - hole) & (capacity - 1);
        if (from_home >= from_hole) {
            table[hole] = table[i];
            hole = i;
        }
    }
    table[hole].used = false;
    count--;
}

uint32_t request_started(MPI_Request handle, bool wildcard, MPI_Comm comm) {
    const Members *members = wildcard ? members_of(comm) : NULL;
    pthread_mutex_lock(&lock);
    uint32_t number = ++numbers;
    Entry *entry = insert(handle);
    Other *other = entry && entry->pending.number && !entry->persistent ? malloc(sizeof *other) : NULL;
    if (other) {
        *other = (Other){entry->others, entry->pending};
        entry->others = other;
    }
    if (entry)
        entry->pending = (Pending){.number = number, .wildcard = wildcard, .members = members};
    pthread_mutex_unlock(&lock);
    return number;
}

Pending request_find(MPI_Request handle) {
    pthread_mutex_lock(&lock);
    Entry *entry = handle == MPI_REQUEST_NULL ? NULL : look_up(handle);
    Pending pending = entry ? entry->pending : (Pending){0};
    pthread_mutex_unlock(&lock);
    return pending;
}

Pending request_ended(MPI_Request handle) {
    pthread_mutex_lock(&lock);
    Entry *entry = handle == MPI_REQUEST_NULL ? NULL : look_up(handle);
    Pending pending = entry ? entry->pending : (Pending){0};
    if (entry && entry->persistent)
        entry->pending.number = 0;
    else if (entry && entry->others) {
        Other *other = entry->others;
        entry->pending = other->pending;
        entry->others = other->next;
        free(other);
    } else if (entry)
        erase(entry);
    pthread_mutex_unlock(&lock);
    return pending;
}

void request_initialised(MPI_Request handle, const Record *what, bool wildcard, MPI_Comm comm) {
    const Members *members = wildcard ? members_of(comm) : NULL;
    pthread_mutex_lock(&lock);
    Entry *entry = insert(handle);
    if (entry) {
        entry->persistent = true;
        entry->what = *what;
        entry->pending = (Pending){.wildcard = wildcard, .members = members};
    }
    pthread_mutex_unlock(&lock);
}

bool request_restarted(MPI_Request handle, Record *record) {
    pthread_mutex_lock(&lock);
    Entry *entry = look_up(handle);
    bool found = entry && entry->persistent;
    if (found) {
        *record = entry->what;
        record->request = entry->pending.number = ++numbers;
        entry->pending.cancelled = false;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void request_freed(MPI_Request handle) {
    pthread_mutex_lock(&lock);
    Entry *entry = look_up(handle);
    if (entry)
        entry->persistent = false;
    pthread_mutex_unlock(&lock);
    request_ended(handle);
}

void request_cancelled(MPI_Request handle) {
    pthread_mutex_lock(&lock);
    Entry *entry = look_up(handle);
    if (entry)
        entry->pending.cancelled = true;
    pthread_mutex_unlock(&lock);
}
