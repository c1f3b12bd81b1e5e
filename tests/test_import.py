"""Somebody's measurements: CSV with a column mapping, raw OMB output, and what is wrong with them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from conftest import Checkout

STUDY = """
title: Theirs
question: q
machine: orfeo-thin
import:
  suite: OSU Micro-Benchmarks
  files:
    - path: {folder}/bcast_*.csv
      collective: bcast
      columns: {{algorithm: Algorithm, mapping: Allocation, processes: P, size_bytes: Size, latency_us: Latency, max_latency_us: Max}}
      algorithms: {{Flat: linear, Default: default}}
"""
GOOD = (
    "Algorithm, Allocation,P ,Size,Latency, Max\nFlat,core,2,1,0.5,0.6\nFlat,core,2,2,0.6,0.7\nDefault,core,2,1,0.4,0.5"
)


def collect(checkout: Checkout, text: str = STUDY) -> tuple[int, str]:
    checkout.write("config/studies/theirs.yaml", text.format(folder=checkout.folder / "data"))
    done = checkout.collstudy("--results", "results", "collect", "theirs")
    return done.returncode, done.stderr


def table(checkout: Checkout, name: str) -> list[dict[str, str]]:
    with open(checkout.folder / "results" / "theirs" / f"{name}.csv", newline="") as stream:
        return list(csv.DictReader(stream))


def test_blanks_gaps_and_a_missing_last_newline(checkout: Checkout) -> None:
    checkout.write("data/bcast_a.csv", GOOD)
    assert collect(checkout) == (0, "")
    found = [
        (r["algorithm"], r["size_bytes"], r["latency_us"], r["max_latency_us"]) for r in table(checkout, "measurements")
    ]
    assert found == [("default", "1", "0.4", "0.5"), ("linear", "1", "0.5", "0.6"), ("linear", "2", "0.6", "0.7")]
    status = {row["algorithm"]: (row["status"], row["reason"]) for row in table(checkout, "cells")}
    assert status["linear"] == ("measured", "")
    assert status["default"] == ("missing", "1 of 2 sizes are not in the imported data")


def test_duplicates_are_counted_and_repetitions_are_launches(checkout: Checkout) -> None:
    checkout.write("data/bcast_a.csv", GOOD + "\nFlat,core,2,1,0.5,0.6\nFlat,core,2,1,0.9,1.0\nFlat,core,2,4,x,1\n")
    assert collect(checkout) == (0, "")
    launches = [(r["launch"], r["latency_us"]) for r in table(checkout, "measurements") if r["algorithm"] == "linear"][
        :2
    ]
    assert launches == [("1", "0.5"), ("2", "0.9")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD.replace("Latency", "Lat"), ["bcast_a.csv: no column 'Latency' for latency_us", "known: ", "Lat"]),
        (GOOD.replace("Default", "Other"), ["algorithm 'Other' is not mapped", "Flat", "linear"]),
        (GOOD.replace("core", "corn"), ["mapping 'corn' is unknown", "core"]),
        ("", ["bcast_a.csv: the file is empty"]),
    ],
)
def test_wrong_columns_and_names(checkout: Checkout, content: str, expected: list[str]) -> None:
    checkout.write("data/bcast_a.csv", content)
    status, message = collect(checkout)
    assert status == 2
    for text in expected:
        assert text in message


def test_missing_files(checkout: Checkout) -> None:
    status, message = collect(checkout)
    assert status == 2 and "no file matches" in message and "STUDY_REFERENCE_DATA" in message
    # Named among others it is left out with one line; named alone there is nothing to do.
    checkout.write("config/config.yaml", "studies: [tiny, theirs]\n")
    done = checkout.collstudy("status")
    assert done.returncode == 0 and "study theirs is left out: no file matches" in done.stdout
    done = checkout.collstudy("status", "theirs")
    assert done.returncode == 2 and "no file matches" in done.stderr


RAW = """
title: Theirs
question: q
machine: orfeo-thin
import:
  files:
    - path: {folder}/bcast_{{algorithm}}_{{mapping}}_{{processes}}.txt
      collective: bcast
      format: omb
"""


def test_raw_output_with_facts_in_the_file_name(checkout: Checkout) -> None:
    source = Path(__file__).parent / "data" / "omb-7.4" / "smpi-bcast-24-full.txt"
    checkout.write("data/bcast_linear_core_24.txt", source.read_text())
    assert collect(checkout, RAW) == (0, "")
    found = table(checkout, "measurements")
    assert {(r["algorithm"], r["mapping"], r["processes"]) for r in found} == {("linear", "core", "24")}
    assert [int(r["size_bytes"]) for r in found] == [2**k for k in range(21)]


def test_truncated_raw_output(checkout: Checkout) -> None:
    source = Path(__file__).parent / "data" / "omb-7.4" / "smpi-bcast-24-full.txt"
    checkout.write("data/bcast_linear_core_24.txt", source.read_text()[:-25])
    status, message = collect(checkout, RAW)
    assert status == 2 and "bcast_linear_core_24.txt: line" in message
