"""Consistency checks of imported data. They write `import-checks.csv`, one finding with its evidence per row; data is never changed.

A *series* has the data of one source, algorithm and mapping; its values are medians over launches, by nodes, processes
and size. Thresholds were set on the data of six authors (docs/methodology.md, section 7), for which the checks find the known
errors and report no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.copies import copies, multiples
from collstudy.sources.importing.findings import Finding, common, percent
from collstudy.sources.importing.labels import (
    LARGE,
    SPREAD,
    disagreement,
    files_disagree,
    growth,
    not_forced,
    pairs_on_one_node,
    same_as_another,
    shifted,
    stayed_on_the_node,
)
from collstudy.sources.importing.series import Launches, Series, Table, Values, grid
from collstudy.study.machines import Machine

np = lazy("numpy")

#: A launch is an outlier if it is slower than its neighbours in size and processes by this factor.
OUTLIER = 500.0
#: A series is noisy if at least the fraction NOISY of its cells, and at least NOISY_CELLS, take NOISE_FACTOR times as long as their
#: neighbours (in sound series at most 0.6 %, or none).
NOISY, NOISY_CELLS, NOISE_FACTOR = 0.015, 10, 5.0
#: The slowest messages within a node, and between nodes (us, GB/s, words). Times in ns on the fastest network, read as us, are longer.
SLOWEST = (
    (10.0, 0.5, "within a node, if all were on one, at 10 us and 0.5 GB/s"),
    (300.0, 0.05, "on slow Ethernet at 300 us and 0.05 GB/s"),
)
#: No time grows by more than STEEP both from the smallest size to FEW_BYTES and from there to at least eight times as many bytes
#: (measured: the smaller of the two factors is at most 1.4 in the median over ranks, and at most 3.6 at single rank counts).
STEEP, FEW_BYTES = 3.0, 64
#: The smallest rank count takes at most this many times as long as the next larger one (measured: 0.3 to 2.2 in the median over
#: small and large sizes; 3.1 over small ones alone).
FALLING = 3.0
#: All launches had the same number of ranks if the times at SEVERAL_SIZES or more sizes differ by less than EVEN (median) over rank
#: counts whose largest is at least MORE_RANKS times the smallest (measured: at most 0.01 for such data, at least 0.05 for others).
EVEN, MORE_RANKS, SEVERAL_SIZES = 0.03, 8, 5
#: Where most messages are small for their number of ranks, as in rings, times hardly depend on the size. They are judged for up to
#: FEW_RANKS ranks, and where messages are faster than FASTEST (bytes per us); at one rank count, if they grow by GROWS beside it.
FASTEST, GROWS = 1e5, 4.0
#: The times of a number of ranks, or of a size, are at most this many times those of both neighbours.
APART = 100.0
#: Times of another unit are too long at all rank counts up to this multiple of the smallest; disturbed ones only at some.
FEW_RANKS = 16
#: From this number of launches on, a cell that is slow in most of them is not an outlier.
LAUNCHES = 3
#: Limit for the ratio of times between a series and its closest algorithm (measured: at most 45, median over cells).
FAR_FROM_ALL = 200.0
#: Times in a unit a thousand times smaller are at least this many times those of all other algorithms (1000 / 45).
NEAR = 22.0
#: A message between two cores takes longer than this (us); a cache line does.
CACHE_LINE = 0.02


def check(
    rows: list[dict[str, Any]],
    problems: dict[str, int],
    machine: Machine,
    others: Mapping[str, list[dict[str, Any]] | Values],
) -> list[Finding]:
    """Run all checks and return their findings. *rows* include those that the study leaves out; *others* has the rows, or the
    values to compare, of other imported studies by name.

    Sets `flag` in rows that are outliers.
    """
    everything = Launches(rows)
    for index in flag_outliers(everything):
        rows[index]["flag"] = "outlier"
    found = [*_unused(problems), *_outliers(everything)]
    unflagged = everything.part(np.array([not row.get("flag") for row in rows], dtype=bool))
    timed = unflagged.timed()
    if len(timed):
        table = timed.medians()
        even = list(_even(table))
        found += [
            *same_as_another(table), *not_forced(table), *growth(table, machine), *disagreement(table), *stayed_on_the_node(table, machine),
            *files_disagree(timed), *shifted(table), *_outside(timed), *_flat(table), *even, *multiples(table),
            *_units(table, machine, {series for finding in even for series in finding.about}), *_apart(table),
            *_sizes(timed), *_steep(table), *_falling(table), *_noise(table),
        ]  # fmt: skip
        found += copies(Values.of(timed, timed), others)
    found += pairs_on_one_node(everything.part(everything.pairs), machine)
    return _with_done(list(dict.fromkeys(found)), everything)


def _with_done(findings: list[Finding], everything: Launches) -> list[Finding]:
    """Return the findings; if the study leaves out the whole series, its reason replaces the action."""
    rows = everything.rows
    if not any(row.get("left_out") for row in rows):
        return findings
    reasons: dict[Any, str] = {}
    for series, mine in everything.by_series():
        given = [rows[index].get("left_out") or "" for index in mine.at]
        if all(given):
            reasons[series] = given[0]

    def reason(finding: Finding) -> str | None:
        return next((reasons[series] for series in finding.about if series in reasons), None)

    return [
        replace(finding, action=f"left out by the study: {text}") if (text := reason(finding)) else finding
        for finding in findings
    ]


def _unused(problems: dict[str, int]) -> Iterator[Finding]:
    for text, count in problems.items():
        reason, _, place = text.partition(" (first: ")
        if count == 1:
            reason = re.sub(r"^(row|call|test|raw output)s (with|whose) ", r"\1 \2 ", reason)
        if text.startswith(("rows", "calls")):
            yield Finding("values", place.rstrip(")"), f"{count} {reason}", "certain", "not used")
        elif text.startswith("tests whose allocation"):
            yield Finding("processes", place.rstrip(")"), f"{count} {reason}", "certain", "not used")
        elif "last sizes are missing" in text:
            yield Finding("sizes", place.rstrip(")"), f"{count} {reason}", "likely", "the available sizes are used")


# --- values


def _outside(timed: Launches) -> Iterator[Finding]:
    """Find means outside their minimum and maximum, and means that P values between these cannot have."""
    known = timed.part(~(np.isnan(timed.low) | np.isnan(timed.high)))
    if not len(known):
        return
    low, high, mean, ranks = known.low, known.high, known.us, known.processes
    # All values are printed with two decimals.
    slack = 0.011 + 0.002 * mean
    outside = (mean < low - slack) | (mean > high + slack)
    least, most = (low * (ranks - 1) + high) / ranks, (high * (ranks - 1) + low) / ranks
    named = [known.rows[index].get("statistic") for index in known.at]
    labelled = any(row.get("statistic") for row in known.rows)
    single = np.array([name == "mean_over_ranks" or not labelled for name in named], dtype=bool)
    impossible = ~outside & single & (ranks >= 2) & ((mean < least - slack) | (mean > most + slack))
    for wrong, what in (
        (outside, "are outside their minimum and maximum"),
        (impossible, "cannot be means over ranks: no per-rank times with this minimum and maximum have this mean"),
    ):
        for series, mine in known.part(wrong).by_series():
            total = int((known.series == mine.series[0]).sum())
            first = known.rows[mine.at[0]]
            yield Finding(
                "mean, minimum and maximum", (series,),
                f"{len(mine):,} of {total:,} means {what}; the first: {first['latency_us']:g} us with "
                f"{int(first['processes']):,} ranks, bounds [{first['min_latency_us']:g}, {first['max_latency_us']:g}] us "
                f"({first['file']}, line {int(first['line'])})",
                "certain" if len(mine) > 2 else "likely",
            )  # fmt: skip


def _flat(table: Table) -> Iterator[Finding]:
    """Find times that do not depend on the message size: at most rank counts, or at one while they do at the next smaller and larger."""
    for series, values in table.columns():
        flat: list[bool] = []
        judged: list[bool] = []
        alone: list[tuple[int, float]] = []
        growths: list[tuple[int, float]] = []
        for ranks, sizes, times in _by_ranks(table, np.where(table.sizes > 0, values, np.nan)):
            # Require sizes from small to large, or only large ones, whose times are proportional to the size.
            if len(sizes) < 3 or sizes[-1] < 65536 or sizes[-1] < (8 if sizes[0] >= 32768 else 256) * sizes[0]:
                continue
            third = max(1, len(sizes) // 3)
            growths.append((ranks, float(np.median(times[-third:]) / np.median(times[:third]))))
            # Times with a very wide range are noise.
            flat.append(bool(np.quantile(times, 0.9) < 3 * np.quantile(times, 0.1)) and growths[-1][1] < 1.5)
            judged.append(ranks <= FEW_RANKS or sizes[-1] / times[-1] > FASTEST)
        for at in range(1, len(growths) - 1):
            beside = min(growths[at - 1][1], growths[at + 1][1])
            alone += [(growths[at][0], beside)] if flat[at] and beside > GROWS else []
        total = sum(judged)
        count = sum(a and b for a, b in zip(flat, judged, strict=True))
        if count > total / 2:
            text = f"at {count} of {total} numbers of ranks the largest sizes take less than 1.5 times as long as the smallest"
        elif alone:
            text = (
                f"at {alone[0][0]:,} ranks the largest sizes take less than 1.5 times as long as the smallest, with the next smaller and "
                f"larger numbers of ranks at least {alone[0][1]:.2g} times as long"
                + f" ({len(alone) - 1} more)"
                * (len(alone) > 1)
            )
        else:
            continue
        yield Finding("times do not depend on size", (series,), text, "certain")


def _by_ranks(table: Table, values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield rank count, sizes and times of each number of nodes and ranks of a series; without single ranks and unknown values."""
    used = np.flatnonzero((table.processes > 1) & ~np.isnan(values))
    # Rows are sorted by nodes, processes and size; split them where nodes or processes change.
    ends = np.flatnonzero((np.diff(table.cells[used, :2], axis=0) != 0).any(axis=1)) + 1
    for rows in np.split(used, ends) if len(used) else []:
        yield int(table.processes[rows[0]]), table.sizes[rows], values[rows]


def _even(table: Table) -> Iterator[Finding]:
    """Find times that do not depend on the number of ranks: all launches had the same number. If this is so for a series of a source,
    fewer numbers of ranks are enough for its others.
    """
    found: list[tuple[Series, int, int, int, float]] = []
    for series, values in table.columns():
        ranks, _, times = table.grid(np.where(table.processes > 1, values, np.nan))
        if len(ranks) > 1 and (~np.isnan(times[0] + times[-1])).sum() >= SEVERAL_SIZES:
            apart = float(np.nanmedian(np.abs(times / nan_medians(times, 0) - 1)))
            found += [(series, len(ranks), int(ranks[0]), int(ranks[-1]), apart)] if apart < EVEN else []
    certain = {
        series for series, count, first, last, _ in found if count > 2 and last >= MORE_RANKS * first
    }  # fmt: skip
    sources = {series[0] for series in certain}
    for series, count, first, last, apart in found:
        if series[0] in sources:
            yield Finding(
                "times do not depend on ranks", (series,),
                f"at {count} numbers of ranks from {first:,} to {last:,} the times differ by {percent(apart)} from the median of their "
                "size: all launches had the same number of ranks" + ", as those of other series" * (series not in certain),
                "certain" if series in certain else "likely",
            )  # fmt: skip


def _units(table: Table, machine: Machine, even: set[Series | str]) -> Iterator[Finding]:
    """Find times that are too short or too long for their message, or differ from others by a power of a thousand. For the series
    in *even*, times are not compared with the number of ranks.
    """
    several = table.processes > 1
    for series, times in table.columns():
        used = several & ~np.isnan(times)
        if not used.any():
            continue
        values, size, counts = times[used], table.sizes[used], table.processes[used]
        ranks = counts.min()
        fewest = counts == ranks
        evidence = [*_beside_sources(series, table)]
        sure = "certain" if evidence else "likely"
        evidence += [*_beside_algorithms(series, table)]
        least = float(np.median(values[fewest & (size == size[fewest].min())]))
        if least < CACHE_LINE:
            evidence.append(
                f"{int(ranks)} ranks take {least:.3g} us for the smallest message, less than a cache line takes between cores"
            )
        within = series[4] == "core" and ranks <= machine.cores_per_node
        latency, rate, words = SLOWEST[0 if within else 1]
        slow = (counts - 1) * (latency + size / (1e3 * rate))
        few = np.unique(counts[counts <= min(FEW_RANKS * ranks, machine.cores_per_node)]) if within else [ranks]
        longer = all(np.median((values / slow)[counts == count]) > 1 for count in few)
        if longer and series not in even and not _near_a_known_unit(series, table):
            slow = slow[fewest]
            worst = np.argmax(values[fewest] / slow)
            evidence.append(
                f"{int(ranks)} ranks take {values[fewest][worst]:.3g} us for {int(size[fewest][worst])} bytes, longer than "
                f"{int(ranks - 1)} successive messages {words} ({slow[worst]:.3g} us)"
            )
        large = (size >= 65536) & fewest
        if large.any() and (moved := float(np.median(size[large] / values[large] / 1e3))) > 1000:
            evidence.append(f"the longest messages imply {moved:.3g} GB/s")
        if evidence:
            yield Finding("unit of the times", (series,), "; ".join(evidence), sure)


def _apart(table: Table) -> Iterator[Finding]:
    """Find numbers of ranks, and sizes, whose times differ from those of both neighbours by a large factor: in another unit."""
    for series, values in table.columns():
        ranks, sizes, times = table.grid(np.where(table.processes > 1, values, np.nan))
        for what, names, of in (("ranks", ranks, times), ("bytes", sizes, times.T)):
            for at in range(len(names) if len(names) > 2 else 0):
                one, two = (at - 1, at + 1) if 0 < at < len(names) - 1 else (1, 2) if at == 0 else (at - 1, at - 2)
                # At the ends both neighbours are on the same side, where times may grow.
                if abs(one - two) == 1 and not 1 / 4 <= names[two] / max(1, names[at]) <= 4:
                    continue
                known = ~np.isnan(of[at] + of[one] + of[two])
                if known.sum() < 3:
                    continue
                ratios = [float(np.median(of[at][known] / of[other][known])) for other in (one, two)]
                if min(ratios) > APART or max(ratios) < 1 / APART:
                    yield Finding(
                        "unit of the times", (series,),
                        f"at {int(names[at]):,} {what} the times are {ratios[0]:.3g} and {ratios[1]:.3g} times those at "
                        f"{int(names[one]):,} and {int(names[two]):,} (median of {known.sum()} cells)", "likely",
                    )  # fmt: skip


def _beside_sources(series: Series, table: Table) -> Iterator[str]:
    """Yield evidence that a series differs from that of another source by a power of a thousand."""
    for other in table.series:
        if other[1:] == series[1:] and other != series:
            a, b = common(table[series], table[other])
            ratio = float(np.median(a / b)) if len(a) >= 5 else np.nan
            if any(0.5 < ratio / power < 2 or 0.5 < ratio * power < 2 for power in (1e3, 1e6, 1e9)):
                yield f"the times are {ratio:.3g} times those of {other[0] or 'another source'}"


def _rivals(series: Series, table: Table) -> list[Series]:
    """Return the series of other algorithms of the same source, collective and mapping."""
    return [
        other for other in table.series if other[:2] == series[:2] and other[4] == series[4] and other[2] != series[2]
    ]


def _near_a_known_unit(series: Series, table: Table) -> bool:
    """Return whether the times of another algorithm, which cannot have a smaller unit (some message would take less than a cache
    line), are near those of a series.
    """
    for other in _rivals(series, table):
        a, b = common(table[series], table[other])
        several = table[other][table.processes > 1]
        if len(a) and np.nanmin(several) < 1000 * CACHE_LINE and 1 / NEAR < np.median(a / b) < NEAR:
            return True
    return False


def _beside_algorithms(series: Series, table: Table) -> Iterator[str]:
    """Yield evidence that a series is far from all other algorithms of its source and mapping."""
    rivals = _rivals(series, table)
    ratios = [float(np.median(a / b)) for a, b in (common(table[series], table[other]) for other in rivals) if len(a)]
    if len(ratios) < 2:
        return
    nearest = min(ratios, key=lambda ratio: abs(np.log(ratio)))
    if not 1 / FAR_FROM_ALL < nearest < FAR_FROM_ALL:
        yield f"the times are {nearest:.3g} times those of the closest of {len(ratios)} other algorithms"


def _sizes(timed: Launches) -> Iterator[Finding]:
    """Find sizes that only one series has: another unit, elements instead of bytes, or an error."""
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
            others = [other for name, other in of.items() if name[part] != key[part]]
            rest = frozenset().union(*others)
            factors = [f for f in (1024, 8, 4, 1 / 4, 1 / 8, 1 / 1024) if sizes and {s * f for s in sizes} <= rest]
            odd = sizes - rest
            doubling = all(size == int(size) and int(size) & (int(size) - 1) == 0 for size in odd)
            # A size is odd only if the other series agree on their sizes.
            agreed = len(others) > 1 and all(2 * len(other & others[0]) > len(other) for other in others)
            slip = agreed and len(odd) > len(sizes) / 2 and not doubling
            # Multiplied by a factor, all sizes match those of the others.
            moved = len(sizes) >= 5 and bool(odd) and any({s * f for s in sizes} == rest for f in factors)
            if slip or moved or (len(odd) > 3 and factors):
                shown = ", ".join(str(int(s)) for s in sorted(odd)[:4])
                unit = f"; multiplied by {factors[0]:g} they are the sizes of the others" if factors else ""
                yield Finding(
                    "sizes", ((source, collective, key[0], "", key[1]),),
                    f"{len(odd)} of its {len(sizes)} sizes occur in no other series ({shown}, ...){unit}",
                    "likely" if slip or len(odd) > 3 else "possible",
                )  # fmt: skip


def _steep(table: Table) -> Iterator[Finding]:
    """Find times of a few bytes that grow as if the sizes were kilobytes, and keep growing: the sizes have another unit."""
    for series, values in table.columns():
        growths = []
        for _, sizes, times in _by_ranks(table, np.where(table.sizes > 0, values, np.nan)):
            few = (sizes >= 8 * sizes[0]) & (sizes <= FEW_BYTES)
            more = (sizes >= 8 * FEW_BYTES) & (sizes <= 64 * FEW_BYTES)
            if few.any() and more.any():
                middle = np.median(times[few])
                growths.append(min(middle / times[0], np.median(times[more]) / middle))
        if len(growths) > 1 and np.median(growths) > STEEP:
            yield Finding(
                "sizes", (series,),
                f"messages of up to {FEW_BYTES} bytes take more than {np.median(growths):.2g} times as long as the smallest, and those "
                f"from {8 * FEW_BYTES} bytes on that many times as long again (median over {len(growths)} numbers of ranks): the sizes "
                "are not in bytes",
                "likely",
            )  # fmt: skip


def _falling(table: Table) -> Iterator[Finding]:
    """Find series whose smallest rank count takes longer than the next larger one: rank counts that belong to other rows."""
    for series, values in table.columns():
        ranks, sizes, times = table.grid(np.where(table.processes > 1, values, np.nan))
        if len(ranks) < 5:
            continue
        known = ~np.isnan(times[0] / times[1])
        ratios, sizes = (times[0] / times[1])[known], sizes[known]
        wide = len(sizes) >= 5 and sizes.max() >= LARGE and sizes.max() >= SPREAD * sizes.min()
        if wide and np.median(ratios) > FALLING:
            yield Finding(
                "processes", (series,),
                f"{int(ranks[0]):,} ranks take {np.median(ratios):.2g} times as long as {int(ranks[1]):,} (median of {len(ratios)} sizes)",
                "likely",
            )  # fmt: skip


# --- outliers and noise


def _noise(table: Table) -> Iterator[Finding]:
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


def _outliers(launches: Launches) -> Iterator[Finding]:
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
