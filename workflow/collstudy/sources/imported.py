"""Source for imported studies: CSV files with a column mapping, output of benchmarks, result archives of PICO."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, ClassVar

from collstudy.base.errors import StudyError
from collstudy.sources.edges import Launched, of_rows
from collstudy.sources.imported_rows import grid_of, rows_of_import
from collstudy.sources.importing.checking import agreement, checks, copies
from collstudy.sources.importing.checking.findings import rows_of
from collstudy.sources.importing.convert import OWN
from collstudy.sources.importing.files import files_of, folders_of, given_by, missing_files, resolve
from collstudy.sources.importing.reading import read_all, read_values, used_of
from collstudy.sources.importing.series import Values, most_cells
from collstudy.sources.source import Context, Rows, Source
from collstudy.study.allocations import read_nodes
from collstudy.study.description import Imported, Study
from collstudy.study.names import POINT_TO_POINT
from collstudy.study.work import Work, content_digest


class ImportedSource(Source):
    """Rows of imported files; there is no work to be done."""

    described_by = Imported
    words: ClassVar[dict[str, str]] = Source.words | {
        "measured": "imported", "missing": "not in the imported data, or only at some sizes"
    }  # fmt: skip

    def __init__(self, study: Study, context: Context):
        super().__init__(study, context)
        assert isinstance(study.source, Imported)
        self.imported = study.source

    @functools.cached_property
    def every(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return all rows, including those that the study leaves out, and the account of the import.

        Raises StudyError for missing or invalid files.
        """
        return read_all(self.study, self.context.catalogue, self.context.results / "imports")

    @functools.cached_property
    def found(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the rows that the study uses, and the account of the import with the grid that the rows span."""
        every, account = self.every
        rows = used_of(self.study, every)
        collectives = grid_of(rows, self.context.catalogue, self.study)
        self.context.configuration.check_imported(self.study, collectives)
        return rows, account | {"collectives": collectives}

    def work(self) -> list[Work]:
        """Return []: nothing is measured."""
        return []

    def describe(self) -> dict[str, Any]:
        """Return the part of study.json about the import."""
        account = self.found[1]
        how = {name: getattr(self.imported, name) for name in ("suite", "suite_version", "mpi", "mpi_version")}
        return {
            "collectives": account["collectives"],
            "decisions": {},
            "provenance": how | {"simulator": "", "simulator_version": ""},
            "cells": content_digest([]),
            "import": account,
        }

    def rows(self) -> Rows:
        """Return the rows of the files."""
        return rows_of_import(self.study, self.every[0], self.found[1])

    def states_nodes(self, rows: list[dict[str, Any]]) -> bool:
        """Return whether the files state the nodes; otherwise the nodes are all of the machine's."""
        return any(int(row["nodes"]) != self.study.machine.nodes for row in rows)

    def observed(self) -> list[dict[str, Any]]:
        """Return the rows of the files; none if a publication's algorithm names differ from what ran."""
        return [] if self.imported.printed or self.absent() else super().observed() or self.rows().measurements

    def absent(self) -> str:
        """Return the reason if a pattern matches no file; otherwise ""."""
        missing = missing_files(self.study)
        return f"no file matches {missing[0]} (set STUDY_REFERENCE_DATA)" if missing else ""

    def check(self) -> None:
        """Read all files. Raises StudyError for any problem."""
        self.files()

    def inputs(self) -> list[Path]:
        """Return the files, and those of the other imports with which they are compared."""
        return [*self.data(), *self._allocations(), *(path for study in self.others() for _, path in files_of(study))]

    def folders(self) -> list[str]:
        """Return the folders of the files."""
        return folders_of(self.study)

    def data(self) -> list[Path]:
        """Return the files that the study names."""
        return [path for _, path in files_of(self.study)]

    def others(self) -> list[Study]:
        """Return the other available imported studies, except drafts and those that use the printed names of a publication."""
        found = []
        configuration = self.context.configuration
        for name in configuration.imported_names():
            try:
                other = configuration.study(name) if name != self.study.name else None
            except StudyError:
                continue  # reported when that study is run
            source = other.source if other and other.question != "?" else None
            if isinstance(source, Imported) and not source.printed and not missing_files(other):
                found.append(other)
        return found

    def _compared(self, rows: list[dict[str, Any]]) -> dict[str, Values]:
        """Return values of other imported studies that *rows* may repeat digit by digit; studies without common cells are not read."""
        if most_cells(rows) < copies.LEAST_COPIED:
            return {}
        nodes: dict[str, set[int]] = {}
        machine = self.study.machine
        for row in rows:
            # By core, the ranks of one node are placed alike on any number of nodes.
            alike = (
                {machine.nodes} if row["mapping"] == "core" and row["processes"] <= machine.cores_per_node else set()
            )
            nodes.setdefault(row["collective"], set()).update({row["nodes"]} | alike)
        found = {}
        for study in self.others():
            if any(_may_share(entry, path, study, nodes) for entry, path in files_of(study)):
                try:
                    found[study.name] = read_values(study, self.context.catalogue, self.context.results / "imports")
                except StudyError:
                    continue  # reported when that study is run
        return found

    def import_checks(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the findings of all checks, and the agreement between sources for one machine."""
        rows, account = self.every
        same = {study.name for study in self.others() if study.machine.name == self.study.machine.name}
        compared = self._compared(rows)
        library = self.imported.mpi, self.imported.versions
        findings = checks.check(rows, account["problems"], self.study.machine, compared, same, *library)
        used = [row for row in rows if "left_out" not in row]
        agreeing = [{"machine": self.study.machine.name, **row} for row in agreement.agreement_of(used)]
        return rows_of(findings), agreeing

    def launched(self) -> list[Launched]:
        """Return the launches of the rows."""
        allocations = {key: nodes for path in self._allocations() for key, nodes in read_nodes(path).items()}
        return of_rows(self.found[0], self.imported.mpi, self.context.catalogue, allocations)

    def _allocations(self) -> list[Path]:
        """Return the files that list the nodes on which runs took place."""
        return [Path(resolve(entry["allocations"])) for entry in self.imported.files if "allocations" in entry]

    def judged(self) -> list[str]:
        """Return the tables that judge decisions; without tuning files, decisions are judged on held-out cells."""
        if self.study.chapter == "extrapolation":
            return []  # this chapter predicts latencies and makes no decisions
        judged = any(entry.get("collective") not in POINT_TO_POINT for entry in self.imported.files)
        own = super().judged()
        if "tuning" in self.study.analysis or not judged:
            return own
        return ["tables/tuning-regret.csv", "tables/tuning-shared.csv", *own]

    def products(self) -> list[str]:
        """Return the products of a run, including the tables that judge decisions if there are no tuning files."""
        found = super().products()
        return found if "tuning" in self.study.analysis else [*self.judged(), *found]


def _may_share(entry: dict[str, Any], path: Path, study: Study, nodes: dict[str, set[int]]) -> bool:
    """Return whether a file may, according to its entry, have cells of the collectives and numbers of nodes in *nodes*."""
    if entry.get("format") in OWN:
        return entry.get("collective") != "pairs"
    collective = entry.get("collective")
    if collective == "pairs" or collective not in nodes:
        return False
    return "nodes" in given_by(entry, path) or study.machine.nodes in nodes[collective]
