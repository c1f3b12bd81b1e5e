"""What describes a data package to machines: checksums, and RO-Crate 1.1 metadata."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collstudy.base.paths import ROOT

TYPES = {
    ".csv": "text/csv", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".html": "text/html",
    ".pdf": "application/pdf", ".yaml": "application/yaml", ".md": "text/markdown", ".conf": "text/plain",
}  # fmt: skip


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
