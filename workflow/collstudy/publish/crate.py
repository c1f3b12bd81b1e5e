"""Machine-readable description of a data package: checksums and an RO-Crate."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.model.person import Person
from rocrate.rocrate import ROCrate

from collstudy.base.digests import file_digest
from collstudy.publish.citation import Citation
from collstudy.publish.data import Imported
from collstudy.store.described import read_study

METADATA = "ro-crate-metadata.json"
TYPES = {
    ".csv": "text/csv", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".html": "text/html",
    ".pdf": "application/pdf", ".yaml": "application/yaml", ".md": "text/markdown", ".conf": "text/plain",
}  # fmt: skip


def files_of(folder: Path) -> list[Path]:
    """Return all files in a folder in a fixed order, without the checksum file and those of git, which change with every commit."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(
        p for p in found if p.name != "SHA256SUMS" and p.relative_to(folder).parts[0] not in (".stage", ".git")
    )


def checksums(folder: Path) -> str:
    """Return lines for `sha256sum --check`."""
    return "".join(f"{file_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files_of(folder))


def crate(stage: Path, studies: list[str], cited: Citation, imported: list[Imported]) -> dict[str, Any]:
    """Return RO-Crate 1.1 metadata (profile Workflow RO-Crate): the files, authors, licence, workflow and imported data of a package."""
    questions = [read_study(stage / "results" / name) for name in studies]
    made = ROCrate(version="1.1")
    root = made.root_dataset
    root["name"] = cited.title
    root["description"] = " ".join(f"{q['title']}: {q['question']}" for q in questions)
    root["datePublished"] = datetime.now(UTC).date().isoformat()
    root["version"] = cited.version
    root["keywords"] = ", ".join(cited.keywords)
    root["license"] = made.add(
        ContextEntity(
            made,
            f"https://spdx.org/licenses/{cited.license}",
            {"@type": "CreativeWork", "name": cited.license, "description": f"{cited.license}: see the file LICENSE"},
        )
    )
    people = [
        made.add(Person(made, f"#author-{number}", author.described()))
        for number, author in enumerate(cited.authors, start=1)
    ]
    root["author"] = root["publisher"] = people
    for path in files_of(stage):
        name = path.relative_to(stage).as_posix()
        facts: dict[str, Any] = {"name": name, "contentSize": str(path.stat().st_size), "sha256": file_digest(path)}
        if path.suffix in TYPES:
            facts["encodingFormat"] = TYPES[path.suffix]
        if name == "Snakefile":
            workflow = made.add_workflow(
                path, name, main=True, lang="snakemake", properties=facts | {"name": cited.title}
            )
            workflow["license"], workflow["author"] = root["license"], people
        elif name != METADATA:
            made.add_file(path, name, properties=facts)
    for number, data in enumerate(imported, start=1):
        entity = made.add(ContextEntity(made, f"#imported-{number}", data.described()))
        for study in data.studies:
            measurements = made.dereference(f"results/{study}/measurements.csv")
            measurements.append_to("isBasedOn", entity)
    return made.metadata.generate()
