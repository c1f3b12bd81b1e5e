"""A program is tuned in jobs of a real Slurm, over two nodes."""

# Fixtures are imported: their names come again as arguments.
# ruff: noqa: F811
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from collstudy.launch.openmpi import library
from collstudy.launch.toolchain import mpi_environment
from conftest import ROOT, csv_rows
from slurm_study import SlurmStudy, cluster, hosts_only, tiny, two  # noqa: F401

#: Four ranks fill two nodes.
MACHINE = """
kind: slurm
label: Two small test nodes
mpi: openmpi
levels: [{name: node, count: 2}, {name: core, count: 2}]
slurm: {partition: THIN, exclusive: true, setup_minutes: 1}
launch_time_limit_s: 60
"""
#: A default that is slower than all others.
WRONG = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
    "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "512",
}


@pytest.mark.long
def test_a_program_is_tuned_on_two_nodes(two, cluster, tmp_path: Path) -> None:
    hosts_only(cluster)
    study: SlurmStudy = two()
    study.checkout.write("config/machines/small.yaml", MACHINE)
    program = tmp_path / "tuned"
    subprocess.run(
        [library().mpicc, "-o", program, ROOT / "tests" / "tuned.c", "-lpthread"], check=True, env=mpi_environment()
    )
    study.environment |= WRONG
    command = ["tune", "--name", "far", "--runs", "5", "--budget", "0.5", "--machine", "small"]
    command += ["--folder", str(tmp_path), "--", str(library().mpirun), "-n", "4", "./tuned", "plain", "65536", "300"]
    written = study.collstudy(*command)
    assert written.returncode == 0, written.stderr
    name, *profile = written.stdout.split()
    assert (name, profile) == ("tune-far", ["--", "--profile", "slurm"])
    study.run("--config", f"studies={name}", limit_s=900)
    results = study.folder / "results" / name
    # The trace, the runs of the program and the cells: all of them in jobs on both nodes.
    assert {row["nodes"] for row in csv_rows(results / "cells.csv")} == {"2"}
    submitted = [job["id"] for job in study.jobs()]
    measured = {one["provenance"]["slurm"]["job"] for cell in study.launches().values() for one in cell}
    assert measured and measured < set(submitted)
    judged = {row["part"]: row["verdict"] for row in csv_rows(results / "tables" / "tuning-judged.csv")}
    assert judged == {"whole": "faster", "collectives": "faster"}
    ran = {row["file"]: row["algorithm"] for row in csv_rows(results / "tables" / "tuning-ran.csv")}
    assert ran["default"] == "pipeline[segment 512]" and ran["tuned"] not in ("", ran["default"])
    assert "openmpi-core-n2.rules" in (results / "tuning" / "result.txt").read_text()
