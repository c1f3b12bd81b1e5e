"""Read the YAML files in `config/`, validate them against `workflow/schemas/`, and return frozen dataclasses."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from collstudy.base.errors import StudyError, allowed
from collstudy.base.paths import ROOT

SCHEMAS = ROOT / "workflow" / "schemas"

#: Benchmarks and what they need: collectives that sweep message sizes, and those without a size.
SIZED = (
    "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "alltoallv", "ibcast",
    "iallreduce", "reduce_scatter", "ireduce_scatter", "latency", "bw", "multi_lat", "pairs",
)  # fmt: skip
UNSIZED = ("barrier",)
NON_BLOCKING = ("ibcast", "iallreduce", "ireduce_scatter")
#: Between two ranks; `pairs`, between each two of all ranks in turn, is in no suite but this project's.
POINT_TO_POINT = ("latency", "bw", "multi_lat", "pairs")
#: What the file of a machine's fitted costs ends with.
FITTED_SUFFIX = ".fitted.yaml"
#: What fitted costs by level and size replace of a machine's `simulation`.
REPLACED_BY_FIT = (
    "send_overhead_us", "receive_overhead_us", "async_small_bytes", "latency_factor", "bandwidth_factor",
    "bandwidth_by_level",
)  # fmt: skip
#: Programs of `workflow/native/apps/` whose time to solution is measured, for each number of processes and problem size.
APPLICATIONS = ("svd",)


@dataclass(frozen=True)
class Level:
    """One level of a machine: `count` units in each unit of the level outside of it.

    Latency (us) and bandwidth (GB/s) are those of a message whose end points differ at this level and agree outside of it;
    `shared_gb_s` is what all messages that cross one unit of this level share (a socket's memory bus, a node's NIC); with
    `full_duplex` each direction has it. None stands for what a file does not say, so that identities do not change.
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
        """`key=value;...` in alphabetical order; empty when there are none."""
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
    """How many launches a cell gets: at least `minimum`, then until the interval is narrow enough or `maximum` is reached.

    `ci_width_pct` is the width of the confidence interval of the median, in percent of the median.
    """

    minimum: int = 3
    maximum: int = 10
    ci_width_pct: float = 5.0


@dataclass(frozen=True)
class Sampling:
    """How a study measures only a part of its grid, in rounds; see config/README.md. Budgets in node-minutes, start-up in s."""

    rounds: int = 5
    first_pct: float = 1.0
    round_pct: float = 2.0
    target_regret_pct: float = 2.5
    budget_node_minutes: float | None = None
    startup_s: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Application:
    """A program that is traced: `mpirun -n ranks command`, in a folder of its own in which `prepare` (a shell command) was run.

    One that is `optional` is left out where its program is not installed.
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
    """How the traces of a study are replayed: on which simulated machines, with how many ranks, and what is tried instead.

    An alternative is {label, algorithms: {collective: name}, mapping, applications}; what it does not say is as in the plan.
    """

    machines: tuple[Machine, ...]
    ranks: int
    mapping: str
    alternatives: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Swept:
    """A study that gets its numbers from every point of its sweeps."""

    sweeps: tuple[Sweep, ...]
    policy: Policy


@dataclass(frozen=True)
class Sampled(Swept):
    """A study that gets its numbers from the points that rounds ask for."""

    sampling: Sampling


@dataclass(frozen=True)
class Imported:
    """A study that gets its numbers from files: entries of the study's YAML, and what is said of the suite and the MPI library."""

    files: tuple[dict[str, Any], ...]
    suite: str = "unknown"
    suite_version: str = "unknown"
    mpi: str = "unknown"
    mpi_version: str = "unknown"


@dataclass(frozen=True)
class Traced:
    """A study that gets its numbers from traces of applications, and from replays of these."""

    applications: tuple[Application, ...]
    replay: ReplayPlan | None = None


@dataclass(frozen=True)
class Study:
    """One research question; see config/README.md, Studies."""

    name: str
    title: str
    question: str
    machine: Machine
    source: Swept | Sampled | Imported | Traced
    analysis: dict[str, Any]
    chapter: str = ""
    companions: tuple[str, ...] = ()

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The sweeps of a study that has some."""
        return self.source.sweeps if isinstance(self.source, Swept) else ()


def _key_lines(node: yaml.Node, path: tuple = ()) -> dict[tuple, int]:
    """Map each key's path in a composed YAML document to its line (from 1)."""
    lines = {path: node.start_mark.line + 1}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            child = path + (key.value,)
            lines |= _key_lines(value, child)
            lines[child] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines |= _key_lines(value, path + (index,))
    return lines


def shown(path: Path) -> str:
    """Return *path* relative to the working directory where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _explain(error: jsonschema.ValidationError) -> str:
    """One sentence for a schema violation: what is wrong and what is allowed."""
    where = ".".join(str(part) for part in error.absolute_path) or "the file"
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        wrong = [key for key in error.instance if key not in known]
        return f"unknown key {', '.join(map(repr, wrong))} in {where}{allowed(known)}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{where} lacks the key {', '.join(map(repr, missing))}"
    if error.validator == "enum":
        return f"{where} is {error.instance!r}{allowed(error.validator_value)}"
    if error.validator in ("minItems", "minLength"):
        return f"{where} is empty; at least one entry is needed"
    if error.validator in ("oneOf", "anyOf") and error.context:
        options = " or ".join(
            sorted({e.message for e in error.context if len(e.absolute_path) >= len(error.absolute_path)})
        )
        return f"{where} is {error.instance!r}, which is not allowed: {options}"
    return f"{where}: {error.message}"


def read_yaml(path: Path, schema: str) -> dict[str, Any]:
    """Read *path* and validate it against `workflow/schemas/<schema>.schema.yaml`.

    Raises StudyError naming file, line, key and what is allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        siblings = [p.stem for p in path.parent.glob("*.yaml") if not p.name.endswith(FITTED_SUFFIX)]
        raise StudyError(f"{shown(path)}: no such file" + allowed(siblings)) from None
    try:
        document = yaml.safe_load(text)
        lines = _key_lines(yaml.compose(text, Loader=yaml.SafeLoader)) if document is not None else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise StudyError(f"{shown(path)}{at}: not valid YAML: {getattr(error, 'problem', error)}") from None
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(document))
    if error is not None:
        at = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = error.schema.get("properties", {})
            at += (next(key for key in error.instance if key not in known),)
        raise StudyError(f"{shown(path)}, line {lines.get(at, 1)}: {_explain(error)}")
    return document


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    document = yaml.safe_load((SCHEMAS / f"{schema}.schema.yaml").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(document)


def expand_integers(spec: list[int] | dict[str, int], where: str) -> tuple[int, ...]:
    """Expand `[1, 2]` or `{from, to, step | factor}` to integers in ascending order; an empty range is an error."""
    if isinstance(spec, list):
        values = tuple(sorted(spec))
    elif "factor" in spec:
        values, value = [], spec["from"]
        while value <= spec["to"]:
            values.append(value)
            value *= spec["factor"]
        values = tuple(values)
    else:
        values = tuple(range(spec["from"], spec["to"] + 1, spec.get("step", 1)))
    if not values:
        raise StudyError(f"{where} is empty: {spec}")
    return values


@dataclass(frozen=True)
class Catalogue:
    """Algorithms by collective, and mappings, as their files say."""

    algorithms: dict[str, dict[str, dict[str, Any]]]
    mappings: dict[str, dict[str, Any]]

    def pattern(self, collective: str, algorithm: str, mpi: str) -> str | None:
        """The messages that prove an algorithm of the MPI library *mpi*; None where they are not known."""
        known = self.algorithms[collective][algorithm].get("pattern", {})
        return ({"openmpi": known} if isinstance(known, str) else known).get(mpi)

    def told(self, collective: str, algorithm: str, parameters: dict[str, int], mpi: str) -> dict[str, Any] | None:
        """How the MPI library *mpi* is told to use an algorithm with these parameters; None where it cannot be."""
        entry = self.algorithms[collective][algorithm].get(mpi)
        # Open MPI's algorithms all take segments or ignore them; of the others the catalogue names what each takes.
        if entry is None or not (mpi == "openmpi" or set(parameters) <= set(entry)):
            return None
        return {**entry, **parameters}


class Configuration:
    """The folder `config/` of one checkout, or of another workflow, which takes catalogue and machines that it lacks from here."""

    def __init__(self, folder: Path):
        self.folder = folder

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """The validated catalogue of algorithms and mappings."""
        return Catalogue(
            read_yaml(self._file("algorithms.yaml"), "algorithms"),
            read_yaml(self._file("mappings.yaml"), "mappings"),
        )

    def _file(self, name: str) -> Path:
        """A file of this folder, or of the checkout's own where that alone has it."""
        own, ours = self.folder / name, ROOT / "config" / name
        return ours if ours.exists() and not own.exists() else own

    def study_names(self) -> list[str]:
        """Names of all studies, in alphabetical order."""
        return sorted(p.stem for p in (self.folder / "studies").glob("*.yaml"))

    def machine_path(self, name: str) -> Path:
        """The file of a machine."""
        return self._file(f"machines/{name}.yaml")

    def machine(self, name: str, fitting: bool = False) -> Machine:
        """Read `machines/<name>.yaml`; a local machine's levels are those of this computer.

        *fitting*: without what `./study calibrate` wrote beside it; the costs of its levels may then be missing.
        """
        path = self.machine_path(name)
        raw = self._like(path, read_yaml(path, "machine"))
        raw = raw if fitting else _with_fit(path, raw)
        levels = tuple(Level(**level) for level in raw.get("levels", ()))
        kind = raw["kind"]
        if kind == "local":
            if levels:
                raise StudyError(f"{shown(path)}: levels are read from the system for kind local; remove them")
            levels = local_levels()
        elif not levels:
            raise StudyError(f"{shown(path)}: kind {kind} needs levels, from the outermost to core")
        if levels[-1].name != "core":
            raise StudyError(f"{shown(path)}: the last (innermost) of the levels must be core, not {levels[-1].name}")
        if len({level.name for level in levels}) < len(levels):
            raise StudyError(f"{shown(path)}: a level is named twice")
        if kind == "simulated":
            _check_fat_tree(raw.get("simulation", {}), levels, shown(path))
            for level in levels:
                lacking = level.latency_us is None or level.bandwidth_gb_s is None
                if lacking and not fitting and "fat_tree" not in raw.get("simulation", {}):
                    raise StudyError(
                        f"{shown(path)}: level {level.name} needs latency_us and bandwidth_gb_s to be simulated"
                        " (./study calibrate fits them to a ladder)"
                    )
            for outer, inner in zip(levels, levels[1:], strict=False):
                if not fitting and (outer.latency_us or 0) < (inner.latency_us or 0):
                    raise StudyError(
                        f"{shown(path)}: latency_us of level {outer.name} is smaller than that of {inner.name}, which is inside of it"
                    )
        default_mpi = {"simulated": "smpi-openmpi"}.get(kind, "openmpi")
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
            raw.get("mpi", default_mpi),
            levels,
            description=raw.get("description", ""),
            **options,
        )

    def _like(self, path: Path, raw: dict[str, Any]) -> dict[str, Any]:
        """Add what the machine named by `like` says and this file does not; MPI and simulation belong to its kind.

        Levels that both name get this file's values; levels that only this file names are outside of the other's.
        """
        if "like" not in raw:
            return raw
        other_path = path.with_name(f"{raw['like']}.yaml")
        other = read_yaml(other_path, "machine")
        if "like" in other:
            raise StudyError(f"{shown(path)}: machine {raw['like']} has a `like` of its own; name the last one")
        other = _with_fit(other_path, other)
        own = ("kind", "label") if other["kind"] == raw["kind"] else ("kind", "label", "mpi", "simulation")
        merged = {key: value for key, value in other.items() if key not in own} | raw
        if "levels" in raw and "levels" in other:
            mine = {level["name"]: level for level in raw["levels"]}
            merged["levels"] = [mine[name] for name in mine if name not in {level["name"] for level in other["levels"]}]
            merged["levels"] += [level | mine.get(level["name"], {}) for level in other["levels"]]
        return merged

    def study(self, name: str) -> Study:
        """Read and check `studies/<name>.yaml` with its machine; raises StudyError for anything that cannot be run."""
        path = self.folder / "studies" / f"{name}.yaml"
        if not path.exists():
            raise StudyError(f"no study {name!r}: {shown(path)} does not exist" + allowed(self.study_names()))
        raw = read_yaml(path, "study")
        machine = self.machine(raw["machine"])
        kinds = [key for key in ("sweeps", "import", "applications") if key in raw]
        if (machine.kind == "imported") != ("import" in raw) or len(kinds) != 1:
            raise StudyError(
                f"{shown(path)}: a study has either sweeps or applications (on a machine to run on) or import (machine of kind imported); "
                f"machine {machine.name} is of kind {machine.kind}"
            )
        compared = raw.get("analysis", {}).get("compare", {}).get("study")
        companions = dict.fromkeys(raw.get("with", ()), "with") | ({compared: "analysis.compare"} if compared else {})
        for other, key in companions.items():
            if other not in self.study_names():
                raise StudyError(f"{shown(path)}: {key}: no study {other!r}" + allowed(self.study_names()))
        launches = raw.get("launches", {})
        policy = Policy(
            launches.get("min", Policy.minimum), launches.get("max", max(launches.get("min", 1), Policy.maximum)),
            launches.get("ci_width_pct", Policy.ci_width_pct),
        )  # fmt: skip
        if policy.maximum < policy.minimum:
            raise StudyError(
                f"{shown(path)}: launches.max {policy.maximum} is smaller than launches.min {policy.minimum}"
            )
        sweeps = tuple(
            self._sweep(entry, machine, f"{shown(path)}: sweeps.{index}")
            for index, entry in enumerate(raw.get("sweeps", ()))
        )
        self._check_analysis(raw.get("analysis", {}), f"{shown(path)}: analysis")
        tuned = (
            dict.fromkeys(mpi for sweep in sweeps for mpi in sweep.mpis) if "tuning" in raw.get("analysis", {}) else {}
        )
        if len(tuned) > 1:
            raise StudyError(
                f"{shown(path)}: analysis.tuning: files are for one MPI library, the sweeps have {', '.join(tuned)}; make a study of each"
            )
        return Study(
            name, raw["title"], raw["question"], machine, self._source(raw, machine, policy, sweeps, shown(path)),
            raw.get("analysis", {}), raw.get("chapter") or _chapter(sweeps), tuple(companions),
        )  # fmt: skip

    def _source(
        self, raw: dict[str, Any], machine: Machine, policy: Policy, sweeps: tuple[Sweep, ...], where: str
    ) -> Swept | Sampled | Imported | Traced:
        """What the study gets its numbers from."""
        applications, replay = self._applications(raw, machine, where)
        sampling = _sampling(raw, sweeps, where)
        if "import" in raw:
            return Imported(**{**raw["import"], "files": tuple(raw["import"]["files"])})
        if applications:
            return Traced(applications, replay)
        return Sampled(sweeps, policy, sampling) if sampling else Swept(sweeps, policy)

    def _applications(
        self, raw: dict[str, Any], machine: Machine, where: str
    ) -> tuple[tuple[Application, ...], ReplayPlan | None]:
        """The applications of a study and how they are replayed; everything that could go wrong later is checked here."""
        if "applications" not in raw:
            if "replay" in raw:
                raise StudyError(f"{where}: replay without applications: there is nothing to replay")
            return (), None
        if machine.kind not in ("local", "slurm"):
            raise StudyError(
                f"{where}: applications run on a machine of kind local or slurm, {machine.name} is {machine.kind}"
            )
        applications = tuple(Application(**entry) for entry in raw["applications"])
        names = [application.name for application in applications]
        if len(set(names)) < len(names):
            raise StudyError(f"{where}: applications: a name is given twice")
        for application in applications:
            if application.ranks > machine.nodes * machine.cores_per_node and not machine.oversubscribe:
                raise StudyError(
                    f"{where}: applications.{application.name}.ranks: {application.ranks} is more than the "
                    f"{machine.nodes * machine.cores_per_node} cores of machine {machine.name}"
                )
        return applications, self._replay_plan(
            raw["replay"], applications, f"{where}: replay"
        ) if "replay" in raw else None

    def _replay_plan(self, raw: dict[str, Any], applications: tuple[Application, ...], where: str) -> ReplayPlan:
        machines = tuple(self.machine(name) for name in raw["machines"])
        for machine in machines:
            if machine.kind != "simulated" or "fat_tree" not in machine.simulation:
                raise StudyError(
                    f"{where}.machines: {machine.name} is no simulated fat tree (simulation.fat_tree), whose ports a replay watches"
                )
            if machine.nodes < raw["ranks"]:
                raise StudyError(
                    f"{where}.ranks: {raw['ranks']} is more than the {machine.nodes} hosts of {machine.name}"
                )
        for application in applications:
            if raw["ranks"] % application.ranks:
                raise StudyError(
                    f"{where}.ranks: {raw['ranks']} is no multiple of the {application.ranks} ranks of {application.name}"
                )
        plan = ReplayPlan(machines, raw["ranks"], raw.get("mapping", "core"), tuple(raw.get("alternatives", ())))
        for mapping in [plan.mapping, *(entry["mapping"] for entry in plan.alternatives if "mapping" in entry)]:
            if mapping not in self.catalogue.mappings:
                raise StudyError(f"{where}: unknown mapping {mapping!r}" + allowed(self.catalogue.mappings))
        names = {application.name for application in applications}
        for entry in plan.alternatives:
            at = f"{where}.alternatives: {entry['label']}"
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

    def _check_analysis(self, analysis: dict[str, Any], where: str) -> None:
        known = {name for entries in self.catalogue.algorithms.values() for name in entries}
        for name in analysis.get("best_excludes", ()):
            if name not in known:
                raise StudyError(f"{where}.best_excludes: no algorithm {name!r}" + allowed(known))

    def _sweep(self, raw: dict[str, Any], machine: Machine, where: str) -> Sweep:
        collective = raw["collective"]
        if collective not in self.catalogue.algorithms:
            raise StudyError(f"{where}.collective: unknown {collective!r}" + allowed(self.catalogue.algorithms))
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
                    f"{where}.algorithms: no {collective} algorithm {name!r} in config/algorithms.yaml{known}"
                )
            choices.append(Choice(name, tuple(sorted(entry.items()))))
        if len(set(choices)) < len(choices):
            raise StudyError(f"{where}.algorithms: an algorithm is named twice with the same parameters")
        levels = {level.name for level in machine.levels}
        for mapping in raw["mappings"] if "levels" not in raw else ():
            if mapping not in self.catalogue.mappings:
                raise StudyError(f"{where}.mappings: unknown {mapping!r}" + allowed(self.catalogue.mappings))
            for level in self.catalogue.mappings[mapping]["cycle"]:
                if level not in levels:
                    raise StudyError(
                        f"{where}.mappings: {mapping} needs level {level!r}, machine {machine.name} has none{allowed(levels)}"
                    )
        if ("processes" in raw) == ("processes_per_node" in raw):
            raise StudyError(f"{where}: needs processes or processes_per_node, and not both")
        nodes = expand_integers(raw.get("nodes", [machine.nodes]), f"{where}.nodes")
        if nodes[-1] > machine.nodes:
            raise StudyError(
                f"{where}.nodes: {nodes[-1]} is more than the {machine.nodes} nodes of machine {machine.name}"
            )
        per_node = "processes_per_node" in raw
        key = "processes_per_node" if per_node else "processes"
        processes = expand_integers(raw[key], f"{where}.{key}")
        limit = machine.cores_per_node * (1 if per_node else nodes[0])
        if processes[-1] > limit and not machine.oversubscribe:
            what = "a node" if per_node else f"{nodes[0]} node{'s' * (nodes[0] > 1)}"
            raise StudyError(
                f"{where}.{key}: {processes[-1]} is more than the {limit} cores of {what} of machine {machine.name}"
            )
        sizes = None
        if collective in SIZED:
            if "sizes" not in raw:
                raise StudyError(f"{where}: {collective} needs sizes: {{from, to}} in bytes")
            factor = raw["sizes"].get("factor", 2)
            # Doubling is what every suite does and is not said.
            sizes = (raw["sizes"]["from"], raw["sizes"]["to"], *([factor] if factor != 2 else []))
            if sizes[0] > sizes[1]:
                raise StudyError(f"{where}.sizes is empty: from {sizes[0]} to {sizes[1]}")
        elif "sizes" in raw:
            raise StudyError(f"{where}: {collective} has no message size; remove sizes")
        return Sweep(
            collective, tuple(choices), tuple(raw["mappings"]), tuple(raw.get("mpi", [machine.mpi])), nodes, processes,
            per_node, sizes, raw.get("iterations", 100), raw.get("warmup", 10), tuple(raw.get("levels", ())),
            self._barrier(raw, machine, where),
        )  # fmt: skip

    def _barrier(self, raw: dict[str, Any], machine: Machine, where: str) -> str:
        """The algorithm of the barriers around the timed calls; only the simulator can be told to use another one."""
        name = raw.get("barrier", "default")
        if name != "default" and machine.mpi != "smpi-openmpi":
            raise StudyError(
                f"{where}.barrier: only simulated Open MPI (smpi-openmpi) takes another barrier than its default"
            )
        if name not in self.catalogue.algorithms["barrier"]:
            raise StudyError(f"{where}.barrier: no algorithm {name!r}" + allowed(self.catalogue.algorithms["barrier"]))
        return name


def _with_fit(path: Path, raw: dict[str, Any]) -> dict[str, Any]:
    """A machine's file with the costs of the file that its `fitted` names; both keys of calibration go."""
    rest = {key: value for key, value in raw.items() if key not in ("fitted", "calibration")}
    if "fitted" not in raw:
        return rest
    file = path.with_name(raw["fitted"])
    if not file.exists():
        raise StudyError(
            f"{shown(path)}: fitted: {shown(file)} does not exist; ./study calibrate {path.stem} writes it"
        )
    fit = read_yaml(file, "fitted")
    known = [level["name"] for level in raw.get("levels", ())]
    if unknown := [
        name for name in (*fit["levels"], *fit.get("simulation", {}).get("delay_us", ())) if name not in known
    ]:
        raise StudyError(f"{shown(file)}: machine {path.stem} has no level {unknown[0]!r}{allowed(known)}")
    rest["levels"] = [level | fit["levels"].get(level["name"], {}) for level in raw["levels"]]
    if "simulation" in fit:
        own = {key: value for key, value in raw.get("simulation", {}).items() if key not in REPLACED_BY_FIT}
        rest["simulation"] = own | fit["simulation"]
    return rest


def _chapter(sweeps: tuple[Sweep, ...]) -> str:
    """The chapter of a study that names none; empty for that of collectives."""
    if any(sweep.collective in APPLICATIONS for sweep in sweeps):
        return "svd"
    return "ladder" if sweeps and all(sweep.collective in POINT_TO_POINT for sweep in sweeps) else ""


def _sampling(raw: dict[str, Any], sweeps: tuple[Sweep, ...], where: str) -> Sampling | None:
    """How a study is sampled: it needs a decision that its points could change, and points of one kind."""
    if "sampling" not in raw:
        return None
    if "tuning" not in raw.get("analysis", {}):
        raise StudyError(
            f"{where}: sampling asks for what could change a decision: it needs analysis: {{tuning: {{}}}}"
        )
    if not sweeps:
        raise StudyError(f"{where}: sampling needs sweeps, whose points it chooses from")
    for index, sweep in enumerate(sweeps):
        if sweep.collective in (*POINT_TO_POINT, *APPLICATIONS):
            raise StudyError(
                f"{where}: sweeps.{index}: sampling chooses between algorithms; {sweep.collective} has none"
            )
        if sweep.mpis != sweeps[0].mpis or len(sweep.mpis) > 1:
            raise StudyError(f"{where}: sweeps.{index}.mpi: sampling decides for one MPI library")
    return Sampling(**raw["sampling"])


def _check_fat_tree(simulation: dict[str, Any], levels: tuple[Level, ...], where: str) -> None:
    """The levels of a fat tree name what its first stage of switches joins: groups of `arity` nodes with one core."""
    if "fat_tree" not in simulation:
        return
    arity, stages = simulation["fat_tree"]["arity"], simulation["fat_tree"]["stages"]
    wanted = (("group", arity ** (stages - 1)), ("node", arity), ("core", 1))
    if tuple((level.name, level.count) for level in levels) != wanted:
        raise StudyError(
            f"{where}: a fat tree of arity {arity} with {stages} stages has the levels "
            + ", ".join(f"{{name: {name}, count: {count}}}" for name, count in wanted)
        )


def _ladder(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, Any]:
    """A sweep over levels as one over mappings and processes: what is not named there, two ranks a pair."""
    collective = raw["collective"]
    if collective not in POINT_TO_POINT:
        raise StudyError(f"{where}.levels: {collective} is not between pairs of ranks" + allowed(POINT_TO_POINT))
    for key in ("mappings", "processes", "processes_per_node", "nodes"):
        if key in raw:
            raise StudyError(f"{where}: levels say where the ranks are; remove {key}")
    known = [level.name for level in machine.levels]
    for name in raw["levels"]:
        if name not in known:
            raise StudyError(f"{where}.levels: machine {machine.name} has no level {name!r}{allowed(known)}")
    pairs = expand_integers(raw.get("pairs", [1]), f"{where}.pairs")
    if collective != "multi_lat" and pairs != (1,):
        raise StudyError(f"{where}.pairs: {collective} has one pair; multi_lat takes several at once")
    mappings = [f"level-{name}" for name in raw["levels"]]
    processes = [2 * count for count in pairs]
    return {"algorithms": ["default"], **raw, "mappings": mappings, "processes": processes}


def _all_pairs(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, Any]:
    """The whole core x core matrix: one cell with a rank on every core, which measures one pair after the other."""
    if raw["collective"] != "latency":
        raise StudyError(f"{where}.levels: all-pairs are measured by latency, not by {raw['collective']}")
    for key in ("mappings", "processes", "processes_per_node", "pairs"):
        if key in raw:
            raise StudyError(f"{where}: all-pairs has a rank on every core; remove {key}")
    nodes = expand_integers(raw.get("nodes", [machine.nodes]), f"{where}.nodes")
    if machine.cores_per_node * nodes[0] < 2:
        raise StudyError(f"{where}.levels: machine {machine.name} has one core only, and so no pair")
    rest = {key: value for key, value in raw.items() if key != "levels"}
    every = {"mappings": ["core"], "processes_per_node": [machine.cores_per_node]}
    return {"algorithms": ["default"], **rest, **every, "collective": "pairs"}


def _application(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, Any]:
    """A sweep over problem sizes as one over the parameter `n`; each launch is one run of the program."""
    collective = raw["collective"]
    if "problem_sizes" not in raw:
        raise StudyError(f"{where}: {collective} needs problem_sizes, such as [256, 512]")
    for key in ("algorithms", "sizes", "iterations", "warmup"):
        if key in raw:
            raise StudyError(f"{where}: {collective} runs once a launch, for each of its problem_sizes; remove {key}")
    if machine.kind == "simulated" and machine.core_gflops is None:
        raise StudyError(
            f"{where}: machine {machine.name} has no core_gflops, the rate that the arithmetic of a simulated {collective} "
            "is charged with"
        )
    sizes = expand_integers(raw["problem_sizes"], f"{where}.problem_sizes")
    return {**raw, "algorithms": [{"name": "default", "n": n} for n in sizes], "iterations": 1, "warmup": 0}


@functools.cache
def local_levels() -> tuple[Level, ...]:
    """Sockets and cores of this computer from /sys, as far as this process may run on them (one hardware thread a core)."""
    cores: dict[int, set[int]] = {}
    for cpu in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            socket = int((topology / "physical_package_id").read_text())
            core = int((topology / "core_id").read_text())
        except (OSError, ValueError):
            socket, core = 0, cpu
        cores.setdefault(socket, set()).add(core)
    # Sockets of which this process may use different numbers of cores would not form a rectangle: the smallest counts.
    return (Level("node", 1), Level("socket", len(cores)), Level("core", min(len(c) for c in cores.values())))
