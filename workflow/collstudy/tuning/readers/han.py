"""Read rules files of Open MPI's coll/han (ompi/mca/coll/han/coll_han_dynamic_file.c, 5.0)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from collstudy.base.errors import StudyError, allowed
from collstudy.tuning.readers.known import Known
from collstudy.tuning.rules import COLLTYPES, HAN, HAN_COMPONENTS
from collstudy.tuning.tuningfile import ALL, Faults, FileRule, Span, TuningFile

#: Topologic levels in the order of their numbers; the last, for the whole communicator, has the rules for calls.
LEVELS = ("intra_node", "inter_node", "global_communicator")
#: Collectives for which coll/han uses rules; besides HAN these are allgatherv and gatherv.
LOOKED_UP = (*HAN, "allgatherv", "gatherv")


class _Refused(Exception):
    """Open MPI ignores the whole file because of the word that was read last."""


class _Words:
    """The words of a file with their lines."""

    def __init__(self, path: Path, text: str):
        self.path = path
        self.words = [
            (number, word)
            for number, line in enumerate(text.splitlines(), 1)
            for word in re.findall(r"@|\[|\]|[^\s@\[\],]+", line.split("#")[0])
        ]
        self.position = 0

    @property
    def line(self) -> int:
        """Return the line of the word that was read last."""
        return self.words[max(self.position - 1, 0)][0]

    def next(self, what: str) -> str:
        """Return the next word; *what* is expected. Raises StudyError if there is none."""
        if self.position == len(self.words):
            raise StudyError(
                f"{self.path}, line {self.line}: truncated: the file ends where {what} is expected; Open MPI ignores the whole file"
            )
        self.position += 1
        return self.words[self.position - 1][1]

    def number(self, what: str, least: int = 0, most: int | None = None) -> int:
        """Return the next word as a number. Raises _Refused if it is not a number or is out of range."""
        word = self.next(what)
        if not word.isdecimal():
            raise _Refused(f"{word!r} where {what} is expected")
        if int(word) < least or (most is not None and int(word) > most):
            span = f"at least {least}" if most is None else f"{least} to {most}" if most != least else str(least)
            raise _Refused(f"{what} is {word}; allowed: {span}")
        return int(word)

    def follows(self, word: str) -> bool:
        """Return whether the next word is *word*; if so, consume it."""
        here = self.position < len(self.words) and self.words[self.position][1] == word
        self.position += here
        return here


def is_han(text: str) -> bool:
    """Return whether a text that begins with a number has components in place of algorithms."""
    words = [word for _, word in _Words(Path(), text).words]
    return bool(words) and words[0].isdecimal() and any(word in (*HAN_COMPONENTS, *LEVELS) for word in words)


def read_han(path: Path, text: str, known: Known) -> TuningFile:
    """Read components by collective, topologic level, communicator size, and bytes of one rank."""
    words, rules, faults = _Words(path, text), [], Faults()
    try:
        for _ in range(words.number("the number of collectives", 1)):
            _collective(words, known, rules, faults)
        if words.position < len(words.words):
            faults.add(words.words[words.position][0], "not read: more collectives than announced")
    except _Refused as why:
        faults.add(words.line, f"{why}: Open MPI ignores the whole file")
        return TuningFile(path, "openmpi-han", tuple(rules), tuple(faults), ignored=True)
    return TuningFile(path, "openmpi-han", tuple(rules), tuple(faults))


def _collective(words: _Words, known: Known, rules: list[FileRule], faults: Faults) -> None:
    name = words.next("a collective")
    if name.isdecimal() and int(name) < len(COLLTYPES):
        name = COLLTYPES[int(name)]
    if name not in COLLTYPES:
        raise _Refused(f"{name!r} is not a collective{allowed(COLLTYPES)}")
    if name not in LOOKED_UP:
        faults.add(words.line, f"coll/han has no {name}: these rules never apply")
    for _ in range(words.number("the number of topologic levels")):
        level = words.next("a topologic level")
        if level.isdecimal() and int(level) < len(LEVELS):
            level = LEVELS[int(level)]
        if level not in LEVELS:
            raise _Refused(f"{level!r} is not a topologic level{allowed(LEVELS)}")
        counts: list[tuple[int, int, list[FileRule]]] = []
        for i in range(words.number("the number of communicator sizes")):
            count = words.number(f"{'the first' if i == 0 else 'a'} communicator size", 1, 1 if i == 0 else None)
            line = words.line
            if counts and count <= counts[-1][1]:
                faults.add(line, f"{name}: {count} ranks after {counts[-1][1]}: communicator sizes must ascend")
            counts.append((line, count, _sizes(words, name, level, known, faults)))
        for (_, count, own), after in zip(counts, [*counts[1:], None], strict=True):
            span = ALL if count == 1 and after is None else Span(0 if count == 1 else count, after and after[1] - 1)
            rules += [replace(rule, ranks=span) for rule in own]


def _sizes(words: _Words, collective: str, level: str, known: Known, faults: Faults) -> list[FileRule]:
    found: list[FileRule] = []
    for i in range(words.number("the number of message sizes")):
        size = words.number(f"{'the first' if i == 0 else 'a'} message size", 0, 1 if i == 0 else None)
        line = words.line
        if found and size <= found[-1].sizes.low:
            faults.add(line, f"{collective}: {size} bytes after {found[-1].sizes.low}: message sizes must ascend")
        component = words.next("a component")
        if component not in HAN_COMPONENTS:
            raise _Refused(f"{component!r} is not a component known to coll/han{allowed(HAN_COMPONENTS)}")
        if component == "han" and level != LEVELS[2]:
            faults.add(line, f"{collective}: han at the level {level}: it runs only on the whole communicator")
        if words.follows("@"):
            if component != "han":
                raise _Refused(f"@ after {component}: only han has algorithms here")
            component = f"{component}@{words.next('an algorithm of coll/han')}"
        if words.follows("["):
            faults.add(line, f"{collective}: coll/han reads segment lengths and does not use them", note=True)
            while not words.follows("]"):
                words.number("a segment length")
        if found:
            found[-1] = replace(found[-1], sizes=Span(found[-1].sizes.low, size - 1))
        same = component if component in known.catalogue.algorithms.get(collective, {}) else None
        conditions = () if level == LEVELS[2] else (f"coll/han's level {level}",)
        # coll/han has no message size for a barrier.
        sizes = ALL if collective == "barrier" else Span(0 if i == 0 else size, None)
        found.append(FileRule(line, collective, component, same, sizes=sizes, conditions=conditions))
    return [replace(rule, sizes=ALL) if rule.sizes == Span(0, None) else rule for rule in found]
