/*
 * MPI_THREAD_MULTIPLE; not in the simulator.
 *
 *   test_threads use      two threads, each with its own communicator
 *   test_threads create   four threads that create communicators at the same time
 */
#include <mpi.h>

#include <pthread.h>
#include <string.h>

#include "check.h"

static int failures;

struct worker {
    MPI_Comm comm;
    int failures;
};

static void *work(void *argument) {
    struct worker *w = argument;
    int n, me;
    CHECK(MPI_Comm_size(w->comm, &n));
    CHECK(MPI_Comm_rank(w->comm, &me));
    int all[16] = {0}, swapped[16], ones[16], twice[16], at[16];
    for (int k = 0; k < n; k++) {
        ones[k] = 1;
        twice[k] = 2;
        at[k] = k;
    }
    for (int i = 0; i < 200; i++) {
        int value = i * n + me, sum = 0, got = me == i % n ? i : -1;
        CHECK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, w->comm));
        CHECK(MPI_Bcast(&got, 1, MPI_INT, i % n, w->comm));
        CHECK(MPI_Barrier(w->comm));
        w->failures += got != i || sum != n * n * i + n * (n - 1) / 2;
        sum = 0;
        CHECK(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, i % n, w->comm));
        CHECK(MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, i % n, w->comm));
        for (int k = 0; k < n && me == i % n; k++)
            w->failures += all[k] != i * n + k;
        w->failures += me == i % n && sum != n * n * i + n * (n - 1) / 2;
        value = 0;
        CHECK(MPI_Scatter(all, 1, MPI_INT, &value, 1, MPI_INT, i % n, w->comm));
        CHECK(MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, w->comm));
        for (int k = 0; k < n; k++)
            w->failures += all[k] != i * n + k;
        CHECK(MPI_Alltoall(all, 1, MPI_INT, swapped, 1, MPI_INT, w->comm));
        w->failures += swapped[i % n] != i * n + me;
        swapped[i % n] = -1;
        CHECK(MPI_Alltoallv(all, ones, at, MPI_INT, swapped, ones, at, MPI_INT, w->comm));
        CHECK(MPI_Reduce_scatter(twice, &sum, ones, MPI_INT, MPI_SUM, w->comm));
        w->failures += swapped[i % n] != i * n + me || sum != 2 * n;
    }
    return NULL;
}

static void test_threads(void) {
    struct worker workers[2] = {{MPI_COMM_NULL, 0}, {MPI_COMM_NULL, 0}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, work, &workers[i]) != 0)
            failures++;
    for (int i = 0; i < 2; i++) {
        failures += pthread_join(thread[i], NULL) != 0;
        failures += workers[i].failures;
        CHECK(MPI_Comm_free(&workers[i].comm));
    }
}

enum { CREATORS = 4, TIMES = 50 };

struct creator {
    int tag, failures;
};

static void create_and_use(struct creator *c, MPI_Group group, int root) {
    int one = 1, sum = 0, n;
    MPI_Comm part;
    CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, group, c->tag, &part));
    CHECK(MPI_Comm_size(part, &n));
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part));
    CHECK(MPI_Bcast(&sum, 1, MPI_INT, root % n, part));
    CHECK(MPI_Comm_free(&part));
    c->failures += sum != n;
}

/* Creates communicators of some ranks and of all ranks in turn, as MPICH's comm_create_group_threads2 does. */
static void *create(void *argument) {
    struct creator *c = argument;
    MPI_Group all, some;
    int n, me;
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    CHECK(MPI_Group_size(all, &n));
    CHECK(MPI_Group_rank(all, &me));
    int range[1][3] = {{0, n / 2, 1}};
    CHECK(MPI_Group_range_incl(all, 1, range, &some));
    for (int i = 0; i < TIMES; i++) {
        if (me <= n / 2)
            create_and_use(c, some, i);
        create_and_use(c, all, i);
    }
    CHECK(MPI_Group_free(&some));
    CHECK(MPI_Group_free(&all));
    return NULL;
}

static void test_create(void) {
    struct creator creators[CREATORS];
    pthread_t thread[CREATORS];
    int one = 1, sum = 0, n;
    for (int i = 0; i < CREATORS; i++) {
        creators[i] = (struct creator){.tag = i};
        failures += pthread_create(&thread[i], NULL, create, &creators[i]) != 0;
    }
    for (int i = 0; i < CREATORS; i++) {
        failures += pthread_join(thread[i], NULL) != 0;
        failures += creators[i].failures;
    }
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD));
    failures += sum != n;
}

int main(int argc, char *argv[]) {
    int provided;
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    if (argc > 1 && strcmp(argv[1], "create") == 0)
        test_create();
    else
        test_threads();
    return finish(failures);
}
