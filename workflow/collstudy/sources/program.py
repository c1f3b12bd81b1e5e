"""Source that tunes the collectives of a program: its trace selects the cells to measure, its runs judge the tuning file.

Round 0 has the trace, and runs with and without the trace library, which show its overhead. From the trace the analysis writes
`sampling/cells.csv`; its cells are the grid of a sampled study. Runs with and without the tuning file come last.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv, to_csv, write_if_changed
from collstudy.launch import tracefile
from collstudy.launch.ran import Launcher, launcher_of, programs_in, with_benchmarks_launcher
from collstudy.launch.toolchain import chosen, installed
from collstudy.sources.sampled import SampledSource, grid
from collstudy.sources.source import MEASUREMENT_COLUMNS, Context, Rows
from collstudy.sources.verifying import ratio_of_pairs
from collstudy.store.records import Record
from collstudy.study.catalogue import Catalogue
from collstudy.study.cells import Cell, machine_identity
from collstudy.study.description import Policy, Study, Tuned
from collstudy.study.document import Place
from collstudy.study.machines import Machine
from collstudy.study.names import IMPORTED_ONLY, REDUCTIONS, ROOTED
from collstudy.study.sweeps import Sweep, can_share_start, read_sweeps
from collstudy.study.traces import RUN_IDENTITY, TRACE_IDENTITY, Run, Trace, nodes_of
from collstudy.study.work import Work

#: Collectives with less than this percentage of the total possible gain are omitted, as are classes of sizes that together have less
#: than this percentage of their collective's gain.
LITTLE_PCT = 1
#: Algorithms that forward messages in segments (useful for more than two ranks only), and the segment sizes (bytes) to try.
SEGMENTED, SEGMENTS = ("pipeline", "chain", "binary_tree", "split_binary_tree"), (8192, 65536)
#: Algorithm that exists for two ranks only.
FOR_TWO = "two_proc"
#: Algorithms of the collectives library to try, each with the level of which it needs several units.
TOPOLOGY_AWARE = {"node": "node", "node_group_chain": "node", "group": "group", "node_group": "group"}
#: Numbers of timed and untimed calls of each size.
CALLS = {"iterations": 200, "warmup": 20}
#: If arrivals are spread, timed calls of each size need to last only this long (us) in total; FEWEST_CALLS is the minimum number.
ARRIVING_US, FEWEST_CALLS = 5000, 20
#: Options of launchers that set a parameter or variable, or name a file of parameters; and what changes how the library communicates.
FILES = ("--tune", "-tune", "--am", "-am")
SETTING = ("--mca", "-mca", "--gmca", "-gmca", "-x", "-genv", "-env")
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
        found = launcher_of(words)
        mpi, folder = installed(found.mpi), Path(self.program.folder)
        # Up to the program, which has options of its own.
        given = itertools.takewhile(lambda word: not programs_in([word], folder), words[found.position + 1 :])
        for option, name in itertools.pairwise(given):
            if option in FILES or (option in SETTING and re.match(SETTINGS, name)):
                parameter = "NAME" if option in FILES else name
                variable = name if option in ("-x", "-genv", "-env") else f"OMPI_MCA_{parameter}=..."
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
        identity = {"identity_version": TRACE_IDENTITY, "trace_version": tracefile.VERSION, **self.identity}
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
            mpi = launcher_of(shlex.split(self.program.command)).mpi
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
        rows = read_csv(self.folder / "sampling" / "cells.csv")
        return [row for row in rows if row["trace"] == self.trace.digest and "typical_bytes" in row]

    @functools.cached_property
    def ordered(self) -> bool:
        """Return whether the program has an operation that does not commute and the library does not check this: Open MPI applies a
        tuning file to all operations, and with most algorithms the results are wrong.
        """
        if self.launcher.mpi != "openmpi":
            return False
        return bool(self.context.store.about(self.trace).get("trace", {}).get("ordered"))

    @functools.cached_property
    def gridded(self) -> Study:
        """Return the study with the sweeps of the cells that the program uses."""
        path = self.folder / "sampling" / "cells.csv"
        sweeps: list[Sweep] = []
        used = [row for row in self.used if not (self.ordered and row["operation"] in REDUCTIONS)]
        for collective, _, algorithms, rows in worth_measuring(used, self.context.catalogue, self.launcher.mpi):
            for entry in sweeps_of(collective, algorithms, rows):
                entry |= {"mpi": [self.launcher.mpi], "nodes": [nodes_of(self.trace)]}
                if can_share_start(self.study.machine, (self.launcher.mpi,)):
                    entry["start"] = "shared"
                sweeps += read_sweeps(entry, self.study.machine, self.context.catalogue, Place(path, {}))
        return replace(self.study, source=replace(self.tuned, sweeps=tuple(sweeps)))

    def weight(self, collective: str, processes: int, size: int | None) -> float:
        """Return the most that ideal (zero-cost) collectives of this class of sizes could gain, in percent of the run time."""
        return sum(
            float(row["gain_pct"])
            for row in self.used
            if (row["operation"], int(row["ranks"]), typical(row)) == (collective, processes, size or 0)
        )

    def overhead(self) -> dict[str, float]:
        """Return the ratio of run times with and without the trace library: {ratio, low, high}; {} without such runs."""
        _, plain, traced = self.first()
        times = [seconds(self.context.read(run)) for run in (traced, plain)]
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
        rules = {key: value for key, value in asdict(self.sampling).items() if value is not None}
        found = {"collectives": {}, "decisions": {}, "provenance": self._how([]), "cells": self.trace.digest}
        if self.grid:
            found = super().describe()
        program = {key: getattr(self.program, key) for key in ("name", "label", "command", "folder", "ranks")}
        program |= {"trace": self.trace.folder_text, "replays": [], "runs": self.tuned.runs}
        program |= {"worth_pct": self.tuned.worth_pct, "overhead": self.overhead()}
        if failure := self.context.read(self.trace).failure:
            program["failure"] = failure["reason"]
        return found | {"sampling": rules, "program": program}

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
        rows.cells += statuses(self.study, self.first(), self.context)
        return rows


def statuses(study: Study, works: Iterable[Work], context: Context) -> list[dict[str, Any]]:
    """Return the rows of cells.csv for traces and runs."""
    found = []
    for work in works:
        record = context.read(work)
        status, reason = record.status()
        found.append(
            {
                "study": study.name, "collective": "program", "algorithm": getattr(work, "variant", "trace"), "parameters": "",
                "mapping": "", "nodes": work.nodes, "processes": work.processes, "status": status, "reason": reason,
                "launches": len(record.launches), "cell": work.digest[:16],
            }
        )  # fmt: skip
    return found


def seconds(record: Record, column: str = "latency_us") -> list[float]:
    """Return the times (s) of a run's launches, in their order."""
    return [launch["samples"][0][column] / 1e6 for launch in record.launches]


def gains_of(rows: Iterable[dict[str, str]]) -> dict[str, float]:
    """Return the largest possible gain (percent of the run time) of each collective of an account, in descending order."""
    gains: dict[str, float] = {}
    for row in rows:
        gains[row["operation"]] = gains.get(row["operation"], 0) + float(row["gain_pct"])
    return dict(sorted(gains.items(), key=lambda item: -item[1]))


def worth_measuring(
    rows: Iterable[dict[str, str]], catalogue: Catalogue, mpi: str = "openmpi"
) -> list[tuple[str, float, list[str], list[dict[str, str]]]]:
    """Return the collectives of an account that have algorithms to choose from and are worth measuring, by descending gain: each with
    its gain (percent of the run time), the algorithms of *mpi* that a tuning file can select, and its rows.
    """
    by_collective: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_collective.setdefault(row["operation"], []).append(row)
    gains = gains_of(itertools.chain(*by_collective.values()))
    found = []
    for collective in gains:
        entries = catalogue.algorithms.get(collective, {})
        algorithms = ["default", *(key for key, entry in entries.items() if _can_be_chosen(key, entry, mpi))]
        mine = [row for row in by_collective[collective] if collective == "barrier" or int(row["size_bytes"]) > 0]
        if (
            len(algorithms) > 1
            and mine
            and collective not in IMPORTED_ONLY
            and gains[collective] >= LITTLE_PCT / 100 * sum(gains.values())
        ):
            found.append((collective, gains[collective], algorithms, _most_of(mine)))
    return found


def _most_of(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows without those of the smallest gain that together have less than LITTLE_PCT of the total."""
    left = sum(float(row["gain_pct"]) for row in rows) * LITTLE_PCT / 100
    kept = sorted(rows, key=lambda row: float(row["gain_pct"]))
    while len(kept) > 1 and (left := left - float(kept[0]["gain_pct"])) > 0:
        del kept[0]
    return kept


def _can_be_chosen(name: str, entry: dict[str, Any], mpi: str) -> bool:
    """Return whether a tuning file can select an algorithm: it is no component; simulated ones exist in Open MPI or are by topology."""
    simulated = mpi == "smpi-openmpi"
    if simulated and "simulated" not in entry:
        return name in TOPOLOGY_AWARE
    return "component" not in entry.get("openmpi" if simulated else mpi, {"component": ""})


def _applies(name: str, ranks: int, machine: Machine | None) -> bool:
    """Return whether an algorithm differs from others for ranks on the first cores of a simulated *machine* (None: a real one)."""
    if name == FOR_TWO:
        return ranks == 2
    if not machine or name not in TOPOLOGY_AWARE:
        return True
    nodes = -(-ranks // machine.cores_per_node)
    groups = math.prod(level.count for level in machine.levels if level.name == "group")
    return nodes > (machine.nodes // groups if TOPOLOGY_AWARE[name] == "group" else 1)


def spread_of(row: dict[str, str], simulated: bool) -> float | None:
    """Return the time (us) over which a program's ranks would arrive at a collective if they left the one before together, for a class
    of sizes. None for rooted collectives, and on a real machine if that is less than the transfer takes, as windows take longer.

    Arrivals are drawn uniformly from that time, so the spread of P ranks is (P - 1) / (P + 1) of it in the mean. It is rounded to a
    power of two, because it differs with every trace.
    """
    if row["operation"] in ROOTED:
        return None
    ranks, spread, transfer = int(row["ranks"]), float(row["spread_us"]), float(row["transfer_us"])
    least = 0 if simulated else transfer
    return 2.0 ** round(math.log2(spread * (ranks + 1) / (ranks - 1))) if spread > least else None


def sweeps_of(
    collective: str, algorithms: list[str], rows: Iterable[dict[str, str]], machine: Machine | None = None
) -> list[dict[str, Any]]:
    """Return the sweeps of one collective, as in a study's YAML: for each rank count and spread of the program's arrivals, the typical
    sizes of the classes; long messages also in segments. *machine*: that of a simulation.
    """
    # A size of several classes has the spread of the one with most to gain.
    spreads = {
        (int(row["ranks"]), typical(row)): spread_of(row, machine is not None) or 0
        for row in sorted(rows, key=lambda row: float(row["gain_pct"]))
    }
    grouped: dict[tuple[int, float], list[int]] = {}
    for (ranks, size), spread in sorted(spreads.items()):
        grouped.setdefault((ranks, spread), []).append(size)
    found = []
    for (ranks, spread), sizes in sorted(grouped.items()):
        names = [name for name in algorithms if _applies(name, ranks, machine)]
        entry = {"collective": collective, "algorithms": names, "mappings": ["core"], "processes": [ranks], **CALLS}
        if spread:
            calls = max(FEWEST_CALLS, min(CALLS["iterations"], round(ARRIVING_US / spread)))
            entry |= {"spread_us": spread, "iterations": calls}
        if collective == "barrier":
            found.append(entry)
            continue
        found.append({**entry, "sizes": sizes})
        for segment in SEGMENTS if ranks > 2 else ():
            variants = [{"name": name, "segment_bytes": segment} for name in names if name in SEGMENTED]
            long = [size for size in sizes if size >= 2 * segment]
            found += [{**entry, "algorithms": variants, "sizes": long}] if variants and long else []
    return found


def typical(row: dict[str, str]) -> int:
    """Return the message size (bytes) that represents a class: half of the transfer time is spent on sizes up to it."""
    return round(float(row["typical_bytes"]))
