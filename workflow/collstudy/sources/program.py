"""Source that tunes the collectives of a program: its trace selects the cells to measure, its runs judge the tuning file.

Round 0 has the trace, and runs with and without the trace library, which show its overhead. From the trace the analysis writes
`sampling/cells.csv`; its cells are the grid of a sampled study. Runs with and without the tuning file come last.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_if_changed
from collstudy.launch import tracefile
from collstudy.launch.ran import Launcher, launcher_of, programs_in, with_benchmarks_launcher
from collstudy.launch.toolchain import chosen, installed
from collstudy.sources.account import (
    BUFFER_BYTES,
    CALLS,
    LITTLE_PCT,
    gains_of,
    is_too_long,
    node_of_rank,
    sweeps_of,
    typical,
    worth_measuring,
)
from collstudy.sources.sampled import SampledSource, grid
from collstudy.sources.source import MEASUREMENT_COLUMNS, Context, Rows
from collstudy.sources.verifying import ratio_of_pairs
from collstudy.study.allocations import Allocations
from collstudy.study.cells import Cell, machine_identity
from collstudy.study.description import Policy, Study, Tuned
from collstudy.study.document import Place
from collstudy.study.names import REDUCTIONS
from collstudy.study.sweeps import Sweep, can_share_start, read_sweeps
from collstudy.study.traces import RUN_IDENTITY, TRACE_IDENTITY, Run, Trace, nodes_of
from collstudy.study.words import size_words
from collstudy.study.work import Work

#: Options of launchers that set a parameter or variable, or name a file of parameters; and what changes how the library communicates.
FILES = ("--tune", "-tune", "--am", "-am")
SETTING = ("--mca", "-mca", "--gmca", "-gmca", "-x", "-genv", "-env", "env")
SETTINGS = r"(OMPI_MCA_)?(coll|pml|mtl|btl|smsc)(_|\b)|UCX_|FI_|MPIR_CVAR_|I_MPI_(ADJUST|COLL|FABRICS|SHM)"


class ProgramSource(SampledSource):
    """The trace of a program, and the cells that it uses, measured in rounds."""

    described_by = Tuned
    known_after_trace = True
    judged_by_runs = True

    def __init__(self, study: Study, context: Context):
        assert isinstance(study.source, Tuned)
        self.tuned = study.source
        program = self.tuned.program
        self.program = replace(program, command=with_benchmarks_launcher(program.command))
        super().__init__(study, context)

    @functools.cached_property
    def launcher(self) -> Launcher:
        """Return the launcher in the program's command. Raises StudyError if the benchmark does not run with its library."""
        words = shlex.split(self.program.command)
        folder = Path(self.program.folder)
        found = launcher_of(words, folder)
        mpi = installed(found.mpi)
        # Up to the program, which has options of its own.
        given = itertools.takewhile(lambda word: not programs_in([word], folder), words[found.position + 1 :])
        # `env NAME=VALUE` before the launcher sets variables, too.
        before = itertools.product(("env",), words[: found.position])
        for option, name in (*before, *itertools.pairwise(given)):
            if option in FILES or (option in SETTING and re.match(SETTINGS, name)):
                parameter = "NAME" if option in FILES else name
                variable = name if option in ("-x", "-genv", "-env", "env") else f"OMPI_MCA_{parameter}=..."
                raise StudyError(
                    f"{option} {name}: only the program would run with it, not the benchmark that measures its collectives; "
                    f"remove it from the command and use export {variable}"
                )
        files = [name for name in chosen(found.mpi) if re.search("_filename|_FILE|^I_MPI_ADJUST", name)]
        if files:
            raise StudyError(f"{files[0]} is set, so the program would already run with a tuning file; unset it")
        if found.version not in (None, mpi.version):
            raise StudyError(
                f"{found.path} is {mpi.label} {found.version}, but the benchmark is built for {mpi.version}, and tuning "
                f"decisions are valid only for the version that was measured: launch the program with "
                f"{mpi.mpirun}, or put the compiler wrapper of {found.version} on PATH"
            )
        return found

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Return the part of the identity that all runs of the program share."""
        machine, versions, folder = self.study.machine, self.context.versions, Path(self.program.folder)
        programs = programs_in(shlex.split(self.program.command), folder)
        return {
            "machine": machine_identity(machine, versions.host) | {"oversubscribe": machine.oversubscribe},
            "mpi": versions.mpi[self.launcher.mpi],
            "name": self.program.name,
            "command": self.program.command,
            "folder": self.program.folder,
            "ranks": self.program.ranks,
            # The program determines the MPI calls, so a changed program needs a new trace.
            "program": {str(path): file_digest(path) for path in programs},
        }

    @functools.cached_property
    def trace(self) -> Trace:
        """Return the trace. Raises StudyError if the program cannot be started here."""
        if self.study.machine.kind == "local" and not Path(self.program.folder).is_dir():
            raise StudyError(f"study {self.study.name}: program.folder: {self.program.folder} does not exist")
        identity = {"identity_version": TRACE_IDENTITY, "trace_version": tracefile.TABLE_VERSION, **self.identity}
        return Trace(self.program, self.study.machine, identity)

    def run(self, variant: str, environment: dict[str, str], judged: dict[str, Any] | None = None) -> Run:
        """Return one variant of the program's run; the end of *variant* selects the trace library's mode. *judged* has the digests of
        the tuning files that its runs judge.
        """
        own = {"variant": variant} | ({"judged": judged} if judged else {})
        identity = {"identity_version": RUN_IDENTITY, **self.identity, **own}
        ran = variant.endswith("ran")
        return Run(
            self.program, self.study.machine, variant, ran or variant.endswith("traced"), ran, environment, identity
        )

    def first(self) -> list[Work]:
        """Return the trace, and the runs with and without the trace library that show its overhead."""
        return [self.trace, self.run("plain", {}), self.run("traced", {})]

    def policy_of(self, work: Work) -> Policy:
        """Return one launch for the trace and for runs that record what ran; otherwise the number that the study sets."""
        if isinstance(work, Trace) or (isinstance(work, Run) and work.ran):
            return Policy(1, 1)
        return Policy(self.tuned.runs, self.tuned.runs) if isinstance(work, Run) else self.policy

    def work(self) -> list[Work]:
        """Return all work, as far as it is known."""
        return [*self.first(), *self.cells()]

    def rounds(self) -> dict[int, list[Work]]:
        """Return the trace and its overhead as round 0, then the cells of each round so far."""
        return {0: self.first(), **super().rounds()}

    def needs(self) -> set[str]:
        """Return the required parts: a compiler, the MPI library of the launcher, and R."""
        try:
            mpi = launcher_of(shlex.split(self.program.command), Path(self.program.folder)).mpi
        except StudyError:
            # No launcher found: set-up installs Open MPI.
            mpi = "openmpi"
        return {"compiler", "r", mpi}

    def programs(self) -> set[str]:
        """Return the trace library."""
        return {"trace"}

    # From the trace

    @functools.cached_property
    def used(self) -> list[dict[str, str]]:
        """Return the rows of cells.csv for the current trace; [] if there are none yet, or if an earlier version wrote them."""
        rows = self.rows_in(self.folder / "sampling" / "cells.csv", ["trace"])
        return [row for row in rows if row["trace"] == self.trace.digest and "typical_bytes" in row]

    @functools.cached_property
    def ordered(self) -> bool:
        """Return whether the program has an operation that does not commute and the library does not check this: Open MPI applies a
        tuning file to all operations, and with most algorithms the results are wrong.
        """
        if self.launcher.mpi != "openmpi":
            return False
        return bool(self.context.store.about(self.trace).get("trace", {}).get("ordered"))

    def nothing_to_measure(self) -> str:
        """Return why there are no cells, as the end of a sentence; "" if there are some."""
        if failure := self.context.read(self.trace).failure:
            return f": the program could not be traced: {failure['reason']}."
        if self.gridded.sweeps:
            return ""
        if self.used and (self.ordered or any(map(is_too_long, self.used))):
            return f".{self.not_measured()}"
        if self.used:
            names = ", ".join(dict.fromkeys(row["operation"] for row in self.used))
            return f": no algorithms of {self.launcher.mpi} are known for {names}, where the program spends its time."
        left = self.context.store.about(self.trace).get("trace", {}).get("unrecorded", [])
        return (
            ": the program spends too little time in blocking collectives; ideal (zero-cost) ones would save less than "
            f"{self.tuned.worth_pct:g} % of its run time."
            + (f" Not judged, because they are not recorded: {', '.join(left)}." if left else "")
        )

    def not_measured(self) -> str:
        """Return sentences, with a leading blank, on collectives that matter but were not measured; "" if there are none."""
        gains, mpi = gains_of(self.used), self.launcher.mpi
        known, least = {sweep.collective for sweep in self.gridded.sweeps}, LITTLE_PCT / 100 * sum(gains.values())
        left = {
            name: f"{name} (at most {gain:.2g} %)"
            for name, gain in gains.items()
            if name not in known and gain >= least
        }
        text = ""
        if self.ordered and (reductions := [left.pop(name) for name in REDUCTIONS if name in left]):
            text = (
                f" Not measured, because the program has an operation that does not commute, with which algorithms of {mpi} may give "
                f"wrong results: {', '.join(reductions)}."
            )
        if long := [row for row in self.used if is_too_long(row) and float(row["gain_pct"]) >= least]:
            named = (
                f"{row['operation']} of {size_words(typical(row))} on {row['ranks']} ranks (at most {float(row['gain_pct']):.2g} %)"
                for row in long
            )
            text += f" Not measured, because the benchmark's buffers have at most {size_words(BUFFER_BYTES)}: {', '.join(named)}."
            for row in long:
                left.pop(row["operation"], None)
        if left:
            text += (
                f" Not measured, because {mpi} has no known algorithms to choose from, or no benchmark: "
                f"{', '.join(left.values())}."
            )
        return text

    @functools.cached_property
    def gridded(self) -> Study:
        """Return the study with the sweeps of the cells that the program uses."""
        path = self.folder / "sampling" / "cells.csv"
        sweeps: list[Sweep] = []
        used = [row for row in self.used if not (self.ordered and row["operation"] in REDUCTIONS)]
        by_ranks = {int(row["ranks"]): row for row in used}
        machine, mpi = self.study.machine, self.launcher.mpi
        placed = {ranks: node_of_rank(row, machine, mpi) for ranks, row in by_ranks.items()}
        # The same number for all, because a tuning file is for one.
        nodes = max([nodes_of(self.trace), *(1 + max(each) for each in placed.values() if each)])
        catalogue = self.context.catalogue
        for collective, _, algorithms, rows in worth_measuring(used, catalogue, mpi):
            for entry in sweeps_of(collective, algorithms, rows, catalogue, mpi):
                entry |= {"mpi": [mpi], "nodes": [nodes]}
                if can_share_start(machine, (mpi,), collective):
                    entry["start"] = "shared"
                (ranks,) = entry["processes"]
                own = placed[ranks]
                allocations = Allocations(str(path), {ranks: own}) if own else None
                read = read_sweeps(entry, machine, catalogue, Place(path, {}))
                sweeps += [replace(sweep, allocations=allocations) for sweep in read]
        return replace(self.study, source=replace(self.tuned, sweeps=tuple(sweeps)))

    def weight(self, collective: str, processes: int, size: int | None) -> float:
        """Return the most that ideal (zero-cost) collectives of this class of sizes could gain, in percent of the run time."""
        return sum(
            float(row["gain_pct"])
            for row in self.used
            if (row["operation"], int(row["ranks"]), typical(row)) == (collective, processes, size or 0)
        )

    def seconds(self, run: Work, column: str = "latency_us") -> list[float]:
        """Return the times (s) of a run's launches, in their order."""
        return [launch["samples"][0][column] / 1e6 for launch in self.context.read(run).launches]

    def overhead(self) -> dict[str, float]:
        """Return the ratio of run times with and without the trace library: {ratio, low, high}; {} without such runs."""
        _, plain, traced = self.first()
        times = [self.seconds(run) for run in (traced, plain)]
        return dict(zip(("ratio", "low", "high"), ratio_of_pairs(*times), strict=True)) if all(times) else {}

    # Its description

    def files(self) -> dict[str, bytes]:
        """Return the file that describes what is known before the trace."""
        document = {
            "name": self.study.name, "title": self.study.title, "question": self.study.question, "analysis": self.study.analysis,
            "sampling": asdict(self.sampling), "launches": asdict(self.policy), "runs": self.tuned.runs,
            "worth_pct": self.tuned.worth_pct,
            "program": asdict(self.program), "trace": self.trace.folder_text, "digest": self.trace.digest,
        }  # fmt: skip
        return {"program.json": json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"}

    def described(self) -> dict[str, bytes]:
        """Return the files known after the trace: study.json, and the points that can be measured."""
        points = grid(self.grid, self.weight)
        return {"study.json": self.study_json(), "sampling/grid.csv": points}

    def describe(self) -> dict[str, Any]:
        """Return the description of the grid, if there is anything to measure, and of the program."""
        found = {"collectives": {}, "decisions": {}, "provenance": self._how([]), "cells": self.trace.digest}
        if self.grid:
            found = super().describe()
        program = {key: getattr(self.program, key) for key in ("name", "label", "command", "folder", "ranks")}
        program |= {"trace": self.trace.folder_text, "replays": [], "runs": self.tuned.runs}
        program |= {"worth_pct": self.tuned.worth_pct, "overhead": self.overhead()}
        if failure := self.context.read(self.trace).failure:
            program["failure"] = failure["reason"]
        return found | {"sampling": self.sampling_rules, "program": program}

    def _how(self, cells: list[Any]) -> dict[str, Any]:
        if cells:
            return super()._how(cells)
        launches = {"min": self.policy.minimum, "max": self.policy.maximum}
        library = {"mpi": self.launcher.mpi, "mpi_version": self.identity["mpi"]["version"]}
        return {
            "suite": "", "suite_version": "", **library, "simulator": "", "simulator_version": "", "iterations": [], "warmup": [],
            "barriers": [], "launches": launches, "ci_width_pct": self.policy.ci_width_pct,
        }  # fmt: skip

    def measured(self, number: int) -> list[Cell]:
        """Return the cells of a round; those with spread arrivals also without, to show whether the spread matters."""
        return [*self.selected(number), *self.synchronised(number)]

    def synchronised(self, number: int) -> list[Cell]:
        """Return the cells of a round that have spread arrivals, with the spread removed."""
        cells = (cell for cell in self.selected(number) if cell.spread_us is not None)
        return [replace(cell, spread_us=None, iterations=CALLS["iterations"]) for cell in cells]

    def collect(self) -> None:
        """Write the tables; additionally the measurements without spread arrivals, which do not affect decisions."""
        rows = self.rows_of(self.cells_until(self.last_round, self.synchronised))
        content = to_csv(MEASUREMENT_COLUMNS, rows.measurements)
        write_if_changed(self.folder / "sampling" / "synchronised.csv", content)
        super().collect()

    def rows(self) -> Rows:
        """Return the measurements of the cells; trace and runs contribute only their status, as their times are not of collectives."""
        rows = super().rows()
        rows.cells += self.statuses(self.first())
        return rows

    def statuses(self, works: Iterable[Work]) -> list[dict[str, Any]]:
        """Return the rows of cells.csv for traces and runs."""
        found = []
        for work in works:
            record = self.context.read(work)
            status, reason = record.status()
            found.append(
                {
                    "study": self.study.name, "collective": "program", "algorithm": getattr(work, "variant", "trace"),
                    "parameters": "", "mapping": "", "nodes": work.nodes, "processes": work.processes, "status": status,
                    "reason": reason, "launches": len(record.launches), "cell": work.digest[:16],
                }
            )  # fmt: skip
        return found
