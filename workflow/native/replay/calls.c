/* Makes the MPI calls of actions: those of a traced rank, with the ranks and bytes of the replay. */
#include "replay.h"

#include "../trace/operations.h"

#include <stdlib.h>
#include <string.h>

/* Returns the rank that represents a traced rank in a message; `lower`: the target is below the source. */
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
        fail("a message of more than 2 GiB", NULL);
    return (int)bytes;
}

/* Sets the block sizes to those of the traced ranks in the list, repeated for all ranks of `comm`. */
static void blocks(Replay *replay, const Action *action, int64_t offset, int side, MPI_Comm comm) {
    int size, members = action->communicator < 0 ? 1 : replay->members[action->communicator];
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        replay->counts[side][i] = bounded(action->list[offset + i % members]);
        replay->places[side][i] = 0; /* all blocks at one place, as contents do not matter */
    }
}

void point_to_point(Replay *replay, const Action *a) {
    MPI_Comm comm = replay->message_comm[a->communicator < 0 ? 0 : a->communicator];
    int to = a->to == -1 ? MPI_PROC_NULL : partner(replay, a->to, true), from = partner(replay, a->from, false);
    int sent = bounded(a->sent), received = bounded(a->received);
    int send_tag = (int)a->send_tag, receive_tag = a->receive_tag == -1 ? MPI_ANY_TAG : (int)a->receive_tag;
    MPI_Request *request = &replay->requests[a->request];
    if (a->communicator < 0 && to != MPI_PROC_NULL)
        to = replay->rank;
    if (a->communicator < 0 && from != MPI_PROC_NULL)
        from = replay->rank;
    switch (a->operation) {
    case OP_send:
    case OP_rsend:
        MPI_Send(replay->out, sent, MPI_BYTE, to, send_tag, comm);
        break;
    case OP_ssend:
        MPI_Ssend(replay->out, sent, MPI_BYTE, to, send_tag, comm);
        break;
    case OP_bsend:
    case OP_ibsend: /* MPI_Bsend, and the wait for MPI_Ibsend, return at once; no rank waits for the message */
        MPI_Isend(replay->out, sent, MPI_BYTE, to, send_tag, comm, &replay->buffered[replay->buffered_count++]);
        break;
    case OP_recv:
        MPI_Recv(replay->in, received, MPI_BYTE, from, receive_tag, comm, MPI_STATUS_IGNORE);
        break;
    case OP_sendrecv:
        MPI_Sendrecv(replay->out, sent, MPI_BYTE, to, send_tag, replay->in, received, MPI_BYTE, from, receive_tag, comm,
                     MPI_STATUS_IGNORE);
        break;
    case OP_isend:
    case OP_irsend:
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

/* Reductions are of doubles if the bytes allow it, because algorithms depend on the number of elements. */
static MPI_Datatype element(int64_t bytes) {
    return bytes % 8 == 0 ? MPI_DOUBLE : MPI_BYTE;
}

static int elements(int64_t bytes) {
    return bounded(bytes % 8 == 0 ? bytes / 8 : bytes);
}

static MPI_Op operator(int64_t bytes) {
    return bytes % 8 == 0 ? MPI_SUM : MPI_BOR;
}

/* Collectives to which each rank may contribute a different number of bytes. */
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

void collective(Replay *replay, const Action *a) {
    MPI_Comm comm = a->communicator < 0 ? MPI_COMM_SELF : replay->collective_comm[a->communicator];
    int traced = a->communicator < 0 ? 1 : replay->members[a->communicator], root = (int)a->root;
    int64_t sent = a->sent, received = a->received;
    char *out = replay->out, *in = replay->in;
    MPI_Request *request = &replay->requests[a->request];
    int64_t larger = sent > received ? sent : received;
    if (sent == 0 && (a->operation == OP_reduce || a->operation == OP_allreduce))
        return; /* as in Open MPI; SimGrid's own reductions divide by the number of elements */
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
        MPI_Alltoall(out, bounded(sent / traced), MPI_BYTE, in, bounded(sent / traced), MPI_BYTE, comm);
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
