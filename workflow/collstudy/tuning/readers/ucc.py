"""Read UCC's tuning string, as src/coll_score of UCC 1.10 (August 2026) does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

from collstudy.tuning.readers.known import Known
from collstudy.tuning.rules import TOTAL_BYTES
from collstudy.tuning.tuningfile import ALL, Fault, Faults, FileRule, Span, TuningFile, general_faults

#: Catalogue's name -> the same algorithm in UCC's tl/ucp, where there is one.
UCC = {
    "allgather": {"ring": "ring", "neighbor_exchange": "neighbor", "bruck": "bruck", "sparbit": "sparbit"},
    "allreduce": {"ring": "ring"},
    "alltoall": {"pairwise": "pairwise", "bruck": "bruck"},
    "bcast": {"knomial": "knomial"},
}
#: Collectives for which UCC's sizes count the data of all ranks, like Open MPI's (ucc_coll_utils.c, ucc_coll_args_msgsize).
#: Its reduce_scatter counts one rank's part, which no other format does.
UCC_TOTAL = TOTAL_BYTES
MEMORY = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
#: The algorithms of tl/ucp in the order of their numbers (`ucc_info -A`); for other collectives none can be selected.
ALGORITHMS = {
    "allgather": ("knomial", "ring", "neighbor", "bruck", "sparbit", "linear", "batched"),
    "allgatherv": ("ring", "knomial"),
    "allreduce": ("knomial", "sra_knomial", "sliding_window", "dbt", "ring"),
    "alltoall": ("pairwise", "bruck", "onesided"),
    "alltoallv": ("pairwise", "hybrid", "onesided"),
    "bcast": ("knomial", "sag_knomial", "dbt"),
    "reduce": ("knomial", "dbt", "srg"),
    "reduce_scatter": ("ring", "knomial"),
}
#: The score of tl/ucp's own choices, and of tokens without a score.
OWN_SCORE = 10
IGNORED = "UCC ignores the whole variable"


def read_ucc(path: Path, text: str, known: Known) -> TuningFile:
    """Read `UCC_TL_UCP_TUNE=<collectives>:<sizes>:[<ranks>]:@<algorithm>:<score>#...`, which may be in a section of a file.

    A section states for which processors and teams its lines apply: `[vendor=amd model=rome team_size=2 ppn=1 nnodes=2]`.
    """
    section: dict[str, str] = {}
    scored: list[tuple[FileRule, float]] = []
    sections = [scored]
    faults = Faults()
    for line, words in enumerate(text.splitlines(), 1):
        if head := re.fullmatch(r"\s*\[(.*=.*)\]\s*", words):
            section = dict(word.split("=", 1) for word in head.group(1).split() if "=" in word)
            scored = []
            sections.append(scored)
        found = re.search(r"UCC_\w*TUNE\s*=\s*(.*)", words)
        if not found or words.lstrip().startswith("#"):
            continue
        for token in found.group(1).strip().strip("'\"").split("#"):
            scored += [(_in_section(rule, section), score) for rule, score in _token(line, token, known, faults)]
    rules = []
    for own in sections:
        for (one, _), (other, _) in combinations(own, 2):
            if (
                one.conditions == other.conditions and _overlap_except_size(one, other)
                and _before(one.sizes.low, other.sizes.high) and _before(other.sizes.low, one.sizes.high)
            ):  # fmt: skip
                faults.add(
                    other.line, f"{other.collective} {other.text}: overlaps the sizes of another token: {IGNORED}"
                )
        limited = [_with_own_limits(one, score, own) for one, score in own]
        faults += general_faults(limited)
        rules += limited
    faults += _both_hold(sections)
    return TuningFile(path, "ucc", tuple(rules), tuple(faults), any(IGNORED in fault.text for fault in faults))


def _both_hold(sections: list[list[tuple[FileRule, float]]]) -> Iterator[Fault]:
    """Yield notes on sections that also apply to the teams of an earlier section: UCC keeps sections in a hash table."""
    seen = set()
    for before, after in combinations(sections[1:], 2):
        for (one, _), (other, _) in product(before, after):
            if {*one.conditions} <= {*other.conditions} and _overlap_except_size(one, other) and other.line not in seen:
                seen.add(other.line)
                text = f"the section of line {one.line} also applies there: UCC uses either"
                yield Fault(other.line, text, note=True)


def _in_section(rule: FileRule, section: dict[str, str]) -> FileRule:
    spans = {}
    for key, name in (("team_size", "ranks"), ("ppn", "ppn"), ("nnodes", "nodes")):
        if re.fullmatch(r"\d+(-(\d+|inf))?", section.get(key, "")):
            low, _, high = section[key].partition("-")
            spans[name] = Span(int(low), _upper_bound(high or low))
    further = [f"{key}={value}" for key, value in section.items() if key not in ("team_size", "ppn", "nnodes")]
    if "ranks" in spans and rule.ranks != ALL:
        spans["ranks"] = spans["ranks"].within(rule.ranks)
    return replace(rule, **spans, conditions=(*rule.conditions, *further))


def _overlap_except_size(one: FileRule, other: FileRule) -> bool:
    """Return whether some call matches both rules, regardless of its size."""
    spans = (one.ranks.within(other.ranks), one.nodes.within(other.nodes), one.ppn.within(other.ppn))
    return one.collective == other.collective and not any(span.empty for span in spans)


def _before(low: int, high: int | None) -> bool:
    return high is None or low < high


def _with_own_limits(rule: FileRule, score: float, scored: list[tuple[FileRule, float]]) -> FileRule:
    """Return the rule with the sizes that it really has: a limit shared with a neighbour belongs to the higher score or, for
    equal scores, to the larger sizes.

    The neighbour is another token, or tl/ucp's own choice.
    """
    low, high = rule.sizes
    near = [
        (other.sizes, its)
        for other, its in scored
        if other is not rule and other.conditions == rule.conditions and _overlap_except_size(rule, other)
    ]
    if low and score < max((its for sizes, its in near if sizes.high == low), default=OWN_SCORE):
        low += 1
    if high is not None and score <= max((its for sizes, its in near if sizes.low == high), default=OWN_SCORE):
        high -= 1
    return replace(rule, sizes=Span(low, high))


def _token(line: int, token: str, known: Known, faults: Faults) -> Iterator[tuple[FileRule, float]]:
    collectives, sizes, ranks, word = [], [ALL], [ALL], ""
    conditions = []
    score: float = OWN_SCORE
    for field in token.split(":"):
        bounds = [one.split("-") for one in field.strip("[]").split(",")]
        if field.startswith("@"):
            word = field[1:]
        elif field.lower() == "inf" or field.isdecimal():
            score = float(field)
            if score == 0:
                conditions.append("score 0")
        elif field.lower().split(",")[0] in ("host", "cuda", "cuda_managed", "rocm", "rocm_managed"):
            conditions.append(f"memory {field}")
        elif field.startswith("[") and field.endswith("]") and all(_is_bounds(one) for one in bounds):
            ranks = [Span(int(one[0]), _upper_bound(one[-1])) for one in bounds]
        elif all(len(one) == 2 and _memory(one[0]) is not None and _memory(one[1]) is not None for one in bounds):
            sizes = [
                Span(int(_memory(a) or 0), None if b.lower() == "inf" else int(_memory(b) or 0)) for a, b in bounds
            ]
        elif all(re.fullmatch(r"[a-z_]+", name) for name in field.lower().split(",")):
            collectives = field.lower().split(",")
        else:
            faults.add(line, f"{token!r}: UCC cannot parse {field!r}: {IGNORED}")
            return
    for collective in collectives:
        if collective not in known.catalogue.algorithms:
            faults.add(line, f"{token!r}: unknown collective {collective}")
            continue
        name, same = _algorithm(line, token, collective, word, faults)
        part = ["sizes are one rank's part"] if collective == "reduce_scatter" else []
        total = collective in UCC_TOTAL
        for size, span in product(sizes, ranks):
            yield FileRule(line, collective, name, same, (), span, size, total, conditions=(*conditions, *part)), score


def _algorithm(line: int, token: str, collective: str, word: str, faults: Faults) -> tuple[str, str | None]:
    """Return UCC's name of the algorithm that a token gives by name or number, and the catalogue's name (or None)."""
    if not word:
        return "scored", "default"
    names = ALGORITHMS.get(collective, ())
    name = names[int(word)] if word.isdecimal() and int(word) < len(names) else word.lower()
    if not names:
        faults.add(line, f"{token!r}: {collective} has no algorithms to choose from: {IGNORED}")
    elif name not in names:
        has = ", ".join(f"{i} {one}" for i, one in enumerate(names))
        faults.add(line, f"{token!r}: UCC has no {collective} algorithm {word!r} (known: {has}): {IGNORED}")
    return name, next((ours for ours, its in UCC.get(collective, {}).items() if its == name), None)


def _is_bounds(one: list[str]) -> bool:
    return len(one) <= 2 and one[0].isdecimal() and (one[-1].isdecimal() or one[-1].lower() == "inf")


def _upper_bound(text: str) -> int | None:
    return None if text.lower() == "inf" else int(text)


def _memory(text: str) -> float | None:
    """Convert UCC's sizes (4k, 1m, inf) to bytes; None for other texts."""
    found = re.fullmatch(r"(\d+)([kmgb]{0,2})", text.lower())
    return float("inf") if text.lower() == "inf" else int(found[1]) * MEMORY.get(found[2], 1) if found else None
