"""The call that is asked about: a collective at a placement and a message size."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

UNITS = {"": 1, "b": 1, "k": 1024, "kib": 1024, "m": 1 << 20, "mib": 1 << 20, "kb": 1000, "mb": 1_000_000, "g": 1 << 30,
         "gib": 1 << 30}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A collective at a placement and a message size (bytes; None for a collective without one)."""

    collective: str
    mapping: str
    nodes: int
    processes: int
    size: int | None

    @property
    def label(self) -> str:
        """Return one line that describes the question."""
        size = "" if self.size is None else f", {self.size} B"
        return f"{self.collective} on {count_of_nodes(self.nodes)}, {self.processes} processes, mapping {self.mapping}{size}"


def count_of_nodes(nodes: int) -> str:
    """Return `1 node`, `2 nodes`, ..."""
    return f"{nodes} node{'s' * (nodes != 1)}"


def parse_size(text: str) -> int:
    """Convert `64KiB`, `64k` or `65536` to bytes. Raises argparse.ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", text)
    if not found or found.group(2).lower() not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; allowed: 65536, 64KiB, 1MiB and the like")
    return int(float(found.group(1)) * UNITS[found.group(2).lower()])
