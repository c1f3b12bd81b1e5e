"""Write, check and verify a study's tuning files after the analysis has made its decisions (tuning/decisions.csv)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from collstudy.base.files import to_csv, write_atomically
from collstudy.launch import openmpi
from collstudy.launch.toolchain import mpis
from collstudy.project import made
from collstudy.project.studies import Project
from collstudy.sources.source import CELL_COLUMNS, VERIFYING, Source
from collstudy.sources.verifying import FAILED_COLUMNS, WITHDRAWN_COLUMNS, Verified
from collstudy.store.described import read_study
from collstudy.store.measurements import read_measurements
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import check, emission, intel, rules, trees, writers
from collstudy.tuning.findings import Finding, checked, complain, findings_csv
from collstudy.tuning.library import library_of
from collstudy.tuning.rules import Decision, Placement, decision_at, selected

COLUMNS = [
    "collective", "mapping", "nodes", "processes", "size_bytes", "on_grid", "rule", "default_us", "tuned_us", "best_known_us",
    "best_known", "speedup", "speedup_low", "speedup_high", "launches", "verdict", "simulated",
]  # fmt: skip


class Tuner:
    """Converts the decisions of one study to verified tuning files."""

    def __init__(self, project: Project, name: str):
        self.source = project.source(name)
        self.folder = project.folder(name)
        self.document: dict[str, Any] = read_study(self.folder)
        self.catalogue = project.configuration.catalogue
        self.decisions = rules.read_decisions(self.folder / "tuning" / "decisions.csv")
        self.tie_pct = float(self.source.study.analysis.get("tie_pct", 2))
        self.withdrawn: set[tuple] = set()
        self.findings: list[Finding] = []
        self.mpi: str = self.document["provenance"]["mpi"]
        if self.mpi == "impi":
            rows = read_measurements(self.folder / "measurements.csv")
            self.decisions = intel.settled(self.decisions, rows, self.source.weight)
        #: The installed library for which the files are: that of the study; Open MPI for simulated and imported studies; None
        #: for NCCL.
        self.installed = mpis().get(self.mpi if self.mpi in emission.OWN_FORMAT else "openmpi")
        self.numbers = NUMBERS | self._installed_numbers()
        self.library = library_of(self.installed, self.catalogue, self.numbers) if self.installed else None

    def _installed_numbers(self) -> dict[str, dict[str, int]]:
        """Return the algorithm numbers of the installed Open MPI for the collectives of the study; {} without Open MPI."""
        if "openmpi" not in mpis():
            return {}
        info = mpis()["openmpi"].ompi_info
        found = {name: openmpi.algorithm_numbers(info, name) for name in self.document["collectives"]}
        return {name: numbers for name, numbers in found.items() if numbers}

    def emit(self) -> list[Placement]:
        """Write the files of all decisions that are not withdrawn; for a program only if they differ from the default."""
        found = rules.placements(self.decisions, self.withdrawn, self.source.judged_by_runs)
        if self.mpi == "impi":
            found = list(map(intel.as_intel_reads, found))
        elif self.mpi == "mpich":
            found = list(map(trees.as_mpich_reads, found))
        if self.source.judged_by_runs and not any(placement.changes for placement in found):
            return []
        folder = self.folder / "tuning"
        outdated = emission.emit(
            self.document, found, self.catalogue, folder, self.numbers,
            self.library.write if self.library else None, self.installed and self.installed.build,
        )  # fmt: skip
        made.move_away(self.folder, (f"tuning/{path.name}" for path in outdated))
        return found

    def check(self, found: list[Placement], name: str, before: Sequence[Placement] = ()) -> None:
        """Check the files against the installed library and write the findings to tuning/*name*. Raises StudyError for a mismatch.

        If *before* was already checked, only entries that it lacks are checked, and its findings are kept for the others.
        """
        findings: list[Finding] = []
        if self.mpi not in emission.OWN_FORMAT:
            version = self.document["provenance"]["mpi_version"]
            found, before = (
                [rules.as_release_reads(one, self.catalogue, version) for one in many] for many in (found, before)
            )
        if self.library and self.installed and self.installed.has_mpirun:
            for placement in found:
                file = emission.rules_path(self.folder / "tuning", self.mpi, placement)
                old = next((one for one in before if one.name == placement.name), None)
                if old:
                    findings += [
                        one
                        for one in self.findings
                        if one.file == file.name
                        and old.tables[one.collective][one.entry] == placement.tables[one.collective].get(one.entry)
                    ]
                findings += check.check_placement(placement, file.resolve(), self.catalogue, self.library, old)
            findings += self._check_han(found, before)
        else:
            print(
                "rules files not checked: no MPI library that has mpirun and reports which algorithm it selects is installed"
            )
        self.findings = findings
        write_atomically(self.folder / "tuning" / name, findings_csv(findings))
        complain(findings)
        if findings:
            print(checked(findings))

    def _check_han(self, found: Sequence[Placement], before: Sequence[Placement]) -> list[Finding]:
        """Check, with Open MPI 5 on emulated nodes, the placements whose rules for coll/han differ from *before*."""
        folder, findings = self.folder / "tuning", []
        for placement in found:
            default = rules.han_default(self.document, placement)
            if not default or not self.installed:
                continue
            if not openmpi.emulates_nodes(self.installed):
                print(
                    "coll/han's rules are not checked: this requires Open MPI 5 and permission to set host names of emulated nodes"
                )
                return []
            own, han = emission.rules_path(folder, self.mpi, placement), emission.han_path(folder, placement)
            old = next((one for one in before if one.name == placement.name), None)
            if old and writers.han_rules(old, self.catalogue, default, []) == writers.han_rules(
                placement, self.catalogue, default, []
            ):
                findings += [one for one in self.findings if one.file == han.name]
                continue
            findings += check.check_han(
                placement, own.resolve(), han.resolve(), default, self.catalogue, self.installed, self.numbers
            )
        return findings

    def best_known(self) -> dict[tuple, tuple[float, str]]:
        """Return the lowest median of the study's own measurements per cell and size; as a minimum of many it is biased low."""
        values: dict[tuple, dict[str, list[float]]] = {}
        for row in read_measurements(self.folder / "measurements.csv"):
            key = (row.collective, row.mapping, row.nodes, row.processes, row.size)
            values.setdefault(key, {}).setdefault(row.name, []).append(row.value)
        return {key: min((median(v), name) for name, v in found.items()) for key, found in values.items()}

    def write_verifying(self, verifier: Source | None) -> None:
        """Write tuning/cells.csv: the cells, or runs of a program, that verify the files."""
        rows: list[dict[str, Any]] = []
        if verifier:
            cells = zip(verifier.rows().cells, verifier.work(), strict=True)
            rows = [{**row, "file": work.path_text} for row, work in cells]
        write_atomically(self.folder / VERIFYING, to_csv([*CELL_COLUMNS, "file"], rows))

    def write_verification(self, rows: list[Verified], failures: list[dict[str, Any]]) -> None:
        """Write tables/tuning-verification.csv, and the failed launches to tables/tuning-failed.csv."""
        best = self.best_known()
        lines = []
        for row in rows:
            middle, low, high = row.speedup()
            cell = row.pair.default
            known = best.get((cell.collective, cell.mapping, cell.nodes, cell.processes, row.size), (None, ""))
            lines.append(
                dict(zip(COLUMNS, [
                    *row.where, row.pair.on_grid, row.rule.text, median(row.default), median(row.tuned), *known, middle, low, high,
                    min(len(row.default), len(row.tuned)), row.verdict(self.tie_pct), self.document["simulated"],
                ], strict=True))
            )  # fmt: skip
        write_atomically(self.folder / "tables" / "tuning-verification.csv", to_csv(COLUMNS, lines))
        write_atomically(self.folder / "tables" / "tuning-failed.csv", to_csv(FAILED_COLUMNS, failures))

    def withdraw(self, rows: list[Verified]) -> None:
        """Withdraw a rule completely if it is slower on average over its verified cells, otherwise only for its slower cells."""
        by_rule: dict[tuple, list[Verified]] = {}
        for row in rows:
            if row.rule.algorithm != "default":
                pair = row.pair
                table = pair.placement.tables[pair.collective]
                entry = max(count for count in table if count <= pair.ruled)
                by_rule.setdefault((pair.collective, pair.placement.name, entry, row.rule.size), []).append(row)
        lines = []
        for (_, _, entry, _), members in by_rule.items():
            slower = [row for row in members if row.verdict(self.tie_pct) == "slower"]
            if not slower:
                continue
            mean = math.exp(sum(math.log(row.speedup()[0]) for row in members) / len(members))
            for one in self.decisions:
                if self._is_withdrawn(one, entry, members if mean < 1 else slower, whole=mean < 1):
                    self.withdrawn.add((one.collective, one.mapping, one.nodes, one.processes, one.size))
            lines += [
                dict(zip(WITHDRAWN_COLUMNS, [*row.where, row.rule.text, row.speedup()[0]], strict=True))
                for row in slower
            ]
        write_atomically(self.folder / "tables" / "tuning-withdrawn.csv", to_csv(WITHDRAWN_COLUMNS, lines))

    def _is_withdrawn(self, one: Decision, entry: int, rows: list[Verified], whole: bool) -> bool:
        """Return whether a decision is withdrawn because of *rows*."""
        for row in rows:
            pair, place = row.pair, row.pair.placement
            same = (one.collective, one.mapping) == (pair.collective, place.mapping)
            if not same or place.used[one.collective].get(one.processes) != one.nodes:
                continue
            table = place.tables[pair.collective]
            if whole:
                here = max(count for count in table if count <= one.processes) == entry
                if here and selected(table, one.processes, one.size or 0).size == row.rule.size:
                    return True
            elif one.processes == pair.ruled:
                here = [other for other in self.decisions if _place_of(other) == _place_of(one)]
                if decision_at(here, row.size, self.source.judged_by_runs) == one:
                    return True
        return False


def _place_of(one: Decision) -> tuple[str, str, int, int]:
    return one.collective, one.mapping, one.nodes, one.processes
