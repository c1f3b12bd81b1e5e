"""Does Open MPI do what a rules file says? Ask the installed library, at every rule's boundary.

Its release builds do not tell which algorithm coll/tuned picked, so each size is broadcast (reduced, ...) once under the
monitoring component, and the pairs of ranks that exchanged messages are compared with those of the algorithm that the file
names; where the file leaves it to the library, with those of a launch without a rules file.
"""

from __future__ import annotations

import csv
import io
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from .config import Catalogue
from .errors import StudyError
from .patterns import PATTERNS
from .proof import message_pairs
from .rulesfile import rules_arguments
from .toolchain import Mpi, mpi_environment
from .tuning import NUMBERS, Placement, Rule, Table, in_unit, openmpi_rules, selected

#: As many ranks as are started, on few cores: enough to tell chain, trees and linear apart.
MOST_RANKS = 8
LAUNCH_LIMIT_S = 60

Pairs = frozenset[tuple[int, int]]
#: Starts the probe: (rules file or None, collective, processes, bytes) -> pairs of ranks that exchanged messages.
Probe = Callable[[Path | None, str, int, int], Pairs]


@dataclass(frozen=True)
class Finding:
    """One size at one number of processes: what the file says and whether the library's messages are those."""

    mpi: str
    file: str
    collective: str
    entry: int
    processes: int
    size_bytes: int
    rule: str
    agrees: bool
    tells_apart: bool


def boundaries(rules: tuple[Rule, ...]) -> list[int]:
    """Sizes at which a misread rule shows: one below, at, and one above each rule's first size; never 0."""
    sizes = {size for rule in rules for size in (rule.size - 1, rule.size, rule.size + 1) if size > 0}
    return sorted(sizes)


def launch(mpi: Mpi) -> Probe:
    """A probe that starts `collprobe` under *mpi* and reads the monitoring component's files."""

    def probe(path: Path | None, collective: str, processes: int, size: int) -> Pairs:
        with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
            rules = (
                rules_arguments(path, monitored=True)
                if path
                else ["--mca", "coll", "tuned,basic,libnbc,self,monitoring"]
            )
            command = [
                mpi.mpirun, "-n", str(processes), "--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none",
                "--mca", "mpi_yield_when_idle", "1", *rules, "--mca", "pml_monitoring_enable", "2",
                "--mca", "pml_monitoring_enable_output", "3", "--mca", "pml_monitoring_filename", f"{folder}/messages",
                mpi.build / "probe" / "collprobe", collective, str(size),
            ]  # fmt: skip
            done = subprocess.run(
                [str(word) for word in command], capture_output=True, text=True, timeout=LAUNCH_LIMIT_S,
                env=mpi_environment(), cwd=folder, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise StudyError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-1000:]}")
            return message_pairs(Path(folder))

    return probe


def expected_pairs(catalogue: Catalogue, collective: str, rule: Rule, processes: int) -> Pairs | None:
    """The messages of a rule's algorithm; None for the library's own decision and for shapes that are not known."""
    entry = catalogue.algorithms[collective][rule.algorithm]
    pattern = catalogue.pattern(collective, rule.algorithm, "openmpi")
    if rule.algorithm == "default" or pattern is None:
        return None
    return PATTERNS[pattern](processes, {**entry.get("openmpi", {}), **dict(rule.parameters)})


def check_placement(
    placement: Placement, path: Path, catalogue: Catalogue, mpi: str, probe: Probe,
    numbers: dict[str, dict[str, int]] | None = None, before: Placement | None = None,
) -> list[Finding]:  # fmt: skip
    """Check every entry of a placement's rules file.

    Entries for more than MOST_RANKS processes are checked in a copy of the file in which the entry holds for MOST_RANKS
    processes: sizes, algorithm and parameters are proved, the number of processes is what could not be started here.
    Entries that *before*, which was checked already, has word for word are left out.
    """
    findings = []
    numbers = {**NUMBERS, **(numbers or {})}
    references: dict[tuple[str, int, int], Pairs] = {}
    done: set[tuple] = set()
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        for collective, table in placement.tables.items():
            for entry, rules in table.items():
                moved = entry > MOST_RANKS
                processes = MOST_RANKS if moved else max(entry, 2)
                if before and before.tables[collective].get(entry) == rules:
                    continue
                if (collective, processes, rules) in done or (moved and all(r.algorithm == "default" for r in rules)):
                    continue
                done.add((collective, processes, rules))
                file, seen_table = path, table
                if moved:
                    seen_table = {0: rules}
                    # Sizes in the file are those of `entry` processes; the copy says the same bytes for fewer ranks.
                    copy = replace(placement, tables={collective: seen_table})
                    file = Path(folder) / f"{collective}-{entry}.rules"
                    file.write_text(openmpi_rules(copy, catalogue, [], numbers), encoding="utf-8")
                for size in [1] if collective == "barrier" else boundaries(rules) or [1]:
                    rule = selected(seen_table, processes, size)
                    expected = expected_pairs(catalogue, collective, rule, processes)
                    if expected is None:
                        key = (collective, processes, size)
                        if key not in references:
                            references[key] = probe(None, *key)
                        expected = references[key]
                    seen = probe(file, collective, processes, size)
                    others = _other_pairs(catalogue, collective, seen_table, processes, rule)
                    findings.append(
                        Finding(
                            mpi, path.name, collective, entry, processes, size, rule.text, seen == expected,
                            bool(others) and expected not in others,
                        )
                    )  # fmt: skip
    return findings


def _other_pairs(catalogue: Catalogue, collective: str, table: Table, processes: int, rule: Rule) -> list[Pairs | None]:
    """Messages of the other algorithms of the same entry: where one is the same, agreeing proves little."""
    rules = table[max(count for count in table if count <= processes)]
    return [
        expected_pairs(catalogue, collective, other, processes) for other in rules if other.algorithm != rule.algorithm
    ]


def complain(findings: list[Finding]) -> None:
    """Raise StudyError naming file, rule and size of every mismatch."""
    wrong = [
        f"{one.file}: {one.collective}, entry for {one.entry} processes, {one.size_bytes} B: the file says {one.rule}, "
        f"{one.mpi} with {one.processes} ranks sends other messages"
        for one in findings
        if not one.agrees
    ]
    if wrong:
        raise StudyError("Open MPI does not follow the rules file:\n  " + "\n  ".join(wrong))


def to_csv(findings: list[Finding]) -> bytes:
    """check.csv."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, [field.name for field in fields(Finding)], lineterminator="\n")
    writer.writeheader()
    rows: list[dict[str, Any]] = [asdict(one) for one in findings]
    writer.writerows({k: str(v).upper() if isinstance(v, bool) else v for k, v in row.items()} for row in rows)
    return stream.getvalue().encode()


def unit_of(collective: str, size: int, processes: int) -> int:
    """Bytes that a rule must name for a probe of *size* bytes a rank."""
    return in_unit(collective, size, processes)
