/* A k-ary n-tree (Petrini and Vanneschi, IPPS 1997): k^n hosts and n stages of k^(n-1) switches, each with k ports down
 * and (except in the last stage) k ports up. Every link has a separate bandwidth in each direction.
 *
 * A switch of stage l (from 0) has n-1 digits in base k. Switches of stages l and l+1 are linked if all digits except
 * number l agree; the port is that digit of the switch at the other end. Host h is attached to the first-stage switch h
 * / k. A message goes up to the first stage from which its destination can be reached and down along the only path. On
 * the way up, all k ports are possible:
 *   deterministic  destination modulo k: at stage l digit number l of the destination (Zahavi, JPDC 2012, "D-Mod-K")
 *   adaptive       the port with the fewest messages under way when the message starts; among equals D-Mod-K's is
 *   first.
 *                  All packets of a message take the same path
 *
 * COLLSTUDY_FATTREE names a file with lines `arity k`, `stages n`, `link_gb_s x`, `link_us x`, `routing
 * deterministic|adaptive`, and `host name` for each host in order. With COLLSTUDY_TRAFFIC (a folder) the traffic is
 * logged there (traffic.cpp); COLLSTUDY_HOSTS is the host file of the ranks. */
#include "traffic.hpp"

#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/version.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace {

using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::Route;

const char *needed(const char *name) {
    const char *value = std::getenv(name);
    if (value == nullptr)
        throw std::invalid_argument(std::string(name) + " is not set");
    return value;
}

class FatTree : public simgrid::kernel::routing::NetZoneImpl {
    int arity, stages;
    bool adaptive;
    int switches = 1; /* per stage */
    std::vector<std::vector<simgrid::s4u::Link *>> up, down; /* by stage, then by switch and port */
    std::vector<simgrid::s4u::Link *> inject, eject;
    std::map<const NetPoint *, int> number;

    int digit(int value, int place) const {
        for (; place > 0; place--)
            value /= arity;
        return value % arity;
    }
    int with_digit(int value, int place, int digit_) const {
        int weight = 1;
        for (int i = 0; i < place; i++)
            weight *= arity;
        return value + (digit_ - digit(value, place)) * weight;
    }
    int port_up(int stage, int at, int target) const {
        int chosen = digit(target, stage), least = -1;
        if (!adaptive)
            return chosen;
        for (int i = 0, first = chosen; i < arity; i++) {
            int port = (first + i) % arity, load = traffic::under_way(up[stage][at * arity + port]);
            if (least < 0 || load < least) {
                least = load;
                chosen = port;
            }
        }
        return chosen;
    }

public:
    FatTree(int arity_, int stages_, bool adaptive_)
        : NetZoneImpl("fat-tree"), arity(arity_), stages(stages_), adaptive(adaptive_) {
        for (int i = 1; i < stages; i++)
            switches *= arity;
    }
    int hosts() const {
        return switches * arity;
    }

    /* Creates hosts and links; returns the ports of switches and hosts. */
    std::vector<traffic::Port> build(const std::vector<std::string> &names, double bytes_per_s, double latency_s) {
        std::vector<traffic::Port> ports;
        auto link = [&](const std::string &sender, const std::string &port, int stage) {
            auto *made = get_iface()->create_link(sender + "." + port, bytes_per_s)->set_latency(latency_s)->seal();
            ports.push_back({made, sender, port, stage});
            return made;
        };
        for (int h = 0; h < hosts(); h++) {
            auto *host = get_iface()->create_host(names[h], 1e9)->seal();
            number[host->get_netpoint()] = h;
            inject.push_back(link("host" + std::to_string(h), "up", 0));
        }
        for (int stage = 0; stage < stages; stage++) {
            up.emplace_back();
            down.emplace_back();
            for (int s = 0; s < switches; s++) {
                std::string name = "S" + std::to_string(stage + 1) + "." + std::to_string(s);
                for (int port = 0; port < arity; port++)
                    down[stage].push_back(link(name, "down" + std::to_string(port), stage + 1));
                for (int port = 0; port < arity && stage < stages - 1; port++)
                    up[stage].push_back(link(name, "up" + std::to_string(port), stage + 1));
            }
        }
        return ports;
    }

    void get_local_route(const NetPoint *from, const NetPoint *to, Route *into, double *latency) override {
        int source = number.at(from), target = number.at(to);
        if (source == target)
            return;
        auto take = [&](simgrid::s4u::Link *link) {
            into->link_list_.push_back(link->get_impl());
            if (latency)
                *latency += link->get_latency();
        };
        int at = source / arity, end = target / arity, top = 0;
        for (int place = 0; place < stages - 1; place++)
            if (digit(at, place) != digit(end, place))
                top = place + 1;
        take(inject[source]);
        for (int stage = 0; stage < top; stage++) {
            int port = port_up(stage, at, target);
            take(up[stage][at * arity + port]);
            at = with_digit(at, stage, port);
        }
        for (int stage = top; stage > 0; stage--) {
            /* A down port leads to the switch of the stage below that has the port's number as this digit. */
            int port = digit(end, stage - 1);
            take(down[stage][at * arity + port]);
            at = with_digit(at, stage - 1, port);
        }
        take(down[0][at * arity + target % arity]);
    }

    void get_graph(const s_xbt_graph_t *, std::map<std::string, xbt_node_t, std::less<>> *,
                   std::map<std::string, xbt_edge_t, std::less<>> *) override {
    }
};

struct Description {
    int arity = 0, stages = 0;
    double bytes_per_s = 0, latency_s = 0;
    bool adaptive = false;
    std::vector<std::string> hosts;
};

Description read_description(const char *path) {
    Description read;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string what, text;
        words >> what >> text;
        if (what == "arity")
            read.arity = std::stoi(text);
        else if (what == "stages")
            read.stages = std::stoi(text);
        else if (what == "link_gb_s")
            read.bytes_per_s = std::stod(text) * 1e9;
        else if (what == "link_us")
            read.latency_s = std::stod(text) * 1e-6;
        else if (what == "routing" && (text == "adaptive" || text == "deterministic"))
            read.adaptive = text == "adaptive";
        else if (what == "host")
            read.hosts.push_back(text);
        else
            throw std::invalid_argument("COLLSTUDY_FATTREE: invalid line: " + line);
    }
    return read;
}

std::vector<simgrid::s4u::Host *> rank_hosts() {
    std::vector<simgrid::s4u::Host *> hosts;
    std::ifstream file(needed("COLLSTUDY_HOSTS"));
    for (std::string name; file >> name;)
        hosts.push_back(simgrid::s4u::Host::by_name(name));
    return hosts;
}

} // namespace

extern "C" void load_platform(const simgrid::s4u::Engine &);

void load_platform(const simgrid::s4u::Engine &) {
    Description read = read_description(needed("COLLSTUDY_FATTREE"));
    auto *tree = new FatTree(read.arity, read.stages, read.adaptive);
    if ((int)read.hosts.size() != tree->hosts())
        throw std::invalid_argument("COLLSTUDY_FATTREE: " + std::to_string(read.hosts.size()) + " hosts, but the tree has " +
                                    std::to_string(tree->hosts()));
#if SIMGRID_VERSION >= 40000 /* Since then SimGrid creates the root zone itself. */
    tree->get_iface()->set_parent(simgrid::s4u::Engine::get_instance()->get_netzone_root());
#endif
    auto ports = tree->build(read.hosts, read.bytes_per_s, read.latency_s);
    tree->get_iface()->seal();
    const char *folder = std::getenv("COLLSTUDY_TRAFFIC");
    /* Adaptive routing needs the number of messages under way, which the log counts. */
    if (folder || read.adaptive)
        traffic::start(folder ? folder : "", std::move(ports), rank_hosts());
}
