"""Compare the algorithms of imported data with the library's default, which runs those of Open MPI's decision tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.decisions import run_by_default
from collstudy.sources.importing.checking.findings import Finding, difference_between, percent, whole_series
from collstudy.sources.importing.checking.labels import FROM_RANKS, LARGE, SAME_MEDIAN, SAME_P90, SPREAD
from collstudy.sources.importing.series import Launches, Series, Table

np = lazy("numpy")

#: From this size (bytes) on, the default of all authors' broadcasts differs from each algorithm somewhere.
CHANGES_FROM = 1024
#: Where the default runs an algorithm, their times differ by less than LIKE (median over at least LEAST_CELLS cells of a mapping;
#: measured: 0.8 to 4.7 %, or, on noisy nodes, 8 to 30 %), those of others by at least CLEARLY times as much (measured: 3.1).
LIKE, CLEARLY, LEAST_CELLS = 0.06, 3.0, 15
#: Factors by which sizes and ranks may be wrong (elements, threads).
SIZE_FACTORS, RANK_FACTORS = (1 / 8, 1 / 4, 1 / 2, 2, 4, 8), (1 / 2, 2)
#: Minimum number of cells that contradict the sizes or ranks of a study, and how many times as many they are as the others (measured:
#: never more than the others in sound data).
CONTRADICTED, TIMES_AS_MANY = 10, 3


def not_forced(table: Table) -> Iterator[Finding]:
    """Find algorithms with the times of the library's default at all sizes, as if they had not been forced."""
    many = (table.processes >= FROM_RANKS) & (table.sizes >= CHANGES_FROM)
    for series, times in table.columns():
        source, collective, algorithm, _, mapping = series
        default = (source, collective, "default", "", mapping)
        if algorithm == "default" or default not in table.number:
            continue
        # Where the default runs the algorithm, their times are equal.
        used = many & (np.array(_chosen(collective, table.processes, table.sizes)) != algorithm)
        a, b = times[used], table[default][used]
        sizes = table.sizes[used][~(np.isnan(a) | np.isnan(b))]
        cells, middle, high = difference_between(a, b)
        wide = cells >= 20 and sizes.max() >= LARGE and sizes.max() >= SPREAD * sizes.min()
        if wide and middle < SAME_MEDIAN and high < SAME_P90:
            yield Finding(
                "wrong algorithm", (series,),
                f"from {CHANGES_FROM} bytes on the times differ from those of the default by {percent(middle)} (median; 90th percentile "
                f"{percent(high)}; {cells:,} cells): it was not forced, or the default always chooses it",
                "possible",
            )  # fmt: skip


def exchanged_labels(table: Table) -> Iterator[Finding]:
    """Find exchanged labels: where the default of Open MPI 4.1 runs one algorithm, its times are those of another one, which they are
    not where the default runs that one.
    """
    found = _ran_another(table)
    for (source, collective, said, ran), mappings in found.items():
        sure = (source, collective, ran, said) in found or any(like for _, like in mappings)
        yield Finding(
            "wrong algorithm", f"{whole_series(source, collective, said)} and {ran}",
            f"where the default of Open MPI 4.1 runs {said}, its times differ from those labelled {said} and {ran} by "
            f"{', '.join(words for words, _ in mappings)}: the two labels are exchanged, or this is the default of another library",
            "likely" if sure else "possible",
        )  # fmt: skip


def other_defaults(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the sources and collectives in which `exchanged_labels` finds something, so that the decision tables of Open MPI 4.1 do
    not tell which of the named algorithms its default ran.
    """
    timed = Launches([row for row in rows if not row.get("flag")]).timed()
    return {(source, collective) for source, collective, *_ in _ran_another(timed.medians())}


def _ran_another(table: Table) -> dict[tuple[str, str, str, str], list[tuple[str, bool]]]:
    """Return, by source, collective, the algorithm that the tables name and the one whose times the default has there: for each
    mapping, the differences in words, and whether the default has the times of a named algorithm elsewhere.
    """
    found: dict[tuple[str, str, str, str], list[tuple[str, bool]]] = {}
    for default in table.series:
        source, collective, algorithm, parameters, mapping = default
        if algorithm != "default" or parameters:
            continue
        parts = dict(_where_the_default_runs(table, default))
        like = {said for said, differs in parts.items() if differs[said][1] < LIKE}
        for said, differs in parts.items():
            (cells, off, _), (middle, ran) = differs[said], min((found[1], name) for name, found in differs.items())
            if middle < LIKE < off and off > CLEARLY * middle and ran not in like:
                words = f"{percent(off)} and {percent(middle)} (by {mapping}, {cells:,} cells)"
                found.setdefault((source, collective, said, ran), []).append((words, bool(like)))
    return found


def _where_the_default_runs(table: Table, default: Series) -> Iterator[tuple[str, dict[str, tuple[int, float, float]]]]:
    """Yield the algorithms of a mapping, without parameters, that the default of Open MPI 4.1 runs somewhere, each with the differences
    of its times there from those of all algorithms of the mapping.
    """
    chosen = np.array(_chosen(default[1], table.processes, table.sizes))
    own = _beside(table, default)
    for said in sorted(own.keys() & set(chosen)):
        part = (table.processes >= FROM_RANKS) & (chosen == said)
        differs = {name: difference_between(table[default][part], times[part]) for name, times in own.items()}
        differs = {name: found for name, found in differs.items() if found[0] >= LEAST_CELLS}
        if said in differs:
            yield said, differs


def _beside(table: Table, default: Series) -> dict[str, np.ndarray]:
    """Return the times of the algorithms, without parameters, of the source, collective and mapping of a default."""
    return {
        name[2]: table[name]
        for name in table.series
        if name != default and (*name[:2], *name[3:]) == (*default[:2], *default[3:])
    }


def _chosen(collective: str, processes: Any, sizes: Any) -> list[str]:
    """Return the algorithm, without parameters, that the default of Open MPI 4.1 runs in each cell; "" if it has parameters."""
    return [run_by_default(collective, ranks, size) for ranks, size in zip(processes, sizes, strict=True)]


def other_units(table: Table) -> Iterator[Finding]:
    """Find sizes and ranks of another unit: with some factor, the default runs the algorithms that Open MPI 4.1's tables name.

    A cell tells if the tables name one algorithm for the given numbers and another one with the factor, and the default's time is
    clearly that of one of them.
    """
    sources: dict[tuple[str, str], list[tuple[np.ndarray, dict[str, np.ndarray]]]] = {}
    for default in table.series:
        source, collective, algorithm, parameters, _ = default
        if algorithm == "default" and not parameters:
            sources.setdefault((source, collective), []).append((table[default], _beside(table, default)))
    many = table.processes >= FROM_RANKS
    for (source, collective), mappings in sources.items():
        given = np.array(_chosen(collective, table.processes, table.sizes))
        sized = any((~np.isnan(times) & (table.sizes > 0)).any() for times, _ in mappings)
        factors = [("processes", factor) for factor in RANK_FACTORS] + [("sizes", f) for f in SIZE_FACTORS if sized]
        found = []
        for what, factor in factors:
            ranks, sizes = (factor, 1) if what == "processes" else (1, factor)
            moved = np.array(_chosen(collective, table.processes * ranks, table.sizes * sizes))
            against, cells = (
                sum(votes) for votes in zip(*(_votes(*one, given, moved, many) for one in mappings), strict=True)
            )
            if cells >= max(CONTRADICTED, TIMES_AS_MANY * against):
                found.append((cells - against, what, factor, cells, against))
        if found:
            _, what, factor, cells, against = max(found)
            yield Finding(
                what, whole_series(source, collective, "default"),
                f"in {cells:,} cells the default's time is that of the algorithm that Open MPI 4.1's decision tables name for {factor:g} "
                f"times the {'ranks' if what == 'processes' else 'bytes'}, in {against:,} cells that for the given ones (where these are "
                f"two algorithms with different times): these have another unit, or this is the default of another library",
                "possible",
            )  # fmt: skip


def _votes(default: Any, own: dict[str, Any], given: Any, moved: Any, many: Any) -> tuple[int, int]:
    """Return the number of cells in which the default's time is that of the *given* algorithm, and of the *moved* one, not of both."""
    count = [0, 0]
    for one, two in itertools.permutations(own, 2):
        part = many & (given == one) & (moved == two)
        off = [np.abs(default[part] / own[name][part] - 1) for name in (one, two)]
        for index, (mine, other) in enumerate((off, off[::-1])):
            count[index] += int(((mine < LIKE) & (other > CLEARLY * mine)).sum())
    return count[0], count[1]
