"""Read the YAML files in `config/`, validate them against `workflow/schemas/`, and return frozen dataclasses."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.paths import ROOT
from collstudy.study import checks
from collstudy.study.document import Place, read_document, read_yaml, shown
from collstudy.study.names import APPLICATIONS, IMPORTED_ONLY, MPIS, POINT_TO_POINT, SIZED, check_name
from collstudy.study.names import NON_BLOCKING as NON_BLOCKING

#: Keys of a machine's `simulation` that fitted costs by level and size replace.
REPLACED_BY_FIT = (
    "send_overhead_us", "receive_overhead_us", "async_small_bytes", "latency_factor", "bandwidth_factor",
    "bandwidth_by_level",
)  # fmt: skip


@dataclass(frozen=True)
class Level:
    """One level of a machine: `count` units in each unit of the level outside of it.

    Latency (us) and bandwidth (GB/s) are those of a message whose end points differ at this level and agree outside of it;
    `shared_gb_s` is what all messages that cross one unit of this level share (a socket's memory bus, a node's NIC); with
    `full_duplex` each direction has it. None stands for keys that a file omits, so that identities do not change.
    """

    name: str
    count: int
    latency_us: float | None = None
    bandwidth_gb_s: float | None = None
    shared_gb_s: float | None = None
    full_duplex: bool | None = None


@dataclass(frozen=True)
class Machine:
    """Where cells run; see config/README.md, Machines."""

    name: str
    kind: str
    label: str
    mpi: str
    levels: tuple[Level, ...]
    simulation: dict[str, Any] = field(default_factory=dict)
    slurm: dict[str, Any] = field(default_factory=dict)
    oversubscribe: bool = False
    core_gflops: float | None = None
    launch_time_limit_s: float = 600.0
    block_minutes: float = 60.0
    groups: str = ""
    description: str = ""

    @property
    def nodes(self) -> int:
        """Number of nodes: the product of the counts of the levels outside of a node's inside."""
        total = 1
        for level in self.levels:
            if level.name in ("group", "node"):
                total *= level.count
        return total

    @property
    def cores_per_node(self) -> int:
        """Cores of one node."""
        total = 1
        for level in self.levels:
            if level.name not in ("group", "node"):
                total *= level.count
        return total


@dataclass(frozen=True)
class Choice:
    """An algorithm of the catalogue with the parameters that a sweep gives it."""

    name: str
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def parameter_text(self) -> str:
        """`key=value;...` in alphabetical order; empty if there are none."""
        return ";".join(f"{k}={v}" for k, v in sorted(self.parameters))


@dataclass(frozen=True)
class Sweep:
    """One rectangular part of a study's parameter space.

    A ladder has `levels`: pairs of cores that differ first at that level; its mappings are then `level-<name>`.
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


@dataclass(frozen=True)
class Policy:
    """Number of launches of a cell: at least `minimum`, then until the interval is narrow enough or `maximum` is reached.

    `ci_width_pct` is the width of the confidence interval of the median, in percent of the median.
    """

    minimum: int = 3
    maximum: int = 10
    ci_width_pct: float = 5.0


@dataclass(frozen=True)
class Sampling:
    """Settings of a sampled study (config/README.md). Budgets in node-minutes, start-up in s."""

    rounds: int = 5
    first_pct: float = 1.0
    round_pct: float = 2.0
    target_regret_pct: float = 2.5
    budget_node_minutes: float | None = None
    startup_s: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Application:
    """A program to be traced: `mpirun -n ranks command`, in a folder of its own after `prepare` (a shell command).

    An `optional` one is left out if its program is not installed.
    """

    name: str
    label: str
    command: str
    ranks: int
    prepare: str = ""
    description: str = ""
    optional: bool = False


@dataclass(frozen=True)
class ReplayPlan:
    """Replays of a study's traces: simulated machines, number of ranks, and alternatives.

    An alternative is {label, algorithms: {collective: name}, mapping, applications}; omitted keys are those of the plan.
    """

    machines: tuple[Machine, ...]
    ranks: int
    mapping: str
    alternatives: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Swept:
    """Source of numbers: every point of the sweeps."""

    sweeps: tuple[Sweep, ...]
    policy: Policy


@dataclass(frozen=True)
class Sampled(Swept):
    """Source of numbers: the points selected by rounds."""

    sampling: Sampling


@dataclass(frozen=True)
class Imported:
    """Source of numbers: files (entries of the study's YAML), with their suite and MPI library."""

    files: tuple[dict[str, Any], ...]
    suite: str = "unknown"
    suite_version: str = "unknown"
    mpi: str = "unknown"
    mpi_version: str = "unknown"
    #: By collective and algorithm: the name printed in a publication, if it is not the true one.
    printed: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gathered:
    """Source of numbers: the measurements of other studies."""

    gather: tuple[str, ...]


@dataclass(frozen=True)
class Traced:
    """Source of numbers: traces of applications and their replays."""

    applications: tuple[Application, ...]
    replay: ReplayPlan | None = None


@dataclass(frozen=True)
class Study:
    """One research question; see config/README.md, Studies."""

    name: str
    title: str
    question: str
    machine: Machine
    source: Swept | Sampled | Imported | Traced | Gathered
    analysis: dict[str, Any]
    chapter: str = ""
    companions: tuple[str, ...] = ()

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The sweeps of the study, if any."""
        return self.source.sweeps if isinstance(self.source, Swept) else ()


#: In place of a number: as many ranks as there are cores.
ALL_CORES = "cores"


def expand_ranks(spec: list[int] | dict[str, Any], cores: int, where: Place | str) -> tuple[int, ...]:
    """The same as expand_integers, where `to` may be `cores`: the cores are then always among the numbers.

    Where there are fewer cores than `from`, it is `from` alone: whether that can run here is not the file's matter.
    """
    if isinstance(spec, list) or spec["to"] != ALL_CORES:
        return expand_integers(spec, where)
    top = max(cores, spec["from"])
    return tuple(sorted({*expand_integers({**spec, "to": top}, where), top}))


#: The most numbers that `{from, to, step}` may stand for.
MOST_NUMBERS = 10_000


def expand_integers(spec: list[int] | dict[str, int], where: Place | str) -> tuple[int, ...]:
    """Expand `[1, 2]` or `{from, to, step | factor}` to integers in ascending order; an empty range is an error."""
    if isinstance(spec, list):
        values = tuple(sorted(spec))
    elif "step" in spec and "factor" in spec:
        raise StudyError(
            f"{where} has step and factor; allowed is one of them: {{from, to, step}} or {{from, to, factor}}"
        )
    elif "factor" in spec:
        values, value = [], spec["from"]
        while value <= spec["to"]:
            values.append(value)
            value *= spec["factor"]
        values = tuple(values)
    else:
        numbers = range(spec["from"], spec["to"] + 1, spec.get("step", 1))
        if len(numbers) > MOST_NUMBERS:
            raise StudyError(f"{where} stands for {len(numbers)} numbers; allowed are at most {MOST_NUMBERS}")
        values = tuple(numbers)
    if not values:
        raise StudyError(f"{where} is empty: {spec}")
    return values


@dataclass(frozen=True)
class Catalogue:
    """Algorithms by collective, and mappings, as in their files."""

    algorithms: dict[str, dict[str, dict[str, Any]]]
    mappings: dict[str, dict[str, Any]]

    def pattern(self, collective: str, algorithm: str, mpi: str) -> str | None:
        """The message pattern of an algorithm of the MPI library *mpi*; None if it is not known."""
        known = self.algorithms[collective][algorithm].get("pattern", {})
        return ({"openmpi": known} if isinstance(known, str) else known).get(mpi)

    def settings(self, collective: str, algorithm: str, parameters: dict[str, int], mpi: str) -> dict[str, Any] | None:
        """The settings of the MPI library *mpi* for an algorithm with these parameters; None if it does not support them."""
        entry = self.algorithms[collective][algorithm].get(mpi)
        # Open MPI's algorithms accept or ignore segments; for other libraries the catalogue lists the parameters of each.
        if entry is None or not (mpi == "openmpi" or set(parameters) <= set(entry)):
            return None
        return {**entry, **parameters}


class Configuration:
    """The folder `config/` of a checkout or of another workflow; a missing catalogue or machine is taken from the checkout."""

    def __init__(self, folder: Path):
        self.folder = folder

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """The validated catalogue of algorithms and mappings."""
        algorithms, where = read_document(self._file("algorithms.yaml"), "algorithms")
        checks.check_catalogue(algorithms, where)
        return Catalogue(algorithms, read_yaml(self._file("mappings.yaml"), "mappings"))

    def _file(self, name: str) -> Path:
        """A file of this folder, or the checkout's if only that exists."""
        own, ours = self.folder / name, ROOT / "config" / name
        return ours if ours.exists() and not own.exists() else own

    def study_names(self) -> list[str]:
        """Names of all studies, in alphabetical order."""
        return sorted(p.stem for p in (self.folder / "studies").glob("*.yaml"))

    def imported_names(self) -> list[str]:
        """Names of the studies that may import something: their file has that word. Reading all would take as long as an import."""
        found = []
        for name in self.study_names():
            with contextlib.suppress(OSError):
                if b"import" in self.study_path(name).read_bytes():
                    found.append(name)
        return found

    def machine_path(self, name: str) -> Path:
        """The file of a machine. Raises StudyError for an invalid name."""
        check_name(name, "a machine")
        return self._file(f"machines/{name}.yaml")

    def machine(self, name: str, fitting: bool = False) -> Machine:
        """Read `machines/<name>.yaml`; a local machine's levels are those of this computer.

        *fitting*: without the fitted costs of `./study calibrate`; costs of levels may then be missing.
        """
        path = self.machine_path(name)
        raw, at = self._like(*read_document(path, "machine"))
        checks.check_kind(raw, at)
        if not fitting:
            raw, at = _with_fit(raw, at)
        levels = tuple(Level(**level) for level in raw.get("levels", ()))
        kind, simulation = raw["kind"], raw.get("simulation", {})
        if kind == "local":
            if levels:
                raise StudyError(f"{at('levels')}: levels are read from the system for kind local; remove them")
            levels = local_levels()
        elif not levels:
            raise StudyError(f"{shown(path)}: kind {kind} needs levels, from the outermost to core")
        checks.check_levels([level.name for level in levels], [level.count for level in levels], at("levels"))
        if kind == "simulated":
            _check_fat_tree(simulation, levels, at("simulation"))
            checks.check_simulation(simulation, [level.name for level in levels], at("simulation"))
            for level in levels:
                lacking = level.latency_us is None or level.bandwidth_gb_s is None
                if lacking and not fitting and "fat_tree" not in simulation:
                    raise StudyError(
                        f"{at('levels')}: level {level.name} needs latency_us and bandwidth_gb_s to be simulated"
                        " (./study calibrate fits them to a ladder)"
                    )
            for outer, inner in zip(levels, levels[1:], strict=False):
                if not fitting and (outer.latency_us or 0) < (inner.latency_us or 0):
                    raise StudyError(
                        f"{at('levels')}: latency_us of level {outer.name} is smaller than that of {inner.name}, which is inside of it"
                    )
        options = {
            key: raw[key]
            for key in (
                "simulation",
                "slurm",
                "groups",
                "oversubscribe",
                "core_gflops",
                "launch_time_limit_s",
                "block_minutes",
            )  # fmt: skip
            if key in raw
        }
        return Machine(
            name,
            kind,
            raw["label"],
            raw.get("mpi", MPIS[kind][0]),
            levels,
            description=raw.get("description", ""),
            **options,
        )

    def _like(self, raw: dict[str, Any], where: Place) -> tuple[dict[str, Any], Callable[[str], Place]]:
        """Add keys of the machine named by `like` that this file omits; `mpi`, `simulation` and `slurm` only between equal kinds.

        Levels in both files get this file's values; levels in this file only are outside of the other's. Also
        returned: the place of each key, which may be in the other file.
        """
        if "like" not in raw:
            return raw, where.__truediv__
        other, there = read_document(self.machine_path(raw["like"]), "machine")
        if "like" in other:
            raise StudyError(
                f"{where / 'like'}: machine {raw['like']} has a `like` itself; name the last machine of the chain"
            )
        other, known_at = _with_fit(other, there.__truediv__)
        same = other["kind"] == raw["kind"]
        own = ("kind", "label") if same else ("kind", "label", "mpi", "simulation", "slurm", "calibration")
        merged = {key: value for key, value in other.items() if key not in own} | raw
        if "levels" in raw and "levels" in other:
            mine = {level["name"]: level for level in raw["levels"]}
            merged["levels"] = [mine[name] for name in mine if name not in {level["name"] for level in other["levels"]}]
            merged["levels"] += [level | mine.get(level["name"], {}) for level in other["levels"]]
        return merged, lambda key: where / key if key in raw or key not in other else known_at(key)

    def study(self, name: str) -> Study:
        """Read and check `studies/<name>.yaml` with its machine; raises StudyError for anything that cannot be run."""
        check_name(name, "a study")
        path = self.study_path(name)
        if not path.exists():
            raise StudyError(f"no study {name!r}: {shown(path)} does not exist" + allowed(self.study_names()))
        raw, where = read_document(path, "study")
        machine = self.machine(raw["machine"])
        kinds = [key for key in ("sweeps", "import", "applications", "gather") if key in raw]
        if (machine.kind == "imported") != bool({"import", "gather"} & set(raw)) or len(kinds) != 1:
            raise StudyError(
                f"{where}: a study has either sweeps or applications (on a machine to run on) or import or gather (machine of kind "
                "imported); "
                f"machine {machine.name} is of kind {machine.kind}"
            )
        sweeps = tuple(
            self._sweep(entry, machine, where / "sweeps" / index) for index, entry in enumerate(raw.get("sweeps", ()))
        )
        analysis = raw.get("analysis", {})
        policy = _policy(raw.get("launches", {}), where / "launches")
        study = Study(
            name, raw["title"], raw["question"], machine, self._source(raw, machine, policy, sweeps, where), analysis,
            raw.get("chapter") or _chapter(raw, sweeps), self._companions(name, raw, where),
        )  # fmt: skip
        checks.check_analysis(analysis, self.catalogue.algorithms, where / "analysis")
        if sweeps:
            checks.check_grid(analysis, _grid(sweeps), where / "analysis")
        if "chapter" in raw:
            checks.check_chapter(raw, sweeps, where / "chapter")
        tuned = dict.fromkeys(mpi for sweep in sweeps for mpi in sweep.mpis) if "tuning" in analysis else {}
        if len(tuned) > 1:
            raise StudyError(
                f"{where / 'analysis' / 'tuning'}: tuning needs one MPI library, the sweeps have {', '.join(tuned)}; split the study"
            )
        return study

    def check_imported(self, study: Study, collectives: dict[str, Any]) -> None:
        """Check an imported study's `analysis` against the grid of its data (as in study.json)."""
        _, where = read_document(self.study_path(study.name), "study")
        checks.check_grid(study.analysis, collectives, where / "analysis")

    def study_path(self, name: str) -> Path:
        """The file of a study."""
        return self.folder / "studies" / f"{name}.yaml"

    def _companions(self, name: str, raw: dict[str, Any], where: Place) -> tuple[str, ...]:
        """The studies that `companions`, `gather` and `analysis.compare` name."""
        compared = raw.get("analysis", {}).get("compare", {}).get("study")
        companions = {other: where / "companions" / index for index, other in enumerate(raw.get("companions", ()))}
        for index, other in enumerate(raw.get("gather", ())):
            companions.setdefault(other, where / "gather" / index)
        if compared:
            companions.setdefault(compared, where / "analysis" / "compare" / "study")
        for other, at in companions.items():
            if other == name:
                raise StudyError(f"{at}: {other!r} is this study itself; allowed is another one")
            if other not in self.study_names():
                raise StudyError(f"{at}: no study {other!r}" + allowed(self.study_names()))
        return tuple(companions)

    def _source(
        self, raw: dict[str, Any], machine: Machine, policy: Policy, sweeps: tuple[Sweep, ...], where: Place
    ) -> Swept | Sampled | Imported | Traced | Gathered:
        """What the study gets its numbers from."""
        applications, replay = self._applications(raw, machine, where)
        sampling = _sampling(raw, sweeps, where)
        if "import" in raw:
            return Imported(**{**raw["import"], "files": tuple(raw["import"]["files"])})
        if "gather" in raw:
            return Gathered(tuple(raw["gather"]))
        if applications:
            return Traced(applications, replay)
        return Sampled(sweeps, policy, sampling) if sampling else Swept(sweeps, policy)

    def _applications(
        self, raw: dict[str, Any], machine: Machine, where: Place
    ) -> tuple[tuple[Application, ...], ReplayPlan | None]:
        """The applications of a study and how they are replayed; everything that could go wrong later is checked here."""
        if "applications" not in raw:
            if "replay" in raw:
                raise StudyError(f"{where / 'replay'}: replay without applications: there is nothing to replay")
            return (), None
        if machine.kind not in ("local", "slurm"):
            raise StudyError(
                f"{where / 'machine'}: applications run on a machine of kind local or slurm, {machine.name} is {machine.kind}"
            )
        applications = tuple(Application(**entry) for entry in raw["applications"])
        names = [application.name for application in applications]
        for index, application in enumerate(applications):
            at = where / "applications" / index
            if application.name in names[:index]:
                raise StudyError(f"{at / 'name'}: a name is given twice: {application.name!r}")
            if application.ranks > machine.nodes * machine.cores_per_node and not machine.oversubscribe:
                raise StudyError(
                    f"{at / 'ranks'}: {application.ranks} ranks of {application.name} are more than the "
                    f"{machine.nodes * machine.cores_per_node} cores of machine {machine.name}"
                )
        return applications, self._replay_plan(
            raw["replay"], applications, where / "replay"
        ) if "replay" in raw else None

    def _replay_plan(self, raw: dict[str, Any], applications: tuple[Application, ...], where: Place) -> ReplayPlan:
        machines = tuple(self.machine(name) for name in raw["machines"])
        for machine in machines:
            if machine.kind != "simulated" or "fat_tree" not in machine.simulation:
                raise StudyError(
                    f"{where / 'machines'}: {machine.name} is not a simulated fat tree (simulation.fat_tree), which replays require"
                )
            if machine.nodes < raw["ranks"]:
                raise StudyError(
                    f"{where / 'ranks'}: {raw['ranks']} is more than the {machine.nodes} hosts of {machine.name}"
                )
        for application in applications:
            if raw["ranks"] % application.ranks:
                raise StudyError(
                    f"{where / 'ranks'}: {raw['ranks']} is not a multiple of the {application.ranks} ranks of {application.name}"
                )
        plan = ReplayPlan(machines, raw["ranks"], raw.get("mapping", "core"), tuple(raw.get("alternatives", ())))
        for mapping in [plan.mapping, *(entry["mapping"] for entry in plan.alternatives if "mapping" in entry)]:
            if mapping not in self.catalogue.mappings:
                raise StudyError(f"{where}: unknown mapping {mapping!r}" + allowed(self.catalogue.mappings))
        names = {application.name for application in applications}
        for index, entry in enumerate(plan.alternatives):
            at = f"{where / 'alternatives' / index}: {entry['label']}"
            for name in entry.get("applications", ()):
                if name not in names:
                    raise StudyError(f"{at}: no application {name!r}" + allowed(names))
            for collective, name in entry.get("algorithms", {}).items():
                known = self.catalogue.algorithms.get(collective)
                if known is None:
                    raise StudyError(f"{at}: unknown collective {collective!r}" + allowed(self.catalogue.algorithms))
                if not {"simulated", "library", "smpi"} & set(known.get(name, {})):
                    able = [n for n, e in known.items() if {"simulated", "library", "smpi"} & set(e)]
                    raise StudyError(f"{at}: no {collective} algorithm {name!r} that can be simulated{allowed(able)}")
        return plan

    def _sweep(self, raw: dict[str, Any], machine: Machine, where: Place) -> Sweep:
        collective = raw["collective"]
        if collective not in self.catalogue.algorithms:
            raise StudyError(f"{where / 'collective'}: unknown {collective!r}" + allowed(self.catalogue.algorithms))
        if collective in IMPORTED_ONLY:
            raise StudyError(f"{where / 'collective'}: {collective} can only be imported; no benchmark measures it")
        if raw.get("levels") == "all-pairs":
            raw = _all_pairs(raw, machine, where)
            collective = raw["collective"]
        elif "levels" in raw:
            raw = _ladder(raw, machine, where)
        elif collective in APPLICATIONS:
            raw = _application(raw, machine, where)
        elif "problem_sizes" in raw:
            raise StudyError(f"{where}: {collective} has no problem size; remove problem_sizes" + allowed(APPLICATIONS))
        choices = []
        for entry in raw["algorithms"]:
            entry = {"name": entry} if isinstance(entry, str) else dict(entry)
            name = entry.pop("name")
            if name not in self.catalogue.algorithms[collective]:
                known = allowed(self.catalogue.algorithms[collective])
                raise StudyError(
                    f"{where / 'algorithms'}: no {collective} algorithm {name!r} in config/algorithms.yaml{known}"
                )
            choices.append(Choice(name, tuple(sorted(entry.items()))))
        if len(set(choices)) < len(choices):
            raise StudyError(f"{where / 'algorithms'}: an algorithm is named twice with the same parameters")
        levels = {level.name for level in machine.levels}
        for mapping in raw["mappings"] if "levels" not in raw else ():
            if mapping not in self.catalogue.mappings:
                raise StudyError(f"{where / 'mappings'}: unknown {mapping!r}" + allowed(self.catalogue.mappings))
            for level in self.catalogue.mappings[mapping]["cycle"]:
                if level not in levels:
                    raise StudyError(
                        f"{where / 'mappings'}: {mapping} needs level {level!r}, machine {machine.name} has none{allowed(levels)}"
                    )
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
        sizes = None
        if collective in SIZED:
            if "sizes" not in raw:
                raise StudyError(f"{where}: {collective} needs sizes: {{from, to}} in bytes")
            factor = raw["sizes"].get("factor", 2)
            # Doubling is the default of every suite and is omitted.
            sizes = (raw["sizes"]["from"], raw["sizes"]["to"], *([factor] if factor != 2 else []))
            if sizes[0] > sizes[1]:
                raise StudyError(f"{where / 'sizes'} is empty: from {sizes[0]} to {sizes[1]}")
        elif "sizes" in raw:
            raise StudyError(f"{where}: {collective} has no message size; remove sizes")
        mpis = tuple(raw.get("mpi", [machine.mpi]))
        for mpi in mpis:
            if mpi not in MPIS[machine.kind]:
                raise StudyError(
                    f"{where / 'mpi'}: {mpi!r} cannot run on machine {machine.name} of kind {machine.kind}"
                    + allowed(MPIS[machine.kind])
                )
        return Sweep(
            collective, tuple(choices), tuple(raw["mappings"]), mpis, nodes, processes,
            per_node, sizes, raw.get("iterations", 100), raw.get("warmup", 10), tuple(raw.get("levels", ())),
            self._barrier(raw, machine, where),
        )  # fmt: skip

    def _barrier(self, raw: dict[str, Any], machine: Machine, where: Place) -> str:
        """The algorithm of the barriers around the timed calls; only the simulator supports others than the default."""
        name = raw.get("barrier", "default")
        if name != "default" and machine.mpi != "smpi-openmpi":
            raise StudyError(
                f"{where / 'barrier'}: only simulated Open MPI (smpi-openmpi) supports another barrier than its default"
            )
        if name not in self.catalogue.algorithms["barrier"]:
            raise StudyError(
                f"{where / 'barrier'}: no algorithm {name!r}" + allowed(self.catalogue.algorithms["barrier"])
            )
        return name


def _policy(launches: dict[str, Any], where: Place) -> Policy:
    """The number of launches of each cell."""
    policy = Policy(
        launches.get("min", Policy.minimum), launches.get("max", max(launches.get("min", 1), Policy.maximum)),
        launches.get("ci_width_pct", Policy.ci_width_pct),
    )  # fmt: skip
    if policy.maximum < policy.minimum:
        raise StudyError(f"{where / 'max'}: {policy.maximum} is smaller than launches.min {policy.minimum}")
    return policy


def _with_fit(raw: dict[str, Any], at: Callable[[str], Place]) -> tuple[dict[str, Any], Callable[[str], Place]]:
    """A machine's file merged with the costs of its `fitted` file; the two keys of calibration are removed.

    Also returned: the place of each key, which may be in the file of costs.
    """
    rest = {key: value for key, value in raw.items() if key not in ("fitted", "calibration")}
    if "fitted" not in raw:
        return rest, at
    where = at("fitted")
    machine = where.file.stem
    file = where.file.with_name(raw["fitted"])
    if not file.exists():
        raise StudyError(f"{where}: {shown(file)} does not exist; ./study calibrate {machine} writes it")
    fit, there = read_document(file, "fitted")
    known = [level["name"] for level in raw.get("levels", ())]
    for name in fit["levels"]:
        if name not in known:
            raise StudyError(f"{there / 'levels' / name}: machine {machine} has no level {name!r}{allowed(known)}")
    rest["levels"] = [level | fit["levels"].get(level["name"], {}) for level in raw["levels"]]
    if "simulation" in fit:
        own = {key: value for key, value in raw.get("simulation", {}).items() if key not in REPLACED_BY_FIT}
        rest["simulation"] = own | fit["simulation"]
    return rest, lambda key: there / key if key in fit else at(key)


def _chapter(raw: dict[str, Any], sweeps: tuple[Sweep, ...]) -> str:
    """The default chapter of a study; empty for that of collectives."""
    if "applications" in raw:
        return "congestion"
    if any(sweep.collective in APPLICATIONS for sweep in sweeps):
        return "svd"
    return "ladder" if sweeps and all(sweep.collective in POINT_TO_POINT for sweep in sweeps) else ""


def _grid(sweeps: tuple[Sweep, ...]) -> dict[str, Any]:
    """The grid by collective: names of algorithms, numbers of processes and sizes (bytes)."""
    grid: dict[str, Any] = {}
    for sweep in sweeps:
        entry = grid.setdefault(sweep.collective, {"algorithms": [], "processes": [], "sizes": []})
        entry["algorithms"] += [{"name": choice.name} for choice in sweep.algorithms]
        entry["processes"] += (
            [p * n for p in sweep.processes for n in sweep.nodes] if sweep.per_node else sweep.processes
        )
        entry["sizes"] += swept(sweep.sizes) if sweep.sizes else ()
    return grid


def swept(sizes: tuple[int, ...]) -> Iterator[int]:
    """The message sizes (bytes) of (from, to) or (from, to, factor); the factor defaults to 2."""
    size, last, factor = (*sizes, 2)[:3]
    while size <= last:
        yield size
        size *= factor


def _sampling(raw: dict[str, Any], sweeps: tuple[Sweep, ...], where: Place) -> Sampling | None:
    """Settings of a sampled study, which needs decisions that its points could change."""
    if "sampling" not in raw:
        return None
    if "tuning" not in raw.get("analysis", {}):
        raise StudyError(
            f"{where / 'sampling'}: sampling selects points that could change a decision and therefore needs analysis: {{tuning: {{}}}}"
        )
    if not sweeps:
        raise StudyError(f"{where / 'sampling'}: sampling needs sweeps from which to select points")
    for index, sweep in enumerate(sweeps):
        if sweep.collective in (*POINT_TO_POINT, *APPLICATIONS):
            raise StudyError(
                f"{where / 'sweeps' / index}: sampling chooses between algorithms; {sweep.collective} has none"
            )
        if sweep.mpis != sweeps[0].mpis or len(sweep.mpis) > 1:
            raise StudyError(f"{where / 'sweeps' / index / 'mpi'}: sampling decides for one MPI library")
    return Sampling(**raw["sampling"])


def _check_fat_tree(simulation: dict[str, Any], levels: tuple[Level, ...], where: Place) -> None:
    """Check the levels of a fat tree: groups (first stage of switches) of `arity` nodes with one core."""
    if "fat_tree" not in simulation:
        return
    arity, stages = simulation["fat_tree"]["arity"], simulation["fat_tree"]["stages"]
    wanted = (("group", arity ** (stages - 1)), ("node", arity), ("core", 1))
    if tuple((level.name, level.count) for level in levels) != wanted:
        raise StudyError(
            f"{where}: a fat tree of arity {arity} with {stages} stages has the levels "
            + ", ".join(f"{{name: {name}, count: {count}}}" for name, count in wanted)
        )


def _ladder(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """A sweep over levels as one over mappings and processes, with two ranks per pair."""
    collective = raw["collective"]
    if collective not in POINT_TO_POINT:
        raise StudyError(f"{where / 'levels'}: {collective} is not a test of pairs of ranks" + allowed(POINT_TO_POINT))
    for key in ("mappings", "processes", "processes_per_node", "nodes"):
        if key in raw:
            raise StudyError(f"{where}: levels determine the placement; remove {key}")
    known = [level.name for level in machine.levels]
    for name in raw["levels"]:
        if name not in known:
            raise StudyError(f"{where / 'levels'}: machine {machine.name} has no level {name!r}{allowed(known)}")
    pairs = expand_integers(raw.get("pairs", [1]), where / "pairs")
    if collective != "multi_lat" and pairs != (1,):
        raise StudyError(f"{where / 'pairs'}: {collective} has one pair; multi_lat takes several at once")
    mappings = [f"level-{name}" for name in raw["levels"]]
    processes = [2 * count for count in pairs]
    return {"algorithms": ["default"], **raw, "mappings": mappings, "processes": processes}


def _all_pairs(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """The core x core matrix: one cell with a rank on every core, which measures one pair after the other."""
    if raw["collective"] != "latency":
        raise StudyError(f"{where / 'levels'}: all-pairs are measured by latency, not by {raw['collective']}")
    for key in ("mappings", "processes", "processes_per_node", "pairs"):
        if key in raw:
            raise StudyError(f"{where}: all-pairs has a rank on every core; remove {key}")
    nodes = expand_integers(raw.get("nodes", [machine.nodes]), where / "nodes")
    if machine.cores_per_node * nodes[0] < 2:
        raise StudyError(f"{where / 'levels'}: machine {machine.name} has only one core and therefore no pair")
    rest = {key: value for key, value in raw.items() if key != "levels"}
    every = {"mappings": ["core"], "processes_per_node": [machine.cores_per_node]}
    return {"algorithms": ["default"], **rest, **every, "collective": "pairs"}


def _application(raw: dict[str, Any], machine: Machine, where: Place) -> dict[str, Any]:
    """A sweep over problem sizes as one over the parameter `n`; each launch is one run of the program."""
    collective = raw["collective"]
    if "problem_sizes" not in raw:
        raise StudyError(f"{where}: {collective} needs problem_sizes, such as [256, 512]")
    for key in ("algorithms", "sizes", "iterations", "warmup"):
        if key in raw:
            raise StudyError(f"{where}: {collective} runs once per launch for each of its problem_sizes; remove {key}")
    if machine.kind == "simulated" and machine.core_gflops is None:
        raise StudyError(
            f"{where}: machine {machine.name} has no core_gflops, the rate that the arithmetic of a simulated {collective} "
            "is charged with"
        )
    sizes = expand_integers(raw["problem_sizes"], where / "problem_sizes")
    return {**raw, "algorithms": [{"name": "default", "n": n} for n in sizes], "iterations": 1, "warmup": 0}


@functools.cache
def local_levels() -> tuple[Level, ...]:
    """Sockets and cores of this computer available to this process, from /sys (one hardware thread per core)."""
    cores: dict[int, set[int]] = {}
    for cpu in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            socket = int((topology / "physical_package_id").read_text())
            core = int((topology / "core_id").read_text())
        except (OSError, ValueError):
            socket, core = 0, cpu
        cores.setdefault(socket, set()).add(core)
    # Sockets with different numbers of available cores would not form a rectangle: use the smallest number.
    return (Level("node", 1), Level("socket", len(cores)), Level("core", min(len(c) for c in cores.values())))
