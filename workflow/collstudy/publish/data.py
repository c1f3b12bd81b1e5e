"""Origin and licence of imported data from other authors, from config/data.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.files import to_csv
from collstudy.base.lazy import lazy

yaml = lazy("yaml")

#: Licences of data that data.yaml does not name, and of data whose authors name none.
NOT_STATED, NONE_SEEN = "not stated", "none seen"
COLUMNS = ["file", "sha256", "studies", "source", "licence"]


@dataclass(frozen=True)
class Imported:
    """A file that studies imported: its folder and name, digest, source and licence."""

    file: str
    sha256: str
    studies: tuple[str, ...]
    source: str
    licence: str

    def described(self) -> dict[str, Any]:
        """Return the file as an entity of an RO-Crate."""
        facts = {
            "@type": "CreativeWork",
            "name": self.file,
            "sha256": self.sha256,
            "description": f"Imported data; licence: {self.licence}",
        }
        if self.source != NOT_STATED:
            facts |= {"url": self.source} if self.source.startswith("http") else {"isBasedOn": self.source}
        return facts


def read_imported(inputs: Mapping[str, list[Path]], config: Path) -> list[Imported]:
    """Return the files in *inputs* (study -> files) without duplicates. An entry of data.yaml (in *config*) matches the folder of a file
    or the beginning of its name (such as orfeo-epyc-tallone-p2p.csv.gz in data/); the longest match applies.
    """
    known = config / "data.yaml"
    entries = (yaml.safe_load(known.read_text(encoding="utf-8")) if known.exists() else None) or {}
    users: dict[Path, list[str]] = {}
    for study, paths in inputs.items():
        for path in paths:
            users.setdefault(path, []).append(study)
    found = []
    for path, studies in sorted(users.items()):
        names = [name for name in entries if path.parent.name == name or path.name.startswith(name)]
        entry = entries[max(names, key=len)] if names else {}
        found.append(
            Imported(
                f"{path.parent.name}/{path.name}", file_digest(path), tuple(studies), entry.get("source", NOT_STATED),
                entry.get("licence", NOT_STATED),
            )
        )  # fmt: skip
    return found


def table(imported: list[Imported]) -> bytes:
    """Return imported.csv of a package."""
    return to_csv(COLUMNS, [{**vars(one), "studies": " ".join(one.studies)} for one in imported])
