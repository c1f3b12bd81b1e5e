"""Step 2 of a calibration: search for the parameters with which simulated cells are closest to measured ones."""

from __future__ import annotations

import itertools
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

from collstudy.base.errors import StudyError, allowed
from collstudy.calibration.costs import FORWARD, LONG, SHORT, fitted_machine, kind_of, level_with_costs
from collstudy.calibration.measured import Data, Key
from collstudy.launch import output
from collstudy.launch.simulator import environment, prepare
from collstudy.launch.toolchain import versions
from collstudy.study.allocations import Allocations
from collstudy.study.cells import Cell, expand
from collstudy.study.config import Configuration
from collstudy.study.description import Policy, Study, Swept
from collstudy.study.document import shown
from collstudy.study.machines import DEFAULTS, Machine
from collstudy.study.names import POINT_TO_POINT
from collstudy.study.sweeps import Choice, Sweep

#: Parameters that are not fitted with a study, and their values.
FIXED = (
    "share of messages between nodes: 0",
    "forward_gb_s between nodes: none",
    "share_forward",
    "share_first",
    "waited_limit_bytes",
)
STEPS = (1.2,)
#: Parameters of single levels; all others are those of a kind of level.
OF_LEVELS = ("shared_", "between_")
#: Parameters that a ladder alone does not determine; they keep their starting values.
NOT_IN_A_LADDER = [
    "eager_limit_bytes",
    "waited_limit_bytes",
    "send_us",
    "receive_us",
    "poll_us",
    "gap_us",
    "busy",
    "busy_buffered",
    "turn",
    "share",
    "share_forward",
    "share_first",
    "forward_gb_s",
    "shared_gb_s",
]
#: Eager limits (bytes) to try if the machine names none: those of current MPI libraries.
LIMITS = (4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True)
class Request:
    """A cell to simulate, and its range of sizes."""

    collective: str
    algorithm: str
    mapping: str
    processes: int
    sizes: tuple[int, int] | None
    allocations: Allocations | None = None


class Simulator:
    """Simulates cells of any machine with the same program, options and environment as a study's cell."""

    def __init__(self, configuration: Configuration, workers: int):
        self.catalogue = configuration.catalogue
        self.versions = versions()
        self.workers = workers

    def _cell(self, machine: Machine, request: Request) -> Cell:
        levels = (request.mapping.removeprefix("level-"),) if request.mapping.startswith("level-") else ()
        sweep = Sweep(
            request.collective, (Choice(request.algorithm),), (request.mapping,), (machine.mpi,), (machine.nodes,),
            (request.processes,), False, request.sizes, 1, 1, levels, allocations=request.allocations,
        )  # fmt: skip
        study = Study("calibration", "", "", machine, Swept((sweep,), Policy()), {})
        return expand(study, self.catalogue, self.versions)[0]

    def one(self, machine: Machine, request: Request, folder: Path) -> dict[Key, float]:
        """Simulate a cell; return latencies (us) by size. Raises StudyError with the simulator's last output."""
        cell = self._cell(machine, request)
        placement = cell.place(machine)
        command = [*prepare(machine, cell, placement, folder), "-i", "1", "-x", "1"]
        command += ["-f"] * (request.collective not in POINT_TO_POINT)
        if request.sizes:
            command += ["-m", f"{request.sizes[0]}:{request.sizes[1]}"]
        variables = environment(machine, cell, cell.selection.library, dict(os.environ), folder)
        done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder, check=False)
        if done.returncode != 0:
            raise StudyError(f"simulation of {cell.label} failed:\n{done.stdout[-500:]}{done.stderr[-1000:]}")
        try:
            rows = output.parse(done.stdout, cell.size_list)
        except StudyError as problem:  # the simulator ends a deadlock with exit status 0
            raise StudyError(f"simulation of {cell.label}: {problem}:\n{done.stderr[-1000:]}") from None
        head = (request.collective, request.algorithm, request.mapping, request.processes)
        return {(*head, size): row["latency_us"] for size, row in zip(cell.size_list, rows, strict=True)}

    def all(self, machine: Machine, requests: Iterable[Request]) -> dict[Key, float]:
        """Simulate all requests in parallel on the available cores."""
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
    """Return the mean |log(simulated / measured)| of common points; a floor of 0.01 us limits the influence of zeros."""
    errors = [
        abs(math.log(max(us, 0.01) / max(measured[key], 0.01))) for key, us in simulated.items() if key in measured
    ]
    if not errors:
        collective, algorithm, mapping, processes, size = next(iter(simulated))
        raise StudyError(
            f"none of the cells to fit was measured, such as {collective} {algorithm} mapped by {mapping} with {processes} processes"
            + (f" and {size} byte{'s' * (size > 1)}" if size else "")
        )
    return statistics.fmean(errors)


def search(
    start: dict[str, float], cost: Callable[[dict[str, float]], float], steps: tuple[float, ...] = STEPS
) -> tuple[dict[str, float], list[str]]:
    """Minimise *cost* by coordinate search: multiply or divide one value at a time, keep improvements, then use a smaller factor.

    Also returns the names of the values of which the cost does not depend.
    """
    best, lowest = dict(start), cost(start)
    undetermined = list(start)
    for step in steps:
        for name in start:
            for factor in (step, 1 / step):
                moved = False
                while True:
                    trial = best | {name: best[name] * factor}
                    found = cost(trial)
                    if found != lowest and name in undetermined:
                        undetermined.remove(name)
                    if found >= lowest - 1e-6:
                        break
                    best, lowest, moved = trial, found, True
                if moved:
                    break
    return best, undetermined


def first_long(eager: int) -> int:
    """Return the first measured size (bytes) of a long message: measured sizes are powers of two."""
    return 1 << (eager - 1).bit_length()


def requests_for(block: dict[str, Any], eager: int) -> tuple[list[Request], list[Request]]:
    """Return the cells with short and with long messages (from *eager* bytes on) that the `calibration` block names."""
    largest = block["largest_bytes"]
    first = first_long(eager)
    at = [(mapping, processes) for mapping in block["mappings"] for processes in block["processes"]]
    bcast = [(name, mapping, processes) for name in block["algorithms"] for mapping, processes in at]
    short = [Request("bcast", *cell, (1, first // 2)) for cell in bcast]
    short += [Request("barrier", name, mapping, p, None) for name in block["barriers"] for mapping, p in at]
    # Single long messages are part of the fit: step 1 does not reproduce their time if a core has less bandwidth.
    alone = [("linear", mapping, 2) for mapping in block["mappings"]]
    return short, [Request("bcast", *cell, (first, largest)) for cell in [*bcast, *alone]]


def fit_study(
    machine: Machine, data: Data, block: dict[str, Any], simulator: Simulator
) -> tuple[Machine, list[Request], list[str]]:
    """Fit the machine to a ladder and a study's collectives; return it with the fitted points and the parameters that these do not
    determine, which keep their starting values.
    """
    short_start, long_start, fixed = starts(machine, block)

    def cost_of(eager: int, requests: list[Request]) -> _Cost:
        return _Cost(simulator, machine, data, short_start | long_start | fixed, requests, eager)

    eager = block.get("eager_limit_bytes") or min(
        LIMITS, key=lambda limit: cost_of(limit, [each for part in requests_for(block, limit) for each in part])({})
    )
    print(f"eager limit: {eager} bytes")
    short, long = requests_for(block, eager)
    values, undetermined = short_start | long_start | fixed, []
    for which, requests in ((short_start, short), (long_start, long)):
        # Both searches start from the same values: their results are independent.
        if block.get("search", True):
            found, flat = search(dict(which), cost_of(eager, requests))
            values |= found
            undetermined += flat
    return fitted_machine(machine, data, values, eager), short + long, undetermined


def starts(machine: Machine, block: dict[str, Any]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return the starting values of the search for short and for long messages, and the values that are not searched.

    Shared bandwidths are included only for the levels in `shared`, kinds of levels only if the machine has them. The block's
    `start` takes precedence. Raises StudyError for an unknown parameter.
    """
    several = [level for level in machine.levels if level.count > 1]
    kinds = {kind_of(machine, level) for level in several}
    of_levels = {f"shared_{name}" for name in block.get("shared", ("node",))}
    of_levels |= {f"between_{level.name}" for level in several}
    long = {
        key: value for key, value in LONG.items()
        if (key in of_levels if key.startswith(OF_LEVELS) else key.partition("_")[2] in kinds)
    }  # fmt: skip
    own = block.get("start", {})
    if unknown := [key for key in own if key not in SHORT | long | FORWARD]:
        raise StudyError(
            f"calibration.start of machine {machine.name}: unknown parameter {unknown[0]!r}{allowed([*SHORT, *long, *FORWARD])}"
        )
    short, long, fixed = ({key: own.get(key, value) for key, value in of.items()} for of in (SHORT, long, FORWARD))
    return short, long, fixed


def alone_values(ladder: dict[str, dict[int, float]]) -> dict[str, float]:
    """Return the parameters to use without collectives: starting values, with overheads of at most a quarter of the fastest message."""
    most = min(us for of in ladder.values() for us in of.values()) / 4
    values = {key: value for key, value in (SHORT | LONG).items() if not key.startswith(OF_LEVELS)}
    send = min(SHORT["send_1"], most)
    return values | {"send_1": send, "send_eager": send, "receive": min(SHORT["receive"], most)}


def fit_ladder(
    machine: Machine, ladder: dict[str, dict[int, float]], eager: int | None, simulator: Simulator, path: Path
) -> tuple[Machine, list[Request], list[str]]:
    """Fit the machine so that its simulated ping-pong reproduces the ladder; return it with fitted points and unfitted parameters.

    Raises StudyError if the ladder lacks a level, or is faster at a level than the machine's overheads allow.
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
        given = [(level, level_with_costs(machine, level)) for level in machine.levels]
        return replace(machine, levels=tuple(
            replace(level, latency_us=us[of.name], bandwidth_gb_s=of.bandwidth_gb_s) for level, of in given
        ))  # fmt: skip

    # A simulated message takes longer than its level's latency: correct for the excess, always starting from the ladder's values.
    simulated = {
        key[2].removeprefix("level-"): us for key, us in simulator.all(with_latencies(wanted), smallest).items()
    }
    latencies = {name: round(2 * wanted[name] - us, 4) for name, us in simulated.items()}
    if too_fast := [name for name in levels if latencies[name] <= 0]:
        raise StudyError(
            f"{where}: calibration.ladder: {', '.join(too_fast)} is faster than the overheads of the simulation"
        )
    for outer, inner in itertools.pairwise(levels):
        if latencies[outer] < latencies[inner]:
            raise StudyError(f"{where}: calibration.ladder: {outer} is faster than {inner}, which is inside of it")
    return with_latencies(latencies), smallest, ["bandwidth_gb_s", "shared_gb_s", "simulation"]


@dataclass(frozen=True)
class _Cost:
    """Function that returns the misfit of the machine with some of its *values* changed."""

    simulator: Simulator
    machine: Machine
    data: Data
    values: dict[str, float]
    requests: list[Request]
    eager: int

    def __call__(self, part: dict[str, float]) -> float:
        trial = fitted_machine(self.machine, self.data, self.values | part, self.eager)
        found = misfit(self.simulator.all(trial, self.requests), self.data.cells)
        print(f"{found:.4f} " + " ".join(f"{key}={value:.3g}" for key, value in part.items()))
        return found
