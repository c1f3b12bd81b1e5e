"""Tables that lack sizes or processes, such as files with one column of times: the row number gives them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from collstudy.sources.importing.drafting import by_row
from made_imports import CONFIGURATION, drafted, output, read, write

SIZES = [2**k for k in range(21)]
COUNTS = list(range(2, 49, 2))
#: On the 48 cores of orfeo-thin.
DOUBLED = [2, 4, 8, 16, 32]


def us(algorithm: str, mapping: str, ranks: int, size: int) -> float:
    return round((2 if algorithm == "linear" else 1) * ranks * (1 + 0.5 * (mapping == "node")) + size / 1000, 2)


def column(times: Iterable[object], header: str = "") -> str:
    return "".join(f"{time}\n" for time in ([header] if header else []) + [*times])


NAMES = [(a, m) for a in ("linear", "chain") for m in ("core", "node")]
LAYOUTS = {
    "sizes": (
        {
            f"bcast_{a}_{m}_np{p}.csv": column((us(a, m, p, s) for s in SIZES), "Latency (us)")
            for a, m in NAMES for p in DOUBLED
        },
        "whether the 21 rows of a file are 1 to 1048576 bytes (doubled), or 4 to 4194304 bytes (doubled)",
        [(a, m, p, s) for a, m in NAMES for p in DOUBLED for s in SIZES],
    ),
    "processes, no header": (
        {f"bcast_{a}_{m}_4B.txt": column(us(a, m, p, 4) for p in COUNTS) for a, m in NAMES},
        "whether the 24 rows of a file are 2 to 48 processes (by 2)",
        [(a, m, p, 4) for a, m in NAMES for p in COUNTS],
    ),
    "both": (
        {f"bcast_{a}_{m}.dat": column((us(a, m, p, s) for p in COUNTS for s in SIZES), "# avg") for a, m in NAMES},
        "2 to 48 processes (by 2), or 1 to 24 processes (by 1), each for 21 rows of 1 to 1048576 bytes (doubled)",
        [(a, m, p, s) for a, m in NAMES for p in COUNTS for s in SIZES],
    ),
    "a column of sizes": (
        {
            f"bcast_{a}_{m}.csv": column((f"{s},{us(a, m, p, s)}" for p in DOUBLED for s in SIZES[:9]), "Size,Latency")
            for a, m in NAMES
        },
        "whether the 45 rows of a file are 2 to 32 processes (doubled), each for 9 rows",
        [(a, m, p, s) for a, m in NAMES for p in DOUBLED for s in SIZES[:9]],
    ),
    "a column of processes": (
        {f"bcast_{a}_{m}.csv": column((f"{p},{us(a, m, p, s)}" for p in COUNTS for s in SIZES), "np,Latency") for a, m in NAMES},
        "whether the 504 rows of a file are 1 to 1048576 bytes (doubled), or 4 to 4194304 bytes (doubled), again and again",
        [(a, m, p, s) for a, m in NAMES for p in COUNTS for s in SIZES],
    ),
    "a column for each algorithm": (
        {
            f"bcast_{m}_np4.csv": column((f"{us('linear', m, 4, s)};{us('chain', m, 4, s)}".replace(".", ",") for s in SIZES),
                "linear;chain")
            for m in ("core", "node")
        },
        "whether the 21 rows of a file are 1 to 1048576 bytes (doubled)",
        [(a, m, 4, s) for a, m in NAMES for s in SIZES],
    ),
    "outputs in one file": (
        {
            f"bcast_{a}_{m}.log": "".join(
                "next launch\n\n# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n"
                + column(f"{s:<10d}{us(a, m, p, s):18.2f}" for s in SIZES) for p in DOUBLED)
            for a, m in NAMES
        },
        "whether the 105 rows of a file are 2 to 32 processes (doubled), each for 21 rows",
        [(a, m, p, s) for a, m in NAMES for p in DOUBLED for s in SIZES],
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_the_row_number_gives_is_proposed(tmp_path: Path, layout: str) -> None:
    files, asked, expected = LAYOUTS[layout]
    folder = write(tmp_path / "theirs", files)
    _, questions = drafted(folder)
    assert asked in questions and "it can be set" not in questions
    rows = read(folder)
    assert {tuple(cell): time for *cell, time in rows} == {cell: us(*cell) for cell in expected}
    assert len(rows) == len(expected)


def test_numbers_of_rows_that_fit_nothing_are_asked_about(tmp_path: Path) -> None:
    counts = {"linear": 16, "chain": 17}
    tables = {f"bcast_{name}_core_np4.csv": column(range(1, count + 1), "latency") for name, count in counts.items()}
    (entry,), questions = drafted(write(tmp_path, tables))
    assert "by_row" not in entry
    assert "size_bytes; it can be set in `constants` or `by_row` (a file has 16 to 17 rows)" in questions


def test_rows_that_may_be_sizes_or_processes_are_asked_about(tmp_path: Path) -> None:
    """23 rows are 1 B to 4 MiB, or 2 to 24 processes of one node."""
    (entry,), questions = drafted(write(tmp_path, {"bcast_linear_core.csv": column(range(1, 24), "latency")}))
    assert "by_row" not in entry
    assert all(f"{field}; it can be set" in questions for field in ("processes", "size_bytes"))


@pytest.mark.parametrize(
    ("machine", "proposed", "asked"),
    [
        (None, None, "with --machine, process counts that fit its cores are proposed"),
        ("not-yet", None, "config/machines/not-yet.yaml does not exist yet"),
        ("orfeo-thin", {"processes": {"from": 2, "step": 2}}, "2 to 48 processes (by 2)"),
    ],
)
def test_process_counts_need_a_machine(tmp_path: Path, machine: str | None, proposed: dict | None, asked: str) -> None:
    write(tmp_path, {"barrier_linear_core.csv": column(range(1, 25), "latency")})
    (entry,), questions = drafted(tmp_path, machine)
    assert entry.get("by_row") == proposed and asked in questions


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("bcast_linear_core_np4_8B.txt", column((f"{k % 7}.5" for k in range(100)), "ttime"),
         ["whether the column 'ttime' is the time", "whether 8B in the names are message sizes",
          "whether the 100 rows of a file are launches, or single calls (`rows: iterations`)"]),
        ("barrier_linear_core.csv", column([*range(1, 11), "", *range(11, 25)], "latency"),
         ["1 to 24 processes (by 1); 1 empty line between rows is not counted"]),
    ],
    ids=["a column that nothing names", "an empty line"],
)  # fmt: skip
def test_what_is_asked_about(tmp_path: Path, name: str, text: str, asked: list[str]) -> None:
    _, questions = drafted(write(tmp_path, {name: text}))
    assert [one for one in asked if one not in questions] == []


def test_a_row_that_is_not_used_counts(tmp_path: Path) -> None:
    """A row with too few or unreadable fields does not move the sizes of the rows below it."""
    rows = [f"{2 * k + 1}.5,{k + 1}.25" for k in range(21)]
    rows[3], rows[7] = "7.5", "failed,8.25"
    found = read(write(tmp_path / "theirs", {"bcast_core_np4.csv": column(rows, "linear,chain")}), problems=2)
    expected = {("chain", 2**k): k + 1.25 for k in range(21) if k != 3}
    expected |= {("linear", 2**k): 2 * k + 1.5 for k in range(21) if k not in (3, 7)}
    assert {(algorithm, size): time for algorithm, _, _, size, time in found} == expected


@pytest.mark.parametrize(
    ("machine", "rows", "expected"),
    [
        ("orfeo-thin", 47, {"from": 2, "step": 1}),
        ("orfeo-thin", 24, {"from": 2, "step": 2}),
        ("orfeo-thin", 12, {"from": 2, "step": 2}),
        ("orfeo-thin", 5, {"from": 2, "factor": 2}),
        ("orfeo-thin", 6, {"from": 1, "factor": 2}),
        ("orfeo-thin", 48, {"from": 1, "step": 1}),
        ("orfeo-thin", 22, None),
        ("orfeo-thin", 3, None),
        ("orfeo-epyc-nodes", 8, {"from": 2, "factor": 2}),
        ("orfeo-epyc-nodes", 7, {"from": 2, "factor": 2}),
        ("orfeo-epyc-nodes", 127, {"from": 2, "step": 1}),
        ("orfeo-epyc-nodes", 128, {"from": 2, "step": 2}),
        ("orfeo-epyc-nodes", 100, None),
    ],
)
def test_process_counts_that_fit(machine: str, rows: int, expected: dict | None) -> None:
    found = by_row.propose({"processes"}, [by_row.Table(rows, [], [])], CONFIGURATION.machine(machine))
    assert (found.rules["processes"] if found else None) == expected


def test_an_output_needs_two_ranks(tmp_path: Path) -> None:
    """Six launches are no doubled numbers of ranks from 1 on."""
    (entry,), questions = drafted(write(tmp_path, {"bcast_linear_core.log": output("Broadcast", 0.25, 0.5) * 6}))
    assert "by_row" not in entry and "whether the 6 outputs in a file are launches of the same cells" in questions


def test_a_column_that_is_not_understood_may_have_the_values(tmp_path: Path) -> None:
    table = column((f"{k},{k}.5" for k in COUNTS), "idx_process,latency")
    (entry,), questions = drafted(write(tmp_path, {"barrier_linear_core.csv": table}))
    assert "by_row" not in entry and "the meaning of the column 'idx_process'" in questions
