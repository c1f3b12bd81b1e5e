"""Read study.json; all other modules read it through this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.study.names import LIBRARIES


def read_study(folder: Path) -> dict[str, Any]:
    """Return the study.json of a results folder. Raise StudyError if it cannot be read or an earlier version wrote it."""
    path = folder / "study.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}; ./study run {folder.name} writes it") from None
    except ValueError as error:
        raise StudyError(f"{path} cannot be read: {error}; ./study run {folder.name} writes it again") from None
    if not isinstance(document, dict) or not isinstance(document.get("provenance"), dict):
        raise StudyError(f"{path} is damaged or of an earlier version: ./study run {folder.name} writes it again")
    return document


def versions_of(how: dict[str, Any], *kinds: str) -> list[tuple[str, str]]:
    """Return names and versions of the software of these *kinds* (suite, mpi) in a study's provenance."""
    found = []
    for kind in kinds:
        names, version = how.get(kind, "").split(", "), how.get(f"{kind}_version", "")
        versions = version.split(", ") if len(names) > 1 else [version]
        pairs = zip(names, versions, strict=True) if len(names) == len(versions) else [(how[kind], version)]
        found += [(LIBRARIES.get(name, name), its) for name, its in pairs]
    return found


def with_versions(how: dict[str, Any], *kinds: str) -> str:
    """Return the same as text: `Open MPI 5.0.11, MPICH 5.0.2`."""
    return ", ".join(filter(None, (f"{name} {version}".strip() for name, version in versions_of(how, *kinds))))
