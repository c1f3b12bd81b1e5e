"""Helpers with which each group adds its commands."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError

#: The largest number of seconds or minutes in an option.
MOST = 1_000_000_000


def typed_path(text: str) -> Path:
    """Return a path relative to the folder in which the user called `./study` (which changes to the checkout)."""
    return Path(os.environ.get("COLLSTUDY_FROM", "."), text)


def positive(text: str) -> float:
    """Convert a text to a number above 0. Raises argparse.ArgumentTypeError."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) <= MOST:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and at most {MOST:,}")


def add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], help_: str
) -> argparse.ArgumentParser:
    """Add a command implemented by *run*, whose docstring is the command's description."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_, description=run.__doc__)
    parser.set_defaults(run=run, parser=parser)
    return parser


def refuse_packages(names: list[str], command: str) -> None:
    """Raise StudyError if one of the *names* of studies is the path of a data package."""
    for name in names:
        if os.sep in name or name.endswith(".zip"):
            raise StudyError(
                f"{name} is not the name of a study; of a data package: unpack it, and run ./study {command} in its folder data-package"
            )
