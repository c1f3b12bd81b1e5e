"""Read text and numbers in other authors' files strictly."""

from __future__ import annotations

import functools
import gzip
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError

#: Upper limits: 1000 s per call (in us), a tebibyte per message (in bytes).
LONGEST_US = 1e9
LARGEST = 2**40
#: A message between two cores takes longer than this (us); a cache line does.
CACHE_LINE = 0.02
#: Units of time in microseconds.
UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
#: Units of size in bytes.
SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ODD = (
    (re.compile(r"[+-]?\d+,\d+", re.ASCII), "has a decimal comma"),
    (re.compile(r"[+-]?nan", re.IGNORECASE), "is not a number (NaN)"),
    (re.compile(r"[+-]?inf(inity)?", re.IGNORECASE), "is infinite"),
    (re.compile(r"[\d._+-]*_[\d._eE+-]*"), "has an underscore"),
)


class Refused(Exception):
    """A row that cannot be used; the text is the reason."""


@dataclass
class Problems:
    """Unused rows and anomalies, counted by reason, with the first place of each."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def note(self, reason: str, where: str = "", count: int = 1) -> None:
        """Count a reason; its first *where* is stored."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        self.first.setdefault(reason, where)

    def counted(self) -> dict[str, int]:
        """Return {reason with its first place: count}."""
        return {
            text + (f" (first: {self.first[text]})" if self.first[text] else ""): count
            for text, count in self.counts.items()
        }


def listed(value: Any) -> list[Any]:
    """Return the values of a key that has one or a list of them."""
    return value if isinstance(value, list) else [value]


def read_text(path: Path, content: bytes | None = None) -> str:
    """Return the text of a UTF-8 file (also gzipped, or with a byte order mark). Raises StudyError with file, line and reason."""
    try:
        content = path.read_bytes() if content is None else content
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise StudyError(f"{path}: a damaged gzip file: {error}") from None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise StudyError(f"{path}: line 1: the file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise StudyError(f"{path}: line {line}: a zero byte: the file is binary (or UTF-16), not text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{path}: line {line}: the byte 0x{content[error.start]:02x} is not UTF-8, possibly Latin-1: convert the file "
            "(iconv -f LATIN1 -t UTF-8)"
        ) from None


def decimal(text: str, what: str) -> float:
    """Convert a decimal number in ASCII digits with a point. Raises Refused with the reason, which begins with *what*."""
    text = text.strip()
    if not _DECIMAL.fullmatch(text):
        if not text:
            raise Refused(f"{what} is empty")
        for pattern, reason in _ODD:
            if pattern.fullmatch(text):
                raise Refused(f"{what} {reason}")
        if any(letter.isdigit() and not letter.isascii() for letter in text):
            raise Refused(f"{what} has digits other than 0 to 9")
        raise Refused(f"{what} is not a number")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Refused(f"{what} is too large")
    return value


def positive(text: str, what: str, largest: float) -> float:
    """Convert a positive number not above *largest*. Raises Refused."""
    value = decimal(text, what)
    if value < 0:
        raise Refused(f"{what} is negative")
    if value == 0:
        raise Refused(f"{what} is zero")
    if value > largest:
        raise Refused(f"{what} is too large (above {largest:.3g})")
    return value


# Cached: files repeat the same few process counts and sizes in thousands of rows.
@functools.lru_cache(maxsize=4096)
def whole(text: str, what: str, largest: float = LARGEST, smallest: int = 1) -> int:
    """Convert an integer: 1.0 is accepted, 1.5 is not. Raises Refused."""
    value = decimal(text, what)
    if value != int(value):
        raise Refused(f"{what} is not a whole number")
    if value < 0:
        raise Refused(f"{what} is negative")
    if value < smallest:
        raise Refused(f"{what} is {int(value)}")
    if value > largest:
        raise Refused(f"{what} is too large (above {largest:.3g})")
    return int(value)
