"""Tables of allocations: the nodes that each run of a benchmark had."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.errors import StudyError, allowed
from collstudy.base.files import to_csv, write_atomically
from collstudy.base.paths import ROOT


@dataclass(frozen=True)
class Allocations:
    """The node of each rank, by number of processes, as read from the table *path*."""

    path: str
    nodes: Mapping[int, tuple[int, ...]]


def write_nodes(path: Path, allocations: Iterable[tuple[str, int, list[int]]]) -> None:
    """Write *path*: for each run and rank count, the ranks per node, and the nodes as `first-last` or `node`."""
    found = [
        {
            "run": run,
            "processes": processes,
            "nodes": " ".join(_ranges(nodes)),
            "per_node": processes // len(set(nodes)),
        }
        for run, processes, nodes in allocations
        # Other allocations would require listing the node of each rank; none is known.
        if nodes == sorted(nodes) and processes % len(set(nodes)) == 0
    ]
    write_atomically(path, to_csv(["run", "processes", "per_node", "nodes"], found))


def _ranges(nodes: list[int]) -> list[str]:
    found: list[list[int]] = []
    for node in sorted(set(nodes)):
        if found and found[-1][1] == node - 1:
            found[-1][1] = node
        else:
            found.append([node, node])
    return [f"{first}-{last}" if last > first else str(first) for first, last in found]


def read_nodes(path: Path) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the node of each rank, by run and rank count; also for one rank per node, which runs with several tests do not list.

    Raises StudyError for an invalid table.
    """
    found: dict[tuple[str, int], tuple[int, ...]] = {}
    if not path.exists():
        raise StudyError(f"{path} does not exist")
    try:
        for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))):
            ends = [part.partition("-")[::2] for part in row["nodes"].split()]
            nodes = [node for first, last in ends for node in range(int(first), int(last or first) + 1)]
            found.setdefault((row["run"], len(nodes)), tuple(nodes))
            found[row["run"], int(row["processes"])] = tuple(
                node for node in nodes for _ in range(int(row["per_node"]))
            )
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"{path}: not a table of allocations (run, processes, per_node, nodes): {error}") from None
    return found


def read_allocations(path: str, processes: Iterable[int], nodes: int, where: str) -> Allocations:
    """Return the node of each rank for these numbers of *processes*: those of the first run with as many.

    *path* starts at the checkout. Raises StudyError, which begins with *where*, if the table lacks a run, or has a node that a machine
    of so many *nodes* lacks.
    """
    try:
        runs = read_nodes(ROOT / path)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from None
    found: dict[int, tuple[int, ...]] = {}
    for (_, count), placed in runs.items():
        found.setdefault(count, placed)
    wanted = list(processes)
    if lacking := [count for count in wanted if count not in found]:
        raise StudyError(f"{where}: {path} has no run with {lacking[0]} processes" + allowed(found))
    if (last := max(max(found[count]) for count in wanted)) >= nodes:
        raise StudyError(f"{where}: {path} has node {last}; the machine has the nodes 0 to {nodes - 1}")
    return Allocations(path, {count: found[count] for count in wanted})
