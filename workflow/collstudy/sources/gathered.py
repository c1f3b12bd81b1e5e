"""The measurements of other studies under one question: the atlas of all machines."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from collstudy.sources.source import Rows, Source
from collstudy.store.measurements import read_rows
from collstudy.study.description import Gathered, Study
from collstudy.study.work import Work, canonical


class GatheredSource(Source):
    """Rows of other studies' measurements.csv with study and machine; the only work is that of the studies."""

    described_by = Gathered

    def work(self) -> list[Work]:
        """None: the studies have their own work."""
        return []

    def members(self) -> list[str]:
        """Names of the studies available on this computer; a run leaves the others out and reports them."""
        return [study.name for study in self._studies()]

    def _studies(self) -> list[Study]:
        # Imported here: the package finds the kinds of sources by importing this module.
        from collstudy.sources import source_of

        assert isinstance(self.study.source, Gathered)
        found = [self.context.configuration.study(name) for name in self.study.source.gather]
        return [study for study in found if not source_of(study, self.context).absent()]

    def describe(self) -> dict[str, Any]:
        """The gathered studies, and the labels of their machines."""
        return {
            "collectives": {},
            "decisions": {},
            "provenance": {"suite": "", "suite_version": "", "mpi": "", "mpi_version": "", "simulator": "", "simulator_version": ""},
            "cells": hashlib.sha256(canonical(self.members())).hexdigest(),
            "gathered": self.members(),
            "machine_labels": {study.machine.name: study.machine.label for study in self._studies()},
        }  # fmt: skip

    def inputs(self) -> list[Path]:
        """The measurements of the studies."""
        return [self.context.results / name / "measurements.csv" for name in self.members()]

    def beside(self) -> list[Path]:
        """Includes what was found by the checks of imported ones."""
        return [*super().beside(), *(path.with_name("import-checks.csv") for path in self.inputs())]

    def rows(self) -> Rows:
        """All rows of collectives with a latency; they keep the names of their study and machine."""
        rows = Rows()
        for path in self.inputs():
            rows.measurements += [row for row in read_rows(path) if row["latency_us"]]
        return rows

    def observed(self) -> list[dict[str, Any]]:
        """None: each of the studies has its own."""
        return []

    def absent(self) -> str:
        """Unavailable if no gathered study is available."""
        return "" if self.members() else "none of the studies that it gathers is available"
