// clang-format off
/* The description of a calibrated machine (written by platforms.py): one statement per line, times in seconds, rates in
 * bytes per second. DEPTH numbers the levels from the outermost, 0. A blocking send is an MPI_Send:
 *   level NAME COUNT SHARED    units in each unit outside it; bandwidth shared by a unit's messages from and to outside
 *                              (0: no limit)
 *   nodes DEPTHS               number of outer levels that identify the node of a core
 *   limits WAITED OTHER QUEUED eager limits (bytes) of blocking sends and of all other sends; from OTHER to below QUEUED,
 *                              a core's messages to other nodes leave one after the other
 *   send SIZE S                a curve: time for which the sender is busy with a message
 *   receive SIZE S             a curve: time for which the receiver is busy with an eager message
 *   delay DEPTH SIZE S         a curve: from the end of the sender's busy time to the first byte
 *   waited DEPTH SIZE S        the same for a blocking send, from the limit OTHER up to WAITED
 *   rate DEPTH R               maximum rate of one message
 *   eager_rate DEPTH R         the same for an eager message, where it is faster
 *   waited_rate DEPTH R        the same for a blocking send between the limits
 *   forward DEPTH R            the same if the sender has just received the message
 *   busy DEPTH F               a core can start its next message after this fraction of one's time alone
 *   busy_buffered DEPTH F      the same within a node if the message does not fit into the entry of a queue
 *   turn DEPTH F               the sender is busy for this fraction of a short message's time from the rank that sent
 *                              the receiver's last message, if it is another one
 *   share DEPTH F              fraction of its sender's core (within a node also of its receiver's) that a long message
 *                              takes unless it is the core's only one
 *   share_forward DEPTH F      factor on `share` if the sender has just received the message
 *   share_first DEPTH F        added to the share of the first of a core's messages at a time that leaves its unit
 *   between DEPTH R            bandwidth shared by the messages between units in the same outer unit
 *   poll DEPTH S               delay for each rank on the receiver's node beyond two
 *   gap DEPTH S                of a node: time per short message at its network interface's message rate */
// clang-format on
#ifndef MACHINE_HPP
#define MACHINE_HPP

#include "curve.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

const double unlimited = 1e15;

struct Level {
    std::string name;
    int count = 1;
    double shared = 0;
    Curve delay, waited;
    double rate = unlimited, waited_rate = 0, forward = 0, eager_rate = 0;
    double busy = 0, busy_buffered = 0, turn = 0, share = 0, share_forward = 1, share_first = 0, between = 0, poll = 0,
           gap = 0;
};

struct Machine {
    std::vector<Level> levels;
    Curve send, receive;
    size_t node_parts = 0;
    double waited_limit = 0, limit = 0, queued_limit = 0;

    const Level &node() const {
        return levels[node_parts - 1];
    }
    /* Time (s) of a message across a level without other traffic. */
    double alone(const Level &level, double size) const {
        bool eager = size < limit;
        double rate = eager ? std::max(level.rate, level.eager_rate) : level.rate;
        return send.at(size) + level.delay.at(size) + size / rate + (eager ? receive.at(size) : 0);
    }
};

/* Reads a statement about a level, from its depth on; returns false if it is invalid. */
inline bool read_of_level(Machine &machine, const std::string &what, std::istringstream &words) {
    size_t depth;
    double first, second;
    if (!(words >> depth >> first) || depth >= machine.levels.size())
        return false;
    Level &level = machine.levels[depth];
    if (what == "delay" || what == "waited") {
        if (!(words >> second))
            return false;
        (what == "delay" ? level.delay : level.waited).add(first, second);
        return true;
    }
    const std::map<std::string, double *> values = {{"rate", &level.rate},
                                                    {"forward", &level.forward},
                                                    {"waited_rate", &level.waited_rate},
                                                    {"eager_rate", &level.eager_rate},
                                                    {"busy", &level.busy},
                                                    {"busy_buffered", &level.busy_buffered},
                                                    {"turn", &level.turn},
                                                    {"share", &level.share},
                                                    {"share_forward", &level.share_forward},
                                                    {"share_first", &level.share_first},
                                                    {"between", &level.between},
                                                    {"poll", &level.poll},
                                                    {"gap", &level.gap}};
    auto value = values.find(what);
    if (value == values.end())
        return false;
    *value->second = first;
    return true;
}

inline bool read_statement(Machine &machine, const std::string &what, std::istringstream &words) {
    Level level;
    double size, value;
    if (what == "level" && words >> level.name >> level.count >> level.shared)
        return machine.levels.push_back(level), true;
    if (what == "nodes" && words >> machine.node_parts)
        return true;
    if (what == "limits" && words >> machine.waited_limit >> machine.limit >> machine.queued_limit)
        return true;
    if (what == "send" || what == "receive") {
        if (!(words >> size >> value))
            return false;
        (what == "send" ? machine.send : machine.receive).add(size, value);
        return true;
    }
    return read_of_level(machine, what, words);
}

inline Machine read_machine(const char *path) {
    Machine machine;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string what;
        words >> what;
        if (!read_statement(machine, what, words))
            throw std::invalid_argument("COLLSTUDY_PLATFORM: invalid line: " + line);
    }
    if (machine.levels.empty())
        throw std::invalid_argument("COLLSTUDY_PLATFORM: the file has no level");
    return machine;
}

#endif
