/* Log of the traffic on the links of a simulated network over time, by MPI operation; see traffic.cpp. */
#ifndef TRAFFIC_HPP
#define TRAFFIC_HPP

#include <simgrid/s4u.hpp>

#include <string>
#include <vector>

namespace traffic {

/* A directed link of the network, with the switch port or host that sends into it. */
struct Port {
    const simgrid::s4u::Link *link;
    std::string sender; /* "host" or the switch, as in the output */
    std::string name;   /* port of the sender */
    int stage;          /* of the sender: 0 host, 1 first stage of switches, ... */
};

/* Logs the traffic of `ports` to `folder` until the simulation ends; `hosts` are those of the ranks, in rank order. */
void start(const std::string &folder, std::vector<Port> ports, const std::vector<simgrid::s4u::Host *> &hosts);

/* Returns the number of messages that are under way on a link now. */
int under_way(const simgrid::s4u::Link *link);

} // namespace traffic

#endif
