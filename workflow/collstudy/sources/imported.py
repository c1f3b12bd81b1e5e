"""Import measurements: CSV files with a column mapping, raw standard output of OMB, result archives of PICO.

Everything is counted: duplicates, unused rows by reason, missing columns, rows that the study leaves out, and gaps
in the grid. An invalid file stops the import with its name, line and reason.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT
from collstudy.sources.edges import Launched, of_rows
from collstudy.sources.imported_rows import grid_of, rows_of_import
from collstudy.sources.importing import checks, compact, csv_files, kept, omb, pico
from collstudy.sources.importing.series import Firsts, most_cells
from collstudy.sources.importing.strict import LARGEST, LONGEST_US, UNITS, Problems, Refused, positive, whole
from collstudy.sources.source import Rows, Source
from collstudy.study.config import POINT_TO_POINT, SIZED, Catalogue, Imported, Machine, Study
from collstudy.study.openmpi_numbers import algorithm_of
from collstudy.study.work import Work, canonical

np = lazy("numpy")

#: Of a ladder: the two cores, by their number on their node.
PLACES = ("from_core", "to_core", "from_node", "to_node")
TIMES = ("latency_us", "min_latency_us", "max_latency_us")
#: Formats whose rows contain collective and statistic, with times in us.
OWN = ("pico", "compact")


class ImportedSource(Source):
    """Rows of imported files, without work to be done."""

    described_by = Imported

    @functools.cached_property
    def every(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """All rows, including those that the study leaves out, and their account.

        Raises StudyError for missing or invalid files.
        """
        return read_all(self.study, self.context.catalogue, self.context.results / "imports")

    @functools.cached_property
    def found(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The rows that the study uses, and their account with the grid that they span."""
        rows, account = used_of(self.study, *self.every)
        collectives = grid_of(rows, self.context.catalogue, self.study)
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
        return rows_of_import(self.study, self.every[0], self.found[1])

    def absent(self) -> str:
        """A pattern that matches no file."""
        missing = missing_files(self.study)
        return f"no file matches {missing[0]} (set STUDY_REFERENCE_DATA)" if missing else ""

    def check(self) -> None:
        """Read everything."""
        self.files()

    def inputs(self) -> list[Path]:
        """The files, and those of the imports that they are compared with."""
        return [*self.data(), *(path for study in self.others() for _, path in files_of(study))]

    def data(self) -> list[Path]:
        """The files that the study names."""
        return [path for _, path in files_of(self.study)]

    def others(self) -> list[Study]:
        """The other available imported studies, except those with the printed names of a publication."""
        found = []
        configuration = self.context.configuration
        for name in configuration.imported_names():
            try:
                other = configuration.study(name) if name != self.study.name else None
            except StudyError:
                continue  # its errors are reported when it is run itself
            source = other.source if other else None
            if isinstance(source, Imported) and not source.printed and not missing_files(other):
                found.append(other)
        return found

    def _compared(self, rows: list[dict[str, Any]]) -> dict[str, Firsts]:
        """What of other imported studies may be in *rows* digit by digit; studies that share no cell with them are not read."""
        if most_cells(rows) < checks.LEAST_COPIED:
            return {}
        nodes: dict[str, set[int]] = {}
        for row in rows:
            nodes.setdefault(row["collective"], set()).add(row["nodes"])
        found = {}
        for study in self.others():
            if any(_may_share(entry, path, study, nodes) for entry, path in files_of(study)):
                try:
                    found[study.name] = read_firsts(study, self.context.catalogue, self.context.results / "imports")
                except StudyError:
                    continue  # what is wrong with it is said when it is asked for itself
        return found

    def import_checks(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Findings of all checks, and the agreement of sources of one machine."""
        rows, account = self.every
        findings = checks.check(rows, account["problems"], self.study.machine, self._compared(rows))
        used = [row for row in rows if "left_out" not in row]
        agreeing = [{"machine": self.study.machine.name, **row} for row in checks.agreement_of(used)]
        return checks.rows_of(findings), agreeing

    def launched(self) -> list[Launched]:
        """The launches of the rows."""
        assert isinstance(self.study.source, Imported)
        return of_rows(self.found[0], self.study.source.mpi, self.context.catalogue)

    def judged(self) -> list[str]:
        """Without files for a library, collectives are judged on held-out cells."""
        assert isinstance(self.study.source, Imported)
        judged = any(entry.get("collective") not in POINT_TO_POINT for entry in self.study.source.files)
        own = super().judged()
        return own if "tuning" in self.study.analysis or not judged else ["tables/tuning-regret.csv", *own]

    def products(self) -> list[str]:
        """Decisions are judged on held-out cells, because there are no tuning files."""
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
    """Patterns of the study that match no file; those of `optional` entries only where no entry has a file."""
    missing = {_glob_of(entry): entry for entry in study.source.files if not glob.glob(_glob_of(entry))}
    needed = [pattern for pattern, entry in missing.items() if not entry.get("optional")]
    return needed or (list(missing) if len(missing) == len({_glob_of(entry) for entry in study.source.files}) else [])


def _from_name(path: Path, entry: dict[str, Any]) -> dict[str, str]:
    """Fields in the file's name, by {algorithm}, {processes}, ... in the path of the entry."""
    pattern = re.escape(_resolve(entry["path"])).replace(r"\*", ".*")
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", pattern)
    found = re.fullmatch(pattern, str(path))
    return found.groupdict() if found else {}


def read_study(
    study: Study, catalogue: Catalogue, cache: Path | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows that the study uses (one dict a row: collective, algorithm, mapping, nodes, processes, size_bytes, launch,
    latency_us, ...) and their account.

    *cache* is a folder for what was read of large archives. Exact duplicates are dropped; repeated cells with other values become
    launches 1, 2, ... in the order of the files. Raises StudyError for missing or invalid files,
    names that the study does not map, and if no row is left.
    """
    return used_of(study, *read_all(study, catalogue, cache))


def used_of(
    study: Study, rows: list[dict[str, Any]], account: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Of what read_all() gives, what read_study() does."""
    used = [row for row in rows if "left_out" not in row]
    if not used:
        raise StudyError(f"config/studies/{study.name}.yaml: analysis.leave_out leaves no row of {len(rows)}")
    return used, account


def read_all(
    study: Study, catalogue: Catalogue, cache: Path | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """As read_study(), including rows that the study leaves out, with the reason in `left_out`."""
    if cache is None or missing_files(study):
        return _read(study, catalogue, cache)
    digest = _digest(study, catalogue)
    stored = cache / f"{study.name}.json"
    found = kept.read(stored, digest)
    if found is None:
        found = _read(study, catalogue, cache)
        kept.write(stored, digest, list(found))
    return found[0], found[1]


def read_firsts(study: Study, catalogue: Catalogue, cache: Path) -> Firsts:
    """What of an import is compared with others digit by digit: a small part of what read_all() gives, kept beside it."""
    digest, stored = _digest(study, catalogue), cache / f"{study.name}.firsts.json"
    found = kept.read(stored, digest)
    if found is not None:
        return Firsts.from_kept(found)
    firsts = Firsts.of_rows(read_all(study, catalogue, cache)[0])
    kept.write(stored, digest, firsts.kept())
    return firsts


def _may_share(entry: dict[str, Any], path: Path, study: Study, nodes: dict[str, set[int]]) -> bool:
    """Whether a file may have cells of the collectives and numbers of nodes in *nodes*, by what its entry says."""
    if entry.get("format") in OWN:
        return entry.get("collective") != "pairs"
    collective = entry.get("collective")
    if collective == "pairs" or collective not in nodes:
        return False
    given = {*entry.get("columns", {}), *entry.get("constants", {}), *entry.get("by_row", {}), *_from_name(path, entry)}
    return "nodes" in given or study.machine.nodes in nodes[collective]


def _digest(study: Study, catalogue: Catalogue) -> str:
    """Digest of everything that determines an import: files, the study's settings, the catalogue, and this reader."""
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
    sources = [Path(__file__), *sorted((Path(__file__).parent / "importing").glob("*.py"))]
    metadata = {
        found for entry in study.source.files if entry.get("format") == "pico" for found in _metadata_files(entry)
    }
    for path in [*sources, *sorted(metadata), *(path for _, path in files_of(study))]:
        total.update(f"{path} {pico.digest_of(path)}\n".encode())
    return total.hexdigest()


def _metadata_files(entry: dict[str, Any]) -> list[Path]:
    if "metadata" in entry:
        path = Path(_resolve(entry["metadata"]))
        return [path] if path.exists() else []
    return sorted({found for path in glob.glob(_glob_of(entry)) for found in Path(path).parent.glob("*_metadata.csv")})


def _read(study: Study, catalogue: Catalogue, cache: Path | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    missing = missing_files(study)
    if missing:
        raise StudyError(
            f"config/studies/{study.name}.yaml: import.files: no file matches {', '.join(missing)}; "
            "set STUDY_REFERENCE_DATA to the folder that holds the data"
        )
    problems = Problems()
    rows: list[dict[str, Any]] = []
    read = 0
    for entry, path in files_of(study):
        _check_entry(entry, path, study)
        mine = []
        names: dict[tuple, dict[str, str]] = {}
        for line, raw in _raw_rows(entry, path, study, catalogue, problems, cache):
            read += 1
            try:
                mine.append(
                    _convert(raw, entry, path, study, catalogue, names)
                    | {"file": path.name, "line": line, "path": str(path)}
                )
            except Refused as reason:
                problems.note(f"rows whose {reason}", f"{path.name}, line {line}" if line else path.name)
        rows += _summarised(mine) if entry.get("rows") == "iterations" else mine
    _note_short_outputs(rows, study, problems)
    for entry in study.source.files:
        if not glob.glob(_glob_of(entry)):
            problems.note("kinds of optional files that are missing", entry["path"])
    if not rows:
        given = "; ".join(f"{count} {text}" for text, count in problems.counted().items()) or "the files have none"
        raise StudyError(f"config/studies/{study.name}.yaml: import: none of {read} rows can be used: {given}")
    distinct, duplicates = _number_launches(rows)
    _check_statistics(distinct, study)
    left_out = _leave_out(distinct, study)
    used = [row for row in distinct if "left_out" not in row]
    account = {
        "files": [str(path.name) for _, path in files_of(study)],
        "rows_read": read,
        "rows_used": len(used),
        "exact_duplicates_dropped": duplicates,
        "repeated_as_further_launches": sum(1 for row in used if row["launch"] > 1),
        "problems": problems.counted(),
        "statistics": sorted({row["statistic"] for row in used}),
    }
    sources = sorted({row["source"] for row in used if row.get("source")})
    account |= {"sources": sources} if sources else {}
    account |= {"left_out": left_out} if left_out else {}
    return distinct, account


def _raw_rows(
    entry: dict[str, Any], path: Path, study: Study, catalogue: Catalogue, problems: Problems, cache: Path | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and fields of each row of a file, with fields from its name, its position and the entry's constants."""
    known = {**entry.get("constants", {}), **_from_name(path, entry)}
    kind = entry.get("format", "csv")
    if kind == "pico":
        metadata = Path(_resolve(entry["metadata"])) if "metadata" in entry else _metadata_beside(path)
        version = str(entry.get("mpi_version", study.source.mpi_version))
        found: Iterator = pico.rows(path, entry, problems, catalogue, metadata, version, cache)
    elif kind == "compact":
        found = compact.rows(path)
    else:
        found = {"csv": csv_files, "omb": omb}[kind].rows(path, entry, problems)
    rules = entry.get("by_row", {})
    if not known and not rules and not entry.get("values"):
        yield from found
        return
    for index, (line, raw) in enumerate(found):
        by_row = {name: _by_row(rule, index) for name, rule in rules.items()}
        row = {**known, **by_row, **raw}
        for name, ours in entry.get("values", {}).items():
            if row.get(name) not in ours:
                raise StudyError(
                    f"{path}: line {line}: {name} is {row.get(name)!r}, which is not in `values`{allowed(ours)}"
                )
            row[name] = ours[row[name]]
        yield line, row


def _metadata_beside(path: Path) -> Path:
    found = sorted(path.parent.glob("*_metadata.csv"))
    if len(found) != 1:
        raise StudyError(
            f"{path.parent}: {len(found)} files *_metadata.csv; `metadata` of the entry names the one to use"
        )
    return found[0]


def _by_row(rule: dict[str, int], index: int) -> int:
    """Fields from a row's number (from 0): the next value every `every` rows, cyclically after `count` values."""
    step = index // rule.get("every", 1)
    if "count" in rule:
        step %= rule["count"]
    return rule["from"] * rule["factor"] ** step if "factor" in rule else rule["from"] + rule.get("step", 1) * step


def _check_entry(entry: dict[str, Any], path: Path, study: Study) -> None:
    """Raise StudyError if a required field has no source."""
    kind, collective = entry.get("format", "csv"), entry.get("collective")
    if kind in OWN:
        return
    where = f"config/studies/{study.name}.yaml: import.files: {entry['path']}"
    if collective is None:
        raise StudyError(f"{where}: collective is missing; only the formats {' and '.join(OWN)} contain it")
    given = {*entry.get("columns", {}), *entry.get("constants", {}), *entry.get("by_row", {}), *_from_name(path, entry)}
    needed = [] if collective in POINT_TO_POINT else ["processes"]
    if kind == "csv":
        needed += ["size_bytes"] if collective in SIZED else []
        needed += ["latency_us"] if "bandwidth_mb_s" not in given else []
    lacking = [name for name in needed if name not in given]
    if lacking:
        raise StudyError(f"{where}: no column, constant or part of the file's name gives {', '.join(lacking)}")


def _convert(
    raw: dict[str, Any],
    entry: dict[str, Any],
    path: Path,
    study: Study,
    catalogue: Catalogue,
    names: dict[tuple, dict[str, str]],
) -> dict[str, Any]:
    """One row with checked names and numbers; *names* caches names of the file.

    Raises Refused for a row that is not used, StudyError for an unknown name.
    """
    own = entry.get("format") in OWN
    collective = raw["collective"] if own else entry["collective"]
    where = f"{path}: imported by config/studies/{study.name}.yaml"
    key = (collective, raw.get("algorithm"), raw.get("mapping"), raw.get("parameters"))
    if key not in names:
        names[key] = _named(raw, entry, collective, study, catalogue, where)
    row: dict[str, Any] = {"collective": collective, **names[key]}
    if "source" in entry:
        row["source"] = entry["source"]
    machine = study.machine
    nodes, cores = machine.nodes, machine.cores_per_node
    if collective == "pairs":
        raw = {"processes": nodes * cores, **raw}
        row["mapping"] = "core"
    elif collective in POINT_TO_POINT:
        raw = {"processes": 2, **raw}
    if row["mapping"] not in catalogue.mappings:
        raise StudyError(f"{where}: mapping {row['mapping']!r} is unknown{allowed(catalogue.mappings)}")
    for name, largest in (("nodes", nodes), ("launch", 10**6), ("iterations", 10**9)):
        text = raw.get(name)
        row[name] = None if text is None or text == "" else whole(str(text), name, largest)
    row["nodes"] = row["nodes"] or nodes
    row["processes"] = whole(str(raw["processes"]), "processes")
    if row["processes"] > row["nodes"] * cores and not machine.oversubscribe:
        raise Refused(f"processes are more than the {row['nodes'] * cores} cores of {row['nodes']} nodes")
    row["size_bytes"] = whole(str(raw["size_bytes"]), "size_bytes") if collective in SIZED else None
    factor = UNITS[entry.get("unit", "us")]
    row["latency_us"] = row["min_latency_us"] = row["max_latency_us"] = None
    for name in (*TIMES, "q1_us", "q3_us"):
        text = raw.get(name)
        if text is not None and text != "":
            value = positive(str(text), name, LONGEST_US / factor)
            row[name] = value if own else value * factor
    text = raw.get("bandwidth_mb_s")
    row["bandwidth_mb_s"] = None if text is None or text == "" else positive(str(text), "bandwidth_mb_s", LARGEST)
    if row["latency_us"] is None and row["bandwidth_mb_s"] is None:
        raise Refused("latency_us is empty")
    low, high = row["min_latency_us"], row["max_latency_us"]
    if low is not None and high is not None and low > high:
        raise Refused("minimum is above the maximum")
    if collective == "pairs":
        row |= _ranks_of(raw, machine, where)
        if row["from_rank"] == row["to_rank"]:
            raise Refused("core is paired with itself")
    if own:
        row["statistic"] = raw.get("statistic", "slowest_rank_median")
        row |= {"run": raw["run"]} if _given(raw, "run") else {}
    else:
        row["statistic"] = entry.get("statistic", "mean_over_ranks") + (
            "_median" if entry.get("rows") == "iterations" else ""
        )
    return row


def _given(raw: dict[str, Any], name: str) -> bool:
    return raw.get(name) not in (None, "")


def _named(
    raw: dict[str, Any], entry: dict[str, Any], collective: str, study: Study, catalogue: Catalogue, where: str
) -> dict[str, str]:
    """Algorithm, parameters and mapping of a row, as names of the catalogue."""
    algorithm, mapping = str(raw.get("algorithm", "default")), str(raw.get("mapping", ""))
    names = entry.get("algorithms", {})
    if names == "numbers":
        try:
            number = whole(algorithm, "algorithm", 1000, smallest=0)
        except Refused as reason:
            raise StudyError(f"{where}: {reason}: {algorithm!r}; `algorithms: numbers` are Open MPI's") from None
        version = str(entry.get("mpi_version", study.source.mpi_version))
        try:
            named = algorithm_of(catalogue, collective, number, version)
        except StudyError as problem:
            raise StudyError(f"{where}: {problem}") from None
    else:
        named = names.get(algorithm, algorithm)
        known = catalogue.algorithms.get(collective, {})
        if named not in known:
            raise StudyError(
                f"{where}: algorithm {algorithm!r} is not mapped to one of the catalogue{allowed([*names, *known])}"
            )
    found = {"algorithm": named, "mapping": entry.get("mappings", {}).get(mapping, mapping)}
    return found | ({"parameters": raw["parameters"]} if raw.get("parameters") else {})


def _summarised(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of single calls to one row for each launch of a cell and size: median, quartiles and count of the calls."""
    grouped: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((*_key(row), row["launch"]), []).append(row)
    found = []
    for mine in grouped.values():
        low, middle, high = np.percentile([row["latency_us"] for row in mine], [25, 50, 75])
        found.append(
            mine[0] | {"latency_us": float(middle), "q1_us": float(low), "q3_us": float(high), "iterations": len(mine)}
        )
    return found


def _note_short_outputs(rows: list[dict[str, Any]], study: Study, problems: Problems) -> None:
    """Raw outputs that end before the largest size of the others of their entry, possibly of crashed runs."""
    for entry in study.source.files:
        if entry.get("format") != "omb" or entry.get("collective") not in SIZED:
            continue
        names = {Path(path).name for path in glob.glob(_glob_of(entry))}
        largest: dict[str, int] = {}
        for row in rows:
            if row["file"] in names:
                largest[row["file"]] = max(largest.get(row["file"], 0), row["size_bytes"])
        for name, size in sorted(largest.items()):
            if size < max(largest.values()):
                problems.note("raw outputs whose last sizes are missing", f"{name} ends at {size} bytes")


def _ranks_of(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, int]:
    """The ranks of a pair of cores, mapped by core: all cores of a node, then those of the next."""
    for name in ("from_core", "to_core"):
        if name not in raw:
            raise StudyError(f"{where}: pairs need a column for {name}")
    at = {name: whole(str(raw.get(name, 0)), name, smallest=0) for name in PLACES}
    for name, count in (("core", machine.cores_per_node), ("node", machine.nodes)):
        for end in ("from", "to"):
            number = at[f"{end}_{name}"]
            if not 0 <= number < count:
                raise StudyError(
                    f"{where}: {end}_{name} is {number}, machine {machine.name} has {name}s 0 to {count - 1}"
                )
    return {f"{end}_rank": at[f"{end}_node"] * machine.cores_per_node + at[f"{end}_core"] for end in ("from", "to")}


def _check_statistics(rows: list[dict[str, Any]], study: Study) -> None:
    """Check that a study has only one statistic per collective: mean over ranks or slowest rank."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["collective"], set()).add(row["statistic"])
    for collective, statistics in found.items():
        if len({name.removesuffix("_median") for name in statistics}) > 1:
            raise StudyError(
                f"config/studies/{study.name}.yaml: import: {collective} has rows of {' and of '.join(sorted(statistics))}, "
                "which cannot be compared; make them two studies"
            )


def _leave_out(rows: list[dict[str, Any]], study: Study) -> list[dict[str, Any]]:
    """Mark rows selected by `analysis.leave_out` with its reason; returns the counts for the account."""
    given = []
    for entry in study.analysis.get("leave_out", ()):
        wanted = {
            name: value if isinstance(value, list) else [value] for name, value in entry.items() if name != "reason"
        }
        count = 0
        for row in rows:
            if "left_out" not in row and all(row.get(name) in values for name, values in wanted.items()):
                row["left_out"] = entry["reason"]
                count += 1
        if not count:
            what = ", ".join(f"{name}: {value}" for name, value in entry.items() if name != "reason")
            raise StudyError(f"config/studies/{study.name}.yaml: analysis.leave_out: no row has {what}")
        given.append({**entry, "rows": count})
    return given


def _key(row: dict[str, Any]) -> tuple:
    get = row.get
    return (
        row["collective"], row["algorithm"], get("parameters"), row["mapping"], row["nodes"], row["processes"],
        row["size_bytes"], get("from_rank"), get("to_rank"),
    )  # fmt: skip


def _number_launches(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Drop exact duplicates and number the remaining launches of each cell and size from 1, source after source."""
    seen: set[tuple] = set()
    count: Counter = Counter()
    distinct = []
    shared = any("source" in row for row in rows)
    # A row that lacks a field is as one whose field is None.
    given = sorted({name for row in rows for name in row} - {"file", "line"})
    for row in rows:
        content = tuple(map(row.get, given))
        if content in seen:
            continue
        seen.add(content)
        if row["launch"] is None or shared:
            key = _key(row)
            count[key] += 1
            row["launch"] = count[key]
        distinct.append(row)
    return distinct, len(rows) - len(distinct)
