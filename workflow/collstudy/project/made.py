"""Digests of the files that a run derives from measurements, so that a file changed by hand is detected and made again.

`results/<study>/made.json` has the digests by part; those of the report and its front page are in `results/made.json`.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path

from collstudy.base.digests import file_digest
from collstudy.base.files import locked, read_json, set_aside, write_atomically

NAME = "made.json"
#: The rules that record digests, with patterns of their files (`*` also matches `/`); a file belongs to the first match.
PARTS = {
    "collect": (
        "measurements.csv",
        "cells.csv",
        "ranks.csv",
        "edges.csv",
        "exchanges.csv",
        "import-checks.csv",
        "agreement.csv",
    ),
    "decide": ("tuning/decisions.csv", "tables/tuning-regret.csv", "tables/tuning-shared.csv"),
    "sample": ("tables/sampling.csv", "tuning/sampling.svg", "tuning/sampling.png"),
    "emit": ("tuning/check-emitted.csv", "tuning/pending.txt"),
    "tell": ("tuning/sentences.csv", "tuning/index.csv", "tables/tuning-verified.csv", "tuning/pairs.svg"),
    "keep": ("tuning/*", "tables/tuning-*"),
    "analyse": ("tables/*", "models/*", "figures/*", "sentences.csv"),
    "front": ("front/*",),
    "report": ("report/*",),
}


def _part_of(name: str) -> str | None:
    """Return the part that a file belongs to."""
    found = (part for part, patterns in PARTS.items() if any(fnmatchcase(name, pattern) for pattern in patterns))
    return next(found, None)


def _files(folder: Path, part: str) -> list[str]:
    """Return the existing files of a part, relative to *folder*, without hidden and set-aside files."""
    found = []
    for top in sorted({folder / pattern.split("/")[0] for pattern in PARTS[part]}):
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        names = [path.relative_to(folder) for path in inside if path.is_file()]
        found += [str(name) for name in names if not name.name.startswith(".") and ".damaged-" not in str(name)]
    return [name for name in found if _part_of(name) == part]


def _known(folder: Path) -> dict[str, dict[str, str]]:
    """Return the content of made.json; {} if it is missing or invalid."""
    return {
        part: files for part, files in read_json(folder / NAME).items() if part in PARTS and isinstance(files, dict)
    }


def note(results: Path, study: str, part: str) -> None:
    """Store the digests of the files that a rule has just made for a study; an empty *study* means the report."""
    folder = results / study
    with locked(results / ".locks" / f"made-{study or 'report'}.lock"):
        made = {name: file_digest(folder / name) for name in _files(folder, part)}
        content = json.dumps({**_known(folder), part: made}, indent=1, sort_keys=True)
        write_atomically(folder / NAME, content.encode() + b"\n")


def changed(folder: Path) -> dict[str, list[str]]:
    """Return, by part, the files that differ from their digests, with the reason; {} if no digests are stored."""
    found: dict[str, list[str]] = {}
    for part, files in _known(folder).items():
        for name, digest in files.items():
            path = folder / name
            if path.is_dir():
                problem = "is a folder"
            elif not path.is_file():
                problem = "is missing"
            else:
                problem = "" if file_digest(path) == digest else "was changed"
            if problem:
                found.setdefault(part, []).append(f"{name} {problem}")
    return found


def make_room(folder: Path) -> list[str]:
    """Rename folders in the place of derived files, and files in the place of their folders, to `<name>.damaged-<n>`.

    Returns one line for each.
    """
    lines = []
    for path in (folder / name for files in _known(folder).values() for name in files):
        kind = "folder" if path.is_dir() else "file"
        if kind == "file" and (path := path.parent).is_dir():
            continue
        if os.path.lexists(path):
            lines.append(f"{path} is a {kind}: set aside as {set_aside(path).name}")
    return lines


def count(folder: Path) -> int:
    """Return the number of derived files that have a digest."""
    return sum(len(files) for files in _known(folder).values())
