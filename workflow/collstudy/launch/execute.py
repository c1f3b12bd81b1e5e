"""Place of a block and execution of one command there: time limit, own process group, memory usage."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from collstudy.base.errors import StudyError
from collstudy.launch import programs
from collstudy.launch.slurm_env import current_job, describe_nodes, launcher_environment
from collstudy.launch.toolchain import mpi_environment
from collstudy.study.machines import Machine

#: Prefixes of environment variables that can change a measurement and are kept with it.
KEPT_ENVIRONMENT = (
    "OMPI_",
    "PRTE_",
    "PMIX_",
    "COLL_",
    "UCX_",
    "MPIR_",
    "I_MPI_",
    "SMPI_",
    "SLURM_JOB_ID",
    "OMP_NUM_THREADS",
)


class LaunchFailed(Exception):
    """A launch that crashed, exceeded its time limit, or did not print a measurement; *printed* is what it did print."""

    def __init__(self, reason: str, printed: str = ""):
        super().__init__(reason)
        self.printed = printed


class Crashed(LaunchFailed):
    """A launch whose command ended with an error."""


@dataclass(frozen=True)
class Allocation:
    """Place of a block: its hosts, the environment of launchers there, and facts about the hosts."""

    hosts: list[str]
    environment: dict[str, str]
    facts: dict[str, Any]


def allocation(machine: Machine, nodes: int) -> Allocation:
    """This computer, or the nodes of the Slurm job of this process. Raises StudyError if they are unsuitable."""
    here = platform.node()
    state = {here: {"kernel": platform.release(), **_processor_state()}}
    if machine.kind != "slurm":
        hosts = [here] if machine.emulated_nodes == 1 else [f"emulated{i}" for i in range(machine.emulated_nodes)]
        return Allocation(hosts[:nodes], mpi_environment(), {"nodes": state})
    job = current_job(os.environ, here)
    if job is None:
        raise StudyError(
            f"machine {machine.name} is of kind slurm, but {here} is not in a Slurm job: use snakemake --profile slurm, "
            "or start snakemake in an allocation (salloc)"
        )
    if len(job.nodes) < nodes:
        raise StudyError(f"Slurm job {job.id} has {len(job.nodes)} nodes, but the block needs {nodes}")
    hosts = list(job.nodes[:nodes])
    environment = mpi_environment(launcher_environment(os.environ, job))
    slurm = {"job": job.id, "partition": job.partition, "cpus": list(job.cpus[:nodes])}
    described = describe_nodes(hosts, environment) or state
    return Allocation(hosts, environment, {"slurm": slurm, "nodes": described})


class Ended(NamedTuple):
    """A finished command: its output, its exit status as given by the system, and its memory.

    `peak_memory_mb` is the largest resident set (MB) of any one local process of the command: for the simulator, a single
    process, its total; for a launcher and its ranks, that of the largest process.
    """

    printed: str
    status: int
    peak_memory_mb: float


class Started(NamedTuple):
    """A running command: its process group, and a function that waits for its end, at most so many seconds (None: not ended)."""

    group: int
    wait: Callable[[float], Ended | None]


#: Starts a command with an environment in a folder, standard output and errors together, in a process group of its own.
Start = Callable[[Sequence[str], dict[str, str], Path], Started]


def spawn(words: Sequence[str], environment: dict[str, str], folder: Path) -> Started:
    """Start a command as a process of its own."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True, env=environment, cwd=folder,
    )  # fmt: skip
    ended: list[Ended] = []
    # A thread: only a blocking wait returns the memory usage, and polling would perturb the measurement.
    watch = threading.Thread(target=lambda: ended.append(_wait(process)), daemon=True)
    watch.start()

    def wait(limit_s: float) -> Ended | None:
        watch.join(limit_s)
        return ended[0] if ended else None

    return Started(process.pid, wait)


def execute(
    command: Sequence[str | Path],
    limit_s: float,
    log: TextIO,
    environment: dict[str, str],
    folder: Path,
    start: Start = spawn,
) -> Ended:
    """Run *command* in *folder*, standard output and errors together; the output goes to the log as well.

    The process group is terminated at the time limit or if this process is interrupted.
    Raises Crashed if the command ends with an error, LaunchFailed at the time limit.
    """
    words = [str(word) for word in command]
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    started = start(words, environment, folder)
    ended, killed = None, None
    try:
        ended = started.wait(limit_s)
    finally:
        if ended is None:
            killed = _end(started)
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


def _wait(process: subprocess.Popen[str]) -> Ended:
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(printed, status, usage.ru_maxrss / 1024)


def _end(started: Started) -> Ended | None:
    """Terminate a process group: SIGTERM, then SIGKILL."""
    ended = None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.group, number)
        ended = ended or started.wait(3)
        if ended:
            break
    return ended


def _processor_state() -> dict[str, str]:
    """Frequency governor and SMT state, if the kernel reports them: both change timings."""
    state = {}
    for name, path in (("governor", "cpu0/cpufreq/scaling_governor"), ("smt", "smt/control")):
        with contextlib.suppress(OSError):
            state[name] = Path("/sys/devices/system/cpu", path).read_text().strip()
    return state
