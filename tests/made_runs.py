"""Run ./study, or a small simulated study in a copy of the checkout; and a launcher that fails."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from collstudy.launch.toolchain import installed
from conftest import ROOT, Checkout, csv_rows, finish, must

MEASURED = "results/tiny/measurements.csv"


def study(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return finish([folder / "study", *arguments], timeout=600, env={**os.environ, **(environment or {})})


def only_set_up(folder: Path) -> Path:
    """Make a checkout that has nothing but ./study and its set-up."""
    (folder / "envs").mkdir(parents=True)
    for path in (ROOT / "study", ROOT / "envs" / "study.lock", *(ROOT / "envs").glob("*.sh")):
        shutil.copy2(path, folder / path.relative_to(ROOT))
    return folder


def rows(checkout: Checkout, name: str = MEASURED) -> list[dict[str, str]]:
    return csv_rows(checkout.folder / name)


def run(checkout: Checkout, *arguments: str, environment: dict[str, str] | None = None) -> str:
    done = must(checkout.snakemake(*arguments, environment=environment))
    return done.stdout + done.stderr


def measured(
    checkout: Checkout, name: str, text: str = "", environment: dict[str, str] | None = None
) -> list[dict[str, str]]:
    """Measure a study, written first if *text* is given, and return its rows; its cells are in results/NAME/cells.csv."""
    if text:
        checkout.write(f"config/studies/{name}.yaml", text)
    table = f"results/{name}/measurements.csv"
    run(checkout, "--config", f"studies={name}", "--", table, environment=environment)
    return rows(checkout, table)


def cell_rows(checkout: Checkout, name: str) -> list[dict[str, str]]:
    """Return the cells of a study that was measured."""
    return rows(checkout, f"results/{name}/cells.csv")


def kill_midway(checkout: Checkout, target: str, begun: Callable[[], bool]) -> dict[str, int]:
    """Start a run, kill it with all its jobs once *begun* is true, and return the cell files that it stored."""
    process = subprocess.Popen(
        ["snakemake", target], cwd=checkout.folder, start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(checkout.folder / "workflow")},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not begun() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1.5)  # launches that survived the kill end by themselves
    return cell_files(checkout)


def cell_files(checkout: Checkout) -> dict[str, int]:
    """Return the cell files with their modification times."""
    return {str(p): p.stat().st_mtime_ns for p in (checkout.folder / "results" / "cells").rglob("*.json")}


def with_mpirun(checkout: Checkout, script: str) -> None:
    """Write an mpirun; {folder} stands for its folder and {real} for the one in use, whose other programs are beside it."""
    mpi = installed("openmpi")
    for program in (mpi.mpicc, mpi.ompi_info):
        checkout.program(program.name, f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
    quoted = {"folder": shlex.quote(str(checkout.folder / "bin")), "real": shlex.quote(str(mpi.mpirun))}
    checkout.program("mpirun", script.format(**quoted))


def with_faulty_simulator(checkout: Checkout) -> None:
    checkout.program("smpirun", FAULTY.format(real=shutil.which("smpirun")))


FAULTY = """#!/bin/bash
# A launcher that fails in the way that FAULT says when 4 processes, or those of FAULTY_RANKS, are asked for.
real={real}
case " $* " in
  *" -wrapper printf "*) exit 1 ;; # simulations share no start
  *" -np ${{FAULTY_RANKS:-4}} "*)
    case $FAULT in
      crash) echo "about to crash"; exit 139 ;;
      hang) exec sleep 300 ;;
      garbage) echo "no benchmark measures it"; exit 0 ;;
      truncated) "$real" "$@" | head -8; exit 0 ;;
    esac ;;
esac
exec "$real" "$@"
"""
