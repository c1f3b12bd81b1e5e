"""Source for the verification of a study's tuning files: default and rules file in fresh launches of the same cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from collstudy.base.statistics import median_interval
from collstudy.launch import mpich
from collstudy.launch.rulesfile import is_parameter
from collstudy.sources.source import Context
from collstudy.sources.swept import SweptSource
from collstudy.store.described import read_study
from collstudy.store.records import Damaged, Record
from collstudy.study.cells import Cell
from collstudy.study.description import Policy, Study
from collstudy.study.selection import Library, Rules
from collstudy.tuning import emission, rules, writers
from collstudy.tuning.rules import Placement, Rule, selected

#: Process counts to verify per placement: number of measured ones, and of unmeasured ones between them, spread over the range.
ON_GRID, OFF_GRID = 4, 3
#: Number in the identities of the cells, which gives them fresh launches.
VERIFICATION = 1
#: Columns of tables/tuning-withdrawn.csv.
WITHDRAWN_COLUMNS = ["collective", "mapping", "nodes", "processes", "size_bytes", "rule", "speedup"]
#: Columns of tables/tuning-failed.csv.
FAILED_COLUMNS = ["collective", "algorithm", "mapping", "nodes", "processes", "reason"]


@dataclass(frozen=True)
class Pair:
    """Two cells to compare, with the default and with the rules file of a placement; *nodes* is the number of nodes that ranks use.

    *ruled* is the number of processes whose rules apply: simulated, that of writers.library_rules(), otherwise their own.
    """

    placement: Placement
    collective: str
    nodes: int
    processes: int
    on_grid: bool
    default: Cell
    tuned: Cell
    ruled: int


@dataclass(frozen=True)
class Verified:
    """Result for a pair and one size: times with the default and with the rules file."""

    pair: Pair
    size: int | None
    rule: Rule
    default: list[float]
    tuned: list[float]

    @property
    def where(self) -> tuple[str, str, int, int, int | None]:
        """Return collective, mapping, nodes that the ranks use, processes and size, as in decisions.csv."""
        pair = self.pair
        return pair.collective, pair.placement.mapping, pair.nodes, pair.processes, self.size

    def speedup(self) -> tuple[float, float, float]:
        """Return the speed-up of tuned over default with its interval, from pairs of interleaved launches."""
        return ratio_of_pairs(self.default, self.tuned)

    def verdict(self, tie_pct: float) -> str:
        """Return `faster`, `slower` or `tie`: the interval contains 1, or the difference is below half the tie width."""
        return verdict_of(self.speedup(), tie_pct)


def ratio_of_pairs(first: list[float], second: list[float]) -> tuple[float, float, float]:
    """Return the median of first / second, with its distribution-free interval, for pairs that were launched in turn."""
    ratios = [a / b for a, b in zip(first, second, strict=False)]
    low, high = median_interval(ratios) or (ratios[0], ratios[0])
    return median(ratios), low, high


def verdict_of(speedup: tuple[float, float, float], tie_pct: float) -> str:
    """Return the verdict on a speed-up (median, low, high)."""
    middle, low, high = speedup
    if abs(middle - 1) <= tie_pct / 200 or low <= 1 <= high:
        return "tie"
    return "faster" if middle > 1 else "slower"


def spread(values: list[int], most: int) -> list[int]:
    """Return at most *most* of the sorted values, evenly spread, including the last."""
    values = sorted(values)
    if len(values) <= most:
        return values
    return [values[round((index + 1) * len(values) / most) - 1] for index in range(most)]


def verified_counts(measured: list[int]) -> list[tuple[int, bool]]:
    """Return the process counts to verify, and whether each was measured for the decisions."""
    # As in fill_counts() of tuning.R, so that they have decisions: both round halves to even numbers.
    between = sorted({round((a + b) / 2) for a, b in zip(measured, measured[1:], strict=False)} - set(measured))
    return [(count, True) for count in spread([p for p in measured if p > 1], ON_GRID)] + [
        (count, False) for count in spread(between, OFF_GRID)
    ]


def size_ranges(sizes: tuple[int, int] | None) -> list[tuple[tuple[int, int] | None, bool]]:
    """Return the sizes that were measured for the decisions, and a sweep between them (3, 6, 12, ... for 1, 2, 4, ...)."""
    if sizes is None:
        return [(None, True)]
    first = sizes[0] * 3
    return [(sizes, True)] + ([((first, sizes[1]), False)] if first <= sizes[1] else [])


def arms(cell: Cell, texts: dict[str, str]) -> tuple[Cell, Cell]:
    """Return the default and the tuned cell of a verification."""
    default = replace(cell, selection=cell.selection.verified(VERIFICATION))
    if cell.deterministic:
        # The barriers between timed calls stay the same; if the barrier itself is measured, it follows the rules.
        assert isinstance(cell.selection, Library)
        kept = {
            k: v for k, v in cell.selection.variables.items() if k == "COLL_BARRIER" and cell.collective != "barrier"
        }
        chosen = Rules(texts["library"], None, kept or {"COLL_VERBOSE": "0"}, cell.selection.version)
    else:
        chosen = Rules(texts["own"], texts.get("han"))
    return default, replace(cell, algorithm="tuned", selection=chosen.verified(VERIFICATION))


class VerifyingSource(SweptSource):
    """The cells that verify the tuning files of *placements*; none without a measured default."""

    described_by = None
    verifies = SweptSource

    def __init__(self, study: Study, context: Context, placements: list[Placement]):
        super().__init__(study, context)
        self.policy = Policy(self.policy.minimum, self.policy.minimum, self.policy.ci_width_pct)
        self.document: dict[str, Any] = read_study(self.folder)
        self.mpi: str = self.document["provenance"]["mpi"]
        self.placements = placements
        if self.document["simulated"]:
            # The collectives library provides the algorithms of simulated ranks.
            self.placements = [writers.in_library(context.catalogue, one) for one in placements]
        if self.mpi == "openmpi":
            version = self.document["provenance"]["mpi_version"]
            self.placements = [rules.as_release_reads(one, context.catalogue, version) for one in placements]

    @property
    def gridded(self) -> Study:
        """Return the study without shared starts: the library reads a rules file when a launch begins."""
        own = tuple(replace(sweep, start="own") for sweep in self.study.sweeps)
        return replace(self.study, source=replace(self.study.source, sweeps=own))

    def cells(self) -> list[Cell]:
        """Return both cells of each pair."""
        return [cell for pair in self.pairs() for cell in (pair.default, pair.tuned)]

    def pairs(self) -> list[Pair]:
        """Return the pairs of cells to compare."""
        pairs = []
        for placement in self.placements:
            compared = [found for collective in placement.tables for found in self._compared(placement, collective)]
            if not compared:
                continue
            texts = (
                {"library": self._library_text(placement, [cell for cell, _ in compared])}
                if self.document["simulated"]
                else texts_of(self.document, placement, self.folder / "tuning")
            )
            largest: dict[tuple[str, int, int], int] = {}
            for cell, _ in compared:
                largest[self._place(cell)] = max(cell.processes, largest.get(self._place(cell), 0))
            for cell, on_grid in compared:
                ruled = largest[self._place(cell)] if self.document["simulated"] else cell.processes
                both = arms(cell, texts)
                pairs.append(Pair(placement, cell.collective, self._nodes(cell), cell.processes, on_grid, *both, ruled))
        return pairs

    def _compared(self, placement: Placement, collective: str) -> Iterator[tuple[Cell, bool]]:
        """Yield the default's cells to verify, and whether they were measured for the decisions: of each sweep, which is the cells
        that differ only in their numbers of processes, some measured numbers and some between them.
        """
        sweeps: dict[str, dict[int, Cell]] = {}
        for cell in self.grid:
            named = (cell.algorithm, cell.collective, cell.mapping) == ("default", collective, placement.mapping)
            if named and placement.used[collective].get(cell.processes) == self._nodes(cell):
                like = replace(cell, processes=0, per_node=cell.per_node and 0, hosts=None)
                sweeps.setdefault(like.digest, {})[cell.processes] = cell
        for measured in sweeps.values():
            for count, counted in verified_counts(sorted(measured)):
                next_larger = measured[min(own for own in measured if own >= count)]
                per_node = next_larger.per_node and -(-count // next_larger.nodes)
                for sizes, sized in size_ranges(next_larger.sizes):
                    cell = replace(next_larger, processes=count, per_node=per_node, sizes=sizes)
                    yield cell, counted and sized

    def _nodes(self, cell: Cell) -> int:
        """Return the number of nodes that the ranks of a cell use."""
        return len({core.node for core in cell.place(self.study.machine)})

    def _place(self, cell: Cell) -> tuple[str, int, int]:
        """Return what the collectives library knows of a cell: the collective, nodes, and ranks per node, rounded up."""
        nodes = self._nodes(cell)
        return cell.collective, nodes, -(-cell.processes // nodes)

    def _library_text(self, placement: Placement, cells: list[Cell]) -> str:
        shapes: dict[str, set[tuple[int, int]]] = {}
        for cell in cells:
            shapes.setdefault(cell.collective, set()).add((cell.processes, self._nodes(cell)))
        placement = replace(placement, tables={name: placement.tables[name] for name in shapes})
        text = writers.library_rules(placement, self.context.catalogue, [], shapes, "ompi_default")
        return "".join(line.split(" #")[0] + "\n" for line in text.splitlines())

    def verified(self, pair: Pair) -> Iterable[Verified]:
        """Yield the comparison of a pair by size; nothing if one of the two has no launches."""
        records = [self._record(cell) for cell in (pair.default, pair.tuned)]
        if not all(record.launches for record in records):
            return
        for index, size in enumerate(pair.default.size_list):
            values = [[launch["samples"][index]["latency_us"] for launch in record.launches] for record in records]
            rule = self.rule_of(pair, size)
            yield Verified(pair, size, rule, *values)

    def _record(self, cell: Cell) -> Record:
        """Return what is stored of a cell. A damaged file counts as a failure, which the next run repeats."""
        try:
            return self.context.store.read(cell)
        except Damaged as damage:
            return Record(failure={"reason": str(damage)})

    def rule_of(self, pair: Pair, size: int | None) -> Rule:
        """Return the rule that applies in the tuned cell of a pair."""
        return selected(pair.placement.tables[pair.collective], pair.ruled, size or 0)

    def failures(self) -> list[dict[str, Any]]:
        """Return a row (FAILED_COLUMNS) for each cell whose newest launch failed; the algorithm is `default` or `tuned`."""
        found = []
        for pair in self.pairs():
            for cell in (pair.default, pair.tuned):
                if failure := self._record(cell).failure:
                    values = (cell.collective, cell.algorithm, cell.mapping, pair.nodes, cell.processes)
                    found.append(dict(zip(FAILED_COLUMNS, (*values, failure["reason"]), strict=True)))
        return found


def texts_of(document: dict[str, Any], placement: Placement, folder: Path) -> dict[str, str]:
    """Return the contents of a placement's tuning files in *folder*: that of the study's own library, and that of coll/han."""
    mpi = document["provenance"]["mpi"]
    own = emission.rules_path(folder, mpi, placement)
    if mpi == "mpich":
        trees = [json.loads(path.read_text(encoding="utf-8")) for path in (own, mpich.device_file(own))]
        return {"own": json.dumps(trees)}
    # Comments contain a date and expected gains, which must not affect the identity of the rules.
    texts = {"own": _without_comments(own)}
    if rules.han_default(document, placement) == "han":
        texts["han"] = _without_comments(emission.han_path(folder, placement))
    return texts


def _without_comments(path: Path) -> str:
    """Return a rules file without its comments, except for those that name MCA parameters."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line if is_parameter(line) else line.split("#")[0].rstrip() for line in lines]
    return "".join(line + "\n" for line in lines if line)
