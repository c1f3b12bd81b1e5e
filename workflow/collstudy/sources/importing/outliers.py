"""Outliers and noise in imported times: launches, and cells, that take much longer than their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding
from collstudy.sources.importing.series import Launches, Table, grid

np = lazy("numpy")

#: A launch is an outlier if it is slower than its neighbours in size and processes by this factor.
OUTLIER = 500.0
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
    """Return the row numbers of launches that are OUTLIER times slower than the median of their neighbours in size and processes,
    unless most of LAUNCHES or more launches of their cell are.
    """
    found: list[int] = []
    timed = launches.part(~np.isnan(launches.us))
    pairs = timed.part(timed.pairs)
    for size in np.unique(pairs.sizes):
        mine = pairs.part(pairs.sizes == size)
        found += mine.at[mine.us > OUTLIER * np.median(mine.us)].tolist()
    by_nodes = len(np.unique(timed.nodes)) <= 4
    for _, whole in timed.part(~timed.pairs).by_series():
        parts = [whole.part(whole.nodes == nodes) for nodes in np.unique(whole.nodes)] if by_nodes else [whole]
        for mine in parts:
            ranks, sizes, times = grid(mine.processes, mine.sizes, mine.us)
            around = _neighbours(np.log(times), sizes)
            cell = np.searchsorted(ranks, mine.processes), np.searchsorted(sizes, mine.sizes)
            limit = around[cell] + np.log(OUTLIER)
            _, same, count = np.unique(np.column_stack(cell), axis=0, return_inverse=True, return_counts=True)
            often = (np.log(times)[cell] > limit) & (count[same.ravel()] >= LAUNCHES)
            found += mine.at[(np.log(mine.us) > limit) & ~often].tolist()
    return sorted(found)


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
    """Yield the launches that are flagged as outliers, by series."""
    flagged = launches.part(np.array([row.get("flag") == "outlier" for row in launches.rows], dtype=bool))
    for series, mine in flagged.by_series():
        worst = launches.rows[mine.at[np.argmax(mine.us)]]
        size = f", {int(worst['size_bytes'])} bytes" if worst.get("size_bytes") else ""
        yield Finding(
            "outlier", (series,),
            ("1 launch is" if len(mine) == 1 else f"{len(mine)} launches are")
            + f" over {OUTLIER:.0f} times slower than the neighbours in size and ranks; the slowest: "
            f"{worst['latency_us']:g} us, {int(worst['processes']):,} ranks{size} ({worst.get('file', '')}, line {worst.get('line', 0)})",
            "certain", "kept and flagged; excluded from means",
        )  # fmt: skip
