"""Questions about entries of a draft that may have the same cells, because nothing tells in what their files differ."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.sources.importing.drafting.file_names import COUNTS
from collstudy.sources.importing.files import fields_of_wide, files_of_entries, from_name


@dataclass(frozen=True)
class _Told:
    """What an entry tells of its cells: the values of each field, {"?"} if it tells none."""

    where: str
    path: str
    algorithms: set[str]
    mappings: set[str]
    counts: dict[str, set[str]]

    def may_share(self, other: _Told) -> bool:
        """Return whether the entries may have the same cells."""
        both = self.counts.keys() & other.counts.keys()
        return bool(
            self.algorithms & other.algorithms
            and self.mappings & other.mappings
            and all(self.counts[field] & other.counts[field] for field in both)
        )


def questions_about(entries: list[dict[str, Any]], machines: dict[str, str]) -> Iterator[str]:
    """Yield the questions about entries of a draft; *machines* has the machine in the names of some files."""
    files = files_of_entries(entries)
    found: dict[tuple[str, str], list[_Told]] = defaultdict(list)
    for entry in entries:
        paths = [path for of, path in files if of is entry]
        if paths and entry.get("format") not in ("pico", "nccl-tests"):
            machine = " ".join(sorted({machines.get(str(path), "") for path in paths}))
            found[entry["collective"], machine].append(_told(entry, paths))
    for told in found.values():
        shared = {
            one.path for one, two in itertools.permutations(told, 2) if one.path != two.path and one.may_share(two)
        }
        for one in told:
            if one.path in shared:
                yield (
                    f"{one.where}: whether the files of a collective are launches of the same cells; if they differ in something "
                    "else (nodes, library, options), give each a study of its own"
                )
            if "{mapping}" in one.path and any(other.mappings == {"?"} for other in told):
                yield f"{one.where}: whether {', '.join(sorted(one.mappings))} in the names is the mapping; other files name none"


def _told(entry: dict[str, Any], paths: list[Path]) -> _Told:
    values: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for field, text in from_name(path, entry).items():
            values[field].add(text)
    for field, text in entry.get("constants", {}).items():
        values[field].add(str(text))
    algorithms = entry.get("algorithms", {})
    if algorithms and algorithms != "numbers":
        values["algorithm"] = {*algorithms.values()}
    wide = entry.get("wide", {})
    for field, of in {}.items() if isinstance(wide, str) else wide.items():
        values[field] = {str(value) for value in of.values()}
    if "mapping" in {*entry.get("columns", {}), *fields_of_wide(entry)} and not values["mapping"]:
        values["mapping"] = {"column"}
    counts = {field: values[field] for field in COUNTS if values[field]}
    where = f"{entry['path']} ({len(paths)} file{'s' * (len(paths) != 1)})"
    return _Told(where, entry["path"], values["algorithm"] or {"?"}, values["mapping"] or {"?"}, counts)
