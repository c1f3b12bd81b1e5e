/* What SimGrid 3.32 does slowly with thousands of ranks, done in another way. The simulated times are the same.
 *
 * The starter defines functions of SimGrid here, which SimGrid then calls in place of its own.
 *
 * - A message that its sender does not wait for is kept in one list, from which SimGrid removes it at its end by
 * looking at all others: a quarter to a half of the time of 4 096 ranks. Here its entry is taken out of the list when
 * it is made, and put back for the moment in which SimGrid looks for it. (SimGrid 3.34 has a set in place of the list.)
 * - Whenever a rank goes on, SimGrid reads the clock of the processor, to find out how long the rank computes, which it
 *   then does not use (smpi/simulate-computation is off): an eighth of the time. */
#include <xbt/base.h>

#include <simgrid/version.h>

#if SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR < 34
#include <dlfcn.h>
#include <list>
#include <unordered_map>

using Links = std::__detail::_List_node_base;

namespace {
/* An entry, and the head of its list, which std::list follows with the number of its entries. */
struct Entry {
    Links *links;
    Links *head;
};

/* By message; of those that have not ended. */
std::unordered_map<void *, Entry> taken_out;
/* While SimGrid makes an entry; then the last one that was made. */
bool watching = false;
Entry made{};

std::size_t &length(Links *head) {
    return *reinterpret_cast<std::size_t *>(head + 1);
}

/* SimGrid's own function of this name. */
template <class Function> Function *original(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}
} // namespace

/* std::list calls it for each new entry; as in libstdc++, but for the last line. */
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
