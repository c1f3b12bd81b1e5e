"""Run one block: measure what the store lacks, one launch after another, and store each as soon as it is done."""

from __future__ import annotations

import contextlib
import platform
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.clock import clock
from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.launch import output, programs
from collstudy.launch.execute import KEPT_ENVIRONMENT, Crashed, Ended, LaunchFailed, allocation, execute, spawn
from collstudy.launch.launchers import launcher_of
from collstudy.launch.replay import replay
from collstudy.launch.rulesfile import rules_file
from collstudy.launch.run import run_once
from collstudy.launch.slurm_env import why_ending
from collstudy.launch.starter import Starter
from collstudy.launch.toolchain import installed, spack_lock
from collstudy.launch.trace import trace
from collstudy.plan.blocks import Block, Task, left
from collstudy.store.records import Damaged, Record, check_record
from collstudy.store.store import Store
from collstudy.study.cells import Cell, variable
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT
from collstudy.study.selection import Rules
from collstudy.study.traces import Replay, Run, Trace

PROGRESS_SECONDS = 5.0


class BlockRunner:
    """State of a block's run: records of its cells, failures, and progress."""

    def __init__(self, block: Block, results: Path, log: TextIO, report: Callable[[str], None]):
        self.block = block
        self.store = Store(results)
        self.log = log
        self.report = report
        self.place = allocation(block.machine, block.nodes)
        self.software = software_of(block)
        self.starter = Starter()
        self.failed: dict[str, str] = {}
        self._crashed: set[str] = set()
        self.measured = 0
        self._last_report = 0.0
        self._launches = 0

    def run(self) -> None:
        """Rounds over the unfinished cells, each in a newly shuffled order, with one launch per cell."""
        self._set_aside_damaged()
        unfinished = [task for task in self.block.tasks if self._unfinished(task)]
        seconds = left(self.block, self.store).seconds
        self.report(
            f"{self.block.name}: {len(unfinished)} of {len(self.block.tasks)} cells to measure, about {clock(seconds)}"
            f" on {', '.join(self.place.hosts)}"
        )
        number = 0
        with tempfile.TemporaryDirectory(prefix="collstudy-") as scratch, contextlib.closing(self.starter):
            while unfinished:
                seed = f"{self.block.name}:{number}"
                random.Random(seed).shuffle(unfinished)
                for position, task in enumerate(unfinished):
                    with self.store.lock(task.work):
                        self._launch(task, Path(scratch), {"seed": seed, "position": position})
                    self._progress()
                unfinished = [t for t in unfinished if t.work.digest not in self.failed and self._unfinished(t)]
                number += 1
        done = len(self.block.tasks) - len(self.failed)
        self.report(f"{self.block.name}: {done} cells complete, {len(self.failed)} failed")
        for label, reason in self.failures():
            self.report(f"{self.block.name}: FAILED {label}: {reason}")

    def failures(self) -> Iterator[tuple[str, str]]:
        """Label and reason of each cell that failed."""
        for task in self.block.tasks:
            if task.work.digest in self.failed:
                yield task.work.label, self.failed[task.work.digest]

    def _set_aside_damaged(self) -> None:
        for task in self.block.tasks:
            with self.store.lock(task.work):
                try:
                    self.store.read(task.work)
                except Damaged as damage:
                    aside = self.store.set_aside(task.work)
                    self.report(f"{self.block.name}: damaged cell file set aside as {aside}, measured again ({damage})")

    def _unfinished(self, task: Task) -> bool:
        record = self.store.read(task.work)
        return record.failure is not None or record.stop(task.work, task.policy) is None

    def _launch(self, task: Task, scratch: Path, order: dict[str, Any]) -> None:
        """Do a task's work once and store the result, or the reason of the failure. The caller holds its lock."""
        if not isinstance(task.work, Cell | Run):
            self._make(task)
            return
        cell, record = task.work, self.store.read(task.work)
        if record.failure is None and record.stop(cell, task.policy):
            return  # another block was faster
        self.log.write(f"\n== {cell.label}: launch {len(record.launches) + 1}\n")
        try:
            if isinstance(cell, Cell) and record.proof is None and not cell.deterministic:
                record = replace(record, proof=self._prove(cell, scratch))
            measure = self._measure if isinstance(cell, Cell) else self._run
            launch = measure(cell, scratch, len(record.launches) + 1, order)
            record = replace(record, launches=(*record.launches, launch), failure=None)
            check_launches(record, cell)
            self.measured += 1
        except (LaunchFailed, StudyError) as problem:
            self._give_up_if_ending()
            self.log.write(f"FAILED: {problem}\n")
            if not self._tried_again(cell, problem):
                self.failed[cell.digest] = str(problem)
            record = replace(record, failure={"reason": str(problem), "log": self.log.name, "time": _now()})
        self.log.flush()
        self.store.write(cell, record, record.stop(cell, task.policy))

    def _tried_again(self, work: Cell | Run, problem: Exception) -> bool:
        """Whether the next round launches a cell that failed: launchers fail to start now and then, so once after a crash."""
        if (
            not isinstance(problem, Crashed)
            or not isinstance(work, Cell)
            or work.deterministic
            or work.digest in self._crashed
        ):
            return False
        self._crashed.add(work.digest)
        self.report(f"{self.block.name}: {work.label}: {problem}; it is launched once more")
        return True

    def _make(self, task: Task) -> None:
        """Trace an application, or replay a trace, and store the resulting folder. The caller holds its lock."""
        if not self._unfinished(task):
            return
        parent = self.store.file(task.work).parent.parent
        parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".stage-", dir=parent.resolve()))
        try:
            if isinstance(task.work, Trace):
                about = trace(task.work, self.place, stage, self.log)
            else:
                assert isinstance(task.work, Replay)
                about = replay(task.work, self.store, stage, self.log)
            if about["failure"]:
                self._give_up_if_ending()
                self.log.write(f"FAILED: {about['failure']}\n")
                self.failed[task.work.digest] = about["failure"]
            self.store.keep(task.work, stage, about)
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def ending(self) -> str:
        """Why Slurm is ending the job that runs this block; empty if it is not."""
        job = self.place.facts.get("slurm", {}).get("job")
        return why_ending(job, self.place.environment) if job else ""

    def _give_up_if_ending(self) -> None:
        """Slurm ends a launch's processes before it ends the job: such a failure is not that of the launch."""
        if self.ending():
            sys.exit(143)

    def _environment(self, cell: Cell, scratch: Path) -> dict[str, str]:
        chosen = dict(cell.selection.library)
        if chosen and isinstance(cell.selection, Rules):
            # The collectives library uses the file.
            chosen["COLL_RULES"] = str(rules_file(cell.selection.text))
        if chosen:
            chosen["COLL_VERBOSE"] = "1"
        return launcher_of(cell).environment(self.block.machine, cell, chosen, self.place.environment, scratch)

    def _prove(self, cell: Cell, scratch: Path) -> dict[str, Any]:
        machine, hosts = self.block.machine, self.place.hosts
        placement = cell.place(machine)
        # Every rank writes its messages: the folder of a Slurm block is visible on all nodes.
        shared = self.store.results if machine.kind == "slurm" and cell.nodes > 1 else scratch
        with tempfile.TemporaryDirectory(prefix=".proof-", dir=shared.resolve()) as name:
            launcher = launcher_of(cell)
            command = launcher.proof_command(machine, cell, placement, Path(name), hosts)
            environment = launcher.environment(machine, cell, {}, self.place.environment, Path(name))
            printed = execute(command, machine.launch_time_limit_s, self.log, environment, Path(name)).printed
            written = sum(path.stat().st_size > 0 for path in Path(name).glob("messages.*.prof"))
            if launcher.watched(cell) and written < cell.processes:
                # Otherwise a full disk would be taken for another algorithm.
                raise LaunchFailed(
                    f"verification: {written} of {cell.processes} ranks wrote their messages (is the disk full?)"
                )
            return launcher.judge(cell, printed, Path(name), placement, hosts, bound=machine.bound)

    def _measure(self, cell: Cell, scratch: Path, number: int, order: dict[str, Any]) -> dict[str, Any]:
        application = cell.collective in APPLICATIONS
        machine = self.block.machine
        command = launcher_of(cell).prepare(machine, cell, cell.place(machine), scratch, self.place.hosts)
        if not application:
            command += ["-f"] * (cell.collective not in POINT_TO_POINT) + ["-w"] * cell.windows
            command += ["-i", str(cell.iterations), "-x", str(cell.warmup)]
        if cell.sizes:
            command += ["-m", ":".join(map(str, cell.sizes))]
        started, clock = _now(), time.monotonic()
        environment = self._environment(cell, scratch)
        # A block's simulations share one start of the simulator.
        start = self.starter.start if cell.deterministic else spawn
        ended = execute(command, self.block.machine.launch_time_limit_s, self.log, environment, scratch, start)
        seconds = time.monotonic() - clock
        printed = ended.printed
        self._launches += 1
        try:
            samples = programs.parse(printed) if application else output.parse(printed, cell.row_sizes)
        except StudyError as problem:
            raise LaunchFailed(f"output: {problem}") from None
        own = library_report(printed, cell.collective) if cell.selection.by_library else None
        if own and own["left_pct"] is None and variable(cell.collective) in cell.selection.library:
            # Otherwise the MPI library's own algorithm would be measured.
            raise LaunchFailed(
                f"library: the collectives library executed no {cell.collective} (did LD_PRELOAD reach the ranks?)"
            )
        return {
            "launch": number,
            "samples": samples,
            **({"library": own} if own else {}),
            "provenance": self._provenance(command, environment, started, seconds, ended, order),
        }

    def _run(self, run: Run, scratch: Path, number: int, order: dict[str, Any]) -> dict[str, Any]:
        """Run a program once; one that died or hanged in another way to run it is not waited for again."""
        works = [task.work for task in self.block.tasks if isinstance(task.work, Trace | Run)]
        for other in works:
            if other.application == run.application and other.digest in self.failed:
                raise LaunchFailed(self.failed[other.digest])
        started = _now()
        shared = self.store.results if self.block.machine.kind == "slurm" and run.nodes > 1 else scratch
        timed = run_once(run, self.place, shared, self.log)
        about = self._provenance(timed.command, timed.environment, started, timed.seconds, timed.ended, order)
        return {"launch": number, "samples": [timed.sample], "ran": timed.ran, "provenance": about}

    def _provenance(
        self, command: list[str | Path], environment: dict[str, str], started: str, seconds: float, ended: Ended,
        order: dict[str, Any],
    ) -> dict[str, Any]:  # fmt: skip
        """How a launch came about."""
        return {
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
        }

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._last_report < PROGRESS_SECONDS or not self._launches:
            return
        self._last_report = now
        rest = left(self.block, self.store)
        rest = replace(rest, tasks=tuple(task for task in rest.tasks if task.work.digest not in self.failed))
        done = len(self.block.tasks) - len(rest.tasks) - len(self.failed)
        self.report(
            f"{self.block.name}: {done} of {len(self.block.tasks)} cells, {len(self.failed)} failed, "
            f"about {clock(rest.seconds)} left"
        )


def check_launches(record: Record, cell: Cell | Run) -> None:
    """Raise LaunchFailed for a launch with values that the store would reject."""
    try:
        check_record(record, cell)
    except ValueError as problem:
        raise LaunchFailed(f"output: {problem}") from None


def library_report(printed: str, collective: str) -> dict[str, Any]:
    """The final report of the collectives library (COLL_VERBOSE): {setup_us, left_pct}.

    `setup_us` is the time to find nodes and groups and to create communicators, spent in the first call for a
    communicator and a root (maximum over ranks); `left_pct` is the share of calls of *collective* left to the MPI library,
    None if it was not selected for any.
    """
    setup = re.search(r"^libcollstudy: set-up: \d+ times, ([\d.]+) s", printed, re.MULTILINE)
    counts = re.search(
        rf"^libcollstudy: {collective}: (\d+) calls, (\d+) left to the MPI library", printed, re.MULTILINE
    )
    return {
        "setup_us": round(float(setup.group(1)) * 1e6, 3) if setup else None,
        "left_pct": round(100 * int(counts.group(2)) / int(counts.group(1)), 3) if counts else None,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_of(block: Block) -> dict[str, str]:
    """Versions and paths of the software that runs a block, and the digest of the Spack lock. Raises StudyError for another MPI."""
    found = {"python": platform.python_version()}
    wanted = {(task.work.mpi["name"], task.work.mpi["version"]) for task in block.tasks if not task.work.deterministic}
    for name, version in sorted(wanted):
        mpi = installed(name)
        if version != mpi.version:
            raise StudyError(
                f"{block.name}: planned with {mpi.label} {version}, but {mpi.mpirun} is {mpi.version}: "
                "load the same module where snakemake runs and in the job"
            )
        found |= {name: mpi.version, "mpirun" if name == "openmpi" else f"mpirun_{name}": str(mpi.mpirun)}
    lock = spack_lock()
    if lock:
        found["spack_lock_sha256"] = file_digest(lock)
    return found


def run_block(block: Block, results: Path, log_path: Path) -> dict[str, str]:
    """Run *block*; returns the failed cells' labels with their reasons. Progress goes to standard output."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    # SIGTERM (Slurm, Snakemake) becomes an exception, so that the running launch is terminated as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    store = Store(results)

    def report(line: str) -> None:
        print(line, flush=True)
        log.write(line + "\n")

    with open(log_path, "a", encoding="utf-8") as log:
        # The job of a killed snakemake may still run this block: it goes first, and its launches are kept.
        with store.block_lock(block.name):
            runner = BlockRunner(block, results, log, report)
            try:
                runner.run()
            except SystemExit:
                # Slurm's signal reaches either a launch first, or this process.
                if why := runner.ending():
                    report(f"{block.name}: {why}; earlier launches are stored, the interrupted one is discarded")
                raise
        return dict(runner.failures())
