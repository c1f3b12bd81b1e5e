"""Render the report without Quarto: knitr, pandoc and typst create the same report from the same files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from collstudy.base.files import write_atomically
from collstudy.publish.building import (
    KNITTED,
    PAGES,
    PAPER_ONLY,
    SCREEN_ONLY,
    SINGLE_FILE,
    SURFACES,
    Job,
    complete_pages,
    knit,
    run,
    timed,
)
from collstudy.publish.pages import Page, resolve, split_pages, without_hidden
from collstudy.publish.renderers import Renderer

#: Formats of pandoc_command: an HTML page, one self-contained HTML page, a page as typst, typst for the PDF.
PAGE, SINGLE, PAPER_PAGE, PAPER = "page", "single", "paper-page", "paper"
#: The files, besides the markdown, from which a page is created.
PAGE_SOURCES = ("filters/common.lua", "filters/crossref.lua", "theme/page.html", "references.bib")


def pandoc_command(renderer: Renderer, target: str, source: str, output: str) -> list[str]:
    """Return the pandoc command for one format, to be run in the build folder, so that no path needs quoting."""
    common = [
        renderer.executable, source, "--from", "markdown", "--fail-if-warnings", "--output", output,
        "--number-sections", "--metadata", "lang=en",
    ]  # fmt: skip
    if target == PAPER:
        template = ["--template", "theme/fallback.typst"]
        return [*common, "--standalone", "--to", "typst", *template]
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
    """Render one page from markdown, with the filter's marks; a page created earlier from the same content is reused."""
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
    """Render all pages in parallel on the available cores, and resolve their numbers."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return resolve(list(pool.map(lambda text: render_page(job, renderer, target, text), texts)))


def read_pages(job: Job, hidden: str) -> list[str]:
    """Return the markdown of each page without the divisions *hidden*; each page lists the works that any page cites."""
    text = without_hidden((job.build / KNITTED).read_text(encoding="utf-8"), hidden)
    known = re.findall(r"^@\w+\{([^,]+),", (job.build / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    cited = sorted(set(known) & set(re.findall(r"(?<![\\\w])@([\w-]+)", text)))
    nocite = "nocite: '" + ", ".join(f"@{key}" for key in cited) + "'"
    return split_pages(text.replace("---\n", f"---\n{nocite}\n", 1))


def render_pages(job: Job, renderer: Renderer) -> None:
    """Write the folder with one page per chapter."""
    complete_pages(job, render_texts(job, renderer, PAGE, read_pages(job, PAPER_ONLY)))


def render_single(job: Job, renderer: Renderer) -> None:
    """Write one self-contained HTML page."""
    command = pandoc_command(renderer, SINGLE, KNITTED, SINGLE_FILE)
    if (job.build / SURFACES).is_file():
        command += ["--variable", "surfaces=true"]
    run(command, job.build, "pandoc to one HTML file")


def render_pdf(job: Job, renderer: Renderer) -> None:
    """Write the PDF, using typst."""
    texts = read_pages(job, SCREEN_ONLY)
    body = "\n\n".join(page.text for page in render_texts(job, renderer, PAPER_PAGE, texts))
    header = texts[0].split("---\n")[1]
    fence = "`" * 20
    (job.build / "paper.md").write_text(f"---\n{header}---\n\n{fence}{{=typst}}\n{body}\n{fence}\n", encoding="utf-8")
    run(pandoc_command(renderer, PAPER, "paper.md", "report.typ"), job.build, "pandoc to typst")
    # Run it in its own process: the typst library would hold the interpreter's lock while the HTML is being rendered.
    program = "import sys, typst; typst.compile(sys.argv[1], output=sys.argv[2], root=sys.argv[3])"
    run([sys.executable, "-c", program, "report.typ", "report.pdf", "."], job.build, "typst to PDF")


def render_fallback(job: Job, renderer: Renderer) -> tuple[Path, dict[str, Path]]:
    """Run knitr once, then render all formats concurrently. Return the folder of pages and the single files.

    Pages are rendered again only if their sources have changed (cache: `results/.pages`).
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
