"""Commands about this computer: info, build, probe, spack-check."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from collstudy.base.paths import ROOT
from collstudy.cli import probe as probing
from collstudy.cli import spack_check
from collstudy.cli.commands import add
from collstudy.launch import build as building
from collstudy.publish import versions


def add_commands(commands: Any) -> None:
    """Add them."""
    add(commands, "info", info, "what will be used, with versions")
    add(commands, "build", build, "build the C programs")
    add(commands, "probe", probe, "draft a machine file from what this computer says of itself").add_argument(
        "name", nargs="?", help="write config/machines/NAME.yaml (default: print)"
    )
    add(commands, "spack-check", check_spack, "whether the Spack files of a checkout agree").add_argument(
        "checkout", nargs="?", type=Path, default=ROOT
    )


def info(_: argparse.Namespace) -> None:
    """Print what will be used, one key=value a line."""
    for key, value in versions.info().items():
        print(f"{key}={value}")


def build(_: argparse.Namespace) -> None:
    """Build the C programs for every MPI library that is there, and for the simulator."""
    building.build()


def probe(arguments: argparse.Namespace) -> None:
    """Draft a machine file: to standard output, or to config/machines/NAME.yaml."""
    if not arguments.name:
        print(probing.draft(), end="")
        return
    print(f"drafted {probing.write(arguments.name, ROOT / 'config' / 'machines')}; look at the lines with TODO")


def check_spack(arguments: argparse.Namespace) -> int:
    """Print what does not agree; exit status 1 where there is something."""
    problems = spack_check.check(arguments.checkout.resolve())
    print("\n".join(problems) or "Spack files: no problems")
    return 1 if problems else 0
