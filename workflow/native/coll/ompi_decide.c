/*
 * What Open MPI 4.1 chooses when nobody tells it anything (coll_tuned_decision_fixed.c), as data. The first row that
 * fits decides. Nothing is segmented, and a chain has fan-out 1.
 */
#include "collstudy.h"

#include <stdint.h>

#define ANY SIZE_MAX

struct row {
    size_t ranks, bytes; /* fewer than that many */
    algorithm_function *run;
};

/* clang-format off */
static const struct row bcast[] = {
    {4, 32, ompi_bcast_pipeline},
    {4, 256, ompi_bcast_binary},
    {4, 512, ompi_bcast_pipeline},
    {4, 1024, ompi_bcast_knomial},
    {4, 32768, ompi_bcast_linear},
    {4, 131072, ompi_bcast_binary},
    {4, 262144, ompi_bcast_chain},
    {4, 524288, ompi_bcast_linear},
    {4, 1048576, ompi_bcast_binomial},
    {4, ANY, ompi_bcast_binary},
    {8, 64, ompi_bcast_binary},
    {8, 128, ompi_bcast_binomial},
    {8, 2048, ompi_bcast_binary},
    {8, 8192, ompi_bcast_binomial},
    {8, 1048576, ompi_bcast_linear},
    {8, ANY, ompi_bcast_chain},
    {16, 8, ompi_bcast_knomial},
    {16, 64, ompi_bcast_binary},
    {16, 4096, ompi_bcast_knomial},
    {16, 16384, ompi_bcast_binary},
    {16, 32768, ompi_bcast_binomial},
    {16, ANY, ompi_bcast_linear},
    {32, 4096, ompi_bcast_knomial},
    {32, 1048576, ompi_bcast_binomial},
    {32, ANY, ompi_bcast_scatter_allgather},
    {64, 2048, ompi_bcast_binomial},
    {64, ANY, ompi_bcast_knomial},
    {128, ANY, ompi_bcast_knomial},
    {256, 2, ompi_bcast_binomial},
    {256, 16384, ompi_bcast_binary},
    {256, 32768, ompi_bcast_linear},
    {256, 65536, ompi_bcast_binary},
    {256, ANY, ompi_bcast_knomial},
    {1024, 16384, ompi_bcast_knomial},
    {1024, 32768, ompi_bcast_split_binary},
    {1024, ANY, ompi_bcast_knomial},
    {2048, 524288, ompi_bcast_knomial},
    {2048, ANY, ompi_bcast_scatter_allgather},
    {4096, 262144, ompi_bcast_knomial},
    {4096, ANY, ompi_bcast_scatter_allgather},
    {ANY, 8192, ompi_bcast_knomial},
    {ANY, 16384, ompi_bcast_binary},
    {ANY, 262144, ompi_bcast_knomial},
    {ANY, ANY, ompi_bcast_scatter_allgather},
};

static const struct row barrier[] = {
    {4, ANY, ompi_barrier_recursive_doubling},
    {8, ANY, ompi_barrier_linear},
    {64, ANY, ompi_barrier_recursive_doubling},
    {256, ANY, ompi_barrier_bruck},
    {512, ANY, ompi_barrier_tree},
    {1024, ANY, ompi_barrier_bruck},
    {4096, ANY, ompi_barrier_tree},
    {ANY, ANY, ompi_barrier_bruck},
};

static const struct row reduce_ordered[] = {
    {4, 8, ompi_reduce_in_order_binary},
    {4, ANY, ompi_reduce_linear},
    {8, ANY, ompi_reduce_linear},
    {16, 1024, ompi_reduce_in_order_binary},
    {16, 8192, ompi_reduce_linear},
    {16, 16384, ompi_reduce_in_order_binary},
    {16, 262144, ompi_reduce_linear},
    {16, ANY, ompi_reduce_in_order_binary},
    {128, ANY, ompi_reduce_in_order_binary},
    {256, 512, ompi_reduce_in_order_binary},
    {256, 1024, ompi_reduce_linear},
    {256, ANY, ompi_reduce_in_order_binary},
    {ANY, ANY, ompi_reduce_in_order_binary},
};

static const struct row reduce_commuting[] = {
    {4, 8, ompi_reduce_rabenseifner},
    {4, 16, ompi_reduce_binary},
    {4, 32, ompi_reduce_pipeline},
    {4, 262144, ompi_reduce_linear},
    {4, 524288, ompi_reduce_pipeline},
    {4, 1048576, ompi_reduce_chain},
    {4, ANY, ompi_reduce_pipeline},
    {8, 4096, ompi_reduce_binary},
    {8, 65536, ompi_reduce_chain},
    {8, 262144, ompi_reduce_binomial},
    {8, 524288, ompi_reduce_linear},
    {8, 1048576, ompi_reduce_binomial},
    {8, ANY, ompi_reduce_linear},
    {16, 8192, ompi_reduce_binary},
    {16, ANY, ompi_reduce_binomial},
    {32, 4096, ompi_reduce_binary},
    {32, ANY, ompi_reduce_binomial},
    {256, ANY, ompi_reduce_binomial},
    {512, 8192, ompi_reduce_binomial},
    {512, 16384, ompi_reduce_in_order_binary},
    {512, ANY, ompi_reduce_binomial},
    {2048, ANY, ompi_reduce_binomial},
    {4096, 512, ompi_reduce_binomial},
    {4096, 1024, ompi_reduce_in_order_binary},
    {4096, 8192, ompi_reduce_binomial},
    {4096, 16384, ompi_reduce_in_order_binary},
    {4096, ANY, ompi_reduce_binomial},
    {ANY, 16, ompi_reduce_binomial},
    {ANY, 32, ompi_reduce_in_order_binary},
    {ANY, 1024, ompi_reduce_binomial},
    {ANY, 2048, ompi_reduce_in_order_binary},
    {ANY, 8192, ompi_reduce_binomial},
    {ANY, 16384, ompi_reduce_in_order_binary},
    {ANY, ANY, ompi_reduce_binomial},
};

static const struct row allreduce_ordered[] = {
    {4, 131072, ompi_allreduce_recursive_doubling},
    {4, ANY, ompi_allreduce_linear},
    {8, ANY, ompi_allreduce_recursive_doubling},
    {16, 1048576, ompi_allreduce_recursive_doubling},
    {16, ANY, ompi_allreduce_nonoverlapping},
    {128, ANY, ompi_allreduce_recursive_doubling},
    {256, 131072, ompi_allreduce_nonoverlapping},
    {256, 524288, ompi_allreduce_recursive_doubling},
    {256, ANY, ompi_allreduce_nonoverlapping},
    {512, 4096, ompi_allreduce_nonoverlapping},
    {512, 524288, ompi_allreduce_recursive_doubling},
    {512, ANY, ompi_allreduce_nonoverlapping},
    {ANY, 2048, ompi_allreduce_nonoverlapping},
    {ANY, ANY, ompi_allreduce_recursive_doubling},
};

static const struct row allreduce_commuting[] = {
    {4, 8, ompi_allreduce_ring},
    {4, 4096, ompi_allreduce_recursive_doubling},
    {4, 8192, ompi_allreduce_ring},
    {4, 16384, ompi_allreduce_recursive_doubling},
    {4, 65536, ompi_allreduce_ring},
    {4, 262144, ompi_allreduce_segmented_ring},
    {4, ANY, ompi_allreduce_rabenseifner},
    {8, 16, ompi_allreduce_ring},
    {8, 8192, ompi_allreduce_recursive_doubling},
    {8, ANY, ompi_allreduce_rabenseifner},
    {16, 8192, ompi_allreduce_recursive_doubling},
    {16, ANY, ompi_allreduce_rabenseifner},
    {32, 64, ompi_allreduce_segmented_ring},
    {32, 4096, ompi_allreduce_recursive_doubling},
    {32, ANY, ompi_allreduce_rabenseifner},
    {64, 128, ompi_allreduce_segmented_ring},
    {64, ANY, ompi_allreduce_rabenseifner},
    {128, 262144, ompi_allreduce_recursive_doubling},
    {128, ANY, ompi_allreduce_rabenseifner},
    {256, 131072, ompi_allreduce_nonoverlapping},
    {256, 262144, ompi_allreduce_recursive_doubling},
    {256, ANY, ompi_allreduce_rabenseifner},
    {512, 4096, ompi_allreduce_nonoverlapping},
    {512, ANY, ompi_allreduce_rabenseifner},
    {2048, 2048, ompi_allreduce_nonoverlapping},
    {2048, 16384, ompi_allreduce_recursive_doubling},
    {2048, ANY, ompi_allreduce_rabenseifner},
    {4096, 2048, ompi_allreduce_nonoverlapping},
    {4096, 4096, ompi_allreduce_segmented_ring},
    {4096, 16384, ompi_allreduce_recursive_doubling},
    {4096, ANY, ompi_allreduce_rabenseifner},
    {ANY, 2048, ompi_allreduce_nonoverlapping},
    {ANY, 16384, ompi_allreduce_segmented_ring},
    {ANY, 32768, ompi_allreduce_recursive_doubling},
    {ANY, ANY, ompi_allreduce_rabenseifner},
};
/* clang-format on */

static int decide(const struct row *row, struct call *call) {
    struct call inner = *call;
    inner.params = (struct params){.fanout = 1, .radix = 4};
    while ((size_t)call->size >= row->ranks || call->bytes >= row->bytes)
        row++;
    return row->run(&inner);
}

int ompi_bcast_default(struct call *call) {
    return decide(bcast, call);
}

int ompi_barrier_default(struct call *call) {
    return decide(barrier, call);
}

int ompi_reduce_default(struct call *call) {
    return decide(coll_commutes(call) ? reduce_commuting : reduce_ordered, call);
}

int ompi_allreduce_default(struct call *call) {
    return decide(coll_commutes(call) ? allreduce_commuting : allreduce_ordered, call);
}
