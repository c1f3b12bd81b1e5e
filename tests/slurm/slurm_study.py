"""A study on the test cluster, and the cluster that the tests of one file share.

It has few ranks and cells, so that each file takes only minutes on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from conftest import ROOT, Checkout, csv_rows
from processes import wait_until

MACHINE = """
kind: slurm
label: Two test nodes
like: thin
mpi: openmpi
slurm: {partition: THIN, exclusive: true, setup_minutes: 1}
launch_time_limit_s: 60
"""
STUDY = """
title: Two nodes
question: Does it work?
machine: pair
launches: {min: LAUNCHES, max: LAUNCHES}
sweeps:
  - {collective: bcast, algorithms: [linear, binomial], mappings: [MAPPINGS], processes: [4], sizes: {from: 1, to: 64},
     iterations: 5, warmup: 1}
"""
MEASURED = "results/two/measurements.csv"
SNAKEMAKE = (sys.executable, str(Path(__file__).with_name("snakemake_polling.py")))
PROFILE = ["--profile", "slurm", "--slurm-init-seconds-before-status-checks", "3"]


class SlurmStudy:
    """A checkout on the login node with the study `two` for the cluster's nodes."""

    def __init__(self, cluster: Cluster, folder: Path, launches: int = 2, mappings: str = "core, node"):
        self.cluster = cluster
        self.checkout = Checkout(folder)
        self.folder = folder
        (folder / "slurm").symlink_to("profiles/slurm")
        self.checkout.write("config/machines/pair.yaml", MACHINE)
        self.study = STUDY.replace("LAUNCHES", str(launches)).replace("MAPPINGS", mappings)
        self.checkout.write("config/studies/two.yaml", self.study)
        self.checkout.write("config/config.yaml", "studies: [two]\nresults: results\n")
        self.environment = {
            **os.environ, "PYTHONPATH": str(folder / "workflow"), "R_LIBS": str(ROOT / ".study" / "R"), "STUDY_PROGRESS_SECONDS": "2",
        }  # fmt: skip

    def start(self, *arguments: str, snakemake: Sequence[str] = SNAKEMAKE) -> subprocess.Popen[str]:
        """Start snakemake; its output goes to the file `output`."""
        with open(self.folder / "output", "w") as output:
            return self.cluster.popen(
                [*snakemake, *PROFILE, *arguments], cwd=self.folder, env=self.environment, stdout=output, stderr=output,
                text=True,
            )  # fmt: skip

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def run(self, *arguments: str, status: int = 0, limit_s: float = 300) -> str:
        process = self.start(*(arguments or (MEASURED,)))
        assert process.wait(limit_s) == status, self.output() + self.logs()
        return self.output()

    def run_all(self) -> str:
        """Run the whole study like a user."""
        process = self.start(snakemake=["snakemake"])
        assert process.wait(300) == 0, self.output() + self.logs()
        return self.output()

    def logs(self) -> str:
        return "".join(f"--- {p}\n{p.read_text()[-3000:]}" for p in (self.folder / "logs").rglob("*.log"))

    def collstudy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "collstudy", "--results", "results", *arguments]
        return self.cluster.run(command, check=False, cwd=self.folder, env=self.environment)

    def jobs(self) -> list[dict[str, str]]:
        """Return all Slurm jobs of this folder, oldest first."""
        lines = self.cluster.run(["squeue", "-h", "-t", "all", "-S", "i", "-o", "%i|%T|%l|%Z|%k"]).stdout.splitlines()
        rows = [
            dict(zip(("id", "state", "limit", "folder", "comment"), line.split("|"), strict=True)) for line in lines
        ]
        return [row for row in rows if Path(row["folder"]) == self.folder]

    def launches(self) -> dict[str, list[dict[str, Any]]]:
        """Return the launches in each cell file."""
        files = (self.folder / "results" / "cells").rglob("*.json")
        return {path.name: json.loads(path.read_text())["launches"] for path in files if not path.name.startswith(".")}

    def cells(self) -> list[dict[str, str]]:
        return csv_rows(self.folder / "results" / "two" / "cells.csv")

    def until_kept(self, count: int) -> dict[str, list[dict[str, Any]]]:
        """Wait until *count* launches are stored, while a block runs."""
        assert wait_until(lambda: sum(map(len, self.launches().values())) >= count, 90), self.output() + self.logs()
        return self.launches()

    def assert_complete(self, kept: dict[str, list[dict[str, Any]]], launches: int) -> None:
        """Check that every cell has its launches, and that those stored earlier come first: none is lost or repeated."""
        now = self.launches()
        for name, first in kept.items():
            assert now[name][: len(first)] == first, name
        for name, mine in now.items():
            assert [launch["launch"] for launch in mine] == list(range(1, launches + 1)), name
        assert {row["status"] for row in self.cells()} == {"measured"}
        assert not list((self.folder / "results").rglob("*.tmp"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """Mount a file system of 3 MB that all hosts of the cluster see; None if that is not possible."""
    folder = tmp_path_factory.mktemp("tiny")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False)
    try:
        yield folder if done.returncode == 0 else None
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=False)


@pytest.fixture(scope="module")
def cluster(tiny: Path | None) -> Iterator[Cluster]:
    with Cluster(name=f"study{os.getpid()}") as running:
        yield running


@pytest.fixture
def two(cluster: Cluster, tmp_path: Path) -> Callable[..., SlurmStudy]:
    def make(**options: Any) -> SlurmStudy:
        return SlurmStudy(cluster, tmp_path / "study", **options)

    return make


def hosts_only(cluster: Cluster) -> None:
    if cluster.mode != "hosts":
        pytest.skip("mode loopback: no MPI between nodes")
