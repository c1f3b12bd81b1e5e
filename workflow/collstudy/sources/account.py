"""From the account of a program's time (`account-cells.csv`, `sampling/cells.csv`) to the cells that are worth measuring."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from collstudy.launch.hydra import host_file
from collstudy.study.catalogue import Catalogue
from collstudy.study.machines import Machine
from collstudy.study.names import ROOTED, SIZED
from collstudy.study.openmpi_numbers import parameters_of

#: Collectives with less than this percentage of the total possible gain are omitted, as are classes of sizes that together have less
#: than this percentage of their collective's gain.
LITTLE_PCT = 1
#: The most bytes of a buffer of the benchmark (its option -M), and the collectives whose buffers have a block for each rank.
BUFFER_BYTES = 512 << 20
IN_BLOCKS = ("allgather", "allgatherv", "alltoall", "alltoallv", "gather", "reduce_scatter_block", "scatter")
#: Segment sizes (bytes) to try, of messages of at least two segments, and fan-outs besides the default's; both for algorithms that take
#: them, with more than two ranks.
SEGMENTS, FANOUTS = (8192, 65536), (2, 8)
#: Algorithm that exists for two ranks only.
FOR_TWO = "two_proc"
#: Algorithms of the collectives library to try, each with the level of which it needs several units.
TOPOLOGY_AWARE = {"node": "node", "node_group_chain": "node", "group": "group", "node_group": "group"}
#: Numbers of timed and untimed calls of each size.
CALLS = {"iterations": 200, "warmup": 20}
#: Most spreads of arrivals of one cell, which successive calls take in turn (MAX_SPREADS of workflow/native/bench/options.h).
TURNS = 8
#: If arrivals are spread, timed calls of each size need to last only this long (us) in total; FEWEST_CALLS is the minimum number.
ARRIVING_US, FEWEST_CALLS = 5000, 20


def gains_of(rows: Iterable[dict[str, str]]) -> dict[str, float]:
    """Return the largest possible gain (percent of the run time) of each collective of an account, in descending order."""
    gains: dict[str, float] = {}
    for row in rows:
        gains[row["operation"]] = gains.get(row["operation"], 0) + float(row["gain_pct"])
    return dict(sorted(gains.items(), key=lambda item: -item[1]))


def worth_measuring(
    rows: Iterable[dict[str, str]], catalogue: Catalogue, mpi: str = "openmpi"
) -> list[tuple[str, float, list[str], list[dict[str, str]]]]:
    """Return the collectives of an account that have algorithms to choose from and are worth measuring, by descending gain: each with
    its gain (percent of the run time), the algorithms of *mpi* that a tuning file can select, and its rows.
    """
    by_collective: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_collective.setdefault(row["operation"], []).append(row)
    gains = gains_of(itertools.chain(*by_collective.values()))
    found = []
    for collective in gains:
        entries = catalogue.algorithms.get(collective, {})
        algorithms = ["default", *(key for key, entry in entries.items() if _can_be_chosen(key, entry, mpi))]
        mine = [row for row in by_collective[collective] if collective == "barrier" or int(row["size_bytes"]) > 0]
        mine = [row for row in mine if not is_too_long(row)]
        if len(algorithms) > 1 and mine and gains[collective] >= LITTLE_PCT / 100 * sum(gains.values()):
            found.append((collective, gains[collective], algorithms, _most_of(mine)))
    return found


def _most_of(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows without those of the smallest gain that together have less than LITTLE_PCT of the total."""
    left = sum(float(row["gain_pct"]) for row in rows) * LITTLE_PCT / 100
    kept = sorted(rows, key=lambda row: float(row["gain_pct"]))
    while len(kept) > 1 and (left := left - float(kept[0]["gain_pct"])) > 0:
        del kept[0]
    return kept


def _can_be_chosen(name: str, entry: dict[str, Any], mpi: str) -> bool:
    """Return whether a tuning file can select an algorithm: it is no component; simulated ones exist in Open MPI or are by topology."""
    simulated = mpi == "smpi-openmpi"
    if simulated and "simulated" not in entry:
        return name in TOPOLOGY_AWARE
    return "component" not in entry.get("openmpi" if simulated else mpi, {"component": ""})


def _applies(name: str, settings: dict[str, Any], ranks: int, nodes: int, machine: Machine | None) -> bool:
    """Return whether an algorithm with these settings of its library exists for a number of ranks, and differs from others for ranks
    on *nodes* of a simulated *machine* (None: a real one).
    """
    if name == FOR_TWO:
        return ranks == 2
    if settings.get("power_of_two"):
        return ranks & (ranks - 1) == 0
    if not machine or name not in TOPOLOGY_AWARE:
        return True
    groups = math.prod(level.count for level in machine.levels if level.name == "group")
    return nodes > (machine.nodes // groups if TOPOLOGY_AWARE[name] == "group" else 1)


def _nodes_of(row: dict[str, str], machine: Machine | None) -> int:
    """Return the number of nodes that a row's communicators use on a simulated *machine*: that of the trace if all nodes had the same
    number of ranks and have cores for them here, otherwise the smallest sufficient one. 1 on a real machine (None).
    """
    ranks, cores = int(row["ranks"]), machine.cores_per_node if machine else int(row["ranks"])
    regular = re.match(r"(\d+) x (\d+)(,|$)", row.get("placements", ""))
    if machine and regular and int(regular[2]) <= cores and int(regular[1]) * int(regular[2]) == ranks:
        return int(regular[1])
    return -(-ranks // cores)


def node_of_rank(row: dict[str, str], machine: Machine, mpi: str = "openmpi") -> tuple[int, ...] | None:
    """Return the node of each rank of the communicators in a row of an account.

    None if the ranks fill the nodes of *machine* one after the other, which is the usual placement, or if this placement is unknown,
    needs more cores of a node than there are, or cannot be launched: Hydra (all libraries but Open MPI) assigns ranks to nodes
    cyclically.
    """
    repeated = [part.split("*") for part in row.get("node_of_rank", "").split()]
    nodes = tuple(int(node) for node, times in repeated for _ in range(int(times)))
    if not nodes or max(Counter(nodes).values()) > machine.cores_per_node:
        return None
    if mpi != "openmpi" and len(host_file(list(map(str, nodes))).splitlines()) > len(set(nodes)):
        return None
    return nodes if nodes != tuple(rank // machine.cores_per_node for rank in range(len(nodes))) else None


def spreads_of_sites(row: dict[str, str], simulated: bool) -> tuple[float, ...]:
    """Return the times (us) within which a program's ranks would arrive at a collective of a class of sizes if they had left the
    previous one together.

    There are at most TURNS values; each appears in proportion to the calls of the call sites that have it. The result is () for rooted
    collectives, and if all values are 0. On a real machine, values below the transfer time are 0, because windows take longer.

    Arrivals are drawn uniformly from that time, so the spread of P ranks is (P - 1) / (P + 1) of it in the mean. It is rounded to a
    power of two, because it differs with every trace.
    """
    if row["operation"] in ROOTED:
        return ()
    ranks, least = int(row["ranks"]), 0 if simulated else float(row["transfer_us"])
    calls: Counter[float] = Counter()
    for part in (row.get("spreads") or f"1*{row['spread_us']}").split():
        count, spread = part.split("*")
        apart = float(spread) * (ranks + 1) / (ranks - 1)
        calls[2.0 ** round(math.log2(apart)) if float(spread) > least else 0.0] += int(count)
    found = tuple(itertools.chain(*([spread] * turns for spread, turns in _turns(calls).items())))
    return found if any(found) else ()


def whole_turns(calls: int, spreads: Sequence[float]) -> int:
    """Return a number of calls, at least *calls*, in which each of the spreads has as many turns as it should."""
    return -(-calls // len(spreads)) * len(spreads)


def _turns(calls: Counter[float]) -> dict[float, int]:
    """Return how many of at most TURNS turns each spread has, in proportion to its calls (largest remainders), in ascending order."""
    exact = {spread: TURNS * count / calls.total() for spread, count in sorted(calls.items())}
    turns = {spread: int(share) for spread, share in exact.items()}
    left = sorted(exact, key=lambda spread: turns[spread] - exact[spread])[: TURNS - sum(turns.values())]
    turns = {spread: count + (spread in left) for spread, count in turns.items()}
    return {spread: count // math.gcd(*turns.values()) for spread, count in turns.items()}


def sweeps_of(
    collective: str, algorithms: list[str], rows: Iterable[dict[str, str]], catalogue: Catalogue, mpi: str = "openmpi",
    machine: Machine | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the sweeps of one collective, as in a study's YAML: for each number of ranks and, in a simulation, of nodes, and each spread
    of the program's arrivals, the typical sizes of the classes, also with other fan-outs and in segments. *machine*: of a simulation.
    """
    entries = catalogue.algorithms[collective]
    takes = {name: _parameters(entries[name], collective, mpi) for name in algorithms}
    # A size of several classes has the spreads of the one with most to gain.
    spreads = {
        (int(row["ranks"]), _nodes_of(row, machine), typical(row)): spreads_of_sites(row, machine is not None)
        for row in sorted(rows, key=lambda row: float(row["gain_pct"]))
    }
    grouped: dict[tuple[int, int, tuple[float, ...]], list[int]] = {}
    for (ranks, nodes, size), spread in sorted(spreads.items()):
        grouped.setdefault((ranks, nodes, spread), []).append(size)
    found = []
    for (ranks, nodes, spread), sizes in sorted(grouped.items()):
        names = [name for name in algorithms if _applies(name, entries[name].get(mpi, {}), ranks, nodes, machine)]
        apart = machine is not None and nodes > -(-ranks // machine.cores_per_node)
        placed = {"nodes": [nodes], "processes_per_node": [ranks // nodes]} if apart else {"processes": [ranks]}
        entry = {"collective": collective, "algorithms": names, "mappings": ["core"], **placed, **CALLS}
        if spread:
            calls = max(FEWEST_CALLS, min(CALLS["iterations"], round(ARRIVING_US * len(spread) / sum(spread))))
            own = list(spread) if len(spread) > 1 else spread[0]
            entry |= {"spread_us": own, "iterations": whole_turns(calls, spread)}
        if collective == "barrier":
            found.append(entry)
            continue
        found.append({**entry, "sizes": sizes})
        if ranks == 2:
            continue
        fans = [fanout for fanout in FANOUTS if fanout < ranks - 1]
        fanned = [{"name": name, "fanout": fanout} for name in names if "fanout" in takes[name] for fanout in fans]
        found += [{**entry, "algorithms": fanned, "sizes": sizes}] if fanned else []
        in_segments = [{"name": name} for name in names if "segment_bytes" in takes[name]]
        for segment in SEGMENTS:
            variants = [{**way, "segment_bytes": segment} for way in (*in_segments, *fanned)]
            long = [size for size in sizes if size >= 2 * segment]
            found += [{**entry, "algorithms": variants, "sizes": long}] if variants and long else []
    return found


def _parameters(entry: dict[str, Any], collective: str, mpi: str) -> list[str]:
    """Return the parameters of an algorithm in the catalogue that are varied: its fan-out and its segment size."""
    if mpi in ("openmpi", "smpi-openmpi"):
        return parameters_of(collective, entry.get("openmpi", {}))
    return ["segment_bytes"] if "segment_bytes" in entry.get(mpi, {}) else []


def is_too_long(row: dict[str, str]) -> bool:
    """Return whether a class of sizes is of messages that a benchmark exists for but cannot send."""
    collective = row["operation"]
    if collective not in SIZED:
        return False
    return typical(row) * (int(row["ranks"]) if collective in IN_BLOCKS else 1) > BUFFER_BYTES


def typical(row: dict[str, str]) -> int:
    """Return the message size (bytes) that represents a class: half of the transfer time is spent on sizes up to it."""
    return round(float(row["typical_bytes"]))
