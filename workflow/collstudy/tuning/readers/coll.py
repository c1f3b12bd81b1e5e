"""Read decision files of this project's collectives library (COLL_RULES), as workflow/native/coll/interface/select.c does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from collstudy.base.errors import allowed
from collstudy.study.catalogue import own_settings
from collstudy.tuning.readers.known import Known
from collstudy.tuning.tuningfile import ALL, Faults, FileRule, Span, TuningFile, general_faults

LINE = re.compile(r"([a-z_]+)\s+(\d+|\*)\s+(\d+|\*)\s+(\d+|\*)\s+(?:->\s*)?([a-z]\S*)", re.ASCII)
STOPS = "the library ends the program"


def is_coll(lines: list[str]) -> bool:
    """Return whether a line is one of a decision file."""
    return any(LINE.fullmatch(line.split("#")[0].strip()) for line in lines)


def read_coll(path: Path, text: str, known: Known) -> TuningFile:
    """Read lines `<collective> <nodes> <ranks per node> <max bytes> -> <algorithm>[:<key>=<value>...]`, with numbers or `*`.

    Ranks per node are rounded up: 2 nodes with 24 each have 47 or 48 ranks.
    """
    rules: list[FileRule] = []
    faults = Faults()
    begins: dict[tuple[str, ...], int] = {}
    for line, words in enumerate(text.splitlines(), 1):
        words = words.split("#")[0].strip()
        if not words:
            continue
        found = LINE.fullmatch(words)
        if not found:
            faults.add(line, f"not `<collective> <nodes> <ranks per node> <max bytes> <algorithm>`: {STOPS}")
            continue
        collective, nodes, per_node, most, name = found.groups()
        if collective not in known.catalogue.algorithms:
            faults.add(line, f"collective {collective!r}: {STOPS}" + allowed(known.catalogue.algorithms))
            continue
        algorithm, parameters = _named(known, collective, name)
        own, ppn, high = _number(nodes), _number(per_node), None if most == "*" else int(most)
        low = begins.get(found.groups()[:3], 0)
        begins[found.groups()[:3]] = max(low, 0 if high is None else high + 1)
        both = nodes != "*" and per_node != "*"
        rules.append(
            FileRule(
                line, collective, name, algorithm, parameters,
                Span(own.low * (ppn.low - 1) + 1, own.low * ppn.low) if both else ALL,
                Span(low if high is None or low <= high else 0, high),
                # Of alltoallv, the library counts all that a rank sends.
                collective == "alltoallv" and most != "*", own, ALL if both else ppn,
            )
        )  # fmt: skip
    return TuningFile(path, "coll", tuple(rules), (*faults, *general_faults(rules)))


def _number(word: str) -> Span:
    return ALL if word == "*" else Span(int(word), int(word))


def _named(known: Known, collective: str, name: str) -> tuple[str | None, tuple[tuple[str, int], ...]]:
    """Return the catalogue's name of the library's algorithm and its other parameters; None if it has none."""
    word, *pairs = name.split(":")
    if word == "default":
        return word, ()
    given: dict[str, Any] = {"algorithm": word}
    for key, _, value in (pair.partition("=") for pair in pairs):
        given[key] = int(value) if value.isdecimal() else value
    found: list[tuple[int, str, dict[str, Any]]] = []
    for algorithm, entry in known.catalogue.algorithms[collective].items():
        own = own_settings(entry)
        if own and own.items() <= given.items():
            found.append((len(own), algorithm, {key: given[key] for key in given.keys() - own.keys()}))
    if not found:
        return None, ()
    _, algorithm, rest = max(found, key=lambda one: one[0])
    return algorithm, tuple(sorted(rest.items()))
