"""The likely entry of a study's `files` for a group of files, and what to ask about it."""

from __future__ import annotations

import functools
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.sources.importing.drafting import bare_tables, by_row
from collstudy.sources.importing.drafting.columns import TIMES, columns_of, words_in
from collstudy.sources.importing.drafting.file_names import algorithm_in, told_by_names
from collstudy.sources.importing.drafting.grouping import Ask, Group
from collstudy.sources.importing.files import from_name, given_by
from collstudy.sources.importing.formats import csv_files, nccl_tests, omb, pico, reprompi
from collstudy.sources.importing.formats.outputs import OUTPUTS
from collstudy.sources.importing.strict import CACHE_LINE, listed, read_text
from collstudy.sources.importing.words import algorithm_named, collective_in, mapping_named
from collstudy.study.catalogue import Catalogue
from collstudy.study.machines import Machine
from collstudy.study.names import POINT_TO_POINT, SIZED

#: Fields that a row needs.
NEEDED = ("algorithm", "mapping", "processes", "size_bytes", "latency_us")
#: A whole number with a separator of thousands other than a point.
GROUPED = re.compile(r"\d{1,3}([,'\u2019 \u00a0\u202f]\d{3})+", re.ASCII)
#: A number with a decimal comma, perhaps with points between thousands.
COMMA = re.compile(r"(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?", re.ASCII)


def pico_entries(folder: Path) -> list[dict[str, Any]]:
    """Return the entry for PICO's runs."""
    runs = pico.runs_of(folder)
    if not runs:
        return []
    metadata = sorted(folder.glob("*_metadata.csv"))
    ending = ".tar.gz" if all(run.name.endswith(".tar.gz") for run in runs) else ""
    return [
        {
            "path": f"{folder}/20*{ending}",
            "format": "pico",
            "metadata": str(metadata[0]),
            "where": {"gpu_awareness": "no"},
        }
    ]


def entries_of(group: Group, catalogue: Catalogue, machine: Machine | None) -> list[dict[str, Any]]:
    """Return the entries of a group of files: one, or one for each collective that a column of the files names."""
    if group.kind == "nccl-tests":
        if group.collective is None:
            group.ask("collective")
        near = "/".join(Path(group.pattern).parts[-2:]).lower()
        told = "{algorithm}" in group.pattern or "default" in near
        if not told and not all(nccl_tests.names_choice(read_text(path)) for path in group.paths):
            group.ask("whether NCCL chose algorithm and protocol itself (default); if not, set them in `constants`")
        return [{"path": group.pattern, "format": group.kind, "collective": group.collective or "?"}]
    entry = _read_as(group, catalogue)
    columns = entry.get("columns", {})
    names = [from_name(path, entry) for path in group.paths]
    ranks = _ranks_said(group, entry["collective"]) if group.kind in OUTPUTS else []
    for name, said in zip(names, ranks, strict=False):
        name["ranks"] = " ".join(said)
        if name.get("processes") in said:
            del name["processes"]  # no question: the output says so, too
    for text in told_by_names(group.pattern, group.paths, names):
        group.ask(text)
    if group.kind == "omb" and any(omb.on_gpu(read_text(path)) for path in group.paths):
        group.ask("outputs with buffers in GPU memory; give them a study of their own")
    from_names = {
        field: {given[field] for given in names if field in given}
        for field in ("algorithm", "mapping")
        if field not in columns
    }
    if group.kind == "reprompi":
        texts = map(read_text, group.paths)
        from_names["algorithm"] |= {name for text in texts for name in reprompi.mock_ups_of(text, entry["collective"])}
        if "{algorithm}" not in group.pattern:
            group.ask("whether the library chose the algorithm itself (default); if not, set it in `constants`")
    of_columns = csv_files.times_of(entry, group.header)
    if isinstance(entry.get("wide"), str):
        for field in from_names:
            from_names[field] |= {fields[field] for _, fields in of_columns if field in fields}
    times = [*columns.get("latency_us", "").splitlines(), *(name for name, _ in of_columns)]
    words = words_in(group.paths, group.header, columns, times, group.first_row)
    if words.uneven:
        have = "has" if words.uneven == 1 else "have"
        group.ask(f"{words.uneven} of {words.rows} rows {have} another number of fields than the header")
    _ask_for_unit(entry, {text for of in words.by_collective.values() for text in of.get("latency_us", ())}, group)
    named = {text: collective_in(text, catalogue) for text in words.by_collective if text}
    several = _collectives(entry, named, words.column, group, catalogue)
    entries = []
    for one in several:
        values: dict[str, set[str]] = defaultdict(set, {field: set(of) for field, of in from_names.items()})
        for text, found in words.by_collective.items():
            if len(several) < 2 or named.get(text) == one:
                for field, of in found.items():
                    values[field] |= of
        mine = entry | {"collective": one, **({"columns": {**columns}} if columns else {})}
        ask = functools.partial(group.ask, about=one) if len(several) > 1 else group.ask
        entries.append(_named(mine, values, catalogue, ask))
    missing = _missing(entries, group, columns)
    told = _count_rows(entries, missing, group, columns, machine)
    if not missing and words.repeated > 1 and not columns.keys() <= TIMES:
        group.ask(f"whether the {words.repeated} rows of a cell are launches, or single calls (`rows: iterations`)")
    _ask_for_fields(entries, [field for field in missing if field not in told], group)
    return entries


def _read_as(group: Group, catalogue: Catalogue) -> dict[str, Any]:
    """Return how the files are read: pattern, format, or columns with their units."""
    entry: dict[str, Any] = {"path": group.pattern, "collective": group.collective or "?"}
    if group.kind in OUTPUTS:
        entry["format"] = group.kind
        said = _collective_of_names(group, catalogue)
        if said and said != group.collective:
            group.ask(f"output of {group.collective}, although the names of the files say {said}")
        return entry
    if group.kind == "bare":
        entry["header"] = list(group.header)
        said = "its only column is the time" if len(group.header) == 1 else f"its columns are {', '.join(group.header)}"
        group.ask(f"no header line; whether {said}")
    return entry | columns_of(group.header, group.collective, catalogue, group.ask)


def _ask_for_unit(entry: dict[str, Any], times: set[str], group: Group) -> None:
    """Ask for the unit of the *times* if their header has none, or if they are too short for us; us is not written."""
    values = [value for text in times if (value := bare_tables.number(text.replace(",", "."))) is not None]
    middle = statistics.median(values or [1.0])
    if (times := times - {""}) and not values:
        group.ask(f"the times, such as {min(times)!r}: they must be numbers")
    if "latency_us" not in entry.get("columns", {}) and "bandwidth_mb_s" in entry.get("columns", {}):
        entry.pop("unit", None)
    if group.kind == "bare":
        entry["unit"] = "?"
    if entry.get("unit") == "?" and 0 < middle < CACHE_LINE:
        group.ask(f"the unit of the times; most are below {CACHE_LINE:g}, too short for us (`unit: s` or `unit: ms`)")
    elif entry.get("unit") == "?":
        group.ask("the unit of the times; us is assumed")
        del entry["unit"]
    elif entry.get("unit") == "us":
        del entry["unit"]


def _collective_of_names(group: Group, catalogue: Catalogue) -> str | None:
    """Return the collective in the names of the files themselves, not of their folders."""
    return collective_in(Path(group.pattern).name.replace("{algorithm}", "_"), catalogue)


def _collectives(
    entry: dict[str, Any], named: dict[str, str | None], column: str, group: Group, catalogue: Catalogue
) -> list[str]:
    """Return the collectives of the entries, and record in *entry* the *column* that names several; *named* has the collective of each
    of its words.
    """
    if strange := sorted(text for text, of in named.items() if of is None):
        group.ask(f"the column {column!r} has {', '.join(strange[:5])}, which names no collective")
    several = sorted({of for of in named.values() if of})
    if len(several) > 1:
        entry["columns"]["collective"] = column
    if several:
        return several
    if group.collective is None:
        group.ask("collective")
    elif group.kind not in OUTPUTS and not _collective_of_names(group, catalogue):
        group.ask(f"whether the collective is {group.collective}, as a folder's name says")
    return [entry["collective"]]


def _named(entry: dict[str, Any], values: dict[str, set[str]], catalogue: Catalogue, ask: Ask) -> dict[str, Any]:
    """Return the entry with the meaning of the *values* of its fields: algorithms, mappings, decimal commas."""
    for field in ("algorithm", "mapping"):
        if "" in values[field]:
            ask(f"some cells of the column {entry['columns'][field]!r} are empty; their rows are not used")
    _name_algorithms(entry, values["algorithm"] - {""}, catalogue, ask)
    strange = sorted(values["mapping"] - set(catalogue.mappings) - {""})
    if strange:
        entry["mappings"] = {text: mapping_named(text, catalogue) for text in strange}
        if unknown := [text for text, ours in entry["mappings"].items() if ours == "?"]:
            ask(f"the mappings {', '.join(unknown)}" + allowed(catalogue.mappings))
    _name_separators(entry, values, ask)
    return entry


def _name_separators(entry: dict[str, Any], values: dict[str, set[str]], ask: Ask) -> None:
    """Record the decimal separator of the times, and ask about separators that are, or may be, those of thousands."""
    times = values["latency_us"] - {""}
    short = {text for text in times if re.fullmatch(r"\d{1,3}", text, re.ASCII)}
    rest = sorted(times - short)
    of_thousands = "numbers must not have separators of thousands"
    for name, mark in (("comma", ","), ("point", ".")):
        # Decimal numbers have other numbers of digits, too; with points, only if all have three decimals.
        grouped = rest and all(re.fullmatch(rf"[1-9]\d{{0,2}}\{mark}\d{{3}}", text, re.ASCII) for text in rest)
        if grouped and (short or mark == ","):
            entry["decimal"] = "?"
            other = "which must be removed" if mark == "," else "`decimal: comma`"
            ask(f"whether the {name}s in {rest[0]!r} are decimal (`decimal: {name}`), or separate thousands ({other})")
            return
    if commas := [text for text in rest if "," in text]:
        if all(map(COMMA.fullmatch, times)):
            entry["decimal"] = "comma"
        else:
            ask(f"the commas in {commas[0]!r}; {of_thousands}")
    for field in ("processes", "size_bytes"):
        if found := sorted(text for text in values[field] if GROUPED.fullmatch(text)):
            ask(f"the {found[0]!r} in the column {entry['columns'][field]!r}; {of_thousands}")


def _missing(entries: list[dict[str, Any]], group: Group, columns: dict[str, str]) -> list[str]:
    """Return the fields that neither the columns, the names nor the texts of the files give."""
    entry, kind = entries[0], group.kind
    given = given_by(entry, group.paths[0])
    per_node = "processes_per_node" in given
    given |= {"processes"} if per_node else set()
    given |= {"latency_us"} if "bandwidth_mb_s" in given else set()
    if entry["collective"] not in SIZED:
        given |= {"size_bytes"}
    if kind in OUTPUTS:
        given |= {"size_bytes", "latency_us", *["processes"] * all(_ranks_said(group, entry["collective"]))}
    if entry["collective"] in POINT_TO_POINT or kind == "reprompi":
        given |= {"algorithm", "processes"}
    return [field for field in (*NEEDED, *["nodes"] * per_node) if field not in given]


def _ranks_said(group: Group, collective: str) -> list[list[str]]:
    """Return the numbers of ranks that lines of each raw output say."""
    return [OUTPUTS[group.kind].ranks_said(read_text(path), collective) for path in group.paths]


def _forced(group: Group, collective: str) -> str:
    """Return the words about Open MPI's numbers of algorithms that commands in raw outputs force; "" if there are none."""
    files = [omb.commanded(read_text(path), collective)[1] for path in group.paths]
    forced = sorted(set().union(*files))
    if not forced:
        return ""
    words = f"; commands in the files force Open MPI's numbers {', '.join(map(str, forced))} (`algorithms: numbers`)"
    if any(len(of) > 1 for of in files):
        return f"{words}: split the file{'s' * (len(files) > 1)} by algorithm"
    return words + ": give the files of each an entry of its own" * (len(forced) > 1)


def _count_rows(
    entries: list[dict[str, Any]], missing: list[str], group: Group, columns: dict[str, str], machine: Machine | None
) -> set[str]:
    """Propose `by_row` for *missing* sizes and processes if the numbers of rows fit, and ask about it. Returns the fields that were
    proposed or asked for.
    """
    outputs = 0
    if group.kind == "omb":
        titles = [[omb.titled(line) for line in read_text(path).splitlines()] for path in group.paths]
        outputs = max(of.count(entries[0]["collective"]) for of in titles)
    wanted = {"size_bytes", "processes"} & {*missing}
    if len(entries) > 1 or entries[0]["collective"] == "?" or (group.kind in OUTPUTS and outputs < 2):
        wanted = set()
    # A file has one cell if its columns and rows give no field.
    single = group.kind in ("csv", "bare") and columns.keys() <= TIMES and "wide" not in entries[0] and not wanted
    try:
        tables = [
            by_row.of_output(path, entries[0]["collective"]) if group.kind == "omb"
            else by_row.of_table(path, group.header, columns, group.first_row)
            for path in group.paths if wanted or single
        ]  # fmt: skip
    except StudyError as problem:
        group.questions.append(str(problem))
        return set()
    rows = by_row.numbers(one.rows for one in tables)
    if single and rows != "1":
        group.ask(f"whether the {rows} rows of a file are launches, or single calls (`rows: iterations`)")
    # A column that is not understood may have the values.
    understood = {*columns.values(), *(name for name, _ in csv_files.times_of(entries[0], group.header)), ""}
    # Collectives of OSU Micro-Benchmarks need two ranks.
    least = 2 if group.kind == "omb" else 1
    proposal = by_row.propose(wanted, tables, machine, least) if {*group.header} <= understood else None
    if proposal:
        entries[0]["by_row"] = proposal.rules
        group.ask(f"whether the {rows} rows of a file are {proposal.assumed}")
        return {*proposal.rules}
    hint = "; with --machine, process counts that fit its cores are proposed"
    if outputs > 1:
        of_ranks = ""
        if not wanted and all(said := _ranks_said(group, entries[0]["collective"])):
            outputs = max(of.count(ranks) for of in said for ranks in of)
            of_ranks = " of a number of ranks"
        if outputs > 1:
            group.ask(
                f"whether the {outputs} outputs{of_ranks} in a file are launches of the same cells; if not, `by_row` or a file for each"
                + hint * (machine is None and "processes" in wanted)
            )
        return set()
    for field in sorted(wanted):
        group.ask(
            f"{field}; it can be set in `constants` or `by_row` (a file has {rows} row{'s' * (rows != '1')})"
            + hint * (machine is None and field == "processes")
        )
    return wanted


def _ask_for_fields(entries: list[dict[str, Any]], missing: list[str], group: Group) -> None:
    """Ask for the *missing* fields."""
    for field in missing:
        how = " or `by_row`" * (field in ("processes", "size_bytes"))
        set_in = f"; it can be set in `constants`{how}"
        if field == "algorithm" and group.kind == "omb":
            set_in += _forced(group, entries[0]["collective"])
        group.ask(field + (", the column of the times" if field == "latency_us" else set_in))
        # An algorithm whose name is missing is not necessarily the default.
        if field == "algorithm":
            for one in entries:
                one["constants"] = {"algorithm": "?"}


def _name_algorithms(entry: dict[str, Any], named: set[str], catalogue: Catalogue, ask: Ask) -> None:
    """Record in the entry what the algorithms' names mean, and ask about unknown ones."""
    collective = entry["collective"]
    if named and all(re.fullmatch(r"\d+", text) for text in named):
        entry["algorithms"] = "numbers"
        ask(f"whether the algorithms {', '.join(sorted(named))} are Open MPI's numbers")
    elif named and collective != "?":
        entry["algorithms"] = {text: algorithm_in(text, collective, catalogue) or "?" for text in sorted(named)}
        for text, ours in entry["algorithms"].items():
            if ours != "?" and not algorithm_named(text, collective, catalogue):
                ask(f"whether the algorithm {text} is {ours}")
        for text, ours in entry["algorithms"].items():
            if "component" in catalogue.algorithms[collective].get(ours, {}).get("openmpi", {}):
                ask(f"whether {text} is Open MPI's component of that name, or another algorithm")
        if unknown := [text for text, ours in entry["algorithms"].items() if ours == "?"]:
            ask(f"the algorithms {', '.join(unknown)}" + allowed(catalogue.algorithms[collective]))


#: An entry and the files that it is about.
Pair = tuple[dict[str, Any], list[Path]]


def merged(pairs: list[Pair]) -> list[dict[str, Any]]:
    """Merge entries with the same pattern that differ only in the names of their columns; a list of names means the first that
    a file has. If files with the same pattern differ in more, only the largest group of them keeps it.
    """
    found: list[Pair] = []
    for entry, paths in pairs:
        rest = {name: value for name, value in entry.items() if name != "columns"}
        same = next(
            (one for one in found if {name: of for name, of in one[0].items() if name != "columns"} == rest), None
        )
        if same is None or {*same[0].get("columns", {})} != {*entry.get("columns", {})}:
            found.append((entry, [*paths]))
            continue
        same[1].extend(paths)
        for field, name in entry.get("columns", {}).items():
            names = listed(same[0]["columns"][field])
            if name not in names:
                same[0]["columns"][field] = [*names, name]
    return [entry for pair in found for entry in _apart(pair, found)]


def _apart(pair: Pair, pairs: list[Pair]) -> list[dict[str, Any]]:
    """Return an entry, or one for each of its tables if more files of another entry have the same pattern. (Outputs say what they are.)"""
    entry, paths = pair
    if "format" in entry:
        return [entry]
    largest = max((of for one, of in pairs if one["path"] == entry["path"]), key=len)
    if {*paths} == {*largest}:
        return [entry]
    found = []
    for path in paths:
        constants = entry.get("constants", {}) | from_name(path, entry)
        found.append(entry | {"path": str(path)} | ({"constants": constants} if constants else {}))
    return found
