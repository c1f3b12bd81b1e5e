"""Read YAML files strictly: YAML 1.2, unique keys, finite numbers, checked against a schema; errors name file and line."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.paths import SCHEMAS, SETUP

#: Suffix of the file with a machine's fitted costs.
FITTED_SUFFIX = ".fitted.yaml"
#: Cache of parsed and validated texts by digest: every job reads the same files, and parsing them would take longer
#: than the rest of a short job. Any file in this folder may be deleted.
PARSED = SETUP / "documents"
#: Maximum number of cached texts.
MOST_PARSED = 500


def shown(path: Path) -> str:
    """Return *path* relative to the working directory if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


@dataclass(frozen=True)
class Place:
    """The position of a key in a YAML file, for messages. `place / "sweeps" / 0` is a nested key; str() gives `file, line n: key.key`."""

    file: Path
    lines: Mapping[tuple, int]
    keys: tuple = ()

    def __truediv__(self, key: str | int) -> Place:
        return Place(self.file, self.lines, (*self.keys, key))

    def __str__(self) -> str:
        if not self.keys:
            return shown(self.file)
        # A key that is missing (or is in another file) gets the line of the nearest enclosing key.
        known = (self.keys[:end] for end in range(len(self.keys), 0, -1))
        line = next((self.lines[keys] for keys in known if keys in self.lines), None)
        at = f", line {line}" if line else ""
        return f"{shown(self.file)}{at}: {'.'.join(map(str, self.keys))}"


def read_document(path: Path, schema: str) -> tuple[dict[str, Any], Place]:
    """Read *path*, validate it against `workflow/schemas/<schema>.schema.yaml`, and return it with its Place for messages.

    Raises StudyError that names file, line, key and the allowed values.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"{shown(path)}: no such file") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{shown(path)}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise StudyError(f"{shown(path)} cannot be read: {error.strerror}") from None
    known = _read_cache(text, schema)
    if known is None:
        # Imported only when needed: the parser and the validator take long to load.
        from collstudy.study.parsing import parse

        known = parse(text, schema, shown(path))
        _write_cache(text, schema, *known)
    document, lines = known
    return document, Place(path, lines)


@functools.cache
def _checked_by(schema: str) -> bytes:
    """Return the digest of the schema and of the parser's source; a change of either invalidates the cache."""
    sources = (SCHEMAS / f"{schema}.schema.yaml", Path(__file__).with_name("parsing.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def _parsed_path(text: str, schema: str) -> Path:
    return PARSED / f"{hashlib.sha256(_checked_by(schema) + text.encode()).hexdigest()}.json"


def _read_cache(text: str, schema: str) -> tuple[dict[str, Any], dict[tuple, int]] | None:
    """Return the cached result of `parse` for a text; None if it is missing or truncated."""
    try:
        known = json.loads(_parsed_path(text, schema).read_bytes())
        return known["document"], {tuple(keys): line for keys, line in known["lines"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write_cache(text: str, schema: str, document: dict[str, Any], lines: dict[tuple, int]) -> None:
    """Cache the result of `parse` without flushing to disk: a truncated file is invalid JSON and is ignored."""
    path = _parsed_path(text, schema)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        PARSED.mkdir(exist_ok=True)
        if len(old := list(PARSED.iterdir())) >= MOST_PARSED:
            for one in old:
                one.unlink(missing_ok=True)
        temporary.write_text(json.dumps({"document": document, "lines": list(lines.items())}))
        os.replace(temporary, path)


def read_yaml(path: Path, schema: str) -> dict[str, Any]:
    """Return the content of *path*; like read_document, but without its Place."""
    return read_document(path, schema)[0]
