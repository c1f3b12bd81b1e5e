"""Import checks on sound data that are unusual (few sizes or ranks, coarse digits, slow networks), and on the faults beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from made_rows import RANKS, Rows, accused, changed, found, given, made, only, scaled, series, sound


def coarse(decimals: int) -> Rows:
    """Return sound data, printed with fewer decimals."""
    fields = ("min_latency_us", "latency_us", "max_latency_us")
    return [
        row | {name: round(row[name], decimals) for name in fields} for row in sound() if row["min_latency_us"] > 0.6
    ]


@pytest.mark.parametrize("decimals", [1, 0])
def test_means_that_were_printed_with_few_digits(decimals: int) -> None:
    """Of two ranks, 1 us is the mean of 1 and 2 us if these were rounded."""
    rows = coarse(decimals)
    assert accused(rows, "mean, minimum and maximum") == {}
    wrong = changed(
        rows, only(algorithm="chain", mapping="core"), lambda row: {"latency_us": 2 * row["max_latency_us"]}
    )
    assert accused(wrong, "mean, minimum and maximum").keys() == {"bcast chain, by core"}


def test_times_in_seconds_that_are_read_as_microseconds() -> None:
    """Their last digit is far below a nanosecond, which is not a coarse timer."""
    rows = changed(sound(), lambda row: True, lambda row: {"latency_us": row["latency_us"] / 1e6})
    findings = found(rows)
    assert "unit of the times" in findings and "timer resolution" not in findings
    stayed = found([row for row in rows if row["mapping"] == "node"])
    assert "unit of the times" in stayed and "placed on a single node" not in stayed


def test_a_linear_broadcast_on_a_network_of_long_latency() -> None:
    """A message of 1 KiB takes ten times as long as a send, so that time grows slowly with the ranks, but along a line."""
    linear = made(
        "linear", lambda ranks, size: 1.6 + 0.17 * (ranks - 1) + size / 1e4, sizes=[8, 1024, 2**20], mapping="node"
    )
    assert "wrong algorithm" not in found(linear)
    tree = made(
        "linear", lambda ranks, size: 1.6 * math.log2(ranks) + size / 1e4, sizes=[8, 1024, 2**20], mapping="node"
    )
    assert accused(tree, "wrong algorithm").keys() == {"bcast linear"}
    # Within a node, barriers of 0.5 us messages and 0.1 us sends.
    barrier = made("linear", lambda ranks, size: 1 + 0.1 * ranks, range(2, 17, 2), [None], collective="barrier")
    assert "wrong algorithm" not in found(barrier)


@pytest.mark.parametrize(("ranks", "confidence"), [([32], "possible"), (RANKS, "likely")])
def test_algorithms_that_are_equal_at_one_number_of_ranks(ranks: Iterable[int], confidence: str) -> None:
    """Different algorithms are equal at up to a quarter of the numbers of ranks, so one is weak evidence."""
    rows = [
        *made("binomial", lambda count, size: (0.3 + size / 9e3) * math.log2(count), ranks),
        *made("chain", lambda count, size: (0.3 + size / 9e3) * math.log2(count), ranks),
        *made("linear", lambda count, size: (0.3 + size / 9e3) * (count - 1), ranks),
    ]
    (finding,) = found(rows)["wrong algorithm"]
    assert (finding.where, finding.confidence) == ("bcast binomial and bcast chain", confidence)
    assert ("or both take as long" in finding.found) == (confidence == "possible")


def test_a_pipeline_of_many_ranks() -> None:
    """Most of its time passes until the first segment of 64 KiB has reached the last rank."""

    def segmented(ranks: int, size: int) -> float:
        segment = min(size, 65536)
        return (ranks - 2 + size / segment) * (0.3 + segment / 9e3)

    assert "times do not depend on size" not in found(made("pipeline", segmented, [48]))
    limited = made("pipeline", lambda ranks, size: ranks * (0.3 + min(size, 2**17) / 9e3), [8, 16])
    assert accused(limited, "times do not depend on size").keys() == {"bcast pipeline, by core"}


def test_large_messages_alone_do_not_tell_nodes_apart() -> None:
    """Messages of 1 MiB may be as fast between nodes as within one."""
    sizes = [2**k for k in range(18, 24)]
    rows = [
        row
        for mapping in ("core", "node")
        for row in made("binomial", lambda ranks, size: size / 1e4 * math.log2(ranks), sizes=sizes, mapping=mapping)
    ]
    assert "placed on a single node" not in found(rows)


@pytest.mark.parametrize(("across", "confidence"), [(1.25, "possible"), (1.0, "possible"), (2.0, None)])
def test_ranks_of_a_node_that_send_over_its_network(across: float, confidence: str | None) -> None:
    """As in containers without shared memory: another node is as near as the own one."""
    rows = made("binomial", lambda ranks, size: (9 + size / 1e3) * math.log2(ranks))
    rows += made("binomial", lambda ranks, size: across * (9 + size / 1e3) * math.log2(ranks), mapping="node")
    findings = found(rows).get("placed on a single node", [])
    assert [finding.confidence for finding in findings] == ([confidence] if confidence else [])


def test_two_ranks_that_left_the_node() -> None:
    """Where one rank sends every message, many ranks may take as long by node."""
    rows = made("linear", lambda ranks, size: 0.05 + (0.15 + size / 9e3) * (ranks - 1))
    rows += made("linear", lambda ranks, size: 0.8 * (ranks == 2) + (0.15 + size / 9e3) * (ranks - 1), mapping="node")
    assert "placed on a single node" not in found(rows)


@pytest.mark.parametrize(("other_socket", "confidence"), [(1.3, None), (1.05, "possible")])
def test_sockets_that_are_near_each_other(other_socket: float, confidence: str | None) -> None:
    """Two ranks on two sockets show it if these are farther apart; otherwise all algorithms take as long by both mappings."""

    def us(ranks: int, size: int, hop: float = 1) -> float:
        return (0.25 * (hop if ranks == 2 else 1 + (hop - 1) / 5) + size / 9e3) * math.log2(ranks)

    rows = [row for name in ("binomial", "chain") for row in made(name, us, range(2, 25, 2))]
    rows += [
        row for name in ("binomial", "chain")
        for row in made(name, lambda *of: us(*of, other_socket), range(2, 25, 2), mapping="socket")
    ]  # fmt: skip
    findings = found(rows).get("mapping had no effect", [])
    assert {finding.confidence for finding in findings} == ({confidence} if confidence else set())
    # One of several mappings by socket had no effect.
    far = made("binary_tree", us) + made("binary_tree", lambda *of: 1.9 * us(*of), mapping="socket")
    findings = found(rows + far).get("mapping had no effect", [])
    assert {finding.confidence for finding in findings} == ({"likely"} if confidence else set())


def test_all_series_by_node_on_one_node() -> None:
    """Without times by core, the network's latency tells."""
    rows = [row for row in sound() if row["mapping"] == "node"]
    assert "placed on a single node" not in found(rows)
    stayed = given([row for row in sound() if row["mapping"] == "core"], mapping="node")
    findings = found(stayed)["placed on a single node"]
    assert {finding.where for finding in findings} == series(
        "linear", "chain", "binomial", "binary_tree", mappings=("node",)
    )
    assert {finding.confidence for finding in findings} == {"possible"}


def test_a_tree_on_a_slow_network() -> None:
    """On two nodes, most trees send each datum over the network once, whatever the number of ranks."""
    rows = made("binomial", lambda ranks, size: 45 + size / 110 + 0.3 * math.log2(ranks), mapping="node")
    assert "times do not depend on ranks" not in found(rows)
    # A ring of large messages: every rank sends nearly twice the vector.
    rows = made(
        "ring", lambda ranks, size: 2 * (1 - 1 / ranks) * size / 9e3, (8, 16, 32, 48, 64), [2**k for k in range(20, 26)]
    )
    assert "times do not depend on ranks" not in found(given(rows, collective="allreduce"))
    rows = made("binomial", lambda ranks, size: 2.4 + size / 9e3)
    assert accused(rows, "times do not depend on ranks").keys() == {"bcast binomial, by core"}


def test_two_of_three_numbers_of_ranks_that_are_near_each_other() -> None:
    """Their median is then one of the two, from which the other one does not differ."""
    rows = made("chain", lambda ranks, size: (1 + size / 9e3) * ranks, [2, 47, 48], noise=0.005)
    assert "times do not depend on ranks" not in found(rows)


def test_the_first_ranks_on_a_second_node() -> None:
    """A message over slow Ethernet takes some hundred times as long as one within a node, and so does the last number of ranks."""
    rows = made(
        "binomial", lambda ranks, size: (0.2 if ranks <= 24 else 60) * (1 + size / 500), [12, 24, 48], [1, 32, 1024]
    )
    assert "unit of the times" not in found(rows)
    rows = made(
        "binomial", lambda ranks, size: (0.2 if ranks <= 12 else 60) * (1 + size / 500), [6, 12, 24], [1, 32, 1024]
    )
    assert "unit of the times" in found(rows)


def test_an_algorithm_that_the_default_mostly_runs() -> None:
    """Reductions by the default are binomial up to some size: only the others show whether binomial ones were forced."""

    def us(ranks: int, size: int) -> float:
        return (0.4 + size / 9e3) * math.log2(ranks)

    def default(ranks: int, size: int) -> float:
        return us(ranks, size) * (0.6 if size == 2**20 else 1)

    ranks = [8, 12, 16, 20, 24, 28, 32, 48]
    rows = given(made("binomial", us, ranks) + made("default", default, ranks), collective="reduce")
    assert "wrong algorithm" not in found(rows)


def test_a_second_source_that_is_slower_throughout() -> None:
    """Of a tree, times at half the ranks are as much shorter as those of the faster source; these are not its ranks."""

    def us(ranks: int, size: int) -> float:
        return (1 + size / 9e3) * (math.log2(ranks) + 1)

    ranks = (4, 8, 16, 32, 48)
    rows = made("binomial", us, ranks, source="one") + made(
        "binomial", lambda *of: 1.2 * us(*of), ranks, source="two", seed=2
    )
    findings = found(rows)
    assert "processes" not in findings and "sources disagree" in findings


def test_sources_with_few_common_cells_that_disagree() -> None:
    part = [row for row in sound("one") if row["processes"] in (8, 24) and row["size_bytes"] in (64, 4096, 2**18)]
    assert "sources disagree" not in found(part + given(part, source="two"))
    other = [row | {"source": "two"} | scaled(2.1)(row) for row in part]
    (finding,) = found(part + other)["sources disagree"]
    assert finding.where == "one and two: bcast" and "48 cells" in finding.found


@pytest.mark.parametrize(
    ("version", "checked"), [("4.1.6", True), ("unknown", True), ("4.1.5 and 4.1.6", True), ("5.0.3", False)]
)
def test_the_default_of_another_version(version: str, checked: bool) -> None:
    """Open MPI 5's default runs coll/han on several nodes, not what the tables of 4.1 name."""
    rows = sound(algorithms=("binomial", "binary_tree", "chain"))
    default = given(sound(seed=3, algorithms=("chain",)), algorithm="default")
    findings = found(rows + default, mpi="Open MPI", version=version)
    assert any("exchanged" in finding.found for finding in findings["wrong algorithm"]) == checked


def test_a_launch_that_is_much_faster_than_its_neighbours() -> None:
    """A time that is too small makes its algorithm the best."""
    fast = changed(sound(), only(algorithm="chain", mapping="node", processes=16, size_bytes=4096), scaled(0.2))
    assert accused(fast, "outlier").keys() == {"bcast chain, by node"}


def test_barriers_of_two_ranks() -> None:
    """A double ring is four messages, two of them synchronous; recursive doubling is one (THIN: 4.86 and 1.06 us)."""
    where = {"ranks": range(2, 49, 2), "sizes": [None], "mapping": "node", "collective": "barrier"}
    rows = made("double_ring", lambda ranks, size: 2.43 * ranks, **where)
    rows += made("recursive_doubling", lambda ranks, size: 1.06 * math.log2(ranks), **where)
    assert "placed on a single node" not in found(rows)


def test_a_default_that_runs_other_algorithms_on_more_ranks_or_for_the_smallest_size() -> None:
    """Open MPI 4.1 runs alltoall of 16 to 31 ranks by linear_sync up to 3 B, and by bruck above."""
    rows = made(
        "default",
        lambda ranks, size: (5 if size == 1 else 2) * (1 + size / 500) * ranks,
        [16, 18, 20, 24],
        [8**k for k in range(8)],
    )
    assert "noise" not in found(given(rows, collective="alltoall"))
    assert "noise" in found(given(rows, collective="alltoall", algorithm="linear"))
    falling = made("default", lambda ranks, size: (1 + size / 1e3) * 500 / ranks, range(4, 25, 2))
    assert "processes" not in found(falling)
    assert "processes" in found(given(falling, algorithm="linear"))


def test_a_slow_launch_in_a_series_with_steps() -> None:
    """Where another protocol makes times jump, no series is quiet, but the neighbours of a small message agree."""
    steps = made(
        "pipeline",
        lambda ranks, size: ranks * (1 + size / 1e4) * 2 ** (ranks * (size > 2**14) / 8),
        [2, 4, 8, 16, 32],
        noise=0.03,
    )
    assert "outlier" not in found(steps)
    slow = changed(steps, only(processes=16, size_bytes=8), lambda row: {"latency_us": 60 * row["latency_us"]})
    assert accused(slow, "outlier").keys() == {"bcast pipeline, by core"}
