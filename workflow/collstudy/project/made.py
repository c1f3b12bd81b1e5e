"""What a run made of a study's measurements, by digest: a file that was changed by hand is found and made again.

`results/<study>/made.json` has the digests by the rule that made the files; what other rules write beside them is theirs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from collstudy.base.digests import file_digest
from collstudy.base.files import locked, write_atomically

NAME = "made.json"
#: The rules that note what they made, with their files; of a folder, all but what begins with one of OTHERS.
PARTS = {
    "collect": ("measurements.csv", "cells.csv", "ranks.csv", "edges.csv"),
    "analyse": ("tables", "models", "figures", "sentences.csv"),
}
#: Tables of the rules that tune and sample.
OTHERS = ("tuning-", "sampling.", ".")


def _files(folder: Path, part: str) -> list[str]:
    """The files of a part that are there, relative to the study's folder."""
    found = []
    for name in PARTS[part]:
        top = folder / name
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        found += [path for path in inside if path.is_file() and not path.name.startswith(OTHERS)]
    return [str(path.relative_to(folder)) for path in found]


def _known(folder: Path) -> dict[str, dict[str, str]]:
    """What made.json says; nothing where it is not there or something else."""
    try:
        known = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {part: files for part, files in known.items() if part in PARTS and isinstance(files, dict)}


def note(folder: Path, part: str) -> None:
    """Keep the digests of what a rule just made of the study in *folder*."""
    with locked(folder.parent / ".locks" / f"made-{folder.name}.lock"):
        made = {name: file_digest(folder / name) for name in _files(folder, part)}
        content = json.dumps({**_known(folder), part: made}, indent=1, sort_keys=True)
        write_atomically(folder / NAME, content.encode() + b"\n")


def changed(folder: Path) -> dict[str, list[str]]:
    """By part: what of it is not as it was made, each with what is wrong; nothing where it is not known what was made."""
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
    """Rename folders that are where files were made to `<name>.damaged-<n>`, and say so in a line for each."""
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
    """How many files are known to have been made."""
    return sum(len(files) for files in _known(folder).values())
