/* spiking: a random network of spiking neurons that exchanges its spikes as NEST 3 does. Not NEST: see README.md.
 *
 * Model: Brunel's balanced network (J. Comput. Neurosci. 8, 2000), leaky integrate-and-fire neurons with delta
 * synapses, integrated exactly (Rotter and Diesmann, Biol. Cybern. 81, 1999) on a grid of 0.1 ms; all synapses have the
 * delay D, so spikes are exchanged every D. Neuron g lives on rank g mod P. Random numbers come from a counter
 * (SplitMix64 of neuron and use), so the network and its activity are the same for every number of ranks. */
#include "exchange.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
    long neurons, indegree;
    double milliseconds, inhibition, rate; /* g and nu_ext / nu_thr of Brunel (2000) */
} Options;

/* Brunel's model A (section 2): mV and ms. */
static const double TAU = 20, THRESHOLD = 20, RESET = 10, REFRACTORY = 2, WEIGHT = 0.1, STEP = 0.1, DELAY = 1.5;

typedef struct Network {
    Options options;
    int rank, size, delay_steps;
    long local; /* neurons of this rank: rank, rank + P, ... */
    double *potential;
    int *refractory;      /* steps left */
    uint64_t *drawn;      /* random numbers drawn so far for the external drive, by neuron */
    double *input;        /* ring buffer, local neuron x delay steps: input that arrives (mV) */
    long *first, *target; /* by source neuron: its local targets are target[first[s]] to target[first[s + 1] - 1] */
    bool *has_targets;    /* local source x rank: whether the rank has targets of the source */
    long spikes;
    int interval_start;
} Network;

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t random_bits(uint64_t stream, uint64_t count) {
    uint64_t z = (stream + 1) * 0xd1342543de82ef95u + (count + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t bits) {
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

static long owner(const Network *net, long neuron) {
    return neuron % net->size;
}

static bool excitatory(const Network *net, long neuron) {
    return neuron < net->options.neurons * 4 / 5;
}

static void has_target(void *context, int from, uint64_t value) {
    Network *net = context;
    net->has_targets[(long)value / net->size * net->size + from] = true;
}

/* Each neuron draws its sources; then the ranks of the sources are told which ranks have targets, in buffers like those
 * of NEST's target data. */
static void connect(Network *net) {
    long n = net->options.neurons, k = net->options.indegree;
    net->first = allocate((size_t)n + 2, sizeof(long));
    net->target = allocate((size_t)(net->local * k), sizeof(long));
    net->has_targets = allocate((size_t)net->local * (size_t)net->size, sizeof(bool));
    for (int pass = 0; pass < 2; pass++) {
        for (long i = 0; i < net->local; i++)
            for (long j = 0; j < k; j++) {
                long source = (long)(random_bits((uint64_t)(i * net->size + net->rank), (uint64_t)j) % (uint64_t)n);
                if (pass == 0)
                    net->first[source + 2]++;
                else
                    net->target[net->first[source + 1]++] = i;
            }
        for (long s = 1; pass == 0 && s <= n; s++)
            net->first[s + 1] += net->first[s];
    }
    Exchange exchange;
    exchange_init(&exchange, net->size, 1.5);
    for (long s = 0; s < n; s++)
        if (net->first[s + 1] > net->first[s])
            exchange_add(&exchange, (int)owner(net, s), (uint64_t)s);
    exchange_all(&exchange, has_target, net);
    exchange_free(&exchange);
}

/* Knuth's method (vol. 2, 3.4.1), as the means here are below ten. */
static int poisson(Network *net, long i, double limit) {
    int count = -1;
    uint64_t stream = (uint64_t)(i * net->size + net->rank) + 0x100000000u;
    for (double product = 1; product > limit; count++)
        product *= uniform(random_bits(stream, net->drawn[i]++));
    return count;
}

/* Updates all neurons by one step; each spike is sent to every rank with targets, with its step in the interval. */
static void update(Network *net, Exchange *exchange, int step, double decay, double drive_limit) {
    int slot = (net->interval_start + step) % net->delay_steps;
    for (long i = 0; i < net->local; i++) {
        double arriving = net->input[i * net->delay_steps + slot] + WEIGHT * poisson(net, i, drive_limit);
        net->input[i * net->delay_steps + slot] = 0;
        if (net->refractory[i] > 0) {
            net->refractory[i]--;
            continue;
        }
        net->potential[i] = net->potential[i] * decay + arriving;
        if (net->potential[i] < THRESHOLD)
            continue;
        net->potential[i] = RESET;
        net->refractory[i] = (int)(REFRACTORY / STEP);
        net->spikes++;
        uint64_t neuron = (uint64_t)(i * net->size + net->rank);
        for (int rank = 0; rank < net->size; rank++)
            if (net->has_targets[i * net->size + rank])
                exchange_add(exchange, rank, neuron << 8 | (uint64_t)step);
    }
}

/* A spike of step s arrives at all local targets one delay later: in the slot from which step s was read. */
static void deliver(void *context, int from, uint64_t value) {
    Network *net = context;
    (void)from;
    long source = (long)(value >> 8);
    int slot = (net->interval_start + (int)(value & 0xff)) % net->delay_steps;
    double weight = excitatory(net, source) ? WEIGHT : -net->options.inhibition * WEIGHT;
    for (long t = net->first[source]; t < net->first[source + 1]; t++)
        net->input[net->target[t] * net->delay_steps + slot] += weight;
}

static void build(Network *net) {
    net->delay_steps = (int)lround(DELAY / STEP);
    net->local = (net->options.neurons - net->rank + net->size - 1) / net->size;
    net->potential = allocate((size_t)net->local, sizeof(double));
    net->refractory = allocate((size_t)net->local, sizeof(int));
    net->drawn = allocate((size_t)net->local, sizeof(uint64_t));
    net->input = allocate((size_t)net->local * (size_t)net->delay_steps, sizeof(double));
    for (long i = 0; i < net->local; i++)
        net->potential[i] = THRESHOLD * uniform(random_bits((uint64_t)(i * net->size + net->rank), 1u << 30));
    connect(net);
}

static void simulate(Network *net, Exchange *exchange) {
    double decay = exp(-STEP / TAU);
    /* The drive that alone brings a neuron to threshold (Brunel 2000, section 3): theta / (J tau) spikes per ms. */
    double mean = net->options.rate * THRESHOLD / (WEIGHT * TAU) * STEP;
    long intervals = lround(net->options.milliseconds / DELAY);
    for (long interval = 0; interval < intervals; interval++) {
        for (int step = 0; step < net->delay_steps; step++)
            update(net, exchange, step, decay, exp(-mean));
        exchange_all(exchange, deliver, net);
    }
}

static void usage(int rank, const char *wrong) {
    if (rank == 0 && wrong)
        fprintf(stderr, "spiking: %s\n", wrong);
    if (rank == 0)
        fprintf(stderr, "usage: spiking [--neurons N] [--indegree K] [--milliseconds T] [--inhibition G] [--rate R]\n");
    MPI_Finalize();
    exit(wrong ? 1 : 0);
}

static Options read_options(int argc, char **argv, int rank) {
    Options options = {.neurons = 4000, .indegree = 400, .milliseconds = 300, .inhibition = 5, .rate = 2};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            usage(rank, NULL);
        char *end = NULL;
        double value = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;
        if (!end || *end || value <= 0)
            usage(rank, "every option needs a positive number");
        if (strcmp(argv[i], "--neurons") == 0)
            options.neurons = (long)value;
        else if (strcmp(argv[i], "--indegree") == 0)
            options.indegree = (long)value;
        else if (strcmp(argv[i], "--milliseconds") == 0)
            options.milliseconds = value;
        else if (strcmp(argv[i], "--inhibition") == 0)
            options.inhibition = value;
        else if (strcmp(argv[i], "--rate") == 0)
            options.rate = value;
        else
            usage(rank, argv[i]);
        i++;
    }
    return options;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Network net = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &net.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &net.size);
    net.options = read_options(argc, argv, net.rank);
    build(&net);
    Exchange exchange;
    exchange_init(&exchange, net.size, 1.5);
    double start = MPI_Wtime();
    simulate(&net, &exchange);
    double seconds = MPI_Wtime() - start, longest;
    long mine[] = {net.spikes, exchange.sent}, all[2];
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (net.rank == 0)
        printf("P=%d neurons=%ld indegree=%ld milliseconds=%g spikes=%ld rate_hz=%.3f rounds=%ld growths=%ld "
               "entries_per_rank=%zu "
               "sent=%ld seconds=%.6f\n",
               net.size, net.options.neurons, net.options.indegree, net.options.milliseconds, all[0],
               (double)all[0] / (double)net.options.neurons / net.options.milliseconds * 1000, exchange.rounds,
               exchange.growths, exchange.per_rank, all[1], longest);
    exchange_free(&exchange);
    free(net.potential);
    free(net.refractory);
    free(net.drawn);
    free(net.input);
    free(net.first);
    free(net.target);
    free(net.has_targets);
    MPI_Finalize();
    return 0;
}
