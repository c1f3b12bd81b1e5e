"""Split the report into pages, and add table of contents, links to other pages, and a search index to what Quarto or pandoc made.

Quarto numbers pages and references itself. The fallback renders each page from its own markdown only, so that a page is
rendered again only if that changes; its filter (report/filters/crossref.lua) leaves marks where text depends on other pages.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError

#: Marks the start of a page in the markdown (report/R/chapter.R).
PAGE_BREAK = "<!-- page -->"
#: Marks of the filter: the chapter, counted from the first one on the page; the number of an identifier's target; its name.
CHAPTER, NUMBER, NAME = (re.compile(f"{mark}(.*?)\ue002") for mark in "\ue000\ue001\ue003")
#: Names of the kinds of targets in references.
WORDS = {"fig": "Figure", "tbl": "Table", "sec": "Section"}
#: Title of a chapter as written by Quarto, with identifier and number.
QUARTO_TITLE = re.compile(
    r'<h1[^>]*><span id="([^"]+)"[^>]*><span class="chapter-number">(.*?)</span>.*?</h1>', re.DOTALL
)
#: Division with the title's text: Quarto processes titles twice, and the second time `$` and `{{<` lose their protection from markup.
HEADING_DIV = "chapter-heading"
HEADING_TEXT = re.compile(rf'<div class="{HEADING_DIV}">\s*<p>(.*?)</p>\s*</div>', re.DOTALL)
#: Reference to a chapter or section as written by Quarto.
QUARTO_REFERENCE = re.compile(
    r'<a href="([\w.-]*)(?:#([^"]+))?" class="quarto-xref"><span>(?:(?!</a>).)*</span></a>', re.DOTALL
)
#: Quarto's number of a figure or table in its caption; the fallback prints it in bold (report/filters/crossref.lua).
QUARTO_LABEL = re.compile(
    r'(<figcaption class="quarto-float-caption[^>]*>\s*)((?:Figure|Table)(?:&nbsp;|\u00a0)[\d.]+:?)'
)
#: Position of the table of contents in the template (report/theme/page.html).
CONTENTS_MARK = "<!--contents-->"
#: Position of the links to the previous and next page in the template.
PAGER_MARK = "<!--pager-->"
#: Position of scripts that only some pages need in the template.
SCRIPTS_MARK = "<!--scripts-->"
#: Interactive surfaces need plotly, which is larger than everything else; only pages with a surface load it.
SURFACE_SCRIPTS = '<script src="theme/plotly.js"></script>\n<script src="theme/surface.js"></script>'
#: A heading with an identifier (first group); the second group is its text.
HEADING = re.compile(r'<(?=h[1-4]\b)[^>]*\bid="([^"]+)"[^>]*>(.*?)</h[1-4]>', re.DOTALL)
#: Elements without prose: scripts, figures with text, buttons of the page itself.
LEFT_OUT = re.compile(r"<(script|style|svg|button)\b.*?</\1>", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page as created by Quarto or pandoc.

    `listed` has its headings in order and, for the fallback, the floats to number (report/filters/crossref.lua).
    """

    text: str
    listed: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Return the name of the page's file."""
        chapter = [entry["id"] for entry in self.listed if entry.get("level") == 1 and entry["number"]]
        return f"{chapter[0]}.html" if chapter else "index.html"

    @property
    def headings(self) -> list[dict[str, Any]]:
        """Return its entries in the table of contents; headings of the front page are not sections."""
        return [e for e in self.listed if e.get("level", 9) <= 3] if self.name != "index.html" else []


def with_bold_labels(text: str) -> str:
    """Make the numbers of figures and tables in a page created by Quarto bold."""
    return QUARTO_LABEL.sub(r"\1<strong>\2</strong>", text)


def page_of_quarto(text: str) -> Page:
    """Convert a page created by Quarto: chapter heading, title and captions become like those of the fallback."""
    # Remove what Quarto adds because the template lacks its own title block.
    text = with_bold_labels(re.sub(r'<header id="title-block-header"[^>]*></header>', "", text))
    if heading := HEADING_TEXT.search(text):

        def numbered(title: re.Match[str], words: str = heading[1]) -> str:
            number = f'<span class="header-section-number">{title[2]}</span>'
            return f'<h1 data-number="{title[2]}" id="{title[1]}">{number} {words}</h1>'

        text = QUARTO_TITLE.sub(numbered, HEADING_TEXT.sub("", text))
    listed = []
    for level, attributes, heading in re.findall(r"<h([1-4])\b([^>]*)>(.*?)</h\1>", text, re.DOTALL):
        identifier, number = (re.search(rf'\b{name}="([^"]+)"', attributes) for name in ("id", "data-number"))
        title = re.sub(r'<span class="header-section-number">.*?</span>|<[^>]*>', "", heading)
        if identifier:
            listed.append(
                {
                    "id": identifier[1], "kind": "sec", "level": int(level), "number": number[1] if number else "",
                    "title": html.unescape(" ".join(title.split())),
                }
            )  # fmt: skip
    page = Page(text, listed)
    if page.name == "index.html":
        return page
    title = f"<title>{html.escape(listed[0]['title'])}</title>"
    return Page(re.sub(r"<title>.*?</title>", lambda _: title, text, flags=re.DOTALL), listed)


def contents(pages: list[Page], here: str) -> str:
    """Return the table of contents as nested lists; only the chapter *here* shows its sections."""

    def listed(page: Page, headings: list[dict[str, Any]]) -> str:
        items = []
        while headings:
            top, *rest = headings
            inside = list(itertools.takewhile(lambda entry, level=top["level"]: entry["level"] > level, rest))
            headings = rest[len(inside) :]
            # A link within the page has no file name, so that the page's script can follow it.
            target = f"#{top['id']}" if page.name == here else f"{page.name}#{top['id']}"
            label = f'<span class="toc-section-number">{top["number"]}</span>' if top["number"] else ""
            deeper = listed(page, inside) if inside and page.name == here else ""
            items.append(f'<li><a href="{html.escape(target)}">{label}{html.escape(top["title"])}</a>{deeper}</li>')
        return f"<ul>{''.join(items)}</ul>"

    chapters = (listed(page, headings) for page in pages if (headings := page.headings))
    return f"<ul>{''.join(text.removeprefix('<ul>').removesuffix('</ul>') for text in chapters)}</ul>"


def search_entries(page: str, text: str) -> Iterator[dict[str, str]]:
    """Yield the search entries of a page: {url, title, text} of the part before the first heading and of each section."""

    def words(text: str, between: str) -> list[str]:
        return html.unescape(re.sub(r"<[^>]*>", between, text)).split()

    name = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
    main = LEFT_OUT.sub(" ", text.partition("<main")[2].partition("</main>")[0])
    first, *sections = HEADING.split("<main" + main)
    parts = [(page, name[1] if name else page, first)]
    parts += [(f"{page}#{sections[i]}", *sections[i + 1 : i + 3]) for i in range(0, len(sections), 3)]
    for url, heading, content in parts:
        title, said = " ".join(words(heading, "")), " ".join(words(content, " "))
        if title or said:
            yield {"url": url, "title": title, "text": said}


def without_hidden(text: str, opening: str) -> str:
    """Return *text* (markdown) without the divisions that start with the line *opening*, including nested divisions."""
    kept, depth, fence = [], 0, ""
    for line in text.splitlines(keepends=True):
        bare, code = line.rstrip(), re.match(r"`{3,}(?=[^`]*$)|~{3,}", line)
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
        elif code:
            fence = code[0]
        elif bare.startswith(":::") and (depth or bare == opening):
            depth += 1 if bare.strip(":") else -1
            continue
        if not depth:
            kept.append(line)
    return "".join(kept)


def split_pages(text: str) -> list[str]:
    """Return the markdown of each page, with the header of *text*; only the first page, the front page, keeps the date."""
    _, header, body = text.split("---\n", 2)
    undated = re.sub(r"^date:.*\n", "", header, flags=re.MULTILINE)
    first, *others = body.split(PAGE_BREAK)
    return [f"---\n{header}---\n{first}", *(f"---\n{undated}---\n{other}" for other in others)]


def _identifier(mark: re.Match[str]) -> str:
    """Return the identifier in a mark without the backslashes that pandoc writes before `_` for typst."""
    return mark[1].replace("\\", "")


def resolve(pages: list[Page]) -> list[Page]:
    """Replace the marks in the pages by numbers. Raises StudyError for a reference without a target, or with two."""
    numbers: dict[str, str] = {}
    names: dict[str, str] = {}
    chapters = 0
    found = []
    for page in pages:

        def chapter(mark: re.Match[str], before: int = chapters) -> str:
            return str(before + int(mark[1]))

        listed = []
        count = {"fig": 0, "tbl": 0}
        for entry in page.listed:
            kind, top = entry["kind"], entry.get("level") == 1
            if kind == "sec":
                number = CHAPTER.sub(chapter, entry["number"])
                if top and number:
                    chapters, count = chapters + 1, {"fig": 0, "tbl": 0}
            else:
                count[kind] += 1
                number = f"{chapters}.{count[kind]}" if chapters else str(count[kind])
            if entry["id"] in numbers and entry["id"].startswith(f"{kind}-"):
                raise StudyError(f"report: identifier used twice: {entry['id']}")
            numbers[entry["id"]] = number
            names[entry["id"]] = "Chapter" if top else WORDS[kind]
            listed.append({**entry, "number": number})
        found.append(Page(CHAPTER.sub(chapter, page.text), listed))

    def number_of(mark: re.Match[str]) -> str:
        identifier = _identifier(mark)
        if not numbers.get(identifier):
            what = "reference to an unnumbered section" if identifier in numbers else "unresolved reference"
            raise StudyError(f"report: {what} @{identifier}")
        return numbers[identifier]

    def name_of(mark: re.Match[str]) -> str:
        return f"{names.get(_identifier(mark))}\u00a0{number_of(mark)}"

    return [Page(NAME.sub(name_of, NUMBER.sub(number_of, page.text)), page.listed) for page in found]


def lead_to_pages(pages: dict[str, Page]) -> dict[str, str]:
    """Return the text of each page, with links to targets on other pages corrected."""
    own = {name: set(re.findall(r'\bid="([^"]+)"', page.text)) for name, page in pages.items()}
    owner = {identifier: name for name, identifiers in own.items() for identifier in identifiers}

    def texts() -> Iterator[tuple[str, str]]:
        for name, page in pages.items():

            def target(link: re.Match[str], name: str = name) -> str:
                there = link[1] not in own[name] and owner.get(link[1])
                return f'href="{there}#{link[1]}"' if there else link[0]

            yield name, re.sub(r'\bhref="#([^"]+)"', target, page.text)

    return dict(texts())


def name_sections(pages: list[Page]) -> list[Page]:
    """Replace titles in references by names such as "Chapter 2". Quarto uses titles on pages without numbers, such as the front page."""
    names = {
        entry["id"]: f"{'Chapter' if entry['level'] == 1 else 'Section'}\u00a0{entry['number']}"
        for page in pages
        for entry in page.listed
        if entry["number"]
    }

    def named(reference: re.Match[str]) -> str:
        name = names.get(reference[2] or reference[1].removesuffix(".html"))
        return reference[0].replace(reference[0].partition("<span>")[2], f"{name}</span></a>") if name else reference[0]

    return [Page(QUARTO_REFERENCE.sub(named, page.text), page.listed) for page in pages]


def refuse_twice(pages: list[Page]) -> None:
    """Raise StudyError if two pages have the same figure, table or section, because references would be ambiguous."""
    seen: set[str] = set()
    for page in pages:
        own = set(re.findall(r'\bid="((?:fig|tbl|sec)-[^"]+)"', page.text))
        if own & seen:
            raise StudyError("report: identifier used twice: " + ", ".join(sorted(own & seen)))
        seen |= own


def pager(word: str, page: Page | None) -> str:
    """Return the link to the previous or next page; "" if there is none."""
    if not page:
        return ""
    title = re.search(r"<title>(.*?)</title>", page.text, re.DOTALL)
    return f'<a class="{word.lower()}" href="{page.name}"><span>{word}</span>{title[1] if title else page.name}</a>'


def write_pages(made: list[Page], folder: Path) -> None:
    """Write the complete pages to *folder*. The search index is a script, so that it also works for local files."""
    texts = lead_to_pages({page.name: page for page in made})
    entries = []
    for page, before, behind in zip(made, [None, *made], [*made[1:], None], strict=False):
        text = texts[page.name]
        entries += search_entries(page.name, text)
        complete = {
            CONTENTS_MARK: contents(made, page.name),
            PAGER_MARK: pager("Previous", before) + pager("Next", behind),
            SCRIPTS_MARK: SURFACE_SCRIPTS if 'class="surface"' in text else "",
        }
        for mark, filled in complete.items():
            text = text.replace(mark, filled)
        (folder / page.name).write_text(text, encoding="utf-8")
    index = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    (folder / "search.js").write_text(f"window.reportSearch = {index};\n", encoding="utf-8")
