"""Command line of the Python part; `./study` and the Snakemake rules call it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import native, toolchain
from .blocks import read_block
from .errors import StudyError
from .project import Project, StudyState, split_names
from .runner import run_block


def command_info(_: argparse.Namespace) -> int:
    """Print what will be used."""
    for key, value in toolchain.info().items():
        print(f"{key}={value}")
    return 0


def command_build(_: argparse.Namespace) -> int:
    """Build the C programs."""
    native.build()
    return 0


def command_measure(arguments: argparse.Namespace) -> int:
    """Run one block. Failed cells do not fail the block: they are kept in the store and named at the end of the run."""
    run_block(read_block(arguments.block), arguments.results, arguments.log)
    return 0


def command_collect(arguments: argparse.Namespace) -> int:
    """Write cells.csv and measurements.csv of a study."""
    Project(results=arguments.results).collect(arguments.study)
    return 0


def _states(arguments: argparse.Namespace) -> list[StudyState]:
    project = Project(results=arguments.results)
    named = split_names(",".join(arguments.studies))
    studies, left_out = project.available(named or project.default_studies, explicit=bool(named))
    for line in left_out:
        print(line)
    return [project.state(study) for study in studies]


def command_status(arguments: argparse.Namespace) -> int:
    """Print for each study how many cells are measured, failed and left, from the store alone."""
    for state in _states(arguments):
        if state.study.imports:
            print(f"{state.study.name}: imported data, nothing to measure")
            continue
        total = len(state.cells)
        left = len(state.tasks)
        seconds = sum(task.seconds() for task in state.tasks)
        print(
            f"{state.study.name}: {total - left} of {total} cells measured, {state.failed} failed, {left - state.failed} left"
            + (f", about {seconds / 60:.1f} minutes of launches" if left else "")
        )
    return 0


def command_verdict(arguments: argparse.Namespace) -> int:
    """Name every cell without a valid measurement; exit status 1 when a cell failed."""
    import csv

    bad = 0
    for name in arguments.studies:
        path = arguments.results / name / "cells.csv"
        with open(path, newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["status"] == "failed":
                    bad += 1
                    where = (
                        f"{row['collective']} {row['algorithm']} mapping {row['mapping']} processes {row['processes']}"
                    )
                    print(f"failed: {name}: {where}: {row['reason']}", file=sys.stderr)
    if bad:
        print(f"{bad} cells failed; their output is in logs/measure/. Run again to try them again.", file=sys.stderr)
    return 1 if bad else 0


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run; a StudyError becomes one message and exit status 2."""
    parser = argparse.ArgumentParser(prog="collstudy", description=__doc__)
    parser.add_argument(
        "--results", type=Path, default=None, help="results folder (default: as config/config.yaml says)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what will be used, with versions").set_defaults(run=command_info)
    commands.add_parser("build", help="build the C programs").set_defaults(run=command_build)
    measure = commands.add_parser("measure", help="run one block")
    measure.add_argument("block", type=Path)
    measure.add_argument("--log", type=Path, required=True)
    measure.set_defaults(run=command_measure)
    collecting = commands.add_parser("collect", help="write a study's measurements.csv")
    collecting.add_argument("study")
    collecting.set_defaults(run=command_collect)
    status = commands.add_parser("status", help="how far the studies are")
    status.add_argument("studies", nargs="*")
    status.set_defaults(run=command_status)
    verdict = commands.add_parser("verdict", help="name failed cells")
    verdict.add_argument("studies", nargs="+")
    verdict.set_defaults(run=command_verdict)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
