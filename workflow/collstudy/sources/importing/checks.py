"""Consistency checks of imported data: `import-checks.csv`, one finding per row, with its evidence. Data are never repaired.

A *series* has the data of one source, algorithm and mapping; its values are medians over launches, by nodes, processes
and size. Thresholds were set on the data of six authors (docs/methodology.md, section 7), in which they find the known errors
and no others.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.series import Firsts, Launches, Series, Table, grid
from collstudy.study.config import Machine

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
#: A launch is an outlier if it is slower than its neighbours in size and processes by this factor.
OUTLIER = 500.0
#: A series is noisy when so large a part of its cells, and so many, take five times as long as their neighbours (sound ones: 0.6 %, none).
NOISY, NOISY_CELLS, NOISE_FACTOR = 0.015, 10, 5.0
#: Values that two decimals print to better than 0.3 %.
TOLD_WELL_US = 2.0
#: Independent measurements never have a constant ratio within half a percent.
SAME_RATIO = 0.005
#: Fewer common cells tell nothing about copies.
LEAST_COPIED = 10
#: Sources of one machine agree within 2 to 12 %.
DISAGREE_MEDIAN = 0.2


@dataclass(frozen=True)
class Finding:
    """One row of import-checks.csv. `how_sure` is certain, likely or possible."""

    check: str
    where: str
    found: str
    how_sure: str
    done: str = "kept as it is; a warning"


def check(
    rows: list[dict[str, Any]],
    problems: dict[str, int],
    machine: Machine,
    others: Mapping[str, list[dict[str, Any]] | Firsts],
) -> list[Finding]:
    """Every finding. *rows* include those that the study leaves out; *others* are other imported studies, by name: their rows,
    or what of them is compared.

    Rows that are outliers get `flag`.
    """
    everything = Launches(rows)
    for index in flag_outliers(everything):
        rows[index]["flag"] = "outlier"
    found = [*_unused(problems), *_outliers(everything)]
    unflagged = everything.part(np.array([not row.get("flag") for row in rows], dtype=bool))
    timed = unflagged.timed()
    if len(timed):
        table = timed.medians()
        found += [
            *_same_as_another(table), *_growth(table, machine), *_disagreement(table), *_stayed_on_the_node(table, machine),
            *_outside(timed), *_flat(table), *_multiples(table), *_units(table, machine),
            *_sizes(timed), *_noise(table),
        ]  # fmt: skip
        found += _copies(Firsts.of(timed, timed), others)
    found += _pairs(everything.part(everything.pairs), machine)
    return _with_done(list(dict.fromkeys(found)), everything)


def rows_of(findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as rows of the table."""
    return [asdict(finding) for finding in findings]


def _named(series: tuple) -> str:
    source, collective, algorithm, parameters, mapping = series
    text = f"{collective} {algorithm}" + (f" [{parameters}]" if parameters else "")
    return (f"{source}: " if source else "") + f"{text}, by {mapping}"


def _whole(source: str, collective: str, algorithm: str) -> str:
    return (f"{source}: " if source else "") + f"{collective} {algorithm}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _with_done(findings: list[Finding], everything: Launches) -> list[Finding]:
    """Action for the rows of each finding: left out, if the study does so for the whole series."""
    rows = everything.rows
    if not any(row.get("left_out") for row in rows):
        return findings
    reasons = {}
    for series, mine in everything.by_series():
        told = [rows[index].get("left_out") or "" for index in mine.at]
        if all(told):
            reasons[series] = told[0]

    def reason(finding: Finding) -> str | None:
        for series, text in reasons.items():
            disagreeing = finding.check == "sources disagree" and finding.where.startswith(
                _named(("", *series[1:])) + ": "
            )
            if finding.where == _named(series) or (
                disagreeing and series[0] in finding.where.split(": ")[-1].split(" and ")
            ):
                return text
        return None

    return [
        replace(finding, done=f"left out by the study: {text}") if (text := reason(finding)) else finding
        for finding in findings
    ]


def _unused(problems: dict[str, int]) -> Iterator[Finding]:
    for text, count in problems.items():
        reason, _, place = text.partition(" (first: ")
        if text.startswith(("rows", "calls")):
            yield Finding("values", place.rstrip(")"), f"{count} {reason}", "certain", "not used")
        elif text.startswith("tests whose allocation"):
            yield Finding("processes", place.rstrip(")"), f"{count} {reason}", "certain", "not used")
        elif "last sizes are missing" in text:
            yield Finding("sizes", place.rstrip(")"), f"{count} {reason}", "likely", "the available sizes are used")


# --- algorithms


def _compared(a: np.ndarray, b: np.ndarray) -> tuple[int, float, float]:
    """Cells that both have, median and 90th percentile of |a / b - 1|."""
    known = ~(np.isnan(a) | np.isnan(b))
    if not known.any():
        return 0, np.nan, np.nan
    difference = np.abs(a[known] / b[known] - 1)
    return int(known.sum()), float(np.median(difference)), float(np.quantile(difference, 0.9))


def _same_as_another(table: Table) -> Iterator[Finding]:
    """Times equal to another algorithm's of the same source, or closer to another's of a second source than to its own.

    The library's default is excluded: it legitimately equals another algorithm.
    """
    many = table.processes >= FROM_RANKS
    named = [name for name in table.series if name[2] != "default"]
    if not many.any() or len(named) < 2:
        return
    mappings = sorted({name[4] for name in named})
    series: dict[tuple, np.ndarray] = {}
    for name in named:
        # All mappings of an algorithm one after the other; of several parameters the first that has a value.
        whole = series.setdefault(name[:3], np.full((len(mappings), int(many.sum())), np.nan))
        mine, values = whole[mappings.index(name[4])], table[name][many]
        mine[np.isnan(mine)] = values[np.isnan(mine)]
    series = {key: series[key].ravel() for key in sorted(series)}
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
                    "algorithm is another", _whole(*suspect),
                    f"equal to {_whole(*model)} within {_percent(middle)} in the median ({_percent(high)} at the 90th percentile, {cells} "
                    f"cells of {FROM_RANKS} ranks and more), and {_percent(value[1])} away from {suspect[2]} of {source}",
                    "certain",
                )  # fmt: skip
        if (one, two) not in accused and one[0] == two[0]:
            rest = [
                v[1]
                for p, v in pairs.items()
                if p != (one, two) and p[0][1] == one[1] and p[0][2] != p[1][2] and v[0] >= 20
            ]
            compared = f"; other pairs of algorithms differ by {_percent(min(rest))} and more" if rest else ""
            yield Finding(
                "algorithm is another", f"{_whole(*one)} and {two[2]}",
                f"the times of both are equal within {_percent(middle)} in the median ({_percent(high)} at the 90th percentile, {cells} "
                f"cells of {FROM_RANKS} ranks and more){compared}: one of the two labels is wrong",
                "likely",
            )  # fmt: skip


def _growth(table: Table, machine: Machine) -> Iterator[Finding]:
    """Broadcasts whose time grows more slowly with the ranks than their named pattern allows."""
    found: dict[tuple, list[tuple[str, float]]] = {}
    for series, times in table.columns():
        source, collective, algorithm, _, mapping = series
        if collective != "bcast" or algorithm not in GROWS_WITH_RANKS:
            continue
        sizes, processes = table.sizes, table.processes
        told = ~np.isnan(times) & (sizes >= 1024) & (sizes <= 8192)
        told &= (processes >= 4) & (processes <= machine.cores_per_node)
        slopes = [
            np.polyfit(np.log(processes[of]), np.log(times[of]), 1)[0]
            for size in np.unique(sizes[told]) if len(np.unique(processes[of := told & (sizes == size)])) >= 4
        ]  # fmt: skip
        if slopes:
            found.setdefault((source, collective, algorithm), []).append((mapping, float(np.median(slopes))))
    for key, slopes in found.items():
        low = [(mapping, slope) for mapping, slope in slopes if slope < LEAST_GROWTH]
        if low:
            shown = ", ".join(f"{slope:.2f} by {mapping}" for mapping, slope in low)
            yield Finding(
                "algorithm is another", _whole(*key),
                f"of 1 to 8 KiB the time grows with the ranks to the power of {shown}; where one rank sends every message, or one message "
                f"passes every rank, it is {LEAST_GROWTH} at least: a tree's times, not a {key[2]} broadcast's",
                "likely",
            )  # fmt: skip


def _disagreement(table: Table) -> Iterator[Finding]:
    """A series that is far from that of a second source."""
    for row in agreement(table):
        middle = row["median_abs_difference_pct"] / 100
        if row["cells"] >= 10 and middle > DISAGREE_MEDIAN:
            yield Finding(
                "sources disagree", f"{row['collective']} {row['algorithm']}, by {row['mapping']}: {row['sources']}",
                f"{_percent(middle)} in the median over {row['cells']} cells "
                f"({row['p90_abs_difference_pct']:.1f} % at the 90th percentile)",
                "certain",
            )  # fmt: skip


def agreement_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """agreement() of the rows that are in means."""
    timed = Launches([row for row in rows if not row.get("flag")]).timed()
    return agreement(timed.medians()) if len(timed) else []


def agreement(table: Table) -> list[dict[str, Any]]:
    """Differences between sources of one machine in common cells: |a / b - 1| in percent."""
    found = []
    groups: dict[tuple, list[Series]] = {}
    for series in table.series:
        groups.setdefault(series[1:], []).append(series)
    for (collective, algorithm, parameters, mapping), mine in groups.items():
        for one, two in itertools.combinations(mine, 2):
            a, b = _both(table[one], table[two])
            if not len(a):
                continue
            difference = 100 * np.abs(a / b - 1)
            found.append({
                "collective": collective, "algorithm": algorithm + (f" [{parameters}]" if parameters else ""), "mapping": mapping,
                "sources": f"{one[0]} and {two[0]}", "cells": len(a),
                "median_abs_difference_pct": round(float(np.median(difference)), 2),
                "p90_abs_difference_pct": round(float(np.percentile(difference, 90)), 2),
            })  # fmt: skip
    return found


def _both(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of the cells that both have."""
    known = ~(np.isnan(a) | np.isnan(b))
    return a[known], b[known]


# --- mappings


def _leaves_at_two(mapping: str) -> bool:
    """Whether ranks 0 and 1 of a mapping are on two nodes."""
    return mapping in ("node", "group", "BFNF", "BFSF")


def _stayed_on_the_node(table: Table, machine: Machine) -> Iterator[Finding]:
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
            a, b = _both(mine[two_small], table[inside][two_small])
            if len(a) and (ratio := float(np.median(a / b))) < LEAST_NETWORK:
                evidence.append(f"two ranks take {ratio:.2f} times what they take by core ({np.median(a):.2f} us)")
            a, b = _both(mine[within], table[inside][within])
            if len(a) >= 20 and (difference := float(np.median(np.abs(a / b - 1)))) < SAME_MEDIAN:
                evidence.append(
                    f"the times are those by core within {_percent(difference)} in the median ({len(a)} cells)"
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
            yield Finding("never left the node", _named(series), "; ".join(evidence), sure)


def _pairs(pairs: Launches, machine: Machine) -> Iterator[Finding]:
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
                f"{_percent(fast)} of them are faster than the median pair inside of a node ({middle:.2f} us)", "certain",
            )  # fmt: skip


# --- values


def _outside(timed: Launches) -> Iterator[Finding]:
    """Means that P values between the minimum and the maximum cannot have."""
    known = timed.part(~(np.isnan(timed.low) | np.isnan(timed.high)))
    if not len(known):
        return
    low, high, mean, ranks = known.low, known.high, known.us, known.processes
    # Printed with two decimals each.
    slack = 0.011 + 0.002 * mean
    outside = (mean < low - slack) | (mean > high + slack)
    least, most = (low * (ranks - 1) + high) / ranks, (high * (ranks - 1) + low) / ranks
    named = [known.rows[index].get("statistic") for index in known.at]
    told = any(row.get("statistic") for row in known.rows)
    single = np.array([name == "mean_over_ranks" or not told for name in named], dtype=bool)
    impossible = ~outside & single & (ranks >= 2) & ((mean < least - slack) | (mean > most + slack))
    for wrong, what in (
        (outside, "are outside of their minimum and maximum"),
        (impossible, "cannot be the mean of that many values between them"),
    ):
        for series, mine in known.part(wrong).by_series():
            total = int((known.series == mine.series[0]).sum())
            first = known.rows[mine.at[0]]
            yield Finding(
                "mean, minimum and maximum", _named(series),
                f"{len(mine)} of {total} means {what}; the first: {first['latency_us']:g} of {int(first['processes'])} ranks in "
                f"[{first['min_latency_us']:g}, {first['max_latency_us']:g}] us ({first['file']}, line {int(first['line'])})",
                "certain" if len(mine) > 2 else "likely",
            )  # fmt: skip


def _flat(table: Table) -> Iterator[Finding]:
    """Times that do not depend on the size of the message."""
    sized = (table.processes > 1) & (table.sizes > 0)
    for series, values in table.columns():
        told = np.flatnonzero(sized & ~np.isnan(values))
        # Rows are sorted by nodes, processes and size.
        ends = np.flatnonzero((np.diff(table.cells[told, :2], axis=0) != 0).any(axis=1)) + 1
        flat = total = 0
        for rows in np.split(told, ends):
            if len(rows) < 5 or table.sizes[rows[-1]] < max(65536, 256 * table.sizes[rows[0]]):
                continue
            total += 1
            third = max(1, len(rows) // 3)
            times = values[rows].tolist()
            flat += statistics.median(times[-third:]) < 1.5 * statistics.median(times[:third])
        if total and flat > total / 3:
            yield Finding(
                "times do not depend on size", _named(series),
                f"of {flat} of {total} numbers of ranks the largest sizes take less than 1.5 times as long as the smallest", "certain",
            )  # fmt: skip


def _multiples(table: Table) -> Iterator[Finding]:
    """Series, numbers of ranks or sizes whose times are others' times one constant."""
    told = np.where(table.values >= TOLD_WELL_US, table.values, np.nan)
    of: dict[tuple, list[int]] = {}
    for index, series in enumerate(table.series):
        of.setdefault(series[:2], []).append(index)
    for mine in of.values():
        for place, one in enumerate(mine):
            rest = mine[place + 1 :]
            for two, factor, cells in _constant_ratios(told[:, [one] * len(rest)].T, told[:, rest].T):
                yield Finding(
                    "times a constant", f"{_named(table.series[one])} and {_named(table.series[rest[two]])}",
                    f"{cells} cells have the ratio {factor:.4g} within {_percent(SAME_RATIO)}", "certain",
                )  # fmt: skip
    sized = (table.sizes > 0)[:, None]
    for series, values in zip(table.series, np.where(sized, told, np.nan).T, strict=True):
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
            "times a constant", _named(series),
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


def _copies(mine: Firsts, others: Mapping[str, list[dict[str, Any]] | Firsts]) -> Iterator[Finding]:
    """Series that are another's, digit by digit: of another algorithm, mapping or source here, or of another source in another study."""
    for name, other in {"": mine, **others}.items():
        theirs = Firsts.of_rows(other) if isinstance(other, list) else other
        ours, reference = _shared(mine.table, theirs.table)
        found: dict[tuple, list[tuple[str, float, int]]] = {}
        for one, two, equal, cells in _equal_series(mine.table.series, ours, theirs.table.series, reference):
            if (name == "" and one >= two) or (name and one[0] == two[0] and one[0] != ""):
                continue
            if not (name and mine.paths.get(one, frozenset()) & theirs.paths.get(two, frozenset())):
                found.setdefault((_whole(*one[:3]), _whole(*two[:3])), []).append(
                    (f"{one[4]} and {two[4]}", equal, cells)
                )
        for (one_name, two_name), where in found.items():
            mappings = ", ".join(text for text, _, _ in where)
            share = min(equal for _, equal, _ in where)
            yield Finding(
                "equal digit by digit", f"{one_name}" + ("" if name else f" and {two_name}"),
                f"{_percent(share)} and more of {sum(cells for _, _, cells in where)} values are those of {two_name}"
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
        equal, telling = both & (a == their_values[:, columns]), both & (a >= 1.0)
        cells, told = both.sum(axis=0), telling.sum(axis=0)
        enough = (cells >= LEAST_COPIED) & (told >= 8)
        share = np.minimum(
            equal.sum(axis=0) / np.maximum(cells, 1), (equal & telling).sum(axis=0) / np.maximum(told, 1)
        )
        for place in np.flatnonzero(enough & (share >= 0.9)):
            if len(np.unique(a[both[:, place]])) >= 6:
                yield one, theirs[columns[place]], float(share[place]), int(cells[place])


def _units(table: Table, machine: Machine) -> Iterator[Finding]:
    """Times that are too small or too large for what they are of, or another source's times a power of a thousand."""
    several = table.processes > 1
    for series, times in table.columns():
        told = several & ~np.isnan(times)
        if not told.any():
            continue
        values, size, ranks = times[told], table.sizes[told], table.processes[told].min()
        fewest = table.processes[told] == ranks
        least = float(np.median(values[fewest & (size == size[fewest].min())]))
        evidence = []
        for other in table.series:
            if other[1:] == series[1:] and other != series:
                a, b = _both(times, table[other])
                ratio = float(np.median(a / b)) if len(a) >= 5 else np.nan
                for power in (1e3, 1e6, 1e9):
                    if 0.5 < ratio / power < 2 or 0.5 < ratio * power < 2:
                        evidence.append(f"{ratio:.3g} times those of {other[0] or 'another source'}")
        sure = "certain" if evidence else "likely"
        if least < 0.02:
            evidence.append(
                f"{int(ranks)} ranks take {least:.3g} us for the smallest message, less than a cache line needs between cores"
            )
        if ranks <= 8 and least > 100 and size[fewest].min() <= 1024:
            evidence.append(f"{int(ranks)} ranks take {least:.3g} us for the smallest message")
        large = (size >= 65536) & fewest
        if large.any():
            rate = float(np.median(size[large] / values[large] / 1e3))
            if rate > 1000 or (rate < 0.01 and ranks <= 8):
                evidence.append(f"the longest messages would move at {rate:.3g} GB/s")
        if evidence:
            yield Finding("unit of the times", _named(series), "; ".join(evidence), sure)


def _sizes(timed: Launches) -> Iterator[Finding]:
    """Sizes that one series alone has, beside those of the others: another unit, elements instead of bytes, or a slip."""
    by_collective: dict[tuple, dict[tuple, frozenset[float]]] = {}
    for name, mine in timed.part(timed.sizes > 0).by_series():
        sizes = frozenset(np.unique(mine.sizes).tolist())
        of = by_collective.setdefault(name[:2], {})
        of[name[2], name[4]] = of.get((name[2], name[4]), frozenset()) | sizes
    for (source, collective), of in sorted(by_collective.items()):
        if len(of) < 3:
            continue
        for key, sizes in sorted(of.items()):
            part = 0 if len({algorithm for algorithm, _ in of}) > 1 else 1
            rest = frozenset().union(*(other for name, other in of.items() if name[part] != key[part]))
            factors = [f for f in (1024, 8, 4, 1 / 4, 1 / 8, 1 / 1024) if sizes and {s * f for s in sizes} <= rest]
            odd = sizes - rest
            doubling = all(size == int(size) and int(size) & (int(size) - 1) == 0 for size in odd)
            if (len(odd) > len(sizes) / 2 and not doubling) or (len(odd) > 3 and factors):
                shown = ", ".join(str(int(s)) for s in sorted(odd)[:4])
                unit = f"; times {factors[0]:g} they are the sizes of the others" if factors else ""
                yield Finding(
                    "sizes", (f"{source}: " if source else "") + f"{collective} {key[0]}, by {key[1]}",
                    f"{len(odd)} of its {len(sizes)} sizes occur in no other series ({shown}, ...){unit}", "likely",
                )  # fmt: skip


# --- outliers and noise


def _noise(table: Table) -> Iterator[Finding]:
    """Series of which many cells are far above their neighbours."""
    for series, values in table.columns():
        logs = np.log(table.grid(values)[2])
        above = logs - _neighbours(logs)
        above = above[~np.isnan(above)]
        slow = int((above > np.log(NOISE_FACTOR)).sum())
        if slow >= NOISY_CELLS and slow >= NOISY * len(above):
            yield Finding(
                "noise", _named(series),
                f"{slow} of {len(above)} cells take more than {NOISE_FACTOR:g} times as long as their neighbours", "certain",
            )  # fmt: skip


def flag_outliers(launches: Launches) -> list[int]:
    """Positions of launches that are OUTLIER times slower than the median of their neighbours in size and in processes."""
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
            around = _neighbours(np.log(times))
            limit = around[np.searchsorted(ranks, mine.processes), np.searchsorted(sizes, mine.sizes)]
            found += mine.at[np.log(mine.us) - limit > np.log(OUTLIER)].tolist()
    return sorted(found)


def _neighbours(logs: np.ndarray) -> np.ndarray:
    """For each place the median of the up to eight neighbours within two steps along either axis; NaN with fewer than two."""
    padded = np.pad(logs, 2, constant_values=np.nan)
    rows, columns = logs.shape
    shifts = [(-2, 0), (-1, 0), (1, 0), (2, 0), (0, -2), (0, -1), (0, 1), (0, 2)]
    stacked = np.stack([padded[2 + i : 2 + i + rows, 2 + j : 2 + j + columns] for i, j in shifts])
    enough = (~np.isnan(stacked)).sum(axis=0) >= 2
    result = np.full(logs.shape, np.nan)
    if enough.any():
        result[enough] = np.nanmedian(stacked[:, enough], axis=0)
    return result


def _outliers(launches: Launches) -> Iterator[Finding]:
    flagged = launches.part(np.array([row.get("flag") == "outlier" for row in launches.rows], dtype=bool))
    for series, mine in flagged.by_series():
        worst = launches.rows[mine.at[np.argmax(mine.us)]]
        size = f", {int(worst['size_bytes'])} bytes" if worst.get("size_bytes") else ""
        yield Finding(
            "outlier", _named(series),
            f"{len(mine)} launches are over {OUTLIER:.0f} times slower than their neighbours in size and ranks; the slowest: "
            f"{worst['latency_us']:g} us, {int(worst['processes'])} ranks{size} ({worst.get('file', '')}, line {worst.get('line', 0)})",
            "certain", "kept and flagged; not in means",
        )  # fmt: skip
