"""Read Intel MPI's variables and NCCL's CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from collstudy.base.errors import StudyError, allowed
from collstudy.tuning import nccl
from collstudy.tuning.readers.known import Known
from collstudy.tuning.tuningfile import ALL, Faults, FileRule, Span, TuningFile, general_faults


def read_intel(path: Path, text: str, known: Known) -> TuningFile:
    """Read `I_MPI_ADJUST_<OP>=<number>[:<sizes>[@<ranks>]][;...]`, as in a shell or as arguments of mpirun, with the spans that the
    library applies (tuning/intel.py).
    """
    rules: list[FileRule] = []
    faults = Faults()
    for line, words in enumerate(text.splitlines(), 1):
        if words.lstrip().startswith("#"):
            continue
        for name, value in re.findall(r"I_MPI_ADJUST_(\w+)[=\s]+('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|['\"].*)", words):
            if value[0] in "'\"" and (len(value) == 1 or value[-1] != value[0]):
                raise StudyError(f"{path}, line {line}: truncated: no closing {value[0]}")
            collective = name.lower()
            if collective not in known.catalogue.algorithms:
                faults.add(line, f"I_MPI_ADJUST_{name}: unknown collective", note=name != name.upper())
                continue
            parts = value.strip("'\"").split(";")
            own = [rule for part in parts for rule in _intel_part(line, collective, part.strip(), known, faults)]
            rules += _applied(own, faults)
    return TuningFile(path, "intel", tuple(rules), (*faults, *general_faults(rules)))


def _applied(rules: list[FileRule], faults: Faults) -> Iterator[FileRule]:
    """Yield the rules of one variable as they apply: by the ends of their sizes, or of their ranks if any has ranks."""
    by_ranks = any(rule.ranks != ALL for rule in rules)
    if by_ranks:
        last_of = {rule.ranks: rule for rule in rules}
        for rule in rules:
            if rule is not last_of[rule.ranks]:
                text = f"{rule.collective} {rule.word}: never applies: a later rule has the same ranks"
                faults.add(rule.line, text)
        rules = list(last_of.values())
    for rule in rules:
        last = rule is rules[-1]
        sizes = ALL if by_ranks or last else Span(0, rule.sizes.high)
        yield replace(rule, sizes=sizes, ranks=ALL if last else Span(0, rule.ranks.high))


def _intel_part(line: int, collective: str, part: str, known: Known, faults: Faults) -> Iterator[FileRule]:
    number, _, conditions = part.partition(":")
    spans = [re.fullmatch(r"(\d+)(?:-(\d+))?(?:@(\d+)(?:-(\d+))?)?", one) for one in conditions.split(",")]
    if not number.isdecimal() or (conditions and None in spans):
        faults.add(line, f"{collective}: {part!r} is not <number>:<first>-<last>@<first>-<last>")
        return
    for span in spans if conditions else [None]:
        low, high, first, last = (None if not x else int(x) for x in span.groups()) if span else (None,) * 4
        yield FileRule(
            line, collective, number, _intel_name(collective, number, known),
            sizes=_intel_span(low, high), ranks=_intel_span(first, last),
        )  # fmt: skip


def _intel_span(low: int | None, high: int | None) -> Span:
    """Return the span; Intel MPI uses 2147483647 for no limit."""
    if low is None:
        return ALL
    high = low if high is None else high
    return Span(low, None if high >= 2**31 - 1 else high)


def _intel_name(collective: str, number: str, known: Known) -> str | None:
    entries = known.catalogue.algorithms[collective].items()
    return next((name for name, entry in entries if entry.get("impi", {}).get("algorithm") == number), None)


def read_nccl(path: Path, text: str, known: Known) -> TuningFile:
    """Read lines `colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]`."""
    rules: list[FileRule] = []
    faults = Faults()
    for line, words in enumerate(text.splitlines(), 1):
        if not words or words.startswith("#"):
            continue
        fields = [word.strip() for word in words.split(",")]
        if not 8 <= len(fields) <= 10:
            faults.add(line, f"{len(fields)} fields instead of 8 to 10: NCCL's plugin ignores the line")
            continue
        if not all(re.fullmatch(r"-?\d+", fields[i]) for i in (1, 2, *range(5, len(fields)))):
            faults.add(line, "a size, number or count is not an integer: NCCL's plugin reads 0")
            continue
        for i, kinds, taken in (
            (0, nccl.COLLECTIVES, "allreduce"),
            (3, nccl.ALGORITHMS, "ring"),
            (4, nccl.PROTOCOLS, "simple"),
        ):
            if fields[i] not in kinds:
                faults.add(line, f"{fields[i]!r}: NCCL's plugin takes {taken}{allowed(kinds)}")
                fields[i] = taken
        collective = nccl.COLLECTIVES[fields[0]]
        same = fields[3] if nccl.has(known.catalogue, collective, fields[3], {}) else None
        low, high, channels, nodes, ranks = (int(fields[i]) for i in (1, 2, 5, 6, 7))
        further = [
            f"{name}={value}"
            for name, value in zip(("numPipeOps", "regBuff"), fields[8:], strict=False)
            if value != "-1"
        ]
        rules.append(
            FileRule(
                line, collective, f"{fields[3]} {fields[4]}" + (f", {channels} channels" if channels >= 0 else ""), same, (),
                Span(ranks, ranks) if ranks >= 0 else ALL, Span(low, None if high >= 2**63 - 1 else high),
                # NCCL uses the larger of the bytes that a rank sends and receives (ncclFuncMaxSendRecvCount).
                collective == "allgather", Span(nodes, nodes) if nodes >= 0 else ALL, conditions=tuple(further),
            )
        )  # fmt: skip
    return TuningFile(path, "nccl", tuple(rules), (*faults, *general_faults(rules)))
