"""Render the report: a folder of HTML pages and one PDF from the same .qmd files, with Quarto or with knitr, pandoc and typst.

The command is `python -m collstudy render` (cli/sharing.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.publish.building import Job, prepare, publish, refuse_foreign, run, say
from collstudy.publish.fallback import render_fallback
from collstudy.publish.quarto import render_quarto
from collstudy.publish.renderers import choose_renderer

REPORT_SOURCE = ROOT / "report"


def write_front(results: Path, studies: Sequence[str]) -> None:
    """Write the tables of the front page of a report of these studies, `results/front/`. Raises StudyError."""
    script = ROOT / "workflow" / "scripts" / "analyse.R"
    # The page names files in the results folder.
    run(["Rscript", script, "front", os.path.relpath(results), ",".join(studies)], Path.cwd(), "front page")


def render(job: Job, wanted: str = "auto") -> None:
    """Create the report of *job*. Raises StudyError."""
    if not job.results.is_dir():
        raise StudyError(f"report: no results folder {job.results}")
    for study in job.studies:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", study):
            raise StudyError(f"report: {study!r} is not a valid study name")
    refuse_foreign(job.output)
    renderer = choose_renderer(wanted)
    say(f"{renderer.name} {renderer.version}".strip() + f", pandoc {renderer.pandoc}, typst {renderer.typst}")
    prepare(job, renderer)
    pages, files = render_quarto(job, renderer) if renderer.name == "Quarto" else render_fallback(job, renderer)
    publish(job, pages, files)
