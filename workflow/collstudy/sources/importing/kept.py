"""Cache for data read from files: a JSON file with digests of its origin and of its content."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically

#: Errors of folders in which this user cannot write.
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def write(path: Path, made_of: str, content: Any) -> None:
    """Write *content* (JSON) to *path*; *made_of* is the digest of its origin. In a read-only checkout, nothing is cached."""
    text = json.dumps(content, separators=(",", ":"))
    try:
        write_atomically(path, f"{made_of}\n{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n".encode())
    except OSError as problem:
        if problem.errno not in READ_ONLY:
            raise


def read(path: Path, made_of: str) -> Any:
    """Return the cached content if it is intact and has the same origin, otherwise None."""
    try:
        first, second, text = path.read_text(encoding="utf-8").removesuffix("\n").split("\n", 2)
        if first != made_of or hashlib.sha256(text.encode()).hexdigest() != second:
            return None
        return json.loads(text)
    except (OSError, ValueError):
        return None
