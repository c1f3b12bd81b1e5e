"""Sweeps: the rectangular parts of a study's parameter space, read from its `sweeps`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.study.allocations import Allocations, read_allocations
from collstudy.study.catalogue import Catalogue
from collstudy.study.document import Place
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS, MPIS, NON_BLOCKING, POINT_TO_POINT, SIZED
from collstudy.study.openmpi_numbers import parameters_of
from collstudy.study.words import parameter_text

#: Value of `to` that stands for the number of cores.
ALL_CORES = "cores"
#: Maximum number of values that `{from, to, step}` may expand to.
MOST_NUMBERS = 10_000


#: Interval (us) over which the arrival times of the ranks at a call are spread, or several that successive calls take in turn; None:
#: all ranks enter together.
Spread = float | tuple[float, ...] | None


@dataclass(frozen=True)
class Choice:
    """An algorithm of the catalogue with the parameter values that a sweep sets."""

    name: str
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def parameter_text(self) -> str:
        """Return `key=value;...` in alphabetical order; "" if there are no parameters."""
        return parameter_text(self.parameters)


@dataclass(frozen=True)
class Sweep:
    """One rectangular part of a study's parameter space.

    A ladder has `levels`: it measures pairs of cores that differ first at that level; its mappings are `level-<name>`.
    """

    collective: str
    algorithms: tuple[Choice, ...]
    mappings: tuple[str, ...]
    mpis: tuple[str, ...]
    nodes: tuple[int, ...]
    processes: tuple[int, ...]
    per_node: bool
    sizes: tuple[int, ...] | None
    iterations: int
    warmup: int
    levels: tuple[str, ...] = ()
    barrier: str = "default"
    start: str = "own"
    spread_us: Spread = None
    allocations: Allocations | None = None


def spreads_of(spread: Spread) -> tuple[float, ...]:
    """Return the intervals (us) that successive calls take in turn; () if all ranks enter together."""
    if spread is None:
        return ()
    return spread if isinstance(spread, tuple) else (spread,)


def component_of(sweep: Sweep, choice: Choice, catalogue: Catalogue) -> str:
    """Return the Open MPI component that an algorithm of a sweep stands for; "" for other algorithms, and without Open MPI."""
    entry = catalogue.algorithms[sweep.collective][choice.name].get("openmpi", {})
    return entry.get("component", "") if "openmpi" in sweep.mpis else ""


def expand_ranks(spec: list[int] | dict[str, Any], cores: int, where: Place | str) -> tuple[int, ...]:
    """Expand like expand_integers, but `to` may be `cores`; the number of cores is then always included.

    With fewer cores than `from` the result is `from` alone; whether it can run is checked elsewhere.
    """
    if isinstance(spec, list) or spec["to"] != ALL_CORES:
        return expand_integers(spec, where)
    top = max(cores, spec["from"])
    return tuple(sorted({*expand_integers({**spec, "to": top}, where), top}))


def expand_integers(spec: list[int] | dict[str, int], where: Place | str) -> tuple[int, ...]:
    """Expand `[1, 2]` or `{from, to, step | factor}` to ascending integers. Raises StudyError for an empty range."""
    if isinstance(spec, list):
        values = tuple(sorted(spec))
    elif "step" in spec and "factor" in spec:
        raise StudyError(f"{where} has both step and factor; use {{from, to, step}} or {{from, to, factor}}")
    elif "factor" in spec:
        values = tuple(swept((spec["from"], spec["to"], spec["factor"])))
    else:
        numbers = range(spec["from"], spec["to"] + 1, spec.get("step", 1))
        if len(numbers) > MOST_NUMBERS:
            raise StudyError(f"{where} stands for {len(numbers)} numbers; at most {MOST_NUMBERS} are allowed")
        values = tuple(numbers)
    if not values:
        raise StudyError(f"{where} is empty: {spec}")
    return values


def swept(sizes: tuple[int, ...]) -> Iterator[int]:
    """Yield the message sizes (bytes) of (from, to) or (from, to, factor); the factor defaults to 2."""
    size, last, factor = (*sizes, 2)[:3]
    while size <= last:
        yield size
        size *= factor


def check_mappings(mappings: list[str], machine: Machine, catalogue: Catalogue, where: Place) -> None:
    """Check that mappings are known and that the machine has the levels that they cycle over."""
    levels = {level.name for level in machine.levels}
    for mapping in mappings:
        check_known(mapping, catalogue.mappings, f"{where}: unknown mapping {mapping!r}")
        for level in catalogue.mappings[mapping]["cycle"]:
            said = f"{where}: {mapping} needs level {level!r}, which machine {machine.name} lacks"
            check_known(level, levels, said)


def _check_mpis(mpis: tuple[str, ...], machine: Machine, where: Place) -> None:
    for mpi in mpis:
        if machine.emulated_nodes > 1 and mpi != "openmpi":
            raise StudyError(f"{where}: {mpi!r} does not run on emulated nodes; allowed: openmpi")
        said = f"{where}: {mpi!r} cannot run on machine {machine.name} of kind {machine.kind}"
        check_known(mpi, MPIS[machine.kind], said)


def doubling(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Group sizes (bytes) into (first, last) ranges in which each size doubles: [4, 8, 100] gives (4, 8) and (100, 100)."""
    found: list[tuple[int, int]] = []
    for size in sorted(set(sizes)):
        if found and size == 2 * found[-1][1]:
            found[-1] = (found[-1][0], size)
        else:
            found.append((size, size))
    return found


def read_sweeps(raw: dict[str, Any], machine: Machine, catalogue: Catalogue, where: Place) -> list[Sweep]:
    """Read an entry of a study's `sweeps` at *where*; a list of sizes that is not a doubling range gives several sweeps.

    Raises StudyError for what the machine or the catalogue does not have.
    """
    entries = [raw]
    if isinstance(raw.get("sizes"), list):
        entries = [raw | {"sizes": {"from": first, "to": last}} for first, last in doubling(raw["sizes"])]
    return [_read_sweep(entry, machine, catalogue, where) for entry in entries]


def _read_sweep(raw: dict[str, Any], machine: Machine, catalogue: Catalogue, where: Place) -> Sweep:
    collective = raw["collective"]
    check_known(collective, catalogue.algorithms, f"{where / 'collective'}: unknown collective {collective!r}")
    if raw.get("levels") == "all-pairs":
        raw = _all_pairs(raw, machine, where)
        collective = raw["collective"]
    elif "levels" in raw:
        raw = _ladder(raw, machine, where)
    elif collective in APPLICATIONS:
        raw = _application(raw, machine, where)
    elif "problem_sizes" in raw:
        raise StudyError(f"{where}: problem_sizes is only for {', '.join(APPLICATIONS)}; remove it from {collective}")
    choices = []
    for entry in raw["algorithms"]:
        entry = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = entry.pop("name")
        said = f"{where / 'algorithms'}: no {collective} algorithm {name!r} in config/algorithms.yaml"
        check_known(name, catalogue.algorithms[collective], said)
        choices += _choices(raw, name, entry, machine, catalogue, where / "algorithms")
    if len(set(choices)) < len(choices):
        raise StudyError(f"{where / 'algorithms'}: an algorithm is listed twice with the same parameters")
    if "levels" not in raw:
        check_mappings(raw["mappings"], machine, catalogue, where / "mappings")
    nodes, processes, per_node = _ranks(raw, machine, where)
    sizes = _sizes(raw, where)
    mpis = tuple(raw.get("mpi", [machine.mpi]))
    _check_mpis(mpis, machine, where / "mpi")
    return Sweep(
        collective, tuple(choices), tuple(raw["mappings"]), mpis, nodes, processes,
        per_node, sizes, raw.get("iterations", 100), raw.get("warmup", 10), tuple(raw.get("levels", ())),
        _barrier(raw, machine, catalogue, where), _start(raw, choices, mpis, machine, catalogue, where),
        _spread(raw, where), _allocations(raw, machine, processes, per_node, where),
    )  # fmt: skip


def _ranks(raw: dict[str, Any], machine: Machine, where: Place) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return the numbers of nodes and of processes, and whether the latter are per node."""
    if ("processes" in raw) == ("processes_per_node" in raw):
        raise StudyError(f"{where}: needs either processes or processes_per_node")
    nodes = expand_integers(raw.get("nodes", [machine.nodes]), where / "nodes")
    if nodes[-1] > machine.nodes:
        raise StudyError(
            f"{where / 'nodes'}: {nodes[-1]} is more than the {machine.nodes} nodes of machine {machine.name}"
        )
    per_node = "processes_per_node" in raw
    key = "processes_per_node" if per_node else "processes"
    limit = machine.cores_per_node * (1 if per_node else nodes[0])
    processes = expand_ranks(raw[key], limit, where / key)
    all_cores = isinstance(raw[key], dict) and raw[key]["to"] == ALL_CORES
    if processes[-1] > limit and not machine.oversubscribe and not all_cores:
        what = "a node" if per_node else f"{nodes[0]} node{'s' * (nodes[0] > 1)}"
        raise StudyError(
            f"{where / key}: {processes[-1]} is more than the {limit} cores of {what} of machine {machine.name}"
        )
    fewest = processes[0] * (nodes[0] if per_node else 1)
    if fewest < 2 and raw["collective"] not in APPLICATIONS:
        what = "1 per node on 1 node" if per_node else "1"
        raise StudyError(f"{where / key}: {what} is too few; a collective needs at least 2 ranks")
    return nodes, processes, per_node


def _allocations(
    raw: dict[str, Any], machine: Machine, processes: tuple[int, ...], per_node: bool, where: Place
) -> Allocations | None:
    """Return the nodes on which ranks are placed, if a table of real runs gives them. Raises StudyError if it lacks some."""
    if "allocations" not in raw:
        return None
    at, path = where / "allocations", raw["allocations"]
    if machine.kind != "simulated":
        raise StudyError(f"{at}: only simulated ranks can be placed on the nodes of other runs; remove allocations")
    if per_node or "levels" in raw:
        raise StudyError(
            f"{at}: the table gives the node of each rank; use processes instead of levels or processes_per_node"
        )
    return read_allocations(path, processes, machine.nodes, str(at))


def _sizes(raw: dict[str, Any], where: Place) -> tuple[int, ...] | None:
    """Return first and last message size (bytes), and the factor if it is not 2; None for a collective without messages."""
    collective = raw["collective"]
    if collective not in SIZED:
        if "sizes" in raw:
            raise StudyError(f"{where}: {collective} has no message size; remove sizes")
        return None
    if "sizes" not in raw:
        raise StudyError(f"{where}: {collective} needs sizes: {{from, to}} in bytes, or a list of them")
    first, last, factor = raw["sizes"]["from"], raw["sizes"]["to"], raw["sizes"].get("factor", 2)
    if first > last:
        raise StudyError(f"{where / 'sizes'} is empty: from {first} to {last}")
    # A factor of 2 is the default of every suite and is omitted.
    return (first, last, *([factor] if factor != 2 else []))


def _choices(
    raw: dict[str, Any], name: str, given: dict[str, Any], machine: Machine, catalogue: Catalogue, where: Place
) -> Iterator[Choice]:
    """Yield an algorithm with each combination of its parameter values.

    Raises StudyError for several values of a parameter that this algorithm ignores in the real Open MPI: the cells would be equal.
    """
    values = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
    entry = catalogue.algorithms[raw["collective"]][name].get("openmpi", {})
    if machine.kind != "simulated" and "openmpi" in raw.get("mpi", [machine.mpi]) and entry:
        taken = parameters_of(raw["collective"], entry)
        for key in (key for key, several in values.items() if len(several) > 1 and key not in taken):
            raise StudyError(f"{where}: Open MPI's {raw['collective']} {name} ignores {key}" + allowed(taken))
    for combination in itertools.product(*values.values()):
        yield Choice(name, tuple(sorted(zip(values, combination, strict=True))))


def _barrier(raw: dict[str, Any], machine: Machine, catalogue: Catalogue, where: Place) -> str:
    """Return the algorithm of the barriers around the timed calls, or `window`.

    Only the simulator supports algorithms other than the default, and only real machines have clocks to synchronise.
    """
    name = raw.get("barrier", "default")
    if name == "window":
        if machine.kind == "simulated":
            raise StudyError(f"{where / 'barrier'}: window needs a real machine; use aligned on a simulated one")
        if raw["collective"] in (*POINT_TO_POINT, *APPLICATIONS, *NON_BLOCKING):
            raise StudyError(f"{where / 'barrier'}: only blocking collectives support window")
        return name
    if name != "default" and machine.mpi != "smpi-openmpi":
        raise StudyError(
            f"{where / 'barrier'}: only simulated Open MPI (smpi-openmpi) supports barriers other than the default"
        )
    check_known(name, catalogue.algorithms["barrier"], f"{where / 'barrier'}: no barrier algorithm {name!r}")
    return name


def can_share_start(machine: Machine, mpis: tuple[str, ...], collective: str) -> bool:
    """Return whether cells can share a launch: Open MPI's variables switch the algorithm within a launch, but that of allgatherv is
    declared as constant (coll_tuned_allgatherv_decision.c, 4.1 to 6.0).
    """
    return mpis == ("openmpi",) and machine.kind != "simulated" and collective != "allgatherv"


def _start(
    raw: dict[str, Any],
    choices: list[Choice],
    mpis: tuple[str, ...],
    machine: Machine,
    catalogue: Catalogue,
    where: Place,
) -> str:
    """Return `own` (each cell has its own launches) or `shared` (one launch measures all such cells of a placement in turn)."""
    start = raw.get("start", "own")
    if start == "shared":
        if not can_share_start(machine, mpis, raw["collective"]):
            raise StudyError(f"{where / 'start'}: shared needs a real Open MPI and a collective other than allgatherv")
        if raw["collective"] in (*POINT_TO_POINT, *APPLICATIONS, *NON_BLOCKING) or "barrier" in raw:
            raise StudyError(f"{where / 'start'}: shared needs a blocking collective and the default barrier")
        for choice in choices:
            entry = catalogue.algorithms[raw["collective"]][choice.name]
            if choice.name != "default" and "algorithm" not in entry.get("openmpi", {}):
                raise StudyError(f"{where / 'start'}: {choice.name} is not an algorithm of Open MPI's coll/tuned")
    return start


def _spread(raw: dict[str, Any], where: Place) -> Spread:
    """Return the interval or the intervals (us) over which the arrival times of the ranks are spread."""
    if "spread_us" in raw and (
        raw.get("barrier", "default") != "default"
        or raw["collective"] in (*POINT_TO_POINT, *APPLICATIONS, *NON_BLOCKING)
    ):
        raise StudyError(f"{where / 'spread_us'}: needs a blocking collective and the default barrier")
    given = raw.get("spread_us")
    if isinstance(given, list) and not any(given):
        raise StudyError(f"{where / 'spread_us'}: {given} spreads nothing; at least one must be more than 0")
    return tuple(given) if isinstance(given, list) else given


def _ladder(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """Convert a sweep over levels to one over mappings and processes, with two ranks per pair."""
    collective = raw["collective"]
    check_known(collective, POINT_TO_POINT, f"{where / 'levels'}: {collective} is not a point-to-point test")
    for key in ("mappings", "processes", "processes_per_node", "nodes"):
        if key in raw:
            raise StudyError(f"{where}: levels determine the placement; remove {key}")
    known = [level.name for level in machine.levels]
    for name in raw["levels"]:
        check_known(name, known, f"{where / 'levels'}: machine {machine.name} has no level {name!r}")
    pairs = expand_integers(raw.get("pairs", [1]), where / "pairs")
    if collective != "multi_lat" and pairs != (1,):
        raise StudyError(f"{where / 'pairs'}: {collective} uses one pair; use multi_lat for several")
    mappings = [f"level-{name}" for name in raw["levels"]]
    processes = [2 * count for count in pairs]
    return {"algorithms": ["default"], **raw, "mappings": mappings, "processes": processes}


def _all_pairs(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """Convert to the core-to-core matrix: one cell with a rank on every core, which measures one pair after the other."""
    if raw["collective"] != "latency":
        raise StudyError(f"{where / 'levels'}: all-pairs needs the collective latency, not {raw['collective']}")
    for key in ("mappings", "processes", "processes_per_node", "pairs"):
        if key in raw:
            raise StudyError(f"{where}: all-pairs has a rank on every core; remove {key}")
    nodes = expand_integers(raw.get("nodes", [machine.nodes]), where / "nodes")
    if machine.cores_per_node * nodes[0] < 2:
        raise StudyError(f"{where / 'levels'}: machine {machine.name} has only one core, so no pairs")
    rest = {key: value for key, value in raw.items() if key != "levels"}
    every = {"mappings": ["core"], "processes_per_node": [machine.cores_per_node]}
    return {"algorithms": ["default"], **rest, **every, "collective": "pairs"}


def _application(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """Convert a sweep over problem sizes to one over the parameter `n`; each launch is one run of the program."""
    collective = raw["collective"]
    if "problem_sizes" not in raw:
        raise StudyError(f"{where}: {collective} needs problem_sizes, such as [256, 512]")
    for key in ("algorithms", "sizes", "iterations", "warmup"):
        if key in raw:
            raise StudyError(f"{where}: {collective} runs once per launch for each of its problem_sizes; remove {key}")
    if machine.kind == "simulated" and machine.core_gflops is None:
        raise StudyError(
            f"{where}: machine {machine.name} has no core_gflops, the compute rate of a simulated {collective}"
        )
    sizes = expand_integers(raw["problem_sizes"], where / "problem_sizes")
    return {**raw, "algorithms": [{"name": "default", "n": n} for n in sizes], "iterations": 1, "warmup": 0}
