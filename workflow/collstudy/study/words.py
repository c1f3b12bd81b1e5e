"""Text for message sizes and algorithm parameters."""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = {
    "fanout": "fan-out {}",
    "segment_bytes": "segments of {}",
    "segments": "{} segments",
    "max_requests": "at most {} requests",
}


def size_words(size: int) -> str:
    """Format a number of bytes in the largest unit that divides it: 16 KiB, 1 MiB, 1000 B."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def parameter_text(parameters: Iterable[tuple[str, int | str]]) -> str:
    """Format the parameters of an algorithm as in tables: `key=value;...` in alphabetical order; "" if there are none."""
    return ";".join(f"{name}={value}" for name, value in sorted(parameters))


def parameter_words(parameters: Iterable[tuple[str, int | str]]) -> str:
    """Format the parameters of an algorithm: `fan-out 4, segments of 8 KiB`."""
    return ", ".join(
        _WORDS.get(name, f"{name} {{}}").format(size_words(int(value)) if name == "segment_bytes" else value)
        for name, value in parameters
    )
