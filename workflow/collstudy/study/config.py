"""Read the YAML files in `config/`, validate them against `workflow/schemas/`, and return frozen dataclasses."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.base.paths import ROOT
from collstudy.study import checks
from collstudy.study.catalogue import Catalogue, own_settings
from collstudy.study.chapters import check_chapter
from collstudy.study.command import nodes_in, ranks_in
from collstudy.study.description import (
    Application,
    Gathered,
    Imported,
    Policy,
    ReplayPlan,
    Sampled,
    Sampling,
    Study,
    Swept,
    Traced,
    Tuned,
)
from collstudy.study.document import FITTED_SUFFIX, Place, read_document, read_yaml, shown
from collstudy.study.machines import Machine, read_machine
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT, check_name
from collstudy.study.repeated import check_repeated
from collstudy.study.sweeps import Sweep, check_mappings, component_of, read_sweeps, swept

#: A program is tuned only if ideal (zero-cost) collectives would save at least this percentage of its run time.
WORTH_PCT = 1
#: Number of pairs of runs to compare: the range of six values covers the median with a probability of 97 %.
RUNS = 6
#: Time limit of one run of a program (s).
PROGRAM_LIMIT_S = 3600.0


class Configuration:
    """The folder `config/` of a checkout or another workflow; a missing catalogue or machine is taken from the checkout."""

    #: What error messages call an entry of study_names().
    kind = "study"
    #: A study that is being drafted; others may name it although it does not exist yet.
    drafted = ""

    def __init__(self, folder: Path):
        self.folder = folder

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """Return the validated catalogue of algorithms and mappings."""
        algorithms, where = read_document(self._file("algorithms.yaml"), "algorithms")
        checks.check_catalogue(algorithms, where)
        return Catalogue(algorithms, read_yaml(self._file("mappings.yaml"), "mappings"))

    def _file(self, name: str) -> Path:
        """Return the path of a file in this folder, or in the checkout's if it exists only there."""
        own, ours = self.folder / name, ROOT / "config" / name
        return ours if ours.exists() and not own.exists() else own

    def study_names(self) -> list[str]:
        """Return the names of all studies, in alphabetical order."""
        return sorted(p.stem for p in (self.folder / "studies").glob("*.yaml"))

    def imported_names(self) -> list[str]:
        """Return the studies whose file contains the word "import". Parsing all files would take as long as an import."""
        found = []
        for name in self.study_names():
            with contextlib.suppress(OSError):
                if b"import" in self.study_path(name).read_bytes():
                    found.append(name)
        return found

    def machine_names(self) -> list[str]:
        """Return the names of all machines, in alphabetical order; a folder elsewhere also has those of the checkout."""
        paths = [p for folder in (self.folder, ROOT / "config") for p in (folder / "machines").glob("*.yaml")]
        return sorted({path.stem for path in paths if not path.name.endswith(FITTED_SUFFIX)})

    def machine_path(self, name: str) -> Path:
        """Return the path of a machine's file. Raises StudyError for an invalid name, or if there is no such file."""
        check_name(name, "a machine")
        path = self._file(f"machines/{name}.yaml")
        if not path.exists():
            raise StudyError(f"{shown(path)}: no such file{allowed(self.machine_names(), name)}")
        return path

    def machine(self, name: str, fitting: bool = False) -> Machine:
        """Return a machine; with *fitting*, without the costs that `./study calibrate` fitted."""
        return read_machine(name, self.machine_path, fitting)

    def study(self, name: str) -> Study:
        """Read and check `studies/<name>.yaml` and its machine. Raises StudyError for anything that cannot be run."""
        check_name(name, "a study")
        path = self.study_path(name)
        if not path.exists():
            known = self.study_names()
            raise StudyError(f"no {self.kind} {name!r}: {shown(path)} does not exist{allowed(known, name)}")
        raw, where = read_document(path, "study")
        if left := [
            place for key in ("machine", "import") if key in raw for place in _left_open(raw[key], where / key)
        ]:
            raise StudyError(
                f"{left[0]}: still '?', as drafted; replace it" + f" ({len(left) - 1} more)" * (len(left) > 1)
            )
        machine = self.machine(raw["machine"])
        kinds = [key for key in ("sweeps", "import", "applications", "gather", "program") if key in raw]
        if (machine.kind == "imported") != bool({"import", "gather"} & set(raw)) or len(kinds) != 1:
            raise StudyError(
                f"{where}: a study needs exactly one of sweeps, applications, program, import and gather, the last two with a machine "
                f"of kind imported; found: {', '.join(kinds) or 'none'}, machine {machine.name} of kind {machine.kind}"
            )
        numbered = [
            (index, sweep)
            for index, entry in enumerate(raw.get("sweeps", ()))
            for sweep in read_sweeps(entry, machine, self.catalogue, where / "sweeps" / index)
        ]
        sweeps = tuple(sweep for _, sweep in numbered)
        analysis = raw.get("analysis", {})
        policy = _policy(raw.get("launches", {}), where / "launches")
        study = Study(
            name, raw["title"], raw["question"], machine, self._source(name, raw, machine, policy, sweeps, where), analysis,
            raw.get("chapter") or _chapter(raw, sweeps), self._companions(name, raw, where), shown(path),
        )  # fmt: skip
        checks.check_analysis(analysis, self.catalogue.algorithms, where / "analysis")
        if "leave_out" in analysis and "import" not in raw:
            raise StudyError(
                f"{where / 'analysis' / 'leave_out'} is for imported measurements, and this study has none; remove it"
            )
        if sweeps:
            checks.check_grid(analysis, _grid(sweeps), where / "analysis")
        arms = list(
            dict.fromkeys(filter(None, (component_of(s, c, self.catalogue) for s in sweeps for c in s.algorithms)))
        )
        check_chapter(raw, sweeps, len(arms), where / "chapter")
        check_repeated(numbered, raw.get("chapter", ""), machine, self.catalogue, where / "sweeps")
        if arms and "tuning" in analysis:
            raise StudyError(
                f"{where / 'analysis' / 'tuning'}: a tuning file chooses algorithms of coll/tuned, not components; "
                f"move {', '.join(arms)} to a study without tuning"
            )
        tuned = dict.fromkeys(mpi for sweep in sweeps for mpi in sweep.mpis) if "tuning" in analysis else {}
        if len(tuned) > 1:
            raise StudyError(
                f"{where / 'analysis' / 'tuning'}: tuning needs one MPI library, the sweeps have {', '.join(tuned)}; split the study"
            )
        return study

    def check_imported(self, study: Study, collectives: dict[str, Any]) -> None:
        """Check an imported study's machine and `analysis` against the grid of its data (*collectives*, as in study.json)."""
        _, where = read_document(self.study_path(study.name), "study")
        # A machine that stands for several has no levels, and its ranks no places.
        for entry in collectives.values() if study.machine.levels else ():
            check_mappings(entry["mappings"], study.machine, self.catalogue, where / "machine")
        checks.check_grid(study.analysis, collectives, where / "analysis")

    def study_path(self, name: str) -> Path:
        """Return the path of a study's file."""
        return self.folder / "studies" / f"{name}.yaml"

    def _companions(self, name: str, raw: dict[str, Any], where: Place) -> tuple[str, ...]:
        """Return the studies that `companions`, `gather` and `analysis.compare` name."""
        compared = raw.get("analysis", {}).get("compare", {}).get("study")
        companions = {other: where / "companions" / index for index, other in enumerate(raw.get("companions", ()))}
        for index, other in enumerate(raw.get("gather", ())):
            companions.setdefault(other, where / "gather" / index)
        if compared:
            companions.setdefault(compared, where / "analysis" / "compare" / "study")
        for other, at in companions.items():
            if other == name:
                raise StudyError(f"{at}: {other!r} is this study itself; name another study")
            check_known(other, self.study_names(), f"{at}: no study {other!r}")
        for index, other in enumerate(raw.get("gather", ())):
            if "gather" in read_document(self.study_path(other), "study")[0]:
                raise StudyError(f"{where / 'gather' / index}: study {other!r} gathers others; name these instead")
        return tuple(companions)

    def _source(
        self, name: str, raw: dict[str, Any], machine: Machine, policy: Policy, sweeps: tuple[Sweep, ...], where: Place
    ) -> Swept | Sampled | Tuned | Imported | Traced | Gathered:
        """Return the source of the study's numbers: sweeps, sampling, a program, imported files, traces or other studies."""
        applications, replay = self._applications(raw, machine, where)
        sampling = _sampling(raw, sweeps, where)
        if "import" in raw:
            return Imported(**{**raw["import"], "files": tuple(raw["import"]["files"])})
        if "gather" in raw:
            return Gathered(tuple(raw["gather"]))
        if applications:
            return Traced(applications, replay)
        if "program" in raw:
            return _tuned(raw, name, machine, policy, sampling or Sampling(), where)
        return Sampled(sweeps, policy, sampling) if sampling else Swept(sweeps, policy)

    def _applications(
        self, raw: dict[str, Any], machine: Machine, where: Place
    ) -> tuple[tuple[Application, ...], ReplayPlan | None]:
        """Return the applications of a study and the plan of their replays, after all checks that need no launch."""
        if "applications" not in raw:
            if "replay" in raw:
                raise StudyError(f"{where / 'replay'}: replay needs applications")
            return (), None
        if machine.kind not in ("local", "slurm"):
            raise StudyError(
                f"{where / 'machine'}: applications need a machine of kind local or slurm; {machine.name} is of kind {machine.kind}"
            )
        if machine.mpi != "openmpi":
            raise StudyError(
                f"{where / 'machine'}: applications are traced with openmpi; {machine.name} has {machine.mpi}"
            )
        applications = tuple(Application(**entry) for entry in raw["applications"])
        names = [application.name for application in applications]
        for index, application in enumerate(applications):
            at = where / "applications" / index
            _words_of(application.command, at / "command")
            if application.name in names[:index]:
                raise StudyError(f"{at / 'name'}: {application.name!r} is used twice; names must be unique")
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
            if machine.kind != "simulated":
                raise StudyError(
                    f"{where / 'machines'}: replays need simulated machines; {machine.name} is of kind {machine.kind}"
                )
            cores = machine.nodes * machine.cores_per_node
            if cores < raw["ranks"]:
                raise StudyError(f"{where / 'ranks'}: {raw['ranks']} is more than the {cores} cores of {machine.name}")
        for application in applications:
            if raw["ranks"] % application.ranks:
                raise StudyError(
                    f"{where / 'ranks'}: {raw['ranks']} is not a multiple of the {application.ranks} ranks of {application.name}"
                )
        mapping, decisions = raw.get("mapping", "core"), raw.get("decisions", "")
        alternatives, traces = tuple(raw.get("alternatives", ())), raw.get("traces", 1)
        if traces > 1 and not decisions:
            raise StudyError(
                f"{where / 'traces'}: several traces of an application are only for the gain of `decisions`"
            )
        plan = ReplayPlan(machines, raw["ranks"], mapping, alternatives, decisions, traces)
        if decisions:
            self._check_decisions(plan, where / "decisions")
        for machine in machines:
            self._check_replayed(mapping, machine, where / "mapping")
        names = {application.name for application in applications}
        for index, entry in enumerate(plan.alternatives):
            at = f"{where / 'alternatives' / index}: {entry['label']}"
            # Alternatives are tried on the first machine.
            self._check_replayed(entry.get("mapping", mapping), machines[0], where / "alternatives" / index / "mapping")
            for name in entry.get("applications", ()):
                check_known(name, names, f"{at}: no application {name!r}")
            for collective, name in entry.get("algorithms", {}).items():
                check_known(collective, self.catalogue.algorithms, f"{at}: unknown collective {collective!r}")
                entries = self.catalogue.algorithms[collective].items()
                able = [one for one, its in entries if own_settings(its) is not None]
                check_known(name, able, f"{at}: no {collective} algorithm {name!r} that can be simulated")
        return plan

    def _check_replayed(self, mapping: str, machine: Machine, where: Place) -> None:
        """Check that replays on a machine can have a mapping."""
        check_mappings([mapping], machine, self.catalogue, where)
        if "hosts" in self.catalogue.mappings[mapping]:
            able = [name for name, entry in self.catalogue.mappings.items() if "hosts" not in entry]
            raise StudyError(f"{where}: {mapping} has `hosts`, which replays do not support" + allowed(able))

    def _check_decisions(self, plan: ReplayPlan, where: Place) -> None:
        """Check that the study whose decisions are replayed has tuning decisions for the machine of the replays."""
        if plan.decisions == self.drafted:
            return
        if plan.decisions not in self.study_names():
            raise StudyError(
                f"{where}: no study {plan.decisions!r}{allowed(self.study_names())}. To draft it: ./study new {plan.decisions} "
                "--cells-of STUDY, after a run of this study without 'decisions' (and 'traces')"
            )
        decided, _ = read_document(self.study_path(plan.decisions), "study")
        if "tuning" not in decided.get("analysis", {}):
            raise StudyError(f"{where}: study {plan.decisions} makes no decisions: it lacks analysis: {{tuning: {{}}}}")
        names = [machine.name for machine in plan.machines]
        if names != [decided["machine"]]:
            raise StudyError(
                f"{where}: {plan.decisions} decides for {decided['machine']}, but the replays run on {', '.join(names)}"
            )


def _left_open(value: Any, where: Place) -> Iterator[Place]:
    """Yield the places whose value is '?', which ./study import writes for what it could not determine."""
    if value == "?":
        yield where
    elif isinstance(value, (dict, list)):
        for key, of in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _left_open(of, where / key)


def _policy(launches: dict[str, Any], where: Place) -> Policy:
    """Return the policy for the number of launches of each cell."""
    policy = Policy(
        launches.get("min", Policy.minimum), launches.get("max", max(launches.get("min", 1), Policy.maximum)),
        launches.get("ci_width_pct", Policy.ci_width_pct),
    )  # fmt: skip
    if policy.maximum < policy.minimum:
        raise StudyError(f"{where / 'max'}: {policy.maximum} is smaller than launches.min {policy.minimum}")
    return policy


def _chapter(raw: dict[str, Any], sweeps: tuple[Sweep, ...]) -> str:
    """Return the default chapter of a study; "" for a study of collectives."""
    if "applications" in raw:
        return "congestion"
    if "program" in raw:
        return "program"
    if any(sweep.collective in APPLICATIONS for sweep in sweeps):
        return "svd"
    return "ladder" if sweeps and all(sweep.collective in POINT_TO_POINT for sweep in sweeps) else ""


def _grid(sweeps: tuple[Sweep, ...]) -> dict[str, Any]:
    """Return names of algorithms, numbers of processes and sizes (bytes) by collective."""
    grid: dict[str, Any] = {}
    for sweep in sweeps:
        entry = grid.setdefault(sweep.collective, {"algorithms": [], "processes": [], "sizes": []})
        entry["algorithms"] += [{"name": choice.name} for choice in sweep.algorithms]
        entry["processes"] += (
            [p * n for p in sweep.processes for n in sweep.nodes] if sweep.per_node else sweep.processes
        )
        entry["sizes"] += swept(sweep.sizes) if sweep.sizes else ()
    return grid


def _sampling(raw: dict[str, Any], sweeps: tuple[Sweep, ...], where: Place) -> Sampling | None:
    """Return the settings of a sampled study; its sampling is directed by tuning decisions, so the study must have them."""
    if "sampling" not in raw:
        return None
    if "tuning" not in raw.get("analysis", {}):
        raise StudyError(
            f"{where / 'sampling'}: sampling selects points that could change a decision and therefore needs analysis: {{tuning: {{}}}}"
        )
    if not sweeps and "program" not in raw:
        raise StudyError(f"{where / 'sampling'}: sampling needs sweeps from which to select points")
    for index, sweep in enumerate(sweeps):
        if sweep.collective in (*POINT_TO_POINT, *APPLICATIONS):
            raise StudyError(
                f"{where / 'sweeps' / index}: sampling compares algorithms, but {sweep.collective} has only one; "
                "remove this sweep or `sampling`"
            )
        if sweep.mpis != sweeps[0].mpis or len(sweep.mpis) > 1:
            raise StudyError(f"{where / 'sweeps' / index / 'mpi'}: sampling needs one MPI library for all sweeps")
    return Sampling(**raw["sampling"])


def _words_of(command: str, where: Place) -> list[str]:
    """Split a command into words. Raises StudyError for unbalanced quotes, and without a word."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise StudyError(f"{where}: {error}: {command}") from None
    if not words:
        raise StudyError(f"{where} has no word")
    return words


def _tuned(raw: dict[str, Any], name: str, machine: Machine, policy: Policy, sampling: Sampling, where: Place) -> Tuned:
    """Return the program of a study, with the number of ranks taken from its command."""
    entry = raw["program"]
    if machine.kind not in ("local", "slurm"):
        raise StudyError(
            f"{where / 'machine'}: a program needs a machine of kind local or slurm; {machine.name} is of kind {machine.kind}"
        )
    if "tuning" not in raw.get("analysis", {}):
        raise StudyError(f"{where / 'program'}: a study of a program needs analysis: {{tuning: {{}}}}")
    words = _words_of(entry["command"], where / "program" / "command")
    if ":" in words:
        raise StudyError(f"{where / 'program' / 'command'}: several programs in one launch (:) are not supported")
    ranks = ranks_in(words)
    if ranks is None:
        raise StudyError(
            f"{where / 'program' / 'command'}: the number of ranks is missing; add -n N after the launcher"
        )
    if ranks < 2:
        raise StudyError(f"{where / 'program' / 'command'}: a single rank does not communicate; use 2 or more")
    cores = machine.nodes * machine.cores_per_node
    if ranks > cores:
        raise StudyError(
            f"{where / 'program' / 'command'}: {ranks} ranks are more than the {cores} cores of machine {machine.name}: "
            "ranks that share a core distort the times of collectives"
        )
    nodes = nodes_in(words, ranks, Path(entry["folder"])) if machine.kind == "slurm" else None
    if nodes and nodes > machine.nodes:
        raise StudyError(
            f"{where / 'program' / 'command'}: it uses {nodes} nodes, machine {machine.name} has {machine.nodes}"
        )
    application = Application(
        name,
        name.removeprefix("tune-"),
        entry["command"],
        ranks,
        folder=entry["folder"],
        limit_s=entry.get("limit_s", PROGRAM_LIMIT_S),
        nodes=nodes,
    )
    return Tuned((), policy, sampling, application, entry.get("runs", RUNS), float(entry.get("worth_pct", WORTH_PCT)))
