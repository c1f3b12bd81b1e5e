/* The cores of a calibrated machine, with the links that their messages share, and what a message between two cores
 * uses of them. Included once, by levels.cpp. */
#ifndef CORES_HPP
#define CORES_HPP

#include "machine.hpp"
#include "sender.h"

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <deque>

namespace {

using simgrid::s4u::Host;
using simgrid::s4u::Link;

Machine machine;

/* A link that messages share: of the messages from, or to, the cores of a unit, or the message rate of a node's network
 * interface. SimGrid's time grows with the square of the number of messages that share links, so beyond two for each
 * rank of the unit, further short messages pass one after the other. */
struct Shared {
    Link *link = nullptr;
    double bytes_per_s = 0;
    int messages = 0; /* that share the link; the last number if it is not used */
    int most = 0;
    double free = 0; /* time when those that pass one after the other have passed */

    bool full() const {
        return messages >= most && link->is_used();
    }
    /* Lets a message that takes *seconds* pass after the previous ones, not before *start*; returns when it starts. */
    double pass(double seconds, double start) {
        if (full())
            start = std::max(start, simgrid::s4u::Engine::get_clock() + messages * seconds);
        start = std::max(start, free);
        free = start + seconds;
        return start;
    }
};

/* A message that SMPI has reported as sent. */
struct Sent {
    double size;
    bool copied;     /* by an MPI_Send, which has returned */
    double distinct; /* see sender.h */
    double when;     /* time of the call */
};

/* A core, with the state on which the costs of its messages depend. */
struct Place : sender {
    std::vector<int> at; /* its coordinates, outermost first; its name is c-<outermost>-...-<innermost> */
    Link *sends = nullptr,
         *receives = nullptr;         /* long messages share the first, the second bounds the rate of each message */
    Link *alone = nullptr;            /* for messages that wait instead of sharing links; they do not share it */
    std::vector<Shared *> out, in;    /* of the core's unit at each level; null where nothing is shared */
    Shared *interface = nullptr;      /* of the node; null: no limit of its message rate */
    std::vector<Shared *> between;    /* of the units of each level; null where nothing is shared */
    std::vector<bool> left_unit;      /* whether one of its current long messages leaves its unit at each level */
    int ranks_on_node = 0;            /* from the host file */
    double left = 0;                  /* time when all messages of this core's queue have left it */
    double received = -1;             /* bytes of the last message to this core */
    double free = 0;                  /* time when the core can start its next message */
    double queue = 0;                 /* time when the messages of its node's MPI_Sends are in its queue */
    double turn = 0;                  /* time when the next sender of its node can write to its queue */
    const Place *last_from = nullptr; /* the last core of the node that sent to this one */
    /* Messages that were sent but do not flow yet, by receiver. SMPI does not report a long message of a blocking send,
     * so it is not among them. */
    std::map<const Place *, std::deque<Sent>> sent;
    bool blocking = false; /* whether the message that starts now is from an MPI_Send */
    double latency = 0;    /* of the route of the message that starts now */
};

Place &place(const Host *host) {
    return *host->get_data<Place>();
}

/* Returns the outermost level at which two cores differ, or the innermost level if they do not. */
size_t depth_of(const Place &one, const Place &other) {
    size_t depth = 0;
    while (depth + 1 < one.at.size() && one.at[depth] == other.at[depth])
        depth++;
    return depth;
}

bool same_node(const Place &one, const Place &other) {
    return depth_of(one, other) >= machine.node_parts;
}

/* Returns the levels at which a message crosses the border of a unit, from the outermost. The NIC accesses memory
 * directly, so messages between nodes do not cross the units inside a node. */
std::vector<size_t> borders(const Place &from, const Place &to) {
    size_t depth = depth_of(from, to), inner = depth < machine.node_parts ? machine.node_parts : from.at.size() - 1;
    std::vector<size_t> found;
    for (size_t d = depth; d < inner && d + 1 < from.at.size(); d++)
        found.push_back(d);
    return found;
}

/* Returns the links of units that a message crosses, from the outermost. An eager message within a node is copied into
 * a buffer of the receiver: if they are in different caches, its lines move to the sender's cache and back. */
std::vector<Shared *> crossed(const Place &from, const Place &to, double size) {
    std::vector<Shared *> found;
    for (size_t d : borders(from, to)) {
        bool twice = size < machine.limit && machine.levels[d].share_first > 0 && same_node(from, to);
        for (Shared *shared : {from.out[d], to.in[d]})
            if (shared)
                found.insert(found.end(), twice ? 2 : 1, shared);
    }
    if (Shared *between = from.between[depth_of(from, to)])
        found.push_back(between);
    return found;
}

/* Whether a message does not share the links of units. Between nodes, no short one does: otherwise SimGrid would solve
 * one system of equations for all messages of the machine whenever one starts or ends. */
bool waits_at_borders(const Place &from, const Place &to, double size) {
    if (size >= machine.limit)
        return false;
    auto links = crossed(from, to, size);
    return !same_node(from, to) ||
           std::any_of(links.begin(), links.end(), [](const Shared *shared) { return shared->full(); });
}

bool waits_at_interface(const Place &from, const Place &to, double size) {
    return size < machine.limit && !same_node(from, to) && from.interface && from.interface->full();
}

/* Returns the link of the sender's node if it bounds the rate of a message, of a long one to another node, and null
 * otherwise. The receiver's core has no part in it: its NIC writes the message. */
Shared *bound_of_node(const Place &from, const Place &to, double size) {
    if (size < machine.limit || same_node(from, to))
        return nullptr;
    const Level &level = machine.levels[depth_of(from, to)];
    bool one_rate = level.rate == machine.node().rate && level.waited_rate <= level.rate && level.forward == 0;
    return one_rate ? from.out[machine.node_parts - 1] : nullptr;
}

bool forwards(double size, const Place &from) {
    return size >= machine.limit && from.received >= size;
}

/* Returns the maximum rate of a message (bytes per second). */
double rate_of(const Level &level, double size, bool blocking, bool forwarded) {
    if (size < machine.limit)
        return std::max(level.rate, level.eager_rate);
    if (blocking)
        return std::max(level.rate, level.waited_rate);
    return forwarded && level.forward > 0 ? std::min(level.rate, level.forward) : level.rate;
}

/* Returns the message that starts now (of a pair of cores the first one sent), or null if SMPI did not report it. */
const Sent *next(const Place &from, const Place &to) {
    auto sent = from.sent.find(&to);
    return sent == from.sent.end() || sent->second.empty() ? nullptr : &sent->second.front();
}

bool between_limits(double size) {
    return size >= machine.limit && size < machine.waited_limit;
}

/* Returns what a message takes of its sender's core because it is the first of the core's current messages that leave a
 * unit: readers outside of it slow down all others. */
double first_share(Place &from, size_t depth) {
    if (!from.sends->is_used())
        from.left_unit.assign(machine.levels.size(), false);
    double part = 0;
    for (size_t d = depth; d + 1 < machine.levels.size(); d++)
        if (!from.left_unit[d]) {
            from.left_unit[d] = true;
            part += machine.levels[d].share_first;
        }
    return part;
}

/* Returns the time (s) that a core takes to copy a message: the time of a message between two neighbours. */
double copy_time(double size) {
    const Level &level = machine.levels.back();
    return level.waited.at(size) + size / rate_of(level, size, true, false);
}

} // namespace

#endif
