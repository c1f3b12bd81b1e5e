"""File output of all parts of the project: atomic, locked against concurrent writers, one CSV dialect."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from collstudy.base.errors import StudyError


def write_atomically(path: Path, content: bytes, sole_writer: bool = False) -> None:
    """Write *content* under a temporary name in the same folder, flush it to disk, and rename it to *path*.

    A *sole_writer*, such as the holder of a lock, always uses the same name, and so replaces what a killed one left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if sole_writer:
        temporary = str(path.with_name(f".{path.name}.tmp"))
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    else:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_if_changed(path: Path, content: bytes) -> None:
    """Like write_atomically, but leaves a file with the same content (and its time stamp) alone."""
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    write_atomically(path, content)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on *path*; the system releases it when the process ends, however it ends."""
    with _lock_file(path) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _lock_file(path: Path) -> IO[str]:
    """Open a lock file. Raises StudyError if something else is in its place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a")
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        raise StudyError(f"{error.filename}: {error.strerror}; remove it: a lock file belongs in its place") from None


def to_csv(columns: list[str], rows: list[dict[str, Any]]) -> bytes:
    """CSV text with a header; None becomes an empty field, floats keep all their digits."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_texts([row.get(column) for row in rows]) for column in columns), strict=True))
    return stream.getvalue().encode()


def _texts(values: list[Any]) -> list[Any]:
    """A column as the CSV writer takes it: by itself it writes None as an empty field, and floats with all their digits."""
    if bool not in set(map(type, values)):
        return values
    return [("TRUE" if value else "FALSE") if isinstance(value, bool) else value for value in values]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of ours; empty where there is no file, or none that is whole."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header; none where there is no file."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        return []
