"""Read MPICH's selection trees (src/mpi/coll/src/csel.c of MPICH 5.0), and MPICH 5.1's named subtrees (the same file in pull request
7547), which are read as the trees that they call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from collstudy.tuning.readers.known import Known
from collstudy.tuning.readers.located import Located
from collstudy.tuning.tuningfile import ALL, POWER_OF_TWO, Faults, FileRule, Span, TuningFile, general_faults


def read_mpich(path: Path, trees: list[Located], known: Known) -> TuningFile:
    """Read selection trees: of algorithms, of the device (compositions), or both in a list, as in the rules of a cell."""
    rules: list[FileRule] = []
    faults = Faults()
    for tree in trees:
        for key, below in tree.items():
            key = key.replace(" ", "")
            if not key.startswith("collective=") or not isinstance(below, Located):
                faults.add(
                    tree.line,
                    f"{key!r}: only collective=NAME is allowed at the top level: MPICH aborts when it reads this",
                )
                continue
            start = FileRule(below.line, key.removeprefix("collective="), "")
            rules += _walk(below, start, known, faults)
    return TuningFile(path, "mpich", tuple(rules), (*faults, *general_faults(rules)))


#: Conditions of MPICH 5.1 -> conditions of 5.0.
OLD_CONDITIONS = {
    "pof2": POWER_OF_TWO, "builtin_op": "is_op_built_in=yes", "!builtin_op": "is_op_built_in=no", "commutative": "is_commutative=yes",
    "!commutative": "is_commutative=no", "inplace": "is_sendbuf_inplace=yes", "!inplace": "is_sendbuf_inplace=no",
    "block_regular": "is_block_regular=yes", "!block_regular": "is_block_regular=no", "!count_ge_pof2": "count<pow2",
    "node_consecutive": "is_node_consecutive=yes", "!node_consecutive": "is_node_consecutive=no", "any": "comm_size=any",
}  # fmt: skip
#: Conditions that MPICH 5.0 lacks; each may be negated with `!`.
NEW_CONDITIONS = (
    "pof2", "hierarchical", "node_regular", "count_ge_pof2", "displs_ordered", "MPIDI_CH4_release_gather"
)  # fmt: skip


def read_subtrees(path: Path, subtrees: Located, known: Known) -> TuningFile:
    """Read named subtrees, starting at `main`. Subtrees that are not in the file are the library's own."""
    faults = Faults()
    named = {key.removeprefix("name="): tree for key, tree in subtrees.items() if key.startswith("name=")}
    if len(named) < len(subtrees):
        faults.add(subtrees.line, "only `name=...` is allowed at the top level: MPICH aborts when it reads this")
    # Without `main`, the subtrees replace those that the library's own `main` calls.
    main: Any = named.get("main") or Located(
        {
            f"collective={name.removesuffix('-auto')}": f"call={name}"
            for name in named
            if name.endswith(("-intra-auto", "-inter-auto"))
        }
    )
    tree = _inlined(main, named, ("main",), subtrees.line, faults)
    collectives = Located({key: below for key, below in tree.items() if key.startswith("collective=")})
    collectives.line = tree.line
    found = read_mpich(path, [collectives], known)
    return replace(found, format="mpich-5.1", faults=(*faults, *found.faults))


def _inlined(tree: Any, named: dict[str, Any], called: tuple[str, ...], line: int, faults: Faults) -> Located:
    """Return a subtree in which calls are replaced by the called subtrees, with MPICH 5.0's conditions; *called*: the chain of calls."""
    found = Located()
    found.line = line
    if isinstance(tree, Located):
        found.line = tree.line
        for key, below in tree.items():
            key = _old_condition(key.replace(" ", ""))
            if not key.endswith("-inter"):  # collectives between two groups of ranks are not studied here
                found[key.removesuffix("-intra")] = _inlined(below, named, called, tree.line, faults)
        return found
    name = tree.removeprefix("call=") if isinstance(tree, str) and tree.startswith("call=") else ""
    if name in called:
        faults.add(line, f"the subtree {name} calls itself: endless recursion in MPICH")
    elif name in named:
        return _inlined(named[name], named, (*called, name), line, faults)
    elif name == "auto" or name.endswith("-auto"):
        below = found[tree] = Located()
        below.line = line
    else:
        faults.add(
            line,
            f"{tree!r} is neither an object nor a subtree of the file or of MPICH: MPICH aborts when it reads this",
        )
    return found


def _old_condition(key: str) -> str:
    """Convert a key of MPICH 5.1 to MPICH 5.0's form: bounds as <= and >, other conditions by OLD_CONDITIONS."""
    bound = re.fullmatch(r"(!?)([a-z_]+)(\(|<=?|>=?)(\d+)\)?", key)
    if not bound:
        return "comm_size=any" if key.endswith("(any)") else OLD_CONDITIONS.get(key, key)
    negated, name, sign, number = bound.groups()
    # Upper bounds are inclusive.
    limit = int(number) - (sign in ("<", ">="))
    return f"{name}{'>' if (sign[0] == '>') != bool(negated) else '<='}{limit}"


def _walk(tree: Located, rule: FileRule, known: Known, faults: Faults) -> Iterator[FileRule]:
    """Yield the leaves below a tree, in the order in which MPICH tries them."""
    keys = [key.replace(" ", "") for key in tree]
    for key, below in zip(keys, tree.values(), strict=True):
        if not isinstance(below, Located):
            faults.add(tree.line, f"the value of {key!r} is not an object: MPICH aborts when it reads this")
            return
        if key.startswith(("algorithm=", "composition=")):
            yield _leaf(replace(rule, line=below.line), key.partition("=")[2], below, known, faults)
            return
        if key.startswith("call="):
            yield replace(rule, line=below.line, word=key, algorithm="default")
            return
        if key == "comm_type=inter":
            continue  # collectives between two groups of ranks are not studied here
        name, _, value = key.partition("=")
        try:
            # `no` after `yes` covers everything else, so it adds no condition.
            narrowed = rule if value == "no" and f"{name}=yes" in keys[: keys.index(key)] else _narrowed(rule, key)
        except ValueError:
            faults.add(below.line, f"unknown condition {key!r}: MPICH aborts when it reads this")
            continue
        if not narrowed.sizes.empty and not narrowed.ranks.empty:
            yield from _walk(below, narrowed, known, faults)
    complete = {"yes", "no"} <= {key.partition("=")[2] for key in keys} or not keys
    if keys and not keys[-1].endswith("any") and not keys[-1].startswith("comm_type=") and not complete:
        faults.add(tree.line, f"{rule.collective}: no `any` after {keys[-1]}: MPICH has no algorithm there and stops")


def _narrowed(rule: FileRule, key: str) -> FileRule:
    """Return the rule with one more condition. Raises ValueError for a condition that MPICH does not have."""
    if key.endswith("any"):
        return rule
    limit = re.fullmatch(r"(comm_size|avg_msg_size|total_msg_size|comm_avg_ppn)(<=?|>)(\d+)", key)
    if limit:
        name, sign, number = limit.groups()
        limits = Span(int(number) + 1) if sign == ">" else Span(0, int(number) - (sign == "<"))
        if name == "comm_size":
            return replace(rule, ranks=rule.ranks.within(limits))
        if name == "comm_avg_ppn":
            return replace(rule, ppn=rule.ppn.within(limits))
        # The benchmark's size of reduce_scatter is that of the whole vector, too.
        total = name == "total_msg_size" and rule.collective != "reduce_scatter"
        if rule.sizes == ALL or rule.total == total:
            return replace(rule, sizes=rule.sizes.within(limits), total=total)
    elif key.removeprefix("!") not in NEW_CONDITIONS and not re.fullmatch(
        r"count(<=\d+|<pow2)|(comm_size|comm_type|comm_hierarchy|is_\w+)=\w+", key
    ):
        raise ValueError(key)
    return rule if key == "comm_type=intra" else replace(rule, conditions=(*rule.conditions, key))


def _leaf(rule: FileRule, word: str, below: Located, known: Known, faults: Faults) -> FileRule:
    given = dict(key.replace(" ", "").partition("=")[::2] for key in below)
    named = word.removeprefix(f"MPIR_{rule.collective.capitalize()}_intra_")
    for name, entry in known.catalogue.algorithms.get(rule.collective, {}).items():
        settings = entry.get("mpich", {})
        if settings.get("algorithm") != named:
            continue
        if "radix" in settings:
            radix = given.get("k", "")
            if radix.isdecimal() and int(radix) > 1:
                chosen = (("radix", int(radix)),) if int(radix) != settings["radix"] else ()
                return replace(rule, word=word, algorithm=name, parameters=chosen)
            continue
        if "fanout" not in settings:
            return replace(rule, word=word, algorithm=name)
        if given.get("tree_type") == "kary" and given.get("k") == str(settings["fanout"]):
            size = given.get("chunk_size", "0")
            # MPICH reads it with atoi().
            number = re.match(r"[-+]?\d+", size, re.ASCII)
            segment = int(number[0]) if number else 0
            if not number or number[0] != size:
                faults.add(below.line, f"{rule.collective}: chunk_size={size} is not a number: MPICH takes {segment}")
            return replace(rule, word=word, algorithm=name, parameters=(("segment_bytes", segment),) if segment else ())
    return replace(rule, word=" ".join([word, *(f"{key}={value}" for key, value in given.items())]))
