"""Check that the installed Open MPI or MPICH follows a rules file, at every rule's boundary.

One process asks Open MPI (asking.py) at all boundaries and numbers of processes: what it selects is compared with what it
selects where the algorithm of the file is forced, or without a file. Processes are then started only for entries that together
have every algorithm of the file; for MPICH, and where nothing can be asked, for all entries.

Release builds do not report the selected algorithm, so each size is broadcast (reduced, ...) once while the messages are
counted (Open MPI's monitoring component, libmessages.so for MPICH), and the pairs of ranks that exchanged messages are compared
with those of the algorithm in the file; if its pattern is unknown, with those of a launch that forces the
algorithm; and if the file leaves the choice to the library, with those of a launch without a rules file.
"""

from __future__ import annotations

import csv
import functools
import io
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch import hydra, mpich, openmpi
from collstudy.launch.openmpi import AS_NODE
from collstudy.launch.proof import messages
from collstudy.launch.rulesfile import rules_arguments
from collstudy.launch.toolchain import Mpi, preloadable
from collstudy.launch.tracefile import rank_files
from collstudy.study.catalogue import Catalogue
from collstudy.study.patterns import PATTERNS, messages_an_edge
from collstudy.tuning import trees
from collstudy.tuning.asking import Question, ask, can_ask
from collstudy.tuning.rules import (
    HAN,
    Placement,
    Rule,
    Table,
    own_version,
    selected,
    selected_rules,
)
from collstudy.tuning.writers import components_of, han_rules, openmpi_rules, settings_of

#: The default of Open MPI's coll/tuned, to which the rules of a file belong.
ONLY_TUNED = ["--mca", "coll", "tuned,basic,libnbc,self,monitoring"]
#: Maximum number of started ranks, on few cores: enough to distinguish chain, trees and linear.
MOST_RANKS = 8
LAUNCH_LIMIT_S = 60
#: Follows the library's label in findings that were asked for, not seen in messages.
ASKED = ", asked"

Pairs = frozenset[tuple[int, int]]
#: The pairs of a launch that forces a rule: (collective, processes, bytes, rule).
References = dict[tuple[str, int, int, str], Pairs]
#: Number of messages per pair of ranks (sender, receiver).
Messages = dict[tuple[int, int], int]
#: Starts the probe: (selection, collective, processes, bytes) -> messages. The selection is a rules file, a rule
#: to be forced, or None for the library's own choice.
Probe = Callable[[Path | Rule | None, str, int, int], Messages]
#: Asks the library for the algorithm that it selects: (selection, collective, (processes, bytes)...) -> algorithm with its
#: parameters, for calls with an answer.
Ask = Callable[[Path | Rule | None, str, Iterable[Question]], dict[Question, str]]
#: A probe for several sizes in one launch.
ProbeOfSizes = Callable[[Path | Rule | None, str, int, Sequence[int]], dict[int, Messages]]


@dataclass(frozen=True)
class Library:
    """An installed library to be checked: label, name in the catalogue, probe, and format of its files.

    A second probe measures several sizes in one launch: starting the processes takes nearly all the time. *requests* is the
    number of requests that a file gives a collective at each size, which no message shows; None if it cannot be seen.
    """

    label: str
    mpi: str
    probe: Probe
    write: Callable[[Placement, Path], None]
    probe_sizes: ProbeOfSizes | None = None
    requests: Callable[[Path, str, int, Sequence[int]], list[int | None]] | None = None
    ask: Ask | None = None

    def seen(
        self, choice: Path | Rule | None, collective: str, processes: int, sizes: Sequence[int]
    ) -> dict[int, Messages]:
        """The messages of a call of each size."""
        if self.probe_sizes and sizes:
            return self.probe_sizes(choice, collective, processes, sizes)
        return {size: self.probe(choice, collective, processes, size) for size in sizes}


@dataclass(frozen=True)
class Finding:
    """One size at one number of processes: the rule of the file, and whether the library's messages match it."""

    mpi: str
    file: str
    collective: str
    entry: int
    processes: int
    size_bytes: int
    rule: str
    agrees: bool
    tells_apart: bool


def boundaries(rules: tuple[Rule, ...]) -> list[int]:
    """Sizes at which a misread rule shows: one below, at, and one above each rule's first size; never 0."""
    sizes = {size for rule in rules for size in (rule.size - 1, rule.size, rule.size + 1) if size > 0}
    return sorted(sizes)


def library(mpi: Mpi, catalogue: Catalogue, numbers: dict[str, dict[str, int]]) -> Library:
    """The check of the installed Open MPI or MPICH; *numbers* are those of Open MPI's algorithms."""
    if mpi.name == "mpich":
        own = trees.own_trees(mpi.shared_library)

        def write(placement: Placement, path: Path) -> None:
            trees.write(placement, catalogue, own, path)

        return Library(f"MPICH {mpi.version}", "mpich", _mpich_probe(mpi, catalogue), write)

    def write_classic(placement: Placement, path: Path) -> None:
        version = own_version(placement, mpi.version)
        path.write_text(openmpi_rules(placement, catalogue, [], numbers, version), encoding="utf-8")

    probe_sizes = _openmpi_probe(mpi, catalogue)

    def probe(choice: Path | Rule | None, collective: str, processes: int, size: int) -> Messages:
        return probe_sizes(choice, collective, processes, [size])[size]

    traces = (mpi.build / "trace" / "libcolltrace.so").exists()
    requests = functools.partial(_requests, mpi) if traces else None
    asks = functools.partial(_openmpi_ask, mpi, catalogue)
    return Library(f"Open MPI {mpi.version}", "openmpi", probe, write_classic, probe_sizes, requests, asks)


def _requests(mpi: Mpi, path: Path, collective: str, processes: int, sizes: Sequence[int]) -> list[int | None]:
    """The limit of outstanding requests that Open MPI gave its algorithm in a call of each size, under the trace library."""
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as name:
        folder = Path(name)
        own = preloadable(mpi.build / "trace" / "libcolltrace.so", folder)
        command = [
            mpi.mpirun, "-n", processes, "--map-by", "core:OVERSUBSCRIBE", *rules_arguments(path), "--bind-to", "none",
            "--mca", "mpi_yield_when_idle", "1", "env", f"LD_PRELOAD={own}", f"COLLTRACE_FOLDER={folder}", "COLLTRACE_RAN=1",
            mpi.build / "probe" / "collprobe", collective, *sizes,
        ]  # fmt: skip
        _launch(command, mpi.environment(), folder)
        calls = [call for call in rank_files(folder, processes)[0].calls() if call.operation == collective]
    found = [re.search(r"\[requests (\d+)\]", call.ran) for call in calls]
    return [int(one.group(1)) if one else None for one in found]


def _arguments(mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str) -> list[str]:
    """The arguments of mpirun for a selection of a probe."""
    if isinstance(choice, Path):
        return rules_arguments(choice, monitored=True)
    return _forcing(mpi, catalogue, collective, choice) if choice else ONLY_TUNED


def _openmpi_ask(
    mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str, questions: Iterable[Question]
) -> dict[Question, str]:
    if not can_ask(mpi, collective):
        return {}
    return ask(mpi, _arguments(mpi, catalogue, choice, collective), collective, questions)


def _openmpi_probe(mpi: Mpi, catalogue: Catalogue) -> ProbeOfSizes:
    def probe(choice: Path | Rule | None, collective: str, processes: int, sizes: Sequence[int]) -> dict[int, Messages]:
        arguments = _arguments(mpi, catalogue, choice, collective)
        return _monitored(mpi, ["--map-by", "core:OVERSUBSCRIBE", *arguments], collective, processes, sizes)

    return probe


def _forcing(mpi: Mpi, catalogue: Catalogue, collective: str, rule: Rule) -> list[str]:
    chosen = settings_of(catalogue, collective, rule, "openmpi")
    return openmpi.forcing_arguments(collective, chosen, mpi, rule.text, monitored=True)


def _monitored(
    mpi: Mpi, arguments: list[Any], collective: str, processes: int, sizes: Sequence[int]
) -> dict[int, Messages]:
    """The messages of one call of each size under Open MPI's monitoring component, in one launch."""
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        command = [
            mpi.mpirun, "-n", processes, *arguments, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
            "--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3",
            "--mca", "pml_monitoring_filename", f"{folder}/messages",
            mpi.build / "probe" / "collprobe", "-p", f"{folder}/messages", collective, *sizes,
        ]  # fmt: skip
        _launch(command, mpi.environment(), Path(folder))
        return {size: messages(Path(folder), f"messages-{size}") for size in sizes}


def _mpich_probe(mpi: Mpi, catalogue: Catalogue) -> Probe:
    def probe(choice: Path | Rule | None, collective: str, processes: int, size: int) -> Messages:
        with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
            environment = mpi.environment()
            if isinstance(choice, Path):
                environment |= mpich.environment(choice)
            elif choice:
                environment |= mpich.forcing_environment(
                    collective, settings_of(catalogue, collective, choice, "mpich")
                )
            command = [
                mpi.mpirun, "-n", processes, *hydra.watching(mpi.build / "probe", Path(folder)),
                mpi.build / "probe" / "collprobe", collective, size,
            ]  # fmt: skip
            _launch(command, environment, Path(folder))
            return messages(Path(folder))

    return probe


def _launch(command: list[Any], environment: dict[str, str], folder: Path) -> None:
    words = [str(word) for word in command]
    for _ in range(2):  # a hanging launch (seen once in 600 on a busy computer) is no evidence against the file
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=LAUNCH_LIMIT_S, env=environment, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired:
            continue
        if done.returncode != 0:
            raise StudyError(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-1000:]}")
        return
    raise StudyError(f"{' '.join(words)}: not finished after {LAUNCH_LIMIT_S} s, twice")


def expected_pairs(catalogue: Catalogue, collective: str, rule: Rule, processes: int, mpi: str) -> Pairs | None:
    """The messages of a rule's algorithm; None for the library's own decision and for unknown patterns."""
    pattern = catalogue.pattern(collective, rule.algorithm, mpi)
    if rule.algorithm == "default" or pattern is None:
        return None
    return PATTERNS[pattern](processes, settings_of(catalogue, collective, rule, mpi))


def expected_number(catalogue: Catalogue, collective: str, rule: Rule, size: int, mpi: str) -> int | None:
    """Number of segments per message of a rule between each of its pairs; None if unknown."""
    pattern = catalogue.pattern(collective, rule.algorithm, mpi)
    return messages_an_edge(pattern, settings_of(catalogue, collective, rule, mpi), size) if pattern else None


def _agree(seen: Messages, expected: Pairs, number: int | None) -> bool:
    return frozenset(seen) == expected and (number is None or set(seen.values()) <= {number})


def check_placement(
    placement: Placement, path: Path, catalogue: Catalogue, library: Library, before: Placement | None = None
) -> list[Finding]:
    """Check every entry of a placement's rules file, but those identical in *before*, which was checked already.

    The library is asked for all; processes are started for those that it does not answer for, and for as few others as have
    every algorithm of the file together.
    """
    entries = [
        (collective, entry)
        for collective, table in placement.tables.items()
        for entry, rules in table.items()
        if not before or before.tables[collective].get(entry) != rules
    ]
    asked = _ask_placement(placement, path, entries, library)
    started = {one for one in entries if one not in asked} | _covering(placement, list(asked))
    answers = [finding for findings in asked.values() for finding in findings]
    return answers + _start_placement(placement, path, catalogue, library, started)


def _ask_placement(
    placement: Placement, path: Path, entries: list[tuple[str, int]], library: Library
) -> dict[tuple[str, int], list[Finding]]:
    """The findings of the entries for which the library answers, each at its own number of processes."""
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
                        library.label + ASKED, path.name, collective, entry, processes, size, rule.text,
                        seen[call] == mine, bool(others) and mine not in others,
                    )
                )  # fmt: skip
    return found


def _covering(placement: Placement, entries: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Few entries, for as many processes as are started, in which every algorithm of all *entries* is."""
    chosen: set[tuple[str, int]] = set()

    def used(one: tuple[str, int]) -> set[tuple]:
        collective, entry = one
        rules = placement.tables[collective][entry]
        return {(collective, rule.algorithm, rule.parameters) for rule in rules if rule.algorithm != "default"}

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
    """Check one entry, which is in *file* for at most MOST_RANKS processes, at these sizes."""
    findings = []
    processes = min(MOST_RANKS, max(entry, 2))
    chosen = {size: selected(table, processes, size) for size in sizes}
    _add_references(references, chosen, collective, processes, catalogue, library)
    all_seen = library.seen(file, collective, processes, sizes)
    limited = library.requests and any("max_requests" in dict(rule.parameters) for rule in chosen.values())
    limits = library.requests(file, collective, processes, sizes) if limited and library.requests else []
    limit_at = dict(zip(sizes, limits, strict=False))
    for size, rule in chosen.items():
        expected = expected_pairs(catalogue, collective, rule, processes, library.mpi)
        if expected is None:
            expected = references[collective, processes, size, rule.text]
        seen = all_seen[size]
        number = expected_number(catalogue, collective, rule, size, library.mpi)
        others = [
            (
                expected_pairs(catalogue, collective, other, processes, library.mpi),
                expected_number(catalogue, collective, other, size, library.mpi),
            )
            for other in selected_rules(table, processes)
            if (other.algorithm, other.parameters) != (rule.algorithm, rule.parameters)
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

    Entries for more than MOST_RANKS processes are checked in a copy of the file in which the entry holds for MOST_RANKS
    processes: this checks sizes, algorithm and parameters, but not the number of processes.
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
                    # Sizes in the file are for `entry` processes; the copy has the same bytes of a rank for fewer ranks.
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
    """Ask the library for what it sends where that is not known from the rule: one launch for all sizes of a rule."""
    lacking: dict[str, tuple[Rule, list[int]]] = {}
    for size, rule in chosen.items():
        unknown = expected_pairs(catalogue, collective, rule, processes, library.mpi) is None
        if unknown and (collective, processes, size, rule.text) not in references:
            lacking.setdefault(rule.text, (rule, []))[1].append(size)
    for text, (rule, sizes) in lacking.items():
        forced = None if rule.algorithm == "default" else rule
        for size, seen in library.seen(forced, collective, processes, sizes).items():
            references[collective, processes, size, text] = frozenset(seen)


def on_two_nodes(mpi: Mpi, arguments: list[Any], collective: str, processes: int, size: int) -> Messages:
    """The same with the ranks on two emulated nodes, in blocks; *arguments* may exclude components."""
    hosts = f"nodea:{(processes + 1) // 2},nodeb:{processes // 2}"
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        agent = Path(folder) / AS_NODE.name  # Open MPI splits the agent's path at blanks
        agent.symlink_to(AS_NODE)
        where = ["--prtemca", "plm_ssh_agent", agent, "--host", hosts, "--map-by", "slot"]
        # One size a launch: the first call makes the communicators of coll/han, with messages of their own.
        return _monitored(mpi, [*where, *arguments], collective, processes, [size])[size]


def check_han(
    placement: Placement, path: Path, han: Path, default: str, catalogue: Catalogue, mpi: Mpi,
    numbers: dict[str, dict[str, int]],
) -> list[Finding]:  # fmt: skip
    """Check that on several nodes coll/han and coll/tuned together do what their two files say.

    Only sizes at which the component changes are checked; `check_placement` checks coll/tuned. Two emulated
    nodes of at most MOST_RANKS ranks stand for those of the placement.
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
                    files[1].write_text(han_rules(copy, default, []), encoding="utf-8")
                for size in [1] if collective == "barrier" else boundaries(components) or [1]:
                    call = (collective, processes, size)
                    rule, alone = selected(seen_table, processes, size), frozenset(on_two_nodes(mpi, [], *call))
                    expected: Pairs | None = alone
                    if rule.algorithm != "default":
                        expected = expected_pairs(catalogue, collective, rule, processes, "openmpi")
                        expected = expected or frozenset(
                            on_two_nodes(mpi, _forcing(mpi, catalogue, collective, rule), *call)
                        )
                    elif default == "tuned":
                        expected = frozenset(on_two_nodes(mpi, ONLY_TUNED, *call))
                    seen = on_two_nodes(mpi, rules_arguments(files[0], han=files[1]), *call)
                    findings.append(
                        Finding(
                            f"Open MPI {mpi.version}, two emulated nodes", han.name, collective, entry, processes, size,
                            rule.text, frozenset(seen) == expected, rule.algorithm == "default" or expected != alone,
                        )
                    )  # fmt: skip
    return findings


def complain(findings: list[Finding]) -> None:
    """Raise StudyError naming file, rule and size of every mismatch."""
    wrong = [
        f"{one.file}: {one.collective}, entry for {one.entry} processes, {one.size_bytes} B: the file has {one.rule}, "
        f"but {one.mpi} with {one.processes} ranks "
        + ("selects another algorithm" if one.mpi.endswith(ASKED) else "sends other messages")
        for one in findings
        if not one.agrees
    ]
    if wrong:
        raise StudyError(f"{findings[0].mpi} does not follow the rules file:\n  " + "\n  ".join(wrong))


def to_csv(findings: list[Finding]) -> bytes:
    """check.csv."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, [field.name for field in fields(Finding)], lineterminator="\n")
    writer.writeheader()
    rows: list[dict[str, Any]] = [asdict(one) for one in findings]
    writer.writerows({k: str(v).upper() if isinstance(v, bool) else v for k, v in row.items()} for row in rows)
    return stream.getvalue().encode()


def read_csv(path: Path) -> list[Finding]:
    """Read the output of to_csv."""
    with open(path, newline="", encoding="utf-8") as stream:
        return [
            Finding(
                row["mpi"], row["file"], row["collective"], int(row["entry"]), int(row["processes"]), int(row["size_bytes"]),
                row["rule"], row["agrees"] == "TRUE", row["tells_apart"] == "TRUE",
            )
            for row in csv.DictReader(stream)
        ]  # fmt: skip
