"""Commands for reports and data packages: front, render, publish, reanalyse, compare."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.cli.commands import add, refuse_packages, typed_path
from collstudy.project import integrity, made
from collstudy.project.studies import Project
from collstudy.publish.building import BUILD, Job
from collstudy.publish.render import REPORT_SOURCE, write_front
from collstudy.publish.render import render as render_job
from collstudy.sources import needs

#: Problems that a message names, of all that were found.
MOST_NAMED = 3


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    page = add(commands, "front", front, "write the tables of the report's front page")
    page.add_argument("studies", nargs="+", help="the studies of the report")
    report = add(commands, "render", render, "render the report (HTML and PDF) of the analysed studies")
    report.add_argument("--studies", nargs="+", required=True, help="studies, in the order of their chapters")
    report.add_argument("--output", type=Path, help="folder of index.html and report.pdf (default: RESULTS/report)")
    report.add_argument("--renderer", choices=("auto", "quarto", "fallback"), default="auto")
    report.add_argument("--source", type=Path, default=REPORT_SOURCE, help="the Quarto project (default: report/)")
    report.add_argument("--texts", type=Path, help="folder of your own chapters, STUDY.qmd (default: config/studies)")
    report.add_argument("--single-file", action="store_true", help="also report.html, the whole report in one file")
    report.add_argument("--revision", default="", help="version of this project, for the provenance")
    publishing = add(commands, "publish", publish, "write the report and a data package to a folder")
    publishing.add_argument("studies", nargs="*", help="names (default: those of config/config.yaml with measurements)")
    publishing.add_argument("--to", type=typed_path, default=Path("publish"), help="folder to write (default: publish)")
    publishing.add_argument("--single-file", action="store_true", help="also report.html, the whole report in one file")
    analysing = add(commands, "reanalyse", reanalyse, "make tables, figures and report again from measurements.csv")
    analysing.add_argument("studies", nargs="*", help="names (default: those of config/config.yaml)")
    comparing = add(commands, "compare", compare, "compare repeated measurements with published ones")
    comparing.add_argument("published", type=typed_path, help="results folder of the published measurements")
    comparing.add_argument("again", type=typed_path, help="results folder of the repeated measurements")


def front(arguments: argparse.Namespace) -> None:
    """Write the tables of the front page of a report of these studies."""
    needs.check_analysis()
    _front(Project(results=arguments.results).results, arguments.studies)


def _front(results: Path, studies: list[str]) -> None:
    """Write the tables of the front page, and store their digests."""
    write_front(results, studies)
    made.note(results, "", "front")


def render(arguments: argparse.Namespace) -> int:
    """Render the report; exit status 1 where it cannot be made."""
    project = Project(results=arguments.results)
    job = _job(project, arguments.studies, arguments.single_file)
    job = replace(
        job, source=arguments.source.resolve(), revision=arguments.revision, texts=arguments.texts or job.texts,
        output=arguments.output.absolute() if arguments.output else job.output,
    )  # fmt: skip
    try:
        _render(job, arguments.renderer)
    except StudyError as error:
        # Printed to standard output like all output of the renderer, because rules and tests read only one stream.
        print(f"error: {error}", flush=True)
        return 1
    return 0


def _job(project: Project, studies: list[str], single_file: bool) -> Job:
    """Return the job that renders the report in the results folder."""
    results = project.results.absolute()
    return Job(
        results=results, studies=tuple(dict.fromkeys(studies)), output=results / "report", build=results / BUILD,
        source=REPORT_SOURCE, command=shlex.join(["python", "-m", "collstudy", *sys.argv[1:]]), revision="",
        single_file=single_file, texts=project.configuration.folder / "studies",
    )  # fmt: skip


def _render(job: Job, renderer: str = "auto") -> None:
    """Render a report; if it is the one in the results folder, store its digests."""
    render_job(job, renderer)
    if job.output == job.results / "report":
        made.note(job.results, "", "report")


def publish(arguments: argparse.Namespace) -> None:
    """Write the report and a data package to a folder."""
    from collstudy.publish import package  # its libraries take a while to load

    project = Project(results=arguments.results)
    # The report has a chapter for each companion that was run.
    studies = [
        name
        for name in project.with_companions(arguments.studies or project.default_studies)
        if name in arguments.studies or (project.folder(name) / "measurements.csv").exists()
    ]
    checked = [integrity.of_study(project.source(name)) for name in studies]
    problems = [line for _, found in (*checked, integrity.of_derived("report", project.results)) for line in found]
    if problems:
        more = f"; {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
        raise StudyError(
            f"not as it was made: {'; '.join(problems[:MOST_NAMED])}{more}; first {' '.join(['./study run', *studies])}"
        )
    inputs = {name: project.source(name).data() for name in studies}
    given = {name: paths for name, paths in inputs.items() if paths}
    for line in package.publish(
        project.results, studies, arguments.to, given, project.configuration.folder, single_file=arguments.single_file
    ):
        print(line)


def reanalyse(arguments: argparse.Namespace) -> None:
    """Make tables, figures and report again from the measurements of a data package."""
    from collstudy.publish import again

    refuse_packages(arguments.studies, "reanalyse")
    project = Project(results=arguments.results)
    studies = arguments.studies or project.default_studies
    for name in studies:
        again.check(project.results / name)
        if damaged := made.changed(project.results / name).get("collect"):
            files = "; ".join(str(project.results / name / text) for text in damaged)
            raise StudyError(f"not as it was made: {files}; unpack the data package again, or ./study run {name}")
    for name in studies:
        again.analyse(project.results / name)
        made.note(project.results, name, "analyse")
    again.render(project.results, studies)
    print(f"{project.results / 'report' / 'index.html'} and report.pdf")


def compare(arguments: argparse.Namespace) -> None:
    """Compare repeated measurements with published ones: identical points, and the ratios of the others."""
    from collstudy.publish import again

    for line in again.compare(arguments.published, arguments.again):
        print(line)
