"""Commands for studies as a whole: next, check, status, verify, verdict, unlock."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.cli import next_step
from collstudy.cli.commands import add, refuse_packages
from collstudy.project import integrity
from collstudy.project.status import EVERY_S, progress_line, stale_lock, waiting
from collstudy.project.studies import Project
from collstudy.sources.source import Source

#: Interval (s) between two updates of `status --watch`.
WATCH_S = 2


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    for name, run, help_ in (
        ("check", check, "check whether studies can run: configuration, placement, required software"),
        ("verify", verify, "check cells, traces, replays, runs and derived files against their digests"),
        ("verdict", verdict, "list failed cells"),
    ):
        add(commands, name, run, help_).add_argument(
            "studies", nargs="*", help="names (default: those of config/config.yaml)"
        )
    watching = add(commands, "status", status, "show the progress of studies")
    watching.add_argument("studies", nargs="*", help="names (default: those of config/config.yaml)")
    watching.add_argument("--watch", action="store_true", help=f"repeat every {WATCH_S} seconds until no cell is left")
    add(commands, "next", say_next, "show the state of this checkout and the next step")
    add(commands, "unlock", unlock, "remove a stale lock of snakemake")


def _sources(arguments: argparse.Namespace) -> tuple[Project, list[Source], list[str]]:
    project = Project(results=arguments.results)
    return project, *project.named(",".join(arguments.studies))


def check(arguments: argparse.Namespace) -> None:
    """Validate these studies as a run does: configuration, data, placement, versions. One error line, exit status 2."""
    for line in check_studies(Project(results=arguments.results), ",".join(arguments.studies)):
        print(line)


def check_studies(project: Project, names: str) -> list[str]:
    """Validate studies, given by names separated by commas; return one line for each study that is left out."""
    sources, left_out = project.named(names)
    for source in sources:
        try:
            source.check()
        except StudyError as error:
            name = f"study {source.study.name}: "  # some messages begin with it
            raise StudyError(name + str(error).removeprefix(name)) from None
    return left_out


def status(arguments: argparse.Namespace) -> None:
    """Print for each study how many cells are stored, failed and left."""
    asked, jobs = -math.inf, list[str]()
    while True:
        project, sources, lines = _sources(arguments)
        lines += [] if arguments.studies else project.also_run()
        left = 0
        for source in sources:
            state = project.state(source)
            left += len(state.lacking) - state.failed
            if source.inputs() and not state.work:
                lines.append(f"{source.study.name}: imported or gathered data, nothing to measure")
            else:
                lines.append(progress_line(source.study.name, state, project.results, project.store))
        in_slurm = any(source.study.machine.kind == "slurm" for source in sources)
        if in_slurm and time.monotonic() - asked >= EVERY_S:
            asked, jobs = time.monotonic(), waiting(Path.cwd())
        lines += jobs
        # Overwrite the previous output on a terminal; append in a log.
        over = "\x1b[H\x1b[J" if arguments.watch and sys.stdout.isatty() else ""
        print(over + "\n".join(lines), flush=True)
        if not arguments.watch or not left:
            return
        time.sleep(WATCH_S)


def say_next(arguments: argparse.Namespace) -> None:
    """Print the state of this checkout and the next step."""
    print("\n".join(next_step.describe(Project(results=arguments.results), Path.cwd())))


def verify(arguments: argparse.Namespace) -> int:
    """Check what is stored of studies, and their derived files, against their digests; exit status 1 if one differs."""
    refuse_packages(arguments.studies, "verify")
    project, sources, left_out = _sources(arguments)
    for line in left_out:
        print(line)
    wrong = 0
    checked = [integrity.of_study(source) for source in sources]
    for lines, problems in [*checked, integrity.of_derived("report", project.results)]:
        print(*lines, *problems, sep="\n")
        wrong += len(problems)
    if wrong:
        print("./study run measures damaged cells again and remakes changed files", file=sys.stderr)
    return 1 if wrong else 0


def verdict(arguments: argparse.Namespace) -> int:
    """Name every failed cell, and of each study one that could not be verified; exit status 1 when a cell failed."""
    project, bad = Project(results=arguments.results), 0
    for name in arguments.studies or project.default_studies:
        rows = read_csv(project.folder(name) / "cells.csv")
        unproved = [
            f"{_where(row)} ({project.results}/cells/{row['collective']}/*-{row['cell']}.json)"
            for row in rows
            if row["status"] == "unproved"
        ]
        failed = [_where(row) for row in rows if row["status"] == "failed"]
        failed += [f"verification of the tuning files: {_where(row)}" for row in project.source(name).unverified()]
        bad += len(failed)
        for where in failed:
            print(f"failed: {name}: {where}", file=sys.stderr)
        if unproved:
            print(
                f"unproved: {name}: cells that are not verified and not compared: {len(unproved)}, such as {unproved[0]}. "
                "They are measured again if the cause is removed and their files are deleted.",
                file=sys.stderr,
            )
    if bad:
        print(f"{bad} failed; output in logs/measure/. Run again to retry.", file=sys.stderr)
    return 1 if bad else 0


def _where(row: dict[str, str]) -> str:
    """Describe a cell, and why it has its status."""
    place = f"mapping {row['mapping']} " if row["mapping"] else ""
    return f"{row['collective']} {row['algorithm']} {place}processes {row['processes']}: {row['reason']}"


def unlock(_: argparse.Namespace) -> None:
    """Remove the lock that a killed snakemake left in this folder; exit status 2 if it may still be held."""
    reason = stale_lock(Path.cwd())
    if reason is None:
        return
    if reason:
        raise StudyError(reason)
    for path in (Path.cwd() / ".snakemake" / "locks").iterdir():
        path.unlink()
    print("removed the lock of a killed snakemake; its measurements are stored", file=sys.stderr)
