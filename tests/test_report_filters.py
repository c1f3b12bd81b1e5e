"""The filters of the report: cross-references, callouts, content for one format."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from collstudy.publish import building, renderers
from collstudy.publish.pages import without_hidden
from conftest import ROOT, finish, must

FILTERS = [ROOT / "report" / "filters" / name for name in ("common.lua", "crossref.lua")]


def pandoc(text: str, target: str = "html") -> subprocess.CompletedProcess[str]:
    """Run only the filters on *text*."""
    executable, _ = renderers.find_pandoc()
    filters = [f"--lua-filter={path}" for path in FILTERS]
    command = [executable, "--from", "markdown", "--to", target, "--number-sections", *filters]
    return finish(command, input=text, timeout=60)


def plain(html: str) -> str:
    """Return the text of *html* with single blanks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)).replace("\u00a0", " ")


FLOATS = """
# One {#sec-one}

## Inner {#sec-inner}

# Front {#sec-front .unnumbered}

# Two {#sec-two}

::: {#fig-a}
![](a.svg)

Caption *a*.
:::

![Caption b](b.svg){#fig-b}

::: {#tbl-a}
| x | y |
|:--|--:|
| 1 | 2 |

Caption t.
:::

See @fig-a, @fig-b, [@tbl-a], @sec-two, @sec-inner and number -@fig-b; [see @fig-a; @tbl-a].
"""


def test_references_are_numbered_links():
    done = must(pandoc(FLOATS))
    said = "See Figure 2.1, Figure 2.2, Table 2.1, Chapter 2, Section 1.1 and number 2.2; see Figure 2.1, Table 2.1."
    assert said in plain(done.stdout)
    for target in ("fig-a", "fig-b", "tbl-a", "sec-two", "sec-inner"):
        assert f'href="#{target}"' in done.stdout
        assert len(re.findall(rf'\bid="{target}"', done.stdout)) == 1
    assert "Figure 2.1: Caption a." in plain(done.stdout)
    assert "Table 2.1: Caption t." in plain(done.stdout)


def test_typst_has_the_same_numbers():
    done = must(pandoc(FLOATS, "typst"))
    for target, text in {
        "fig-b": "Figure\u00a02.2",
        "tbl-a": "Table\u00a02.1",
        "sec-inner": "Section\u00a01.1",
    }.items():
        assert f"#link(<{target}>)[{text}]" in done.stdout
        assert f"<{target}>" in done.stdout.replace(f"link(<{target}>)", "")


def test_images_of_the_pdf_are_described():
    done = must(pandoc('![](a.svg){width=80% fig-alt="What is seen" alt="What is seen"}\n', "typst"))
    assert 'image("a.svg", width: 80.0%, alt: "What is seen")' in done.stdout


@pytest.mark.parametrize("target", ["html", "typst"])
@pytest.mark.parametrize("reference", ["@fig-gone", "[@tbl-gone]", "@sec-gone"])
def test_unresolved_reference_is_an_error_that_names_it(reference, target):
    done = pandoc(FLOATS + reference + "\n", target)
    assert done.returncode != 0
    assert f"unresolved reference @{reference.strip('[]@')}" in done.stderr


def test_identifier_used_twice_is_an_error():
    done = pandoc(FLOATS + "\n![again](a.svg){#fig-a}\n")
    assert done.returncode != 0
    assert "identifier used twice: fig-a" in done.stderr


def test_reference_to_unnumbered_section_is_an_error():
    done = pandoc(FLOATS + "\n@sec-front\n")
    assert done.returncode != 0
    assert "@sec-front" in done.stderr


CALLOUT = '::: {.callout-warning title="Mind & see" collapse="true"}\nBody @sec-x.\n:::\n\n# X {#sec-x}\n'


def test_callouts():
    html = pandoc(CALLOUT).stdout
    assert '<details class="callout callout-warning">' in html
    assert "Mind &amp; see" in html and "Body Chapter 1." in plain(html)
    assert '<div class="callout callout-note">' in pandoc("::: {.callout-note}\n## Title\nBody\n:::\n").stdout
    typst = pandoc(CALLOUT, "typst").stdout
    assert "#callout(icon_color: callout-colours.warning, title: [" in typst


def test_content_of_the_other_format_is_left_out():
    text = '::: {.content-visible when-format="html"}\nscreen\n:::\n\n'
    text += '::: {.content-hidden when-format="html"}\npaper\n:::\n'
    text += '\n[wide]{.content-visible when-format="html"} [narrow]{.content-hidden when-format="html"}\n'
    html, typst = pandoc(text).stdout, pandoc(text, "typst").stdout
    assert "screen" in html and "wide" in html and "paper" not in html and "narrow" not in html
    assert "paper" in typst and "narrow" in typst and "screen" not in typst and "wide" not in typst


NESTED = """\
::: {.content-visible when-format="html"}
screen

::: {.content-hidden when-format="html"}
paper

::: {.inner}
deep
:::
:::

~~~
:::
~~~

again
:::

both
"""


def test_content_of_a_format_within_content_of_the_other_one_is_left_out():
    html, typst = pandoc(NESTED).stdout, pandoc(NESTED, "typst").stdout
    assert all(word in html for word in ("screen", "again", "both")) and "paper" not in html and "deep" not in html
    assert plain(typst).split() == ["both"]


def test_pages_are_made_of_what_their_format_shows():
    assert without_hidden(NESTED, building.SCREEN_ONLY).split() == ["both"]
    shown = without_hidden(NESTED, building.PAPER_ONLY)
    assert all(word in shown for word in ("screen", "again", "both")) and "paper" not in shown and "deep" not in shown
    assert pandoc(shown).stdout == pandoc(NESTED).stdout


def marks(folder: Path, document: str) -> list[list]:
    """Return the marked places of a typst document that uses the report's template."""
    typst = pytest.importorskip("typst")
    shutil.copy2(ROOT / "report" / "theme" / "typst-template.typ", folder)
    (folder / "document.typ").write_text(document)
    return [element["value"] for element in json.loads(typst.query(str(folder / "document.typ"), "<at>"))]


#: A chapter with a figure at its end, then one that begins on the same page with a figure.
FLOATING = """
#import "typst-template.typ": chapters
#let at(name) = context [#metadata((name, here().page(), here().position().y / 1pt)) <at>]
#let pictured(name) = figure(kind: image, caption: name, block(height: %dcm, at(name)))
#set page(paper: "a4")
#show: chapters
= One #at("chapter one")
#lorem(%d)
#pictured("first")
#lorem(%d)
#pictured("second")
#lorem(20)
= Two #at("chapter two")
#lorem(60)
#pictured("third")
#lorem(900)
= Three #at("chapter three")
#lorem(60)
"""


@pytest.mark.parametrize(
    ("height", "before", "words"),
    [(6, 0, words) for words in (120, 300, 380, 480, 560)]
    # Two figures that do not fit the rest of their chapter's first page.
    + [(12, before, words) for before in (300, 400, 480) for words in (20, 120, 300)],
)
def test_figures_of_the_pdf_are_between_the_headings_of_their_chapter(
    tmp_path: Path, height: int, before: int, words: int
) -> None:
    place = {name: (page, y) for name, page, y in marks(tmp_path, FLOATING % (height, before, words))}
    assert place["chapter one"] < place["first"] < place["chapter two"], place
    assert place["chapter one"] < place["second"] < place["chapter two"], place
    assert place["chapter two"] < place["third"] < place["chapter three"], place


@pytest.mark.parametrize("last", [4, 6, 8, 10])
def test_many_figures_of_the_pdf_do_not_reach_the_next_chapter(tmp_path: Path, last: int) -> None:
    """Four figures near the end of a chapter fill more than a page; the last one is low."""
    figures = "\n#lorem(20)\n".join(
        f'#figure(kind: image, caption: "{name}", block(height: {height}cm, at("{name}")))'
        for name, height in (("first", 17), ("second", 17), ("third", 8), ("last", last))
    )
    setting, chapters = FLOATING.split("= One", 1)[0] % 6, '= Two #at("chapter two")\n#lorem(60)\n'
    document = f"{setting}= One\n#lorem(900)\n{figures}\n#lorem(20)\n{chapters}"
    place = {name: (page, y) for name, page, y in marks(tmp_path, document)}
    assert max(place, key=lambda name: place[name]) == "chapter two", place


@pytest.mark.parametrize(("rows", "lines", "broken"), [(6, 5, True), (6, 1, False), (30, 1, True)])
def test_a_tall_table_of_the_pdf_goes_on_over_pages(tmp_path: Path, rows: int, lines: int, broken: bool) -> None:
    """Also one of few rows; a low one is moved to the next page as a whole."""
    text = " \\ ".join("a" * lines)
    cells = "".join(f"[#at({row}){text}]," for row in range(rows))
    found = marks(
        tmp_path,
        '#import "typst-template.typ": study-report, table-block\n'
        "#let at(row) = context [#metadata((row, here().page())) <at>]\n#show: study-report.with(title: [x])\n"
        f"#v(19.5cm)\n#figure(kind: table, caption: [y], table-block[#table(columns: 1, table.header[z], {cells})])\n",
    )
    assert [row for row, _ in found] == [*range(rows)]
    assert len({page for _, page in found}) == 1 + broken
