"""Run one block: measure what the store lacks, one launch after another, and keep each as soon as it is done."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TextIO

from collstudy.base.errors import StudyError
from collstudy.launch import hydra, openmpi, output, programs, simulator
from collstudy.launch.rulesfile import rules_environment
from collstudy.launch.slurm_env import current_job, describe_nodes, launcher_environment, why_ending
from collstudy.launch.toolchain import mpi_environment, mpis, preloadable, spack_lock
from collstudy.plan.blocks import Block, Task, left
from collstudy.store.store import Damaged, Store
from collstudy.study.cells import Cell, variable
from collstudy.study.config import APPLICATIONS, POINT_TO_POINT

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
#: Libraries that Hydra starts.
HYDRA = ("mpich", "impi")
PROGRESS_SECONDS = 5.0


class LaunchFailed(Exception):
    """A launch that crashed, took too long, or printed something else than a measurement."""


@dataclass(frozen=True)
class Allocation:
    """Where a block runs: its hosts, the environment of launchers there, and what is known of them."""

    hosts: list[str]
    environment: dict[str, str]
    facts: dict[str, Any]


def allocation(block: Block) -> Allocation:
    """This computer, or the nodes of the Slurm job that this process runs in. Raises StudyError where they do not do."""
    here = platform.node()
    state = {here: {"kernel": platform.release(), **_processor_state()}}
    if block.machine.kind != "slurm":
        return Allocation([here], mpi_environment(), {"nodes": state})
    job = current_job(os.environ, here)
    if job is None:
        raise StudyError(
            f"machine {block.machine.name} is of kind slurm, and {here} is in no Slurm job: use snakemake --profile slurm, "
            "or start snakemake in an allocation (salloc)"
        )
    if len(job.nodes) < block.nodes:
        raise StudyError(f"Slurm job {job.id} has {len(job.nodes)} nodes, the block needs {block.nodes}")
    hosts = list(job.nodes[: block.nodes])
    environment = mpi_environment(launcher_environment(os.environ, job))
    slurm = {"job": job.id, "partition": job.partition, "cpus": list(job.cpus[: block.nodes])}
    nodes = describe_nodes(job, hosts, environment) or state
    return Allocation(hosts, environment, {"slurm": slurm, "nodes": nodes})


class Ended(NamedTuple):
    """A command that came to its end: what it printed, its exit status as the system gives it, and its memory.

    `peak_memory_mb` is the largest resident set (MB) of any one process of the command here: of the simulator, which is one
    process, all that it used; of a launcher and its ranks, that of the largest.
    """

    printed: str
    status: int
    peak_memory_mb: float


def execute(command: list[str | Path], limit_s: float, log: TextIO, environment: dict[str, str], folder: Path) -> Ended:
    """Run *command* in *folder*, standard output and errors together; all it prints goes to the log as well.

    The whole process group is ended when the time limit is reached or this process is interrupted.
    Raises LaunchFailed with the reason.
    """
    words = [str(word) for word in command]
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True, env=environment, cwd=folder,
    )  # fmt: skip
    ended: list[Ended] = []
    # A thread, because only a wait without a time limit tells the memory, and a wait that looks again and again is noise.
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
        raise LaunchFailed(f"time limit: no end after {limit_s:g} s")
    code = os.waitstatus_to_exitcode(ended[0].status)
    if code != 0:
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        launcher = next(word for word in words if word != "env" and "=" not in word)
        raise LaunchFailed(f"crash: {Path(launcher).name} ended with {how}{programs.complaint(printed)}")
    return ended[0]


def _wait(process: subprocess.Popen[str]) -> Ended:
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(printed, status, usage.ru_maxrss / 1024)


def _end(group: int, watch: threading.Thread) -> None:
    """End a process group, politely and then for good."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        watch.join(3)
        if not watch.is_alive():
            return


class BlockRunner:
    """State of one block's run: what each of its cells has, what failed, and how far it is."""

    def __init__(self, block: Block, results: Path, log: TextIO, report: Callable[[str], None]):
        self.block = block
        self.store = Store(results)
        self.log = log
        self.report = report
        self.place = allocation(block)
        self.software = software_of(block)
        self.failed: dict[str, str] = {}
        self.measured = 0
        self._last_report = 0.0
        self._started = time.monotonic()
        self._launches = 0

    def run(self) -> None:
        """Rounds over the unfinished cells, each in a newly shuffled order, one launch of each cell a round."""
        self._set_aside_damaged()
        unfinished = [task for task in self.block.tasks if self._unfinished(task)]
        seconds = left(self.block, self.store).seconds
        self.report(
            f"{self.block.name}: {len(unfinished)} of {len(self.block.tasks)} cells to measure, about {clock(seconds)}"
            f" on {', '.join(self.place.hosts)}"
        )
        number = 0
        with tempfile.TemporaryDirectory(prefix="collstudy-") as scratch:
            while unfinished:
                seed = f"{self.block.name}:{number}"
                random.Random(seed).shuffle(unfinished)
                for position, task in enumerate(unfinished):
                    with self.store.lock(task.cell):
                        self._launch(task, Path(scratch), {"seed": seed, "position": position})
                    self._progress()
                unfinished = [t for t in unfinished if t.cell.digest not in self.failed and self._unfinished(t)]
                number += 1
        done = len(self.block.tasks) - len(self.failed)
        self.report(f"{self.block.name}: {done} cells complete, {len(self.failed)} failed")
        for label, reason in self.failures():
            self.report(f"{self.block.name}: FAILED {label}: {reason}")

    def failures(self) -> Iterator[tuple[str, str]]:
        """Label and reason of each cell that failed."""
        for task in self.block.tasks:
            if task.cell.digest in self.failed:
                yield task.cell.label, self.failed[task.cell.digest]

    def _set_aside_damaged(self) -> None:
        for task in self.block.tasks:
            with self.store.lock(task.cell):
                try:
                    self.store.read(task.cell)
                except Damaged as damage:
                    aside = self.store.set_aside(task.cell)
                    self.report(f"{self.block.name}: damaged cell file set aside as {aside}, measured again ({damage})")

    def _unfinished(self, task: Task) -> bool:
        record = self.store.read(task.cell)
        return record.failure is not None or record.stop(task.cell, task.policy) is None

    def _launch(self, task: Task, scratch: Path, order: dict[str, Any]) -> None:
        """Measure a cell once and keep the result, or why there is none. The caller holds the cell's lock."""
        cell, record = task.cell, self.store.read(task.cell)
        if record.failure is None and record.stop(cell, task.policy):
            return  # another block was faster
        self.log.write(f"\n== {cell.label}: launch {len(record.launches) + 1}\n")
        try:
            if record.proof is None and not cell.deterministic:
                record = replace(record, proof=self._prove(cell, scratch))
            launch = self._measure(cell, scratch, len(record.launches) + 1, order)
            record = replace(record, launches=(*record.launches, launch), failure=None)
            self.measured += 1
        except (LaunchFailed, StudyError) as problem:
            job = self.place.facts.get("slurm", {}).get("job")
            if job and (ending := why_ending(job, self.place.environment)):
                # Slurm ends the launch's processes first: that says nothing about the cell.
                self.report(f"{self.block.name}: {ending}; what was measured is kept, the launch that it hit is not")
                sys.exit(143)
            self.log.write(f"FAILED: {problem}\n")
            self.failed[cell.digest] = str(problem)
            record = replace(record, failure={"reason": str(problem), "log": self.log.name, "time": _now()})
        self.log.flush()
        self.store.write(cell, record, record.stop(cell, task.policy))

    def _environment(self, cell: Cell, scratch: Path) -> dict[str, str]:
        chosen = dict(cell.selection.get("library", {}))
        if chosen and "rules" in cell.selection:
            chosen |= rules_environment(cell)
        if chosen:
            chosen |= {"COLL_VERBOSE": "1"} | self._told(cell, scratch)
        if chosen and not cell.deterministic:
            already = self.place.environment.get("LD_PRELOAD")
            library = mpis()[cell.mpi["name"]].build / "coll" / "libcollstudy.so"
            own = str(preloadable(library, scratch, seen_by_all=self.block.machine.kind != "slurm"))
            chosen["LD_PRELOAD"] = f"{already}:{own}" if already else own
        environment = {**self.place.environment, **chosen}
        return self._told_environment(cell, environment)

    def _told_environment(self, cell: Cell, environment: dict[str, str]) -> dict[str, str]:
        """The environment in which an MPI library is started, and one of Hydra's told its algorithm; Open MPI is told by arguments."""
        if cell.deterministic:
            return environment
        environment = mpis()[cell.mpi["name"]].environment(environment)
        return environment | (hydra.selection_environment(cell) if cell.mpi["name"] in HYDRA else {})

    def _told(self, cell: Cell, scratch: Path) -> dict[str, str]:
        """What the collectives library has to be told of the machine: a simulator has names of cores only."""
        machine = self.block.machine
        if cell.deterministic:
            return simulator.environment(machine, cell, cell.place(machine), scratch)
        return {"COLL_GROUPS": machine.groups} if machine.groups else {}

    def _command(self, cell: Cell, scratch: Path) -> list[str | Path]:
        machine = self.block.machine
        placement = cell.place(machine)
        if cell.deterministic:
            return simulator.prepare(machine, cell, placement, scratch)
        return library_of(cell).prepare(machine, cell, placement, scratch, self.place.hosts)

    def _prove(self, cell: Cell, scratch: Path) -> dict[str, Any]:
        machine, hosts = self.block.machine, self.place.hosts
        placement = cell.place(machine)
        # Every rank writes its messages: all nodes see the folder of a Slurm block.
        shared = self.store.results if machine.kind == "slurm" and cell.nodes > 1 else scratch
        with tempfile.TemporaryDirectory(prefix=".proof-", dir=shared.resolve()) as name:
            library = library_of(cell)
            command = library.proof_command(machine, cell, placement, Path(name), hosts)
            environment = self._told_environment(cell, self.place.environment)
            printed = execute(command, machine.launch_time_limit_s, self.log, environment, Path(name)).printed
            written = sum(path.stat().st_size > 0 for path in Path(name).glob("messages.*.prof"))
            if library.watched(cell) and written < cell.processes:
                # A full disk would otherwise look like another algorithm.
                raise LaunchFailed(
                    f"proof: {written} of {cell.processes} ranks wrote their messages (is the disk full?)"
                )
            return library.judge(cell, printed, Path(name), placement, hosts, bound=not machine.oversubscribe)

    def _measure(self, cell: Cell, scratch: Path, number: int, order: dict[str, Any]) -> dict[str, Any]:
        application = cell.collective in APPLICATIONS
        command = self._command(cell, scratch)
        if not application:
            command += ["-f"] * (cell.collective not in POINT_TO_POINT)
            command += ["-i", str(cell.iterations), "-x", str(cell.warmup)]
        if cell.sizes:
            command += ["-m", ":".join(map(str, cell.sizes))]
        started, clock = _now(), time.monotonic()
        environment = self._environment(cell, scratch)
        ended = execute(command, self.block.machine.launch_time_limit_s, self.log, environment, scratch)
        seconds = time.monotonic() - clock
        printed = ended.printed
        self._launches += 1
        try:
            samples = programs.parse(printed) if application else output.parse(printed, cell.row_sizes)
        except StudyError as problem:
            raise LaunchFailed(f"output: {problem}") from None
        own = library_report(printed, cell.collective) if "library" in cell.selection else None
        if own and own["left_pct"] is None and variable(cell.collective) in cell.selection["library"]:
            # The numbers would be those of the MPI library's own algorithm.
            raise LaunchFailed(
                f"library: the collectives library did no {cell.collective} (did LD_PRELOAD reach the ranks?)"
            )
        return {
            "launch": number,
            "samples": samples,
            **({"library": own} if own else {}),
            "provenance": {
                "command": shlex.join(str(word) for word in command),
                "environment": {k: v for k, v in environment.items() if k.startswith(KEPT_ENVIRONMENT)},
                "started": started,
                "seconds": round(seconds, 3),
                "peak_memory_mb": round(ended.peak_memory_mb),
                "exit_status": 0,
                "host": platform.node(),
                "hosts": self.place.hosts,
                **self.place.facts,
                "software": self.software,
                "order": order,
            },
        }

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._last_report < PROGRESS_SECONDS or not self._launches:
            return
        self._last_report = now
        rest = left(self.block, self.store)
        rest = replace(rest, tasks=tuple(task for task in rest.tasks if task.cell.digest not in self.failed))
        done = len(self.block.tasks) - len(rest.tasks) - len(self.failed)
        self.report(
            f"{self.block.name}: {done} of {len(self.block.tasks)} cells, {len(self.failed)} failed, "
            f"about {clock(rest.seconds)} left"
        )


def library_of(cell: Cell) -> ModuleType:
    """The module that starts a real cell and judges its proof."""
    return hydra if cell.mpi["name"] in HYDRA else openmpi


def library_report(printed: str, collective: str) -> dict[str, Any]:
    """What the collectives library says of itself at the end (COLL_VERBOSE): {setup_us, left_pct}.

    `setup_us` is the time that finding nodes and groups and making communicators took, all in the first call for a
    communicator and a root (the most of any rank); `left_pct` how many of the calls of *collective* it left to the MPI library,
    None where it was not to do any.
    """
    setup = re.search(r"^libcollstudy: set-up: \d+ times, ([\d.]+) s", printed, re.MULTILINE)
    counts = re.search(
        rf"^libcollstudy: {collective}: (\d+) calls, (\d+) left to the MPI library", printed, re.MULTILINE
    )
    return {
        "setup_us": round(float(setup.group(1)) * 1e6, 3) if setup else None,
        "left_pct": round(100 * int(counts.group(2)) / int(counts.group(1)), 3) if counts else None,
    }


def _processor_state() -> dict[str, str]:
    """Frequency governor and SMT state where the kernel tells them: both change timings."""
    state = {}
    for name, path in (("governor", "cpu0/cpufreq/scaling_governor"), ("smt", "smt/control")):
        with contextlib.suppress(OSError):
            state[name] = Path("/sys/devices/system/cpu", path).read_text().strip()
    return state


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_of(block: Block) -> dict[str, str]:
    """Versions and places of what runs a block, and the digest of the Spack lock. Raises StudyError for another MPI."""
    found = {"python": platform.python_version()}
    wanted = {task.cell.mpi["version"] for task in block.tasks if task.cell.mpi["name"] == "openmpi"}
    if wanted:
        mpi = openmpi.library()
        if wanted != {mpi.version}:
            raise StudyError(
                f"{block.name}: planned with Open MPI {', '.join(sorted(wanted))}, but {mpi.mpirun} here is {mpi.version}: "
                "load the same module where snakemake runs and in the job"
            )
        found |= {"openmpi": mpi.version, "mpirun": str(mpi.mpirun)}
    for name in HYDRA:
        wanted = {task.cell.mpi["version"] for task in block.tasks if task.cell.mpi["name"] == name}
        if wanted and wanted != {(mpi := hydra.library(name)).version}:
            raise StudyError(
                f"{block.name}: planned with {name} {', '.join(sorted(wanted))}, but {mpi.mpirun} is {mpi.version}"
            )
        if wanted:
            found |= {name: mpi.version, f"mpirun_{name}": str(mpi.mpirun)}
    lock = spack_lock()
    if lock:
        found["spack_lock_sha256"] = hashlib.sha256(lock.read_bytes()).hexdigest()
    return found


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def run_block(block: Block, results: Path, log_path: Path) -> dict[str, str]:
    """Run *block*; returns the failed cells' labels with their reasons. Progress goes to standard output."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    # SIGTERM (Slurm, a batch system, Snakemake) becomes an exception, so that the running launch is ended with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    store = Store(results)

    def report(line: str) -> None:
        print(line, flush=True)
        log.write(line + "\n")

    with open(log_path, "a", encoding="utf-8") as log:
        # The job of a snakemake that was killed may still run this very block: it goes first, and what it keeps is kept.
        with store.block_lock(block.name):
            runner = BlockRunner(block, results, log, report)
            runner.run()
        return dict(runner.failures())
