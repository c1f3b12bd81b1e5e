"""Reading the workflow: a dry run writes nothing to the results, whatever they contain; `check` reports what would stop a run."""

from __future__ import annotations

import json
import os
import time

import pytest
from conftest import TINY, Checkout, csv_rows, must


def listing(checkout: Checkout) -> dict[str, tuple[int, bytes]]:
    """Return every file of the results with its time stamp and content."""
    files = (path for path in (checkout.folder / "results").rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_a_dry_run_writes_nothing(checkout: Checkout) -> None:
    target = "results/tiny/measurements.csv"
    planned = must(checkout.snakemake("-n", target))
    assert "measure_block" in planned.stdout + planned.stderr
    assert not (checkout.folder / "results").exists()
    assert checkout.snakemake("--cores", "2", target).returncode == 0
    before = listing(checkout)
    assert "Nothing to be done" in (done := checkout.snakemake("-n", target)).stdout + done.stderr
    # Change the study: one more cell.
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 8]"))
    more = must(checkout.snakemake("-n", target))
    assert {"describe_study", "plan_tiny", "measure_block"} <= set((more.stdout + more.stderr).split())
    assert listing(checkout) == before


def test_check_says_in_one_line_what_would_stop_a_run(checkout: Checkout) -> None:
    assert checkout.collstudy("check").returncode == 0
    checkout.write("config/mappings.yaml", (checkout.folder / "config" / "mappings.yaml").read_text() + LISTED)
    checkout.write("config/studies/tiny.yaml", TINY.replace("[core]", "[few]"))
    done = checkout.collstudy("check", "tiny")
    assert done.returncode == 2 and not (checkout.folder / "results").exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: study tiny: ") and "2 ranks" in line
    done = checkout.collstudy("check", "nowhere")
    assert done.returncode == 2 and done.stderr.startswith("error: no study 'nowhere'")


LISTED = """
few:
  cycle: []
  hosts: {ranks: [0, 1]}
"""


@pytest.mark.long
def test_a_changed_study_is_seen_after_the_clock_was_corrected(checkout: Checkout) -> None:
    """All results have time stamps in the future: a study that grows or shrinks is measured and described nevertheless."""
    target, results = "results/tiny/measurements.csv", checkout.folder / "results"
    must(checkout.snakemake(target))
    for path in results.rglob("*"):
        os.utime(path, (time.time() + 3600,) * 2)
    for counts in ([2, 4, 6], [2]):
        checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", str(counts)))
        must(checkout.snakemake(target))
        study = json.loads((results / "tiny" / "study.json").read_text())
        assert study["collectives"]["bcast"]["processes"] == counts
        assert len(csv_rows(checkout.folder / target)) == len(counts) * 2 * 11
    assert "Nothing to be done" in must(checkout.snakemake(target)).stderr
