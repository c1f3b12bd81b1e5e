"""What a study gets its numbers from: the protocol of all kinds of sources, one file each in this folder."""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically, write_if_changed
from collstudy.launch import toolchain
from collstudy.sources import edges
from collstudy.sources.edges import Launched
from collstudy.store.records import Damaged, Record, Store
from collstudy.study.cells import Versions
from collstudy.study.config import Catalogue, Configuration, Machine, Policy, Study
from collstudy.study.work import Work

MEASUREMENT_COLUMNS = [
    "study", "machine", "simulated", "suite", "mpi", "collective", "algorithm", "parameters", "mapping", "nodes", "processes",
    "size_bytes", "launch", "latency_us", "min_latency_us", "max_latency_us", "bandwidth_mb_s", "iterations", "proved", "cell",
    "setup_us", "left_pct",
]  # fmt: skip
#: Columns that only some studies have: the ranks of a pair, what an application says of its run, and of a sampled study
#: how long the launch took (s), where that is time of the machine; of real launches the round of their block;
#: of imported data what the latency is, quartiles of single calls, whose they are, and what an import check flags.
FURTHER_COLUMNS = [
    "from_rank", "to_rank", "comm_us", "sweeps", "flops", "residual", "seconds", "round", "statistic", "q1_us",
    "q3_us", "source", "flag",
]  # fmt: skip
#: What checks of an import found (import-checks.csv).
CHECK_COLUMNS = ["check", "where", "found", "how_sure", "done"]
#: How far sources of one machine agree (agreement.csv).
AGREEMENT_COLUMNS = [
    "machine", "collective", "algorithm", "mapping", "sources", "cells", "median_abs_difference_pct", "p90_abs_difference_pct",
]  # fmt: skip
CELL_COLUMNS = [
    "study", "collective", "algorithm", "parameters", "mapping", "nodes", "processes", "status", "reason", "launches", "stop", "cell",
    "seconds", "peak_memory_mb",
]  # fmt: skip


class Context:
    """Where a source is: the configuration, the results folder with its store, and the versions of what runs here."""

    def __init__(self, configuration: Configuration, results: Path):
        self.configuration = configuration
        self.results = results
        self.store = Store(results)

    @property
    def catalogue(self) -> Catalogue:
        """Algorithms and mappings."""
        return self.configuration.catalogue

    @functools.cached_property
    def versions(self) -> Versions:
        """Versions of what runs here."""
        return toolchain.versions()

    def read(self, work: Work) -> Record:
        """What is stored; an empty record where nothing is, or what is there is damaged."""
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
        """Write both files. measurements.csv last: its presence says that both are there."""
        further = [name for name in FURTHER_COLUMNS if any(name in row for row in self.measurements)]
        write_atomically(folder / "cells.csv", to_csv(CELL_COLUMNS, self.cells))
        write_atomically(folder / "measurements.csv", to_csv(MEASUREMENT_COLUMNS + further, self.measurements))


class Source(ABC):
    """What one study gets its numbers from. A kind of source is a subclass in a file of its own in this folder."""

    #: The class of the description in the study's configuration (`Study.source`) that this kind of source is made of; None for
    #: one that no study names.
    described_by: ClassVar[type | None] = None
    #: How often work is done: once, unless a kind of source says otherwise.
    policy = Policy(1, 1)

    def __init__(self, study: Study, context: Context):
        self.study = study
        self.context = context

    @property
    def folder(self) -> Path:
        """The study's results."""
        return self.context.results / self.study.name

    # What work it wants done

    @abstractmethod
    def work(self) -> list[Work]:
        """All that it wants done, as far as it is known now. Raises StudyError where something could not run."""

    def rounds(self) -> dict[int, list[Work]]:
        """The same by round, where one round follows from what another one measured; round 0 needs no other."""
        return {0: self.work()}

    def machine_of(self, work: Work) -> Machine:
        """Where a piece of work is done."""
        return self.study.machine

    def node_hours_ahead(self) -> float:
        """What work that is not known yet may cost at most."""
        return 0.0

    # How it describes itself

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Its part of study.json: `collectives`, `decisions`, `how`, `cells` (a digest), and keys of its own."""

    def study_json(self) -> bytes:
        """study.json. It changes if and only if the question, the set of cells or the imported files change."""
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
            },
            "collectives": own.pop("collectives"),
            "decisions": own.pop("decisions"),
            "mappings": {
                name: {key: value for key, value in {"label": name, **entry}.items() if key != "description"}
                for name, entry in self.context.catalogue.mappings.items()
            },
            "analysis": study.analysis,
            "how": own.pop("how"),
            "cells": own.pop("cells"),
        }
        document |= {"import": own.pop("import")} if "import" in own else {}
        document |= {"chapter": study.chapter} if study.chapter else {}
        return json.dumps(document | own, indent=1, ensure_ascii=False).encode() + b"\n"

    def files(self) -> dict[str, bytes]:
        """What is written before anything runs: path in the study's folder -> content."""
        return {"study.json": self.study_json()}

    # Which rows it has

    @abstractmethod
    def rows(self) -> Rows:
        """What is known at this moment, of all work."""

    def launched(self) -> list[Launched]:
        """What its rows are launches of, for ranks.csv and edges.csv; nothing where that is not known."""
        return []

    def import_checks(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What checks of rows that others measured found, and how far sources of one machine agree; nothing of own rows."""
        return [], []

    def collect(self) -> None:
        """Write cells.csv and measurements.csv, and before them ranks.csv, edges.csv, import-checks.csv and agreement.csv."""
        edges.write(self.study, self.launched(), self.context.catalogue, self.folder)
        if lock := toolchain.spack_lock():
            # What was measured with, beside what was measured.
            write_if_changed(self.context.results / "spack.lock", lock.read_bytes())
        # Checks flag rows, so they come first.
        findings, agreeing = self.import_checks()
        write_if_changed(self.folder / "import-checks.csv", to_csv(CHECK_COLUMNS, findings))
        write_if_changed(self.folder / "agreement.csv", to_csv(AGREEMENT_COLUMNS, agreeing))
        self.rows().write(self.folder)

    # What it needs, and what it makes possible

    def absent(self) -> str:
        """Why it cannot be had on this computer; empty where it can."""
        return ""

    def inputs(self) -> list[Path]:
        """Files that its rows and their checks are made of, and that no run makes."""
        return []

    def data(self) -> list[Path]:
        """Those of them that are the study's own: somebody's measurements, with a source and a licence."""
        return []

    def needs(self) -> set[str]:
        """The parts that it needs until it is measured: MPI libraries by name, and those of project/needs.py."""
        return set()

    def products(self) -> list[str]:
        """What a run makes of its measurements besides tables, models and figures: paths in the study's folder."""
        found = ["tuning/README.md"] if "tuning" in self.study.analysis else []
        found += ["tables/sampling.csv"] if "replay_sampling" in self.study.analysis else []
        return found + (["tuning/sentences.csv"] if self.judged() else [])

    def judged(self) -> list[str]:
        """The tables that tell how good its decisions are; none where nothing is decided."""
        found = (
            ["tables/tuning-regret.csv", "tables/tuning-verification.csv"] if "tuning" in self.study.analysis else []
        )
        return found + (["tables/sampling.csv"] if "replay_sampling" in self.study.analysis else [])

    def check(self) -> None:
        """Raise StudyError for anything that would stop a run of it."""
        if reason := self.absent():
            raise StudyError(f"study {self.study.name}: {reason}")
        self.files()
