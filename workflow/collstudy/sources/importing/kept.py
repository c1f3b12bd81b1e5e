"""Cache for data read from files: a JSON file with digests of its origin and of its content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically


def write(path: Path, made_of: str, content: Any) -> None:
    """Write *content* (JSON) to *path*; *made_of* is the digest of its origin."""
    text = json.dumps(content, separators=(",", ":"))
    write_atomically(path, f"{made_of}\n{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n".encode())


def read(path: Path, made_of: str) -> Any:
    """Return the cached content if it is intact and has the same origin, otherwise None."""
    try:
        first, second, text = path.read_text(encoding="utf-8").removesuffix("\n").split("\n", 2)
        if first != made_of or hashlib.sha256(text.encode()).hexdigest() != second:
            return None
        return json.loads(text)
    except (OSError, ValueError):
        return None
