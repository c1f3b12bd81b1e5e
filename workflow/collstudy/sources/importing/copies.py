"""Import checks of values that were not measured: those of another series, digit by digit or times a constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding, percent, series_name, whole_series
from collstudy.sources.importing.series import Firsts, Series, Table

np = lazy("numpy")

#: Values that two decimals print to better than 0.3 %.
PRECISE_US = 2.0
#: Independent measurements never have a constant ratio within half a percent.
SAME_RATIO = 0.005
#: Fewer common cells tell nothing about copies.
LEAST_COPIED = 10


def multiples(table: Table) -> Iterator[Finding]:
    """Series, numbers of ranks or sizes whose times are others' times one constant."""
    precise = np.where(table.values >= PRECISE_US, table.values, np.nan)
    of: dict[tuple, list[int]] = {}
    for index, series in enumerate(table.series):
        of.setdefault(series[:2], []).append(index)
    for mine in of.values():
        for place, one in enumerate(mine):
            rest = mine[place + 1 :]
            for two, factor, cells in _constant_ratios(precise[:, [one] * len(rest)].T, precise[:, rest].T):
                yield Finding(
                    "times a constant", f"{series_name(table.series[one])} and {series_name(table.series[rest[two]])}",
                    f"{cells} cells have the ratio {factor:.4g} within {percent(SAME_RATIO)}", "certain",
                )  # fmt: skip
    sized = (table.sizes > 0)[:, None]
    for series, values in zip(table.series, np.where(sized, precise, np.nan).T, strict=True):
        ranks, sizes, times = table.grid(values)
        yield from _rows_in_ratio(ranks, times, series, "ranks")
        yield from _rows_in_ratio(sizes, times.T, series, "bytes")


def _rows_in_ratio(names: np.ndarray, times: np.ndarray, series: Series, what: str) -> Iterator[Finding]:
    """Rows of a table of times (sizes by ranks, or the other way) that are neighbours' times a constant."""
    found = [
        (names[row], names[row + 1], 1 / factor, cells)
        for row, factor, cells in _constant_ratios(times[:-1], times[1:])
    ]
    if found:
        one, two, factor, cells = found[0]
        yield Finding(
            "times a constant", (series,),
            f"{len(found)} times: the times of {int(two)} {what} are those of {int(one)} times {factor:.4g} in {cells} cells", "certain",
        )  # fmt: skip


def _constant_ratios(a: np.ndarray, b: np.ndarray) -> list[tuple[int, float, int]]:
    """Rows of *a* and *b* whose ratio is one constant, and not 1, within SAME_RATIO in at least eight cells of some range.

    Returns:
        Row, ratio and cells of each.
    """
    if not a.size:
        return []
    known = ~(np.isnan(a) | np.isnan(b))
    count = known.sum(axis=1)
    largest = np.where(known, a, -np.inf).max(axis=1)
    smallest = np.where(known, a, np.inf).min(axis=1)
    rows = np.flatnonzero((count >= 8) & (largest >= 2 * smallest))
    if not len(rows):
        return []
    ratio, count = np.where(known, a / b, np.nan)[rows], count[rows]
    ordered, each = np.sort(ratio, axis=1), np.arange(len(rows))
    middle = (ordered[each, (count - 1) // 2] + ordered[each, count // 2]) / 2
    near = (np.abs(ratio / middle[:, None] - 1) < SAME_RATIO).sum(axis=1)
    constant = (near / count >= 0.95) & (np.abs(middle - 1) >= 2 * SAME_RATIO)
    return [(int(rows[i]), float(middle[i]), int(count[i])) for i in np.flatnonzero(constant)]


def copies(mine: Firsts, others: Mapping[str, list[dict[str, Any]] | Firsts]) -> Iterator[Finding]:
    """Series that are another's, digit by digit: of another algorithm, mapping or source here, or of another source in another study."""
    for name, other in {"": mine, **others}.items():
        theirs = Firsts.of_rows(other) if isinstance(other, list) else other
        ours, reference = _shared(mine.table, theirs.table)
        found: dict[tuple, list[tuple[str, float, int]]] = {}
        for one, two, equal, cells in _equal_series(mine.table.series, ours, theirs.table.series, reference):
            if (name == "" and one >= two) or (name and one[0] == two[0] and one[0] != ""):
                continue
            if not (name and mine.paths.get(one, frozenset()) & theirs.paths.get(two, frozenset())):
                found.setdefault((whole_series(*one[:3]), whole_series(*two[:3])), []).append(
                    (f"{one[4]} and {two[4]}", equal, cells)
                )
        for (one_name, two_name), where in found.items():
            mappings = ", ".join(text for text, _, _ in where)
            share = min(equal for _, equal, _ in where)
            yield Finding(
                "equal digit by digit", f"{one_name}" + ("" if name else f" and {two_name}"),
                f"{percent(share)} and more of {sum(cells for _, _, cells in where)} values are those of {two_name}"
                + (f" of study {name}" if name else "") + f" (by {mappings}); the values do not show which is the copy",
                "certain",
            )  # fmt: skip


def _shared(one: Table, two: Table) -> tuple[np.ndarray, np.ndarray]:
    """The values of both tables in the cells that both have."""
    where = {cell: row for row, cell in enumerate(map(tuple, two.cells.tolist()))}
    rows = [(row, where[cell]) for row, cell in enumerate(map(tuple, one.cells.tolist())) if cell in where]
    return one.values[[row for row, _ in rows]], two.values[[row for _, row in rows]]


def _equal_series(
    ours: list[Series], our_values: np.ndarray, theirs: list[Series], their_values: np.ndarray
) -> Iterator[tuple[Series, Series, float, int]]:
    """Two series of one collective of whose values nine of ten and more are equal, with that share and the cells of both."""
    if len(our_values) < LEAST_COPIED:
        return
    known = ~np.isnan(their_values)
    for index, one in enumerate(ours):
        a = our_values[:, index, None]
        columns = np.array([other for other, two in enumerate(theirs) if two[1] == one[1]], dtype=int)
        both = known[:, columns] & ~np.isnan(a)
        equal, large = both & (a == their_values[:, columns]), both & (a >= 1.0)
        cells, clear = both.sum(axis=0), large.sum(axis=0)
        enough = (cells >= LEAST_COPIED) & (clear >= 8)
        share = np.minimum(equal.sum(axis=0) / np.maximum(cells, 1), (equal & large).sum(axis=0) / np.maximum(clear, 1))
        for place in np.flatnonzero(enough & (share >= 0.9)):
            if len(np.unique(a[both[:, place]])) >= 6:
                yield one, theirs[columns[place]], float(share[place]), int(cells[place])
