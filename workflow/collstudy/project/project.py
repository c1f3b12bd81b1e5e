"""A checkout with its results folder: which studies there are, what they still need, and where things go."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch import toolchain
from collstudy.plan.blocks import Block, Task, pack, pending
from collstudy.project import needs
from collstudy.sources import collect, imported, sampled, traced
from collstudy.store.store import Store, write_if_changed
from collstudy.study.cells import Cell, Versions, expand
from collstudy.study.config import ROOT, Configuration, Study, read_yaml


@dataclass(frozen=True)
class StudyState:
    """A study with its cells and what the store has of each; and the node hours that rounds to come of a sampled one may spend."""

    study: Study
    cells: tuple[Cell, ...]
    tasks: tuple[Task, ...]
    failed: int
    newest: Path | None
    node_hours_ahead: float = 0.0


class Project:
    """Everything that the Snakefile and the command line ask for. Configuration errors surface here, before anything runs."""

    def __init__(self, config: Path | None = None, results: Path | None = None):
        self.configuration = Configuration(config or ROOT / "config")
        raw = read_yaml(self.configuration.folder / "config.yaml", "config")
        self.default_studies = split_names(raw["studies"])
        self.results = Path(results or raw.get("results", "results"))
        self.store = Store(self.results)
        self._cells: dict[str, list[Cell]] = {}

    @functools.cached_property
    def versions(self) -> Versions:
        """Versions of what runs here."""
        return toolchain.versions()

    def folder(self, name: str) -> Path:
        """Results of a study."""
        return self.results / name

    def study(self, name: str) -> Study:
        """The checked study of that name."""
        return self.configuration.study(name)

    def cells(self, study: Study) -> list[Cell]:
        """All cells of a measured or simulated study; raises StudyError where one cannot run."""
        if not study.sweeps:
            return []
        if study.name not in self._cells:
            cells = expand(study, self.configuration.catalogue, self.versions)
            collect.check_placement(study, cells)
            self._cells[study.name] = cells
        return self._cells[study.name]

    def wanted(self, study: Study) -> list[Cell]:
        """The cells that a study wants measured: all, or those that the rounds of a sampled one have asked for so far."""
        return sampled.asked_until(self, study, study.sampling.rounds) if study.sampling else self.cells(study)

    def jobs(self, study: Study) -> tuple[list[traced.Job], list[dict[str, str]]]:
        """Traces and replays of a study with applications, and what of them is left out."""
        return traced.jobs(study, self.configuration.catalogue, self.versions)

    def state(self, study: Study) -> StudyState:
        """Compare what the study asks for with what the store has."""
        if study.applications:
            return StudyState(study, (), (), 0, traced.newest(self.jobs(study)[0], self.results))
        cells = self.wanted(study)
        found = self.store.summaries(cells)
        tasks = (pending(cell, have, study.policy) for cell, (have, _) in zip(cells, found, strict=True))
        newest = max(
            ((when, cell.path_text) for cell, (_, when) in zip(cells, found, strict=True) if when), default=None
        )
        return StudyState(
            study, tuple(cells), tuple(task for task in tasks if task), sum(have.failed for have, _ in found),
            self.results / newest[1] if newest else None, sampled.node_hours_ahead(self, study),
        )  # fmt: skip

    def available(
        self, names: list[str], explicit: bool, whatever_is_here: bool = False
    ) -> tuple[list[Study], list[str]]:
        """Studies to run, each followed by its companions, and one line for each that is left out.

        That is one whose data, simulator or MPI library is not here (*whatever_is_here*: only its data). A study that was named by
        the user and cannot be run is an error.
        """
        studies, left_out = [], []
        for name in self._with_companions(names):
            study = self.study(name)
            missing = imported.missing_files(study) if study.imports else []
            if missing and explicit and name in names:
                imported.read_study(study, self.configuration.catalogue)
            lacking = None if whatever_is_here else needs.why_not(study)
            if lacking and explicit and name in names:
                raise StudyError(f"study {name}: {lacking}; ./study setup {name} says how to get it")
            if missing:
                left_out.append(f"study {name} is left out: no file matches {missing[0]} (set STUDY_REFERENCE_DATA)")
            elif lacking:
                left_out.append(f"study {name} is left out: {lacking} (./study setup {name} says how to get it)")
            else:
                studies.append(study)
        if not studies:
            raise StudyError("nothing to do: " + "; ".join(left_out or ["no study is named"]))
        return studies, left_out

    def _with_companions(self, names: list[str]) -> list[str]:
        """The names, each followed by those that its study's `with` names."""
        found: list[str] = []
        todo = list(names)
        while todo:
            name = todo.pop(0)
            if name not in found:
                found.append(name)
                todo = [*self.study(name).companions, *todo]
        return found

    def describe(self, study: Study, cells: list[Cell]) -> dict[str, Any]:
        """The content of the study's study.json."""
        catalogue = self.configuration.catalogue
        if study.applications:
            return collect.describe(study, catalogue, cells) | traced.describe(study, *self.jobs(study))
        if not study.imports:
            return collect.describe(study, catalogue, cells)
        rows, account = imported.read_study(study, catalogue)
        account["collectives"] = collect.grid_of(rows, catalogue)
        return collect.describe(study, catalogue, cells, account)

    def write_description(self, study: Study, cells: list[Cell]) -> None:
        """Write study.json (of a sampled study, also the grid) if it says something new, and the Spack lock in use beside it."""
        lock = toolchain.spack_lock()
        if lock:
            write_if_changed(self.results / "spack.lock", lock.read_bytes())
        if study.sampling:
            cells = self.cells(study)
            write_if_changed(self.folder(study.name) / "sampling" / "grid.csv", sampled.grid(cells))
        path = self.folder(study.name) / "study.json"
        write_if_changed(path, collect.study_document(self.describe(study, cells)))

    def collect(self, name: str) -> None:
        """Write cells.csv and measurements.csv of a study."""
        study = self.study(name)
        folder = self.folder(name)
        if study.applications:
            traced.collect_study(study, self.jobs(study)[0], self.results, folder)
        elif study.imports:
            catalogue = self.configuration.catalogue
            rows, account = imported.read_study(study, catalogue)
            account["collectives"] = collect.grid_of(rows, catalogue)
            collect.collect_import(study, rows, account, folder)
        else:
            collect.collect_study(study, self.wanted(study), self.store, folder)

    def blocks(self, states: list[StudyState]) -> dict[str, list[Block]]:
        """Blocks of what each study still needs; a cell that two studies share is in the first one's block only."""
        taken: set[str] = set()
        blocks = {}
        for state in states:
            if state.study.sampling:
                # Each round has its own.
                rounds = range(1, state.study.sampling.rounds + 1)
                blocks[state.study.name] = [b for n in rounds for b in sampled.lacking(self, state.study, n)]
                continue
            tasks = [task for task in state.tasks if task.cell.digest not in taken]
            taken |= {task.cell.digest for task in tasks}
            blocks[state.study.name] = pack((state.study.machine, task) for task in tasks)
        return blocks


def split_names(value: str | list[str]) -> list[str]:
    """`a,b` or [a, b] to a list without duplicates."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]
    return list(dict.fromkeys(name for name in names if name))
