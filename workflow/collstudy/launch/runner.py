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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.clock import clock
from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi, output, programs
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
#: Cells in one launch at most, because a launch that fails is repeated without one of them.
MOST_TURNS = 64


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
                for position, tasks in enumerate(together(unfinished)):
                    with contextlib.ExitStack() as locks:
                        # In one order, or two runners would wait for each other.
                        for task in sorted(tasks, key=lambda task: task.work.digest):
                            locks.enter_context(self.store.lock(task.work))
                        self._launch(tasks, Path(scratch), {"seed": seed, "position": position})
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

    def _launch(self, tasks: list[Task], scratch: Path, order: dict[str, Any]) -> None:
        """Do the work of a task, or of cells that share a launch, once, and store each result or the reason of its failure.

        The caller holds the locks.
        """
        if not isinstance(tasks[0].work, Cell | Run):
            self._make(tasks[0])
            return
        # What another block was faster with is left out.
        tasks = [task for task in tasks if self._unfinished(task)]
        records = [self.store.read(task.work) for task in tasks]
        if not tasks:
            return
        for task, record in zip(tasks, records, strict=True):
            self.log.write(f"\n== {task.work.label}: launch {len(record.launches) + 1}\n")
        for task, record, done in zip(tasks, records, self._results(tasks, records, scratch, order), strict=True):
            if done is not None:
                self._keep(task, record, *done)
        self.log.flush()

    def _results(
        self, tasks: list[Task], records: list[Record], scratch: Path, order: dict[str, Any]
    ) -> list[tuple[dict[str, Any] | None, dict[str, Any] | Exception] | None]:
        """Verification and launch, or the problem instead of a launch, of each task; None for cells whose turn never came."""
        proofs = [record.proof for record in records]
        running = range(len(tasks))
        try:
            work = tasks[0].work
            if isinstance(work, Run):
                return [(None, self._run(work, scratch, len(records[0].launches) + 1, order))]
            cells = [task.work for task in tasks if isinstance(task.work, Cell)]
            if not work.deterministic and (new := [i for i in running if proofs[i] is None]):
                running = new
                for i, proof in zip(new, self._prove([cells[i] for i in new], scratch), strict=True):
                    proofs[i] = proof
                running = range(len(tasks))
            numbers = [len(record.launches) + 1 for record in records]
            return list(zip(proofs, self._measure(cells, scratch, numbers, order), strict=True))
        except (LaunchFailed, StudyError) as problem:
            self._give_up_if_ending()
            guilty = in_turn(problem, running)
            return [(proof, problem) if i in guilty else None for i, proof in enumerate(proofs)]

    def _keep(self, task: Task, record: Record, proof: dict[str, Any] | None, done: dict[str, Any] | Exception) -> None:
        """Store a launch, or the reason why there is none."""
        work = task.work
        assert isinstance(work, Cell | Run)
        record = replace(record, proof=proof)
        try:
            if isinstance(done, Exception):
                raise done
            with_it = replace(record, launches=(*record.launches, done), failure=None)
            check_launches(with_it, work)
            record = with_it
            self.measured += 1
        except (LaunchFailed, StudyError) as problem:
            self.log.write(f"FAILED: {problem}\n")
            if not self._tried_again(work, problem):
                self.failed[work.digest] = str(problem)
            record = replace(record, failure={"reason": str(problem), "log": self.log.name, "time": _now()})
        self.store.write(work, record, record.stop(work, task.policy))

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

    def _prove(self, cells: list[Cell], scratch: Path) -> list[dict[str, Any]]:
        """The verification of a cell, or of cells that share a launch."""
        cell = cells[0]
        machine, hosts = self.block.machine, self.place.hosts
        placement = cell.place(machine)
        # Every rank writes its messages: the folder of a Slurm block is visible on all nodes.
        shared = self.store.results if machine.kind == "slurm" and cell.nodes > 1 else scratch
        with tempfile.TemporaryDirectory(prefix=".proof-", dir=shared.resolve()) as name:
            launcher = launcher_of(cell)
            command = launcher.proof_command(machine, cell, placement, Path(name), hosts)
            if cell.shares_start:
                # Without a spread: it selects nothing, and synchronised clocks need communicators of their own.
                command += ["-i", "1", "-x", "0", *turns_of([replace(one, spread_us=None) for one in cells])]
            environment = launcher.environment(machine, cell, {}, self.place.environment, Path(name))
            printed = execute(command, machine.launch_time_limit_s, self.log, environment, Path(name)).printed
            written = sum(path.stat().st_size > 0 for path in Path(name).glob("messages.*.prof"))
            if launcher.watched(cell) and written < cell.processes:
                # Otherwise a full disk would be taken for another algorithm.
                raise LaunchFailed(
                    f"verification: {written} of {cell.processes} ranks wrote their messages (is the disk full?)"
                )
            if cell.shares_start:
                return openmpi.judge_turns(cells, printed, Path(name), placement, hosts, machine.bound)
            return [launcher.judge(cell, printed, Path(name), placement, hosts, bound=machine.bound)]

    def _measure(
        self, cells: list[Cell], scratch: Path, numbers: list[int], order: dict[str, Any]
    ) -> list[dict[str, Any] | Exception]:
        """The launch of a cell, or of cells that share one: for each its part, or what is wrong with it."""
        cell = cells[0]
        application = cell.collective in APPLICATIONS
        machine = self.block.machine
        command = launcher_of(cell).prepare(machine, cell, cell.place(machine), scratch, self.place.hosts)
        if not application:
            command += ["-f"] * (cell.collective not in POINT_TO_POINT) + ["-w"] * cell.windows
            command += ["-s", f"{cell.spread_us:g}"] if cell.spread_us and not cell.shares_start else []
            command += ["-i", str(cell.iterations), "-x", str(cell.warmup)]
        if cell.shares_start:
            command += turns_of(cells)
        elif cell.sizes:
            command += ["-m", ":".join(map(str, cell.sizes))]
        started, clock = _now(), time.monotonic()
        environment = self._environment(cell, scratch)
        # A block's simulations share one start of the simulator.
        start = self.starter.start if cell.deterministic else spawn
        limit_s = self.block.machine.launch_time_limit_s * len(cells)
        ended = execute(command, limit_s, self.log, environment, scratch, start)
        # Cells that share a launch have equal parts of its time.
        seconds = (time.monotonic() - clock) / len(cells)
        self._launches += 1
        parts = output.turns(ended.printed) if cell.shares_start else [ended.printed]
        found: list[dict[str, Any] | Exception] = []
        for turn, (one, number) in enumerate(zip(cells, numbers, strict=True)):
            about = self._provenance(command, environment, started, seconds, ended, order)
            about["order"] |= {"turn": turn, "turns": len(cells)} if cell.shares_start else {}
            try:
                found.append({"launch": number, **self._read(one, parts[turn]), "provenance": about})
            except (LaunchFailed, IndexError) as problem:
                found.append(
                    problem if isinstance(problem, LaunchFailed) else LaunchFailed("output: its turn is missing")
                )
        return found

    def _read(self, cell: Cell, printed: str) -> dict[str, Any]:
        """What a launch of a cell printed: its samples, and the report of the collectives library. Raises LaunchFailed."""
        try:
            application = cell.collective in APPLICATIONS
            samples = programs.parse(printed) if application else output.parse(printed, cell.row_sizes)
        except StudyError as problem:
            raise LaunchFailed(f"output: {problem}") from None
        own = library_report(printed, cell.collective) if cell.selection.by_library else None
        if own and own["left_pct"] is None and variable(cell.collective) in cell.selection.library:
            # Otherwise the MPI library's own algorithm would be measured.
            raise LaunchFailed(
                f"library: the collectives library executed no {cell.collective} (did LD_PRELOAD reach the ranks?)"
            )
        return {"samples": samples, **({"library": own} if own else {})}

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
            "order": dict(order),
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


def together(tasks: Sequence[Task]) -> list[list[Task]]:
    """The launches of a round: a task each, and one for all cells of a placement that share it."""
    groups: dict[Any, list[Task]] = {}
    for task in tasks:
        cell, key = task.work, (task.work.digest,)
        if isinstance(cell, Cell) and cell.shares_start:
            key = (*cell.point[1:], cell.nodes, cell.cycle, str(cell.hosts), cell.iterations, cell.warmup)
        groups.setdefault(key, []).append(task)
    return [group[at : at + MOST_TURNS] for group in groups.values() for at in range(0, len(group), MOST_TURNS)]


def turns_of(cells: Sequence[Cell]) -> list[str]:
    """The options of collbench for cells that share a launch."""
    return [word for cell in cells for word in ("-t", openmpi.turn_of(cell))]


def in_turn(problem: Exception, tasks: Sequence[int]) -> set[int]:
    """Those of *tasks* that a failed launch is held against: the cell whose turn it was, all where there are no turns."""
    begun = len(output.turns(getattr(problem, "printed", "")))
    return {tasks[begun - 1]} if 0 < begun <= len(tasks) else set(tasks)


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
