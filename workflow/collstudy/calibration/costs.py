"""Step 1 of a calibration: compute the costs of each level in closed form, from measurements and the parameters of the search."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.calibration.measured import Data
from collstudy.launch.platforms import line
from collstudy.study.machines import REPLACED_BY_FIT, Level, Machine

#: Starting values of the search; some depend on the kind of level (`kind_of`). send_1, send_eager (us): the time that the sender is
#: busy for 1 byte and for the largest eager message; receive, poll, gap (us): see `platforms.py`; busy, busy_buffered, turn, share:
#: fractions of a message's time; slower: factor by which just received data is forwarded more slowly; shared, between (GB/s):
#: bandwidth of a level's units, and between them.
SHORT = {
    "send_1": 0.035, "send_eager": 0.35, "receive": 0.03, "poll_node": 0.005, "gap_node": 0.05,
    "busy_node": 0.2, "busy_within": 0.35, "busy_buffered": 0.55, "turn_within": 0.43,
}  # fmt: skip
LONG = {
    "share_core": 0.95, "share_within": 0.42, "share_socket": 1.3, "slower_core": 2.7, "slower_within": 2.5, "slower_socket": 4.0,
    "shared_node": 13.5, "shared_numa": 16.0, "shared_ccd": 11.4, "shared_ccx": 16.0, "between_numa": 17.0,
}  # fmt: skip
#: `share_forward` by kind of level. It is not searched, because broadcasts with one child per rank, and linear ones, do not determine
#: it. 2 best fits the trees on the THIN nodes, which are held out (docs/cost-model.md, Parameters).
FORWARD = {"share_forward_core": 2.0, "share_forward_within": 2.0, "share_forward_socket": 2.0}
#: `share_first` of the levels whose units have an L3 cache of their own; not fitted. Linear broadcasts show it, but not how large it is:
#: on THIN and EPYC nodes all values from 1 to 2 fit them nearly equally well (docs/cost-model.md, Parameters).
FIRST = {"socket": 1.0, "ccx": 1.0}
#: UCX's default eager limit (bytes) of blocking sends (UCX_RNDV_SEND_NBR_THRESH), visible in ladders as a drop.
WAITED_LIMIT = 262144


def fitted_machine(machine: Machine, data: Data, values: dict[str, float], eager: int) -> Machine:
    """Return the machine with the parameters in *values* and the costs of each level that follow from them in closed form.

    Shared bandwidths missing in *values* are unchanged.
    """
    sizes = [size for *_, size in data.cells if size] or [size for of in data.ladder.values() for size in of]
    # The cost stays the same beyond the eager limit, also if no cell has more bytes.
    largest, last_eager = max([*sizes, 2 * eager]), eager // 2
    # A long message costs its sender the time of its announcement.
    send = [
        (1, values["send_1"]),
        (last_eager, values["send_eager"]),
        (eager, values["send_1"]),
        (largest, values["send_1"]),
    ]
    receive = [(1, values["receive"]), (last_eager, values["receive"])]
    by_level: dict[str, dict[str, Any]] = {
        key: {}
        for key in (
            "delay_us", "waited_us", "busy", "busy_buffered", "turn", "share", "share_forward", "share_first",
            "between_gb_s", "forward_gb_s", "waited_gb_s", "eager_gb_s", "poll_us", "gap_us",
        )
    }  # fmt: skip
    levels = []
    for level in machine.levels:
        given = level_with_costs(machine, level)
        alone = _alone(given, machine, data, send, eager)
        rate, delays = _times(data.ladder.get(given.name, {}), alone, send, receive, eager)
        for key, found in (delays | _parts(machine, level, values, rate)).items():
            by_level[key][level.name] = found
        shared = values.get(f"shared_{level.name}")
        levels.append(
            replace(
                level, latency_us=round(alone[min(alone)], 4), bandwidth_gb_s=round(rate, 3),
                shared_gb_s=level.shared_gb_s if shared is None else round(shared, 3),
            )
        )  # fmt: skip
    if machine.levels[-1].name not in by_level["waited_us"]:
        by_level["waited_us"] = by_level["waited_gb_s"] = {}  # no sizes between the two eager limits
    simulation = {key: value for key, value in machine.simulation.items() if key not in REPLACED_BY_FIT} | {
        "eager_limit_bytes": eager,
        **({"waited_limit_bytes": WAITED_LIMIT} if by_level["waited_us"] else {}),
        "send_us": [[size, round(us, 4)] for size, us in send],
        "receive_us": [[size, round(us, 4)] for size, us in receive],
        **{key: found for key, found in by_level.items() if found},
    }
    return replace(machine, levels=tuple(levels), simulation=simulation)


def _times(
    ladder: dict[int, float], alone: dict[int, float], send: list, receive: list, eager: int
) -> tuple[float, dict[str, Any]]:
    """Return a level's bandwidth (GB/s) and its other costs by size, from times (us) by size: of the *ladder*, and *alone*."""
    long = {size: us - line(send, size) for size, us in alone.items() if size >= eager}
    rate = max(size / us for size, us in long.items() if size >= 8 * eager) * 1e-3  # bytes per us to GB/s
    own = {size: line(send, size) + (line(receive, size) if size < eager else 0) for size in alone}
    # Blocking sends; their receiver is not busy afterwards.
    waited = {size: us for size, us in ladder.items() if eager <= size < WAITED_LIMIT} or {
        size: us for size, us in alone.items() if eager <= size < WAITED_LIMIT
    }
    rest = {size: us - own[size] for size, us in alone.items()}
    # The sender copies an eager message while it is busy. What then remains may be shorter than the time in which a long one's bytes flow.
    eager_rate = max(rate, *(math.ceil(size / max(us, 0.02)) * 1e-3 for size, us in rest.items() if size < eager))
    delays: dict[str, Any] = {
        "delay_us": _delays({size: us for size, us in rest.items() if size < eager}, eager_rate)
        + _delays({size: us for size, us in rest.items() if size >= eager}, rate)
    }
    if eager_rate > rate:
        delays["eager_gb_s"] = eager_rate
    if not waited:
        return rate, delays
    fastest = max(rate, *(round(size / us * 1e-3, 3) for size, us in waited.items()))
    faster = {"waited_gb_s": fastest} if fastest > rate else {}
    return rate, delays | {"waited_us": _delays(waited, fastest)} | faster


def _delays(total: dict[int, float], gb_s: float) -> list[list[float]]:
    """Return the times (us) in *total* by size, minus the time in which the bytes flow."""
    return [[size, round(max(us - size / gb_s * 1e-3, 0.001), 4)] for size, us in sorted(total.items())]


def kind_of(machine: Machine, level: Level) -> str:
    """Return the kind of a level in `SHORT` and `LONG`: node, socket, core (the innermost level), within (all others)."""
    if level.name in ("node", "group"):
        return "node"
    return "core" if level == machine.levels[-1] else "socket" if level.name == "socket" else "within"


def _parts(machine: Machine, level: Level, values: dict[str, float], rate: float) -> dict[str, float]:
    """Return the costs of a level with bandwidth *rate* (GB/s) that are not curves."""
    kind = kind_of(machine, level)
    if kind == "node":
        found = {
            "busy": values["busy_node"], "turn": 0.0, "share": 0.0, "poll_us": values["poll_node"], "gap_us": values["gap_node"],
        }  # fmt: skip
    else:
        found = {
            "busy": values["busy_within"], "busy_buffered": values["busy_buffered"], "turn": values["turn_within"],
            "share": values[f"share_{kind}"],
            "share_forward": (FORWARD | values)[f"share_forward_{kind}"], "forward_gb_s": rate / values[f"slower_{kind}"],
        }  # fmt: skip
        if level.name in FIRST and level.count > 1:
            found["share_first"] = FIRST[level.name]
        if (between := values.get(f"between_{level.name}")) is not None:
            found["between_gb_s"] = between
    return {key: round(value, 5 if key.endswith("_us") else 3) for key, value in found.items()}


def level_with_costs(machine: Machine, level: Level) -> Level:
    """Return the level whose messages determine a level's costs: for a level with one unit, the next inner level with several."""
    inside = machine.levels[machine.levels.index(level) :]
    return next((one for one in [*inside, *reversed(machine.levels)] if one.count > 1), level)


def _alone(level: Level, machine: Machine, data: Data, send: list, eager: int) -> dict[int, float]:
    """Return the time (us) of a single message across *level*, by size. Raises StudyError without data."""
    # With the mapping named like the level, the outermost level at which the first two ranks differ is that level.
    mapping = level.name
    pair = _pair(mapping, data) or _between(level, machine, data)
    ladder = data.ladder.get(level.name, {})
    alone = {size: us for size, us in ladder.items() if size < eager}
    barrier = data.cells.get(("barrier", "default", mapping, 2, None))
    if not alone and barrier is not None:
        # With two ranks, one leaves the barrier when the other's message arrives, and then waits for messages of barrier and broadcast.
        alone = {size: max(2 * us - line(send, size) - barrier, barrier) for size, us in pair.items() if size < eager}
    alone |= {size: us for size, us in (pair or ladder).items() if size >= eager}
    if not alone or min(alone) >= eager or max(alone) < 8 * eager:
        raise StudyError(
            f"calibration of machine {machine.name}: neither ladder nor study has messages across level {level.name} "
            f"from below {eager} to {8 * eager} bytes and more"
        )
    if zero := [size for size, us in alone.items() if us <= 0]:
        raise StudyError(
            f"calibration of machine {machine.name}: a message of {zero[0]} bytes across level {level.name} took no time"
        )
    return alone


def _pair(mapping: str, data: Data) -> dict[int, float]:
    """Return broadcasts to one other rank, by size: the mean over both ranks, which is the time of a long message."""
    return {key[4]: us for key, us in data.cells.items() if key[:4] == ("bcast", "linear", mapping, 2) and key[4]}


def _between(level: Level, machine: Machine, data: Data) -> dict[int, float]:
    """Interpolate broadcasts to one other rank across a level for which no mapping has data: between the next outer and the next
    inner level with data, in proportion to their ladders. Empty if one of these is missing.
    """
    at = machine.levels.index(level)
    known = [of for of in machine.levels if _pair(of.name, data) and data.ladder.get(of.name)]
    outer = [of for of in known if machine.levels.index(of) < at][-1:]
    inner = [of for of in known if machine.levels.index(of) > at][:1]
    ladder = data.ladder.get(level.name)
    if not (outer and inner and ladder):
        return {}
    pairs, ladders = (
        [_pair(of[0].name, data) for of in (inner, outer)],
        [data.ladder[of[0].name] for of in (inner, outer)],
    )
    found = {}
    for size in pairs[0].keys() & pairs[1].keys() & ladder.keys() & ladders[0].keys() & ladders[1].keys():
        span = ladders[1][size] - ladders[0][size]
        part = min(1.0, max(0.0, (ladder[size] - ladders[0][size]) / span)) if span > 0 else 0.0
        found[size] = pairs[0][size] + part * (pairs[1][size] - pairs[0][size])
    return found
