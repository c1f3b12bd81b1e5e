"""Progress of studies before, during and after a run, as text for users."""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from collstudy.base.clock import clock
from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.base.progress import tell
from collstudy.plan.blocks import Block, lacking, left, read_block, read_pending, still_lacking
from collstudy.project.studies import StudyState
from collstudy.sources import source_of
from collstudy.sources.source import Source
from collstudy.store.store import Store
from collstudy.study.work import counted, verb

#: Interval (s) between two reads of the store during a run.
EVERY_S = float(os.environ.get("STUDY_PROGRESS_SECONDS", "20"))

#: File in Snakemake's folder about the run that started there last.
_STARTED = "collstudy-run.json"

#: Slurm's reasons with which a job never starts, whatever other jobs do: Slurm does not allow such a job.
NEVER_STARTS = re.compile(
    r"Partition(Node|Time)Limit|PartitionConfig|BadConstraints|DependencyNeverSatisfied|Invalid(Account|QOS)|(Account|QOS)NotAllowed"
    r"|QOSMinCpuNotSatisfied|QOSTimeLimit|AssociationTimeLimit|(Assoc|QOS)Max\w+Per(Job|Node)|not permitted to use this partition"
)


def explain(
    blocks: Mapping[str, list[Block]], states: Mapping[str, StudyState], limit: float | str | None
) -> list[str]:
    """Return the missing work of a run, one line per incomplete study. Raises StudyError if it needs more than *limit* node-hours."""
    lines, hours = [], 0.0
    for name, mine in blocks.items():
        state = states[name]
        hours += state.source.node_hours_ahead()
        if not mine:
            continue
        own = sum(block.node_hours for block in mine)
        hours += own
        seconds = sum(block.seconds for block in mine)
        lines.append(
            f"{name}: {len(state.work) - len(state.lacking)} of {counted(state.work)} are stored, "
            f"{len(state.lacking)} to {verb(task.work for task in state.lacking)} in {len(mine)} block{'s' * (len(mine) != 1)}, "
            f"about {clock(seconds)} in total" + (f", {own:.2f} node-hours" if own else "")
        )
    if limit is not None:
        if hours == math.inf:
            unlimited = ", ".join(name for name in blocks if states[name].source.node_hours_ahead() == math.inf)
            raise StudyError(f"{unlimited}: max_node_hours requires sampling.budget_node_minutes in a sampled study")
        try:
            allowed = float(limit)
        except ValueError:
            allowed = math.nan
        if math.isnan(allowed):
            raise StudyError(f"max_node_hours is {limit}, not a number")
        if hours > allowed:
            raise StudyError(
                "\n".join(lines)
                + f"\nabout {hours:.2f} node-hours are needed, but max_node_hours = {allowed:g} (config/config.yaml, "
                "or --config max_node_hours=...): nothing was submitted"
            )
    return lines


def block_lists(folder: Path) -> dict[Path, int]:
    """Return the lists of blocks of a study's newest run, and when each was written (ns)."""
    # Written when the run starts; the others follow, and older ones belong to an interrupted run.
    first = folder / "pending.txt"
    others = [*folder.glob("sampling/round-*/pending.txt"), folder / "tuning" / "pending.txt", folder / "replays.txt"]
    written = {path: path.stat().st_mtime_ns for path in (first, *others) if path.exists()}
    return {path: at for path, at in written.items() if at >= written.get(first, 0)}


def block_states(results: Path, study: str, store: Store) -> dict[str, list[str]]:
    """Return the names of the blocks of a study's newest run by state: `done`, `running` (the lock is held) or `not started`."""
    found: dict[str, list[str]] = {"not started": [], "running": [], "done": []}
    markers = itertools.chain.from_iterable(map(read_pending, block_lists(results / study)))
    for path in dict.fromkeys(markers):
        name = path.name.rsplit(".", 2)[0]
        state = "done" if path.exists() else "running" if store.block_runs(name) else "not started"
        found[state].append(name)
    return found


def progress_line(name: str, state: StudyState, results: Path, store: Store) -> str:
    """Return one line about a study: cells, blocks, and the remaining time."""
    lacking = len(state.lacking)
    line = f"{name}: {len(state.work) - lacking} of {counted(state.work)} done, {state.failed} failed"
    if lacking > state.failed:
        line += f", {lacking - state.failed} remaining"
    blocks = block_states(results, name, store)
    # Also those of later rounds and those that verify tuning files, whose work was not known when the run started.
    ahead = [*blocks["running"], *blocks["not started"]]
    if ahead or (lacking and blocks["done"]):
        verifies = results / name / "tuning" / "pending.txt" in block_lists(results / name)
        line += "; verifying tuning files" * verifies
        line += "; blocks " + ", ".join(f"{len(names)} {what}" for what, names in blocks.items())
    if ahead or lacking > state.failed:
        # Blocks run in parallel: use the longest one, but at least the total time divided by the number of running blocks.
        unfinished = []
        for block in ahead:
            try:
                unfinished.append(left(read_block(results / "blocks" / f"{block}.json"), store).seconds)
            except FileNotFoundError:
                continue
        whole = sum(unfinished) or sum(task.seconds() for task in state.lacking)
        rest = max([whole / max(len(blocks["running"]), 1), *unfinished])
        line += f"; about {clock(rest)} left"
    return line


class SlurmJob(NamedTuple):
    """A block's job: its number, state, and why it waits."""

    id: str
    state: str
    reason: str


def slurm_jobs(folder: Path) -> list[SlurmJob]:
    """Return the Slurm jobs that snakemake submitted for blocks in this folder and that have not ended. Raises StudyError if squeue does
    not answer.
    """
    # Variables of the user choose what squeue shows.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}
    answer = ask(["squeue", "--me", "-h", "-o", "%i|%T|%r|%k|%Z"], 30, environment)
    if answer.returncode:
        said = answer.stderr.strip().splitlines()[-1:]
        raise StudyError("squeue does not answer" + "".join(f" ({line})" for line in said))
    jobs = []
    for line in answer.stdout.splitlines():
        *job, comment, workdir = (line.split("|", 4) + [""] * 4)[:5]
        # Another workflow may have given the rule a prefix.
        if re.match(r"rule_\w*measure_block", comment) and Path(workdir) == folder:
            jobs.append(SlurmJob(*job))
    return jobs


def waiting(folder: Path) -> list[str]:
    """Return a line on the Slurm jobs of this folder that wait, with Slurm's reasons, and one on those that never start."""
    try:
        jobs = [job for job in slurm_jobs(folder) if job.state == "PENDING" and job.reason != "None"]
    except StudyError as error:
        return [str(error)]
    if not jobs:
        return []
    count = Counter(job.reason for job in jobs).most_common()
    reasons = ", ".join(f"{number} {reason}" if len(jobs) > 1 else reason for reason, number in count)
    lines = [f"{len(jobs)} job{'s wait' if len(jobs) > 1 else ' waits'} in Slurm ({reasons})"]
    if any(re.search("Grp|Per(User|Account)", job.reason) for job in jobs):
        lines.append(
            "a limit of a user, account or group is shared: the job starts when others end, and never if it exceeds the limit alone"
        )
    if never := [job for job in jobs if NEVER_STARTS.search(job.reason)]:
        lines.append(
            f"job {', '.join(job.id for job in never)} never starts with Slurm's present limits ({never[0].reason}): end the run (Ctrl-C "
            "cancels its jobs), change partition, account, qos or times in config/machines/ or the nodes of the study, and run again"
        )
    return lines


class Progress(threading.Thread):
    """Progress of the studies of a run: one bar each on a terminal, otherwise a line for each change.

    *look* returns the state of a source; it is called when a later round has begun, because its work is known only then.
    """

    def __init__(self, states: Mapping[str, StudyState], store: Store, look: Callable[[Source], StudyState]):
        super().__init__(daemon=True, name="progress")
        self.store, self.look = store, look
        self.states = dict(states)
        self._lists = {name: block_lists(store.results / name) for name in states}
        self.ended = threading.Event()
        self.in_slurm = any(state.source.study.machine.kind == "slurm" for state in states.values())
        self._asked, self._waiting = -math.inf, list[str]()
        #: Studies that have had something to do.
        self._busy: set[str] = set()

    def run(self) -> None:
        """Read the state of missing cells periodically until the run ends."""
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._draw()
        else:
            self._print()

    def end(self) -> None:
        """Stop, and restore the terminal."""
        self.ended.set()
        if self.is_alive():
            self.join(5)

    def _current_states(self) -> Iterator[tuple[str, StudyState, str]]:
        """Yield each study that has had something to do, with its current state and its progress line."""
        for name, state in self.states.items():
            try:
                if (lists := block_lists(self.store.results / name)) != self._lists[name]:
                    source = source_of(state.source.study, state.source.context)
                    self.states[name], self._lists[name] = self.look(source), lists
                now = again(self.states[name], self.store)
                line = progress_line(name, now, self.store.results, self.store)
            except (OSError, StudyError):
                continue  # the next read may succeed
            if "; about" in line:
                self._busy.add(name)
            if name in self._busy:
                yield name, now, line

    def _tell_waiting(self) -> None:
        """Print which Slurm jobs wait, if that has changed. Jobs of later rounds are in no study's state."""
        if not self.in_slurm or time.monotonic() - self._asked < EVERY_S:
            return
        now = waiting(Path.cwd())
        for line in now:
            if line not in self._waiting:
                tell(line, sys.stderr)
        self._asked, self._waiting = time.monotonic(), now

    def _print(self) -> None:
        said: dict[str, str] = {}
        while not self.ended.wait(EVERY_S):
            for name, _, line in self._current_states():
                if line.partition("; about")[0] != said.get(name):
                    said[name] = line.partition("; about")[0]
                    tell(line, sys.stderr)
            self._tell_waiting()

    def _draw(self) -> None:
        # Imported only here because loading it takes a while.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
        from rich.progress import Progress as Bars

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rest]}")
        # Other output to standard error appears above the bars, which disappear at the end of the run.
        with Bars(
            *columns, console=Console(stderr=True), redirect_stdout=False, transient=True, refresh_per_second=2
        ) as bars:
            of: dict[str, TaskID] = {}
            while True:
                for name, now, line in self._current_states():
                    if name not in of:
                        of[name] = bars.add_task(name, total=None, rest="")
                    failed = f"{now.failed} failed  " if now.failed else ""
                    _, about, left_ = line.partition("; about ")
                    bars.update(
                        of[name],
                        description=f"{name}: {counted(now.work).partition(' ')[2]}",
                        total=len(now.work),
                        completed=len(now.work) - len(now.lacking),
                        rest=failed + ("about " + left_) * bool(about),
                    )
                self._tell_waiting()
                if self.ended.wait(min(EVERY_S, 2)):
                    break


def again(state: StudyState, store: Store) -> StudyState:
    """Return the current state, reading only the work that was missing before."""
    rest = still_lacking(state.lacking, store)
    failed = sum(have.failed for have, _ in store.summaries([task.work for task in state.lacking]))
    return replace(state, tasks={0: tuple(rest)}, failed=failed)


def run_summary(sources: Iterable[Source], succeeded: bool, refused: bool = False, listed: bool = False) -> list[str]:
    """Return the summary at the end of a run: state of each study in the store, failures, and the next step. *refused*: Slurm refused
    a job. *listed*: the last rule, which lists the failed cells, has run.
    """
    lines, machines = [], list[str]()
    failed = missing = 0
    for source in sources:
        if source.study.machine.kind == "slurm":
            folder = os.path.relpath(source.context.configuration.folder)
            machines.append(f"{folder}/machines/{source.study.machine.name}.yaml")
        # Some work is known only after a program's trace, or after the decisions to be replayed exist.
        late = source.known_after_trace or source.decided_by
        anew = source_of(source.study, source.context) if late else source
        work = anew.work()
        found = source.context.store.summaries(work)
        rest = {task.work.digest for task in lacking(work, found, anew.policy_of)}
        status = [
            have.status if have.status != "measured" else "incomplete" if item.digest in rest else verb([item], "ed")
            for item, (have, _) in zip(work, found, strict=True)
        ]
        # Imported data is not in the store.
        count = Counter(status if work else [row["status"] for row in read_csv(source.folder / "cells.csv")])
        text = ", ".join(f"{count[what]} {word}" for what, word in source.words.items() if count[what])
        collected = (source.folder / "measurements.csv").exists()
        # A study that gathers others has no cells of its own.
        lines.append(f"{source.study.name}: {text or ('collected' if collected else 'not collected')}")
        failed += count["failed"] + len(source.unverified())
        missing += count["missing"] + count["incomplete"] if work else not collected
    if succeeded:
        return lines
    if failed and listed and not missing:
        lines.append(f"{failed} failed (listed above; output in logs/measure/); all else is complete.")
        command = "the same command again to retry only what failed."
    else:
        lines.append("The run did not complete. Measurements so far are stored; the reason is above and in logs/.")
        command = "the same command again: it does only what is missing (./study status shows how much)."
    if refused and machines:
        lines.append(
            f"Slurm refused a job (above). Unless that was temporary, change {' or '.join(dict.fromkeys(machines))} (under `slurm:` "
            f"partition, account, qos and others; for the time limit `block_minutes`) or the nodes of the study, or add --jobs N if only "
            f"so many jobs are allowed; then run {command}"
        )
    else:
        lines.append(f"Run {command}")
    return lines


def left_running(folder: Path) -> list[str]:
    """Return a note about Slurm jobs that a killed snakemake in this folder left behind; [] if there are none."""
    try:
        jobs = [job.id for job in slurm_jobs(folder)]
    except StudyError:  # a dry run need not have Slurm
        return []
    if not jobs:
        return []
    return [
        f"Slurm jobs of an earlier run still process blocks of this folder: {' '.join(jobs)}. They continue: a cell is measured by one "
        f"job at a time, and cells that they store are not measured again. To stop them: scancel {' '.join(jobs)}"
    ]


def note_start(folder: Path) -> None:
    """Record which process on which host runs Snakemake here, so that a stale lock can be recognised."""
    folder.mkdir(exist_ok=True)
    (folder / _STARTED).write_text(json.dumps({"host": platform.node(), "pid": os.getpid()}) + "\n")


def verdict_given(folder: Path) -> bool:
    """Return whether the last rule of the run that started in *folder*, which lists the failed cells, has begun."""
    try:
        began = (folder / ".snakemake" / _STARTED).stat().st_mtime_ns
        logs = (folder / "logs" / name for name in ("verdict.log", "measure.log"))
        return any(log.stat().st_mtime_ns >= began for log in logs if log.exists())
    except OSError:
        return False


def stale_lock(folder: Path) -> str | None:
    """Return why a new run must not start; "" if the lock is stale; None if there is no lock."""
    locks = folder / ".snakemake" / "locks"
    if not locks.is_dir() or not any(locks.iterdir()):
        return None
    try:
        owner = json.loads((folder / ".snakemake" / _STARTED).read_text())
        host, pid = str(owner["host"]), int(owner["pid"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "the holder of this folder's lock is unknown: if no snakemake runs here, run ./study run -- --unlock"
    if host != platform.node():
        return f"a snakemake on {host} (process {pid}) holds the lock of this folder: if it has ended, run ./study run -- --unlock"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    # If ./study starts Snakemake, the command name is collstudy.
    runs = b"snakemake" in words or b"collstudy" in words
    return f"snakemake is already running here (process {pid})" if runs else ""
