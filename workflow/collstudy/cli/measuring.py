"""Commands called by the rules: measure, describe, ask, collect, made."""

from __future__ import annotations

import argparse
import errno
import sys
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import write_atomically
from collstudy.cli.commands import add
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import read_block
from collstudy.project import made, needs
from collstudy.project.studies import Project
from collstudy.sources.program import ProgramSource
from collstudy.sources.sampled import SampledSource


def add_commands(commands: Any) -> None:
    """Add them."""
    block = add(commands, "measure", measure, "run one block")
    block.add_argument("block", type=Path, help="the block's file")
    block.add_argument("--log", type=Path, required=True, help="file for the output of the launches")
    asking = add(commands, "ask", ask, "write the blocks of one round of a sampled study")
    asking.add_argument("study")
    asking.add_argument("round", type=int)
    add(commands, "describe", describe, "write what is known of a program's cells after its trace").add_argument(
        "study"
    )
    collecting = add(commands, "collect", collect, "write a study's cells.csv and measurements.csv")
    collecting.add_argument("study")
    collecting.add_argument("--round", type=int, help="up to and including this round of a sampled study")
    making = add(commands, "made", note_made, "store digests of the files that a rule made for a study")
    making.add_argument("study")
    making.add_argument("part", choices=sorted(made.PARTS.keys() - {"report"}))


def measure(arguments: argparse.Namespace) -> int:
    """Run one block. Failed cells do not fail the block: they are stored and named at the end of the run."""
    try:
        run_block(read_block(arguments.block), arguments.results, arguments.log)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        print(
            f"error: {arguments.block.stem}: {error.strerror}: {error.filename or arguments.results}\n"
            "Earlier measurements are stored and complete. Free disk space (or correct the permissions) and run again: only "
            "missing cells are measured.",
            file=sys.stderr,
        )
        return 3
    return 0


def _sampled(project: Project, name: str) -> SampledSource:
    source = project.source(name)
    if not isinstance(source, SampledSource):
        raise StudyError(f"study {name} is not sampled and has no rounds")
    return source


def ask(arguments: argparse.Namespace) -> None:
    """Write the blocks of the points that a round of a sampled study selects."""
    project = Project(results=arguments.results)
    source = _sampled(project, arguments.study)
    project.ask(source, arguments.round, source.folder_of(arguments.round) / "pending.txt")


def describe(arguments: argparse.Namespace) -> None:
    """Write study.json and the points of a program's cells, once its account is there."""
    source = Project(results=arguments.results).source(arguments.study)
    assert isinstance(source, ProgramSource)
    for file, content in source.described().items():
        write_atomically(source.folder / file, content)


def collect(arguments: argparse.Namespace) -> None:
    """Write cells.csv and measurements.csv of a study (of a sampled one, up to the end of a round)."""
    project = Project(results=arguments.results)
    if arguments.round:
        source = _sampled(project, arguments.study)
        source.rows_until(arguments.round).write(source.folder_of(arguments.round))
    else:
        project.source(arguments.study).collect()
        made.note(project.results, arguments.study, "collect")


def note_made(arguments: argparse.Namespace) -> None:
    """Store the digests of the files that R has just made from a study's measurements, with the code of this checkout."""
    needs.check_analysis()
    made.note(Project(results=arguments.results).results, arguments.study, arguments.part)
