"""The platform of a simulated machine, in the formats of SimGrid and of this project's own platforms.

Model. Levels form nested zones; a message between two cores crosses the outermost level at which they differ and takes
that level's latency (half of the difference to the level inside of it on each side, so that the sum is the level's value)
and bandwidth. `shared_gb_s` is a link that every message crossing a unit shares, in both directions together unless the
level is `full_duplex`.

A calibrated machine (`simulation.delay_us`, written by `calibrate.py`) has costs by size and level instead. A message between
two cores takes `alone` = send + delay + size / rate (+ receive, if it is eager), with the costs of the outermost level at which
they differ:
- The sender is busy for `send_us`. If the receiver's last message within its node came from another rank, the sender is busy for
  another `turn` x alone of a message of at most 96 bytes from that rank: both write to the receiver's queue, whose cache lines are
  then in that rank's cache. Of several such senders, the next one starts when half of the time that this one is busy has passed.
- A core can start its next message `busy` x alone after this one, and within a node `busy_buffered` x alone if it is longer than 96
  bytes, because it then goes to a buffer beside the queue; half of the time of a turn comes on top. A long message costs its sender as
  much as the short message that announces it.
- Then the message takes `delay_us`, and its bytes flow: of an eager message, which the sender has copied by then, at `eager_gb_s`
  where that is faster. Each rank on the receiver's node beyond two adds the level's `poll_us` (between nodes). Then the receiver
  of an eager message is busy for `receive_us`.
- The network interface of a node has a message rate: it sends at most one short message per `gap_us`. The messages that it sends at
  the same time share this rate, because it serves its queues in turn; a message alone is not slowed down. While more than two for
  each rank of the node share it, further ones wait.
- Long messages (from `eager_limit_bytes` on) share their sender's core and, within a node, their receiver's core. Each uses the
  fraction `share` of it: two messages that reach the level's `bandwidth_gb_s` alone and have a share of 1 take twice as long
  together, at the same rate. A message that has the core to itself is not slowed down, whatever its share. The first of a
  core's messages at a time that leaves a unit takes `share_first` more: a reader behind another cache slows down all readers. Data
  that was just received is forwarded at `forward_gb_s` at most, with `share_forward` times the share: its bytes are in another
  core's cache.
- All messages share the `shared_gb_s` of the units that they leave and enter, in each direction: network interfaces of nodes, and
  within a node the link of a die, which messages to other nodes do not cross. An eager message crosses the border of a unit with a
  cache of its own (one with `share_first`) twice: it is copied into a buffer of the receiver, whose lines move to the sender's cache
  and back. Messages between the units of a level inside the same outer unit, such as the NUMA domains of a socket, share that
  level's `between_gb_s`.
- A blocking send (MPI_Send) is eager up to `waited_limit_bytes`, a non-blocking one (MPI_Isend) up to `eager_limit_bytes`. Between
  the two limits a blocking send takes `waited_us`, within a node from when it was sent (to another node, the rest that its copy
  leaves from when it is received), and its bytes flow at `waited_gb_s` where that is faster, even if they were just received. It
  ends when the sender has copied the message, in the time that a message between neighbouring cores takes; on the node of a
  waiting receiver, when the message arrives. UCX, under Open MPI, has these two limits.
- Within a node, a blocking send from another cache (outside the innermost level's unit) ends only when its message is in the
  receiver's queue. Such messages, also those of 97 to `eager_limit_bytes`, enter it one after the other at `bandwidth_gb_s`.
- Between nodes, a core's messages from `eager_limit_bytes` to below `queued_limit_bytes` (without it `waited_limit_bytes`) leave one
  after the other; longer ones share links evenly.
Point-to-point tests send other bytes than they receive, so nothing is forwarded there, and a message has its core to itself.
`workflow/native/simulator/levels.cpp` implements this platform: SimGrid has no option for any of it.

A fat tree (`simulation.fat_tree`) does not consist of zones: `workflow/native/fattree/fattree.cpp` creates its switches, links
and routes. Every link has the same bandwidth in each direction and the same latency.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from collstudy.base.files import write_atomically, write_if_changed
from collstudy.launch.toolchain import SIMULATED, built_for
from collstudy.study.machines import Level, Machine
from collstudy.study.names import POINT_TO_POINT
from collstudy.study.placement import cores_in_order

#: Bandwidth (GB/s) of a link that does not limit any message.
UNLIMITED = 1e6


def platform_xml(levels: tuple[Level, ...], core_gb_s: float | None, bounds: Literal["crossed", "level"]) -> str:
    """Return the platform description for SimGrid 3.32: one host per core, one zone per unit of each level above the core.

    With *core_gb_s*, `bandwidth_gb_s` limits each message, while `core_gb_s` and `shared_gb_s` limit all messages together, in each
    direction. *bounds* selects the limit of a message: the slowest level that it crosses ("crossed"), or its own level ("level") even
    if an inner one is slower (two cores of a node may exchange less than its network carries); units of a level are then linked in pairs.
    """
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
    ]
    lines += _zone(levels, 0, (), "  ", core_gb_s, bounds)
    return "\n".join(lines + ["</platform>", ""])


def _carries_all(level: Level, inner: Level) -> bool:
    return bool(inner.shared_gb_s and (level.shared_gb_s or UNLIMITED) >= inner.count * inner.shared_gb_s)


def _link(identifier: str, bandwidth_gb_s: float, latency_us: float, indent: str, policy: str = "") -> str:
    sharing = f' sharing_policy="{policy}"' if policy else ""
    speed = f'bandwidth="{bandwidth_gb_s * 1e9:.6g}Bps" latency="{max(latency_us, 0) * 1e-6:.6g}s"'
    return f'{indent}<link id="{identifier}" {speed}{sharing}/>'


def _zone(
    levels: tuple[Level, ...], depth: int, at: tuple[int, ...], indent: str, core_gb_s: float | None, bounds: str
) -> list[str]:
    """Return the zone of unit *at*: its children at *depth* (cores or zones) are connected to its router as a star.

    A route between zones must end in a zone; therefore the router of a zone of zones has a zone of its own (zr...).
    """
    level = levels[depth]
    name = "-".join(map(str, at))
    innermost = depth == len(levels) - 1
    counts = [level.count for level in levels[len(at) : depth + 1]]
    units = [(*at, *more) for more in itertools.product(*map(range, counts))]
    children = ["-".join(map(str, unit)) for unit in units]
    inside = indent + "  "
    lines = [f'{indent}<zone id="z{name}" routing="Floyd">']
    for unit, child in zip(units, children, strict=True):
        if innermost:
            lines.append(f'{inside}<host id="c-{child}" speed="1Gf"/>')
        else:
            lines += _zone(levels, depth + 1, unit, inside, core_gb_s, bounds)
    router = f'<router id="r{name}"/>'
    lines.append(inside + (router if innermost else f'<zone id="zr{name}" routing="None">{router}</zone>'))
    pairs = list(itertools.combinations(children, 2)) if bounds == "level" and depth > 0 else []
    lines += _links(levels, depth, name, children, inside, core_gb_s, bounds)
    lines += [_pair_link(levels, depth, pair, inside) for pair in pairs]
    for child in children:
        lines += _routes(level, name, child, innermost, inside, core_gb_s)
    for pair in pairs:
        lines += _pair_routes(level, name, pair, innermost, inside, core_gb_s)
    lines.append(f"{indent}</zone>")
    return lines


def _pair_link(levels: tuple[Level, ...], depth: int, pair: tuple[str, str], indent: str) -> str:
    """Return the link for messages between two units of a level; other messages pass through the router."""
    inner = 0.0 if depth == len(levels) - 1 else levels[depth + 1].latency_us
    return _link(
        "p" + "_".join(pair), levels[depth].bandwidth_gb_s, levels[depth].latency_us - inner, indent, "FATPIPE"
    )


def _pair_routes(
    level: Level, name: str, pair: tuple[str, str], innermost: bool, indent: str, core_gb_s: float | None
) -> Iterator[str]:
    """Yield the routes between two units; they have fewer links than those through the router, so SimGrid prefers them."""
    prefix = "c-" if innermost else "z"
    for one, other in (pair, pair[::-1]) if core_gb_s else (pair,):
        crossed = ["p" + "_".join(pair)]
        for child, direction in ((one, "u"), (other, "d")):
            crossed += _crossed(level, name, child, innermost, direction if core_gb_s else "")
        gateways = () if innermost else (f"r{one}", f"r{other}")
        yield _route((prefix + one, prefix + other), gateways, crossed, indent, one_way=bool(core_gb_s))


def _routes(
    level: Level, name: str, child: str, innermost: bool, indent: str, core_gb_s: float | None
) -> Iterator[str]:
    """Yield the route between a child and the router of its zone; with *core_gb_s*, one for each direction."""
    ends = (f"c-{child}", f"r{name}") if innermost else (f"z{child}", f"zr{name}")
    gateways = () if innermost else (f"r{child}", f"r{name}")
    # The route is given from the child outwards; SimGrid reverses it for the other direction.
    way = ' direction="UP"' if level.full_duplex and not core_gb_s else ""
    for direction in ("u", "d") if core_gb_s else ("",):
        crossed = [f"l{child}", *_crossed(level, name, child, innermost, direction)]
        order = -1 if direction == "d" else 1
        yield _route(ends[::order], gateways[::order], crossed, indent, bool(direction), way)


def _crossed(level: Level, name: str, child: str, innermost: bool, direction: str) -> list[str]:
    """Return the links of a child that messages cross which leave it (*direction* u), enter it (d), or do either ("")."""
    own = [f"{direction}{child}"] if direction and innermost else []
    shared = [f"s{name}" if innermost else f"s{direction}{child}"] if level.shared_gb_s else []
    return own + shared


def _route(
    ends: tuple[str, ...], gateways: tuple[str, ...], crossed: list[str], indent: str, one_way: bool, way: str = ""
) -> str:
    """Return a route between two cores or routers, or with *gateways* between two zones."""
    kind = "zoneRoute" if gateways else "route"
    named = zip(("src", "dst", "gw_src", "gw_dst"), ends + gateways, strict=False)
    where = " ".join(f'{key}="{value}"' for key, value in named) + ' symmetrical="NO"' * one_way
    links = "".join(f'<link_ctn id="{link}"{way}/>' for link in crossed)
    return f"{indent}<{kind} {where}>{links}</{kind}>"


def _links(
    levels: tuple[Level, ...],
    depth: int,
    name: str,
    children: list[str],
    indent: str,
    core_gb_s: float | None,
    bounds: str,
) -> list[str]:
    """Return the links of a zone: one per child, and the shared ones. They must precede the zone's first route."""
    level = levels[depth]
    innermost = depth == len(levels) - 1
    latency = (level.latency_us - (0.0 if innermost else levels[depth + 1].latency_us)) / 2
    duplex = "SPLITDUPLEX" if level.full_duplex and not core_gb_s else ""
    policy = "FATPIPE" if core_gb_s else duplex
    # An outgoing message has the bandwidth of the outer level that it crosses.
    speed = max(outer.bandwidth_gb_s for outer in levels[: depth + 1]) if bounds == "level" else level.bandwidth_gb_s
    lines = [_link(f"l{child}", speed, latency, indent, policy) for child in children]
    if core_gb_s and innermost:
        lines += [_link(f"{way}{child}", core_gb_s, 0, indent) for child in children for way in "ud"]
    if level.shared_gb_s:
        ways = "ud" if core_gb_s else ("",)
        units = [name] if innermost else [way + child for child in children for way in ways]
        lines += [_link(f"s{unit}", level.shared_gb_s, 0, indent, duplex) for unit in units]
    return lines


#: Values of a calibrated level. A level that was not calibrated (switches around the calibrated nodes) uses those of the next inner one.
BY_LEVEL = {
    "busy": "busy",
    "busy_buffered": "busy_buffered",
    "turn": "turn",
    "share": "share",
    "share_forward": "share_forward",
    "share_first": "share_first",
    "between": "between_gb_s",
    "forward": "forward_gb_s",
    "waited_rate": "waited_gb_s",
    "eager_rate": "eager_gb_s",
    "poll": "poll_us",
    "gap": "gap_us",
}
#: What the simulator's units, seconds and bytes, are in those of a machine file.
UNITS = {"gb_s": 1e9, "us": 1e-6}


def machine_text(machine: Machine, collective: str = "") -> str:
    """Return a calibrated machine in the format that levels.cpp (workflow/native/simulator) reads: seconds and bytes per second."""
    values, levels = machine.simulation, machine.levels
    lines = []
    for level, inner in zip(levels, [*levels[1:], None], strict=True):
        # Unlimited links are omitted: they would couple independent messages in one system of equations.
        shared = 0.0 if inner is None or _carries_all(level, inner) else level.shared_gb_s or 0.0
        lines.append(f"level {level.name} {level.count} {shared * 1e9:.9g}")
    node = 1 + max((depth for depth, level in enumerate(levels) if level.name in ("group", "node")), default=-1)
    lines.append(f"nodes {node}")
    queued = values.get("queued_limit_bytes", waited_limit(machine))
    lines.append(f"limits {waited_limit(machine)} {values['eager_limit_bytes']} {queued}")
    for key, word in (("send_us", "send"), ("receive_us", "receive")):
        lines += [f"{word} {size} {us * 1e-6:.9g}" for size, us in values[key]]
    for depth, level in enumerate(levels):
        for word, key in (("delay", "delay_us"), ("waited", "waited_us")):
            lines += [f"{word} {depth} {size} {us * 1e-6:.9g}" for size, us in by_size(machine, depth, key)]
        lines.append(f"rate {depth} {level.bandwidth_gb_s * 1e9:.9g}")
        known = next(of.name for of in levels[depth:] if of.name in values["delay_us"])
        for word, key in BY_LEVEL.items():
            value = values.get(key, {}).get(known)
            if value is not None and not (
                word in ("forward", "share", "share_forward") and collective in POINT_TO_POINT
            ):
                lines.append(f"{word} {depth} {value * UNITS.get(key.partition('_')[2], 1):.9g}")
    return "\n".join([*lines, ""])


def waited_limit(machine: Machine) -> int:
    """Return the eager limit (bytes) of a blocking send."""
    return machine.simulation.get("waited_limit_bytes", machine.simulation["eager_limit_bytes"])


def line(points: Sequence[Sequence[float]], size: float) -> float:
    """Return the value of a cost curve at *size*; *points* (size, value) are ascending and interpolated linearly.

    Below the first point the value is constant; beyond the last point the last segment is extrapolated, but never below 0. The
    simulator follows the same rule (workflow/native/simulator/curve.hpp).
    """
    if len(points) == 1 or size <= points[0][0]:
        return points[0][1]
    # The segment that contains the size, or else the last one.
    low, high = next((pair for pair in itertools.pairwise(points) if size < pair[1][0]), points[-2:])
    return max(0.0, low[1] + (size - low[0]) / (high[0] - low[0]) * (high[1] - low[1]))


def by_size(machine: Machine, depth: int, key: str) -> list[tuple[int, float]]:
    """Return the time (us) of a message at a level by size, from `delay_us` or the optional `waited_us`.

    A level that was not calibrated (switches around the calibrated nodes) takes longer than the next inner level by the
    difference of their `latency_us`.
    """
    level = machine.levels[depth]
    known = machine.simulation.get(key, {})
    if level.name in known:
        return [(size, us) for size, us in known[level.name]]
    if not any(of.name in known for of in machine.levels[depth:]):
        return []
    inner = machine.levels[depth + 1]
    return [(size, us + level.latency_us - inner.latency_us) for size, us in by_size(machine, depth + 1, key)]


def calibrated(machine: Machine) -> bool:
    """Return whether the machine file has costs by size for each level, which only `levels.so` can simulate."""
    return "delay_us" in machine.simulation


def fat_tree_text(machine: Machine) -> str:
    """Return the tree in the format of fattree.cpp; each host has the name that placement.py gives its only core."""
    tree = machine.simulation["fat_tree"]
    lines = [f"{key} {tree[key]}" for key in ("arity", "stages", "link_gb_s", "link_us", "routing")]
    return "\n".join([*lines, *(f"host {core.name}" for core in cores_in_order(machine.levels, [])), ""])


def platform(machine: Machine, hosts: Path, folder: Path, collective: str = "") -> tuple[Path, dict[str, str]]:
    """Write the platform to *folder*; return the file that smpirun loads, and the variables that it needs.

    The variables name files relative to that folder, in which the simulator runs, because smpirun splits arguments at blanks.
    """
    built = built_for(SIMULATED)
    if "fat_tree" in machine.simulation:
        tree = folder / "fat-tree.txt"
        write_if_changed(tree, fat_tree_text(machine).encode())
        return built / "fattree" / "fattree.so", {"COLLSTUDY_FATTREE": tree.name, "COLLSTUDY_HOSTS": hosts.name}
    if calibrated(machine):
        described = folder / (f"machine-{collective}.txt" if collective in POINT_TO_POINT else "machine.txt")
        write_if_changed(described, machine_text(machine, collective).encode())
        return built / "simulator" / "levels.so", {"COLLSTUDY_PLATFORM": described.name, "COLLSTUDY_HOSTS": hosts.name}
    described = folder / "platform.xml"
    if not described.exists():
        by_level = "level" if machine.simulation.get("bandwidth_by_level") else "crossed"
        write_atomically(
            described, platform_xml(machine.levels, machine.simulation.get("core_gb_s"), by_level).encode()
        )
    return described, {}
