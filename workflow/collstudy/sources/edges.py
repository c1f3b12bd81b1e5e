"""Write the placement and the messages of every launch for the analysis.

The tables `ranks.csv`, `edges.csv` and `exchanges.csv` (columns: docs/files.md) are derived from the placement of launches
(`Cell.place`), the verification patterns (`patterns.py`) and the steps of exchanges (`exchanges.py`), so that the analysis
does not need its own implementation of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_if_changed
from collstudy.sources.decisions import decisions
from collstudy.study.catalogue import Catalogue
from collstudy.study.cells import Cell
from collstudy.study.description import Study
from collstudy.study.exchanges import steps_of
from collstudy.study.machines import Level
from collstudy.study.names import POINT_TO_POINT
from collstudy.study.patterns import PATTERNS, in_order_binomial, knomial
from collstudy.study.placement import Core, place
from collstudy.study.words import parameter_text
from collstudy.tuning.rules import parse_parameters

RANK_COLUMNS = ["mapping", "nodes", "per_node", "from_processes", "to_processes", "rank"]
EDGE_COLUMNS = [
    "mpi", "collective", "algorithm", "parameters", "tree", "from_processes", "to_processes", "rank", "parent",
]  # fmt: skip
EXCHANGE_COLUMNS = [
    "mpi", "collective", "algorithm", "parameters", "processes", "step", "from_bytes", "to_bytes", "partner", "distance",
    "first", "last", "every", "stays", "pairs", "times", "share", "combines", "call_collective", "call_algorithm",
]  # fmt: skip

#: A tree as (rank, parent) for each rank but 0, in the order in which a parent serves its children.
Tree = tuple[tuple[int, int], ...]
Parameters = Mapping[str, int]

#: Patterns in which every rank but 0 has one parent.
TREE_PATTERNS = ("linear", "chain", "pipeline", "binary", "binomial", "kary", "mpich_binomial")
#: Open MPI's names of trees, for algorithms without a verification pattern.
OPENMPI_TREES = {
    "linear": PATTERNS["linear"],
    "pipeline": PATTERNS["pipeline"],
    "chain": PATTERNS["chain"],
    "binary": PATTERNS["binary"],
    "binary_tree": PATTERNS["binary"],
    "binomial": PATTERNS["binomial"],
    "knomial": knomial,
}
#: MPI libraries with trees of their own; for imported rows of any other library, Open MPI's names are used.
FOREIGN = ("mpich", "impi", "smpi-mpich", "smpi-impi", "nccl")
#: Trees that the hop model uses instead for algorithms that are not trees or whose shape is unknown.
STAND_INS = {"default": "linear", "linear": "linear", "pipeline": "pipeline", "chain": "chain", "binary_tree": "binary"}


@dataclass(frozen=True)
class Launched:
    """One entry of the tables: an algorithm, its MPI library, and the placement of ranks."""

    mpi: str
    collective: str
    algorithm: str
    parameters: tuple[tuple[str, int], ...]
    mapping: str
    cycle: tuple[str, ...]
    nodes: int
    processes: int
    per_node: int | None = None
    hosts: Mapping[str, Any] | None = field(default=None, compare=False)
    #: The node of each rank, numbered over the whole machine; empty if unknown.
    allocated: tuple[int, ...] = ()


def of_cells(cells: Iterable[Cell]) -> list[Launched]:
    """Return the launches of a study's cells."""
    return [
        Launched(
            cell.mpi["name"], cell.collective, cell.algorithm, cell.parameters, cell.mapping, cell.cycle, cell.nodes,
            cell.processes, cell.per_node, cell.hosts,
        )
        for cell in cells
    ]  # fmt: skip


def of_rows(
    rows: Iterable[Mapping[str, Any]],
    mpi: str,
    catalogue: Catalogue,
    allocations: Mapping[tuple[str, int], tuple[int, ...]],
) -> list[Launched]:
    """Return the launches of imported rows, whose number of ranks per node is unknown.

    *allocations* has the node of each rank, by run (without the test) and number of ranks. If a cell has several runs, the first
    one is used.
    """
    launched: dict[tuple, tuple[int, ...]] = {}
    for row in rows:
        variant = (row["collective"], row["algorithm"], row.get("parameters", ""))
        key = (*variant, row["mapping"], int(row["nodes"]), int(row["processes"]))
        launched.setdefault(key, allocations.get((str(row.get("run", "")).partition("/")[0], key[-1]), ()))
    found = []
    for (collective, algorithm, parameters, mapping, nodes, processes), allocated in launched.items():
        entry = catalogue.mappings[mapping]
        place = (mapping, tuple(entry["cycle"]), nodes, processes, None)
        variant = (collective, algorithm, parse_parameters(parameters))
        found.append(Launched(mpi, *variant, *place, entry.get("hosts"), allocated))
    return found


def write(study: Study, launched: Sequence[Launched], catalogue: Catalogue, folder: Path) -> None:
    """Write `ranks.csv`, `edges.csv` and `exchanges.csv` to the study's folder if they have changed."""
    levels = [level.name for level in study.machine.levels] or ["core"]
    write_if_changed(folder / "ranks.csv", to_csv([*RANK_COLUMNS, *levels], ranks(study, launched)))
    write_if_changed(folder / "edges.csv", to_csv(EDGE_COLUMNS, edges(launched, catalogue)))
    write_if_changed(folder / "exchanges.csv", to_csv(EXCHANGE_COLUMNS, exchanges(launched)))


def ranks(study: Study, launched: Iterable[Launched]) -> list[dict[str, Any]]:
    """Return the rows of ranks.csv: for each rank, its unit at each level, numbered over the whole machine.

    Process counts of one mapping share rows if their ranks are the first ranks of a larger placement. Placements that do not
    fit the machine (possible for imported rows) are omitted.
    """
    shapes: dict[tuple, dict[int, Launched]] = {}
    for one in launched:
        # The ranks of a ladder need no rows: they differ at the level that the mapping names.
        if one.collective not in POINT_TO_POINT or not one.mapping.startswith("level-"):
            shapes.setdefault((one.mapping, one.nodes, one.per_node), {})[one.processes] = one
    rows = []
    for (mapping, nodes, per_node), counts in shapes.items():
        placed = {count: units for count, one in counts.items() if (units := _units(study, one)) is not None}
        for first, last, units in _shared(placed):
            keys = dict(zip(RANK_COLUMNS, (mapping, nodes, per_node, first, last), strict=False))
            rows += [{**keys, "rank": rank, **unit} for rank, unit in enumerate(units)]
    return rows


def edges(launched: Sequence[Launched], catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the rows of edges.csv: the tree of each algorithm, used downwards by a broadcast and upwards by a reduction.

    Includes algorithms that a default selects (`decisions`) and parts of other algorithms (an allreduce
    can be a reduce and a broadcast; a reduce of few elements is linear).
    """
    own = {(one.mpi, one.collective, one.algorithm, one.parameters) for one in launched}
    rows = []
    for key, counts in _wanted(launched, _tree_parts).items():
        mpi, collective, algorithm, parameters = key
        trees = {count: tree_of(catalogue, *key[:3], dict(parameters), count) for count in counts}
        kind = "own"
        if None in trees.values():
            if key not in own:
                continue
            kind, shape = "stand-in", PATTERNS[STAND_INS.get(algorithm, "binomial")]
            trees = {count: _in_order(shape(count, dict(parameters))) for count in counts}
        for first, last, tree in _shared(trees):
            values = (mpi, collective, algorithm, parameter_text(parameters), kind, first, last)
            keys = dict(zip(EDGE_COLUMNS, values, strict=False))
            rows += [{**keys, "rank": rank, "parent": parent} for rank, parent in tree]
    return rows


def exchanges(launched: Sequence[Launched]) -> list[dict[str, Any]]:
    """Return the rows of exchanges.csv: the steps of each algorithm that is not a tree, if known.

    Includes algorithms that a default selects, parts of other algorithms, and the barrier between iterations of a benchmark.
    """
    rows = []
    for (mpi, collective, algorithm, parameters), counts in _wanted(launched, _exchange_parts).items():
        for count in sorted(counts):
            for number, step in enumerate(steps_of(collective, algorithm, dict(parameters), count), 1):
                call_collective, call_algorithm = step.call
                rows.append(
                    {"mpi": mpi, "collective": collective, "algorithm": algorithm}
                    | {"parameters": parameter_text(parameters), "processes": count, "step": number, **vars(step)}
                    | {"call_collective": call_collective, "call_algorithm": call_algorithm}
                )
    return rows


def _wanted(launched: Iterable[Launched], parts: Callable[[Launched], list[tuple]]) -> dict[tuple, set[int]]:
    """Return the process counts by MPI library, collective, algorithm and parameters, of the launches and of their *parts*."""
    wanted: dict[tuple, set[int]] = {}
    for one in launched:
        if one.collective not in POINT_TO_POINT:
            for key in [(one.mpi, one.collective, one.algorithm, one.parameters), *parts(one)]:
                wanted.setdefault(key, set()).add(one.processes)
    return wanted


def tree_of(
    catalogue: Catalogue, mpi: str, collective: str, algorithm: str, parameters: Parameters, processes: int
) -> Tree | None:
    """Return the tree of an algorithm with root 0; None if it is not a tree or its shape is unknown."""
    openmpi = mpi not in FOREIGN
    entry = catalogue.algorithms.get(collective, {}).get(algorithm, {})
    settings = {**entry.get("openmpi" if openmpi else mpi, {}), **parameters}
    if openmpi and collective == "reduce":
        shape = in_order_binomial if algorithm == "binomial" else OPENMPI_TREES.get(algorithm)
    elif openmpi and collective == "bcast":
        shape = OPENMPI_TREES.get(algorithm)
    else:
        pattern = catalogue.pattern(collective, algorithm, mpi) if entry else None
        shape = PATTERNS[pattern] if pattern in TREE_PATTERNS else None
    if shape is None:
        return None
    # A linear reduce receives from the last rank first; a k-nomial tree serves the most distant rank first.
    backwards = (collective, algorithm) == ("reduce", "linear")
    return _in_order(
        shape(processes, settings), backwards, settings.get("radix", 4) if algorithm == "knomial" else None
    )


def _tree_parts(one: Launched) -> list[tuple]:
    """Return the trees that models of an algorithm need in addition to its own."""
    if one.collective not in ("bcast", "reduce", "allreduce"):
        return []
    parts = ["bcast", "reduce"] if one.collective == "allreduce" else [one.collective]
    found = [(one.mpi, part, "linear", ()) for part in parts]
    if one.mpi not in FOREIGN:
        for part in parts:
            found += [(one.mpi, part, *choice) for choice in _decided(part)]
    return found


def _exchange_parts(one: Launched) -> list[tuple]:
    """Return the exchanges that models of an algorithm need in addition to its own, and the barrier between iterations."""
    found = [*_tree_parts(one), (one.mpi, "barrier", "recursive_doubling", ())]
    if one.collective == "allreduce":
        found.append((one.mpi, "allreduce", "recursive_doubling", ()))
        if one.mpi not in FOREIGN:
            found += [(one.mpi, "allreduce", *choice) for choice in _decided("allreduce")]
    return found


@functools.cache
def _decided(collective: str) -> tuple[tuple, ...]:
    """Return the algorithms, with parameters, that the re-implemented default can select."""
    return tuple(sorted({(row["algorithm"], parse_parameters(row["parameters"])) for row in decisions(collective)}))


def _in_order(found: Iterable[tuple[int, int]], backwards: bool = False, radix: int | None = None) -> Tree:
    """Convert edges (parent, rank) to (rank, parent), in the order in which a parent serves its children."""

    def turn(pair: tuple[int, int]) -> tuple[int, int]:
        rank = pair[0]
        if radix is None:
            return 0, -rank if backwards else rank
        digit = 1
        while rank % (digit * radix) == 0:
            digit *= radix
        return -digit, rank

    return tuple(sorted(((rank, parent) for parent, rank in found), key=turn))


def _units(study: Study, one: Launched) -> tuple[dict[str, int], ...] | None:
    """Return, for each rank, its unit at each level; None if the ranks do not fit the machine."""
    machine = study.machine
    if not machine.levels:
        return tuple({"core": rank} for rank in range(one.processes))
    try:
        if one.allocated:
            cores = place(machine, (), machine.nodes, one.processes, None, {"ranks": list(one.allocated)})
        else:
            cores = place(machine, one.cycle, one.nodes, one.processes, one.per_node, one.hosts)
    except StudyError:
        return None
    return tuple(_numbered(machine.levels, core) for core in cores)


def _numbered(levels: tuple[Level, ...], core: Core) -> dict[str, int]:
    unit, found = 0, {}
    for level, index in zip(levels, core.coordinates, strict=True):
        unit = unit * level.count + index
        found[level.name] = unit
    return found


def _shared(found: Mapping[int, tuple]) -> list[tuple[int, int, tuple]]:
    """Return (first count, last count, content for the last): process counts share content if one is the beginning of the next.

    The content of a count P is about ranks 0 to P - 1, so a smaller count only lacks entries of higher ranks.
    """
    groups: list[tuple[int, int, tuple]] = []
    for count in sorted(found, reverse=True):
        content = found[count]
        if groups and _first_ranks(groups[-1][2], count) == content:
            groups[-1] = (count, *groups[-1][1:])
        else:
            groups.append((count, count, content))
    return groups[::-1]


def _first_ranks(content: tuple, count: int) -> tuple:
    """Return the part of a placement (one entry per rank) or a tree (entries start with their rank) for ranks below *count*."""
    if content and isinstance(content[0], tuple):
        return tuple(entry for entry in content if entry[0] < count)
    return content[:count]
