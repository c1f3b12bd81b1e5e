"""Calls after a barrier and in windows of synchronised clocks, from a study's file to its measurements."""

from __future__ import annotations

import re

import pytest
from collstudy.base.errors import StudyError
from conftest import Checkout
from made_runs import measured
from test_mpi_libraries import installed

STARTS = """title: Starts
question: How much does the barrier change?
chapter: starts
machine: this-machine
launches: {min: 1, max: 1}
sweeps:
  - &sweep
    collective: bcast
    algorithms: [default, linear]
    mappings: [core]
    processes: [2]
    sizes: {from: 1, to: 4}
    iterations: 500
    warmup: 1
  - {<<: *sweep, barrier: window}
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["mpich", "impi"])
def test_windows_with_other_libraries(checkout: Checkout, name: str) -> None:
    installed(name)
    checkout.oversubscribe()
    rows = measured(checkout, "starts", STARTS.replace("[default, linear]", f"[default]\n    mpi: [{name}]"))
    windows = [row for row in rows if row["suite"] == "collbench-windows"]
    assert len(rows) == 6 and len(windows) == 3 and {row["mpi"] for row in rows} == {name}
    assert all(int(row["iterations"]) + int(row["late"]) == 500 and int(row["iterations"]) > 0 for row in windows)
    assert all(float(row["latency_us"]) > 0 for row in windows)


@pytest.mark.long
def test_both_ways_are_measured_in_one_block(checkout: Checkout) -> None:
    checkout.oversubscribe()
    rows = measured(checkout, "starts", STARTS)
    windows = [row for row in rows if row["suite"] == "collbench-windows"]
    assert len(rows) == 12 and len(windows) == 6
    assert all(int(row["iterations"]) + int(row["late"]) == 500 for row in windows)
    assert all(row["iterations"] == "500" and row["late"] == "" for row in rows if row not in windows)
    assert all(row["proved"] == "TRUE" for row in rows if row["algorithm"] == "linear")
    assert len({row["round"].partition(":")[0] for row in rows}) == 1


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("machine: this-machine", "machine: thin", "barrier: window needs a real machine; use aligned on a simulated one"),
        ("bcast\n    algorithms: [default, linear]", "ibcast\n    algorithms: [default]",
         "barrier: only blocking collectives support window"),
        (", barrier: window", "", "chapter starts needs sweeps of a collective with and without barrier: window"),
        ("chapter: starts\n", "", "bcast is swept with and without `barrier: window`; only `chapter: starts` can show both, "
         "so set it or split the study"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(checkout: Checkout, old: str, new: str, why: str) -> None:
    checkout.write("config/studies/starts.yaml", STARTS.replace(old, new, 1))
    with pytest.raises(StudyError, match=re.escape(why)):
        checkout.configuration.study("starts")
