"""Explain a tuning file in words: its rules, those for given ranks and bytes, and all its faults."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.errors import StudyError, allowed
from collstudy.study.words import parameter_words
from collstudy.tuning.readers.known import FORMATS, Known
from collstudy.tuning.tuningfile import ALL, POWER_OF_TWO, Fault, FileRule, TuningFile

#: Words for a decision that is left to the library.
OWN = "the library's own decision"


def explain(
    file: TuningFile, known: Known, collective: str | None, ranks: int | None, size: int | None, nodes: int | None
) -> list[str]:
    """Return the lines to print: the file, its rules (all, or those for *ranks* ranks and *size* bytes per rank), and faults.

    Raises StudyError for a collective without rules in the file.
    """
    if collective and collective not in file.collectives:
        raise StudyError(f"{file.path}: has no rules for {collective}" + allowed(file.collectives))
    lines = [
        f"{file.path}: {FORMATS[file.format]}; {_count(len(file.rules), 'rule')} for {', '.join(file.collectives) or 'no collective'}"
    ]
    if file.format.startswith("openmpi"):
        # Only 6.0 and later read JSON rules.
        version = known.version if file.format != "openmpi-json" or known.release >= (6,) else "6.0"
        lines.append(f"as Open MPI {version} reads it")
    if file.format == "intel":
        ranges = "a call takes the first range whose end it does not exceed, or the last one; starts are ignored"
        lines.append(f"as Intel MPI 2021.18.1 applies it: {ranges}, and sizes if a rule has ranks")
    if file.ignored and not file.misread:
        lines.append("The library ignores this file because of an error; its rules would be:")
    if file.misread:
        lines.append("Open MPI misreads or ignores this file because of an error. Rules as intended by its lines:")
    lines.append("")
    asked = [collective] if collective else list(file.collectives)
    for name in asked:
        if ranks is None:
            lines += [f"{name}: {_decides(rule)}{_where(rule)} (line {rule.line})" for rule in file.of(name)]
        else:
            lines += _at(file, name, ranks, size, nodes)
    return [*lines, "", *_faults(file.faults)]


def _at(file: TuningFile, collective: str, ranks: int, size: int | None, nodes: int | None) -> Iterator[str]:
    if size is None and any(rule.sizes != ALL for rule in file.of(collective)):
        raise StudyError(f"{file.path}: the rules for {collective} depend on the size; add --size")
    on = f" on {_count(nodes, 'node')}" if nodes else ""
    many = "" if size is None or collective == "barrier" else f", {size} bytes per rank"
    found = file.at(collective, ranks, size or 0, nodes)
    lines = []
    for rule in found:
        condition = ""
        if rule.applies(ranks, size or 0, nodes) is None:
            unknown = [condition for condition in rule.conditions if condition != POWER_OF_TWO]
            unknown += [where] if (where := _placed(rule)) and nodes is None else []
            condition = f"if {' and '.join(unknown)}: "
        lines.append(f"{condition}{_decides(rule)} (line {rule.line}:{_where(rule) or ' always'})")
    if not found or condition:
        lines.append(f"{'otherwise ' if found else ''}no rule: {OWN}")
    yield f"{collective}, {_count(ranks, 'rank')}{on}{many}:{' ' + lines[0] if len(lines) == 1 else ''}"
    yield from (f"  {line}" for line in lines if len(lines) > 1)


def _decides(rule: FileRule) -> str:
    if rule.algorithm == "default":
        return OWN
    words = rule.algorithm.replace("_", " ") if rule.algorithm else rule.word
    if rule.algorithm and rule.word != rule.algorithm:
        words += f" (in the file: {rule.word})"
    return ", ".join(filter(None, [words, parameter_words(rule.parameters)]))


def _where(rule: FileRule) -> str:
    of = "bytes of all ranks together" if rule.total else "bytes"
    parts = [rule.ranks.words("ranks"), rule.sizes.words(of), _placed(rule)]
    parts += [f"with {condition}" for condition in rule.conditions]
    found = ", ".join(part for part in parts if part)
    return f" {found}" if found else ""


def _placed(rule: FileRule) -> str:
    parts = [rule.nodes.words("nodes", "on "), rule.ppn.words("ranks per node", "with ")]
    return " ".join(part for part in parts if part)


def _faults(faults: tuple[Fault, ...]) -> list[str]:
    wrong = [fault for fault in faults if not fault.note]
    lines = [f"{_count(len(wrong), 'error')}{':' if wrong else ''}"]
    lines += [f"  line {fault.line}: {fault.text}" for fault in wrong]
    notes = [fault for fault in faults if fault.note]
    return lines + (["notes:", *(f"  line {fault.line}: {fault.text}" for fault in notes)] if notes else [])


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
