// clang-format off
/* The description of a calibrated machine (made by platforms.py): one statement a line, times in seconds, rates in bytes per
 * second; DEPTH counts levels from the outermost, 0:
 *   level NAME COUNT SHARED    units in each unit outside it; what each unit's messages from and to outside share (0: no limit)
 *   nodes DEPTHS               that many outer levels tell the node of a core
 *   limits WAITED OTHER        eager limit (bytes) of sends that the sender waits for at once (MPI_Send), and of all other ones
 *   send SIZE S                a curve: the sender's own time for a message
 *   receive SIZE S             a curve: the receiver's own time for an eager message
 *   delay DEPTH SIZE S         a curve: from the end of the sender's own time to the first byte
 *   waited DEPTH SIZE S        the same of a message that its sender waits for at once, from the other limit up to its own
 *   rate DEPTH R               the fastest that one message flows
 *   waited_rate DEPTH R        the same of one that its sender waits for at once, between the limits
 *   forward DEPTH R            the same where its sender has just received it
 *   busy DEPTH F               a core can start its next message after this part of the time that one takes
 *   turn DEPTH F               the sender takes this part of it longer where the receiver's last message came from another rank
 *   share DEPTH F              a long message takes this part of its sender's core, and of its receiver's on the same node, unless
 *                              it is the only one of the core
 *   share_forward DEPTH F      times this where its sender has just received it
 *   poll DEPTH S               delay for each rank on the receiver's node beyond two
 *   gap DEPTH S                of a node: the time per short message at its network interface's message rate */
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
    double rate = unlimited, waited_rate = 0, forward = 0;
    double busy = 0, turn = 0, share = 0, share_forward = 1, poll = 0, gap = 0;
};

struct Machine {
    std::vector<Level> levels;
    Curve send, receive;
    size_t node_parts = 0;
    double waited_limit = 0, limit = 0;

    /* What one message takes across a level with nothing else going on. */
    double alone(const Level &level, double size) const {
        return send.at(size) + level.delay.at(size) + size / level.rate + (size < limit ? receive.at(size) : 0);
    }
};

/* One statement of a level after its depth; false: not understood. */
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
                                                    {"busy", &level.busy},
                                                    {"turn", &level.turn},
                                                    {"share", &level.share},
                                                    {"share_forward", &level.share_forward},
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
    if (what == "limits" && words >> machine.waited_limit >> machine.limit)
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
        throw std::invalid_argument("COLLSTUDY_PLATFORM: no level");
    return machine;
}

#endif
