"""Run one block: make the launches that the store lacks, one after another, and store each one as soon as it ends."""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.clock import clock, now
from collstudy.base.errors import StudyError
from collstudy.base.files import locked
from collstudy.base.progress import tell
from collstudy.launch.execute import Crashed, LaunchFailed, allocation
from collstudy.launch.launches import Launches, in_turn
from collstudy.launch.replay import replay
from collstudy.launch.slurm_env import why_ending
from collstudy.launch.trace import trace
from collstudy.plan.blocks import Block, Task, left
from collstudy.plan.estimates import limit_s
from collstudy.store.records import Damaged, Record, check_record
from collstudy.store.store import Store
from collstudy.study.cells import Cell
from collstudy.study.traces import Replay, Run, Trace
from collstudy.study.work import counted, verb

PROGRESS_SECONDS = 5.0
#: Maximum number of cells in one launch; a failed launch is repeated without the cell that failed.
MOST_TURNS = 256
#: The signals that end a block: Ctrl-C, from Slurm or Snakemake, and of a closed terminal.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class BlockRunner:
    """The state of a block's run: hosts, launches, failed cells, and progress."""

    def __init__(self, block: Block, results: Path, log: TextIO, report: Callable[[str], None]):
        self.block = block
        self.store = Store(results)
        self.log = log
        self.report = report
        self.place = allocation(block.machine, block.nodes)
        self.launches = Launches(block, self.place, self.store.results, log)
        self.failed: dict[str, str] = {}
        self._crashed: set[str] = set()
        self._waited = False
        self.measured = 0
        self._last_report = 0.0
        self._all = counted(task.work for task in block.tasks)

    def run(self) -> None:
        """Make rounds over the unfinished cells, each round in a new random order, with one launch per cell."""
        self._set_aside_damaged()
        unfinished = [task for task in self.block.tasks if self._unfinished(task)]
        seconds = left(self.block, self.store).seconds
        self.report(
            f"{self.block.name}: {len(unfinished)} of {self._all} to "
            f"{verb(task.work for task in self.block.tasks)}, about {clock(seconds)} on {', '.join(self.place.hosts)}"
        )
        started, number = time.time_ns(), 0
        with tempfile.TemporaryDirectory(prefix="collstudy-") as scratch, contextlib.closing(self.launches):
            while unfinished:
                # A block that continues after an interruption makes new rounds: launches of one round follow each other.
                seed = f"{self.block.name}:{started}:{number}"
                random.Random(seed).shuffle(unfinished)
                unfinished.sort(key=lambda task: self.store.read(task.work).failure is not None)
                for position, tasks in enumerate(together(self._behind(unfinished))):
                    if self._ends_too_soon(tasks):
                        continue
                    with contextlib.ExitStack() as locks:
                        # Take the locks in a fixed order, so that two runners cannot deadlock.
                        for task in sorted(tasks, key=lambda task: task.work.digest):
                            locks.enter_context(self.store.lock(task.work))
                        locks.enter_context(self._alone())
                        self._launch(tasks, Path(scratch), {"seed": seed, "position": position})
                    self._progress()
                unfinished = [t for t in unfinished if t.work.digest not in self.failed and self._unfinished(t)]
                number += 1
        done = counted(task.work for task in self.block.tasks if task.work.digest not in self.failed)
        self.report(f"{self.block.name}: {done} complete, {len(self.failed)} failed")
        for label, reason in self.failures():
            self.report(f"{self.block.name}: FAILED {label}: {reason}")

    def _behind(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks of a round: of a program's runs only those with the fewest launches, because the n-th runs are compared and
        must follow each other; an interrupted round is thus completed first.
        """
        made = {t.work.digest: len(self.store.read(t.work).launches) for t in tasks if isinstance(t.work, Run)}
        fewest = min(made.values(), default=0)
        return [task for task in tasks if made.get(task.work.digest, fewest) == fewest]

    def _ends_too_soon(self, tasks: list[Task]) -> bool:
        """Return whether these tasks failed before, and Slurm might end the job before their time limit: then they stay failed. If they
        hang, Slurm would otherwise end every job of this block, and no run would complete.
        """
        failures = [self.store.read(task.work).failure for task in tasks]
        if self.place.end is None or None in failures:
            return False
        rest_s = (self.place.end - datetime.datetime.now()).total_seconds()
        limit = max(limit_s(task.work, self.block.machine) for task in tasks)
        if rest_s > limit:
            return False
        for task, failure in zip(tasks, failures, strict=True):
            said = f" (not retried: it may take {clock(limit)}, and Slurm ends the job before)"
            self.failed[task.work.digest] = failure["reason"] + said if failure else ""
        return True

    def failures(self) -> Iterator[tuple[str, str]]:
        """Yield label and reason of each cell that failed."""
        for task in self.block.tasks:
            if task.work.digest in self.failed:
                yield task.work.label, self.failed[task.work.digest]

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """Return a lock against other launches on the same cores: of another run on this computer, or of another block in this Slurm
        job (if snakemake was started in an allocation, it runs several at once). Simulated time does not depend on them.
        """
        if self.block.machine.kind == "simulated":
            return contextlib.nullcontext()
        job = self.place.facts.get("slurm", {}).get("job", "here")
        path = Path(tempfile.gettempdir()) / f"collstudy-{os.getuid()}-{job}.lock"

        def waiting() -> None:
            if not self._waited:
                self.report(f"{self.block.name}: takes turns with another block or run on the same cores ({path})")
            self._waited = True

        return locked(path, waiting)

    def _set_aside_damaged(self) -> None:
        for task in self.block.tasks:
            with self.store.lock(task.work):
                try:
                    self.store.read(task.work)
                except Damaged as damage:
                    aside = self.store.set_aside(task.work)
                    self.report(
                        f"{self.block.name}: damaged cell file set aside as {aside}, {verb([task.work], 'ing')} again ({damage})"
                    )

    def _unfinished(self, task: Task) -> bool:
        record = self.store.read(task.work)
        return record.failure is not None or record.stop(task.work, task.policy) is None

    def _launch(self, tasks: list[Task], scratch: Path, order: dict[str, Any]) -> None:
        """Launch a task, or cells that share a launch, once, and store each result or the reason of its failure.

        The caller holds the locks.
        """
        if not isinstance(tasks[0].work, Cell | Run):
            self._trace_or_replay(tasks[0])
            return
        # Another block may have completed some of these tasks in the meantime.
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
        """Verify and launch; return (verification, launch or exception) for each task, and None for cells whose turn never came."""
        proofs = [record.proof for record in records]
        numbers = [len(record.launches) + 1 for record in records]
        running = range(len(tasks))
        try:
            work = tasks[0].work
            if isinstance(work, Run):
                self._refuse_failed_program(work)
                return [(None, self.launches.run(work, scratch, numbers[0], order))]
            cells = [task.work for task in tasks if isinstance(task.work, Cell)]
            if not work.deterministic and (new := [i for i in running if proofs[i] is None]):
                running = new
                for i, proof in zip(new, self.launches.prove([cells[i] for i in new], scratch), strict=True):
                    proofs[i] = proof
                running = range(len(tasks))
            return list(zip(proofs, self.launches.measure(cells, scratch, numbers, order), strict=True))
        except (LaunchFailed, StudyError) as problem:
            self._give_up_if_ending()
            guilty = in_turn(problem, running)
            return [(proof, problem) if i in guilty else None for i, proof in enumerate(proofs)]

    def _keep(self, task: Task, record: Record, proof: dict[str, Any] | None, done: dict[str, Any] | Exception) -> None:
        """Store a launch, or the reason why it failed."""
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
            if not self._will_retry(work, problem):
                self.failed[work.digest] = str(problem)
            record = replace(record, failure={"reason": str(problem), "log": self.log.name, "time": now()})
        self.store.write(work, record, record.stop(work, task.policy))

    def _will_retry(self, work: Cell | Run, problem: Exception) -> bool:
        """Return whether the next round launches a failed cell again: once after a crash, because launchers sometimes fail to start."""
        if (
            not isinstance(problem, Crashed)
            or not isinstance(work, Cell)
            or work.deterministic
            or work.digest in self._crashed
        ):
            return False
        self._crashed.add(work.digest)
        self.report(f"{self.block.name}: {work.label}: {problem}; relaunching once")
        return True

    def _trace_or_replay(self, task: Task) -> None:
        """Trace an application, or replay a trace, and store the resulting folder. The caller holds its lock."""
        if not self._unfinished(task):
            return
        parent = self.store.file(task.work).parent.parent
        parent.mkdir(parents=True, exist_ok=True)
        stage = parent.resolve() / f".stage-{task.work.digest[:16]}"
        # A killed run left it.
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir()
        try:
            if isinstance(task.work, Trace):
                about = trace(task.work, self.place, stage, self.log)
            else:
                assert isinstance(task.work, Replay)
                about = replay(task.work, self.store, stage, self.log, self.launches.starter.start)
            if about["failure"]:
                self._give_up_if_ending()
                self.log.write(f"FAILED: {about['failure']}\n")
                self.failed[task.work.digest] = about["failure"]
            self.store.keep(task.work, stage, about)
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def ending(self) -> str:
        """Return why Slurm is ending the job that runs this block; "" if it is not."""
        job = self.place.facts.get("slurm", {}).get("job")
        return why_ending(job, self.place.environment) if job else ""

    def _give_up_if_ending(self) -> None:
        """Exit if Slurm is ending the job: Slurm ends a launch's processes first, and then the launch has not failed."""
        if self.ending():
            sys.exit(143)

    def _refuse_failed_program(self, run: Run) -> None:
        """Raise LaunchFailed if the program already crashed or timed out in another variant, to avoid waiting for it again."""
        works = [task.work for task in self.block.tasks if isinstance(task.work, Trace | Run)]
        for other in works:
            if other.application == run.application and other.digest in self.failed:
                raise LaunchFailed(self.failed[other.digest])

    def _progress(self) -> None:
        seconds = time.monotonic()
        if seconds - self._last_report < PROGRESS_SECONDS or not self.measured:
            return
        self._last_report = seconds
        rest = left(self.block, self.store)
        rest = replace(rest, tasks=tuple(task for task in rest.tasks if task.work.digest not in self.failed))
        done = len(self.block.tasks) - len(rest.tasks) - len(self.failed)
        self.report(
            f"{self.block.name}: {done} of {self._all}, {len(self.failed)} failed, about {clock(rest.seconds)} left"
        )


def together(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group the tasks of a round into launches: one task each, or all cells of a placement that share a launch."""
    groups: dict[Any, list[Task]] = {}
    for task in tasks:
        cell, key = task.work, (task.work.digest,)
        if isinstance(cell, Cell) and cell.shares_start:
            key = (*cell.point[1:], cell.nodes, cell.cycle, str(cell.hosts), cell.iterations, cell.warmup)
        groups.setdefault(key, []).append(task)
    return [group[at : at + MOST_TURNS] for group in groups.values() for at in range(0, len(group), MOST_TURNS)]


def check_launches(record: Record, cell: Cell | Run) -> None:
    """Raise LaunchFailed if the record has values that the store would reject."""
    try:
        check_record(record, cell.row_sizes)
    except ValueError as problem:
        raise LaunchFailed(f"output: {problem}") from None


def _end(number: int, frame: object) -> None:
    """Handle the first signal that ends a block; a second one must not interrupt the termination of the launch."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def run_block(block: Block, results: Path, log_path: Path) -> dict[str, str]:
    """Run *block*; return the labels of failed cells with their reasons. Progress goes to standard output."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    # As exceptions, so that the running launch is terminated as well and does not disturb later ones.
    for number in ENDING:
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP, `&` SIGINT
            signal.signal(number, _end)
    store = Store(results)

    def report(line: str) -> None:
        tell(line, sys.stdout)
        log.write(line + "\n")

    with open(log_path, "a", encoding="utf-8") as log:
        # A job left by a killed snakemake may still run this block: wait until it ends; its launches are kept.
        with store.block_lock(block.name):
            runner = BlockRunner(block, results, log, report)
            try:
                runner.run()
            except SystemExit:
                # Slurm's signal can reach a launch or this process first.
                if why := runner.ending():
                    report(f"{block.name}: {why}; earlier launches are stored, the interrupted one is discarded")
                raise
        return dict(runner.failures())
