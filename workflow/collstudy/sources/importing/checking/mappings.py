"""Check the mappings of imported data: ranks that never left a node."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding, common, percent
from collstudy.sources.importing.checking.labels import SAME_MEDIAN
from collstudy.sources.importing.series import Launches, Series, Table
from collstudy.sources.importing.strict import CACHE_LINE
from collstudy.study.machines import Machine

np = lazy("numpy")

#: For small messages, two ranks on two nodes take at least this many times as long as two on one socket (measured: 2.8 to 14), and as
#: two on one node at most NEAR times. The latter take less than SHARED_MEMORY (us), unless they send over the network, too.
LEAST_NETWORK, NEAR, SHARED_MEMORY = 1.5, 1.1, 3.0
#: Within a node, times by socket and by core differ by more than this (measured: at least 0.2 in the median) at several rank counts, and
#: those of small messages between two ranks (measured: at least 0.7).
SAME_SOCKET, LEAST_RANKS = 0.1, 3
#: The messages between two ranks that show their latency (bytes).
SHORT = 64
#: Larger messages (bytes) may be as fast between nodes, or sockets, as within one.
SMALL = 2**13


def _leaves_at_two(mapping: str) -> bool:
    """Return whether a mapping places ranks 0 and 1 on two nodes."""
    return mapping in ("node", "group", "BFNF", "BFSF")


def stayed_on_the_node(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find mappings across nodes with times of a single node."""
    if machine.nodes < 2:
        return
    several = table.cells[:, 0] > 1
    two_small = several & (table.processes == 2) & (table.sizes <= SHORT)
    within = several & (table.processes > 1) & (table.processes <= machine.cores_per_node) & (table.sizes <= SMALL)
    for series, mine in table.columns():
        collective, mapping = series[1], series[4]
        if not _leaves_at_two(mapping):
            continue
        inside = (*series[:4], "core")
        # Evidence, and whether it is strong.
        evidence: list[tuple[str, bool]] = []
        if inside in table.number:
            a, b = common(mine[two_small], table[inside][two_small])
            ratio = float(np.median(a / b)) if len(a) else np.nan
            shared = not len(b) or np.median(b) < SHARED_MEMORY
            if ratio < LEAST_NETWORK:
                words = f"two ranks take {ratio:.2f} times as long as by core ({np.median(a):.2f} us)"
                evidence.append((words, shared and ratio < NEAR))
            a, b = common(mine[within], table[inside][within])
            left = ratio >= LEAST_NETWORK
            if len(a) >= 20 and not left and (difference := float(np.median(np.abs(a / b - 1)))) < SAME_MEDIAN:
                words = f"the times differ from those by core by {percent(difference)} (median over {len(a)} cells)"
                evidence.append((words, shared))
        here = two_small & ~np.isnan(mine)
        small = mine[here]
        peers = [
            float(np.median(of)) for other, values in table.columns()
            if other != series and _leaves_at_two(other[4]) and other[1] == collective
            and len(of := values[here & ~np.isnan(values)])
        ]  # fmt: skip
        # With no other evidence, compare only if there are no times by core: algorithms differ with two ranks, too, and barriers by
        # up to 4.6 times.
        comparable = evidence or (inside not in table.number and collective != "barrier")
        if len(small) and peers and comparable and np.median(small) < np.median(peers) / 3:
            words = f"two ranks take {np.median(small):.2f} us; in other series across nodes {np.median(peers):.2f} us"
            evidence.append((words, True))
        if not evidence and len(small) and inside not in table.number and CACHE_LINE < np.median(small) < 0.35:
            words = f"two ranks take {np.median(small):.2f} us, less than the latency of any network"
            evidence.append((words, False))
        if evidence:
            strong = sum(sure for _, sure in evidence)
            yield Finding(
                "placed on a single node", (series,), "; ".join(words for words, _ in evidence),
                "certain" if strong > 1 else "likely" if strong else "possible",
            )  # fmt: skip


def no_effect(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find mappings by socket with the times of the mapping by core, which fills one socket first."""
    if next((level.count for level in machine.levels if level.name == "socket"), 1) < 2:
        return
    within = (table.processes > 1) & (table.processes <= machine.cores_per_node)
    alike: list[tuple[Series, int, float, bool]] = []
    apart: set[str] = set()
    for series, mine in table.columns():
        by_core = (*series[:4], "core")
        if series[4] != "socket" or by_core not in table.number:
            continue
        known = within & ~np.isnan(mine + table[by_core])
        ratios, processes, sizes = (of[known] for of in (mine / table[by_core], table.processes, table.sizes))
        # Large messages alone, and those of all cores, may take as long by both.
        if len(ratios) < 20 or len(np.unique(processes)) < LEAST_RANKS or sizes.min() > SMALL:
            continue
        difference, two = float(np.median(np.abs(ratios - 1))), ratios[(processes == 2) & (sizes <= SHORT)]
        if difference < SAME_SOCKET and (not len(two) or np.median(two) < 1 + SAME_SOCKET):
            alike.append((series, len(ratios), difference, len(two) > 0))
        else:
            apart.add(series[0])
    for series, cells, difference, of_two in alike:
        sure = of_two and series[0] in apart
        yield Finding(
            "mapping had no effect", (series,),
            f"up to {machine.cores_per_node} ranks the times differ from those by core by {percent(difference)} (median of {cells} "
            "cells), although those are on one socket first" + ", or messages between sockets are as fast as within one" * (not sure),
            "likely" if sure else "possible",
        )  # fmt: skip


def pairs_on_one_node(pairs: Launches, machine: Machine) -> Iterator[Finding]:
    """Find pairs of cores on two nodes that are as fast as pairs within a node."""
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
                "placed on a single node", "pairs of cores on two nodes",
                f"{percent(fast)} of them are faster than the median pair within a node ({middle:.2f} us)", "certain",
            )  # fmt: skip
