"""Commands about programs of the user: what-ran."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically
from collstudy.cli.commands import add, typed_path
from collstudy.launch import ran


def add_commands(commands: Any) -> None:
    """Add them."""
    running = add(
        commands, "what-ran", what_ran, "print which component and algorithm ran each collective of a program"
    )
    running.add_argument(
        "--folder", type=typed_path, default=typed_path("."), help="folder to run in (default: the current one)"
    )
    running.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="end the program after this time")
    running.add_argument("--csv", type=typed_path, metavar="FILE", help="write the table to a file as well")
    running.add_argument("words", nargs="+", metavar="COMMAND", help="mpirun -n 4 ./a.out, after --")


def what_ran(arguments: argparse.Namespace) -> int:
    """Run an MPI program once, and print for each communicator and collective: calls, message sizes, and the component and
    algorithm of the MPI library that ran, with how that is known. Open MPI 4.1 and 5.0; of other libraries calls and sizes
    alone. If the program does not end well, the table has what it did before, and the exit status is 2.
    """
    outcome = ran.what_ran(arguments.words, arguments.folder.absolute(), arguments.limit, sys.stdout)
    print("\n" + "\n".join(ran.table(outcome)))
    if arguments.csv:
        write_atomically(arguments.csv, to_csv(ran.COLUMNS, outcome.rows))
    if outcome.problem:
        raise StudyError(f"the program did not end well, the table has what ran before: {outcome.problem}")
    return 0
