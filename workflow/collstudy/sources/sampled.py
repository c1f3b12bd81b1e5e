"""A study that is sampled: from the points that a round asks for to cells, blocks and measurements.

The analysis chooses points (algorithm, processes, message size; `workflow/analysis/R/sampling.R`) from those of the study's sweeps,
which `results/<study>/sampling/grid.csv` lists. Neighbouring sizes of one algorithm and number of processes are one cell, so one
launch sweeps them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collstudy.base.files import to_csv
from collstudy.plan.blocks import Block, pack, pending, write_blocks, write_pending
from collstudy.sources.collect import collect_study
from collstudy.study.cells import Cell
from collstudy.study.config import Choice, Study

if TYPE_CHECKING:
    from collstudy.project.studies import Project

#: What tells a point from all others, and what its calls cost.
POINT = ["collective", "algorithm", "parameters", "mapping", "nodes", "processes", "size_bytes"]
GRID_COLUMNS = [*POINT, "mpi", "iterations", "warmup"]


def folder_of(results: Path, study: str, number: int) -> Path:
    """The folder of a round."""
    return results / study / "sampling" / f"round-{number}"


def _points(cell: Cell) -> Iterator[dict[str, Any]]:
    """Every point of a cell."""
    parameters = Choice(cell.algorithm, cell.parameters).parameter_text
    for size in cell.size_list:
        values = (cell.collective, cell.algorithm, parameters, cell.mapping, cell.nodes, cell.processes, size)
        yield dict(zip(POINT, values, strict=True))


def _key(point: dict[str, Any]) -> tuple[str, ...]:
    return tuple("" if point[name] is None else str(point[name]) for name in POINT)


def grid(cells: list[Cell]) -> bytes:
    """grid.csv: every point of the study's cells."""
    rows = {}
    for cell in cells:
        for point in _points(cell):
            costs = {"mpi": cell.mpi["name"], "iterations": cell.iterations, "warmup": cell.warmup}
            rows.setdefault(_key(point), {**point, **costs})
    return to_csv(GRID_COLUMNS, list(rows.values()))


def asked(project: Project, study: Study, number: int) -> list[Cell]:
    """The cells of a round; none where it has not asked yet. Points that the study's sweeps no longer have are left out."""
    path = folder_of(project.results, study.name, number) / "asked.csv"
    if not path.exists():
        return []
    places: dict[tuple[str, ...], tuple[Cell, int]] = {}
    for cell in project.cells(study):
        for index, point in enumerate(_points(cell)):
            places.setdefault(_key(point), (cell, index))
    with open(path, newline="", encoding="utf-8") as stream:
        found = [places[key] for row in csv.DictReader(stream) if (key := _key(row)) in places]
    launches: list[tuple[Cell, list[int]]] = []
    for cell, index in found:
        if launches and launches[-1][0] is cell and launches[-1][1][-1] + 1 == index:
            launches[-1][1].append(index)
        else:
            launches.append((cell, [index]))
    return [_part(cell, indices) for cell, indices in launches]


def _part(cell: Cell, indices: list[int]) -> Cell:
    """The cell with those of its sizes alone, which are neighbours."""
    if cell.sizes is None:
        return cell
    sizes = cell.size_list
    return replace(cell, sizes=(sizes[indices[0]], sizes[indices[-1]], *cell.sizes[2:]))


def asked_until(project: Project, study: Study, number: int) -> list[Cell]:
    """The cells of all rounds until one, each once."""
    rounds = range(1, number + 1)
    return list({cell.digest: cell for one in rounds for cell in asked(project, study, one)}.values())


def lacking(project: Project, study: Study, number: int) -> list[Block]:
    """Blocks of what the store lacks of a round."""
    cells = asked(project, study, number)
    tasks = (
        pending(cell, have, study.policy) for cell, (have, _) in zip(cells, project.store.summaries(cells), strict=True)
    )
    return pack((study.machine, task) for task in tasks if task)


def ask(project: Project, study: Study, number: int) -> list[Path]:
    """Write the blocks of a round and its pending.txt; returns their markers."""
    markers = write_blocks(lacking(project, study, number), project.results / "blocks")
    write_pending(folder_of(project.results, study.name, number) / "pending.txt", markers)
    return markers


def ask_again(project: Project, study: Study) -> list[Path]:
    """Like ask, for every round that asked before and lacks something: it was killed, cells failed, or get more launches."""
    rounds = [number for number in range(1, study.sampling.rounds + 1) if lacking(project, study, number)]
    return [marker for number in rounds for marker in ask(project, study, number)]


def node_hours_ahead(project: Project, study: Study) -> float:
    """What rounds to come may spend: the budget until the last one has asked, infinite without one."""
    if not study.sampling or study.machine.kind != "slurm":
        return 0.0
    if (folder_of(project.results, study.name, study.sampling.rounds) / "asked.csv").exists():
        return 0.0
    budget = study.sampling.budget_node_minutes
    return math.inf if budget is None else budget / 60


def collect(project: Project, study: Study, number: int) -> None:
    """Write cells.csv and measurements.csv of all rounds until one to the folder of that round."""
    folder = folder_of(project.results, study.name, number)
    collect_study(study, asked_until(project, study, number), project.store, folder)
