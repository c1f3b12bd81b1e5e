"""Import checks of units, and outliers."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from collstudy.sources.importing.checking import checks
from collstudy.sources.importing.checking.agreement import agreement_of
from collstudy.sources.importing.checking.outliers import flag_outliers
from collstudy.sources.importing.series import Launches
from made_rows import ALGORITHMS, MACHINE, Rows, accused, changed, found, given, made, only, scaled, series, sound


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units_where_only_large_messages_were_measured(factor: float) -> None:
    rows = [row | scaled(factor)(row) for row in sound() if row["size_bytes"] >= 65536 and row["mapping"] == "core"]
    assert accused(rows, "unit of the times").keys() == series(*ALGORITHMS, mappings=("core",))


def place(rows: Rows, **values: Any) -> int:
    """Return the number of the first row with these values."""
    return next(number for number, row in enumerate(rows) if only(**values)(row))


def test_one_algorithm_in_another_unit() -> None:
    rows = [row for row in sound() if row["processes"] >= 40]
    faulty = changed(rows, only(algorithm="chain"), scaled(1e3))
    assert accused(faulty, "unit of the times").keys() == series("chain")


def test_large_messages_that_take_no_longer_than_larger_ones() -> None:
    rng = random.Random(3)
    large = [row for row in sound() if row["size_bytes"] >= 65536]
    faulty = changed(large, only(algorithm="chain"), lambda row: {
        "latency_us": (us := 400 * rng.gauss(1, 0.05)), "min_latency_us": us / 2, "max_latency_us": us * 1.5,
    })  # fmt: skip
    assert "bcast chain, by node" in accused(faulty, "times do not depend on size")
    assert found(large) == {}


@pytest.mark.parametrize(("ranks", "size"), [(2, 1), (2, 2**20), (48, 1), (48, 2**20)])
def test_an_outlier_at_the_edge_of_the_grid(ranks: int, size: int) -> None:
    rows = [row for row in sound() if row["processes"] in (2, 8, 16, 24, 32, 48)]
    at = place(rows, processes=ranks, size_bytes=size)
    rows[at] |= scaled(1000)(rows[at])
    assert [finding.check for finding in checks.check(rows, {}, MACHINE, {})] == ["outlier"]
    assert [row for row in rows if row.get("flag")] == [rows[at]]


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units(factor: float) -> None:
    faulty = changed(sound(), only(algorithm="chain"), scaled(factor))
    assert accused(faulty, "unit of the times").keys() == series("chain")
    other = sound("one", 1) + [row | scaled(factor)(row) for row in sound("two", 2)]
    assert any(finding.confidence == "certain" for finding in found(other)["unit of the times"])


def test_sizes_of_another_unit() -> None:
    faulty = changed(sound(), only(algorithm="chain"), lambda row: {"size_bytes": row["size_bytes"] / 1024})
    (one, two) = found(faulty)["sizes"]
    assert one.where == "bcast chain, by core" and "multiplied by 1024 they are the sizes of the others" in two.found


@pytest.mark.parametrize("algorithms", [("chain",), ALGORITHMS], ids=["one", "all"])
def test_sizes_in_kilobytes(algorithms: tuple[str, ...]) -> None:
    rows = [row for row in sound() if row["algorithm"] not in algorithms or row["size_bytes"] >= 1024]
    faulty = changed(
        rows, lambda row: row["algorithm"] in algorithms, lambda row: {"size_bytes": row["size_bytes"] // 1024}
    )
    texts = accused(faulty, "sizes")
    assert {where for where, text in texts.items() if "not in bytes" in text} == series(*algorithms)


def test_one_fast_size_is_not_a_unit() -> None:
    """Single bytes take a special path that is five times as fast as all other small messages."""
    fast = changed(sound(), only(size_bytes=1), scaled(0.2))
    assert "sizes" not in found(fast)


def test_sizes_that_nothing_shares_are_not_accused() -> None:
    rng = random.Random(4)
    sizes = {name: rng.sample(range(1, 2**18), 5) for name in ALGORITHMS}
    rows = [row | {"size_bytes": sizes[row["algorithm"]][int(math.log2(row["size_bytes"])) // 4]} for row in sound()
            if math.log2(row["size_bytes"]) % 4 == 0 and row["size_bytes"] < 2**20]  # fmt: skip
    assert "sizes" not in found(rows)


def test_outliers_are_kept_and_flagged() -> None:
    rows = sound()
    at = place(rows, processes=20, size_bytes=64, mapping="core")
    rows[at] |= scaled(1000)(rows[at])
    findings = found(rows)
    assert list(findings) == ["outlier"] and "kept and flagged" in findings["outlier"][0].action
    assert [row for row in rows if row.get("flag")] == [rows[at]]
    assert max(row["median_abs_difference_pct"] for row in agreement_of(rows + sound("two", 2))) < 5


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


@pytest.mark.parametrize("factor, accused_of", [(1, 0), (1e3, 1)])
def test_a_slow_board_has_no_other_unit(factor: float, accused_of: int) -> None:
    """Two ranks of a 64-bit ARM board: its small messages are fast, its memory is slow."""
    took = {4: 4.71, 16: 4.72, 64: 5.11, 256: 6.62, 1024: 10.05, 4096: 28.72, 16384: 63.5, 65536: 188.02, 262144: 695.6,
            1048576: 3639.63, 4194304: 16045.48}  # fmt: skip
    rows = made("default", lambda _, size: factor * took[size], (2,), took, noise=0, collective="allreduce")
    assert len(found(rows).get("unit of the times", ())) == accused_of


def test_few_ranks_that_were_disturbed_are_no_other_unit() -> None:
    slow = changed(sound(), lambda row: row["processes"] <= 4 and row["mapping"] == "core", scaled(400))
    assert "unit of the times" not in found(slow)


def test_a_cell_that_is_slow_in_every_launch_is_not_an_outlier() -> None:
    """An effect of the library or the machine, such as a protocol at one number of ranks."""
    rows = [row | {"launch": launch} for launch in (1, 2, 3) for row in sound(seed=launch)]
    faulty = changed(rows, only(algorithm="chain", processes=20, size_bytes=64), scaled(1000))
    assert "outlier" not in found(faulty)
    faulty[0] = faulty[0] | scaled(1000)(faulty[0])
    assert len(found(faulty)["outlier"]) == 1


@pytest.mark.parametrize("factor", [1e3, 1e-3])
@pytest.mark.parametrize("field, value", [("processes", 2), ("processes", 16), ("processes", 48), ("size_bytes", 4096)])
def test_one_number_of_ranks_or_bytes_in_another_unit(factor: float, field: str, value: int) -> None:
    faulty = changed(sound(), only(algorithm="chain", mapping="core", **{field: value}), scaled(factor))
    what = "ranks" if field == "processes" else "bytes"
    assert any(f"at {value:,} {what}" in text for text in accused(faulty, "unit of the times").values())


def test_an_outlier_in_a_small_table() -> None:
    rows = [row for row in sound() if row["processes"] in (2, 8, 32) and row["size_bytes"] in (4, 1024, 65536)]
    for at, row in enumerate(rows):
        faulty = [*rows[:at], row | scaled(2000)(row), *rows[at + 1 :]]
        assert flag_outliers(Launches(faulty)) == [at], row
    assert not flag_outliers(Launches(rows))


@pytest.mark.parametrize("factor, flagged", [(20, False), (80, True), (1 / 20, False), (1 / 80, True)])
def test_single_launches_in_a_quiet_series(factor: float, flagged: bool) -> None:
    rows = sound()
    at = place(rows, processes=20, size_bytes=2**16, mapping="core")
    rows[at] |= scaled(factor)(rows[at])
    (finding,) = found(rows)["outlier"]
    assert ("excluded from means" in finding.action) == flagged
    assert [row for row in rows if row.get("flag")] == ([rows[at]] if flagged else [])
    assert ("slower" in finding.found) == (factor > 1) and f"line {rows[at]['line']})" in finding.found
    # Where a third of all times is noise, such a launch is nothing special.
    rng = random.Random(1)
    noisy = [row | scaled(math.exp(rng.gauss(0, 0.8)))(row) for row in sound()]
    noisy[at] = noisy[at] | scaled(max(factor, 0.1))(noisy[at])
    found(noisy)
    assert not any(row.get("flag") for row in noisy)


def test_a_number_of_ranks_that_was_disturbed_is_no_other_unit() -> None:
    """Its only sound launch is not an outlier."""
    slow = changed(
        sound(), lambda row: (row["algorithm"], row["mapping"], row["processes"]) == ("chain", "core", 16) and row["size_bytes"] != 8,
        scaled(300),
    )  # fmt: skip
    findings = found(slow)
    assert "unit of the times" not in findings and not any(row.get("flag") for row in slow)
    assert any("at 16 ranks" in finding.found for finding in findings["noise"])


#: Without the minimum and maximum over ranks.
UNBOUNDED = {"min_latency_us": None, "max_latency_us": None}


@pytest.mark.parametrize("limit", [max, min])
def test_times_that_were_cut_to_a_limit(limit: Any) -> None:
    cut = given([row | {"latency_us": limit(10.0, row["latency_us"])} for row in sound()], **UNBOUNDED)
    assert accused(cut, "times clamped").keys() >= {"bcast linear, by core", "bcast chain, by node"}


def test_a_timer_of_whole_microseconds() -> None:
    whole = [row | {"latency_us": max(1.0, float(round(row["latency_us"])))} for row in sound()]
    assert "multiples of 1 us" in found(given(whole, **UNBOUNDED))["timer resolution"][0].found


def test_a_launch_that_differs_from_the_others_of_its_cell() -> None:
    """The neighbours of a disturbed size are no reference."""
    rows = [
        row | {"launch": launch} | scaled((30 if row["size_bytes"] == 1 else 1) * (1 + 0.01 * launch))(row)
        for launch in range(1, 5) for row in sound(algorithms=("chain",)) if row["processes"] in (2, 4, 16, 48)
    ]  # fmt: skip
    assert "outlier" not in found(rows)
    slow = changed(rows, only(mapping="core", processes=16, size_bytes=1, launch=3), scaled(12))
    (finding,) = found(slow)["outlier"]
    assert "12 times slower than the other launches of its cell" in finding.found
