"""Import checks: each is tested on data with its fault and on sound data."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from collstudy.sources.importing.checking.agreement import agreement_of
from made_rows import ALGORITHMS, SIZES, Rows, accused, changed, depth, found, given, made, only, scaled, series, sound


def test_sound_data_are_not_accused() -> None:
    assert found(sound()) == {}
    assert found(sound("one", 1) + sound("two", 2), {"third": sound("three", 3)}) == {}


def test_a_name_that_a_second_source_contradicts() -> None:
    label = given(sound("one", 2, ("binomial",)), algorithm="chain")
    one = sound("one", 1, ("linear", "binomial", "binary_tree")) + label
    findings = found(one + sound("two", 3))["wrong algorithm"]
    assert ("one: bcast chain", "certain") in {(finding.where, finding.confidence) for finding in findings}
    assert all("two: bcast" not in finding.where for finding in findings)


def test_a_linear_broadcast_that_grows_like_a_tree() -> None:
    alone = given(sound(algorithms=("binomial",)), algorithm="linear")
    (finding,) = found(alone)["wrong algorithm"]
    assert finding.where == "bcast linear" and "is at least 0.65" in finding.found


def barriers(exponent: float, algorithm: str, mapping: str = "core", noise: float = 0.03) -> Rows:
    """Return barriers whose time grows with this power of the number of ranks."""
    return made(
        algorithm, lambda ranks, size: 0.2 * ranks**exponent, range(2, 49), [None], mapping, noise=noise, collective="barrier"
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["linear", "double_ring"])
def test_a_barrier_that_grows_like_a_tree(algorithm: str) -> None:
    """The option for another collective was given, so that the default ran."""
    (finding,) = found(barriers(0.5, algorithm))["wrong algorithm"]
    assert finding.where == f"barrier {algorithm}"
    assert (
        finding.found.startswith("the time grows with")
        and f"of a {algorithm} barrier is at least 0.65" in finding.found
    )
    assert found(barriers(0.95, algorithm)) == {} and found(barriers(0.5, "tree")) == {}
    few = [
        row | {"latency_us": 1 + 0.05 * row["processes"]} for row in barriers(1, algorithm) if row["processes"] <= 12
    ]
    assert found(few) == {}
    # By node, the network dominates.
    assert "wrong algorithm" not in found(barriers(0.4, algorithm, "node"))


def test_a_mapping_that_never_left_the_node() -> None:
    rest = [row for row in sound() if (row["algorithm"], row["mapping"]) != ("chain", "node")]
    stayed = [row | {"mapping": "node"} for row in sound(seed=5, algorithms=("chain",)) if row["mapping"] == "core"]
    (finding,) = found(rest + stayed)["placed on a single node"]
    assert (finding.where, finding.confidence) == ("bcast chain, by node", "certain")


@pytest.mark.parametrize(("latency", "what"), [(1e-3, "outside their"), (1.17, "cannot be means over ranks")])
def test_means_that_cannot_be(latency: float, what: str) -> None:
    faulty = changed(
        sound(), lambda row: row["algorithm"] == "chain" and row["size_bytes"] > 2**14 and row["processes"] == 4,
        lambda row: {"latency_us": row["latency_us"] * latency},
    )  # fmt: skip
    findings = accused(faulty, "mean, minimum and maximum")
    assert findings and findings.keys() <= series("chain") and all(what in text for text in findings.values())


def test_times_that_do_not_depend_on_size() -> None:
    rng = random.Random(3)
    faulty = changed(sound(), only(algorithm="chain"), lambda row: {
        "latency_us": (us := round(row["processes"] * rng.gauss(1, 0.05), 2)), "min_latency_us": us / 2, "max_latency_us": us * 1.5,
    })  # fmt: skip
    assert accused(faulty, "times do not depend on size").keys() == series("chain")


@pytest.mark.parametrize(
    ("part", "where"),
    [
        (lambda row: row["mapping"] == "node", "bcast binomial and bcast chain, by node"),
        (
            lambda row: row["mapping"] == "core" and row["processes"] >= 26,
            "bcast binomial and bcast chain, by core, 26 to 48 ranks",
        ),
    ],
)
def test_a_label_that_is_wrong_in_part(part: Callable[[dict[str, Any]], bool], where: str) -> None:
    again = [row | {"algorithm": "chain"} for row in sound(seed=2, algorithms=("binomial",)) if part(row)]
    faulty = [row for row in sound() if row["algorithm"] != "chain" or not part(row)] + again
    assert [finding.where for finding in found(faulty)["wrong algorithm"]] == [where]


def test_algorithms_that_send_the_same_small_messages_are_not_accused() -> None:
    again = given(sound(seed=2, algorithms=("linear",)), algorithm="linear_nb")
    rows = given(sound(algorithms=("linear", "binomial")) + again, collective="scatter")
    assert found(rows) == {}


def test_a_slow_network_and_noise_are_not_accused() -> None:
    """A cluster with Gigabit Ethernet, and times of which a third is noise, with few rank counts and sizes."""
    rng = random.Random(7)

    def ethernet(row: dict[str, Any]) -> dict[str, Any]:
        if row["mapping"] == "core" and row["processes"] <= 24:
            return {}
        us = row["latency_us"] + (60 + row["size_bytes"] / 110) * depth(row["algorithm"], row["processes"]) * rng.gauss(
            1, 0.02
        )
        return {"latency_us": us, "min_latency_us": None, "max_latency_us": None}

    assert found([row | ethernet(row) for row in sound()]) == {}
    noisy = [row | scaled(math.exp(rng.gauss(0, 0.3)))(row) for row in sound()]
    assert found(noisy) == {}
    few = [row for row in noisy if row["processes"] in (16, 32, 48) and row["size_bytes"] in (1, 1024, 2**20)]
    assert found(few) == {}


def test_a_label_that_is_wrong_at_every_second_number_of_ranks() -> None:
    """The affected rank counts need not be consecutive: jobs of one script were forced to another algorithm."""

    def wrong(row: dict[str, Any]) -> bool:
        return row["mapping"] == "core" and row["processes"] % 4 == 0

    again = [row | {"algorithm": "chain"} for row in sound(seed=2, algorithms=("binomial",)) if wrong(row)]
    faulty = [row for row in sound() if row["algorithm"] != "chain" or not wrong(row)] + again
    (finding,) = found(faulty)["wrong algorithm"]
    assert finding.where.startswith("bcast binomial and bcast chain, by core, at 1") and "(8, ..., 48)" in finding.where


def test_two_trees_whose_times_cross_in_a_scan_of_ranks() -> None:
    """In a scan of all numbers of ranks, some successive ones are near where the times of two algorithms cross."""
    scanned = {"ranks": range(2, 49), "noise": 0.01, "seed": 5}
    rows = made("chain", lambda ranks, size: (1 + size / 15000) * (ranks / 5 + 2.4), **scanned)
    rows += made("binary_tree", lambda ranks, size: (1 + size / 15000) * 1.4 * math.log2(ranks + 1), **scanned)
    assert "wrong algorithm" not in found(rows)


def test_two_trees_on_few_ranks() -> None:
    """Up to 16 ranks, trees may be as deep as each other."""
    few = [row for row in sound(algorithms=("linear", "binomial", "binary_tree")) if row["processes"] <= 16]
    again = given([row for row in sound(seed=2, algorithms=("binomial",)) if row["processes"] <= 16], algorithm="chain")
    (finding,) = found(few + again)["wrong algorithm"]
    assert finding.confidence == "possible" and "both take as long at these" in finding.found


def test_one_number_of_ranks_with_few_sizes_and_a_disturbed_one() -> None:
    """One cell of three is no evidence that times do not depend on the size."""
    rows = [row for row in sound() if row["size_bytes"] in (1, 1024, 2**20)]
    of = {(row["algorithm"], row["mapping"], row["processes"], row["size_bytes"]): row for row in rows}
    disturbed = changed(
        rows, lambda row: row["processes"] == 16 and row["size_bytes"] < 2**20,
        lambda row: scaled(0.8)(of[row["algorithm"], row["mapping"], 16, 2**20]),
    )  # fmt: skip
    assert "times do not depend on size" not in found(disturbed)


def test_small_messages_alone_do_not_tell_trees_apart() -> None:
    again = given(sound(seed=2, algorithms=("binomial",)), algorithm="binary_tree")
    rows = sound(algorithms=("linear", "binomial")) + again
    assert found([row for row in rows if row["size_bytes"] <= 64]) == {}
    assert "wrong algorithm" in found(rows)


@pytest.mark.parametrize("field", ["processes", "size_bytes"])
def test_rows_that_are_one_off_beside_a_second_source(field: str) -> None:
    following = {size: size * 2 for size in SIZES} if field == "size_bytes" else {n: n + 2 for n in range(2, 48, 2)}
    two = [
        row | ({field: following[row[field]]} if row["algorithm"] == "chain" else {}) for row in sound("two", 2)
        if row["algorithm"] != "chain" or row[field] in following
    ]  # fmt: skip
    findings = found(sound("one") + two)["processes" if field == "processes" else "sizes"]
    assert {finding.where for finding in findings} >= {"bcast chain, by core: one and two"}
    assert all("chain" in finding.where for finding in findings)
    assert all("shifted by a row" in finding.found for finding in findings if "one and two" in finding.where)


def test_numbers_of_ranks_that_belong_to_the_row_before() -> None:
    following = {n: n + 2 if n < 48 else 2 for n in range(2, 49, 2)}
    faulty = changed(sound(), only(algorithm="linear"), lambda row: {"processes": following[row["processes"]]})
    assert accused(faulty, "processes").keys() == series("linear")


def test_rows_that_were_not_used() -> None:
    problems = {
        "rows whose latency_us is negative (first: a.csv, line 3)": 2,
        "files without the column Max (first: b.csv)": 1,
    }
    (finding,) = found(sound(), problems=problems)["values"]
    said = (finding.where, finding.found, finding.action)
    assert said == ("a.csv, line 3", "2 rows whose latency_us is negative", "not used")


def test_noise() -> None:
    rng = random.Random(2)
    faulty = changed(sound(), lambda row: row["algorithm"] == "chain" and rng.random() < 0.05, scaled(20))
    assert accused(faulty, "noise").keys() == series("chain")


def test_sources_that_disagree_and_what_is_left_out() -> None:
    two = changed(sound("two", 2), only(algorithm="chain"), scaled(1.5))
    disagreeing = {f"{name}: one and two" for name in series("chain")}
    assert accused(sound("one", 1) + two, "sources disagree").keys() == disagreeing
    left = changed(two, only(algorithm="chain"), lambda _: {"left_out": "the node was shared"})
    assert {finding.action for finding in found(sound("one", 1) + left)["sources disagree"]} == {
        "left out by the study: the node was shared"
    }


def test_agreement_of_two_sources() -> None:
    rows = agreement_of(sound("one", 1) + sound("two", 2))
    assert len(rows) == 8 and {row["cells"] for row in rows} == {24 * 21}
    # Two normal deviates of 1.5 %: the median of their absolute difference is 0.6745 x sqrt(2) x 1.5 %.
    assert all(row["median_abs_difference_pct"] == pytest.approx(1.43, abs=0.25) for row in rows)


@pytest.mark.parametrize("factor", [2, 0.5])
def test_agreement_does_not_depend_on_which_source_is_slower(factor: float) -> None:
    rows = agreement_of(sound("one", 1) + changed(sound("two", 1), lambda row: True, scaled(factor)))
    assert rows and all(row["median_abs_difference_pct"] == pytest.approx(100, abs=2) for row in rows)


def timed_on_48(factor: float, noise: float, kept: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the *kept* rows with the times of the same cells on 48 ranks, times *factor* and noise."""
    rng = random.Random(5)
    all_of = {(r["algorithm"], r["mapping"], r["size_bytes"]): r for r in sound() if r["processes"] == 48}
    timed = [(row, all_of[row["algorithm"], row["mapping"], row["size_bytes"]]) for row in sound() if kept(row)]
    return [row | scaled(factor * rng.gauss(1, noise))(of_all) for row, of_all in timed]


def test_launches_that_all_had_the_same_number_of_ranks() -> None:
    """The script passed the job's number of ranks to mpirun instead of the loop's."""
    faulty = timed_on_48(10, 0.015, lambda row: row["mapping"] == "core")
    assert accused(faulty, "times do not depend on ranks").keys() == series(*ALGORITHMS, mappings=("core",))
    assert "unit of the times" not in found(faulty)


def test_few_numbers_of_ranks_beside_others_that_had_no_effect() -> None:
    """The same script measured one algorithm with two rank counts only; without the others, two counts show nothing."""
    few = {"linear": (2, 4)}
    faulty = timed_on_48(
        30, 0.01, lambda row: row["mapping"] == "core" and row["processes"] in few.get(row["algorithm"], range(49))
    )
    findings = found(faulty)
    few = {finding.where: finding.confidence for finding in findings.pop("times do not depend on ranks")}
    assert few.pop("bcast linear, by core") == "likely" and set(few.values()) == {"certain"} and len(few) == 3
    assert "unit of the times" not in findings
    alone = found([row for row in faulty if row["algorithm"] == "linear"])
    assert "times do not depend on ranks" not in alone and "unit of the times" in alone


@pytest.mark.parametrize(("factor", "expected"), [(1, set()), (1.4, {"bcast chain, by core"})])
def test_files_of_two_machines_in_one_study(factor: float, expected: set[str]) -> None:
    """Results of two machines with the same columns and algorithms, imported for one of them."""
    second = [
        row | scaled(factor)(row) | {"path": "/thin.csv", "file": "thin.csv", "launch": 2}
        for row in sound(seed=2, algorithms=("chain",)) if row["mapping"] == "core"
    ]  # fmt: skip
    assert accused(sound() + second, "files disagree").keys() == expected


def ring(source: str = "", latency: float = 1.9, seed: int = 3) -> Rows:
    """Return a ring allreduce: twice as many steps as ranks, each with a latency, and pieces of the message."""
    rng = random.Random(seed)
    rows = sound(source, algorithms=("linear",))
    return [
        row | {"algorithm": "ring", "collective": "allreduce"} | scaled(us * rng.gauss(1, 0.05) / row["latency_us"])(row)
        for row in rows if row["mapping"] == "node"
        for us in [2 * (row["processes"] - 1) * (latency + row["size_bytes"] / row["processes"] / 12000)]
    ]  # fmt: skip


def test_rings_of_many_ranks_are_not_accused() -> None:
    """Their time is that of their many small messages, up to large sizes."""
    assert "times do not depend on size" not in found(ring())
    assert "times do not depend on size" in found([row for row in ring(latency=90) if row["processes"] <= 16])


def test_one_number_of_ranks_whose_times_do_not_depend_on_size() -> None:
    faulty = changed(
        sound(), only(algorithm="chain", mapping="core", processes=32),
        lambda row: scaled(7 / row["latency_us"])(row),
    )  # fmt: skip
    (finding,) = found(faulty)["times do not depend on size"]
    assert finding.where == "bcast chain, by core" and "at 32 ranks" in finding.found


def test_ranks_by_node_that_fit_on_one_node() -> None:
    """Rows whose number of nodes is one had no second node to go to."""
    core = [row | {"nodes": 1} for row in sound(algorithms=("chain",)) if row["mapping"] == "core"]
    again = [
        row | {"nodes": 1, "mapping": "node"}
        for row in sound(seed=2, algorithms=("chain",))
        if row["mapping"] == "core"
    ]
    within = [row for row in core + again if row["processes"] <= 24]
    assert "placed on a single node" not in found(within)
    assert "placed on a single node" in found(given(within, nodes=2))


def test_launches_that_disagree_are_one_finding() -> None:
    """Also if there are many; the file that differs from all others is named."""
    for slow, pairs in (((3,), 5), ((3, 4), 8)):
        launches = [
            row | {"launch": k, "path": f"/run{k}.csv"} | (scaled(2)(row) if k in slow else {})
            for k in range(1, 7) for row in sound(seed=k, algorithms=("chain",)) if row["mapping"] == "core"
        ]  # fmt: skip
        (finding,) = found(launches)["files disagree"]
        assert f"{pairs - 1} more pairs differ" in finding.found
        assert finding.found.endswith("run3.csv is one of each pair") == (len(slow) == 1)


def test_files_of_the_same_name_are_named_with_their_folders() -> None:
    launches = [
        row | {"launch": k, "path": f"/{folder}/run.csv"} | (scaled(2)(row) if k == 2 else {})
        for k, folder in ((1, "physical"), (2, "virtual")) for row in sound(seed=k, algorithms=("chain",)) if row["mapping"] == "core"
    ]  # fmt: skip
    (finding,) = found(launches)["files disagree"]
    assert finding.found.startswith("the times of physical/run.csv and virtual/run.csv differ by 99.9 %")


def scan(algorithm: str, exponent: float, ranks: range = range(2, 49), seed: int = 5, noise: float = 0.1) -> Rows:
    """Return broadcasts of 4 bytes, as of a script that scans numbers of ranks."""
    return made(algorithm, lambda ranks, size: 0.3 * ranks**exponent, ranks, [4], noise=noise, seed=seed)


@pytest.mark.parametrize("ranks", [range(2, 49), range(12, 61, 2)])
def test_an_outlier_in_a_short_scan_of_ranks(ranks: range) -> None:
    """One size at 47 or 25 numbers of ranks."""
    rows = scan("chain", 0.7, ranks)
    assert found(rows) == {}
    (finding,) = found(changed(rows, only(processes=30), lambda row: {"latency_us": 20 * row["latency_us"]}))["outlier"]
    assert finding.confidence == "likely" and "30 ranks, 4 bytes" in finding.found


def test_one_sender_that_is_a_tree_in_a_scan_of_ranks() -> None:
    """Of small messages, trees resemble each other, but not a linear broadcast."""
    tree = scan("binary_tree", 0.6, noise=0.01)
    assert (
        found(tree + scan("binomial", 0.6, seed=6, noise=0.01))
        == {}
        == found(tree + scan("linear", 0.9, seed=6, noise=0.01))
    )
    (finding,) = found(tree + scan("linear", 0.6, seed=6, noise=0.01))["wrong algorithm"]
    assert (finding.where, finding.confidence) == ("bcast binary_tree and bcast linear", "possible")


@pytest.mark.parametrize(("least", "accused"), [(8, True), (1024, False)])
def test_small_messages_of_many_ranks_that_grow(least: int, accused: bool) -> None:
    """In an allgather of 1024 ranks, 64 bytes are 64 KiB; of 8 ranks, times do not grow like this."""
    ranks = (least, 2 * least, 4 * least)
    rows = made(
        "ring", lambda ranks, size: 10 + 1024 / least * ranks * size / 1000, ranks, noise=0, collective="allgather"
    )
    assert ("sizes" in found(rows)) is accused


@pytest.mark.parametrize(("slow", "accused"), [((), False), ((2,), False), ((2, 5), True)])
def test_launches_of_several_machines_in_a_file(slow: tuple[int, ...], accused: bool) -> None:
    """A single slow launch is an outlier."""
    rows = [
        row | {"launch": k} | (scaled(5)(row) if k in slow else {})
        for k in range(1, 7) for row in sound(seed=k, algorithms=("chain",)) if row["mapping"] == "core"
    ]  # fmt: skip
    findings = found(rows)
    assert ("launches disagree" in findings) is accused
    if accused:
        (finding,) = findings["launches disagree"]
        assert "form two groups more than 3 times apart" in finding.found and finding.where == "bcast chain, by core"
