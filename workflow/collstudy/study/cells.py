"""Expand a study to cells. The identity of a cell is the digest of everything that determines its measured values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NoReturn

from collstudy.base.errors import StudyError, allowed
from collstudy.study import selection
from collstudy.study.catalogue import Catalogue, own_settings
from collstudy.study.description import Study
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS, NOT_IN_OMB, POINT_TO_POINT, WINDOWS
from collstudy.study.placement import Core, nodes_of_pairs, place, whole_cycle
from collstudy.study.selection import Default, Library, Rate, Selection, Switch
from collstudy.study.sweeps import Choice, Spread, Sweep, spreads_of, swept
from collstudy.study.work import Work

#: Increase it when the meaning of a cell's fields changes; existing files are then no longer used.
IDENTITY_VERSION = 1
#: The same for simulated machines with `core_gb_s`. 2: FATPIPE links without lazy updates.
CORE_LINKS_VERSION = 2
#: The same for calibrated simulated machines. 14: an MPI_Send within a node returns once its message is in the receiver's queue.
MESSAGES_VERSION = 14


@dataclass(frozen=True)
class Cell(Work):
    """One fully resolved measuring point; its digest is computed from `identity()`."""

    machine: dict[str, Any]
    suite: dict[str, str]
    mpi: dict[str, str]
    collective: str
    algorithm: str
    parameters: tuple[tuple[str, int], ...]
    selection: Selection
    mapping: str
    cycle: tuple[str, ...]
    nodes: int
    processes: int
    per_node: int | None
    sizes: tuple[int, ...] | None
    iterations: int
    warmup: int
    hosts: dict[str, Any] | None = None
    spread_us: Spread = None
    pattern: str | None = field(default=None, compare=False)

    def identity(self) -> dict[str, Any]:
        """Return everything that can change the result, as plain JSON values."""
        # dataclasses.asdict would copy everything, which is slow: studies have tens of thousands of cells.
        found = {"identity_version": IDENTITY_VERSION, **{name: getattr(self, name) for name in IDENTITY_FIELDS}}
        found["selection"] = self.selection.to_json()
        if self.hosts is None:
            del found["hosts"]  # keeps the identity of cells measured before mappings could order hosts
        if self.spread_us is None:
            del found["spread_us"]  # keeps the identity of cells measured before arrival times could be spread
        return found

    def place(self, machine: Machine) -> list[Core]:
        """Return the core of each rank. Raises StudyError if the ranks do not fit."""
        return place(machine, self.cycle, self.nodes, self.processes, self.per_node, self.hosts)

    @property
    def path_text(self) -> str:
        """Return the path of the cell's file: readable parts and the first 16 digits of the digest."""
        parts = [self.machine["name"], self.mpi["name"], self.algorithm, *(f"{k}{v}" for k, v in self.parameters)]
        readable = "_".join(parts) + f"_{self.mapping}_n{self.nodes}_p{self.processes}"
        return f"cells/{self.collective}/{readable}-{self.digest[:16]}.json"

    @property
    def deterministic(self) -> bool:
        """Return whether every launch gives the same result, so that one launch suffices."""
        return self.machine["kind"] == "simulated"

    @property
    def proved(self) -> bool:
        """Return whether a launch is verified; a simulator always runs the selected algorithm."""
        return not self.deterministic

    @property
    def point(self) -> tuple[Any, ...]:
        """Return the key of cells that share a block: all algorithms at a placement; with a shared start, all collectives, too."""
        return "" if self.shares_start else self.collective, self.mapping, self.processes, self.per_node

    def document(self) -> dict[str, Any]:
        """Return the identity, and the message pattern used for verification."""
        return {"cell": self.identity(), "pattern": self.pattern}

    @property
    def spread_text(self) -> str:
        """Return the spread of arrivals (us) as in the benchmark's option: `20`, or `0,0,64`; "" without one."""
        return ",".join(f"{spread:g}" for spread in spreads_of(self.spread_us))

    @property
    def windows(self) -> bool:
        """Return whether calls start at given times of synchronised clocks instead of after a barrier."""
        return self.suite["name"] == WINDOWS

    @property
    def shares_start(self) -> bool:
        """Return whether one launch measures all such cells of a placement in turn."""
        return self.suite.get("start") == "shared"

    @property
    def by_collbench(self) -> bool:
        """Return whether the cell needs the embedded benchmark (collbench), because OMB lacks it or the required option."""
        return self.collective in NOT_IN_OMB or self.windows or self.shares_start or self.spread_us is not None

    @property
    def size_list(self) -> list[int | None]:
        """Return the message sizes (bytes) that one launch sweeps; [None] for a collective without a size."""
        return [None] if self.sizes is None else list(swept(self.sizes))

    @property
    def row_sizes(self) -> list[int | None]:
        """Return the size of each row of a launch's output; `pairs` has one row per size and pair of ranks."""
        if self.collective != "pairs":
            return self.size_list
        return [size for size in self.size_list for _ in range(self.processes * (self.processes - 1) // 2)]

    @property
    def label(self) -> str:
        """Return one line that describes the cell in messages."""
        spread = f" spread {self.spread_text} us" if self.spread_us else ""
        choice = Choice(self.algorithm, self.parameters)
        text = f"{self.algorithm}[{choice.parameter_text}]" if self.parameters else self.algorithm
        where = f"mapping {self.mapping} nodes {self.nodes} processes {self.processes}{spread}"
        return f"{self.collective} {text} {where} on {self.machine['name']}"


#: Fields of the identity; `pattern` only serves verification and cannot change the measured values.
IDENTITY_FIELDS = tuple(f.name for f in fields(Cell) if f.name != "pattern")


def machine_identity(machine: Machine, host: dict[str, str]) -> dict[str, Any]:
    """Return the properties of a machine that affect results; *host* describes this computer and is used for a local machine only."""
    if machine.kind == "slurm":
        # The file's latencies and bandwidths describe a simulated machine; they do not affect a real one.
        levels = [{"name": level.name, "count": level.count} for level in machine.levels]
    else:
        levels = [{k: v for k, v in asdict(level).items() if v is not None} for level in machine.levels]
    identity = {"name": machine.name, "kind": machine.kind, "levels": levels}
    if machine.kind == "simulated":
        identity["simulation"] = machine.simulation
        if "delay_us" in machine.simulation:
            identity["model"] = MESSAGES_VERSION
        elif "core_gb_s" in machine.simulation:
            identity["model"] = CORE_LINKS_VERSION
    if machine.kind == "local":
        identity["host"] = host
    if machine.oversubscribe and machine.kind != "simulated" and machine.emulated_nodes == 1:
        identity["oversubscribe"] = True  # no rank is bound to a core, as on emulated nodes
    if machine.environment:
        identity["environment"] = machine.environment
    if machine.groups:
        identity["groups"] = machine.groups
    if machine.slurm.get("constraint"):
        identity["constraint"] = machine.slurm["constraint"]
    return identity


def selected_by(
    catalogue: Catalogue, collective: str, choice: Choice, mpi: str, library: str, barrier: str = "default"
) -> Selection:
    """Return the selection that makes the MPI library *mpi* use an algorithm.

    The simulator runs Open MPI's algorithms through the collectives library, including the barriers between timed calls: the
    skew with which ranks leave a barrier biases the measured latency (Open MPI issue 11022).
    Raises StudyError if the catalogue has no entry for it.
    """
    entry, parameters = catalogue.algorithms[collective][choice.name], dict(choice.parameters)
    if choice.name == "default" and parameters:
        raise StudyError(f"{collective} default takes no parameters, got {choice.parameter_text}")
    if collective in POINT_TO_POINT:
        return Default()
    if mpi == "smpi-openmpi":
        if choice.name != "default" and own_settings(entry) is None:
            _unknown(choice, collective, mpi)
        return _simulated_selection(catalogue, collective, {**entry, "parameters": parameters}, library, barrier)
    if choice.name == "default":
        return Default()
    settings = catalogue.settings(collective, choice.name, parameters, mpi)
    if settings is not None:
        return Switch(mpi, settings)
    if "library" in entry:
        texts = {variable(collective): library_text({**entry["library"], **parameters})}
        return Library(texts, library, _inside(catalogue, collective, entry, choice, mpi))
    if mpi.startswith("smpi-") and "smpi" in entry and not parameters:
        return Switch("smpi", entry["smpi"])
    return _unknown(choice, collective, mpi)


def _simulated_selection(
    catalogue: Catalogue, collective: str, entry: dict[str, Any], library: str, barrier: str
) -> Selection:
    own = own_settings(entry)
    texts = {variable(collective): library_text({**own, **entry["parameters"]})} if own else {}
    if own and "simulated" not in entry:
        # Use the same collectives on each level of a hierarchy as the simulated default.
        texts["COLL_BASE"] = "ompi"
    if collective != "barrier":
        texts["COLL_BARRIER"] = library_text(catalogue.algorithms["barrier"][barrier]["simulated"])
    return Library(texts, library)


def _inside(
    catalogue: Catalogue, collective: str, entry: dict[str, Any], choice: Choice, mpi: str
) -> dict[str, Any] | None:
    """Return {collective, algorithm} of the non-blocking collective inside a pipelined one; None if there is none."""
    if "inside" not in entry:
        return None
    chosen = catalogue.algorithms[f"i{collective}"].get(entry["inside"], {})
    return {"collective": f"i{collective}", **chosen[mpi]} if mpi in chosen else _unknown(choice, collective, mpi)


def variable(collective: str) -> str:
    """Return the environment variable that selects a collective's algorithm in the collectives library."""
    return f"COLL_{collective.upper()}"


def library_text(chosen: dict[str, Any]) -> str:
    """Return `algorithm[:key=value...]`, the syntax of the collectives library."""
    return chosen["algorithm"] + "".join(f":{k}={v}" for k, v in sorted(chosen.items()) if k != "algorithm")


def _unknown(choice: Choice, collective: str, mpi: str) -> NoReturn:
    extra = f" with {choice.parameter_text}" if choice.parameters else ""
    raise StudyError(f"config/algorithms.yaml: {collective} {choice.name}{extra} has no entry for {mpi}")


def cell_from(identity: dict[str, Any], pattern: str | None = None) -> Cell:
    """Rebuild a cell from its identity."""
    fields = {key: value for key, value in identity.items() if key != "identity_version"}
    fields["parameters"] = tuple((name, value) for name, value in fields["parameters"])
    fields["selection"] = selection.read(fields["selection"])
    fields["cycle"] = tuple(fields["cycle"])
    fields["sizes"] = tuple(fields["sizes"]) if fields["sizes"] else None
    if isinstance(fields.get("spread_us"), list):
        fields["spread_us"] = tuple(fields["spread_us"])
    return Cell(**fields, pattern=pattern)


def expand(study: Study, catalogue: Catalogue, versions: Versions) -> list[Cell]:
    """Return all cells of a study, in the order of its sweeps; each point (cell and message size) is in the first sweep that has it."""
    cells: list[Cell] = []
    measured: dict[tuple, set[int | None]] = {}
    machine = machine_identity(study.machine, versions.host)
    for sweep in study.sweeps:
        # Sweeps with the same point have the same settings (check_repeated), except for barriers that are compared.
        for cell in _expand_sweep(sweep, machine, study.machine, catalogue, versions):
            point = (
                cell.collective,
                cell.algorithm,
                cell.parameters,
                cell.mapping,
                cell.mpi["name"],
                cell.nodes,
                cell.processes,
            )
            known = measured.setdefault((*point, sweep.barrier), set())
            cells += _without(cell, known)
            known.update(cell.size_list)
    return cells


def _without(cell: Cell, known: set[int | None]) -> Iterator[Cell]:
    """Yield a cell for each range of the cell's sizes that are not *known*; the cell itself if none is."""
    if known.isdisjoint(cell.size_list):
        yield cell
        return
    for new, group in itertools.groupby(cell.size_list, lambda size: size not in known):
        if new:
            sizes = list(group)
            yield replace(cell, sizes=(sizes[0], sizes[-1], *cell.sizes[2:]))


@dataclass(frozen=True)
class Versions:
    """Installed versions by name, and a description of this computer (see toolchain.py)."""

    suite: dict[str, dict[str, str]]
    mpi: dict[str, dict[str, str]]
    library: str
    host: dict[str, str]
    #: Name and version of the project's own program for benchmarks that no suite has, by collective.
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Function that returns the components of the installed Open MPI; it runs ompi_info, which few studies need.
    components: Callable[[], frozenset[str]] = frozenset


def _orders(
    sweep: Sweep, machine: Machine, catalogue: Catalogue
) -> list[tuple[str, tuple[str, ...], dict[str, Any] | None]]:
    """Return (mapping, cycle, order of hosts) for a sweep. For a ladder the cycle is the level at which the ranks of a pair differ."""
    if sweep.levels:
        return [(mapping, (level,), None) for mapping, level in zip(sweep.mappings, sweep.levels, strict=True)]
    entries = {mapping: catalogue.mappings[mapping] for mapping in sweep.mappings}
    return [
        (mapping, whole_cycle(machine.levels, entry["cycle"]), entry.get("hosts")) for mapping, entry in entries.items()
    ]


def _expand_sweep(
    sweep: Sweep, identity: dict[str, Any], machine: Machine, catalogue: Catalogue, versions: Versions
) -> Iterator[Cell]:
    for mpi in sweep.mpis:
        known = versions.mpi.get(mpi)
        if known is None:
            hint = "; ./study run STUDY installs mpich and impi if STUDY needs them"
            raise StudyError(f"machine {machine.name}: MPI {mpi!r} is not installed" + allowed(versions.mpi) + hint)
        suite = versions.own.get(sweep.collective) or versions.suite[mpi]
        if sweep.barrier == "window":
            suite = {**versions.own["pairs"], "name": WINDOWS}
        if sweep.spread_us is not None:
            suite = versions.own["pairs"]
        if sweep.start == "shared":
            suite = {**versions.own["pairs"], "start": "shared"}
        if len(sweep.sizes or ()) == 3 and suite["name"] not in ("collbench", WINDOWS):
            raise StudyError(
                f"{sweep.collective}: only collbench supports sizes.factor; {suite['name']} doubles the sizes"
            )
        for choice in sweep.algorithms:
            if sweep.collective in APPLICATIONS:
                # Only these cells depend on the compute rate, so it belongs to their identity and not to the machine's.
                chosen: Selection = Rate(machine.core_gflops) if machine.kind == "simulated" else Default()
            else:
                chosen = selected_by(catalogue, sweep.collective, choice, mpi, versions.library, sweep.barrier)
            pattern = catalogue.pattern(sweep.collective, choice.name, mpi)
            for mapping, cycle, hosts in _orders(sweep, machine, catalogue):
                for nodes in sweep.nodes:
                    for count in sweep.processes:
                        if sweep.levels:
                            nodes = nodes_of_pairs(machine, cycle[0], count // 2)
                        if sweep.allocations:
                            hosts = {"ranks": list(sweep.allocations.nodes[count])}
                        yield Cell(
                            identity, suite, known, sweep.collective, choice.name, choice.parameters, chosen,
                            mapping, cycle, nodes, count * nodes if sweep.per_node else count,
                            count if sweep.per_node else None, sweep.sizes, sweep.iterations, sweep.warmup, hosts,
                            sweep.spread_us, pattern,
                        )  # fmt: skip
