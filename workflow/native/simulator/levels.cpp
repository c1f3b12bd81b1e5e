/* The platform of a calibrated machine: an XML file, and what a message costs at each level (see simulator.py). */
#include "curve.hpp"

#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Links = std::vector<simgrid::s4u::Link *>;
using Zones = std::unordered_set<simgrid::s4u::NetZone *>;

struct Costs {
    Curve send, receive;
    std::map<int, Curve> delay;
    std::map<int, double> rate, forward; /* bytes per second of one message */
    double poll = 0;
    size_t node_parts = 0;
    double forward_from = std::numeric_limits<double>::infinity();
} costs;

/* What the costs of a message depend on, of the host of a rank. */
struct Place {
    std::vector<int> at;   /* the coordinates in the host's name, c-<outermost>-...-<innermost> */
    int ranks_on_node = 0; /* from the host file */
    /* Bytes of the last message to this host: what it got last it sends on from a cache that has to be written back. */
    double received = -1;
};

/* The place is made when a host is met first and kept with the host: this is asked several times for each message. */
Place &place(const simgrid::s4u::Host *host) {
    auto *known = host->get_data<Place>();
    if (known != nullptr)
        return *known;
    auto *made = new Place;
    std::istringstream text(host->get_name().substr(2));
    for (std::string part; std::getline(text, part, '-');)
        made->at.push_back(std::stoi(part));
    const_cast<simgrid::s4u::Host *>(host)->set_data(made);
    return *made;
}

/* The outermost level at which two hosts differ, counted from the outside; -1: none. */
int level(const simgrid::s4u::Host *one, const simgrid::s4u::Host *other) {
    const auto &a = place(one).at;
    const auto &b = place(other).at;
    for (size_t i = 0; i < a.size(); i++)
        if (a[i] != b[i])
            return (int)i;
    return -1;
}

bool forwards(double size, const simgrid::s4u::Host *from) {
    return size >= costs.forward_from && place(from).received >= size;
}

const char *needed(const char *name) {
    const char *value = std::getenv(name);
    if (value == nullptr)
        throw std::invalid_argument(std::string(name) + " is not set");
    return value;
}

/* Count the ranks on the node of each host of the host file: a rank looks for messages of each of them in turn. */
void count_ranks() {
    std::ifstream file(needed("COLLSTUDY_HOSTS"));
    std::map<std::vector<int>, std::vector<Place *>> nodes;
    for (std::string name; file >> name;) {
        Place &one = place(simgrid::s4u::Host::by_name(name));
        nodes[{one.at.begin(), one.at.begin() + (long)std::min(costs.node_parts, one.at.size())}].push_back(&one);
    }
    for (const auto &[node, places] : nodes)
        for (auto *one : places)
            one->ranks_on_node = (int)places.size();
}

double latency_factor(double size, const simgrid::s4u::Host *from, const simgrid::s4u::Host *to, const Links &links,
                      const Zones &) {
    int depth = level(from, to);
    auto curve = costs.delay.find(depth);
    if (size > 1)
        place(to).received = size;
    if (curve == costs.delay.end())
        return 1;
    double latency = 0;
    for (const auto *link : links)
        latency += link->get_latency();
    double seconds = curve->second.at(size) + costs.poll * std::max(0, place(to).ranks_on_node - 2);
    return latency > 0 ? seconds / latency : 1;
}

double bandwidth_factor(double size, const simgrid::s4u::Host *from, const simgrid::s4u::Host *to, const Links &links,
                        const Zones &) {
    int depth = level(from, to);
    auto own = costs.rate.find(depth), forwarded = costs.forward.find(depth);
    double rate = own == costs.rate.end() ? std::numeric_limits<double>::infinity() : own->second;
    if (forwarded != costs.forward.end() && forwards(size, from))
        rate = std::min(rate, forwarded->second);
    double slowest = std::numeric_limits<double>::infinity();
    for (const auto *link : links)
        slowest = std::min(slowest, link->get_bandwidth());
    return std::min(1.0, rate / slowest);
}

void read_costs() {
    std::ifstream file(needed("COLLSTUDY_COSTS"));
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string what;
        double size, value;
        int depth;
        words >> what;
        if (what == "send" && words >> size >> value)
            costs.send.add(size, value);
        else if (what == "receive" && words >> size >> value)
            costs.receive.add(size, value);
        else if (what == "delay" && words >> depth >> size >> value)
            costs.delay[depth].add(size, value);
        else if (what == "rate" && words >> depth >> value)
            costs.rate[depth] = value;
        else if (what == "forward" && words >> depth >> value)
            costs.forward[depth] = value;
        else if (what == "poll" && words >> depth >> value)
            costs.node_parts = (size_t)depth, costs.poll = value;
        else if (what == "forward_from" && words >> value)
            costs.forward_from = value;
        else
            throw std::invalid_argument("COLLSTUDY_COSTS: not understood: " + line);
    }
}

} // namespace

extern "C" void load_platform(const simgrid::s4u::Engine &);

void load_platform(const simgrid::s4u::Engine &) {
    auto *engine = simgrid::s4u::Engine::get_instance();
    read_costs();
    engine->load_platform(needed("COLLSTUDY_PLATFORM"));
    count_ranks();
    auto *model = engine->get_netzone_root()->get_network_model();
    model->set_lat_factor_cb(latency_factor);
    model->set_bw_factor_cb(bandwidth_factor);
    auto send = [](size_t size, simgrid::s4u::Host *, simgrid::s4u::Host *) { return costs.send.at((double)size); };
    smpi_register_op_cost_callback(SmpiOperation::SEND, send);
    smpi_register_op_cost_callback(SmpiOperation::ISEND, send);
    smpi_register_op_cost_callback(SmpiOperation::RECV, [](size_t size, simgrid::s4u::Host *, simgrid::s4u::Host *) {
        return costs.receive.at((double)size);
    });
}
