"""Source for a sampled study: convert the points that a round selects to cells, blocks and measurements.

The analysis selects points (algorithm, processes, message size; `workflow/analysis/R/sampling.R`) of the study's sweeps from
the list `results/<study>/sampling/grid.csv`. Neighbouring sizes of one algorithm and process count form one cell, so that one
launch sweeps them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from collstudy.base.files import read_csv, to_csv
from collstudy.sources.source import Context, Rows
from collstudy.sources.swept import SweptSource
from collstudy.study.cells import Cell
from collstudy.study.description import Sampled, Study
from collstudy.study.words import parameter_text
from collstudy.study.work import Work

#: Columns that identify a point; GRID_COLUMNS adds the cost of its calls.
POINT = ["collective", "algorithm", "parameters", "mapping", "nodes", "processes", "size_bytes"]
GRID_COLUMNS = [*POINT, "mpi", "iterations", "warmup", "weight", "start", "spread_us", "cell"]


class SampledSource(SweptSource):
    """The cells of the sweeps that rounds have selected."""

    described_by = Sampled

    def __init__(self, study: Study, context: Context):
        super().__init__(study, context)
        assert isinstance(study.source, Sampled)
        self.sampling = study.source.sampling
        self.last_round = self.sampling.rounds

    def needs(self) -> set[str]:
        """Return the required parts, including R, which selects the points of a round."""
        return super().needs() | {"r"}

    def folder_of(self, number: int) -> Path:
        """Return the folder of a round."""
        return self.folder / "sampling" / f"round-{number}"

    def selection_of(self, number: int) -> Path:
        """Return the file with the points that a round selected."""
        return self.folder_of(number) / "selected.csv"

    def selected_until(self, number: int) -> list[Path]:
        """Return the grid, and the selections of the rounds up to *number*."""
        return [self.folder / "sampling" / "grid.csv", *map(self.selection_of, range(1, number + 1))]

    def cells(self) -> list[Cell]:
        """Return the cells of all rounds so far."""
        return self.cells_until(self.last_round)

    def cells_until(self, number: int, of_round: Callable[[int], list[Cell]] | None = None) -> list[Cell]:
        """Return the cells of all rounds up to *number* without duplicates: the measured ones, or those that *of_round* returns."""
        rounds = itertools.takewhile(bool, map(of_round or self.measured, range(1, number + 1)))
        return list({cell.digest: cell for cells in rounds for cell in cells}.values())

    def rounds(self) -> dict[int, list[Work]]:
        """Return the cells of each round so far, up to the first round that selects nothing."""
        found: dict[int, list[Work]] = {}
        for number in range(1, self.last_round + 1):
            found[number] = list(self.measured(number))
            if not found[number]:
                break
        return found

    def selected(self, number: int) -> list[Cell]:
        """Return the cells of a round; [] before its selection. Points that are no longer in the sweeps are omitted."""
        rows = self.rows_in(self.selection_of(number), POINT)
        if not rows:
            return []
        places: dict[tuple[str, ...], tuple[Cell, int]] = {}
        for cell in self.grid:
            for index, point in enumerate(_points(cell)):
                places.setdefault(_key(point), (cell, index))
        launches: list[tuple[Cell, list[int]]] = []
        for cell, index in (places[key] for row in rows if (key := _key(row)) in places):
            if launches and launches[-1][0] is cell and launches[-1][1][-1] + 1 == index:
                launches[-1][1].append(index)
            else:
                launches.append((cell, [index]))
        return [_part(cell, indices) for cell, indices in launches]

    def measured(self, number: int) -> list[Cell]:
        """Return the cells to measure in a round: those that it selected; subclasses add others."""
        return self.selected(number)

    def node_hours_ahead(self) -> float:
        """Return the budget of future rounds until the last one has selected its points; infinite without a budget."""
        if self.study.machine.kind != "slurm" or self.last_selected() is not None:
            return 0.0
        budget = self.sampling.budget_node_minutes
        return math.inf if budget is None else budget / 60

    def last_selected(self) -> int | None:
        """Return the last round: the first that selected nothing, or the last that is allowed; None while more may follow."""
        for number in range(1, self.last_round + 1):
            path = self.selection_of(number)
            if not path.exists():
                return None
            if not read_csv(path):
                return number
        return self.last_round

    @property
    def sampling_rules(self) -> dict[str, Any]:
        """Return how the grid is sampled: the keys of `sampling` that the study sets or that have a default."""
        return {key: value for key, value in asdict(self.sampling).items() if value is not None}

    def describe(self) -> dict[str, Any]:
        """Return the description of the grid, and how it is sampled."""
        return super().describe() | {"sampling": self.sampling_rules}

    def files(self) -> dict[str, bytes]:
        """Return the files, including the list of all points."""
        return super().files() | {"sampling/grid.csv": grid(self.grid, self.weight)}

    def rows(self) -> Rows:
        """Return the stored measurements of all rounds."""
        return self.rows_until(self.last_round)

    def rows_until(self, number: int) -> Rows:
        """Return the stored measurements of the rounds up to *number*."""
        return self.rows_of(self.cells_until(number, self.selected), timed=True)


def _points(cell: Cell) -> Iterator[dict[str, Any]]:
    """Yield every point of a cell."""
    parameters = parameter_text(cell.parameters)
    for size in cell.size_list:
        values = (cell.collective, cell.algorithm, parameters, cell.mapping, cell.nodes, cell.processes, size)
        yield dict(zip(POINT, values, strict=True))


def _key(point: dict[str, Any]) -> tuple[str, ...]:
    return tuple("" if point[name] is None else str(point[name]) for name in POINT)


def grid(cells: list[Cell], weight: Callable[[str, int, int | None], float]) -> bytes:
    """Return the content of grid.csv: every point of the study's cells."""
    rows = {}
    for number, cell in enumerate(cells):
        for point in _points(cell):
            costs = {"mpi": cell.mpi["name"], "iterations": cell.iterations, "warmup": cell.warmup}
            costs["weight"] = weight(cell.collective, cell.processes, point["size_bytes"])
            costs["spread_us"] = cell.spread_text
            costs["start"] = "shared" if cell.shares_start else "own"
            # Only sizes of one cell can share a launch.
            costs["cell"] = number
            rows.setdefault(_key(point), {**point, **costs})
    return to_csv(GRID_COLUMNS, list(rows.values()))


def _part(cell: Cell, indices: list[int]) -> Cell:
    """Return the cell restricted to a range of its sizes."""
    if cell.sizes is None:
        return cell
    sizes = cell.size_list
    return replace(cell, sizes=(sizes[indices[0]], sizes[indices[-1]], *cell.sizes[2:]))
