"""A rules file as the selection of a cell (study/selection.py): where it is stored, and how libraries are made to use it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically
from collstudy.base.paths import SETUP
from collstudy.launch import mca
from collstudy.study.selection import digest_of


def rules_file(text: str) -> Path:
    """Write a rules file to its own path under .study/ (visible on all nodes) and return the path."""
    path = SETUP / "rules" / f"{digest_of(text)[:16]}.txt"
    if not path.exists():
        write_atomically(path, text.encode())
    return path


def parameter_line(name: str, value: Any) -> str:
    """Return a comment for a rules file that names an MCA parameter which its rules require."""
    return f"# mca {name} {value}"


def is_parameter(line: str) -> bool:
    """Return whether a line of a rules file is such a comment."""
    return line.startswith("# mca ")


def rules_arguments(path: Path, monitored: bool = False, han: Path | None = None, text: str = "") -> list[str]:
    """Return the `--mca` arguments that make Open MPI's coll/tuned use a rules file with the content *text* (default: read *path*).

    Other components are excluded, unless *han* is a rules file for coll/han.
    """
    settings: dict[str, Any] = {} if han else {"coll": mca.MONITORED if monitored else mca.COMPONENTS}
    settings |= {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_dynamic_rules_filename": path}
    text = text or (path.read_text(encoding="utf-8") if path.exists() else "")
    settings |= dict(re.findall(r"^# mca (\w+) (\S+)$", text, re.MULTILINE))
    if han:
        settings |= {"coll_han_use_dynamic_file_rules": 1, "coll_han_dynamic_rules_filename": han}
    return mca.arguments_of(settings)


def exported(text: str) -> dict[str, str]:
    """Return the variables that lines `export NAME='value'` set (Intel MPI's rules)."""
    return dict(re.findall(r"^export (\w+)='([^']*)'$", text, re.MULTILINE))
