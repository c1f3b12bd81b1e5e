"""Place of a block and execution of one command there: time limit, own process group, memory usage."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import signal
import subprocess
import threading
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
    """A launch that crashed, exceeded its time limit, or did not print a measurement."""


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


def execute(command: list[str | Path], limit_s: float, log: TextIO, environment: dict[str, str], folder: Path) -> Ended:
    """Run *command* in *folder*, standard output and errors together; the output goes to the log as well.

    The process group is terminated at the time limit or if this process is interrupted.
    Raises Crashed if the command ends with an error, LaunchFailed at the time limit.
    """
    words = [str(word) for word in command]
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True, env=environment, cwd=folder,
    )  # fmt: skip
    ended: list[Ended] = []
    # A thread: only a blocking wait returns the memory usage, and polling would perturb the measurement.
    watch = threading.Thread(target=lambda: ended.append(_wait(process)), daemon=True)
    watch.start()
    try:
        watch.join(limit_s)
    finally:
        late = watch.is_alive()
        if late:
            _end(process.pid, watch)
    printed = ended[0].printed if ended else ""
    log.write(printed)
    if late:
        raise LaunchFailed(f"time limit: not finished after {limit_s:g} s")
    code = os.waitstatus_to_exitcode(ended[0].status)
    if code != 0:
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        launcher = next(word for word in words if word != "env" and "=" not in word)
        raise Crashed(f"crash: {Path(launcher).name} ended with {how}{programs.complaint(printed)}")
    return ended[0]


def _wait(process: subprocess.Popen[str]) -> Ended:
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(printed, status, usage.ru_maxrss / 1024)


def _end(group: int, watch: threading.Thread) -> None:
    """Terminate a process group: SIGTERM, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        watch.join(3)
        if not watch.is_alive():
            return


def _processor_state() -> dict[str, str]:
    """Frequency governor and SMT state, if the kernel reports them: both change timings."""
    state = {}
    for name, path in (("governor", "cpu0/cpufreq/scaling_governor"), ("smt", "smt/control")):
        with contextlib.suppress(OSError):
            state[name] = Path("/sys/devices/system/cpu", path).read_text().strip()
    return state
