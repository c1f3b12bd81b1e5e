"""Commands of the rules that measure and make something of it: measure, ask, collect, made."""

from __future__ import annotations

import argparse
import errno
import sys
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.cli.commands import add
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import read_block
from collstudy.project import made
from collstudy.project.studies import Project
from collstudy.sources.sampled import SampledSource


def add_commands(commands: Any) -> None:
    """Add them."""
    block = add(commands, "measure", measure, "run one block")
    block.add_argument("block", type=Path, help="the block's file")
    block.add_argument("--log", type=Path, required=True, help="file for all that the launches print")
    asking = add(commands, "ask", ask, "write the blocks of a round of a sampled study")
    asking.add_argument("study")
    asking.add_argument("round", type=int)
    collecting = add(commands, "collect", collect, "write a study's cells.csv and measurements.csv")
    collecting.add_argument("study")
    collecting.add_argument("--round", type=int, help="until the end of this round of a sampled study")
    making = add(commands, "made", note_made, "keep digests of what a rule made of a study")
    making.add_argument("study")
    making.add_argument("part", choices=sorted(made.PARTS))


def measure(arguments: argparse.Namespace) -> int:
    """Run one block. Failed cells do not fail the block: they are kept in the store and named at the end of the run."""
    try:
        run_block(read_block(arguments.block), arguments.results, arguments.log)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        print(
            f"error: {arguments.block.stem}: {error.strerror}: {error.filename or arguments.results}\n"
            "What was measured before is kept and complete. Make room (or correct the rights) and run again: only what is "
            "lacking is measured.",
            file=sys.stderr,
        )
        return 3
    return 0


def _sampled(project: Project, name: str) -> SampledSource:
    source = project.source(name)
    if not isinstance(source, SampledSource):
        raise StudyError(f"study {name} is not sampled: it has no rounds")
    return source


def ask(arguments: argparse.Namespace) -> None:
    """Write the blocks of what a round of a sampled study asks for."""
    project = Project(results=arguments.results)
    source = _sampled(project, arguments.study)
    project.ask(source, arguments.round, source.folder_of(arguments.round) / "pending.txt")


def collect(arguments: argparse.Namespace) -> None:
    """Write cells.csv and measurements.csv of a study, or of a sampled one until the end of a round."""
    project = Project(results=arguments.results)
    if arguments.round:
        source = _sampled(project, arguments.study)
        source.rows_until(arguments.round).write(source.folder_of(arguments.round))
    else:
        project.source(arguments.study).collect()
        made.note(project.folder(arguments.study), "collect")


def note_made(arguments: argparse.Namespace) -> None:
    """Keep the digests of what a rule just made of a study's measurements."""
    made.note(Project(results=arguments.results).folder(arguments.study), arguments.part)
