"""Answer from machines of the atlas: the nearest measured cell, and how similar a machine is to the asker's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from collstudy.base.statistics import median_interval
from collstudy.store.measurements import Measurement, measurement
from collstudy.tuning.question import Question, count_of_nodes


@dataclass(frozen=True)
class Shape:
    """The shape of a machine's nodes: numbers of cores and sockets."""

    cores: int
    sockets: int

    @property
    def text(self) -> str:
        """Return the shape in words."""
        return f"{self.cores} cores per node in {self.sockets} socket{'s' * (self.sockets != 1)}"


def shape_of(levels: Sequence[tuple[str, int]]) -> Shape | None:
    """Return the shape of a machine with these levels (name, count), outermost first; None without a node level."""
    names = [name for name, _ in levels]
    if "node" not in names:
        return None
    inside = levels[names.index("node") + 1 :]
    sockets = math.prod(count for name, count in inside if name == "socket")
    return Shape(math.prod(count for _, count in inside), sockets)


def likeness(asker: Shape | None, other: Shape | None) -> tuple[float, str]:
    """Return the distance between two machines (0: same shape; infinite: unknown) and its description."""
    if asker is None or other is None:
        return math.inf, "similarity to the requested machine unknown: the nodes of one of them are not described"
    if asker == other:
        return 0.0, f"the same shape as the requested machine: {other.text}"
    distance = abs(math.log2(other.cores / asker.cores)) + abs(math.log2(other.sockets / asker.sockets))
    return distance, f"differs from the requested machine: {other.text}; the requested one has {asker.text}"


def levels_of(document: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the levels (name, count) of the machine in a study.json, outermost first."""
    return [(level["name"], level.get("count", 1)) for level in document["machine"].get("levels", ())]


#: A default that is slower than the fastest by at most this factor counts as equal: measurements of one machine by different people
#: differ by more.
AS_GOOD = 1.05
#: Least number of launches whose interval shows the noise: the range of two covers the median in half of the cells only.
LEAST_LAUNCHES = 3
#: Maximum distance of a cell that answers a question: doublings of processes, and half-doublings of size.
FARTHEST = 2.0


@dataclass(frozen=True)
class Measured:
    """A machine of the atlas: a real machine with its measurements of one MPI library, which the label names."""

    study: str
    label: str
    levels: Sequence[tuple[str, int]]
    rows: Sequence[Measurement]
    #: (mapping, nodes, processes) of placements with a number of processes per node, which use all nodes.
    spread: frozenset[tuple[str, int, int]] = frozenset()

    @classmethod
    def of(
        cls, study: str, label: str, levels: Sequence[tuple[str, int]], collective: str, rows: Iterable[Mapping[str, Any]],
        spread: frozenset[tuple[str, int, int]],
    ) -> Measured:  # fmt: skip
        """Create from rows of measurements.csv, without flagged or unverified ones."""
        used = [
            measurement(row) for row in rows
            if row["collective"] == collective and not row.get("flag") and row.get("proved") != "FALSE" and row["latency_us"]
        ]  # fmt: skip
        return cls(study, label, levels, used, spread)


def atlas_answer(measured: Measured, question: Question) -> tuple[bool, list[str]]:
    """Answer from the nearest measured cell of one machine; return whether there is one, and the lines to print.

    The distance of a cell depends on its numbers of processes and nodes and on its size; another mapping counts like a doubling of
    processes, unless it places these alike. A single node does not answer for several nodes, nor vice versa. The default and the
    algorithm that it runs are one; where the intervals of its launches and of those of the fastest overlap, it is kept.
    """
    per_node = math.prod(count for name, count in measured.levels if name not in ("group", "node"))
    cells: dict[tuple, dict[str, list[float]]] = {}
    messages: dict[tuple, dict[str, str]] = {}
    launches: Counter[tuple] = Counter()
    for row in measured.rows:
        if row.collective == question.collective:
            spread = (row.mapping, row.nodes, row.processes) in measured.spread
            key = (row.mapping, row.nodes if spread else _used(row, per_node), row.processes, row.size)
            name = row.runs or row.name
            messages.setdefault(key, {})[row.name] = name
            cells.setdefault(key, {}).setdefault(name, []).append(row.value)
            launches[key, row.name] += 1
    near = {
        key: distance for key, names in messages.items()
        if "default" in names and len(names) > 1 and (distance := _distance(question, key)) <= FARTHEST
    }  # fmt: skip
    if not near:
        return False, []
    key = min(near, key=lambda one: (near[one], -one[2], one[0]))
    mapping, nodes, processes, size = key
    latency = {name: median(values) for name, values in cells[key].items()}
    best = min(latency, key=lambda name: latency[name])
    default = latency[messages[key]["default"]]
    slower = default / latency[best]
    exact = near[key] == 0 and size == question.size
    where = f"{processes} processes on {count_of_nodes(nodes)}, mapping {mapping}" + (
        "" if size is None else f", {size} B"
    )
    if best == messages[key]["default"]:
        use = "default (the fastest there)"
    elif slower <= AS_GOOD:
        use = f"default (within {100 * (slower - 1):.1f} % of the fastest, {best})"
    elif _overlap(cells[key][messages[key]["default"]], cells[key][best]):
        use = f"default (its launches overlap with those of {best})"
    else:
        use = f"{best}, {latency[best]:.4g} us; the default takes {default:.4g} us ({100 * (slower - 1):.0f} % more)"
    least = min(launches[key, name] for name in messages[key])
    return True, [
        f"Atlas: {measured.label}, measured (study {measured.study}):",
        f"  use: {use}",
        f"  based on: {len(messages[key])} algorithms {'in this cell' if exact else 'in the nearest measured cell: ' + where}; "
        f"at least {least} launch{'es' * (least != 1)} each",
    ]


def _overlap(slower: list[float], faster: list[float]) -> bool:
    """Return whether the intervals of two medians overlap; False with few launches."""
    if min(len(slower), len(faster)) < LEAST_LAUNCHES:
        return False
    low, high = median_interval(slower), median_interval(faster)
    return low is not None and high is not None and low[0] <= high[1]


def _used(row: Measurement, per_node: int) -> int:
    """Return the number of nodes that the ranks of a cell use, which need not be all of the allocated ones."""
    return -(-row.processes // per_node) if row.mapping in ("core", "socket") else min(row.nodes, row.processes)


def _distance(question: Question, cell: tuple) -> float:
    mapping, used, processes, size = cell
    if (size is None) != (question.size is None):
        return math.inf
    if (used > 1) != (question.nodes > 1 and question.processes > 1):
        return math.inf
    distance = abs(math.log2(processes / question.processes)) + abs(math.log2(used / question.nodes)) / 2
    if size is not None and question.size:
        distance += abs(math.log2(size / question.size)) / 2
    alike = used == processes and question.nodes == question.processes  # one process per node
    alike |= used == question.nodes == 1 and {mapping, question.mapping} == {"core", "node"}
    return distance + (mapping != question.mapping and not alike)
