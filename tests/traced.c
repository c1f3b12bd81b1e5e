/* A program with known MPI calls, for test_traces.py. Without arguments on any number of ranks from 2; `die`: rank 1 is
 * killed; `ordered`: has an operation that does not commute, and ends. On two ranks, what the name says: `freed` (a
 * communicator, before a receive on it ends), `shared` (handles of requests that are complete at once), `between`
 * (messages of an intercommunicator), `failing` (calls that return an error), `orders` (of calls on communicators
 * differ between ranks), `cancelled` (receives), `matched` (a message of 3 GiB, which nobody receives), `session`
 * (without MPI_Init). */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void first(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    memcpy(inout, in, (size_t)*count);
}

enum { BYTES = 8 };

static void receive_after_free(int rank) {
    char out[BYTES] = {0}, in[BYTES];
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Irecv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, 1 - rank, 3, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void share_handles(int rank) {
    char out[BYTES] = {0}, in[BYTES];
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++)
        MPI_Isend(out, BYTES, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &requests[i]);
    MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - rank, 3, in, BYTES, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
}

static void send_between(int rank) {
    char data[BYTES] = {0};
    MPI_Comm between;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 5, &between);
    if (rank == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 0, 3, between);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 3, between, MPI_STATUS_IGNORE);
    MPI_Comm_free(&between);
}

static void call_in_different_order(int rank, MPI_Comm made[2]) {
    int one = 1;
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        if (i == rank)
            MPI_Ibcast(&one, 1, MPI_INT, 0, made[0], &requests[0]);
        else
            MPI_Ibarrier(made[1], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&made[0]);
    MPI_Comm_free(&made[1]);
}

static void call_in_different_orders(int rank) {
    MPI_Comm made[2];
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &requests[i]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    call_in_different_order(rank, made);
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    MPI_Group group;
    for (int i = 0; i < 2; i++)
        MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[i], &requests[i]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    call_in_different_order(rank, made);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    for (int i = 0; i < 2; i++)
        MPI_Comm_create_from_group(group, i ? "one" : "two", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made[i]);
    MPI_Group_free(&group);
    call_in_different_order(rank, made);
#endif
}

static void fail(int rank) {
    char data[BYTES] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    int counts[2] = {0};
    (void)rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Bcast(data, BYTES, MPI_BYTE, 0, MPI_COMM_NULL);
    MPI_Allgatherv(data, 0, MPI_BYTE, data, counts, counts, MPI_BYTE, MPI_COMM_NULL);
    MPI_Bcast(data, BYTES, MPI_BYTE, 99, MPI_COMM_WORLD);
    MPI_Send(data, BYTES, MPI_BYTE, 99, 0, MPI_COMM_WORLD);
    MPI_Isend(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_NULL, &request);
    MPI_Recv_init(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_NULL, &request);
}

static void cancel_receives(int rank) {
    char in[2][BYTES];
    MPI_Request requests[2];
    MPI_Irecv(in[0], BYTES, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], BYTES, MPI_BYTE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++)
        MPI_Cancel(&requests[i]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void match_large_message(int rank) {
    enum { PART = 1 << 20, PARTS = 3 << 10 };
    char *part = calloc(1, PART);
    MPI_Datatype bytes, message;
    MPI_Message matched;
    MPI_Type_contiguous(PART, MPI_BYTE, &bytes);
    MPI_Type_create_hvector(PARTS, 1, 0, bytes, &message);
    MPI_Type_commit(&message);
    if (rank == 0)
        MPI_Send(part, 1, message, 1, 3, MPI_COMM_WORLD);
    MPI_Mprobe(0, 3, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static const struct {
    const char *name;
    void (*run)(int rank);
} cases[] = {
    {"freed", receive_after_free},
    {"shared", share_handles},
    {"between", send_between},
    {"failing", fail},
    {"orders", call_in_different_orders},
    {"cancelled", cancel_receives},
    {"matched", match_large_message},
};

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
static int in_a_session(void) {
    char data[BYTES] = {0};
    int rank;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        MPI_Send_init(data, BYTES, MPI_BYTE, 1, 3, comm, &request);
    else
        MPI_Recv_init(data, BYTES, MPI_BYTE, 0, 3, comm, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    return MPI_Session_finalize(&session);
}
#endif

int main(int argc, char **argv) {
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    if (argc > 1 && strcmp(argv[1], "session") == 0)
        return in_a_session();
#endif
    MPI_Init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "ordered") == 0) {
        MPI_Op operation;
        MPI_Op_create(first, 0, &operation);
        MPI_Op_free(&operation);
        return MPI_Finalize();
    }
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run(rank);
            return MPI_Finalize();
        }
    char *out = calloc(1, 1 << 20), *in = calloc(1, 1 << 20);
    MPI_Bcast(out, 100, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD);
    if (argc > 1 && strcmp(argv[1], "die") == 0 && rank == 1)
        raise(SIGKILL);
    /* Rank 0 sends up, rank 1 sends down; who receives does not know from whom. */
    if (rank < 2) {
        MPI_Request requests[2];
        MPI_Irecv(in, 4000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, rank == 0 ? 1000 : 500, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
    MPI_Comm_free(&half);
    /* A persistent request, started twice, and blocks of different sizes. */
    MPI_Request persistent;
    if (rank == 0)
        MPI_Send_init(out, 10, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &persistent);
    else if (rank == 1)
        MPI_Recv_init(in, 10, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &persistent);
    for (int i = 0; i < 2 && rank < 2; i++) {
        MPI_Start(&persistent);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    }
    if (rank < 2)
        MPI_Request_free(&persistent);
    int counts[64], places[64];
    for (int i = 0; i < size; i++)
        counts[i] = i + 1, places[i] = 64 * i;
    MPI_Gatherv(out, rank + 1, MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
