"""Fit a simulated machine to measurements: `python -m collstudy calibrate MACHINE`.

The machine's `calibration` block names the data: a ladder (latency of every pair of cores of a node against size) and a
study with measured collectives, of which only the algorithms and numbers of processes named there are used.

1. Closed form. What a message takes between two cores: short messages from the ladder (median over the pairs of a level; a
   level that the ladder does not have: two ranks across it), long ones from a broadcast to one rank across that level.
2. Search. The overheads of sending and receiving and what messages share (`SHORT`, `LONG`) by coordinate search from fixed
   starting values with fixed steps, no random numbers: each step simulates the cells and keeps what lowers the mean
   |log(simulated / measured)|. What step 1 fixed is computed again for each trial.

With a ladder alone, and no study, there is no search: each level gets the latency with which the simulated ping-pong takes what
the ladder says of the smallest message, and the bandwidth of the two largest where these are long enough. All else stays.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from . import output
from .cells import Cell, expand
from .config import POINT_TO_POINT, Choice, Configuration, Level, Machine, Policy, Study, Sweep, read_yaml, shown
from .errors import StudyError
from .importer import data_folder
from .placement import cores_in_order, first_difference
from .simulator import prepare
from .store import write_atomically
from .toolchain import versions

Key = tuple[str, str, str, int, int | None]  # collective, algorithm, mapping, processes, size

#: Starting values. us: send_us and receive_us at 1 byte and at the largest eager size, send_us at the smallest and the largest
#: long size; GB/s: what a core, a socket's memory, the link between sockets and a node's network interface carry.
SHORT = {"send_1": 0.08, "send_eager": 0.4, "receive_1": 0.02, "receive_eager": 0.1, "poll": 0.015}
LONG = {
    "send_long": 0.3, "send_longest": 15.0, "core": 20.0, "bus": 120.0, "between": 40.0, "nic": 13.0,
    "forward_core": 5.0, "forward_between": 3.0, "forward_nic": 11.0,
}  # fmt: skip
STEPS = (1.4, 1.15)
#: Bytes from which on two sizes of a ladder tell a bandwidth.
LONG_BYTES = 65536


@dataclass(frozen=True)
class Data:
    """Measurements in microseconds: the ladder by level and size, and the collectives by cell and size."""

    ladder: dict[str, dict[int, float]]
    cells: dict[Key, float]


def read_rows(path: Path) -> list[list[float]]:
    """The rows of a ladder's file. Columns: core, core, size in bytes, latency in microseconds."""
    with open(path, newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream)
        next(rows, None)
        return [[*map(int, row[:3]), float(row[3])] for row in rows if len(row) == 4]


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
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            size = int(float(row["size_bytes"])) if row["size_bytes"] else None
            key = (row["collective"], row["algorithm"], row["mapping"], int(row["processes"]), size)
            samples.setdefault(key, []).append(float(row["latency_us"]))
    return {key: statistics.median(values) for key, values in samples.items()}


def line(points: list[tuple[int, float]], size: float) -> float:
    """Linear interpolation between *points*; beyond them the last value."""
    if size <= points[0][0]:
        return points[0][1]
    for (low, before), (high, after) in zip(points, points[1:], strict=False):
        if size <= high:
            return before + (after - before) * (size - low) / (high - low)
    return points[-1][1]


def fitted_machine(machine: Machine, data: Data, values: dict[str, float], eager: int) -> Machine:
    """The machine with the parameters of the search and, given these, the costs of each level in closed form."""
    largest = max(size for *_, size in data.cells if size)
    last_eager = eager // 2
    short_send = [(1, values["send_1"]), (last_eager, values["send_eager"])]
    send = [*short_send, (eager, values["send_long"]), (largest, values["send_longest"])]
    receive = [(1, values["receive_1"]), (last_eager, values["receive_eager"])]
    shared = {"core": "bus", "socket": "between", "node": "nic"}
    levels, delays, forward = [], {}, {}
    for level in machine.levels:
        alone = _alone(level, machine, data, send, eager)
        long = {size: us - line(send, size) for size, us in alone.items() if size >= eager}
        rate = max(size / us for size, us in long.items() if size >= 8 * eager) * 1e-3  # bytes per us to GB/s
        delay = {
            size: us - line(send, size) - (line(receive, size) if size < eager else 0) - size / rate * 1e-3
            for size, us in alone.items()
        }
        delays[level.name] = [[size, round(max(us, 0.001), 4)] for size, us in sorted(delay.items())]
        forward[level.name] = round(values[f"forward_{shared.get(level.name, 'nic').replace('bus', 'core')}"], 3)
        levels.append(
            replace(
                level, latency_us=round(alone[min(alone)], 4), bandwidth_gb_s=round(rate, 3),
                shared_gb_s=round(values[shared.get(level.name, "nic")], 3),
            )
        )  # fmt: skip
    simulation = {
        "eager_limit_bytes": eager,
        "core_gb_s": round(values["core"], 3),
        "send_us": [[size, round(us, 4)] for size, us in send],
        "receive_us": [[size, round(us, 4)] for size, us in receive],
        "poll_us": round(values["poll"], 5),
        "delay_us": delays,
        "forward_gb_s": forward,
    }
    return replace(machine, levels=tuple(levels), simulation=simulation)


def _alone(level: Level, machine: Machine, data: Data, send: list, eager: int) -> dict[int, float]:
    """Microseconds of one message across *level* with nothing else going on, by size."""
    mapping = {"core": "core", "socket": "socket"}.get(level.name, "node")
    pair = {key[4]: us for key, us in data.cells.items() if key[:4] == ("bcast", "linear", mapping, 2) and key[4]}
    alone = {size: us for size, us in data.ladder.get(level.name, {}).items() if size < eager}
    if not alone:
        # Two ranks: one leaves the barrier when the other's message arrives, and waits for the barrier's and the broadcast's.
        barrier = data.cells["barrier", "default", mapping, 2, None]
        alone = {size: max(2 * us - line(send, size) - barrier, barrier) for size, us in pair.items() if size < eager}
    return alone | {size: us for size, us in pair.items() if size >= eager}


@dataclass(frozen=True)
class Request:
    """A cell to simulate, and which of its sizes."""

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
        study = Study("calibration", "", "", machine, Policy(), (sweep,), {}, {})
        return expand(study, self.catalogue, self.versions)[0]

    def one(self, machine: Machine, request: Request, folder: Path) -> dict[Key, float]:
        """Latencies by size. Raises StudyError with the simulator's last words."""
        cell = self._cell(machine, request)
        placement = cell.place(machine)
        command = [*prepare(machine, cell, placement, folder), "-i", "1", "-x", "1"]
        command += ["-f"] * (request.collective not in POINT_TO_POINT)
        if request.sizes:
            command += ["-m", f"{request.sizes[0]}:{request.sizes[1]}"]
        environment = os.environ | dict(cell.selection.get("library", {}))
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
        if done.returncode != 0:
            raise StudyError(f"simulation of {cell.label} failed:\n{done.stdout[-500:]}{done.stderr[-1000:]}")
        rows = output.parse(done.stdout, cell.size_list)
        head = (request.collective, request.algorithm, request.mapping, request.processes)
        return {(*head, size): row["latency_us"] for size, row in zip(cell.size_list, rows, strict=True)}

    def all(self, machine: Machine, requests: Iterable[Request]) -> dict[Key, float]:
        """All requests at once, on as many cores as this may use."""
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
    """Mean |log(simulated / measured)| of what is in both; floors of 0.01 us keep a zero from deciding alone."""
    errors = [
        abs(math.log(max(us, 0.01) / max(measured[key], 0.01))) for key, us in simulated.items() if key in measured
    ]
    if not errors:
        raise StudyError("no simulated cell was measured as well")
    return statistics.fmean(errors)


def search(
    start: dict[str, float],
    cost: Callable[[dict[str, float]], float],
    steps: tuple[float, ...] = STEPS,
    most: int = 10**6,
) -> dict[str, float]:
    """Coordinate search on factors: multiply or divide one value at a time, keep what is better, then a smaller factor.

    Ends after *most* evaluations of *cost*.
    """
    best, lowest, done = dict(start), cost(start), 1
    for step in steps:
        for name in start:
            for factor in (step, 1 / step):
                moved = False
                while done < most:
                    trial, done = best | {name: best[name] * factor}, done + 1
                    if (found := cost(trial)) >= lowest - 1e-6:
                        break
                    best, lowest, moved = trial, found, True
                if moved:
                    break
    return best


def requests_for(machine: Machine, block: dict[str, Any]) -> tuple[list[Request], list[Request]]:
    """The cells with short and with long messages that the `calibration` block names."""
    eager, largest = block["eager_limit_bytes"], block["largest_bytes"]
    at = [(mapping, processes) for mapping in block["mappings"] for processes in block["processes"]]
    bcast = [(name, mapping, processes) for name in block["algorithms"] for mapping, processes in at]
    short = [Request("bcast", *cell, (1, eager // 2)) for cell in bcast]
    short += [Request("barrier", name, mapping, p, None) for name in block["barriers"] for mapping, p in at]
    return short, [Request("bcast", *cell, (eager, largest)) for cell in bcast]


def calibrate(configuration: Configuration, name: str, results: Path, say: Callable[[str], None] = print) -> None:
    """Fit machine *name* and write levels, simulation and calibration.fitted into its file. Raises StudyError."""
    path = configuration.folder / "machines" / f"{name}.yaml"
    block = read_yaml(path, "machine").get("calibration")
    if not block:
        raise StudyError(f"{shown(path)}: no `calibration` that names ladder and study; see config/README.md")
    machine = configuration.machine(name)
    simulator = Simulator(configuration, max(1, (os.cpu_count() or 2)))
    listed = isinstance(block["ladder"], list)
    file = None if listed else _existing(path, block["ladder"])
    ladder = ladder_of(block["ladder"] if listed else read_rows(file), machine)
    content = json.dumps(block["ladder"]).encode() if listed else file.read_bytes()
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "ladder_sha256": hashlib.sha256(content).hexdigest()[:16],
    }
    if "study" not in block:
        fitted, said = fit_ladder(machine, ladder, simulator, shown(path))
        write_fit(path, fitted, block, about | said)
        return
    measured = _existing(path, str(results / block["study"] / "measurements.csv"))
    data = Data(ladder, read_cells(measured))
    short, long = requests_for(machine, block)
    eager = block["eager_limit_bytes"]
    values = SHORT | LONG
    most = block.get("evaluations", {})
    for kind, which, requests in (("short", SHORT, short), ("long", LONG, long)):
        # Each from the same start: what one finds does not depend on the other.
        cost = _Cost(simulator, machine, data, SHORT | LONG, requests, eager, say)
        values |= search(dict(which), cost, most=most.get(kind, 10**6))
    fitted = fitted_machine(machine, data, values, eager)
    simulated = simulator.all(fitted, short + long)
    write_fit(path, fitted, block, about | summary(simulated, data.cells, measured))


def _existing(machine: Path, named: str) -> Path:
    path = Path(named.replace("${STUDY_REFERENCE_DATA}", data_folder()))
    if not path.exists():
        raise StudyError(f"{shown(machine)}: calibration: {path} does not exist (./study run STUDY makes a study's)")
    return path


def fit_ladder(
    machine: Machine, ladder: dict[str, dict[int, float]], simulator: Simulator, where: str
) -> tuple[Machine, dict[str, Any]]:
    """The machine whose simulated ping-pong takes what the ladder says, and what `calibration.fitted` says of that.

    Raises StudyError where the ladder lacks a level, or is faster there than the machine's overheads allow.
    """
    levels = [level.name for level in machine.levels if level.count > 1]
    if lacking := [name for name in levels if name not in ladder]:
        raise StudyError(f"{where}: calibration.ladder has no pair of cores that differ first at {', '.join(lacking)}")
    wanted = {name: ladder[name][min(ladder[name])] for name in levels}
    rates = {name: rate for name in levels if (rate := _rate(ladder[name]))}

    def with_latencies(us: dict[str, float]) -> Machine:
        changed = [
            replace(
                level, latency_us=us.get(level.name, level.latency_us),
                bandwidth_gb_s=rates.get(level.name, level.bandwidth_gb_s),
            )
            for level in machine.levels
        ]  # fmt: skip
        return replace(machine, levels=tuple(changed))

    def simulate(trial: Machine) -> dict[str, float]:
        sizes = {name: min(ladder[name]) for name in levels}
        asked = [Request("latency", "default", f"level-{name}", 2, (sizes[name], sizes[name])) for name in levels]
        found = simulator.all(trial, asked)
        return {name: found["latency", "default", f"level-{name}", 2, sizes[name]] for name in levels}

    # A message takes its level's latency and something more: from the same start every time, whatever the file says.
    latencies = {name: round(2 * wanted[name] - us, 4) for name, us in simulate(with_latencies(wanted)).items()}
    if too_fast := [name for name in levels if latencies[name] < 0]:
        raise StudyError(
            f"{where}: calibration.ladder: {', '.join(too_fast)} is faster than the overheads of the simulation"
        )
    fitted = with_latencies(latencies)
    unknown = [name for name in levels if name not in rates]
    return fitted, {
        "points": len(levels) + 2 * len(rates),
        "abs_error_pct": {name: round(100 * abs(us / wanted[name] - 1), 1) for name, us in simulate(fitted).items()},
        "not_fitted": [*([f"bandwidth_gb_s ({' '.join(unknown)})"] if unknown else []), "shared_gb_s", "simulation"],
    }


def _rate(of: dict[int, float]) -> float | None:
    """GB/s from the two largest sizes of a level's ladder; None where these are too short to tell."""
    sizes = [size for size in of if size >= LONG_BYTES][-2:]
    return round((sizes[1] - sizes[0]) / (of[sizes[1]] - of[sizes[0]]) * 1e-3, 3) if len(sizes) == 2 else None


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


def summary(simulated: dict[Key, float], measured: dict[Key, float], study: Path) -> dict[str, Any]:
    """What `calibration.fitted` says of a fit to a study: from which data, how well."""
    both = sorted((key for key in simulated if key in measured), key=str)
    errors: dict[str, list[float]] = {}
    for key in both:
        errors.setdefault(f"{key[0]} {key[1]}", []).append(abs(simulated[key] / measured[key] - 1) * 100)
    return {
        "study_sha256": hashlib.sha256(study.read_bytes()).hexdigest()[:16],
        "points": len(both),
        "median_abs_error_pct": {what: round(statistics.median(of), 1) for what, of in sorted(errors.items())},
    }


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


LEVEL_KEYS = ("name", "count", "latency_us", "bandwidth_gb_s", "shared_gb_s", "full_duplex")


def write_fit(path: Path, machine: Machine, block: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Replace levels, simulation and calibration in the file; everything else, comments included, stays as it is."""
    levels = ["levels:"]
    for level in machine.levels:
        entry = {key: getattr(level, key) for key in LEVEL_KEYS}
        levels.append(f"  - {_flow({key: value for key, value in entry.items() if value is not None})}")
    simulation = ["simulation:"]
    for key, value in machine.simulation.items():
        if key in ("send_us", "receive_us"):
            simulation.append(_wrapped(key, value, "  "))
        elif key == "delay_us":
            simulation += [f"  {key}:", *(_wrapped(level, points, "    ") for level, points in value.items())]
        else:
            simulation.append(f"  {key}: {_flow(value)}")
    known = {key: value for key, value in block.items() if key != "fitted"}
    calibration = ["calibration:", *(f"  {key}: {_flow(value)}" for key, value in known.items()), "  fitted:"]
    calibration += [f"    {key}: {_flow(value)}" for key, value in fitted.items()]
    text = path.read_text(encoding="utf-8")
    for name, lines in (("levels", levels), ("simulation", simulation), ("calibration", calibration)):
        text = _replaced(text, name, "\n".join(lines) + "\n")
    write_atomically(path, text.encode())


def _replaced(text: str, key: str, by: str) -> str:
    """*text* with the block of a top-level *key* replaced, or *by* at its end."""
    pattern = re.compile(rf"^{key}:.*\n(?:[ \t-].*\n)*", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: by, text, count=1)
    return text.rstrip("\n") + "\n" + by
