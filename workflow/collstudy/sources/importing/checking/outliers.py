"""Outliers and noise in imported times: launches, and cells, that take much longer than their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding
from collstudy.sources.importing.checking.units import APART
from collstudy.sources.importing.series import Launches, Series, Table, grid

np = lazy("numpy")

#: A launch is an outlier if it is slower than its neighbours in size and processes by this factor; in a quiet series also if it is
#: QUIET_OUTLIER times slower or faster. From STRANGE times on, it is reported, but not excluded from means.
#: A series is quiet if at least QUIET_CELLS values are known, of which 95 % are within QUIET of their neighbours (factor), and
#: 99 %, or all but one, within QUIET_TAIL. In the quiet series of the authors in the atlas, four launches are 10 to 29 times
#: slower, all others less than 7 times slower or faster; each of the four has neighbours that agree within a few percent. A
#: launch within NOT_NEAR times those at the next number of ranks is not strange. From ISOLATED times slower on, a launch is
#: strange if at least AGREEING neighbours, all but one, are within AGREED of their median (factor). Three times slower ones are
#: frequent in sound series.
OUTLIER, QUIET_OUTLIER, STRANGE, NOT_NEAR = 500.0, 50.0, 10.0, 2.5
ISOLATED, AGREEING, AGREED = 4.5, 4, 1.15
QUIET_CELLS, QUIET, QUIET_TAIL = 20, 1.5, 3.0
#: A series is noisy if at least the fraction NOISY of its cells, and at least NOISY_CELLS, take NOISE_FACTOR times as long as their
#: neighbours (in sound series at most 0.6 %, or none).
NOISY, NOISY_CELLS, NOISE_FACTOR = 0.015, 10, 5.0
#: A job of a number of ranks is slow if SLOW_PART of at least SLOW_SIZES sizes take SLOW times as long as the next smaller and larger
#: number suggest, and longer (LONGER) than both; these are at most SPAN times apart. Half of this is rare: at most a fifth
#: of the series' other rows. Measured: at most 1.13 in sound series.
SLOW, SLOW_PART, SLOW_SIZES, LONGER, SPAN = 1.2, 0.8, 8, 1.04, 1.5
#: From this number of launches on, a cell that is slow in most of them is not an outlier, and a launch that differs from the others of its
#: cell by STRANGE times is one, where these agree (none of the 65 000 launches of one author, who has five to seven of each cell).
LAUNCHES = 3
#: The launches with which one is compared, in words.
NEIGHBOURS = ("their neighbours in size and ranks", "its neighbours")
OTHERS = ("the other launches of their cells", "the other launches of its cell")


def noise(table: Table) -> Iterator[Finding]:
    """Find series in which many cells take much longer than their neighbours."""
    for series, values in table.columns():
        _, sizes, times = table.grid(values)
        logs = np.log(times)
        noisy, slow, cells = _noisy(logs - neighbours(logs, sizes)[0])
        if noisy:
            yield Finding(
                "noise", (series,),
                f"{slow:,} of {cells:,} cells take more than {NOISE_FACTOR:g} times as long as their neighbours", "certain",
            )  # fmt: skip


def _noisy(above: np.ndarray) -> tuple[bool, int, int]:
    """Return whether many cells exceed their neighbours (logarithms *above*) by NOISE_FACTOR, their number, and that of all cells."""
    slow, cells = int((above > np.log(NOISE_FACTOR)).sum()), int((~np.isnan(above)).sum())
    return slow >= NOISY_CELLS and slow >= NOISY * cells, slow, cells


def flag_outliers(launches: Launches) -> list[int]:
    """Return the row numbers of launches that are much slower than the median of their neighbours in size and processes, or, in a quiet
    series, much faster; not if most of LAUNCHES or more launches of their cell are.
    """
    timed = launches.part(~np.isnan(launches.us))
    pairs = timed.part(timed.pairs)
    found: list[int] = []
    for size in np.unique(pairs.sizes):
        mine = pairs.part(pairs.sizes == size)
        found += mine.at[mine.us > OUTLIER * np.median(mine.us)].tolist()
    for mine, above, alone, quiet, _ in _beside_neighbours(timed):
        far = np.where(quiet, np.abs(above) > np.log(QUIET_OUTLIER), above > np.log(OUTLIER))
        found += mine.at[far & alone].tolist()
    return sorted(found)


def _beside_neighbours(timed: Launches) -> Iterator[tuple[Launches, *tuple[np.ndarray, ...]]]:
    """Yield the launches of each series of collectives, and number of nodes if there are few; the logarithms by which they exceed
    their neighbours (NaN without neighbours); whether not most of LAUNCHES or more launches of the cell do; whether the series is
    quiet (its numbers of ranks with one or two sizes, or the others); and whether the neighbours agree and the series is not noisy.
    """
    by_nodes = len(np.unique(timed.nodes)) <= 4
    for _, whole in timed.part(~timed.pairs).by_series():
        parts = [whole.part(whole.nodes == nodes) for nodes in np.unique(whole.nodes)] if by_nodes else [whole]
        for mine in parts:
            ranks, sizes, times = grid(mine.processes, mine.sizes, mine.us)
            logs = np.log(times)
            around, agreed = neighbours(logs, sizes)
            quiet = np.zeros(len(ranks), dtype=bool)
            off = np.abs(logs - around)
            for part in (several := (~np.isnan(logs)).sum(axis=1) >= 3, ~several):
                apart = off[part] if (~np.isnan(off[part])).sum() >= QUIET_CELLS else off
                apart = apart[~np.isnan(apart)]
                quiet[part] = len(apart) >= QUIET_CELLS and (
                    np.quantile(apart, 0.95) < np.log(QUIET)
                    and (apart > np.log(QUIET_TAIL)).sum() <= max(1, 0.01 * len(apart))
                )
            cell = np.searchsorted(ranks, mine.processes), np.searchsorted(sizes, mine.sizes)
            above = np.log(mine.us) - around[cell]
            calm = quiet[cell[0]]
            # A sound launch at a number of ranks whose others were disturbed is near those of the next numbers.
            beside = np.pad(logs, ((1, 1), (0, 0)), constant_values=np.nan)
            near = np.fmin(np.abs(np.log(mine.us) - beside[:-2][cell]), np.abs(np.log(mine.us) - beside[2:][cell]))
            above[calm & (near < np.log(NOT_NEAR))] = 0
            _, same, count = np.unique(np.column_stack(cell), axis=0, return_inverse=True, return_counts=True)
            often = off[cell] > np.log(np.where(calm, STRANGE, OUTLIER))
            yield (
                mine,
                above,
                ~(often & (count[same.ravel()] >= LAUNCHES)),
                calm,
                agreed[cell] & (not _noisy(logs - around)[0]),
            )


def neighbours(logs: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate each value from its neighbours (see _neighbours), and return whether these agree. Numbers of ranks that were measured
    with one or two sizes, as in a scan of all ranks, are no neighbours of those with several.
    """
    around, agreed = _neighbours(logs, sizes)
    several = (~np.isnan(logs)).sum(axis=1) >= 3
    if several.any() and not several.all():
        around[several], agreed[several] = _neighbours(logs[several], sizes)
    return around, agreed


def _neighbours(logs: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate each value from its up to eight neighbours within two steps along either axis: the median of their values, each
    shifted by the median difference between the two rows (columns) if these have at least three common values; NaN with fewer than
    two neighbours. A size smaller than a sixteenth is not a neighbour.
    """
    padded = np.pad(logs, 2, constant_values=np.nan)
    rows, columns = logs.shape
    said = []
    for i, j in ((-2, 0), (-1, 0), (1, 0), (2, 0), (0, -2), (0, -1), (0, 1), (0, 2)):
        theirs = padded[2 + i : 2 + i + rows, 2 + j : 2 + j + columns]
        along = 1 if i else 0
        if j < 0:
            smaller = np.pad(sizes, (-j, 0), constant_values=0)[: len(sizes)]
            theirs = np.where(16 * smaller < sizes, np.nan, theirs)
        apart = logs - theirs
        enough = (~np.isnan(apart)).sum(axis=along, keepdims=True) >= 3
        said.append(theirs + np.where(enough, nan_medians(apart, along), 0))
    stacked = np.stack(said)
    middle = nan_medians(stacked, 0)
    known = (~np.isnan(stacked)).sum(axis=0)
    agreeing = (np.abs(stacked - middle) < np.log(AGREED)).sum(axis=0)
    return np.where(known >= 2, middle[0], np.nan), (known >= AGREEING) & (agreeing >= known - 1)


def slow_jobs(table: Table) -> Iterator[Finding]:
    """Find numbers of ranks at which all sizes take longer than at both the next smaller and the next larger number."""
    for series, values in table.columns():
        ranks, _, times = table.grid(np.where(table.processes > 1, values, np.nan))
        several = (~np.isnan(times)).sum(axis=1) >= SLOW_SIZES
        ranks, logs = ranks[several], np.log(times[several])
        above = logs - between(ranks, logs, SPAN)
        middle = np.abs(nan_medians(above, 1)[:, 0])
        for at in np.flatnonzero((~np.isnan(above)).sum(axis=1) >= SLOW_SIZES):
            longer = logs[at] - np.fmax(logs[at - 1], logs[at + 1])
            if 2 ** np.floor(np.log2(ranks[at] - 1)) >= ranks[at - 1]:
                continue  # the first row after a power of two, where trees have another level and may take longest
            least, longest = (np.nanquantile(of, 1 - SLOW_PART) for of in (above[at], longer))
            if np.log(SLOW) < least < np.log(APART) and longest > np.log(LONGER) and usual(middle, at) < least / 2:
                yield Finding(
                    "slow job", (series,),
                    f"at {int(ranks[at]):,} ranks the times are {np.exp(np.nanmedian(above[at])):.3g} times what those at "
                    f"{int(ranks[at - 1]):,} and {int(ranks[at + 1]):,} suggest, and longer than both (median of "
                    f"{(~np.isnan(above[at])).sum()} sizes; {SLOW_PART:.0%} of them at least {np.exp(least):.3g} times): the job was "
                    "disturbed, or had another clock frequency or nodes", "possible",
                )  # fmt: skip


def usual(apart: np.ndarray, at: int) -> float:
    """Return the 80 % quantile of how far rows are from those beside them, without row *at* and the two rows that it affects."""
    rest = np.delete(apart, range(max(0, at - 1), min(at + 2, len(apart))))
    return float(np.nanquantile(rest, 0.8)) if not np.isnan(rest).all() else np.inf


def between(ranks: np.ndarray, logs: np.ndarray, span: float) -> np.ndarray:
    """Interpolate each row of times (logarithms) between the next smaller and larger number of ranks; NaN at the ends, and where these
    are more than *span* times apart.
    """
    found = np.full(logs.shape, np.nan)
    for at in range(1, len(ranks) - 1):
        if ranks[at + 1] <= span * ranks[at - 1]:
            share = np.log(ranks[at] / ranks[at - 1]) / np.log(ranks[at + 1] / ranks[at - 1])
            found[at] = (1 - share) * logs[at - 1] + share * logs[at + 1]
    return found


def nan_medians(values: np.ndarray, axis: int) -> np.ndarray:
    """Return medians along an axis (which is kept), ignoring NaN; NaN where no value is known."""
    known = (~np.isnan(values)).any(axis=axis, keepdims=True)
    return np.where(known, np.nanmedian(np.where(known, values, 0), axis=axis, keepdims=True), np.nan)


def outliers(launches: Launches) -> Iterator[Finding]:
    """Yield the launches that are flagged as outliers, and others that differ from their neighbours in a quiet series."""
    timed = launches.part(~np.isnan(launches.us))
    flagged = np.array([row.get("flag") == "outlier" for row in launches.rows], dtype=bool)
    for series, mine in timed.part(timed.pairs & flagged[timed.at]).by_series():
        yield _far_launches(series, mine, np.log(mine.us / np.median(timed.us[timed.pairs])), True)
    for mine, above, alone, quiet, agreed in _beside_neighbours(timed):
        out = flagged[mine.at]
        very = np.abs(above) > np.log(STRANGE)
        strange = very & (quiet | agreed) | (np.abs(above) > np.log(ISOLATED)) & quiet & agreed
        strange &= ~out & alone
        others = _above_others(mine)
        odd = (np.abs(others) > np.log(STRANGE)) & ~out & ~strange
        for chosen, by, certain in ((out, above, True), (strange, above, False), (odd, others, False)):
            if chosen.any():
                words = OTHERS if by is others else NEIGHBOURS
                yield _far_launches(mine.names[mine.series[0]], mine.part(chosen), by[chosen], certain, words)


def _above_others(mine: Launches) -> np.ndarray:
    """Return the logarithms by which launches of a series exceed the median of their cell; 0 for cells with fewer than LAUNCHES, or in
    which more than one, and a quarter, are not within QUIET of the median.
    """
    logs = np.log(mine.us)
    _, cell, count = np.unique(
        np.column_stack([mine.nodes, mine.processes, mine.sizes]), axis=0, return_inverse=True, return_counts=True
    )
    cell = cell.ravel()
    order, starts = np.lexsort((logs, cell)), np.r_[0, np.cumsum(count)[:-1]]
    middle = (logs[order[starts + (count - 1) // 2]] + logs[order[starts + count // 2]]) / 2
    above = logs - middle[cell]
    far = np.bincount(cell, np.abs(above) > np.log(QUIET), len(count))
    return np.where(((count >= LAUNCHES) & (far <= np.maximum(1, count / 4)))[cell], above, 0)


def _far_launches(
    series: Series, mine: Launches, above: np.ndarray, flagged: bool, beside: tuple[str, str] = NEIGHBOURS
) -> Finding:
    """Report launches by the logarithms by which they are *above* others, which are named *beside* (all, and of one)."""
    worst = int(np.argmax(np.abs(above)))
    row = mine.rows[mine.at[worst]]
    size = f", {int(row['size_bytes'])} bytes" if row.get("size_bytes") else ""
    how = "slower" if above[worst] > 0 else "faster"
    return Finding(
        "outlier", (series,),
        ("1 launch is" if len(mine) == 1 else f"{len(mine)} launches are far from {beside[0]}; one is")
        + f" {np.exp(abs(above[worst])):,.0f} times {how} than {beside[1]}: {row['latency_us']:g} us, "
        f"{int(row['processes']):,} ranks{size} ({row.get('file', '')}, line {row.get('line', 0)})",
        "certain" if flagged else "likely" if abs(above[worst]) > np.log(STRANGE) else "possible",
        "kept and flagged; excluded from means" if flagged else "kept, also in means; analysis.leave_out can exclude it",
    )  # fmt: skip
