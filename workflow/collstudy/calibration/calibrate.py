"""Fit a simulated machine to measurements: `./study calibrate MACHINE`, rule `calibrate` of the workflow.

The machine's `calibration` block names the data: a ladder (latency of pairs of cores against size: a study that measured or
imported it, or a list) and optionally a study with measured collectives, of which only the algorithms and numbers of processes
named there, and two ranks, are used.

1. Closed form. Time of a message between two cores: short messages from the ladder (median over the pairs of a level; for a
   level missing in the ladder: two ranks across it), long ones from a broadcast to one rank across that level.
2. Search. The overheads of sending and receiving and shared bandwidths (`SHORT`, `LONG`) by coordinate search from fixed
   starting values with fixed steps, no random numbers: each step simulates the cells and keeps changes that lower the mean
   |log(simulated / measured)|. Step 1 is repeated for each trial. If the block names no eager limit, it is the
   value of `LIMITS` that fits best with the starting values.

With a ladder alone, and no study, there is no search. A ladder with sizes from below to far above the eager limit at every level
gives step 1 for all of them, with the overheads of `alone_values`: jumps of protocols are in the delays. One of short messages
only gives each level the latency with which the simulated ping-pong reproduces the smallest size. All else is unchanged.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError, allowed
from collstudy.base.files import write_atomically
from collstudy.launch import output
from collstudy.launch.simulator import DEFAULTS, line, prepare
from collstudy.launch.toolchain import versions
from collstudy.store.measurements import read_measurements
from collstudy.study.cells import Cell, expand
from collstudy.study.config import (
    POINT_TO_POINT,
    REPLACED_BY_FIT,
    Choice,
    Configuration,
    Level,
    Machine,
    Policy,
    Study,
    Sweep,
    Swept,
    read_yaml,
    shown,
)
from collstudy.study.placement import cores_in_order, first_difference

#: Keys of a machine's `simulation` determined by a ladder of all sizes.
FITTED = (
    "eager_limit_bytes", "waited_limit_bytes", "send_us", "receive_us", "poll_us", "busy", "turn", "share", "share_forward",
    "forward_gb_s", "delay_us", "waited_us",
)  # fmt: skip

Key = tuple[str, str, str, int, int | None]  # collective, algorithm, mapping, processes, size

#: Starting values, those of `KINDS` by kind of level. send_1, send_eager (us): a sender's own time for 1 byte and for the largest
#: eager message; receive (us); poll (us): see `simulator.py`; busy, turn, share: parts of a message's time; slower: how much
#: more slowly a just received message is forwarded; shared (GB/s): of the units of a level.
SHORT = {
    "send_1": 0.035, "send_eager": 0.35, "receive": 0.03, "poll": 0.005,
    "busy_node": 0.2, "busy_within": 0.35, "turn_within": 0.43,
}  # fmt: skip
LONG = {
    "share_core": 0.95, "share_within": 0.42, "share_socket": 1.3, "slower_core": 2.7, "slower_within": 2.5, "slower_socket": 4.0,
    "shared_node": 13.5, "shared_ccd": 11.4,
}  # fmt: skip
#: Neither broadcasts with one child per rank nor linear ones determine it: 2 fits the trees of the THIN nodes best, which
#: are held out, and those of the EPYC nodes (docs/methodology.md, section 8.1).
SHARE_FORWARD = 2.0
#: Parameters not fitted with a study, and their values.
FIXED = ("share of messages between nodes: 0", "forward_gb_s between nodes: none", f"share_forward: {SHARE_FORWARD:g}")
#: UCX's default for blocking sends (UCX_RNDV_SEND_NBR_THRESH), visible in ladders as a drop.
WAITED_LIMIT = 262144
STEPS = (1.2,)
#: Parameters that a ladder alone does not determine; the starting values are kept.
NOT_IN_A_LADDER = [
    "eager_limit_bytes",
    "send_us",
    "receive_us",
    "poll_us",
    "busy",
    "turn",
    "share",
    "forward_gb_s",
    "shared_gb_s",
]
#: Eager limits (bytes) tried if the machine names none: those of current MPI libraries.
LIMITS = (4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True)
class Data:
    """Measurements in microseconds: the ladder by level and size, and the collectives by cell and size."""

    ladder: dict[str, dict[int, float]]
    cells: dict[Key, float]


def ladder_of(rows: Iterable[Iterable[float]], machine: Machine) -> dict[str, dict[int, float]]:
    """Median over the pairs of cores of each level, by size. Cores are numbered over the whole machine."""
    cores = cores_in_order(machine.levels, [])
    samples: dict[str, dict[int, list[float]]] = {}
    for one, other, size, latency in rows:
        if one == other or max(one, other) >= len(cores):
            continue
        level = first_difference(machine.levels, cores[one], cores[other])
        samples.setdefault(str(level), {}).setdefault(size, []).append(latency)
    return {
        level: {size: statistics.median(values) for size, values in sorted(of.items())} for level, of in samples.items()
    }


def read_cells(path: Path) -> dict[Key, float]:
    """Median of the measurements of each cell and size of a study's measurements.csv."""
    samples: dict[Key, list[float]] = {}
    for row in read_measurements(path):
        key = (row.collective, row.algorithm, row.mapping, row.processes, row.size)
        samples.setdefault(key, []).append(row.value)
    return {key: statistics.median(values) for key, values in samples.items()}


def fitted_machine(machine: Machine, data: Data, values: dict[str, float], eager: int) -> Machine:
    """The machine with the parameters in *values* and, given these, the costs of each level in closed form.

    Shared bandwidths missing in *values* are unchanged.
    """
    sizes = [size for *_, size in data.cells if size] or [size for of in data.ladder.values() for size in of]
    last_eager = eager // 2
    # A long message costs its sender the time of its announcement.
    send = [
        (1, values["send_1"]),
        (last_eager, values["send_eager"]),
        (eager, values["send_1"]),
        (max(sizes), values["send_1"]),
    ]
    receive = [(1, values["receive"]), (last_eager, values["receive"])]
    by_level: dict[str, dict[str, Any]] = {
        key: {} for key in ("delay_us", "waited_us", "busy", "turn", "share", "forward_gb_s")
    }
    levels = []
    for level in machine.levels:
        told = _told_by(machine, level)
        alone = _alone(told, machine, data, send, eager)
        long = {size: us - line(send, size) for size, us in alone.items() if size >= eager}
        rate = max(size / us for size, us in long.items() if size >= 8 * eager) * 1e-3  # bytes per us to GB/s
        own = {size: line(send, size) + (line(receive, size) if size < eager else 0) for size in alone}
        by_level["delay_us"][level.name] = _delays({size: us - own[size] for size, us in alone.items()}, rate)
        ladder = data.ladder.get(told.name, {})
        # A blocking send: its receiver is not busy afterwards.
        waited = {size: us for size, us in ladder.items() if eager <= size < WAITED_LIMIT} or {
            size: us for size, us in alone.items() if eager <= size < WAITED_LIMIT
        }
        if waited:
            by_level["waited_us"][level.name] = _delays(waited, rate)
        for key, found in _parts(machine, level, values).items():
            by_level[key][level.name] = round(rate / found if key == "forward_gb_s" else found, 3)
        shared = values.get(f"shared_{level.name}")
        levels.append(
            replace(
                level, latency_us=round(alone[min(alone)], 4), bandwidth_gb_s=round(rate, 3),
                shared_gb_s=level.shared_gb_s if shared is None else round(shared, 3),
            )
        )  # fmt: skip
    simulation = {key: value for key, value in machine.simulation.items() if key not in REPLACED_BY_FIT} | {
        "eager_limit_bytes": eager,
        "waited_limit_bytes": WAITED_LIMIT,
        "send_us": [[size, round(us, 4)] for size, us in send],
        "receive_us": [[size, round(us, 4)] for size, us in receive],
        "poll_us": round(values["poll"], 5),
        "share_forward": SHARE_FORWARD,
        **by_level,
    }
    return replace(machine, levels=tuple(levels), simulation=simulation)


def _delays(total: dict[int, float], gb_s: float) -> list[list[float]]:
    """The microseconds in *total*, by size, minus the time in which the bytes flow."""
    return [[size, round(max(us - size / gb_s * 1e-3, 0.001), 4)] for size, us in sorted(total.items())]


def kind_of(machine: Machine, level: Level) -> str:
    """The kind of a level in `SHORT` and `LONG`: node, socket, core (the innermost), within (the others)."""
    if level.name in ("node", "group"):
        return "node"
    return "core" if level == machine.levels[-1] else "socket" if level.name == "socket" else "within"


def _parts(machine: Machine, level: Level, values: dict[str, float]) -> dict[str, float]:
    """`busy`, `turn`, `share` of a level, and as `forward_gb_s` the slow-down of a just received message."""
    kind = kind_of(machine, level)
    if kind == "node":
        return {"busy": values["busy_node"], "turn": 0.0, "share": 0.0}
    return {
        "busy": values["busy_within"], "turn": values["turn_within"], "share": values[f"share_{kind}"],
        "forward_gb_s": values[f"slower_{kind}"],
    }  # fmt: skip


def _told_by(machine: Machine, level: Level) -> Level:
    """The level whose messages determine a level's costs: for a level of one unit, the next one inside of it."""
    inside = machine.levels[machine.levels.index(level) :]
    return next((one for one in [*inside, *reversed(machine.levels)] if one.count > 1), level)


def _alone(level: Level, machine: Machine, data: Data, send: list, eager: int) -> dict[int, float]:
    """Microseconds of a single message across *level*, by size. Raises StudyError without data."""
    # In a mapping of that name the first two ranks differ first at that level.
    mapping = level.name
    pair = _pair(mapping, data) or _between(level, machine, data)
    ladder = data.ladder.get(level.name, {})
    alone = {size: us for size, us in ladder.items() if size < eager}
    barrier = data.cells.get(("barrier", "default", mapping, 2, None))
    if not alone and barrier is not None:
        # Two ranks: one leaves the barrier when the other's message arrives, and waits for the messages of barrier and broadcast.
        alone = {size: max(2 * us - line(send, size) - barrier, barrier) for size, us in pair.items() if size < eager}
    alone |= {size: us for size, us in (pair or ladder).items() if size >= eager}
    if not alone or min(alone) >= eager or max(alone) < 8 * eager:
        raise StudyError(
            f"calibration of machine {machine.name}: neither ladder nor study has messages across level {level.name} "
            f"from below {eager} to {8 * eager} bytes and more"
        )
    return alone


def _pair(mapping: str, data: Data) -> dict[int, float]:
    """Broadcasts to one other rank, by size: the mean over both ranks, the time of a long message."""
    return {key[4]: us for key, us in data.cells.items() if key[:4] == ("bcast", "linear", mapping, 2) and key[4]}


def _between(level: Level, machine: Machine, data: Data) -> dict[int, float]:
    """Broadcasts to one other rank across a level that no mapping's first two ranks differ at: between those of the next levels
    outside and inside of it that have some, where its ladder is between theirs. Empty where these do not have both.
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


@dataclass(frozen=True)
class Request:
    """A cell to simulate, and its sizes."""

    collective: str
    algorithm: str
    mapping: str
    processes: int
    sizes: tuple[int, int] | None


class Simulator:
    """Runs cells of any machine with the program, options and environment of a study's cell."""

    def __init__(self, configuration: Configuration, workers: int):
        self.catalogue = configuration.catalogue
        self.versions = versions()
        self.workers = workers

    def _cell(self, machine: Machine, request: Request) -> Cell:
        levels = (request.mapping.removeprefix("level-"),) if request.mapping.startswith("level-") else ()
        sweep = Sweep(
            request.collective, (Choice(request.algorithm),), (request.mapping,), (machine.mpi,), (machine.nodes,),
            (request.processes,), False, request.sizes, 1, 1, levels,
        )  # fmt: skip
        study = Study("calibration", "", "", machine, Swept((sweep,), Policy()), {})
        return expand(study, self.catalogue, self.versions)[0]

    def one(self, machine: Machine, request: Request, folder: Path) -> dict[Key, float]:
        """Latencies by size. Raises StudyError with the simulator's last output."""
        cell = self._cell(machine, request)
        placement = cell.place(machine)
        command = [*prepare(machine, cell, placement, folder), "-i", "1", "-x", "1"]
        command += ["-f"] * (request.collective not in POINT_TO_POINT)
        if request.sizes:
            command += ["-m", f"{request.sizes[0]}:{request.sizes[1]}"]
        environment = os.environ | cell.selection.library
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
        if done.returncode != 0:
            raise StudyError(f"simulation of {cell.label} failed:\n{done.stdout[-500:]}{done.stderr[-1000:]}")
        rows = output.parse(done.stdout, cell.size_list)
        head = (request.collective, request.algorithm, request.mapping, request.processes)
        return {(*head, size): row["latency_us"] for size, row in zip(cell.size_list, rows, strict=True)}

    def all(self, machine: Machine, requests: Iterable[Request]) -> dict[Key, float]:
        """All requests in parallel, on the available cores."""
        requests = list(requests)
        with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(self.workers) as pool:
            folders = [Path(name) / str(i) for i in range(len(requests))]
            for folder in folders:
                folder.mkdir()
            found: dict[Key, float] = {}
            for latencies in pool.map(lambda pair: self.one(machine, *pair), zip(requests, folders, strict=True)):
                found |= latencies
            return found


def misfit(simulated: dict[Key, float], measured: dict[Key, float]) -> float:
    """Mean |log(simulated / measured)| of common points; floors of 0.01 us limit the influence of zeros."""
    errors = [
        abs(math.log(max(us, 0.01) / max(measured[key], 0.01))) for key, us in simulated.items() if key in measured
    ]
    if not errors:
        raise StudyError("no simulated cell was also measured")
    return statistics.fmean(errors)


def search(
    start: dict[str, float],
    cost: Callable[[dict[str, float]], float],
    steps: tuple[float, ...] = STEPS,
) -> dict[str, float]:
    """Coordinate search on factors: multiply or divide one value at a time, keep improvements, then use a smaller factor."""
    best, lowest = dict(start), cost(start)
    for step in steps:
        for name in start:
            for factor in (step, 1 / step):
                moved = False
                while True:
                    trial = best | {name: best[name] * factor}
                    if (found := cost(trial)) >= lowest - 1e-6:
                        break
                    best, lowest, moved = trial, found, True
                if moved:
                    break
    return best


def requests_for(block: dict[str, Any], eager: int) -> tuple[list[Request], list[Request]]:
    """The cells with short and with long messages (from *eager* bytes on) that the `calibration` block names."""
    largest = block["largest_bytes"]
    at = [(mapping, processes) for mapping in block["mappings"] for processes in block["processes"]]
    bcast = [(name, mapping, processes) for name in block["algorithms"] for mapping, processes in at]
    short = [Request("bcast", *cell, (1, eager // 2)) for cell in bcast]
    short += [Request("barrier", name, mapping, p, None) for name in block["barriers"] for mapping, p in at]
    # The time of a single long message is part of the fit: step 1 cannot reproduce it if a core carries less.
    alone = [("linear", mapping, 2) for mapping in block["mappings"]]
    return short, [Request("bcast", *cell, (eager, largest)) for cell in [*bcast, *alone]]


def _calibrated_file(configuration: Configuration, name: str) -> dict[str, Any]:
    """A machine's own file, with its calibration block and the name of the fitted file. Raises StudyError."""
    path = configuration.machine_path(name)
    document = read_yaml(path, "machine")
    if "calibration" not in document:
        raise StudyError(f"{shown(path)}: no `calibration` that names ladder and study; see config/README.md")
    return document


def studies_of_machine(configuration: Configuration, name: str) -> list[str]:
    """The studies that a machine is calibrated with. Raises StudyError."""
    block = _calibrated_file(configuration, name)["calibration"]
    named = [data for data in (block["ladder"], block.get("study")) if isinstance(data, str)]
    return list(dict.fromkeys(named))


def calibrate(configuration: Configuration, name: str, results: Path, say: Callable[[str], None] = print) -> None:
    """Fit machine *name*, write `calibration/<name>.csv` (measured and simulated) to *results*, and the fit beside its file.

    Raises StudyError.
    """
    path = configuration.machine_path(name)
    document = _calibrated_file(configuration, name)
    block = document["calibration"]
    machine = configuration.machine(name, fitting=True)
    if machine.kind != "simulated" or "fat_tree" in machine.simulation:
        raise StudyError(f"{shown(path)}: only a simulated machine of levels can be calibrated")
    simulator = Simulator(configuration, max(1, (os.cpu_count() or 2)))
    ladder, content = read_ladder(block["ladder"], machine, path, results)
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "ladder_sha256": hashlib.sha256(content).hexdigest()[:16],
    }
    if "study" in block:
        measured = _existing(path, results / block["study"] / "measurements.csv")
        about["study_sha256"] = file_digest(measured)[:16]
        data = Data(ladder, read_cells(measured))
        fitted, requests = fit_study(machine, data, block, simulator, say)
        known, not_fitted = data.cells, list(FIXED)
        if not block.get("search", True):
            about["search"] = "none: the starting values"
    else:
        fitted, requests, not_fitted = fit_ladder(machine, ladder, block.get("eager_limit_bytes"), simulator, path)
        known = {
            ("latency", "default", f"level-{level}", 2, s): us for level, of in ladder.items() for s, us in of.items()
        }
    both = {key: (known[key], us) for key, us in simulator.all(fitted, requests).items() if key in known}
    write_pairs(results / "calibration" / f"{name}.csv", both)
    about |= summary(both) | ({"not_fitted": not_fitted} if not_fitted else {})
    write_fit(path.with_name(document["fitted"]), machine, fitted, about)


def read_ladder(
    ladder: str | list, machine: Machine, path: Path, results: Path
) -> tuple[dict[str, dict[int, float]], bytes]:
    """The ladder of `calibration.ladder`, by level and size, and the bytes that it was read from. Raises StudyError."""
    if isinstance(ladder, list):
        return ladder_of(ladder, machine), json.dumps(ladder).encode()
    file = _existing(path, results / ladder / "measurements.csv")
    found = ladder_of_study(file, machine)
    if not found:
        raise StudyError(f"{shown(path)}: calibration.ladder: study {ladder} has no `latency` across levels")
    return found, file.read_bytes()


def ladder_of_study(path: Path, machine: Machine) -> dict[str, dict[int, float]]:
    """Median latency by level and size of a ladder's measurements.csv: of `levels`, of all pairs of cores, or both."""
    across: dict[str, dict[int, list[float]]] = {}
    pairs = []
    for row in read_measurements(path):
        if row.collective == "latency":
            of = across.setdefault(row.mapping.removeprefix("level-"), {})
            of.setdefault(row.size or 0, []).append(row.value)
        elif row.pair:
            # With a rank on every core: rank r is on core r.
            pairs.append([*row.pair, row.size or 0, row.value])
    found = ladder_of(pairs, machine)
    for level in machine.levels:
        for size, values in sorted(across.get(level.name, {}).items()):
            found.setdefault(level.name, {}).setdefault(size, statistics.median(values))
    return found


def _existing(machine: Path, data: Path) -> Path:
    if not data.exists():
        raise StudyError(f"{shown(machine)}: calibration: {data} does not exist (./study run STUDY makes a study's)")
    return data


def fit_study(
    machine: Machine, data: Data, block: dict[str, Any], simulator: Simulator, say: Callable[[str], None]
) -> tuple[Machine, list[Request]]:
    """The machine fitted to a ladder and a study's collectives, with the fitted points."""
    short_start, long_start = starts(machine, block)

    def cost_of(eager: int, requests: list[Request]) -> _Cost:
        return _Cost(simulator, machine, data, short_start | long_start, requests, eager, say)

    eager = block.get("eager_limit_bytes") or min(
        LIMITS, key=lambda limit: cost_of(limit, [each for part in requests_for(block, limit) for each in part])({})
    )
    say(f"eager limit: {eager} bytes")
    short, long = requests_for(block, eager)
    values = short_start | long_start
    for which, requests in ((short_start, short), (long_start, long)):
        # Both start from the same values: their results are independent.
        if block.get("search", True):
            values |= search(dict(which), cost_of(eager, requests))
    return fitted_machine(machine, data, values, eager), short + long


def starts(machine: Machine, block: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """The starting values of a machine's search, for short and for long messages.

    Shared bandwidths only of the levels in `shared`; kinds of levels only those of the machine. The block's
    `start` takes precedence. Raises StudyError.
    """
    kinds = {kind_of(machine, level) for level in machine.levels if level.count > 1}
    shared = {f"shared_{name}" for name in block.get("shared", ("node",))}
    long = {
        key: value for key, value in LONG.items()
        if (key in shared if key.startswith("shared_") else key.partition("_")[2] in kinds)
    }  # fmt: skip
    own = block.get("start", {})
    if unknown := [key for key in own if key not in SHORT | long]:
        raise StudyError(
            f"calibration.start of machine {machine.name}: unknown {unknown[0]!r}{allowed([*SHORT, *long])}"
        )
    short, long = ({key: own.get(key, value) for key, value in of.items()} for of in (SHORT, long))
    return short, long


def alone_values(ladder: dict[str, dict[int, float]]) -> dict[str, float]:
    """The parameters without collectives: the starting values, with overheads of at most a quarter of the fastest message."""
    most = min(us for of in ladder.values() for us in of.values()) / 4
    values = {key: value for key, value in (SHORT | LONG).items() if not key.startswith("shared_")}
    send = min(SHORT["send_1"], most)
    return values | {"send_1": send, "send_eager": send, "receive": min(SHORT["receive"], most)}


def fit_ladder(
    machine: Machine, ladder: dict[str, dict[int, float]], eager: int | None, simulator: Simulator, path: Path
) -> tuple[Machine, list[Request], list[str]]:
    """The machine whose simulated ping-pong reproduces the ladder, with fitted points and unfitted parameters.

    Raises StudyError if the ladder lacks a level, or is faster there than the machine's overheads allow.
    """
    where = shown(path)
    levels = [level.name for level in machine.levels if level.count > 1]
    if lacking := [name for name in levels if name not in ladder]:
        raise StudyError(f"{where}: calibration.ladder has no pair of cores that differ first at {', '.join(lacking)}")
    eager = eager or machine.simulation.get("eager_limit_bytes", DEFAULTS["eager_limit_bytes"])

    def asked(end: Callable[[Iterable[int]], int]) -> list[Request]:
        return [
            Request("latency", "default", f"level-{name}", 2, (min(ladder[name]), end(ladder[name]))) for name in levels
        ]

    if all(min(ladder[name]) < eager and max(ladder[name]) >= 8 * eager for name in levels):
        fitted = fitted_machine(machine, Data(ladder, {}), alone_values(ladder), eager)
        return fitted, asked(max), NOT_IN_A_LADDER

    if unknown := [level.name for level in machine.levels if level.count > 1 and not level.bandwidth_gb_s]:
        raise StudyError(
            f"{where}: calibration.ladder does not go from below {eager} to {8 * eager} bytes at every level, so it does not determine "
            f"bandwidths: set bandwidth_gb_s of level {', '.join(unknown)}"
        )
    wanted = {name: ladder[name][min(ladder[name])] for name in levels}
    smallest = asked(min)

    def with_latencies(us: dict[str, float]) -> Machine:
        told = [(level, _told_by(machine, level)) for level in machine.levels]
        return replace(machine, levels=tuple(
            replace(level, latency_us=us[of.name], bandwidth_gb_s=of.bandwidth_gb_s) for level, of in told
        ))  # fmt: skip

    # A message takes its level's latency and more: always from the same start, independent of the file.
    simulated = {
        key[2].removeprefix("level-"): us for key, us in simulator.all(with_latencies(wanted), smallest).items()
    }
    latencies = {name: round(2 * wanted[name] - us, 4) for name, us in simulated.items()}
    if too_fast := [name for name in levels if latencies[name] < 0]:
        raise StudyError(
            f"{where}: calibration.ladder: {', '.join(too_fast)} is faster than the overheads of the simulation"
        )
    return with_latencies(latencies), smallest, ["bandwidth_gb_s", "shared_gb_s", "simulation"]


@dataclass(frozen=True)
class _Cost:
    """The misfit of the machine with some of its *values* changed."""

    simulator: Simulator
    machine: Machine
    data: Data
    values: dict[str, float]
    requests: list[Request]
    eager: int
    say: Callable[[str], None]

    def __call__(self, part: dict[str, float]) -> float:
        trial = fitted_machine(self.machine, self.data, self.values | part, self.eager)
        found = misfit(self.simulator.all(trial, self.requests), self.data.cells)
        self.say(f"{found:.4f} " + " ".join(f"{key}={value:.3g}" for key, value in part.items()))
        return found


def summary(both: dict[Key, tuple[float, float]]) -> dict[str, Any]:
    """Entry `about` of the fitted file: number of points and errors, from measured and simulated microseconds."""
    errors: dict[str, list[float]] = {}
    for key, (measured, simulated) in sorted(both.items(), key=str):
        what = key[2].removeprefix("level-") if key[0] in POINT_TO_POINT else f"{key[0]} {key[1]}"
        if key[0] not in POINT_TO_POINT and key[3] == 2:
            what += " of 2 ranks"  # step 1 took these as they are
        errors.setdefault(what, []).append(abs(simulated / measured - 1) * 100)
    return {
        "points": len(both),
        "median_abs_error_pct": {what: round(statistics.median(of), 1) for what, of in errors.items()},
    }


def write_pairs(path: Path, both: dict[Key, tuple[float, float]]) -> None:
    """Write the fitted points, measured and simulated, as a table."""
    rows = [[*(["" if part is None else part for part in key]), measured, round(simulated, 4)]
            for key, (measured, simulated) in both.items()]  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["collective", "algorithm", "mapping", "processes", "size_bytes", "measured_us", "simulated_us"])
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _flow(value: Any) -> str:
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False).strip().removesuffix("...").strip()
    )


def _wrapped(name: str, points: list, indent: str) -> str:
    """A list of pairs within 120 columns."""
    lines, current = [], f"{indent}{name}: ["
    for index, point in enumerate(points):
        text = f"[{point[0]}, {point[1]:g}]" + ("]" if index == len(points) - 1 else ", ")
        if len(current) + len(text) > 119:
            lines.append(current.rstrip())
            current = indent + "  "
        current += text
    return "\n".join([*lines, current])


def write_fit(path: Path, plain: Machine, fitted: Machine, about: dict[str, Any]) -> None:
    """Write the file with the costs of *fitted* that differ from the machine's own file (*plain*)."""
    lines = [
        f"# Written by `./study calibrate {fitted.name}`, for {fitted.name}.yaml, which names this file; the next calibration replaces it.",
        "# workflow/collstudy/launch/simulator.py explains the costs.",
        "about:",
        *(f"  {key}: {_flow(value)}" for key, value in about.items()),
        "levels:",
    ]
    for before, after in zip(plain.levels, fitted.levels, strict=True):
        costs = {key: getattr(after, key) for key in ("latency_us", "bandwidth_gb_s", "shared_gb_s")}
        changed = {key: value for key, value in costs.items() if value != getattr(before, key)}
        lines.append(f"  {after.name}: {_flow(changed)}")
    if fitted.simulation != plain.simulation:
        lines.append("simulation:")
        for key in FITTED:
            value = fitted.simulation[key]
            if key in ("send_us", "receive_us"):
                lines.append(_wrapped(key, value, "  "))
            elif key in ("delay_us", "waited_us"):
                lines += [f"  {key}:", *(_wrapped(level, points, "    ") for level, points in value.items())]
            else:
                lines.append(f"  {key}: {_flow(value)}")
    write_atomically(path, ("\n".join(lines) + "\n").encode())
