"""Helpers with which each group adds its commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError


def typed_path(text: str) -> Path:
    """Return a path relative to the folder in which the user called `./study` (which changes to the checkout)."""
    return Path(os.environ.get("COLLSTUDY_FROM", "."), text)


def add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], help_: str
) -> argparse.ArgumentParser:
    """Add a command implemented by *run*, whose docstring is the command's description."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_, description=run.__doc__)
    parser.set_defaults(run=run)
    return parser


def refuse_packages(names: list[str], command: str) -> None:
    """Raise StudyError if one of the *names* of studies is the path of a data package."""
    for name in names:
        if os.sep in name or name.endswith(".zip"):
            raise StudyError(
                f"{name} is not the name of a study; of a data package: unpack it, and run ./study {command} in its folder data-package"
            )
