"""Import checks of ranks and sizes that belong to other rows, and of data beside another study of the machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from made_rows import Rows, changed, found, scaled, sound


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


@pytest.mark.parametrize("name", [*NEXT])
def test_ranks_of_one_algorithm(name: str) -> None:
    findings = found(moved(sound(), "linear", "processes", NEXT[name]))["processes"]
    assert {finding.where for finding in findings} == {"bcast linear, by core", "bcast linear, by node"}


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
    label = [row | {"algorithm": "linear"} for row in sound(seed=2, algorithms=("binary_tree",))]
    (core, node) = (f for f in beside(label, sound("theirs", 4))["wrong algorithm"] if ", by" in f.where)
    assert (core.where, node.where) == ("bcast linear, by core", "bcast linear, by node")
    assert "are those of binary_tree in study published (theirs)" in core.found
    # What the other study leaves out is no reference.
    doubtful: dict[str, Any] = {"left_out": "it did not leave the node"}
    theirs = [row | (doubtful if row["algorithm"] == "chain" else {}) | scaled(1.3)(row) for row in sound("theirs", 4)]
    assert {finding.where.split(",")[0] for finding in beside(sound(), theirs)["sources disagree"]} == {
        "bcast binary_tree", "bcast binomial", "bcast linear"
    }  # fmt: skip


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_constant_factor_between_sources_studies_and_launches(factor: float) -> None:
    slow = [row | scaled(factor)(row) for row in sound("two", 2)]
    again = [row | scaled(factor)(row) | {"launch": 2, "line": row["line"] + 5000} for row in sound(seed=3)]
    for findings, check in (
        (found(sound("one") + slow), "sources disagree"), (beside(sound(), slow), "sources disagree"),
        (found(sound() + again), "files disagree"),
    ):  # fmt: skip
        assert len(findings.get(check, [])) == (0 if factor == 1 else 8)
        assert all(
            "1.10 times" in f.found or "0.91 times" in f.found or "launch 1 in .csv" in f.found
            for f in findings.get(check, [])
        )


def test_mappings_by_socket_that_had_no_effect() -> None:
    core = [row for row in sound() if row["mapping"] == "core"]
    socket = [row | {"mapping": "socket"} for row in sound(seed=2) if row["mapping"] == "core"]
    other = [row | scaled(1.4)(row) if row["processes"] <= 24 else row for row in socket]
    assert found(core + other) == {}
    assert {finding.where for finding in found(core + socket)["mapping had no effect"]} == {
        f"bcast {name}, by socket" for name in ("linear", "chain", "binomial", "binary_tree")
    }


def test_a_file_that_was_cut() -> None:
    rows = [row for row in sound(algorithms=("chain",)) if row["mapping"] == "core"]
    assert found(rows) == {}
    (finding,) = found(rows[:-5])["sizes"]
    assert finding.where == ".csv" and "end at 48 ranks and 32768 bytes" in finding.found
    # Fewer sizes for more ranks are a plan.
    assert found([row for row in rows if row["processes"] < 24 or row["size_bytes"] <= 32768]) == {}


def test_a_copy_of_the_next_number_of_ranks_with_other_last_digits() -> None:
    of = {
        row["size_bytes"]: row
        for row in sound()
        if (row["algorithm"], row["mapping"], row["processes"]) == ("linear", "core", 30)
    }
    copied = changed(
        sound(), lambda row: (row["algorithm"], row["mapping"], row["processes"]) == ("linear", "core", 32),
        lambda row: scaled(1 + 0.002 * (-1) ** int(math.log2(row["size_bytes"])))(of[row["size_bytes"]]),
    )  # fmt: skip
    (finding,) = found(copied)["constant ratio"]
    assert finding.where == "bcast linear, by core" and "from 30 to 32" in finding.found


def test_sizes_that_were_limited() -> None:
    at = {(row["mapping"], row["processes"], row["size_bytes"]): row for row in sound(seed=3, algorithms=("chain",))}
    limited = changed(
        sound(), lambda row: row["algorithm"] == "chain" and row["size_bytes"] > 65536,
        lambda row: scaled(1 + row["size_bytes"] / 2**26)(at[row["mapping"], row["processes"], 65536]),
    )  # fmt: skip
    assert {finding.where for finding in found(limited)["times do not depend on size"]} == {
        "bcast chain, by core", "bcast chain, by node"
    }  # fmt: skip
