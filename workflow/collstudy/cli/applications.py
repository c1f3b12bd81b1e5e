"""Commands for programs of the user: what-ran, tune."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically, write_if_changed
from collstudy.cli.commands import add, positive, typed_path
from collstudy.launch import ran
from collstudy.project.studies import Project
from collstudy.study.config import PROGRAM_LIMIT_S, RUNS, WORTH_PCT
from collstudy.study.names import check_name


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    running = add(
        commands, "what-ran", what_ran, "print which component and algorithm ran each collective of a program"
    )
    running.add_argument(
        "--limit",
        type=positive,
        default=3600,
        metavar="SECONDS",
        help="time limit of the program (default: %(default)g)",
    )
    running.add_argument("--csv", type=typed_path, metavar="FILE", help="also write the table to this file")
    tuning = add(commands, "tune", tune, "write the study that tunes the collectives of a program")
    tuning.add_argument("--name", default="", help="the study is tune-NAME (default: the name of the program)")
    tuning.add_argument(
        "--runs", type=int, default=RUNS, help=f"pairs of runs that are compared (default: {RUNS}, at least 5)"
    )
    tuning.add_argument(
        "--budget", type=float, default=10, metavar="MINUTES", help="node-minutes for measuring its cells (default: 10)"
    )
    tuning.add_argument(
        "--worth", type=float, default=WORTH_PCT, metavar="PERCENT",
        help=f"measure only if ideal (zero-cost) collectives would save at least this percentage of the run time (default: {WORTH_PCT})",
    )  # fmt: skip
    tuning.add_argument("--machine", default="this-machine", help="a file of config/machines/ (default: this-machine)")
    limit = {"type": float, "default": PROGRAM_LIMIT_S, "metavar": "SECONDS"}
    tuning.add_argument(
        "--limit", **limit, help="time limit of one run of the program, for which jobs ask (default: %(default)g)"
    )
    for parser in (running, tuning):
        parser.add_argument(
            "--folder", type=typed_path, default=typed_path("."), help="folder to run in (default: the current one)"
        )
        parser.add_argument(
            "words", nargs="+", metavar="COMMAND", help="the command of the program, after --: mpirun -n 4 ./a.out"
        )


#: The option that sets each key of a program's study.
OPTION_OF = {
    "program.command": "COMMAND", "program.folder": "--folder", "program.runs": "--runs", "program.limit_s": "--limit",
    "program.worth_pct": "--worth", "sampling.budget_node_minutes": "--budget", "machine": "--machine",
}  # fmt: skip

#: Template for the study of a program.
STUDY = """\
# Written by ./study tune; config/README.md explains every key.
title: "Faster collectives for {label}"
question: >-
  Which algorithms should the collectives of this program use, and how much faster is the program with them?
machine: {machine}
# The command and the folder in which it runs.
program:
  command: {command}
  folder: {folder}
  runs: {runs}
  limit_s: {limit_s:g}
{worth}# Launches of each cell, and the budget for all of them.
launches: {{min: 3, max: 5, ci_width_pct: 5}}
sampling: {{rounds: 8, first_pct: 20, round_pct: 10, target_regret_pct: 1, budget_node_minutes: {budget:g}}}
analysis:
  tuning: {{}}
"""


def tune(arguments: argparse.Namespace) -> None:
    """Write config/studies/tune-NAME.yaml, a study that traces a program, measures the collectives that it uses, writes a
    tuning file and judges it by runs of the program. `./study tune` then runs the study (on a machine of kind slurm as jobs);
    `./study run tune-NAME` continues it.
    """
    words, folder = arguments.words, _existing(arguments.folder).resolve()
    launcher = ran.launcher_of(words, folder)
    ran.refuse_input()
    # Store the launcher's full path, because PATH may be different later.
    words = [*words[: launcher.position], str(launcher.path), *words[launcher.position + 1 :]]
    programs = ran.programs_in(words, folder)
    if not programs:
        raise StudyError(f"{shlex.join(words)}: no executable program in this command")
    # A word of its arguments may be called like a program on PATH (`./solver test`).
    sure = ran.programs_in([word for word in words if "/" in word or word.endswith(".py")], folder)
    label = arguments.name or (sure or programs)[-1].stem
    project = Project(results=arguments.results)
    name = f"tune-{label}"
    check_name(name, "a study")
    text = STUDY.format(
        label=label, machine=arguments.machine, folder=json.dumps(str(folder), ensure_ascii=False),
        command=json.dumps(shlex.join(words), ensure_ascii=False),
        runs=arguments.runs, limit_s=arguments.limit, budget=arguments.budget,
        worth="" if arguments.worth == WORTH_PCT else f"  worth_pct: {arguments.worth:g}\n",
    )  # fmt: skip
    path = project.configuration.folder / "studies" / f"{name}.yaml"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise StudyError("command and folder must be UTF-8") from None
    there = path.exists()
    if there and path.read_text(encoding="utf-8") != text:
        raise StudyError(f"{path} already exists with different content; choose another --name or remove it")
    write_if_changed(path, content)
    try:
        project.source(name).check()
    except StudyError as error:
        if there:
            raise
        path.unlink()
        # Name the option instead of a key of the removed file.
        found = re.match(r".*(?:, line \d+|study [^:]*): ([a-z_.]+)(.*)", str(error), re.DOTALL)
        if found and found[1] in OPTION_OF:
            raise StudyError(f"{OPTION_OF[found[1]]}{found[2]}") from None
        raise
    in_jobs = project.configuration.study(name).machine.kind == "slurm" and "SLURM_JOB_ID" not in os.environ
    print(project.folder(name).absolute())
    print(name, *(["-- --profile slurm"] if in_jobs else []))


def _existing(folder: Path) -> Path:
    """Return the folder. Raises StudyError if there is none."""
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such folder")
    return folder


def what_ran(arguments: argparse.Namespace) -> int:
    """Run an MPI program once, and print for each communicator and collective: calls, message sizes, and the component and
    algorithm of the MPI library that ran, with the evidence. Algorithms require Open MPI 4.1 or 5.0, or Intel MPI; for other
    libraries only calls and sizes are shown. If the program fails, the table covers the calls until then; the exit status is 2.
    """
    outcome = ran.what_ran(arguments.words, _existing(arguments.folder).absolute(), arguments.limit, sys.stdout)
    print("\n" + "\n".join(ran.table(outcome)))
    if arguments.csv:
        write_atomically(arguments.csv, to_csv(ran.COLUMNS, outcome.rows))
    if outcome.problem:
        raise StudyError(f"the program failed; the table covers the calls until then: {outcome.problem}")
    return 0
