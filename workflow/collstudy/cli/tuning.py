"""Commands about decisions and machines: tune, advise, calibrate."""

from __future__ import annotations

import argparse
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.calibration.calibrate import calibrate as fit
from collstudy.cli.commands import add
from collstudy.project import tuner
from collstudy.project.studies import Project
from collstudy.study.config import Gathered, Imported
from collstudy.tuning.advise import Measured, Question, parse_size
from collstudy.tuning.advise import advise as answers


def add_commands(commands: Any) -> None:
    """Add them."""
    steps = add(commands, "tune", tune, "write, check and verify the tuning files of a study")
    steps.add_argument("step", choices=("emit", "keep"), help="step: before or after the verification is measured")
    steps.add_argument("study")
    asking = add(commands, "advise", advise, "recommend an algorithm from the results at hand")
    asking.add_argument("--collective", required=True)
    asking.add_argument("--nodes", type=int, required=True)
    asking.add_argument("--ppn", type=int, required=True, help="processes per node")
    asking.add_argument("--mapping", required=True)
    asking.add_argument("--size", type=parse_size, help="bytes, such as 65536, 64KiB, 1MiB")
    asking.add_argument("--study", help="use this study only")
    asking.add_argument("--machine", help="the machine of the call: results of the most similar machines come first")
    fitting = add(commands, "calibrate", calibrate, "fit a simulated machine to measurements; writes its file")
    fitting.add_argument("machine")


def tune(arguments: argparse.Namespace) -> None:
    """One of the two steps after the analysis has decided; see project/tuner.py."""
    {"emit": tuner.emit, "keep": tuner.keep}[arguments.step](Project(results=arguments.results), arguments.study)


def advise(arguments: argparse.Namespace) -> int:
    """Look up the decisions of every study; exit status 0 if one applies, 1 if none does."""
    question = Question(
        arguments.collective, arguments.mapping, arguments.nodes, arguments.nodes * arguments.ppn,
        None if arguments.collective == "barrier" else arguments.size,
    )  # fmt: skip
    project = Project(results=arguments.results)
    asker = None
    if arguments.machine:
        asker = [(level.name, level.count) for level in project.configuration.machine(arguments.machine).levels]
    atlas = [] if arguments.study else _atlas(project, question.collective)
    known, lines = answers(project.results, question, arguments.study, asker, atlas)
    print("\n".join(lines))
    return 0 if known else 1


def _atlas(project: Project, collective: str) -> list[Measured]:
    """The machines that were really measured: from the results of their studies, or from the files of others that are here."""
    found = []
    for name in project.configuration.study_names():
        try:
            study = project.study(name)
            file = project.folder(name) / "measurements.csv"
            imported = isinstance(study.source, Imported)
            if (
                study.machine.kind == "simulated"
                or isinstance(study.source, Gathered)
                or not (imported or file.exists())
            ):
                continue
            if imported and (study.source.printed or project.source(name).absent()):
                continue
            rows = read_csv(file) if file.exists() else project.source(name).rows().measurements
        except StudyError:
            continue  # what is wrong with it is said when it is selected itself
        levels = [(level.name, level.count) for level in study.machine.levels]
        found.append(Measured.of(name, study.machine.label, levels, collective, rows))
    return found


def calibrate(arguments: argparse.Namespace) -> None:
    """Fit a simulated machine's parameters and write them into its file."""
    project = Project(results=arguments.results)
    fit(project.configuration, arguments.machine, project.results)
