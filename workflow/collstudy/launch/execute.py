"""Determine where a block runs, and execute a command there with a time limit, in its own process group."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from collstudy.base.errors import StudyError
from collstudy.launch import programs
from collstudy.launch.slurm_env import (
    Job,
    clean_environment,
    compress_counts,
    current_job,
    describe_nodes,
    launcher_environment,
)
from collstudy.launch.toolchain import mpi_environment
from collstudy.study.machines import Machine

#: Prefixes of environment variables that can change a measurement and are stored with it.
_KEPT = (
    "OMPI_",
    "PRTE_",
    "PMIX_",
    "COLL_",
    "UCX_",
    "UCC_",
    "HCOLL_",
    "FI_",
    "PSM2_",
    "PSM3_",
    "MPIR_",
    "I_MPI_",
    "SMPI_",
    "SLURM_JOB_ID",
    "OMP_NUM_THREADS",
)


def kept(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are stored with a measurement."""
    return {name: value for name, value in environment.items() if name.startswith(_KEPT)}


class LaunchFailed(Exception):
    """A launch crashed, exceeded its time limit, or printed no measurement; *printed* is its output until then."""

    def __init__(self, reason: str, printed: str = ""):
        super().__init__(reason)
        self.printed = printed


class Crashed(LaunchFailed):
    """The command of a launch ended with an error."""


@dataclass(frozen=True)
class Allocation:
    """The hosts of a block, the environment for launchers there, facts about the hosts, and the end of the Slurm job, if it has one.
    `hostnames`: what the hosts call themselves, if launchers know them by other names.

    On this computer launchers get none of the variables of a Slurm job, with which they would start the ranks on its nodes. The command
    of a user's program has another environment (`users`): on this computer it gets all variables. Both have those of the machine's file.
    """

    hosts: list[str]
    environment: dict[str, str]
    users: dict[str, str]
    facts: dict[str, Any]
    end: datetime.datetime | None = None
    hostnames: Sequence[str] = ()

    @property
    def reported(self) -> list[str]:
        """Return the names of the hosts in the reports of ranks and launchers."""
        return list(self.hostnames or self.hosts)


def slurm_job(machine: Machine) -> Job:
    """Return the Slurm job of this process, which a machine of kind slurm needs. Raises StudyError outside of a job."""
    here = platform.node()
    job = current_job(os.environ, here)
    if job is None:
        raise StudyError(
            f"machine {machine.name} is of kind slurm, but {here} is not in a Slurm job: use ./study run STUDY -- --profile slurm, "
            "or run in an allocation (salloc)"
        )
    return job


def allocation(machine: Machine, nodes: int) -> Allocation:
    """Return this computer, or the nodes of the Slurm job of this process. Raises StudyError if they are unsuitable."""
    here = platform.node()
    state = {here: {"kernel": platform.release(), **processor_state()}}
    if machine.kind != "slurm":
        hosts = [here] if machine.emulated_nodes == 1 else [f"emulated{i}" for i in range(machine.emulated_nodes)]
        own = mpi_environment(clean_environment(os.environ)) | machine.environment
        return Allocation(hosts[:nodes], own, mpi_environment() | machine.environment, {"nodes": state})
    job = slurm_job(machine)
    if len(job.nodes) < nodes:
        raise StudyError(
            f"Slurm job {job.id} has {len(job.nodes)} node{'s' * (len(job.nodes) != 1)}, but the block needs {nodes}"
        )
    hosts = list(job.nodes[:nodes])
    environment = mpi_environment(launcher_environment(os.environ, job)) | machine.environment
    slurm = {"job": job.id, "partition": job.partition, "cpus": list(job.cpus[:nodes])}
    described = describe_nodes(hosts, environment) or state
    # Slurm may count threads as processors: the ranks of a program fill the cores of a node, like those of the cells, before the next.
    cores = compress_counts(tuple(min(count, machine.cores_per_node) for count in job.cpus))
    users = environment | {"SLURM_TASKS_PER_NODE": cores}
    return Allocation(hosts, environment, users, {"slurm": slurm, "nodes": described}, job.end, job.hostnames[:nodes])


class Ended(NamedTuple):
    """A finished command: its output, its wait status as returned by the system, and its memory usage.

    `peak_memory_mb` is the largest resident set size (MB) of any single local process of the command: for the simulator, a
    single process, this is the total; for a launcher and its ranks, it is that of the largest process.
    """

    printed: str
    status: int
    peak_memory_mb: float


class Started(NamedTuple):
    """A running command: its process group, and functions that wait for its end up to a number of seconds (None: still running) and that
    return what it has printed until now, if that is known.
    """

    group: int
    wait: Callable[[float], Ended | None]
    printed: Callable[[], str] = str


#: Function that starts a command in a folder and a new process group, with standard output and standard error merged.
Start = Callable[[Sequence[str], dict[str, str], Path], Started]


def spawn(words: Sequence[str], environment: dict[str, str], folder: Path) -> Started:
    """Start a command as a new process."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True, env=environment, cwd=folder,
    )  # fmt: skip
    ended: list[Ended] = []
    lines: list[str] = []
    finished = threading.Event()

    def watch() -> None:
        ended.append(_wait(process, lines))
        finished.set()

    # A thread is needed: only a blocking wait returns the memory usage, and polling would perturb the measurement.
    threading.Thread(target=watch, daemon=True).start()

    def wait(limit_s: float) -> Ended | None:
        # Not Thread.join(): after it was interrupted by a signal, it no longer waits.
        return ended[0] if finished.wait(limit_s) else None

    return Started(process.pid, wait, lambda: "".join(lines))


def execute(
    command: Sequence[str | Path],
    limit_s: float,
    log: TextIO,
    environment: dict[str, str],
    folder: Path,
    start: Start = spawn,
    parts: Callable[[str], int] = lambda printed: 0,
) -> Ended:
    """Run *command* in *folder*; write its output (standard output and standard error merged) to *log* as well.

    The process group is terminated at the time limit or if this process is interrupted. The limit is that of one of the *parts* that have
    begun according to the output: it begins again if there are more of them.
    Raises Crashed if the command ends with an error, and LaunchFailed at the time limit or if the command cannot be started.
    """
    words = [str(word) for word in command]
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    try:
        started = start(words, environment, folder)
    except OSError as error:  # no such file, not executable, not a program, too many processes
        raise LaunchFailed(f"{error.filename or words[0]}: {error.strerror}") from None
    ended, killed, begun = None, None, 0
    try:
        while (ended := started.wait(limit_s)) is None and (now := parts(started.printed())) > begun:
            begun = now
    finally:
        if ended is None:
            killed = _terminate(started)
    log.write((ended or killed or Ended("", 0, 0)).printed)
    if ended is None:
        raise LaunchFailed(f"time limit: not finished after {limit_s:g} s", killed.printed if killed else "")
    code = os.waitstatus_to_exitcode(ended.status)
    if code != 0:
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        launcher = next(word for word in words if word != "env" and "=" not in word)
        raise Crashed(
            f"crash: {Path(launcher).name} ended with {how}{programs.complaint(ended.printed)}", ended.printed
        )
    return ended


def _wait(process: subprocess.Popen[str], lines: list[str]) -> Ended:
    """Add the lines that a process prints to *lines* until it ends."""
    with process.stdout:
        for line in process.stdout:
            lines.append(line)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended("".join(lines), status, usage.ru_maxrss * 1024 / 1e6)  # KiB to MB


def _terminate(started: Started) -> Ended | None:
    """Terminate a process group with SIGTERM and then SIGKILL."""
    # The starter of simulations may have got the same signal as this process: that must not hide why the launch ends.
    with contextlib.suppress(LaunchFailed):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.group, number)
            if ended := started.wait(3):
                return ended
    return None


def processor_state() -> dict[str, str]:
    """Return frequency governor and SMT state, which affect timings, as far as the kernel reports them."""
    state = {}
    for name, path in (("governor", "cpu0/cpufreq/scaling_governor"), ("smt", "smt/control")):
        with contextlib.suppress(OSError):
            state[name] = Path("/sys/devices/system/cpu", path).read_text().strip()
    return state
