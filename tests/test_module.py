"""The workflow used by other workflows and Snakemake's own tools: as a module, from the catalogue's folder, with a report."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, TINY, Checkout, finish, must

MODULE = """
configfile: "config/config.yaml"

module collstudy:
    snakefile: "{checkout}/workflow/Snakefile"
    config: config["mpi"]

use rule * from collstudy as mpi_*

rule all:
    default_target: True
    input: "results/mpi/mine/measurements.csv"
    output: "said.txt"
    shell: "wc -l < {{input}} > {{output}}"
"""


def another(folder: Path, checkout: Checkout, study: str) -> Path:
    """Write another workflow, which uses *checkout* as a module with a study of its own; return its folder."""
    other = folder / "other"
    for name in ("studies", "machines"):
        (other / "config" / "mpi" / name).mkdir(parents=True)
    (other / "Snakefile").write_text(MODULE.format(checkout=checkout.folder))
    settings = "{studies: [mine], results: results/mpi, config_folder: config/mpi}"
    (other / "config" / "config.yaml").write_text(f"mpi: {settings}\n")
    (other / "config" / "mpi" / "config.yaml").write_text("studies: [mine]\n")
    (other / "config" / "mpi" / "studies" / "mine.yaml").write_text(study)
    return other


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return finish(["snakemake", "--cores", "2", *arguments], cwd=folder, timeout=900, env=environment)


@pytest.mark.long
def test_another_workflow_uses_it_with_studies_and_results_of_its_own(checkout: Checkout, tmp_path: Path) -> None:
    other = another(tmp_path, checkout, TINY)
    done = must(snakemake(other))
    assert (other / "said.txt").read_text().strip() == str(1 + 4 * 11)
    # Nothing was written to the checkout.
    assert not (checkout.folder / "results").exists()
    # Stored cells are not measured again.
    again = snakemake(other)
    assert again.returncode == 0 and "to simulate" in done.stderr and "to simulate" not in again.stderr, again.stderr


@pytest.mark.long
def test_another_workflow_submits_only_blocks_with_its_copy_of_the_profile(checkout: Checkout, tmp_path: Path) -> None:
    """A job that reads or writes results, or that measures on this computer, must not run on another one."""
    other = another(tmp_path, checkout, TINY.replace("machine: thin", "machine: theirs"))
    machine = "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {}\n"
    (other / "config" / "mpi" / "machines" / "theirs.yaml").write_text(machine)
    checkout.program("sbatch", '#!/bin/sh\necho "$*" >> jobs\nwc -l < jobs\n')
    for name in ("squeue", "sacct", "sinfo", "scontrol"):
        checkout.program(name, "#!/bin/sh\n")
    arguments = ["--profile", str(ROOT / "profiles" / "slurm"), "--latency-wait", "1"]
    environment = {**os.environ, **checkout.first_on_path}
    done = finish(["snakemake", *arguments], cwd=other, timeout=300, env=environment)
    # The jobs of the block seem to end without its marker.
    assert (other / "jobs").exists(), done.stderr
    submitted = (other / "jobs").read_text().splitlines()
    assert done.returncode == 1 and len(submitted) == 2, done.stderr
    assert all("rule_mpi_measure_block" in line for line in submitted)


def test_the_catalogues_folder_and_snakemakes_report(tmp_path: Path) -> None:
    folder = tmp_path / "test"
    folder.mkdir()
    subprocess.run(["cp", "-r", ROOT / ".test" / "config", folder], check=True)
    arguments = ("--snakefile", str(ROOT / "workflow" / "Snakefile"))
    done = must(snakemake(folder, *arguments, "results/tiny/measurements.csv"))
    done = snakemake(folder, *arguments, "--report", "report.html", "results/tiny/measurements.csv")
    assert done.returncode == 0 and (folder / "report.html").stat().st_size > 10000, done.stdout + done.stderr


@pytest.mark.long
def test_an_executor_of_another_queue_measures_it(checkout: Checkout) -> None:
    """As on a cluster whose queue has a submit command but no plugin of its own."""
    checkout.program("submit.sh", '#!/bin/sh\necho "$1" >> jobs.txt\nsh "$1" > /dev/null 2>&1 &\necho $!\n')
    generic = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "bin/submit.sh", "--jobs", "2")
    must(checkout.snakemake(*generic, "--latency-wait", "20", "--", "results/tiny/measurements.csv"))
    assert "snakejob.measure_block" in (checkout.folder / "jobs.txt").read_text()
    assert len((checkout.folder / "results/tiny/measurements.csv").read_text().splitlines()) == 1 + 4 * 11
