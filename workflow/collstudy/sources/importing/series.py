"""Imported rows as arrays for the checks: one column per series, one row per cell and size.

A *series* has the data of one source, algorithm and mapping: (source, collective, algorithm, parameters, mapping).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from collstudy.base.lazy import lazy
from collstudy.study.names import POINT_TO_POINT

np = lazy("numpy")

Series = tuple[str, str, str, str, str]


def series_of(row: dict[str, Any]) -> Series:
    """Return the series of a row."""
    return (
        row.get("source") or "", row["collective"], row["algorithm"], row.get("parameters") or "", row["mapping"],
    )  # fmt: skip


class Launches:
    """Rows of an import as arrays; parts of them keep the numbers of their rows (`at`)."""

    def __init__(self, rows: list[dict[str, Any]]):
        self.rows = rows
        self.at = np.arange(len(rows))
        named = [series_of(row) for row in rows]
        self.names: list[Series] = sorted(set(named))
        number = {name: index for index, name in enumerate(self.names)}
        self.series = np.array([number[name] for name in named], dtype=int)
        self.nodes = np.array([row["nodes"] for row in rows], dtype=float)
        self.processes = np.array([row["processes"] for row in rows], dtype=float)
        self.sizes = np.array([row.get("size_bytes") or 0 for row in rows], dtype=float)
        self.us, self.low, self.high = (
            np.array([row.get(name) for row in rows], dtype=float)
            for name in ("latency_us", "min_latency_us", "max_latency_us")
        )

    def __len__(self) -> int:
        return len(self.at)

    def part(self, wanted: np.ndarray) -> Launches:
        """Return the rows selected by *wanted*, one Boolean per row."""
        found = object.__new__(Launches)
        found.rows, found.names = self.rows, self.names
        for name in ("at", "series", "nodes", "processes", "sizes", "us", "low", "high"):
            setattr(found, name, getattr(self, name)[wanted])
        return found

    @functools.cached_property
    def pairs(self) -> np.ndarray:
        """Return whether each row belongs to the `pairs` benchmark."""
        return np.isin(self.series, [i for i, name in enumerate(self.names) if name[1] == "pairs"])

    def timed(self) -> Launches:
        """Return the rows of collectives that have a latency."""
        return self.part(~np.isnan(self.us) & ~self.pairs)

    def by_series(self) -> Iterator[tuple[Series, Launches]]:
        """Yield the rows of each series, in the order of the series."""
        for index in np.unique(self.series):
            yield self.names[index], self.part(self.series == index)

    def medians(self) -> Table:
        """Return the median over launches for each cell and series."""
        return self._table(_middles)

    def layers(self, most: int) -> list[Table]:
        """Return tables of the smallest, second smallest, ... value per cell, up to *most*; cells with fewer values repeat the largest."""
        places = np.column_stack([self.series, self.nodes, self.processes, self.sizes])
        _, counts = np.unique(places, axis=0, return_counts=True)
        return [
            self._table(lambda values, starts, counts, k=k: values[starts + np.minimum(k, counts - 1)])
            for k in range(min(most, counts.max(initial=1)))
        ]

    def _table(self, reduce: Any) -> Table:
        """Reduce to one value per series and cell (see _reduced)."""
        if not len(self):
            return Table([], np.empty((0, 3)), np.empty((0, 0)))
        present, column = np.unique(self.series, return_inverse=True)
        where = np.column_stack([self.nodes, self.processes, self.sizes])
        axes = [np.unique(where[:, i], return_inverse=True) for i in range(3)]
        shape = [len(values) for values, _ in axes]
        cells, cell = np.unique(np.ravel_multi_index([index for _, index in axes], shape), return_inverse=True)
        values = _reduced(column * len(cells) + cell, self.us, (len(present), len(cells)), reduce)
        indices = np.unravel_index(cells, shape)
        named = np.column_stack([values[index] for (values, _), index in zip(axes, indices, strict=True)])
        return Table([self.names[index] for index in present], named, values.T)


def _reduced(places: np.ndarray, values: np.ndarray, shape: tuple[int, int], reduce: Any) -> np.ndarray:
    """Return a matrix of *shape* with one value of the *values* at each of its *places* (numbers of its cells); NaN where there is none.
    *reduce* takes the values, sorted within each place, and the start and the number of those of each place.
    """
    order = np.lexsort((values, places))
    places, values = places[order], values[order]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    found = np.full(shape, np.nan)
    found.ravel()[places[starts]] = reduce(values, starts, np.diff(starts, append=len(places)))
    return found


def _middles(values: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the medians of sorted groups."""
    return (values[starts + (counts - 1) // 2] + values[starts + counts // 2]) / 2


@dataclass(frozen=True)
class Table:
    """A value per cell (rows: nodes, processes, size; sorted) and series (columns; sorted); NaN where there is none."""

    series: list[Series]
    cells: np.ndarray
    values: np.ndarray

    @functools.cached_property
    def number(self) -> dict[Series, int]:
        """Return the column number of each series."""
        return {name: index for index, name in enumerate(self.series)}

    @functools.cached_property
    def by_name(self) -> dict[tuple[str, ...], list[Series]]:
        """Return the series of all sources by the rest of their name."""
        groups: dict[tuple[str, ...], list[Series]] = {}
        for name in self.series:
            groups.setdefault(name[1:], []).append(name)
        return groups

    @property
    def processes(self) -> np.ndarray:
        """Return the process count of each row."""
        return self.cells[:, 1]

    @property
    def sizes(self) -> np.ndarray:
        """Return the message size (bytes) of each row."""
        return self.cells[:, 2]

    def __getitem__(self, series: Series) -> np.ndarray:
        return self.values[:, self.number[series]]

    def columns(self) -> Iterator[tuple[Series, np.ndarray]]:
        """Yield each series with its values."""
        return ((name, self.values[:, index]) for index, name in enumerate(self.series))

    def at(self, cells: np.ndarray, node: int = 0) -> Table:
        """Return the values at other *cells*; NaN where there is none. By core, up to *node* ranks are on a single node, whatever the
        number of nodes.
        """
        rows = places(self.cells, cells)
        found = np.full((len(rows), len(self.series)), np.nan)
        found[rows >= 0] = self.values[rows[rows >= 0]]
        inside = np.flatnonzero(cells[:, 1] <= node)
        for index in [index for index, name in enumerate(self.series) if name[4] == "core"] if len(inside) else []:
            mine = np.flatnonzero(~np.isnan(self.values[:, index]) & (self.processes <= node))
            rows = places(self.cells[mine, 1:], cells[inside, 1:])
            gaps = np.isnan(found[inside, index]) & (rows >= 0)
            found[inside[gaps], index] = self.values[mine[rows[gaps]], index]
        return Table(self.series, cells, found)

    def grid(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return process counts, sizes, and a matrix of the known *values*: medians over numbers of nodes."""
        known = ~np.isnan(values)
        return grid(self.processes[known], self.sizes[known], values[known])


def places(cells: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the row of each *wanted* cell among *cells*; -1 if it is not there."""
    where = {cell: row for row, cell in enumerate(map(tuple, cells.tolist()))}
    return np.array([where.get(cell, -1) for cell in map(tuple, wanted.tolist())], dtype=int)


def grid(processes: np.ndarray, sizes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct *processes* and *sizes*, and a matrix with the median of *values* for each pair; NaN where there is none."""
    rows, row = np.unique(processes, return_inverse=True)
    columns, column = np.unique(sizes, return_inverse=True)
    return rows, columns, _reduced(row * len(columns) + column, values, (len(rows), len(columns)), _middles)


@dataclass(frozen=True)
class Values:
    """Values by cell and series that are compared digit by digit, and the files of each series.

    `layers` is the result of Launches.layers() as one array: layer x cell x series.
    """

    #: Maximum number of launches of a cell to compare.
    MOST: ClassVar[int] = 8

    series: list[Series]
    cells: np.ndarray
    layers: np.ndarray
    paths: dict[Series, frozenset[str]]
    #: Series that their study leaves out; they are no reference for others.
    doubtful: frozenset[Series] = frozenset()

    @classmethod
    def of(cls, timed: Launches) -> Values:
        """Create from the rows of an import that are of collectives and have a latency."""
        tables = timed.layers(cls.MOST)
        values = np.stack([table.values for table in tables])
        doubtful = {series_of(row) for row in timed.rows if "left_out" in row}
        return cls(tables[0].series, tables[0].cells, values, paths_of(timed), frozenset(doubtful))

    @functools.cached_property
    def quiet(self) -> frozenset[Series]:
        """Return the series whose values may repeat others' within half a percent: messages between two ranks, and those of several
        launches, whose smallest values and medians have less noise.
        """
        several = (self.layers[-1] > self.layers[0]).any(axis=0)
        return frozenset(
            name for name, has in zip(self.series, several, strict=True) if has or name[1] in POINT_TO_POINT
        )

    def reference_for(self, mine: Values) -> Table:
        """Return the medians over launches, as a reference for another study of the machine: without doubtful series, and without
        those of a source or a file that *mine* has, too.
        """
        sources = {series[0] for series in mine.series} - {""}
        paths = frozenset().union(*mine.paths.values())
        used = [
            index for index, series in enumerate(self.series)
            if series not in self.doubtful and series[0] not in sources and not self.paths.get(series, frozenset()) & paths
        ]  # fmt: skip
        return Table([self.series[index] for index in used], self.cells, np.median(self.layers, axis=0)[:, used])

    def at(self, cells: np.ndarray) -> np.ndarray:
        """Return the values of some cells (layer x cell x series); NaN where there is none."""
        rows = places(self.cells, cells)
        found = np.full((len(self.layers), len(rows), len(self.series)), np.nan)
        found[:, rows >= 0] = self.layers[:, rows[rows >= 0]]
        return found

    def kept(self) -> dict[str, Any]:
        """Convert to JSON values: for each layer, only the values that differ from the layer before."""
        layers, before = [], np.full(self.layers.shape[1:], np.nan)
        for layer in self.layers:
            new = np.flatnonzero((layer != before) & ~np.isnan(layer))
            layers.append({"at": new.tolist(), "values": layer.ravel()[new].tolist()})
            before = layer
        return {
            "series": [list(series) for series in self.series], "cells": self.cells.tolist(), "layers": layers,
            "paths": [[list(series), sorted(paths)] for series, paths in self.paths.items()],
            "doubtful": [list(series) for series in sorted(self.doubtful)],
        }  # fmt: skip

    @classmethod
    def from_kept(cls, kept: dict[str, Any]) -> Values:
        """Convert the result of kept() back."""
        series: list[Any] = [tuple(name) for name in kept["series"]]
        cells = np.array(kept["cells"], dtype=float).reshape(-1, 3)
        layers, current = [], np.full((len(cells), len(series)), np.nan)
        for layer in kept["layers"]:
            current = current.copy()
            current.ravel()[np.array(layer["at"], dtype=int)] = layer["values"]
            layers.append(current)
        paths = {tuple(name): frozenset(paths) for name, paths in kept["paths"]}
        return cls(series, cells, np.stack(layers), paths, frozenset(tuple(name) for name in kept["doubtful"]))


def paths_of(launches: Launches) -> dict[Series, frozenset[str]]:
    """Return the files from which each series was read."""
    found: dict[int, set[str]] = {}
    for series, at in zip(launches.series.tolist(), launches.at.tolist(), strict=True):
        path = launches.rows[at].get("path")
        if path is not None:
            found.setdefault(series, set()).add(path)
    return {launches.names[series]: frozenset(paths) for series, paths in found.items()}


def most_cells(rows: Iterable[dict[str, Any]]) -> int:
    """Return the largest number of timed rows in one series of a collective."""
    count: dict[Series, int] = {}
    for row in rows:
        if row["collective"] != "pairs" and row.get("latency_us") is not None:
            name = series_of(row)
            count[name] = count.get(name, 0) + 1
    return max(count.values(), default=0)
