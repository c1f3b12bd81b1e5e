"""SHA-256 digests of files and of the project's own sources. A changed source makes the analysis or report run again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from collstudy.base.paths import ROOT


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(parts: Iterable[str]) -> bytes:
    """Return one digest of all files in *parts* (files or folders of the checkout) as a line; tests and manual pages are ignored."""
    digest = hashlib.sha256()
    for part in parts:
        top = ROOT / part
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for file in files:
            inside = file.relative_to(ROOT)
            if "tests" in inside.parts or "__pycache__" in inside.parts or file.suffix in (".Rd", ".md"):
                continue
            digest.update(str(inside).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest().encode() + b"\n"
