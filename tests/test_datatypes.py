"""Datatypes and operations of the collectives of a program: in its trace, and in the table of its account."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collstudy.launch import tracefile
from collstudy.launch.actions import read_calls
from collstudy.launch.openmpi import OVERSUBSCRIBED
from collstudy.launch.ran import launcher_of, with_variables
from collstudy.launch.toolchain import installed, mpis
from collstudy.project.studies import Project
from collstudy.study.traces import Trace
from conftest import ROOT, Checkout, csv_rows, finish, must, write_mpi4py

every_library = pytest.mark.parametrize("name", ["openmpi", "mpich", "impi"])
#: What tests/typed.c calls: collective, datatypes (on rank 0, and on rank 1 where they differ), reduction.
TYPED = """
allreduce double; sum
allreduce int; max
allreduce double_int; maxloc
iallreduce unsigned_long; bor
reduce double_precision; prod
bcast float
bcast derived with gaps (32 B)|double
bcast derived (8 B)
bcast derived (16 B)
bcast derived (24 B)
gather short
scatterv short
allgatherv short
alltoall short
allreduce
allgatherv
bcast
barrier
alltoallw byte+int|int+byte
scan derived (16 B); user
reduce_scatter_block derived (16 B); user (not commutative)
"""


def traced(folder: Path, name: str, *command: str | Path) -> tuple[dict, list[dict[str, str]]]:
    """Trace a command on two ranks of an MPI library; return trace.json and the calls of collectives."""
    mpi, ranks = installed(name), folder / "ranks"
    ranks.mkdir()
    words = [str(mpi.mpirun), "-n", "2", *(OVERSUBSCRIBED if name == "openmpi" else ()), *map(str, command)]
    line, own = with_variables(words, launcher_of(words), mpi, {}, ranks, ran=False)
    must(finish(line, timeout=120, env=mpi.environment() | own))
    about = tracefile.collect(ranks, 2, folder / "calls.csv.gz")
    return about, [row for row in read_calls(folder / "calls.csv.gz") if tracefile.is_collective(row["operation"])]


def typed(folder: Path, name: str) -> tuple[dict, list[dict[str, str]]]:
    if name not in mpis():
        pytest.skip(f"no {name}")
    mpi = installed(name)
    command = [mpi.mpicc, "-Wall", "-Wextra", "-Werror", "-o", folder / "typed", ROOT / "tests" / "typed.c"]
    subprocess.run(command, check=True, env=mpi.environment())
    return traced(folder, name, folder / "typed")


def described(row: dict[str, str]) -> str:
    """Return the call of a row as in TYPED."""
    kinds = row["datatypes"].replace(";", "+") + (f"; {row['reduction']}" if row["reduction"] else "")
    return f"{row['operation']} {kinds}".strip()


@every_library
def test_a_trace_has_the_datatypes_and_operations_of_collectives(tmp_path: Path, name: str) -> None:
    _, rows = typed(tmp_path, name)
    for rank in range(2):
        wanted = []
        for line in TYPED.split("\n")[1:-1]:
            collective, _, kinds = line.partition(" ")
            wanted.append(f"{collective} {kinds.split('|')[rank if '|' in kinds else 0]}".strip())
        found = [described(row) for row in rows if row["rank"] == str(rank)]
        # Open MPI 5 does not have the functions of MPI 4 that make a type with a large count.
        assert found == [line for line in wanted if line in found or "24 B" not in line]
    assert {(row["to"], row["from"], row["send_tag"], row["receive_tag"]) for row in rows} == {("-1", "-1", "0", "0")}


PYTHON = """
from mpi4py import MPI

def doubles():
    return memoryview(bytearray(32)).cast("d")

comm = MPI.COMM_WORLD
comm.Allreduce(doubles(), doubles())
comm.Allreduce(doubles(), doubles(), MPI.Op.Create(lambda one, other, datatype: None, commute=True))
every_other = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
comm.Bcast([doubles(), 1, every_other])
"""


def test_a_program_in_python(tmp_path: Path) -> None:
    write_mpi4py(tmp_path, PYTHON)
    words = ["-x", f"PYTHONPATH={tmp_path / 'lib'}", sys.executable, tmp_path / "program.py"]
    _, rows = traced(tmp_path, "openmpi", *words)
    mine = [described(row) for row in rows if row["rank"] == "0" and row["operation"] != "barrier"]
    assert mine == ["allreduce double; sum", "allreduce double; user", "bcast derived with gaps (16 B)"]


def account_of(folder: Path, about: dict) -> dict[tuple[str, str], tuple[str, str]]:
    """Return datatypes and reduction in the account of a trace in *folder*, by collective and class of sizes."""
    (folder / "about.json").write_text(json.dumps({"failure": "", "trace": about}))
    study = folder / "results" / "study"
    study.mkdir(parents=True, exist_ok=True)
    program = {"trace": "..", "digest": "0", "worth_pct": 0}
    (study / "program.json").write_text(json.dumps(program))
    must(finish(["Rscript", ROOT / "workflow" / "scripts" / "analyse.R", "account", study], timeout=120))
    rows = csv_rows(study / "sampling" / "cells.csv")
    return {(row["operation"], row["size_bytes"]): (row["datatypes"], row["reduction"]) for row in rows}


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="Rscript is not on PATH")
def test_the_account_has_datatypes_and_operations_most_bytes_first(tmp_path: Path) -> None:
    about, rows = typed(tmp_path, "openmpi")
    found = account_of(tmp_path, about)
    # 16 bytes of double and 12 of double_int are one class, 8 of int another.
    assert found["allreduce", "8"] == ("double_int, int", "maxloc, max")
    assert found["allreduce", "16"] == ("double", "sum")
    assert found["allreduce", "0"] == found["barrier", "0"] == ("", "")
    # The root sends a derived type, the other rank receives its elements.
    assert sorted(found["bcast", "32"][0].split(", ")) == ["derived with gaps (32 B)", "double"]
    assert sorted(found["bcast", "8"][0].split(", ")) == ["derived (8 B)", "float"]
    assert found["reduce_scatter_block", "16"] == ("derived (16 B)", "user (not commutative)")
    # A table of an earlier version has no such columns: it is read, and nothing is claimed.
    columns = tracefile.KNOWN_COLUMNS[-1]
    earlier = [{name: row[name] for name in columns} for row in read_calls(tmp_path / "calls.csv.gz")]
    with gzip.open(tmp_path / "calls.csv.gz", "wt", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(earlier)
    assert list(read_calls(tmp_path / "calls.csv.gz")) == earlier
    assert account_of(tmp_path, about) == dict.fromkeys(found, ("", ""))


MINE = """
title: Mine
question: Which?
machine: this-machine
program: {command: "MPIRUN -n 2 true", folder: FOLDER}
analysis: {tuning: {}}
"""


def test_traces_that_are_stored_without_datatypes_stay_valid(checkout: Checkout, tmp_path: Path) -> None:
    """Of their identity is the version of the table, not that of the files of the ranks."""
    text = MINE.replace("MPIRUN", str(installed("openmpi").mpirun)).replace("FOLDER", str(tmp_path))
    checkout.write("config/studies/mine.yaml", text)
    project = Project(checkout.folder / "config")
    for study in "mine", "congestion":
        works = project.source(study).work()
        assert {work.decides["trace_version"] for work in works if isinstance(work, Trace)} == {1}


@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce", "reduce_scatter", "alltoallv"])
def test_the_analysis_knows_what_the_benchmark_measures_with(tmp_path: Path, collective: str) -> None:
    program = installed("openmpi").build / "bench" / f"collbench_{collective}"
    _, rows = traced(tmp_path, "openmpi", program, "-m", "64:64", "-i", "3", "-x", "0")
    kinds = {
        (row["datatypes"], row["reduction"])
        for row in rows
        # Not its own reductions of times.
        if row["operation"] == collective and {"64", "128"} & {row["sent_bytes"], row["received_bytes"]}
    }
    text = (ROOT / "workflow" / "analysis" / "R" / "datatypes.R").read_text(encoding="utf-8")
    known = dict(re.findall(r'^benchmark_(\w+) <- "(.*)"$', text, re.MULTILINE))
    assert kinds == {(known["datatype"], known["reduction"] if "reduce" in collective else "")}
