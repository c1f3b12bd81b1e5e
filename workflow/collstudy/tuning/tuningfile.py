"""The content of a tuning file of any library: rules, in the order in which the library tries them, and faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from collstudy.study.cells import library_text
from collstudy.tuning.trees import ANY_PPN

#: A condition that depends only on the number of ranks.
POWER_OF_TWO = "comm_size=pow2"


class Span(NamedTuple):
    """Integers from *low* to *high*, both included; without *high*, all from *low* on."""

    low: int = 0
    high: int | None = None

    def holds(self, value: float) -> bool:
        """Return whether *value* is in the span."""
        return self.low <= value and (self.high is None or value <= self.high)

    def covers(self, other: Span) -> bool:
        """Return whether *other* is within the span."""
        return self.holds(other.low) and (self.high is None or (other.high is not None and other.high <= self.high))

    @property
    def empty(self) -> bool:
        """Return whether the span contains no number."""
        return self.high is not None and self.high < self.low

    def within(self, other: Span) -> Span:
        """Return the integers that both spans contain."""
        highs = [span.high for span in (self, other) if span.high is not None]
        return Span(max(self.low, other.low), min(highs, default=None))

    def words(self, unit: str, before: str = "") -> str:
        """Return the span in words, such as "up to 8 ranks"; "" for all integers. *before* precedes a number, not a beginning."""
        if self == ALL:
            return ""
        if self.high is None:
            return f"from {self.low} {unit} on"
        number = f"up to {self.high}" if self.low == 0 else f"{self.low} to {self.high}"
        number = f"{self.low}" if self.low == self.high else number
        words = unit.split(" ", 1)
        return " ".join([before + number, words[0].removesuffix("s") if self.high == 1 else words[0], *words[1:]])


ALL = Span()


@dataclass(frozen=True)
class Fault:
    """A fault in a line of a file and its effect on the library; a *note* marks what is correct but easily misread."""

    line: int
    text: str
    note: bool = False


class Faults(list[Fault]):
    """The faults of a file, in the order in which they are found."""

    def add(self, line: int, text: str, note: bool = False) -> None:
        """Record a fault."""
        self.append(Fault(line, text, note))


@dataclass(frozen=True)
class FileRule:
    """One rule: the algorithm of a collective for spans of ranks, nodes, ranks per node, and bytes.

    *word* is the library's name of the algorithm, *algorithm* the catalogue's: None if it has none, "default" for the library's
    own decision. Bytes are those of one rank, as in the benchmark, or with *total* those of all ranks together. *conditions* are
    further conditions, in the words of the file.
    """

    line: int
    collective: str
    word: str
    algorithm: str | None = None
    parameters: tuple[tuple[str, int], ...] = ()
    ranks: Span = ALL
    sizes: Span = ALL
    total: bool = False
    nodes: Span = ALL
    ppn: Span = ALL
    conditions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the algorithm with its parameters, by the catalogue's name if it has one."""
        return library_text({"algorithm": self.algorithm or self.word, **dict(self.parameters)})

    def unit(self, ranks: int, size: int) -> int:
        """Convert *size* bytes of one rank to the unit of the rule."""
        return size * ranks if self.total else size

    def applies(self, ranks: int, size: int, nodes: int | None = None) -> bool | None:
        """Return whether the rule applies to these ranks, bytes of one rank, and nodes; None if these do not determine it."""
        if not self.ranks.holds(ranks) or not self.sizes.holds(self.unit(ranks, size)):
            return False
        if POWER_OF_TWO in self.conditions and ranks & (ranks - 1):
            return False
        placed = self.nodes != ALL or not self.ppn.covers(Span(1, ANY_PPN))
        if placed and nodes is not None and not (self.nodes.holds(nodes) and self.ppn.holds(ranks / nodes)):
            return False
        return None if (placed and nodes is None) or set(self.conditions) - {POWER_OF_TWO} else True


@dataclass(frozen=True)
class TuningFile:
    """A tuning file: its format (a key of readers.known.FORMATS), its rules in the library's order, and its faults."""

    path: Path
    format: str
    rules: tuple[FileRule, ...]
    faults: tuple[Fault, ...] = ()
    #: Whether the library ignores or misreads the file because of a fault; the rules are then what its lines mean.
    ignored: bool = False
    misread: bool = False
    collectives: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "collectives", tuple(dict.fromkeys(rule.collective for rule in self.rules)))

    def of(self, collective: str) -> list[FileRule]:
        """Return the rules of a collective."""
        return [rule for rule in self.rules if rule.collective == collective]

    def at(self, collective: str, ranks: int, size: int, nodes: int | None = None) -> list[FileRule]:
        """Return the rules that may apply: those with unknown conditions, up to the first that certainly applies."""
        found = []
        for rule in self.of(collective):
            applies = rule.applies(ranks, size, nodes)
            if applies is not False:
                found.append(rule)
            if applies:
                break
        return found


def general_faults(rules: Iterable[FileRule]) -> Iterator[Fault]:
    """Yield faults of files in which the first matching rule is used: rules that never apply, and (notes) gaps."""
    by_collective: dict[str, list[FileRule]] = {}
    for rule in rules:
        by_collective.setdefault(rule.collective, []).append(rule)
    for own in by_collective.values():
        yield from _never_applied(own)
        yield from _gaps(own)


def _never_applied(rules: list[FileRule]) -> Iterator[Fault]:
    for i, rule in enumerate(rules):
        if rule.ranks.empty or rule.sizes.empty:
            yield Fault(rule.line, f"{rule.collective} {rule.text}: never applies: its range is empty")
            continue
        before = [
            other
            for other in rules[:i]
            if set(other.conditions) <= set(rule.conditions) and other.nodes.covers(rule.nodes)
            and other.ppn.covers(rule.ppn) and (other.total == rule.total or other.sizes == ALL)
        ]  # fmt: skip
        # It suffices to test the points at which a rule begins, or one before it begins or has just ended.
        ranks = _starts(rule.ranks, [other.ranks for other in before])
        sizes = _starts(rule.sizes, [other.sizes for other in before])
        if all(any(o.ranks.holds(r) and o.sizes.holds(s) for o in before) for r in ranks for s in sizes):
            lines = sorted({o.line for o in before if o.ranks.holds(rule.ranks.low) and o.sizes.holds(rule.sizes.low)})
            yield Fault(
                rule.line, f"{rule.collective} {rule.text}: never applies: line {lines[0]} applies first in all its cases"
            )  # fmt: skip


def _starts(span: Span, others: list[Span]) -> list[int]:
    starts = {span.low} | {o.low for o in others} | {o.high + 1 for o in others if o.high is not None}
    return sorted(start for start in starts if span.holds(start))


def _gaps(rules: list[FileRule]) -> Iterator[Fault]:
    """Yield notes on ranges of bytes between rules, and one on all ranges of ranks, for which there is no rule."""
    groups: dict[tuple, list[FileRule]] = {}
    for rule in rules:
        groups.setdefault((rule.ranks, rule.nodes, rule.ppn, rule.total, rule.conditions), []).append(rule)
    for own in groups.values():
        for line, low, high in _between([(rule.sizes, rule.line) for rule in own]):
            yield Fault(line, f"{own[0].collective}: no rule for {low} to {high} bytes: the library decides", note=True)
    if found := list(_between([(rule.ranks, rule.line) for rule in rules])):
        ranges = [f"{low} to {high}" if low < high else f"{low}" for _, low, high in found]
        words = ", ".join(ranges if len(ranges) < 6 else [*ranges[:3], "...", ranges[-1]])
        yield Fault(found[0][0], f"{rules[0].collective}: no rule for {words} ranks: the library decides", note=True)


def _between(spans: list[tuple[Span, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the gaps between spans: the line before each, and its first and last number."""
    reached: list[tuple[Span, int]] = []
    for span, line in sorted(spans, key=lambda one: one[0].low):
        if not reached or reached[-1][0].high is not None and (span.high is None or span.high > reached[-1][0].high):
            reached.append((span, line))
    for (before, line), (after, _) in pairwise(reached):
        if before.high is not None and before.high + 1 < after.low:
            yield line, before.high + 1, after.low - 1
