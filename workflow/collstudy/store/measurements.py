"""Read measurements.csv; all other modules read it through this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv


@dataclass(frozen=True)
class Measurement:
    """One row: a point, a launch, and *value*: the latency (us) or, if there is none, the bandwidth (MB/s)."""

    collective: str
    algorithm: str
    parameters: str
    mapping: str
    nodes: int
    processes: int
    size: int | None
    launch: int
    value: float
    #: The two ranks of the pair, in rows of the `pairs` benchmark; otherwise None.
    pair: tuple[int, int] | None
    #: The study that measured it (in rows of a gathering study, another one), and the MPI library.
    study: str = ""
    mpi: str = ""
    #: The algorithm whose messages were sent, if it has another name (docs/files.md).
    runs: str = ""

    @property
    def name(self) -> str:
        """Return the algorithm with its parameters, as text for people."""
        return self.algorithm + (f" [{self.parameters}]" if self.parameters else "")

    @property
    def point(self) -> tuple:
        """Return the fields that all launches of one point share."""
        where = (
            self.study,
            self.mpi,
            self.collective,
            self.algorithm,
            self.parameters,
            self.mapping,
            self.nodes,
            self.processes,
            self.size,
        )
        return (*where, *(self.pair or ()))


def whole(text: str | int | None) -> int | None:
    """Convert a field to an integer; None if it is empty. Goes through float because R writes large integers as 1e+05."""
    return None if text is None or text == "" else int(float(text))


def measurement(row: Mapping[str, Any]) -> Measurement:
    """Convert a row of measurements.csv (read from the file or about to be written) that has a latency or a bandwidth."""
    ends = whole(row.get("from_rank")), whole(row.get("to_rank"))
    return Measurement(
        row["collective"], row["algorithm"], row["parameters"], row["mapping"], int(row["nodes"]), int(row["processes"]),
        whole(row["size_bytes"]), int(row["launch"]), float(row["latency_us"] or row.get("bandwidth_mb_s")),
        None if None in ends else ends, row.get("study") or "", row.get("mpi") or "",
        row.get("runs") or "",
    )  # fmt: skip


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return all rows of a measurements.csv with all columns, or [] if the file does not exist."""
    return read_csv(path)


def read_measurements(path: Path) -> Iterator[Measurement]:
    """Return the rows of a measurements.csv that have a latency or a bandwidth; like the analysis, without launches whose forced
    algorithm did not run or that an import check flagged. Raises StudyError for a row that is incomplete or is no measurement.
    """
    for number, row in enumerate(read_rows(path), 1):
        try:
            if None in row.values():
                raise ValueError("it ends too early")
            if (
                row.get("proved") != "FALSE"
                and not row.get("flag")
                and (row["latency_us"] or row.get("bandwidth_mb_s"))
            ):
                yield measurement(row)
        except (KeyError, ValueError) as error:
            why = f"it has no column {error}" if isinstance(error, KeyError) else error
            raise StudyError(f"{path}: row {number} is not a measurement: {why}") from None
