"""Commands for decisions, tuning files and machines: tuning, advise, explain, convert, calibrate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, check_known
from collstudy.base.files import write_atomically
from collstudy.calibration.calibrate import calibrate as fit
from collstudy.cli.commands import add, typed_path
from collstudy.cli.measuring import add_latency
from collstudy.launch.mpich import device_file
from collstudy.launch.toolchain import installed, mpis
from collstudy.project import judging, made
from collstudy.project.studies import Project
from collstudy.study.names import LIBRARIES
from collstudy.tuning import check, trees
from collstudy.tuning.advise import advise as answers
from collstudy.tuning.convert import Converted, grouped
from collstudy.tuning.convert import convert as converted
from collstudy.tuning.explain import explain as explained
from collstudy.tuning.findings import checked, complain
from collstudy.tuning.library import library_of
from collstudy.tuning.nearest import Measured
from collstudy.tuning.question import Question, parse_size
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.readers.known import FORMATS, WRITTEN, Known


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    steps = add(commands, "tuning", tuning, "write, check and verify the tuning files of a study")
    steps.add_argument(
        "step",
        choices=("emit", "keep"),
        help="emit: write and check the files; keep: judge them after the verification",
    )
    steps.add_argument("study")
    add_latency(steps)
    asking = add(commands, "advise", advise, "recommend an algorithm from the results at hand")
    asking.add_argument("--collective", required=True, help="such as bcast (config/algorithms.yaml)")
    asking.add_argument("--nodes", type=_ranks, required=True, help="number of nodes")
    asking.add_argument("--ppn", type=_ranks, required=True, help="processes per node")
    asking.add_argument("--mapping", required=True, help="such as core (config/mappings.yaml)")
    asking.add_argument("--size", type=parse_size, help="bytes, such as 65536, 64KiB, 1MiB")
    asking.add_argument("--study", help="use this study only")
    asking.add_argument("--machine", help="the machine of the call: results of the most similar machines come first")
    explaining = add(commands, "explain", explain, "describe a tuning file in words and list its errors")
    explaining.add_argument("file", type=typed_path, help=f"{'; '.join(FORMATS.values())}")
    explaining.add_argument("--ranks", type=_ranks, help="processes of the communicator (default: list every rule)")
    explaining.add_argument("--size", type=parse_size, help="bytes per rank, such as 65536, 64KiB, 1MiB")
    explaining.add_argument("--nodes", type=_ranks, help="nodes of the communicator, if the file distinguishes them")
    explaining.add_argument("--collective", help="show only this collective")
    converting = add(commands, "convert", convert, "convert a tuning file for another library")
    converting.add_argument("file", type=typed_path, help="a tuning file that `./study explain` reads")
    names = "; ".join(f"{name}: {FORMATS[name]}" for name in WRITTEN)
    converting.add_argument("--to", required=True, choices=WRITTEN, help=names)
    converting.add_argument(
        "--output",
        type=typed_path,
        help="the new file (default: print it); for MPICH a second file for its device is written beside it",
    )
    converting.add_argument(
        "--check", action="store_true", help="check that the installed library follows the new file"
    )
    for one in (explaining, converting):
        one.add_argument(
            "--open-mpi",
            metavar="VERSION",
            help="version whose algorithm numbers apply, such as 4.1.4 (default: the installed one)",
        )
    fitting = add(commands, "calibrate", calibrate, "fit a simulated machine to measurements; writes its file")
    fitting.add_argument("machine")


def tuning(arguments: argparse.Namespace) -> None:
    """Run one step on a study's tuning files: emit writes and checks them, keep judges the verification and withdraws slower rules."""
    project = Project(results=arguments.results)
    if arguments.step == "emit":
        judging.emit(project, arguments.study)
    else:
        judging.keep(project, arguments.study, arguments.latency)
    made.note(project.results, arguments.study, arguments.step)


def advise(arguments: argparse.Namespace) -> int:
    """Recommend an algorithm from the decisions of all studies; exit status 1 if none applies."""
    question = Question(
        arguments.collective, arguments.mapping, arguments.nodes, arguments.nodes * arguments.ppn,
        None if arguments.collective == "barrier" else arguments.size,
    )  # fmt: skip
    project = Project(results=arguments.results)
    catalogue = project.configuration.catalogue
    said = f"--collective: unknown collective {arguments.collective!r}"
    check_known(arguments.collective, catalogue.algorithms, said)
    check_known(arguments.mapping, catalogue.mappings, f"--mapping: unknown mapping {arguments.mapping!r}")
    if question.processes < 2:
        raise StudyError("a collective needs at least two processes (--nodes times --ppn)")
    if arguments.study and not (project.results / arguments.study).exists():
        project.configuration.study(arguments.study)  # raises StudyError for an unknown one
    asker = None
    if arguments.machine:
        asker = [(level.name, level.count) for level in project.configuration.machine(arguments.machine).levels]
    atlas = [] if arguments.study else _atlas(project, question.collective)
    known, lines = answers(project.results, question, arguments.study, catalogue, asker, atlas)
    print("\n".join(lines))
    return 0 if known else 1


def _atlas(project: Project, collective: str) -> list[Measured]:
    """Return the real machines with measurements, by MPI library: from results of their studies, or from available imported files."""
    found = []
    for name in project.configuration.study_names():
        try:
            source = project.source(name)
            rows = source.observed()
        except StudyError:
            continue  # reported when that study is selected
        if not rows:
            continue
        machine = source.study.machine
        levels = [(level.name, level.count) for level in machine.levels]
        spread = frozenset(
            (mapping, nodes, nodes * processes)
            for sweep in source.study.sweeps
            if sweep.per_node
            for mapping in sweep.mappings
            for nodes in sweep.nodes
            for processes in sweep.processes
        )
        if source.states_nodes(rows):
            spread |= {(row["mapping"], int(row["nodes"]), int(row["processes"])) for row in rows}
        # Algorithms of the same name in different MPI libraries are different implementations.
        for mpi in dict.fromkeys(row["mpi"] for row in rows):
            own = [row for row in rows if row["mpi"] == mpi]
            label = f"{machine.label}, {LIBRARIES.get(mpi, mpi)}"
            found.append(Measured.of(name, label, levels, collective, own, spread))
    return found


def _ranks(text: str) -> int:
    """Convert a text to an integer of at least 1. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _known(arguments: argparse.Namespace, project: Project) -> Known:
    """Return the catalogue with the Open MPI version that was named or is installed; without one, 5.0.7."""
    here = mpis().get("openmpi")
    version = arguments.open_mpi or (here.version if here else "5.0.7")
    known = Known(project.configuration.catalogue, version)
    known.numbers  # noqa: B018 - an unknown version is rejected before anything is read
    return known


def explain(arguments: argparse.Namespace) -> int:
    """Describe a tuning file in words and list its errors by line; exit status 1 if there are any.

    Its format is recognized by its content. Rules are interpreted as the library itself does; for Open MPI, as the installed
    version or that of --open-mpi does.
    """
    for option in ("size", "nodes"):
        if getattr(arguments, option) is not None and arguments.ranks is None:
            raise StudyError(f"--{option} needs --ranks")
    known = _known(arguments, Project(results=arguments.results))
    file = read(arguments.file, known)
    lines = explained(file, known, arguments.collective, arguments.ranks, arguments.size, arguments.nodes)
    print("\n".join(lines))
    return int(any(not fault.note for fault in file.faults))


def convert(arguments: argparse.Namespace) -> None:
    """Write the rules of a tuning file in the format of another library; rules that it cannot express are listed on standard error.

    The new file is read again and compared with the old one. With --check the installed Open MPI or MPICH reads it, too, and its
    messages are compared with the rules at every limit, which takes some launches per entry.
    """
    known = _known(arguments, Project(results=arguments.results))
    mpi = {"openmpi": "openmpi", "openmpi-2": "openmpi", "mpich": "mpich"}.get(arguments.to)
    if arguments.check and (mpi is None or arguments.output is None):
        raise StudyError("--check supports Open MPI's rules and MPICH's trees and needs --output")
    own = trees.own_trees(installed("mpich").shared_library) if arguments.to == "mpich" else None
    file = read(arguments.file, known)
    found = converted(file, arguments.to, known, own)
    if any(not fault.note for fault in file.faults):
        print(f"{arguments.file} has errors: ./study explain lists them", file=sys.stderr)
    if found.losses:
        print("not converted:", *(f"  {line}" for line in grouped(found.losses)), sep="\n", file=sys.stderr)
    if arguments.output is None:
        if found.device:
            raise StudyError("MPICH needs two files; use --output")
        print(found.text, end="")
        return
    if found.device:
        write_atomically(device_file(arguments.output), found.device.encode())
    write_atomically(arguments.output, found.text.encode())
    if arguments.check and mpi:
        _check_converted(found, arguments.output, installed(mpi), known)


def _check_converted(found: Converted, path: Path, mpi: Any, known: Known) -> None:
    """Check the new file with the installed library. Raises StudyError for a rule that the library does not follow."""
    findings = check.check_placement(
        found.placement, path.resolve(), known.catalogue, library_of(mpi, known.catalogue, known.numbers)
    )
    complain(findings)
    print(f"{mpi.label} {mpi.version}: {checked(findings)}")


def calibrate(arguments: argparse.Namespace) -> None:
    """Fit a simulated machine's parameters and write them into its file."""
    project = Project(results=arguments.results)
    fit(project.configuration, arguments.machine, project.results)
