"""MPICH's selection trees (src/mpi/coll/src/csel.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from collstudy.tuning.readers.known import Known
from collstudy.tuning.readers.located import Located
from collstudy.tuning.tuningfile import ALL, Fault, FileRule, Span, TuningFile, general_faults


def read_mpich(path: Path, trees: list[Located], known: Known) -> TuningFile:
    """Selection trees: of algorithms, of the device (compositions), or both in a list as in the rules of a cell."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    for tree in trees:
        for key, below in tree.items():
            key = key.replace(" ", "")
            if not key.startswith("collective=") or not isinstance(below, Located):
                faults.append(Fault(tree.line, f"{key!r}: at the top are collective=NAME: MPICH stops"))
                continue
            start = FileRule(below.line, key.removeprefix("collective="), "")
            rules += _walk(below, start, known, faults)
    return TuningFile(path, "mpich", tuple(rules), (*faults, *general_faults(rules)))


def _walk(tree: Located, rule: FileRule, known: Known, faults: list[Fault]) -> Iterator[FileRule]:
    """The leaves below a tree, in the order in which MPICH tries them."""
    keys = [key.replace(" ", "") for key in tree]
    for key, below in zip(keys, tree.values(), strict=True):
        if not isinstance(below, Located):
            faults.append(Fault(tree.line, f"{key!r} has no object: MPICH stops"))
            return
        if key.startswith(("algorithm=", "composition=")):
            yield _leaf(replace(rule, line=below.line), key.partition("=")[2], below, known)
            return
        if key == "comm_type=inter":
            continue  # collectives between two groups of ranks are not studied here
        name, _, value = key.partition("=")
        try:
            # What is left after `yes` has no condition of its own.
            narrowed = rule if value == "no" and f"{name}=yes" in keys[: keys.index(key)] else _narrowed(rule, key)
        except ValueError:
            faults.append(Fault(below.line, f"MPICH knows no condition {key!r} and stops"))
            continue
        if not narrowed.sizes.empty and not narrowed.ranks.empty:
            yield from _walk(below, narrowed, known, faults)
    complete = {"yes", "no"} <= {key.partition("=")[2] for key in keys} or not keys
    if keys and not keys[-1].endswith("any") and not keys[-1].startswith("comm_type=") and not complete:
        faults.append(
            Fault(tree.line, f"{rule.collective}: no `any` after {keys[-1]}: MPICH has no algorithm there and stops")
        )


def _narrowed(rule: FileRule, key: str) -> FileRule:
    """The rule with one condition more. Raises ValueError for one that MPICH does not have."""
    if key.endswith("any"):
        return rule
    limit = re.fullmatch(r"(comm_size|avg_msg_size|total_msg_size|comm_avg_ppn)(<=?)(\d+)", key)
    if limit:
        name, sign, number = limit.groups()
        high = int(number) - (sign == "<")
        if name == "comm_size":
            return replace(rule, ranks=_at_most(rule.ranks, high))
        if name == "comm_avg_ppn":
            return replace(rule, ppn=_at_most(rule.ppn, high))
        total = name == "total_msg_size"
        if rule.sizes == ALL or rule.total == total:
            return replace(rule, sizes=_at_most(rule.sizes, high), total=total)
    elif not re.fullmatch(r"count(<=\d+|<pow2)|(comm_size|comm_type|comm_hierarchy|is_\w+)=\w+", key):
        raise ValueError(key)
    return rule if key == "comm_type=intra" else replace(rule, conditions=(*rule.conditions, key))


def _at_most(span: Span, high: int) -> Span:
    return Span(span.low, high if span.high is None else min(span.high, high))


def _leaf(rule: FileRule, word: str, below: Located, known: Known) -> FileRule:
    given = dict(key.replace(" ", "").partition("=")[::2] for key in below)
    named = word.removeprefix(f"MPIR_{rule.collective.capitalize()}_intra_")
    for name, entry in known.catalogue.algorithms.get(rule.collective, {}).items():
        settings = entry.get("mpich", {})
        if settings.get("algorithm") != named:
            continue
        if "fanout" not in settings:
            return replace(rule, word=word, algorithm=name)
        if given.get("tree_type") == "kary" and given.get("k") == str(settings["fanout"]):
            segment = int(given.get("chunk_size", "0"))
            return replace(rule, word=word, algorithm=name, parameters=(("segment_bytes", segment),) if segment else ())
    return replace(rule, word=" ".join([word, *(f"{key}={value}" for key, value in given.items())]))
