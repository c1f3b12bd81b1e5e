"""A run with nothing to do answers without Snakemake, but only if nothing that a run reads has changed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import TINY, Checkout, finish, must

RUN = ("run", "--goal", "measure", "--")
#: Asks for a record of a run that had nothing to do, in the future or now, or whether there is nothing to do.
ASK = """
import sys
from pathlib import Path
from collstudy.cli import unchanged
words, data = sys.argv[2:], [sys.argv[1]]
if words[0] in ("note", "now"):
    unchanged.STARTED += 60 if words[0] == "note" else 0
    unchanged.note(words[1:], Path("results"), data, ["study x is left out"])
else:
    print("nothing" if unchanged.nothing_to_do(words) else "ask Snakemake")
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout with everything measured, and a report."""
    folder = tmp_path_factory.mktemp("unchanged") / "a checkout"
    found = Checkout(folder)
    found.write("config/studies/tiny.yaml", TINY)
    found.write("config/config.yaml", "studies: [tiny]\nresults: results\n")
    must(found.collstudy(*RUN))
    found.write("results/report/index.html", "<p>report</p>")
    found.write("data of others/bcast.csv", "1,2\n")
    found.write("bin/mpirun", "#!/bin/sh\n")
    # Do not share .study, because other tests use it at the same time.
    (folder / ".study").unlink()
    found.write(".study/build/bench/collbench_bcast", "program")
    found.write(".study/venv/lib/python3.11/site-packages/library-1.0/METADATA", "Version: 1.0\n")
    return found


def ask(checkout: Checkout, *words: str, **variables: str) -> str:
    own = {"PYTHONPATH": str(checkout.folder / "workflow"), "PATH": f"{checkout.folder / 'bin'}:/usr/bin"}
    command = [sys.executable, "-c", ASK, str(checkout.folder / "data of others"), *words]
    done = must(finish(command, cwd=checkout.folder, env={**os.environ, **own, **variables}))
    return done.stdout.strip() + done.stderr


def cell(folder: Path) -> Path:
    return sorted((folder / "results" / "cells").rglob("*.json"))[0]


def edit(path: Path) -> None:
    """Change the content but keep length and time stamps."""
    before = path.stat()
    text = path.read_bytes()
    path.write_bytes(text[:-1] + b" ")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


#: Possible changes of a checkout between two runs.
CHANGES: dict[str, Callable[[Path], object]] = {
    "a study": lambda folder: edit(folder / "config/studies/tiny.yaml"),
    "a new study": lambda folder: (folder / "config/studies/other.yaml").write_text(TINY),
    "a machine": lambda folder: edit(folder / "config/machines/thin.yaml"),
    "the configuration": lambda folder: edit(folder / "config/config.yaml"),
    "Python code": lambda folder: edit(folder / "workflow/collstudy/store/records.py"),
    "R code": lambda folder: edit(folder / "workflow/analysis/R/tuning.R"),
    "C code": lambda folder: edit(folder / "workflow/native/replay/replay.c"),
    "a rule": lambda folder: edit(folder / "workflow/rules/measure.smk"),
    "a chapter of the report": lambda folder: edit(folder / "report/R/chapter.R"),
    "the profile": lambda folder: edit(folder / "profiles/default/profile.yaml"),
    "a deleted cell": lambda folder: cell(folder).unlink(),
    "an edited cell": lambda folder: edit(cell(folder)),
    "an edited table": lambda folder: edit(folder / "results/tiny/measurements.csv"),
    "a removed table": lambda folder: (folder / "results/tiny/cells.csv").unlink(),
    "digests": lambda folder: (folder / "results/tiny/made.json").unlink(),
    "a removed report": lambda folder: (folder / "results/report/index.html").unlink(),
    "no results": lambda folder: shutil.rmtree(folder / "results"),
    "data of others": lambda folder: edit(folder / "data of others/bcast.csv"),
    "no data of others": lambda folder: shutil.rmtree(folder / "data of others"),
    "a program that set-up built": lambda folder: edit(folder / ".study/build/bench/collbench_bcast"),
    "a Python package": lambda folder: (folder / ".study/venv/lib/python3.11/site-packages/library-1.1").mkdir(),
    "a program on PATH": lambda folder: edit(folder / "bin/mpirun"),
    "another program on PATH": lambda folder: (folder / "bin/quarto").write_text(""),
    "Snakemake's parameters": lambda folder: shutil.rmtree(folder / ".snakemake/metadata"),
    "a lock": lambda folder: (folder / ".snakemake/locks/0.input.lock").mkdir(parents=True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_left_to_snakemake(measured: Checkout, tmp_path: Path, what: str) -> None:
    copy = tmp_path / "kept"
    shutil.copytree(measured.folder, copy, symlinks=True)
    ask(measured, "note", *RUN)
    assert ask(measured, *RUN) == "nothingstudy x is left out\nNothing to be done.\n"
    try:
        CHANGES[what](measured.folder)
        assert ask(measured, *RUN) == "ask Snakemake"
    finally:
        shutil.rmtree(measured.folder)
        shutil.copytree(copy, measured.folder, symlinks=True)


def test_other_arguments_and_variables_are_left_to_snakemake(measured: Checkout) -> None:
    ask(measured, "note", *RUN)
    assert ask(measured, *RUN).startswith("nothing")
    assert ask(measured, "run", "--") == "ask Snakemake"
    assert ask(measured, "run", "--studies", "tiny", "--goal", "measure", "--") == "ask Snakemake"
    assert ask(measured, *RUN, "--cores", "1") == "ask Snakemake"
    assert ask(measured, *RUN, STUDY_REFERENCE_DATA="/elsewhere") == "ask Snakemake"
    assert ask(measured, *RUN, PATH=os.environ["PATH"]) == "ask Snakemake"
    assert ask(measured, *RUN, SHLVL="7").startswith("nothing")


def test_a_dry_run_of_what_has_nothing_to_do_is_answered(measured: Checkout) -> None:
    ask(measured, "note", *RUN)
    plan = ("run", "--goal", "measure", "--plan", "--")
    for option in ("--dry-run", "-n"):
        assert ask(measured, *plan, option) == "nothingstudy x is left out\nNothing to be done.\n"
    assert ask(measured, *plan, "--unlock") == "ask Snakemake"
    assert ask(measured, *plan, "--forceall", "--dry-run") == "ask Snakemake"
    assert ask(measured, "run", "--plan", "--", "--dry-run") == "ask Snakemake"


def test_what_other_runs_keep_in_set_up_is_no_change(measured: Checkout) -> None:
    """The cache of parsed documents and logs of set-up are no input of a run."""
    for name in ("documents/old.json", "r.log"):
        measured.write(f".study/{name}", "{}")
    time.sleep(2.5)
    measured.write(".study/documents/new.json", "{}")
    measured.write(".study/r.log", "longer")
    ask(measured, "now", *RUN)
    assert ask(measured, *RUN).startswith("nothing")
    # A program that set-up compiled is one.
    measured.write(".study/build/new", "program")
    ask(measured, "now", *RUN)
    assert ask(measured, *RUN) == "ask Snakemake"


def asked(checkout: Checkout) -> bool:
    """Run, and return whether Snakemake was started, which writes a log at each start."""
    logs = checkout.folder / ".snakemake" / "log"
    before = len(list(logs.iterdir()))
    must(checkout.collstudy(*RUN))
    return len(list(logs.iterdir())) > before


def answered(checkout: Checkout) -> bool:
    """Return whether a run is answered without Snakemake after one in which nothing changed, and not before.

    A recent change could be followed by another one within the same tick of the file system's clock; set-up and PATH are shared with
    other tests, so several runs may be needed.
    """
    time.sleep(2.5)
    assert asked(checkout)
    for _ in range(12):
        if not asked(checkout):
            return True
        time.sleep(2.5)
    return False


@pytest.mark.long
def test_a_run_is_answered_when_snakemake_had_nothing_to_do(checkout: Checkout) -> None:
    done = checkout.collstudy(*RUN)
    assert done.returncode == 0 and "4 to simulate" in done.stderr
    assert answered(checkout)
    # A run that has nothing to do says so, with and without Snakemake.
    for words in (RUN, ("run", "--", "results/measured.txt")):
        assert must(checkout.collstudy(*words)).stderr.endswith("Nothing to be done.\n")
    # A dry run shows what would be done, and is no record of having nothing to do.
    cell(checkout.folder).unlink()
    for pause in (2.5, 0):
        time.sleep(pause)
        planned = checkout.collstudy("run", "--goal", "measure", "--plan", "--", "--dry-run")
        assert planned.returncode == 0 and "1 to simulate" in planned.stderr
    assert asked(checkout)
    assert cell(checkout.folder).exists()
    # A run that had something to do is no record of having nothing to do.
    assert len(list((checkout.folder / "results" / "cells").rglob("*.json"))) == 4
    assert answered(checkout)
