"""From decisions (`results/<study>/tuning/decisions.csv`, made in R) to files of MPI libraries.

Open MPI: classic rules (version 1, every release), version 2 (from 5.0.7), JSON (from 6.0), and coll_han's rules for placements
of several nodes. Intel MPI: `I_MPI_ADJUST_*`. MPICH: selection trees (mpich.py) of studies that measured it, CVARs of others.
This project's collectives library: `COLL_RULES`. One file for each placement (mapping, nodes); sizes in each library's own
unit. Outside of the measured sizes and processes a file selects the library's default.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.launch.rulesfile import parameter_line
from collstudy.study.catalogue import Catalogue
from collstudy.study.cells import library_text
from collstudy.study.machines import Machine
from collstudy.study.openmpi_numbers import NUMBERS, reads_version_2
from collstudy.study.placement import place

#: Open MPI's collectives, in the order of their numbers (COLLTYPE_T of ompi/mca/coll/base/coll_base_functions.h, 4.1 to 6.0).
COLLTYPES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast", "exscan", "gather",
    "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv", "neighbor_allgather",
    "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw",
)  # fmt: skip
#: The numbers of those for which coll/tuned has algorithms.
COLLECTIVE_IDS = {name: number for number, name in enumerate(COLLTYPES) if name in NUMBERS}
#: There Open MPI's rules count the bytes of the whole communicator; the benchmark those of one rank. Those of allgatherv are a
#: rank's, on average, and those of reduce_scatter the whole vector's: the benchmark counts as they do.
TOTAL_BYTES = ("allgather", "alltoall", "gather", "scatter")
#: No rank knows all sizes there, so Open MPI uses the rule of size 0 (coll_tuned_decision_dynamic.c).
WITHOUT_SIZE = ("alltoallv",)
#: The same algorithm in Intel MPI (I_MPI_ADJUST_*), where it has one.
INTEL = {
    "bcast": {"binomial": 1, "knomial": 8},
    "barrier": {"recursive_doubling": 2, "tree": 5},
    "allreduce": {"recursive_doubling": 1, "rabenseifner": 2},
    "reduce": {"binomial": 2, "rabenseifner": 5},
}
#: Collectives that Open MPI's coll/han can delegate to another component (coll_han_dynamic.c, 5.0).
HAN = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")
#: The components that it knows (ompi_coll_han_available_components, 5.0).
HAN_COMPONENTS = ("self", "basic", "libnbc", "tuned", "sm", "adapt", "han")


#: Collectives of this project's collectives library (workflow/native/coll/README.md).
LIBRARY = ("bcast", "barrier", "reduce", "allreduce", "gather", "alltoallv", "reduce_scatter")


#: Numbers, and the word of NCCL's protocol.
Parameters = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True)
class Decision:
    """One row of decisions.csv: the algorithm of a collective at a placement, a number of processes and a message size."""

    collective: str
    mapping: str
    nodes: int
    processes: int
    size: int | None
    algorithm: str
    parameters: Parameters
    basis: str
    gain_pct: float | None

    @property
    def choice(self) -> tuple[str, Parameters]:
        """Algorithm and parameters."""
        return self.algorithm, self.parameters


@dataclass(frozen=True)
class Rule:
    """An algorithm from a message size on (bytes of one rank, as in the benchmark); `default` is the library's own.

    *beyond*: for sizes or processes that were not measured. *total*: the same size in bytes of all ranks, if that is how a file
    gave it and rounding would change it.
    """

    size: int
    algorithm: str
    parameters: Parameters = ()
    gain_pct: float | None = None
    beyond: bool = False
    total: int | None = None

    @property
    def text(self) -> str:
        """As in the catalogue, with parameters."""
        return library_text({"algorithm": self.algorithm, **dict(self.parameters)})


#: Rules of one collective: for each number of processes from which they hold, in ascending order.
Table = dict[int, tuple[Rule, ...]]


@dataclass(frozen=True)
class Placement:
    """The placement of one file, with its rules by collective."""

    mapping: str
    nodes: int
    tables: dict[str, Table]

    @property
    def name(self) -> str:
        """Part of the files' names."""
        return f"{self.mapping}-n{self.nodes}"


def parse_parameters(text: str) -> Parameters:
    """`key=value;...`, as tables have parameters, to pairs in alphabetical order."""
    pairs = [pair.split("=") for pair in text.split(";") if pair]
    return tuple(sorted((key, int(value) if value.isdecimal() else value) for key, value in pairs))


def read_decisions(path: Path) -> list[Decision]:
    """Read decisions.csv. Raises StudyError if there is none."""
    if not path.exists():
        raise StudyError(f"{path}: no decisions yet; ./study run decides for studies with analysis.tuning")
    rows = []
    for row in read_csv(path):
        parameters = parse_parameters(row["parameters"])
        rows.append(
            Decision(
                row["collective"], row["mapping"], int(row["nodes"]), int(float(row["processes"])),
                int(float(row["size_bytes"])) if row["size_bytes"] else None, row["algorithm"], parameters, row["basis"],
                float(row["gain_pct"]) if row["gain_pct"] else None,
            )
        )  # fmt: skip
    return rows


def placements(decisions: Iterable[Decision], withdrawn: set[tuple] = frozenset()) -> list[Placement]:
    """Merge decisions to rules: neighbouring sizes, then neighbouring process counts, with the same rules are merged.

    *withdrawn* holds (collective, mapping, nodes, processes, size) that go back to the default.
    """
    grouped: dict[tuple[str, int], dict[str, dict[int, list[Decision]]]] = {}
    for row in decisions:
        tables = grouped.setdefault((row.mapping, row.nodes), {})
        tables.setdefault(row.collective, {}).setdefault(row.processes, []).append(row)
    found = []
    for (mapping, nodes), tables in sorted(grouped.items()):
        merged = {}
        for collective, by_count in sorted(tables.items()):
            table: Table = {}
            for count in sorted(by_count):
                table[count] = _merge_sizes(by_count[count], withdrawn)
            elsewhere = (Rule(0, "default", beyond=True),)
            table[max(by_count) + 1] = elsewhere
            merged[collective] = _merge_counts({0: elsewhere, **table}, collective)
        found.append(Placement(mapping, nodes, merged))
    return found


def changes(placement: Placement) -> bool:
    """Whether a placement has any rule other than the default."""
    return any(
        rule.algorithm != "default" for table in placement.tables.values() for rules in table.values() for rule in rules
    )


def _merge_sizes(rows: list[Decision], withdrawn: set[tuple]) -> tuple[Rule, ...]:
    """Rules of one process count, from size 0 on, ascending; the default again from twice the largest measured size."""
    rules: list[Rule] = []
    gains: list[list[float]] = []
    rows = sorted(rows, key=lambda row: row.size or 0)
    for row in rows:
        key = (row.collective, row.mapping, row.nodes, row.processes, row.size)
        choice = ("default", ()) if key in withdrawn else row.choice
        if not rules or (rules[-1].algorithm, rules[-1].parameters) != choice:
            rules.append(Rule(row.size or 0 if rules else 0, *choice))
            gains.append([])
        gains[-1] += [row.gain_pct] if row.gain_pct is not None and choice[0] != "default" else []
    means = [sum(values) / len(values) if values else None for values in gains]
    rules = [Rule(rule.size, rule.algorithm, rule.parameters, mean) for rule, mean in zip(rules, means, strict=True)]
    if rows[-1].size is not None and rules[-1].algorithm != "default":
        rules.append(Rule(2 * rows[-1].size, "default", beyond=True))
    return tuple(rules)


def _merge_counts(table: Table, collective: str) -> Table:
    def meaning(count: int) -> Any:
        return [(first_byte(collective, rule, count), rule.algorithm, rule.parameters) for rule in table[count]]

    kept: Table = {}
    last = None
    for count in sorted(table):
        if last is None or meaning(count) != last:
            kept[count] = table[count]
            last = meaning(count)
    return kept


def selected_rules(table: Table, processes: int) -> tuple[Rule, ...]:
    """The rules for all sizes that a library uses: those of the last entry not above the number of processes."""
    return table[max(count for count in table if count <= processes)]


def selected(table: Table, processes: int, size: int) -> Rule:
    """The rule that a library applies: the last entry not above, for processes and then for size."""
    return [rule for rule in selected_rules(table, processes) if rule.size <= size][-1]


def own_version(placement: Placement, version: str) -> int:
    """The version of the rules file for an installed Open MPI: 2 only where a rule has requests, which version 1 cannot say."""
    return 2 if _parameter_values(placement, "max_requests") and reads_version_2(version) else 1


def _parameter_values(placement: Placement, name: str) -> list[int]:
    """The values of a parameter in a placement's rules."""
    rules = [rule for table in placement.tables.values() for rules in table.values() for rule in rules]
    return [value for rule in rules for key, value in rule.parameters if key == name]


def radix_of(placement: Placement) -> int | None:
    """The radix of the k-nomial broadcasts, which Open MPI has once for all rules: that of most rules; None without any."""
    found = Counter(_parameter_values(placement, "radix"))
    return found.most_common(1)[0][0] if found else None


def radix_line(placement: Placement) -> str:
    """The comment of a rules file that names the radix; empty without one."""
    radix = radix_of(placement)
    return parameter_line("coll_tuned_bcast_algorithm_knomial_radix", radix) if radix else ""


def as_openmpi_reads(placement: Placement, version: int = 2) -> Placement:
    """The placement with the rules that Open MPI's files of a version can say.

    Where Open MPI looks at no size, one rule for all: what all measured sizes say, else the default. The default also where a
    radix is not that of the file, and in version 1 where a rule limits the requests.
    """
    radix = radix_of(placement)

    def sayable(rule: Rule) -> Rule:
        parameters = dict(rule.parameters)
        lost = parameters.get("radix", radix) != radix or (version == 1 and "max_requests" in parameters)
        return replace(rule, algorithm="default", parameters=(), gain_pct=None) if lost else rule

    def one_rule(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        measured = [rule for rule in rules if not rule.beyond]
        if len(measured) == 1:
            return (replace(measured[0], size=0),)
        return (Rule(0, "default", beyond=not measured),)

    tables: dict[str, Table] = {}
    for collective, table in placement.tables.items():
        said = {count: _without_repetition(map(sayable, rules)) for count, rules in table.items()}
        tables[collective] = {c: one_rule(own) for c, own in said.items()} if collective in WITHOUT_SIZE else said
    return replace(placement, tables=tables)


def _without_repetition(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules without those that say the same as the one before them."""
    kept: list[Rule] = []
    for rule in rules:
        if not kept or (kept[-1].algorithm, kept[-1].parameters) != (rule.algorithm, rule.parameters):
            kept.append(rule)
    return tuple(kept)


def in_unit(collective: str, size: int, processes: int) -> int:
    """Bytes of one rank in the unit of Open MPI's rules."""
    return size * processes if collective in TOTAL_BYTES else size


def first_byte(collective: str, rule: Rule, processes: int) -> int:
    """Where a rule begins, in the unit of Open MPI's rules."""
    counted = rule.total if collective in TOTAL_BYTES else None
    return in_unit(collective, rule.size, processes) if counted is None else counted


#: One entry of a table: first and last number of processes (None: all above), its rule, and the rule after it, if any.
Entry = tuple[int, int | None, Rule, Rule | None]


def entries(table: Table) -> Iterator[Entry]:
    """All rules of a table, ascending, with the processes and the sizes where they hold."""
    counts = sorted(table)
    for count, following in zip(counts, [*counts[1:], None], strict=True):
        for rule, after in zip(table[count], [*table[count][1:], None], strict=True):
            yield count, following and following - 1, rule, after


def settings_of(catalogue: Catalogue, collective: str, rule: Rule, mpi: str) -> dict[str, Any]:
    """The settings of the MPI library *mpi* for a rule's algorithm. Raises StudyError if it has none."""
    found = catalogue.settings(collective, rule.algorithm, dict(rule.parameters), mpi)
    if found is None:
        raise StudyError(f"config/algorithms.yaml: {collective} {rule.text} has no entry for {mpi}")
    return found


def _openmpi_entry(
    catalogue: Catalogue, collective: str, rule: Rule, numbers: dict[str, int]
) -> tuple[int, int, int, int]:
    """Number, fan-out, segment size and requests of a rule; 0 0 0 0 is the library's own decision. Raises StudyError."""
    if rule.algorithm == "default":
        return 0, 0, 0, 0
    settings = settings_of(catalogue, collective, rule, "openmpi")
    names = settings["algorithm"] if isinstance(settings["algorithm"], list) else [settings["algorithm"]]
    known = [numbers[name] for name in names if name in numbers]
    if not known:
        raise StudyError(f"Open MPI has no {collective} algorithm {' or '.join(names)}")
    return known[0], settings.get("fanout", 0), settings.get("segment_bytes", 0), settings.get("max_requests", 0)


def openmpi_rules(
    placement: Placement, catalogue: Catalogue, header: list[str], numbers: dict[str, dict[str, int]], version: int = 1
) -> str:
    """The classic format, version 1 or 2; see coll_tuned_dynamic_file.c.

    A communicator smaller than the first entry would use the first entry: so there is one for 0 processes.
    """
    placement = as_openmpi_reads(placement, version)
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


def han_default(study: dict[str, Any], placement: Placement) -> str | None:
    """The component of Open MPI 5 that a rule "default" refers to at a placement; None if coll/han is not involved.

    On several nodes coll/han takes precedence over coll/tuned from Open MPI 5.0 on. Only a study of such an Open MPI has
    measured coll/han as the default; the default of others (4.1, the simulator's copy of it) is coll/tuned's.
    """
    how = study["how"]
    if placement.nodes < 2 or not set(placement.tables) & set(HAN):
        return None
    measured = how["mpi"] == "openmpi" and int(how["mpi_version"].split(".")[0]) >= 5
    return "han" if measured else "tuned"


def han_rules(placement: Placement, default: str, header: list[str]) -> str:
    """The component of a collective on a communicator of several nodes; see coll_han_dynamic_file.h.

    Only the topologic level of the whole communicator has rules. Sizes are those of one rank.
    """
    tables = {collective: table for collective, table in placement.tables.items() if collective in HAN}
    lines = [f"# {text}" for text in header] + [f"{len(tables)} # collectives"]
    for collective, table in tables.items():
        # The smallest number of the format is 1: there the entry for 1 process holds, not that for 0.
        by_count = {max(count, 1): components_of(rules, default) for count, rules in sorted(table.items())}
        # The first one must be 1, or Open MPI ignores the file.
        by_count = {1: by_count[min(by_count)], **by_count}
        configurations = _merge_counts(by_count, "")
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
    """The rules with a component in place of each algorithm; equal neighbours are merged."""
    found: list[Rule] = []
    for rule in rules:
        own = rule.algorithm if rule.algorithm in HAN_COMPONENTS else "tuned"
        component = default if rule.algorithm == "default" else own
        if not found or found[-1].algorithm != component:
            found.append(Rule(rule.size, component))
    return tuple(found)


def _gain(rule: Rule) -> str:
    return "" if rule.gain_pct is None else f", expected gain {rule.gain_pct:.1f} %"


#: Keys of fan-out, segment size and requests in the JSON format (its reader knows seg_size, its schema does not).
JSON_PARAMETERS = ("faninout", "seg_size", "reqs")


def openmpi_json(placement: Placement, catalogue: Catalogue, numbers: dict[str, dict[str, int]]) -> str:
    """The JSON format of Open MPI 6.0 (docs/tuning-apps/tuned_dynamic_file_schema.json): no comments; no rule, no change."""
    placement = as_openmpi_reads(placement)
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
            # Its reader keeps "inf" as -1 in an int: without the key there is no limit.
            scope = {"comm_size_min": count, **({} if last is None else {"comm_size_max": last}), "rules": []}
            scopes.setdefault(count, scope)["rules"].append(entry)
        if scopes:
            collectives[collective] = list(scopes.values())
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1) + "\n"


def intel_number(catalogue: Catalogue, collective: str, rule: Rule) -> str | None:
    """Intel MPI's number of a rule's algorithm: the catalogue's, or that of the same algorithm; None if it has none."""
    own = catalogue.settings(collective, rule.algorithm, dict(rule.parameters), "impi")
    if own:
        return own["algorithm"]
    number = INTEL.get(collective, {}).get(rule.algorithm)
    return None if number is None or rule.parameters else str(number)


def intel_variables(placement: Placement, catalogue: Catalogue, header: list[str]) -> str:
    """`export I_MPI_ADJUST_<OP>=<number>:<sizes>@<processes>;...` for the rules whose algorithm Intel MPI has."""
    lines = [f"# {text}" for text in header]
    for collective, table in placement.tables.items():
        parts, lacking = [], set()
        for count, last, rule, after in entries(table):
            if rule.algorithm == "default":
                continue
            number = intel_number(catalogue, collective, rule)
            if number is None:
                lacking.add(rule.text)
                continue
            sizes = f"{rule.size}-{(after.size if after else 2**31) - 1}"
            parts.append(f"{number}:{sizes}@{count}-{2**31 - 1 if last is None else last}")
        if lacking:
            lines.append(f"# {collective}: no equivalent of {', '.join(sorted(lacking))}")
        if parts:
            lines.append(f"export I_MPI_ADJUST_{collective.upper()}='{';'.join(parts)}'")
    return "\n".join(lines) + "\n"


def library_rules(
    placement: Placement,
    catalogue: Catalogue,
    header: list[str],
    machine: Machine,
    counts: dict[str, list[int]],
    own_default: str = "default",
) -> str:
    """COLL_RULES of the collectives library: nodes and ranks per node as the placement puts them; see its README.md.

    *own_default* is the default of a simulation. Process counts that the library cannot distinguish (same nodes, same
    ranks per node rounded up) share the rules of the first.
    """
    cycle = list(catalogue.mappings[placement.mapping]["cycle"])
    lines = [f"# {text}" for text in header]
    for collective, table in placement.tables.items():
        seen = set()
        for count in counts[collective]:
            cores = place(machine, cycle, placement.nodes, count, None)
            nodes = len({core.node for core in cores})
            scope = (nodes, -(-count // nodes))
            if scope in seen:
                continue
            seen.add(scope)
            rules = table[max(entry for entry in table if entry <= count)]
            for rule, after in zip(rules, [*rules[1:], None], strict=True):
                most = "*" if after is None else after.size - 1
                name = own_default if rule.algorithm == "default" else _library_name(catalogue, collective, rule)
                lines.append(f"{collective} {scope[0]} {scope[1]} {most} -> {name} # {count} processes{_gain(rule)}")
    return "\n".join(lines) + "\n"


def in_library(catalogue: Catalogue, placement: Placement) -> Placement:
    """The placement with the collectives only that the collectives library has, with every algorithm that is used."""

    def known(collective: str, rule: Rule) -> bool:
        entry = catalogue.algorithms[collective][rule.algorithm]
        return rule.algorithm == "default" or bool({"simulated", "library"} & set(entry))

    kept = {
        collective: table
        for collective, table in placement.tables.items()
        if collective in LIBRARY and all(known(collective, rule) for rules in table.values() for rule in rules)
    }
    return replace(placement, tables=kept)


def _library_name(catalogue: Catalogue, collective: str, rule: Rule) -> str:
    entry = catalogue.algorithms[collective][rule.algorithm]
    own = entry.get("simulated", entry.get("library"))
    if own is None:
        raise StudyError(
            f"config/algorithms.yaml: {collective} {rule.algorithm} has no entry for the collectives library"
        )
    return library_text({**own, **dict(rule.parameters)})
