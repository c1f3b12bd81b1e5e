"""Run an application with the trace library preloaded, and create the table of its MPI calls."""

from __future__ import annotations

import itertools
import platform as system
import re
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.commands import ask
from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.launch import srun, tracefile
from collstudy.launch.execute import Allocation, LaunchFailed, execute, kept
from collstudy.launch.openmpi import OVERSUBSCRIBED, library
from collstudy.launch.ran import launcher_of, preloading, ranks_in, users_own, with_variables
from collstudy.launch.slurm_env import short
from collstudy.launch.toolchain import Mpi, exporting, installed, mpi_environment
from collstudy.study.description import Application
from collstudy.study.traces import Trace


def program_of(application: Application) -> Path | None:
    """Return the program of the application's command, after `env NAME=VALUE`; None if it is not installed."""
    words = command_words(application)
    if words[0] == "env":
        words = list(itertools.dropwhile(lambda word: "=" in word, words[1:]))
    found = shutil.which(words[0]) if words else None
    return Path(found) if found else None


def command_words(application: Application) -> list[str]:
    """Split the command into words; `{apps}` stands for the folder of this project's own applications."""
    return [word.replace("{apps}", str(library().build / "apps")) for word in shlex.split(application.command)]


def _own_folder(mpi: Mpi) -> Path | None:
    """Return the folder of the MPI library beside its launcher, for LD_LIBRARY_PATH; None if the system finds the library itself."""
    beside = mpi.bin.parent / "lib"
    return beside if list(beside.glob("libmpi.so*")) else None


def _check_libraries(application: Application) -> None:
    """Raise LaunchFailed if the program's Fortran library of Open MPI is another build's than the library that it runs with.

    A Fortran library calls internal functions of its own build; the same applies to the C++ library of Open MPI 4.
    """
    program, mpi = program_of(application), library()
    if program is None:
        return
    # The folders in which the program will find its libraries.
    environment = mpi_environment() | preloading(mpi, _own_folder(mpi), None)
    printed = ask(["ldd", program], 30, environment).stdout
    files = dict(re.findall(r"^\s*(libmpi(?:_\w+)?)\.so\S* => (/.*) \(0x", printed, re.MULTILINE))
    # Compared without links: /lib is often a link to /usr/lib.
    found = {name: Path(file).resolve().parent for name, file in files.items()}
    other = next((name for name in found if "libmpi" in found and found[name] != found["libmpi"]), None)
    if other:
        raise LaunchFailed(
            f"{program} uses {other} in {found[other]}, which does not work with the Open MPI in {found['libmpi']}: put mpirun and mpicc "
            "of the program's Open MPI on PATH, with the headers (Debian: libopenmpi-dev), and run ./study setup, which then uses it"
        )


def trace_command(trace: Trace, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
    """Return the command that runs an application with the trace library preloaded, and the variables that it needs."""
    mpi, machine = library(), trace.machine
    if trace.application.folder:
        words = shlex.split(trace.application.command)
        launcher = launcher_of(words, Path(trace.application.folder))
        return with_variables(words, launcher, installed(launcher.mpi), machine.environment, folder, ran=False)
    # An application linked with another build of Open MPI runs with this one: both provide libmpi.so.40.
    # A trace records the time of the thread that calls MPI: use one thread per rank, unless the command sets another number.
    settings = preloading(mpi, _own_folder(mpi), folder) | {"OMP_NUM_THREADS": "1"} | machine.environment
    ranks, words = trace.application.ranks, command_words(trace.application)
    if srun.starts(machine):
        return [
            *srun.words(machine, mpi.name, ranks),
            *(["--overcommit"] if machine.oversubscribe else []),
            *words,
        ], settings
    command = [mpi.mpirun, "-n", str(ranks), *(OVERSUBSCRIBED if machine.oversubscribe else [])]
    return [*command, *exporting(mpi.name, settings), *words], {}


def trace(trace: Trace, place: Allocation, stage: Path, log: TextIO) -> dict[str, Any]:
    """Run the application in its folder and write the table of its calls to *stage*; partial traces are stored as well."""
    machine, application = trace.machine, trace.application
    failure, printed, table = "", "", {}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=stage) as name:
        work, ranks = Path(application.folder or Path(name) / "work"), Path(name).resolve() / "ranks"
        work.mkdir(exist_ok=True)
        ranks.mkdir()
        command, settings = trace_command(trace, ranks)
        environment = {**(place.users if application.folder else place.environment), **settings}
        limit_s = application.limit_s or machine.launch_time_limit_s
        started, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
        try:
            if application.prepare:
                execute(["bash", "-euc", application.prepare], limit_s, log, place.environment, work)
            if application.folder:
                environment = users_own(environment)
            else:
                _check_libraries(application)
            printed = execute(command, limit_s, log, environment, work).printed
        except LaunchFailed as problem:
            failure = str(problem)
        seconds = time.monotonic() - clock
        try:
            if application.folder:
                ranks_in(ranks, failure)
            table = tracefile.collect(ranks, application.ranks, stage / "calls.csv.gz")
            table |= {name: (ranks / name).exists() for name in ("threads", "ordered")}
        except StudyError as problem:
            (stage / "calls.csv.gz").unlink(missing_ok=True)
            # A program that spawns ranks may also make the launcher fail, for lack of cores: then report the spawning.
            failure = "" if (ranks / "spawned").exists() else failure
            failure = failure or (str(problem) if application.folder else f"trace: {problem}")
    others = sorted({short(host) for host in table.get("hosts", ())} - {short(system.node())})
    if machine.kind == "local" and machine.emulated_nodes == 1 and others:
        failure = failure or (
            f"the ranks ran on {', '.join(others)}, but machine {machine.name}, on which the collectives would be measured, is this "
            f"computer ({system.node()}): use a machine of kind slurm (./study probe NAME drafts its file)"
        )
    if table and not table["complete"]:
        failure = failure or "trace: " + "; ".join(table["problems"][:3])
    provenance = {
        "command": shlex.join(str(word) for word in command), "prepare": application.prepare, "started": started,
        "seconds": round(seconds, 3), "host": system.node(), **place.facts,
        "environment": kept(environment),
        "printed": printed[-2000:],
    }  # fmt: skip
    about = {"failure": failure, "label": application.label, "trace": table, "provenance": provenance}
    if table:
        about["calls_sha256"] = file_digest(stage / "calls.csv.gz")
    return about
