"""The report: special characters, gaps in the results, pages that work offline, and one PDF."""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import shutil
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest
from collstudy.cli.main import main
from conftest import ROOT, finish, must
from made_study import NASTY, make_pair, make_study
from test_report_filters import plain

#: If Quarto is installed, the whole report is tested with both renderers.
RENDERERS = ["fallback", "quarto"] if shutil.which("quarto") else ["fallback"]


class Loaded(HTMLParser):
    """Parser that collects every address that a page would load, and all of its text."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        self.loads += [named[key] or "" for key in ("src", "srcset", "poster", "data") if key in named]
        if tag == "link":
            self.loads.append(named.get("href") or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


#: A chapter written by a person; it refers to a figure and a number that do not exist.
OWN = """\
---
generated: below
---
The default is `r number("answer-collectives", "geometric_mean_pct", collective = "bcast")` slower; see `r see("bcast-latency")`.
And `r number("answer-collectives", "p90_pct", collective = "reduce")`.
Tables: `r has_table("bcast-words")` and `r has_table("nowhere")`.

```{r}
#| results: asis
figure("bcast-latency", caption = "My own words.")
figure("bcast-nowhere")
data_table("bcast-words", n = "line03", columns = "n", caption = "One row.")
```
"""


@pytest.fixture(scope="module", params=RENDERERS)
def made(request, tmp_path_factory) -> dict:
    """Render a report of four studies, one of them without results, in a folder with a blank in its name, which is a link."""
    if not shutil.which("Rscript"):
        pytest.skip("Rscript is not on PATH")
    results = tmp_path_factory.mktemp("my results") / "re sults"
    results.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    make_study(results, "simulated-one", True, NASTY)
    make_study(results, "measured-one", False, "Plain title")
    make_pair(results, "two-ranks")
    texts = results.parent / "texts"
    texts.mkdir()
    (texts / "measured-one.qmd").write_text(OWN, encoding="utf-8")
    studies = ["two-ranks", "simulated-one", "not-yet", "measured-one"]
    output = ["--output", str(results / "report"), "--single-file", "--texts", str(texts)]
    collstudy = [sys.executable, "-m", "collstudy", "--results", str(results)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    must(finish([*collstudy, "front", *studies], env=environment, cwd=results.parent))
    command = [*collstudy, "render", "--renderer", request.param, "--studies", *studies, *output]
    done = must(finish(command, env=environment, timeout=900, cwd=results.parent))
    page = (results / "report" / "report.html").read_text(encoding="utf-8")
    parser = Loaded()
    parser.feed(page)
    return {
        "renderer": request.param,
        "results": results,
        "page": page,
        "parser": parser,
        "text": " ".join("".join(parser.text).split()),
        "log": done.stdout,
    }


def test_page_loads_nothing(made):
    addresses = [address for address in made["parser"].loads if not address.startswith("data:")]
    assert addresses == []
    # Check the embedded style sheets as well, which are data URLs themselves.
    sheets = [urllib.request.urlopen(a).read().decode() for a in made["parser"].loads if a.startswith("data:text/css")]
    for sheet in [made["page"].split("<body", 1)[0], *sheets]:
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", sheet)


def test_files_are_named_as_the_user_named_the_results(made):
    assert "re sults/two-ranks/measurements.csv" in made["text"] and "elsewhere" not in made["text"]


def pages_of(made) -> dict[str, str]:
    """Return the pages of the folder by name."""
    folder = made["results"] / "report"
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html") if path.name != "report.html"}


def loaded(page: str) -> list[str]:
    """Return the addresses that a page loads."""
    parser = Loaded()
    parser.feed(page)
    return parser.loads


def test_each_chapter_is_a_page_that_leads_to_the_next(made):
    pages = pages_of(made)
    order = ["index", "sec-measured-one", "sec-simulated-one", "sec-two-ranks", "sec-not-yet", "sec-appendix"]
    assert set(pages) == {f"{name}.html" for name in order}
    assert all('<nav class="pager"' in page for page in pages.values())
    for name, following in itertools.pairwise(order):
        assert f'class="next" href="{following}.html"' in pages[f"{name}.html"]
        assert f'class="previous" href="{name}.html"' in pages[f"{following}.html"]


def test_pages_load_only_what_is_beside_them_and_links_lead_somewhere(made):
    pages, folder = pages_of(made), made["results"] / "report"
    identifiers = {name: set(re.findall(r'\bid="([^"]+)"', page)) for name, page in pages.items()}
    for name, page in pages.items():
        for address in loaded(page):
            assert not re.match(r"\w+:|/", address) and (folder / address).is_file(), (name, address)
        links = re.findall(r'<a [^>]*href="([^"]+)"', page)
        for link in links:
            file, _, anchor = link.partition("#")
            assert (file or name) in pages or (folder / file).is_file(), (name, link)
            assert not anchor or anchor in identifiers[file or name], (name, link)
        assert links


def test_front_page_leads_to_the_chapters_and_is_small(made):
    folder = made["results"] / "report"
    front = pages_of(made)["index.html"]
    assert "<h1>MPI collective communication</h1>" in front
    assert re.findall(r"\(Chapter \d;", plain(front)) == [f"(Chapter {number};" for number in (1, 2, 3, 4)]
    assert len(front.encode()) + sum((folder / address).stat().st_size for address in loaded(front)) < 300_000


def test_library_of_surfaces_is_loaded_where_there_is_one(made):
    pages = pages_of(made)
    library = made["results"] / "report" / "theme" / "plotly.js"
    if not library.is_file():
        pytest.skip("R has no package plotly")
    # A pair of ranks is reported in one line, without figures.
    assert {name for name, page in pages.items() if "theme/plotly.js" in loaded(page)} == {
        "sec-measured-one.html", "sec-simulated-one.html"
    }  # fmt: skip
    assert len(made["page"]) > library.stat().st_size
    assert "[1] TRUE" not in made["text"]


def test_search_finds_the_chapters(made):
    text = (made["results"] / "report" / "search.js").read_text(encoding="utf-8")
    entries = json.loads(text.removeprefix("window.reportSearch = ").rstrip().removesuffix(";"))
    pages = pages_of(made)
    for entry in entries:
        name, _, anchor = entry["url"].partition("#")
        assert not anchor or f'id="{anchor}"' in pages[name]
    assert any("coll/sm ran" in entry["text"] and entry["url"].startswith("sec-appendix") for entry in entries)
    # The end of a long section is found as well.
    said = " ".join(entry["text"] for entry in entries)
    labels = re.findall(r"<strong>(Figure|Table)\u00a0([\d.]+:)</strong>", html.unescape("".join(pages.values())))
    assert labels and [" ".join(label) for label in labels if " ".join(label) not in said] == []
    # The front page is found by section, with either renderer.
    assert "index.html#sec-answer" in {entry["url"] for entry in entries}
    assert 'id="search"' in pages["index.html"] and 'id="theme-switch"' in pages["index.html"]


def front_page(made) -> str:
    """Return the text of the front page."""
    page = made["page"].split('class="front-page"', 1)[1].split('id="sec-measured-one"', 1)[0]
    return " ".join(plain(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)).split())


def test_front_page_answers_with_numbers_of_the_tables(made):
    text = front_page(made)
    places = [text.index(words) for words in (
        "The answer", "takes 12 % longer than the fastest measured algorithm on A machine", "Simulated, not measured:", "Table 1",
        "What to do about it", "How far to trust it", "The studies",
    )]  # fmt: skip
    assert places == sorted(places)
    assert (
        "A machine (geometric mean). Median: 3.0 %. The default is more than 5 % slower in 25 % of the cells" in text
        and "40 cells)." in text
    )
    # The default takes 20 % longer: the rules save 1 - 1 / 1.2 of its time.
    assert re.search(r"they save 17 % \(95 % interval 9.1 to 24 %\) of the default.s time", text)
    assert "./study advise --study measured-one --collective bcast --nodes 1 --ppn 2 --mapping core --size 2" in text
    assert text.index("Plain title") < text.index("A pair")


def test_own_text_comes_before_the_generated_chapter(made):
    chapter = made["page"].split('id="sec-measured-one"', 1)[1].split('id="sec-simulated-one"', 1)[0]
    text = plain(chapter)
    assert "The default is 12.5 % slower; see Figure" in text and "Tables: TRUE and FALSE." in text
    assert text.index("My own words.") < text.index("How it was measured")
    # A figure shown in the authored text is not shown again.
    assert chapter.count('id="fig-measured-one_bcast-latency"') == 1
    table = re.search(r'id="tbl-measured-one_bcast-words".*?</table>', chapter, re.DOTALL).group()
    assert "line03" in table and "line04" not in table


def test_what_an_own_text_asks_for_in_vain_is_said(made):
    lack = "config/studies/measured-one.qmd: no figure bcast-nowhere; there are bcast-decision-map, bcast-latency"
    assert made["text"].count(lack) == 2, "where it should stand, and in the appendix"
    assert "table answer-collectives has 0 rows with collective = reduce instead of one" in made["text"]
    assert lack in made["log"]


def test_two_ranks_are_a_line(made):
    chapter = made["page"].split('id="sec-two-ranks"', 1)[1].split('id="sec-not-yet"', 1)[0]
    assert "ith two ranks, most algorithms send the same messages" in plain(chapter)
    assert (
        "<figure" not in chapter.replace('<figure class="quarto-float quarto-float-tbl">', "")
        and "tbl-two-ranks_bcast" not in chapter
    )
    assert "with two ranks, most algorithms send the same messages" in front_page(made).lower()


def test_tables_without_rows_are_not_shown(made):
    assert "bcast-rowless" not in made["page"].split('id="sec-files"')[0]
    for table in re.findall(r"<table.*?</table>", made["page"], re.DOTALL):
        assert "<td" in table


def with_straight_quotes(text: str) -> str:
    return text.translate(str.maketrans("\u2019\u2018\u201c\u201d", "''\"\""))


def test_special_characters_mean_themselves(made):
    assert NASTY in with_straight_quotes(made["text"])
    assert "<b>bold" not in made["page"]
    assert "math" not in made["parser"].tags


def test_simulated_numbers_are_labelled(made):
    assert "Every number of this study was computed by SimGrid SMPI 3.32" in made["text"]
    simulated, measured = (
        re.search(rf'id="fig-{name}_bcast-latency".*?<figcaption[^>]*>(.*?)</figcaption>', made["page"], re.DOTALL)[1]
        for name in ("simulated-one", "measured-one")
    )
    assert "Simulated." in simulated and "imulated" not in measured
    # Bold with either renderer.
    assert re.match(r"\s*<strong>Figure(&nbsp;|\u00a0)\d\.\d:</strong> ", simulated)


def test_study_without_results_has_a_chapter_that_says_so(made):
    chapter = made["page"].split('id="sec-not-yet"', 1)[1].split('id="sec-appendix"', 1)[0]
    assert "No results yet" in chapter
    assert "./study run not-yet" in chapter


def test_cells_without_numbers_are_listed_with_reasons(made):
    for reason in ("time limit & <crash> of $5_% |", "never launched", "coll/sm ran"):
        assert reason in made["text"]
    assert "3 of 4 grid cells have no usable number. Section" in made["text"]
    assert "not verified" in made["text"] and "unproved" not in made["text"].lower()
    lacking = re.search(
        r"number of processes\) without a usable number at some or all sizes: (.*?); the appendix", made["text"]
    )[1]
    assert sum(int(number) for number in re.findall(r"(\d+) of \d+ on", lacking)) == 6


def test_works_are_cited_and_listed(made):
    text = made["text"].lower()
    for words in (
        "(derin 2025)",
        "wisner (undated)",
        "comparative analysis of openmpi algorithms",
        "hoefler and belli",
    ):
        assert words in text
    assert "@derin2025" not in text and "@wisner" not in text


def test_missing_files_are_named(made):
    assert "figures/bcast-decision-map.svg is missing" in made["text"]
    assert "tables/bcast-gone.csv is missing or empty" in made["text"]
    assert "Left out of this report" in made["text"]


def test_numbers_and_labels_of_tables(made):
    assert "\u22121.23" in made["text"] and "Mean difference (\u00b5s)" in made["text"]
    assert "Binary\u00a0tree" in "".join(made["parser"].text)
    assert "The first 300 of 400 rows" in made["text"]


def test_references_of_the_page_lead_somewhere(made):
    identifiers = set(re.findall(r'\bid="([^"]+)"', made["page"]))
    targets = set(re.findall(r'href="#([^"]+)"', made["page"]))
    assert targets and targets <= identifiers
    assert not re.search(r"\?@(fig|tbl|sec)-", made["text"])


def text_of_pdf(made, *options: str) -> str:
    """Return the text of the PDF; skip the test without pdftotext."""
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not on PATH")
    return must(finish(["pdftotext", *options, made["results"] / "report" / "report.pdf", "-"])).stdout


def test_pdf_has_text(made):
    assert (made["results"] / "report" / "report.pdf").read_bytes()[:5] == b"%PDF-"
    text = text_of_pdf(made, "-layout")
    for words in ("Contents", "How it was measured", "No results yet", "Simulated numbers", "Software and machine"):
        assert words in text
    # Cited in a caption and in a table, and listed.
    for words in ("(Derin 2025)", "Wisner (undated)", "Comparative Analysis of OpenMPI Algorithms"):
        assert words.lower() in " ".join(text.split()).lower()
    assert "A & B <b>bold</b> $x_1$ 100% --map-by -? #1 @fig-nowhere" in " ".join(text.split())


def test_no_word_is_printed_over_another(made):
    boxes = text_of_pdf(made, "-bbox")
    for page in boxes.split("<page ")[1:]:
        words = re.findall(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>', page)
        lines: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
        for left, top, right, bottom, word in words:
            lines.setdefault((top, bottom), []).append((float(left), float(right), word))
        for line in lines.values():
            line.sort()
            for (_, end, word), (start, _, following) in itertools.pairwise(line):
                assert end <= start + 0.5, (word, following)


def test_headers_of_a_wide_table_are_whole_on_the_page_and_broken_in_print(made):
    assert "Number 0 of many (µs)" in made["text"]
    lines = text_of_pdf(made, "-layout")
    assert "Number 0 of" not in lines and re.search(r"Number 0 +Number 1 +Number 2", lines)


def test_drawings_of_many_shapes_are_pictures_on_the_page(made):
    figure = re.search(r'id="fig-measured-one_bcast-shapes".*?</figure>', made["page"], re.DOTALL)
    assert figure and "data:image/png" in figure.group() and "x" * 1000 not in figure.group()
    assert "data:image/svg" in re.search(r'id="fig-measured-one_bcast-latency".*?</figure>', made["page"], re.DOTALL)[0]


def test_table_of_long_texts_goes_on_over_pages(made):
    pages = text_of_pdf(made).split("\f")
    first, last = (next(i for i, page in enumerate(pages) if line in page) for line in ("line00", "line14"))
    assert first < last


def test_claims_are_listed_with_what_shows_them(made):
    row = made["page"].split('id="tbl-claims"')[1].split("The default is slow.", 1)[1].split("</tr>")[0]
    assert re.findall('href="#((?:fig|tbl)-.*?)"', row) == [
        "fig-measured-one_bcast-latency",
        "tbl-measured-one_bcast-words",
    ]
    assert "./study run measured-one" in row


def test_sentences_have_code_and_nothing_else_of_markdown(made):
    assert "<code>./run -- measured-one" in made["page"]
    assert f"|x. {NASTY.replace('`', '')}" in with_straight_quotes(made["text"])


def test_broken_study_file_is_named_not_fatal(made, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(made["results"] / "measured-one", results / "measured-one")
    (results / "measured-one" / "study.json").write_text("{broken", encoding="utf-8")
    assert main(["--results", str(results), "render", "--studies", "measured-one", "--renderer", "fallback"]) == 0
    assert "measured-one/study.json cannot be read" in (results / "report" / "sec-appendix.html").read_text(
        encoding="utf-8"
    )


def test_front_page_of_other_studies_is_refused(made, tmp_path, capsys):
    for name in ("two-ranks", "front"):
        shutil.copytree(made["results"] / name, tmp_path / name)
    arguments = ["--results", str(tmp_path), "render", "--studies", "two-ranks", "--renderer", "fallback"]
    assert main(arguments) == 1
    assert "front is not the front page of these studies; first: python -m collstudy front two-ranks" in (
        capsys.readouterr().out
    )
    assert not (tmp_path / "report").exists()


def test_names_of_studies_that_resemble_each_other_or_a_section(made, tmp_path, capsys):
    """A part of the chapter of `one` is on bcast; the appendix has a section on files."""
    studies = ["one", "one-bcast", "one.bcast", "one-bcast-", "One", "appendix", "files"]
    for name in studies:
        shutil.copytree(made["results"] / "two-ranks", tmp_path / name)
        path = tmp_path / name / "study.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "name": name}), encoding="utf-8")
    assert main(["--results", str(tmp_path), "front", *studies]) == 0
    arguments = ["--results", str(tmp_path), "render", "--renderer", made["renderer"], "--studies", *studies]
    assert main(arguments) == 0, capsys.readouterr().out
    pages = {path.stem for path in (tmp_path / "report").glob("sec-*.html")}
    assert len(pages) == len(studies) + 1 and {"sec-one", "sec-one-bcast", "sec-appendix"} < pages


def test_the_sections_of_the_report_itself_are_known():
    """Names of studies that equal them get other identifiers: chapter_id()."""
    texts = "".join(path.read_text() for path in (ROOT / "report").rglob("*.[qR]*") if path.is_file())
    code = (ROOT / "workflow" / "analysis" / "R" / "words.R").read_text().split("chapter_id <- ")[1].split("}")[0]
    assert set(re.findall(r"{#sec-([a-z]+)", texts)) == set(re.findall(r'"([a-z]{2,})"', code))


def kept_pages(results: Path) -> dict[str, list[str]]:
    """Return the cached chapters (rds) and pages (json)."""
    names = sorted(path.name for path in (results / ".pages").iterdir())
    return {kind: [name for name in names if name.endswith(kind)] for kind in ("rds", "json")}


def test_only_what_changed_is_made_again(made, tmp_path, capsys):
    results = tmp_path / "results"
    for name in ("measured-one", "simulated-one"):
        shutil.copytree(made["results"] / name, results / name)
    assert main(["--results", str(results), "front", "measured-one", "simulated-one"]) == 0
    arguments = ["--results", str(results), "render", "--studies", "measured-one", "simulated-one", "--renderer", "fallback",
                 "--texts", str(made["results"].parent / "texts")]  # fmt: skip

    def report() -> dict[str, bytes]:
        assert main(arguments) == 0
        # A chapter that is not knitted again repeats the message about what its text lacks.
        assert "no figure bcast-nowhere" in capsys.readouterr().out
        return {p.name: p.read_bytes() for p in (results / "report").rglob("*") if p.suffix != ".pdf" and p.is_file()}

    pages, kept = report(), kept_pages(results)
    assert len(kept["rds"]) == 2
    assert report() == pages and kept_pages(results) == kept
    table = results / "simulated-one" / "tables" / "bcast-words.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("line03", "another"), encoding="utf-8")
    changed = report()
    assert {name for name in pages if changed[name] != pages[name]} == {
        "sec-simulated-one.html", "sec-appendix.html", "search.js"
    }  # fmt: skip
    assert b"another" in changed["sec-simulated-one.html"]
    # One chapter was knitted. For the screen, its page and the appendix (which lists file sizes) were rendered; on paper at most these.
    now = kept_pages(results)
    assert len(now["rds"]) == 3
    assert 2 <= len(now["json"]) - len(kept["json"]) <= 4


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("See @fig-gone.", "unresolved reference @fig-gone"),
        pytest.param(
            "# Front {#sec-unnumbered .unnumbered}\n\nSee @sec-unnumbered.",
            "reference to an unnumbered section @sec-unnumbered",
            marks=pytest.mark.long,
        ),
        pytest.param("# Again {#sec-appendix}", "identifier used twice: sec-appendix", marks=pytest.mark.long),
    ],
)
def test_reference_of_a_page_that_leads_nowhere_is_an_error(made, tmp_path, capsys, text, error):
    shutil.copytree(made["results"] / "two-ranks", tmp_path / "results" / "two-ranks")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "two-ranks.qmd").write_text(f"---\ngenerated: none\n---\n{text}\n", encoding="utf-8")
    if made["renderer"] == "quarto" and "unnumbered" in text:
        pytest.skip("Quarto calls an unnumbered section by its title")
    assert main(["--results", str(tmp_path / "results"), "front", "two-ranks"]) == 0
    arguments = ["--results", str(tmp_path / "results"), "render", "--studies", "two-ranks"]
    arguments += ["--renderer", made["renderer"], "--texts", str(tmp_path / "texts")]
    assert main(arguments) == 1
    assert error in capsys.readouterr().out
    assert not (tmp_path / "results" / "report").exists()
