"""Read the files of an imported study, and return its rows and an account of the import.

The account counts duplicates, unused rows by reason, missing columns, and rows that the study leaves out. An invalid file stops
the import; the error names file, line and reason.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.sources.importing import kept
from collstudy.sources.importing.convert import OWN, convert
from collstudy.sources.importing.files import (
    check_fields,
    files_of,
    from_name,
    given_by,
    glob_of,
    metadata_beside,
    metadata_files,
    missing_files,
    not_matched,
    resolve,
)
from collstudy.sources.importing.formats import compact, csv_files, omb, pico
from collstudy.sources.importing.formats.outputs import OUTPUTS
from collstudy.sources.importing.launches import cell_of, number_launches, summary
from collstudy.sources.importing.series import Launches, Values
from collstudy.sources.importing.strict import Problems, Refused, listed, read_text
from collstudy.sources.importing.words import collective_in
from collstudy.study.catalogue import Catalogue
from collstudy.study.description import Study
from collstudy.study.names import POINT_TO_POINT, SIZED
from collstudy.study.openmpi_numbers import algorithm_of

#: The modules that read files: a change of one invalidates cached imports.
READER = sorted(path for folder in (".", "formats") for path in (Path(__file__).parent / folder).glob("*.py"))


def used_of(study: Study, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of read_all() that the study uses. Raises StudyError if there are none."""
    used = [row for row in rows if "left_out" not in row]
    if not used:
        raise StudyError(f"{study.file}: analysis.leave_out excludes all {len(rows)} rows")
    return used


def read_all(
    study: Study, catalogue: Catalogue, cache: Path | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return all rows of a study (dicts with collective, algorithm, mapping, nodes, processes, size_bytes, launch, latency_us, ...)
    and their account; rows that the study leaves out have the reason in `left_out`.

    *cache* is the folder of cached imports. Exact duplicates are dropped; repeated cells with other values become launches 1, 2,
    ... in the order of the files. Raises StudyError for missing or invalid files, and for names that the study does not map.
    """
    if cache is None or missing_files(study):
        return _read(study, catalogue, cache)
    digest = _digest(study, catalogue)
    stored = cache / f"{study.name}.json"
    found = kept.read(stored, digest)
    if found is None:
        found = _read(study, catalogue, cache)
        kept.write(stored, digest, list(found))
    return found[0], found[1]


def read_values(study: Study, catalogue: Catalogue, cache: Path) -> Values:
    """Return the values of an import that are compared digit by digit with other imports; cached beside the rows of read_all()."""
    digest, stored = _digest(study, catalogue), cache / f"{study.name}.values.json"
    found = kept.read(stored, digest)
    if found is not None:
        return Values.from_kept(found)
    values = Values.of(Launches(read_all(study, catalogue, cache)[0]).timed())
    kept.write(stored, digest, values.kept())
    return values


def _digest(study: Study, catalogue: Catalogue) -> str:
    """Return the digest of everything that determines an import: files, the study's settings, the catalogue, and this reader."""
    total = hashlib.sha256()
    says = [
        study.name,
        asdict(study.source),
        study.analysis.get("leave_out"),
        asdict(study.machine),
        catalogue.algorithms,
        catalogue.mappings,
    ]
    total.update(json.dumps(says, sort_keys=True, default=str).encode())
    metadata = {
        found for entry in study.source.files if entry.get("format") == "pico" for found in metadata_files(entry)
    }
    for path in [*READER, *sorted(metadata), *(path for _, path in files_of(study))]:
        total.update(f"{path} {pico.digest_of(path)}\n".encode())
    return total.hexdigest()


def _read(study: Study, catalogue: Catalogue, cache: Path | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    missing = missing_files(study)
    if missing:
        raise StudyError(
            f"{study.file}: import.files: no file matches {', '.join(missing)}; "
            "set STUDY_REFERENCE_DATA to the folder that holds the data (./study fetch gets some: data/fetch.yaml)"
        )
    problems = Problems()
    rows: list[dict[str, Any]] = []
    read = 0
    for entry, path in _own_output(files_of(study), problems):
        _check_entry(entry, path, study, catalogue)
        mine = []
        names: dict[tuple, dict[str, str]] = {}
        for line, raw in _raw_rows(entry, path, study, catalogue, problems, cache):
            read += 1
            try:
                row = convert(raw, entry, path, study, catalogue, names)
                for name in row.pop("ignored", ()):
                    problems.note(
                        f"parameters {name} that the algorithm of their row does not take", f"{path.name}, line {line}"
                    )
                mine.append(row | {"file": path.name, "line": line, "path": str(path)})
            except Refused as reason:
                problems.note(f"rows whose {reason}", f"{path.name}, line {line}" if line else path.name)
        if entry.get("format") == "omb":
            _note_commands(mine, entry, path, study, catalogue, problems)
        rows += _summarised(mine) if entry.get("rows") == "iterations" else mine
    _note_short_outputs(rows, study, problems)
    for path in not_matched(study):
        problems.note("files whose names lack a field of the path that matches them", Path(path).name)
    for entry in study.source.files:
        if not glob.glob(glob_of(entry)):
            # Readers of the report do not know the variable that begins a path.
            problems.note("optional patterns that match no file", re.sub(r"^\$\{\w+\}/", "", entry["path"]))
    if not rows:
        given = "; ".join(f"{count} {text}" for text, count in problems.counted().items()) or "the files have none"
        raise StudyError(f"{study.file}: import: no row can be used: {given}")
    distinct, duplicates = number_launches(rows)
    _check_statistics(distinct, study)
    left_out = _leave_out(distinct, study)
    used = [row for row in distinct if "left_out" not in row]
    account = {
        "files": [str(path.name) for _, path in files_of(study)],
        "rows_read": read,
        "rows_used": len(used),
        "exact_duplicates_dropped": duplicates,
        "repeated_as_further_launches": len(used) - len({cell_of(row) for row in used}),
        "problems": problems.counted(),
        "statistics": sorted({row["statistic"] for row in used}),
    }
    sources = sorted({row["source"] for row in used if row.get("source")})
    account |= {"sources": sources} if sources else {}
    account |= {"left_out": left_out} if left_out else {}
    return distinct, account


def _own_output(files: list[tuple[dict[str, Any], Path]], problems: Problems) -> list[tuple[dict[str, Any], Path]]:
    """Return the files without empty output, and without that of other benchmarks than their entry's unless it has no others: jobs
    of several benchmarks may have the same names.
    """
    empty = [path for entry, path in files if entry.get("format") in OUTPUTS and not read_text(path).strip()]
    for path in empty:
        problems.note("files without rows", path.name)
    files = [(entry, path) for entry, path in files if path not in empty]
    titles = {
        path: set(output.collectives_of(read_text(path)) or ())
        for entry, path in files if (output := OUTPUTS.get(entry.get("format", "")))
    }  # fmt: skip
    own = [(entry, path) for entry, path in files if not titles.get(path) or entry.get("collective") in titles[path]]
    having = [entry for entry, path in own if titles.get(path)]
    found = [pair for pair in files if pair in own or pair[0] not in having]
    for path in {path for _, path in files} - {path for _, path in found}:
        problems.note("raw outputs of other benchmarks", path.name)
    return found


def _raw_rows(
    entry: dict[str, Any], path: Path, study: Study, catalogue: Catalogue, problems: Problems, cache: Path | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields of each row of a file, with fields from its name, the row's number and the entry's constants."""
    known = {**entry.get("constants", {}), **from_name(path, entry)}
    kind = entry.get("format", "csv")
    if kind == "pico":
        metadata = Path(resolve(entry["metadata"])) if "metadata" in entry else metadata_beside(path)
        version = str(entry.get("mpi_version", study.source.mpi_version))
        found: Iterator = pico.rows(path, entry, problems, catalogue, metadata, version, cache)
    elif kind == "compact":
        found = compact.rows(path)
    else:
        found = OUTPUTS.get(kind, csv_files).rows(path, entry, problems)
    rules = entry.get("by_row", {})
    of = entry.get("columns", {}).get("collective")
    several: set[str] = set()
    index, before = -1, None
    for line, raw in found:
        # Rows count even if they are not used; several times of a row (`wide`) have its number.
        index, before = index + (line != before), line
        if raw is None:
            continue
        by_row = {name: _by_row(rule, index) for name, rule in rules.items()}
        row = {**known, **by_row, **raw}
        for name, ours in entry.get("values", {}).items():
            if row.get(name) not in ours:
                raise StudyError(
                    f"{path}: line {line}: {name} is {row.get(name)!r}, which is not in `values`{allowed(ours)}"
                )
            row[name] = ours[row[name]]
        if of:
            several.add(row["collective"])
            if collective_in(row["collective"], catalogue) != entry["collective"]:
                continue
        yield line, row
    if of and not any(collective_in(text, catalogue) == entry["collective"] for text in several):
        raise StudyError(f"{path}: no row whose {of!r} is {entry['collective']}{allowed(several)}")


def _by_row(rule: dict[str, int], index: int) -> int:
    """Compute a field from a row's number (from 0): the next value every `every` rows, cyclically after `count` values."""
    step = index // rule.get("every", 1)
    if "count" in rule:
        step %= rule["count"]
    return rule["from"] * rule["factor"] ** step if "factor" in rule else rule["from"] + rule.get("step", 1) * step


def _check_entry(entry: dict[str, Any], path: Path, study: Study, catalogue: Catalogue) -> None:
    """Raise StudyError if nothing provides a required field."""
    kind, collective = entry.get("format", "csv"), entry.get("collective")
    where = f"{study.file}: import.files: {entry['path']}"
    check_fields(entry, where)
    if "where" in entry and kind not in ("csv", "pico"):
        raise StudyError(f"{where}: `where` selects rows of the formats csv and pico, not of {kind}")
    if kind in OWN:
        return
    if collective is None:
        raise StudyError(f"{where}: collective is missing; only the formats {' and '.join(OWN)} contain it")
    if kind == "nccl-tests":
        if study.source.mpi != "nccl":
            raise StudyError(f"{where}: measurements of NCCL need import.mpi: nccl, not {study.source.mpi!r}")
        return
    if kind == "csv":
        said = f"{where}: collective {collective!r} is unknown"
        check_known(collective, {*catalogue.algorithms, *POINT_TO_POINT}, said)
    given = given_by(entry, path)
    # Only OMB's output may lack the number of ranks.
    if kind in OUTPUTS and (kind != "omb" or omb.ranks_said(read_text(path), collective)):
        given.add("processes")
    per_node = "processes_per_node" in given
    needed = [] if collective in POINT_TO_POINT else ["nodes" if per_node else "processes"]
    if kind == "csv":
        needed += ["size_bytes"] if collective in SIZED else []
        needed += ["latency_us"] if "bandwidth_mb_s" not in given else []
    lacking = [name for name in needed if name not in given]
    if lacking:
        raise StudyError(f"{where}: no column, constant or part of the file's name gives {', '.join(lacking)}")


def _summarised(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Combine rows of single calls to one row per cell, size and launch: median, quartiles and number of calls."""
    grouped: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((*cell_of(row), row["launch"]), []).append(row)
    return [mine[0] | summary([row["latency_us"] for row in mine]) for mine in grouped.values()]


def _note_commands(
    rows: list[dict[str, Any]], entry: dict[str, Any], path: Path, study: Study, catalogue: Catalogue, problems: Problems
) -> None:  # fmt: skip
    """Record raw outputs whose own command has another number of ranks, or another algorithm, than their rows."""
    version = str(entry.get("mpi_version", study.source.mpi_version))
    ranks, numbers = omb.commanded(read_text(path), entry["collective"])
    try:
        forced = {algorithm_of(catalogue, entry["collective"], number, version) for number in numbers}
    except StudyError:
        forced = set()  # the version is unknown, or has no such number
    for name, what, said in (("processes", "number of ranks", ranks), ("algorithm", "algorithm", forced)):
        ours = {row[name] for row in rows} - said
        if said and ours:
            shown = f"{path.name}: {', '.join(map(str, sorted(said)))}, not {', '.join(map(str, sorted(ours)))}"
            problems.note(f"raw outputs whose command has another {what}", shown)


def _note_short_outputs(rows: list[dict[str, Any]], study: Study, problems: Problems) -> None:
    """Record outputs that end before the largest size of the other outputs of their entry, possibly after a crash."""
    files = files_of(study)
    for entry in study.source.files:
        if entry.get("format") != "omb" or entry.get("collective") not in SIZED:
            continue
        paths = {str(path) for of, path in files if of is entry}
        largest: dict[str, int] = {}
        for row in rows:
            if row["path"] in paths and row["collective"] == entry["collective"]:
                largest[row["path"]] = max(largest.get(row["path"], 0), row["size_bytes"])
        for path, size in sorted(largest.items()):
            if size < max(largest.values()):
                shown = f"{Path(path).name} ends at {size} bytes"
                problems.note("raw outputs whose last sizes are missing", shown)


def _check_statistics(rows: list[dict[str, Any]], study: Study) -> None:
    """Check that a study has only one statistic per collective: mean over ranks or slowest rank."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["collective"], set()).add(row["statistic"])
    for collective, statistics in found.items():
        if len({name.removesuffix("_median") for name in statistics}) > 1:
            raise StudyError(
                f"{study.file}: import: {collective} has rows of {' and of '.join(sorted(statistics))}, "
                "which cannot be compared; split them into two studies"
            )


def _leave_out(rows: list[dict[str, Any]], study: Study) -> list[dict[str, Any]]:
    """Mark the rows selected by `analysis.leave_out` with its reason, and return the counts for the account."""
    given = []
    for entry in study.analysis.get("leave_out", ()):
        wanted = {name: listed(value) for name, value in entry.items() if name != "reason"}
        count = 0
        for row in rows:
            if "left_out" not in row and all(row.get(name) in values for name, values in wanted.items()):
                row["left_out"] = entry["reason"]
                count += 1
        if not count:
            what = ", ".join(f"{name}: {value}" for name, value in entry.items() if name != "reason")
            raise StudyError(f"{study.file}: analysis.leave_out: no row has {what}")
        given.append({**entry, "rows": count})
    return given
