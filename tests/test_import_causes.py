"""Import checks name the cause of a fault, and not what follows from it; each is tested as it was found in data of unseen authors."""

from __future__ import annotations

import math

import pytest
from made_rows import ALGORITHMS, SIZES, Rows, changed, found, given, made, only, scaled, sound


def test_a_source_whose_times_are_those_of_another_times_a_constant() -> None:
    """A table of all sizes that was made from the measured one."""
    one = sound("one")
    findings = found(
        one + [row | scaled(0.75)(row) for row in given(one, source="two", path="/two.csv", file="two.csv")]
    )
    assert len(findings["constant ratio"]) == 2 * len(ALGORITHMS)
    assert all("0.75" in finding.found or "1.333" in finding.found for finding in findings["constant ratio"])


def test_a_constant_factor_between_sources_does_not_contradict_a_label() -> None:
    """Two algorithms of a source are equal, and both are 0.75 times those of the other source."""
    one = sound("one", 1, ("linear", "binomial")) + given(sound("one", 2, ("binomial",)), algorithm="chain")
    two = [row | scaled(0.75)(row) | {"source": "two", "path": "/two.csv", "file": "two.csv"} for row in one]
    assert {finding.confidence for finding in found(one + two)["wrong algorithm"]} == {"likely"}


def flat(rows: Rows) -> Rows:
    """Return rows whose sizes all have the times of the smallest one, as of a script that always prints the first line of the output."""
    first = {(r["algorithm"], r["mapping"], r["processes"]): r for r in rows if r["size_bytes"] == 1}
    times = ("latency_us", "min_latency_us", "max_latency_us")
    return changed(
        rows, lambda row: True,
        lambda row: {name: first[row["algorithm"], row["mapping"], row["processes"]][name] for name in times},
    )  # fmt: skip


def test_sizes_that_were_not_sent_are_one_cause() -> None:
    """Labels, units and limits are not judged by times of other sizes."""
    assert found(flat(sound())).keys() == {"times do not depend on size", "equal digit by digit"}
    alike = given(sound(seed=2, algorithms=("binomial",)), algorithm="chain")
    faulty = flat(alike + sound(algorithms=("binomial",)))
    assert found(faulty).keys() == {"times do not depend on size", "equal digit by digit"}


def small(algorithm: str, seed: int, collective: str = "bcast") -> Rows:
    return made(algorithm, lambda ranks, _: 0.2 * math.log2(ranks), range(2, 49), [1], seed=seed, collective=collective)


def test_algorithms_that_are_all_as_the_default() -> None:
    """The variable of another collective was set."""
    rows = small("default", 1) + small("pipeline", 2) + small("binary_tree", 3)
    (finding,) = found(rows)["wrong algorithm"]
    assert finding.where == "bcast binary_tree and bcast pipeline"
    assert (
        "the choice of the algorithm had no effect" in finding.found and "the default's are the same" in finding.found
    )
    (finding,) = found(small("pipeline", 2) + small("binary_tree", 3))["wrong algorithm"]
    assert "one of the two labels is wrong" in finding.found


def test_small_messages_alone_are_a_possible_finding() -> None:
    """Even if one of the two algorithms was measured with large messages, too."""
    large = made("linear", lambda ranks, size: 0.3 * ranks + size / 1e3, range(2, 49), SIZES[1:], collective="gather")
    findings = found(small("linear", 1, "gather") + large + small("binomial", 2, "gather"))
    assert [finding.confidence for finding in findings["wrong algorithm"]] == ["possible"]


def test_a_disturbed_number_of_ranks_is_no_growth() -> None:
    linear = made("linear", lambda ranks, _: 3.0 * ranks, range(4, 25, 4), [None], collective="barrier")
    assert "wrong algorithm" not in found(linear)
    disturbed = changed(linear, only(processes=4), lambda row: {"latency_us": 300.0})
    assert "wrong algorithm" not in found(disturbed)


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_another_unit_is_no_other_number_of_ranks(factor: float) -> None:
    rows = changed(sound(), only(algorithm="chain"), scaled(factor))
    findings = found(rows)
    assert "unit of the times" in findings and "processes" not in findings


def test_a_smallest_size_of_another_job() -> None:
    """Its files have that size alone: the first calls of a job were not measured with it."""
    slow = changed(sound(), only(size_bytes=1), scaled(2.5))
    assert "noise" in found(slow)
    elsewhere = changed(slow, only(size_bytes=1), lambda row: {"path": "/fixed.csv", "file": "fixed.csv"})
    (finding,) = [one for one in found(elsewhere)["noise"] if "chain, by core" in one.where]
    assert "in other files (fixed.csv)" in finding.found and "first calls" not in finding.found


def test_a_pipeline_that_is_faster_than_a_tree() -> None:
    """A small message passes all ranks of a pipeline one after the other."""

    def us(depth: float) -> float:
        return 0.3 * depth

    pipeline = made("pipeline", lambda ranks, size: us(ranks - 1) + size / 1e4)
    tree = made("binary_tree", lambda ranks, size: us(2 * math.log2(ranks)) + size / 1e4)
    swapped = given(pipeline, algorithm="binary_tree") + given(tree, algorithm="pipeline")
    assert "wrong algorithm" not in found(pipeline + tree)
    (finding,) = [one for one in found(swapped)["wrong algorithm"] if "exchanged" in one.found]
    assert finding.where == "bcast binary_tree and bcast pipeline, by core"
