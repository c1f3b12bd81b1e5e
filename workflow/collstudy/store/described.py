"""Read study.json; all other modules read it through this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError


def read_study(folder: Path) -> dict[str, Any]:
    """Return the study.json of a results folder. Raise StudyError if it cannot be read or an earlier version wrote it."""
    path = folder / "study.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
    if "provenance" not in document:
        raise StudyError(f"{path} is of an earlier version: ./study run {folder.name} writes it again")
    return document
