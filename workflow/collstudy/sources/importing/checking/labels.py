"""Check the labels of imported data: algorithms whose times are those of another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, difference_between, percent, whole_series
from collstudy.sources.importing.series import Table
from collstudy.study.machines import Machine

np = lazy("numpy")

#: Two algorithms of one source are the same if their times differ by less than this (median, 90th percentile). Algorithms with
#: different trees differ by at least 5 % (median); one algorithm measured twice differs by 1.4 to 3 % and 5 to 11 %.
SAME_MEDIAN, SAME_P90 = 0.035, 0.13
#: With fewer ranks, different trees send the same messages. Up to AS_DEEP they may be as deep as each other.
FROM_RANKS, AS_DEEP = 8, 16
#: Minimum length of a run of successive rank counts with equal times, and its minimum fraction of all common ones. Measured: at most 2
#: of 21, or 4 of 41, for different algorithms, at least 5 of 21 for one algorithm by two authors. At the next smaller and larger count
#: the times differ by at least BESIDE (median), or they only cross.
LEAST_RUN, RUN_PART, BESIDE = 4, 1 / 6, 0.07
#: Minimum range of sizes (largest / smallest) for such runs: over small sizes alone, different algorithms are equal at up to 5.
WIDE = 2**14
#: Minimum number of scattered rank counts with equal times, and their minimum fraction of all common ones (measured: at most 0.24 for
#: different algorithms).
LEAST_SCATTERED, SCATTERED_PART = 6, 0.4
#: For small messages (up to 2 KiB) or few sizes (two), different trees can have equal times at all rank counts.
LARGE, SPREAD = 2**14, 64
#: In small messages, one sender and trees differ by at least 13 % (median over 20 numbers of ranks or more).
ONE_SENDER = {"linear", "linear_nb", "linear_sync", "pipeline"}
TREES = {"binary_tree", "binomial", "knomial", "split_binary_tree", "in_order_binary"}
#: Algorithms that send the same messages, at least up to some size.
SAME_MESSAGES = ({"linear", "linear_nb"}, {"linear", "linear_sync"}, {"ring", "segmented_ring"})
#: Exponent with which the time grows with the number of ranks, for 1 to 8 KiB within one node. In all authors' data it is 0.79 to 1.4
#: if one rank sends every message, or one message passes every rank; for trees it is 0.34 to 0.97.
LEAST_GROWTH, LEAST_RANGE = 0.65, 4
#: Where the latency of a message is much longer than a send, the exponent of a linear broadcast is smaller. Then a line in the ranks
#: fits it better than one in their logarithm: the squares of the relative differences are at most this part (measured: at most 0.36 for
#: such algorithms, 0.8 and more for trees with small exponents by node and socket, 0.37 and more by core).
STRAIGHT = 0.5
#: By collective, the algorithms with such messages. Barriers are judged by core only (measured: 0.88 to 1.5 for these, 0.24 to 0.96 for
#: others; by socket and node, linear ones have 0.39 to 1.0).
GROWS_WITH_RANKS = {"bcast": ("linear", "pipeline"), "barrier": ("linear", "double_ring")}


#: Broadcasts of up to SHORT bytes take at least twice as long as a pipeline than as a tree or chain, from AS_DEEP ranks on (measured:
#: 2.1 times and more in the median). If they take less than SLOW times as long, a label is wrong; 0.01 times is another unit.
SHORT, SLOW, LEAST_SLOW = 64, (0.01, 0.75), 3


@dataclass(frozen=True)
class Same:
    """A part in which two algorithms have equal times: its cells (mapping x row of the table), its name, and the differences."""

    part: np.ndarray
    words: str
    cells: int
    middle: float
    high: float


class Named:
    """Times of each source, collective and named algorithm, from FROM_RANKS ranks on: mapping x row of the table.

    If an algorithm has several parameters, the first that has a value is used. The library's default, which may equal another
    algorithm, is kept apart, by source and collective.
    """

    def __init__(self, table: Table):
        many = table.processes >= FROM_RANKS
        named = table.series
        self.processes, self.sizes = table.processes[many], table.sizes[many]
        self.mappings = sorted({name[4] for name in named})
        self.times: dict[tuple[str, str, str], np.ndarray] = {}
        for name in named if many.any() else []:
            whole = self.times.setdefault(name[:3], np.full((len(self.mappings), int(many.sum())), np.nan))
            mine, values = whole[self.mappings.index(name[4])], table[name][many]
            mine[np.isnan(mine)] = values[np.isnan(mine)]
        self.defaults = {key[:2]: self.times.pop(key) for key in [*self.times] if key[2] == "default"}

    def as_default(self, one: tuple[str, str, str], two: tuple[str, str, str], same: Same) -> bool:
        """Return whether two equal series have the times of the default of their source, too."""
        default = self.defaults.get(one[:2])
        if default is None:
            return False
        both = same.part & ~np.isnan(self.times[one] + self.times[two])
        apart = [difference_between(self.times[key][both], default[both]) for key in (one, two)]
        return all(cells >= 20 and middle < SAME_MEDIAN and high < SAME_P90 for cells, middle, high in apart)

    def largest(self, one: tuple[str, str, str], two: tuple[str, str, str], same: Same) -> float:
        """Return the largest size that two equal series have in common."""
        return float(self.sizes[(same.part & ~np.isnan(self.times[one] + self.times[two])).any(axis=0)].max())

    def same(self, one: tuple[str, str, str], two: tuple[str, str, str]) -> list[Same]:
        """Return the parts in which two series are equal: all cells; otherwise single mappings, or some rank counts of a mapping."""
        a, b = self.times[one], self.times[two]
        wide = not ({one[2], two[2]} & ONE_SENDER and {one[2], two[2]} & TREES)
        whole = self._same(a, b, np.ones(a.shape, dtype=bool), "", wide)
        if whole:
            return [whole]
        found = []
        for index, mapping in enumerate(self.mappings):
            part = np.zeros(a.shape, dtype=bool)
            part[index] = True
            same = self._same(a, b, part, f", by {mapping}", wide) or self._same_at_some_ranks(
                a, b, index, f", by {mapping}"
            )
            found += [same] if same else []
        return found

    def few_ranks(self, one: tuple[str, str, str], two: tuple[str, str, str], same: Same) -> bool:
        """Return whether the part in which two series are equal has few rank counts, of all mappings, or none above AS_DEEP."""
        known = same.part & ~np.isnan(self.times[one] + self.times[two])
        counts = [np.unique(self.processes[of]) for of in known]
        return sum(map(len, counts)) < LEAST_RUN or bool(max(np.concatenate(counts)) <= AS_DEEP)

    def _same(self, a: np.ndarray, b: np.ndarray, part: np.ndarray, words: str, wide: bool = True) -> Same | None:
        """Return the part if it is equal; *wide*: only over a wide range of sizes."""
        cells, middle, high = difference_between(a[part], b[part])
        if cells < 20 or not (middle < SAME_MEDIAN and high < SAME_P90):
            return None
        sizes = self.sizes[(part & ~(np.isnan(a) | np.isnan(b))).any(axis=0)]
        if wide and sizes.max() > 0 and (sizes.max() < LARGE or sizes.max() < SPREAD * max(1, sizes.min())):
            return None
        return Same(part, words, cells, middle, high)

    def _same_at_some_ranks(self, a: np.ndarray, b: np.ndarray, index: int, words: str) -> Same | None:
        """Return the rank counts with equal times: the longest run of successive ones, or many scattered ones."""
        known = ~(np.isnan(a[index]) | np.isnan(b[index]))
        if not (self.sizes[known] > 0).any():
            return None  # a barrier has one value per rank count; a quarter of them are equal by chance
        total = 0
        runs: list[list[float]] = [[]]
        apart: dict[float, float] = {}
        for ranks in np.unique(self.processes[known]):
            here = known & (self.processes == ranks)
            cells, middle, high = difference_between(a[index][here], b[index][here])
            wide = cells >= 5 and self.sizes[here].max() >= WIDE * max(1, self.sizes[here].min())
            total += wide
            apart[ranks] = middle
            if wide and middle < SAME_MEDIAN and high < SAME_P90:
                runs[-1].append(ranks)
            else:
                runs.append([])
        longest, equal = max(runs, key=len), sum(runs, [])
        part = np.zeros(a.shape, dtype=bool)
        # Report only the run if it has at least half of the equal rank counts, otherwise all of these.
        if len(longest) >= max(LEAST_RUN, RUN_PART * total, len(equal) / 2):
            counts = list(apart)
            first, last = counts.index(longest[0]), counts.index(longest[-1])
            if any(
                apart[ranks] < BESIDE for ranks in (*counts[max(0, first - 1) : first], *counts[last + 1 : last + 2])
            ):
                return None
            part[index] = known & np.isin(self.processes, longest)
            return self._same(a, b, part, f"{words}, {int(longest[0])} to {int(longest[-1])} ranks")
        if len(equal) < max(LEAST_SCATTERED, SCATTERED_PART * total):
            return None
        part[index] = known & np.isin(self.processes, equal)
        return self._same(
            a, b, part, f"{words}, at {len(equal)} of {total} numbers of ranks ({int(equal[0])}, ..., {int(equal[-1])})"
        )


def same_as_another(table: Table) -> Iterator[Finding]:
    """Find times equal to those of another algorithm of the same source, or of a second source that contradicts the label: for all
    mappings, one mapping, or some rank counts.
    """
    named = Named(table)
    for collective in sorted({key[1] for key in named.times}):
        keys = sorted(key for key in named.times if key[1] == collective)
        pairs = [
            (one, two) for one, two in itertools.combinations(keys, 2)
            if one[2] != two[2] and not any({one[2], two[2]} <= alike for alike in SAME_MESSAGES)
        ]  # fmt: skip
        apart = {pair: difference_between(named.times[pair[0]], named.times[pair[1]]) for pair in pairs}
        equal = {pair: named.same(*pair) for pair in pairs}
        no_effect = list(_no_effect(equal))
        yield from (finding for _, finding in no_effect)
        for one, two in pairs:
            if any({one, two} <= together for together, _ in no_effect):
                continue
            for same in equal[one, two]:
                contradicted = [*_contradicted(named, one, two, same), *_contradicted(named, two, one, same)]
                yield from contradicted
                if not contradicted and one[0] == two[0]:
                    rest = [v[1] for pair, v in apart.items() if pair != (one, two) and v[0] >= 20]
                    compared = f"; other pairs of algorithms differ by at least {percent(min(rest))}" if rest else ""
                    few = named.few_ranks(one, two, same)
                    cause = (
                        "; the default's are the same: the choice of the algorithm had no effect (another component or collective ran)"
                        if named.as_default(one, two, same)
                        else ": one of the two labels is wrong"
                        + ", or both take as long at these numbers of ranks" * few
                    )
                    yield Finding(
                        "wrong algorithm", f"{whole_series(*one)} and {two[1]} {two[2]}{same.words}",
                        f"the times differ by {percent(same.middle)} (median; 90th percentile {percent(same.high)}; {same.cells:,} cells "
                        f"of {FROM_RANKS} or more ranks){compared}{cause}",
                        "likely" if named.largest(one, two, same) >= LARGE and not few else "possible",
                    )  # fmt: skip


def _no_effect(equal: dict[tuple, list[Same]]) -> Iterator[tuple[set[tuple[str, str, str]], Finding]]:
    """Find three or more algorithms of a source that are all equal in all cells: the choice of the algorithm had no effect."""
    whole = {
        pair: found[0] for pair, found in equal.items() if found and not found[0].words and pair[0][0] == pair[1][0]
    }
    for source in sorted({one[0] for one, _ in whole}):
        together = {key for pair in whole for key in pair if key[0] == source}
        mine = [pair for pair in equal if {*pair} <= together]
        if len(together) > 2 and all(pair in whole for pair in mine):
            names = [key[2] for key in sorted(together)]
            yield together, Finding(
                "wrong algorithm", f"{whole_series(*min(together)[:2], ', '.join(names[:-1]))} and {names[-1]}",
                f"the times of each two differ by at most {percent(max(whole[pair].middle for pair in mine))} (median): the choice of the "
                "algorithm had no effect (another component or collective ran), or the labels are wrong",
                "likely",
            )  # fmt: skip


def _contradicted(
    named: Named, suspect: tuple[str, str, str], model: tuple[str, str, str], same: Same
) -> Iterator[Finding]:
    """Report *suspect*, one of two equal series, as mislabelled if a second source of the same algorithm contradicts it."""
    mine = named.times[suspect][same.part]
    for other in sorted(key for key in named.times if key[1:] == suspect[1:] and key != suspect):
        theirs = named.times[other][same.part]
        cells, middle, _ = difference_between(mine, theirs)
        if cells >= 20 and middle > 3 * SAME_MEDIAN and not _of_one_factor(mine, theirs):
            yield Finding(
                "wrong algorithm", f"{whole_series(*suspect)}{same.words}",
                f"the times differ from {whole_series(*model)} by {percent(same.middle)} (median; 90th percentile "
                f"{percent(same.high)}; {same.cells:,} cells of {FROM_RANKS} or more ranks), but from {suspect[1]} {suspect[2]} of "
                f"{other[0]} by {percent(middle)}",
                "certain",
            )  # fmt: skip
            return


def _of_one_factor(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether times differ by a constant factor, as of another clock frequency; two algorithms do not."""
    apart = np.log(a / b)
    return bool(np.nanmedian(np.abs(apart - np.nanmedian(apart))) < SAME_MEDIAN)


def slow_trees(table: Table) -> Iterator[Finding]:
    """Find broadcasts of small messages that take longer as a tree or chain than as a pipeline, in which they pass all ranks one by one."""
    used = (table.processes >= AS_DEEP) & (table.sizes > 0) & (table.sizes <= SHORT)
    for one, two in itertools.permutations(table.series, 2):
        alike = one[:2] == two[:2] and one[4] == two[4] and one[1] == "bcast"
        if alike and one[2] in {*TREES, "chain"} and two[2] == "pipeline":
            ratios = table[two][used] / table[one][used]
            ranks = table.processes[used][~np.isnan(ratios)]
            ratios = ratios[~np.isnan(ratios)]
            if len(np.unique(ranks)) < LEAST_SLOW or np.quantile(ratios, 0.9) > 1:
                continue
            if SLOW[0] < np.median(ratios) < SLOW[1]:
                yield Finding(
                    "wrong algorithm", f"{whole_series(*one[:3])} and {two[1]} {two[2]}, by {one[4]}",
                    f"from {AS_DEEP} ranks on, up to {SHORT} bytes, the pipeline takes {np.median(ratios):.2f} times as long as the "
                    f"{one[2]} (median of {len(ratios)} cells), although its messages pass all ranks one after the other: the "
                    "two labels are exchanged, or one is wrong",
                    "likely",
                )  # fmt: skip


def growth(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find broadcasts and barriers whose time grows more slowly with the number of ranks than their algorithm's messages allow."""
    found: dict[tuple, list[tuple[str, float]]] = {}
    for series, times in table.columns():
        source, collective, algorithm, _, mapping = series
        if algorithm not in GROWS_WITH_RANKS.get(collective, ()) or (collective == "barrier" and mapping != "core"):
            continue
        sizes, processes = table.sizes, table.processes
        used = ~np.isnan(times) & ((sizes >= 1024) & (sizes <= 8192) | (collective == "barrier"))
        used &= (processes >= 4) & (processes <= machine.cores_per_node)
        slopes, line, tree = [], 0.0, 0.0
        for size in np.unique(sizes[used]):
            of = used & (sizes == size)
            ranks = np.unique(processes[of])
            # Over a narrow range, the latency of a single message hides the growth.
            if len(ranks) >= 4 and ranks[-1] >= LEAST_RANGE * ranks[0]:
                x, y = np.log(processes[of]), np.log(times[of])
                slope, error = _slope(x, y)
                # Two standard errors allow for noise; the median slope, for a number of ranks that was disturbed.
                slopes.append(max(slope + 2 * error, _median_slope(x, y)))
                line += _misfit(processes[of] - 1, times[of])
                tree += _misfit(np.log2(processes[of]), times[of])
        if slopes and line > STRAIGHT * tree:
            found.setdefault((source, collective, algorithm), []).append((mapping, float(np.median(slopes))))
    for key, slopes in found.items():
        low = [(mapping, slope) for mapping, slope in slopes if slope < LEAST_GROWTH]
        if low:
            shown = ", ".join(f"{slope:.2f} (by {mapping})" for mapping, slope in low)
            messages, name = ("", "barrier") if key[1] == "barrier" else ("for 1 to 8 KiB ", "broadcast")
            yield Finding(
                "wrong algorithm", whole_series(*key),
                f"{messages}the time grows with the number of ranks to the power of {shown}, as in a tree; the exponent of a {key[2]} "
                f"{name} is at least {LEAST_GROWTH}",
                "likely",
            )  # fmt: skip


def _median_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the median slope between two of some points."""
    one, two = np.triu_indices(len(x), 1)
    apart = x[one] != x[two]
    return float(np.median((y[two] - y[one])[apart] / (x[two] - x[one])[apart]))


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of the line fitted to some points, and its standard error."""
    slope, level = np.polyfit(x, y, 1)
    spread = np.sum((y - slope * x - level) ** 2) / max(1, len(x) - 2)
    return float(slope), float(np.sqrt(spread / np.sum((x - x.mean()) ** 2)))


def _misfit(x: np.ndarray, y: np.ndarray) -> float:
    """Return the squares of the relative differences between *y* and the line of *x*, not below 0 at *x* = 0, that fits them best."""
    parts = np.column_stack([1 / y, x / y])
    parts = parts if np.linalg.lstsq(parts, np.ones(len(y)), rcond=None)[0][0] > 0 else parts[:, 1:]
    return float(np.sum((parts @ np.linalg.lstsq(parts, np.ones(len(y)), rcond=None)[0] - 1) ** 2))
