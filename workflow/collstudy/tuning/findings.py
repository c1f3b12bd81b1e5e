"""What a check of a tuning file found: its table, and the error that names what the library does not follow."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError

#: Follows the library's label in findings that were asked for, not seen in messages.
ASKED = ", asked"


@dataclass(frozen=True)
class Finding:
    """One size at one number of processes: the rule of the file, and whether the library's messages match it."""

    mpi: str
    file: str
    collective: str
    entry: int
    processes: int
    size_bytes: int
    rule: str
    agrees: bool
    tells_apart: bool


def complain(findings: list[Finding]) -> None:
    """Raise StudyError naming file, rule and size of every mismatch."""
    wrong = [
        f"{one.file}: {one.collective}, entry for {one.entry} processes, {one.size_bytes} B: the file has {one.rule}, "
        f"but {one.mpi} with {one.processes} ranks "
        + ("selects another algorithm" if one.mpi.endswith(ASKED) else "sends other messages")
        for one in findings
        if not one.agrees
    ]
    if wrong:
        raise StudyError(f"{findings[0].mpi} does not follow the rules file:\n  " + "\n  ".join(wrong))


def findings_csv(findings: list[Finding]) -> bytes:
    """check.csv."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, [field.name for field in fields(Finding)], lineterminator="\n")
    writer.writeheader()
    rows: list[dict[str, Any]] = [asdict(one) for one in findings]
    writer.writerows({k: str(v).upper() if isinstance(v, bool) else v for k, v in row.items()} for row in rows)
    return stream.getvalue().encode()


def read_findings(path: Path) -> list[Finding]:
    """Read the output of findings_csv."""
    with open(path, newline="", encoding="utf-8") as stream:
        return [
            Finding(
                row["mpi"], row["file"], row["collective"], int(row["entry"]), int(row["processes"]), int(row["size_bytes"]),
                row["rule"], row["agrees"] == "TRUE", row["tells_apart"] == "TRUE",
            )
            for row in csv.DictReader(stream)
        ]  # fmt: skip
