"""Read a tuning file of any format, which is recognised from its content."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from collstudy.base.errors import StudyError, allowed
from collstudy.tuning.readers.classic import read_classic
from collstudy.tuning.readers.coll import is_coll, read_coll
from collstudy.tuning.readers.han import is_han, read_han
from collstudy.tuning.readers.known import FORMATS, Known
from collstudy.tuning.readers.located import parse_json
from collstudy.tuning.readers.mpich import read_mpich, read_subtrees
from collstudy.tuning.readers.openmpi_json import read_openmpi_json
from collstudy.tuning.readers.others import read_intel, read_nccl
from collstudy.tuning.readers.ucc import read_ucc
from collstudy.tuning.tuningfile import TuningFile


def read(path: Path, known: Known) -> TuningFile:
    """Read a file of any format. Raises StudyError for a truncated file, or one that is not a tuning file."""
    text = _text(path)
    format_ = _format_of(path, text)
    readers: dict[str, Callable[[Path, str, Known], TuningFile]] = {
        "openmpi": read_classic, "openmpi-han": read_han, "json": _read_json, "intel": read_intel, "ucc": read_ucc, "nccl": read_nccl,
        "coll": read_coll,
    }  # fmt: skip
    found = readers[format_](path, text, known)
    return replace(found, faults=tuple(sorted(found.faults, key=lambda fault: fault.line)))


def _text(path: Path) -> str:
    if path.is_dir():
        raise StudyError(f"{path}: is a folder; give one tuning file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from None
    if not content.strip():
        raise StudyError(f"{path}: is empty")
    if b"\0" in content:
        raise StudyError(f"{path}: is not a text file; tuning files are: {', '.join(FORMATS.values())}")
    # Comments may be in another encoding than UTF-8: libraries read bytes.
    return content.decode(errors="replace")


def _format_of(path: Path, text: str) -> str:
    # Open MPI skips a byte order mark, like everything that is not a number.
    text = text.removeprefix("\ufeff")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise StudyError(f"{path}: contains only comments, no rule")
    if lines[0][0] in "{[":
        return "json"
    for word, name in ((r"\bI_MPI_ADJUST_\w+", "intel"), (r"\bUCC_\w*TUNE\s*=", "ucc")):
        if any(re.search(word, line) for line in lines):
            return name
    if any(re.match(r"[a-z_]+\s*,\s*-?\d+\s*,\s*-?\d+\s*,", line) for line in lines):
        return "nccl"
    if is_coll(lines):
        return "coll"
    if is_han(text):
        return "openmpi-han"
    if re.match(r"rule-file-version-|\d", lines[0]):
        return "openmpi"
    raise StudyError(f"{path}: not a tuning file of a known format" + allowed(FORMATS.values()))


def _read_json(path: Path, text: str, known: Known) -> TuningFile:
    found = parse_json(path, text)
    trees = found if isinstance(found, list) else [found]
    if isinstance(found, dict) and "collectives" in found:
        return read_openmpi_json(path, found, known)
    if isinstance(found, dict) and any(key.startswith("name=") for key in found):
        return read_subtrees(path, found, known)
    if trees and all(isinstance(tree, dict) and any("collective=" in key for key in tree) for tree in trees):
        return read_mpich(path, trees, known)
    raise StudyError(f"{path}: JSON, but neither rules of Open MPI 6.0 nor a selection tree of MPICH")
