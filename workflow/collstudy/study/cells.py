"""Expand a study to cells; a cell's identity is the digest of everything that determines its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NoReturn

from collstudy.base.errors import StudyError, allowed
from collstudy.study import selection
from collstudy.study.catalogue import Catalogue
from collstudy.study.description import Study
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT, WINDOWS
from collstudy.study.placement import Core, nodes_of_pairs, place
from collstudy.study.selection import Default, Library, Rate, Selection, Switch
from collstudy.study.sweeps import Choice, Sweep, swept
from collstudy.study.work import Work

#: Raise it when the meaning of a cell's fields changes: old files are then no longer used.
IDENTITY_VERSION = 1
#: The same for simulated machines with `core_gb_s`. 2: no lazy updates with FATPIPE links.
CORE_LINKS_VERSION = 2
#: The same for calibrated ones. 8: blocking sends to other nodes end when they are copied.
MESSAGES_VERSION = 8


@dataclass(frozen=True)
class Cell(Work):
    """One fully resolved point; its digest is computed from `identity()`."""

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
    #: Interval (us) over which the ranks enter a call, each at its own time; None: all together.
    spread_us: float | None = None
    pattern: str | None = field(default=None, compare=False)

    def identity(self) -> dict[str, Any]:
        """Everything that can change the result, as plain JSON values."""
        # Not asdict, which copies everything: studies have tens of thousands of cells.
        found = {"identity_version": IDENTITY_VERSION, **{name: getattr(self, name) for name in IDENTITY_FIELDS}}
        found["selection"] = self.selection.to_json()
        if self.hosts is None:
            del found["hosts"]  # as in cells measured before mappings had an order of hosts
        if self.spread_us is None:
            del found["spread_us"]  # as in cells measured before ranks could enter calls at different times
        return found

    def place(self, machine: Machine) -> list[Core]:
        """The core of each rank. Raises StudyError if they do not fit."""
        return place(machine, self.cycle, self.nodes, self.processes, self.per_node, self.hosts)

    @property
    def path_text(self) -> str:
        """Its file: readable parts and the first 16 digits of the digest."""
        parts = [self.machine["name"], self.mpi["name"], self.algorithm, *(f"{k}{v}" for k, v in self.parameters)]
        readable = "_".join(parts) + f"_{self.mapping}_n{self.nodes}_p{self.processes}"
        return f"cells/{self.collective}/{readable}-{self.digest[:16]}.json"

    @property
    def deterministic(self) -> bool:
        """Whether every launch gives the same result, so that one suffices."""
        return self.machine["kind"] == "simulated"

    @property
    def proved(self) -> bool:
        """A simulator always runs the selected algorithm."""
        return not self.deterministic

    @property
    def point(self) -> tuple[Any, ...]:
        """All algorithms at a placement; all collectives, too, where they share launches."""
        return "" if self.shares_start else self.collective, self.mapping, self.processes, self.per_node

    def document(self) -> dict[str, Any]:
        """Its identity, and the message pattern that verifies it."""
        return {"cell": self.identity(), "pattern": self.pattern}

    @property
    def windows(self) -> bool:
        """Whether its calls start at instants of synchronised clocks."""
        return self.suite["name"] == WINDOWS

    @property
    def shares_start(self) -> bool:
        """Whether a launch measures all such cells of a placement in turn."""
        return self.suite.get("start") == "shared"

    @property
    def by_collbench(self) -> bool:
        """Whether the cell needs the embedded benchmark, because OMB has no such option."""
        return self.windows or self.shares_start or self.spread_us is not None

    @property
    def size_list(self) -> list[int | None]:
        """The message sizes (bytes) that one launch sweeps; [None] for a collective without a size."""
        return [None] if self.sizes is None else list(swept(self.sizes))

    @property
    def row_sizes(self) -> list[int | None]:
        """The size of each row of a launch's output: every size, for `pairs` once for each pair of ranks."""
        if self.collective != "pairs":
            return self.size_list
        return [size for size in self.size_list for _ in range(self.processes * (self.processes - 1) // 2)]

    @property
    def label(self) -> str:
        """One line for messages."""
        spread = f" spread {self.spread_us:g} us" if self.spread_us else ""
        choice = Choice(self.algorithm, self.parameters)
        text = f"{self.algorithm}[{choice.parameter_text}]" if self.parameters else self.algorithm
        where = f"mapping {self.mapping} nodes {self.nodes} processes {self.processes}{spread}"
        return f"{self.collective} {text} {where} on {self.machine['name']}"


#: The verification of a cell (`pattern`) cannot change its numbers.
IDENTITY_FIELDS = tuple(f.name for f in fields(Cell) if f.name != "pattern")


def machine_identity(machine: Machine, host: dict[str, str]) -> dict[str, Any]:
    """The part of a machine that affects results; *host* describes this computer and is used for a local machine only."""
    if machine.kind == "slurm":
        # Latencies and bandwidths in the file describe a simulated machine; a real one has its own.
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
    if machine.groups:
        identity["groups"] = machine.groups
    if machine.slurm.get("constraint"):
        identity["constraint"] = machine.slurm["constraint"]
    return identity


def selected_by(
    catalogue: Catalogue, collective: str, choice: Choice, mpi: str, library: str, barrier: str = "default"
) -> Selection:
    """The selection that makes the MPI library *mpi* use an algorithm.

    The simulator runs Open MPI's algorithms through the collectives library, including the barriers between timed calls (their exit
    skew biases the measured latency, Open MPI issue 11022).
    Raises StudyError if the catalogue has no entry for it.
    """
    entry, parameters = catalogue.algorithms[collective][choice.name], dict(choice.parameters)
    if choice.name == "default" and parameters:
        raise StudyError(f"{collective} default takes no parameters, got {choice.parameter_text}")
    if collective in POINT_TO_POINT:
        return Default()
    if mpi == "smpi-openmpi":
        if choice.name != "default" and not {"simulated", "library", "smpi"} & set(entry):
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
    own = entry.get("simulated", entry.get("library"))
    if own is None and "smpi" in entry:
        return Default() if entry["parameters"] else Switch("smpi", entry["smpi"])
    texts = {variable(collective): library_text({**own, **entry["parameters"]})} if own else {}
    if own and "simulated" not in entry:
        # On each level of a hierarchy the same collectives as those of the simulated default.
        texts["COLL_BASE"] = "ompi"
    if collective != "barrier":
        texts["COLL_BARRIER"] = library_text(catalogue.algorithms["barrier"][barrier]["simulated"])
    return Library(texts, library)


def _inside(
    catalogue: Catalogue, collective: str, entry: dict[str, Any], choice: Choice, mpi: str
) -> dict[str, Any] | None:
    """The selection of the non-blocking collective inside a pipelined one: {collective, algorithm}; None if there is none."""
    if "inside" not in entry:
        return None
    chosen = catalogue.algorithms[f"i{collective}"].get(entry["inside"], {})
    return {"collective": f"i{collective}", **chosen[mpi]} if mpi in chosen else _unknown(choice, collective, mpi)


def variable(collective: str) -> str:
    """The environment variable that selects a collective's algorithm in the collectives library."""
    return f"COLL_{collective.upper()}"


def library_text(chosen: dict[str, Any]) -> str:
    """`algorithm[:key=value...]` in the syntax of the collectives library."""
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
    return Cell(**fields, pattern=pattern)


def expand(study: Study, catalogue: Catalogue, versions: Versions) -> list[Cell]:
    """All cells of a study, in the order of its sweeps, each once."""
    cells: dict[str, Cell] = {}
    machine = machine_identity(study.machine, versions.host)
    for sweep in study.sweeps:
        for cell in _expand_sweep(sweep, machine, study.machine, catalogue, versions):
            cells.setdefault(cell.digest, cell)
    return list(cells.values())


@dataclass(frozen=True)
class Versions:
    """The toolchain's findings: versions by name, and this computer (see toolchain.py)."""

    suite: dict[str, dict[str, str]]
    mpi: dict[str, dict[str, str]]
    library: str
    host: dict[str, str]
    #: Name and version of the program for tests that no suite has, by `collective`.
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    #: The components of the installed Open MPI; a function, because it launches ompi_info and few studies need it.
    components: Callable[[], frozenset[str]] = frozenset


def _orders(sweep: Sweep, catalogue: Catalogue) -> list[tuple[str, tuple[str, ...], dict[str, Any] | None]]:
    """The mappings of a sweep with cycles and orders of hosts. Two ranks that cycle over a level differ at it, not at an outer one."""
    if sweep.levels:
        return [(mapping, (level,), None) for mapping, level in zip(sweep.mappings, sweep.levels, strict=True)]
    entries = {mapping: catalogue.mappings[mapping] for mapping in sweep.mappings}
    return [(mapping, tuple(entry["cycle"]), entry.get("hosts")) for mapping, entry in entries.items()]


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
                # The rate affects these cells only, so it is part of their identity and not of the machine's.
                chosen: Selection = Rate(machine.core_gflops) if machine.kind == "simulated" else Default()
            else:
                chosen = selected_by(catalogue, sweep.collective, choice, mpi, versions.library, sweep.barrier)
            pattern = catalogue.pattern(sweep.collective, choice.name, mpi)
            for mapping, cycle, hosts in _orders(sweep, catalogue):
                for nodes in sweep.nodes:
                    for count in sweep.processes:
                        if sweep.levels:
                            nodes = nodes_of_pairs(machine, cycle[0], count // 2)
                        yield Cell(
                            identity, suite, known, sweep.collective, choice.name, choice.parameters, chosen,
                            mapping, cycle, nodes, count * nodes if sweep.per_node else count,
                            count if sweep.per_node else None, sweep.sizes, sweep.iterations, sweep.warmup, hosts,
                            sweep.spread_us, pattern,
                        )  # fmt: skip
