"""Where each rank goes: from a machine's levels and a mapping's cycle to one core per rank."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .config import Level, Machine
from .errors import StudyError


@dataclass(frozen=True)
class Core:
    """A core by its coordinates, one index for each level of the machine, outermost first."""

    coordinates: tuple[int, ...]
    node: int
    core_of_node: int

    @property
    def name(self) -> str:
        """Host name of the core in the simulated platform: c-<coordinates joined by ->."""
        return "c-" + "-".join(map(str, self.coordinates))


def cores_in_order(levels: tuple[Level, ...], cycle: list[str]) -> list[Core]:
    """All cores in the order in which ranks take them.

    The levels in *cycle* vary fastest, in that order; the others follow from the innermost to the outermost
    (`mpirun --map-by`: core = [], socket = [socket], node = [node, socket]).
    """
    names = [level.name for level in levels]
    fastest_first = list(cycle) + [name for name in reversed(names) if name not in cycle]
    # Cycling over a level inside of a node goes on within the node: the node itself stays the slowest unless it is named.
    slowest_first = list(reversed(fastest_first))
    counts = {level.name: level.count for level in levels}
    cores = []
    for indices in itertools.product(*(range(counts[name]) for name in slowest_first)):
        at = dict(zip(slowest_first, indices, strict=True))
        node = core = 0
        for name in names:
            if name in ("group", "node"):
                node = node * counts[name] + at[name]
            else:
                core = core * counts[name] + at[name]
        cores.append(Core(tuple(at[name] for name in names), node, core))
    return cores


def place(machine: Machine, cycle: list[str], nodes: int, processes: int, per_node: int | None) -> list[Core]:
    """Return the core of each rank on the first *nodes* nodes, at most *per_node* ranks on each.

    With `oversubscribe` the order starts again when the cores are used up. Raises StudyError when there are not enough.
    """
    taken = dict.fromkeys(range(nodes), 0)
    limit = machine.cores_per_node if per_node is None else per_node
    chosen = []
    for core in cores_in_order(machine.levels, cycle):
        if core.node < nodes and taken[core.node] < limit:
            taken[core.node] += 1
            chosen.append(core)
    if len(chosen) < processes and not machine.oversubscribe:
        raise StudyError(
            f"{processes} processes do not fit on {nodes} nodes of machine {machine.name} ({len(chosen)} cores)"
        )
    return [chosen[rank % len(chosen)] for rank in range(processes)]
