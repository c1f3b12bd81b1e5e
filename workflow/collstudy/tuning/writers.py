"""Write the rules of a placement in the formats of MPI libraries (readers/ reads them).

Open MPI: classic rules (version 1, every release), version 2 (from 5.0.7), JSON (from 6.0), and coll/han's rules for placements
with several nodes. Intel MPI: `I_MPI_ADJUST_*`. This project's collectives library: `COLL_RULES`. Sizes are in each library's
own unit. Above the measured sizes and outside the measured processes a file selects the library's default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch.rulesfile import parameter_line
from collstudy.study.catalogue import Catalogue, names_of, own_settings
from collstudy.study.cells import library_text
from collstudy.tuning.intel import as_intel_reads
from collstudy.tuning.rules import (
    COLLECTIVE_IDS,
    HAN,
    HAN_COMPONENTS,
    Placement,
    Rule,
    as_openmpi_reads,
    entries,
    first_byte,
    merge_counts,
    radix_of,
    selected_rules,
    without_repetition,
)

#: Collectives that this project's collectives library implements (workflow/native/coll/README.md).
LIBRARY = (
    "bcast", "barrier", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "alltoallv", "reduce_scatter",
)  # fmt: skip


def radix_line(placement: Placement) -> str:
    """Return the comment of a rules file that names the radix; "" without a radix."""
    radix = radix_of(placement)
    return parameter_line("coll_tuned_bcast_algorithm_knomial_radix", radix) if radix else ""


def settings_of(catalogue: Catalogue, collective: str, rule: Rule, mpi: str) -> dict[str, Any]:
    """Return the settings of the MPI library *mpi* for a rule's algorithm. Raises StudyError if it has none."""
    found = catalogue.settings(collective, rule.algorithm, dict(rule.parameters), mpi)
    if found is None:
        raise StudyError(f"config/algorithms.yaml: {collective} {rule.text} has no entry for {mpi}")
    return found


def _openmpi_entry(
    catalogue: Catalogue, collective: str, rule: Rule, numbers: dict[str, int]
) -> tuple[int, int, int, int]:
    """Return number, fan-out, segment size and requests of a rule; 0 0 0 0 is the library's own decision. Raises StudyError."""
    if rule.algorithm == "default":
        return 0, 0, 0, 0
    settings = settings_of(catalogue, collective, rule, "openmpi")
    names = names_of(settings)
    known = [numbers[name] for name in names if name in numbers]
    if not known:
        raise StudyError(f"Open MPI has no {collective} algorithm {' or '.join(names)}")
    return known[0], settings.get("fanout", 0), settings.get("segment_bytes", 0), settings.get("max_requests", 0)


def openmpi_rules(
    placement: Placement, catalogue: Catalogue, header: list[str], numbers: dict[str, dict[str, int]], version: int = 1
) -> str:
    """Return a rules file in the classic format, version 1 or 2; see coll_tuned_dynamic_file.c.

    A communicator smaller than the first entry would use the first entry; therefore there is an entry for 0 processes.
    """
    placement = as_openmpi_reads(placement, catalogue, version)
    lines = ["rule-file-version-2"] if version == 2 else []
    lines += [f"# {text}" for text in header]
    if parameter := radix_line(placement):
        lines += ["# Open MPI has one radix for all rules, given as a parameter (also of a default that is k-nomial):"]
        lines.append(parameter)
    lines.append(f"{len(placement.tables)} # collectives")
    for collective, table in placement.tables.items():
        lines += [f"{COLLECTIVE_IDS[collective]} # {collective}", f"{len(table)} # communicator sizes"]
        for count, rules in table.items():
            lines += [f"{count} # processes and more", f"{len(rules)} # message sizes"]
            for rule in rules:
                entry = _openmpi_entry(catalogue, collective, rule, numbers[collective])
                words = [first_byte(collective, rule, count), *entry[: 4 if version == 2 else 3]]
                lines.append(f"{' '.join(map(str, words))} # {rule.text}{_gain(rule)}")
    return "\n".join(lines) + "\n"


def han_rules(placement: Placement, catalogue: Catalogue, default: str, header: list[str]) -> str:
    """Return coll/han's rules: the component of a collective on a communicator with several nodes; see coll_han_dynamic_file.h.

    Only the topologic level of the whole communicator has rules. Sizes are those of one rank. Where the other file cannot express
    a rule, the default applies here, too; coll/han would otherwise yield to the default of coll/tuned.
    """
    placement = as_openmpi_reads(placement, catalogue)
    tables = {collective: table for collective, table in placement.tables.items() if collective in HAN}
    lines = [f"# {text}" for text in header] + [f"{len(tables)} # collectives"]
    for collective, table in tables.items():
        # The smallest number in the format is 1; there the entry for 1 process applies, not that for 0.
        by_count = {max(count, 1): components_of(rules, default) for count, rules in sorted(table.items())}
        # The first one must be 1, or Open MPI ignores the file.
        by_count = {1: by_count[min(by_count)], **by_count}
        configurations = merge_counts(by_count, "")
        lines += [
            collective,
            "1 # topologic levels",
            "global_communicator",
            f"{len(configurations)} # communicator sizes",
        ]
        for count, rules in configurations.items():
            lines += [f"{count} # processes and more", f"{len(rules)} # message sizes"]
            lines += [f"{rule.size} {rule.algorithm}" for rule in rules]
    return "\n".join(lines) + "\n"


def components_of(rules: tuple[Rule, ...], default: str) -> tuple[Rule, ...]:
    """Return the rules with a component in place of each algorithm; equal neighbours are merged."""
    components = {"default": default} | {name: name for name in HAN_COMPONENTS}
    return without_repetition(Rule(rule.size, components.get(rule.algorithm, "tuned")) for rule in rules)


def _gain(rule: Rule) -> str:
    return "" if rule.gain_pct is None else f", expected gain {rule.gain_pct:.1f} %"


#: Keys of fan-out, segment size and requests in the JSON format (its reader knows seg_size, its schema does not).
JSON_PARAMETERS = ("faninout", "seg_size", "reqs")


def openmpi_json(placement: Placement, catalogue: Catalogue, numbers: dict[str, dict[str, int]]) -> str:
    """Return rules in Open MPI 6.0's JSON format (docs/tuning-apps/tuned_dynamic_file_schema.json), which has no comments."""
    placement = as_openmpi_reads(placement, catalogue)
    collectives: dict[str, Any] = {}
    for collective, table in placement.tables.items():
        scopes: dict[int, dict[str, Any]] = {}
        for count, last, rule, after in entries(table):
            if rule.algorithm == "default":
                continue
            number, *parameters = _openmpi_entry(catalogue, collective, rule, numbers[collective])
            entry: dict[str, Any] = {"msg_size_min": first_byte(collective, rule, count)}
            entry["msg_size_max"] = "inf" if after is None else first_byte(collective, after, count) - 1
            entry["alg"] = number
            entry |= {key: value for key, value in zip(JSON_PARAMETERS, parameters, strict=True) if value}
            # The reader stores "inf" as -1 in an int; without the key there is no limit.
            scope = {"comm_size_min": count, **({} if last is None else {"comm_size_max": last}), "rules": []}
            scopes.setdefault(count, scope)["rules"].append(entry)
        if scopes:
            collectives[collective] = list(scopes.values())
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1) + "\n"


def intel_variables(placement: Placement, catalogue: Catalogue, header: list[str]) -> str:
    """Return `export I_MPI_ADJUST_<OP>=<number>:<sizes>;...`, or with `@<processes>`, for the collectives that variables can express."""

    def own(collective: str, rule: Rule) -> dict[str, Any] | None:
        return catalogue.settings(collective, rule.algorithm, dict(rule.parameters), "impi")

    lines = [f"# {text}" for text in header]
    readable = as_intel_reads(placement, lambda collective, rule: own(collective, rule) is not None)
    for collective, table in readable.tables.items():
        parts = []
        for count, last, rule, after in entries(table):
            if settings := own(collective, rule):
                sizes = f"{rule.size}-{(after.size if after else 2**31) - 1}"
                ranks = f"@{count}-{2**31 - 1 if last is None else last}" if len(table) > 1 else ""
                parts.append(f"{settings['algorithm']}:{sizes}{ranks}")
        if parts:
            lines.append(f"export I_MPI_ADJUST_{collective.upper()}='{';'.join(parts)}'")
        else:
            decided = [rule for rules in placement.tables[collective].values() for rule in rules]
            other = {rule.text for rule in decided if rule.algorithm != "default" and own(collective, rule) is None}
            why = f"no equivalent of {', '.join(sorted(other))}" if other else "its variable would apply to all calls"
            lines.append(f"# {collective}: left to Intel MPI: {why}")
    return "\n".join(lines) + "\n"


def library_rules(
    placement: Placement,
    catalogue: Catalogue,
    header: list[str],
    shapes: dict[str, Iterable[tuple[int, int]]],
    own_default: str = "default",
) -> str:
    """Return COLL_RULES of the collectives library; see its README.md.

    *shapes* has, by collective, the process counts and the nodes that they use. *own_default* is the default of a simulation.
    Process counts that the library cannot distinguish (same nodes, and same ranks per node rounded up) share the rules of the
    largest, which fills the nodes: of 47 and 48 ranks on 2 nodes, those of 48.
    """
    lines = [f"# {text}" for text in header]
    for shape, rule, after in library_entries(placement, shapes):
        # Of alltoallv the library counts all that a rank sends.
        blocks = shape.ranks if shape.collective == "alltoallv" else 1
        most = "*" if after is None else after.size * blocks - 1
        name = own_default if rule.algorithm == "default" else _library_name(catalogue, shape.collective, rule)
        where = f"{shape.collective} {shape.nodes} {shape.per_node} {most}"
        lines.append(f"{where} -> {name} # {shape.ranks} processes{_gain(rule)}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Shape:
    """The communicators to which a rule of the collectives library applies; *ranks*: the process count that was measured."""

    collective: str
    nodes: int
    per_node: int
    ranks: int


def library_entries(
    placement: Placement, shapes: dict[str, Iterable[tuple[int, int]]]
) -> Iterator[tuple[Shape, Rule, Rule | None]]:
    """Yield each rule of the collectives library with its communicators and the next rule for them, if any; see library_rules()."""
    for collective, table in placement.tables.items():
        largest = {(nodes, -(-count // nodes)): count for count, nodes in sorted(shapes[collective])}
        for (nodes, per_node), count in largest.items():
            rules = selected_rules(table, count)
            for rule, after in zip(rules, [*rules[1:], None], strict=True):
                yield Shape(collective, nodes, per_node, count), rule, after


def in_library(catalogue: Catalogue, placement: Placement) -> Placement:
    """Return the placement with only the collectives for which the collectives library has all algorithms used."""

    def known(collective: str, rule: Rule) -> bool:
        return rule.algorithm == "default" or own_settings(catalogue.algorithms[collective][rule.algorithm]) is not None

    kept = {
        collective: table
        for collective, table in placement.tables.items()
        if collective in LIBRARY and all(known(collective, rule) for rules in table.values() for rule in rules)
    }
    return replace(placement, tables=kept)


def _library_name(catalogue: Catalogue, collective: str, rule: Rule) -> str:
    own = own_settings(catalogue.algorithms[collective][rule.algorithm])
    if own is None:
        raise StudyError(
            f"config/algorithms.yaml: {collective} {rule.algorithm} has no entry for the collectives library"
        )
    return library_text({**own, **dict(rule.parameters)})
