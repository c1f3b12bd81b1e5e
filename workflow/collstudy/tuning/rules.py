"""Convert decisions (`results/<study>/tuning/decisions.csv`, made in R) to rules by placement; writers.py writes the files.

There is one file per placement (mapping, nodes; see placements()). Outside of the measured sizes (below half of the smallest one,
unless that has at most 8 bytes, and from twice the largest one on) and processes, rules select the library's default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.store.measurements import whole
from collstudy.study.catalogue import Catalogue, own_settings
from collstudy.study.cells import library_text
from collstudy.study.openmpi_numbers import NUMBERS, reads_version_2

#: A size in bytes, that of one element: the rule of a smallest measured size up to it also applies to all smaller sizes.
SMALLEST = 8
#: Open MPI's collectives in the order of their numbers (COLLTYPE_T of ompi/mca/coll/base/coll_base_functions.h, 4.1 to 6.0).
COLLTYPES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast", "exscan", "gather",
    "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv", "neighbor_allgather",
    "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw",
)  # fmt: skip
#: The numbers of the collectives for which coll/tuned has algorithms.
COLLECTIVE_IDS = {name: number for number, name in enumerate(COLLTYPES) if name in NUMBERS}
#: For these, Open MPI's rules count the bytes of the whole communicator, while the benchmark counts those of one rank. For allgatherv
#: (a rank's bytes, on average) and reduce_scatter (the whole vector) both count alike.
TOTAL_BYTES = ("allgather", "alltoall", "gather", "reduce_scatter_block", "scatter")
#: For these Open MPI compares the bytes of one element times the ranks with the sizes of the rules (coll_tuned_decision_dynamic.c).
OF_ELEMENTS = ("exscan", "scan")
#: For these no rank knows all sizes, so Open MPI uses the rule of size 0 (coll_tuned_decision_dynamic.c).
WITHOUT_SIZE = ("alltoallv",)
#: Collectives for which a rules file of Open MPI can have only one rule for all message sizes.
ONE_RULE = (*OF_ELEMENTS, *WITHOUT_SIZE)
#: Collectives that Open MPI's coll/han can delegate to another component (coll_han_dynamic.c, 5.0).
HAN = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")
#: The components known to coll/han (ompi_coll_han_available_components, 5.0).
HAN_COMPONENTS = ("self", "basic", "libnbc", "tuned", "sm", "adapt", "han")


#: Values are numbers, except for the word of NCCL's protocol.
Parameters = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True)
class Decision:
    """One row of decisions.csv: the algorithm of a collective for a mapping, the nodes that the ranks use, a process count and a
    message size. *from_size*: the size (B) from which it is expected to be faster than the choice for the previous size; None if
    that is unknown.
    """

    collective: str
    mapping: str
    nodes: int
    processes: int
    size: int | None
    algorithm: str
    parameters: Parameters
    gain_pct: float | None
    from_size: int | None = None

    @property
    def choice(self) -> tuple[str, Parameters]:
        """Return algorithm and parameters."""
        return self.algorithm, self.parameters


@dataclass(frozen=True)
class Rule:
    """An algorithm that applies from a message size on (bytes of one rank, as in the benchmark); `default` is the library's own.

    *beyond*: for sizes or processes that were not measured. *total*: the size in bytes of all ranks, if a file gave it in that
    unit and rounding would change it.
    """

    size: int
    algorithm: str
    parameters: Parameters = ()
    gain_pct: float | None = None
    beyond: bool = False
    total: int | None = None

    @property
    def choice(self) -> tuple[str, Parameters]:
        """Return algorithm and parameters."""
        return self.algorithm, self.parameters

    @property
    def text(self) -> str:
        """Return the algorithm with its parameters, as in the catalogue."""
        return library_text({"algorithm": self.algorithm, **dict(self.parameters)})


#: Rules of one collective by the number of processes from which they apply, in ascending order.
Table = dict[int, tuple[Rule, ...]]


@dataclass(frozen=True)
class Placement:
    """The placement for which one file applies, with its rules by collective.

    *nodes* is the largest number of nodes, *used* has that of each number of ranks, by collective.
    """

    mapping: str
    nodes: int
    tables: dict[str, Table]
    used: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the part of the files' names that identifies the placement."""
        return f"{self.mapping}-n{self.nodes}"

    @property
    def label(self) -> str:
        """Return mapping and numbers of nodes: `core, 1 or 2 nodes`."""
        counts = sorted({nodes for own in self.used.values() for nodes in own.values()})
        return f"{self.mapping}, {' or '.join(map(str, counts))} node{'s' * (counts != [1])}"

    @property
    def rules(self) -> list[Rule]:
        """Return the rules of all collectives and numbers of processes."""
        return [rule for table in self.tables.values() for rules in table.values() for rule in rules]

    @property
    def changes(self) -> bool:
        """Return whether any rule is not the default."""
        return any(rule.algorithm != "default" for rule in self.rules)

    def grid(self, study: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
        """Return, by collective, the numbers of ranks of the study's grid and the nodes that they use, in ascending order."""
        counts = {name: study["collectives"][name]["processes"] for name in self.tables}
        return {
            name: [shape for shape in sorted(self.used[name].items()) if shape[0] in counts[name]] for name in counts
        }


def parse_parameters(text: str) -> Parameters:
    """Convert `key=value;...` (parameter_text()) to pairs in alphabetical order."""
    pairs = [pair.split("=") for pair in text.split(";") if pair]
    return tuple(sorted((key, int(value) if value.isdecimal() else value) for key, value in pairs))


def read_decisions(path: Path) -> list[Decision]:
    """Read decisions.csv. Raises StudyError if it does not exist or an earlier version wrote it."""
    if not path.exists():
        raise StudyError(f"{path}: no decisions yet; ./study run decides for studies with analysis.tuning")
    rows = read_csv(path)
    if any("allocated" not in row for row in rows):
        # There, `nodes` had another meaning.
        again = f"./study run {path.parent.parent.name} decides again"
        raise StudyError(f"{path}: of an earlier version (no column allocated); {again}")
    return [
        Decision(
            row["collective"], row["mapping"], int(row["nodes"]), int(float(row["processes"])), whole(row["size_bytes"]),
            row["algorithm"], parse_parameters(row["parameters"]), float(row["gain_pct"]) if row["gain_pct"] else None,
            whole(row.get("from_bytes")),
        )
        for row in rows
    ]  # fmt: skip


def placements(
    decisions: Iterable[Decision], withdrawn: set[tuple] = frozenset(), of_program: bool = False
) -> list[Placement]:
    """Convert decisions to rules; neighbouring sizes, and then neighbouring process counts, with the same rules are merged.

    Libraries' rules have no number of nodes. If the number of ranks of a mapping determines it, one file serves all numbers of
    nodes; otherwise decisions for the same ranks would compete for one rule, and each number of nodes has a file of its own.
    *withdrawn* has (collective, mapping, nodes, processes, size) for which the default is restored. Rules apply from one measured size
    or process count to the next; those *of_program*, whose sizes may be far apart, only to the class of each size (from one power of
    two to the next) and to the measured process counts.
    """
    decisions = list(decisions)
    places = {(row.mapping, row.processes, row.nodes) for row in decisions}
    apart = {mapping for (mapping, _), count in Counter(place[:2] for place in places).items() if count > 1}
    most = {mapping: nodes for mapping, _, nodes in sorted(places, key=lambda place: place[2])}
    grouped: dict[tuple[str, int], dict[str, dict[int, list[Decision]]]] = {}
    for row in decisions:
        tables = grouped.setdefault((row.mapping, row.nodes if row.mapping in apart else most[row.mapping]), {})
        tables.setdefault(row.collective, {}).setdefault(row.processes, []).append(row)
    found = []
    for (mapping, nodes), tables in sorted(grouped.items()):
        merged = {}
        for collective, by_count in sorted(tables.items()):
            elsewhere = (Rule(0, "default", beyond=True),)
            after = by_count if of_program else [max(by_count)]
            table: Table = {0: elsewhere} | {count + 1: elsewhere for count in after}
            table |= {count: _merge_sizes(rows, withdrawn, of_program) for count, rows in by_count.items()}
            merged[collective] = merge_counts(table, collective)
        used = {name: {count: rows[0].nodes for count, rows in own.items()} for name, own in tables.items()}
        found.append(Placement(mapping, nodes, merged, used))
    return found


def size_ranges(rows: list[Decision], of_program: bool) -> list[tuple[int, int | None, Decision]]:
    """Return the sizes to which each decision of one process count applies, in ascending order: first size, end (excluded; None: no
    limit), decision.

    The decisions of a grid apply from their size to the next one, the first one from half of its size on (from 0 if that size is at
    most SMALLEST) and the last one to twice its size. Those *of_program* apply to the class of their size, from one power of two to
    the next; where two of the same or of neighbouring classes meet, the second one begins at its `from_size`.
    """
    classes = of_program and rows[0].collective not in WITHOUT_SIZE
    found: list[tuple[int, int | None, Decision]] = []
    for row in sorted(rows, key=lambda row: row.size or 0):
        if row.size is None:
            return [(0, None, row)]
        # Empty messages are a class of their own.
        size, start, end = row.size, row.size, 2 * row.size or 1
        if classes and size:
            start, end = 1 << (size.bit_length() - 1), 1 << size.bit_length()
        elif not found:
            start = (size + 1) // 2 if size > SMALLEST else 0
        if found:
            first, before, previous = found[-1]
            if not classes or before >= start:
                if classes:
                    start = row.from_size or (size if before > start else start)
                found[-1] = (first, start, previous)
        found.append((start, end, row))
    return found


def decision_at(rows: list[Decision], size: int | None, of_program: bool) -> Decision | None:
    """Return the decision of one process count that applies to a size (None: a collective without sizes); None if there is none."""
    for start, end, row in size_ranges(rows, of_program) if rows else []:
        if end is None or (size is not None and start <= size < end):
            return row
    return None


def _merge_sizes(rows: list[Decision], withdrawn: set[tuple], of_program: bool) -> tuple[Rule, ...]:
    """Return the rules of one process count in ascending order, from size 0 on, with the default where no decision applies."""
    rules: list[Rule] = []
    gains: list[list[float]] = []

    def add(rule: Rule) -> None:
        if rules and rules[-1].choice == rule.choice:
            rules[-1] = replace(rules[-1], beyond=rules[-1].beyond and rule.beyond)
        else:
            rules.append(rule)
            gains.append([])

    end: int | None = 0
    for start, until, row in size_ranges(rows, of_program):
        key = (row.collective, row.mapping, row.nodes, row.processes, row.size)
        choice = ("default", ()) if key in withdrawn else row.choice
        if end is not None and start > end:
            add(Rule(end, "default", beyond=True))
        add(Rule(start, *choice))
        gains[-1] += [row.gain_pct] if row.gain_pct is not None and choice[0] != "default" else []
        end = until
    if end:
        add(Rule(end, "default", beyond=True))
    means = [sum(values) / len(values) if values else None for values in gains]
    return tuple(replace(rule, gain_pct=mean) for rule, mean in zip(rules, means, strict=True))


def merge_counts(table: Table, collective: str) -> Table:
    """Return the table without process counts whose rules mean the same as those of the previous count."""

    def meaning(count: int) -> Any:
        return [(first_byte(collective, rule, count), rule.choice) for rule in table[count]]

    kept: Table = {}
    last = None
    for count in sorted(table):
        if (here := meaning(count)) != last:
            kept[count] = table[count]
        last = here
    return kept


def selected_rules(table: Table, processes: int) -> tuple[Rule, ...]:
    """Return the rules for all sizes that a library uses: those of the last entry that does not exceed the process count."""
    return table[max(count for count in table if count <= processes)]


def selected(table: Table, processes: int, size: int) -> Rule:
    """Return the rule that a library applies: the last entry that does not exceed the process count, then the size."""
    return [rule for rule in selected_rules(table, processes) if rule.size <= size][-1]


def own_version(placement: Placement, version: str) -> int:
    """Return the version of the rules file for an installed Open MPI: 2 only if a rule limits requests, which version 1 cannot express."""
    return 2 if _parameter_values(placement, "max_requests") and reads_version_2(version) else 1


def _parameter_values(placement: Placement, name: str) -> list[int]:
    """Return the values of a parameter in a placement's rules."""
    return [value for rule in placement.rules for key, value in rule.parameters if key == name]


def radix_of(placement: Placement) -> int | None:
    """Return the radix of the k-nomial broadcasts, of which Open MPI has one for all rules: the most frequent one; None without any."""
    found = Counter(_parameter_values(placement, "radix"))
    return found.most_common(1)[0][0] if found else None


def as_release_reads(placement: Placement, catalogue: Catalogue, release: str) -> Placement:
    """Return the placement with only the rules that the file for a release of Open MPI can express."""
    return as_openmpi_reads(placement, catalogue, own_version(placement, release))


def as_openmpi_reads(placement: Placement, catalogue: Catalogue, version: int = 2) -> Placement:
    """Return the placement with only the rules that a version of Open MPI's file can express.

    If Open MPI ignores the size, one rule applies to all sizes: the rule that all measured sizes share, otherwise the default. The
    default also replaces rules with another radix than the file's, rules for algorithms that only the collectives library has and, in
    version 1, rules that limit requests.
    """
    radix = radix_of(placement)

    def sayable(collective: str, rule: Rule) -> Rule:
        parameters = dict(rule.parameters)
        lost = parameters.get("radix", radix) != radix or (version == 1 and "max_requests" in parameters)
        entry = catalogue.algorithms[collective].get(rule.algorithm, {})
        lost = lost or (rule.algorithm != "default" and "openmpi" not in entry and own_settings(entry) is not None)
        return replace(rule, algorithm="default", parameters=(), gain_pct=None) if lost else rule

    tables: dict[str, Table] = {}
    for collective, table in placement.tables.items():
        said = {
            count: without_repetition(sayable(collective, rule) for rule in rules) for count, rules in table.items()
        }
        if collective in ONE_RULE:
            said = {count: one_for_all_sizes(rules) for count, rules in said.items()}
        tables[collective] = said
    return replace(placement, tables=tables)


def one_for_all_sizes(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rule that all measured sizes share, for all sizes; the default if they differ."""
    measured = [rule for rule in rules if not rule.beyond]
    if len(measured) == 1:
        return (replace(measured[0], size=0),)
    return (Rule(0, "default", beyond=not measured),)


def without_repetition(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules without those that repeat the previous one."""
    kept: list[Rule] = []
    for rule in rules:
        if not kept or kept[-1].choice != rule.choice:
            kept.append(rule)
    return tuple(kept)


def in_unit(collective: str, size: int, processes: int) -> int:
    """Convert bytes of one rank to the unit of Open MPI's rules."""
    return size * processes if collective in TOTAL_BYTES else size


def first_byte(collective: str, rule: Rule, processes: int) -> int:
    """Return the size from which a rule applies, in the unit of Open MPI's rules."""
    counted = rule.total if collective in TOTAL_BYTES else None
    return in_unit(collective, rule.size, processes) if counted is None else counted


#: One entry of a table: first and last number of processes (None: no limit), its rule, and the next rule, if any.
Entry = tuple[int, int | None, Rule, Rule | None]


def entries(table: Table) -> Iterator[Entry]:
    """Yield all rules of a table in ascending order, with the processes and sizes to which they apply."""
    counts = sorted(table)
    for count, following in zip(counts, [*counts[1:], None], strict=True):
        for rule, after in zip(table[count], [*table[count][1:], None], strict=True):
            yield count, following and following - 1, rule, after


def han_default(study: dict[str, Any], placement: Placement) -> str | None:
    """Return the component of Open MPI 5 to which a rule "default" refers at a placement; None if coll/han is not involved.

    From Open MPI 5.0 on, coll/han takes precedence over coll/tuned on several nodes. Only a study of such an Open MPI has measured
    coll/han as the default; the default of other studies (4.1, the simulator's copy of it) is coll/tuned's.
    """
    how = study["provenance"]
    if placement.nodes < 2 or not set(placement.tables) & set(HAN):
        return None
    measured = how["mpi"] == "openmpi" and int(how["mpi_version"].split(".")[0]) >= 5
    return "han" if measured else "tuned"
