"""`./study publish`: the report for a web server and a data package to archive; analyse it again, or measure again and compare.

publish/index.html, report.pdf        the report
publish/data-package.zip              code, configuration, cells, measurements, tables, versions, checksums, RO-Crate metadata
publish/.github/workflows/pages.yml   puts the folder on GitHub Pages when it is pushed as a repository
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import toolchain
from .config import ROOT
from .errors import StudyError
from .runner import clock
from .store import write_atomically

#: What a package needs of a checkout that is no git repository.
SOURCES = (
    "Snakefile", "study", "config", "profiles", "workflow", "report", "envs", "spack", "spack.yaml", "docs", "tests", "LICENSE",
    "README.md", "CITATION.cff", "CHANGELOG.md", "pyproject.toml",
)  # fmt: skip
TYPES = {
    ".csv": "text/csv", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".html": "text/html",
    ".pdf": "application/pdf", ".yaml": "application/yaml", ".md": "text/markdown", ".conf": "text/plain",
}  # fmt: skip
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


def publish(results: Path, studies: list[str], target: Path) -> list[str]:
    """Write the folder *target*; returns lines that say what is in it. Raises StudyError when the results are not complete."""
    report = {name: results / "report" / name for name in ("index.html", "report.pdf")}
    lacking = [str(path) for path in report.values() if not path.exists()]
    lacking += [
        str(results / name / "measurements.csv")
        for name in studies
        if not (results / name / "measurements.csv").exists()
    ]
    if lacking:
        raise StudyError(f"not there: {', '.join(lacking)}; ./study run {' '.join(studies)} makes them")
    if target.exists() and not (target / "data-package.zip").exists() and any(target.iterdir()):
        raise StudyError(f"{target} is not empty and was not made by ./study publish; choose another folder")
    stage = target / ".stage"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        _copy_sources(stage)
        cells = sum(_copy_study(results, name, stage / "results") for name in studies)
        for name, path in report.items():
            _copy(path, stage / "results" / "report" / name)
        _copy_spack(stage)
        # The package analyses just its studies.
        text = (stage / "config" / "config.yaml").read_text(encoding="utf-8")
        text = re.sub(r"(?m)^studies:.*(\n[ -].*)*", f"studies: [{', '.join(studies)}]", text)
        text = re.sub(r"(?m)^results:.*", "results: results", text)
        (stage / "config" / "config.yaml").write_text(text, encoding="utf-8")
        _write_json(stage / "versions.json", toolchain.info())
        (stage / "ARTIFACT.md").write_text(artifact(results, studies), encoding="utf-8")
        _write_json(stage / "ro-crate-metadata.json", crate(stage, studies))
        (stage / "SHA256SUMS").write_text(checksums(stage), encoding="utf-8")
        archive = target / "data-package.zip"
        _zip(stage, archive)
        for name, path in report.items():
            _copy(path, target / name)
        for name in ("ARTIFACT.md", "LICENSE", "ro-crate-metadata.json"):
            if (stage / name).exists():
                _copy(stage / name, target / name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    write_atomically(target / ".nojekyll", b"")
    write_atomically(target / ".github" / "workflows" / "pages.yml", PAGES.encode())
    write_atomically(target / "SHA256SUMS", checksums(target).encode())
    return [
        f"{target}/index.html and report.pdf: the report",
        f"{target}/data-package.zip: {len(studies)} studies, {cells} cell files, {archive.stat().st_size / 1e6:.1f} MB",
        "Put the folder on any web server, or push it to GitHub (its workflow does the rest); archive data-package.zip for a DOI.",
    ]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _copy_sources(stage: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else []
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


def _copy_study(results: Path, name: str, target: Path) -> int:
    """Copy a study's files and its cells; returns how many cells."""
    shutil.copytree(results / name, target / name, ignore=shutil.ignore_patterns(".*", "pending.txt"))
    with open(results / name / "cells.csv", newline="", encoding="utf-8") as stream:
        wanted = {row["cell"] for row in csv.DictReader(stream) if row.get("cell")}
    copied = 0
    for path in (results / "cells").rglob("*.json") if wanted else ():
        if path.stem.rsplit("-", 1)[-1] in wanted:
            _copy(path, target / path.relative_to(results))
            copied += 1
    return copied


def _copy_spack(stage: Path) -> None:
    lock = toolchain.spack_lock()
    if lock:
        _copy(lock, stage / "results" / "spack.lock")


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_of(folder: Path) -> list[Path]:
    """All files in a folder, in a fixed order, without the checksums themselves."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(p for p in found if p.name != "SHA256SUMS" and ".stage" not in p.relative_to(folder).parts)


def checksums(folder: Path) -> str:
    """Lines that `sha256sum --check` reads."""
    return "".join(f"{digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files_of(folder))


def _zip(stage: Path, archive: Path) -> None:
    """The same content, the same bytes: fixed times and order."""
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


def citation() -> dict[str, str]:
    """Title, licence and version from CITATION.cff."""
    try:
        text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    keys = ("title", "version", "license", "repository-code", "abstract")
    found = {key: re.search(rf"(?m)^{key}:\s*[\"']?(.*?)[\"']?\s*$", text) for key in keys}
    return {key: match.group(1) for key, match in found.items() if match}


def crate(stage: Path, studies: list[str]) -> dict[str, Any]:
    """RO-Crate 1.1 metadata: the package as a dataset with its files, licence and the programs that made it."""
    cited = citation()
    files = [path.relative_to(stage).as_posix() for path in files_of(stage)]
    questions = [json.loads((stage / "results" / name / "study.json").read_text(encoding="utf-8")) for name in studies]
    licence = f"https://spdx.org/licenses/{cited.get('license', 'MIT')}"
    graph: list[dict[str, Any]] = [
        {
            "@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./", "@type": "Dataset", "name": cited.get("title", "A study of MPI collective communication"),
            "description": " ".join(f"{q['title']}: {q['question']}" for q in questions),
            "datePublished": datetime.now(UTC).date().isoformat(), "license": {"@id": licence},
            "keywords": "MPI, collective communication, benchmark, Slurm", "mainEntity": {"@id": "Snakefile"},
            "hasPart": [{"@id": name} for name in files],
        },
        {"@id": licence, "@type": "CreativeWork", "name": cited.get("license", "MIT")},
    ]  # fmt: skip
    for name in files:
        path = stage / name
        entry: dict[str, Any] = {
            "@id": name,
            "@type": "File",
            "contentSize": str(path.stat().st_size),
            "sha256": digest(path),
        }
        if path.suffix in TYPES:
            entry["encodingFormat"] = TYPES[path.suffix]
        if name == "Snakefile":
            entry["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
            entry["programmingLanguage"] = {"@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"}
            entry["name"] = "The workflow"
        graph.append(entry)
    graph.append(
        {
            "@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
            "@type": "ComputerLanguage",
            "name": "Snakemake",
        }
    )
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def measured_seconds(results: Path, study: str) -> float:
    """Wall time of the launches that a study's cells were made of."""
    with open(results / study / "cells.csv", newline="", encoding="utf-8") as stream:
        wanted = {row["cell"] for row in csv.DictReader(stream) if row.get("cell")}
    total = 0.0
    for path in (results / "cells").rglob("*.json") if wanted else ():
        if path.stem.rsplit("-", 1)[-1] in wanted:
            launches = json.loads(path.read_text(encoding="utf-8"))["launches"]
            total += sum(launch["provenance"]["seconds"] for launch in launches)
    return total


def artifact(results: Path, studies: list[str]) -> str:
    """The artifact appendix: claim, figure, command, expected time."""
    lines = [
        "# Artifact appendix", "",
        "Unpack `data-package.zip`; in its folder `data-package`:", "",
        "- check it: `sha256sum --check --quiet SHA256SUMS`",
        "- **analyse again**, without measuring: `./study reanalyse` (tables, figures and report from the measurements in",
        "  `results/`; set-up takes 1 to 5 minutes once, each study about a minute)",
        "- **measure again** on your own machine and compare: `./study run STUDY -- --config results=again`, then",
        "  `./study compare results again` (on a cluster: add `--profile slurm`, and write your machine file: `./study probe`)", "",
        "| claim (study) | figure | command | expected time of measuring again |", "|---|---|---|---|",
    ]  # fmt: skip
    for name in studies:
        document = json.loads((results / name / "study.json").read_text(encoding="utf-8"))
        index = results / name / "figures" / "index.csv"
        figures = []
        if index.exists():
            with open(index, newline="", encoding="utf-8") as stream:
                figures = [(row["id"], row["title"]) for row in csv.DictReader(stream)]
        seconds = measured_seconds(results, name)
        time = f"{clock(seconds)} of launches" if seconds else "imported data: nothing to measure"
        for identifier, title in figures or [("", document["title"])]:
            command = f"`./study run {name} -- --config results=again`" if seconds else "`./study reanalyse`"
            lines.append(f"| {title.replace('|', '/')} ({name}) | {identifier} | {command} | {time} |")
    return "\n".join(lines) + "\n"


def reanalyse(results: Path, studies: list[str]) -> None:
    """Tables, models, figures and report from measurements.csv as it is; nothing is measured or collected."""
    for name in studies:
        folder = results / name
        if not (folder / "measurements.csv").exists():
            raise StudyError(f"{folder / 'measurements.csv'}: no such file; a data package of ./study publish has it")
        _call(["Rscript", ROOT / "workflow" / "scripts" / "analyse.R", folder])
        print(f"{name}: tables, models and figures", flush=True)
    render = [sys.executable, "-m", "collstudy.render", "--results", results, "--studies", *studies]
    _call([*render, "--output", results / "report"])
    print(f"{results / 'report' / 'index.html'} and report.pdf")


def _call(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StudyError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-3000:]}")


KEY = ("collective", "algorithm", "parameters", "mapping", "nodes", "processes", "size_bytes", "from_rank", "to_rank")


def medians(path: Path) -> dict[tuple[str, ...], float]:
    """Median over launches of each point of a measurements.csv; latency, or bandwidth where there is no latency."""
    values: dict[tuple[str, ...], list[float]] = {}
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            value = row["latency_us"] or row.get("bandwidth_mb_s") or ""
            if value:
                values.setdefault(tuple(row.get(key, "") for key in KEY), []).append(float(value))
    return {key: statistics.median(found) for key, found in values.items()}


def compare(published: Path, again: Path) -> list[str]:
    """How measurements made again agree with the published ones, a line for each study that both folders have."""
    lines = []
    for path in sorted(published.glob("*/measurements.csv")):
        name = path.parent.name
        other = again / name / "measurements.csv"
        if not other.exists():
            lines.append(f"{name}: not measured again")
            continue
        first, second = medians(path), medians(other)
        common = [key for key in first if key in second and first[key] > 0]
        if not common:
            lines.append(f"{name}: no point in common")
            continue
        ratios = sorted(second[key] / first[key] for key in common)
        same = sum(second[key] == first[key] for key in common)
        near = sum(0.9 <= ratio <= 1.1 for ratio in ratios)
        lines.append(
            f"{name}: {len(common)} of {len(first)} points measured again; {same} identical, {100 * near / len(ratios):.0f} % within "
            f"10 %; median ratio {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}"
        )
    if not lines:
        raise StudyError(f"no */measurements.csv in {published}")
    return lines
