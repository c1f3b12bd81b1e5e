"""Source that gathers the measurements of other studies, as for the atlas of all machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collstudy.sources.needs import why_not
from collstudy.sources.source import Rows, Source
from collstudy.store.measurements import read_rows
from collstudy.study.description import Gathered, Study
from collstudy.study.work import Work, content_digest


class GatheredSource(Source):
    """Rows of other studies' measurements.csv, with study and machine. It has no work besides that of the studies."""

    described_by = Gathered

    def work(self) -> list[Work]:
        """Return []: the studies have their own work."""
        return []

    def members(self) -> list[str]:
        """Return the names of the studies that are available on this computer; a run skips the others and reports them."""
        return [study.name for study in self._studies()]

    def _studies(self) -> list[Study]:
        # Imported here: the package finds the kinds of sources by importing this module.
        from collstudy.sources import source_of

        assert isinstance(self.study.source, Gathered)
        found = [self.context.configuration.study(name) for name in self.study.source.gather]
        sources = [source_of(study, self.context) for study in found]
        return [source.study for source in sources if not source.absent() and not why_not(source)]

    def describe(self) -> dict[str, Any]:
        """Return the gathered studies, and the labels of their machines."""
        return {
            "collectives": {},
            "decisions": {},
            "provenance": {"suite": "", "suite_version": "", "mpi": "", "mpi_version": "", "simulator": "", "simulator_version": ""},
            "cells": content_digest(self.members()),
            "gathered": self.members(),
            "machine_labels": {study.machine.name: study.machine.label for study in self._studies()},
        }  # fmt: skip

    def inputs(self) -> list[Path]:
        """Return the paths of the studies' measurements."""
        return [self.context.results / name / "measurements.csv" for name in self.members()]

    def beside(self) -> list[Path]:
        """Return the results that the analysis reads, including the import checks of imported studies and their titles."""
        own = [path.with_name(name) for path in self.inputs() for name in ("import-checks.csv", "study.json")]
        return [*super().beside(), *own]

    def rows(self) -> Rows:
        """Return all rows that have a latency; they keep the names of their study and machine."""
        rows = Rows()
        for path in self.inputs():
            rows.measurements += [row for row in read_rows(path) if row["latency_us"]]
        return rows

    def observed(self) -> list[dict[str, Any]]:
        """Return []: each of the studies provides its own."""
        return []

    def absent(self) -> str:
        """Return the reason if none of the gathered studies is available; otherwise ""."""
        return "" if self.members() else "none of the studies that it gathers is available"
