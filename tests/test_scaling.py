"""Studies of an application: cells, runs in the simulator and with real MPI, and rejected input."""

from __future__ import annotations

import io
import os
from pathlib import Path

import made_cells
import pytest
from collstudy.base.errors import StudyError
from collstudy.launch.execute import LaunchFailed, execute
from collstudy.project.studies import Project
from collstudy.study.cells import Cell
from conftest import Checkout
from made_runs import measured

STUDY = """
title: Scaling
question: How fast?
machine: plain
sweeps:
  - collective: svd
    mappings: [core]
    processes: [1, 2, 4]
    problem_sizes: [24, 33]
"""
PLAIN = """
kind: simulated
label: Two plain nodes
core_gflops: 0.5
levels:
  - {name: node, count: 2, latency_us: 30, bandwidth_gb_s: 0.1}
  - {name: core, count: 2, latency_us: 1, bandwidth_gb_s: 5}
"""


def cells_of(checkout: Checkout, study: str = STUDY, machine: str = PLAIN) -> list[Cell]:
    checkout.write("config/machines/plain.yaml", machine)
    return made_cells.cells_of(checkout, study)


def test_one_cell_for_each_number_of_processes_and_problem_size(checkout: Checkout) -> None:
    cells = cells_of(checkout)
    assert [(dict(c.parameters)["n"], c.processes) for c in cells] == [(n, p) for n in (24, 33) for p in (1, 2, 4)]
    assert all((c.sizes, c.suite["name"], c.selection.to_json()) == (None, "svd", {"core_gflops": 0.5}) for c in cells)


def test_the_rate_is_part_of_these_cells_only(checkout: Checkout) -> None:
    ladder = "\n  - {collective: latency, levels: [core], sizes: {from: 1, to: 8}}\n"
    slow, fast = (
        {cell.digest for cell in cells_of(checkout, STUDY + ladder, PLAIN.replace("0.5", rate))}
        for rate in ("0.5", "2")
    )
    assert len(slow & fast) == 1 and len(slow | fast) == 13


def test_simulated_runs_are_real_decompositions_at_the_rate_of_the_machine(checkout: Checkout) -> None:
    cells_of(checkout)
    rows = measured(checkout, "tiny")
    assert len(rows) == 6 and {row["simulated"] for row in rows} == {"TRUE"}
    for row in rows:
        assert float(row["residual"]) < 1e-13 and float(row["sweeps"]) >= 4 and row["size_bytes"] == ""
        if row["processes"] == "1":
            assert float(row["latency_us"]) == pytest.approx(float(row["flops"]) / 0.5e3, rel=1e-6)
            assert float(row["comm_us"]) == 0
        else:
            assert 0 < float(row["comm_us"]) < float(row["latency_us"])
    # On two nodes, messages take tens of microseconds.
    of = {(row["parameters"], row["processes"]): float(row["comm_us"]) for row in rows}
    assert of["n=24", "4"] > 10 * of["n=24", "2"]


@pytest.mark.long
def test_real_runs_on_this_machine(checkout: Checkout) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    study = STUDY.replace("plain", "this-machine").replace("[1, 2, 4]", "[1, 2]")
    study += "    mpi: [openmpi, mpich]\nlaunches: {min: 1, max: 1}\n"
    rows = measured(checkout, "tiny", study)
    assert [row["processes"] for row in rows] == ["1", "2"] * 4 and {row["simulated"] for row in rows} == {"FALSE"}
    assert all(float(row["residual"]) < 1e-13 for row in rows)


def test_the_compared_study_is_part_of_the_run() -> None:
    studies, left_out = Project().available(["svd-scaling"], explicit=True)
    assert [source.study.name for source in studies] == ["svd-scaling", "svd-scaling-here"] and not left_out


@pytest.mark.parametrize(
    ("study", "machine", "message"),
    [
        (STUDY.replace("4]", "8]"), PLAIN, "processes: 8 is more than the 4 cores of 2 nodes of machine plain"),
        (STUDY, PLAIN.replace("core_gflops: 0.5\n", ""), "machine plain has no core_gflops"),
        (STUDY.replace("[24, 33]", "[24, 0]"), PLAIN, "sweeps.0.problem_sizes.1 is 0; it must be at least 1"),
        (STUDY + "    iterations: 3\n", PLAIN, "svd runs once per launch.*remove iterations"),
        (STUDY.replace("    problem_sizes: [24, 33]", "    algorithms: [default]"), PLAIN, "svd needs problem_sizes"),
        (
            STUDY.replace("svd\n    m", "bcast\n    algorithms: [linear]\n    m"),
            PLAIN,
            "problem_sizes is only for svd; remove it from bcast",
        ),
        (STUDY.replace("    mappings: [core]\n", ""), PLAIN, "lacks the key 'mappings'"),
    ],
)
def test_bad_studies_are_named(checkout: Checkout, study: str, machine: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        cells_of(checkout, study, machine)


def test_the_reason_of_a_failed_run_is_what_the_program_says(checkout: Checkout) -> None:
    program = Path(Project().configuration.folder).parent / ".study/build/simulated/apps/svd"
    if not program.exists():
        pytest.skip("no SimGrid")
    (checkout.folder / "p.xml").write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'><platform version='4.1'>"
        "<cluster id='c' prefix='n' suffix='' radical='0-1' speed='1Gf' bw='1GBps' lat='1us'/></platform>"
    )
    (checkout.folder / "hosts").write_text("n0\nn1\n")
    command = ["smpirun", "-np", "2", "-platform", "p.xml", "-hostfile", "hosts", program]
    command += ["--random", "30", "30", "--sweeps", "2"]
    with pytest.raises(LaunchFailed, match=r"exit status .*svd: not converged after 2 sweeps: .*residual"):
        execute(command, 60, io.StringIO(), dict(os.environ), checkout.folder)


@pytest.mark.long
def test_a_full_duplex_link_carries_both_directions_of_an_exchange(checkout: Checkout) -> None:
    slow = PLAIN.replace("bandwidth_gb_s: 0.1", "bandwidth_gb_s: 0.001").replace(
        "name: core, count: 2", "name: core, count: 1"
    )
    study = STUDY.replace("[1, 2, 4]", "[2]").replace("[24, 33]", "[32]")
    seconds = []
    for machine in (slow, slow.replace("0.001}", "0.001, full_duplex: true}")):
        cells_of(checkout, study, machine)
        seconds.append(float(measured(checkout, "tiny")[-1]["comm_us"]))
    # The shifts of blocks go in both directions at once, scatter and gather do not.
    assert 1.7 < seconds[0] / seconds[1] < 2
