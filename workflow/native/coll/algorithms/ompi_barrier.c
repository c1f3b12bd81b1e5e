/* Barriers of Open MPI's coll/tuned: the same messages in the same order as version 4.1; and one for the simulator. */
#include "algorithms/ompi.h"
#include "core/message.h"
#include "core/tree.h"

#include <stdlib.h>

static int send_empty(const struct call *call, int to) {
    return coll_send(call, NULL, 0, to);
}

static int recv_empty(const struct call *call, int from) {
    return coll_recv(call, NULL, 0, from, MPI_STATUS_IGNORE);
}

static int collect_and_release(struct call *call, MPI_Request requests[]) {
    for (int i = 1; i < call->size; i++)
        TRY(coll_irecv(call, NULL, 0, MPI_ANY_SOURCE, &requests[i - 1]));
    TRY(PMPI_Waitall(call->size - 1, requests, MPI_STATUSES_IGNORE));
    for (int i = 1; i < call->size; i++)
        TRY(send_empty(call, i));
    return MPI_SUCCESS;
}

int ompi_barrier_linear(struct call *call) {
    if (call->rank > 0) {
        TRY(send_empty(call, 0));
        return recv_empty(call, 0);
    }
    MPI_Request *requests = malloc((size_t)call->size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int rc = collect_and_release(call, requests);
    free(requests);
    return rc;
}

/* A token passes around the ring twice, the second time with synchronous sends. */
int ompi_barrier_double_ring(struct call *call) {
    int left = (call->rank + call->size - 1) % call->size, right = (call->rank + 1) % call->size;
    for (int round = 0; round < 2; round++) {
        if (call->rank > 0)
            TRY(round == 0 ? recv_empty(call, left) : coll_recv_synchronous(call, left));
        TRY(round == 0 ? send_empty(call, right) : coll_ssend_empty(call, right));
        if (call->rank == 0)
            TRY(round == 0 ? recv_empty(call, left) : coll_recv_synchronous(call, left));
    }
    return MPI_SUCCESS;
}

/* Ranks beyond the largest power of two report to a partner first and are released by it at the end. */
int ompi_barrier_recursive_doubling(struct call *call) {
    int power = coll_floor_power_of_two(call->size);
    int partner = call->rank + power;
    if (call->rank >= power) {
        if (!COLL_SIMULATED) /* as in Open MPI, the receive is posted first */
            return coll_sendrecv_empty(call, call->rank - power, call->rank - power);
        TRY(send_empty(call, call->rank - power));
        return coll_recv_synchronous(call, call->rank - power);
    }
    if (partner < call->size)
        TRY(recv_empty(call, partner));
    for (int bit = 1; bit < power; bit *= 2)
        TRY(coll_sendrecv_empty(call, call->rank ^ bit, call->rank ^ bit));
    return partner < call->size ? coll_ssend_empty(call, partner) : MPI_SUCCESS;
}

int ompi_barrier_bruck(struct call *call) {
    for (long distance = 1; distance < call->size; distance *= 2)
        TRY(coll_sendrecv_empty(call, (int)((call->rank + distance) % call->size),
                                (int)((call->rank + call->size - distance) % call->size)));
    return MPI_SUCCESS;
}

/* Only for two ranks; Open MPI fails for any other number. */
int ompi_barrier_two_proc(struct call *call) {
    if (call->size != 2)
        return COLL_USE_DEFAULT;
    return coll_sendrecv_empty(call, 1 - call->rank, 1 - call->rank);
}

/* Returns the rank's partner at a bit if its lower bits are zero, else MPI_PROC_NULL. The lower rank is the parent. */
static int partner_at(const struct call *call, int bit) {
    int partner = call->rank ^ bit;
    return (partner & (bit - 1)) || partner >= call->size ? MPI_PROC_NULL : partner;
}

static int report(struct call *call, int bit) {
    int partner = partner_at(call, bit);
    return partner > call->rank ? recv_empty(call, partner) : send_empty(call, partner);
}

static int release(struct call *call, int bit) {
    int partner = partner_at(call, bit);
    return partner > call->rank ? send_empty(call, partner) : recv_empty(call, partner);
}

int ompi_barrier_tree(struct call *call) {
    int bit = 1;
    for (; bit < call->size; bit *= 2)
        TRY(report(call, bit));
    for (bit /= 2; bit > 0; bit /= 2)
        TRY(release(call, bit));
    return MPI_SUCCESS;
}

#if COLL_SIMULATED
/* Simulated seconds from the last report to the common exit: far more than the release takes, at no real cost. */
static const double ahead = 0.01;

static int tell(struct call *call, int bit, double *start) {
    int partner = partner_at(call, bit);
    return partner > call->rank ? PMPI_Send(start, 1, MPI_DOUBLE, partner, call->kind, call->comm)
                                : PMPI_Recv(start, 1, MPI_DOUBLE, partner, call->kind, call->comm, MPI_STATUS_IGNORE);
}
#endif

/* All ranks leave at the same instant, as with windows on synchronised clocks (Hunold and Carpen-Amarie 2016): the
 * simulator has one clock. With any MPI library's barrier the exit skew adds to the time of the next call. */
int coll_aligned(struct call *call) {
#if COLL_SIMULATED
    int bit = 1;
    for (; bit < call->size; bit *= 2)
        TRY(report(call, bit));
    double start = PMPI_Wtime() + ahead;
    for (bit /= 2; bit > 0; bit /= 2)
        TRY(tell(call, bit, &start));
    double wait = start - PMPI_Wtime();
    if (wait < 0)
        return MPI_ERR_INTERN;
    smpi_execute_benched(wait);
    return MPI_SUCCESS;
#else
    (void)call;
    return COLL_USE_DEFAULT;
#endif
}

/* ---- the default ---- */

int ompi_barrier_default(struct call *call) {
    return ompi_decide(barrier_decisions, call);
}
