/* [bijlani2021]: state of a unit's leader in an alltoallv. The ranks of a unit (a node or a group) send their data to
 * it. */
#ifndef ALGORITHMS_LEADER_H
#define ALGORITHMS_LEADER_H

#include "algorithms/exchange.h"

struct leader {
    const struct exchange *e;
    int n;                      /* ranks in the unit */
    int *send, *recv;           /* bytes, by member and position */
    int *part_send, *part_recv; /* bytes, by member */
    struct flow out, in;        /* exchanged with other leaders, in the order of their units in e->inner */
    size_t sent, received;
};

static inline const int *leader_row(const struct leader *l, const int *table, int member) {
    return table + (size_t)member * (size_t)l->e->size;
}

static inline size_t sum_bytes(const int counts[], int first, int last) {
    size_t total = 0;
    for (int i = first; i < last; i++)
        total += (size_t)counts[i];
    return total;
}

/* Collects on the leader what all members send and receive; other ranks only get n. */
int coll_leader_counts(struct leader *l, const struct flow *send, const struct flow *recv);
void coll_leader_free(struct leader *l);
/* Returns COLL_USE_DEFAULT on all ranks if one leader needs too much memory (`need`, in bytes). */
int coll_leaders_agree(const struct exchange *e, unsigned long long need, const struct call *call);

/* A sequence of gatherv: for each rank in turn, its data are gathered at its leader, which forwards them. */
int coll_exchange_in_sequence(const struct exchange *e, struct call *call, bool fits, struct flow *send,
                              struct flow *recv);

#endif
