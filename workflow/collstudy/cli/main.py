"""The command line of the Python part; `./study` and the Snakemake rules call it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from collstudy.base.errors import UNWRITABLE, StudyError
from collstudy.cli import applications, draft, imports, measuring, running, sharing, studies, system, tuning

#: The modules with the groups of commands.
GROUPS = (studies, draft, running, measuring, tuning, applications, sharing, imports, system)


def parser() -> argparse.ArgumentParser:
    """Return the parser for all commands."""
    # Messages name the command as it was typed.
    program = os.environ.get("COLLSTUDY_PROGRAM", "python -m collstudy")
    top = argparse.ArgumentParser(prog=program, description=__doc__)
    top.add_argument("--results", type=Path, help="results folder (default: `results` of config/config.yaml)")
    top.add_argument(
        "--check-arguments", action="store_true", help="check the arguments of the command, and do not run it"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for group in GROUPS:
        group.add_commands(commands)
    return top


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run the command. A StudyError, a full disk or a file that cannot be written becomes one message and
    exit status 2, Ctrl-C exit status 130.
    """
    arguments, unknown = parser().parse_known_args(argv)
    if unknown:
        # With the usage of the command, not that of all commands.
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if arguments.check_arguments:
        return 0
    try:
        return arguments.run(arguments) or 0
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:
        if error.errno not in UNWRITABLE or not error.filename:
            raise
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
