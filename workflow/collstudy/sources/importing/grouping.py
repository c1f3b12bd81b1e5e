"""The files of a folder that are read in the same way: of the same kind, with the same header and the same pattern of names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.sources.importing import bare_tables, csv_files, imb, nccl_tests, omb
from collstudy.sources.importing.columns import wide
from collstudy.sources.importing.file_names import TABLES, collective_of, joined, nccl_pattern, pattern_of, suffix_of
from collstudy.sources.importing.strict import read_text
from collstudy.sources.importing.words import field_of
from collstudy.study.catalogue import Catalogue

#: Endings of spreadsheets.
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
#: The part of a file (bytes) in which the output of a benchmark begins, after that of a job.
BEGINNING = 2**16


@dataclass(frozen=True)
class Group:
    """Files of one kind (csv, omb, imb, nccl-tests, or bare: a table without a header) whose paths fit a pattern."""

    kind: str
    header: tuple[str, ...]
    pattern: str
    collective: str | None
    paths: list[Path]

    @property
    def where(self) -> str:
        """Return the pattern and the number of files, as questions begin."""
        return f"{self.pattern} ({len(self.paths)} file{'s' * (len(self.paths) > 1)})"

    @property
    def first_row(self) -> int:
        """Return the number of lines of header."""
        return 0 if self.kind == "bare" else 1


def groups_of(folder: Path, catalogue: Catalogue, questions: list[str]) -> list[Group]:
    """Return the files with the same header and the same name pattern, for each collective."""
    groups: dict[tuple, list[Path]] = defaultdict(list)
    unknown: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith("_metadata.csv"):
            continue
        if path.suffix.lower() in SPREADSHEETS:
            questions.append(f"{path}: a spreadsheet is not read; export its sheets as CSV")
        if suffix_of(path.name).lower() not in TABLES and not _is_output(path):
            continue
        if strange := special(str(path)):
            questions.append(f"{path}: {strange}; rename the file")
            continue
        try:
            found = _kinds(folder, path, catalogue)
        except StudyError as problem:
            questions.append(str(problem))
            continue
        for key in found:
            groups[key].append(path)
        if not found:
            unknown.append(str(path.relative_to(folder)))
    if unknown:
        questions.append(
            f"{len(unknown)} file{'s' * (len(unknown) > 1)} without a table of times that is recognised: {', '.join(unknown[:5])}"
            + ", ..." * (len(unknown) > 5)
        )
    return [Group(*key, paths) for key, paths in joined(groups).items()]


def _kinds(folder: Path, path: Path, catalogue: Catalogue) -> list[tuple]:
    """Return kind, header, name pattern and collective of a file, for each of its collectives; [] for a file without times.

    Raises StudyError for a damaged file.
    """
    text = read_text(path)
    named = collective_of(folder, path, catalogue)
    if "# OSU MPI" in text:
        titles = [name for name in omb.collectives_of(text) if name in omb.KNOWN]
        return [
            ("omb", (), pattern_of(folder, path, catalogue, ("size",), name), name)
            for name in (titles or [named])
        ]  # fmt: skip
    if collectives := imb.collectives_of(text):
        # If a file has several process counts, a number in its name has another meaning.
        several = ("size", "processes") if len(imb.processes_of(text)) > 1 else ("size",)
        return [
            ("imb", (), pattern_of(folder, path, catalogue, several, collective), collective)
            for collective in collectives
            if collective in catalogue.algorithms
        ]
    if collective := nccl_tests.collective_of(text):
        return [("nccl-tests", (), nccl_pattern(path), collective)]
    try:
        records = [row for _, row in csv_files.records(path)]
    except StudyError:
        if suffix_of(path.name).lower() in (".csv", ".tsv"):
            raise
        return []
    kind, header = "csv", _header(path, records, named, catalogue)
    if not header:
        kind, header = "bare", bare_tables.header(records, named, catalogue)
    return [(kind, header, pattern_of(folder, path, catalogue, header, named), named)] if header else []


def special(text: str) -> str:
    """Return which characters of a path would have another meaning in the study's pattern; "" for none."""
    found = "".join(sorted(set("*?[]{}$") & set(text)))
    return f"{found} in a path is part of a pattern" if found else ""


def _is_output(path: Path) -> bool:
    """Return whether a file with another ending, such as that of a job's output (.o4711), begins like the output of a benchmark."""
    with path.open("rb") as stream:
        start = stream.read(BEGINNING).decode("utf-8", "replace")
    return "# OSU MPI" in start or imb.BANNER in start or nccl_tests.collective_of(start) is not None


def _header(path: Path, records: list[list[str]], collective: str | None, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the header of a table; for files other than CSV only if at least two columns have a known meaning (also the values of a
    wide table), or the only column has the times of a known collective.
    """
    found, second = (tuple(name.strip() for name in fields) for fields in [*records[:2], [], []][:2])
    known = sum(field_of(name) is not None for name in found)
    numbers = sum(bare_tables.number(name) is not None for name in found)
    csv = suffix_of(path.name).lower() == ".csv"
    if len(records) < 2:
        return ()
    if len(found) == 1:
        timed = not numbers and len(second) == 1 and bare_tables.number(second[0]) is not None
        return found if timed and (collective or csv) else ()
    of_times = not numbers and len(found) == len(second) and wide([*found], {}, collective, catalogue)
    return found if known >= 2 or of_times or (csv and not (known == 0 and numbers >= 2)) else ()
