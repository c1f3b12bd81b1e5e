"""The report as a folder of pages: contents, search index and scripts for the pages that pandoc's `chunkedhtml` wrote.

Pandoc splits the report at its chapters and makes cross-references lead from page to page. What it leaves to its caller is
a table of contents that knows the page it stands on, and a search index.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError

#: Where the template has the table of contents (report/theme/fallback.html).
CONTENTS_MARK = "<!--contents-->"
#: Where the body of a page begins in the template.
BODY_MARK = "<!--body-->"
#: Where the template has scripts that only some pages need.
SCRIPTS_MARK = "<!--scripts-->"
#: Interactive surfaces need plotly, which is larger than all else: only pages that have one load it.
SURFACE_SCRIPTS = '<script src="theme/plotly.js"></script>\n<script src="theme/surface.js"></script>'
#: Words of one section that the search index keeps.
MOST_WORDS = 400
HEADINGS = ("h1", "h2", "h3", "h4")
#: Their text is no prose: scripts, figures drawn as text, hints of the page itself.
LEFT_OUT = ("script", "style", "svg", "button")


def contents(sitemap: dict[str, Any], page: str) -> str:
    """The table of contents as nested lists; only the chapter of *page* shows its sections."""

    def listed(entries: list[dict[str, Any]], depth: int) -> str:
        items = []
        for entry in entries:
            section = entry["section"]
            path, number = section["path"], section["number"]
            here = path.split("#")[0] == page
            # A link within the page has no file name, so that the page's script can follow it.
            target = "#" + path.split("#")[1] if here and "#" in path else path
            label = f'<span class="toc-section-number">{number}</span>' if number else ""
            deeper = listed(entry["subsections"], depth + 1) if entry["subsections"] and here and depth < 3 else ""
            items.append(f'<li><a href="{html.escape(target)}">{label}{html.escape(section["title"])}</a>{deeper}</li>')
        return f"<ul>{''.join(items)}</ul>"

    return listed(sitemap["subsections"], 1)


class _Sections(HTMLParser):
    """Splits a page at its headings with an identifier and keeps the words of each part."""

    def __init__(self, page: str, title: str) -> None:
        super().__init__()
        self.page = page
        self.found: list[dict[str, Any]] = [{"url": page, "title": title, "words": []}]
        self.inside_main = False
        self.heading = False
        self.skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a section at a heading; follow what is skipped."""
        if tag == "main":
            self.inside_main = True
        elif tag in LEFT_OUT:
            self.skipped += 1
        elif tag in HEADINGS and self.inside_main and (name := dict(attrs).get("id")):
            self.found.append({"url": f"{self.page}#{name}", "title": "", "words": []})
            self.heading = True

    def handle_endtag(self, tag: str) -> None:
        """End what handle_starttag began."""
        if tag == "main":
            self.inside_main = False
        elif tag in LEFT_OUT:
            self.skipped -= 1
        elif tag in HEADINGS:
            self.heading = False

    def handle_data(self, data: str) -> None:
        """Keep words of the current section."""
        if not self.inside_main or self.skipped:
            return
        section = self.found[-1]
        if self.heading:
            section["title"] += data
        else:
            section["words"] += data.split()[: MOST_WORDS - len(section["words"])]


def search_entries(page: str, text: str) -> Iterator[dict[str, str]]:
    """What the search knows of a page: {url, title, text} of each of its sections."""
    name = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
    parser = _Sections(page, html.unescape(name.group(1)).strip() if name else page)
    parser.feed(text)
    for section in parser.found:
        words = " ".join(section["words"])
        title = " ".join(section["title"].split())
        if words or title:
            yield {"url": section["url"], "title": title, "text": words}


def join_front_page(folder: Path, sitemap: dict[str, Any]) -> None:
    """Put what stands before the first chapter on index.html; pandoc makes a page of its own of it, which no contents name."""
    listed = {entry["section"]["path"].split("#")[0] for entry in sitemap["subsections"]}
    own = [path for path in folder.glob("*.html") if path.name not in listed | {"index.html"}]
    if len(own) != 1:
        raise StudyError(f"report: expected one page before the first chapter, pandoc made {len(own)}")
    index = folder / "index.html"
    head, _, _ = index.read_text(encoding="utf-8").partition(BODY_MARK)
    _, _, body = own[0].read_text(encoding="utf-8").partition(BODY_MARK)
    body = re.sub(r'<a class="previous".*?</a>', "", body, flags=re.DOTALL)
    index.write_text(head + body, encoding="utf-8")
    own[0].unlink()
    for path in folder.glob("*.html"):
        path.write_text(path.read_text(encoding="utf-8").replace(own[0].name, "index.html"), encoding="utf-8")


def finish_pages(folder: Path) -> list[Path]:
    """Complete the pages that pandoc wrote to *folder*; returns them. The search index is a script, so it works from a disk."""
    sitemap = json.loads((folder / "sitemap.json").read_text(encoding="utf-8"))
    join_front_page(folder, sitemap)
    pages = sorted(folder.glob("*.html"))
    entries = []
    for path in pages:
        text = path.read_text(encoding="utf-8")
        entries += search_entries(path.name, text)
        scripts = SURFACE_SCRIPTS if 'class="surface"' in text else ""
        text = (
            text.replace(BODY_MARK, "")
            .replace(CONTENTS_MARK, contents(sitemap, path.name))
            .replace(SCRIPTS_MARK, scripts)
        )
        path.write_text(text, encoding="utf-8")
    index = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    (folder / "search.js").write_text(f"window.reportSearch = {index};\n", encoding="utf-8")
    (folder / "sitemap.json").unlink()
    return pages
