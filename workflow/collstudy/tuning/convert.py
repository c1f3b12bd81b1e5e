"""Convert a tuning file to the format of another library; rules that the other library cannot express are listed.

The writers are those for the studies' own files (writers.py, trees.py, nccl.py), and one for UCC.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.launch.mpich import Tree
from collstudy.study.catalogue import names_of
from collstudy.study.names import LIBRARIES
from collstudy.tuning import nccl, trees
from collstudy.tuning.intel import as_intel_reads
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.readers.known import FORMATS, Known
from collstudy.tuning.readers.ucc import UCC, UCC_TOTAL
from collstudy.tuning.rules import (
    HAN,
    HAN_COMPONENTS,
    ONE_RULE,
    TOTAL_BYTES,
    Placement,
    Rule,
    Table,
    as_openmpi_reads,
    entries,
    first_byte,
    selected,
)
from collstudy.tuning.tuningfile import ALL, POWER_OF_TWO, Fault, Faults, FileRule, Span, TuningFile
from collstudy.tuning.writers import han_rules, intel_variables, openmpi_json, openmpi_rules, settings_of

#: Conditions that are true in most programs: a rule with one of them is written for all calls.
USUAL = (
    "comm_hierarchy=parent", "is_commutative=yes", "is_op_built_in=yes", "is_sendbuf_inplace=no", "is_block_regular=yes",
    "is_node_consecutive=yes", "is_multi_threaded=no",
)  # fmt: skip
#: By format: collectives for which it can have only one rule for all sizes.
WITHOUT_SIZES = {
    **dict.fromkeys(("openmpi", "openmpi-2", "openmpi-han", "openmpi-json"), ONE_RULE),
    **dict.fromkeys(("mpich", "mpich-5.1"), trees.ONE_RULE),
}
#: Conditions that do not prevent the conversion of a rule.
CONVERTED = {*USUAL, POWER_OF_TWO}
#: The largest number of ranks (a power of two) for which a rule for powers of two is written.
MOST_RANKS = 2**20


@dataclass(frozen=True)
class Converted:
    """The new file, MPICH's device file (if any), the rules, and what was lost, by line of the old file."""

    text: str
    device: str | None
    placement: Placement
    losses: tuple[Fault, ...]


def convert(file: TuningFile, to: str, known: Known, own: tuple[Tree, Tree] | None = None) -> Converted:
    """Convert the rules of *file* to the format *to*; *own* has the selection trees of the installed MPICH.

    Raises StudyError if the library ignores the file, if none of its rules can be expressed, or if the new file reads differently.
    """
    if file.ignored:
        first = next(fault for fault in file.faults if "ignores the whole" in fault.text)
        raise StudyError(f"{file.path}, line {first.line}: {first.text}; ./study explain lists all faults")
    if to == "openmpi-json":
        known = Known(known.catalogue, "6.0")
    losses = Faults()
    if to == "openmpi-han" and file.format != to:
        file = replace(file, rules=tuple(_as_component(rule, known) for rule in file.rules))
        losses.add(0, "algorithms of coll/tuned belong in a separate rules file beside that of coll/han")
    placement = _placement(file, to, known, losses)
    if not placement.tables:
        why = "".join(f"\n  {line}" for line in grouped(losses))
        raise StudyError(f"{file.path}: none of its rules can be expressed as {FORMATS[to]}{why}")
    text, device = _written(placement, to, known, [f"Converted from {file.path.name}, {FORMATS[file.format]}."], own)
    if to == "nccl":
        losses += nccl.lost(placement)
    if to == "ucc" and any(
        rule.algorithm == "ring" for _, _, rule, _ in entries(placement.tables.get("allreduce", {}))
    ):
        losses.add(
            0,
            "allreduce ring: UCC's ring requires counts divisible by the number of ranks; "
            "for other counts UCC selects an algorithm itself",
        )
    _read_back(text, to, placement, known)
    return Converted(text, device, placement, tuple(losses))


def _as_component(rule: FileRule, known: Known) -> FileRule:
    """Convert a rule with an algorithm of coll/tuned to one that delegates to coll/tuned; others are unchanged."""
    entry = known.catalogue.algorithms.get(rule.collective, {}).get(rule.algorithm or "", {})
    return replace(rule, algorithm="tuned", parameters=()) if "algorithm" in entry.get("openmpi", {}) else rule


def grouped(faults: Iterable[Fault]) -> list[str]:
    """Return each text once, with all its lines."""
    lines: dict[str, list[int]] = {}
    for fault in sorted(faults, key=lambda fault: fault.line):
        lines.setdefault(fault.text, []).append(fault.line)
    return [
        (f"line{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}: " if at != [0] else "") + text
        for text, at in lines.items()
    ]


def _written(
    placement: Placement, to: str, known: Known, header: list[str], own: tuple[Tree, Tree] | None
) -> tuple[str, str | None]:
    catalogue = known.catalogue
    if to == "mpich":
        if own is None:
            raise StudyError(
                "MPICH's selection tree is that of an installed MPICH with rules inserted; no MPICH is installed"
            )
        algorithms, device = (json.dumps(tree, indent=1) + "\n" for tree in trees.trees(placement, catalogue, own))
        return algorithms, device
    if to == "mpich-5.1":
        return trees.subtrees_text(placement, catalogue), None
    if to == "openmpi-han":
        return han_rules(placement, catalogue, "han", header), None
    if to == "openmpi-json":
        return openmpi_json(placement, catalogue, known.numbers), None
    if to in ("openmpi", "openmpi-2"):
        return openmpi_rules(placement, catalogue, header, known.numbers, 2 if to == "openmpi-2" else 1), None
    if to == "intel":
        return intel_variables(placement, catalogue, header), None
    if to == "nccl":
        return nccl.converted_csv(placement, catalogue, header), None
    return ucc_tune(placement, header), None


def _placement(file: TuningFile, to: str, known: Known, losses: Faults) -> Placement:
    """Convert the rules to tables of the algorithms that the other library has; what it lacks is left to it and added to *losses*."""
    tables: dict[str, Table] = {}
    for collective in file.collectives:
        own = [rule for rule in file.of(collective) if _can_express_conditions(rule, to, losses)]
        for rule in own:
            if not _has_algorithm(rule, to, known):
                losses.add(rule.line, f"{collective} {rule.text}: no equivalent in {FORMATS[to]}; its library decides")
        counts = {2, *(max(rule.ranks.low, 2) for rule in own)}
        counts |= {rule.ranks.high + 1 for rule in own if rule.ranks.high and rule.ranks.high > 1}
        if any(POWER_OF_TWO in rule.conditions for rule in own):
            counts |= {2**i + more for i in range(1, MOST_RANKS.bit_length()) for more in (0, 1)}
        table: Table = {}
        for count in sorted(counts):
            rules = _by_size(own, count, to, known)
            if not table or rules != list(table.values())[-1]:
                table[count] = rules
        if any(rule.algorithm != "default" for rules in table.values() for rule in rules):
            tables[collective] = table
            losses += _other_units(own, table, to)
            library = LIBRARIES["mpich" if to.startswith("mpich") else "openmpi"]
            if collective in WITHOUT_SIZES.get(to, ()) and any(len(rules) > 1 for rules in table.values()):
                losses.add(
                    own[0].line,
                    f"{collective}: {library} ignores the message size of this collective; "
                    "where rules differ by size, its default is used",
                )
    placement = Placement("any", 0, tables)
    if to == "intel":
        readable = as_intel_reads(placement)
        left = [name for name, table in readable.tables.items() if table.get(0) == (Rule(0, "default"),)]
        for name in left:
            losses.add(
                0,
                f"{name}: not converted: Intel MPI's variable applies to all sizes and ranks, and some are left to the library",
            )
        return replace(readable, tables={name: table for name, table in readable.tables.items() if name not in left})
    if to.startswith("mpich"):
        return trees.as_mpich_reads(placement)
    if to == "openmpi-han" or not to.startswith("openmpi"):
        return placement
    return as_openmpi_reads(placement, known.catalogue, 1 if to == "openmpi" else 2)


def _can_express_conditions(rule: FileRule, to: str, losses: Faults) -> bool:
    """Return whether the other format can express the conditions of a rule; usual conditions are dropped."""
    lacking = [condition for condition in rule.conditions if condition not in CONVERTED]
    lacking += ["the number of nodes"] if rule.nodes != ALL else []
    lacking += ["the number of ranks per node"] if not rule.ppn.covers(Span(1, trees.ANY_PPN)) else []
    if lacking:
        losses.add(
            rule.line,
            f"{rule.collective} {rule.text}: not converted: {FORMATS[to]} cannot express the condition on {', '.join(lacking)}",
        )
        return False
    usual = [condition for condition in rule.conditions if condition in USUAL]
    if usual:
        dropped = f"the condition {' and '.join(usual)} was dropped; the rule now applies to all calls"
        losses.add(rule.line, f"{rule.collective}: {dropped}")
    return True


def _has_algorithm(rule: FileRule, to: str, known: Known) -> bool:
    """Return whether the other library has the algorithm with these parameters."""
    if rule.algorithm is None or rule.algorithm == "default":
        return rule.algorithm is not None
    collective, as_rule = rule.collective, Rule(0, rule.algorithm, rule.parameters)
    if to == "openmpi-han":
        return collective in HAN and rule.algorithm in HAN_COMPONENTS
    if to == "ucc":
        return not rule.parameters and rule.algorithm in UCC.get(collective, {})
    if to == "nccl":
        return nccl.has(known.catalogue, collective, rule.algorithm, dict(rule.parameters))
    if to == "openmpi" and "max_requests" in dict(rule.parameters):
        return False
    mpi = "impi" if to == "intel" else "mpich" if to.startswith("mpich") else "openmpi"
    if known.catalogue.settings(collective, rule.algorithm, dict(rule.parameters), mpi) is None:
        return False
    names = names_of(settings_of(known.catalogue, collective, as_rule, mpi))
    return mpi != "openmpi" or not known.numbers[collective].keys().isdisjoint(names)


def _by_size(rules: list[FileRule], count: int, to: str, known: Known) -> tuple[Rule, ...]:
    """Return the rules for *count* ranks, by bytes of one rank; *total* keeps limits in bytes of all ranks exact."""
    here = [
        rule
        for rule in rules
        if rule.ranks.holds(count) and not (POWER_OF_TWO in rule.conditions and count & (count - 1))
    ]
    limits: dict[int, int | None] = {0: None}
    for rule in here:
        for limit in (rule.sizes.low, rule.sizes.high + 1 if rule.sizes.high is not None else 0):
            if limit:
                limits[-(-limit // count) if rule.total else limit] = limit if rule.total else None
    found: list[Rule] = []
    for size, total in sorted(limits.items()):
        first = next((rule for rule in here if rule.sizes.holds(rule.unit(count, size))), None)
        chosen = (
            (str(first.algorithm), first.parameters) if first and _has_algorithm(first, to, known) else ("default", ())
        )
        if not found or found[-1].choice != chosen:
            found.append(Rule(size, *chosen, total=total))
    return tuple(found)


def _other_units(own: list[FileRule], table: Table, to: str) -> list[Fault]:
    """Report limits whose unit changes between bytes of one rank and of all ranks: they only agree for one number of ranks."""
    theirs = {
        "ucc": UCC_TOTAL,
        "nccl": ("allgather",),
        "intel": (),
        "mpich": trees.TOTAL_BYTES,
        "mpich-5.1": trees.TOTAL_BYTES,
        "openmpi-han": (),
    }.get(to, TOTAL_BYTES)
    other = [rule for rule in own if rule.sizes != ALL and rule.total != (rule.collective in theirs)]
    if not other or all(len(rules) == 1 for rules in table.values()):
        return []
    was, now = ("one rank", "all ranks") if other[0].collective in theirs else ("all ranks", "one rank")
    return [
        Fault(
            other[0].line,
            f"{other[0].collective}: limits in bytes of {was} become bytes of {now}; "
            "the converted limits are exact only for the smallest rank count of each entry",
        )
    ]


def ucc_tune(placement: Placement, header: list[str]) -> str:
    """Return `UCC_TL_UCP_TUNE`; with the score inf, both ends of a range belong to it."""
    tokens = []
    for collective, table in placement.tables.items():
        for count, last, rule, after in entries(table):
            if rule.algorithm == "default":
                continue
            low = first_byte(collective, rule, count)
            high = "inf" if after is None else first_byte(collective, after, count) - 1
            ranks = f"[{count}-{'inf' if last is None else last}]"
            tokens.append(f"{collective}:{low}-{high}:{ranks}:@{UCC[collective][rule.algorithm]}:inf")
    comments = [
        f"# {text}" for text in (*header, "For a shell; in a file for UCC_CONFIG_FILE without `export` and quotes.")
    ]
    return "\n".join([*comments, f"export UCC_TL_UCP_TUNE='{'#'.join(tokens)}'"]) + "\n"


def _read_back(text: str, to: str, placement: Placement, known: Known) -> None:
    """Read the new file and compare it with the tables at every limit. Raises StudyError for a bug in this program."""
    with tempfile.TemporaryDirectory(prefix="convert-") as folder:
        path = Path(folder) / "converted"
        path.write_text(text, encoding="utf-8")
        found = read(path, known)
    for collective, table in placement.tables.items():
        for entry in entries(table):
            count, _, one, _ = entry
            if to == "nccl" and not nccl.ranks_of(collective, entry):
                continue
            rule = selected(table, count, one.size)
            at = [line for line in found.at(collective, count, one.size) if CONVERTED.issuperset(line.conditions)]
            said = (at[0].algorithm, at[0].parameters) if at else ("default", ())
            if to == "openmpi-han" and rule.algorithm == "default":
                said = ("default" if said[0] == "han" else said[0], ())
            # For undecided parts, MPICH's file contains the library's own tree.
            if said != rule.choice and not (to == "mpich" and rule.algorithm == "default"):
                raise StudyError(
                    f"the new file says {said[0]} for {collective}, {count} ranks, {one.size} bytes, not {rule.text}: "
                    "a bug in ./study convert; please report it with the file"
                )
