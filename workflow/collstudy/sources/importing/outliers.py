"""Outliers and noise in imported times: launches, and cells, that take much longer than their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding
from collstudy.sources.importing.series import Launches, Series, Table, grid

np = lazy("numpy")

#: A launch is an outlier if it is slower than its neighbours in size and processes by this factor; in a quiet series also if it is
#: QUIET_OUTLIER times slower or faster. From STRANGE times on, it is reported, but not excluded from means.
#: A series is quiet if at least QUIET_CELLS values are known, of which 95 % are within QUIET of their neighbours (factor), and 99 %
#: within QUIET_TAIL. In the quiet series of the authors in the atlas, four launches are 10 to 29 times slower, all others less than 7
#: times slower or faster; each of the four has neighbours that agree within a few percent. A launch within NOT_NEAR times those at the
#: next number of ranks is not strange.
OUTLIER, QUIET_OUTLIER, STRANGE, NOT_NEAR = 500.0, 50.0, 10.0, 2.5
QUIET_CELLS, QUIET, QUIET_TAIL = 60, 1.5, 3.0
#: A series is noisy if at least the fraction NOISY of its cells, and at least NOISY_CELLS, take NOISE_FACTOR times as long as their
#: neighbours (in sound series at most 0.6 %, or none).
NOISY, NOISY_CELLS, NOISE_FACTOR = 0.015, 10, 5.0
#: From this number of launches on, a cell that is slow in most of them is not an outlier.
LAUNCHES = 3


def noise(table: Table) -> Iterator[Finding]:
    """Find series in which many cells take much longer than their neighbours."""
    for series, values in table.columns():
        _, sizes, times = table.grid(values)
        logs = np.log(times)
        above = logs - _neighbours(logs, sizes)
        above = above[~np.isnan(above)]
        slow = int((above > np.log(NOISE_FACTOR)).sum())
        if slow >= NOISY_CELLS and slow >= NOISY * len(above):
            yield Finding(
                "noise", (series,),
                f"{slow:,} of {len(above):,} cells take more than {NOISE_FACTOR:g} times as long as their neighbours", "certain",
            )  # fmt: skip


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
    for mine, above, alone, quiet in _beside_neighbours(timed):
        far = np.abs(above) > np.log(QUIET_OUTLIER) if quiet else above > np.log(OUTLIER)
        found += mine.at[far & alone].tolist()
    return sorted(found)


def _beside_neighbours(timed: Launches) -> Iterator[tuple[Launches, np.ndarray, np.ndarray, bool]]:
    """Yield the launches of each series of collectives, and number of nodes if there are few; the logarithms by which they exceed
    their neighbours (NaN without neighbours); whether not most of LAUNCHES or more launches of the cell do; and whether the series is
    quiet.
    """
    by_nodes = len(np.unique(timed.nodes)) <= 4
    for _, whole in timed.part(~timed.pairs).by_series():
        parts = [whole.part(whole.nodes == nodes) for nodes in np.unique(whole.nodes)] if by_nodes else [whole]
        for mine in parts:
            ranks, sizes, times = grid(mine.processes, mine.sizes, mine.us)
            logs = np.log(times)
            around = _neighbours(logs, sizes)
            apart = np.abs(logs - around)[~np.isnan(logs - around)]
            quiet = len(apart) >= QUIET_CELLS and bool(
                np.quantile(apart, 0.95) < np.log(QUIET) and (apart > np.log(QUIET_TAIL)).mean() <= 0.01
            )
            cell = np.searchsorted(ranks, mine.processes), np.searchsorted(sizes, mine.sizes)
            above = np.log(mine.us) - around[cell]
            if quiet:
                # A sound launch at a number of ranks whose others were disturbed is near those of the next numbers.
                beside = np.pad(logs, ((1, 1), (0, 0)), constant_values=np.nan)
                near = np.fmin(np.abs(np.log(mine.us) - beside[:-2][cell]), np.abs(np.log(mine.us) - beside[2:][cell]))
                above[near < np.log(NOT_NEAR)] = 0
            _, same, count = np.unique(np.column_stack(cell), axis=0, return_inverse=True, return_counts=True)
            often = np.abs(logs - around)[cell] > np.log(STRANGE if quiet else OUTLIER)
            yield mine, above, ~(often & (count[same.ravel()] >= LAUNCHES)), quiet


def _neighbours(logs: np.ndarray, sizes: np.ndarray) -> np.ndarray:
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
    known = (~np.isnan(stacked)).sum(axis=0) >= 2
    return np.where(known, nan_medians(stacked, 0)[0], np.nan)


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
    for mine, above, alone, quiet in _beside_neighbours(timed):
        out = flagged[mine.at]
        strange = ~out & (np.abs(above) > np.log(STRANGE)) & alone & quiet
        for chosen, certain in ((out, True), (strange, False)):
            if chosen.any():
                yield _far_launches(mine.names[mine.series[0]], mine.part(chosen), above[chosen], certain)


def _far_launches(series: Series, mine: Launches, above: np.ndarray, flagged: bool) -> Finding:
    """Report launches by the logarithms by which they are *above* their neighbours."""
    worst = int(np.argmax(np.abs(above)))
    row = mine.rows[mine.at[worst]]
    size = f", {int(row['size_bytes'])} bytes" if row.get("size_bytes") else ""
    how = "slower" if above[worst] > 0 else "faster"
    return Finding(
        "outlier", (series,),
        ("1 launch is" if len(mine) == 1 else f"{len(mine)} launches are far from their neighbours in size and ranks; one is")
        + f" {np.exp(abs(above[worst])):,.0f} times {how} than its neighbours: {row['latency_us']:g} us, "
        f"{int(row['processes']):,} ranks{size} ({row.get('file', '')}, line {row.get('line', 0)})",
        "certain" if flagged else "likely",
        "kept and flagged; excluded from means" if flagged else "kept, also in means; analysis.leave_out excludes it",
    )  # fmt: skip
