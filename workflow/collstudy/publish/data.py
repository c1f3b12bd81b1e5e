"""Origin and licence of imported data of other authors, from config/data.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.files import to_csv
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT

yaml = lazy("yaml")

NOT_STATED = "not stated"
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
        """The file as an entity of an RO-Crate."""
        facts = {
            "@type": "CreativeWork",
            "name": self.file,
            "sha256": self.sha256,
            "description": f"Imported data; licence: {self.licence}",
        }
        if self.source != NOT_STATED:
            facts |= {"url": self.source} if self.source.startswith("http") else {"isBasedOn": self.source}
        return facts


def read_imported(inputs: Mapping[str, list[Path]]) -> list[Imported]:
    """The files of *inputs* (study -> files), each once. config/data.yaml has an entry for the folder of a file or, for tables of data/,
    for its name without suffixes (orfeo-epyc-tallone-p2p.csv.gz: the longest matching prefix).
    """
    known = ROOT / "config" / "data.yaml"
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
    """imported.csv of a package."""
    return to_csv(COLUMNS, [{**vars(one), "studies": " ".join(one.studies)} for one in imported])
