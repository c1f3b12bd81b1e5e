"""The published folder: complete, checked by its own checksums, analysed again without measuring, measured again and compared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Checkout
from test_workflow import MEASURED, run


def published(checkout: Checkout, full: bool) -> Path:
    """Measure, publish and unpack; returns the unpacked package."""
    if full:
        run(checkout)
    else:
        run(checkout, MEASURED)
        checkout.write("results/report/index.html", "<html></html>")
        checkout.write("results/report/report.pdf", "%PDF-1.7")
    done = checkout.collstudy("--results", "results", "publish", "--to", "publish")
    assert done.returncode == 0, done.stderr
    assert "1 studies, 4 cell files" in done.stdout
    folder = checkout.folder / "publish"
    shutil.unpack_archive(folder / "data-package.zip", folder)
    return folder / "data-package"


def test_package(checkout: Checkout) -> None:
    package = published(checkout, full=False)
    site = package.parent
    assert {p.name for p in site.iterdir()} >= {"index.html", "report.pdf", "data-package.zip", "SHA256SUMS", ".github"}
    for folder in (package, site):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    crate = json.loads((package / "ro-crate-metadata.json").read_text())
    parts = {entry["@id"]: entry for entry in crate["@graph"]}
    assert parts["ro-crate-metadata.json"]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.1"
    assert {"results/tiny/measurements.csv", "Snakefile", "config/studies/tiny.yaml", "versions.json"} <= set(parts)
    assert all((package / part["@id"]).exists() for part in parts["./"]["hasPart"])
    assert "./study run tiny" in (package / "ARTIFACT.md").read_text()
    # The package is a checkout whose cells are complete: nothing is measured there.
    (package / ".study").symlink_to(checkout.folder / ".study")
    environment = {**os.environ, "PYTHONPATH": str(package / "workflow")}
    os.chmod(package / "study", 0o755)
    again = subprocess.run(
        ["snakemake", "-n", MEASURED], cwd=package, capture_output=True, text=True, check=False, env=environment
    )
    assert again.returncode == 0 and "to measure" not in again.stderr + again.stdout


def test_measured_again_and_compared(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    run(checkout, "--config", "results=again", "--", "again/tiny/measurements.csv")
    done = checkout.collstudy("compare", "results", "again")
    assert "tiny: 44 of 44 points measured again; 44 identical, 100 % within 10 %; median ratio 1.000" in done.stdout


def test_not_complete(checkout: Checkout) -> None:
    done = checkout.collstudy("--results", "results", "publish", "tiny")
    assert done.returncode == 2 and "./study run tiny makes them" in done.stderr


@pytest.mark.long
def test_analysed_again_without_measuring(checkout: Checkout) -> None:
    package = published(checkout, full=True)
    (package / ".study").symlink_to(checkout.folder / ".study")
    for name in ("tables", "figures", "models"):
        assert (package / "results" / "tiny" / name / "index.csv").exists()
    before = {p: p.read_bytes() for p in (package / "results" / "tiny" / "tables").glob("*.csv")}
    (package / "results" / "report" / "index.html").unlink()
    environment = {**os.environ, "PYTHONPATH": str(package / "workflow")}
    done = subprocess.run(
        ["python", "-m", "collstudy", "reanalyse"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (package / "results" / "report" / "index.html").stat().st_size > 10000
    assert {p: p.read_bytes() for p in before} == before
