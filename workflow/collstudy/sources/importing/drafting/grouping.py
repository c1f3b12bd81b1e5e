"""The files of a folder that are read in the same way: of the same kind, with the same header and the same pattern of names."""

from __future__ import annotations

import glob
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.sources.importing.drafting import bare_tables
from collstudy.sources.importing.drafting.columns import wide
from collstudy.sources.importing.drafting.file_names import (
    TABLES,
    Place,
    collective_of,
    joined,
    names_count,
    nccl_pattern,
    numbers_of,
    pattern_of,
    suffix_of,
)
from collstudy.sources.importing.files import files_of_entries, from_name, glob_of
from collstudy.sources.importing.formats import csv_files, nccl_tests, omb, pico
from collstudy.sources.importing.formats.outputs import OUTPUTS
from collstudy.sources.importing.strict import read_text
from collstudy.sources.importing.words import COLLECTIVE, field_of, plain
from collstudy.study.catalogue import Catalogue

#: Endings of results that are not read, and how they become CSV.
UNREAD = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "a spreadsheet is not read; export its sheets as CSV"),
    **dict.fromkeys((".json", ".jsonl", ".parquet", ".pkl", ".npy", ".npz", ".db", ".sqlite"),
        "this format is not read; write a CSV table of its times"),
}  # fmt: skip
#: Endings of archives, whose files are not read (PICO's are read with their metadata beside them).
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip", ".7z", ".rar", ".bz2", ".xz", ".zst")
#: Endings of documents and scripts, which may quote results of others.
DOCUMENTS = (
    ".md", ".markdown", ".rst", ".adoc", ".tex", ".bib", ".html", ".ipynb", ".rmd", ".qmd", ".sh", ".sbatch", ".slurm", ".py", ".r",
)  # fmt: skip
#: The part of a file (bytes) in which the output of a benchmark begins, after that of a job.
BEGINNING = 2**16


#: Function that adds a question about a group of files.
Ask = Callable[[str], None]


@dataclass(frozen=True)
class Group:
    """Files of one kind (csv, bare: a table without a header, or one of OUTPUTS) whose paths fit a pattern."""

    kind: str
    header: tuple[str, ...]
    pattern: str
    collective: str | None
    paths: list[Path]
    #: Open questions about all files.
    questions: list[str]

    @property
    def where(self) -> str:
        """Return the pattern and the number of files, as questions begin."""
        return f"{self.pattern} ({len(self.paths)} file{'s' * (len(self.paths) > 1)})"

    def ask(self, text: str, about: str = "") -> None:
        """Add a question about the files, or about one of their collectives."""
        self.questions.append(f"{self.where}: {about}: {text}" if about else f"{self.where}: {text}")

    @property
    def first_row(self) -> int:
        """Return the number of lines of header."""
        return 0 if self.kind == "bare" else 1


def groups_of(folder: Path, catalogue: Catalogue, questions: list[str]) -> list[Group]:
    """Return the files with the same header and the same name pattern, for each collective."""
    groups: dict[tuple, list[Path]] = defaultdict(list)
    unknown: list[Path] = []
    unread: dict[str, list[str]] = defaultdict(list)
    every = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("_metadata.csv")]
    runs = pico.runs_of(folder)
    every = [path for path in every if not any(path.is_relative_to(run) for run in runs)]
    numbers = numbers_of(folder, every)
    for path in every:
        if path.name.lower().endswith(ARCHIVES):
            unread["an archive is not read; unpack it, or put <system>_metadata.csv beside runs of PICO"].append(
                str(path.relative_to(folder))
            )
            continue
        if how := UNREAD.get(path.suffix.lower()):
            unread[how].append(str(path.relative_to(folder)))
        if path.suffix.lower() in (*UNREAD, *DOCUMENTS):
            continue
        if suffix_of(path.name).lower() not in TABLES and not _is_result(path):
            continue
        if strange := special(str(path)):
            questions.append(f"{path}: {strange}; rename the file")
            continue
        try:
            found = _kinds(folder, path, catalogue, numbers[path])
        except StudyError as problem:
            unread[str(problem).removeprefix(f"{path}: ")].append(str(path.relative_to(folder)))
            continue
        for key in found:
            groups[key].append(path)
        if not found:
            unknown.append(path)
        elif others := _others(path, found, catalogue):
            unread[_not_imported(others)].append(str(path.relative_to(folder)))
    questions += [f"{_some(names)}: {how}" for how, names in unread.items()]
    headers = {header for _, header, *_ in groups}
    empty = [path for path in unknown if _without_rows(path, headers)]
    for paths, without in (
        (empty, "rows"),
        ([path for path in unknown if path not in empty], "a table of times that is recognised"),
    ):
        names = [str(path.relative_to(folder)) for path in paths]
        if names:
            questions.append(f"{len(names)} file{'s' * (len(names) > 1)} without {without}: {_some(names)}")
    found = _distinct([Group(*key, paths, questions) for key, paths in joined(groups).items()])
    read = {str(path) for group in found for path in group.paths}
    skipped = {str(path) for path in empty}
    mine: dict[str, set[str]] = defaultdict(set)
    for group in found:
        mine[group.pattern] |= {str(path) for path in group.paths}
    matched = [
        (entry["path"], str(path)) for entry, path in files_of_entries([{"path": pattern} for pattern in sorted(mine)])
    ]
    for pattern in sorted(mine):
        taken = {path for of, path in matched if of == pattern} - mine[pattern]
        others = sorted((({*glob.glob(glob_of({"path": pattern}))} - read) | taken) - skipped)
        if others:
            questions.append(
                f"{pattern}: matches {_some(others)} too, whose content is another; move "
                f"{'them' if len(others) > 1 else 'it'} to another folder"
            )
    return found


def _without_rows(path: Path, headers: set[tuple[str, ...]]) -> bool:
    """Return whether a file is empty, or has only the header of other files."""
    if not read_text(path).strip():
        return True
    try:
        records = [fields for _, fields in csv_files.records(path)]
    except StudyError:
        return False
    return len(records) == 1 and tuple(name.strip() for name in records[0]) in headers


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + ", ..." * (len(names) > 5)


def _distinct(groups: list[Group]) -> list[Group]:
    """Return the groups; if tables with different headers have the same pattern with *, only the largest group keeps it."""
    found = []
    for group in groups:
        same = [one for one in groups if one.pattern == group.pattern and one.kind in ("csv", "bare")]
        if (
            len(same) < 2
            or "*" not in group.pattern
            or "{" in group.pattern
            or group is max(same, key=lambda one: len(one.paths))
        ):
            found.append(group)
        else:
            found += [replace(group, pattern=str(path), paths=[path]) for path in group.paths]
    return found


def _kinds(folder: Path, path: Path, catalogue: Catalogue, numbers: dict[Place, str]) -> list[tuple]:
    """Return kind, header, name pattern and collective of a file, for each of its collectives; [] for a file without times. *numbers*
    has the meaning of numbers in its name.

    Raises StudyError for a damaged file, and for output of benchmarks that are not imported.
    """
    text = read_text(path)
    named = collective_of(folder, path, catalogue)

    def pattern(header: tuple[str, ...], collective: str | None) -> str:
        return pattern_of(folder, path, catalogue, header, collective, numbers)

    for kind, output in OUTPUTS.items():
        if output.is_output(text):
            names = _collectives(path, output, text, named, catalogue)
            if output is nccl_tests:
                return [(kind, (), nccl_pattern(folder, path), name) for name in names]
            said = {name: output.ranks_said(text, name) for name in names}
            # If a file has several process counts, a number in its name has another meaning (of OMB, only the job says counts).
            several = {name for name in names if len({*said[name]}) > 1 and output is not omb}
            patterns = {name: pattern(("size", "processes") if name in several else ("size",), name) for name in names}
            return [(kind, (), _without_contradiction(path, said[name], patterns[name]), name) for name in names]
    try:
        records = [row for _, row in csv_files.records(path)]
    except StudyError:
        if suffix_of(path.name).lower() in (".csv", ".tsv"):
            raise
        return []
    kind, header = "csv", _header(path, records, named, catalogue)
    if not header:
        kind, header = "bare", bare_tables.header(records, named, catalogue)
    return [(kind, header, pattern(header, named), named)] if header else []


def _collectives(path: Path, output: Any, text: str, named: str | None, catalogue: Catalogue) -> list[str | None]:
    """Return the collectives of an output, *named* by its file if it does not tell. Raises StudyError if none is imported."""
    titles = output.collectives_of(text)
    if titles is None:
        return [named]
    known = [name for name in titles if name in catalogue.algorithms]
    if not known and output is omb and named:
        return [named]  # whose title is not understood
    if not known and output is not nccl_tests:
        raise StudyError(f"{path}: {_not_imported(titles)}")
    return known


def _others(path: Path, found: list[tuple], catalogue: Catalogue) -> list[str]:
    """Return the benchmarks of an output that are not imported beside those that are *found* in it."""
    (kind, *_), text = found[0], read_text(path)
    titles = (OUTPUTS[kind].collectives_of(text) or []) if kind in OUTPUTS else []
    others = [name for name in titles if name not in catalogue.algorithms]
    return others if len(others) < len(titles) else []


def _not_imported(benchmarks: list[str]) -> str:
    several = "s" * (len(benchmarks) > 1)
    return f"output of the benchmark{several} {', '.join(benchmarks) or '?'}, which is not imported"


def _without_contradiction(path: Path, said: list[str], pattern: str) -> str:
    """Return the pattern without {processes} if no word says so, and the output has other numbers of ranks."""
    counts = from_name(path, {"path": pattern})
    if said and counts.get("processes", said[0]) not in said and not names_count(pattern, "processes"):
        return pattern.replace("{processes}", "*")
    return pattern


def special(text: str) -> str:
    """Return which characters of a path would have another meaning in the study's pattern; "" for none."""
    found = "".join(sorted(set("*?[]{}$") & set(text)))
    return f"{found} in a path is part of a pattern" if found else ""


def _is_result(path: Path) -> bool:
    """Return whether a file with another ending, such as that of a job's output (.o4711), begins like the output of a benchmark, or a
    file without ending like a table of numbers.
    """
    with path.open("rb") as stream:
        content = stream.read(BEGINNING)
    if b"\0" in content:
        return False  # a compiled benchmark has the titles of its output, too
    start = content.decode("utf-8", "replace")
    table = not path.suffix and bare_tables.has_numbers(start)
    return table or any(output.is_output(start) for output in OUTPUTS.values())


def _header(path: Path, records: list[list[str]], collective: str | None, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the header of a table; for files other than CSV only if at least two columns have a known meaning (also the values of a
    wide table), or the only column has the times of a known collective.
    """
    found, second = (tuple(name.strip() for name in fields) for fields in [*records[:2], [], []][:2])
    known = sum(field_of(name) is not None or plain(name) in COLLECTIVE for name in found)
    numbers = sum(bare_tables.number(name) is not None for name in found)
    csv = suffix_of(path.name).lower() == ".csv"
    if len(records) < 2:
        return ()
    if len(found) == 1:
        timed = not numbers and len(second) == 1 and bare_tables.number(second[0]) is not None
        return found if timed and (collective or csv) else ()
    # Rows of numbers below a corner and numbers are a wide table.
    corner = (
        numbers == len(found) - 1 > 1
        and bare_tables.number(found[0]) is None
        and bare_tables.number(second[0]) is not None
    )
    if corner and collective:
        return found
    if not csv and all(len(row) != len(found) for row in records[1:]):
        return ()
    of_times = not numbers and len(found) == len(second) and wide([*found], {}, collective, catalogue)
    return found if known >= 2 or of_times or (csv and not (known == 0 and numbers >= 2)) else ()
