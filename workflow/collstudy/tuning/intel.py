"""Decisions for Intel MPI, whose variable I_MPI_ADJUST_<OP> applies to all calls of a collective.

This differs from Intel's reference and was observed with 2021.18.1 (workflow/native/trace/symbols.c): a call takes the first range
of sizes whose end it does not exceed, or the last one; starts are ignored, and no range leaves a call to the library's default. The
same holds of ranges of processes, but then the sizes are ignored, and of several rules with the same range the last one applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import median

from collstudy.store.measurements import Measurement
from collstudy.tuning.rules import Decision, Placement, Rule, Table, merge_counts, parse_parameters, without_repetition


def settled(
    decisions: list[Decision], rows: Iterable[Measurement], weight: Callable[[str, int, int | None], float]
) -> list[Decision]:
    """Return the decisions that a file can express. Where the default was decided, but not for the whole collective, the fastest other
    algorithm takes its place, if the collective as a whole is then expected to be faster than with the default; otherwise the
    default is kept for all of it. *weight* of (collective, processes, size): the share of the time with the default.
    """
    times: dict[tuple, dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        where = (row.collective, row.mapping, row.nodes, row.processes, row.size)
        times.setdefault(where, {}).setdefault((row.algorithm, row.parameters), []).append(row.value)
    by_variable: dict[tuple[str, str], list[Decision]] = {}
    for one in decisions:
        by_variable.setdefault((one.collective, one.mapping), []).append(one)
    found = []
    for own in by_variable.values():
        explicit, change = [], 0.0
        for one in own:
            here = times.get((one.collective, one.mapping, one.nodes, one.processes, one.size), {})
            medians = {name: median(values) for name, values in here.items()}
            default = medians.pop(("default", ""), None)
            if one.algorithm == "default" and default and medians:
                algorithm, parameters = min(medians, key=lambda name: medians[name])
                # The default was decided: a lower median of another algorithm is within noise.
                gain = min(0.0, 100 * (default / medians[algorithm, parameters] - 1))
                one = replace(one, algorithm=algorithm, parameters=parse_parameters(parameters), gain_pct=gain)
            explicit.append(one)
            change += weight(one.collective, one.processes, one.size) * (1 / (1 + (one.gain_pct or 0) / 100) - 1)
        decided = any(one.algorithm != "default" for one in own)
        better = decided and change < 0 and all(one.algorithm != "default" for one in explicit)
        found += (
            explicit if better else [replace(one, algorithm="default", parameters=(), gain_pct=None) for one in own]
        )
    return found


def as_intel_reads(placement: Placement, has: Callable[[str, Rule], bool] = lambda collective, rule: True) -> Placement:
    """Return the placement with the rules that variables express: measured ones, which also apply beyond the measured sizes and
    processes. A collective is left to the library if one of its rules is the default, if Intel MPI lacks an algorithm (*has*), or if
    its rules depend on both processes and sizes.
    """
    tables: dict[str, Table] = {}
    for collective, table in placement.tables.items():
        measured = {count: [rule for rule in rules if not rule.beyond] for count, rules in table.items()}
        own = {
            count: without_repetition([replace(rules[0], size=0), *rules[1:]])
            for count, rules in measured.items()
            if rules
        }
        own = merge_counts(own, "")
        rules = [rule for several in own.values() for rule in several]
        said = len(own) == 1 or len(own) == len(rules)
        said = said and bool(own) and all(rule.algorithm != "default" and has(collective, rule) for rule in rules)
        tables[collective] = own if said else {0: (Rule(0, "default"),)}
    return replace(placement, tables=tables)
