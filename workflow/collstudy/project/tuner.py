"""Emit and check, verify, keep: what follows when the analysis has decided (tuning/decisions.csv).

`python -m collstudy.tune emit STUDY` writes the files, has the library read them, and asks for the blocks that verify them: new
cells with fresh launches, the library's default and the rules file, interleaved in one block, on process counts and sizes that
decided and on others. They are measured like all blocks. `keep` compares the two, withdraws rules that turned out slower and
writes the files again.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically
from collstudy.base.statistics import median, median_interval
from collstudy.launch import mpich, openmpi
from collstudy.launch.toolchain import mpis
from collstudy.plan.blocks import pack, pending, write_blocks, write_pending
from collstudy.project.studies import Project
from collstudy.study.cells import Cell
from collstudy.study.config import Policy, Study
from collstudy.study.selection import Library, Rules
from collstudy.tuning import check, emission, rules
from collstudy.tuning.rules import Placement, Rule, selected

#: Verified process counts of a placement: so many that decided, and so many between them, spread over the range.
ON_GRID, OFF_GRID = 4, 3
COLUMNS = [
    "collective", "mapping", "nodes", "processes", "size_bytes", "on_grid", "rule", "default_us", "tuned_us", "best_known_us",
    "best_known", "speedup", "speedup_low", "speedup_high", "launches", "verdict", "simulated",
]  # fmt: skip
WITHDRAWN_COLUMNS = ["collective", "mapping", "nodes", "processes", "size_bytes", "rule", "speedup"]


@dataclass(frozen=True)
class Pair:
    """The two cells that are compared: the default and the rules file of a placement."""

    placement: Placement
    collective: str
    processes: int
    on_grid: bool
    default: Cell
    tuned: Cell


@dataclass(frozen=True)
class Verified:
    """One cell and size: default against rules file."""

    placement: Placement
    collective: str
    processes: int
    size: int | None
    on_grid: bool
    rule: Rule
    default: list[float]
    tuned: list[float]

    def speedup(self) -> tuple[float, float, float]:
        """Default over tuned with its interval, from the pairs of launches that were interleaved."""
        ratios = [d / t for d, t in zip(self.default, self.tuned, strict=False)]
        low, high = median_interval(ratios) or (ratios[0], ratios[0])
        return median(ratios), low, high

    def verdict(self, tie_pct: float) -> str:
        """Faster, slower, or tie: the interval holds 1, or the difference is below half the tie width."""
        middle, low, high = self.speedup()
        if abs(middle - 1) <= tie_pct / 200 or low <= 1 <= high:
            return "tie"
        return "faster" if middle > 1 else "slower"


def spread(values: list[int], most: int) -> list[int]:
    """At most *most* of the sorted values, evenly spread, the last included."""
    values = sorted(values)
    if len(values) <= most:
        return values
    return [values[round((index + 1) * len(values) / most) - 1] for index in range(most)]


def verified_counts(measured: list[int]) -> list[tuple[int, bool]]:
    """Process counts to verify, each with whether it decided."""
    between = sorted({(a + b) // 2 for a, b in zip(measured, measured[1:], strict=False)} - set(measured))
    return [(count, True) for count in spread([p for p in measured if p > 1], ON_GRID)] + [
        (count, False) for count in spread(between, OFF_GRID)
    ]


def size_ranges(sizes: tuple[int, int] | None) -> list[tuple[tuple[int, int] | None, bool]]:
    """The sweep that decided, and one of sizes half-way between (3, 6, 12, ... for 1, 2, 4, ...)."""
    if sizes is None:
        return [(None, True)]
    first = sizes[0] * 3
    return [(sizes, True)] + ([((first, sizes[1]), False)] if first <= sizes[1] else [])


def arms(cell: Cell, texts: dict[str, str], number: int) -> tuple[Cell, Cell]:
    """The default and the tuned cell of a verification; *number* makes them cells of their own, so launches are fresh."""
    default = replace(cell, selection=cell.selection.verified(number))
    if cell.deterministic:
        # The barriers between the timed calls stay what they were; a barrier itself follows the rules.
        assert isinstance(cell.selection, Library)
        kept = {
            k: v for k, v in cell.selection.variables.items() if k == "COLL_BARRIER" and cell.collective != "barrier"
        }
        chosen = Rules(texts["library"], None, kept or {"COLL_VERBOSE": "0"}, cell.selection.version)
    else:
        chosen = Rules(texts["own"], texts.get("han"))
    return default, replace(cell, algorithm="tuned", selection=chosen.verified(number))


class Tuner:
    """One study on its way from decisions to verified files."""

    def __init__(self, project: Project, name: str):
        self.project = project
        self.study: Study = project.study(name)
        self.folder = project.folder(name)
        self.document: dict[str, Any] = json.loads((self.folder / "study.json").read_text(encoding="utf-8"))
        self.catalogue = project.configuration.catalogue
        self.decisions = rules.read_decisions(self.folder / "tuning" / "decisions.csv")
        self.tie_pct = float(self.study.analysis.get("tie_pct", 2))
        self.withdrawn: set[tuple] = set()
        self.findings: list[check.Finding] = []
        self.mpi: str = self.document["how"]["mpi"]
        #: The installed library that the files are for: that of the study, and Open MPI for simulated and imported ones.
        self.installed = mpis().get(self.mpi if self.mpi in ("mpich", "impi") else "openmpi")
        asked = self.installed if self.installed and self.installed.name != "impi" else None
        numbers = {**rules.NUMBERS, **self.numbers()}
        self.library = check.library(asked, self.catalogue, numbers) if asked else None

    def numbers(self) -> dict[str, dict[str, int]]:
        """Algorithm numbers of the installed Open MPI, for the collectives of the study."""
        if "openmpi" not in mpis():
            return {}
        info = mpis()["openmpi"].ompi_info
        found = {name: openmpi.algorithm_numbers(info, name) for name in self.document["collectives"]}
        return {name: numbers for name, numbers in found.items() if numbers}

    def emit(self) -> list[Placement]:
        """Write the files of what is decided and not withdrawn."""
        found = rules.placements(self.decisions, self.withdrawn)
        folder = self.folder / "tuning"
        emission.emit(
            self.document, found, self.catalogue, self.study.machine, folder, self.numbers(),
            self.library.write if self.library else None, self.installed and self.installed.build,
        )  # fmt: skip
        return found

    def check(self, found: list[Placement], name: str, before: list[Placement] | None = None) -> None:
        """Ask the installed Open MPI or MPICH; writes its answers to tuning/*name*. Raises StudyError for a mismatch.

        *before* was checked already: only entries that it lacks are, and its findings are kept for the others.
        """
        findings: list[check.Finding] = []
        if self.library:
            for placement in found:
                file = emission.rules_path(self.folder / "tuning", self.mpi, placement)
                old = next((one for one in before or [] if one.name == placement.name), None)
                if old:
                    findings += [
                        one
                        for one in self.findings
                        if one.file == file.name
                        and old.tables[one.collective][one.entry] == placement.tables[one.collective].get(one.entry)
                    ]
                findings += check.check_placement(placement, file.resolve(), self.catalogue, self.library, old)
            findings += self._check_han(found, before or [])
        else:
            print("no MPI library here that shows what it does: the rules files are not checked")
        self.findings = findings
        write_atomically(self.folder / "tuning" / name, check.to_csv(findings))
        check.complain(findings)
        print(f"{len(findings)} boundaries checked, {sum(one.tells_apart for one in findings)} of them conclusive")

    def _check_han(self, found: list[Placement], before: list[Placement]) -> list[check.Finding]:
        """Ask an Open MPI 5 on emulated nodes, of placements whose rules for coll/han are not those of *before*."""
        folder, findings = self.folder / "tuning", []
        for placement in found:
            default = rules.han_default(self.document, placement)
            if not default or not self.installed:
                continue
            if not check.emulates_nodes(self.installed):
                print(
                    "coll/han's rules are not checked: that needs an Open MPI 5, and permission to name emulated nodes"
                )
                return []
            own, han = emission.rules_path(folder, self.mpi, placement), emission.han_path(folder, placement)
            old = next((one for one in before if one.name == placement.name), None)
            if old and rules.han_rules(old, default, []) == rules.han_rules(placement, default, []):
                findings += [one for one in self.findings if one.file == han.name]
                continue
            findings += check.check_han(
                placement, own.resolve(), han.resolve(), default, self.catalogue, self.installed,
                {**rules.NUMBERS, **self.numbers()},
            )  # fmt: skip
        return findings

    def pairs(self, found: list[Placement]) -> list[Pair]:
        """What verifies the files of *found*; nothing for an imported study, or where no default was measured."""
        cells = [cell for cell in self.project.cells(self.study) if cell.algorithm == "default"]
        pairs = []
        for placement in found:
            for collective in placement.tables:
                like = [
                    c
                    for c in cells
                    if (c.collective, c.mapping, c.nodes) == (collective, placement.mapping, placement.nodes)
                ]
                if not like:
                    continue
                texts = self._texts(placement)
                for count, counted in verified_counts(sorted({cell.processes for cell in like})):
                    for sizes, sized in size_ranges(like[0].sizes):
                        cell = replace(like[0], processes=count, per_node=None, sizes=sizes)
                        pairs.append(Pair(placement, collective, count, counted and sized, *arms(cell, texts, 1)))
        return pairs

    def ask(self, found: list[Placement]) -> list[Path]:
        """Write the blocks of what lacks launches to verify *found*; returns their markers."""
        policy = Policy(self.study.policy.minimum, self.study.policy.minimum, self.study.policy.ci_width_pct)
        cells = [cell for pair in self.pairs(found) for cell in (pair.default, pair.tuned)]
        tasks = [
            pending(cell, have, policy)
            for cell, (have, _) in zip(cells, self.project.store.summaries(cells), strict=True)
        ]
        blocks = pack((self.study.machine, task) for task in tasks if task)
        return write_blocks(blocks, self.project.results / "blocks")

    def _texts(self, placement: Placement) -> dict[str, str]:
        folder = self.folder / "tuning"
        # Comments name a day and expected gains: they must not make another cell of the same rules.
        own = emission.rules_path(folder, self.mpi, placement)
        if self.document["simulated"]:
            return {"library": self._library_text(placement)}
        texts = {"own": _bare(own)}
        if self.mpi == "mpich":
            trees = [json.loads(path.read_text(encoding="utf-8")) for path in (own, mpich.device_file(own))]
            texts["own"] = json.dumps(trees)
        elif rules.han_default(self.document, placement) == "han":
            texts["han"] = _bare(emission.han_path(folder, placement))
        return texts

    def _library_text(self, placement: Placement) -> str:
        counts = {
            name: sorted(
                {count for count, _ in verified_counts(sorted(self.document["collectives"][name]["processes"]))}
            )
            for name in placement.tables
        }
        text = rules.library_rules(
            placement, self.catalogue, [], self.study.machine, counts,
            "ompi_default" if self.document["simulated"] else "default",
        )  # fmt: skip
        return "".join(line.split(" #")[0] + "\n" for line in text.splitlines())

    def rows(self, pair: Pair) -> Iterable[Verified]:
        """What the launches of a pair say, for each size; nothing where one of the two has none."""
        records = [self.project.store.read(cell) for cell in (pair.default, pair.tuned)]
        for record, cell in zip(records, (pair.default, pair.tuned), strict=True):
            if record.failure:
                print(f"failed: {cell.label}: {record.failure['reason']}", file=sys.stderr)
        if not all(record.launches for record in records):
            return
        for index, size in enumerate(pair.default.size_list):
            values = [[launch["samples"][index]["latency_us"] for launch in record.launches] for record in records]
            rule = selected(pair.placement.tables[pair.collective], pair.processes, size or 0)
            yield Verified(pair.placement, pair.collective, pair.processes, size, pair.on_grid, rule, *values)

    def best_known(self) -> dict[tuple, tuple[float, str]]:
        """The lowest median of the study's own measurements for each cell and size: biased low, it is the minimum of many."""
        values: dict[tuple, dict[str, list[float]]] = {}
        with open(self.folder / "measurements.csv", newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                size = int(float(row["size_bytes"])) if row["size_bytes"] else None
                key = (row["collective"], row["mapping"], int(row["nodes"]), int(row["processes"]), size)
                name = row["algorithm"] + (f" [{row['parameters']}]" if row["parameters"] else "")
                values.setdefault(key, {}).setdefault(name, []).append(float(row["latency_us"]))
        return {key: min((median(v), name) for name, v in found.items()) for key, found in values.items()}

    def write_verification(self, rows: list[Verified]) -> None:
        """tables/tuning-verification.csv."""
        best = self.best_known()
        lines = []
        for row in rows:
            middle, low, high = row.speedup()
            where = (row.collective, row.placement.mapping, row.placement.nodes, row.processes, row.size)
            known = best.get(where, (None, ""))
            lines.append(
                dict(zip(COLUMNS, [
                    *where, row.on_grid, row.rule.text, median(row.default), median(row.tuned), *known, middle, low, high,
                    min(len(row.default), len(row.tuned)), row.verdict(self.tie_pct), self.document["simulated"],
                ], strict=True))
            )  # fmt: skip
        write_atomically(self.folder / "tables" / "tuning-verification.csv", to_csv(COLUMNS, lines))

    def withdraw(self, rows: list[Verified]) -> None:
        """Take back a rule that is slower on average over its verified cells; else only its slower cells."""
        by_rule: dict[tuple, list[Verified]] = {}
        for row in rows:
            if row.rule.algorithm != "default":
                table = row.placement.tables[row.collective]
                entry = max(count for count in table if count <= row.processes)
                by_rule.setdefault((row.collective, row.placement.name, entry, row.rule.size), []).append(row)
        lines = []
        for (_, _, entry, _), members in by_rule.items():
            slower = [row for row in members if row.verdict(self.tie_pct) == "slower"]
            if not slower:
                continue
            mean = math.exp(sum(math.log(row.speedup()[0]) for row in members) / len(members))
            for one in self.decisions:
                if self._hit(one, entry, members if mean < 1 else slower, whole=mean < 1):
                    self.withdrawn.add((one.collective, one.mapping, one.nodes, one.processes, one.size))
            lines += [
                dict(zip(WITHDRAWN_COLUMNS, [
                    row.collective, row.placement.mapping, row.placement.nodes, row.processes, row.size, row.rule.text,
                    row.speedup()[0],
                ], strict=True))
                for row in slower
            ]  # fmt: skip
        write_atomically(self.folder / "tables" / "tuning-withdrawn.csv", to_csv(WITHDRAWN_COLUMNS, lines))

    def _hit(self, one: rules.Decision, entry: int, rows: list[Verified], whole: bool) -> bool:
        """Whether a decision belongs to what is withdrawn."""
        for row in rows:
            place = row.placement
            if (one.collective, one.mapping, one.nodes) != (row.collective, place.mapping, place.nodes):
                continue
            table = place.tables[row.collective]
            if whole:
                here = max(count for count in table if count <= one.processes) == entry
                if here and selected(table, one.processes, one.size or 0).size == row.rule.size:
                    return True
            elif one.processes == row.processes and (one.size or 0) <= (row.size or 0) < 2 * (one.size or 1):
                return True
        return False


def _bare(path: Path) -> str:
    """A rules file without its comments."""
    lines = [line.split("#")[0].rstrip() for line in path.read_text(encoding="utf-8").splitlines()]
    return "".join(line + "\n" for line in lines if line)


def emit(project: Project, name: str) -> None:
    """Write the files of what was decided, check them, and ask for what verifies them (tuning/pending.txt)."""
    tuner = Tuner(project, name)
    found = tuner.emit()
    tuner.check(found, "check-emitted.csv")
    write_pending(tuner.folder / "tuning" / "pending.txt", tuner.ask(found))


def keep(project: Project, name: str) -> None:
    """Judge the files that were verified; withdraw what is slower, and write and check them again."""
    tuner = Tuner(project, name)
    # Once more: a `keep` that was killed may have left others.
    found = tuner.emit()
    rows = [row for pair in tuner.pairs(found) for row in tuner.rows(pair)]
    tuner.withdraw(rows)
    tuner.write_verification(rows)
    final = found
    if tuner.withdrawn:
        final = tuner.emit()
        print(f"{len(tuner.withdrawn)} decisions withdrawn, the files are written again")
    tuner.findings = check.read_csv(tuner.folder / "tuning" / "check-emitted.csv")
    tuner.check(final, "check.csv", before=found)
    changed = [row for row in rows if row.rule.algorithm != "default"]
    verdicts = [row.verdict(tuner.tie_pct) for row in changed]
    print(
        f"{name}: {len(rows)} cells verified, {len(changed)} of them under a rule other than the default: "
        + ", ".join(f"{verdicts.count(word)} {word}" for word in ("faster", "tie", "slower"))
    )


def main(argv: list[str] | None = None) -> int:
    """Command line of the rules."""
    steps = {"emit": emit, "keep": keep}
    parser = argparse.ArgumentParser(prog="collstudy.tune", description=__doc__)
    parser.add_argument("step", choices=steps)
    parser.add_argument("study")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args(argv)
    try:
        steps[arguments.step](Project(results=arguments.results), arguments.study)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
