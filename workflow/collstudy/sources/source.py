"""The base class of all kinds of sources of a study's numbers; each kind has a module in this folder."""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv, to_csv, write_atomically, write_if_changed
from collstudy.launch import toolchain
from collstudy.sources import edges
from collstudy.sources.edges import Launched
from collstudy.store.measurements import read_rows
from collstudy.store.records import Damaged, Record
from collstudy.store.store import Store
from collstudy.study.catalogue import Catalogue
from collstudy.study.cells import Versions
from collstudy.study.config import Configuration
from collstudy.study.description import Application, Policy, ReplayPlan, Study
from collstudy.study.machines import Machine
from collstudy.study.work import Work

MEASUREMENT_COLUMNS = [
    "study", "machine", "simulated", "suite", "mpi", "collective", "algorithm", "parameters", "mapping", "nodes", "processes",
    "size_bytes", "launch", "latency_us", "min_latency_us", "max_latency_us", "bandwidth_mb_s", "iterations", "proved", "cell",
    "setup_us", "left_pct",
]  # fmt: skip
#: Columns that only some studies have: ranks of a pair; results of an application; number of calls in windows that
#: were dropped because a rank started late; for a sampled study on a real machine, the duration of the launch (s);
#: for real launches the round of their block; for imported data the statistic, quartiles of single calls, the
#: source, flags of import checks, and the algorithm that ran under another name.
FURTHER_COLUMNS = [
    "from_rank", "to_rank", "comm_us", "sweeps", "flops", "residual", "late", "seconds", "round", "statistic", "q1_us",
    "q3_us", "source", "flag", "runs",
]  # fmt: skip
#: Launches that failed to verify the tuning files, in the folder of a study.
FAILED = "tables/tuning-failed.csv"
#: The cells, and runs of a program, that verified the tuning files: the columns of cells.csv, and the file of each in the store.
VERIFYING = "tuning/cells.csv"
#: Columns of the findings of import checks (import-checks.csv).
CHECK_COLUMNS = ["check", "where", "found", "confidence", "action"]
#: Columns of the agreement between sources of one machine (agreement.csv).
AGREEMENT_COLUMNS = [
    "machine", "collective", "algorithm", "mapping", "sources", "cells", "median_abs_difference_pct", "p90_abs_difference_pct",
]  # fmt: skip
CELL_COLUMNS = [
    "study", "collective", "algorithm", "parameters", "mapping", "nodes", "processes", "status", "reason", "launches", "stop", "cell",
    "seconds", "peak_memory_mb", "component", "bound",
]  # fmt: skip
#: Column of cells.csv that only studies with such cells have: the environment variables (names, separated by blanks) that were
#: not the same in all launches of a cell.
FURTHER_CELL_COLUMNS = ["differing"]


class Context:
    """What a source depends on: configuration, results folder with its store, and versions of installed software."""

    def __init__(self, configuration: Configuration, results: Path):
        self.configuration = configuration
        self.results = results
        self.store = Store(results)

    @property
    def catalogue(self) -> Catalogue:
        """Return the catalogue of algorithms and mappings."""
        return self.configuration.catalogue

    @functools.cached_property
    def versions(self) -> Versions:
        """Return the versions of installed software."""
        return toolchain.versions()

    def read(self, work: Work) -> Record:
        """Return the stored record; an empty one if there is none or it is damaged."""
        try:
            return self.store.read(work)
        except Damaged:
            return Record()


@dataclass
class Rows:
    """The rows of cells.csv and of measurements.csv."""

    cells: list[dict[str, Any]] = field(default_factory=list)
    measurements: list[dict[str, Any]] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write both files. measurements.csv is last, so that its presence shows that both exist."""
        for name, columns, further, rows in (
            ("cells.csv", CELL_COLUMNS, FURTHER_CELL_COLUMNS, self.cells),
            ("measurements.csv", MEASUREMENT_COLUMNS, FURTHER_COLUMNS, self.measurements),
        ):
            present = [column for column in further if any(column in row for row in rows)]
            write_atomically(folder / name, to_csv(columns + present, rows))


class Source(ABC):
    """The source of one study's numbers. Each kind is a subclass in a module of its own in this folder."""

    #: The class of the description in the study's configuration (`Study.source`) for this kind of source; None for
    #: kinds that studies do not configure.
    described_by: ClassVar[type | None] = None
    #: The kind of source whose tuning files this kind verifies.
    verifies: ClassVar[type | None] = None
    #: Number of launches: one, unless a kind of source overrides it.
    policy = Policy(1, 1)
    #: Number of the last round that selects points; 0 if there are no such rounds.
    last_round = 0
    #: Whether cells and study.json are known only after a trace; before that, `files()` returns those of the trace.
    known_after_trace = False
    #: The study whose decisions a part of the work uses; that part is known once they exist. Empty if there is none.
    decided_by = ""
    #: The traced applications, and the plan of the replays of their traces.
    applications: tuple[Application, ...] = ()
    replay: ReplayPlan | None = None
    #: Whether runs of a program, instead of cells, judge the tuning files, whose rules are for its sizes and process counts only.
    judged_by_runs = False
    #: The displayed words for the states of cells.
    words: ClassVar[dict[str, str]] = {
        word: word for word in ("measured", "simulated", "unproved", "failed", "incomplete", "missing")
    }

    def __init__(self, study: Study, context: Context):
        self.study = study
        self.context = context

    @property
    def folder(self) -> Path:
        """Return the folder of the study's results."""
        return self.context.results / self.study.name

    # Its work

    def policy_of(self, work: Work) -> Policy:
        """Return the policy for the number of launches of a piece of work."""
        return self.policy

    @abstractmethod
    def work(self) -> list[Work]:
        """Return all work known so far. Raises StudyError if some of it cannot run."""

    def rounds(self) -> dict[int, list[Work]]:
        """Return the work by round. Rounds after 0 depend on measurements of earlier rounds."""
        return {0: self.work()}

    def machine_of(self, work: Work) -> Machine:
        """Return the machine of a piece of work."""
        return self.study.machine

    def node_hours_ahead(self) -> float:
        """Return an upper limit of the node-hours of work that is not known yet."""
        return 0.0

    # Its description

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return its part of study.json: `collectives`, `decisions`, `provenance`, `cells` (a digest), and keys of its own."""

    def study_json(self) -> bytes:
        """Return study.json. It changes if and only if the question, the set of cells or the imported files change."""
        study, machine, own = self.study, self.study.machine, self.describe()
        document = {
            "name": study.name,
            "title": study.title,
            "question": study.question,
            "simulated": machine.kind == "simulated",
            "machine": {
                "name": machine.name,
                "kind": machine.kind,
                "label": machine.label,
                "description": machine.description,
                "levels": [{k: v for k, v in asdict(level).items() if v is not None} for level in machine.levels],
                **({"emulated_nodes": machine.emulated_nodes} if machine.emulated_nodes > 1 else {}),
                **({"environment": machine.environment} if machine.environment else {}),
            },
            "collectives": own.pop("collectives"),
            "decisions": own.pop("decisions"),
            "mappings": {
                name: {key: value for key, value in {"label": name, **entry}.items() if key != "description"}
                for name, entry in self.context.catalogue.mappings.items()
            },
            "analysis": study.analysis,
            "provenance": own.pop("provenance"),
            "cells": own.pop("cells"),
        }
        document |= {"judged_by_runs": True} if self.judged_by_runs else {}
        document |= {"import": own.pop("import")} if "import" in own else {}
        document |= {"chapter": study.chapter} if study.chapter else {}
        return json.dumps(document | own, indent=1, ensure_ascii=False).encode() + b"\n"

    def files(self) -> dict[str, bytes]:
        """Return the files to write before anything runs: {path in the study's folder: content}."""
        return {"study.json": self.study_json()}

    def described(self) -> dict[str, bytes]:
        """Return the files that are known only after the trace."""
        return {}

    # Its rounds

    def folder_of(self, number: int) -> Path:
        """Return the folder of a round. Raises StudyError if the study has no rounds."""
        raise StudyError(f"study {self.study.name} is not sampled and has no rounds")

    def selected_until(self, number: int) -> list[Path]:
        """Return the files with the selections of the rounds up to *number*; [] without rounds."""
        return []

    def rows_in(self, path: Path, columns: list[str]) -> list[dict[str, str]]:
        """Return the rows of a table that a run has made for this study; [] if there is none. Raises StudyError if it lacks a column."""
        rows = read_csv(path)
        if lacking := [column for column in columns if rows and rows[0].get(column) is None]:
            raise StudyError(
                f"{path} has no column {lacking[0]}: remove it, and ./study run {self.study.name} writes it again"
            )
        return rows

    def rows_until(self, number: int) -> Rows:
        """Return the current rows of all rounds up to *number*."""
        return self.rows()

    # Its rows

    @abstractmethod
    def rows(self) -> Rows:
        """Return the current rows of all work."""

    def states_nodes(self, rows: list[dict[str, Any]]) -> bool:
        """Return whether the nodes in the rows are those that the ranks used, instead of those that they could use."""
        return False

    def observed(self) -> list[dict[str, Any]]:
        """Return the available rows of measurements on a real machine."""
        return [] if self.study.machine.kind == "simulated" else read_rows(self.folder / "measurements.csv")

    def launched(self) -> list[Launched]:
        """Return the launches of its rows, for ranks.csv, edges.csv and exchanges.csv; [] if unknown."""
        return []

    def import_checks(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return findings of import checks and agreement of sources; both empty for own measurements."""
        return [], []

    def collect(self) -> None:
        """Write cells.csv and measurements.csv, and before them the other tables about the launches."""
        edges.write(self.study, self.launched(), self.context.catalogue, self.folder)
        if lock := toolchain.spack_lock():
            # Store the lock file of the Spack environment in use with the results.
            write_if_changed(self.context.results / "spack.lock", lock.read_bytes())
        # The checks flag rows, so they must come before rows() is written.
        findings, agreeing = self.import_checks()
        write_if_changed(self.folder / "import-checks.csv", to_csv(CHECK_COLUMNS, findings))
        write_if_changed(self.folder / "agreement.csv", to_csv(AGREEMENT_COLUMNS, agreeing))
        self.rows().write(self.folder)

    # Its requirements and products

    def absent(self) -> str:
        """Return why the source is not available on this computer; "" if it is."""
        return ""

    def remarks(self) -> list[str]:
        """Return one line for each part that this computer cannot measure and that is left out."""
        return []

    def nothing_to_measure(self) -> str:
        """Return why it has no cells, as the end of a sentence; "" if it has some."""
        return ""

    def not_measured(self) -> str:
        """Return sentences, with a leading blank, on collectives that matter but were not measured; "" if there are none."""
        return ""

    def inputs(self) -> list[Path]:
        """Return the input files of its rows and checks that a run does not create."""
        return []

    def beside(self) -> list[Path]:
        """Return the results of other studies that the analysis reads: those of the study to compare with."""
        compare = self.study.analysis.get("compare", {})
        # With fitted_up_to, models of the compared study predict the same cells, from the steps and the places of its ranks.
        more = ("ranks.csv", "exchanges.csv") if "fitted_up_to" in compare else ()
        files = ("study.json", "measurements.csv", *more)
        return [self.context.results / compare["study"] / file for file in files] if compare else []

    def folders(self) -> list[str]:
        """Return the folders, some of which may not exist, in which further input files could appear."""
        return []

    def data(self) -> list[Path]:
        """Return the study's own input files: measurements of other authors, with source and licence."""
        return []

    def needs(self) -> set[str]:
        """Return the parts required for measuring: MPI libraries by name, and those of sources/needs.py."""
        return set()

    def programs(self) -> set[str]:
        """Return the parts of workflow/native needed in addition to the usual ones (launch/build.py)."""
        return set()

    def weight(self, collective: str, processes: int, size: int | None) -> float:
        """Return the weight of a point when regret is averaged over all points."""
        return 1.0

    def products(self) -> list[str]:
        """Return the products of a run besides tables, models and figures, as paths in the study's folder."""
        found = ["tuning/README.md", "tuning/check.csv"] if "tuning" in self.study.analysis else []
        if "replay_sampling" in self.study.analysis:
            found += ["tables/sampling.csv", "tuning/sampling.svg", "tuning/sampling.png"]
        return found + (["tuning/sentences.csv", "tuning/index.csv"] if self.judged() else [])

    def judged(self) -> list[str]:
        """Return the files that judge the decisions; [] if nothing is decided."""
        found = []
        if "tuning" in self.study.analysis:
            found += [
                "tables/tuning-regret.csv",
                "tables/tuning-shared.csv",
                "tables/tuning-verification.csv",
                "tables/tuning-withdrawn.csv",
                FAILED,
                "tuning/check.csv",
                VERIFYING,
            ]
        if "replay_sampling" in self.study.analysis:
            found += ["tables/sampling.csv", "tuning/sampling.svg"]
        return found

    def last_made(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table of the last run; [] if it is damaged, which its digest shows: the next run makes it again."""
        try:
            return read_csv(self.folder / name)
        except StudyError:
            return []

    def verifying(self) -> list[dict[str, str]]:
        """Return the cells, and runs of a program, that verified the tuning files (tuning/cells.csv)."""
        return [row for row in self.last_made(VERIFYING) if row.get("file")] if VERIFYING in self.judged() else []

    def unverified(self) -> list[dict[str, str]]:
        """Return those that the next run repeats, with the reason: they failed, or their file is damaged or missing."""
        found = self.last_made(FAILED) if FAILED in self.judged() else []
        for row in self.verifying():
            try:
                self.context.store.check(self.context.results / row["file"])
            except (OSError, Damaged) as error:
                found.append({**row, "reason": str(error)})
        return found

    def check(self) -> None:
        """Raise StudyError for any problem that would stop a run."""
        if reason := self.absent():
            raise StudyError(f"study {self.study.name}: {reason}")
        self.files()
