"""Command line of the Python part; `./study` and the Snakemake rules call it."""

from __future__ import annotations

import argparse
import errno
import sys
import time
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.calibration import calibrate
from collstudy.cli import next_step, probe
from collstudy.launch import build, toolchain
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import read_block
from collstudy.project import needs
from collstudy.project.project import Project, StudyState, split_names
from collstudy.project.status import progress_line, stale_lock
from collstudy.publish import package
from collstudy.sources import sampled, traced
from collstudy.study.config import ROOT
from collstudy.tuning import advise

#: Seconds between two looks of `status --watch`.
WATCH_S = 2


def command_info(_: argparse.Namespace) -> int:
    """Print what will be used."""
    for key, value in toolchain.info().items():
        print(f"{key}={value}")
    return 0


def command_build(arguments: argparse.Namespace) -> int:
    """Build the C programs: for what is here and the studies need, or for everything that is here."""
    if arguments.all:
        build.build()
        return 0
    parts = _parts(arguments)
    targets = {*parts} & {"openmpi", "mpich", "impi"}
    if needs.SIMULATOR in parts and not arguments.real:
        targets.add(build.SIMULATED)
    build.build(targets)
    return 0


def command_needs(arguments: argparse.Namespace) -> int:
    """Print what studies and their companions need, `part study...` a line; of MPI libraries those that set-up looks after."""
    for part, studies in _parts(arguments).items():
        if part not in ("openmpi", "mpich", "impi") or needs.to_set_up(part):
            print(part, *studies)
    return 0


def _parts(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """What the named studies need, or those of config.yaml, or the calibration of a machine: part -> studies."""
    project = Project(results=arguments.results)
    if arguments.calibrate:
        named = calibrate.studies_of_machine(project.configuration, arguments.calibrate)
        own = {needs.COMPILER: [arguments.calibrate], needs.SIMULATOR: [arguments.calibrate]}
        return needs.by_part(project.study(name) for name in named) | own
    named = split_names(",".join(arguments.studies))
    studies, _ = project.available(named or project.default_studies, bool(named), whatever_is_here=True)
    return needs.by_part(studies, report=not getattr(arguments, "measure", False))


def command_measure(arguments: argparse.Namespace) -> int:
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


def command_application(arguments: argparse.Namespace) -> int:
    """Run one request: trace an application, or replay a trace."""
    traced.run(arguments.request, arguments.results, arguments.log)
    return 0


def command_collect(arguments: argparse.Namespace) -> int:
    """Write cells.csv and measurements.csv of a study, or of a sampled one until the end of a round."""
    project = Project(results=arguments.results)
    if arguments.round:
        sampled.collect(project, project.study(arguments.study), arguments.round)
    else:
        project.collect(arguments.study)
    return 0


def command_ask(arguments: argparse.Namespace) -> int:
    """Write the blocks of what a round of a sampled study asks for."""
    project = Project(results=arguments.results)
    sampled.ask(project, project.study(arguments.study), arguments.round)
    return 0


def _states(arguments: argparse.Namespace) -> list[StudyState]:
    project = Project(results=arguments.results)
    named = split_names(",".join(arguments.studies))
    studies, left_out = project.available(named or project.default_studies, explicit=bool(named))
    for line in left_out:
        print(line)
    return [project.state(study) for study in studies]


def command_status(arguments: argparse.Namespace) -> int:
    """Print for each study how many cells are measured, failed and left, from the store alone; with --watch, until none is left."""
    while True:
        lines, left = [], 0
        for state in _states(arguments):
            if state.study.imports:
                lines.append(f"{state.study.name}: imported data, nothing to measure")
                continue
            project = Project(results=arguments.results)
            lines.append(progress_line(state.study.name, state, project.results, project.store))
            left += len(state.tasks) - state.failed
        if not arguments.watch:
            print("\n".join(lines))
            return 0
        # On a terminal, over what was there; in a log, below it.
        print(("\x1b[H\x1b[J" if sys.stdout.isatty() else "") + "\n".join(lines), flush=True)
        if not left:
            return 0
        time.sleep(WATCH_S)


def command_next(arguments: argparse.Namespace) -> int:
    """Print where this checkout is, and what to do next."""
    print("\n".join(next_step.describe(Project(results=arguments.results), Path.cwd())))
    return 0


def command_probe(arguments: argparse.Namespace) -> int:
    """Draft a machine file: to standard output, or to config/machines/NAME.yaml."""
    if not arguments.name:
        print(probe.draft(), end="")
        return 0
    print(f"drafted {probe.write(arguments.name, ROOT / 'config' / 'machines')}; look at the lines with TODO")
    return 0


def command_publish(arguments: argparse.Namespace) -> int:
    """Write the folder to publish."""
    project = Project(results=arguments.results)
    studies = arguments.studies or [
        n for n in project.default_studies if (project.folder(n) / "measurements.csv").exists()
    ]
    for line in package.publish(project.results, studies, arguments.to):
        print(line)
    return 0


def command_reanalyse(arguments: argparse.Namespace) -> int:
    """Tables, figures and report of a data package, without measuring."""
    project = Project(results=arguments.results)
    package.reanalyse(project.results, arguments.studies or project.default_studies)
    return 0


def command_compare(arguments: argparse.Namespace) -> int:
    """Compare measurements made again with published ones."""
    for line in package.compare(arguments.published, arguments.again):
        print(line)
    return 0


def command_unlock(_: argparse.Namespace) -> int:
    """Remove the lock that a killed snakemake left in this folder; exit status 2 when somebody may hold it."""
    reason = stale_lock(Path.cwd())
    if reason is None:
        return 0
    if reason:
        raise StudyError(reason)
    for path in (Path.cwd() / ".snakemake" / "locks").iterdir():
        path.unlink()
    print("the lock of a snakemake that was killed was removed; what it measured is kept", file=sys.stderr)
    return 0


def command_verdict(arguments: argparse.Namespace) -> int:
    """Name every cell without a valid measurement; exit status 1 when a cell failed."""
    import csv

    bad = 0
    for name in arguments.studies:
        path = arguments.results / name / "cells.csv"
        with open(path, newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["status"] == "failed":
                    bad += 1
                    where = (
                        f"{row['collective']} {row['algorithm']} mapping {row['mapping']} processes {row['processes']}"
                    )
                    print(f"failed: {name}: {where}: {row['reason']}", file=sys.stderr)
    if bad:
        print(f"{bad} cells failed; their output is in logs/measure/. Run again to try them again.", file=sys.stderr)
    return 1 if bad else 0


def command_calibrate(arguments: argparse.Namespace) -> int:
    """Fit a simulated machine's parameters and write them into its file."""
    from collstudy.calibration.calibrate import calibrate

    project = Project(results=arguments.results)
    calibrate(project.configuration, arguments.machine, project.results)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run; a StudyError becomes one message and exit status 2."""
    parser = argparse.ArgumentParser(prog="collstudy", description=__doc__)
    parser.add_argument(
        "--results", type=Path, default=None, help="results folder (default: as config/config.yaml says)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what will be used, with versions").set_defaults(run=command_info)
    building = commands.add_parser("build", help="build the C programs that studies need")
    building.add_argument("--all", action="store_true", help="for all MPI libraries that are here, and the simulator")
    building.add_argument("--real", action="store_true", help="for MPI libraries only, not the simulator")
    building.set_defaults(run=command_build)
    needing = commands.add_parser(
        "needs", help="what studies need: MPI libraries, a compiler, a simulator, R, applications"
    )
    needing.set_defaults(run=command_needs)
    needing.add_argument(
        "--measure", action="store_true", help="as far as measurements.csv, without analysis and report"
    )
    for parser_of_studies in (building, needing):
        parser_of_studies.add_argument("--calibrate", metavar="MACHINE", help="to calibrate this machine")
        parser_of_studies.add_argument("studies", nargs="*")
    measure = commands.add_parser("measure", help="run one block")
    measure.add_argument("block", type=Path)
    measure.add_argument("--log", type=Path, required=True)
    measure.set_defaults(run=command_measure)
    application = commands.add_parser("application", help="trace an application, or replay a trace")
    application.add_argument("request", type=Path)
    application.add_argument("--log", type=Path, required=True)
    application.set_defaults(run=command_application)
    collecting = commands.add_parser("collect", help="write a study's measurements.csv")
    collecting.add_argument("study")
    collecting.add_argument("--round", type=int, help="until the end of this round of a sampled study")
    collecting.set_defaults(run=command_collect)
    asking = commands.add_parser("ask", help="write the blocks of a round of a sampled study")
    asking.add_argument("study")
    asking.add_argument("round", type=int)
    asking.set_defaults(run=command_ask)
    commands.add_parser("next", help="where this checkout is, and what to do next").set_defaults(run=command_next)
    status = commands.add_parser("status", help="how far the studies are")
    status.add_argument("studies", nargs="*")
    status.add_argument("--watch", action="store_true", help=f"again every {WATCH_S} seconds, until nothing is left")
    status.set_defaults(run=command_status)
    probing = commands.add_parser("probe", help="draft a machine file from what this computer says of itself")
    probing.add_argument("name", nargs="?", help="write config/machines/NAME.yaml (default: print)")
    probing.set_defaults(run=command_probe)
    publishing = commands.add_parser("publish", help="write the report and a data package to a folder")
    publishing.add_argument("studies", nargs="*")
    publishing.add_argument("--to", type=Path, default=Path("publish"), help="folder to write (default: publish)")
    publishing.set_defaults(run=command_publish)
    again = commands.add_parser("reanalyse", help="tables, figures and report from measurements.csv, without measuring")
    again.add_argument("studies", nargs="*")
    again.set_defaults(run=command_reanalyse)
    comparing = commands.add_parser("compare", help="compare measurements made again with published ones")
    comparing.add_argument("published", type=Path)
    comparing.add_argument("again", type=Path)
    comparing.set_defaults(run=command_compare)
    commands.add_parser("unlock", help="remove a stale lock of snakemake").set_defaults(run=command_unlock)
    advise.add_arguments(commands.add_parser("advise", help="which algorithm to use, from the results at hand"))
    verdict = commands.add_parser("verdict", help="name failed cells")
    verdict.add_argument("studies", nargs="+")
    verdict.set_defaults(run=command_verdict)
    calibrating = commands.add_parser("calibrate", help="fit a simulated machine to measurements; writes its file")
    calibrating.add_argument("machine")
    calibrating.set_defaults(run=command_calibrate)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
