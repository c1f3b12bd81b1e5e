"""The digest of a file."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
