"""Selection of the renderer, and errors of a report that cannot be rendered."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.publish import pages, renderers
from conftest import ROOT


def fake_quarto(folder: Path, log: str, version: str = "1.9.38", targets: str = "html typst", lacks: str = "") -> Path:
    """
    Write a program that imitates Quarto's interface to quarto.py: it prints the version of typst to standard error, and its
    exit status is 0 even if it wrote nothing, like PyPI's quarto-cli. It writes the formats in *targets*, except for the page
    *lacks*. Quarto's real output is tested only in test_report.py, if Quarto is on PATH.
    """
    folder.mkdir()
    script = folder / "quarto"
    script.write_text(
        f"""#!/bin/sh
case "$1" in
  --version) echo {version}; exit 0;;
  pandoc) echo pandoc 3.8.3; exit 0;;
  typst) echo "typst 0.14.2 (b33de9de)" >&2; exit 0;;
esac
echo "$@" >> calls.txt
echo "{log}" >&2
mkdir -p _output
case "{targets}" in *"$3"*) ;; *) exit 0;; esac
case "$3 $5" in
  "html pages,chapters")
    for name in $(grep -o '[a-z-]*[.]md' _quarto-chapters.yml); do
      [ "$name" = "{lacks}.md" ] || printf '<h1 data-number="1" id="%s">page</h1>' "${{name%.md}}" > "_output/${{name%.md}}.html"
    done;;
  "html ") echo page > _output/report.html;;
  "typst ") echo "%PDF-" > _output/report.pdf;;
esac
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Return a function that renders with a fake Quarto on PATH, made with these arguments; it returns the exit status."""

    def run(log: str, **made: str) -> int:
        quarto = fake_quarto(tmp_path / "bin", log, **made)
        monkeypatch.setenv("PATH", f"{quarto.parent}{os.pathsep}{os.environ['PATH']}")
        (tmp_path / "results").mkdir()
        return main(["--results", str(tmp_path / "results"), "render", "--studies", "a"])

    return run


def test_quarto_is_used_where_it_is(tmp_path, render, capsys):
    assert render("Output created: index.html") == 0
    assert (tmp_path / "results" / "report" / "report.pdf").read_text() == "%PDF-\n"
    calls = (tmp_path / "results" / "report-build" / "calls.txt").read_text()
    assert calls.splitlines() == ["render --to html --profile pages,chapters", "render --to typst"]
    book = json.loads((tmp_path / "results" / "report-build" / "_quarto-chapters.yml").read_text())
    assert book["book"]["chapters"] == ["index.md", "sec-a.md", "sec-appendix.md"]
    assert {path.name for path in (tmp_path / "results" / "report").glob("*.html")} == {
        "index.html", "sec-a.html", "sec-appendix.html"
    }  # fmt: skip
    assert "Quarto 1.9.38, pandoc 3.8.3, typst 0.14.2" in capsys.readouterr().out


#: Pages as written by Quarto 1.9.38: the front page, which has no numbers, and a chapter.
FRONT = """<title>Report</title><main id="content"><h2 class="unnumbered" id="sec-answer">The answer</h2>
<p><a href="sec-a.html" class="quarto-xref"><span>1&nbsp; A &amp; <b>b</b></span></a>,
<a href="sec-a.html#sec-a-how" class="quarto-xref"><span>How it was measured</span></a>,
<a href="sec-a.html#fig-a" class="quarto-xref">Figure&nbsp;<span>1.1</span></a></p></main>"""
CHAPTER = """<title></title><main id="content"><header id="title-block-header" class="quarto-title-block"></header>
<h1><span id="sec-a" class="quarto-section-identifier"><span class="chapter-number">1</span>&nbsp; \
<span class="chapter-title">sec-a</span></span></h1>
<div class="chapter-heading">
<p>A &amp; <code>b</code></p>
</div>
<h2 data-number="1.1" id="sec-a-how"><span class="header-section-number">1.1</span> How it was measured</h2></main>"""


def test_pages_of_quarto_get_titles_and_names_of_chapters():
    front, chapter = pages.name_sections([pages.page_of_quarto(text) for text in (FRONT, CHAPTER)])
    assert (front.name, chapter.name) == ("index.html", "sec-a.html")
    assert [(entry["id"], entry["number"], entry["title"]) for entry in chapter.headings] == [
        ("sec-a", "1", "A & b"), ("sec-a-how", "1.1", "How it was measured")
    ]  # fmt: skip
    assert "<title>A &amp; b</title>" in chapter.text and "<header" not in chapter.text
    assert (
        '<h1 data-number="1" id="sec-a"><span class="header-section-number">1</span> A &amp; <code>b</code></h1>'
        in chapter.text
    )
    shown = [words.replace("&nbsp;", "\u00a0") for words in re.findall(r"<a [^>]*>(.*?)</a>", front.text, re.DOTALL)]
    assert shown == ["<span>Chapter\u00a01</span>", "<span>Section\u00a01.1</span>", "Figure\u00a0<span>1.1</span>"]


#: Captions as written by Quarto 1.9.38: in a page, in a single file, without text, and not of a float.
CAPTION = '<figcaption class="quarto-float-caption-top quarto-float-caption quarto-float-{}" id="{}-a-caption-0ceaefa1">\n{}\n</figcaption>'


@pytest.mark.parametrize(
    ("kind", "words", "shown"),
    [
        ("tbl", "Table&nbsp;1: Cells", "<strong>Table&nbsp;1:</strong> Cells"),
        ("fig", "Figure\u00a012.3: Figure 1: a", "<strong>Figure\u00a012.3:</strong> Figure 1: a"),
        ("fig", "Figure&nbsp;2.1", "<strong>Figure&nbsp;2.1</strong>"),
        ("fig", "See Figure&nbsp;2.1", "See Figure&nbsp;2.1"),
    ],
)
def test_numbers_of_figures_are_bold_with_quarto(kind, words, shown):
    made = pages.with_bold_labels(CAPTION.format(kind, kind, words))
    assert made == CAPTION.format(kind, kind, shown)


#: Code that Quarto 1.9.38 puts before the report's own template.
QUARTO_CODE = "#show raw.where(block: true): set block(fill: luma(230), width: 100%, inset: 8pt, radius: 2pt)\n"


def test_code_has_one_box_with_quarto(tmp_path):
    typst = pytest.importorskip("typst")
    template = (ROOT / "report" / "theme" / "typst-template.typ").read_text(encoding="utf-8")
    made = []
    for before in ("", QUARTO_CODE):
        file = tmp_path / "code.typ"
        file.write_text(
            f"{before}{template}\n#show: doc => study-report(title: [A], doc)\n```\n./study run\n```\n",
            encoding="utf-8",
        )
        made.append(typst.compile(str(file), format="svg"))
    assert made[0] == made[1]


def test_figure_of_two_pages_is_an_error():
    twice = pages.Page('<div id="fig-a">', [])
    with pytest.raises(StudyError, match="identifier used twice: fig-a"):
        pages.refuse_twice([twice, twice])


@pytest.mark.parametrize(
    ("words", "made", "message"),
    [
        # Quarto's exit status is 0 in both cases.
        ("ERROR: Typst compilation failed", {"targets": "html"}, "quarto typst failed (no report.pdf)"),
        ("ERROR: no memory", {"lacks": "sec-appendix"}, "quarto html failed (no sec-appendix.html)"),
    ],
)
def test_what_quarto_does_not_make_is_an_error_with_its_words(tmp_path, render, capsys, words, made, message):
    assert render(words, **made) == 1
    said = capsys.readouterr().out
    assert message in said and words in said
    assert not (tmp_path / "results" / "report").exists()


def test_quarto_that_is_too_old_is_not_used(tmp_path, monkeypatch, capsys):
    quarto = fake_quarto(tmp_path / "bin", "", version="1.8.27")
    monkeypatch.setenv("PATH", f"{quarto.parent}{os.pathsep}{os.environ['PATH']}")
    assert renderers.choose_renderer("auto").name == "knitr + pandoc + typst"
    assert "quarto is 1.8.27, not 1.9 or newer" in capsys.readouterr().err
    with pytest.raises(StudyError, match="1.8.27, not 1.9 or newer"):
        renderers.choose_renderer("quarto")


@pytest.mark.parametrize(
    ("warning", "error"),
    [
        (
            "WARNING (quarto/share/filters/main.lua:1) Unable to resolve crossref @fig-gone",
            "unresolved reference @fig-gone",
        ),
        ("[WARNING] Duplicate identifier 'sec-a' at line 9 column 1", "identifier used twice: sec-a"),
    ],
)
def test_quartos_warnings_about_references_are_errors(tmp_path, render, capsys, warning, error):
    assert render(warning) == 1
    assert error in capsys.readouterr().out
    assert not (tmp_path / "results" / "report").exists()


def test_insisting_on_quarto_without_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["--results", str(tmp_path), "render", "--studies", "a", "--renderer", "quarto"]) == 1
    assert "no quarto on PATH" in capsys.readouterr().out


def test_folder_of_others_is_not_replaced(tmp_path, capsys):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.html").write_text("mine", encoding="utf-8")
    assert main(["--results", str(tmp_path), "render", "--studies", "a", "--output", str(tmp_path / "site")]) == 1
    assert "is not empty and is not a report" in capsys.readouterr().out
    assert (tmp_path / "site" / "mine.html").read_text(encoding="utf-8") == "mine"


def test_missing_results_folder_and_bad_name(tmp_path, capsys):
    assert main(["--results", str(tmp_path / "none"), "render", "--studies", "a"]) == 1
    assert "no results folder" in capsys.readouterr().out
    assert main(["--results", str(tmp_path), "render", "--studies", "../a"]) == 1
    assert "'../a' is not a valid study name" in capsys.readouterr().out


def test_error_in_r_is_shown_and_old_report_stays(tmp_path, capsys):
    if not shutil.which("Rscript"):
        pytest.skip("Rscript is not on PATH")
    source = tmp_path / "report"
    shutil.copytree(ROOT / "report", source)
    (source / "appendix.qmd").write_text("```{r}\nstop('this chapter is broken')\n```\n", encoding="utf-8")
    old = tmp_path / "results" / "report" / "index.html"
    old.parent.mkdir(parents=True)
    old.write_text("old", encoding="utf-8")
    arguments = ["--results", str(tmp_path / "results"), "render", "--studies", "a", "--renderer", "fallback"]
    arguments += ["--source", str(source)]
    assert main(arguments) == 1
    assert "this chapter is broken" in capsys.readouterr().out
    assert old.read_text(encoding="utf-8") == "old"
