/* Replacements of functions of SimGrid 3.32 that are slow with thousands of ranks. The simulated times are the same.
 *
 * SimGrid calls the functions that the starter defines here instead of its own.
 *
 * - SimGrid keeps all messages that their senders do not wait for in one list, which it searches when one of them ends:
 * a quarter to a half of the run time with 4 096 ranks. Here an entry is taken out of the list as soon as it is
 * created, and put back just before SimGrid searches for it. (SimGrid 3.34 has a set instead of the list.)
 * - Whenever a rank resumes, SimGrid reads the processor's clock to measure how long the rank computes, and then does
 * not use it (smpi/simulate-computation is off): an eighth of the run time. */
#include <xbt/base.h>

#include <simgrid/version.h>

#if SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR < 34
#include <dlfcn.h>
#include <list>
#include <unordered_map>

using Links = std::__detail::_List_node_base;

namespace {
/* An entry, and the head of its list, behind which std::list stores the number of entries. */
struct Entry {
    Links *links;
    Links *head;
};

/* Entries that were taken out, by message. */
std::unordered_map<void *, Entry> taken_out;
/* watching: SimGrid is creating an entry; made: the latest entry. */
bool watching = false;
Entry made{};

std::size_t &length(Links *head) {
    return *reinterpret_cast<std::size_t *>(head + 1);
}

/* Returns SimGrid's own function of this name. */
template <class Function> Function *original(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}
} // namespace

/* std::list calls this for each new entry; as in libstdc++, except for the last statement. */
void Links::_M_hook(Links *const position) noexcept {
    _M_next = position;
    _M_prev = position->_M_prev;
    position->_M_prev->_M_next = this;
    position->_M_prev = this;
    if (watching)
        made = {this, position};
}

extern "C" {
/* simgrid::kernel::activity::CommImpl::detach(), which returns the message. */
void *_ZN7simgrid6kernel8activity8CommImpl6detachEv(void *message) {
    static auto *const detach = original<void *(void *)>("_ZN7simgrid6kernel8activity8CommImpl6detachEv");
    watching = true;
    detach(message);
    watching = false;
    made.links->_M_unhook();
    --length(made.head);
    taken_out[message] = made;
    return message;
}

/* simgrid::kernel::activity::CommImpl::finish() */
void _ZN7simgrid6kernel8activity8CommImpl6finishEv(void *message) {
    static auto *const finish = original<void(void *)>("_ZN7simgrid6kernel8activity8CommImpl6finishEv");
    auto found = taken_out.find(message);
    if (found != taken_out.end()) {
        auto [links, head] = found->second;
        taken_out.erase(found);
        links->_M_hook(head);
        ++length(head);
    }
    finish(message);
}

void xbt_os_threadtimer_start(void *) {
}
void xbt_os_threadtimer_stop(void *) {
}
}
#endif
