"""Findings of a check of a tuning file: their table, and the error that lists what the library does not follow."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv, to_csv


@dataclass(frozen=True)
class Finding:
    """Result for one size and process count: the rule in the file, and whether the library agrees (asked, or by its messages)."""

    mpi: str
    file: str
    collective: str
    entry: int
    processes: int
    size_bytes: int
    rule: str
    agrees: bool
    tells_apart: bool
    asked: bool = False


def checked(findings: list[Finding]) -> str:
    """Return how many rule boundaries were checked, and how many of these checks would have noticed a wrong rule."""
    return (
        f"{len(findings)} sizes around rule boundaries checked; at {sum(one.tells_apart for one in findings)} of them "
        "a wrong rule would have been noticed"
    )


def complain(findings: list[Finding]) -> None:
    """Raise StudyError that names file, rule and size of every mismatch."""
    wrong = [
        f"{one.file}: {one.collective}, entry for {one.entry} processes, {one.size_bytes} B: the file has {one.rule}, "
        f"but {one.mpi} with {one.processes} ranks "
        + ("selects another algorithm" if one.asked else "runs another algorithm")
        for one in findings
        if not one.agrees
    ]
    if wrong:
        raise StudyError(f"{findings[0].mpi} does not follow the rules file:\n  " + "\n  ".join(wrong))


def findings_csv(findings: list[Finding]) -> bytes:
    """Return the content of check.csv."""
    return to_csv([field.name for field in fields(Finding)], [asdict(one) for one in findings])


def read_findings(path: Path) -> list[Finding]:
    """Read the output of findings_csv."""
    return [
        Finding(
            row["mpi"], row["file"], row["collective"], int(row["entry"]), int(row["processes"]), int(row["size_bytes"]),
            row["rule"], *(row.get(key) == "TRUE" for key in ("agrees", "tells_apart", "asked")),
        )
        for row in read_csv(path)
    ]  # fmt: skip
