"""Check the mappings of imported data: ranks that never left a node."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.findings import Finding, common, percent
from collstudy.sources.importing.labels import SAME_MEDIAN
from collstudy.sources.importing.series import Launches, Table
from collstudy.sources.importing.units import CACHE_LINE
from collstudy.study.machines import Machine

np = lazy("numpy")

#: For small messages, two ranks on two nodes take at least this many times as long as two on one socket (measured: 2.8 to 5).
LEAST_NETWORK = 1.5
#: Within a node, times by socket and by core differ by more than this (measured: at least 0.24 in the median) at several rank counts.
SAME_SOCKET, LEAST_RANKS = 0.1, 3
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
    two_small = several & (table.processes == 2) & (table.sizes <= 64)
    within = several & (table.processes > 1) & (table.processes <= machine.cores_per_node) & (table.sizes <= SMALL)
    for series, mine in table.columns():
        source, collective, algorithm, parameters, mapping = series
        if not _leaves_at_two(mapping):
            continue
        inside = (source, collective, algorithm, parameters, "core")
        evidence, sure = [], "likely"
        if inside in table.number:
            a, b = common(mine[two_small], table[inside][two_small])
            if len(a) and (ratio := float(np.median(a / b))) < LEAST_NETWORK:
                evidence.append(f"two ranks take {ratio:.2f} times as long as by core ({np.median(a):.2f} us)")
            a, b = common(mine[within], table[inside][within])
            if len(a) >= 20 and (difference := float(np.median(np.abs(a / b - 1)))) < SAME_MEDIAN:
                evidence.append(
                    f"the times differ from those by core by {percent(difference)} (median over {len(a)} cells)"
                )
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
            evidence.append(
                f"two ranks take {np.median(small):.2f} us; in other series across nodes {np.median(peers):.2f} us"
            )
        if not evidence and len(small) and inside not in table.number and CACHE_LINE < np.median(small) < 0.35:
            evidence.append(f"two ranks take {np.median(small):.2f} us, less than the latency of any network")
            sure = "possible"
        if evidence:
            sure = "certain" if len(evidence) > 1 else sure
            yield Finding("placed on a single node", (series,), "; ".join(evidence), sure)


def no_effect(table: Table, machine: Machine) -> Iterator[Finding]:
    """Find mappings by socket with the times of the mapping by core, which fills one socket first."""
    if next((level.count for level in machine.levels if level.name == "socket"), 1) < 2:
        return
    within = (table.processes > 1) & (table.processes <= machine.cores_per_node)
    for series, mine in table.columns():
        by_core = (*series[:4], "core")
        if series[4] != "socket" or by_core not in table.number:
            continue
        known = within & ~np.isnan(mine + table[by_core])
        a, b = mine[known], table[by_core][known]
        # Large messages alone, and those of all cores, may take as long by both.
        if len(np.unique(table.processes[known])) < LEAST_RANKS or table.sizes[known].min() > SMALL:
            continue
        if len(a) >= 20 and (difference := float(np.median(np.abs(a / b - 1)))) < SAME_SOCKET:
            yield Finding(
                "mapping had no effect", (series,),
                f"up to {machine.cores_per_node} ranks the times differ from those by core by {percent(difference)} (median of {len(a)} "
                "cells), although those are on one socket first", "likely",
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
