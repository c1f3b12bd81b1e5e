"""Parameters of algorithms (segment size, fan-out, radix) that imported files give."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import csv_rows
from made_imports import Import, drafted, joined, write

#: Entry of a table with all parameters in its columns.
STUDY = """
import:
  mpi: Open MPI
  mpi_version: "4.1.6"
  files:
    - path: '{folder}/bcast.csv'
      collective: bcast
      constants: {{mapping: core, processes: 8}}
      columns: {{algorithm: algorithm, size_bytes: size, latency_us: us, segment_bytes: segsize, fanout: k, radix: k}}
"""
HEADER = "algorithm,segsize,k,size,us"


def of_rows(folder: Path, *rows: tuple) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    theirs = Import(folder)
    theirs.collect(STUDY, {"bcast.csv": joined([*rows], HEADER)})
    found = [(row["algorithm"], row["parameters"], row["launch"], row["latency_us"]) for row in theirs.rows()]
    return found, theirs.account["problems"]


def test_each_algorithm_has_its_own_parameters(tmp_path: Path) -> None:
    """A column k is the fan-out of chains and the radix of k-nomial trees."""
    rows = [
        ("chain", "8192", 2, 64, 1.0),
        ("chain", "8K", 4, 64, 2.0),
        ("knomial", 0, 4, 64, 3.0),
        ("pipeline", 1024, "", 64, 4.0),
    ]
    found, problems = of_rows(tmp_path, *rows, ("linear", 0, 0, 64, 5.0))
    assert found == [
        ("linear", "", "1", "5.0"),
        ("chain", "fanout=2;segment_bytes=8192", "1", "1.0"),
        ("chain", "fanout=4;segment_bytes=8192", "1", "2.0"),
        ("pipeline", "segment_bytes=1024", "1", "4.0"),
        ("knomial", "radix=4", "1", "3.0"),
    ]
    assert not problems
    # Models of messages look for the trees of each variant.
    edges = {(row["algorithm"], row["parameters"]) for row in csv_rows(tmp_path / "results/theirs/edges.csv")}
    assert {
        ("chain", "fanout=2;segment_bytes=8192"), ("chain", "fanout=4;segment_bytes=8192"), ("pipeline", "segment_bytes=1024")
    } <= edges  # fmt: skip


def test_parameters_without_an_effect_are_counted(tmp_path: Path) -> None:
    """Rows that differ in nothing else are launches of the same cells."""
    rows = [("linear", segment, "", 64, us) for segment, us in ((1024, 1.0), (8192, 2.0))]
    found, problems = of_rows(tmp_path, *rows, ("default", 1024, "", 64, 3.0))
    assert [row[:3] for row in found] == [("default", "", "1"), ("linear", "", "1"), ("linear", "", "2")]
    assert problems == {
        "parameters segment_bytes that the algorithm of their row does not take (first: bcast.csv, line 2)": 3
    }
    (finding,) = csv_rows(tmp_path / "results/theirs/import-checks.csv")
    assert (
        finding["found"].startswith("3 parameters segment_bytes")
        and finding["action"] == "the rows are used without them"
    )


def test_invalid_parameters(tmp_path: Path) -> None:
    found, problems = of_rows(
        tmp_path, ("chain", "1.5", 2, 64, 1.0), ("chain", 1024, "two", 64, 1.0), ("chain", 0, 2, 64, 1.0)
    )
    assert len(found) == 1
    assert problems == {
        "rows whose segment_bytes is not a whole number (first: bcast.csv, line 2)": 1,
        "rows whose fanout is not a number (first: bcast.csv, line 3)": 1,
    }


@pytest.mark.parametrize("header", ["segsize", "segment_size", "Segment size (bytes)", "seg_bytes"])
def test_the_draft_of_columns(tmp_path: Path, header: str) -> None:
    table = joined([("chain", "core", 8, 1024, 4, 64, 1.0)], f"algorithm,mapping,np,{header},fanout,size,us")
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert (entry["columns"]["segment_bytes"], entry["columns"]["fanout"], entry["columns"]["size_bytes"]) == (
        header,
        "fanout",
        "size",
    )
    assert questions == ""


def test_the_draft_of_a_column_k(tmp_path: Path) -> None:
    table = joined([("knomial", "core", 8, 4, 64, 1.0)], "algorithm,mapping,np,k,size,us")
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert (entry["columns"]["fanout"], entry["columns"]["radix"]) == ("k", "k")
    assert questions == "bcast.csv (1 file): whether the column 'k' is the fan-out or the radix of the algorithms"


def test_parameters_in_names(tmp_path: Path) -> None:
    """Files of several segment sizes are no launches of the same cells."""
    table = joined([(8, 64, 1.0)], "np,size,us")
    names = [f"bcast_chain_core_{word}{size}.csv" for size in (1024, 8192) for word in ("seg",)]
    (entry,), questions = drafted(write(tmp_path, dict.fromkeys(names, table)))
    assert (entry["path"], questions) == ("bcast_{algorithm}_{mapping}_seg{segment_bytes}.csv", "")
    study = "\nimport:\n  files:\n    - {{path: '{folder}/bcast_{{algorithm}}_{{mapping}}_seg{{segment_bytes}}.csv', collective: bcast,\n"
    columns = "        columns: {{processes: np, size_bytes: size, latency_us: us}}}}\n"
    (tmp_path / "run").mkdir()
    theirs = Import(tmp_path / "run")
    theirs.collect(study + columns, dict.fromkeys(names, table))
    assert [row["parameters"] for row in theirs.rows()] == ["segment_bytes=1024", "segment_bytes=8192"]


def test_columns_of_times_by_segment_size(tmp_path: Path) -> None:
    table = joined([("chain", "core", 64, 1.0, 2.0)], "algorithm,mapping,size,np8_seg1024,np8_seg8192")
    (entry,), _ = drafted(write(tmp_path, {"bcast.csv": table}))
    assert entry["wide"] == "np{processes}_seg{segment_bytes}"
