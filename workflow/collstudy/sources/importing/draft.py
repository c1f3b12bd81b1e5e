"""Draft a study that imports a folder of results: its files, the likely meaning of columns and names, and open questions."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.lazy import lazy
from collstudy.sources.importing import nccl_tests
from collstudy.sources.importing.strict import read_text
from collstudy.study.catalogue import Catalogue
from collstudy.study.config import Configuration

yaml = lazy("yaml")

#: Words of headers (lower case, letters and digits only, units cut off) -> field.
FIELDS = {
    "algorithm": "algorithm", "algo": "algorithm", "alg": "algorithm", "algorithmname": "algorithm",
    "mapping": "mapping", "allocation": "mapping", "mapby": "mapping", "map": "mapping", "binding": "mapping",
    "processes": "processes", "process": "processes", "procs": "processes", "np": "processes", "ranks": "processes",
    "nprocs": "processes", "cores": "processes", "p": "processes", "ntasks": "processes", "numprocesses": "processes",
    "nodes": "nodes", "nnodes": "nodes", "size": "size_bytes", "messagesize": "size_bytes", "msgsize": "size_bytes",
    "bytes": "size_bytes", "sizebytes": "size_bytes", "latency": "latency_us", "avglatency": "latency_us", "avg": "latency_us",
    "time": "latency_us", "mean": "latency_us", "latencyus": "latency_us", "avglat": "latency_us", "averagelatency": "latency_us",
    "min": "min_latency_us", "minlatency": "min_latency_us", "max": "max_latency_us", "maxlatency": "max_latency_us",
    "iterations": "iterations", "iters": "iterations", "launch": "launch", "run": "launch", "repetition": "launch",
    "bandwidth": "bandwidth_mb_s", "core1": "from_core", "corea": "from_core", "core2": "to_core", "coreb": "to_core",
}  # fmt: skip
_UNIT = re.compile(r"[(\[ _](ns|us|ms|s|\u00b5s|usec|msec|nsec|sec)[)\]]?\s*$", re.IGNORECASE)
_UNITS = {"nsec": "ns", "usec": "us", "msec": "ms", "sec": "s", "\u00b5s": "us"}


def plain(text: str) -> str:
    """Lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def draft(folder: Path, name: str, machine: str | None, configuration: Configuration) -> tuple[str, list[str]]:
    """The text of the study's YAML and open questions. Raises StudyError for a folder without anything to import."""
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such folder")
    questions: list[str] = []
    kinds = [
        path.stem
        for path in sorted((configuration.folder / "machines").glob("*.yaml"))
        if not path.stem.endswith(".fitted")
    ]
    imported = [
        kind for kind in kinds if "kind: imported" in configuration.machine_path(kind).read_text(encoding="utf-8")
    ]
    if machine is None:
        machine = "?"
        questions.append("machine: the machine of the measurements; a file of kind imported" + allowed(imported))
    entries = [*_pico(folder), *_grouped(folder, configuration.catalogue, questions)]
    if not entries:
        raise StudyError(
            f"{folder}: contains no CSV file, no output of OSU Micro-Benchmarks or nccl-tests and no archive of PICO"
        )
    software = {"suite": "OSU Micro-Benchmarks", "mpi": "Open MPI"}
    formats = {entry.get("format") for entry in entries}
    if "nccl-tests" in formats:
        software = {"suite": "nccl-tests", "mpi": "nccl"}
        if len(formats) > 1:
            questions.append("files: output of nccl-tests and other files; give each a study of its own")
    questions.append("mpi, mpi_version, suite_version: the software of the measurements")
    document = {
        "title": f"Measurements of {name}", "question": "?", "machine": machine, "import": {**software, "files": entries},
    }  # fmt: skip
    head = [f"# Drafted by ./study import from {folder}. Check every line; not determined:"]
    head += [f"# - {question}" for question in questions]
    return "\n".join(head) + "\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), questions


def _pico(folder: Path) -> list[dict[str, Any]]:
    """Archives of PICO: dated, with metadata beside them."""
    runs = [
        path
        for path in sorted(folder.iterdir())
        if re.fullmatch(r"\d{4}(_\d\d){2}_.*", path.name.removesuffix(".tar.gz"))
    ]
    metadata = sorted(folder.glob("*_metadata.csv"))
    if not runs or not metadata:
        return []
    ending = ".tar.gz" if runs[0].name.endswith(".tar.gz") else ""
    return [
        {
            "path": f"{folder}/20*{ending}",
            "format": "pico",
            "metadata": str(metadata[0]),
            "where": {"gpu_awareness": "no"},
        }
    ]


def _grouped(folder: Path, catalogue: Catalogue, questions: list[str]) -> list[dict[str, Any]]:
    """One entry per kind of file: the same header and the same pattern of the name."""
    groups: dict[tuple, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if (
            not path.is_file()
            or path.name.endswith("_metadata.csv")
            or path.suffix.lower() not in (".csv", ".txt", ".out", ".log")
        ):
            continue
        try:
            text = read_text(path)
        except StudyError as problem:
            questions.append(str(problem))
            continue
        if "# OSU MPI" in text:
            groups[("omb", (), _pattern(path, catalogue))].append(path)
        elif collective := nccl_tests.collective_of(text):
            groups[("nccl-tests", (collective,), _nccl_pattern(path))].append(path)
        elif path.suffix.lower() == ".csv" and text.strip():
            header = tuple(next(csv.reader(text.splitlines())))
            groups[("csv", tuple(name.strip() for name in header), _pattern(path, catalogue))].append(path)
    return [
        _entry(kind, header, pattern, paths, catalogue, questions) for (kind, header, pattern), paths in groups.items()
    ]


def _pattern(path: Path, catalogue: Catalogue) -> str:
    """The file's path with {algorithm}, {mapping} and {processes} if its name contains them."""
    collective = _collective(path.stem, catalogue) or ""
    parts = []
    known: set[str] = set()
    for part in re.split(r"([_\-.])", path.stem):
        numbered = re.fullmatch(rf"({re.escape(collective)})(\d)", part) if collective else None
        if numbered and "algorithm" not in known:
            parts.append(f"{collective}{{algorithm}}")
            known.add("algorithm")
        elif part in catalogue.mappings and "mapping" not in known:
            parts.append("{mapping}")
            known.add("mapping")
        elif (found := re.fullmatch(r"(np|p|n)?(\d+)", part)) and "processes" not in known:
            parts.append((found.group(1) or "") + "{processes}")
            known.add("processes")
        else:
            parts.append(part)
    return str(path.parent / ("".join(parts) + path.suffix))


def _nccl_pattern(path: Path) -> str:
    """The file's path with {algorithm} and {protocol} if its name contains words of NCCL's; ranks and nodes are in the file."""
    parts = []
    for part in re.split(r"([_\-.])", path.stem):
        for field, words in (("{algorithm}", nccl_tests.ALGORITHMS), ("{protocol}", nccl_tests.PROTOCOLS)):
            if not part.isdecimal() and nccl_tests.word(part, words) in words and field not in parts:
                parts.append(field)
                break
        else:
            parts.append(re.sub(r"\d+", "*", part))
    return str(path.parent / ("".join(parts) + path.suffix))


def _collective(text: str, catalogue: Catalogue) -> str | None:
    """The collective that a name begins with or holds; the longest one."""
    found = [name for name in catalogue.algorithms if re.search(rf"(^|[^a-z]){name}([^a-z]|$)", text.lower())]
    return max(found, key=len) if found else None


def _columns(header: tuple[str, ...], where: str, questions: list[str]) -> dict[str, Any]:
    """The columns of the fields, and the unit of the times where it is not us."""
    columns, units = {}, set()
    for name in header:
        unit = _UNIT.search(name)
        field = FIELDS.get(plain(_UNIT.sub("", name)), FIELDS.get(plain(name)))
        if field and field not in columns:
            columns[field] = name
            if unit and field.endswith("latency_us"):
                units.add(_UNITS.get(unit.group(1).lower(), unit.group(1).lower()))
        else:
            questions.append(f"{where}: the meaning of the column {name!r}")
    if not units:
        questions.append(f"{where}: the unit of the times; us is assumed")
    return {"columns": columns} | ({"unit": units.pop()} if len(units) == 1 and units != {"us"} else {})


def _entry(
    kind: str, header: tuple[str, ...], pattern: str, paths: list[Path], catalogue: Catalogue, questions: list[str]
) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": pattern}
    if kind == "nccl-tests":
        return entry | {"format": kind, "collective": header[0]}
    collective = _collective(Path(pattern).stem.replace("{algorithm}", "_"), catalogue)
    entry["collective"] = collective or "?"
    where = f"{pattern} ({len(paths)} file{'s' * (len(paths) > 1)})"
    if collective is None:
        questions.append(f"{where}: collective")
    if kind == "omb":
        entry["format"] = "omb"
        for field in ("algorithm", "mapping", "processes"):
            if f"{{{field}}}" not in pattern:
                questions.append(f"{where}: {field}; it can be set in `constants`")
        return entry
    entry |= _columns(header, where, questions)
    columns = entry["columns"]
    values = _values(paths, header, columns)
    named = values.get("algorithm", set()) | (
        {found for path in paths for found in re.findall(r"[a-z](\d)_", path.name)}
        if "{algorithm}" in pattern
        else set()
    )
    if named and all(re.fullmatch(r"\d+", text) for text in named):
        entry["algorithms"] = "numbers"
        questions.append(f"{where}: whether the algorithms {', '.join(sorted(named))} are Open MPI's numbers")
    elif named and collective:
        entry["algorithms"] = {text: _algorithm(text, collective, catalogue) or "?" for text in sorted(named)}
        unknown = [text for text, ours in entry["algorithms"].items() if ours == "?"]
        if unknown:
            questions.append(
                f"{where}: the algorithms {', '.join(unknown)}" + allowed(catalogue.algorithms[collective])
            )
    strange = sorted(values.get("mapping", set()) - set(catalogue.mappings))
    if strange:
        entry["mappings"] = {text: "?" for text in strange}
        questions.append(f"{where}: the mappings {', '.join(strange)}" + allowed(catalogue.mappings))
    for field in ("algorithm", "mapping", "processes", "latency_us"):
        if field not in columns and f"{{{field}}}" not in pattern:
            questions.append(f"{where}: {field}; it can be set in `constants` or `by_row`")
    return entry


def _values(paths: list[Path], header: tuple[str, ...], columns: dict[str, str]) -> dict[str, set[str]]:
    """The words of the columns that hold names."""
    found: dict[str, set[str]] = {field: set() for field in ("algorithm", "mapping") if field in columns}
    for path in paths:
        for row in csv.reader(read_text(path).splitlines()[1:]):
            for field, seen in found.items():
                at = header.index(columns[field])
                if at < len(row):
                    seen.add(row[at].strip())
    return found


def _algorithm(text: str, collective: str, catalogue: Catalogue) -> str | None:
    """The catalogue's algorithm of that name, label or name in Open MPI."""
    for name, entry in catalogue.algorithms[collective].items():
        listed = entry.get("openmpi", {}).get("algorithm", [])
        words = [name, entry["label"], *(listed if isinstance(listed, list) else [listed])]
        if plain(text) in {plain(word) for word in words} | {plain(word).removesuffix("tree") for word in words}:
            return name
    return None
