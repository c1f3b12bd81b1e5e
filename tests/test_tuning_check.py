"""How a library uses a tuning file: which entries are asked about, and which deviations are reported."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi
from collstudy.launch.rulesfile import rules_arguments
from collstudy.launch.toolchain import Mpi, mpis
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import asking, check, library, rules
from collstudy.tuning.findings import complain
from collstudy.tuning.library import ONLY_TUNED, Library, library_of
from collstudy.tuning.rules import Placement, Rule, placements, selected
from test_tuning import CATALOGUE, decisions


def test_boundaries_are_one_below_at_and_one_above():
    assert check.boundaries((Rule(0, "linear"), Rule(8, "chain"))) == [1, 7, 8, 9]


def obedient(table):
    """Return a library that follows the given table (the file's content is ignored)."""

    def seen(path, collective, processes, size):
        rule = selected(table, processes, size) if path else Rule(0, "default")
        pairs = check.expected_pairs(CATALOGUE, collective, rule, processes, size, "openmpi") or {(0, 99)}
        return dict.fromkeys(pairs, check.expected_number(CATALOGUE, collective, rule, size, "openmpi") or 1)

    def probe(path, collective, processes, sizes):
        return {size: seen(path, collective, processes, size) for size in sizes}

    return Library("Open MPI x", "openmpi", probe, lambda placement, path: None)


def test_messages_of_no_known_pattern_are_compared_with_those_of_the_forced_algorithm(tmp_path):
    (found,) = placements(decisions({4: {1: "linear", 8: "rabenseifner"}}, collective="reduce"))
    asked = []

    def seen(choice, processes, size):
        rule = selected(found.tables["reduce"], processes, size) if isinstance(choice, Path) else choice
        return {(0, hash(rule.text if rule and rule.algorithm != "default" else None)): 1}

    def probe(choice, collective, processes, sizes):
        asked.append(choice)
        return {size: seen(choice, processes, size) for size in sizes}

    library = Library("Open MPI x", "openmpi", probe, lambda placement, path: None)
    complain(check.check_placement(found, tmp_path / "a.rules", CATALOGUE, library))
    assert {choice.text for choice in asked if isinstance(choice, Rule)} == {"linear", "rabenseifner"}


def test_check_names_file_rule_and_size_of_a_mismatch(tmp_path):
    (found,) = placements(decisions({6: {1: "linear", 8: "chain"}, 7: {1: "linear", 8: "chain"}}))
    table = found.tables["bcast"]
    right = check.check_placement(found, tmp_path / "a.rules", CATALOGUE, obedient(table))
    assert all(one.agrees for one in right)
    assert {one.size_bytes for one in right if one.entry == 6} == {1, 7, 8, 9, 15, 16, 17}
    complain(right)
    late = {**table, 6: (Rule(0, "linear"), Rule(9, "chain"), Rule(16, "default"))}
    wrong = check.check_placement(found, tmp_path / "a.rules", CATALOGUE, obedient(late))
    with pytest.raises(StudyError, match=r"a\.rules: bcast, entry for 6 processes, 8 B: the file has chain"):
        complain(wrong)


def test_a_rule_that_is_cut_in_other_segments_is_a_mismatch(tmp_path):
    names = {1: "chain:segment_bytes=8", 64: "chain:fanout=2;segment_bytes=8", 512: "chain:segment_bytes=16"}
    (found,) = placements(decisions({6: names}))
    table = found.tables["bcast"]
    assert [rule.text for rule in table[6]] == [
        "chain:segment_bytes=8", "chain:fanout=2:segment_bytes=8", "chain:segment_bytes=16", "default"
    ]  # fmt: skip
    right = check.check_placement(found, tmp_path / "a.rules", CATALOGUE, obedient(table))
    complain(right)
    assert all(one.tells_apart for one in right if one.size_bytes > 16)
    other = {**table, 6: (*table[6][:2], Rule(512, "chain", (("segment_bytes", 8),)), table[6][3])}
    wrong = check.check_placement(found, tmp_path / "a.rules", CATALOGUE, obedient(other))
    with pytest.raises(StudyError, match="512 B: the file has chain:segment_bytes=16"):
        complain(wrong)


def test_no_decisions_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(StudyError, match="no decisions yet"):
        rules.read_decisions(Path(tmp_path / "none.csv"))


def test_entries_checked_before_are_not_checked_again(tmp_path):
    rows = decisions({6: {1: "linear", 8: "chain"}, 7: {1: "linear", 8: "binomial"}})
    (before,) = placements(rows)
    (after,) = placements(rows, {("bcast", "core", 2, 7, 1)})
    library = obedient(after.tables["bcast"])
    found = check.check_placement(after, tmp_path / "a.rules", CATALOGUE, library, before)
    assert {one.entry for one in found} == {7}


needs_answers = pytest.mark.skipif(
    "openmpi" not in mpis() or not asking.can_ask(mpis()["openmpi"], "bcast"), reason="no Open MPI with collask here"
)


@needs_answers
def test_one_process_asks_for_more_ranks_than_could_be_started(tmp_path):
    mpi = mpis()["openmpi"]
    table = {
        4: (Rule(0, "default"), Rule(1024, "linear")),
        500: (Rule(0, "binomial"), Rule(4096, "pipeline", (("segment_bytes", 2048),))),
    }
    path = tmp_path / "a.rules"
    library_of(mpi, CATALOGUE, NUMBERS).write(Placement("core", 1, {"bcast": table}), path)
    calls = [(4, 1024), (499, 4096), (500, 4095), (500, 4096), (1000, 1)]
    found = asking.ask(mpi, rules_arguments(path), "bcast", calls)
    assert [found[call] for call in calls] == [
        "bcast_intra_basic_linear", "bcast_intra_basic_linear", "bcast_intra_binomial[segment 0]",
        "bcast_intra_pipeline[segment 2048]", "bcast_intra_binomial[segment 0]",
    ]  # fmt: skip
    # The default's own decision depends on the number of ranks.
    own = asking.ask(mpi, ONLY_TUNED, "bcast", [(4, 1), (1000, 1)])
    assert own[4, 1] != own[1000, 1] and asking.ask(mpi, rules_arguments(path), "bcast", [(4, 1)])[4, 1] == own[4, 1]


@needs_answers
@pytest.mark.parametrize(
    "collective",
    ["bcast", "reduce", "allreduce", "allgather", "allgatherv", "alltoall", "alltoallv", "gather", "scatter", "barrier",
     "reduce_scatter", "reduce_scatter_block", "scan", "exscan"],
)  # fmt: skip
def test_every_algorithm_of_the_library_is_an_answer_of_its_own(collective):
    mpi = mpis()["openmpi"]
    numbers = openmpi.algorithm_numbers(mpi.ompi_info, collective)
    told = {}
    for name, number in numbers.items():
        forced = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        forced += ["--mca", f"coll_tuned_{collective}_algorithm", str(number)]
        if number:
            told[name] = asking.ask(mpi, forced, collective, [(8, 64)]).get((8, 64))
    assert len(set(told.values())) == len(told) and all(told.values()), told


@needs_answers
@pytest.mark.parametrize(
    ("collective", "small", "large"),
    [("allgatherv", "bruck", "ring"), ("reduce_scatter_block", "linear", "butterfly"), ("scan", "linear", "linear"),
     ("exscan", "recursive_doubling", "recursive_doubling")],
)  # fmt: skip
def test_open_mpi_follows_a_file_for(collective, small, large, tmp_path):
    """Sizes are those of one rank's block or, in scans, of the vector; Open MPI has one rule of a scan for all sizes."""
    mpi = mpis()["openmpi"]
    rules = tuple(dict.fromkeys([Rule(0, small), Rule(64 if small != large else 0, large)]))
    placement, own = Placement("core", 1, {collective: {4: rules}}), library_of(mpi, CATALOGUE, NUMBERS)
    own.write(placement, tmp_path / "a.rules")
    findings = check.check_placement(placement, tmp_path / "a.rules", CATALOGUE, own)
    complain(findings)
    # By one process that asks, and by four that call; where there are two rules, one at the wrong size would have been noticed.
    assert {one.asked for one in findings} == {True, False}
    assert len(rules) == 1 or all(one.tells_apart for one in findings if one.asked)


@needs_answers
def test_a_large_entry_that_the_file_has_for_another_number_of_ranks_is_seen(tmp_path):
    mpi = mpis()["openmpi"]
    own = library_of(mpi, CATALOGUE, NUMBERS)
    tables = [{2: (Rule(0, "linear"),), entry: (Rule(0, "chain"), Rule(64, "binomial"))} for entry in (100, 101)]
    path = tmp_path / "a.rules"
    own.write(Placement("core", 1, {"bcast": tables[0]}), path)
    right = check._ask_placement(Placement("core", 1, {"bcast": tables[0]}), path, [("bcast", 2), ("bcast", 100)], own)
    assert all(one.agrees and one.processes == one.entry for some in right.values() for one in some)
    own.write(Placement("core", 1, {"bcast": tables[1]}), path)
    wrong = check._ask_placement(Placement("core", 1, {"bcast": tables[0]}), path, [("bcast", 100)], own)
    with pytest.raises(StudyError, match="with 100 ranks selects another algorithm"):
        complain(wrong["bcast", 100])


@needs_answers
def test_variables_of_the_caller_choose_nothing_in_a_check(tmp_path, monkeypatch):
    """A user who replaces a forced algorithm by a file still has it forced while the new file is checked."""
    placement = Placement("core", 1, {"bcast": {2: (Rule(0, "linear"), Rule(64, "default"))}})
    own = library_of(mpis()["openmpi"], CATALOGUE, NUMBERS)
    own.write(placement, tmp_path / "a.rules")
    for name, value in (("use_dynamic_rules", "1"), ("bcast_algorithm", "3"), ("bcast_algorithm_segmentsize", "512")):
        monkeypatch.setenv(f"OMPI_MCA_coll_tuned_{name}", value)
    findings = check.check_placement(placement, tmp_path / "a.rules", CATALOGUE, own)
    complain(findings)
    assert {one.asked for one in findings} == {True, False}


def test_few_entries_are_started_where_the_library_answers(tmp_path):
    (found,) = placements(decisions({n: {1: ("linear", "binomial")[n % 2], 8: "chain"} for n in range(3, 9)}))
    table, started = found.tables["bcast"], set()
    silent = obedient(table)

    def probe(choice, collective, processes, sizes):
        started.add(processes)
        return silent.probe(choice, collective, processes, sizes)

    def ask(choice, collective, calls):
        return {
            (ranks, size): (
                selected(table, ranks, size) if isinstance(choice, Path) else choice or Rule(0, "default")
            ).text
            for ranks, size in calls
        }

    findings = check.check_placement(found, tmp_path / "a.rules", CATALOGUE, replace(silent, probe=probe, ask=ask))
    complain(findings)
    assert {one.processes for one in findings if one.asked} >= set(range(3, 9))
    assert len(started) <= 2
    # Processes are started for every entry about which the library does not answer.
    started.clear()
    check.check_placement(found, tmp_path / "a.rules", CATALOGUE, replace(silent, probe=probe, ask=lambda *_: {}))
    assert started >= set(range(3, 9))


@pytest.mark.parametrize(("version", "launches"), [("4.1.4", 2), ("5.0.11", 1)])
def test_each_size_has_a_launch_where_messages_are_written_at_the_end_alone(
    monkeypatch: pytest.MonkeyPatch, version: str, launches: int
) -> None:
    """Debian's Open MPI 4.1.4 has no variable with which its monitoring writes the messages so far (collprobe -p)."""
    ran = []

    def launch(command: list[Any], environment: dict[str, str], folder: Path) -> None:
        ran.append(command)
        sizes = command[command.index("bcast") + 1 :]
        for size in sizes:
            name = f"messages-{size}" if "-p" in command else "messages"
            (folder / f"{name}.0.prof").write_text(f"I\t0\t1\t{size} bytes\t{size} msgs sent\n")

    monkeypatch.setattr(library, "launch", launch)
    mpi = Mpi("openmpi", version, Path("/usr/bin"))
    assert library._monitored(mpi, [], "bcast", 2, [3, 5]) == {3: {(0, 1): 3}, 5: {(0, 1): 5}}
    assert len(ran) == launches


def test_the_folder_of_a_session_that_was_killed_does_not_stop_a_check(tmp_path: Path) -> None:
    library.launch(["sh", "-c", 'test "$TMPDIR" = "$PWD"'], {"TMPDIR": "/elsewhere"}, tmp_path)
