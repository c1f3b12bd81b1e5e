#include "algorithms/leader.h"
#include "core/counters.h"

#include <stdlib.h>

void coll_leader_free(struct leader *l) {
    free(l->send);
    free(l->recv);
    free(l->part_send);
    free(l->part_recv);
    coll_flow_free(&l->out);
    coll_flow_free(&l->in);
}

static int allocate_tables(struct leader *l, bool leads) {
    size_t table = leads ? (size_t)l->n * (size_t)l->e->size : 1, members = (size_t)l->n;
    l->send = malloc(table * sizeof *l->send);
    l->recv = malloc(table * sizeof *l->recv);
    l->part_send = calloc(members, sizeof *l->part_send);
    l->part_recv = calloc(members, sizeof *l->part_recv);
    return l->send && l->recv && l->part_send && l->part_recv ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int coll_leader_counts(struct leader *l, const struct flow *send, const struct flow *recv) {
    const struct exchange *e = l->e;
    TRY(PMPI_Comm_size(e->part, &l->n));
    TRY(allocate_tables(l, e->leaders != MPI_COMM_NULL));
    TRY(PMPI_Gather(send->counts, e->size, MPI_INT, l->send, e->size, MPI_INT, 0, e->part));
    TRY(PMPI_Gather(recv->counts, e->size, MPI_INT, l->recv, e->size, MPI_INT, 0, e->part));
    for (int i = 0; i < l->n && e->leaders != MPI_COMM_NULL; i++) {
        size_t sent = sum_bytes(leader_row(l, l->send, i), 0, e->size),
               received = sum_bytes(leader_row(l, l->recv, i), 0, e->size);
        l->part_send[i] = (int)sent;
        l->part_recv[i] = (int)received;
        l->sent += sent;
        l->received += received;
    }
    return MPI_SUCCESS;
}

int coll_leaders_agree(const struct exchange *e, unsigned long long need, const struct call *call) {
    unsigned long long most;
    TRY(PMPI_Allreduce(&need, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, e->comm));
    return coll_above_limit(call, (size_t)most) ? COLL_USE_DEFAULT : MPI_SUCCESS;
}
