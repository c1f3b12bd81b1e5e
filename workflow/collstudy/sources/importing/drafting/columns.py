"""The likely meaning of a table's columns, and the words in them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.sources.importing.convert import size_of
from collstudy.sources.importing.drafting.file_names import algorithm_in, pattern_of_column, some
from collstudy.sources.importing.formats import csv_files
from collstudy.sources.importing.strict import Refused
from collstudy.sources.importing.words import (
    COLLECTIVE,
    ELEMENTS,
    field_of,
    in_bytes,
    mapping_named,
    plain,
    size_unit_of,
    unit_of,
    without_unit,
)
from collstudy.study.catalogue import Catalogue

#: Fields by which the rows of a cell may differ.
TIMES = {"latency_us", "min_latency_us", "max_latency_us", "iterations", "bandwidth_mb_s"}


def columns_of(
    header: tuple[str, ...], collective: str | None, catalogue: Catalogue, ask: Callable[[str], None]
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
    for name in rest if not {"fanout", "radix"} & {*columns} else ():
        if plain(name) == "k":
            columns |= {"fanout": name, "radix": name}
            ask(f"whether the column {name!r} is the fan-out or the radix of the algorithms")
    if not columns and len(header) == 1:
        columns["latency_us"] = rest.pop()
        ask(f"whether the column {columns['latency_us']!r} is the time")
    for field, has_unit in (("latency_us", unit_of), ("size_bytes", in_bytes)):
        # A header in another language still has the unit.
        named = [name for name in rest if has_unit(name)]
        if field not in columns and len(named) == 1:
            columns[field] = named[0]
            rest.remove(named[0])
            units |= {unit_of(named[0])} - {None} if field == "latency_us" else set()
            ask(f"whether the column {named[0]!r} is the {'time' if field == 'latency_us' else 'size'}")
    counts = [name for name in rest if plain(name) in ELEMENTS]
    if "size_bytes" not in columns and len(counts) == 1:
        columns["size_bytes"], entry["size_unit"] = counts[0], "?"
        rest.remove(counts[0])
        ask(
            f"whether the column {counts[0]!r} is the number of elements of a message (`size_unit`: the bytes of an element)"
        )
    times = wide(rest, columns, collective, catalogue) if "latency_us" not in columns else {}
    used = [name for name, _ in csv_files.times_of({"wide": times}, rest)]
    units |= {unit for name in used if (unit := unit_of(name))}
    if used:
        fields = " and ".join(re.findall(r"\{(\w+)\}", times) if isinstance(times, str) else times)
        ask(f"whether the columns {some(used)} are times by {fields}")
    used += columns.values()
    if unknown := [repr(name) for name in rest if name and plain(name) not in COLLECTIVE and name not in used]:
        ask(f"the meaning of the column{'s' * (len(unknown) > 1)} {', '.join(unknown)}")
    entry |= {"wide": times} if times else {}
    if len(units) > 1:
        ask(f"the units of the times, {' and '.join(sorted(units))}: those of an entry have only one")
        units &= {unit_of(columns.get("latency_us", ""))}
        for field in ("min_latency_us", "max_latency_us"):
            if field in columns and unit_of(columns[field]) not in units:
                del columns[field]
    # us is the default; entries.py asks about "?".
    return {"columns": columns} | entry | {"unit": units.pop() if units else "?"}


def wide(
    names: list[str], columns: dict[str, str], collective: str | None, catalogue: Catalogue
) -> dict[str, dict[str, Any]] | str:
    """For columns of times, return the field whose values their names contain, with the value of each column, or the pattern of names
    that contain several fields; {} if there is none.
    """
    patterns = Counter(pattern_of_column(name, collective or "", catalogue, {*columns}) for name in names)
    for pattern, count in patterns.most_common(1):
        if count >= 2 <= pattern.count("{"):
            return pattern
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


@dataclass
class Words:
    """Distinct words in the columns of names, counts and times, by the word in the column of the collective ("" without such a column).

    *repeated* is the largest number of rows of a file with the same words in all columns but the times.
    """

    column: str
    by_collective: dict[str, dict[str, set[str]]]
    rows: int = 0
    uneven: int = 0
    repeated: int = 0


def words_in(
    paths: list[Path], header: tuple[str, ...], columns: dict[str, str], times: list[str], first: int
) -> Words:
    """Return the distinct words in the columns of names, counts and *times*, from record *first* on."""
    fields = [(field, header.index(columns[field])) for field in ("algorithm", "mapping") if field in columns]
    fields += [(field, header.index(columns[field])) for field in ("processes", "size_bytes") if field in columns]
    fields += [("latency_us", header.index(name)) for name in times]
    said = next((name for name in header if plain(name) in COLLECTIVE), "")
    found = Words(said, {})
    keys = [header.index(name) for field, name in columns.items() if field not in TIMES]
    keys += [header.index(said)] if said else []
    for path in paths if header else ():
        cells: Counter[tuple[str, ...]] = Counter()
        for _, row in itertools.islice(csv_files.records(path), first, None):
            found.rows += 1
            if len(row) != len(header):
                found.uneven += 1
                continue
            words = found.by_collective.setdefault(row[header.index(said)].strip() if said else "", {})
            for field, at in fields:
                words.setdefault(field, set()).add(row[at].strip())
            # Title lines of the benchmark, cut into columns like the rows of times ("Chain,core,2,#,OSU"), are no cells.
            if all(re.search(r"\d", row[at]) for field, at in fields if field == "latency_us"):
                cells[tuple(row[at] for at in keys)] += 1
        found.repeated = max(found.repeated, *cells.values(), 0)
    return found
