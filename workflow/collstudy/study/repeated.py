"""Sweeps of one study that repeat a cell with other settings, or place its ranks on other cores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.study.catalogue import Catalogue
from collstudy.study.document import Place
from collstudy.study.machines import Machine
from collstudy.study.placement import place
from collstudy.study.sweeps import Sweep, swept

#: Settings that change the latency of a cell, but are no columns by which the analysis distinguishes cells.
SETTINGS = ("iterations", "warmup", "barrier", "start", "spread_us")


def check_repeated(
    sweeps: Iterable[tuple[int, Sweep]], chapter: str, machine: Machine, catalogue: Catalogue, where: Place
) -> None:
    """Raise StudyError for a cell in two entries of `sweeps` with different settings, whose launches the analysis would take for
    those of one cell, and for different placements, whose algorithms it would compare. *sweeps* has the number of each sweep's entry;
    the chapter on starts compares barriers.
    """
    names = [name for name in SETTINGS if (chapter, name) != ("starts", "barrier")]
    for (first, one), (second, other) in itertools.combinations(sweeps, 2):
        shapes = sorted(_shapes(one) & _shapes(other))
        differing = [name for name in names if getattr(one, name) != getattr(other, name)] if _meet(one, other) else []
        same = "algorithm, mapping and size"
        if moved := _placed_otherwise(one, other, shapes, machine, catalogue):
            shapes, differing, same = *moved, "mapping"
        if differing and shapes:
            nodes, ranks = shapes[0]
            raise StudyError(
                f"{where / second}: {other.collective} on {ranks} processes and {nodes} node{'s' * (nodes > 1)} has other {differing[0]} "
                f"than in sweeps.{first}, for the same {same}; make them equal, or move one to another study"
            )


def _shapes(sweep: Sweep) -> set[tuple[int, int]]:
    """Return the numbers of nodes and of ranks of a sweep's cells."""
    return {(n, p * n if sweep.per_node else p) for n in sweep.nodes for p in sweep.processes}


def _meet(one: Sweep, other: Sweep) -> bool:
    """Return whether two sweeps have a collective, an algorithm, a mapping, an MPI library and a message size in common."""

    def sizes(sweep: Sweep) -> set[int | None]:
        return set(swept(sweep.sizes)) if sweep.sizes else {None}

    named = all(set(getattr(one, name)) & set(getattr(other, name)) for name in ("algorithms", "mappings", "mpis"))
    return one.collective == other.collective and named and bool(sizes(one) & sizes(other))


def _placed_otherwise(
    one: Sweep, other: Sweep, shapes: list[tuple[int, int]], machine: Machine, catalogue: Catalogue
) -> tuple[list[tuple[int, int]], list[str]] | None:
    """Return those of the shapes that two sweeps place on different cores, and the key that does; None without one."""
    mappings = [name for name in one.mappings if name in other.mappings]
    tables = [sweep.allocations.nodes if sweep.allocations else {} for sweep in (one, other)]
    # Decisions and models take the places of the ranks of all collectives from one table.
    moved = [shape for shape in shapes if tables[0].get(shape[1]) != tables[1].get(shape[1])]
    if moved and mappings:
        return moved, ["allocations"]
    if one.per_node == other.per_node:
        return None
    shapes = _ranges(one, other)
    moved = [shape for shape in shapes if any(_spreads(machine, catalogue.mappings[name], *shape) for name in mappings)]
    return (moved, ["processes_per_node"]) if moved else None


def _ranges(one: Sweep, other: Sweep) -> list[tuple[int, int]]:
    """Return the numbers of nodes with numbers of ranks in the ranges of both sweeps, and the smallest such number: decisions and
    models place numbers of ranks between those of a sweep, too.
    """
    found = []
    for nodes in sorted(set(one.nodes) & set(other.nodes)):
        counts = [[ranks for n, ranks in _shapes(sweep) if n == nodes] for sweep in (one, other)]
        if max(map(min, counts)) <= min(map(max, counts)):
            found.append((nodes, max(map(min, counts))))
    return found


def _spreads(machine: Machine, mapping: dict[str, Any], nodes: int, ranks: int) -> bool:
    """Return whether a number of ranks per node places ranks on other cores than the mapping alone."""
    placed = [place(machine, mapping["cycle"], nodes, ranks, per_node) for per_node in (None, -(-ranks // nodes))]
    return placed[0] != placed[1]
