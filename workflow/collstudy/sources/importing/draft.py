"""Draft a study that imports a folder of results: its files, the likely meaning of columns and names, and open questions."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, nearest
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT
from collstudy.sources.importing import bare_tables, by_row, csv_files, imb, nccl_tests, omb
from collstudy.sources.importing.convert import size_of
from collstudy.sources.importing.file_names import (
    TABLES,
    algorithm_in,
    collective_of,
    joined,
    machines_in,
    nccl_pattern,
    pattern_of,
    suffix_of,
    told_by_names,
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
from collstudy.study.machines import Machine
from collstudy.study.names import POINT_TO_POINT, SIZED

yaml = lazy("yaml")

#: Fields that a row needs.
NEEDED = ("algorithm", "mapping", "processes", "size_bytes", "latency_us")
#: Fields by which the rows of a cell may differ.
TIMES = {"latency_us", "min_latency_us", "max_latency_us", "iterations", "bandwidth_mb_s"}
#: A number with a decimal comma, perhaps with points between thousands.
COMMA = re.compile(r"(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?", re.ASCII)
#: Endings of spreadsheets.
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
#: The part of a file (bytes) in which the output of a benchmark begins, after that of a job.
BEGINNING = 2**16


def draft(folder: Path, name: str, machine: str | None, configuration: Configuration) -> tuple[str, list[str]]:
    """Return the text of the study's YAML and the open questions. Raises StudyError for a folder with nothing to import."""
    if not folder.is_dir():
        raise StudyError(f"{folder}: " + ("a file; name its folder" if folder.is_file() else "no such folder"))
    folder = folder.absolute()
    if _special(str(folder)):
        raise StudyError(f"{folder}: {_special(str(folder))}; rename the folder")
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
    elif machine not in kinds:
        questions.append(
            f"machine: config/machines/{machine}.yaml does not exist yet{nearest(machine, imported)}: kind: imported, label, and "
            "levels with their counts"
        )
    known = configuration.machine(machine) if machine in kinds else None
    if known and known.kind != "imported":
        raise StudyError(
            f"--machine: {machine} is of kind {known.kind}; an import needs kind imported{allowed(imported)}"
        )
    entries = [*_pico(folder), *_merged(_grouped(folder, configuration.catalogue, known, questions))]
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
    # YAML and terminals do not take the control characters of damaged files.
    questions = [re.sub(r"[^ -~\u00a1-\ud7ff]", "?", question) for question in _by_text(questions, folder)]
    for entry in entries:
        # Relative paths start at the checkout.
        entry["path"] = entry["path"].removeprefix(f"{ROOT}/")
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


def _grouped(folder: Path, catalogue: Catalogue, machine: Machine | None, questions: list[str]) -> list[dict[str, Any]]:
    """Return one entry for all files with the same header and the same name pattern."""
    groups: dict[tuple, list[Path]] = defaultdict(list)
    unknown: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith("_metadata.csv"):
            continue
        if path.suffix.lower() in SPREADSHEETS:
            questions.append(f"{path}: a spreadsheet is not read; export its sheets as CSV")
        if suffix_of(path.name).lower() not in TABLES and not _is_output(path):
            continue
        if special := _special(str(path)):
            questions.append(f"{path}: {special}; rename the file")
            continue
        try:
            found = _groups(folder, path, catalogue)
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
    return [
        entry
        for (kind, header, pattern, collective), paths in joined(groups).items()
        for entry in _entries(kind, header, pattern, collective, paths, catalogue, machine, questions)
    ]


def _groups(folder: Path, path: Path, catalogue: Catalogue) -> list[tuple]:
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


def _special(text: str) -> str:
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
    wide = not numbers and len(found) == len(second) and _wide([*found], {}, collective, catalogue)
    return found if known >= 2 or wide or (csv and not (known == 0 and numbers >= 2)) else ()


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
    if not columns and len(header) == 1:
        columns["latency_us"] = rest.pop()
        questions.append(f"{where}: whether the column {columns['latency_us']!r} is the time")
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
    machine: Machine | None, questions: list[str],
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
        said = collective_in(Path(pattern).name.replace("{algorithm}", "_"), catalogue)
        if said and said != collective:
            questions.append(f"{where}: output of {collective}, although the names of the files say {said}")
    else:
        if kind == "bare":
            entry["header"] = list(header)
            only = len(header) == 1
            said = (
                "its only column is the time, in us"
                if only
                else f"its columns are {', '.join(header)}, in us and bytes"
            )
            questions.append(f"{where}: no header line; whether {said}")
        entry |= _columns(header, where, collective, catalogue, questions)
        columns = entry["columns"]
    names = [from_name(path, entry) for path in paths]
    questions += [f"{where}: {text}" for text in told_by_names(pattern, paths, names)]
    from_names = {
        field: {given[field] for given in names if field in given}
        for field in ("algorithm", "mapping")
        if field not in columns
    }
    times = [
        *columns.get("latency_us", "").splitlines(),
        *(name for of in entry.get("wide", {}).values() for name in of),
    ]
    words = _words(paths, header, columns, times, 0 if kind == "bare" else 1)
    if words.uneven:
        have = "has" if words.uneven == 1 else "have"
        questions.append(
            f"{where}: {words.uneven} of {words.rows} rows {have} another number of fields than the header"
        )
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
    elif kind not in ("omb", "imb") and not collective_in(Path(pattern).name.replace("{algorithm}", "_"), catalogue):
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
    missing = _missing(entries, kind, columns)
    told = _count_rows(entries, missing, kind, paths, header, columns, machine, where, questions)
    _ask_for_fields(entries, [field for field in missing if field not in told], where, questions)
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
    if commas := sorted(text for text in values["latency_us"] if "," in text):
        if all(map(COMMA.fullmatch, values["latency_us"])):
            entry["decimal"] = "comma"
        else:
            questions.append(f"{where}: the commas in {commas[0]!r}; numbers must not have separators of thousands")
    return entry


def _missing(entries: list[dict[str, Any]], kind: str, columns: dict[str, str]) -> list[str]:
    """Return the fields that neither the columns nor the name of the files give."""
    entry = entries[0]
    given = {*columns, *entry.get("wide", {}), *(("latency_us",) if "wide" in entry else ())}
    given |= set(re.findall(r"\{(\w+)\}", entry["path"]))
    given |= {"processes"} if {"nodes", "processes_per_node"} <= given else set()
    given |= {"latency_us"} if "bandwidth_mb_s" in given else set()
    if kind in ("omb", "imb") or entry["collective"] not in SIZED:
        given |= {"size_bytes"}
    if kind in ("omb", "imb"):
        given |= {"latency_us"}
    if kind == "imb":
        given |= {"processes"}
    if entry["collective"] in POINT_TO_POINT:
        given |= {"algorithm", "processes"}
    return [field for field in NEEDED if field not in given]


def _count_rows(
    entries: list[dict[str, Any]], missing: list[str], kind: str, paths: list[Path], header: tuple[str, ...], columns: dict[str, str],
    machine: Machine | None, where: str, questions: list[str],
) -> set[str]:  # fmt: skip
    """Propose `by_row` for *missing* sizes and processes if the numbers of rows fit, and ask about it. Returns the fields that were
    proposed or asked for.
    """
    outputs = 0
    if kind == "omb":
        titles = [[omb.titled(line) for line in read_text(path).splitlines()] for path in paths]
        outputs = max(of.count(entries[0]["collective"]) for of in titles)
    wanted = {"size_bytes", "processes"} & {*missing}
    if len(entries) > 1 or entries[0]["collective"] == "?" or kind == "imb" or (kind == "omb" and outputs < 2):
        wanted = set()
    # A file has one cell if its columns and rows give no field.
    single = kind in ("csv", "bare") and columns.keys() <= TIMES and "wide" not in entries[0] and not wanted
    try:
        tables = [
            by_row.of_output(path, entries[0]["collective"]) if kind == "omb"
            else by_row.of_table(path, header, columns, 0 if kind == "bare" else 1)
            for path in paths if wanted or single
        ]  # fmt: skip
    except StudyError as problem:
        questions.append(str(problem))
        return set()
    rows = by_row.numbers(one.rows for one in tables)
    if single and rows != "1":
        questions.append(
            f"{where}: whether the {rows} rows of a file are launches, or single calls (`rows: iterations`)"
        )
    # A column that is not understood may have the values.
    understood = {*columns.values(), *(name for of in entries[0].get("wide", {}).values() for name in of), ""}
    proposal = by_row.propose(wanted, tables, machine) if {*header} <= understood else None
    if proposal:
        entries[0]["by_row"] = proposal.rules
        questions.append(f"{where}: whether the {rows} rows of a file are {proposal.assumed}")
        return {*proposal.rules}
    hint = "; with --machine, process counts that fit its cores are proposed"
    if outputs > 1:
        questions.append(
            f"{where}: whether the {outputs} outputs in a file are launches of the same cells; if not, `by_row` or a file for each"
            + hint * (machine is None and "processes" in wanted)
        )
        return set()
    questions += [
        f"{where}: {field}; it can be set in `constants` or `by_row` (a file has {rows} row{'s' * (rows != '1')})"
        + hint * (machine is None and field == "processes")
        for field in sorted(wanted)
    ]
    return wanted


def _ask_for_fields(entries: list[dict[str, Any]], missing: list[str], where: str, questions: list[str]) -> None:
    """Ask for the *missing* fields."""
    for field in missing:
        how = " or `by_row`" * (field in ("processes", "size_bytes"))
        questions.append(
            f"{where}: latency_us, the column of the times" if field == "latency_us"
            else f"{where}: {field}; it can be set in `constants`{how}"
        )  # fmt: skip
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


def _words(paths: list[Path], header: tuple[str, ...], columns: dict[str, str], times: list[str], first: int) -> _Words:
    """Return the distinct words in the columns of names and of *times*, from record *first* on."""
    fields = [(field, header.index(columns[field])) for field in ("algorithm", "mapping") if field in columns]
    fields += [("latency_us", header.index(name)) for name in times]
    said = next((name for name in header if plain(name) in COLLECTIVE), "")
    found = _Words(said, {})
    for path in paths if header else ():
        for _, row in itertools.islice(csv_files.records(path), first, None):
            found.rows += 1
            if len(row) != len(header):
                found.uneven += 1
                continue
            words = found.by_collective.setdefault(row[header.index(said)].strip() if said else "", {})
            for field, at in fields:
                words.setdefault(field, set()).add(row[at].strip())
    return found
