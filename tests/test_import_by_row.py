"""Tables that lack sizes or processes, such as files with one column of times: the row number gives them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from collstudy.base.paths import ROOT
from collstudy.sources.importing import by_row
from collstudy.sources.importing.draft import draft
from collstudy.study.config import Configuration
from conftest import Checkout, csv_rows, must

CONFIGURATION = Configuration(ROOT / "config")
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
                f"np={p}\n\n# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n"
                + column(f"{s:<10d}{us(a, m, p, s):18.2f}" for s in SIZES) for p in DOUBLED)
            for a, m in NAMES
        },
        "whether the 105 rows of a file are 2 to 32 processes (doubled), each for 21 rows",
        [(a, m, p, s) for a, m in NAMES for p in DOUBLED for s in SIZES],
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_the_row_number_gives_is_proposed(checkout: Checkout, layout: str) -> None:
    files, asked, expected = LAYOUTS[layout]
    for name, text in files.items():
        checkout.write(f"measured/{name}", text)
    done = must(checkout.collstudy("import", "measured", "--name", "theirs", "--machine", "orfeo-thin"))
    assert asked in done.stderr and "it can be set" not in done.stderr
    path = checkout.folder / "config" / "studies" / "theirs.yaml"
    path.write_text(path.read_text().replace("question: '?'", "question: Which?"))
    must(checkout.collstudy("--results", "results", "collect", "theirs"))
    rows = csv_rows(checkout.folder / "results" / "theirs" / "measurements.csv")
    found = {
        (r["algorithm"], r["mapping"], int(r["processes"]), int(r["size_bytes"])): float(r["latency_us"]) for r in rows
    }
    assert found == {cell: us(*cell) for cell in expected} and len(rows) == len(expected)


def asked(folder: Path, machine: str | None = "orfeo-thin") -> tuple[dict, str]:
    text, questions = draft(folder, "theirs", machine, CONFIGURATION)
    (entry,) = yaml.safe_load(text)["import"]["files"]
    return entry, "\n".join(questions)


def test_numbers_of_rows_that_fit_nothing_are_asked_about(tmp_path: Path) -> None:
    for name, count in (("linear", 16), ("chain", 17)):
        (tmp_path / f"bcast_{name}_core_np4.csv").write_text(column(range(1, count + 1), "latency"))
    entry, questions = asked(tmp_path)
    assert "by_row" not in entry
    assert "size_bytes; it can be set in `constants` or `by_row` (a file has 16 to 17 rows)" in questions


def test_rows_that_may_be_sizes_or_processes_are_asked_about(tmp_path: Path) -> None:
    """23 rows are 1 B to 4 MiB, or 2 to 24 processes of one node."""
    (tmp_path / "bcast_linear_core.csv").write_text(column(range(1, 24), "latency"))
    entry, questions = asked(tmp_path)
    assert "by_row" not in entry
    assert all(f"{field}; it can be set" in questions for field in ("processes", "size_bytes"))


def test_process_counts_need_a_machine(tmp_path: Path) -> None:
    (tmp_path / "barrier_linear_core.csv").write_text(column(range(1, 25), "latency"))
    entry, questions = asked(tmp_path, None)
    assert "by_row" not in entry and "with --machine, process counts that fit its cores are proposed" in questions
    entry, questions = asked(tmp_path, "not-yet")
    assert "by_row" not in entry and "config/machines/not-yet.yaml does not exist yet" in questions
    assert asked(tmp_path)[0]["by_row"] == {"processes": {"from": 2, "step": 2}}


def test_a_column_that_nothing_names_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "bcast_linear_core_np4_8B.txt").write_text(column((f"{k % 7}.5" for k in range(100)), "ttime"))
    _, questions = asked(tmp_path)
    for text in (
        "whether the column 'ttime' is the time",
        "whether 8B in the names are message sizes",
        "whether the 100 rows of a file are launches, or single calls (`rows: iterations`)",
    ):
        assert text in questions


def test_empty_lines_are_told(tmp_path: Path) -> None:
    times = [*range(1, 11), "", *range(11, 25)]
    (tmp_path / "barrier_linear_core.csv").write_text(column(times, "latency"))
    assert "1 to 24 processes (by 1); 1 empty line between rows is not counted" in asked(tmp_path)[1]


def test_a_row_that_is_not_used_counts(checkout: Checkout) -> None:
    """A row with too few or unreadable fields does not move the sizes of the rows below it."""
    rows = [f"{2 * k + 1}.5,{k + 1}.25" for k in range(21)]
    rows[3], rows[7] = "7.5", "failed,8.25"
    checkout.write("measured/bcast_core_np4.csv", column(rows, "linear,chain"))
    must(checkout.collstudy("import", "measured", "--name", "theirs", "--machine", "orfeo-thin"))
    path = checkout.folder / "config" / "studies" / "theirs.yaml"
    path.write_text(path.read_text().replace("question: '?'", "question: Which?"))
    must(checkout.collstudy("--results", "results", "collect", "theirs"))
    found = {
        (r["algorithm"], int(r["size_bytes"])): float(r["latency_us"])
        for r in csv_rows(checkout.folder / "results" / "theirs" / "measurements.csv")
    }
    expected = {("chain", 2**k): k + 1.25 for k in range(21) if k != 3}
    assert found == expected | {("linear", 2**k): 2 * k + 1.5 for k in range(21) if k not in (3, 7)}


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


def test_a_column_that_is_not_understood_may_have_the_values(tmp_path: Path) -> None:
    (tmp_path / "barrier_linear_core.csv").write_text(column((f"{k},{k}.5" for k in COUNTS), "idx_process,latency"))
    entry, questions = asked(tmp_path)
    assert "by_row" not in entry and "the meaning of the column 'idx_process'" in questions
