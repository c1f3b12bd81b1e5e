"""Import checks of values that are copies of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from made_rows import ALGORITHMS, SIZES, accused, changed, found, given, made, only, scaled, series, sound

#: Of another study.
OURS = {"source": "ours", "path": "/ours.csv"}


def test_one_algorithm_under_two_names() -> None:
    again = given(sound(seed=2, algorithms=("binomial",)), algorithm="chain")
    faulty = sound(algorithms=("linear", "binomial", "binary_tree")) + again
    (finding,) = found(faulty)["wrong algorithm"]
    assert (finding.where, finding.confidence) == ("bcast binomial and bcast chain", "likely")
    assert "other pairs of algorithms differ by" in finding.found


def test_series_that_are_others_times_a_constant() -> None:
    rest = [row for row in sound() if row["algorithm"] != "binary_tree"]
    made_up = [row | {"algorithm": "binary_tree"} | scaled(1.37)(row) for row in rest if row["algorithm"] == "chain"]
    assert accused(rest + made_up, "constant ratio").keys() == {
        f"bcast binary_tree, by {mapping} and bcast chain, by {mapping}" for mapping in ("core", "node")
    }


def test_ranks_and_sizes_that_are_others_times_a_constant() -> None:
    first = {(r["algorithm"], r["mapping"], r["size_bytes"]): r for r in sound() if r["processes"] == 2}
    faulty = changed(
        sound(), only(algorithm="chain", mapping="core"),
        lambda row: scaled(1.1 ** (row["processes"] / 2))(first[row["algorithm"], row["mapping"], row["size_bytes"]]),
    )  # fmt: skip
    assert accused(faulty, "constant ratio").keys() == {"bcast chain, by core"}


def test_values_of_another_study_digit_by_digit() -> None:
    theirs = sound("theirs", 4)
    copied = [row | OURS for row in theirs if row["algorithm"] == "chain"]
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
    copied = [row | rounded(row) | OURS for row in theirs]
    equal = accused(copied, "equal digit by digit", {"published": theirs})
    assert equal.keys() == {f"ours: bcast {name}" for name in ALGORITHMS}
    # Other measurements with the same rounding are not reported.
    assert found([row | rounded(row) for row in sound("other", 9)], {"published": theirs}) == {}


def test_a_copy_of_single_launches_in_another_order() -> None:
    theirs = [row | {"launch": launch} for launch in (1, 2, 3) for row in sound("theirs", launch, ("chain",))]
    copied = [row | OURS | {"launch": 1} for row in theirs if row["launch"] == 2]
    rest = sound("ours", 8, ("linear",))
    (finding,) = found(rest + copied, {"published": theirs})["equal digit by digit"]
    assert finding.where == "ours: bcast chain"


def test_a_copy_of_some_numbers_of_ranks() -> None:
    theirs = sound("theirs", 4)
    ours = given([row for row in theirs if row["processes"] > 24], **OURS)
    ours += [row for row in sound("ours", 5) if row["processes"] <= 24]
    assert len(found(ours, {"published": theirs})["equal digit by digit"]) == 4
    # Also of a single one.
    single = only(processes=32, algorithm="chain")
    ours = given([row for row in theirs if single(row)], **OURS)
    ours += [row for row in sound("ours", 5) if not single(row)]
    (finding,) = found(ours, {"published": theirs})["equal digit by digit"]
    assert finding.where == "ours: bcast chain" and "by core and core, at 32 ranks" in finding.found


def test_a_copy_of_a_single_size() -> None:
    """In another study, and in another algorithm's file."""
    theirs = sound("theirs", 4)
    single = only(size_bytes=65536, algorithm="chain")
    ours = given([row for row in theirs if single(row)], **OURS)
    ours += [row for row in sound("ours", 5) if not single(row)]
    (finding,) = found(ours, {"published": theirs})["equal digit by digit"]
    assert (
        finding.where == "ours: bcast chain" and "by core and core, at 65,536 bytes, node and node, at" in finding.found
    )
    copied = given([row for row in theirs if single(row)], algorithm="binomial")
    (finding,) = found([row for row in theirs if not only(size_bytes=65536, algorithm="binomial")(row)] + copied)[
        "equal digit by digit"
    ]
    assert finding.where == "theirs: bcast binomial and theirs: bcast chain" and "at 65,536 bytes" in finding.found


def test_another_studys_series_times_a_constant() -> None:
    theirs = sound("theirs", 4, ("chain",))
    ours = [row | scaled(1.13)(row) | OURS for row in theirs]
    texts = accused(ours + sound("ours", 6, ("linear",)), "constant ratio", {"published": theirs})
    assert texts.keys() == {f"ours: {name}" for name in series("chain")}
    assert all("of study published is 1.13" in text for text in texts.values())


def test_algorithms_that_are_all_equal_are_one_finding() -> None:
    same = [
        row for seed, name in enumerate(ALGORITHMS)
        for row in given(sound(seed=seed, algorithms=("chain",)), algorithm=name)
    ]  # fmt: skip
    findings = accused(same, "wrong algorithm")
    assert "had no effect" in findings.pop("bcast binary_tree, binomial, chain and linear")
    assert all("grows with the number of ranks" in text for text in findings.values())


def test_a_number_of_ranks_that_is_another_times_a_constant() -> None:
    """The two need not be neighbours."""
    sixteen = only(algorithm="chain", mapping="core", processes=16)
    at = {row["size_bytes"]: row for row in sound() if sixteen(row)}
    faulty = changed(
        sound(), only(algorithm="chain", mapping="core", processes=32),
        lambda row: scaled(1.9)(at[row["size_bytes"]]),
    )  # fmt: skip
    (finding,) = found(faulty)["constant ratio"]
    assert finding.where == "bcast chain, by core" and "from 16 to 32" in finding.found


@pytest.mark.parametrize("field", ["processes", "size_bytes"])
def test_a_number_of_ranks_or_a_size_that_is_another_digit_by_digit(field: str) -> None:
    (one, two), other = {
        "processes": ((30, 40), "size_bytes"), "size_bytes": ((2**15, 2**16), "processes"),
    }[field]  # fmt: skip
    mine = only(algorithm="chain", mapping="core")
    first = {row[other]: row["latency_us"] for row in sound() if mine(row) and row[field] == one}
    faulty = changed(
        sound(), lambda row: mine(row) and row[field] == two, lambda row: {"latency_us": first[row[other]]}
    )
    (text,) = accused(faulty, "equal digit by digit").values()
    what = {"processes": "ranks", "size_bytes": "bytes"}[field]
    assert text.startswith(f"at {two:,} {what} ") and f"equal those at {one:,} {what}" in text


def test_small_messages_of_two_sizes_that_take_as_long() -> None:
    """Without noise, times of neighbouring small sizes have nearly the same ratio, almost 1, at all numbers of ranks."""
    quiet = [
        row | {"latency_us": round((row["processes"] - 1) * (2 + 1e-4 * row["size_bytes"]) + 0.01 * (row["size_bytes"] % 3), 2)}
        for row in given(sound(algorithms=("linear",)), min_latency_us=None, max_latency_us=None)
        if row["size_bytes"] <= 512 and row["mapping"] == "core"
    ]  # fmt: skip
    assert "constant ratio" not in found(quiet)


def test_two_numbers_of_ranks_in_a_pipeline() -> None:
    """All messages pass all ranks, so that the ratio is nearly constant; a few cells may be within half a percent."""
    ranks, sizes = range(20, 49, 4), [size for size in SIZES if size >= 128]
    rows = made("pipeline", lambda ranks, size: (ranks - 1) * (0.3 + size / 8000), ranks, sizes, noise=0.002)
    assert "constant ratio" not in found(rows)


def latencies(source: str, launches: int, level: float = 1.0) -> list[dict[str, Any]]:
    """Return osu_latency of some launches, which differ by 0.15 %, as in one setting of a machine on Amazon's network."""
    return [
        row | {"launch": launch, "path": f"/{source}.txt"} for launch in range(1, launches + 1)
        for row in made("default", lambda _, size: level * (7.5 + size / 12000), (2,), [2**k for k in range(23)], "node", source,
                        0.0015, launch + 100 * len(source), "latency")
    ]  # fmt: skip


@pytest.mark.parametrize("launches", [1, 3, 20])
def test_quiet_latencies_of_two_sources_are_no_copies(launches: int) -> None:
    """With many launches, equal digits and a ratio of 1 are to be expected."""
    ours, theirs = latencies("ours", launches), latencies("theirs", launches, 1.002)
    assert found(ours + theirs) == {}
    assert found(ours, {"published": theirs}) == {}


def test_a_copy_of_quiet_latencies() -> None:
    theirs = latencies("theirs", 5, 10)
    copied = [row | OURS for row in theirs if row["launch"] == 3]
    assert accused(copied, "equal digit by digit", {"published": theirs}).keys() == {"ours: latency default"}
    scaled_up = [row | {"latency_us": 1.13 * row["latency_us"]} for row in copied]
    (finding,) = found(scaled_up, {"published": theirs})["constant ratio"]
    assert "of study published is 1.13" in finding.found


def test_two_algorithms_with_the_same_messages_are_no_copies() -> None:
    """The default runs binomial; each is the median of many launches."""
    took = [
        row | {"launch": launch} for launch in range(1, 31) for name in ("default", "binomial")
        for row in made(name, lambda ranks, size: ranks**0.5 * (2 + size / 9000), seed=launch)
    ]  # fmt: skip
    assert "constant ratio" not in found(took)
