/* Units of ranks in an alltoallv by way of leaders, kept with the communicator; a rank's data in their order. */
#ifndef ALGORITHMS_EXCHANGE_H
#define ALGORITHMS_EXCHANGE_H

#include "core/cache.h"

enum exchange_kind { BY_NODE, BY_GROUP, BY_NODE_AND_GROUP, REORDERED };

struct exchange {
    enum exchange_kind kind;
    MPI_Comm comm;          /* all; not owned */
    MPI_Comm part, leaders; /* this unit (REORDERED: all ranks, sorted); its leader also has the leaders */
    int size, units, unit;
    int *order;             /* rank by position */
    int *first;             /* first position of a unit, and size at the end */
    struct exchange *inner; /* how leaders exchange among each other; NULL: MPI_Alltoallv */
    struct exchange *next;
};

/* Bytes of this rank, by position. */
struct flow {
    char *data;
    int *counts;
    size_t bytes;
};

int coll_exchange_get(struct cache *cache, enum exchange_kind kind, struct exchange **exchange);
/* False, and too much, when there is no memory or no int for it. */
bool coll_flow_make(struct flow *flow, const struct exchange *e, const int counts[], int type_size);
void coll_flow_free(struct flow *flow);
int coll_flow_pack(struct call *call, const struct exchange *e, struct flow *flow);
int coll_flow_unpack(struct call *call, const struct exchange *e, const struct flow *flow);

#endif
