"""Read somebody's measurements: CSV files with a column mapping, or raw standard output of OMB.

Nothing is hidden: duplicates, rows that do not parse, columns that a file lacks and gaps in the grid are counted.
"""

from __future__ import annotations

import csv
import functools
import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.paths import ROOT
from collstudy.launch.output import parse
from collstudy.sources.edges import Launched, of_rows
from collstudy.sources.imported_rows import grid_of, rows_of_import
from collstudy.sources.source import Rows, Source
from collstudy.study.config import POINT_TO_POINT, SIZED, Catalogue, Imported, Machine, Study
from collstudy.study.work import Work, canonical

NUMBERS = ("nodes", "processes", "size_bytes", "launch", "iterations")
#: Of a ladder: which two cores, by their number on their node.
PLACES = ("from_core", "to_core", "from_node", "to_node")
VALUES = ("latency_us", "min_latency_us", "max_latency_us", "bandwidth_mb_s")
OPTIONAL = ("min_latency_us", "max_latency_us", "iterations", "nodes", "launch")


class ImportedSource(Source):
    """Rows of somebody's files: nothing is to be done for them."""

    described_by = Imported

    @functools.cached_property
    def found(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The rows, and the account of them. Raises StudyError for files that are not there or do not say what they should."""
        rows, account = read_study(self.study, self.context.catalogue)
        collectives = grid_of(rows, self.context.catalogue)
        self.context.configuration.check_imported(self.study, collectives)
        return rows, account | {"collectives": collectives}

    def work(self) -> list[Work]:
        """None."""
        return []

    def describe(self) -> dict[str, Any]:
        """What was imported."""
        said, account = self.study.source, self.found[1]
        assert isinstance(said, Imported)
        how = {name: getattr(said, name) for name in ("suite", "suite_version", "mpi", "mpi_version")}
        return {
            "collectives": account["collectives"],
            "decisions": {},
            "how": how | {"simulator": "", "simulator_version": ""},
            "cells": hashlib.sha256(canonical([])).hexdigest(),
            "import": account,
        }

    def rows(self) -> Rows:
        """Those of the files."""
        return rows_of_import(self.study, *self.found)

    def absent(self) -> str:
        """A pattern that matches no file."""
        missing = missing_files(self.study)
        return f"no file matches {missing[0]} (set STUDY_REFERENCE_DATA)" if missing else ""

    def check(self) -> None:
        """Read everything."""
        self.files()

    def inputs(self) -> list[Path]:
        """The files."""
        return [path for _, path in files_of(self.study)]

    def launched(self) -> list[Launched]:
        """What the rows say."""
        assert isinstance(self.study.source, Imported)
        return of_rows(self.found[0], self.study.source.mpi, self.context.catalogue)

    def judged(self) -> list[str]:
        """Without files for a library, collectives are judged on held-out cells."""
        assert isinstance(self.study.source, Imported)
        judged = any(entry["collective"] not in POINT_TO_POINT for entry in self.study.source.files)
        own = super().judged()
        return own if "tuning" in self.study.analysis or not judged else ["tables/tuning-regret.csv", *own]

    def products(self) -> list[str]:
        """Judgements are made where no tuning files are."""
        found = super().products()
        return found if "tuning" in self.study.analysis else [*self.judged(), *found]


def data_folder() -> str:
    """Where the reference data are: STUDY_REFERENCE_DATA, default ../shared/data beside the checkout."""
    return os.environ.get("STUDY_REFERENCE_DATA") or str(ROOT.parent / "shared" / "data")


def _resolve(pattern: str) -> str:
    """Put environment variables into a path; a relative one starts at the checkout."""
    text = pattern.replace("${STUDY_REFERENCE_DATA}", data_folder())
    return str(ROOT / os.path.expandvars(text))


def files_of(study: Study) -> list[tuple[dict[str, Any], Path]]:
    """The files that a study imports, with the entry of the study's YAML that names each; may be empty."""
    found = []
    for entry in study.source.files:
        found += [(entry, Path(path)) for path in sorted(glob.glob(_glob_of(entry)))]
    return found


def _glob_of(entry: dict[str, Any]) -> str:
    """The file pattern of an entry; {field} in its path stands for any text."""
    return re.sub(r"\{\w+\}", "*", _resolve(entry["path"]))


def missing_files(study: Study) -> list[str]:
    """Patterns of the study that match no file."""
    patterns = [_glob_of(entry) for entry in study.source.files]
    return [pattern for pattern in patterns if not glob.glob(pattern)]


def _rows_of_csv(path: Path, entry: dict[str, Any], problems: Counter) -> Iterator[dict[str, str]]:
    columns = entry.get("columns", {})
    with open(path, newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        header = [name.strip() for name in next(reader, [])]
        if not header:
            raise StudyError(f"{path}: the file is empty")
        for field, name in columns.items():
            if name not in header:
                if field not in OPTIONAL:
                    raise StudyError(f"{path}: no column {name!r} for {field}{allowed(header)}")
                problems[f"files without the column {name}"] += 1
        for fields in reader:
            if not any(text.strip() for text in fields):
                continue
            if len(fields) != len(header):
                problems[f"{path.name}: rows with a wrong number of fields"] += 1
                continue
            row = dict(zip(header, (text.strip() for text in fields), strict=True))
            yield {field: row[name] for field, name in columns.items() if name in row}


def _rows_of_omb(path: Path, entry: dict[str, Any], problems: Counter) -> Iterator[dict[str, str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    found = [int(size) for size in re.findall(r"^(\d+)\s+[\d.]", text, re.MULTILINE)]
    sizes: list[int | None] = list(found) if entry["collective"] in SIZED else [None]
    if not sizes:
        raise StudyError(f"{path}: no measurement in it; is it the standard output of an OSU micro-benchmark?")
    try:
        samples = parse(text, sizes)
    except StudyError as problem:
        raise StudyError(f"{path}: {problem}") from None
    doubled = [sizes[0] * 2**i for i in range(len(sizes))] if sizes[0] else [None]
    if sizes != doubled:
        problems["raw outputs whose sizes do not double"] += 1
    for sample in samples:
        yield {key: str(value) for key, value in sample.items()}


def _from_name(path: Path, entry: dict[str, Any]) -> dict[str, str]:
    """Fields that the file's name tells by {algorithm}, {processes}, ... in the path of the entry."""
    pattern = re.escape(_resolve(entry["path"])).replace(r"\*", ".*")
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", pattern)
    found = re.fullmatch(pattern, str(path))
    return found.groupdict() if found else {}


def read_study(study: Study, catalogue: Catalogue) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of all files (one dict a row: collective, algorithm, mapping, nodes, processes, size_bytes, launch,
    latency_us, ...) and the account of what was found.

    Exact duplicates are dropped; repeated cells with other values become launches 1, 2, ... in the order of the files.
    Raises StudyError for missing files, missing columns, and names that the study does not map.
    """
    missing = missing_files(study)
    if missing:
        raise StudyError(
            f"config/studies/{study.name}.yaml: import.files: no file matches {', '.join(missing)}; "
            "set STUDY_REFERENCE_DATA to the folder that holds the data"
        )
    problems: Counter = Counter()
    rows: list[dict[str, Any]] = []
    read = 0
    for entry, path in files_of(study):
        known_fields = {**entry.get("constants", {}), **_from_name(path, entry)}
        reader = _rows_of_omb if entry.get("format", "csv") == "omb" else _rows_of_csv
        for raw in reader(path, entry, problems):
            read += 1
            row = _convert({**known_fields, **raw}, entry, path, study, catalogue, problems)
            if row:
                rows.append(row)
    distinct, duplicates = _number_launches(rows)
    account = {
        "files": [str(path.name) for _, path in files_of(study)],
        "rows_read": read,
        "rows_used": len(distinct),
        "exact_duplicates_dropped": duplicates,
        "repeated_as_further_launches": sum(1 for row in distinct if row["launch"] > 1),
        "problems": {text: count for text, count in problems.items() if count},
    }
    return distinct, account


def _convert(
    raw: dict[str, Any], entry: dict[str, Any], path: Path, study: Study, catalogue: Catalogue, problems: Counter
) -> dict[str, Any] | None:
    """One row with checked names and numbers; None (and counted) where a number does not parse."""
    collective = entry["collective"]
    row: dict[str, Any] = {"collective": collective}
    algorithm, mapping = str(raw.get("algorithm", "default")), str(raw.get("mapping", ""))
    names = entry.get("algorithms", {})
    row["algorithm"] = names.get(algorithm, algorithm)
    row["mapping"] = entry.get("mappings", {}).get(mapping, mapping)
    where = f"{path}: imported by config/studies/{study.name}.yaml"
    known = catalogue.algorithms.get(collective, {})
    if row["algorithm"] not in known:
        raise StudyError(
            f"{where}: algorithm {algorithm!r} is not mapped to one of the catalogue{allowed([*names, *known])}"
        )
    if collective == "pairs":
        raw = {"processes": study.machine.nodes * study.machine.cores_per_node, **raw}
        row["mapping"] = "core"
    if row["mapping"] not in catalogue.mappings:
        raise StudyError(f"{where}: mapping {mapping!r} is unknown{allowed(catalogue.mappings)}")
    try:
        for field in NUMBERS:
            row[field] = int(raw[field]) if raw.get(field) not in (None, "") else None
        for field in VALUES:
            row[field] = float(raw[field]) if raw.get(field) not in (None, "") else None
        if collective == "pairs":
            row |= _ranks_of(raw, study.machine, where)
        value = row["latency_us"] if row["latency_us"] is not None else row["bandwidth_mb_s"]
        if row["processes"] is None or value is None or not 0 < value < float("inf"):
            raise ValueError
    except ValueError:
        problems["rows whose numbers do not parse"] += 1
        return None
    if collective == "pairs" and row["from_rank"] == row["to_rank"]:
        problems["rows of a core with itself"] += 1
        return None
    row["nodes"] = row["nodes"] or study.machine.nodes
    return row


def _ranks_of(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, int]:
    """The ranks of a pair of cores, mapped by core: all cores of a node, then those of the next."""
    for name in ("from_core", "to_core"):
        if name not in raw:
            raise StudyError(f"{where}: pairs need the column that is {name}")
    at = {name: int(raw.get(name, 0)) for name in PLACES}
    for name, count in (("core", machine.cores_per_node), ("node", machine.nodes)):
        for end in ("from", "to"):
            number = at[f"{end}_{name}"]
            if not 0 <= number < count:
                raise StudyError(
                    f"{where}: {end}_{name} is {number}, machine {machine.name} has {name}s 0 to {count - 1}"
                )
    return {f"{end}_rank": at[f"{end}_node"] * machine.cores_per_node + at[f"{end}_core"] for end in ("from", "to")}


def _key(row: dict[str, Any]) -> tuple:
    names = ("collective", "algorithm", "mapping", "nodes", "processes", "size_bytes", "from_rank", "to_rank")
    return tuple(row.get(name) for name in names)


def _number_launches(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Drop exact duplicates and number what is left of each cell and size from 1."""
    seen: set[tuple] = set()
    count: Counter = Counter()
    distinct = []
    for row in rows:
        content = tuple(sorted((key, value) for key, value in row.items() if value is not None))
        if content in seen:
            continue
        seen.add(content)
        if row["launch"] is None:
            count[_key(row)] += 1
            row["launch"] = count[_key(row)]
        distinct.append(row)
    return distinct, len(rows) - len(distinct)
