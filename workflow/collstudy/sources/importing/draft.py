"""Draft a study that imports a folder of results: its files, the likely meaning of columns and names, and open questions."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.lazy import lazy
from collstudy.sources.importing import bare_tables, csv_files, imb, nccl_tests
from collstudy.sources.importing.convert import size_of
from collstudy.sources.importing.file_names import (
    algorithm_in,
    collective_of,
    joined,
    machines_in,
    nccl_pattern,
    pattern_of,
)
from collstudy.sources.importing.files import from_name
from collstudy.sources.importing.strict import Refused, read_text
from collstudy.sources.importing.words import (
    COLLECTIVE,
    algorithm_named,
    collective_in,
    field_of,
    mapping_named,
    plain,
    size_unit_of,
    unit_of,
    without_unit,
)
from collstudy.study.catalogue import Catalogue
from collstudy.study.config import Configuration
from collstudy.study.names import POINT_TO_POINT, SIZED

yaml = lazy("yaml")


def draft(folder: Path, name: str, machine: str | None, configuration: Configuration) -> tuple[str, list[str]]:
    """Return the text of the study's YAML and the open questions. Raises StudyError for a folder with nothing to import."""
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
        questions.append(
            "machine: the machine of the measurements; a file of kind imported"
            + allowed(imported)
            + "; for another machine write config/machines/NAME.yaml: kind: imported, label, and levels with their counts"
        )
    entries = [*_pico(folder), *_merged(_grouped(folder, configuration.catalogue, questions))]
    if not entries:
        unread = [question for question in questions if not question.startswith("machine: ")]
        raise StudyError(
            f"{folder}: contains no CSV file, no output of OSU Micro-Benchmarks, Intel MPI Benchmarks or nccl-tests, "
            "and no archive of PICO" + "".join(f"; {text}" for text in unread)
        )
    machines = machines_in(folder, imported)
    if len(machines) > 1:
        questions.append(f"files: their names say {' and '.join(machines)}; give each machine a study of its own")
    software = {"suite": "OSU Micro-Benchmarks", "mpi": "Open MPI"}
    formats = {entry.get("format") for entry in entries}
    if "nccl-tests" in formats:
        software = {"suite": "nccl-tests", "mpi": "nccl"}
        if len(formats) > 1:
            questions.append("files: output of nccl-tests and other files; give each a study of its own")
    if "imb" in formats:
        software["suite"] = "Intel MPI Benchmarks"
        if len(formats) > 1:
            questions.append("files: output of Intel MPI Benchmarks and other files; give each a study of its own")
    questions.append("mpi, mpi_version, suite_version: the software of the measurements")
    questions = _by_text(questions, folder)
    document = {
        "title": f"Measurements of {name}", "question": "?", "machine": machine, "import": {**software, "files": entries},
    }  # fmt: skip
    head = [f"# Drafted by ./study import from {folder}. Check every line; not determined:"]
    head += [f"# - {question}" for question in questions]
    return "\n".join(head) + "\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), questions


def _by_text(questions: list[str], folder: Path) -> list[str]:
    """Return each question once, with all patterns (relative to the folder) that it is about."""
    found: dict[str, list[str]] = {}
    for question in questions:
        about = re.fullmatch(rf"{re.escape(str(folder))}/(.* \(\d+ files?\)): (.*)", question)
        patterns = found.setdefault(about.group(2) if about else question, [])
        patterns += [about.group(1)] if about else []
    return [f"{', '.join(patterns)}: {text}" if patterns else text for text, patterns in found.items()]


def _pico(folder: Path) -> list[dict[str, Any]]:
    """Return the entry for PICO's archives: folders or archives named by date, with metadata beside them."""
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
    """Return one entry for all files with the same header and the same name pattern."""
    groups: dict[tuple, list[Path]] = defaultdict(list)
    unknown: list[str] = []
    for path in sorted(folder.rglob("*")):
        if (
            not path.is_file()
            or path.name.endswith("_metadata.csv")
            or _suffix(path) not in (".csv", ".tsv", ".dat", ".txt", ".out", ".log")
        ):
            continue
        try:
            text = read_text(path)
        except StudyError as problem:
            questions.append(str(problem))
            continue
        named = collective_of(folder, path, catalogue)
        if "# OSU MPI" in text:
            groups[("omb", (), pattern_of(folder, path, catalogue, (), named), named)].append(path)
        elif found := imb.collectives_of(text):
            for collective in found:
                if collective in catalogue.algorithms:
                    # If a file has several process counts, a number in its name has another meaning.
                    several = ("processes",) if len(imb.processes_of(text)) > 1 else ()
                    pattern = pattern_of(folder, path, catalogue, several, collective)
                    groups[("imb", (), pattern, collective)].append(path)
        elif collective := nccl_tests.collective_of(text):
            groups[("nccl-tests", (), nccl_pattern(path), collective)].append(path)
        elif header := _header(path, text):
            groups[("csv", header, pattern_of(folder, path, catalogue, header, named), named)].append(path)
        elif header := bare_tables.header(text, named, catalogue):
            groups[("bare", header, pattern_of(folder, path, catalogue, header, named), named)].append(path)
        else:
            unknown.append(str(path.relative_to(folder)))
    if unknown:
        questions.append(
            f"{len(unknown)} file{'s' * (len(unknown) > 1)} without a table of times that is recognised: {', '.join(unknown[:5])}"
            + ", ..." * (len(unknown) > 5)
        )
    return [
        entry
        for (kind, header, pattern, collective), paths in joined(groups).items()
        for entry in _entries(kind, header, pattern, collective, paths, catalogue, questions)
    ]


def _merged(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge entries with the same pattern that differ only in the names of their columns; a list of names means the first that
    a file has.
    """
    found: list[dict[str, Any]] = []
    for entry in entries:
        rest = {name: value for name, value in entry.items() if name != "columns"}
        same = next((one for one in found if {name: of for name, of in one.items() if name != "columns"} == rest), None)
        if same is None or {*same.get("columns", {})} != {*entry.get("columns", {})}:
            found.append(entry)
            continue
        for field, name in entry.get("columns", {}).items():
            names = same["columns"][field] if isinstance(same["columns"][field], list) else [same["columns"][field]]
            if name not in names:
                same["columns"][field] = [*names, name]
    return found


def _suffix(path: Path) -> str:
    """Return the suffix of a file's name, ignoring .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _header(path: Path, text: str) -> tuple[str, ...]:
    """Return the header of a table; for files other than CSV only if at least two columns have a known meaning."""
    found = next((tuple(name.strip() for name in fields) for fields in csv_files.reader(text) if any(fields)), ())
    known = sum(field_of(name) is not None for name in found)
    numbers = sum(bare_tables.number(name) is not None for name in found)
    return found if known >= 2 or (_suffix(path) == ".csv" and not (known == 0 and numbers >= 2)) else ()


def _columns(
    header: tuple[str, ...], where: str, collective: str | None, catalogue: Catalogue, questions: list[str]
) -> dict[str, Any]:
    """Return the columns of the fields, or the columns of a wide table, and units of times and sizes other than us and bytes."""
    columns, units, rest = {}, set(), []
    entry: dict[str, Any] = {}
    for name in header:
        unit = unit_of(name)
        field = field_of(name)
        if field and field not in columns:
            columns[field] = name
            if unit and field.endswith("latency_us"):
                units.add(unit)
            if field == "size_bytes" and (size_unit := size_unit_of(name)):
                entry["size_unit"] = size_unit
        else:
            rest.append(name)
    wide = _wide(rest, columns, collective, catalogue) if "latency_us" not in columns else {}
    for field, of in wide.items():
        units |= {unit for name in of if (unit := unit_of(name))}
        questions.append(f"{where}: whether the columns {', '.join(of)} are times by {field}")
    questions += [
        f"{where}: the meaning of the column {name!r}"
        for name in rest
        if name and plain(name) not in COLLECTIVE and not any(name in of for of in wide.values())
    ]
    if not units:
        questions.append(f"{where}: the unit of the times; us is assumed")
    entry |= {"wide": wide} if wide else {}
    return {"columns": columns} | entry | ({"unit": units.pop()} if len(units) == 1 and units != {"us"} else {})


def _wide(
    names: list[str], columns: dict[str, str], collective: str | None, catalogue: Catalogue
) -> dict[str, dict[str, Any]]:
    """For columns of times, return the field whose values their names contain, with the value of each column; {} if there is none."""
    found: dict[str, dict[str, Any]] = {"algorithm": {}, "mapping": {}, "processes": {}, "size_bytes": {}}
    for name in names:
        word = without_unit(name)
        if collective and (algorithm := algorithm_in(word, collective, catalogue)):
            found["algorithm"][name] = algorithm
        if (mapping := mapping_named(word, catalogue)) != "?":
            found["mapping"][name] = mapping
        if ranks := re.fullmatch(r"(?:np|p|n)?[_ =]?(\d+)", word, re.IGNORECASE):
            found["processes"][name] = int(ranks.group(1))
        try:
            found["size_bytes"][name] = size_of(word)
        except Refused:
            continue
    # Numbers are sizes, unless there is a column of sizes.
    order = ("algorithm", "mapping", *(("processes",) if "size_bytes" in columns else ("size_bytes", "processes")))
    return next(({field: found[field]} for field in order if field not in columns and len(found[field]) >= 2), {})


def _entries(
    kind: str, header: tuple[str, ...], pattern: str, collective: str | None, paths: list[Path], catalogue: Catalogue,
    questions: list[str],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the entries of a group of files: one, or one for each collective that a column of the files names."""
    entry: dict[str, Any] = {"path": pattern}
    if kind == "nccl-tests":
        return [entry | {"format": kind, "collective": collective}]
    entry["collective"] = collective or "?"
    where = f"{pattern} ({len(paths)} file{'s' * (len(paths) > 1)})"
    columns: dict[str, str] = {}
    if kind in ("omb", "imb"):
        entry["format"] = kind
        outputs = max(read_text(path).count("# OSU MPI") for path in paths)
        if outputs > 1:
            questions.append(
                f"{where}: whether the {outputs} outputs in a file are launches of the same cells; if not, `by_row` or a file for each"
            )
    else:
        if kind == "bare":
            entry["header"] = list(header)
            questions.append(f"{where}: no header line; whether its columns are {', '.join(header)}, in us and bytes")
        entry |= _columns(header, where, collective, catalogue, questions)
        columns = entry["columns"]
    names = [from_name(path, entry) for path in paths]
    from_names = {
        field: {given[field] for given in names if field in given}
        for field in ("algorithm", "mapping")
        if field not in columns
    }
    words = _words(paths, header, columns, 0 if kind == "bare" else 1)
    if words.uneven:
        questions.append(f"{where}: {words.uneven} of {words.rows} rows have another number of fields than the header")
    said = {text: collective_in(text, catalogue) for text in words.by_collective if text}
    if strange := sorted(text for text, of in said.items() if of is None):
        questions.append(
            f"{where}: the column {words.column!r} has {', '.join(strange[:5])}, which names no collective"
        )
    several = sorted({of for of in said.values() if of})
    if len(several) > 1:
        columns["collective"] = words.column
    elif several:
        entry["collective"] = several[0]
    elif collective is None:
        questions.append(f"{where}: collective")
    elif kind != "imb" and not collective_in(Path(pattern).name.replace("{algorithm}", "_"), catalogue):
        questions.append(f"{where}: whether the collective is {collective}, as a folder's name says")
    entries = []
    for one in several if len(several) > 1 else [entry["collective"]]:
        values: dict[str, set[str]] = defaultdict(set, {field: set(of) for field, of in from_names.items()})
        for text, found in words.by_collective.items():
            if len(several) < 2 or said.get(text) == one:
                for field, of in found.items():
                    values[field] |= of
        mine = f"{where}: {one}" if len(several) > 1 else where
        entries.append(
            _named(
                entry | {"collective": one, **({"columns": {**columns}} if columns else {})},
                values,
                mine,
                catalogue,
                questions,
            )
        )
    _ask_for_fields(entries, kind, columns, where, questions)
    return entries


def _named(
    entry: dict[str, Any], values: dict[str, set[str]], where: str, catalogue: Catalogue, questions: list[str]
) -> dict[str, Any]:
    """Return the entry with the meaning of the *values* of its fields: algorithms, mappings, decimal commas."""
    _name_algorithms(entry, values["algorithm"], where, catalogue, questions)
    strange = sorted(values["mapping"] - set(catalogue.mappings))
    if strange:
        entry["mappings"] = {text: mapping_named(text, catalogue) for text in strange}
        if unknown := [text for text, ours in entry["mappings"].items() if ours == "?"]:
            questions.append(f"{where}: the mappings {', '.join(unknown)}" + allowed(catalogue.mappings))
    if any("," in text for text in values["latency_us"]):
        entry["decimal"] = "comma"
    return entry


def _ask_for_fields(
    entries: list[dict[str, Any]], kind: str, columns: dict[str, str], where: str, questions: list[str]
) -> None:
    """Ask for the fields that neither the columns nor the name of the files give."""
    entry = entries[0]
    given = {*columns, *entry.get("wide", {}), *(("latency_us",) if "wide" in entry else ())}
    given |= {"processes"} if {"nodes", "processes_per_node"} <= given else set()
    if kind in ("omb", "imb") or entry["collective"] not in SIZED:
        given |= {"size_bytes"}
    if kind in ("omb", "imb"):
        given |= {"latency_us"}
    if kind == "imb":
        given |= {"processes"}
    if entry["collective"] in POINT_TO_POINT:
        given |= {"algorithm", "processes"}
    for field in ("algorithm", "mapping", "processes", "size_bytes", "latency_us"):
        if field not in given and f"{{{field}}}" not in entry["path"]:
            questions.append(f"{where}: {field}; it can be set in `constants` or `by_row`")
            # An algorithm whose name is missing is not necessarily the default.
            if field == "algorithm":
                for one in entries:
                    one["constants"] = {"algorithm": "?"}


def _name_algorithms(
    entry: dict[str, Any], named: set[str], where: str, catalogue: Catalogue, questions: list[str]
) -> None:
    """Record in the entry what the algorithms' names mean, and ask about unknown ones."""
    collective = entry["collective"]
    if named and all(re.fullmatch(r"\d+", text) for text in named):
        entry["algorithms"] = "numbers"
        questions.append(f"{where}: whether the algorithms {', '.join(sorted(named))} are Open MPI's numbers")
    elif named and collective != "?":
        entry["algorithms"] = {text: algorithm_in(text, collective, catalogue) or "?" for text in sorted(named)}
        questions += [
            f"{where}: whether the algorithm {text} is {ours}"
            for text, ours in entry["algorithms"].items()
            if ours != "?" and not algorithm_named(text, collective, catalogue)
        ]
        questions += [
            f"{where}: whether {text} is Open MPI's component of that name, or another algorithm"
            for text, ours in entry["algorithms"].items()
            if "component" in catalogue.algorithms[collective].get(ours, {}).get("openmpi", {})
        ]
        if unknown := [text for text, ours in entry["algorithms"].items() if ours == "?"]:
            questions.append(
                f"{where}: the algorithms {', '.join(unknown)}" + allowed(catalogue.algorithms[collective])
            )


@dataclass
class _Words:
    """Distinct words in the columns of names and of times, by the word in the column of the collective ("" without such a column)."""

    column: str
    by_collective: dict[str, dict[str, set[str]]]
    rows: int = 0
    uneven: int = 0


def _words(paths: list[Path], header: tuple[str, ...], columns: dict[str, str], first: int) -> _Words:
    """Return the distinct words in the columns of names and of times, from record *first* on."""
    fields = {
        field: header.index(columns[field]) for field in ("algorithm", "mapping", "latency_us") if field in columns
    }
    said = next((name for name in header if plain(name) in COLLECTIVE), "")
    found = _Words(said, {})
    for path in paths if header else ():
        for row in itertools.islice(filter(any, csv_files.reader(read_text(path))), first, None):
            found.rows += 1
            if len(row) != len(header):
                found.uneven += 1
                continue
            words = found.by_collective.setdefault(row[header.index(said)].strip() if said else "", {})
            for field, at in fields.items():
                words.setdefault(field, set()).add(row[at].strip())
    return found
