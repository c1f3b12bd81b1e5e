"""The commands of bench/ run, with the smallest numbers; what they measure is not judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT, finish, must, tool


@pytest.mark.parametrize(
    ("needs", "words", "printed"),
    [
        ("Rscript", ("Rscript", "analysis_rows.R", 2000), "total_cpu_s="),
        ("Rscript", ("Rscript", "rules_by_chance.R", 1), "|       10|                3|"),
        ("Rscript", ("Rscript", "rounds_power.R", 1), "|heavy  |     12|"),
        ("Rscript", (sys.executable, "trace_size.py", 200, 2), "calls=200\nranks=2\n"),
        ("smpirun", (sys.executable, "scale", "--ranks", 256, "--limit", 0.1), "bcast       pipeline                  256"),
        pytest.param("mpicc", (sys.executable, "pass_through.py", 2), "pass-through overhead: ", marks=pytest.mark.long),
        pytest.param("mpicc", (sys.executable, "trace_overhead.py", 2), "svd processor: ", marks=pytest.mark.long),
        pytest.param("mpicc", (sys.executable, "slurm.py", "overhead"), "overhead: ", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_benchmark_runs(needs: str, words: tuple[str | float, ...], printed: str, tmp_path: Path) -> None:
    tool(needs)
    program, name, *arguments = map(str, words)
    (tmp_path / "docs" / "images").mkdir(parents=True)  # rounds_power.R writes its figure there
    done = must(finish([program, ROOT / "bench" / name, *arguments], cwd=tmp_path, timeout=600))
    assert printed in done.stdout


@pytest.mark.parametrize("name", ["pass_through.py", "trace_overhead.py"])
def test_a_single_pair_has_no_interval(name: str) -> None:
    done = finish([sys.executable, ROOT / "bench" / name, "1"])
    assert (done.returncode, done.stderr) == (1, "pairs is 1; it must be at least 2\n")
