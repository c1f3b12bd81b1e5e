"""Commands called by the rules: measure, describe, request, replays, collect, made."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from collstudy.base.errors import UNWRITABLE, StudyError
from collstudy.base.files import write_atomically
from collstudy.cli.commands import add
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import read_block
from collstudy.project import made
from collstudy.project.studies import Project
from collstudy.sources import needs


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    block = add(commands, "measure", measure, "run one block")
    block.add_argument("block", type=Path, help="the block's file")
    block.add_argument("--log", type=Path, required=True, help="file for the output of the launches")
    requesting = add(commands, "request", request, "write the blocks of one round of a sampled study")
    requesting.add_argument("study")
    requesting.add_argument("round", type=int)
    add(commands, "describe", describe, "write the description of a program's cells after its trace").add_argument(
        "study"
    )
    add(
        commands,
        "replays",
        replays,
        "write the description of a study's replays, and their blocks, after the decisions",
    ).add_argument("study")
    collecting = add(commands, "collect", collect, "write a study's cells.csv and measurements.csv")
    collecting.add_argument("study")
    collecting.add_argument("--round", type=int, help="up to and including this round of a sampled study")
    add_latency(collecting)
    making = add(commands, "made", note_made, "store digests of the files that a rule made for a study")
    making.add_argument("study")
    making.add_argument("part", choices=sorted(made.PARTS.keys() - {"report"}))


def add_latency(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that read what jobs have stored."""
    parser.add_argument(
        "--latency", type=float, default=0, metavar="SECONDS", help="wait for files that Slurm jobs have written"
    )


def measure(arguments: argparse.Namespace) -> int:
    """Run one block. Failed cells do not fail the block: they are stored and named at the end of the run."""
    # The configuration is not read in a run: it may have changed since the block was planned.
    results = arguments.results or Project().results
    try:
        block = read_block(arguments.block)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{arguments.block}: not the file of a block: {error}") from None
    try:
        run_block(block, results, arguments.log)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        print(
            f"error: {arguments.block.stem}: {error.strerror}: {error.filename or results}\n"
            "Earlier measurements are stored and complete. Free disk space (or correct the permissions) and run again: only "
            "missing cells are measured.",
            file=sys.stderr,
        )
        return 3
    return 0


def request(arguments: argparse.Namespace) -> None:
    """Write the blocks of the points that a round of a sampled study has selected."""
    project = Project(results=arguments.results)
    source = project.source(arguments.study)
    project.request(source, arguments.round, source.folder_of(arguments.round) / "pending.txt")


def replays(arguments: argparse.Namespace) -> None:
    """Write study.json and the blocks of missing replays, once the study named by `decisions` has made its decisions."""
    project = Project(results=arguments.results)
    source = project.source(arguments.study)
    write_atomically(source.folder / "study.json", source.study_json())
    project.request(source, 0, source.folder / "replays.txt")


def describe(arguments: argparse.Namespace) -> None:
    """Write study.json and the list of a program's points, after its trace was analysed."""
    source = Project(results=arguments.results).source(arguments.study)
    for file, content in source.described().items():
        write_atomically(source.folder / file, content)


def collect(arguments: argparse.Namespace) -> None:
    """Write cells.csv and measurements.csv of a study (of a sampled one, up to the end of a round)."""
    project = Project(results=arguments.results)
    source = project.source(arguments.study)
    project.await_files(source, arguments.latency)
    if arguments.round:
        source.rows_until(arguments.round).write(source.folder_of(arguments.round))
    else:
        source.collect()
        made.note(project.results, arguments.study, "collect")


def note_made(arguments: argparse.Namespace) -> None:
    """Store the digests of the files that R has just made from a study's measurements, with the code of this checkout."""
    needs.check_analysis()
    made.note(Project(results=arguments.results).results, arguments.study, arguments.part)
