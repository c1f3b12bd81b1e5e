"""Read Open MPI's rules files, versions 1 and 2 (ompi/mca/coll/tuned/coll_tuned_dynamic_file.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.study.openmpi_numbers import USES, reads_version_2
from collstudy.tuning.readers.known import Known
from collstudy.tuning.rules import COLLTYPES, OF_ELEMENTS, TOTAL_BYTES, WITHOUT_SIZE
from collstudy.tuning.tuningfile import ALL, Faults, FileRule, Span, TuningFile

#: Algorithms that also use the fan-out in 6.0 (allgather's Bruck and reduce's k-nomial tree use it as radix).
FANNING_6 = {"allgather": ("bruck", "direct-messaging"), "reduce": ("knomial",)}


class _CutOff(Exception):
    """The numbers ended too early; the text names what was expected."""


class _Numbers:
    """The numbers of a classic file with their lines. Open MPI reads them one after the other, without regard to line breaks.

    If every line has the numbers of one entry, as in files of all known writers, wrong counts can be recognised from the lines.
    """

    def __init__(self, text: str):
        self.lines = [
            (number, [_long(word) for word in re.findall(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)", line.split("#")[0])])
            for number, line in enumerate(text.splitlines(), 1)
        ]
        self.tokens = [(number, value, len(values)) for number, values in self.lines for value in values]
        self.by_lines = all(len(values) in (0, 1, 4, 5) for _, values in self.lines)
        self.position = 0

    def next(self, what: str) -> tuple[int, int]:
        """Return line and value of the next number; *what* is expected. Raises _CutOff at the end."""
        if self.position == len(self.tokens):
            raise _CutOff(what)
        number, value, _ = self.tokens[self.position]
        self.position += 1
        return number, value

    @property
    def left(self) -> int:
        """Return the number of remaining numbers."""
        return len(self.tokens) - self.position

    @property
    def at_rule(self) -> bool:
        """Return whether the next number is in the line of a rule."""
        return self.left > 0 and self.tokens[self.position][2] >= 4

    @property
    def same_line(self) -> bool:
        """Return whether the next number is in the same line as the last one."""
        return self.left > 0 and self.tokens[self.position][0] == self.tokens[self.position - 1][0]

    @property
    def single(self) -> int:
        """Return the number of lines with a single number before the next rule."""
        rest = self.tokens[self.position :]
        return next((i for i, token in enumerate(rest) if token[2] >= 4), len(rest))


def _long(word: str) -> int:
    """Convert a number like C's `%li`: hexadecimal after 0x, octal after 0."""
    return int(word, 8) if re.fullmatch(r"[-+]?0[0-7]+", word) else int(word, 0 if "x" in word.lower() else 10)


def read_classic(path: Path, text: str, known: Known) -> TuningFile:
    """Read versions 1 and 2 of Open MPI's format."""
    faults = Faults()
    first = re.match(r"rule-file-version-(\d+)", text)
    version = int(first.group(1)) if first else 1
    reads_2 = reads_version_2(known.version)
    stated = re.search(r"^\s*rule-file-version-", text, re.MULTILINE)
    lost = False
    if stated and not (first and reads_2):
        line = text[: stated.end()].count("\n") + 1
        why = "its readers of version 2 begin with 4.1.8 and 5.0.7" if first else "the version must be the first word"
        faults.add(line, f"{why}: the number in it is read as a negative count; {known.ignored}")
        version, lost = (2, True)
    body = re.sub(r"^(\s*)rule-file-version-\d+", r"\1", text, flags=re.MULTILINE)
    for number, line in enumerate(body.splitlines(), 1):
        if re.search(r"[A-Za-z]", re.sub(r"0[xX][0-9a-fA-F]+", "", line.split("#")[0])):
            faults.add(number, "text without # before it: Open MPI reads every number in it")
    numbers = _Numbers(body)
    rules: list[FileRule] = []
    try:
        _classic_collectives(numbers, version, known, rules, faults)
    except _CutOff as cut:
        last = numbers.tokens[-1][0] if numbers.tokens else 1
        if not faults:
            raise StudyError(
                f"{path}, line {last}: truncated: the file ends where {cut} is expected; {known.ignored}"
            ) from None
        faults.add(last, f"the file ends where {cut} is expected; {known.ignored}")
        lost = True
    for line, number, _ in numbers.tokens[: numbers.position]:
        if number < 0:
            faults.add(line, f"the number {number} is negative: {known.ignored}")
    if numbers.left:
        faults.add(numbers.tokens[numbers.position][0], "not read: more collectives than announced")
    lost = lost or any("ignores the whole file" in fault.text for fault in faults)
    misread = any(MISREAD in fault.text for fault in faults)
    return TuningFile(path, "openmpi-2" if version == 2 else "openmpi", tuple(rules), tuple(faults), lost, misread)


def _classic_collectives(numbers: _Numbers, version: int, known: Known, rules: list[FileRule], faults: Faults) -> None:
    line, count = numbers.next("the number of collectives")
    if count > len(COLLTYPES):
        faults.add(line, f"{count} collectives: Open MPI has {len(COLLTYPES)}; {known.ignored}")
    seen: dict[str, int] = {}
    for i in range(count):
        if not numbers.left:
            faults.add(line, f"{count} collectives are announced, {i} follow: {known.ignored}")
            return
        at, number = numbers.next("the number of a collective")
        if not 0 <= number < len(COLLTYPES):
            faults.add(at, f"{number} is not a collective (0 to {len(COLLTYPES) - 1}); {known.ignored}")
            return
        collective = COLLTYPES[number]
        if collective not in known.numbers:
            faults.add(at, f"coll/tuned has no algorithms of {collective}: its rules never apply")
        if collective in seen:
            faults.add(at, f"{collective} is listed twice: Open MPI discards the rules from line {seen[collective]} on")
            rules[:] = [rule for rule in rules if rule.collective != collective]
        seen[collective] = at
        _classic_counts(numbers, version, known, collective, rules, faults)


def _classic_counts(
    numbers: _Numbers, version: int, known: Known, collective: str, rules: list[FileRule], faults: Faults
) -> None:
    line, announced = numbers.next("the number of communicator sizes")
    found: list[tuple[int, int, list[FileRule]]] = []
    while True:
        # Before its first rule, a collective has four lines with one number, a communicator size has two.
        another = len(found) < announced
        if numbers.by_lines and found and numbers.single != 1:
            another = numbers.single == 2 or _cut_off(numbers, len(found) < announced, faults)
        if not another:
            break
        at, ranks = numbers.next("a communicator size")
        found.append((at, ranks, _classic_sizes(numbers, version, known, collective, faults)))
    if len(found) != announced:
        faults.add(line, f"{collective}: {announced} communicator sizes are announced, {len(found)} follow: {MISREAD}")
    counts = [ranks for _, ranks, _ in found]
    for (at, ranks, _), before in zip(found[1:], counts, strict=False):
        if ranks <= before:
            faults.add(at, f"{collective}: {ranks} ranks after {before}: communicator sizes must ascend")
    if counts and counts[0] > 2:
        faults.add(
            found[0][0], f"{collective}: no entry below {counts[0]} ranks: this one applies there too", note=True
        )
    spans = _spans(counts)
    if known.release >= (6,) and len(counts) > 1:
        spans = _spans_of_6(counts)
        faults.add(
            line,
            f"{collective}: Open MPI {known.version} applies each communicator-size entry to "
            "the range below it instead of from it on; use its JSON format",
        )
    for (at, ranks, own), span in zip(found, spans, strict=True):
        if span.empty:
            faults.add(at, f"{collective}, {ranks} ranks: never applies: another entry applies first")
        rules += [replace(rule, ranks=span) for rule in own if not span.empty]


def _cut_off(numbers: _Numbers, lacking: bool, faults: Faults) -> bool:
    """Return whether the file ends too early: numbers are missing at its end, and no earlier count was wrong."""
    return lacking and not numbers.left and not faults


#: The effect of a wrong count.
MISREAD = "Open MPI ignores line breaks, so it misreads everything that follows or ignores the file"


def _spans(firsts: Sequence[int]) -> list[Span]:
    """Return where entries apply if they are read up to the first that begins above (coll_tuned_dynamic_rules.c of 4.1 and 5.0).

    Below its own number, too, the first entry applies.
    """
    ends = [max(firsts[:2]) - 1, *(first - 1 for first in firsts[2:])] if len(firsts) > 1 else []
    return [Span(max(firsts[: i + 1]) if i else 0, end) for i, end in enumerate([*ends, None][: len(firsts)])]


def _spans_of_6(counts: Sequence[int]) -> list[Span]:
    """Return where 6.0 applies the entries of this format: from the number of the previous entry to one below its own."""
    return [Span(counts[i - 1] if i else 0, counts[i] - 1 if i + 1 < len(counts) else None) for i in range(len(counts))]


def _classic_sizes(numbers: _Numbers, version: int, known: Known, collective: str, faults: Faults) -> list[FileRule]:
    line, announced = numbers.next("the number of message sizes")
    found: list[tuple[int, list[int]]] = []
    while (
        numbers.at_rule or _cut_off(numbers, len(found) < announced, faults)
        if numbers.by_lines
        else len(found) < announced
    ):
        at, size = numbers.next("a message size")
        values = [size, *(numbers.next("an algorithm, a fan-out and a segment size")[1] for _ in range(3))]
        if numbers.same_line and numbers.by_lines or (version == 2 and numbers.same_line):
            requests = numbers.next("the requests")[1]
            if version == 2:
                values.append(requests)
            else:
                faults.add(at, f"five numbers, but version 1 has four: {MISREAD}")
        found.append((at, values))
    if len(found) != announced:
        faults.add(line, f"{collective}: {announced} message sizes are announced, {len(found)} follow: {MISREAD}")
    sizes = [values[0] for _, values in found]
    if sizes and sizes[0] != 0:
        faults.add(
            found[0][0],
            f"{collective}: the first message size is {sizes[0]}, not 0: {known.ignored}",
        )
    for (at, _), size, before in zip(found[1:], sizes[1:], sizes, strict=False):
        if size <= before:
            faults.add(at, f"{collective}: {size} bytes after {before}: message sizes must ascend")
    rules = []
    for (at, values), span in zip(found, _spans(sizes), strict=True):
        rule = openmpi_rule(at, collective, values[1], values[2:], known, faults)
        if span.empty:
            faults.add(at, f"{collective}, {values[0]} bytes: never applies: another rule applies first")
        else:
            rules += with_sizes(rule, span, faults)
    return rules


def with_sizes(rule: FileRule, span: Span, faults: Faults) -> Iterator[FileRule]:
    """Yield the rule with the sizes to which coll/tuned applies it; nothing if it never does (coll_tuned_decision_dynamic.c)."""
    collective = rule.collective
    if collective in OF_ELEMENTS:
        counted = "bytes of one element times the ranks"
        if span.low > 0:
            faults.add(
                rule.line, f"{collective}, {span.low} bytes: Open MPI counts {counted}, not the size of the message"
            )
        yield replace(rule, conditions=(span.words(counted),)) if span != ALL else rule
    elif collective not in (*WITHOUT_SIZE, "barrier"):
        yield replace(rule, sizes=span, total=collective in TOTAL_BYTES)
    elif span.holds(0):
        yield rule
    else:
        why = f"Open MPI does not know the size of {collective}"
        faults.add(rule.line, f"{collective}, {span.low} bytes: never applies: {why}")


def openmpi_rule(
    line: int, collective: str, number: int, values: Sequence[int], known: Known, faults: Faults
) -> FileRule:
    """Return the rule, without spans, for coll/tuned's algorithm *number*; *values*: fan-out, segment size and, optionally, requests."""
    if number == 0:
        return FileRule(line, collective, "0", "default")
    names = known.numbers.get(collective, {})
    word = next((name for name, its in names.items() if its == number), None)
    if word is None:
        if names and number > 0:
            faults.add(
                line,
                f"Open MPI {known.version} has no {collective} algorithm {number}; "
                f"it has 0 to {len(names)}: a call fails with MPI_ERR_ARG",
            )
        return FileRule(line, collective, str(number))
    fans = USES["fanout"].get(collective, ()) + (FANNING_6.get(collective, ()) if known.release >= (6,) else ())
    parameters = {}
    given = zip(("fanout", "segment_bytes", "max_requests"), values, strict=False)
    users = {
        "fanout": fans,
        "segment_bytes": USES["segment_bytes"].get(collective, ()),
        "max_requests": USES["max_requests"].get(collective, ()),
    }
    for name, value in given:
        if word in users[name]:
            if name == "fanout" and word == "chain" and value < 1:
                faults.add(line, f"{collective} chain with fan-out 0: Open MPI uses 1, a pipeline", note=True)
                value = 1
            # Values that only the catalogue has as defaults are not set: the library has its own.
            if value or (word, name) == ("segmented_ring", "segment_bytes"):
                parameters[name] = value
        elif value > 0:
            faults.add(
                line, f"{name.replace('_', ' ')} {value}: Open MPI {known.version}'s {collective} {word} ignores it"
            )
    return FileRule(
        line, collective, f"{number} {word}", known.named(collective, word), tuple(sorted(parameters.items()))
    )
