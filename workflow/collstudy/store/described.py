"""The one reader of study.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError


def read_study(folder: Path) -> dict[str, Any]:
    """study.json in the folder of a study's results. Raises StudyError if there is none, or one of an earlier version."""
    path = folder / "study.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
    if "provenance" not in document:
        raise StudyError(f"{path} is of an earlier version: ./study run {folder.name} writes it again")
    return document
