"""Applications of a study: trace them once, replay the traces in the simulator, and keep both.

A trace and a replay are measurements like cells: each has an identity (all that decides what comes out), a digest of it, and a
folder `results/traces/<readable>-<digest>` or `results/replays/...` that appears as a whole when it is there. A job gets a request,
a self-contained file in `results/applications/`, and reads nothing else.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import platform as system
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.errors import StudyError
from collstudy.base.files import locked, to_csv, write_atomically, write_if_changed
from collstudy.base.paths import SETUP
from collstudy.launch import simulator, tracefile
from collstudy.launch.actions import write_actions
from collstudy.launch.openmpi import library
from collstudy.launch.runner import KEPT_ENVIRONMENT, LaunchFailed, allocation, execute
from collstudy.launch.toolchain import SIMULATED, simulator_version
from collstudy.plan.blocks import Block, slurm_request
from collstudy.sources.collect import CELL_COLUMNS, MEASUREMENT_COLUMNS
from collstudy.study.cells import Versions, canonical, library_text, machine_identity, variable
from collstudy.study.config import Application, Catalogue, Level, Machine, ReplayPlan, Study
from collstudy.study.placement import place

#: Raise it when the meaning of a trace's or a replay's identity changes: stored ones then no longer count.
TRACE_IDENTITY, REPLAY_IDENTITY = 1, 1
#: Name of the replay that is compared with.
DEFAULT = "default"


def _digest(identity: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(identity)).hexdigest()


@dataclass(frozen=True)
class Trace:
    """One application on one machine, to be traced."""

    application: Application
    machine: Machine
    identity: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity."""
        return _digest(self.identity)

    @property
    def name(self) -> str:
        """Readable parts and the first digits of the digest."""
        return f"{self.application.name}_{self.machine.name}_p{self.application.ranks}-{self.digest[:16]}"

    def folder(self, results: Path) -> Path:
        """Where it is kept."""
        return results / "traces" / self.name

    def document(self) -> dict[str, Any]:
        """The request."""
        return {
            "kind": "trace", "name": self.name, "identity": self.identity, "application": asdict(self.application),
            "machine": asdict(self.machine),
        }  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """A trace, to be replayed on a simulated machine."""

    trace: Trace
    machine: Machine
    label: str
    ranks: int
    mapping: str
    cycle: tuple[str, ...]
    algorithms: dict[str, str]
    environment: dict[str, str]
    smpi: dict[str, str]
    identity: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity."""
        return _digest(self.identity)

    @property
    def name(self) -> str:
        """Readable parts and the first digits of the digest."""
        return f"{self.trace.application.name}_{self.machine.name}_{self.mapping}_p{self.ranks}-{self.digest[:16]}"

    def folder(self, results: Path) -> Path:
        """Where it is kept."""
        return results / "replays" / self.name

    def document(self) -> dict[str, Any]:
        """The request."""
        return {
            "kind": "replay", "name": self.name, "identity": self.identity, "machine": asdict(self.machine),
            "trace": self.trace.document(), "label": self.label, "ranks": self.ranks, "mapping": self.mapping,
            "cycle": self.cycle, "algorithms": self.algorithms, "environment": self.environment, "smpi": self.smpi,
        }  # fmt: skip


Job = Trace | Replay


def read_job(document: dict[str, Any]) -> Job:
    """A job from its request."""
    raw = dict(document["machine"])
    raw["levels"] = tuple(Level(**level) for level in raw["levels"])
    machine = Machine(**raw)
    if document["kind"] == "trace":
        return Trace(Application(**document["application"]), machine, document["identity"])
    trace = read_job(document["trace"])
    assert isinstance(trace, Trace)
    return Replay(
        trace, machine, document["label"], document["ranks"], document["mapping"], tuple(document["cycle"]),
        document["algorithms"], document["environment"], document["smpi"], document["identity"],
    )  # fmt: skip


def read_request(path: Path) -> Job:
    """The job of a request file."""
    return read_job(json.loads(path.read_text(encoding="utf-8")))


# What a study asks for ----------------------------------------------------------------------------------------------


def program_of(application: Application) -> Path | None:
    """The program that the application's command begins with; None where it is not installed."""
    words = command_words(application)
    found = shutil.which(words[0])
    return Path(found) if found else None


def command_words(application: Application) -> list[str]:
    """The command as words; `{apps}` is the folder of this project's own applications."""
    return [word.replace("{apps}", str(library().build / "apps")) for word in shlex.split(application.command)]


def _trace(application: Application, machine: Machine, versions: Versions) -> Trace:
    program = program_of(application)
    identity = {
        "identity_version": TRACE_IDENTITY,
        "trace_version": tracefile.VERSION,
        "machine": machine_identity(machine, versions.host) | {"oversubscribe": machine.oversubscribe},
        "mpi": versions.mpi["openmpi"],
        "name": application.name,
        "command": application.command,
        "prepare": application.prepare,
        "ranks": application.ranks,
        # The program decides what is called: another version of it is another question.
        "program": hashlib.sha256(program.read_bytes()).hexdigest() if program else None,
    }
    return Trace(application, machine, identity)


def chosen_algorithms(catalogue: Catalogue, algorithms: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Variables of the collectives library, and SimGrid's own algorithms, that make a replay use *algorithms*.

    What is not named is Open MPI's default: by the collectives library where it has it, else SimGrid's copy of the tables.
    """
    environment, smpi = {}, {}
    for collective, entries in catalogue.algorithms.items():
        entry = entries[algorithms.get(collective, "default")]
        own = entry.get("simulated", entry.get("library"))
        if own:
            environment[variable(collective)] = library_text(own)
        elif "smpi" in entry:
            smpi[collective] = entry["smpi"]["algorithm"]
    return environment, smpi


def _replays(trace: Trace, plan: ReplayPlan, catalogue: Catalogue, versions: Versions) -> Iterator[Replay]:
    tried: list[dict[str, Any]] = [{"label": DEFAULT}]
    tried += [
        entry
        for entry in plan.alternatives
        if trace.application.name in entry.get("applications", [trace.application.name])
    ]
    for number, machine in enumerate(plan.machines):
        # Alternatives are tried on the first machine; the others show what another network does.
        for entry in tried if number == 0 else tried[:1]:
            mapping = entry.get("mapping", plan.mapping)
            algorithms = entry.get("algorithms", {})
            environment, smpi = chosen_algorithms(catalogue, algorithms)
            cycle = tuple(catalogue.mappings[mapping]["cycle"])
            identity = {
                "identity_version": REPLAY_IDENTITY,
                "trace": trace.digest,
                "machine": machine_identity(machine, {}),
                "simulator": simulator_version(),
                "library_version": versions.library,
                "ranks": plan.ranks,
                "cycle": cycle,
                "environment": environment,
                "smpi": smpi,
            }
            yield Replay(
                trace, machine, entry["label"], plan.ranks, mapping, cycle, algorithms, environment, smpi, identity
            )


def jobs(study: Study, catalogue: Catalogue, versions: Versions) -> tuple[list[Job], list[dict[str, str]]]:
    """All traces and replays of a study, and what is left out with the reason. Raises StudyError where a program is missing."""
    if study.applications and "openmpi" not in versions.mpi:
        raise StudyError("no Open MPI to run the applications with; ./study setup installs one")
    found: list[Job] = []
    left_out = []
    for application in study.applications:
        # On a cluster the program may be on its nodes only.
        if study.machine.kind == "local" and program_of(application) is None:
            program = command_words(application)[0]
            if not application.optional:
                raise StudyError(
                    f"config/studies/{study.name}.yaml: applications.{application.name}: {program} is not installed"
                )
            left_out.append(
                {"name": application.name, "label": application.label, "reason": f"{program} is not installed"}
            )
            continue
        trace = _trace(application, study.machine, versions)
        found.append(trace)
        if study.replay:
            found += _replays(trace, study.replay, catalogue, versions)
    if not found:
        raise StudyError(
            f"config/studies/{study.name}.yaml: no application can run: "
            + "; ".join(f"{entry['name']}: {entry['reason']}" for entry in left_out)
        )
    return found, left_out


# The store ----------------------------------------------------------------------------------------------------------


def read_about(job: Job, results: Path) -> dict[str, Any]:
    """What is kept of a job: {identity, failure, ...}; empty where nothing is, or what is there is damaged or outdated."""
    folder = job.folder(results)
    try:
        about = json.loads((folder / "about.json").read_bytes())
    except (OSError, ValueError):
        return {}
    if about.get("digest") != job.digest or canonical(about.get("identity")) != canonical(job.identity):
        return {}
    if isinstance(job, Replay) and not about.get("failure"):
        traced = read_about(job.trace, results)
        if not traced or traced["calls_sha256"] != about["calls_sha256"]:
            return {}  # of a trace that is gone
    if isinstance(job, Trace) and about.get("calls_sha256") and not (folder / "calls.csv.gz").exists():
        return {}
    return about


def status_of(job: Job, results: Path) -> tuple[str, str]:
    """measured, failed (with the reason) or missing."""
    about = read_about(job, results)
    if not about:
        return "missing", "not measured yet"
    if about["failure"]:
        return "failed", about["failure"]
    return "measured", ""


def pending(found: list[Job], results: Path) -> list[Job]:
    """The jobs that have to run: what is missing or failed, and replays of traces that have to run."""
    lacking: list[Job] = []
    again = set()
    for job in found:
        if status_of(job, results)[0] != "measured" or (isinstance(job, Replay) and job.trace.digest in again):
            lacking.append(job)
            again.add(job.digest)
    return lacking


def newest(found: list[Job], results: Path) -> Path | None:
    """The newest of the files that say what is kept."""
    files = [path for job in found if (path := job.folder(results) / "about.json").exists()]
    return max(files, key=lambda path: path.stat().st_mtime_ns, default=None)


def plan(found: list[Job], name: str, results: Path) -> tuple[list[Path], list[str]]:
    """Write the requests of what has to run; returns the markers of these jobs, and a line that says how many they are."""
    lacking = pending(found, results)
    for job in lacking:
        write_request(job, results)
    traced = sum(isinstance(job, Trace) for job in found)
    to_trace = sum(isinstance(job, Trace) for job in lacking)
    line = (
        f"{name}: {traced - to_trace} of {traced} traces are stored, {to_trace} to make; "
        f"{len(found) - traced - (len(lacking) - to_trace)} of {len(found) - traced} replays are stored, {len(lacking) - to_trace} to make"
    )
    return [marker(job, results) for job in lacking], [line] if lacking else []


def write_request(job: Job, results: Path) -> Path:
    """Write the job's request, named after it, and return its path."""
    path = results / "applications" / f"{job.name}.json"
    write_if_changed(path, json.dumps(job.document(), indent=1).encode() + b"\n")
    return path


def marker(job: Job, results: Path) -> Path:
    """The file that says that a job was run. One that is there already is of an earlier run."""
    kind = "replayed" if isinstance(job, Replay) else "traced_here" if job.machine.kind == "local" else "traced"
    attempt = 1
    while (path := results / "applications" / f"{job.name}.{attempt}.{kind}").exists():
        attempt += 1
    return path


def _keep(job: Job, results: Path, stage: Path, about: dict[str, Any]) -> None:
    """Move a finished folder to its place, in one step; what was there before (a failure, another trace's) goes."""
    about = {"digest": job.digest, "identity": job.identity, **about}
    write_atomically(stage / "about.json", json.dumps(about, indent=1).encode() + b"\n")
    target = job.folder(results)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.chmod(stage, 0o755)
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
        os.rename(target, old / "old")
        os.rename(stage, target)
        shutil.rmtree(old)
    else:
        os.rename(stage, target)


# Running ------------------------------------------------------------------------------------------------------------


def run(request: Path, results: Path, log_path: Path) -> None:
    """Run the job of a request, unless what it asks for is kept already. A failure is kept and fails nobody else."""
    job = read_request(request)
    log_path.parent.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with (
        open(log_path, "a", encoding="utf-8") as log,
        locked(results / ".locks" / f"{job.digest[:16]}.lock"),
    ):
        if status_of(job, results)[0] == "measured":
            return
        parent = job.folder(results).parent
        parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".stage-", dir=parent.resolve()))
        try:
            about = _trace_once(job, stage, log) if isinstance(job, Trace) else _replay_once(job, results, stage, log)
            _keep(job, results, stage, about)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        if about["failure"]:
            log.write(f"FAILED: {about['failure']}\n")
            print(f"FAILED {job.name}: {about['failure']}", flush=True)


def trace_command(trace: Trace, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
    """The command that runs an application with the trace library in front, and the variables that it needs."""
    mpi, machine = library(), trace.machine
    # The preloaded library by its name, found in LD_LIBRARY_PATH: LD_PRELOAD cannot have blanks, which the checkout's path may.
    # An application that was linked with another build of Open MPI runs with this one: both are libmpi.so.40.
    folders = [str(mpi.build / "trace")]
    beside = mpi.bin.parent / "lib"
    if list(beside.glob("libmpi.so*")):
        folders.append(str(beside))
    settings = {
        "LD_PRELOAD": "libcolltrace.so",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [*folders, os.environ.get("LD_LIBRARY_PATH")])),
        "COLLTRACE_FOLDER": str(folder),
        # The trace knows the time of the thread that calls MPI: one thread a rank, unless the command says otherwise.
        "OMP_NUM_THREADS": "1",
    }
    ranks, words = str(trace.application.ranks), command_words(trace.application)
    if machine.kind == "slurm" and machine.slurm.get("launcher") == "srun":
        command: list[str | Path] = ["srun", f"--mpi={machine.slurm.get('srun_mpi', 'pmix')}", "-n", ranks]
        command += ["--overcommit"] if machine.oversubscribe else []
        return [*command, *words], settings
    command = [mpi.mpirun, "-n", ranks]
    if machine.oversubscribe:
        command += ["--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return [*command, *(part for key, value in settings.items() for part in ("-x", f"{key}={value}")), *words], {}


def _nodes(trace: Trace) -> int:
    return min(trace.machine.nodes, math.ceil(trace.application.ranks / trace.machine.cores_per_node))


def _trace_once(trace: Trace, stage: Path, log: TextIO) -> dict[str, Any]:
    """Run the application in a folder of its own and make the table of its calls in *stage*; what died on the way is kept, too."""
    machine, application = trace.machine, trace.application
    place_ = allocation(Block(machine, "openmpi", _nodes(trace), ()))
    failure, printed, table = "", "", {}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=stage) as name:
        work, ranks = Path(name) / "work", Path(name) / "ranks"
        work.mkdir()
        ranks.mkdir()
        command, settings = trace_command(trace, ranks)
        environment = {**place_.environment, **settings}
        started, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
        try:
            if application.prepare:
                execute(
                    ["bash", "-euc", application.prepare], machine.launch_time_limit_s, log, place_.environment, work
                )
            printed = execute(command, machine.launch_time_limit_s, log, environment, work).printed
        except LaunchFailed as problem:
            failure = str(problem)
        seconds = time.monotonic() - clock
        try:
            table = tracefile.collect(ranks, application.ranks, stage / "calls.csv.gz")
        except StudyError as problem:
            (stage / "calls.csv.gz").unlink(missing_ok=True)
            failure = failure or f"trace: {problem}"
    if table and not table["complete"]:
        failure = failure or "trace: " + "; ".join(table["problems"][:3])
    provenance = {
        "command": shlex.join(str(word) for word in command), "prepare": application.prepare, "started": started,
        "seconds": round(seconds, 3), "host": system.node(), **place_.facts,
        "environment": {k: v for k, v in environment.items() if k.startswith(KEPT_ENVIRONMENT)},
        "printed": printed[-2000:],
    }  # fmt: skip
    about = {"failure": failure, "label": application.label, "trace": table, "provenance": provenance}
    if table:
        about["calls_sha256"] = hashlib.sha256((stage / "calls.csv.gz").read_bytes()).hexdigest()
    return about


def _replay_once(replay: Replay, results: Path, stage: Path, log: TextIO) -> dict[str, Any]:
    """Replay in the simulator; the log of the traffic goes to *stage*."""
    traced = read_about(replay.trace, results)
    about: dict[str, Any] = {
        "failure": "", "label": replay.label, "machine": replay.machine.name, "mapping": replay.mapping,
        "algorithms": replay.algorithms, "calls_sha256": traced.get("calls_sha256"),
    }  # fmt: skip
    if not traced or traced["failure"]:
        return about | {"failure": "there is no complete trace to replay"}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=stage) as name:
        work = Path(name)
        (work / "traffic").mkdir()
        clock = time.monotonic()
        try:
            command, environment = replay_command(replay, results, traced, work)
            execute(command, replay.machine.launch_time_limit_s, log, environment, work)
            run_ = {row["key"]: float(row["value"]) for row in _rows(work / "traffic" / "run.csv")}
        except (LaunchFailed, StudyError, OSError) as problem:
            return about | {"failure": f"replay: {problem}"}
        for file in ("ports.csv", "intervals.csv", "operations.csv", "pairs.csv"):
            shutil.move(work / "traffic" / file, stage / file)
        with open(work / "traffic" / "links.csv", "rb") as plain, gzip.open(stage / "links.csv.gz", "wb", 4) as packed:
            shutil.copyfileobj(plain, packed)
    return about | {
        "makespan_us": run_["makespan_us"],
        "messages": int(run_["messages"]),
        "interval_us": run_["interval_us"],
        "provenance": {
            "command": shlex.join(str(word) for word in command),
            "environment": replay.environment,
            "seconds": round(time.monotonic() - clock, 3),
            "host": system.node(),
        },
    }


def replay_command(
    replay: Replay, results: Path, traced: dict[str, Any], work: Path
) -> tuple[list[str | Path], dict[str, str]]:
    """Write everything that a replay reads to *work* and return its command, to be run there, with its environment."""
    machine = replay.machine
    ranks = replay.trace.application.ranks
    write_actions(replay.trace.folder(results) / "calls.csv.gz", traced["trace"]["communicators"], ranks, work)
    hosts = work / "hosts.txt"
    placement = place(machine, list(replay.cycle), machine.nodes, replay.ranks, None)
    write_atomically(hosts, "".join(core.name + "\n" for core in placement).encode())
    described, variables = simulator.platform(machine, hosts, work)
    # What the ranks find the log's functions in: the name by which smpirun loads it must not have blanks.
    (work / "platform.so").symlink_to(described.resolve())
    variables |= {"COLLSTUDY_TRAFFIC": "traffic", "COLLSTUDY_PLATFORM_LIBRARY": "./platform.so"}
    command: list[str | Path] = ["smpirun", *simulator.wrapper(variables), "-np", str(replay.ranks)]
    command += ["-platform", "./platform.so", "-hostfile", hosts.name]
    command += simulator.options_of(machine, "smpi-openmpi", replay.smpi)
    program = SETUP / "build" / SIMULATED / "replay" / "replay"
    return [*command, "--log=root.thres:warning", program, ".", str(ranks)], {**os.environ, **replay.environment}


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def slurm_resources(request: Path, attempt: int) -> dict[str, Any]:
    """What a trace's job asks Slurm for; nothing on this computer."""
    job = read_request(request)
    if job.machine.kind != "slurm" or not isinstance(job, Trace):
        return {}
    setup = job.machine.slurm.get("setup_minutes", 2)
    runtime = math.ceil(setup + attempt * job.machine.launch_time_limit_s / 60)
    return {"runtime": runtime, **slurm_request(job.machine, _nodes(job))}


# What a study has ---------------------------------------------------------------------------------------------------


def describe(study: Study, found: list[Job], left_out: list[dict[str, str]]) -> dict[str, Any]:
    """What study.json says of applications: where their traces and replays are, and how they are replayed."""
    entries = []
    for trace in (job for job in found if isinstance(job, Trace)):
        application = trace.application
        entries.append(
            {
                "name": application.name, "label": application.label, "description": application.description,
                "command": application.command, "ranks": application.ranks, "trace": f"traces/{trace.name}",
                "replays": [
                    {
                        "label": job.label, "machine": job.machine.name, "machine_label": job.machine.label,
                        "mapping": job.mapping, "algorithms": job.algorithms, "folder": f"replays/{job.name}",
                        "tree": job.machine.simulation["fat_tree"],
                    }
                    for job in found
                    if isinstance(job, Replay) and job.trace.digest == trace.digest
                ],
            }
        )  # fmt: skip
    plan = study.replay
    replay = (
        {"ranks": plan.ranks, "mapping": plan.mapping, "machines": [m.name for m in plan.machines]} if plan else None
    )
    return {
        "applications": entries, "left_out": left_out, "replay": replay,
        "how": {
            "suite": "applications", "suite_version": "", "mpi": "openmpi", "mpi_version": library().version,
            "simulator": "SimGrid SMPI" if plan else "", "simulator_version": (simulator_version() or "") if plan else "",
            "oversubscribed": study.machine.oversubscribe,
        },
        "cells": hashlib.sha256(canonical([job.digest for job in found])).hexdigest(),
    }  # fmt: skip


def collect_study(study: Study, found: list[Job], results: Path, folder: Path) -> None:
    """Write cells.csv (each trace and replay with its status) and measurements.csv (how long each took) of a study.

    `collective` is the application; `algorithm` is `traced` or the replay's label; `latency_us` is the run time of the traced
    application, from MPI_Init to MPI_Finalize, or the makespan of the replay.
    """
    cells, rows = [], []
    for job in found:
        about = read_about(job, results)
        status, reason = status_of(job, results)
        traced = isinstance(job, Trace)
        trace = job if isinstance(job, Trace) else job.trace
        common = {
            "study": study.name, "machine": job.machine.name, "simulated": not traced, "suite": "application",
            "mpi": "openmpi" if traced else "smpi-openmpi", "collective": trace.application.name,
            "algorithm": "traced" if traced else job.label, "parameters": "" if traced else f"machine={job.machine.name}",
            "mapping": "" if traced else job.mapping, "nodes": _nodes(job) if traced else job.machine.nodes,
            "processes": trace.application.ranks if traced else job.ranks, "cell": job.digest[:16],
        }  # fmt: skip
        cells.append({**common, "status": status, "reason": reason, "launches": int(status == "measured")})
        if status == "measured":
            time_us = about["trace"]["seconds"] * 1e6 if traced else about["makespan_us"]
            rows.append({**common, "launch": 1, "latency_us": round(time_us, 3)})
    write_atomically(folder / "cells.csv", to_csv(CELL_COLUMNS, cells))
    write_atomically(folder / "measurements.csv", to_csv(MEASUREMENT_COLUMNS, rows))
