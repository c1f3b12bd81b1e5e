"""Commands about this computer: info, needs, build, probe, spack-check."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from collstudy.base.paths import ROOT
from collstudy.calibration import calibrate
from collstudy.cli import probe as probing
from collstudy.cli import spack_check
from collstudy.cli.commands import add
from collstudy.launch import build as compiling
from collstudy.project.studies import Project
from collstudy.publish import versions
from collstudy.sources import needs
from collstudy.sources.source import Source
from collstudy.study.names import LIBRARIES


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    add(commands, "info", info, "show the software that will be used, with versions")
    needing = add(
        commands, "needs", say_needs, "list what studies need: MPI libraries, a compiler, a simulator, R, applications"
    )
    needing.add_argument("--measure", action="store_true", help="for measuring only, without analysis and report")
    building = add(commands, "build", build, "build the C programs that studies need")
    building.add_argument("--all", action="store_true", help="for all available MPI libraries and the simulator")
    building.add_argument("--real", action="store_true", help="for MPI libraries only, not the simulator")
    for parser in (needing, building):
        parser.add_argument("--calibrate", metavar="MACHINE", help="to calibrate this machine")
        parser.add_argument("--program", action="store_true", help="to run and measure a program of the user")
        parser.add_argument("studies", nargs="*", help="names (default: those of config/config.yaml)")
    add(commands, "probe", probe, "draft a machine file for this computer or cluster").add_argument(
        "name", nargs="?", help="write config/machines/NAME.yaml (default: print)"
    )
    add(commands, "spack-check", check_spack, "check that the Spack files of a checkout agree").add_argument(
        "checkout", nargs="?", type=Path, default=ROOT
    )


def info(_: argparse.Namespace) -> None:
    """Print the software that will be used, one key=value per line."""
    for key, value in versions.info().items():
        print(f"{key}={value}")


def say_needs(arguments: argparse.Namespace) -> None:
    """Print what studies and their companions need, one line `part study...` each; only MPI libraries that set-up manages."""
    for part, studies in _parts(arguments, _sources(arguments), report=not arguments.measure).items():
        if part not in LIBRARIES or needs.to_set_up(part):
            print(part, *studies)


def build(arguments: argparse.Namespace) -> None:
    """Build the C programs that studies need, for the available MPI libraries; unchanged sources are not rebuilt."""
    if arguments.all:
        compiling.build()
        return
    sources = _sources(arguments)
    parts = _parts(arguments, sources)
    simulated = {compiling.SIMULATED} if needs.SIMULATOR in parts and not arguments.real else set()
    programs = {program for source in sources for program in source.programs()}
    compiling.build(set(parts) & LIBRARIES.keys() | simulated, programs)


def _sources(arguments: argparse.Namespace) -> list[Source]:
    """Return the named studies, or those of config.yaml, or those with which a machine is calibrated; none for a program."""
    if arguments.program:
        return []
    project = Project(results=arguments.results)
    if arguments.calibrate:
        return [
            project.source(name) for name in calibrate.studies_of_machine(project.configuration, arguments.calibrate)
        ]
    return project.named(",".join(arguments.studies), whatever_is_here=True)[0]


def _parts(arguments: argparse.Namespace, sources: list[Source], report: bool = True) -> dict[str, list[str]]:
    """Return the parts that these studies, the calibration of a machine, or a program need: {part: studies}."""
    if arguments.program:
        # Open MPI, if the program's launcher is no other library's.
        return {needs.COMPILER: [], "openmpi": []}
    if arguments.calibrate:
        own = {needs.COMPILER: [arguments.calibrate], needs.SIMULATOR: [arguments.calibrate]}
        return needs.by_part(sources, report=False) | own
    return needs.by_part(sources, report)


def probe(arguments: argparse.Namespace) -> None:
    """Draft a machine file: to standard output, or to config/machines/NAME.yaml."""
    if not arguments.name:
        print(probing.draft(), end="")
        return
    folder = Project(results=arguments.results).configuration.folder
    print(f"drafted {probing.write(arguments.name, folder / 'machines')}; check every line")


def check_spack(arguments: argparse.Namespace) -> int:
    """Print disagreements; exit status 1 if there are any."""
    problems = spack_check.check(arguments.checkout.resolve())
    print("\n".join(problems) or "Spack files: no problems")
    return 1 if problems else 0
