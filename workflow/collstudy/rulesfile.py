"""A rules file as a cell's way to choose algorithms: its content is part of the cell's identity, its path is not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from .cells import Cell
from .store import write_atomically
from .toolchain import SETUP


def rules_selection(text: str, library: str | None = None) -> dict[str, Any]:
    """The selection of a cell whose algorithms a rules file chooses. Its content, not its path, is part of the identity."""
    return {
        "rules": {"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text},
        **({"library_version": library} if library else {}),
    }


def rules_file(cell: Cell) -> Path:
    """Write the cell's rules to a file of its own under .study/ (all nodes see it) and return its path."""
    rules = cell.selection["rules"]
    path = SETUP / "rules" / f"{rules['sha256'][:16]}.txt"
    if not path.exists():
        write_atomically(path, rules["text"].encode())
    return path


def rules_arguments(path: Path, monitored: bool = False) -> list[str]:
    """The `--mca` arguments that let Open MPI's coll/tuned, and no other component, follow a rules file."""
    settings = {
        "coll": "tuned,basic,libnbc,self" + (",monitoring" if monitored else ""),
        "coll_tuned_use_dynamic_rules": 1,
        "coll_tuned_dynamic_rules_filename": path,
    }
    return [part for key, value in settings.items() for part in ("--mca", key, str(value))]


def rules_environment(cell: Cell) -> dict[str, str]:
    """What makes the collectives library follow the cell's rules file."""
    return {"COLL_RULES": str(rules_file(cell))}
