"""Launch a cell, cells that share a start, or a user's program, and collect what is stored of each launch."""

from __future__ import annotations

import platform
import re
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.clock import now
from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi, output, programs
from collstudy.launch.execute import Allocation, Ended, LaunchFailed, execute, kept, spawn
from collstudy.launch.launchers import launcher_of
from collstudy.launch.rulesfile import rules_file
from collstudy.launch.run import run_once
from collstudy.launch.slurm_env import short
from collstudy.launch.starter import Starter
from collstudy.launch.toolchain import Mpi, chosen, installed, source_version, spack_lock, suite_of
from collstudy.plan.blocks import Block
from collstudy.study.cells import Cell, variable
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT
from collstudy.study.placement import Core
from collstudy.study.selection import Library, Rules
from collstudy.study.traces import Run
from collstudy.study.work import Work


class Launches:
    """The hosts and software of a block's launches; all its simulations share one start of the simulator.

    *scratch* is a folder for the files of a launch, *results* a folder visible on all nodes, *order* the launch's position in its
    round.
    """

    def __init__(self, block: Block, place: Allocation, results: Path, log: TextIO):
        self.machine = block.machine
        self.place = place
        self.results = results
        self.log = log
        self.software = software_of(block)
        self.starter = Starter()

    def close(self) -> None:
        """End the simulator process that launches share."""
        self.starter.close()

    def prove(self, cells: list[Cell], scratch: Path) -> list[dict[str, Any]]:
        """Verify a cell, or cells that share a launch."""
        cell, machine, hosts = cells[0], self.machine, self.place.hosts
        placement = self._placement(cell)
        with tempfile.TemporaryDirectory(prefix=".proof-", dir=self._shared(cell.nodes, scratch).resolve()) as name:
            launcher, folder = launcher_of(cell), Path(name)
            command = launcher.proof_command(machine, cell, placement, folder, hosts)
            if cell.shares_start:
                # Arrival times are not spread here: that does not affect selection, and clock synchronisation needs extra communicators.
                command += ["-i", "1", "-x", "0", *turns_of([replace(one, spread_us=None) for one in cells])]
            environment = launcher.environment(machine, cell, {}, self.place.environment, folder)
            printed = self._execute(cells, command, environment, folder).printed
            written = sum(path.stat().st_size > 0 for path in folder.glob("messages.*.prof"))
            if launcher.watched(cell) and written < cell.processes:
                # Without this check, a full disk would look like another algorithm.
                raise LaunchFailed(
                    f"verification: only {written} of {cell.processes} ranks wrote their message counts (is the disk full?)"
                )
            if cell.shares_start:
                return openmpi.judge_turns(cells, printed, folder, placement, self.place.reported, machine.bound)
            return [launcher.judge(cell, printed, folder, placement, self.place.reported, machine.bound)]

    def measure(
        self, cells: list[Cell], scratch: Path, numbers: list[int], order: dict[str, Any]
    ) -> list[dict[str, Any] | Exception]:
        """Launch a cell, or cells that share a launch; return for each its launch record or the exception that describes the problem."""
        cell = cells[0]
        command = launcher_of(cell).prepare(self.machine, cell, self._placement(cell), scratch, self.place.hosts)
        if cell.collective not in APPLICATIONS:
            command += ["-f"] * (cell.collective not in POINT_TO_POINT) + ["-w"] * cell.windows
            command += ["-s", cell.spread_text] if cell.spread_us and not cell.shares_start else []
            command += ["-i", str(cell.iterations), "-x", str(cell.warmup)]
        if cell.shares_start:
            command += turns_of(cells)
        elif cell.sizes:
            command += ["-m", ":".join(map(str, cell.sizes))]
        started, clock = now(), time.monotonic()
        environment = self._environment(cell, scratch)
        ended = self._execute(cells, command, environment, scratch)
        # The duration is divided equally among the cells that share a launch.
        seconds = (time.monotonic() - clock) / len(cells)
        parts = output.turns(ended.printed) if cell.shares_start else [ended.printed]
        found: list[dict[str, Any] | Exception] = []
        for turn, (one, number) in enumerate(zip(cells, numbers, strict=True)):
            about = self._provenance(command, environment, started, seconds, ended, order)
            about["order"] |= {"turn": turn, "turns": len(cells)} if cell.shares_start else {}
            try:
                found.append({"launch": number, **read_output(one, parts[turn]), "provenance": about})
            except LaunchFailed as problem:
                found.append(problem)
            except IndexError:
                found.append(LaunchFailed("output: the part of this cell is missing"))
        return found

    def _execute(
        self, cells: list[Cell], command: list[str | Path], environment: dict[str, str], folder: Path
    ) -> Ended:
        """Execute the command of a cell, or of cells in turn: one that hangs is ended after the time limit of a single cell."""
        start = self.starter.start if cells[0].deterministic else spawn
        limit_s = self.machine.launch_time_limit_s
        parts = (lambda printed: len(output.turns(printed))) if cells[0].shares_start else (lambda printed: 0)
        return execute(command, limit_s, self.log, environment, folder, start, parts)

    def run(self, run: Run, scratch: Path, number: int, order: dict[str, Any]) -> dict[str, Any]:
        """Run a user's program once."""
        started = now()
        timed = run_once(run, self.place, self._shared(run.nodes, scratch), self.log)
        about = self._provenance(timed.command, timed.environment, started, timed.seconds, timed.ended, order)
        return {"launch": number, "samples": [timed.sample], "ran": timed.ran, "provenance": about}

    def _placement(self, cell: Cell) -> list[Core]:
        """Return the core of each rank. Raises StudyError if the Slurm job has fewer processors on a node than ranks are placed there."""
        placement = cell.place(self.machine)
        slurm = self.place.facts.get("slurm", {})
        for node, ranks in Counter(core.node for core in placement).items() if slurm and self.machine.bound else ():
            if ranks > (cpus := slurm["cpus"][node]):
                raise StudyError(
                    f"Slurm job {slurm['job']} has {cpus} processor{'s' * (cpus != 1)} on {self.place.hosts[node]}, but {ranks} ranks are "
                    "placed there: allocate whole nodes (salloc --exclusive)"
                )
        return placement

    def _shared(self, nodes: int, scratch: Path) -> Path:
        """Return a folder that all ranks can write to: *scratch*, or the results folder if ranks of a Slurm job run on other nodes."""
        hosts = {short(host) for host in self.place.reported[:nodes]}
        return self.results if self.machine.kind == "slurm" and hosts != {short(platform.node())} else scratch

    def _environment(self, cell: Cell, scratch: Path) -> dict[str, str]:
        chosen = dict(cell.selection.library)
        if chosen and isinstance(cell.selection, Rules):
            # The collectives library reads the rules file.
            chosen["COLL_RULES"] = str(rules_file(cell.selection.text))
        if chosen:
            chosen["COLL_VERBOSE"] = "1"
        return launcher_of(cell).environment(self.machine, cell, chosen, self.place.environment, scratch)

    def _provenance(
        self, command: list[str | Path], environment: dict[str, str], started: str, seconds: float, ended: Ended,
        order: dict[str, Any],
    ) -> dict[str, Any]:  # fmt: skip
        """Return the provenance of a launch: command, environment, times, hosts, software and order."""
        return {
            "command": shlex.join(str(word) for word in command),
            "environment": kept(environment),
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


def turns_of(cells: Sequence[Cell]) -> list[str]:
    """Return the options of collbench for cells that share a launch."""
    return [word for cell in cells for word in ("-t", openmpi.turn_of(cell))]


def in_turn(problem: Exception, tasks: Sequence[int]) -> set[int]:
    """Return the *tasks* blamed for a failed launch: the cell whose turn it was, or all if the launch has no turns."""
    begun = len(output.turns(getattr(problem, "printed", "")))
    return {tasks[begun - 1]} if 0 < begun <= len(tasks) else set(tasks)


def read_output(cell: Cell, printed: str) -> dict[str, Any]:
    """Return a launch's samples and the report of the collectives library, from its output. Raises LaunchFailed."""
    try:
        application = cell.collective in APPLICATIONS
        samples = programs.parse(printed) if application else output.parse(printed, cell.row_sizes)
    except StudyError as problem:
        raise LaunchFailed(f"output: {problem}") from None
    own = library_report(printed, cell.collective) if cell.selection.by_library else None
    if own and own["left_pct"] is None and variable(cell.collective) in cell.selection.library:
        # Otherwise the MPI library's own algorithm would have been measured.
        raise LaunchFailed(
            f"library: the collectives library executed no {cell.collective} (did LD_PRELOAD reach the ranks?)"
        )
    return {"samples": samples, **({"library": own} if own else {})}


def library_report(printed: str, collective: str) -> dict[str, Any]:
    """Return the final report of the collectives library (COLL_VERBOSE): {setup_us, left_pct}.

    `setup_us` is the time to find nodes and groups and to create communicators, spent in the first call for a
    communicator and a root (maximum over ranks). `left_pct` is the percentage of calls of *collective* that the library passed on
    to the MPI library; None if it was not selected for any.
    """
    setup = re.search(r"^libcollstudy: set-up of communicators: \d+ times, ([\d.]+) s", printed, re.MULTILINE)
    counts = re.search(
        rf"^libcollstudy: {collective}: (\d+) calls, (\d+) left to the MPI library", printed, re.MULTILINE
    )
    return {
        "setup_us": round(float(setup.group(1)) * 1e6, 3) if setup else None,
        "left_pct": round(100 * int(counts.group(2)) / int(counts.group(1)), 3) if counts else None,
    }


def software_of(block: Block) -> dict[str, str]:
    """Return versions and paths of a block's software, and the digest of the Spack lock. Raises StudyError if software has changed."""
    for planned, here in sorted({pair for task in block.tasks for pair in _compared(task.work)}):
        if planned != here:
            raise StudyError(
                f"{block.name}: the run was planned with {planned}, but this job has {here}: load the same modules and set the same "
                "variables in the job as where snakemake was started; after an update of the software, start it again"
            )
    found = {"python": platform.python_version()}
    for name in sorted({task.work.mpi["name"] for task in block.tasks if not task.work.deterministic}):
        mpi = installed(name)
        found[name] = mpi.version
        if mpi.has_mpirun:
            found["mpirun" if name == "openmpi" else f"mpirun_{name}"] = str(mpi.mpirun)
    lock = spack_lock()
    if lock:
        found["spack_lock_sha256"] = file_digest(lock)
    return found


def _compared(work: Work) -> Iterator[tuple[str, str]]:
    """Yield software that is part of a work's identity as planned, and as installed here."""
    if isinstance(work, Cell) and isinstance(work.selection, Library | Rules) and work.selection.version:
        yield f"collectives library {work.selection.version}", f"collectives library {source_version('coll')}"
    if work.deterministic:
        return
    mpi = installed(work.mpi["name"])
    yield _words(mpi, work.mpi), _words(mpi, {"version": mpi.version, **chosen(mpi.name)})
    if isinstance(work, Cell) and (found := suite_of(work)):
        name = found.name if work.by_collbench else work.suite["name"]
        yield f"{name} {work.suite['version']}", f"{found.name} {found.version}"


def _words(mpi: Mpi, identity: dict[str, str]) -> str:
    """Return name and version of an MPI library, and the variables with which the user selects algorithms, from its *identity*."""
    variables = [f"{key}={value}" for key, value in identity.items() if key not in ("name", "version")]
    return " ".join([mpi.label, identity["version"], *variables])
