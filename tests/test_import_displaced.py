"""Import checks of ranks and sizes that belong to other rows, and of data beside another study of the machine."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from made_rows import ALGORITHMS, SIZES, Rows, accused, changed, depth, found, given, only, scaled, series, sound


def moved(rows: Rows, algorithm: str, field: str, to: Callable[[int], int | None]) -> Rows:
    """Return the rows with another label in *field*, of one *algorithm* or of all (""); without those that have none."""
    return [
        row if algorithm not in ("", row["algorithm"]) else row | {field: to(row[field])}
        for row in rows if algorithm not in ("", row["algorithm"]) or to(row[field])
    ]  # fmt: skip


def elements(size: int) -> int | None:
    return size // 4 if size >= 4 else None


NEXT: dict[str, Callable[[int], int | None]] = {
    "label of the next row": lambda ranks: ranks + 2 if ranks < 48 else None,
    "label of the row before": lambda ranks: ranks - 2 if ranks > 2 else None,
    "ranks of one node": lambda ranks: ranks // 2 if ranks % 4 == 0 else None,
}


def test_elements_of_one_algorithm() -> None:
    """With two ranks all algorithms send one message, so that the others tell the size of each row."""
    (core, node) = found(moved(sound(), "chain", "size_bytes", elements))["sizes"]
    assert (core.where, node.where) == ("bcast chain, by core", "bcast chain, by node")
    assert "if the sizes are multiplied by 4" in core.found


@pytest.mark.parametrize(("factor", "word"), [(2, "previous"), (0.5, "next")])
def test_sizes_of_one_algorithm_are_a_row_off(factor: float, word: str) -> None:
    """A header that was skipped, or a first size that was lost."""
    off = moved(sound(), "chain", "size_bytes", lambda size: int(size * factor) or None)
    findings = accused(off, "sizes")
    assert findings.keys() == series("chain")
    assert all(text.endswith(f"if the sizes are those of the {word} row") for text in findings.values())


@pytest.mark.parametrize("name", [*NEXT])
def test_ranks_of_one_algorithm(name: str) -> None:
    assert accused(moved(sound(), "linear", "processes", NEXT[name]), "processes").keys() == series("linear")


def stepped(seed: int = 1) -> Rows:
    """Return broadcasts that are followed by a barrier with a level more from each power of two on."""
    return [
        row | scaled(1.5 ** math.ceil(math.log2(row["processes"])))(row) for row in sound(seed=seed, algorithms=("linear", "binomial"))
    ]  # fmt: skip


@pytest.mark.parametrize("step, word", [(2, "before"), (-2, "after")])
def test_all_ranks_are_a_row_off_and_there_is_no_other_source(step: int, word: str) -> None:
    assert "processes" not in found(stepped())
    off = moved(stepped(), "", "processes", lambda ranks: ranks + step if 2 <= ranks + step <= 48 else None)
    findings = found(off)["processes"]
    assert {finding.where for finding in findings} >= {"bcast binomial, by core", "bcast linear, by core"}
    assert any(finding.found.endswith(f"belong to the row {word}") for finding in findings)


def beside(rows: Rows, theirs: Rows) -> dict[str, list]:
    return found(rows, {"published": theirs}, same_machine=("published",))


def test_another_study_of_the_machine() -> None:
    theirs = sound("theirs", 4)
    assert beside(sound(), theirs) == {}
    findings = beside(moved(sound(), "", "size_bytes", elements), theirs)["sizes"]
    assert len(findings) == 8 and all("study published (theirs)" in finding.found for finding in findings)
    findings = beside(moved(sound(), "", "processes", NEXT["ranks of one node"]), theirs)["processes"]
    assert {finding.where.split(",")[0] for finding in findings} >= {"bcast linear", "bcast binary_tree"}
    # On another machine, it tells nothing.
    assert "sizes" not in found(moved(sound(), "", "size_bytes", elements), {"published": theirs})


def test_another_study_names_the_algorithm_that_ran() -> None:
    label = given(sound(seed=2, algorithms=("binary_tree",)), algorithm="linear")
    (core, node) = (f for f in beside(label, sound("theirs", 4))["wrong algorithm"] if ", by" in f.where)
    assert (core.where, node.where) == ("bcast linear, by core", "bcast linear, by node")
    assert "are those of binary_tree in study published (theirs)" in core.found
    # What the other study leaves out is no reference.
    doubtful: dict[str, Any] = {"left_out": "it did not leave the node"}
    theirs = [row | (doubtful if row["algorithm"] == "chain" else {}) | scaled(1.3)(row) for row in sound("theirs", 4)]
    assert {finding.where.split(",")[0] for finding in beside(sound(), theirs)["sources disagree"]} == {
        "bcast binary_tree", "bcast binomial", "bcast linear"
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_constant_factor_between_sources_studies_and_launches(factor: float) -> None:
    slow = [row | scaled(factor)(row) for row in sound("two", 2)]
    again = [row | scaled(factor)(row) | {"launch": 2, "line": row["line"] + 5000} for row in sound(seed=3)]
    for findings, check in (
        (found(sound("one") + slow), "sources disagree"), (beside(sound(), slow), "sources disagree"),
        (found(sound() + again), "files disagree"),
    ):  # fmt: skip
        texts = [finding.found for finding in findings.get(check, [])]
        assert len(texts) == (0 if factor == 1 else 8)
        assert all(re.search(r"1\.10 times|0\.91 times|launch 1 in \.csv", text) for text in texts)


def test_mappings_by_socket_that_had_no_effect() -> None:
    core = [row for row in sound() if row["mapping"] == "core"]
    socket = [row | {"mapping": "socket"} for row in sound(seed=2) if row["mapping"] == "core"]
    other = [row | scaled(1.4)(row) if row["processes"] <= 24 else row for row in socket]
    assert found(core + other) == {}
    assert accused(core + socket, "mapping had no effect").keys() == series(*ALGORITHMS, mappings=("socket",))
    # By both, all cores of a node are used at 24 ranks, and large messages of one sender take as long.
    for part in (lambda row: row["processes"] == 24, lambda row: row["size_bytes"] > 2**14):
        assert "mapping had no effect" not in found([*filter(part, core + socket)])


def test_a_file_that_was_cut() -> None:
    rows = [row for row in sound(algorithms=("chain",)) if row["mapping"] == "core"]
    assert found(rows) == {}
    (finding,) = found(rows[:-5])["sizes"]
    assert finding.where == ".csv" and "end at 48 ranks and 32768 bytes" in finding.found
    # Fewer sizes for more ranks are a plan.
    assert found([row for row in rows if row["processes"] < 24 or row["size_bytes"] <= 32768]) == {}


def test_a_copy_of_the_next_number_of_ranks_with_other_last_digits() -> None:
    of = at(sound(), "linear", 30)
    copied = changed(
        sound(), only(algorithm="linear", mapping="core", processes=32),
        lambda row: scaled(1 + 0.002 * (-1) ** int(math.log2(row["size_bytes"])))(of["core", row["size_bytes"]]),
    )  # fmt: skip
    (finding,) = found(copied)["constant ratio"]
    assert finding.where == "bcast linear, by core" and "from 30 to 32" in finding.found


def test_sizes_that_were_limited() -> None:
    at = {(row["mapping"], row["processes"], row["size_bytes"]): row for row in sound(seed=3, algorithms=("chain",))}
    limited = changed(
        sound(), lambda row: row["algorithm"] == "chain" and row["size_bytes"] > 65536,
        lambda row: scaled(1 + row["size_bytes"] / 2**26)(at[row["mapping"], row["processes"], 65536]),
    )  # fmt: skip
    assert accused(limited, "times do not depend on size").keys() == series("chain")


def at(rows: Rows, algorithm: str, ranks: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the rows of an algorithm and number of ranks by mapping and size."""
    return {
        (row["mapping"], row["size_bytes"]): row for row in rows if (row["algorithm"], row["processes"]) == (algorithm, ranks)
    }  # fmt: skip


of_chain = only(algorithm="chain", mapping="core", processes=38)


@pytest.mark.parametrize(
    "other, words",
    [
        ({4096: 65536, 65536: 4096}, "65,536 bytes"),
        (dict(zip(SIZES, reversed(SIZES), strict=True)), "in reverse order of sizes"),
    ],
)
def test_sizes_exchanged_at_a_number_of_ranks(other: dict[int, int], words: str) -> None:
    rows = sound()
    of = at(rows, "chain", 38)
    exchanged = changed(
        rows, lambda row: of_chain(row) and row["size_bytes"] in other,
        lambda row: scaled(1)(of[row["mapping"], other[row["size_bytes"]]]),
    )  # fmt: skip
    (finding,) = found(exchanged)["rows exchanged"]
    assert finding.where == "bcast chain, by core" and "at 38 ranks" in finding.found and words in finding.found


def test_a_number_of_ranks_of_another_algorithm() -> None:
    rows, again = sound(), sound(seed=2)
    linear, chain = at(again, "linear", 38), at(rows, "chain", 38)
    copied = changed(rows, of_chain, lambda row: scaled(1)(linear[row["mapping"], row["size_bytes"]]))
    (finding,) = found(copied)["rows exchanged"]
    assert finding.where == "bcast chain, by core" and finding.found.endswith("from those of linear, by core")
    # Both jobs have the other's name.
    both = changed(
        copied, only(algorithm="linear", mapping="core", processes=38),
        lambda row: scaled(1)(chain[row["mapping"], row["size_bytes"]]),
    )  # fmt: skip
    assert "bcast chain, by core and bcast linear, by core" in {
        finding.where for finding in found(both)["rows exchanged"] if finding.found.endswith("if the two are exchanged")
    }


@pytest.mark.parametrize("field, check", [("size_bytes", "sizes"), ("processes", "processes")])
def test_sizes_or_ranks_sorted_as_text(field: str, check: str) -> None:
    values = sorted({row[field] for row in sound()})
    label = dict(zip(values, sorted(values, key=str), strict=True))
    faulty = changed(sound(), only(algorithm="binomial"), lambda row: {field: label[row[field]]})
    assert {where for where, text in accused(faulty, check).items() if "sorted as text" in text} == series("binomial")


@pytest.mark.parametrize("factor, count", [(1.3, 1), (1.1, 0)])
def test_a_slow_job(factor: float, count: int) -> None:
    assert len(found(changed(sound(), of_chain, scaled(factor))).get("slow job", [])) == count


def test_a_number_of_ranks_after_a_power_of_two_is_no_slow_job() -> None:
    """Trees have a level more there, and later numbers of ranks may take less."""
    slower = changed(sound(), only(algorithm="chain", processes=34), scaled(1.3))
    assert "slow job" not in found(slower)


def test_the_first_size_contains_the_start() -> None:
    slow = changed(sound(), only(algorithm="chain", size_bytes=1), scaled(3))
    texts = accused(slow, "noise")
    assert texts.keys() == series("chain")
    assert all(text.startswith("the smallest size takes") for text in texts.values())


@pytest.mark.parametrize("factor, found_by", [(6.0, ["possible"]), (12.0, ["likely"]), (3.0, [])])
def test_a_slow_launch_among_neighbours_that_agree(factor: float, found_by: list[str]) -> None:
    slow = changed(sound(), lambda row: of_chain(row) and row["size_bytes"] == 1024, scaled(factor))
    findings = found(slow).get("outlier", [])
    assert [finding.confidence for finding in findings] == found_by
    assert all("also in means" in finding.action for finding in findings)
    # Neighbours that differ among each other are no evidence.
    rng = random.Random(1)
    noisy = [row | scaled(rng.choice((0.8, 1.25)))(row) if row["algorithm"] == "chain" else row for row in slow]
    assert factor > 10 or "outlier" not in found(noisy)


def test_a_slow_launch_in_a_scan_of_all_ranks() -> None:
    """The scan with one size is quiet, the few numbers of ranks with all sizes are not."""
    rng = random.Random(1)
    of = at(sound(), "chain", 48)
    cells = [(ranks, 4, 0.02) for ranks in range(2, 120)] + [
        (ranks, size, 0.8) for ranks in (8, 32, 64) for size in SIZES
    ]
    rows = [
        of["core", size] | {"processes": ranks} | scaled(ranks * math.exp(rng.gauss(0, noise)))(of["core", size])
        for ranks, size, noise in cells
    ]  # fmt: skip
    assert "outlier" not in found([{**row} for row in rows])
    slow = changed(rows, only(processes=50), scaled(6))
    (finding,) = found(slow)["outlier"]
    assert "1 launch is 6 times slower" in finding.found and "50 ranks" in finding.found


@pytest.mark.parametrize(("mapping", "accused"), [("core", {"bcast chain, by core"}), ("node", set())])
def test_one_node_beside_a_study_of_two(mapping: str, accused: set[str]) -> None:
    """By core, up to 24 ranks are on a single node in both; by node, they are not."""
    rows = given(sound(seed=2, algorithms=("binomial",)), algorithm="chain", nodes=1)
    within = [row for row in rows if row["processes"] <= 24 and row["mapping"] == mapping]
    findings = beside(within, sound("theirs", 4)).get("wrong algorithm", [])
    assert {finding.where for finding in findings} == accused


def test_times_that_fall_over_a_narrow_range_of_ranks() -> None:
    """From 16 to 48 ranks, trees may take less long on more ranks."""
    rows = [row for row in sound(algorithms=("binomial",)) if row["processes"] >= 16]
    assert "processes" not in found([row | scaled(16 / row["processes"])(row) for row in rows])


def test_two_ranks_that_are_farther_apart() -> None:
    """Between cores that are farther apart, only small messages take longer."""
    far = changed(
        sound(), only(algorithm="chain", mapping="core", processes=2),
        lambda row: scaled(1 + 1 / (1 + row["size_bytes"] / 4096))(row),
    )  # fmt: skip
    assert "processes" not in found(far)


def test_few_ranks_to_which_two_algorithms_send_the_same_messages() -> None:
    """With three ranks, a binary tree is linear."""
    four = only(mapping="core", processes=4)
    tree = {row["size_bytes"]: row for row in sound(algorithms=("binary_tree",), seed=2) if four(row)}
    rows = changed(sound(algorithms=("linear", "binary_tree")), only(algorithm="linear", mapping="core"), lambda row: (
        scaled(1)(tree[row["size_bytes"]]) if row["processes"] == 4 else scaled(0.5)(row)
    ))  # fmt: skip
    assert "rows exchanged" not in found(rows)


def test_small_messages_alone_do_not_tell_an_exchange() -> None:
    """They all take as long, so that a disturbed job is one number, which may be near another one's by chance."""
    rows = [row for row in sound(algorithms=("linear", "chain")) if row["size_bytes"] <= 64]
    factor = depth("linear", 14) / depth("chain", 14)
    disturbed = changed(rows, only(mapping="core", processes=14), lambda row: (
        scaled(factor if row["algorithm"] == "chain" else 1.05 / factor)(row)
    ))  # fmt: skip
    assert "rows exchanged" not in found(disturbed)
