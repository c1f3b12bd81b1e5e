/* [bijlani2021]: alltoallv as a sequence of gatherv; for each rank in turn, its data are gathered at its leader. */
#include "algorithms/leader.h"
#include "core/settings.h"

#include <limits.h>
#include <stdlib.h>

struct sequence {
    struct leader *l;
    struct call *call;
    char *from_part, *from_leaders; /* members' data for one rank; all data for that rank */
    int *counts, *displs;
};

/* Counts the bytes that each unit sends to a member of this one. */
static void count_units(struct sequence *s, int member) {
    const struct exchange *e = s->l->e;
    for (int u = 0, at = 0; u < e->units; u++) {
        s->counts[u] = (int)sum_bytes(leader_row(s->l, s->l->recv, member), e->first[u], e->first[u + 1]);
        s->displs[u] = at;
        at += s->counts[u];
    }
}

static int gather_in_part(struct sequence *s, const struct flow *send, int position, size_t at, int *bytes) {
    const struct exchange *e = s->l->e;
    int *counts = NULL, *displs = NULL;
    *bytes = 0;
    if (e->leaders != MPI_COMM_NULL) {
        counts = s->counts;
        displs = s->displs;
        for (int i = 0; i < s->l->n; i++) {
            counts[i] = leader_row(s->l, s->l->send, i)[position];
            displs[i] = *bytes;
            *bytes += counts[i];
        }
    }
    return PMPI_Gatherv(send->data + at, send->counts[position], MPI_BYTE, s->from_part, counts, displs, MPI_BYTE, 0,
                        e->part);
}

static int gather_for(struct sequence *s, const struct flow *send, struct flow *recv, int position, int unit,
                      size_t at) {
    const struct exchange *e = s->l->e;
    int bytes, member = position - e->first[unit], me;
    TRY(gather_in_part(s, send, position, at, &bytes));
    TRY(PMPI_Comm_rank(e->part, &me));
    if (e->leaders != MPI_COMM_NULL) {
        if (unit == e->unit)
            count_units(s, member);
        char *into = member == 0 ? recv->data : s->from_leaders;
        TRY(PMPI_Gatherv(s->from_part, bytes, MPI_BYTE, into, s->counts, s->displs, MPI_BYTE, unit, e->leaders));
        if (unit == e->unit && member > 0)
            TRY(PMPI_Send(into, s->l->part_recv[member], MPI_BYTE, member, COLL_ALLTOALLV, e->part));
    } else if (unit == e->unit && member == me) {
        TRY(PMPI_Recv(recv->data, (int)recv->bytes, MPI_BYTE, 0, COLL_ALLTOALLV, e->part, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int run_sequence(struct sequence *s, const struct flow *send, struct flow *recv) {
    const struct exchange *e = s->l->e;
    size_t at = 0;
    for (int unit = 0; unit < e->units; unit++) {
        for (int position = e->first[unit]; position < e->first[unit + 1]; position++) {
            TRY(gather_for(s, send, recv, position, unit, at));
            at += (size_t)send->counts[position];
        }
    }
    return MPI_SUCCESS;
}

/* Returns the most bytes that a leader holds at a time: the data for one rank, from its own members and from all. */
static size_t largest_step(const struct leader *l, size_t *from_part, size_t *from_leaders) {
    *from_part = *from_leaders = 0;
    for (int p = 0; p < l->e->size; p++) {
        size_t bytes = 0;
        for (int i = 0; i < l->n; i++)
            bytes += (size_t)leader_row(l, l->send, i)[p];
        *from_part = bytes > *from_part ? bytes : *from_part;
    }
    for (int i = 0; i < l->n; i++) {
        size_t bytes = sum_bytes(leader_row(l, l->recv, i), 0, l->e->size);
        *from_leaders = bytes > *from_leaders ? bytes : *from_leaders;
    }
    return *from_part + *from_leaders;
}

static bool allocate_sequence(struct sequence *s, size_t from_part, size_t from_leaders) {
    size_t most = (size_t)(s->l->e->units > s->l->n ? s->l->e->units : s->l->n);
    s->from_part = malloc(from_part + 1);
    s->from_leaders = malloc(from_leaders + 1);
    s->counts = malloc(most * sizeof *s->counts);
    s->displs = malloc(most * sizeof *s->displs);
    return s->from_part && s->from_leaders && s->counts && s->displs && from_part <= INT_MAX;
}

int coll_exchange_in_sequence(const struct exchange *e, struct call *call, bool fits, struct flow *send,
                              struct flow *recv) {
    struct leader leader = {.e = e};
    struct sequence s = {.l = &leader, .call = call};
    size_t need = 0, from_part, from_leaders;
    int rc = coll_leader_counts(&leader, send, recv);
    if (rc == MPI_SUCCESS && e->leaders != MPI_COMM_NULL) {
        need = largest_step(&leader, &from_part, &from_leaders);
        fits = fits && need <= coll_memory_limit() && allocate_sequence(&s, from_part, from_leaders);
    }
    if (rc == MPI_SUCCESS)
        rc = coll_leaders_agree(e, fits ? need : ULLONG_MAX, call);
    if (rc == MPI_SUCCESS)
        rc = run_sequence(&s, send, recv);
    free(s.from_part);
    free(s.from_leaders);
    free(s.counts);
    free(s.displs);
    coll_leader_free(&leader);
    return rc;
}
