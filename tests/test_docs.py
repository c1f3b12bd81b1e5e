"""Documentation: line lengths, cited works, links, one version number, and the numbers of the README."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest
from conftest import ROOT, Checkout, csv_rows, finish, must

KEYS = set(re.findall(r"^@\w+\{([^,]+),", (ROOT / "report" / "references.bib").read_text(encoding="utf-8"), re.M))
#: Form of a key: a name and a year, or a name and one of these words for works without a year.
KEY = r"[a-z]+(?:(?:19|20)\d\d|-(?:redsea|svd|orfeo|leonardo))"


def files(*patterns: str) -> list[Path]:
    """Return the matching files of the repository, or of an unpacked archive of it."""
    found = finish(["git", "ls-files"], cwd=ROOT)
    names = [ROOT / name for name in found.stdout.splitlines()]
    if found.returncode:
        made = {".study", ".snakemake", "results", "logs", "publish", "__pycache__", ".pytest_cache", ".ruff_cache"}
        names = [path for path in sorted(ROOT.rglob("*")) if not made & set(path.relative_to(ROOT).parts)]
    matching = [path for path in names if not patterns or any(fnmatch.fnmatch(path.name, one) for one in patterns)]
    return [path for path in matching if path.is_file()]


def prose(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a Markdown file outside code and tables, with their numbers."""
    found, code = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith(("|", "    ")):
            found.append((number, line))
    return found


def test_prose_wraps_at_100() -> None:
    long = [f"{path.relative_to(ROOT)}:{n}" for path in files("*.md") for n, line in prose(path) if len(line) > 100]
    assert not long


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80 and max(map(len, lines)) <= 100


def test_cited_works_are_in_the_bibliography() -> None:
    unknown = []
    for path in files("*.md", "*.py", "*.R", "*.qmd", "*.c", "*.h", "*.cpp", "*.yaml", "*.smk"):
        text = path.read_text(encoding="utf-8", errors="replace")
        cited = re.findall(rf"\[({KEY}(?:; {KEY})*)\]", text)
        keys = {key for group in cited for key in group.split("; ")} | set(re.findall(rf"(?<![\w.])@({KEY})\b", text))
        unknown += [f"{path.relative_to(ROOT)}: {key}" for key in sorted(keys - KEYS)]
    assert not unknown
    # Make sure that the search above finds something.
    assert len(KEYS) > 20


def test_works_are_not_called_seeds() -> None:
    called = re.compile(r"\bseed[- ]00[0-4]\b|\bthe seed's\b", re.IGNORECASE)
    # These files mention former names because they describe renaming.
    told = {ROOT / "CHANGELOG.md", Path(__file__)}
    found = [str(path.relative_to(ROOT)) for path in files() if path.suffix not in (".svg", ".gz") and path not in told
             and called.search(path.read_text(encoding="utf-8", errors="replace"))]  # fmt: skip
    assert not found


def test_paths_named_in_the_documentation_exist() -> None:
    path = r"`((?:bench|config|data|docs|envs|profiles|report|tests|workflow)/[\w./-]+)`"
    named = {(file, name) for file in files("*.md") for name in re.findall(path, file.read_text("utf-8"))}
    # NAME stands for the name of a study.
    missing = [f"{file.name}: {name}" for file, name in named if not (ROOT / name).exists() and "NAME" not in name]
    assert len(named) > 50 and not missing


@pytest.mark.parametrize("path", files("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
                target
            )


def test_one_version() -> None:
    def found(path: str, pattern: str) -> str:
        return re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.M).group(1)

    assert {
        found("CITATION.cff", r"^version: (\S+)"),
        found("workflow/collstudy/__init__.py", r'__version__ = "(.+)"'),
        found("workflow/analysis/DESCRIPTION", r"^Version: (\S+)"),
        found("CHANGELOG.md", r"^## \[(\d[^\]]*)\]"),
    } == {found("CITATION.cff", r"^version: (\S+)")}
    assert found("CITATION.cff", r"^date-released: (\S+)") == found("CHANGELOG.md", r"^## \[\d[^\]]*\] - (\S+)")


@pytest.mark.long
def test_the_numbers_of_the_readmes_figure_are_those_of_its_study(checkout: Checkout, tmp_path: Path) -> None:
    """The figure is results/orfeo-epyc/figures/bcast-decision-map.png of a run without reference data."""
    table = "results/orfeo-epyc/tables/answer.csv"
    targets = ["results/orfeo-epyc/tables/index.csv"]
    nowhere = {"STUDY_REFERENCE_DATA": str(tmp_path / "nowhere")}
    must(checkout.snakemake("--config", "studies=orfeo-epyc", "--", *targets, environment=nowhere))
    rows = [row for row in csv_rows(checkout.folder / table) if row["collective"] == "bcast"]
    cells, slower = (sum(int(row[key]) for row in rows) for key in ("cells", "slower"))
    assert f"in {cells - slower:,} of {cells:,} cells" in " ".join(
        (ROOT / "README.md").read_text(encoding="utf-8").split()
    )
