"""The study on a real Slurm: one job a block, only what changed, and every fault that a cluster has ready.

Few ranks and cells, so that the whole file stays within minutes on two cores.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Checkout

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster, wait_until  # noqa: E402

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
PROFILE = ["--profile", "slurm", "--slurm-init-seconds-before-status-checks", "3"]


class SlurmStudy:
    """A checkout on the login node with the study `two` on the cluster's nodes."""

    def __init__(self, cluster: Cluster, folder: Path, launches: int = 2, mappings: str = "core, node"):
        self.cluster = cluster
        folder.mkdir(parents=True)
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

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start snakemake; its output goes to the file `output`."""
        with open(self.folder / "output", "w") as output:
            return self.cluster.popen(
                ["snakemake", *PROFILE, *arguments], cwd=self.folder, env=self.environment, stdout=output, stderr=output,
                text=True,
            )  # fmt: skip

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def run(self, *arguments: str, status: int = 0) -> str:
        process = self.start(*(arguments or (MEASURED,)))
        assert process.wait(300) == status, self.output() + self.logs()
        return self.output()

    def run_all(self) -> str:
        """The whole study, as a person types it."""
        process = self.start()
        assert process.wait(300) == 0, self.output() + self.logs()
        return self.output()

    def logs(self) -> str:
        return "".join(f"--- {p}\n{p.read_text()[-3000:]}" for p in (self.folder / "logs").rglob("*.log"))

    def collstudy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "collstudy", "--results", "results", *arguments]
        return self.cluster.run(command, check=False, cwd=self.folder, env=self.environment)

    def jobs(self) -> list[dict[str, str]]:
        """All Slurm jobs of this folder, oldest first."""
        lines = self.cluster.run(["squeue", "-h", "-t", "all", "-S", "i", "-o", "%i|%T|%l|%Z|%k"]).stdout.splitlines()
        rows = [
            dict(zip(("id", "state", "limit", "folder", "comment"), line.split("|"), strict=True)) for line in lines
        ]
        return [row for row in rows if Path(row["folder"]) == self.folder]

    def launches(self) -> dict[str, list[dict[str, Any]]]:
        """What each cell file has."""
        files = (self.folder / "results" / "cells").rglob("*.json")
        return {path.name: json.loads(path.read_text())["launches"] for path in files if not path.name.startswith(".")}

    def cells(self) -> list[dict[str, str]]:
        with open(self.folder / "results" / "two" / "cells.csv", newline="") as stream:
            return list(csv.DictReader(stream))

    def until_kept(self, count: int) -> dict[str, list[dict[str, Any]]]:
        """Wait until so many launches are kept, while a block runs."""
        assert wait_until(lambda: sum(map(len, self.launches().values())) >= count, 90), self.output() + self.logs()
        return self.launches()

    def assert_complete(self, kept: dict[str, list[dict[str, Any]]], launches: int) -> None:
        """Every cell has its launches, and those that were kept are the first of them: nothing lost, nothing twice."""
        now = self.launches()
        for name, first in kept.items():
            assert now[name][: len(first)] == first, name
        for name, mine in now.items():
            assert [launch["launch"] for launch in mine] == list(range(1, launches + 1)), name
        assert {row["status"] for row in self.cells()} == {"measured"}
        assert not list((self.folder / "results").rglob("*.tmp"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A file system of 3 MB that all hosts of the cluster see; None where it cannot be mounted."""
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


def test_only_what_changed(two, cluster) -> None:
    """Jobs submitted and cells measured, for each kind of change."""
    hosts_only(cluster)
    study = two()

    def submitted(printed_cells: int | None, study_text: str | None = None) -> None:
        before = len(study.jobs()), study.launches()
        if study_text is not None:
            study.checkout.write("config/studies/two.yaml", study_text)
        output = study.run()
        if printed_cells is None:
            assert "to measure" not in output and len(study.jobs()) == before[0]
            return
        assert f"{printed_cells} to measure in 1 blocks" in output, output
        assert "node hours" in output, output
        assert len(study.jobs()) == before[0] + 1
        assert len(study.launches()) == len(before[1]) + printed_cells
        study.assert_complete(before[1], 2)

    submitted(4)
    launch = next(iter(study.launches().values()))[0]["provenance"]
    assert launch["hosts"] == cluster.nodes and launch["slurm"]["job"] == study.jobs()[0]["id"]
    assert set(launch["nodes"]) == set(cluster.nodes) and all("kernel" in node for node in launch["nodes"].values())
    job = cluster.job(int(study.jobs()[0]["id"]))
    assert (job["NumNodes"], job["Partition"], job["OverSubscribe"], job["NumTasks"]) == ("2", "THIN", "NO", "48")
    assert list((study.folder / "logs" / "slurm").rglob("pair_openmpi_n2-*/*.log"))
    # A second run, another partition or limit, and a copy without Snakemake's memory: nothing to measure.
    changed = MACHINE.replace("setup_minutes: 1", "setup_minutes: 3, account: other").replace("60", "90")
    study.checkout.write("config/machines/pair.yaml", changed)
    submitted(None)
    study.checkout.write("config/machines/pair.yaml", MACHINE)
    shutil.rmtree(study.folder / ".snakemake")
    submitted(None)
    # A parameter of one algorithm, one process count, one mapping: one job each, with just the new cells.
    submitted(
        1,
        study.study.replace("binomial]", "binomial, {name: binomial, segment_bytes: 1024}]").replace(
            "core, node", "core"
        ),
    )
    submitted(2, study.study.replace("[4]", "[4, 6]").replace("core, node", "core"))
    submitted(2, study.study.replace("core, node", "core, node, BFNF"))
    assert "cells 6 done, 0 failed, 0 left of 6" in study.collstudy("status").stdout


def test_from_the_question_to_the_report(two, cluster) -> None:
    """`snakemake --profile slurm` and nothing else: measured on the nodes; tables, report and verdict on the login node."""
    hosts_only(cluster)
    study = two(launches=1)
    output = study.run_all()
    assert len(study.jobs()) == 1
    study.assert_complete({}, 1)
    page = (study.folder / "results" / "report" / "index.html").read_text()
    assert "Two nodes" in page and "Two test nodes" in page
    assert (study.folder / "results" / "report" / "report.pdf").read_bytes().startswith(b"%PDF")
    assert (study.folder / "results" / "two" / "tables" / "index.csv").exists()
    # Nothing is left to do.
    assert "Nothing to be done" in study.run_all() and len(study.jobs()) == 1, output


def test_two_nodes_with_open_mpi_5(two, cluster) -> None:
    hosts_only(cluster)
    folder = ROOT / ".study" / "openmpi" / "bin"
    if not (folder / "mpirun").exists():
        pytest.fail("no Open MPI 5 in .study/openmpi: ./study test installs it")
    study = two(mappings="core, BFNF")
    study.environment["PATH"] = f"{Path(sys.executable).parent}:{folder}:{os.environ['PATH']}"
    # pytest may run with 4.1 in its own folder's way.
    built = study.cluster.run(
        [sys.executable, "-m", "collstudy", "build"], check=False, cwd=study.folder, env=study.environment
    )
    assert built.returncode == 0, built.stderr
    study.run()
    study.assert_complete({}, 2)
    document = json.loads(next((study.folder / "results" / "cells").rglob("*BFNF*.json")).read_text())
    assert document["cell"]["mpi"]["version"].startswith("5.")
    assert document["proof"]["placed"] is True
    assert [(b["host"], b["cores"]) for b in document["proof"]["binding"]][:3] == [
        ("thin001", [0]), ("thin002", [0]), ("thin001", [1])
    ]  # fmt: skip


@pytest.mark.long
def test_srun_as_launcher_is_marked_where_it_does_not_bind(two, cluster) -> None:
    """The test cluster's Slurm binds nothing, so ranks do not land as asked, and the cells say so."""
    hosts_only(cluster)
    study = two(launches=1, mappings="core")
    study.checkout.write("config/machines/pair.yaml", MACHINE.replace("exclusive", "launcher: srun, exclusive"))
    study.run()
    assert {row["status"] for row in study.cells()} == {"unproved"}, study.logs()
    assert all("not bound to one core" in row["reason"] for row in study.cells())


def test_more_than_the_allowed_node_hours_is_refused(two) -> None:
    study = two()
    for arguments in (("--config", "max_node_hours=0.001"), ("-n", "--config", "max_node_hours=0.001")):
        output = study.run(*arguments, "--", MEASURED, status=1)
        assert "more than max_node_hours = 0.001 allows" in output and "two: 0 of 4 cells are stored" in output
    assert study.jobs() == []
    assert "two: 0 of 4 cells are stored, 4 to measure in 1 blocks" in study.run("-n", MEASURED)
    assert study.jobs() == []


def test_time_limit_resumes_with_the_remaining_time(two, cluster) -> None:
    hosts_only(cluster)
    study = two(launches=20)
    process = study.start(MEASURED)
    kept = study.until_kept(12)
    asked = minutes(study.jobs()[0]["limit"])
    cluster.expire(int(study.jobs()[0]["id"]))
    assert process.wait(300) == 0, study.output() + study.logs()
    first, second = study.jobs()
    # FAILED: the runner saw that Slurm was ending the job, and left before Slurm insisted.
    assert first["state"] in ("TIMEOUT", "FAILED") and second["state"] == "COMPLETED"
    assert minutes(second["limit"]) < asked
    study.assert_complete(kept, 20)
    # The launches that Slurm ended are no failures of their cells.
    assert " 0 failed" in study.output() and "1 failed" not in study.output() and "4 failed" not in study.output()
    assert "Slurm is ending job" in study.logs()


def minutes(text: str) -> int:
    parts = [int(part) for part in text.split(":")]
    return parts[0] if len(parts) == 2 else 60 * parts[0] + parts[1]


def test_scancel_loses_nothing(two, cluster) -> None:
    """The block is submitted once more by itself; cancelled again, the run ends and says what to do; then it goes on."""
    hosts_only(cluster)
    study = two(launches=10)
    process = study.start(MEASURED)
    study.until_kept(3)
    cluster.run(["scancel", study.jobs()[0]["id"]])
    assert wait_until(lambda: len(study.jobs()) == 2, 60), study.output()
    cluster.run(["scancel", study.jobs()[1]["id"]])
    assert process.wait(120) == 1
    kept = study.launches()
    assert "What was measured is kept" in study.output() and "Run the same command again" in study.output()
    assert "failed" in study.output()
    study.run()
    study.assert_complete(kept, 10)


def test_a_dead_node_loses_nothing(two, cluster) -> None:
    """First slurmd alone dies (the job goes on), then its whole node (the block is submitted again, at once)."""
    hosts_only(cluster)
    study = two(launches=12)
    process = study.start(MEASURED)
    study.until_kept(2)
    cluster.kill_slurmd("thin002")
    cluster.start_slurmd("thin002")
    kept = study.until_kept(10)
    cluster.kill_node("thin002")
    cluster.run(["scontrol", "update", "NodeName=thin002", "State=DOWN", "Reason=test"])
    cluster.start_node("thin002")
    assert process.wait(300) == 0, study.output() + study.logs()
    assert study.jobs()[0]["state"] == "NODE_FAIL" and study.jobs()[-1]["state"] == "COMPLETED"
    study.assert_complete(kept, 12)


def test_snakemake_killed_while_its_job_runs(two, cluster) -> None:
    """The Slurm job goes on. A new run says so, waits for its locks, and measures nothing that it kept."""
    hosts_only(cluster)
    study = two(launches=12)
    process = study.start(MEASURED)
    study.until_kept(2)
    assert "snakemake runs here already" in study.collstudy("unlock").stderr
    process.send_signal(signal.SIGKILL)
    process.wait()
    locked = study.run(MEASURED, status=1)
    assert "could not be locked" in locked or "lock" in locked.lower()
    unlocked = study.collstudy("unlock")
    assert unlocked.returncode == 0 and "killed was removed" in unlocked.stderr
    kept = study.launches()
    output = study.run()
    assert "still work on blocks of this folder" in output and f"scancel {study.jobs()[0]['id']}" in output
    assert [job["state"] for job in study.jobs()] == ["COMPLETED"] * 2
    study.assert_complete(kept, 12)


CRASHING = """#!/bin/bash
case " $* " in *" -n 6 "*) echo "rank 3 died"; exit 139 ;; esac
exec REAL "$@"
"""


def test_a_cell_that_always_crashes_is_named_and_the_others_complete(two, cluster) -> None:
    hosts_only(cluster)
    study = two(mappings="core", launches=1)
    study.checkout.write("config/studies/two.yaml", study.study.replace("[4]", "[4, 6]"))
    real = Path(os.environ.get("MPIRUN") or shutil.which("mpirun") or pytest.fail("no mpirun"))
    folder = study.folder / "mpi"
    study.checkout.write("mpi/mpirun", CRASHING.replace("REAL", str(real))).chmod(0o755)
    for name in ("mpicc", "ompi_info"):
        (folder / name).symlink_to(real.with_name(name))
    study.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    study.run()
    status = {(row["algorithm"], row["processes"]): row["status"] for row in study.cells()}
    assert status == {(a, p): "measured" if p == "4" else "failed" for a in ("linear", "binomial") for p in ("4", "6")}
    verdict = study.collstudy("verdict", "two")
    assert verdict.returncode == 1 and "2 cells failed" in verdict.stderr
    assert (
        "failed: two: bcast linear mapping core processes 6: crash: mpirun ended with exit status 139" in verdict.stderr
    )
    assert "2 failed, 0 left" in study.collstudy("status").stdout


def test_a_full_disk_loses_nothing(cluster, tiny) -> None:
    hosts_only(cluster)
    if tiny is None:
        pytest.skip("no tmpfs can be mounted here")
    study = SlurmStudy(cluster, tiny.parent / f"disk{os.getpid()}", launches=10)
    (study.folder / "results").symlink_to(tiny)
    process = study.start(MEASURED)
    study.until_kept(3)
    filler = tiny / "filler"
    with open(filler, "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    assert process.wait(120) == 1
    kept = study.launches()
    assert sum(map(len, kept.values())) >= 3
    logs = study.logs()
    assert "No space left on device" in logs and "What was measured before is kept" in logs
    assert "Run the same command again" in study.output()
    filler.unlink()
    study.run()
    study.assert_complete(kept, 10)


@pytest.mark.long
def test_with_accounting_by_sacct(tmp_path) -> None:
    if not shutil.which("slurmdbd", path="/usr/sbin:/usr/bin"):
        pytest.skip("not installed: slurmdbd mariadb-server")
    with Cluster(name=f"acctstudy{os.getpid()}", accounting=True) as accounted:
        hosts_only(accounted)
        study = SlurmStudy(accounted, tmp_path / "study", launches=1, mappings="core")
        study.run("--slurm-status-command", "sacct", "--", MEASURED)
        study.assert_complete({}, 1)
        time.sleep(1)
        states = accounted.run(["sacct", "-n", "-X", "-P", "-o", "State"]).stdout.split()
        assert states == ["COMPLETED"]
