"""Check that the installed MPI library follows a rules file, at the boundary of every rule.

For Open MPI one process (asking.py) asks for all boundaries and process counts; the selected algorithm is compared with the one
that is selected if the algorithm in the file is forced, or without a file. Processes are then started only for entries that
together have every algorithm of the file; for MPICH and Intel MPI, and where nothing can be asked, they are started for all entries.

The pairs of ranks that exchange messages in a call are compared with those of the algorithm in the file. If its pattern is
unknown, they are compared with a launch that forces the algorithm; if the file leaves the choice to the library, with a
launch without a rules file. With Intel MPI, the functions that run take the place of the pairs.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from collstudy.launch.rulesfile import rules_arguments
from collstudy.launch.toolchain import Mpi
from collstudy.study.catalogue import Catalogue
from collstudy.study.patterns import PATTERNS, messages_an_edge
from collstudy.tuning.asking import Question
from collstudy.tuning.findings import Finding
from collstudy.tuning.library import ONLY_TUNED, Library, Messages, forcing, on_two_nodes
from collstudy.tuning.rules import HAN, Placement, Rule, Table, selected, selected_rules
from collstudy.tuning.writers import components_of, han_rules, openmpi_rules, settings_of

#: Maximum number of ranks to start, on few cores: enough to distinguish chain, trees and linear.
MOST_RANKS = 8

Pairs = frozenset[tuple[int, int]]
#: The pairs of ranks in a launch that forces a rule, by (collective, processes, bytes, rule).
References = dict[tuple[str, int, int, str], Pairs]


def boundaries(rules: tuple[Rule, ...]) -> list[int]:
    """Return the sizes (bytes) at which a misread rule shows: one below, at, and one above each rule's first size; never 0."""
    sizes = {size for rule in rules for size in (rule.size - 1, rule.size, rule.size + 1) if size > 0}
    return sorted(sizes)


def expected_pairs(
    catalogue: Catalogue, collective: str, rule: Rule, processes: int, size: int, mpi: str
) -> Pairs | None:
    """Return the pairs of ranks of a rule's algorithm at a size in bytes; None for the library's own decision and for unknown
    patterns.
    """
    pattern = catalogue.pattern(collective, rule.algorithm, mpi)
    if rule.algorithm == "default" or pattern is None:
        return None
    return PATTERNS[pattern](processes, {**settings_of(catalogue, collective, rule, mpi), "size_bytes": size})


def expected_number(catalogue: Catalogue, collective: str, rule: Rule, size: int, mpi: str) -> int | None:
    """Return the number of messages (segments) between each pair of ranks for a rule; None if unknown."""
    pattern = catalogue.pattern(collective, rule.algorithm, mpi)
    return messages_an_edge(pattern, settings_of(catalogue, collective, rule, mpi), size) if pattern else None


def _agree(seen: Messages, expected: Pairs, number: int | None) -> bool:
    return frozenset(seen) == expected and (number is None or set(seen.values()) <= {number})


def check_placement(
    placement: Placement, path: Path, catalogue: Catalogue, library: Library, before: Placement | None = None
) -> list[Finding]:
    """Check every entry of a placement's rules file, except those identical in *before*, which was already checked.

    The library is asked about all entries. Processes are started for entries about which it does not answer, and for as few
    others as together have every algorithm of the file.
    """
    entries = [
        (collective, entry)
        for collective, table in placement.tables.items()
        for entry, rules in table.items()
        if not before or before.tables[collective].get(entry) != rules
    ]
    asked = _ask_placement(placement, path, entries, library)
    started = {one for one in entries if one not in asked} | _entries_with_all_algorithms(placement, list(asked))
    answers = [finding for findings in asked.values() for finding in findings]
    return answers + _start_placement(placement, path, catalogue, library, started)


def _ask_placement(
    placement: Placement, path: Path, entries: list[tuple[str, int]], library: Library
) -> dict[tuple[str, int], list[Finding]]:
    """Return the findings of the entries about which the library answers, each for its own process count."""
    found: dict[tuple[str, int], list[Finding]] = {}
    for collective, table in placement.tables.items():
        calls: dict[int, list[Question]] = {}
        for entry in (entry for name, entry in entries if name == collective):
            sizes = [1] if collective == "barrier" else boundaries(table[entry]) or [1]
            calls[entry] = [(max(entry, 2), size) for size in sizes]
        if not calls or not library.ask:
            continue
        seen = library.ask(path, collective, {call for some in calls.values() for call in some})
        if not seen:
            continue
        forced: dict[str, Rule] = {}
        wanted: dict[str, set[Question]] = {}
        for some in calls.values():
            for rule in selected_rules(table, some[0][0]):
                forced[rule.text] = rule
                wanted.setdefault(rule.text, set()).update(some)
        expected = {
            text: library.ask(None if rule.algorithm == "default" else rule, collective, wanted[text])
            for text, rule in forced.items()
        }
        for entry, some in calls.items():
            texts = {rule.text for rule in selected_rules(table, some[0][0])}
            if not all(call in seen and call in expected[text] for call in some for text in texts):
                continue
            found[collective, entry] = []
            for processes, size in some:
                call, rule = (processes, size), selected(table, processes, size)
                mine = expected[rule.text][call]
                others = [expected[text][call] for text in texts - {rule.text}]
                found[collective, entry].append(
                    Finding(
                        library.label, path.name, collective, entry, processes, size, rule.text,
                        seen[call] == mine, bool(others) and mine not in others, asked=True,
                    )
                )  # fmt: skip
    return found


def _entries_with_all_algorithms(placement: Placement, entries: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return few entries, with as many processes as can be started, that together have every algorithm of *entries*."""
    chosen: set[tuple[str, int]] = set()

    def used(one: tuple[str, int]) -> set[tuple]:
        collective, entry = one
        rules = placement.tables[collective][entry]
        return {(collective, rule.choice) for rule in rules if rule.algorithm != "default"}

    lacking = {one: used(one) for one in entries}
    while any(lacking.values()):
        best = max(lacking, key=lambda one: (len(lacking[one]), min(one[1], MOST_RANKS)))
        chosen.add(best)
        covered = lacking[best]
        lacking = {one: rules - covered for one, rules in lacking.items()}
    return chosen


def _start_entry(
    file: Path, shown: str, table: Table, collective: str, entry: int, sizes: list[int], catalogue: Catalogue,
    library: Library, references: References,
) -> list[Finding]:  # fmt: skip
    """Check one entry at these sizes; in *file*, the entry is for at most MOST_RANKS processes."""
    findings = []
    processes = min(MOST_RANKS, max(entry, 2))
    chosen = {size: selected(table, processes, size) for size in sizes}
    _add_references(references, chosen, collective, processes, catalogue, library)
    all_seen = library.probe(file, collective, processes, sizes)
    limit_at: dict[int, int | None] = {}
    if library.requests and any("max_requests" in dict(rule.parameters) for rule in chosen.values()):
        limit_at = dict(zip(sizes, library.requests(file, collective, processes, sizes), strict=False))
    for size, rule in chosen.items():
        expected = expected_pairs(catalogue, collective, rule, processes, size, library.mpi)
        if expected is None:
            expected = references[collective, processes, size, rule.text]
        seen = all_seen[size]
        number = expected_number(catalogue, collective, rule, size, library.mpi)
        others = [
            (
                expected_pairs(catalogue, collective, other, processes, size, library.mpi),
                expected_number(catalogue, collective, other, size, library.mpi),
            )
            for other in selected_rules(table, processes)
            if other.choice != rule.choice
        ]
        agrees, apart = _agree(seen, expected, number), bool(others) and (expected, number) not in others
        wanted = dict(rule.parameters).get("max_requests")
        if wanted is not None and size in limit_at:
            agrees, apart = agrees and limit_at[size] == wanted, True
        findings.append(Finding(library.label, shown, collective, entry, processes, size, rule.text, agrees, apart))
    return findings


def _start_placement(
    placement: Placement, path: Path, catalogue: Catalogue, library: Library, entries: set[tuple[str, int]]
) -> list[Finding]:
    """Check the *entries* by the messages of started processes.

    An entry for more than MOST_RANKS processes is checked in a copy of the file in which it applies to MOST_RANKS processes:
    this checks sizes, algorithm and parameters, but not the process count.
    """
    findings = []
    references: References = {}
    done: set[tuple] = set()
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        for collective, table in placement.tables.items():
            for entry, rules in table.items():
                moved = entry > MOST_RANKS
                processes = MOST_RANKS if moved else max(entry, 2)
                if (collective, entry) not in entries:
                    continue
                if (collective, processes, rules) in done or (moved and all(r.algorithm == "default" for r in rules)):
                    continue
                done.add((collective, processes, rules))
                file, seen_table = path, table
                if moved:
                    seen_table = {MOST_RANKS: tuple(replace(rule, total=None) for rule in rules)}
                    # Sizes in the file are for `entry` processes; the copy keeps the bytes per rank for fewer ranks.
                    copy = replace(placement, tables={collective: seen_table})
                    file = Path(folder) / f"{collective}-{entry}{path.suffix}"
                    library.write(copy, file)
                sizes = [1] if collective == "barrier" else boundaries(rules) or [1]
                findings += _start_entry(
                    file, path.name, seen_table, collective, entry, sizes, catalogue, library, references,
                )  # fmt: skip
    return findings


def _add_references(
    references: References, chosen: dict[int, Rule], collective: str, processes: int,
    catalogue: Catalogue, library: Library,
) -> None:  # fmt: skip
    """Launch the library to see its messages where the rule does not determine them: one launch for all sizes of a rule."""
    lacking: dict[str, tuple[Rule, list[int]]] = {}
    for size, rule in chosen.items():
        unknown = expected_pairs(catalogue, collective, rule, processes, size, library.mpi) is None
        if unknown and (collective, processes, size, rule.text) not in references:
            lacking.setdefault(rule.text, (rule, []))[1].append(size)
    for text, (rule, sizes) in lacking.items():
        forced = None if rule.algorithm == "default" else rule
        for size, seen in library.probe(forced, collective, processes, sizes).items():
            references[collective, processes, size, text] = frozenset(seen)


def check_han(
    placement: Placement, path: Path, han: Path, default: str, catalogue: Catalogue, mpi: Mpi,
    numbers: dict[str, dict[str, int]],
) -> list[Finding]:  # fmt: skip
    """Check that on several nodes coll/han and coll/tuned together follow their two files.

    Only sizes at which the component changes are checked; `check_placement` checks coll/tuned. Two emulated
    nodes with at most MOST_RANKS ranks represent those of the placement.
    """
    findings, done = [], set()
    for collective, table in placement.tables.items():
        for entry, rules in table.items():
            processes = min(max(entry, 2), MOST_RANKS)
            components = components_of(rules, default)
            if collective not in HAN or (collective, processes, components) in done:
                continue
            done.add((collective, processes, components))
            with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
                files, seen_table = (path, han), table
                if entry > MOST_RANKS:
                    seen_table = {0: rules}
                    copy = replace(placement, tables={collective: seen_table})
                    files = (Path(folder) / path.name, Path(folder) / han.name)
                    files[0].write_text(openmpi_rules(copy, catalogue, [], numbers), encoding="utf-8")
                    files[1].write_text(han_rules(copy, catalogue, default, []), encoding="utf-8")
                for size in [1] if collective == "barrier" else boundaries(components) or [1]:
                    call = (collective, processes, size)
                    rule, alone = selected(seen_table, processes, size), frozenset(on_two_nodes(mpi, [], *call))
                    expected: Pairs | None = alone
                    if rule.algorithm != "default":
                        expected = expected_pairs(catalogue, collective, rule, processes, size, "openmpi")
                        expected = expected or frozenset(
                            on_two_nodes(mpi, forcing(mpi, catalogue, collective, rule), *call)
                        )
                    elif default == "tuned":
                        expected = frozenset(on_two_nodes(mpi, ONLY_TUNED, *call))
                    seen = frozenset(on_two_nodes(mpi, rules_arguments(files[0], han=files[1]), *call))
                    if (rule.algorithm, default) == ("default", "han") and seen != alone:
                        # Within its own, smaller communicators coll/han runs coll/tuned, which follows its rules for their sizes.
                        # The first option is left out, because it excludes coll/han.
                        expected = frozenset(on_two_nodes(mpi, rules_arguments(files[0])[3:], *call))
                    findings.append(
                        Finding(
                            f"Open MPI {mpi.version}, two emulated nodes", han.name, collective, entry, processes, size,
                            rule.text, seen == expected, rule.algorithm == "default" or expected != alone,
                        )
                    )  # fmt: skip
    return findings
