"""`./study publish`: write the report for a web server, and a data package to archive.

publish/index.html, *.html, ...       the report: its pages with the files that they load, and report.pdf
publish/data-package.zip              code, configuration, cells, measurements, tables, versions, checksums, RO-Crate metadata
publish/.github/workflows/pages.yml   publishes the folder on GitHub Pages when it is pushed as a repository
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collstudy.base.clock import clock
from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv, read_json, write_atomically
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT
from collstudy.launch.toolchain import spack_lock
from collstudy.publish import again
from collstudy.publish.building import BUILD, DESCRIBED, SINGLE_FILE
from collstudy.publish.citation import cff, codemeta, read_citation, zenodo
from collstudy.publish.crate import METADATA, checksums, crate
from collstudy.publish.data import NONE_SEEN, NOT_STATED, read_imported, table
from collstudy.publish.versions import info
from collstudy.store.described import read_study

yaml = lazy("yaml")

#: Files of a checkout that a package needs, used if the checkout is not a git repository.
SOURCES = (
    "Snakefile", "study", "config", "data", "profiles", "workflow", "report", "envs", "spack", "spack.yaml", "docs", "tests", "bench",
    "LICENSE", "README.md", "CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "apptainer.def", "pyproject.toml",
)  # fmt: skip
#: Folders of which a package has the files that are not committed as well, such as a study of ./study new.
OWN = ("config", "data", "report", "workflow")
#: Files of an earlier publication that the next one may not have.
REPLACED = ("sec-*.html", SINGLE_FILE, "figures/**/*", "imported.csv", METADATA)
#: Files of the data package that are beside it as well.
SHOWN = ("ARTIFACT.md", "LICENSE", "CITATION.cff", "codemeta.json", ".zenodo.json", "imported.csv")
#: Tables of a study that name what is stored of it: its cells, those that verified its tuning files, and those of a program whose
#: ranks arrive together although they do not in the program.
TABLES = ("cells.csv", "tuning/cells.csv", "sampling/synchronised.csv")
PAGES = """\
# Puts this folder on GitHub Pages: push it as a repository of its own, and choose "GitHub Actions" in Settings, Pages.
name: pages
on:
  push: {branches: [main]}
  workflow_dispatch:
permissions: {contents: read, pages: write, id-token: write}
jobs:
  pages:
    runs-on: ubuntu-latest
    environment: {name: github-pages, url: "${{ steps.deployment.outputs.page_url }}"}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/configure-pages@v5
      - uses: actions/upload-pages-artifact@v3
        with: {path: .}
      - id: deployment
        uses: actions/deploy-pages@v4
"""


def publish(
    results: Path,
    studies: list[str],
    target: Path,
    inputs: Mapping[str, list[Path]],
    config: Path | None = None,
    *,
    single_file: bool = False,
) -> list[str]:
    """Write the folder *target*; return lines that describe its content. *inputs* has the files that each study imports, *config* is
    the folder of the configuration if it is not that of the checkout. If the report in the results has more studies, or lacks the
    *single_file*, another one is rendered for the folder, and the one in the results stays.

    Raises StudyError if the results are incomplete.
    """
    _check_complete(results, studies, inputs)
    stage = _empty_stage(target)
    try:
        cells = _fill(
            stage,
            results,
            studies,
            inputs,
            config or ROOT / "config",
            _options_of_report(results, studies, single_file),
        )
        archive = target / "data-package.zip"
        _zip(stage, archive)
        # Remove what is no longer published; other files in the folder belong to the user.
        for path in [path for old in REPLACED for path in target.glob(old) if path.is_file()]:
            path.unlink()
        shutil.copytree(stage / "results" / "report", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        for name in SHOWN:
            if (stage / name).exists():
                _copy(stage / name, target / name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    write_atomically(target / ".nojekyll", b"")
    write_atomically(target / ".github" / "workflows" / "pages.yml", PAGES.encode())
    write_atomically(target / "SHA256SUMS", checksums(target).encode())
    count = "1 study" if len(studies) == 1 else f"{len(studies)} studies"
    imported = read_csv(target / "imported.csv")
    unlicensed = sorted(
        {row["file"].rpartition("/")[0] for row in imported if row["licence"] in (NOT_STATED, NONE_SEEN)}
    )
    ask_first = f"no licence is known of imported data ({', '.join(unlicensed)}), whose numbers are in the package: ask their authors first"
    return [
        f"{target}/index.html and report.pdf: the report"
        + (f"; {SINGLE_FILE}: all of it in one file" if (target / SINGLE_FILE).exists() else ""),
        f"{target}/data-package.zip: {count}, {cells} cell files, {archive.stat().st_size / 1e6:.1f} MB",
        "Copy the folder to a web server, or push it to GitHub (its workflow publishes it); archive data-package.zip for a DOI.",
        *([ask_first] if unlicensed else []),
    ]


def _shown(results: Path, studies: list[str]) -> tuple[list[str], str]:
    """Return the studies of the report in the results, and its revision; the build folder, which describes it, may have been deleted."""
    described = read_json(results / BUILD / DESCRIBED)
    return described.get("studies", studies), described.get("revision", "")


def _check_complete(results: Path, studies: list[str], inputs: Mapping[str, list[Path]]) -> None:
    """Raise StudyError if the results lack something that is published."""
    report = results / "report"
    run = " ".join(["./study run", *studies])
    needed = [report / "index.html", report / "report.pdf", *(results / name / "measurements.csv" for name in studies)]
    if lacking := [str(path) for path in needed if not path.exists()]:
        raise StudyError(f"missing: {', '.join(lacking)}; first {run}")
    shown, _ = _shown(results, studies)
    if unshown := [name for name in studies if name not in shown]:
        raise StudyError(f"{report} has no chapter of {', '.join(unshown)}; first {run}")
    for name in studies:
        if lost := _lost(results, name):
            count = "1 measured cell" if len(lost) == 1 else f"{len(lost)} measured cells"
            raise StudyError(
                f"{results} lacks the files of {count} of {name}, such as {lost[0]}; first ./study run {name}"
            )
        files = read_study(results / name).get("import", {}).get("files", [])
        if absent := sorted(set(files) - {path.name for path in inputs.get(name, ())}):
            raise StudyError(
                f"{name} was imported from {', '.join(absent)}, which is not here, so its source and licence are not known "
                "(set STUDY_REFERENCE_DATA, or ./study fetch)"
            )


def _empty_stage(target: Path) -> Path:
    """Create the folder in *target* in which the package is made. Raises StudyError if *target* is of another origin."""
    if target.exists() and not target.is_dir():
        raise StudyError(f"{target} is a file; choose another folder")
    stage = target / ".stage"
    # An interrupted run leaves the stage.
    if target.exists() and any(target.iterdir()) and not (target / "data-package.zip").exists() and not stage.exists():
        raise StudyError(f"{target} is not empty and was not made by ./study publish; choose another folder")
    shutil.rmtree(stage, ignore_errors=True)
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise StudyError(f"{target}: {error.strerror}; choose another folder") from None
    return stage


def _options_of_report(results: Path, studies: list[str], single_file: bool) -> list[str] | None:
    """Return the options of a report that has to be rendered; None if that in the results is the one to publish."""
    shown, revision = _shown(results, studies)
    if set(shown) == set(studies) and (not single_file or (results / "report" / SINGLE_FILE).exists()):
        return None
    return ["--revision", revision, *(["--single-file"] if single_file else [])]


def _fill(
    stage: Path,
    results: Path,
    studies: list[str],
    inputs: Mapping[str, list[Path]],
    config: Path,
    fresh: list[str] | None,
) -> int:
    """Write the content of the data package to *stage*; return the number of cell files. *fresh* are the options of the report if a
    new one is to be rendered.
    """
    _copy_sources(stage)
    if config.resolve() != (ROOT / "config").resolve():
        # What it lacks is taken from the checkout.
        shutil.copytree(config, stage / "config", dirs_exist_ok=True)
    # Studies may share cells.
    cells = len({path for name in studies for path in _copy_study(results, name, stage / "results")})
    if fresh is None:
        for name in ("front", "report"):
            # Earlier versions wrote no tables of the front page.
            if (results / name).exists():
                shutil.copytree(results / name, stage / "results" / name)
        if (results / "made.json").exists():
            _copy(results / "made.json", stage / "results" / "made.json")
    else:
        print(f"rendering a report of {', '.join(studies)}", flush=True)
        again.render(Path("results"), studies, fresh, stage)
        for path in (stage / "results" / BUILD, *(stage / "results").glob(".*")):
            shutil.rmtree(path, ignore_errors=True)
    if lock := spack_lock():
        _copy(lock, stage / "results" / "spack.lock")
    # The package analyses only its own studies.
    settings = stage / "config" / "config.yaml"
    own = yaml.safe_load(settings.read_text(encoding="utf-8")) | {"studies": studies, "results": "results"}
    settings.write_text(yaml.safe_dump(own, sort_keys=False, allow_unicode=True), encoding="utf-8")
    _write_json(stage / "versions.json", info())
    (stage / "ARTIFACT.md").write_text(artifact(results, studies), encoding="utf-8")
    cited, imported = read_citation(), read_imported(inputs, stage / "config")
    (stage / "CITATION.cff").write_text(
        cff(cited, (ROOT / "CITATION.cff").read_text(encoding="utf-8")), encoding="utf-8"
    )
    _write_json(stage / "codemeta.json", codemeta(cited))
    of = f"study {studies[0]}" if len(studies) == 1 else f"studies {', '.join(studies)}"
    _write_json(stage / ".zenodo.json", zenodo(cited, f"Data package of the {of}."))
    if imported:
        (stage / "imported.csv").write_bytes(table(imported))
        _copy_licences(inputs, stage / "licences")
    _write_json(stage / METADATA, crate(stage, studies, cited, imported))
    (stage / "SHA256SUMS").write_text(checksums(stage), encoding="utf-8")
    return cells


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _copy_sources(stage: Path) -> None:
    listed = ask(["git", "ls-files", "-z"], folder=ROOT)
    new = ask(["git", "ls-files", "-z", "--others", "--exclude-standard", "--", *OWN], folder=ROOT)
    # A copy inside another repository has no committed files.
    names = [name for name in (listed.stdout + new.stdout).split("\0") if name] if listed.stdout else []
    if not names:
        for source in SOURCES:
            found = [ROOT / source] if (ROOT / source).is_file() else sorted((ROOT / source).rglob("*"))
            names += [
                str(path.relative_to(ROOT)) for path in found if path.is_file() and "__pycache__" not in path.parts
            ]
    for name in names:
        path = ROOT / name
        if path.is_symlink():
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).symlink_to(path.readlink())
        elif path.is_file():
            _copy(path, stage / name)


def _copy_study(results: Path, name: str, target: Path) -> list[Path]:
    """Copy a study's files and what is stored of its cells, traces, replays and runs; return the latter."""
    shutil.copytree(results / name, target / name, ignore=shutil.ignore_patterns(".*", "pending.txt", "*.damaged-*"))
    if (digests := target / name / "made.json").exists():
        # Lists of blocks, which are not copied, must not be reported as missing.
        parts = {
            part: {file: of[file] for file in of if (target / name / file).exists()}
            for part, of in read_json(digests).items()
        }
        _write_json(digests, parts)
    files = _stored(results, name)
    for path in files:
        _copy(path, target / path.relative_to(results))
    return files


def _stored(results: Path, study: str) -> list[Path]:
    """Return the files of a study's cells, traces, replays and runs, and of those that verified its tuning files."""
    found = _works(results, study)
    return [file for path in found for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]


def _works(results: Path, study: str) -> list[Path]:
    """Return the same; of traces and replays, their folders."""
    rows = (row for name in TABLES for row in read_csv(results / study / name))
    wanted = {row["cell"] for row in rows if row.get("cell")}
    patterns = ("cells/*/*.json", "runs/*.json", "traces/*", "replays/*") if wanted else ()
    found = [path for pattern in patterns for path in results.glob(pattern) if _digest(path.name) in wanted]
    # An interrupted trace or replay leaves its hidden folder.
    return [path for path in found if not path.name.startswith(".")]


def _lost(results: Path, study: str) -> list[str]:
    """Return the measured cells of a study whose files are missing."""
    stored = {_digest(path.name) for path in _works(results, study)}
    rows = [row for row in read_csv(results / study / "cells.csv") if row.get("status") == "measured" and row["cell"]]
    return [
        f"{row['collective']} {row['algorithm']} {row['mapping']} processes {row['processes']}"
        for row in rows
        if row["cell"] not in stored
    ]


def _digest(name: str) -> str:
    """Return the digest at the end of the name of a stored file or folder."""
    return name.removesuffix(".json").rpartition("-")[2]


def _copy_licences(inputs: Mapping[str, list[Path]], target: Path) -> None:
    """Copy licences stored beside imported data, because some must be distributed with the data."""
    for folder in sorted({path.parent for paths in inputs.values() for path in paths}):
        own, number = target / folder.name, 1
        while own.exists():  # folders of several authors may have the same name
            number += 1
            own = target / f"{folder.name}-{number}"
        for path in folder.glob("LICEN[CS]E*"):
            _copy(path, own / path.name)


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _zip(stage: Path, archive: Path) -> None:
    """Write a reproducible archive, with fixed times and order."""
    temporary = archive.with_suffix(".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as stream:
        for path in sorted(p for p in stage.rglob("*") if p.is_file() or p.is_symlink()):
            entry = zipfile.ZipInfo(f"data-package/{path.relative_to(stage).as_posix()}", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            if path.is_symlink():
                entry.create_system, entry.external_attr = 3, 0o120777 << 16
                stream.writestr(entry, str(path.readlink()))
            else:
                entry.external_attr = (path.stat().st_mode & 0o777 | 0o100000) << 16
                stream.writestr(entry, path.read_bytes())
    temporary.replace(archive)


def measured_seconds(results: Path, study: str) -> float:
    """Return the total wall time (s) of the launches of a study's cells, traces, replays and runs."""
    total = 0.0
    for path in _stored(results, study):
        if path.suffix == ".json":
            document = read_json(path)
            launches = document.get("launches", [document])
            total += sum(launch.get("provenance", {}).get("seconds", 0.0) for launch in launches)
    return total


def artifact(results: Path, studies: list[str]) -> str:
    """Return the artifact appendix: command and expected time of each study, and its claims with what shows and makes them."""
    lines = [
        "# Artifact appendix", "",
        "Unpack `data-package.zip`; in its folder `data-package`:", "",
        "- check it: `sha256sum --check --quiet SHA256SUMS`",
        "- **analyse again**, without measuring: `./study reanalyse` (tables, figures and report from the measurements in",
        "  `results/`; set-up takes 1 to 5 minutes once, each study about a minute)",
        "- **measure again** on your own machine and compare: `./study run STUDY -- --config results=again`, then",
        "  `./study compare results again` (on a cluster: add `--profile slurm`, and write your machine file: `./study probe`)", "",
        "| study | command | expected time of measuring again |", "|---|---|---|",
    ]  # fmt: skip
    claims = [
        "", "## Claims", "",
        "Each sentence of the report that states a result, the files in `results/STUDY/` that show it, and the command that makes",
        "these files from the measurements. After measuring again, the files with the same names are in `again/STUDY/`.",
    ]  # fmt: skip
    for name in studies:
        document = read_study(results / name)
        seconds = measured_seconds(results, name)
        time = clock(seconds) if seconds else "no measurements of its own (imported or gathered)"
        command = f"`./study run {name} -- --config results=again`" if seconds else "`./study reanalyse`"
        study = f"{_cell(document['title'])} ({name})"
        lines.append(f"| {study} | {command} | {time} |")
        claims += ["", f"### {study}", "", "| claim | figures and tables | command |", "|---|---|---|"]
        claims += _claims(results, name)
    return "\n".join([*lines, *claims]) + "\n"


def _claims(results: Path, study: str) -> list[str]:
    """Return a row for each sentence that states a result, once. Decisions and their verification need the whole workflow."""
    made_by = {"sentences.csv": "./study reanalyse", "tuning/sentences.csv": "./study run"}
    lines: dict[str, str] = {}
    for file, command in made_by.items():
        path = results / study / file
        for row in read_csv(path) if path.exists() else ():
            if row["claim"] == "TRUE":
                shown = ", ".join(f"`{one}`" for one in row["shown_in"].split(";") if one) or "the text only"
                lines.setdefault(row["text"], f"| {_cell(row['text'])} | {shown} | `{command} {study}` |")
    return list(lines.values())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
