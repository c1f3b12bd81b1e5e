/* Alltoallv through leaders: units (nodes or groups), kept with the communicator, and a rank's data by unit. */
#ifndef ALGORITHMS_EXCHANGE_H
#define ALGORITHMS_EXCHANGE_H

#include "core/cache.h"

enum exchange_kind { BY_NODE, BY_GROUP, BY_NODE_AND_GROUP, REORDERED };

struct exchange {
    enum exchange_kind kind;
    MPI_Comm comm;          /* all ranks; not owned */
    MPI_Comm part, leaders; /* this unit (REORDERED: all ranks, sorted); leaders of all units, only on leaders */
    int size, units, unit;
    int *order;             /* rank at each position */
    int *first;             /* first position of each unit; last entry: size */
    struct exchange *inner; /* exchange among the leaders; NULL: MPI_Alltoallv */
    struct exchange *next;
};

/* Packed data of this rank, ordered by position. */
struct flow {
    char *data;
    int *counts;
    size_t bytes;
};

int coll_exchange_get(struct cache *cache, enum exchange_kind kind, struct exchange **exchange);
/* Returns false if there is not enough memory or if the bytes exceed an int. */
bool coll_flow_make(struct flow *flow, const struct exchange *e, const int counts[], int type_size);
void coll_flow_free(struct flow *flow);
int coll_flow_pack(struct call *call, const struct exchange *e, struct flow *flow);
int coll_flow_unpack(struct call *call, const struct exchange *e, const struct flow *flow);

#endif
