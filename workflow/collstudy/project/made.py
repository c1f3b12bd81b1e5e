"""Digests of the files that a run derives from measurements, so that a file changed by hand is detected and made again.

`results/<study>/made.json` has the digests by part; those of the report and its front page are in `results/made.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from collstudy.base.digests import file_digest
from collstudy.base.files import locked, read_csv, read_json, set_aside, write_atomically

NAME = "made.json"
#: The folder, in that of a study, to which files are moved that a run no longer makes; neither reported nor published.
EARLIER = ".earlier"
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
    "tell": ("tuning/sentences.csv", "tuning/index.csv", "tables/tuning-verified.csv", "tuning/pairs.*"),
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
    listed = _listed(folder) if part == "analyse" else None
    return [name for name in found if _part_of(name) == part and (listed is None or _is_current(name, listed))]


def _listed(folder: Path) -> set[str]:
    """Return the files in the indexes of the analysis, which also finds those of earlier definitions of the study in its folders."""
    rows = [row for kind in ("tables", "models", "figures") for row in read_csv(folder / kind / "index.csv")]
    return {row[key] for row in rows for key in ("file", "interactive") if row.get(key)}


def _is_current(name: str, listed: set[str]) -> bool:
    # A figure of many points has a PNG beside its SVG.
    return (
        name in listed
        or name.removesuffix("png") + "svg" in listed
        or name.endswith(("/index.csv", "sentences.csv"))
        or name.startswith("figures/main/")
    )


def _known(folder: Path) -> dict[str, dict[str, str]]:
    """Return the content of made.json; {} if it is missing or invalid."""
    return {
        part: files for part, files in read_json(folder / NAME).items() if part in PARTS and isinstance(files, dict)
    }


def note(results: Path, study: str, part: str) -> None:
    """Store the digests of the files that a rule has just made for a study; an empty *study* means the report. Files that it made
    earlier, but not this time, are moved to EARLIER.
    """
    folder = results / study
    with locked(results / ".locks" / f"made-{study or 'report'}.lock"):
        known = _known(folder)
        made = {name: file_digest(folder / name) for name in _files(folder, part)}
        move_away(folder, known.get(part, {}).keys() - made.keys())
        _write(folder, {**known, part: made})


def retire(results: Path, study: str, products: Iterable[str]) -> list[str]:
    """Move the files of all parts that a study no longer has to EARLIER, such as those of `analysis: tuning`, which the report would
    still show. *products* are files of the others besides measurements and analysis. Returns one line if there are any.
    """
    folder, parts = results / study, {"collect", "analyse", *map(_part_of, products)}
    with locked(results / ".locks" / f"made-{study}.lock"):
        known = _known(folder)
        kept = {part: files for part, files in known.items() if part in parts or (part == "emit" and "keep" in parts)}
        names = {name for part, files in known.items() if part not in kept for name in files}
        move_away(folder, names)
        if kept == known:
            return []
        _write(folder, kept)
    return [f"{study}: {len(names)} files of an earlier definition of the study are moved to {folder / EARLIER}"]


def move_away(folder: Path, names: Iterable[str]) -> None:
    """Move the files with these names, relative to the folder of a study, to EARLIER."""
    for name in names:
        if (folder / name).is_file():
            (folder / EARLIER / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / name, folder / EARLIER / name)


def _write(folder: Path, parts: dict[str, dict[str, str]]) -> None:
    write_atomically(folder / NAME, json.dumps(parts, indent=1, sort_keys=True).encode() + b"\n")


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
