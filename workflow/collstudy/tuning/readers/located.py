"""Parse JSON and keep the lines of its objects."""

from __future__ import annotations

import json
import json.scanner
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError


class Located(dict):
    """A JSON object with the line on which it begins."""

    line: int = 0


class _LocatedDecoder(json.JSONDecoder):
    """Decoder that returns Located objects; only Python's own scanner (not the C one) reveals where an object begins."""

    def __init__(self) -> None:
        super().__init__()
        parse = self.parse_object

        def parse_object(where: tuple[str, int], *rest: Any) -> tuple[Located, int]:
            pairs, end = parse(where, *rest)
            found = Located(pairs)
            found.line = where[0].count("\n", 0, where[1]) + 1
            return found, end

        self.parse_object = parse_object
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def parse_json(path: Path, text: str) -> Any:
    """Parse a JSON text to Located objects. Raises StudyError that names the line of a fault."""
    try:
        return _LocatedDecoder().decode(text)
    except json.JSONDecodeError as error:
        end = " (truncated?)" if error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg else ""
        raise StudyError(f"{path}, line {error.lineno}: invalid JSON{end}: {error.msg}") from None
    except RecursionError:
        raise StudyError(f"{path}: not a tuning file: too many nested levels") from None
