"""File output for the whole project: atomic writes, locks against concurrent writers, one CSV dialect."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from collstudy.base.errors import StudyError

#: What a file system without locks answers.
WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def write_atomically(path: Path, content: bytes, sole_writer: bool = False) -> None:
    """Write *content* to a temporary file in the same folder, flush it to disk, and rename it to *path*.

    With *sole_writer* (the caller holds a lock), the temporary name is fixed, so a file that a killed writer left is overwritten.
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
    except BaseException as problem:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(problem, OSError):
            problem.filename = str(path)  # a write to a full disk names no file
        raise


def write_if_changed(path: Path, content: bytes) -> None:
    """Call write_atomically unless the file already has this content, so that its time stamp is kept."""
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    write_atomically(path, content)


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder to `<name>.damaged-<n>` and return the new path. Raises FileNotFoundError."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    os.rename(path, aside)
    return aside


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on *path*; the operating system releases it when the process ends, for whatever reason. If another
    process holds it, call *waiting* first. Raise StudyError if the file system has no locks.
    """
    with _lock_file(path) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            raise StudyError(
                f"{path}: {error.strerror}: its file system has no locks between processes (flock), as Lustre mounted without the option "
                "flock; use a checkout and a results folder on another one"
            ) from None
        yield


def _lock_file(path: Path) -> IO[str]:
    """Open a lock file. Raise StudyError if *path* is a folder or lies below a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a")
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        raise StudyError(f"{error.filename}: {error.strerror}; remove it: a lock file belongs in its place") from None


def to_csv(columns: list[str], rows: list[dict[str, Any]]) -> bytes:
    """Return CSV text with a header; None becomes an empty field, and floats keep all their digits."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_texts([row.get(column) for row in rows]) for column in columns), strict=True))
    return stream.getvalue().encode()


def _texts(values: list[Any]) -> list[Any]:
    """Write booleans as TRUE and FALSE; the CSV writer itself writes None as an empty field and floats with all their digits."""
    if bool not in set(map(type, values)):
        return values
    return [("TRUE" if value else "FALSE") if isinstance(value, bool) else value for value in values]


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of this project, or {} if the file is missing or is not a complete JSON object."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a header, or [] if there is no such file (a folder in its place is set aside by a run).

    Raises StudyError if the file is no such text.
    """
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return []
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} cannot be read: byte {error.start + 1} is not UTF-8") from None
    except csv.Error as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
