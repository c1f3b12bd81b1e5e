"""Functions that both renderers of the report share: the build folder, knitr, and writing to the report's folder."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.publish.pages import Page, write_pages
from collstudy.publish.renderers import Renderer

#: The whole report in one file, in the folder of pages.
SINGLE_FILE = "report.html"
#: The folder in which a report is made, in the results folder, and the file there that describes it.
BUILD, DESCRIBED = "report-build", "report.json"
#: The markdown that knitr creates from index.qmd (report/R/knit.R).
KNITTED = "report.md"
#: Divisions for one medium only (report/R/parts.R). Quarto and the filter would drop them, too, but reading them takes most time.
SCREEN_ONLY, PAPER_ONLY = '::: {.content-visible when-format="html"}', '::: {.content-hidden when-format="html"}'
#: The library for interactive surfaces; it is present if a figure needs it (report/R/figures.R).
SURFACES = "theme/plotly.js"
#: Cache of chapters and pages by content, in the results folder.
PAGES = ".pages"


@dataclass(frozen=True)
class Job:
    """One report to render: its folders and studies."""

    results: Path
    studies: tuple[str, ...]
    output: Path
    build: Path
    source: Path
    command: str
    revision: str
    #: Whether to create a self-contained report.html as well.
    single_file: bool = False
    #: Folder of chapters written by people, `<study>.qmd`.
    texts: Path | None = None


def say(text: str) -> None:
    """Print one line of progress, unbuffered (the caller may write to a log)."""
    print(f"report: {text}", flush=True)


def run(command: Sequence[str | Path], cwd: Path, what: str) -> str:
    """Run a program and return its output. Raises StudyError with the last lines if it fails."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            [str(part) for part in command], check=False, cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise StudyError(f"report: {what}: cannot start {command[0]}: {error.strerror}") from error
    if done.returncode:
        raise failure(what, f"exit status {done.returncode}", done.stdout)
    return done.stdout


def failure(what: str, how: str, log: str) -> StudyError:
    """Return the error for a program that failed, with its last lines of output."""
    tail = "\n".join(log.strip().splitlines()[-25:])
    return StudyError(f"report: {what} failed ({how}):\n{tail}")


def timed(what: str, step: Callable[[], object]) -> None:
    """Run one step and report its duration."""
    start = time.monotonic()
    step()
    say(f"{what} ({time.monotonic() - start:.1f} s)")


def prepare(job: Job, renderer: Renderer) -> None:
    """Fill the build folder with a fresh copy of the project and with the data for the .qmd files."""
    if not (job.source / "index.qmd").is_file():
        raise StudyError(f"report: {job.source} has no index.qmd")
    if job.build.exists():
        shutil.rmtree(job.build)
    shutil.copytree(job.source, job.build, ignore=shutil.ignore_patterns(".*", "*.Rproj"))
    (job.build / "own").mkdir()
    for study in job.studies:
        if job.texts and (text := job.texts / f"{study}.qmd").is_file():
            shutil.copyfile(text, job.build / "own" / text.name)
    facts = {
        "results": str(job.results),
        "results_label": os.path.relpath(job.results),
        "output_label": os.path.relpath(job.output),
        "studies": list(job.studies),
        "renderer": {key: value for key, value in asdict(renderer).items() if key != "executable"},
        "python": platform.python_version(),
        "command": job.command,
        "revision": job.revision,
        "date": datetime.date.today().isoformat(),
    }
    (job.build / DESCRIBED).write_text(json.dumps(facts, indent=1), encoding="utf-8")


#: File that marks a folder as a report, which the next report may replace.
MARK = ".report"


def refuse_foreign(folder: Path) -> None:
    """Raise StudyError if *folder* contains something other than a report, because rendering replaces the whole folder."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"report: {folder} is a file")
    if names - {"index.html", "report.pdf", SINGLE_FILE} and MARK not in names:
        raise StudyError(f"report: {folder} is not empty and is not a report; choose another folder")


def publish(job: Job, pages: Path, files: dict[str, Path]) -> None:
    """Move the new report to its folder: *pages* with index.html, and single *files* by name.

    The old report remains until the new one is complete, and is then replaced by renaming.
    """
    for path in (pages / "index.html", *files.values()):
        if not path.is_file() or not path.stat().st_size:
            raise StudyError(f"report: {path} was not written")
    fresh = job.output.with_name(f"{job.output.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(pages, fresh)
    for name, path in files.items():
        shutil.copyfile(path, fresh / name)
    (fresh / MARK).write_text("The next report replaces this folder.\n", encoding="utf-8")
    old = job.output.with_name(f"{job.output.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if job.output.exists():
        os.rename(job.output, old)
    os.rename(fresh, job.output)
    shutil.rmtree(old, ignore_errors=True)
    count = len(list(job.output.glob("*.html")))
    size = sum(path.stat().st_size for path in job.output.rglob("*") if path.is_file())
    say(f"{os.path.relpath(job.output / 'index.html')} ({count} pages, {size / 1e6:.1f} MB with figures)")
    for name in files:
        say(f"{os.path.relpath(job.output / name)} ({(job.output / name).stat().st_size / 1e6:.2f} MB)")


def knit(job: Job) -> str:
    """Run the R code of index.qmd and its chapters, once for all formats, and return the markdown.

    Chapters are cached in `results/.pages` and knitted again only if their sources have changed. Cache files that were not used
    for a month are deleted.
    """
    rscript = shutil.which("Rscript")
    if not rscript:
        raise StudyError("report: no Rscript on PATH; install R")
    kept = job.results / PAGES
    kept.mkdir(exist_ok=True)
    for path in kept.iterdir():
        if time.time() - path.stat().st_mtime > 30 * 24 * 3600:
            path.unlink()
    timed("knitr", lambda: tell_missing(run([rscript, "--no-save", "R/knit.R"], job.build, "knitr")))
    return (job.build / KNITTED).read_text(encoding="utf-8")


def tell_missing(log: str) -> None:
    """Print references in authored texts that no study provides; the pages show them as well."""
    for line in log.splitlines():
        if line.startswith("report: config/studies/"):
            print(line, flush=True)


def complete_pages(job: Job, made: list[Page]) -> Path:
    """Write the folder of pages with the files that they load; return its path."""
    pages = job.build / "pages"
    shutil.copytree(job.build / "theme", pages / "theme",
                    ignore=lambda _, names: [name for name in names if not name.endswith((".css", ".js"))])  # fmt: skip
    write_pages(made, pages)
    for file in {file for page in made for file in re.findall(r'\bsrc="(figures/[^"]+)"', page.text)}:
        (pages / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(job.build / file, pages / file)
    return pages
