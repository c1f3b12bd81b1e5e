"""Render the report: a folder of HTML pages and one PDF of the same .qmd files, with Quarto or knitr, pandoc and typst.

The command is `python -m collstudy render` (cli/sharing.py).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from collstudy.base.errors import StudyError
from collstudy.base.files import write_atomically
from collstudy.base.paths import ROOT
from collstudy.publish.pages import (
    HEADING_DIV,
    Page,
    name_sections,
    page_of_quarto,
    refuse_twice,
    resolve,
    split_pages,
    without_hidden,
    write_pages,
)
from collstudy.publish.renderers import Renderer, choose_renderer

REPORT_SOURCE = ROOT / "report"
#: The whole report in one file, beside the folder of pages.
SINGLE_FILE = "report.html"
#: What knitr makes of index.qmd (report/R/knit.R).
KNITTED = "report.md"
#: Divisions of one medium (report/R/parts.R). Quarto and the filter drop them as well; most time goes into reading them.
SCREEN_ONLY, PAPER_ONLY = '::: {.content-visible when-format="html"}', '::: {.content-hidden when-format="html"}'
#: The library of interactive surfaces, there where a figure has one (report/R/figures.R).
SURFACES = "theme/plotly.js"
#: Chapters and pages as they were made of the same content, in the results folder.
PAGES = ".pages"


@dataclass(frozen=True)
class Job:
    """One report: its folders and studies."""

    results: Path
    studies: tuple[str, ...]
    output: Path
    build: Path
    source: Path
    command: str
    revision: str
    #: Whether a self-contained report.html is made beside the folder of pages.
    single_file: bool = False
    #: Folder of chapters that people wrote, `<study>.qmd`.
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
    """The error of a program that failed, with its last lines."""
    tail = "\n".join(log.strip().splitlines()[-25:])
    return StudyError(f"report: {what} failed ({how}):\n{tail}")


def timed(what: str, step: Callable[[], object]) -> None:
    """Run one step and report its duration."""
    start = time.monotonic()
    step()
    say(f"{what} ({time.monotonic() - start:.1f} s)")


# Build folder -------------------------------------------------------------------------------------------------------


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
    (job.build / "report.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


#: Says that a folder is a report, which the next one may replace.
MARK = ".report"


def refuse_foreign(folder: Path) -> None:
    """Raise StudyError where *folder* has something that is no report: rendering replaces it as a whole."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"report: {folder} is a file")
    if names - {"index.html", "report.pdf", SINGLE_FILE} and MARK not in names:
        raise StudyError(f"report: {folder} is not empty and is no report; choose another folder")


def publish(job: Job, pages: Path, files: dict[str, Path]) -> None:
    """Move what was made to its place: the folder *pages* with index.html, and single *files* by their names.

    An old report stays whole until the new one is: the new folder is complete before it takes the old one's place.
    """
    for path in (pages / "index.html", *files.values()):
        if not path.is_file() or not path.stat().st_size:
            raise StudyError(f"report: {path} was not made")
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


# Both renderers -----------------------------------------------------------------------------------------------------


def knit(job: Job) -> str:
    """Run the R code of index.qmd and its chapters, once for all formats, and return the markdown.

    Chapters are knitted again only where what they are made of changed (`results/.pages`, where nothing stays that was not
    used for a month).
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
    """Say what texts of people ask for and no study has; the pages say it as well."""
    for line in log.splitlines():
        if line.startswith("report: config/studies/"):
            print(line, flush=True)


def complete_pages(job: Job, made: list[Page]) -> Path:
    """Write the folder of pages with what they load."""
    pages = job.build / "pages"
    shutil.copytree(job.build / "theme", pages / "theme",
                    ignore=lambda _, names: [name for name in names if not name.endswith((".css", ".js"))])  # fmt: skip
    write_pages(made, pages)
    for file in {file for page in made for file in re.findall(r'\bsrc="(figures/[^"]+)"', page.text)}:
        (pages / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(job.build / file, pages / file)
    return pages


# Quarto -------------------------------------------------------------------------------------------------------------

#: A chapter's heading: its text, and its identifier, which is the name of its page.
CHAPTER_HEADING = re.compile(r"^# (.*) \{#([\w.-]+)\}$", re.MULTILINE)


def render_quarto(job: Job, renderer: Renderer) -> tuple[Path, dict[str, Path]]:
    """Render all formats with Quarto: a book of pages, and the PDF and by option report.html as one document each."""
    text = knit(job)
    pages = complete_pages(job, render_book(job, renderer, without_hidden(text, PAPER_ONLY)))
    files = {"report.pdf": render_document(job, renderer, "typst", "report.pdf", without_hidden(text, SCREEN_ONLY))}
    if job.single_file:
        surfaces = ["--metadata", "surfaces:true"] if (job.build / SURFACES).is_file() else []
        shown = without_hidden(text, PAPER_ONLY)
        files[SINGLE_FILE] = render_document(job, renderer, "html", SINGLE_FILE, shown, *surfaces)
    return pages, files


def render_document(job: Job, renderer: Renderer, target: str, file: str, text: str, *arguments: str) -> Path:
    """One file of the whole report."""
    (job.build / KNITTED).write_text(text, encoding="utf-8")
    output = run_quarto(job, renderer, target, [file], *arguments)
    # Set aside at once: the next format clears the output folder.
    return Path(shutil.copyfile(output / file, job.build / f"made-{file}"))


def render_book(job: Job, renderer: Renderer, text: str) -> list[Page]:
    """The pages of the report in order, by Quarto's numbers and references."""
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
    """Run Quarto and return its output folder, which must have *files*.

    What Quarto only warns of (a reference that does not resolve) is an error.
    """
    command = [renderer.executable, "render", "--to", target, *arguments]
    output = job.build / "_output"
    shutil.rmtree(output, ignore_errors=True)
    start = time.monotonic()
    log = run(command, job.build, f"quarto {target}")
    # PyPI's quarto-cli drops the exit status of Quarto: only the output files show success.
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


# Fallback -----------------------------------------------------------------------------------------------------------


#: Formats of pandoc_command: a page of HTML, one self-contained page, a page as typst, typst for the PDF.
PAGE, SINGLE, PAPER_PAGE, PAPER = "page", "single", "paper-page", "paper"
#: What a page is made of beside its markdown.
PAGE_SOURCES = ("filters/common.lua", "filters/crossref.lua", "theme/page.html", "references.bib")


def pandoc_command(renderer: Renderer, target: str, source: str, output: str) -> list[str]:
    """The pandoc call for one format; runs in the build folder, so that no path needs quoting."""
    common = [
        renderer.executable, source, "--from", "markdown", "--fail-if-warnings", "--output", output,
        "--number-sections", "--metadata", "lang=en",
    ]  # fmt: skip
    if target == PAPER:
        template = ["--template", "theme/fallback.typst"]
        return [*common, "--standalone", "--toc", "--toc-depth", "1", "--to", "typst", *template]
    filtered = [
        *common, "--lua-filter", "filters/common.lua", "--lua-filter", "filters/crossref.lua",
        "--metadata", "bibliography=references.bib", "--metadata", "link-citations=true",
    ]  # fmt: skip
    listed = ["--metadata", f"paged={output}.json"]
    if target == PAPER_PAGE:
        return [*filtered, *listed, "--to", "typst"]
    page = [
        *filtered, "--standalone", "--template", "theme/page.html", "--mathml", "--css", "theme/layout.css",
        "--css", "theme/report.css", "--to", "html5",
    ]  # fmt: skip
    if target == PAGE:
        return [*page, *listed]
    return [*page, "--toc", "--toc-depth", "3", "--embed-resources", "--variable", "single-page=true"]


def render_page(job: Job, renderer: Renderer, target: str, text: str) -> Page:
    """One page of markdown with the marks of the filter, as it was made before of the same, or made now."""
    sources = [(job.build / name).read_bytes() for name in PAGE_SOURCES]
    command = pandoc_command(renderer, target, "", "")
    made_of = [text.encode(), renderer.pandoc.encode(), *(word.encode() for word in command), *sources]
    digest = hashlib.sha256(b"\0".join(made_of)).hexdigest()
    kept = job.results / PAGES / f"{digest}.json"
    if kept.is_file():
        os.utime(kept)
        return Page(**json.loads(kept.read_bytes()))
    name = f"{PAGES}/{digest}"
    (job.build / f"{name}.md").write_text(text, encoding="utf-8")
    run(pandoc_command(renderer, target, f"{name}.md", name), job.build, f"pandoc to {target}")
    listed = json.loads((job.build / f"{name}.json").read_bytes())
    page = Page((job.build / name).read_text(encoding="utf-8"), listed)
    write_atomically(kept, json.dumps(asdict(page)).encode())
    return page


def render_texts(job: Job, renderer: Renderer, target: str, texts: Sequence[str]) -> list[Page]:
    """All pages, as many at a time as there are cores, with their numbers."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return resolve(list(pool.map(lambda text: render_page(job, renderer, target, text), texts)))


def read_pages(job: Job, hidden: str) -> list[str]:
    """The markdown of each page without what is *hidden*; all of them know which works the others cite."""
    text = without_hidden((job.build / KNITTED).read_text(encoding="utf-8"), hidden)
    known = re.findall(r"^@\w+\{([^,]+),", (job.build / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    cited = sorted(set(known) & set(re.findall(r"(?<![\\\w])@([\w-]+)", text)))
    nocite = "nocite: '" + ", ".join(f"@{key}" for key in cited) + "'"
    return split_pages(text.replace("---\n", f"---\n{nocite}\n", 1))


def render_pages(job: Job, renderer: Renderer) -> None:
    """The folder with a page for each chapter."""
    complete_pages(job, render_texts(job, renderer, PAGE, read_pages(job, PAPER_ONLY)))


def render_single(job: Job, renderer: Renderer) -> None:
    """One self-contained page."""
    command = pandoc_command(renderer, SINGLE, KNITTED, SINGLE_FILE)
    if (job.build / SURFACES).is_file():
        command += ["--variable", "surfaces=true"]
    run(command, job.build, "pandoc to one HTML file")


def render_pdf(job: Job, renderer: Renderer) -> None:
    """The PDF, through typst."""
    texts = read_pages(job, SCREEN_ONLY)
    body = "\n\n".join(page.text for page in render_texts(job, renderer, PAPER_PAGE, texts))
    header = texts[0].split("---\n")[1]
    fence = "`" * 20
    (job.build / "paper.md").write_text(f"---\n{header}---\n\n{fence}{{=typst}}\n{body}\n{fence}\n", encoding="utf-8")
    run(pandoc_command(renderer, PAPER, "paper.md", "report.typ"), job.build, "pandoc to typst")
    # In its own process: a compiler as a library holds the interpreter's lock, and the HTML is being made meanwhile.
    program = "import sys, typst; typst.compile(sys.argv[1], output=sys.argv[2], root=sys.argv[3])"
    run([sys.executable, "-c", program, "report.typ", "report.pdf", "."], job.build, "typst to PDF")


def render_fallback(job: Job, renderer: Renderer) -> tuple[Path, dict[str, Path]]:
    """Knitr once, then all formats at the same time. Returns the folder of pages and the single files.

    Pages are made again only where what they are made of changed (`results/.pages`).
    """
    knit(job)
    (job.build / PAGES).mkdir(exist_ok=True)
    steps = {"HTML": render_pages, "PDF": render_pdf}
    files = {"report.pdf": job.build / "report.pdf"}
    if job.single_file:
        steps["single file"] = render_single
        files[SINGLE_FILE] = job.build / "report.html"
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(timed, name, lambda step=step: step(job, renderer)) for name, step in steps.items()]
        for step in running:
            step.result()
    return job.build / "pages", files


def render(job: Job, wanted: str = "auto") -> None:
    """Make the report of *job*. Raises StudyError."""
    if not job.results.is_dir():
        raise StudyError(f"report: no results folder {job.results}")
    for study in job.studies:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", study):
            raise StudyError(f"report: {study!r} is not a study's name")
    refuse_foreign(job.output)
    renderer = choose_renderer(wanted)
    say(f"{renderer.name} {renderer.version}".strip() + f", pandoc {renderer.pandoc}, typst {renderer.typst}")
    prepare(job, renderer)
    pages, files = render_quarto(job, renderer) if renderer.name == "Quarto" else render_fallback(job, renderer)
    publish(job, pages, files)
