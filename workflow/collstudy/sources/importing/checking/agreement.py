"""Check whether sources, files and launches that measured the same cells agree."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, common, difference_between, named, percent
from collstudy.sources.importing.checking.labels import FROM_RANKS, SAME_MEDIAN, SAME_P90, SPREAD
from collstudy.sources.importing.series import Launches, Series, Table, series_of
from collstudy.study.machines import Machine

np = lazy("numpy")

#: Limit for the difference between sources of one machine (measured: 2 to 13 %).
DISAGREE_MEDIAN, LEAST_CELLS = 0.2, 10
#: Number of runs in a file that are compared.
RUNS = 8
#: Times differ by a constant factor if CONSTANT_PART of at least CONSTANT_CELLS cells are slower, by at least CONSTANT (median), with a
#: quartile range of at most CONSTANT_RANGE, or half the median (logarithms). Measured for authors of one machine: at most 87 % by up
#: to 0.06; for launches of one author: at most 73 %.
CONSTANT, CONSTANT_PART, CONSTANT_CELLS, CONSTANT_RANGE = 0.07, 0.95, 40, 0.12
#: Launches of a cell form two groups if two or more of them take GROUPS times as long as the others, of which there are as many at
#: least. In launches of one machine this is so in at most 29 % of the cells, in those of several in 47 % and more.
GROUPS, GROUPS_PART, GROUPS_CELLS = 3.0, 0.4, 10


def disagreement(table: Table) -> Iterator[Finding]:
    """Find series that differ strongly, or by a constant factor, from those of a second source; series with few common cells together."""
    few: dict[tuple[str, str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    for one, two, cells, middle, high in _agreeing(table):
        if cells < LEAST_CELLS:
            few.setdefault((one[0], two[0], one[1]), []).append((table[one], table[two]))
        elif middle / 100 > DISAGREE_MEDIAN:
            yield Finding(
                "sources disagree", (one, two),
                f"the times differ by {percent(middle / 100)} (median; 90th percentile {high:.1f} %; {cells:,} cells)", "certain",
            )  # fmt: skip
        elif factor := _constant_factor(table[one], table[two]):
            yield Finding(
                "sources disagree", (one, two),
                f"almost all times of {one[0]} are {_times(factor)} times those of {two[0]} (median of {cells:,} cells), as on another "
                "processor, at another clock frequency or with another library", "likely",
            )  # fmt: skip
    for (one, two, collective), series in few.items():
        cells, middle, high = _apart(*map(np.concatenate, zip(*series, strict=True)))
        if cells >= LEAST_CELLS and middle > DISAGREE_MEDIAN:
            yield Finding(
                "sources disagree", f"{one} and {two}: {collective}",
                f"the times differ by {percent(middle)} (median; 90th percentile {percent(high)}; {cells:,} cells of {len(series)} "
                "algorithms and mappings)", "certain",
            )  # fmt: skip


def _times(factor: float) -> str:
    """Format a factor: 1.10, 112.13, but 0.0021."""
    return f"{factor:.2f}" if factor >= 0.1 else f"{factor:.2g}"


def _constant_factor(a: np.ndarray, b: np.ndarray) -> float | None:
    """Return the factor by which almost all values of *a* differ from those of *b*; None if they do not, or it is near one."""
    a, b = common(a, b)
    if len(a) < CONSTANT_CELLS:
        return None
    apart = np.log(a / b)
    low, middle, high = np.quantile(apart, [0.25, 0.5, 0.75])
    same = max((apart > 0).mean(), (apart < 0).mean())
    constant = abs(middle) >= CONSTANT and same >= CONSTANT_PART and high - low <= max(CONSTANT_RANGE, abs(middle) / 2)
    return float(np.exp(middle)) if constant else None


def other_studies(table: Table, studies: Mapping[str, Table], machine: Machine) -> Iterator[Finding]:
    """Find series that differ from those of other studies of the machine: of another algorithm there, or by a constant factor.
    Defaults depend on the library and its version, and are not compared.
    """
    for study, reference in studies.items():
        theirs = reference.at(table.cells, machine.cores_per_node)
        for one in table.series:
            found = [
                finding for two in theirs.by_name.get(one[1:], [])
                if one[2] != "default" and (finding := _beside_study(table, one, theirs, two, study))
            ]  # fmt: skip
            yield from found[:1]


def _beside_study(table: Table, one: Series, theirs: Table, two: Series, study: str) -> Finding | None:
    """Compare a series with the one of the same name in another study."""
    mine = table[one]
    cells, middle, _ = difference_between(mine, theirs[two])
    if cells < CONSTANT_CELLS:
        return None
    used = (table.processes >= FROM_RANKS) & ~np.isnan(mine)
    many = np.where(used, mine, np.nan)
    if difference_between(many, theirs[two])[1] > 3 * SAME_MEDIAN and table.sizes[used].max() >= SPREAD * max(
        1, table.sizes[used].min()
    ):
        for rival in theirs.series:
            if rival[:2] == two[:2] and rival[4] == two[4] and rival[2] not in ("default", two[2]):
                count, near, far = difference_between(many, theirs[rival])
                if count >= 20 and near < SAME_MEDIAN and far < SAME_P90:
                    return Finding(
                        "wrong algorithm", (one,),
                        f"the times are those of {rival[2]} in {named(two, study)} on this machine ({percent(near)} apart in the median, "
                        f"90th percentile {percent(far)}; {count:,} cells of {FROM_RANKS} or more ranks), and differ from those of "
                        f"{two[2]} there by {percent(middle)}", "likely",
                    )  # fmt: skip
    if not (factor := _constant_factor(mine, theirs[two])):
        return None
    return Finding(
        "sources disagree", (one,),
        f"almost all times are {_times(factor)} times those of {named(two, study)} on this machine (median of {cells:,} cells): are nodes, "
        "placement, library and units the same?", "possible",
    )  # fmt: skip


def files_disagree(timed: Launches) -> Iterator[Finding]:
    """Find files, and runs within a file, whose times of the same cells differ strongly or by a constant factor: of several machines or
    settings.
    """
    count: Counter = Counter()
    runs: dict[Series, set[str]] = {}
    labelled = []
    for row in (timed.rows[index] for index in timed.at):
        series, path = series_of(row), row.get("path", "")
        cell = (series, path, row["nodes"], row["processes"], row.get("size_bytes"))
        count[cell] += 1
        if "run" not in row:  # archives of runs may be of many days
            runs.setdefault(series, set()).add(name := f"{path}\0{count[cell]}")
            labelled.append((series, name, row))
    several = [
        row | {"source": f"{series[0]}\0{name}"} for series, name, row in labelled
        if len(runs[series]) > 1 and int(name.split("\0")[1]) <= RUNS
    ]  # fmt: skip
    found: dict[Series, list[tuple[float, float, int, set[str]]]] = {}
    table = Launches(several).medians()
    for one, two, cells, middle, high in _agreeing(table):
        (source, path, first), (other, second, last) = (series[0].split("\0") for series in (one, two))
        # Launches of a disturbed machine may differ strongly, but not by a constant factor.
        strongly = path != second and cells >= LEAST_CELLS and middle / 100 > DISAGREE_MEDIAN
        if source == other and (strongly or _constant_factor(table[one], table[two])):
            names = {_run_name(path, first, second), _run_name(second, last, path)}
            found.setdefault((source, *one[1:]), []).append((middle, high, cells, names))
    for series, pairs in found.items():
        middle, high, cells, names = max(pairs, key=lambda pair: pair[0])
        every = set.intersection(*(pair[3] for pair in pairs))
        more = f"; {len(pairs) - 1} more pairs differ" * (len(pairs) > 1)
        yield Finding(
            "files disagree", (series,),
            f"the times of {' and '.join(sorted(names))} differ by {percent(middle / 100)} (median; 90th percentile "
            f"{high:.1f} %; {cells:,} cells){more}, yet count as launches of the same cells: are the machines and settings the same?"
            + f" {', '.join(every)} is one of each pair" * (len(pairs) > 1 and len(every) == 1),
            "likely",
        )  # fmt: skip


def launches_disagree(timed: Launches) -> Iterator[Finding]:
    """Find series whose launches form two groups in many cells: of several machines or settings."""
    for series, mine in timed.by_series():
        order = np.lexsort((mine.us, mine.sizes, mine.processes, mine.nodes))
        cells = np.column_stack([mine.nodes, mine.processes, mine.sizes])[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(cells, axis=0) != 0).any(axis=1)])
        gaps = [
            (float(np.exp(np.diff(np.log(times))[1:-1].max())), cells[start])
            for start, times in zip(starts, np.split(mine.us[order], starts[1:]), strict=True) if len(times) > 3
        ]  # fmt: skip
        apart = [gap for gap in gaps if gap[0] > GROUPS]
        if len(gaps) >= GROUPS_CELLS and len(apart) >= GROUPS_PART * len(gaps):
            gap, (_, ranks, size) = max(apart, key=lambda found: found[0])
            at = f" and {int(size):,} bytes" * bool(size)
            yield Finding(
                "launches disagree", (series,),
                f"in {len(apart):,} of {len(gaps):,} cells with four or more launches, these form two groups more than {GROUPS:g} times "
                f"apart (at {int(ranks):,} ranks{at} {gap:.3g} times): are the machines and settings the same?",
                "likely",
            )  # fmt: skip


def _run_name(path: str, number: str, other: str) -> str:
    """Return the name of a file, with its folder if the *other* file of a pair has the same name, or of a run if it is the same file."""
    name = Path(path).name
    if path == other:
        return f"launch {number} in {name}"
    return f"{Path(path).parent.name}/{name}" if name == Path(other).name else name


def agreement_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the differences (larger / smaller - 1, in percent) between sources of one machine in common cells, without flagged rows."""
    timed = Launches([row for row in rows if not row.get("flag")]).timed()
    return [
        {
            "collective": one[1], "algorithm": one[2] + (f" [{one[3]}]" if one[3] else ""), "mapping": one[4],
            "sources": f"{one[0]} and {two[0]}", "cells": cells, "median_abs_difference_pct": middle,
            "p90_abs_difference_pct": high,
        }
        for one, two, cells, middle, high in _agreeing(timed.medians())
    ]  # fmt: skip


def _apart(a: np.ndarray, b: np.ndarray) -> tuple[int, float, float]:
    """Return the number of common cells, and the median and 90th percentile of larger / smaller - 1, whichever of the two is larger."""
    a, b = common(a, b)
    if not len(a):
        return 0, np.nan, np.nan
    difference = np.maximum(a / b, b / a) - 1
    return len(a), float(np.median(difference)), float(np.quantile(difference, 0.9))


def _agreeing(table: Table) -> Iterator[tuple[Series, Series, int, float, float]]:
    """Yield series that two sources have, the number of common cells, and median and 90th percentile of the difference (%)."""
    for mine in table.by_name.values():
        for one, two in itertools.combinations(mine, 2):
            cells, middle, high = _apart(table[one], table[two])
            if cells:
                yield one, two, cells, round(100 * middle, 2), round(100 * high, 2)
