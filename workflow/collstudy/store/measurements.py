"""The one reader of measurements.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.files import read_csv


@dataclass(frozen=True)
class Measurement:
    """One row: point, launch and *value*, the latency (us) or, if there is none, the bandwidth (MB/s)."""

    collective: str
    algorithm: str
    parameters: str
    mapping: str
    nodes: int
    processes: int
    size: int | None
    launch: int
    value: float
    #: The ranks of a pair, for rows of pairs.
    pair: tuple[int, int] | None

    @property
    def name(self) -> str:
        """The algorithm with its parameters, as the analysis names variants."""
        return self.algorithm + (f" [{self.parameters}]" if self.parameters else "")

    @property
    def point(self) -> tuple:
        """The fields that all launches of one point share."""
        where = (self.collective, self.algorithm, self.parameters, self.mapping, self.nodes, self.processes, self.size)
        return (*where, *(self.pair or ()))


def whole(text: str | int | None) -> int | None:
    """A whole number; None for an empty field. R writes large ones as 1e+05."""
    return None if text is None or text == "" else int(float(text))


def measurement(row: Mapping[str, Any]) -> Measurement:
    """A row of measurements.csv that has a value, as it was read, or before it is written."""
    ends = whole(row.get("from_rank")), whole(row.get("to_rank"))
    return Measurement(
        row["collective"], row["algorithm"], row["parameters"], row["mapping"], int(row["nodes"]), int(row["processes"]),
        whole(row["size_bytes"]), int(row["launch"]), float(row["latency_us"] or row.get("bandwidth_mb_s")),
        None if None in ends else ends,
    )  # fmt: skip


def read_rows(path: Path) -> list[dict[str, str]]:
    """All rows of a measurements.csv with all their columns; none where there is no file."""
    return read_csv(path)


def read_measurements(path: Path) -> Iterator[Measurement]:
    """The rows of a measurements.csv that have a value."""
    return (measurement(row) for row in read_rows(path) if row["latency_us"] or row.get("bandwidth_mb_s"))
