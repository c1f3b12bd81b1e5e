"""Problems of a run that are one line: wrong arguments, unknown targets, files that cannot be written, an interrupted analysis."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TINY, Checkout, finish, must
from made_runs import MEASURED


@pytest.mark.parametrize(
    "words, said",
    [
        ("--nosuch", "unrecognized arguments: --nosuch"),
        ("--cores x", "Error parsing number of cores (--cores, -c): must be integer or 'all'."),
        ("--set-threads x", "Invalid threads definition: entries have to be"),
        ("--config x", "Invalid config definition: Config entries have to be defined as name=value pairs."),
        (
            "--config resuts=x",
            "--config: unknown key 'resuts' (did you mean 'results'?); known: config_folder, image, ",
        ),
        ("--configfile nosuch.yaml", "[Errno 2] No such file or directory: 'nosuch.yaml'"),
        ("--profile nosuch", "profile directory given (nosuch), but no profile.yaml (or config.yaml) found."),
    ],
)
def test_a_wrong_argument_of_snakemake_is_one_line(words: str, said: str, checkout: Checkout) -> None:
    done = checkout.collstudy("run", "--", *words.split())
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: arguments after -- (snakemake): {said}") and done.stderr.count("\n") == 1


def test_a_target_that_no_rule_makes_is_one_line(checkout: Checkout) -> None:
    done = checkout.collstudy("run", "--", "results/tiny/nosuch.csv")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: No rule to produce results/tiny/nosuch.csv; "), done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("name", ["study.json", "measurements.csv", "tables/index.csv", "tuning/check.csv"])
def test_a_target_of_a_study_that_is_not_run_is_one_line(name: str, checkout: Checkout) -> None:
    checkout.write("config/studies/other.yaml", TINY)
    done = checkout.collstudy("run", "--", f"results/other/{name}")
    assert done.returncode == 1
    said = f"error: No rule to produce results/other/{name}; if its study is not in this run: ./study run STUDY -- FILE"
    assert done.stderr.splitlines()[1:] == [said]


def test_files_that_cannot_be_written_are_one_line(checkout: Checkout) -> None:
    """Without root, also if the tests run as root."""
    user = ["unshare", "--user", "--map-user=4321", "--map-group=4321"]
    if finish([*user, "true"]).returncode:
        pytest.skip("namespaces are not permitted")
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow"), "USER": "somebody"}

    def said() -> str:
        command = [*user, sys.executable, "-m", "collstudy", "run", "--studies", "tiny", "--", MEASURED]
        done = finish(command, cwd=checkout.folder, env=environment)
        assert done.returncode != 0
        return "".join(line + "\n" for line in done.stderr.splitlines() if not line.startswith("tiny: "))

    must(checkout.snakemake("--", MEASURED))
    next((checkout.folder / "results" / "cells").rglob("*.json")).unlink()
    (checkout.folder / "logs" / "plan").chmod(0o555)
    assert said() == "error: Permission denied: 'logs/plan/tiny.log'\n"
    (checkout.folder / "logs" / "plan").chmod(0o755)
    (checkout.folder / MEASURED).chmod(0o444)
    assert said() == f"error: write-protected: {MEASURED}\n"


INTERRUPTED_R = """
setHook(packageEvent("collanalysis", "attach"), function(...) {
  assign("read_results", function(folder) { tools::pskill(Sys.getpid(), tools::SIGINT); Sys.sleep(60) }, globalenv())
})
"""


def test_an_interrupted_analysis_prints_nothing(tmp_path: Path) -> None:
    """R would print "Execution halted", which the rules show as the reason of a failure."""
    (tmp_path / "profile.R").write_text(INTERRUPTED_R)
    command = ["Rscript", ROOT / "workflow" / "scripts" / "analyse.R", "study", tmp_path]
    environment = {**os.environ, "R_PROFILE_USER": str(tmp_path / "profile.R")}
    done = finish(command, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert (done.returncode, done.stdout + done.stderr) == (130, "")
