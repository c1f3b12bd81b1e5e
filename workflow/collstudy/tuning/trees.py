"""MPICH's tuning files: variables for one algorithm, or decisions as selection trees that MPICH 4 or 5 reads instead of its own.

Two trees act together. First the device (ch4) decides whether a collective is split by node
(MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE), then each part selects its algorithm (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE).
A file replaces the library's whole tree; therefore undecided parts are copied from that tree, which the library contains as text.
Source: src/mpi/coll/src/csel.c, csel_container.c and coll_algorithms.txt of MPICH 5.0.1.

MPICH 5.1 reads one file of named subtrees (MPIR_CVAR_COLL_SELECTION_JSON_FILE), in which the decisions refer to the library's own.
Source: the same files and coll_selection.json in MPICH's pull request 7547.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch.mpich import Tree, forcing_environment
from collstudy.study.catalogue import Catalogue
from collstudy.tuning.rules import Placement, Rule, Table, one_for_all_sizes, without_repetition
from collstudy.tuning.writers import settings_of

#: The device's composition that does not split a collective, for the collectives that it can split.
UNSPLIT = {"bcast": "gamma", "allreduce": "beta", "reduce": "gamma", "barrier": "beta", "scan": "beta"}
#: Collectives of which MPICH knows only the size of all ranks' blocks together (get_avg_msgsize and get_total_msgsize of csel.c).
TOTAL_BYTES = ("allgather", "allgatherv", "reduce_scatter_block")
#: The same, with the size of the whole vector, as in the benchmark.
WHOLE_VECTOR = ("reduce_scatter",)
#: Collectives of which MPICH knows no size, or counts elements of any type as bytes: one rule for all sizes.
ONE_RULE = ("exscan", "gather", "scan", "scatter")
#: Collectives whose algorithms in the catalogue do not work in place.
NOT_IN_PLACE = ("alltoall",)
#: Algorithms that need a built-in operation, and at least as many elements as the largest power of two of processes.
SCATTERING = ("reduce_scatter_allgather", "reduce_scatter_gather", "sched_reduce_scatter_allgather")
#: Reduction algorithms that keep the order of the ranks.
ORDERED = ("recursive_doubling", "binomial", "sched_recursive_doubling", "noncommutative")
#: More ranks per node than any machine has; the condition excludes communicators that MPICH creates internally.
ANY_PPN = 65536


def variables(placement: Placement, catalogue: Catalogue, header: list[str]) -> str:
    """Return CVARs, which apply to every size and process count; used without an installed MPICH.

    Only an algorithm that was decided for all measured sizes of the largest measured process count (full nodes) is set.
    """
    lines = [f"# {text}" for text in header]
    lines.append(
        "# MPICH's CVARs hold for all sizes and processes: set only where one algorithm was decided for all sizes."
    )
    for collective, table in placement.tables.items():
        measured = {count: [rule for rule in rules if not rule.beyond] for count, rules in table.items()}
        # If only the default was decided, unmeasured cells have the same entry.
        largest = max((count for count, rules in measured.items() if rules), default=0)
        rules = measured[largest] or table[0]
        used, rule = {rule.text for rule in rules}, rules[0]
        alone = len(used) == 1 and rule.algorithm != "default"
        chosen = catalogue.settings(collective, rule.algorithm, dict(rule.parameters), "mpich") if alone else None
        if chosen is None:
            where = f" from {largest} processes on" if largest else ""
            lines.append(f"# {collective}: left to MPICH ({', '.join(sorted(used))}{where})")
        else:
            lines += [f"export {key}='{value}'" for key, value in forcing_environment(collective, chosen).items()]
    return "\n".join(lines) + "\n"


def own_trees(library: Path) -> tuple[Tree, Tree]:
    """Return the trees in an installed libmpi.so: of algorithms, and of the device. Raises StudyError if it has none."""
    found: dict[str, Tree] = {}
    for text in re.findall(rb'\{"collective=[^\0]+', library.read_bytes()):
        for kind in ("algorithm=MPIR_", "composition=MPIDI_"):
            if kind.encode() in text:
                found[kind] = json.loads(text, object_pairs_hook=_pairs)
    if len(found) != 2:
        raise StudyError(f"{library}: contains no selection trees of MPICH; tuning files cannot be written")
    return found["algorithm=MPIR_"], found["composition=MPIDI_"]


def _pairs(pairs: list[tuple[str, Tree]]) -> Tree:
    """Build an object; `comm_size<N` becomes `comm_size<=N-1`, because below a message size MPICH 5.0 reads the former as `<=N`."""
    return {re.sub(r"^comm_size<(\d+)$", lambda m: f"comm_size<={int(m[1]) - 1}", key): tree for key, tree in pairs}


def as_mpich_reads(placement: Placement) -> Placement:
    """Return the placement with only the rules that MPICH's files can express."""
    tables = {
        name: {count: one_for_all_sizes(without_repetition(rules)) for count, rules in table.items()}
        if name in ONE_RULE
        else table
        for name, table in placement.tables.items()
    }
    return replace(placement, tables=tables)


def trees(placement: Placement, catalogue: Catalogue, own: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
    """Return the trees of a placement: of algorithms, and of the device."""
    algorithms, device = dict(own[0]), dict(own[1])
    for collective, table in as_mpich_reads(placement).tables.items():
        key = f"collective={collective}"
        algorithm = functools.partial(_algorithm, catalogue, collective)
        algorithms[key] = _decided(table, collective, algorithms[key], catalogue, algorithm)
        if collective in UNSPLIT:
            device[key] = _decided(table, collective, device[key], catalogue, functools.partial(_unsplit, collective))
    return algorithms, device


#: Conditions of 5.0 -> conditions of MPICH 5.1; of a yes/no pair, the first is tried first.
CONDITIONS = {
    "is_op_built_in=yes": "builtin_op", "is_op_built_in=no": "any", "is_commutative=yes": "commutative", "is_commutative=no": "any",
    "count<pow2": "!count_ge_pof2", "count=any": "any", "comm_size=any": "any", "avg_msg_size=any": "any",
    "total_msg_size=any": "any", "comm_size=pow2": "pof2", "is_sendbuf_inplace=yes": "inplace", "is_sendbuf_inplace=no": "any",
}  # fmt: skip


def subtrees_text(placement: Placement, catalogue: Catalogue) -> str:
    """Return MPICH 5.1's file of a placement: `main` calls the subtrees of decided collectives, and otherwise the library's `auto`."""

    def renamed(tree: Tree | str) -> Tree | str:
        if isinstance(tree, str):
            return tree
        return {CONDITIONS.get(key, key): renamed(below) for key, below in tree.items()}

    main, found = {}, {}
    for collective, table in as_mpich_reads(placement).tables.items():
        own = {"comm_type=intra": f"call={collective}-intra-auto"}
        decided = _decided(table, collective, own, catalogue, functools.partial(_algorithm, catalogue, collective))
        name = f"{collective}-intra-decided"
        main[f"collective={collective}-intra"] = f"call={name}"
        # Take the part below the condition on ranks per node, which MPICH 5.1 does not have.
        found[f"name={name}"] = renamed(decided["comm_type=intra"][f"comm_avg_ppn<={ANY_PPN}"])
    return json.dumps({"name=main": {**main, "any": "call=auto"}, **found}, indent=1) + "\n"


def _decided(
    table: Table, collective: str, own: Tree, catalogue: Catalogue, leaf: Callable[[Rule], Tree]
) -> dict[str, Any]:
    """Return the tree of one collective, by process count and then by size; undecided parts are the library's own tree."""
    # Exscan's own tree has no condition on the type of the communicator, because it exists within one group of ranks only.
    default = own.get("comm_type=intra", own)
    size = "total_msg_size" if collective in (*TOTAL_BYTES, *WHOLE_VECTOR) else "avg_msg_size"

    def first_byte(rule: Rule, ranks: int) -> int:
        if collective not in TOTAL_BYTES:
            return rule.size
        return rule.size * ranks if rule.total is None else rule.total

    def by_size(ranks: int, rules: tuple[Rule, ...]) -> Tree:
        chosen = [
            default if rule.algorithm == "default" else _guarded(collective, catalogue, rule, leaf(rule), default)
            for rule in rules
        ]
        limits = [f"{size}<={first_byte(after, ranks) - 1}" for after in rules[1:]] + [f"{size}=any"]
        return chosen[0] if len(rules) == 1 else dict(zip(limits, chosen, strict=True))

    counts = sorted(table)
    limits = [f"comm_size<={after - 1}" for after in counts[1:]] + ["comm_size=any"]
    decided = {limit: by_size(count, table[count]) for limit, count in zip(limits, counts, strict=True)}
    others = {} if default is own else own
    return {**others, "comm_type=intra": {f"comm_avg_ppn<={ANY_PPN}": decided, "comm_avg_ppn=any": default}}


def _unsplit(collective: str, _: Rule) -> Tree:
    return {f"composition=MPIDI_{collective.capitalize()}_intra_composition_{UNSPLIT[collective]}": {}}


def _algorithm(catalogue: Catalogue, collective: str, rule: Rule) -> Tree:
    chosen = settings_of(catalogue, collective, rule, "mpich")
    parameters = {}
    if "fanout" in chosen:
        # The file must contain all entries: MPICH does not initialise missing ones and crashes.
        values = {
            "tree_type": "kary", "k": chosen["fanout"], "is_non_blocking": 1, "chunk_size": chosen["segment_bytes"],
            "recv_pre_posted": 0,
        }  # fmt: skip
        parameters = {f"{key}={value}": {} for key, value in values.items()}
    if "radix" in chosen:
        parameters = {f"k={chosen['radix']}": {}, "single_phase_recv=0": {}}
    return {f"algorithm=MPIR_{collective.capitalize()}_intra_{chosen['algorithm']}": parameters}


def _guarded(collective: str, catalogue: Catalogue, rule: Rule, leaf: Tree, default: Tree) -> Tree:
    """Return a leaf; calls that the algorithm does not support use the library's own tree."""
    settings = settings_of(catalogue, collective, rule, "mpich")
    algorithm = settings["algorithm"]
    if settings.get("power_of_two"):
        leaf = {"comm_size=pow2": leaf, "comm_size=any": default}
    if collective in NOT_IN_PLACE:
        return {"is_sendbuf_inplace=yes": default, "is_sendbuf_inplace=no": leaf}
    if "reduce" not in collective:
        return leaf
    if algorithm in SCATTERING:
        enough = {"count<pow2": default, "count=any": leaf}
        return {"is_op_built_in=yes": enough, "is_op_built_in=no": default}
    return leaf if algorithm in ORDERED else {"is_commutative=yes": leaf, "is_commutative=no": default}
