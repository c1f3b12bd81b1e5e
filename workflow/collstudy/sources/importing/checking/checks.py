"""Consistency checks of imported data. They write `import-checks.csv`, one finding with its evidence per row; data is never changed.

A *series* has the data of one source, algorithm and mapping; its values are medians over launches, by nodes, processes
and size. Thresholds were set on the data of six authors (docs/methodology.md, section 7), for which the checks find the known
errors and report no others.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.decisions import run_by_default
from collstudy.sources.importing.checking.agreement import (
    disagreement,
    files_disagree,
    launches_disagree,
    other_studies,
)
from collstudy.sources.importing.checking.copies import copies, multiples, repeated, resolution_of
from collstudy.sources.importing.checking.displaced import at_two_ranks, displaced, exchanged, out_of_order, steps
from collstudy.sources.importing.checking.findings import Finding, difference_between, percent
from collstudy.sources.importing.checking.labels import LARGE, SPREAD, growth, same_as_another, slow_trees
from collstudy.sources.importing.checking.mappings import SMALL, no_effect, pairs_on_one_node, stayed_on_the_node
from collstudy.sources.importing.checking.of_default import exchanged_labels, not_forced, other_units
from collstudy.sources.importing.checking.outliers import flag_outliers, nan_medians, noise, outliers, slow_jobs
from collstudy.sources.importing.checking.printed import limits, resolution
from collstudy.sources.importing.checking.units import FEW_RANKS, far_from_neighbours, units
from collstudy.sources.importing.series import Launches, Series, Table, Values, series_of
from collstudy.study.machines import Machine

np = lazy("numpy")

#: No time grows by more than STEEP both from the smallest size to FEW_BYTES and from there to at least eight times as many bytes
#: (measured: the smaller of the two factors is at most 1.4 in the median over ranks, and at most 3.6 at single rank counts).
STEEP, FEW_BYTES = 3.0, 64
#: Collectives in which a rank sends or receives a message of this size for each other rank: with more ranks than MANY_RANKS, all
#: messages together are large.
OF_EACH_RANK, MANY_RANKS = (
    ("allgather", "allgatherv", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv"),
    64,
)
#: The smallest rank count takes at most this many times as long as the next larger one (measured: 0.3 to 2.2 in the median over
#: small and large sizes; 3.1 over small ones alone).
FALLING = 3.0
#: Times of the smallest size are at most FIRST times those of the next two (measured: 1.2 in the median over ranks; 1.7 to 26 in two
#: authors' data whose first call was disturbed).
FIRST = 1.5
#: All launches had the same number of ranks if the times at SEVERAL_SIZES or more sizes differ by less than EVEN (median) over rank
#: counts whose largest is at least MORE_RANKS times the smallest (measured: at most 0.01 for such data, at least 0.05 for others).
EVEN, MORE_RANKS, SEVERAL_SIZES = 0.03, 8, 5
#: A message between nodes of a slow network takes longer than this (us), and may take longer than all messages within the nodes.
SLOW_NETWORK = 20.0
#: Eight times as large messages of at least this size (bytes) take over twice as long in all authors' data.
LARGEST = 2**19
#: Where most messages are small for their number of ranks, as in rings and pipelines, times hardly depend on the size. They are judged
#: for up to FEW_RANKS ranks, and where messages are faster than FASTEST (bytes per us); at one rank count, if they grow by GROWS beside
#: it.
FASTEST, GROWS = 1e5, 4.0


def check(
    rows: list[dict[str, Any]],
    problems: dict[str, int],
    machine: Machine,
    others: Mapping[str, Values],
    same_machine: Container[str] = (),
    mpi: str = "unknown",
    versions: Iterable[str] = ("unknown",),
) -> list[Finding]:
    """Run all checks and return their findings. *rows* include those that the study leaves out; *others* has the values to compare of
    other imported studies by name; those in *same_machine* are of the study's machine. *mpi* is the library; *versions* are those of
    the files.

    Sets `flag` in rows that are outliers.
    """
    everything = Launches(rows)
    for index in flag_outliers(everything):
        rows[index]["flag"] = "outlier"
    found = [*_unused(problems), *outliers(everything)]
    unflagged = everything.part(np.array([not row.get("flag") for row in rows], dtype=bool))
    timed = unflagged.timed()
    if len(timed):
        table = timed.medians()
        flat = list(_flat(table))
        # If sizes were not sent, their times say nothing of labels, units and limits.
        sent = _sent(timed, {series for finding, most in flat if most for series in finding.about})
        judged = sent.medians()
        even = list(_even(table, machine))
        mine = Values.of(timed)
        studies = {name: values.reference_for(mine) for name, values in others.items() if name in same_machine}
        # The decision tables are those of Open MPI 4.1.
        known = "".join(mpi.lower().split()) in ("openmpi", "unknown") and all(
            version.startswith("4.1") or version == "unknown" for version in versions
        )
        of_open_mpi = [*exchanged_labels(judged), *other_units(judged)] if known else []
        found += [
            *same_as_another(judged), *slow_trees(judged), *not_forced(judged), *of_open_mpi, *growth(judged, machine),
            *disagreement(table), *stayed_on_the_node(judged, machine), *no_effect(judged, machine), *displaced(judged, studies),
            *other_studies(judged, studies, machine), *at_two_ranks(judged), *steps(judged), *exchanged(judged),
            *out_of_order(judged), *slow_jobs(judged), *files_disagree(timed),
            *launches_disagree(timed), *limits(sent), *resolution(timed), *_outside(timed), *(finding for finding, _ in flat),
            *_capped(judged), *even, *multiples(table, mine.quiet), *repeated(table),
            *units(judged, machine, {series for finding in even for series in finding.about}), *far_from_neighbours(judged, machine),
            *_sizes(timed), *_ends_early(timed), *_steep(judged), *_falling(judged), *_first(sent), *noise(judged),
        ]  # fmt: skip
        found += copies(mine, others)
    found += pairs_on_one_node(everything.part(everything.pairs), machine)
    return _with_done(list(dict.fromkeys(found)), everything)


def _with_done(findings: list[Finding], everything: Launches) -> list[Finding]:
    """Return the findings; if the study leaves out the whole series, its reason replaces the action."""
    rows = everything.rows
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
        elif text.startswith("parameters"):
            yield Finding("values", place.rstrip(")"), f"{count} {reason}", "certain", "the rows are used without them")
        elif text.startswith("tests whose allocation"):
            yield Finding("processes", place.rstrip(")"), f"{count} {reason}", "certain", "not used")
        elif text.startswith("raw outputs with buffers in GPU memory"):
            yield Finding("values", place.rstrip(")"), f"{count} {reason}", "certain")
        elif text.startswith("raw outputs whose command"):
            yield Finding(
                "wrong algorithm" if "algorithm" in reason else "processes",
                place.rstrip(")"),
                f"{count} {reason}",
                "certain",
            )
        elif "last sizes are missing" in text:
            yield Finding("sizes", place.rstrip(")"), f"{count} {reason}", "likely", "the available sizes are used")


# --- values


def _outside(timed: Launches) -> Iterator[Finding]:
    """Find means outside their minimum and maximum, and means that P values between these cannot have."""
    known = timed.part(~(np.isnan(timed.low) | np.isnan(timed.high)))
    if not len(known):
        return
    low, high, mean, ranks = known.low, known.high, known.us, known.processes
    slack = 0.011 + 0.002 * mean
    for series in np.unique(known.series):
        mine = known.series == series
        digit = resolution_of(mean[None, mine]) + resolution_of(high[None, mine])
        slack[mine] += np.maximum(0, 0.55 * digit - 0.011)
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


def _flat(table: Table) -> Iterator[tuple[Finding, bool]]:
    """Find times that do not depend on the message size: at most rank counts, or at one while they do at the next smaller and larger.
    Yields whether it is so at most rank counts, too.
    """
    for series, values in table.columns():
        # Number of ranks, how many times as long the largest sizes take as the smallest, whether flat, judged, and of several sizes.
        rows: list[tuple[int, float, bool, bool, bool]] = []
        for ranks, sizes, times in _by_ranks(table, values):
            # Require sizes from small to large, or only large ones, whose times are proportional to the size.
            if len(sizes) < 3 or sizes[-1] < 65536 or sizes[-1] < (8 if sizes[0] >= 32768 else 256) * sizes[0]:
                continue
            third = max(1, len(sizes) // 3)
            growth = float(np.median(times[-third:]) / np.median(times[:third]))
            # Times with a very wide range are noise.
            flat = bool(np.quantile(times, 0.9) < 3 * np.quantile(times, 0.1)) and growth < 1.5
            rows.append((ranks, growth, flat, _judged(ranks, sizes[-1], times[-1]), third > 1))
        # One disturbed cell is no evidence.
        alone = [
            (ranks, min(before, after))
            for (_, before, *_), (ranks, _, flat, _, several), (_, after, *_) in zip(rows, rows[1:], rows[2:], strict=False)
            if flat and several and min(before, after) > GROWS
        ]  # fmt: skip
        total = sum(judged for _, _, _, judged, _ in rows)
        count = sum(flat and judged for _, _, flat, judged, _ in rows)
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
        yield Finding("times do not depend on size", (series,), text, "certain"), count > total / 2


def _capped(table: Table) -> Iterator[Finding]:
    """Find series whose times stop growing at the largest sizes, as if messages had been limited to a smaller one."""
    for series, values in table.columns():
        capped = judged = 0
        for ranks, sizes, times in _by_ranks(table, values):
            of = dict(zip(sizes.tolist(), times.tolist(), strict=True))
            top = sizes[-1]
            if top < LARGEST or not {top / 8, top / 64} <= of.keys() or not _judged(ranks, top, of[top]):
                continue
            judged += 1
            capped += of[top] < 1.3 * of[top / 8] and of[top / 8] > 2 * of[top / 64]
        if capped > judged / 2:
            yield Finding(
                "times do not depend on size", (series,),
                f"at {capped} of {judged} numbers of ranks the largest messages take less than 1.3 times as long as those of an eighth of "
                "their size, which take over twice as long as those of a 64th: the largest sizes were not sent", "likely",
            )  # fmt: skip


def _sent(timed: Launches, unsent: Container[Series]) -> Launches:
    """Return the launches without the larger sizes of the series in *unsent*."""
    kept = np.ones(len(timed), dtype=bool)
    for index in np.unique(timed.series):
        if timed.names[index] in unsent:
            mine = timed.series == index
            kept[mine] = timed.sizes[mine] == timed.sizes[mine].min()
    return timed.part(kept)


def _judged(ranks: int, largest: float, us: float) -> bool:
    """Return whether the time of the largest message has to depend on its size."""
    return ranks <= FEW_RANKS or largest / us > FASTEST


def _by_ranks(table: Table, values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield rank count, sizes and times of each number of nodes and ranks of a series; without single ranks, calls without a size and
    unknown values.
    """
    used = np.flatnonzero((table.processes > 1) & (table.sizes > 0) & ~np.isnan(values))
    # Rows are sorted by nodes, processes and size; split them where nodes or processes change.
    ends = np.flatnonzero((np.diff(table.cells[used, :2], axis=0) != 0).any(axis=1)) + 1
    for rows in np.split(used, ends) if len(used) else []:
        yield int(table.processes[rows[0]]), table.sizes[rows], values[rows]


def _even(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find times that do not depend on the number of ranks: all launches had the same number. If this is so for a series of a source,
    fewer numbers of ranks are enough for its others.
    """
    found: list[tuple[Series, int, int, int, float]] = []
    for series, values in table.columns():
        ranks, sizes, times = table.grid(np.where(table.processes > 1, values, np.nan))
        if len(ranks) > 1 and (~np.isnan(times[0] + times[-1])).sum() >= SEVERAL_SIZES:
            apart = np.abs(times / nan_medians(times, 0) - 1)
            # With large messages rings take as long for any number of ranks; on a slow network, trees do with small ones as well.
            within = series[4] == "core" and ranks[0] <= machine.cores_per_node
            small = apart[:, (sizes <= SMALL) & (within | (np.nanmin(times, axis=0) < SLOW_NETWORK))]
            middle = max(np.nanmedian(of) if (~np.isnan(of)).any() else np.inf for of in (apart, small))
            # Two of three numbers may be near each other.
            middle = middle if difference_between(times[0], times[-1])[1] < 2 * EVEN else np.inf
            found += [(series, len(ranks), int(ranks[0]), int(ranks[-1]), float(middle))] if middle < EVEN else []
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


def _ends_early(timed: Launches) -> Iterator[Finding]:
    """Find files whose times end within the sizes of a number of ranks: of a job that ended early, cut, or limited by memory."""
    last: dict[str, dict[str, Any]] = {}
    rows = [timed.rows[index] for index in timed.at]
    for row in rows:
        path = row.get("path", "")
        if "line" in row and row["line"] > last.get(path, {"line": 0})["line"]:
            last[path] = row
    sizes: dict[tuple, dict[int, set[int]]] = {}
    for row in rows:
        sizes.setdefault((row.get("path", ""), *series_of(row)), {}).setdefault(row["processes"], set()).add(
            row.get("size_bytes") or 0
        )
    for path, row in last.items():
        of = sizes[(path, *series_of(row))]
        mine, rest = of[row["processes"]], [these for ranks, these in of.items() if ranks != row["processes"]]
        whole = set().union(*rest)
        if len(rest) >= 2 and all(these == whole for these in rest) and mine < whole and max(mine) < max(whole):
            yield Finding(
                "sizes", row.get("file", ""),
                f"the times end at {row['processes']:,} ranks and {max(mine)} bytes (line {row['line']}); all {len(rest)} other numbers of "
                f"ranks go to {max(whole)} bytes: the job ended early, the file was cut, or the benchmark's memory limit was reached",
                "likely", "the available sizes are used",
            )  # fmt: skip


def _steep(table: Table) -> Iterator[Finding]:
    """Find times of a few bytes that grow as if the sizes were kilobytes, and keep growing: the sizes have another unit."""
    for series, values in table.columns():
        growths = []
        for ranks, sizes, times in _by_ranks(table, values):
            if series[1] in OF_EACH_RANK and ranks > MANY_RANKS:
                continue
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


def _first(timed: Launches) -> Iterator[Finding]:
    """Find series whose smallest size takes longer than the next ones: it contains the start of the job, or had no warm-up calls, unless
    it is in other files.
    """
    table = timed.medians()
    files = {series: _first_files(mine) for series, mine in timed.by_series()}
    for series, values in table.columns():
        found = []
        for ranks, sizes, times in _by_ranks(table, values):
            # The default may run another algorithm for the smallest size.
            ran = {run_by_default(series[1], ranks, int(size)) for size in sizes[:3] if series[2] == "default"}
            if len(sizes) >= 3 and len(ran) < 2:
                found.append(times[0] / np.median(times[1:3]))
        if len(found) >= 3 and np.median(found) > FIRST:
            cause = (
                f"it is in other files ({', '.join(files[series])}), perhaps of other nodes or settings" if files[series]
                else "the first calls were measured with it (connections, no warm-up)"
            )  # fmt: skip
            yield Finding(
                "noise", (series,),
                f"the smallest size takes {np.median(found):.3g} times as long as the next two (median over {len(found)} numbers of "
                f"ranks): {cause}", "likely",
            )  # fmt: skip


def _first_files(mine: Launches) -> list[str]:
    """Return the files of the smallest size of a series if no file has another size, too; otherwise []."""
    smallest = mine.sizes == mine.sizes.min()
    first, others = (
        {(row.get("path", ""), row["file"]) for row in (mine.rows[index] for index in mine.at[of])}
        for of in (smallest, ~smallest)
    )
    return [] if first & others else sorted({name for _, name in first})
