"""Placement of ranks: map a machine's levels and a mapping's cycle to one core per rank."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.study.machines import Level, Machine


@dataclass(frozen=True)
class Core:
    """A core by its coordinates, one index for each level of the machine, outermost first."""

    coordinates: tuple[int, ...]
    node: int
    core_of_node: int

    @property
    def name(self) -> str:
        """Return the host name of the core in the simulated platform: c-<coordinates joined by ->."""
        return "c-" + "-".join(map(str, self.coordinates))


def cores_in_order(levels: tuple[Level, ...], cycle: list[str]) -> list[Core]:
    """Return all cores in the order in which ranks are assigned to them.

    The levels in *cycle* (`whole_cycle`) vary fastest, in that order; the others follow from the innermost to the outermost
    (`mpirun --map-by`: core = [], socket = [socket], node = [node, socket]).
    """
    return list(_ordered(tuple((level.name, level.count) for level in levels), whole_cycle(levels, cycle)))


def whole_cycle(levels: Iterable[Level], cycle: Sequence[str]) -> tuple[str, ...]:
    """Return a mapping's cycle on a machine with these levels: nodes alternate over all groups, which launchers do not know.

    With one core per node they do so without the group in the cycle, as in the identity of cells measured before.
    """
    counts = {level.name: level.count for level in levels}
    cores = math.prod(count for name, count in counts.items() if name not in ("group", "node"))
    if "group" not in counts or "group" in cycle or "node" not in cycle or cores == 1:
        return tuple(cycle)
    return tuple(name for level in cycle for name in ((level, "group") if level == "node" else (level,)))


@functools.lru_cache(maxsize=16)
def _ordered(levels: tuple[tuple[str, int], ...], cycle: tuple[str, ...]) -> tuple[Core, ...]:
    """Implement cores_in_order with a cache: a machine can have 100 000 cores, and a study places ranks on them many times."""
    names = [name for name, _ in levels]
    fastest_first = list(cycle) + [name for name in reversed(names) if name not in cycle]
    # Cycling over a level inside a node stays within the node: the node varies slowest unless it is in the cycle.
    slowest_first = list(reversed(fastest_first))
    counts = dict(levels)
    outside = [name in ("group", "node") for name in names]
    order = [slowest_first.index(name) for name in names]
    sizes = [counts[name] for name in names]
    cores = []
    for indices in itertools.product(*(range(counts[name]) for name in slowest_first)):
        at = tuple(indices[place] for place in order)
        node = core = 0
        for index, size, of_nodes in zip(at, sizes, outside, strict=True):
            if of_nodes:
                node = node * size + index
            else:
                core = core * size + index
        cores.append(Core(at, node, core))
    return tuple(cores)


def place(
    machine: Machine,
    cycle: Sequence[str],
    nodes: int,
    processes: int,
    per_node: int | None,
    hosts: dict[str, Any] | None = None,
) -> list[Core]:
    """Return the core of each rank on the first *nodes* nodes, with at most *per_node* ranks per node, in the order of *hosts*.

    With `oversubscribe`, assignment starts again at the first core when all are used. Otherwise too few cores raise StudyError.
    """
    if hosts and "ranks" in hosts:
        return _place_as_listed(machine, hosts["ranks"], nodes, processes)
    taken = dict.fromkeys(range(nodes), 0)
    limit = machine.cores_per_node if per_node is None else per_node
    chosen = []
    for core in cores_in_order(machine.levels, list(cycle)):
        if core.node < nodes and taken[core.node] < limit:
            taken[core.node] += 1
            chosen.append(core)
    if len(chosen) < processes and not machine.oversubscribe:
        raise StudyError(
            f"{processes} processes do not fit on {nodes} node{'s' * (nodes != 1)} of machine {machine.name} ({len(chosen)} cores)"
        )
    placed = [chosen[rank % len(chosen)] for rank in range(processes)]
    return _shuffle(machine, placed, nodes, hosts) if hosts else placed


def _shuffle(machine: Machine, placed: list[Core], nodes: int, hosts: dict[str, Any]) -> list[Core]:
    """Shuffle the placement: whole nodes (`shuffle: node`) or individual cores (`shuffle: core`).

    The same seed, nodes and processes give the same order on every system.
    """
    generator = random.Random(f"{hosts['seed']}:{nodes}:{len(placed)}")
    if hosts["shuffle"] == "core":
        return generator.sample(placed, len(placed))
    order = generator.sample(range(nodes), nodes)
    cores = {(core.node, core.core_of_node): core for core in cores_in_order(machine.levels, [])}
    return [cores[order[core.node], core.core_of_node] for core in placed]


def _place_as_listed(machine: Machine, listed: list[int], nodes: int, processes: int) -> list[Core]:
    """Place rank r on node listed[r], on the first core that no lower rank uses. Raises StudyError if the ranks do not fit."""
    if processes > len(listed) or max(listed[:processes]) >= nodes:
        raise StudyError(
            f"the mapping lists {len(listed)} ranks on {max(listed) + 1} nodes; it does not fit {processes} processes on {nodes} nodes"
        )
    free: dict[int, list[Core]] = {}
    for core in cores_in_order(machine.levels, []):
        free.setdefault(core.node, []).append(core)
    try:
        return [free[node].pop(0) for node in listed[:processes]]
    except IndexError:
        raise StudyError(
            f"the mapping lists more ranks on a node than the {machine.cores_per_node} cores of machine {machine.name}"
        ) from None


def first_difference(levels: tuple[Level, ...], one: Core, other: Core) -> str | None:
    """Return the outermost level at which two cores differ; None for the same core."""
    pairs = zip(levels, one.coordinates, other.coordinates, strict=True)
    return next((level.name for level, a, b in pairs if a != b), None)


def nodes_of_pairs(machine: Machine, level: str, pairs: int) -> int:
    """Return the number of nodes needed so that rank r and rank r + *pairs* differ first at *level*, for all pairs of a ladder.

    These are the communicating ranks of the multi-pair benchmarks. Raises StudyError if the machine has no such pairs.
    """
    where = f"machine {machine.name}: {pairs} pair{'s' * (pairs > 1)} across level {level}"
    count = next(entry.count for entry in machine.levels if entry.name == level)
    if count < 2:
        raise StudyError(
            f"{where}: there is only one {level} in each enclosing unit, so no two cores differ at this level"
        )
    nodes = 1 + cores_in_order(machine.levels, [level])[1].node
    cores = place(machine, [level], nodes, 2 * pairs, None)
    for rank in range(pairs):
        found = first_difference(machine.levels, cores[rank], cores[rank + pairs])
        if found != level:
            raise StudyError(
                f"{where}: ranks {rank} and {rank + pairs} would differ at level {found or 'none'}; choose another number of pairs"
            )
    return nodes
