"""Find rank counts and sizes that belong to other rows, or have another unit: they fit a reference only if moved.

References are a second source, another study of the machine, the other algorithms at two ranks, and the steps of the times at powers
of two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, common, difference_between, named, percent
from collstudy.sources.importing.checking.labels import FROM_RANKS, LARGE, SPREAD
from collstudy.sources.importing.checking.outliers import between, neighbours, usual
from collstudy.sources.importing.series import Series, Table
from collstudy.study.names import ROOTED

np = lazy("numpy")

#: Times fit another row if they agree within FITS (median) there, FITS_BETTER times better than in their own row, where they differ
#: by at least APART. Measured: authors of one machine agree within 0.08 (median over a series), and never better in another row.
FITS, FITS_BETTER, APART = 0.08, 2.5, 0.04
#: Factors between ranks (ranks per node, hardware threads) and between sizes (elements of 4 and 8 bytes, KiB).
RANKS, SIZES = (2.0, 0.5), (4.0, 8.0, 1024.0, 1 / 4, 1 / 8, 1 / 1024)
#: Factors between the sizes of successive rows.
NEXT_SIZES = (2.0, 0.5)
#: What the factors may mean.
MEANING = {
    2.0: "ranks of one of two nodes", 0.5: "hardware threads", 4.0: "elements of 4 bytes", 8.0: "elements of 8 bytes", 1024.0: "KiB",
}  # fmt: skip
#: With two ranks, these algorithms send one message. Their times differ by at most 0.23 (median over sizes) in all authors' data.
ONE_MESSAGE = {
    "default", "linear", "linear_nb", "chain", "pipeline", "binary", "binary_tree", "binomial", "knomial", "in_order_binary",
}  # fmt: skip
TWO_RANKS, TWO_AGREE, LEAST_SIZES = 0.35, 0.15, 5
#: Times that differ by more than a factor of 100 (logarithm) have another unit (units.py).
OTHER_UNIT = 4.6
#: From this size on, times grow with the size.
GROWING = 1024
#: From 16 and 32 ranks to the next, trees and barriers have one more level. Times rise there by RISE more than at the rows beside them
#: (logarithm, median over sizes up to GROWING), or nowhere. Measured one row later: at most 0.1. One row earlier times of gathers and
#: reductions rise in sound data, so they are not judged.
POWERS, RISE, NO_RISE = (16, 32), 0.2, 0.1
#: Two sizes were exchanged if both times are FAR_TIMES or more (logarithm), and FARTHER times as far as 95 % of the series' times (at
#: most QUIET), from what their neighbours suggest, but EXCHANGED times nearer to what the other's suggest. No sound series has such
#: times: 0.23 is the farthest that fits, or 2.1 times.
FAR_TIMES, FARTHER, EXCHANGED, QUIET = 0.3, 2.5, 4.0, 0.4
#: Rows of EXCHANGED_SIZES or more sizes were exchanged if the upper quartiles of their distances from the rows beside them (at most SPAN
#: times as many ranks as each other) are FAR_ROWS or more, and if exchanged, at most FITS_ROWS: EXCHANGED_ROWS times less between series
#: (measured: 1.8), EXCHANGED times within a series, where they also are FARTHER than 80 % of its rows.
EXCHANGED_SIZES, SPAN, FAR_ROWS, FITS_ROWS, EXCHANGED_ROWS = 5, 4.0, 0.15, 0.12, 2.5
#: In each series, rank correlation of times with sizes (ranks) below OUT_OF_ORDER, and above IN_ORDER if these had been sorted as text,
#: or in reverse. At least LEAST_SORTED of them. Measured: 0.7 and more for sizes but in noise, 0.2 for ranks.
OUT_OF_ORDER, IN_ORDER, LEAST_SORTED = 0.6, 0.85, 8


@dataclass(frozen=True)
class Grid:
    """Times of a series by rank count and size."""

    ranks: np.ndarray
    sizes: np.ndarray
    times: np.ndarray


def grid_of(table: Table, series: Series) -> Grid:
    """Return the times of a series for several ranks."""
    return Grid(*table.grid(np.where(table.processes > 1, table[series], np.nan)))


def displaced(table: Table, studies: Mapping[str, Table]) -> Iterator[Finding]:
    """Find series whose rank counts or sizes fit another source, or another study of the machine, only if moved."""
    for mine in table.by_name.values():
        for one, two in itertools.combinations(mine, 2):
            for check, words in _moved(grid_of(table, one), grid_of(table, two), two[0] or "the other source"):
                yield Finding(check, (one, two), words, "certain")
    for study, theirs in studies.items():
        for one in table.series:
            for two in theirs.by_name.get(one[1:], []):
                found = list(_moved(grid_of(table, one), grid_of(theirs, two), named(two, study)))
                yield from (Finding(check, (one,), words, "likely") for check, words in found)
                if found:
                    break


def _moved(a: Grid, b: Grid, reference: str) -> Iterator[tuple[str, str]]:
    """Yield check and evidence if the ranks, or the sizes, of *a* fit those of *b* only in another row."""
    ranks, sizes = _common(a.ranks, b.ranks), _common(a.sizes, b.sizes)
    for check, what, names, factors, moves in (
        ("processes", "ranks", (a.ranks, b.ranks), RANKS, lambda i, j: (np.ix_(i, sizes[0]), np.ix_(j, sizes[1]))),
        ("sizes", "bytes", (a.sizes, b.sizes), SIZES, lambda i, j: (np.ix_(ranks[0], i), np.ix_(ranks[1], j))),
    ):
        here, there = moves(*_common(*names))
        _, apart, _ = difference_between(a.times[here], b.times[there])
        # A source that is slower by a constant factor may fit other rows, but fits its own better with that factor.
        one, two = common(a.times[here], b.times[there])
        scaled = difference_between(one / np.median(one / two), two)[1] if len(one) else np.inf
        best, found = min(FITS, scaled), ""
        for words, i, j in _places(*names, factors):
            here, there = moves(i, j)
            cells, middle, _ = difference_between(a.times[here], b.times[there])
            if len(i) >= 3 and cells >= 20 and middle < best and apart > max(APART, FITS_BETTER * middle):
                best = middle
                found = (
                    f"the times differ from those of {reference} by {percent(apart)} (median), but by {percent(middle)} if the {what} "
                    f"are {words} ({cells:,} cells)"
                )
        if found:
            yield check, found


def _common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the values that both arrays have."""
    _, i, j = np.intersect1d(a, b, return_indices=True)
    return i, j


def _places(a: np.ndarray, b: np.ndarray, factors: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield how rows of *a* may have been moved, and the places of the rows that then correspond."""
    i, j = _common(a, b)
    if len(i) >= 5:
        yield "compared with the row before: one of the two is shifted by a row", i[1:], j[:-1]
        yield "compared with the row after: one of the two is shifted by a row", i[:-1], j[1:]
    for factor in factors:
        yield _words(factor), *_common(a * factor, b)


def _words(factor: float) -> str:
    """Return a factor in words, with what it may mean."""
    words = f"multiplied by {factor:g}" if factor > 1 else f"divided by {1 / factor:g}"
    return f"{words} ({MEANING.get(factor, 'another unit')}?)"


def at_two_ranks(table: Table) -> Iterator[Finding]:
    """Find series that differ from the other algorithms at two ranks, where all send one message: other ranks, or other sizes."""
    groups: dict[tuple, list[Series]] = {}
    for series in table.series:
        if series[1] in ROOTED and series[2] in ONE_MESSAGE:
            groups.setdefault((series[0], series[1], series[4]), []).append(series)
    for mine in groups.values():
        grids = {series: grid_of(table, series) for series in mine}
        rows = {
            series: dict(zip(grid.sizes, grid.times[0], strict=True)) for series, grid in grids.items()
            if len(grid.ranks) and grid.ranks[0] == 2
        }  # fmt: skip
        for series, grid in grids.items():
            others = [row for name, row in rows.items() if name != series]
            sizes = np.array(sorted(set.intersection(*map(set, others)) if others else ()))
            if len(others) < 2 or len(sizes) < LEAST_SIZES or not len(grid.ranks):
                continue
            times = np.array([[row[size] for size in sizes] for row in others])
            middle = np.median(times, axis=0)
            if max(np.median(np.abs(np.log(times / middle)), axis=1)) > TWO_AGREE:
                continue
            yield from _beside_two(series, grid, sizes, middle, len(others))


def _beside_two(series: Series, grid: Grid, sizes: np.ndarray, middle: np.ndarray, others: int) -> Iterator[Finding]:
    """Compare a series with the times of the *others* for two ranks (*middle*)."""
    own = grid.times[0]
    i, j = _common(grid.sizes, sizes)
    apart = np.log(own[i] / middle[j])
    apart = apart[~np.isnan(apart)]
    if len(apart) < LEAST_SIZES:
        return
    if grid.ranks[0] != 2:
        if np.median(np.abs(apart)) < FITS and grid.ranks[0] <= 8:
            yield Finding(
                "processes", (series,),
                f"with {int(grid.ranks[0])} ranks, its smallest number, the times are those of the {others} other algorithms with 2 "
                f"ranks (median difference {percent(np.median(np.abs(apart)))}): the number of ranks is 2",
                "likely",
            )  # fmt: skip
        return
    for factor in (*SIZES, *NEXT_SIZES):
        i, j = _common(grid.sizes * factor, sizes)
        large = (sizes[j] >= GROWING) & (grid.sizes[i] >= GROWING / 8)
        here = _common(grid.sizes[i][large], sizes)
        if len(here[0]) < LEAST_SIZES:
            continue
        _, moved, _ = difference_between(own[i][large], middle[j][large])
        _, unmoved, _ = difference_between(own[i][large][here[0]], middle[here[1]])
        if moved < FITS and unmoved > TWO_RANKS:
            yield Finding(
                "sizes", (series,),
                f"with 2 ranks, where all algorithms send one message, the times for large messages differ by {percent(unmoved)} from "
                f"those of the {others} other algorithms, but by {percent(moved)} if the sizes are "
                + (f"those of the {'next' if factor > 1 else 'previous'} row" if factor in NEXT_SIZES else _words(factor)),
                "likely",
            )  # fmt: skip
            return
    # Between cores that are farther apart, only small messages take longer.
    ratio, large = (float(np.exp(np.median(of))) for of in (apart, apart[-max(1, len(apart) // 3) :]))
    here = TWO_RANKS < abs(np.log(ratio)) < OTHER_UNIT
    if here and abs(np.log(large)) > TWO_AGREE and sizes[-1] >= LARGE:
        yield Finding(
            "processes", (series,),
            f"with 2 ranks the times are {ratio:.2f} times those of the {others} other algorithms (median of {len(apart)} sizes), "
            "although all send one message (others agree within a quarter): the number of ranks is not 2",
            "likely",
        )  # fmt: skip


def steps(table: Table) -> Iterator[Finding]:
    """Find series whose times rise one row after (or before) powers of two, and not there: rank counts that belong to other rows."""
    for series, values in table.columns():
        ranks, _, times = table.grid(np.where((table.processes > 1) & (table.sizes <= GROWING), values, np.nan))
        if len(ranks) < 10:
            continue
        logs = np.log(times)
        known = (~np.isnan(logs[1:] + logs[:-1])).any(axis=1)
        if not known.all():
            continue
        rises = np.nanmedian(np.diff(logs, axis=0), axis=1)
        at = [int(place) for place in np.flatnonzero(np.isin(ranks, POWERS)) if _dense(ranks, place)]
        if len(at) < len(POWERS):
            continue
        here = max(_above(rises, place) for place in at)
        for offset, words in ((1, "before"), (-1, "after")):
            if offset < 0 and series[1] in ("gather", "reduce"):
                continue
            moved = min(_above(rises, place + offset) for place in at)
            if moved >= RISE and here <= NO_RISE:
                shown = " and ".join(f"{int(ranks[p + offset])} to {int(ranks[p + offset + 1])}" for p in at)
                powers = " and ".join(f"{int(ranks[p])}" for p in at)
                yield Finding(
                    "processes", (series,),
                    f"from {shown} ranks the times rise by {percent(np.expm1(moved))} more than beside them, and not after {powers}, where "
                    f"trees and barriers get another level: the numbers of ranks belong to the row {words}",
                    "likely",
                )  # fmt: skip


def _dense(ranks: np.ndarray, place: int) -> bool:
    """Return whether three rows on each side differ by at most two ranks each."""
    return 3 <= place < len(ranks) - 4 and bool((np.diff(ranks[place - 3 : place + 5]) <= 2).all())


def _above(rises: np.ndarray, place: int) -> float:
    """Return by how much a rise exceeds the median of the two before and the two after it."""
    beside = np.r_[rises[place - 2 : place], rises[place + 1 : place + 3]]
    return float(rises[place] - np.median(beside))


def exchanged(table: Table) -> Iterator[Finding]:
    """Find times that were exchanged: of two sizes at a number of ranks; or all of a number of ranks, with those of another algorithm or
    mapping, or with themselves in reverse order of sizes; or that are another algorithm's or mapping's.
    """
    rows: dict[Series, Rows] = {}
    for series in table.series:
        grid = grid_of(table, series)
        yield from _two_sizes(series, grid)
        rows[series] = Rows(table, grid)
        yield from _reversed(series, rows[series])
    for one, two in itertools.combinations(rows, 2):
        if one[:2] == two[:2] and (one[2:4] == two[2:4] or one[4] == two[4]):
            yield from _between_series(rows, one, two)


def _two_sizes(series: Series, grid: Grid) -> Iterator[Finding]:
    """Find pairs of sizes at one number of ranks, each of which has the time that is expected of the other."""
    logs = np.log(grid.times)
    around, _ = neighbours(logs, grid.sizes)
    off = logs - around
    known = np.abs(off[~np.isnan(off)])
    if len(known) < 20:
        return
    most = np.quantile(known, 0.95)
    far = (np.abs(off) > max(FAR_TIMES, FARTHER * most)) & (most < QUIET)
    for at in np.flatnonzero(far.sum(axis=1) > 1):
        pairs = [
            (j, k) for j, k in itertools.combinations(np.flatnonzero(far[at]), 2)
            if off[at, j] > 0 > off[at, k] and around[at, j] < around[at, k]
            and EXCHANGED * max(abs(logs[at, j] - around[at, k]), abs(logs[at, k] - around[at, j])) < min(abs(off[at, [j, k]]))
        ]  # fmt: skip
        if len(pairs) == 1:
            ((j, k),) = pairs
            yield Finding(
                "rows exchanged", (series,),
                f"at {int(grid.ranks[at]):,} ranks, {int(grid.sizes[j]):,} bytes take {grid.times[at, j]:g} us and "
                f"{int(grid.sizes[k]):,} bytes {grid.times[at, k]:g} us; their neighbours in size and ranks suggest "
                f"{np.exp(around[at, j]):.3g} and {np.exp(around[at, k]):.3g} us", "likely",
            )  # fmt: skip


class Rows:
    """Times (logarithms) of a series by number of ranks, at all ranks and sizes of the table, and what is expected of them."""

    def __init__(self, table: Table, grid: Grid):
        self.ranks, sizes = np.unique(table.processes), np.unique(table.sizes)
        self.logs, self.around = (np.full((len(self.ranks), len(sizes)), np.nan) for _ in range(2))
        several = (~np.isnan(grid.times)).sum(axis=1) >= EXCHANGED_SIZES
        # Small messages alone all take as long: a disturbed job is one number, which may fit another one by chance.
        if not len(grid.sizes) or grid.sizes[-1] < max(LARGE, SPREAD * grid.sizes[0]):
            several[:] = False
        ranks, logs = grid.ranks[several], np.log(grid.times[several])
        place = np.ix_(np.searchsorted(self.ranks, ranks), np.searchsorted(sizes, grid.sizes))
        self.logs[place], self.around[place] = logs, between(ranks, logs, SPAN)
        self.apart = self.distances(self.logs, self.around)

    @staticmethod
    def distances(logs: np.ndarray, around: np.ndarray) -> np.ndarray:
        """Return how far each row is from what is expected: the upper quartile over sizes; NaN with few."""
        off = np.sort(np.abs(logs - around), axis=1)  # NaN last
        known = (~np.isnan(off)).sum(axis=1)
        quartile = off[np.arange(len(off)), np.maximum(0, 3 * (known - 1) // 4)]
        return np.where(known >= EXCHANGED_SIZES, quartile, np.nan)

    def unusual(self, at: int) -> bool:
        """Return whether a row is much farther from those beside it than the others, which are near."""
        most = usual(self.apart, at)
        return bool(most < QUIET and self.apart[at] > max(FAR_ROWS, FARTHER * most))

    def exchanged(self, other: Rows) -> np.ndarray:
        """Return how far the rows are from what is expected if they are exchanged with another series: the larger distance."""
        return np.maximum(self.distances(self.logs, other.around), self.distances(other.logs, self.around))


def _reversed(series: Series, mine: Rows) -> Iterator[Finding]:
    """Find numbers of ranks whose times are in reverse order of sizes."""
    for at in filter(mine.unusual, range(len(mine.ranks))):
        known = np.flatnonzero(~np.isnan(mine.logs[at] + mine.around[at]))
        moved = float(np.quantile(np.abs(mine.logs[at][known[::-1]] - mine.around[at][known]), 0.75))
        if EXCHANGED * moved < mine.apart[at]:
            yield _exchanged((series,), mine, at, moved, "in reverse order of sizes")


def _between_series(rows: dict[Series, Rows], one: Series, two: Series) -> Iterator[Finding]:
    """Find numbers of ranks at which two series were exchanged, or one has the times of the other."""
    a, b = rows[one], rows[two]
    moved, apart = a.exchanged(b), np.minimum(a.apart, b.apart)
    if one[2] != two[2]:
        moved[a.ranks < FROM_RANKS] = np.nan
    for at in np.flatnonzero((apart > FAR_ROWS) & (moved < np.minimum(FITS_ROWS, apart / EXCHANGED_ROWS))):
        yield _exchanged((one, two), a, at, moved[at], "if the two are exchanged")
    if "default" in (one[2], two[2]):
        return
    difference = Rows.distances(a.logs, b.logs)
    if one[2] != two[2]:
        difference[a.ranks < FROM_RANKS] = np.nan
    common = np.flatnonzero(~np.isnan(difference))
    for before, at, after in zip(common, common[1:], common[2:], strict=False):
        for series, mine, other, theirs in ((one, a, two, b), (two, b, one, a)):
            least = min(mine.apart[at], difference[before], difference[after])
            equal = difference[at] < min(FITS_ROWS, least / EXCHANGED)
            if equal and mine.unusual(at) and EXCHANGED * theirs.apart[at] < mine.apart[at]:
                yield _exchanged((series,), mine, at, difference[at], f"from those of {other[2]}, by {other[4]}")


def _exchanged(about: tuple[Series, ...], rows: Rows, at: int, moved: float, words: str) -> Finding:
    return Finding(
        "rows exchanged", about,
        f"at {int(rows.ranks[at]):,} ranks a quarter of the times are {percent(np.expm1(rows.apart[at]))} and more from what the next "
        f"smaller and larger numbers of ranks suggest, but three quarters at most {percent(np.expm1(moved))} {words}",
        "likely",
    )  # fmt: skip


def out_of_order(table: Table) -> Iterator[Finding]:
    """Find series whose times follow the sizes, or the numbers of ranks, only if these are sorted as text, or in reverse."""
    for series in table.series:
        grid = grid_of(table, series)
        for check, what, labels, times in (
            ("sizes", "bytes", grid.sizes, grid.times),
            ("processes", "ranks", grid.ranks, grid.times.T),
        ):
            # The default may run faster algorithms on more ranks. Over a narrow range, times may fall.
            falls = what == "ranks" and (series[2] == "default" or labels[-1] < 4 * labels[0])
            if len(labels) < LEAST_SORTED or falls or not _follows(times) < OUT_OF_ORDER:
                continue
            as_text, reverse = np.argsort([str(int(label)) for label in labels]), np.arange(len(labels))[::-1]
            for order, words in ((as_text, "as text"), (np.argsort(as_text), "as text"), (reverse, "in reverse")):
                if _follows(times[:, order]) > IN_ORDER:
                    yield Finding(
                        check, (series,),
                        f"the times do not follow the {what} (rank correlation {_follows(times):.2f}), but would if the {what} were sorted "
                        f"{words} ({_follows(times[:, order]):.2f})", "likely",
                    )  # fmt: skip
                    break


def _follows(times: np.ndarray) -> float:
    """Return the median rank correlation of whole rows of times with their order; NaN without such rows."""
    whole = times[~np.isnan(times).any(axis=1)]
    order = whole.argsort(axis=1).argsort(axis=1)
    return float(np.median([np.corrcoef(row, np.arange(len(row)))[0, 1] for row in order])) if len(whole) else np.nan
