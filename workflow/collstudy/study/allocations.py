"""Tables of allocations: the nodes that each run of a benchmark had."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically


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


def nodes_by_processes(path: Path) -> dict[int, tuple[int, ...]]:
    """Return the node of each rank, by number of processes: those of the first run with as many. Raises StudyError."""
    found: dict[int, tuple[int, ...]] = {}
    for (_, processes), nodes in read_nodes(path).items():
        found.setdefault(processes, nodes)
    return found
