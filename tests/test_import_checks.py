"""Import checks: each is tested on data with its fault and on sound data."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from collstudy.sources.importing import checks
from collstudy.sources.importing.labels import agreement_of
from collstudy.sources.importing.outliers import flag_outliers
from collstudy.sources.importing.series import Launches
from made_rows import MACHINE, SIZES, Rows, changed, depth, found, scaled, sound


def test_sound_data_are_not_accused() -> None:
    assert found(sound()) == {}
    assert found(sound("one", 1) + sound("two", 2), {"third": sound("three", 3)}) == {}


def test_one_algorithm_under_two_names() -> None:
    again = [row | {"algorithm": "chain"} for row in sound(seed=2, algorithms=("binomial",))]
    faulty = sound(algorithms=("linear", "binomial", "binary_tree")) + again
    (finding,) = found(faulty)["wrong algorithm"]
    assert (finding.where, finding.confidence) == ("bcast binomial and bcast chain", "likely")
    assert "other pairs of algorithms differ by" in finding.found


def test_a_name_that_a_second_source_contradicts() -> None:
    label = [row | {"algorithm": "chain"} for row in sound("one", 2, ("binomial",))]
    one = sound("one", 1, ("linear", "binomial", "binary_tree")) + label
    findings = found(one + sound("two", 3))["wrong algorithm"]
    assert ("one: bcast chain", "certain") in {(finding.where, finding.confidence) for finding in findings}
    assert all("two: bcast" not in finding.where for finding in findings)


def test_a_linear_broadcast_that_grows_like_a_tree() -> None:
    alone = [row | {"algorithm": "linear"} for row in sound(algorithms=("binomial",))]
    (finding,) = found(alone)["wrong algorithm"]
    assert finding.where == "bcast linear" and "is at least 0.65" in finding.found


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
    (where,) = {finding.where.split(",")[0] for finding in found(faulty)["mean, minimum and maximum"]}
    assert where == "bcast chain" and all(
        what in finding.found for finding in found(faulty)["mean, minimum and maximum"]
    )


def test_times_that_do_not_depend_on_size() -> None:
    rng = random.Random(3)
    faulty = changed(sound(), lambda row: row["algorithm"] == "chain", lambda row: {
        "latency_us": (us := round(row["processes"] * rng.gauss(1, 0.05), 2)), "min_latency_us": us / 2, "max_latency_us": us * 1.5,
    })  # fmt: skip
    assert {finding.where for finding in found(faulty)["times do not depend on size"]} == {
        "bcast chain, by core", "bcast chain, by node"
    }  # fmt: skip


def test_series_that_are_others_times_a_constant() -> None:
    rest = [row for row in sound() if row["algorithm"] != "binary_tree"]
    made_up = [row | {"algorithm": "binary_tree"} | scaled(1.37)(row) for row in rest if row["algorithm"] == "chain"]
    findings = found(rest + made_up)["constant ratio"]
    assert {finding.where for finding in findings} == {
        f"bcast binary_tree, by {mapping} and bcast chain, by {mapping}" for mapping in ("core", "node")
    }


def test_ranks_and_sizes_that_are_others_times_a_constant() -> None:
    first = {(r["algorithm"], r["mapping"], r["size_bytes"]): r for r in sound() if r["processes"] == 2}
    faulty = changed(
        sound(), lambda row: row["algorithm"] == "chain" and row["mapping"] == "core",
        lambda row: scaled(1.1 ** (row["processes"] / 2))(first[row["algorithm"], row["mapping"], row["size_bytes"]]),
    )  # fmt: skip
    assert {finding.where for finding in found(faulty)["constant ratio"]} == {"bcast chain, by core"}


def test_values_of_another_study_digit_by_digit() -> None:
    theirs = sound("theirs", 4)
    copied = [row | {"source": "ours", "path": "/ours.csv"} for row in theirs if row["algorithm"] == "chain"]
    (finding,) = found(sound("ours", 1, ("linear", "binomial")) + copied, {"published": theirs})["equal digit by digit"]
    assert finding.where == "ours: bcast chain" and "theirs: bcast chain of study published" in finding.found
    # The same file in two studies, and the same source, may be equal.
    assert found(sound("theirs", 4), {"published": theirs}) == {}


def printed(digits: int, decimals: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {
        "latency_us": round(float(f"{row['latency_us']:.{digits}g}"), decimals), "min_latency_us": None, "max_latency_us": None
    }  # fmt: skip


@pytest.mark.parametrize("rounded", [printed(3, 9), printed(9, 1)], ids=["three digits", "one decimal"])
def test_a_copy_with_fewer_digits(rounded: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    theirs = sound("theirs", 4)
    copied = [row | rounded(row) | {"source": "ours", "path": "/ours.csv"} for row in theirs]
    findings = found(copied, {"published": theirs})["equal digit by digit"]
    assert {finding.where for finding in findings} == {
        f"ours: bcast {name}" for name in ("linear", "chain", "binomial", "binary_tree")
    }
    # Other measurements with the same rounding are not reported.
    assert found([row | rounded(row) for row in sound("other", 9)], {"published": theirs}) == {}


def test_a_copy_of_single_launches_in_another_order() -> None:
    theirs = [row | {"launch": launch} for launch in (1, 2, 3) for row in sound("theirs", launch, ("chain",))]
    copied = [row | {"source": "ours", "path": "/ours.csv", "launch": 1} for row in theirs if row["launch"] == 2]
    rest = sound("ours", 8, ("linear",))
    (finding,) = found(rest + copied, {"published": theirs})["equal digit by digit"]
    assert finding.where == "ours: bcast chain"


def test_a_copy_of_some_numbers_of_ranks() -> None:
    theirs = sound("theirs", 4)
    ours = [row | {"source": "ours", "path": "/ours.csv"} for row in theirs if row["processes"] > 24]
    ours += [row for row in sound("ours", 5) if row["processes"] <= 24]
    assert len(found(ours, {"published": theirs})["equal digit by digit"]) == 4
    # Also of a single one.
    ours = [
        row | {"source": "ours", "path": "/ours.csv"}
        for row in theirs
        if (row["processes"], row["algorithm"]) == (32, "chain")
    ]
    ours += [row for row in sound("ours", 5) if (row["processes"], row["algorithm"]) != (32, "chain")]
    (finding,) = found(ours, {"published": theirs})["equal digit by digit"]
    assert finding.where == "ours: bcast chain" and "by core and core, at 32 ranks" in finding.found


def test_another_studys_series_times_a_constant() -> None:
    theirs = sound("theirs", 4, ("chain",))
    ours = [row | scaled(1.13)(row) | {"source": "ours", "path": "/ours.csv"} for row in theirs]
    findings = found(ours + sound("ours", 6, ("linear",)), {"published": theirs})["constant ratio"]
    assert {finding.where for finding in findings} == {
        f"ours: bcast chain, by {mapping}" for mapping in ("core", "node")
    }
    assert all("of study published is 1.13" in finding.found for finding in findings)


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
    again = [row | {"algorithm": "linear_nb"} for row in sound(seed=2, algorithms=("linear",))]
    rows = [row | {"collective": "scatter"} for row in sound(algorithms=("linear", "binomial")) + again]
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


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units_where_only_large_messages_were_measured(factor: float) -> None:
    rows = [row | scaled(factor)(row) for row in sound() if row["size_bytes"] >= 65536 and row["mapping"] == "core"]
    assert {finding.where for finding in found(rows).get("unit of the times", [])} == {
        f"bcast {name}, by core" for name in ("linear", "chain", "binomial", "binary_tree")
    }


def test_one_algorithm_in_another_unit() -> None:
    rows = [row for row in sound() if row["processes"] >= 40]
    faulty = changed(rows, lambda row: row["algorithm"] == "chain", scaled(1e3))
    assert {finding.where for finding in found(faulty)["unit of the times"]} == {
        f"bcast chain, by {mapping}" for mapping in ("core", "node")
    }


def test_large_messages_that_take_no_longer_than_larger_ones() -> None:
    rng = random.Random(3)
    large = [row for row in sound() if row["size_bytes"] >= 65536]
    faulty = changed(large, lambda row: row["algorithm"] == "chain", lambda row: {
        "latency_us": (us := 400 * rng.gauss(1, 0.05)), "min_latency_us": us / 2, "max_latency_us": us * 1.5,
    })  # fmt: skip
    assert "bcast chain, by node" in {finding.where for finding in found(faulty)["times do not depend on size"]}
    assert found(large) == {}


@pytest.mark.parametrize(("ranks", "size"), [(2, 1), (2, 2**20), (48, 1), (48, 2**20)])
def test_an_outlier_at_the_edge_of_the_grid(ranks: int, size: int) -> None:
    rows = [row for row in sound() if row["processes"] in (2, 8, 16, 24, 32, 48)]
    at = next(i for i, row in enumerate(rows) if (row["processes"], row["size_bytes"]) == (ranks, size))
    rows[at] = rows[at] | scaled(1000)(rows[at])
    assert [finding.check for finding in checks.check(rows, {}, MACHINE, {})] == ["outlier"]
    assert [row for row in rows if row.get("flag")] == [rows[at]]


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units(factor: float) -> None:
    faulty = changed(sound(), lambda row: row["algorithm"] == "chain", scaled(factor))
    assert {finding.where for finding in found(faulty)["unit of the times"]} == {
        "bcast chain, by core",
        "bcast chain, by node",
    }
    other = sound("one", 1) + [row | scaled(factor)(row) for row in sound("two", 2)]
    assert any(finding.confidence == "certain" for finding in found(other)["unit of the times"])


def test_sizes_of_another_unit() -> None:
    faulty = changed(
        sound(), lambda row: row["algorithm"] == "chain", lambda row: {"size_bytes": row["size_bytes"] / 1024}
    )
    (one, two) = found(faulty)["sizes"]
    assert one.where == "bcast chain, by core" and "multiplied by 1024 they are the sizes of the others" in two.found


def test_a_label_that_is_wrong_at_every_second_number_of_ranks() -> None:
    """The affected rank counts need not be consecutive: jobs of one script were forced to another algorithm."""

    def wrong(row: dict[str, Any]) -> bool:
        return row["mapping"] == "core" and row["processes"] % 4 == 0

    again = [row | {"algorithm": "chain"} for row in sound(seed=2, algorithms=("binomial",)) if wrong(row)]
    faulty = [row for row in sound() if row["algorithm"] != "chain" or not wrong(row)] + again
    (finding,) = found(faulty)["wrong algorithm"]
    assert finding.where.startswith("bcast binomial and bcast chain, by core, at 1") and "(8, ..., 48)" in finding.where


def test_small_messages_alone_do_not_tell_trees_apart() -> None:
    again = [row | {"algorithm": "binary_tree"} for row in sound(seed=2, algorithms=("binomial",))]
    rows = sound(algorithms=("linear", "binomial")) + again
    assert found([row for row in rows if row["size_bytes"] <= 64]) == {}
    assert "wrong algorithm" in found(rows)


@pytest.mark.parametrize("algorithms", [("chain",), ("linear", "chain", "binomial", "binary_tree")], ids=["one", "all"])
def test_sizes_in_kilobytes(algorithms: tuple[str, ...]) -> None:
    rows = [row for row in sound() if row["algorithm"] not in algorithms or row["size_bytes"] >= 1024]
    faulty = changed(
        rows, lambda row: row["algorithm"] in algorithms, lambda row: {"size_bytes": row["size_bytes"] // 1024}
    )
    findings = [finding for finding in found(faulty)["sizes"] if "not in bytes" in finding.found]
    assert {finding.where for finding in findings} == {
        f"bcast {name}, by {mapping}" for name in algorithms for mapping in ("core", "node")
    }


def test_one_fast_size_is_not_a_unit() -> None:
    """Single bytes take a special path that is five times as fast as all other small messages."""
    fast = changed(sound(), lambda row: row["size_bytes"] == 1, scaled(0.2))
    assert "sizes" not in found(fast)


def test_sizes_that_nothing_shares_are_not_accused() -> None:
    rng = random.Random(4)
    sizes = {name: rng.sample(range(1, 2**18), 5) for name in ("linear", "chain", "binomial", "binary_tree")}
    rows = [row | {"size_bytes": sizes[row["algorithm"]][int(math.log2(row["size_bytes"])) // 4]} for row in sound()
            if math.log2(row["size_bytes"]) % 4 == 0 and row["size_bytes"] < 2**20]  # fmt: skip
    assert "sizes" not in found(rows)


@pytest.mark.parametrize("field", ["processes", "size_bytes"])
def test_rows_that_are_one_off_beside_a_second_source(field: str) -> None:
    following = {size: size * 2 for size in SIZES} if field == "size_bytes" else {n: n + 2 for n in range(2, 48, 2)}
    two = [
        row | ({field: following[row[field]]} if row["algorithm"] == "chain" else {}) for row in sound("two", 2)
        if row["algorithm"] != "chain" or row[field] in following
    ]  # fmt: skip
    findings = found(sound("one") + two)["processes" if field == "processes" else "sizes"]
    assert {finding.where for finding in findings} >= {"bcast chain, by core: one and two"}
    assert all("chain" in finding.where and "shifted by a row" in finding.found for finding in findings)


def test_numbers_of_ranks_that_belong_to_the_row_before() -> None:
    following = {n: n + 2 if n < 48 else 2 for n in range(2, 49, 2)}
    faulty = changed(
        sound(), lambda row: row["algorithm"] == "linear", lambda row: {"processes": following[row["processes"]]}
    )
    assert {finding.where for finding in found(faulty)["processes"]} == {
        "bcast linear, by core", "bcast linear, by node"
    }  # fmt: skip


def test_rows_that_were_not_used() -> None:
    problems = {
        "rows whose latency_us is negative (first: a.csv, line 3)": 2,
        "files without the column Max (first: b.csv)": 1,
    }
    (finding,) = found(sound(), problems=problems)["values"]
    assert (finding.where, finding.found, finding.action) == (
        "a.csv, line 3",
        "2 rows whose latency_us is negative",
        "not used",
    )


def test_outliers_are_kept_and_flagged() -> None:
    rows = sound()
    index = next(
        i for i, row in enumerate(rows) if (row["processes"], row["size_bytes"], row["mapping"]) == (20, 64, "core")
    )
    rows[index] = rows[index] | scaled(1000)(rows[index])
    findings = found(rows)
    assert list(findings) == ["outlier"] and "kept and flagged" in findings["outlier"][0].action
    assert [row for row in rows if row.get("flag")] == [rows[index]]
    assert max(row["median_abs_difference_pct"] for row in agreement_of(rows + sound("two", 2))) < 5


def test_noise() -> None:
    rng = random.Random(2)
    faulty = changed(sound(), lambda row: row["algorithm"] == "chain" and rng.random() < 0.05, scaled(20))
    assert {finding.where for finding in found(faulty)["noise"]} == {"bcast chain, by core", "bcast chain, by node"}


def test_sources_that_disagree_and_what_is_left_out() -> None:
    two = changed(sound("two", 2), lambda row: row["algorithm"] == "chain", scaled(1.5))
    findings = found(sound("one", 1) + two)
    assert {finding.where for finding in findings["sources disagree"]} == {
        "bcast chain, by core: one and two", "bcast chain, by node: one and two"
    }  # fmt: skip
    left = changed(two, lambda row: row["algorithm"] == "chain", lambda _: {"left_out": "the node was shared"})
    assert {finding.action for finding in found(sound("one", 1) + left)["sources disagree"]} == {
        "left out by the study: the node was shared"
    }


def test_agreement_of_two_sources() -> None:
    rows = agreement_of(sound("one", 1) + sound("two", 2))
    assert len(rows) == 8 and {row["cells"] for row in rows} == {24 * 21}
    # Two normal deviates of 1.5 %: the median of their absolute difference is 0.6745 x sqrt(2) x 1.5 %.
    assert all(row["median_abs_difference_pct"] == pytest.approx(1.43, abs=0.25) for row in rows)


def test_launches_that_all_had_the_same_number_of_ranks() -> None:
    """The script passed the job's number of ranks to mpirun instead of the loop's."""
    rng = random.Random(5)
    all_of = {(r["algorithm"], r["mapping"], r["size_bytes"]): r for r in sound() if r["processes"] == 48}
    faulty = [
        row | scaled(10 * rng.gauss(1, 0.015))(all_of[row["algorithm"], row["mapping"], row["size_bytes"]])
        for row in sound() if row["mapping"] == "core"
    ]  # fmt: skip
    findings = found(faulty)
    assert {finding.where for finding in findings.pop("times do not depend on ranks")} == {
        f"bcast {name}, by core" for name in ("linear", "chain", "binomial", "binary_tree")
    }
    assert "unit of the times" not in findings


def test_few_numbers_of_ranks_beside_others_that_had_no_effect() -> None:
    """The same script measured one algorithm with two rank counts only; without the others, two counts show nothing."""
    rng = random.Random(5)
    all_of = {(r["algorithm"], r["mapping"], r["size_bytes"]): r for r in sound() if r["processes"] == 48}
    faulty = [
        row | scaled(30 * rng.gauss(1, 0.01))(all_of[row["algorithm"], row["mapping"], row["size_bytes"]])
        for row in sound()
        if row["mapping"] == "core" and (row["algorithm"] != "linear" or row["processes"] in (2, 4))
    ]
    findings = found(faulty)
    few = {finding.where: finding.confidence for finding in findings.pop("times do not depend on ranks")}
    assert few.pop("bcast linear, by core") == "likely" and set(few.values()) == {"certain"} and len(few) == 3
    assert "unit of the times" not in findings
    alone = found([row for row in faulty if row["algorithm"] == "linear"])
    assert "times do not depend on ranks" not in alone and "unit of the times" in alone


def barriers(slow: float, rest: float = 1) -> list[dict[str, Any]]:
    """Return barriers of a busy node: double_ring takes 22 us with 2 ranks and 890 us with 8, the others a few us."""
    took = {
        "default": {2: 363, 4: 52, 8: 14, 12: 532, 16: 17, 24: 712},
        "linear": {2: 351, 4: 50, 8: 59, 12: 95, 16: 118, 24: 259},
        "double_ring": {2: 22, 4: 259, 8: 887, 12: 1540, 16: 2208, 24: 3915},
    }
    (any_row,) = sound()[:1]
    return [
        any_row | {"collective": "barrier", "algorithm": name, "mapping": "core", "processes": ranks, "size_bytes": None}
        | {"latency_us": us * (slow if name == "double_ring" else rest), "min_latency_us": None, "max_latency_us": None}
        for name, of in took.items() for ranks, us in of.items()
    ]  # fmt: skip


def test_a_slow_algorithm_beside_others_whose_unit_is_known_is_not_accused() -> None:
    """A barrier of 14 us cannot be one of 14 ns, and the slow algorithm of the same source takes five times as long, not thousands."""
    assert "unit of the times" not in found(barriers(1))
    for slow, rest in ((1e3, 1), (1e3, 1e3)):
        assert "bcast" not in str(findings := found(barriers(slow, rest))["unit of the times"])
        assert "barrier double_ring, by core" in {finding.where for finding in findings}
    # Without the others, it cannot be distinguished from another unit.
    assert "unit of the times" in found([row for row in barriers(1) if row["algorithm"] == "double_ring"])


def test_few_ranks_that_were_disturbed_are_no_other_unit() -> None:
    slow = changed(sound(), lambda row: row["processes"] <= 4 and row["mapping"] == "core", scaled(400))
    assert "unit of the times" not in found(slow)


def test_a_cell_that_is_slow_in_every_launch_is_not_an_outlier() -> None:
    """An effect of the library or the machine, such as a protocol at one number of ranks."""
    rows = [row | {"launch": launch} for launch in (1, 2, 3) for row in sound(seed=launch)]
    faulty = changed(
        rows, lambda row: (row["algorithm"], row["processes"], row["size_bytes"]) == ("chain", 20, 64), scaled(1000)
    )
    assert "outlier" not in found(faulty)
    faulty[0] = faulty[0] | scaled(1000)(faulty[0])
    assert len(found(faulty)["outlier"]) == 1


def test_algorithms_that_are_all_equal_are_one_finding() -> None:
    algorithms = ("linear", "chain", "binomial", "binary_tree")
    same = [
        row | {"algorithm": name}
        for seed, name in enumerate(algorithms)
        for row in sound(seed=seed, algorithms=("chain",))
    ]
    findings = {finding.where: finding.found for finding in found(same)["wrong algorithm"]}
    assert "had no effect" in findings.pop("bcast binary_tree, binomial, chain and linear")
    assert all("grows with the number of ranks" in text for text in findings.values())


@pytest.mark.parametrize(("factor", "accused"), [(1, set()), (1.4, {"bcast chain, by core"})])
def test_files_of_two_machines_in_one_study(factor: float, accused: set[str]) -> None:
    """Results of two machines with the same columns and algorithms, imported for one of them."""
    second = [
        row | scaled(factor)(row) | {"path": "/thin.csv", "file": "thin.csv", "launch": 2}
        for row in sound(seed=2, algorithms=("chain",)) if row["mapping"] == "core"
    ]  # fmt: skip
    findings = found(sound() + second)
    assert {finding.where for finding in findings.get("files disagree", [])} == accused


def test_an_algorithm_that_was_not_forced() -> None:
    """The default is a binomial tree for small and a chain for large messages; of "chain", all launches were the default's."""
    default = [
        row | {"algorithm": "default"} for row in sound(seed=4, algorithms=("binomial", "chain"))
        if row["algorithm"] == ("binomial" if row["size_bytes"] <= 4096 else "chain")
    ]  # fmt: skip
    assert "wrong algorithm" not in found(sound() + default)
    rng = random.Random(6)
    rest = sound(algorithms=("linear", "binomial", "binary_tree"))
    again = [row | {"algorithm": "chain"} | scaled(rng.gauss(1, 0.015))(row) for row in default]
    findings = found(rest + default + again)["wrong algorithm"]
    assert {finding.where for finding in findings} == {"bcast chain, by core", "bcast chain, by node"}
    assert all(finding.confidence == "possible" and "not forced" in finding.found for finding in findings)


def test_a_default_that_always_chooses_an_algorithm_accuses_nobody() -> None:
    """From 8 to 255 ranks, Open MPI's default gather is the binomial one."""
    gathers = [
        row | {"collective": "gather"} for row in sound(algorithms=("binomial", "linear")) if row["processes"] >= 8
    ]
    again = sound(seed=7, algorithms=("binomial",))
    default = [row | {"collective": "gather", "algorithm": "default"} for row in again if row["processes"] >= 8]
    assert "wrong algorithm" not in found(gathers + default)
    linear = [row | {"algorithm": "linear"} for row in default]
    assert "wrong algorithm" in found([row for row in gathers if row["algorithm"] == "binomial"] + linear + default)


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
        sound(), lambda row: (row["algorithm"], row["mapping"], row["processes"]) == ("chain", "core", 32),
        lambda row: scaled(7 / row["latency_us"])(row),
    )  # fmt: skip
    (finding,) = found(faulty)["times do not depend on size"]
    assert finding.where == "bcast chain, by core" and "at 32 ranks" in finding.found


@pytest.mark.parametrize("factor", [1e3, 1e-3])
@pytest.mark.parametrize("field, value", [("processes", 2), ("processes", 16), ("processes", 48), ("size_bytes", 4096)])
def test_one_number_of_ranks_or_bytes_in_another_unit(factor: float, field: str, value: int) -> None:
    faulty = changed(
        sound(), lambda row: (row["algorithm"], row["mapping"], row[field]) == ("chain", "core", value), scaled(factor)
    )
    what = "ranks" if field == "processes" else "bytes"
    assert [finding for finding in found(faulty)["unit of the times"] if f"at {value:,} {what}" in finding.found]


def test_a_number_of_ranks_that_is_another_times_a_constant() -> None:
    """The two need not be neighbours."""
    at = {
        r["size_bytes"]: r for r in sound() if (r["algorithm"], r["mapping"], r["processes"]) == ("chain", "core", 16)
    }
    faulty = changed(
        sound(), lambda row: (row["algorithm"], row["mapping"], row["processes"]) == ("chain", "core", 32),
        lambda row: scaled(1.9)(at[row["size_bytes"]]),
    )  # fmt: skip
    (finding,) = found(faulty)["constant ratio"]
    assert finding.where == "bcast chain, by core" and "from 16 to 32" in finding.found


def test_an_outlier_in_a_small_table() -> None:
    rows = [row for row in sound() if row["processes"] in (2, 8, 32) and row["size_bytes"] in (4, 1024, 65536)]
    for at, row in enumerate(rows):
        faulty = [*rows[:at], row | scaled(2000)(row), *rows[at + 1 :]]
        assert flag_outliers(Launches(faulty)) == [at], row
    assert not flag_outliers(Launches(rows))


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
    assert "placed on a single node" in found([row | {"nodes": 2} for row in within])


def test_launches_that_disagree_are_one_finding() -> None:
    """Also if there are many; the file that differs from all others is named."""
    for slow, pairs in (((3,), 5), ((3, 4), 8)):
        launches = [
            row | {"launch": k, "path": f"/run{k}.csv"} | (scaled(2)(row) if k in slow else {})
            for k in range(1, 7) for row in sound(seed=k, algorithms=("chain",)) if row["mapping"] == "core"
        ]  # fmt: skip
        (finding,) = found(launches)["files disagree"]
        assert f"those of {pairs - 1} more pairs of files by over 20" in finding.found
        assert finding.found.endswith("run3.csv is one of each pair") == (len(slow) == 1)
