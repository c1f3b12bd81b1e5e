/* Log of the traffic over time. SimGrid's flows share links by max-min fairness, so the rate of each flow is constant
 * between two events: after each step of the simulated clock, the bytes that each flow has moved are added to the links
 * of its path. Nothing is sampled.
 *
 * Time is divided into at most BINS intervals of equal width, a power of two of a microsecond. When the clock passes
 * the last one, neighbours are merged and the width doubles, so the makespan is between BINS / 2 and BINS intervals.
 *
 * Output, in the folder given:
 *   links.csv      interval, link, bytes, saturated_us, held_us: bytes that crossed the link (the simulator adds 16 for
 *                  the envelope of each message); time in which several flows together used its whole bandwidth, so
 *                  that
 *                  at least one was slowed down by the others; that time multiplied by the number of flows less one
 *   ports.csv      link, sender, port, stage, gb_s
 *   intervals.csv  interval, start_us, width_us, messages, latency_us, unloaded_us, bytes: messages that arrived in the
 *                  interval, their mean time from start to arrival, and that time on an empty network
 *   operations.csv interval, operation, rank_us, bytes, messages: time that all ranks together spent in the operation;
 *                  bytes and messages that it injected into the network
 *   pairs.csv      from, to, collective_bytes, point_to_point_bytes
 *   run.csv        key, value */
#include "traffic.hpp"

#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
/* SimGrid of Debian 12 (3.32) sets the factors of the network model; later versions set those of a zone. */
#if __has_include(<simgrid/kernel/resource/NetworkModelIntf.hpp>)
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#define FACTORS_OF_MODEL
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>
#include <unordered_map>

namespace {

using simgrid::kernel::resource::Action;

constexpr size_t BINS = 512;
/* A link counts as full if its flows use this fraction of its bandwidth; the solver is far more precise. */
constexpr double FULL = 0.999;

struct Flow {
    Action *action;
    std::vector<size_t> path;
    double started, size, moved, unloaded;
    bool counted; /* belongs to a replayed call, not to the start or the end of the program */
};

struct Call {
    int operation = -1; /* -1: before the rank's replay or after it */
    double entered = 0;
};

struct State {
    std::string folder;
    std::vector<traffic::Port> ports;
    std::unordered_map<const simgrid::s4u::Link *, size_t> index;
    std::unordered_map<const simgrid::s4u::Host *, int> rank;
    std::vector<int> active; /* flows on each link */
    std::vector<Flow> flows;
    std::vector<Call> calls;
    std::vector<std::string> operations{"compute"};
    size_t collectives_from = 0, collectives_to = 0;
    double width = 1e-6;
    std::vector<double> bytes, saturated, held; /* port x bin */
    std::vector<double> arrived, latency, unloaded, delivered;
    std::vector<double> rank_time, injected, sent; /* operation x bin */
    std::vector<double> pairs[2];                  /* rank x rank; collective, point to point */
    double total_messages = 0, end = 0;
    double origin = 0; /* start of the first rank's replay */
    bool on = false, ranks_run = false;
} log_;

/* Seconds since the replay began. */
double clock_now() {
    return simgrid::s4u::Engine::get_clock() - log_.origin;
}

/* Merges neighbouring intervals until `time` is inside. */
void make_room(double time) {
    while (time >= log_.width * BINS) {
        for (auto *table : {&log_.bytes, &log_.saturated, &log_.held, &log_.arrived, &log_.latency, &log_.unloaded,
                            &log_.delivered, &log_.rank_time, &log_.injected, &log_.sent})
            for (size_t row = 0; row < table->size(); row += BINS) {
                double *bins = table->data() + row;
                for (size_t i = 0; i < BINS / 2; i++)
                    bins[i] = bins[2 * i] + bins[2 * i + 1];
                std::fill(bins + BINS / 2, bins + BINS, 0.0);
            }
        log_.width *= 2;
    }
}

size_t bin(double time) {
    return time <= 0 ? 0 : std::min(BINS - 1, (size_t)(time / log_.width));
}

/* Distributes `amount` over the intervals from `start` to `end`, in proportion to the time in each. */
void spread(std::vector<double> &table, size_t row, double start, double end, double amount) {
    if (end <= start) {
        table[row * BINS + bin(start)] += amount;
        return;
    }
    for (size_t i = bin(start), last = bin(end); i <= last; i++) {
        double from = std::max(start, (double)i * log_.width), to = std::min(end, (double)(i + 1) * log_.width);
        if (to > from)
            table[row * BINS + i] += amount * (to - from) / (end - start);
    }
}

/* Called for the latency factor of a flow, when SimGrid has just created its action: the newest one of the model. */
double flow_starts(double size, const simgrid::s4u::Host *from, const simgrid::s4u::Host *to,
                   const std::vector<simgrid::s4u::Link *> &links) {
    static simgrid::kernel::resource::Model *network = nullptr;
    if (!network)
        for (auto *model : simgrid::s4u::Engine::get_instance()->get_all_models())
            if (model->get_name().find("network") != std::string::npos ||
                model->get_name().find("Network") != std::string::npos)
                network = model;
    auto source = log_.rank.find(from), target = log_.rank.find(to);
    if (!network || source == log_.rank.end() || target == log_.rank.end())
        return 1;
    double now = clock_now();
    make_room(now);
    int operation = log_.calls[source->second].operation;
    Flow flow{&network->get_started_action_set()->back(), {}, now, size, 0, 0, operation >= 0};
    double slowest = HUGE_VAL;
    for (const auto *link : links) {
        auto found = log_.index.find(link);
        if (found == log_.index.end())
            continue;
        flow.path.push_back(found->second);
        log_.active[found->second]++;
        flow.unloaded += link->get_latency();
        slowest = std::min(slowest, link->get_bandwidth());
    }
    flow.unloaded += size / slowest;
    log_.flows.push_back(std::move(flow));
    if (operation < 0)
        return 1;
    bool collective = (size_t)operation >= log_.collectives_from && (size_t)operation <= log_.collectives_to;
    size_t row = (size_t)operation * BINS + bin(now);
    log_.injected[row] += size;
    log_.sent[row] += 1;
    log_.total_messages++;
    log_.pairs[collective ? 0 : 1][(size_t)source->second * log_.calls.size() + (size_t)target->second] += size;
    return 1;
}

void time_advances(double delta) {
    double now = clock_now(), before = now - delta;
    if (log_.flows.empty())
        return;
    make_room(now);
    static std::vector<double> moved;
    static std::vector<int> moving;
    static std::vector<size_t> touched;
    moved.resize(log_.ports.size());
    moving.resize(log_.ports.size());
    for (size_t i = 0; i < log_.flows.size();) {
        Flow &flow = log_.flows[i];
        bool ended = flow.action->get_state() != Action::State::STARTED;
        double total = ended ? flow.size : flow.size - std::max(0.0, flow.action->get_remains_no_update());
        double progress = total - flow.moved;
        flow.moved = total;
        for (size_t port : flow.path) {
            if (flow.counted && progress > 0) {
                if (moving[port]++ == 0)
                    touched.push_back(port);
                moved[port] += progress;
            }
            if (ended)
                log_.active[port]--;
        }
        if (ended) {
            if (flow.counted) {
                size_t at = bin(now);
                log_.arrived[at] += 1;
                log_.latency[at] += now - flow.started;
                log_.unloaded[at] += flow.unloaded;
                log_.delivered[at] += flow.size;
            }
            if (&flow != &log_.flows.back())
                flow = std::move(log_.flows.back());
            log_.flows.pop_back();
        } else {
            i++;
        }
    }
    for (size_t port : touched) {
        spread(log_.bytes, port, before, now, moved[port]);
        if (moving[port] > 1 && moved[port] >= FULL * log_.ports[port].link->get_bandwidth() * delta) {
            spread(log_.saturated, port, before, now, delta);
            spread(log_.held, port, before, now, delta * (moving[port] - 1));
        }
        moved[port] = 0;
        moving[port] = 0;
    }
    touched.clear();
}

std::ofstream create(const char *name) {
    std::ofstream file(log_.folder + "/" + name);
    if (!file)
        throw std::runtime_error(log_.folder + "/" + name + " cannot be written");
    file.precision(10);
    return file;
}

void write_log() {
    size_t bins = bin(log_.end) + 1, ranks = log_.calls.size();
    auto links = create("links.csv");
    links << "interval,link,bytes,saturated_us,held_us\n";
    for (size_t i = 0; i < bins; i++)
        for (size_t p = 0; p < log_.ports.size(); p++)
            if (log_.bytes[p * BINS + i] > 0)
                links << i << ',' << p << ',' << std::round(log_.bytes[p * BINS + i]) << ','
                      << log_.saturated[p * BINS + i] * 1e6 << ',' << log_.held[p * BINS + i] * 1e6 << '\n';
    auto ports = create("ports.csv");
    ports << "link,sender,port,stage,gb_s\n";
    for (size_t p = 0; p < log_.ports.size(); p++)
        ports << p << ',' << log_.ports[p].sender << ',' << log_.ports[p].name << ',' << log_.ports[p].stage << ','
              << log_.ports[p].link->get_bandwidth() / 1e9 << '\n';
    auto intervals = create("intervals.csv");
    intervals << "interval,start_us,width_us,messages,latency_us,unloaded_us,bytes\n";
    for (size_t i = 0; i < bins; i++) {
        double count = log_.arrived[i];
        intervals << i << ',' << (double)i * log_.width * 1e6 << ',' << log_.width * 1e6 << ',' << count << ',';
        if (count > 0)
            intervals << log_.latency[i] / count * 1e6 << ',' << log_.unloaded[i] / count * 1e6;
        else
            intervals << ',';
        intervals << ',' << log_.delivered[i] << '\n';
    }
    auto operations = create("operations.csv");
    operations << "interval,operation,rank_us,bytes,messages\n";
    for (size_t o = 0; o < log_.operations.size(); o++)
        for (size_t i = 0; i < bins; i++) {
            size_t at = o * BINS + i;
            if (log_.rank_time[at] > 0 || log_.sent[at] > 0)
                operations << i << ',' << log_.operations[o] << ',' << log_.rank_time[at] * 1e6 << ','
                           << log_.injected[at] << ',' << log_.sent[at] << '\n';
        }
    auto pairs = create("pairs.csv");
    pairs << "from,to,collective_bytes,point_to_point_bytes\n";
    for (size_t i = 0; i < ranks * ranks; i++)
        if (log_.pairs[0][i] > 0 || log_.pairs[1][i] > 0)
            pairs << i / ranks << ',' << i % ranks << ',' << log_.pairs[0][i] << ',' << log_.pairs[1][i] << '\n';
    auto run = create("run.csv");
    run << "key,value\nmakespan_us," << log_.end * 1e6 << "\nmessages," << log_.total_messages << "\nranks," << ranks
        << "\ninterval_us," << log_.width * 1e6 << '\n';
}

} // namespace

/* Called by the replayed ranks (replay.c looks up these names in this library). */
extern "C" {
/* Starts the log: what came before the replay (creating communicators) does not count. `names` are the names of the
 * operations by number; those from `first` to `last` are collectives. */
__attribute__((visibility("default"))) void traffic_operations(const char *const *names, int count, int first,
                                                                int last) {
    if (!log_.on || log_.ranks_run)
        return;
    log_.ranks_run = true;
    log_.origin = simgrid::s4u::Engine::get_clock();
    log_.width = 1e-6;
    log_.operations.assign(names, names + count);
    log_.collectives_from = (size_t)first;
    log_.collectives_to = (size_t)last;
    for (auto *table : {&log_.rank_time, &log_.injected, &log_.sent})
        table->assign((size_t)count * BINS, 0.0);
}

/* Reports the operation that a rank is in from now on; 0: it computes, -1: it has ended. */
__attribute__((visibility("default"))) void traffic_enter(int rank, int operation) {
    if (!log_.on)
        return;
    double now = clock_now();
    make_room(now);
    Call &call = log_.calls[(size_t)rank];
    if (call.operation >= 0)
        spread(log_.rank_time, (size_t)call.operation, call.entered, now, now - call.entered);
    call.operation = operation;
    call.entered = now;
    log_.end = std::max(log_.end, now);
}
}

namespace traffic {

int under_way(const simgrid::s4u::Link *link) {
    auto found = log_.index.find(link);
    return found == log_.index.end() ? 0 : log_.active[found->second];
}

void start(const std::string &folder, std::vector<Port> ports, const std::vector<simgrid::s4u::Host *> &hosts) {
    log_.folder = folder;
    log_.ports = std::move(ports);
    for (size_t p = 0; p < log_.ports.size(); p++)
        log_.index[log_.ports[p].link] = p;
    for (size_t r = 0; r < hosts.size(); r++)
        log_.rank[hosts[r]] = (int)r;
    log_.active.assign(log_.ports.size(), 0);
    log_.calls.resize(hosts.size());
    for (auto *table : {&log_.bytes, &log_.saturated, &log_.held})
        table->assign(log_.ports.size() * BINS, 0.0);
    for (auto *table : {&log_.arrived, &log_.latency, &log_.unloaded, &log_.delivered})
        table->assign(BINS, 0.0);
    for (auto *table : {&log_.rank_time, &log_.injected, &log_.sent})
        table->assign(BINS, 0.0);
    for (auto &table : log_.pairs)
        table.assign(hosts.size() * hosts.size(), 0.0);
    log_.on = true;
    auto factor = [](double size, const simgrid::s4u::Host *from, const simgrid::s4u::Host *to,
                     const std::vector<simgrid::s4u::Link *> &links,
                     const std::unordered_set<simgrid::s4u::NetZone *> &) {
        return flow_starts(size, from, to, links);
    };
    auto *zone = simgrid::s4u::Engine::get_instance()->get_netzone_root();
#ifdef FACTORS_OF_MODEL
    zone->get_network_model()->set_lat_factor_cb(factor);
#else
    zone->set_latency_factor_cb(factor);
#endif
    simgrid::s4u::Engine::on_time_advance_cb(time_advances);
    if (!folder.empty())
        simgrid::s4u::Engine::on_simulation_end_cb(write_log);
}

} // namespace traffic
