"""Consistency checks of imported data: `import-checks.csv`, one finding per row, with its evidence. Data are never repaired.

A *series* has the data of one source, algorithm and mapping; its values are medians over launches, by nodes, processes
and size. Thresholds were set on the data of six authors (docs/methodology.md, section 7), in which they find the known errors
and no others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.study.config import Machine

np = lazy("numpy")
pd = lazy("pandas")

SERIES = ["source", "collective", "algorithm", "parameters", "mapping"]
CELL = ["nodes", "processes", "size_bytes"]

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


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows of an import as a table with all columns that the checks read."""
    frame = pd.DataFrame(rows)
    for name, empty in (("source", ""), ("parameters", ""), ("left_out", ""), ("from_rank", -1), ("to_rank", -1)):
        frame[name] = frame[name].fillna(empty) if name in frame else empty
    for name in ("min_latency_us", "max_latency_us", "size_bytes", "latency_us"):
        frame[name] = pd.to_numeric(frame[name]) if name in frame else np.nan
    frame["size_bytes"] = frame["size_bytes"].fillna(0)
    return frame


def check(
    rows: list[dict[str, Any]], problems: dict[str, int], machine: Machine, others: dict[str, list[dict[str, Any]]]
) -> list[Finding]:
    """Every finding. *rows* include those that the study leaves out; *others* are the rows of other imported studies, by name.

    Rows that are outliers get `flag`.
    """
    everything = frame_of(rows)
    for index in flag_outliers(everything):
        rows[index]["flag"] = "outlier"
    found = [*_unused(problems), *_outliers(everything, rows)]
    frame = everything[everything["latency_us"].notna() & (everything["collective"] != "pairs")]
    flagged = {index for index, row in enumerate(rows) if row.get("flag")}
    frame = frame[~frame.index.isin(flagged)]
    if len(frame):
        table = medians(frame)
        found += [
            *_same_as_another(table), *_growth(table, machine), *_disagreement(table), *_stayed_on_the_node(table, machine),
            *_outside(frame), *_flat(table), *_multiples(table), *_units(table, machine),
            *_sizes(frame), *_noise(table),
        ]  # fmt: skip
        found += _copies(frame, {name: frame_of(of) for name, of in others.items() if of})
    found += _pairs(everything[everything["collective"] == "pairs"], machine)
    return _with_done(list(dict.fromkeys(found)), everything)


def rows_of(findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as rows of the table."""
    return [asdict(finding) for finding in findings]


def medians(frame: pd.DataFrame) -> pd.DataFrame:
    """Median over launches: a column for each series, a row for each cell and size."""
    return frame.groupby([*SERIES, *CELL])["latency_us"].median().unstack(SERIES)


def _named(series: tuple) -> str:
    source, collective, algorithm, parameters, mapping = series
    text = f"{collective} {algorithm}" + (f" [{parameters}]" if parameters else "")
    return (f"{source}: " if source else "") + f"{text}, by {mapping}"


def _whole(source: str, collective: str, algorithm: str) -> str:
    return (f"{source}: " if source else "") + f"{collective} {algorithm}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _with_done(findings: list[Finding], frame: pd.DataFrame) -> list[Finding]:
    """Action for the rows of each finding: left out, if the study does so for the whole series."""
    if (frame["left_out"] == "").all():
        return findings
    reasons = {
        series: mine["left_out"].iloc[0] for series, mine in frame.groupby(SERIES) if (mine["left_out"] != "").all()
    }

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


def _same_as_another(table: pd.DataFrame) -> Iterator[Finding]:
    """Times equal to another algorithm's of the same source, or closer to another's of a second source than to its own.

    The library's default is excluded: it legitimately equals another algorithm.
    """
    many = table[table.index.get_level_values("processes") >= FROM_RANKS]
    many = many.loc[:, many.columns.get_level_values("algorithm") != "default"]
    if many.empty or many.shape[1] < 2:
        return
    named = ["source", "collective", "algorithm"]
    grid = many.stack("mapping", future_stack=True).T.groupby(level=named).first().T
    series = {key: grid[key].to_numpy() for key in grid.columns}
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


def _growth(table: pd.DataFrame, machine: Machine) -> Iterator[Finding]:
    """Broadcasts whose time grows more slowly with the ranks than their named pattern allows."""
    found: dict[tuple, list[tuple[str, float]]] = {}
    for series in table.columns:
        source, collective, algorithm, _, mapping = series
        if collective != "bcast" or algorithm not in GROWS_WITH_RANKS:
            continue
        values = table[series].dropna().rename("us").reset_index()
        values = values[
            values["size_bytes"].between(1024, 8192) & values["processes"].between(4, machine.cores_per_node)
        ]
        slopes = [
            np.polyfit(np.log(of["processes"]), np.log(of["us"]), 1)[0]
            for _, of in values.groupby("size_bytes") if of["processes"].nunique() >= 4
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


def _disagreement(table: pd.DataFrame) -> Iterator[Finding]:
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
    frame = frame_of([row for row in rows if not row.get("flag")])
    frame = frame[frame["latency_us"].notna() & (frame["collective"] != "pairs")]
    return agreement(medians(frame)) if len(frame) else []


def agreement(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Differences between sources of one machine in common cells: |a / b - 1| in percent."""
    found = []
    groups: dict[tuple, list[tuple]] = {}
    for series in table.columns:
        groups.setdefault(series[1:], []).append(series)
    for (collective, algorithm, parameters, mapping), mine in groups.items():
        for one, two in itertools.combinations(mine, 2):
            both = table[[one, two]].dropna()
            if both.empty:
                continue
            difference = 100 * (both.iloc[:, 0] / both.iloc[:, 1] - 1).abs()
            found.append({
                "collective": collective, "algorithm": algorithm + (f" [{parameters}]" if parameters else ""), "mapping": mapping,
                "sources": f"{one[0]} and {two[0]}", "cells": len(both),
                "median_abs_difference_pct": round(float(difference.median()), 2),
                "p90_abs_difference_pct": round(float(difference.quantile(0.9)), 2),
            })  # fmt: skip
    return found


# --- mappings


def _leaves_at_two(mapping: str) -> bool:
    """Whether ranks 0 and 1 of a mapping are on two nodes."""
    return mapping in ("node", "group", "BFNF", "BFSF")


def _stayed_on_the_node(table: pd.DataFrame, machine: Machine) -> Iterator[Finding]:
    """A mapping over nodes whose times are those of one node."""
    if machine.nodes < 2:
        return
    for series in table.columns:
        source, collective, algorithm, parameters, mapping = series
        if not _leaves_at_two(mapping):
            continue
        inside = (source, collective, algorithm, parameters, "core")
        evidence, sure = [], "likely"
        mine = table[series].dropna()
        if inside in table.columns:
            both = table[[series, inside]].dropna()
            small = both[
                (both.index.get_level_values("processes") == 2) & (both.index.get_level_values("size_bytes") <= 64)
            ]
            if len(small) and (ratio := float((small.iloc[:, 0] / small.iloc[:, 1]).median())) < LEAST_NETWORK:
                evidence.append(
                    f"two ranks take {ratio:.2f} times what they take by core ({small.iloc[:, 0].median():.2f} us)"
                )
            ranks = both.index.get_level_values("processes")
            both = both[(ranks > 1) & (ranks <= machine.cores_per_node)]
            difference = (both.iloc[:, 0] / both.iloc[:, 1] - 1).abs()
            if len(both) >= 20 and difference.median() < SAME_MEDIAN:
                evidence.append(
                    f"the times are those by core within {_percent(float(difference.median()))} in the median ({len(both)} cells)"
                )
        small = mine[
            (mine.index.get_level_values("processes") == 2) & (mine.index.get_level_values("size_bytes") <= 64)
        ]
        peers = [
            float(of.median()) for other in table.columns
            if other != series and _leaves_at_two(other[4]) and other[1] == collective
            and len(of := table[other].reindex(small.index).dropna())
        ]  # fmt: skip
        # Used only without data by core: algorithms differ between two ranks as well.
        if len(small) and peers and (evidence or inside not in table.columns) and small.median() < np.median(peers) / 3:
            evidence.append(
                f"two ranks take {small.median():.2f} us where others over nodes take {np.median(peers):.2f}"
            )
        if not evidence and len(small) and inside not in table.columns and not peers and small.median() < 0.35:
            evidence.append(f"two ranks take {small.median():.2f} us, less than the latency of any network")
            sure = "possible"
        if evidence:
            sure = "certain" if len(evidence) > 1 else sure
            yield Finding("never left the node", _named(series), "; ".join(evidence), sure)


def _pairs(frame: pd.DataFrame, machine: Machine) -> Iterator[Finding]:
    """Pairs of a ladder on two nodes that are as fast as those within a node."""
    if frame.empty:
        return
    per_node = machine.cores_per_node
    nodes = (frame["from_rank"] // per_node) != (frame["to_rank"] // per_node)
    small = frame["size_bytes"] <= 64
    inside, across = frame[~nodes & small]["latency_us"], frame[nodes & small]["latency_us"]
    if len(inside) and len(across):
        fast = float((across < inside.median()).mean())
        if fast > 0.1:
            yield Finding(
                "never left the node", "pairs of cores on two nodes",
                f"{_percent(fast)} of them are faster than the median pair inside of a node ({inside.median():.2f} us)", "certain",
            )  # fmt: skip


# --- values


def _outside(frame: pd.DataFrame) -> Iterator[Finding]:
    """Means that P values between the minimum and the maximum cannot have."""
    known = frame.dropna(subset=["min_latency_us", "max_latency_us"])
    if known.empty:
        return
    low, high, mean, ranks = (known[name] for name in ("min_latency_us", "max_latency_us", "latency_us", "processes"))
    # Printed with two decimals each.
    slack = 0.011 + 0.002 * mean
    outside = (mean < low - slack) | (mean > high + slack)
    least, most = (low * (ranks - 1) + high) / ranks, (high * (ranks - 1) + low) / ranks
    single = known["statistic"].eq("mean_over_ranks") if "statistic" in known else True
    impossible = ~outside & single & (ranks >= 2) & ((mean < least - slack) | (mean > most + slack))
    for wrong, what in (
        (outside, "are outside of their minimum and maximum"),
        (impossible, "cannot be the mean of that many values between them"),
    ):
        for series, mine in known[wrong].groupby(SERIES):
            total = int((known[SERIES] == pd.Series(series, index=SERIES)).all(axis=1).sum())
            first = mine.iloc[0]
            yield Finding(
                "mean, minimum and maximum", _named(series),
                f"{len(mine)} of {total} means {what}; the first: {first['latency_us']:g} of {int(first['processes'])} ranks in "
                f"[{first['min_latency_us']:g}, {first['max_latency_us']:g}] us ({first['file']}, line {int(first['line'])})",
                "certain" if len(mine) > 2 else "likely",
            )  # fmt: skip


def _flat(table: pd.DataFrame) -> Iterator[Finding]:
    """Times that do not depend on the size of the message."""
    for series in table.columns:
        values = table[series].dropna().rename("us").reset_index()
        values = values[(values["processes"] > 1) & (values["size_bytes"] > 0)]
        flat = total = 0
        for _, mine in values.groupby(["nodes", "processes"]):
            mine = mine.sort_values("size_bytes")
            if len(mine) < 5 or mine["size_bytes"].iloc[-1] < max(65536, 256 * mine["size_bytes"].iloc[0]):
                continue
            total += 1
            third = max(1, len(mine) // 3)
            flat += bool(mine["us"].iloc[-third:].median() < 1.5 * mine["us"].iloc[:third].median())
        if total and flat > total / 3:
            yield Finding(
                "times do not depend on size", _named(series),
                f"of {flat} of {total} numbers of ranks the largest sizes take less than 1.5 times as long as the smallest", "certain",
            )  # fmt: skip


def _multiples(table: pd.DataFrame) -> Iterator[Finding]:
    """Series, numbers of ranks or sizes whose times are others' times one constant."""
    by_collective: dict[tuple, list[tuple]] = {}
    for series in table.columns:
        by_collective.setdefault((series[0], series[1]), []).append(series)
    for mine in by_collective.values():
        told = table[mine].where(table[mine] >= TOLD_WELL_US)
        for one, two in itertools.combinations(mine, 2):
            factor, cells = _constant_ratio(told[one].to_numpy(), told[two].to_numpy())
            if factor is not None:
                yield Finding(
                    "times a constant", f"{_named(one)} and {_named(two)}",
                    f"{cells} cells have the ratio {factor:.4g} within {_percent(SAME_RATIO)}", "certain",
                )  # fmt: skip
    for series in table.columns:
        values = table[series].dropna()
        values = values[(values >= TOLD_WELL_US) & (values.index.get_level_values("size_bytes") > 0)]
        for level, what in (("processes", "ranks"), ("size_bytes", "bytes")):
            other = "size_bytes" if level == "processes" else "processes"
            grid = values.groupby([level, other]).median().unstack(other)
            yield from _rows_in_ratio(grid, series, what)


def _rows_in_ratio(grid: pd.DataFrame, series: tuple, what: str) -> Iterator[Finding]:
    """Rows of a table of times (sizes by ranks, or the other way) that are neighbours' times a constant."""
    found = []
    for one, two in itertools.pairwise(range(len(grid))):
        factor, cells = _constant_ratio(grid.iloc[one].to_numpy(), grid.iloc[two].to_numpy())
        if factor is not None:
            found.append((grid.index[one], grid.index[two], 1 / factor, cells))
    if found:
        one, two, factor, cells = found[0]
        yield Finding(
            "times a constant", _named(series),
            f"{len(found)} times: the times of {int(two)} {what} are those of {int(one)} times {factor:.4g} in {cells} cells", "certain",
        )  # fmt: skip


def _constant_ratio(a: np.ndarray, b: np.ndarray) -> tuple[float | None, int]:
    """The ratio of two rows of times where it is one, and not 1, within SAME_RATIO in at least eight cells of some range."""
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    if len(a) < 8 or a.max() < 2 * a.min():
        return None, 0
    ratio = a / b
    middle = float(np.median(ratio))
    near = np.abs(ratio / middle - 1) < SAME_RATIO
    if near.mean() < 0.95 or np.abs(middle - 1) < 2 * SAME_RATIO:
        return None, 0
    return middle, len(a)


def _copies(frame: pd.DataFrame, others: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    """Series equal digit by digit to another algorithm, mapping or source here, or to another source in another study."""
    mine = _first_values(frame)
    for name, other in {"": frame, **others}.items():
        theirs = _first_values(other[other["latency_us"].notna() & (other["collective"] != "pairs")])
        both = mine.index.intersection(theirs.index)
        ours, reference = mine.reindex(both), theirs.reindex(both)
        found: dict[tuple, list[tuple[str, float, int]]] = {}
        for i, one in enumerate(ours.columns):
            for j, two in enumerate(reference.columns):
                if one[1] != two[1] or (name == "" and one >= two) or (name and one[0] == two[0] and one[0] != ""):
                    continue
                equal, cells = _equal(ours.iloc[:, i].to_numpy(), reference.iloc[:, j].to_numpy())
                if equal >= 0.9 and not (name and _paths(frame, one) & _paths(other, two)):
                    found.setdefault((_whole(*one[:3]), _whole(*two[:3])), []).append(
                        (f"{one[4]} and {two[4]}", equal, cells)
                    )
        for (one, two), where in found.items():
            mappings = ", ".join(text for text, _, _ in where)
            share = min(equal for _, equal, _ in where)
            yield Finding(
                "equal digit by digit", f"{one}" + ("" if name else f" and {two}"),
                f"{_percent(share)} and more of {sum(cells for _, _, cells in where)} values are those of {two}"
                + (f" of study {name}" if name else "") + f" (by {mappings}); the values do not show which is the copy",
                "certain",
            )  # fmt: skip


def _equal(a: np.ndarray, b: np.ndarray) -> tuple[float, int]:
    """Share of equal values and number of common cells; 0 if too few are informative."""
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    telling = a >= 1.0
    if len(a) < 10 or telling.sum() < 8 or len(np.unique(a)) < 6:
        return 0.0, len(a)
    return float(min((a == b).mean(), (a == b)[telling].mean())), len(a)


def _first_values(frame: pd.DataFrame) -> pd.DataFrame:
    """A column for each series, a row for each cell and size: the value of the first launch."""
    return frame.groupby([*SERIES, *CELL])["latency_us"].first().unstack(SERIES)


def _paths(frame: pd.DataFrame, series: tuple) -> set[str]:
    """The files that a series was read from; two studies that read one file are legitimately equal."""
    if "path" not in frame:
        return set()
    wanted = frame
    for name, value in zip(SERIES, series, strict=True):
        wanted = wanted[wanted[name] == value]
    return set(wanted["path"])


def _units(table: pd.DataFrame, machine: Machine) -> Iterator[Finding]:
    """Implausibly small or large times, or times equal to another source's times a power of a thousand."""
    for series in table.columns:
        values = table[series].dropna()
        values = values[values.index.get_level_values("processes") > 1]
        if values.empty:
            continue
        size = values.index.get_level_values("size_bytes")
        fewest = values.index.get_level_values("processes") == values.index.get_level_values("processes").min()
        least = values[fewest & (size == size[fewest].min())]
        evidence = []
        for other in table.columns:
            if other[1:] == series[1:] and other != series:
                both = table[[series, other]].dropna()
                ratio = float((both.iloc[:, 0] / both.iloc[:, 1]).median()) if len(both) >= 5 else np.nan
                for power in (1e3, 1e6, 1e9):
                    if 0.5 < ratio / power < 2 or 0.5 < ratio * power < 2:
                        evidence.append(f"{ratio:.3g} times those of {other[0] or 'another source'}")
        sure = "certain" if evidence else "likely"
        ranks = values.index.get_level_values("processes").min()
        if least.median() < 0.02:
            evidence.append(
                f"{int(ranks)} ranks take {least.median():.3g} us for the smallest message, less than a cache line needs between cores"
            )
        if ranks <= 8 and least.median() > 100 and size[fewest].min() <= 1024:
            evidence.append(f"{int(ranks)} ranks take {least.median():.3g} us for the smallest message")
        large = values[(size >= 65536) & fewest]
        if len(large):
            rate = float((large.index.get_level_values("size_bytes") / large / 1e3).median())
            if rate > 1000 or (rate < 0.01 and ranks <= 8):
                evidence.append(f"the longest messages would move at {rate:.3g} GB/s")
        if evidence:
            yield Finding("unit of the times", _named(series), "; ".join(evidence), sure)


def _sizes(frame: pd.DataFrame) -> Iterator[Finding]:
    """Sizes of a single series only: another unit, elements instead of bytes, or a mistake."""
    for (source, collective), mine in frame[frame["size_bytes"] > 0].groupby(["source", "collective"]):
        of = mine.groupby(["algorithm", "mapping"])["size_bytes"].agg(lambda sizes: frozenset(sizes))
        if len(of) < 3:
            continue
        for key, sizes in of.items():
            part = 0 if of.index.get_level_values(0).nunique() > 1 else 1
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


def _noise(table: pd.DataFrame) -> Iterator[Finding]:
    """Series with many cells far above their neighbours."""
    for series in table.columns:
        grid = table[series].dropna().groupby(["processes", "size_bytes"]).median().unstack()
        above = np.log(grid.to_numpy()) - _neighbours(np.log(grid.to_numpy()))
        above = above[~np.isnan(above)]
        slow = int((above > np.log(NOISE_FACTOR)).sum())
        if slow >= NOISY_CELLS and slow >= NOISY * len(above):
            yield Finding(
                "noise", _named(series),
                f"{slow} of {len(above)} cells take more than {NOISE_FACTOR:g} times as long as their neighbours", "certain",
            )  # fmt: skip


def flag_outliers(frame: pd.DataFrame) -> list[int]:
    """Positions of launches that are OUTLIER times slower than the median of their neighbours in size and in processes."""
    found: list[int] = []
    timed = frame[frame["latency_us"].notna()]
    pairs = timed["collective"] == "pairs"
    if pairs.any():
        middle = timed[pairs].groupby("size_bytes")["latency_us"].transform("median")
        found += list(timed[pairs].index[(timed[pairs]["latency_us"] > OUTLIER * middle)])
    for _, mine in timed[~pairs].groupby([*SERIES, "nodes"] if timed["nodes"].nunique() <= 4 else SERIES):
        grid = mine.groupby(["processes", "size_bytes"])["latency_us"].median().unstack()
        around = _neighbours(np.log(grid.to_numpy()))
        limit = pd.DataFrame(around, grid.index, grid.columns).stack(future_stack=True).rename("limit")
        joined = mine.join(limit, on=["processes", "size_bytes"])
        found += list(joined.index[np.log(joined["latency_us"]) - joined["limit"] > np.log(OUTLIER)])
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


def _outliers(frame: pd.DataFrame, rows: list[dict[str, Any]]) -> Iterator[Finding]:
    flagged = frame.loc[[index for index, row in enumerate(rows) if row.get("flag") == "outlier"]]
    for series, mine in flagged.groupby(SERIES):
        worst = mine.loc[mine["latency_us"].idxmax()]
        size = f", {int(worst['size_bytes'])} bytes" if worst["size_bytes"] else ""
        yield Finding(
            "outlier", _named(series),
            f"{len(mine)} launches are over {OUTLIER:.0f} times slower than their neighbours in size and ranks; the slowest: "
            f"{worst['latency_us']:g} us, {int(worst['processes'])} ranks{size} ({worst.get('file', '')}, line {worst.get('line', 0)})",
            "certain", "kept and flagged; not in means",
        )  # fmt: skip
