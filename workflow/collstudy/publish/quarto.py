"""Render the report with Quarto: a book of pages, and one document for each of the other formats."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from collstudy.base.errors import StudyError
from collstudy.publish.building import (
    KNITTED,
    PAPER_ONLY,
    SCREEN_ONLY,
    SINGLE_FILE,
    SURFACES,
    Job,
    complete_pages,
    failure,
    knit,
    run,
    say,
)
from collstudy.publish.pages import (
    HEADING_DIV,
    Page,
    name_sections,
    page_of_quarto,
    refuse_twice,
    split_pages,
    with_bold_labels,
    without_hidden,
)
from collstudy.publish.renderers import Renderer

#: A chapter's heading: its text, and its identifier, which is the name of its page.
CHAPTER_HEADING = re.compile(r"^# (.*) \{#([\w.-]+)\}$", re.MULTILINE)


def render_quarto(job: Job, renderer: Renderer) -> tuple[Path, dict[str, Path]]:
    """Render all formats with Quarto: a book of pages, and the PDF and (optionally) report.html as one document each."""
    text = knit(job)
    pages = complete_pages(job, render_book(job, renderer, without_hidden(text, PAPER_ONLY)))
    files = {"report.pdf": render_document(job, renderer, "typst", "report.pdf", without_hidden(text, SCREEN_ONLY))}
    if job.single_file:
        surfaces = ["--metadata", "surfaces:true"] if (job.build / SURFACES).is_file() else []
        shown = without_hidden(text, PAPER_ONLY)
        single = render_document(job, renderer, "html", SINGLE_FILE, shown, *surfaces)
        single.write_text(with_bold_labels(single.read_text(encoding="utf-8")), encoding="utf-8")
        files[SINGLE_FILE] = single
    return pages, files


def render_document(job: Job, renderer: Renderer, target: str, file: str, text: str, *arguments: str) -> Path:
    """Render the whole report to one file, and return its path."""
    (job.build / KNITTED).write_text(text, encoding="utf-8")
    output = run_quarto(job, renderer, target, [file], *arguments)
    # Copy the file immediately: the next format clears the output folder.
    return Path(shutil.copyfile(output / file, job.build / f"made-{file}"))


def render_book(job: Job, renderer: Renderer, text: str) -> list[Page]:
    """Return the pages of the report in order, with Quarto's numbers and references."""
    header, *chapters = (page.split("---\n", 2) for page in split_pages(text))
    about = yaml.safe_load(header[1])
    (job.build / "index.md").write_text(header[2], encoding="utf-8")
    names = ["index"]
    for _, _, chapter in chapters:
        heading = CHAPTER_HEADING.search(chapter)
        if not heading:
            raise StudyError("report: a chapter has no heading with an identifier")
        title, name = heading.groups()
        names.append(name)
        marked = f"# {name} {{#{name}}}\n\n::: {{.{HEADING_DIV}}}\n{title}\n:::"
        page = f"---\nchapter: true\n---\n{chapter.replace(heading[0], marked, 1)}"
        (job.build / f"{name}.md").write_text(page, encoding="utf-8")
    words = {key: str(about[key]) for key in ("title", "subtitle", "date") if key in about}
    book = {"book": {**words, "chapters": [f"{name}.md" for name in names]}, "report-title": about["report-title"]}
    (job.build / "_quarto-chapters.yml").write_text(json.dumps(book), encoding="utf-8")
    files = [f"{name}.html" for name in names]
    output = run_quarto(job, renderer, "html", files, "--profile", "pages,chapters")
    made = [page_of_quarto((output / file).read_text(encoding="utf-8")) for file in files]
    refuse_twice(made)
    return name_sections(made)


def run_quarto(job: Job, renderer: Renderer, target: str, files: Sequence[str], *arguments: str) -> Path:
    """Run Quarto and return its output folder, which must contain *files*.

    An unresolved reference, for which Quarto only prints a warning, is an error.
    """
    command = [renderer.executable, "render", "--to", target, *arguments]
    output = job.build / "_output"
    shutil.rmtree(output, ignore_errors=True)
    start = time.monotonic()
    log = run(command, job.build, f"quarto {target}")
    # PyPI's quarto-cli drops Quarto's exit status: only the output files show success.
    missing = [file for file in files if not (output / file).is_file()]
    if missing:
        raise failure(f"quarto {target}", f"no {missing[0]}", log)
    for file in files:
        refuse_bad_references(log, output / file)
    say(f"quarto {files[0]} ({time.monotonic() - start:.1f} s)")
    return output


def refuse_bad_references(log: str, page: Path) -> None:
    """Raise StudyError if Quarto's log or page has a cross-reference without a target, or with two."""
    twice = set(re.findall(r"Duplicate identifier '([^']+)'", log))
    if twice:
        raise StudyError("report: identifier used twice: " + ", ".join(sorted(twice)))
    names = set(re.findall(r"[Uu]nable to resolve (?:crossref|link)\W+@?([\w-]+)", log))
    if page.suffix == ".html" and page.is_file():
        names |= set(re.findall(r"\?@((?:fig|tbl|sec)-[\w-]+)", page.read_text(encoding="utf-8", errors="replace")))
    if names:
        raise StudyError("report: unresolved reference @" + ", @".join(sorted(names)))
