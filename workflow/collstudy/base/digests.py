"""Digests of the project's own sources, so that a changed analysis or report runs again and a copied result tree does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from collstudy.base.files import write_if_changed
from collstudy.base.paths import ROOT


def note_sources(path: Path, parts: Iterable[str]) -> Path:
    """Write the digest of the files in *parts* (files or folders of the checkout) to *path* if it changed; return *path*.

    The file is newer than what was made from other sources, and as old as before otherwise, whatever the sources' time stamps.
    """
    digest = hashlib.sha256()
    for part in parts:
        top = ROOT / part
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for file in files:
            if "tests" in file.parts or "__pycache__" in file.parts or file.suffix in (".Rd", ".md"):
                continue
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    write_if_changed(path, digest.hexdigest().encode() + b"\n")
    return path
