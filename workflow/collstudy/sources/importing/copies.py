"""Import checks of values that were not measured: those of another series, digit by digit or times a constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding, percent, series_name, whole_series
from collstudy.sources.importing.series import Series, Table, Values

np = lazy("numpy")

#: Values that two decimals print to better than 0.3 %.
PRECISE_US = 2.0
#: Independent measurements never have a constant ratio within half a percent.
SAME_RATIO = 0.005
#: With fewer common cells copies cannot be told from chance.
LEAST_COPIED = 8
#: Two measurements of one cell differ by 0.5 % and more each (standard deviation; of the authors at hand by 1 to 3 %), so that their
#: values are equal by chance with the probability last digit / (CHANCE x value). Copies have evidence against chance of EVIDENCE
#: (minus the logarithm of the product of these probabilities: one in a million), in DISTINCT different values.
CHANCE, EVIDENCE, DISTINCT = 0.018, 14.0, 6
#: A part of a series is a copy where so many of the values that would be equal by chance in one of ten cells are equal.
COPIED_PART = 0.3


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


def copies(mine: Values, others: Mapping[str, list[dict[str, Any]] | Values]) -> Iterator[Finding]:
    """Series that are another's, digit by digit or times a constant: of another algorithm, mapping or source here, or of another
    source in another study. Within one study multiples() finds constants.
    """
    for name, other in {"": mine, **others}.items():
        theirs = Values.of_rows(other) if isinstance(other, list) else other
        known = set(map(tuple, theirs.cells.tolist()))
        shared = np.array([cell for cell in mine.cells.tolist() if tuple(cell) in known]).reshape(-1, 3)
        if len(shared) < LEAST_COPIED:
            continue
        ours, reference = mine.at(shared), theirs.at(shared)
        equal: dict[tuple[str, str], list[tuple[Series, Series, Equal]]] = {}
        for index, one in enumerate(mine.series):
            columns = [
                column for column, two in enumerate(theirs.series)
                if two[1] == one[1] and _independent(one, mine.paths, two, theirs.paths, name)
            ]  # fmt: skip
            for column in columns:
                two, found = theirs.series[column], _equal(ours[:, :, index], reference[:, :, column])
                if found.evidence:
                    equal.setdefault((one[0], two[0]), []).append((one, two, found))
            if name and columns:
                yield from _scaled(one, ours[0, :, index], theirs, reference[:, :, columns], columns, name)
        for pairs in equal.values():
            if sum(found.evidence for _, _, found in pairs) >= EVIDENCE:
                yield from _copied(pairs, name)


def _independent(
    one: Series,
    our_paths: Mapping[Series, frozenset[str]],
    two: Series,
    their_paths: Mapping[Series, frozenset[str]],
    name: str,
) -> bool:
    """Whether equal values of two series need an explanation: they are not of one source or file in two studies."""
    if not name:
        return one < two
    same_source = one[0] == two[0] and one[0] != ""
    return not same_source and not our_paths.get(one, frozenset()) & their_paths.get(two, frozenset())


def _copied(pairs: list[tuple[Series, Series, Equal]], name: str) -> Iterator[Finding]:
    """Series that have values of others; all mappings of two algorithms together."""
    found: dict[tuple[str, str], list[tuple[str, Equal]]] = {}
    for one, two, equal in pairs:
        found.setdefault((whole_series(*one[:3]), whole_series(*two[:3])), []).append((f"{one[4]} and {two[4]}", equal))
    for (one_name, two_name), where in found.items():
        mappings = ", ".join(text for text, _ in where)
        yield Finding(
            "equal digit by digit", one_name + ("" if name else f" and {two_name}"),
            f"at least {percent(min(equal.share for _, equal in where))} of {sum(equal.cells for _, equal in where)} values are those of "
            f"{two_name}" + (f" of study {name}" if name else "") + f" (by {mappings}); the values do not show which is the copy",
            "certain",
        )  # fmt: skip


def _scaled(
    one: Series, ours: np.ndarray, theirs: Values, reference: np.ndarray, columns: list[int], name: str
) -> Iterator[Finding]:
    """Series of *columns*, with the values *reference* (launch x cell x column), that *one* is a multiple of."""
    precise = np.where(ours >= PRECISE_US, ours, np.nan)
    for layer in reference:
        rivals = np.where(layer >= PRECISE_US, layer, np.nan).T
        for place, factor, cells in _constant_ratios(np.tile(precise, (len(columns), 1)), rivals):
            two = theirs.series[columns[place]]
            yield Finding(
                "times a constant", series_name(one),
                f"{cells} cells are those of {series_name(two)} of study {name} times {factor:.4g} within {percent(SAME_RATIO)}",
                "certain",
            )  # fmt: skip


@dataclass(frozen=True)
class Equal:
    """Of two series: the part of their common cells in which a value of one is a value of the other, as far as both are printed,
    the number of these cells, and the evidence against chance (0: none).
    """

    share: float
    cells: int
    evidence: float


def _equal(ours: np.ndarray, theirs: np.ndarray) -> Equal:
    """Compare two series (launch x cell)."""
    both = ~np.isnan(ours[0]) & ~np.isnan(theirs[0])
    cells = int(both.sum())
    if cells < LEAST_COPIED:
        return Equal(0, cells, 0)
    a, b = ours[:, both], theirs[:, both]
    printed = np.maximum(_resolution(a), _resolution(b))
    limit = 0.5 * printed * (1 + 1e-6) + 1e-9 * a[0]
    equal = (np.abs(a - b[0]) <= limit).any(axis=0) | (np.abs(a[0] - b) <= limit).any(axis=0)
    chance = np.minimum(1, printed / (CHANCE * a[0]))
    telling, rare = chance < 0.5, chance < 0.1
    whole = equal.mean() >= 0.9 and (not telling.any() or equal[telling].mean() >= 0.9)
    part = (equal & rare).sum() >= max(LEAST_COPIED, COPIED_PART * rare.sum())
    evidence = -np.log(chance[equal]).sum() if (whole or part) and len(np.unique(a[0][equal])) >= DISTINCT else 0
    return Equal(float(equal.mean()), cells, float(evidence))


def _resolution(values: np.ndarray) -> np.ndarray:
    """What the last printed digit of each cell's smallest value stands for, by the decimals and the digits that all values have."""
    exponent = np.floor(np.log10(values))

    def printed(unit: np.ndarray | float) -> bool:
        return bool(np.allclose(np.round(values / unit) * unit, values, rtol=1e-9, atol=0))

    decimals = next((n for n in range(10) if printed(10.0**-n)), 10)
    digits = next((n for n in range(1, 16) if printed(10.0 ** (exponent - n + 1))), 16)
    return np.maximum(10.0**-decimals, 10.0 ** (exponent[0] - digits + 1))
