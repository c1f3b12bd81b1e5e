"""A rules file as a cell's way to choose algorithms: its content is part of the cell's identity, its path is not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically
from collstudy.base.paths import SETUP
from collstudy.study.cells import Cell


def rules_selection(text: str, library: str | None = None, han: str | None = None) -> dict[str, Any]:
    """The selection of a cell whose algorithms a rules file chooses, and *han* the component, where Open MPI's coll/han has one.

    The content of the files, not their path, is part of the identity.
    """
    return {
        "rules": _content(text),
        **({"han_rules": _content(han)} if han else {}),
        **({"library_version": library} if library else {}),
    }


def _content(text: str) -> dict[str, str]:
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text}


def rules_file(cell: Cell, key: str = "rules") -> Path:
    """Write the cell's rules to a file of its own under .study/ (all nodes see it) and return its path."""
    rules = cell.selection[key]
    path = SETUP / "rules" / f"{rules['sha256'][:16]}.txt"
    if not path.exists():
        write_atomically(path, rules["text"].encode())
    return path


def han_file(cell: Cell) -> Path | None:
    """The same for the rules of coll/han, where the cell has some."""
    return rules_file(cell, "han_rules") if "han_rules" in cell.selection else None


def rules_arguments(path: Path, monitored: bool = False, han: Path | None = None) -> list[str]:
    """The `--mca` arguments that let Open MPI's coll/tuned follow a rules file.

    No other component has a say, except where a file of *han* says which one has.
    """
    settings: dict[str, Any] = {} if han else {"coll": "tuned,basic,libnbc,self" + (",monitoring" if monitored else "")}
    settings |= {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_dynamic_rules_filename": path}
    if han:
        settings |= {"coll_han_use_dynamic_file_rules": 1, "coll_han_dynamic_rules_filename": han}
    return [part for key, value in settings.items() for part in ("--mca", key, str(value))]


def rules_environment(cell: Cell) -> dict[str, str]:
    """What makes the collectives library follow the cell's rules file."""
    return {"COLL_RULES": str(rules_file(cell))}


def exported(text: str) -> dict[str, str]:
    """The variables that lines `export NAME='value'` set (Intel MPI's rules)."""
    return dict(re.findall(r"^export (\w+)='([^']*)'$", text, re.MULTILINE))
