"""Compact tables of other authors' data in `data/`: gzipped CSV, one row per cell, size and launch."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import to_csv, write_atomically
from collstudy.sources.importing.strict import read_text

COLUMNS = [
    "collective", "algorithm", "parameters", "mapping", "nodes", "processes", "size_bytes", "launch", "latency_us", "min_latency_us",
    "max_latency_us", "q1_us", "q3_us", "iterations", "statistic", "from_core", "to_core", "from_node", "to_node", "run",
]  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]], cores_per_node: int) -> None:
    """Write *path*; equal rows give equal bytes. Ranks of a pair are converted back to cores of nodes."""
    for row in rows:
        for end in ("from", "to"):
            if f"{end}_rank" in row:
                row[f"{end}_node"], row[f"{end}_core"] = divmod(row[f"{end}_rank"], cores_per_node)
    rows = [{**row, **{name: _short(row[name]) for name in row if name.endswith("_us")}} for row in rows]
    columns = [name for name in COLUMNS if any(row.get(name) not in (None, "") for row in rows)]
    write_atomically(path, gzip.compress(to_csv(columns, rows), mtime=0))


def _short(value: float | None) -> float | None:
    """Round to seven significant digits, which exceeds the precision of any measurement."""
    return None if value is None else float(f"{value:.7g}")


def rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and fields of each row. Raises StudyError for an invalid table."""
    try:
        text = read_text(path, gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error) as error:
        raise StudyError(f"{path}: not a compact table: {error}") from None
    try:
        header, *records = csv.reader(io.StringIO(text or "\n"), strict=True)
    except csv.Error as error:
        raise StudyError(f"{path}: not a compact table: {error}") from None
    if not set(header) <= set(COLUMNS) or "latency_us" not in header:
        raise StudyError(f"{path}: line 1: not a compact table; its columns may be {', '.join(COLUMNS)}")
    for line, fields in enumerate(records, 2):
        if len(fields) != len(header):
            raise StudyError(f"{path}: line {line}: {len(fields)} fields, the header has {len(header)}")
        yield line, dict(zip(header, fields, strict=True))
