"""How a group adds a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], help_: str
) -> argparse.ArgumentParser:
    """Add a command that *run* does; its docstring is the description."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_, description=run.__doc__)
    parser.set_defaults(run=run)
    return parser
