"""Digests of the files that a run derives from a study's measurements: a file changed by hand is detected and remade.

`results/<study>/made.json` has the digests by rule; files that other rules write to the same folders are not included.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from collstudy.base.digests import file_digest
from collstudy.base.files import locked, write_atomically

NAME = "made.json"
#: The rules that record digests, with their files; of a folder, all files except those that begin with one of OTHERS.
PARTS = {
    "collect": ("measurements.csv", "cells.csv", "ranks.csv", "edges.csv"),
    "analyse": ("tables", "models", "figures", "sentences.csv"),
}
#: Tables of the rules that tune and sample.
OTHERS = ("tuning-", "sampling.", ".")


def _files(folder: Path, part: str) -> list[str]:
    """The existing files of a part, relative to the study's folder."""
    found = []
    for name in PARTS[part]:
        top = folder / name
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        found += [path for path in inside if path.is_file() and not path.name.startswith(OTHERS)]
    return [str(path.relative_to(folder)) for path in found]


def _known(folder: Path) -> dict[str, dict[str, str]]:
    """The content of made.json; empty if it is missing or invalid."""
    try:
        known = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {part: files for part, files in known.items() if part in PARTS and isinstance(files, dict)}


def note(folder: Path, part: str) -> None:
    """Store the digests of the files that a rule has just made for the study in *folder*."""
    with locked(folder.parent / ".locks" / f"made-{folder.name}.lock"):
        made = {name: file_digest(folder / name) for name in _files(folder, part)}
        content = json.dumps({**_known(folder), part: made}, indent=1, sort_keys=True)
        write_atomically(folder / NAME, content.encode() + b"\n")


def changed(folder: Path) -> dict[str, list[str]]:
    """By part: files that differ from their digests, each with the reason; empty if no digests are known."""
    found: dict[str, list[str]] = {}
    for part, files in _known(folder).items():
        for name, digest in files.items():
            path = folder / name
            if path.is_dir():
                problem = "is a folder"
            elif not path.is_file():
                problem = "is not there"
            else:
                problem = "" if file_digest(path) == digest else "was changed"
            if problem:
                found.setdefault(part, []).append(f"{name} {problem}")
    return found


def make_room(folder: Path) -> list[str]:
    """Rename folders that stand in the place of derived files to `<name>.damaged-<n>`; one line for each."""
    lines = []
    for files in _known(folder).values():
        for path in (folder / name for name in files):
            if not path.is_dir():
                continue
            number = 1
            while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
                number += 1
            os.rename(path, aside)
            lines.append(f"{path} is a folder: set aside as {aside.name}")
    return lines


def count(folder: Path) -> int:
    """The number of derived files with a digest."""
    return sum(len(files) for files in _known(folder).values())
