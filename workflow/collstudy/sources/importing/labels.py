"""Import checks of labels: whether an algorithm or mapping is mislabelled, and whether sources agree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding, common, percent, whole_series
from collstudy.sources.importing.series import Launches, Series, Table
from collstudy.study.machines import Machine

np = lazy("numpy")

#: Two algorithms of one source whose times are closer than this (median, 90th percentile) are one algorithm: other pairs of algorithms
#: with trees of their own differ by 5 % and more, with a wide spread; one algorithm measured twice by 1.4 to 3 %, 5 to 11 %.
SAME_MEDIAN, SAME_P90 = 0.035, 0.13
#: With fewer ranks, different trees send the same messages.
FROM_RANKS = 8
#: Consecutive numbers of ranks: of different algorithms 2 at most are equal, of one algorithm by two authors 5 at least.
LEAST_RUN = 4
#: ... over sizes from small to large ones (largest over smallest): of small ones alone 5 of different algorithms are equal.
WIDE = 2**14
#: Scattered numbers of ranks, and part of all that both have: of different algorithms 0.24 at most are equal, of one every third.
LEAST_SCATTERED, SCATTERED_PART = 6, 0.4
#: Of small messages, and of sizes close together, different trees can be equal at all numbers of ranks (up to 2 KiB, and at two sizes).
LARGE, SPREAD = 2**14, 64
#: Algorithms that send the same messages, up to some size at least.
SAME_MESSAGES = ({"linear", "linear_nb"}, {"linear", "linear_sync"}, {"ring", "segmented_ring"})
#: Exponent of the time in the number of ranks, 1 to 8 KiB, within one node: where one rank sends every message, or one message
#: passes every rank, it is 0.79 to 1.4 by all authors; of trees 0.34 to 0.97.
LEAST_GROWTH = 0.65
GROWS_WITH_RANKS = ("linear", "pipeline")
#: Two ranks on two nodes take at least this many times as long as two on one socket (measured: 2.8 to 5), for small messages.
LEAST_NETWORK = 1.5
#: Sources of one machine agree within 2 to 12 %.
DISAGREE_MEDIAN = 0.2
#: Times of two sources that fit each other one row further within SHIFTED, and so many times better than in their own row.
SHIFTED, SHIFTED_FROM = 0.06, 2.5


def _compared(a: np.ndarray, b: np.ndarray) -> tuple[int, float, float]:
    """Cells that both have, median and 90th percentile of |a / b - 1|."""
    known = ~(np.isnan(a) | np.isnan(b))
    if not known.any():
        return 0, np.nan, np.nan
    difference = np.abs(a[known] / b[known] - 1)
    return int(known.sum()), float(np.median(difference)), float(np.quantile(difference, 0.9))


@dataclass(frozen=True)
class Same:
    """Where the times of two algorithms are those of one: the cells (mapping x row of the table), in words, and how close."""

    part: np.ndarray
    words: str
    cells: int
    middle: float
    high: float


class Named:
    """Times of each source, collective and named algorithm from FROM_RANKS ranks on: mapping x row of the table.

    Of several parameters the first that has a value. The library's default is not in it: it legitimately equals another algorithm.
    """

    def __init__(self, table: Table):
        many = table.processes >= FROM_RANKS
        named = [name for name in table.series if name[2] != "default"]
        self.processes, self.sizes = table.processes[many], table.sizes[many]
        self.mappings = sorted({name[4] for name in named})
        self.times: dict[tuple[str, str, str], np.ndarray] = {}
        for name in named if many.any() else []:
            whole = self.times.setdefault(name[:3], np.full((len(self.mappings), int(many.sum())), np.nan))
            mine, values = whole[self.mappings.index(name[4])], table[name][many]
            mine[np.isnan(mine)] = values[np.isnan(mine)]

    def same(self, one: tuple[str, str, str], two: tuple[str, str, str]) -> list[Same]:
        """Parts in which two series are equal: everything, or else one mapping, or else some numbers of ranks of a mapping."""
        a, b = self.times[one], self.times[two]
        whole = self._same(a, b, np.ones(a.shape, dtype=bool), "")
        if whole:
            return [whole]
        found = []
        for index, mapping in enumerate(self.mappings):
            part = np.zeros(a.shape, dtype=bool)
            part[index] = True
            same = self._same(a, b, part, f", by {mapping}") or self._at_some(a, b, index, f", by {mapping}")
            found += [same] if same else []
        return found

    def _same(self, a: np.ndarray, b: np.ndarray, part: np.ndarray, words: str) -> Same | None:
        cells, middle, high = _compared(a[part], b[part])
        if cells < 20 or not (middle < SAME_MEDIAN and high < SAME_P90):
            return None
        sizes = self.sizes[(part & ~(np.isnan(a) | np.isnan(b))).any(axis=0)]
        if sizes.max() > 0 and (sizes.max() < LARGE or sizes.max() < SPREAD * max(1, sizes.min())):
            return None
        return Same(part, words, cells, middle, high)

    def _at_some(self, a: np.ndarray, b: np.ndarray, index: int, words: str) -> Same | None:
        """The numbers of ranks at each of which the times are equal: the longest run of them, or many that are scattered."""
        known = ~(np.isnan(a[index]) | np.isnan(b[index]))
        if not (self.sizes[known] > 0).any():
            return None  # A barrier is one value at each number of ranks; a quarter of them are equal by chance.
        total = 0
        runs: list[list[float]] = [[]]
        for ranks in np.unique(self.processes[known]):
            here = known & (self.processes == ranks)
            cells, middle, high = _compared(a[index][here], b[index][here])
            wide = cells >= 5 and self.sizes[here].max() >= WIDE * max(1, self.sizes[here].min())
            total += wide
            if wide and middle < SAME_MEDIAN and high < SAME_P90:
                runs[-1].append(ranks)
            else:
                runs.append([])
        longest, equal = max(runs, key=len), sum(runs, [])
        part = np.zeros(a.shape, dtype=bool)
        # Where most are equal, the run is only a piece of what is.
        if len(longest) >= max(LEAST_RUN, len(equal) / 2):
            part[index] = known & np.isin(self.processes, longest)
            return self._same(a, b, part, f"{words}, {int(longest[0])} to {int(longest[-1])} ranks")
        if len(equal) < max(LEAST_SCATTERED, SCATTERED_PART * total):
            return None
        part[index] = known & np.isin(self.processes, equal)
        return self._same(
            a, b, part, f"{words}, at {len(equal)} of {total} numbers of ranks ({int(equal[0])}, ..., {int(equal[-1])})"
        )


def same_as_another(table: Table) -> Iterator[Finding]:
    """Times equal to another algorithm's of the same source, or closer to another's of a second source than to its own, at all
    mappings, at one, or at some numbers of ranks.
    """
    named = Named(table)
    for collective in sorted({key[1] for key in named.times}):
        keys = sorted(key for key in named.times if key[1] == collective)
        pairs = [
            (one, two) for one, two in itertools.combinations(keys, 2)
            if one[2] != two[2] and not any({one[2], two[2]} <= alike for alike in SAME_MESSAGES)
        ]  # fmt: skip
        apart = {pair: _compared(named.times[pair[0]], named.times[pair[1]]) for pair in pairs}
        for one, two in pairs:
            for same in named.same(one, two):
                contradicted = [*_contradicted(named, one, two, same), *_contradicted(named, two, one, same)]
                yield from contradicted
                if not contradicted and one[0] == two[0]:
                    rest = [v[1] for pair, v in apart.items() if pair != (one, two) and v[0] >= 20]
                    compared = f"; other pairs of algorithms differ by {percent(min(rest))} and more" if rest else ""
                    yield Finding(
                        "algorithm is another", f"{whole_series(*one)} and {two[2]}{same.words}",
                        f"the times of both are equal within {percent(same.middle)} in the median ({percent(same.high)} at the 90th "
                        f"percentile, {same.cells} cells of {FROM_RANKS} ranks and more){compared}: one of the two labels is wrong",
                        "likely" if named.sizes[same.part.any(axis=0)].any() else "possible",
                    )  # fmt: skip


def _contradicted(
    named: Named, suspect: tuple[str, str, str], model: tuple[str, str, str], same: Same
) -> Iterator[Finding]:
    """The mislabelled one of two equal series is that which a second source of the same algorithm contradicts."""
    mine = named.times[suspect][same.part]
    for other in sorted(key for key in named.times if key[1:] == suspect[1:] and key != suspect):
        cells, middle, _ = _compared(mine, named.times[other][same.part])
        if cells >= 20 and middle > 3 * SAME_MEDIAN:
            yield Finding(
                "algorithm is another", f"{whole_series(*suspect)}{same.words}",
                f"equal to {whole_series(*model)} within {percent(same.middle)} in the median ({percent(same.high)} at the 90th "
                f"percentile, {same.cells} cells of {FROM_RANKS} ranks and more), and {percent(middle)} away from {suspect[2]} "
                f"of {other[0]}",
                "certain",
            )  # fmt: skip
            return


def growth(table: Table, machine: Machine) -> Iterator[Finding]:
    """Broadcasts whose time grows more slowly with the ranks than their named pattern allows."""
    found: dict[tuple, list[tuple[str, float]]] = {}
    for series, times in table.columns():
        source, collective, algorithm, _, mapping = series
        if collective != "bcast" or algorithm not in GROWS_WITH_RANKS:
            continue
        sizes, processes = table.sizes, table.processes
        used = ~np.isnan(times) & (sizes >= 1024) & (sizes <= 8192)
        used &= (processes >= 4) & (processes <= machine.cores_per_node)
        slopes = [
            _slope(np.log(processes[of]), np.log(times[of]))
            for size in np.unique(sizes[used]) if len(np.unique(processes[of := used & (sizes == size)])) >= 4
        ]  # fmt: skip
        if slopes:
            # The noise of a slope is not evidence: two standard errors are added.
            middle = float(np.median([slope + 2 * error for slope, error in slopes]))
            found.setdefault((source, collective, algorithm), []).append((mapping, middle))
    for key, slopes in found.items():
        low = [(mapping, slope) for mapping, slope in slopes if slope < LEAST_GROWTH]
        if low:
            shown = ", ".join(f"{slope:.2f} by {mapping}" for mapping, slope in low)
            yield Finding(
                "algorithm is another", whole_series(*key),
                f"of 1 to 8 KiB the time grows with the ranks to the power of {shown}; where one rank sends every message, or one message "
                f"passes every rank, it is {LEAST_GROWTH} at least: a tree's times, not a {key[2]} broadcast's",
                "likely",
            )  # fmt: skip


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope of the line through some points, and its standard error."""
    slope, level = np.polyfit(x, y, 1)
    spread = np.sum((y - slope * x - level) ** 2) / max(1, len(x) - 2)
    return float(slope), float(np.sqrt(spread / np.sum((x - x.mean()) ** 2)))


def disagreement(table: Table) -> Iterator[Finding]:
    """A series that is far from that of a second source."""
    for one, two, cells, middle, high in _agreeing(table):
        if cells >= 10 and middle / 100 > DISAGREE_MEDIAN:
            yield Finding(
                "sources disagree", (one, two),
                f"{percent(middle / 100)} in the median over {cells} cells ({high:.1f} % at the 90th percentile)", "certain",
            )  # fmt: skip


def shifted(table: Table) -> Iterator[Finding]:
    """Series whose numbers of ranks (or sizes) are a row off: they fit a second source's at the row before or after."""
    for others in _by_name(table).values():
        for one, two in itertools.combinations(others, 2):
            ranks, sizes, mine = table.grid(table[one])
            their_ranks, their_sizes, theirs = table.grid(table[two])
            if len(ranks) < 5 or not set(ranks) & set(their_ranks):
                continue
            rows = np.isin(their_ranks, ranks), np.isin(ranks, their_ranks)
            columns = np.isin(their_sizes, sizes), np.isin(sizes, their_sizes)
            a, b = mine[rows[1]][:, columns[1]], theirs[rows[0]][:, columns[0]]
            for what, (x, y) in {"ranks": (a, b), "bytes": (a.T, b.T)}.items():
                if len(x) < 5:
                    continue
                _, apart, _ = _compared(x, y)
                for words, (left, right) in {"before": (x[1:], y[:-1]), "after": (x[:-1], y[1:])}.items():
                    cells, middle, _ = _compared(left, right)
                    if cells >= 20 and middle < SHIFTED and apart > SHIFTED_FROM * middle:
                        yield Finding(
                            "processes" if what == "ranks" else "sizes", (one, two),
                            f"the times are {percent(apart)} apart in the median, but {percent(middle)} if those of {one[0]} are held "
                            f"against the {what} one row {words} of {two[0]} ({cells} cells): one of the two is a row off",
                            "certain",
                        )  # fmt: skip


def _by_name(table: Table) -> dict[tuple, list[Series]]:
    """The series of all sources under the rest of their names."""
    groups: dict[tuple, list[Series]] = {}
    for series in table.series:
        groups.setdefault(series[1:], []).append(series)
    return groups


def agreement_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences between sources of one machine in common cells, |a / b - 1| in percent, of the rows that are in means."""
    timed = Launches([row for row in rows if not row.get("flag")]).timed()
    return [
        {
            "collective": one[1], "algorithm": one[2] + (f" [{one[3]}]" if one[3] else ""), "mapping": one[4],
            "sources": f"{one[0]} and {two[0]}", "cells": cells, "median_abs_difference_pct": middle,
            "p90_abs_difference_pct": high,
        }
        for one, two, cells, middle, high in (_agreeing(timed.medians()) if len(timed) else ())
    ]  # fmt: skip


def _agreeing(table: Table) -> Iterator[tuple[Series, Series, int, float, float]]:
    """The series of two sources, how many cells both have, and the median and 90th percentile of their difference (%)."""
    for mine in _by_name(table).values():
        for one, two in itertools.combinations(mine, 2):
            cells, middle, high = _compared(table[one], table[two])
            if cells:
                yield one, two, cells, round(100 * middle, 2), round(100 * high, 2)


def _leaves_at_two(mapping: str) -> bool:
    """Whether ranks 0 and 1 of a mapping are on two nodes."""
    return mapping in ("node", "group", "BFNF", "BFSF")


def stayed_on_the_node(table: Table, machine: Machine) -> Iterator[Finding]:
    """A mapping over nodes whose times are those of one node."""
    if machine.nodes < 2:
        return
    two_small = (table.processes == 2) & (table.sizes <= 64)
    within = (table.processes > 1) & (table.processes <= machine.cores_per_node)
    for series, mine in table.columns():
        source, collective, algorithm, parameters, mapping = series
        if not _leaves_at_two(mapping):
            continue
        inside = (source, collective, algorithm, parameters, "core")
        evidence, sure = [], "likely"
        if inside in table.number:
            a, b = common(mine[two_small], table[inside][two_small])
            if len(a) and (ratio := float(np.median(a / b))) < LEAST_NETWORK:
                evidence.append(f"two ranks take {ratio:.2f} times what they take by core ({np.median(a):.2f} us)")
            a, b = common(mine[within], table[inside][within])
            if len(a) >= 20 and (difference := float(np.median(np.abs(a / b - 1)))) < SAME_MEDIAN:
                evidence.append(
                    f"the times are those by core within {percent(difference)} in the median ({len(a)} cells)"
                )
        here = two_small & ~np.isnan(mine)
        small = mine[here]
        peers = [
            float(np.median(of)) for other, values in table.columns()
            if other != series and _leaves_at_two(other[4]) and other[1] == collective
            and len(of := values[here & ~np.isnan(values)])
        ]  # fmt: skip
        # Alone it tells where nothing by core can be compared: algorithms differ between two ranks as well.
        comparable = evidence or inside not in table.number
        if len(small) and peers and comparable and np.median(small) < np.median(peers) / 3:
            evidence.append(
                f"two ranks take {np.median(small):.2f} us where others over nodes take {np.median(peers):.2f}"
            )
        if not evidence and len(small) and inside not in table.number and not peers and np.median(small) < 0.35:
            evidence.append(f"two ranks take {np.median(small):.2f} us, less than the latency of any network")
            sure = "possible"
        if evidence:
            sure = "certain" if len(evidence) > 1 else sure
            yield Finding("never left the node", (series,), "; ".join(evidence), sure)


def pairs_on_one_node(pairs: Launches, machine: Machine) -> Iterator[Finding]:
    """Pairs of a ladder on two nodes that are as fast as those within a node."""
    if not len(pairs):
        return
    per_node = machine.cores_per_node
    nodes = np.array([
        pairs.rows[index]["from_rank"] // per_node != pairs.rows[index]["to_rank"] // per_node for index in pairs.at
    ], dtype=bool)  # fmt: skip
    small = pairs.sizes <= 64
    inside, across = pairs.us[~nodes & small], pairs.us[nodes & small]
    if len(inside) and len(across):
        middle = np.nanmedian(inside)
        fast = float((across < middle).mean())
        if fast > 0.1:
            yield Finding(
                "never left the node", "pairs of cores on two nodes",
                f"{percent(fast)} of them are faster than the median pair inside of a node ({middle:.2f} us)", "certain",
            )  # fmt: skip
