"""Find imported values that were not measured: copies of another series, or its values multiplied by a constant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, common, percent, series_name, whole_series
from collstudy.sources.importing.series import Series, Table, Values, places

np = lazy("numpy")

#: From this value (us) on, rounding to two decimals changes a time by less than 0.3 %.
PRECISE_US = 2.0
#: The ratio of independent measurements is never constant within this tolerance (half a percent): between two series, at most 40 % of
#: the cells are this near to the median ratio; between two numbers of ranks (or sizes), 90 % of 20 cells, and all of 12 by chance among
#: 32 000 pairs. So more cells are needed among more pairs.
SAME_RATIO, NEAR_SERIES, NEAR_ROWS = 0.005, 0.7, 0.95
#: In fewer than MANY cells of such rows, it is constant within the last printed digits and EXACT (measured: within half a percent in 13
#: of 14 cells of a pipeline).
MANY, EXACT = 20, 0.001
#: A ratio that is nearer to 1 is no finding between two sizes, because the size hardly matters, and two series that are quiet
#: (Values.quiet), because they may be measurements of the same times (osu_latency in four settings of one machine: 56 of 60 pairs).
APART = 0.05
#: With fewer common cells, copies cannot be distinguished from chance.
LEAST_COPIED = 8
#: Repeated measurements of a cell have a standard deviation of at least 0.5 % (1 to 3 % in the data of the six authors), so two
#: of them are equal by chance with the probability last digit / (CHANCE x value), or last digit / range of its launches if that is
#: narrower, for each pair of launches that is compared. Series are copies if minus the logarithm of the product of these
#: probabilities is at least EVIDENCE (one in a million), and at least DISTINCT different values are equal.
CHANCE, EVIDENCE, DISTINCT = 0.018, 14.0, 6
#: Part of a series is a copy if at least this fraction of values is equal, among those equal by chance in at most one of ten cells.
COPIED_PART = 0.3


def multiples(table: Table, quiet: frozenset[Series]) -> Iterator[Finding]:
    """Find series, also of two sources, rank counts and sizes whose times have a constant ratio to those of others."""
    precise = np.where(table.values >= PRECISE_US, table.values, np.nan)
    of: dict[str, list[int]] = {}
    for index, series in enumerate(table.series):
        of.setdefault(series[1], []).append(index)
    for mine in of.values():
        for place, one in enumerate(mine):
            rest = mine[place + 1 :]
            for two, factor, cells in _constant_ratios(
                precise[:, [one] * len(rest)].T, precise[:, rest].T, NEAR_SERIES
            ):
                pair = table.series[one], table.series[rest[two]]
                if abs(factor - 1) >= APART or not quiet.issuperset(pair):
                    yield Finding(
                        "constant ratio", " and ".join(map(series_name, pair)),
                        f"the ratio is {factor:.4g} within {percent(SAME_RATIO)} in {cells:,} cells", "certain",
                    )  # fmt: skip
    sized = (table.sizes > 0)[:, None]
    for series, values in zip(table.series, np.where(sized, precise, np.nan).T, strict=True):
        ranks, sizes, times = table.grid(values)
        yield from _rows_in_ratio(ranks, times, series, "ranks", 0)
        yield from _rows_in_ratio(sizes, times.T, series, "bytes", APART)


def _rows_in_ratio(names: np.ndarray, times: np.ndarray, series: Series, what: str, apart: float) -> Iterator[Finding]:
    """Find rows with a constant ratio, *apart* from 1, in a table of times (ranks x sizes, or sizes x ranks)."""
    one, two = np.triu_indices(len(names), 1)
    ratios = _constant_ratios(times[one], times[two], NEAR_ROWS, math.log2(max(1, len(one))) / 3)
    found = [
        (pair, factor, cells) for pair, factor, cells in ratios
        if abs(factor - 1) >= apart and (cells >= MANY or _exact(times[one[pair]], times[two[pair]], factor))
    ]  # fmt: skip
    if found:
        pair, factor, cells = found[0]
        yield Finding(
            "constant ratio", (series,),
            f"in {len(found)} pair{'s' * (len(found) > 1)} of numbers of {what}; the first: from {int(names[one[pair]])} to "
            f"{int(names[two[pair]])} the time changes by a factor of {1 / factor:.4g} in {cells:,} cells", "certain",
        )  # fmt: skip


def _exact(a: np.ndarray, b: np.ndarray, factor: float) -> bool:
    """Return whether almost all values of *a* are *factor* times those of *b*, within the last printed digits and EXACT."""
    a, b = common(a, b)
    rounded = 0.5 * (resolution_of(a[None]) / a + resolution_of(b[None]) / b)
    return bool((np.abs(a / (factor * b) - 1) <= rounded + EXACT).mean() >= NEAR_ROWS)


def _constant_ratios(a: np.ndarray, b: np.ndarray, part: float, more: float = 0) -> list[tuple[int, float, int]]:
    """Find rows of *a* and *b* whose ratio is constant within SAME_RATIO in a *part* of at least LEAST_COPIED + *more* cells whose values
    differ by a factor of two or more. Rows of which most values are equal are left to copies().

    Returns:
        Row, ratio and number of cells of each.
    """
    if not a.size:
        return []
    known = ~(np.isnan(a) | np.isnan(b))
    count = known.sum(axis=1)
    largest = np.where(known, a, -np.inf).max(axis=1)
    smallest = np.where(known, a, np.inf).min(axis=1)
    equal = (a == b).sum(axis=1)
    rows = np.flatnonzero((count >= LEAST_COPIED + more) & (largest >= 2 * smallest) & (equal <= count / 2))
    if not len(rows):
        return []
    ratio, count = np.where(known, a / b, np.nan)[rows], count[rows]
    ordered, each = np.sort(ratio, axis=1), np.arange(len(rows))
    middle = (ordered[each, (count - 1) // 2] + ordered[each, count // 2]) / 2
    constant = (np.abs(ratio / middle[:, None] - 1) < SAME_RATIO).sum(axis=1) >= part * count
    return [(int(rows[i]), float(middle[i]), int(count[i])) for i in np.flatnonzero(constant)]


def repeated(table: Table) -> Iterator[Finding]:
    """Find numbers of ranks, and sizes, of a series whose times are almost all those of another one digit by digit."""
    sized = (table.sizes > 0)[:, None]
    for series, values in zip(table.series, np.where(sized, table.values, np.nan).T, strict=True):
        ranks, sizes, times = table.grid(values)
        for names, rows, what in ((ranks, times, "ranks"), (sizes, times.T, "bytes")):
            one, two = np.triu_indices(len(names), 1)
            near = np.flatnonzero((rows[one] == rows[two]).sum(axis=1) >= LEAST_COPIED)
            pairs = [(i, j, _equal(rows[None, i], rows[None, j])) for i, j in zip(one[near], two[near], strict=True)]
            found = [
                pair for pair in pairs if pair[2].share >= 0.9 and pair[2].evidence >= EVIDENCE + math.log(len(one))
            ]
            if found:
                i, j, equal = found[0]
                yield Finding(
                    "equal digit by digit", (series,),
                    f"at {int(names[j]):,} {what} {percent(equal.share)} of {equal.cells} values equal those at {int(names[i]):,} "
                    f"{what}" + f" ({len(found) - 1} more)" * (len(found) > 1), "certain",
                )  # fmt: skip


def copies(mine: Values, others: Mapping[str, Values]) -> Iterator[Finding]:
    """Find series that repeat the values of another series (algorithm, mapping or source) in this study, or of another source in
    another study; in another study also if multiplied by a constant (within this study multiples() finds these).
    """
    for name, theirs in {"": mine, **others}.items():
        shared = mine.cells[places(theirs.cells, mine.cells) >= 0]
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
                two, pair = theirs.series[column], (ours[:, :, index], reference[:, :, column])
                found = _equal(*pair)
                for key, what in ((1, "ranks"), (2, "bytes")):
                    found = found if found.evidence else _equal_at(*pair, shared[:, key], what)
                if found.evidence:
                    equal.setdefault((one[0], two[0]), []).append((one, two, found))
            if name and columns:
                alike = {column for column in columns if one in mine.quiet and theirs.series[column] in theirs.quiet}
                yield from _scaled(one, ours[0, :, index], theirs, reference[:, :, columns], columns, alike, name)
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
    """Return whether two series should have different values: they are not from the same source or file in two studies."""
    if not name:
        return one < two
    same_source = one[0] == two[0] and one[0] != ""
    return not same_source and not our_paths.get(one, frozenset()) & their_paths.get(two, frozenset())


def _copied(pairs: list[tuple[Series, Series, Equal]], name: str) -> Iterator[Finding]:
    """Report series that have values of others; one finding for all mappings of two algorithms."""
    found: dict[tuple[str, str], list[tuple[str, Equal]]] = {}
    for one, two, equal in pairs:
        found.setdefault((whole_series(*one[:3]), whole_series(*two[:3])), []).append(
            (f"{one[4]} and {two[4]}{equal.where}", equal)
        )
    for (one_name, two_name), where in found.items():
        mappings = ", ".join(text for text, _ in where)
        least, cells = min(equal.share for _, equal in where), sum(equal.cells for _, equal in where)
        yield Finding(
            "equal digit by digit", one_name + ("" if name else f" and {two_name}"),
            (f"all {cells:,}" if least == 1 else f"at least {percent(least)} of {cells:,}")
            + f" values equal those of {two_name}" + (f" of study {name}" if name else "")
            + f" (by {mappings}); which of the two is the copy cannot be determined",
            "certain",
        )  # fmt: skip


def _scaled(
    one: Series, ours: np.ndarray, theirs: Values, reference: np.ndarray, columns: list[int], alike: set[int], name: str
) -> Iterator[Finding]:
    """Report series among *columns*, with values *reference* (launch x cell x column), whose multiple *one* is; for those in *alike*,
    other than 1.
    """
    precise = np.where(ours >= PRECISE_US, ours, np.nan)
    reported: set[int] = set()
    for layer in reference:
        rivals = np.where(layer >= PRECISE_US, layer, np.nan).T
        for place, factor, cells in _constant_ratios(np.tile(precise, (len(columns), 1)), rivals, NEAR_SERIES):
            if place in reported or (columns[place] in alike and abs(factor - 1) < APART):
                continue
            reported.add(place)
            two = theirs.series[columns[place]]
            yield Finding(
                "constant ratio", series_name(one),
                f"the ratio to {series_name(two)} of study {name} is {factor:.4g} within {percent(SAME_RATIO)} in {cells:,} cells",
                "certain",
            )  # fmt: skip


@dataclass(frozen=True)
class Equal:
    """Comparison of two series: the fraction of common cells with equal values (in the digits that both print), the number of
    common cells, the evidence against chance (0: none), and where they are, if not everywhere.
    """

    share: float
    cells: int
    evidence: float
    where: str = ""


def _equal(ours: np.ndarray, theirs: np.ndarray) -> Equal:
    """Compare two series (launch x cell)."""
    both = ~np.isnan(ours[0]) & ~np.isnan(theirs[0])
    cells = int(both.sum())
    if cells < LEAST_COPIED:
        return Equal(0, cells, 0)
    a, b = ours[:, both], theirs[:, both]
    printed = np.maximum(resolution_of(a), resolution_of(b))
    limit = 0.5 * printed * (1 + 1e-6) + 1e-9 * a[0]
    equal = (np.abs(a - b[0]) <= limit).any(axis=0) | (np.abs(a[0] - b) <= limit).any(axis=0)
    # Launches are sorted; the smallest of each series is compared with all of the other.
    pairs = 1 + sum((np.diff(of, axis=0) > 0).sum(axis=0) for of in (a, b))
    spread = np.maximum(a[-1] - a[0], b[-1] - b[0])
    width = np.where(spread > 0, np.minimum(CHANCE * a[0], spread + printed), CHANCE * a[0])
    chance = np.minimum(1, pairs * printed / width)
    telling, rare = chance < 0.5, chance < 0.1
    whole = equal.mean() >= 0.9 and (not telling.any() or equal[telling].mean() >= 0.9)
    part = (equal & rare).sum() >= max(LEAST_COPIED, COPIED_PART * rare.sum())
    evidence = -np.log(chance[equal]).sum() if (whole or part) and len(np.unique(a[0][equal])) >= DISTINCT else 0
    return Equal(float(equal.mean()), cells, float(evidence))


def _equal_at(ours: np.ndarray, theirs: np.ndarray, numbers: np.ndarray, what: str) -> Equal:
    """Compare two series (launch x cell) at those *numbers* of ranks or bytes at which almost all values are equal."""
    names, group = np.unique(numbers, return_inverse=True)
    known = np.bincount(group[~np.isnan(ours[0] + theirs[0])], minlength=len(names))
    equal = np.bincount(group[ours[0] == theirs[0]], minlength=len(names))
    at = (equal >= LEAST_COPIED) & (equal >= 0.9 * known)
    found = _equal(ours[:, at[group]], theirs[:, at[group]])
    shown = ", ".join([f"{int(name):,}" for name in names[at][:3]] + ["..."] * (int(at.sum()) > 3))
    return replace(found, where=f", at {shown} {what}")


def resolution_of(values: np.ndarray) -> np.ndarray:
    """Return the unit of the last printed digit of each cell's smallest value, from the decimals and digits of all values."""
    exponent = np.floor(np.log10(values))

    def printed(unit: np.ndarray | float) -> bool:
        return bool(np.allclose(np.round(values / unit) * unit, values, rtol=1e-9, atol=0))

    decimals = next((n for n in range(10) if printed(10.0**-n)), 10)
    digits = next((n for n in range(1, 16) if printed(10.0 ** (exponent - n + 1))), 16)
    return np.maximum(10.0**-decimals, 10.0 ** (exponent[0] - digits + 1))
