"""Checks of the unit of imported times: too short or too long for their messages, or far from those beside them."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, common
from collstudy.sources.importing.series import Series, Table
from collstudy.sources.importing.strict import CACHE_LINE
from collstudy.study.machines import Machine

np = lazy("numpy")

#: The slowest messages within a node, and between nodes (us, GB/s, words). Times in ns on the fastest network, read as us, are longer.
SLOWEST = (
    (10.0, 0.5, "within a node, if all were on one, at 10 us and 0.5 GB/s"),
    (300.0, 0.05, "on slow Ethernet at 300 us and 0.05 GB/s"),
)
#: The times of a number of ranks, or of a size, are at most APART times those of both neighbours, but for disturbed ones (measured: 104
#: to 340 times). In another unit they are a power of a thousand times the neighbours' mean, within NEAR_POWER (NEAR_AT_END
#: where both are on the same side).
APART, NEAR_POWER, NEAR_AT_END = 100.0, 2.5, 5.0
#: Times of another unit are too long at all rank counts up to this multiple of the smallest; disturbed ones only at some. Within a node,
#: all sizes but this share are too long; with a slow memory, only large ones (measured: 13 of 21).
FEW_RANKS, MOST_SIZES = 16, 0.1
#: Limit for the ratio of times between a series and its closest algorithm (measured: at most 45, median over cells).
FAR_FROM_ALL = 200.0
#: Times in a unit a thousand times smaller are at least this many times those of all other algorithms (1000 / 45).
NEAR = 22.0


def units(table: Table, machine: Machine, even: set[Series | str]) -> Iterator[Finding]:
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
        longer = all(np.quantile((values / slow)[counts == count], MOST_SIZES if within else 0.5) > 1 for count in few)
        if longer and series not in even and not _near_a_known_unit(series, table):
            slow = slow[fewest]
            worst = np.argmax(values[fewest] / slow)
            messages = "one message" if ranks == 2 else f"{int(ranks - 1)} successive messages"
            evidence.append(
                f"{int(ranks)} ranks take {values[fewest][worst]:.3g} us for {int(size[fewest][worst])} bytes, longer than {messages} "
                f"{words} ({slow[worst]:.3g} us)"
            )
        large = (size >= 65536) & fewest
        if large.any() and (moved := float(np.median(size[large] / values[large] / 1e3))) > 1000:
            evidence.append(f"the longest messages imply {moved:.3g} GB/s")
        if evidence:
            yield Finding("unit of the times", (series,), "; ".join(evidence), sure)


def far_from_neighbours(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find numbers of ranks, and sizes, whose times differ from those of both neighbours by a large factor: in another unit."""
    for series, values in table.columns():
        ranks, sizes, times = table.grid(np.where(table.processes > 1, values, np.nan))
        for what, names, of in (("ranks", ranks, times), ("bytes", sizes, times.T)):
            for at in range(len(names) if len(names) > 2 else 0):
                one, two = (at - 1, at + 1) if 0 < at < len(names) - 1 else (1, 2) if at == 0 else (at - 1, at - 2)
                # At the ends both neighbours are on the same side, where times may grow.
                if abs(one - two) == 1 and not 1 / 4 <= names[two] / max(1, names[at]) <= 4:
                    continue
                # The first ranks on a second node may be on a slow network.
                if what == "ranks" and series[4] == "core" and names[one] <= machine.cores_per_node < names[at]:
                    continue
                known = ~np.isnan(of[at] + of[one] + of[two])
                if known.sum() < 3:
                    continue
                ratios = [float(np.median(of[at][known] / of[other][known])) for other in (one, two)]
                if min(ratios) > APART or max(ratios) < 1 / APART:
                    thousand = abs(np.log10(ratios[0] * ratios[1]) / 2) % 3
                    unit = min(thousand, 3 - thousand) < np.log10(NEAR_POWER if abs(one - two) == 2 else NEAR_AT_END)
                    yield Finding(
                        "unit of the times" if unit else "noise", (series,),
                        f"at {int(names[at]):,} {what} the times are {ratios[0]:.3g} and {ratios[1]:.3g} times those at "
                        f"{int(names[one]):,} and {int(names[two]):,} (median of {known.sum()} cells)"
                        + ": not near a power of a thousand, so rather a disturbed or another launch" * (not unit), "likely",
                    )  # fmt: skip


def _beside_sources(series: Series, table: Table) -> Iterator[str]:
    """Yield evidence that a series differs from that of another source by a power of a thousand."""
    for other in table.by_name[series[1:]]:
        if other != series:
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
