"""Fit of a machine without a ladder: the time of a message by size and level, from algorithms in which all ranks exchange messages.

In a ring, or in recursive doubling, all ranks send and receive at the same time, step by step. The time of a call is the sum over
its steps of the time of a message, as a mean over the ranks, because messages of one step cross different levels. The model has one
cost per message, one that is added between groups, one per byte for each range of message sizes (`ENDS`), and one per byte that is
reduced; none is negative. It is fitted to all cells together (`fit_exchange_costs`).

This is not the message model of extrapolations (workflow/analysis/R/extrapolation.R), which predicts calls, not messages, and has costs
that a simulated machine has not: of the first message to a partner, and of new pages for long vectors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.calibration.costs import fitted_machine
from collstudy.calibration.fitting import Request, alone_values
from collstudy.calibration.measured import Data, Key
from collstudy.study.allocations import read_allocations
from collstudy.study.exchanges import Step, messages, steps_of
from collstudy.study.machines import Machine
from collstudy.study.placement import Core, place

#: Ends (bytes) of the ranges of message sizes with a cost per byte of their own; the last range is open.
ENDS = (2**11, 2**14, 2**17, 2**20)
#: Position of the costs in a row of `counts_of` and in the result of `fit_exchange_costs`, and the number of costs.
MESSAGE, CROSSING, FIRST_RANGE, REDUCED = 0, 1, 2, 3 + len(ENDS)
COSTS = REDUCED + 1
#: Rounds of the reweighted fit, and sweeps over the costs in each round.
ROUNDS, SWEEPS = 6, 3000


def _bytes_by_range(size: float) -> list[float]:
    """Return how many of a message's bytes belong to each range."""
    limits = (0, *ENDS, float("inf"))
    return [max(0.0, min(size, end) - start) for start, end in itertools.pairwise(limits)]


def _crossing(step: Step, placed: Sequence[Core]) -> float:
    """Return the share of the messages of a step that go to another unit of the outermost level."""
    units = [core.coordinates[0] for core in placed]
    pairs = messages(step, len(units))
    return sum(units[one] != units[other] for one, other in pairs) / len(pairs)


def counts_of(steps: Sequence[Step], size: int, placed: Sequence[Core]) -> list[float]:
    """Return how often a call of *size* bytes (as the benchmark counts them) has each cost."""
    found = [0.0] * COSTS
    for step in steps:
        message = size * (step.share or 0)
        found[MESSAGE] += step.times
        found[CROSSING] += step.times * _crossing(step, placed)
        for index, count in enumerate(_bytes_by_range(message)):
            found[FIRST_RANGE + index] += step.times * count
        found[REDUCED] += step.times * message * step.combines
    return found


def _non_negative(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """Return the non-negative least squares solution of rows x costs = wanted, by cyclic coordinate descent."""
    costs = [0.0] * len(rows[0])
    left = list(wanted)
    columns = list(zip(*rows, strict=True))
    squares = [sum(value * value for value in column) for column in columns]
    for _ in range(SWEEPS):
        for index, column in enumerate(columns):
            if squares[index] == 0:
                continue
            change = sum(value * rest for value, rest in zip(column, left, strict=True)) / squares[index]
            change = max(costs[index] + change, 0.0) - costs[index]
            costs[index] += change
            left = [rest - change * value for value, rest in zip(column, left, strict=True)]
    return costs


def fit_exchange_costs(rows: Sequence[Sequence[float]], measured: Sequence[float]) -> list[float]:
    """Return non-negative costs (us) that make the sum of |log(predicted / measured)| small, by reweighted least squares."""
    most = [max(column) or 1.0 for column in zip(*rows, strict=True)]
    scaled = [[value / scale for value, scale in zip(row, most, strict=True)] for row in rows]
    weights = [1 / us for us in measured]
    costs: list[float] = []
    for _ in range(ROUNDS):
        costs = _non_negative(
            [[value * weight for value in row] for row, weight in zip(scaled, weights, strict=True)],
            [us * weight for us, weight in zip(measured, weights, strict=True)],
        )
        predicted = [max(sum(c * v for c, v in zip(costs, row, strict=True)), 1e-3) for row in scaled]
        weights = [
            (said * us * max(abs(math.log(said / us)), 0.1)) ** -0.5
            for said, us in zip(predicted, measured, strict=True)
        ]
    return [cost / scale for cost, scale in zip(costs, most, strict=True)]


def ladder_of(costs: Sequence[float], machine: Machine, largest: int) -> dict[str, dict[int, float]]:
    """Return the time (us) of a message by level and size: powers of two up to *largest* bytes."""
    sizes = [2**k for k in range(largest.bit_length())]
    per_byte = costs[FIRST_RANGE:REDUCED]

    def time(size: int, crosses: bool) -> float:
        flow = sum(cost * count for cost, count in zip(per_byte, _bytes_by_range(size), strict=True))
        return costs[MESSAGE] + crosses * costs[CROSSING] + flow

    levels = [level.name for level in machine.levels if level.count > 1]
    return {name: {size: time(size, index == 0) for size in sizes} for index, name in enumerate(levels)}


def vector_bytes(collective: str, size: int, processes: int) -> int:
    """Return the bytes of a rank's longest buffer: benchmarks count the part of one rank in an allgather."""
    return size * processes if collective == "allgather" else size


def cells_of(block: Mapping[str, Any], cells: Mapping[Key, float]) -> dict[Key, float]:
    """Return the measured cells that the `calibration` block names, with vectors of at most `largest_bytes`."""
    wanted = {(collective, name) for collective, names in block["exchanges"].items() for name in names}
    return {
        key: us for key, us in cells.items()
        if key[:2] in wanted and key[2] in block["mappings"] and key[3] in block["processes"]
        and key[4] and vector_bytes(key[0], key[4], key[3]) <= block["largest_bytes"]
    }  # fmt: skip


def fit_exchanges(machine: Machine, data: Data, block: Mapping[str, Any], where: str) -> tuple[Machine, list[Request]]:
    """Fit the machine to collectives in which all ranks exchange messages; return it with the fitted points.

    Raises StudyError for algorithms whose steps are not known.
    """
    if not data.cells:
        raise StudyError(
            f"{where}: calibration.largest_bytes: the study has no vectors of at most {block['largest_bytes']} bytes"
        )
    at = f"{where}: calibration.allocations"
    allocations = read_allocations(block["allocations"], block["processes"], machine.nodes, at)
    rows, measured = [], []
    for (collective, name, _, processes, size), us in data.cells.items():
        steps = [
            step for step in steps_of(collective, name, {}, processes)
            if step.from_bytes <= (size or 0) < (step.to_bytes or math.inf)
        ]  # fmt: skip
        if not steps or any(step.partner == "call" for step in steps):
            raise StudyError(
                f"{where}: calibration.exchanges: {collective} {name} of {size} bytes on {processes} ranks does not consist of exchanges"
            )
        ranks = {"ranks": list(allocations.nodes[processes])}
        rows.append(counts_of(steps, size or 0, place(machine, (), machine.nodes, processes, None, ranks)))
        measured.append(max(us, 0.01))  # the clock's resolution may make it zero
    costs = fit_exchange_costs(rows, measured)
    ladder = ladder_of(costs, machine, block["largest_bytes"])
    fitted = fitted_machine(machine, Data(ladder, {}), alone_values(ladder), block["eager_limit_bytes"])
    if costs[REDUCED] > 0:
        fitted.simulation["reduce_gb_s"] = round(1e-3 / costs[REDUCED], 3)
    ranges: dict[tuple[str, str, str, int], list[int]] = {}
    for *cell, size in data.cells:
        ranges.setdefault(tuple(cell), []).append(size)
    return fitted, [Request(*cell, (min(of), max(of)), allocations) for cell, of in ranges.items()]
