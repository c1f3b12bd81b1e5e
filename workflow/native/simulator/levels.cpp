/* The platform of a calibrated machine: cores in nested units of levels, and the cost of a message between two cores
 * (platforms.py describes the model). SimGrid's own factors and zones cannot make a cost depend on level, size and the
 * cores' previous messages. COLLSTUDY_PLATFORM names the description of the machine, COLLSTUDY_HOSTS the host file,
 * which tells how many ranks are on each node. */
#include "cores.hpp"

/* SimGrid of Debian 12 (3.32) sets the factors of the network model; later versions set those of a zone. */
#if __has_include(<simgrid/kernel/resource/NetworkModelIntf.hpp>)
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#define FACTORS_OF_MODEL
#endif
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/version.h>
#include <smpi/smpi.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace {

using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::Route;
using Links = std::vector<Link *>;
using Zones = std::unordered_set<simgrid::s4u::NetZone *>;

/* Bytes that SMPI adds to each message of the program. */
const double header = 16;
/* A route counts a link once for each crossing, so a message uses a link in whole numbers of crossings. The links of a
 * core have the bandwidth of this many crossings at the rate of the innermost level. (SimGrid's bandwidth factor slows
 * a message down without changing its use of the links, so it only compensates for rounding. A FATPIPE link would be a
 * bound, but see docs/architecture.md.) */
const int crossings = 16;
/* Latency of each link (s). No simulated time depends on it, as a message's latency is a factor on that of its route.
 * But SimGrid 3.32's solver adds up crossings / latency of the messages of a link, subtracts them again, and ends the
 * simulation if rounding leaves more than 1e-5. With 1e-9, some 200 long messages to one core were enough. The factor
 * is a power of two, so that no digit changes. */
const double link_latency = 1e-9 * (1 << 20);
/* Bytes of a core's own data that others read from its own cache. Receivers of the same message, as in a broadcast,
 * read the same cache lines there and wait for each other; blocks of a scatter that do not fit are read from elsewhere,
 * all at once. Chosen on scatters of the THIN nodes (docs/cost-model.md). */
const double own_cache = 1 << 21;
/* Bytes of the message that announces a long one (rendezvous). */
const double announcement = 64;
/* Bytes of an entry of a receiver's queue. What is longer goes to a buffer beside it: the sender is busy for longer
 * then, but holds the queue no longer. Measured times have a step between 64 and 128 bytes. */
const double entry = 96;
/* Number of ranks from which on messages start on a grid (on_grid()). */
const size_t many_ranks = 1024;

size_t ranks = 0; /* number, from the host file */

class Cores : public simgrid::kernel::routing::NetZoneImpl {
    std::vector<Place *> places; /* by the id of the host's netpoint */
    std::map<std::string, Shared> units;

    Link *link(const std::string &name, double bytes_per_s) {
        return get_iface()->create_link(name, bytes_per_s);
    }
    /* Creates a link whose capacity does not bound fewer than *several* messages, even if their shares exceed 1.
     * *counted*: the number of its messages; *fastest*: bound of the rate of each. */
    Link *unbounded(const std::string &name, double bytes_per_s, int several, int *counted = nullptr,
                    double fastest = unlimited) {
        auto capacity = [bytes_per_s, several, counted](double, int messages) {
            if (counted)
                *counted = messages;
            return messages < several ? unlimited : bytes_per_s;
        };
        return link(name, std::min(bytes_per_s, fastest))
            ->set_sharing_policy(Link::SharingPolicy::NONLINEAR, capacity)
            ->seal();
    }
    /* Returns the link of a unit. *several*, *fastest*: see above. */
    Shared *shared(const std::string &name, double bytes_per_s, int several, double fastest = unlimited) {
        Shared &found = units[name];
        if (found.link == nullptr) {
            found.bytes_per_s = bytes_per_s;
            found.link = unbounded(name, bytes_per_s, several, &found.messages, fastest);
        }
        return &found;
    }
    void add(std::vector<int> &at) {
        if (at.size() < machine.levels.size()) {
            for (int i = 0; i < machine.levels[at.size()].count; i++) {
                at.push_back(i);
                add(at);
                at.pop_back();
            }
            return;
        }
        auto *made = new Place;
        made->distinct = 0;
        made->at = at;
        made->left_unit.resize(at.size());
        std::string name;
        for (size_t depth = 0; depth < at.size(); depth++) {
            double among = machine.levels[depth].between;
            made->between.push_back(among > 0 ? shared("b" + name, among, 2) : nullptr);
            name += "-" + std::to_string(at[depth]);
            double rate = depth + 1 < at.size() ? machine.levels[depth].shared : 0;
            double fastest =
                depth < machine.node_parts ? rate_of(machine.levels[depth], machine.limit, true, false) : unlimited;
            made->out.push_back(rate > 0 ? shared("o" + name, rate, 2, fastest) : nullptr);
            made->in.push_back(rate > 0 ? shared("i" + name, rate, 2) : nullptr);
            if (depth + 1 == machine.node_parts && machine.levels[depth].gap > 0)
                made->interface = shared("n" + name, machine.levels[depth].rate, 2);
        }
        double whole = crossings * machine.levels.back().rate;
        made->sends = unbounded("s" + name, whole, 2);
        made->receives = link("r" + name, whole)->seal();
        made->alone = unbounded("a" + name, whole, std::numeric_limits<int>::max());
        auto *host = get_iface()->create_host("c" + name, 1e9);
        host->set_data(made);
        host->seal();
        size_t number = host->get_netpoint()->id();
        places.resize(std::max(places.size(), number + 1));
        places[number] = made;
    }

  public:
    Cores() : NetZoneImpl("cores") {
    }
    void build() {
        std::vector<int> at;
        add(at);
    }

    void get_local_route(const NetPoint *source, const NetPoint *target, Route *into, double *latency) override {
        Place &from = *places.at(source->id()), &to = *places.at(target->id());
        size_t depth = depth_of(from, to);
        auto take = [&](Link *link) {
            into->link_list_.push_back(link->get_impl());
            from.latency += link_latency;
        };
        from.latency = 0;
        const Level &level = machine.levels[depth];
        const Sent *sent = next(from, to);
        double size = sent ? sent->size : machine.limit, whole = crossings * machine.levels.back().rate;
        from.blocking = !sent || sent->copied;
        bool forwarded = !from.blocking && forwards(size, from);
        double part = level.share * (forwarded ? level.share_forward : 1);
        if (sent && sent->distinct > own_cache)
            part *= own_cache / sent->distinct;
        if (size >= machine.limit && same_node(from, to))
            part += first_share(from, depth);
        for (long i = size < machine.limit ? 0 : std::lround(part * whole / level.rate); i > 0; i--)
            take(from.sends);
        /* A core that sends and receives at the same time copies for both; between nodes the NIC writes by itself. */
        for (long i = size < machine.limit || !same_node(from, to) ? 0 : std::lround(level.share * whole / level.rate);
             i > 0; i--)
            take(to.sends);
        bool waits = waits_at_borders(from, to, size);
        if (same_node(from, to) ? waits : waits_at_interface(from, to, size)) {
            take(from.alone);
        } else {
            if (!bound_of_node(from, to, size))
                for (long i = std::max(1L, (long)(whole / rate_of(level, size, from.blocking, forwarded))); i > 0; i--)
                    take(to.receives);
            /* As if the message were as long as what its interface could send in the gap. */
            for (long i =
                     waits && from.interface ? std::lround(machine.node().gap * machine.node().rate / (size + header))
                                             : 0;
                 i > 0; i--)
                take(from.interface->link);
            if (!waits)
                for (const Shared *shared : crossed(from, to, size))
                    take(shared->link);
        }
        /* SimGrid gives the messages of a link rates in inverse proportion to the latencies of their routes. Readers of
         * one core were measured to be equally fast. */
        if (size >= machine.limit)
            from.latency = link_latency;
        if (latency)
            *latency += from.latency;
    }
    void get_graph(const s_xbt_graph_t *, std::map<std::string, xbt_node_t, std::less<>> *,
                   std::map<std::string, xbt_edge_t, std::less<>> *) override {
    }
};

/* Removes a message from those that do not flow yet; returns when it was sent, or -1 if SMPI did not report it. */
double starts(Place &from, const Place &to, double size) {
    auto sent = from.sent.find(&to);
    if (sent == from.sent.end())
        return -1;
    auto found =
        std::find_if(sent->second.begin(), sent->second.end(), [size](const Sent &one) { return one.size == size; });
    if (found == sent->second.end())
        return -1;
    double when = found->when;
    sent->second.erase(found);
    if (sent->second.empty())
        from.sent.erase(sent); /* or an alltoall would keep an entry for each pair of ranks */
    return when;
}

/* Returns the time (s) for which a message to another node waits for previous ones: a core sends long ones below a
 * limit one after the other into the network. */
double queued(Place &from, const Place &to, double size, double rate) {
    if (same_node(from, to) || size < machine.limit || size >= machine.queued_limit)
        return 0;
    double now = simgrid::s4u::Engine::get_clock(), start = std::max(now, from.left);
    from.left = start + size / rate;
    return start - now;
}

/* Returns the time (s) for which a short message waits for others, at the borders of units and at the interface. */
double waits(const Place &from, const Place &to, double size) {
    double now = simgrid::s4u::Engine::get_clock(), start = now;
    bool at_interface = waits_at_interface(from, to, size);
    if (waits_at_borders(from, to, size))
        for (Shared *shared : crossed(from, to, size))
            start = shared->pass(size / shared->bytes_per_s, start);
    if (at_interface)
        start = from.interface->pass(machine.node().gap, start);
    return start - now;
}

/* Returns the remaining time (s) until the first byte of an MPI_Send's message that was sent at *when*: the sender has
 * copied it, or a part of it, before the receive. If a receiver on its node waits, it sends until the message arrives.
 */
double copied(const Level &level, Place &from, const Place &to, double size, double when) {
    double now = simgrid::s4u::Engine::get_clock(), whole = level.waited.at(size);
    if (when < 0)
        return whole;
    if (!same_node(from, to))
        return std::max(0.0, whole - copy_time(size));
    if (now == when)
        from.ended = now + whole + size / rate_of(level, size, true, false);
    return std::max(0.0, whole - (now - when));
}

/* Notes that an MPI_Send to a core of the same node, from *start* on, ends when its message is in the receiver's queue,
 * and not before *copied*. Messages from other caches enter the queue one after the other. */
void enter_queue(Place &from, Place &to, double size, double start, double copied) {
    const Level &level = machine.levels[depth_of(from, to)];
    from.ended = copied;
    if (&level == &machine.levels.back())
        return;
    to.queue = std::max(to.queue, start) + size / level.rate;
    from.ended = std::max(copied, to.queue);
}

/* Returns when a message that starts after some time (s) is to start: of many ranks, long ones that share the link of a
 * node start on a grid of up to 1 % of the time for which they share it. SimGrid solves one system of equations for all
 * of them whenever one starts or ends, and those that start together mostly end together. */
double on_grid(const Shared *node, double size, double seconds) {
    if (ranks < many_ranks || !node || !node->link->is_used())
        return seconds;
    double step = std::exp2(std::floor(std::log2(0.01 * (node->messages + 1) * size / node->bytes_per_s)));
    double now = simgrid::s4u::Engine::get_clock(), rounded = std::round((now + seconds) / step) * step - now;
    return rounded > 0 ? rounded : seconds;
}

double latency_factor(double size, const Host *source, const Host *target, const Links &, const Zones &) {
    Place &from = place(source), &to = place(target);
    const Level &level = machine.levels[depth_of(from, to)];
    double bytes = std::max(0.0, size - header);
    double when = starts(from, to, bytes);
    bool waited = from.blocking && between_limits(bytes);
    if (bytes > 1)
        to.received = bytes;
    if (same_node(from, to))
        to.last_from = &from;
    /* SMPI does not keep the sender busy for what it did not report: the latency includes that time instead. */
    double seconds =
        waited ? copied(level, from, to, bytes, when) : level.delay.at(bytes) + (when < 0 ? machine.send.at(bytes) : 0);
    seconds +=
        level.poll * std::max(0, to.ranks_on_node - 2) + queued(from, to, bytes, level.rate) + waits(from, to, bytes);
    return on_grid(bound_of_node(from, to, bytes), bytes, seconds) / from.latency;
}

double bandwidth_factor(double size, const Host *source, const Host *target, const Links &links, const Zones &) {
    const Place &from = place(source), &to = place(target);
    double bytes = size - header;
    if (bound_of_node(from, to, bytes))
        return 1;
    /* The route bounds other messages; an eager message is sent from the sender's own copy, which is in its cache. */
    bool blocking = from.blocking && between_limits(bytes),
         forwarded = bytes >= machine.waited_limit && forwards(bytes, from);
    double rate = rate_of(machine.levels[depth_of(from, to)], bytes, blocking, forwarded);
    auto crossed = std::max<long>(1, std::count(links.begin(), links.end(), to.receives)); /* or once `alone` */
    return std::min(1.0, rate * (double)crossed / to.receives->get_bandwidth());
}

/* Returns how long (s) the sender is busy with a message, from now on. */
double send_cost(SmpiOperation operation, size_t size, Host *source, Host *target) {
    Place &from = place(source), &to = place(target);
    const Level &level = machine.levels[depth_of(from, to)];
    double now = simgrid::s4u::Engine::get_clock(), start = std::max(now, from.free);
    /* A long message begins with a short one that announces it. */
    double bytes = (double)size < machine.limit ? (double)size : announcement, turn = 0;
    /* Of long MPI_Sends SMPI reports only those that return once the message is copied (core/message.c). */
    bool copied = operation == SmpiOperation::SEND && (double)size >= machine.limit;
    double own = copied ? copy_time((double)size) : machine.send.at((double)size);
    bool within = same_node(from, to);
    if (within && copied) {
        from.sent[&to].push_back({(double)size, copied, from.distinct, now});
        enter_queue(from, to, (double)size, now, now + own);
        return 0; /* the receiver does not get it later because the sender is busy; coll_send() waits */
    }
    if (within && to.last_from && to.last_from != &from) {
        /* The cache line comes from the last sender. */
        const Level &apart = machine.levels[depth_of(from, *to.last_from)];
        start = std::max(start, to.turn);
        turn = apart.turn * machine.alone(apart, std::min(bytes, entry));
        to.turn = start + (turn + own) / 2; /* the cache line moves on before the sender has finished */
    }
    if (within)
        to.last_from = &from;
    double part = bytes > entry && within ? std::max(level.busy, level.busy_buffered) : level.busy;
    from.free = start + turn / 2 + std::max(own, part * machine.alone(level, bytes));
    from.sent[&to].push_back({(double)size, copied, from.distinct, now});
    if (within && operation == SmpiOperation::SEND && bytes > entry)
        enter_queue(from, to, bytes, start, 0);
    return start + turn + own - now;
}

const char *needed(const char *name) {
    const char *value = std::getenv(name);
    if (value == nullptr)
        throw std::invalid_argument(std::string(name) + " is not set");
    return value;
}

/* Reads the core of each rank from the host file, and counts the ranks on its node. */
void place_ranks() {
    std::ifstream file(needed("COLLSTUDY_HOSTS"));
    std::map<std::vector<int>, std::vector<Place *>> nodes;
    for (std::string name; file >> name;) {
        Place &one = place(Host::by_name(name));
        ranks++;
        nodes[{one.at.begin(), one.at.begin() + (long)std::min(machine.node_parts, one.at.size())}].push_back(&one);
    }
    for (const auto &[node, places] : nodes) {
        for (auto *one : places) {
            for (const auto &links : {one->out, one->in, one->between, {one->interface}})
                for (Shared *shared : links)
                    if (shared)
                        shared->most += 2;
            one->ranks_on_node = (int)places.size();
            one->copied_from = machine.limit;
            one->copied_to = machine.waited_limit;
        }
    }
}

} // namespace

extern "C" void load_platform(const simgrid::s4u::Engine &);

void load_platform(const simgrid::s4u::Engine &) {
    machine = read_machine(needed("COLLSTUDY_PLATFORM"));
    auto *cores = new Cores;
    auto *zone = cores->get_iface();
#if SIMGRID_VERSION >= 40000 /* Since then SimGrid creates the root zone itself. */
    zone->set_parent(simgrid::s4u::Engine::get_instance()->get_netzone_root());
#endif
    cores->build();
    zone->seal();
    place_ranks();
#ifdef FACTORS_OF_MODEL
    zone->get_network_model()->set_lat_factor_cb(latency_factor);
    zone->get_network_model()->set_bw_factor_cb(bandwidth_factor);
#else
    zone->set_latency_factor_cb(latency_factor);
    zone->set_bandwidth_factor_cb(bandwidth_factor);
#endif
    for (auto operation : {SmpiOperation::SEND, SmpiOperation::ISEND})
        smpi_register_op_cost_callback(operation, [operation](size_t size, Host *source, Host *target) {
            return send_cost(operation, size, source, target);
        });
    smpi_register_op_cost_callback(SmpiOperation::RECV,
                                   [](size_t size, Host *, Host *) { return machine.receive.at((double)size); });
}
