"""Import checks of what data say they are: whether an algorithm or mapping is another, and whether sources agree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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
#: Exponent of the time in the number of ranks, 1 to 8 KiB, within one node: where one rank sends every message, or one message
#: passes every rank, it is 0.79 to 1.4 by all authors; of trees 0.34 to 0.97.
LEAST_GROWTH = 0.65
GROWS_WITH_RANKS = ("linear", "pipeline")
#: Two ranks on two nodes take at least this many times as long as two on one socket (measured: 2.8 to 5), for small messages.
LEAST_NETWORK = 1.5
#: Sources of one machine agree within 2 to 12 %.
DISAGREE_MEDIAN = 0.2


def _compared(a: np.ndarray, b: np.ndarray) -> tuple[int, float, float]:
    """Cells that both have, median and 90th percentile of |a / b - 1|."""
    known = ~(np.isnan(a) | np.isnan(b))
    if not known.any():
        return 0, np.nan, np.nan
    difference = np.abs(a[known] / b[known] - 1)
    return int(known.sum()), float(np.median(difference)), float(np.quantile(difference, 0.9))


def _named_series(table: Table) -> dict[tuple, np.ndarray]:
    """Times of each source, collective and named algorithm from FROM_RANKS ranks on, all mappings one after the other.

    Of several parameters the first that has a value.
    """
    many = table.processes >= FROM_RANKS
    if not many.any():
        return {}
    named = [name for name in table.series if name[2] != "default"]
    mappings = sorted({name[4] for name in named})
    series: dict[tuple, np.ndarray] = {}
    for name in named:
        whole = series.setdefault(name[:3], np.full((len(mappings), int(many.sum())), np.nan))
        mine, values = whole[mappings.index(name[4])], table[name][many]
        mine[np.isnan(mine)] = values[np.isnan(mine)]
    return {key: series[key].ravel() for key in sorted(series)}


def same_as_another(table: Table) -> Iterator[Finding]:
    """Times equal to another algorithm's of the same source, or closer to another's of a second source than to its own.

    The library's default is excluded: it legitimately equals another algorithm.
    """
    series = _named_series(table)
    pairs = {
        (one, two): _compared(series[one], series[two])
        for one, two in itertools.combinations(series, 2)
        if one[1] == two[1]
    }
    accused = set()
    for (one, two), (cells, middle, high) in pairs.items():
        if one[2] == two[2] or cells < 20 or not (middle < SAME_MEDIAN and high < SAME_P90):
            continue
        # The mislabelled one of the two is that which a second source contradicts.
        for suspect, model in ((one, two), (two, one)):
            own = [
                (key, value) for pair, value in pairs.items() if suspect in pair
                for key in pair if key != suspect and key[2] == suspect[2] and value[0] >= 20
            ]  # fmt: skip
            contradicted = [(key[0], value) for key, value in own if value[1] > 3 * SAME_MEDIAN]
            if contradicted:
                source, value = contradicted[0]
                accused |= {(suspect, model), (model, suspect)}
                yield Finding(
                    "algorithm is another", whole_series(*suspect),
                    f"equal to {whole_series(*model)} within {percent(middle)} in the median ({percent(high)} at the 90th percentile, "
                    f"{cells} cells of {FROM_RANKS} ranks and more), and {percent(value[1])} away from {suspect[2]} of {source}",
                    "certain",
                )  # fmt: skip
        if (one, two) not in accused and one[0] == two[0]:
            rest = [
                v[1]
                for p, v in pairs.items()
                if p != (one, two) and p[0][1] == one[1] and p[0][2] != p[1][2] and v[0] >= 20
            ]
            compared = f"; other pairs of algorithms differ by {percent(min(rest))} and more" if rest else ""
            yield Finding(
                "algorithm is another", f"{whole_series(*one)} and {two[2]}",
                f"the times of both are equal within {percent(middle)} in the median ({percent(high)} at the 90th percentile, {cells} "
                f"cells of {FROM_RANKS} ranks and more){compared}: one of the two labels is wrong",
                "likely",
            )  # fmt: skip


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
            np.polyfit(np.log(processes[of]), np.log(times[of]), 1)[0]
            for size in np.unique(sizes[used]) if len(np.unique(processes[of := used & (sizes == size)])) >= 4
        ]  # fmt: skip
        if slopes:
            found.setdefault((source, collective, algorithm), []).append((mapping, float(np.median(slopes))))
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


def disagreement(table: Table) -> Iterator[Finding]:
    """A series that is far from that of a second source."""
    for one, two, cells, middle, high in _agreeing(table):
        if cells >= 10 and middle / 100 > DISAGREE_MEDIAN:
            yield Finding(
                "sources disagree", (one, two),
                f"{percent(middle / 100)} in the median over {cells} cells ({high:.1f} % at the 90th percentile)", "certain",
            )  # fmt: skip


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
    groups: dict[tuple, list[Series]] = {}
    for series in table.series:
        groups.setdefault(series[1:], []).append(series)
    for mine in groups.values():
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
