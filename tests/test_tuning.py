"""Decisions to rules files: merging, units, every format, and the check of what the library does with them."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.launch import hydra, openmpi, proof
from collstudy.launch.rulesfile import exported, rules_arguments
from collstudy.launch.toolchain import mpis
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.study.patterns import PATTERNS
from collstudy.study.selection import Rules
from collstudy.tuning import asking, check, emission, rules, trees, writers
from collstudy.tuning.findings import complain
from collstudy.tuning.library import ONLY_TUNED, Library, launch, library_of, on_two_nodes
from collstudy.tuning.rules import (
    Decision,
    Placement,
    Rule,
    placements,
    selected,
)

CONFIG = Configuration(ROOT / "config")
CATALOGUE = CONFIG.catalogue


def _choice(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """`chain:fanout=2;segment_bytes=8192` to name and parameters."""
    name, _, parameters = text.partition(":")
    return name, rules.parse_parameters(parameters)


def decisions(table, collective="bcast", nodes=2, mapping="core"):
    """Rows from {processes: {size: algorithm}}; 10 % gain where it is not the default."""
    return [
        Decision(collective, mapping, nodes, p, size, *_choice(name), "measured", 10.0 * (name != "default"))
        for p, sizes in table.items()
        for size, name in sizes.items()
    ]


def test_neighbouring_sizes_and_counts_become_one_rule():
    rows = decisions({4: {1: "linear", 2: "linear", 4: "default"}, 5: {1: "linear", 2: "linear", 4: "default"}})
    (found,) = placements(rows)
    table = found.tables["bcast"]
    assert list(table) == [0, 4, 6]
    assert [(rule.size, rule.algorithm) for rule in table[4]] == [(0, "linear"), (4, "default")]
    assert table[4][0].gain_pct == 10


def test_beyond_what_was_measured_the_library_decides():
    (found,) = placements(decisions({4: {1: "linear", 1024: "chain"}}))
    table = found.tables["bcast"]
    assert selected(table, 4, 2047).algorithm == "chain"
    for processes, size in ((4, 2048), (3, 1), (5, 1), (1, 1)):
        assert selected(table, processes, size).algorithm == "default"
    assert selected(table, 4, 0).algorithm == "linear"


def test_withdrawn_rules_are_the_default():
    rows = decisions({4: {1: "linear", 2: "linear"}})
    (found,) = placements(rows, {("bcast", "core", 2, 4, 2)})
    assert [(rule.size, rule.algorithm) for rule in found.tables["bcast"][4]] == [(0, "linear"), (2, "default")]


def numbers_in(text):
    return [line.split("#")[0].split() for line in text.splitlines() if line.split("#")[0].strip()]


def test_classic_format_by_hand():
    (found,) = placements(decisions({4: {1: "linear", 8: "chain:segment_bytes=8192"}}))
    text = writers.openmpi_rules(found, CATALOGUE, ["why"], NUMBERS)
    assert text.startswith("# why\n")
    assert numbers_in(text) == [
        ["1"], ["7"], ["3"],
        ["0"], ["1"], ["0", "0", "0", "0"],
        ["4"], ["3"], ["0", "1", "0", "0"], ["8", "2", "4", "8192"], ["16", "0", "0", "0"],
        ["5"], ["1"], ["0", "0", "0", "0"],
    ]  # fmt: skip
    second = writers.openmpi_rules(found, CATALOGUE, [], NUMBERS, version=2)
    assert second.startswith("rule-file-version-2\n")
    assert ["8", "2", "4", "8192", "0"] in numbers_in(second)


def test_total_bytes_where_open_mpi_counts_them():
    assert rules.in_unit("allgather", 100, 8) == rules.in_unit("alltoall", 100, 8) == 800
    assert rules.in_unit("bcast", 100, 8) == 100


def test_open_mpis_numbers_of_collectives():
    """The order of COLLTYPE_T in coll_base_functions.h."""
    words = """allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather gatherv reduce reduce_scatter
        reduce_scatter_block scan scatter scatterv"""
    order = words.split()
    assert all(order[number] == name for name, number in rules.COLLECTIVE_IDS.items())
    assert {"allgatherv", "alltoallv", "reduce_scatter"} <= set(rules.COLLECTIVE_IDS)


@pytest.mark.parametrize(("collective", "number", "algorithm"), [
    ("allgatherv", 1, "ring"), ("reduce_scatter", 12, "recursive_halving")
])  # fmt: skip
def test_a_file_of_every_collective_that_open_mpi_tunes(collective, number, algorithm):
    (found,) = placements(decisions({4: {8: algorithm}}, collective))
    known = NUMBERS[collective][algorithm]
    text = numbers_in(writers.openmpi_rules(found, CATALOGUE, [], NUMBERS))
    assert text[1] == [str(number)] and [str(known)] in [words[1:2] for words in text]
    # The benchmark counts as the library does: no size is multiplied by the number of processes.
    assert ["16", "0", "0", "0"] in text
    (scope,) = json.loads(writers.openmpi_json(found, CATALOGUE, NUMBERS))["collectives"][collective]
    assert scope["rules"] == [{"msg_size_min": 0, "msg_size_max": 15, "alg": known}]


def test_where_open_mpi_looks_at_no_size_there_is_one_rule():
    table = {4: {1: "pairwise", 8: "pairwise"}, 6: {1: "linear", 8: "pairwise"}, 8: {1: "default", 8: "pairwise"}}
    (found,) = placements(decisions(table, "alltoallv"))
    pairwise = str(NUMBERS["alltoallv"]["pairwise"])
    assert numbers_in(writers.openmpi_rules(found, CATALOGUE, [], NUMBERS)) == [
        ["1"], ["4"], ["5"],
        ["0"], ["1"], ["0", "0", "0", "0"],
        ["4"], ["1"], ["0", pairwise, "0", "0"],
        ["6"], ["1"], ["0", "0", "0", "0"],
        ["8"], ["1"], ["0", "0", "0", "0"],
        ["9"], ["1"], ["0", "0", "0", "0"],
    ]  # fmt: skip
    # The collectives library knows the sizes.
    assert [rule.size for rule in found.tables["alltoallv"][6]] == [0, 8, 16]


def test_json_has_only_what_differs_from_the_default():
    (found,) = placements(decisions({4: {1: "default", 8: "chain"}, 6: {1: "default", 8: "default"}}))
    document = json.loads(writers.openmpi_json(found, CATALOGUE, NUMBERS))
    assert document == {
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {
            "bcast": [
                {
                    "comm_size_min": 4,
                    "comm_size_max": 5,
                    "rules": [{"msg_size_min": 8, "msg_size_max": 15, "alg": 2, "faninout": 4}],
                }
            ]
        },
    }


STUDY = {
    "name": "few", "title": "Few", "simulated": False, "machine": {"label": "A machine"},
    "collectives": {"bcast": {"processes": [4]}},
    "provenance": {
        "suite": "collbench", "suite_version": "1", "mpi": "openmpi", "mpi_version": "5.0.11", "simulator": "",
        "simulator_version": "",
    },
}  # fmt: skip


def emitted(folder, nodes, mpi=None):
    """Write the tuning files of a study that measured an installed MPI library; returns the placement."""
    mpi = mpi or mpis()["openmpi"]
    how = {**STUDY["provenance"], "mpi": mpi.name, "mpi_version": mpi.version}
    (found,) = placements(decisions({4: {1: "pipeline", 1024: "default"}}, nodes=nodes))
    library = library_of(mpi, CATALOGUE, NUMBERS)
    emission.emit(
        {**STUDY, "provenance": how}, [found], CATALOGUE, CONFIG.machine("thin"), folder, None, library.write, mpi.build
    )
    return found


def pasted(folder, word):
    """The lines of README.md to paste: those that set variables, and the command that names *word*."""
    lines = [line.strip() for line in (folder / "README.md").read_text().splitlines() if line.startswith("    ")]
    return [line for line in lines if line.startswith("export") or word in line]


def run_pasted(tmp_path, mpi, word, *more):
    """Paste the lines in a copy of the folder, then start a broadcast of 64 bytes with four ranks somewhere else."""
    (tmp_path / "else where").mkdir()
    program = tmp_path / "else where" / "program"
    program.write_text(f'#!/bin/sh\nexec "{mpis()[mpi].build}/probe/collprobe" bcast 64\n')
    program.chmod(0o755)
    *exports, command = pasted(tmp_path / "a copy", word)
    command = command.replace("mpirun", " ".join(["mpirun", "-n", "4", *more]), 1)
    # With its monitoring switched on Open MPI crashes where the component is left out.
    command = command.replace("libnbc,self", "libnbc,self,monitoring")
    script = "\n".join([f"cd '{tmp_path}/a copy'", *exports, f"cd '{tmp_path}/else where'", command])
    environment = {**mpis()[mpi].environment(), "COLL_VERBOSE": "1"}
    return subprocess.run(
        ["bash", "-ec", script], capture_output=True, text=True, env=environment, check=True, timeout=60
    )


def test_a_study_of_intel_mpi_gets_what_intel_mpi_reads_and_nothing_else(tmp_path):
    found = placements(decisions({4: {1: "preset_2", 8: "default"}}, collective="iallreduce"))
    study = {
        **STUDY,
        "collectives": {"iallreduce": {"processes": [4]}},
        "provenance": {**STUDY["provenance"], "mpi": "impi"},
    }
    emission.emit(study, found, CATALOGUE, CONFIG.machine("thin"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "intel-core-n2.sh"}
    assert pasted(tmp_path, "mpirun") == ['export TUNING="$PWD"', '. "$TUNING/intel-core-n2.sh" && mpirun ./program']


HERE = ["--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def test_the_readmes_command_works_in_a_copy_of_the_folder(tmp_path):
    emitted(tmp_path / "tuning", 1)
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    monitoring = ["--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3"]
    monitoring += ["--mca", "pml_monitoring_filename", str(tmp_path / "messages")]
    run_pasted(
        tmp_path, "openmpi", "openmpi-core-n1.rules", *HERE, *monitoring, "--mca", "coll_monitoring_priority", "0"
    )
    assert set(proof.messages(tmp_path)) == PATTERNS["pipeline"](4, {})


def test_the_readmes_command_for_the_collectives_library_works(tmp_path):
    emitted(tmp_path / "tuning", 1)
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    done = run_pasted(tmp_path, "openmpi", "COLL_RULES", *HERE, "-x", "COLL_VERBOSE")
    assert "libcollstudy: bcast: 1 calls, 0 left to the MPI library" in done.stdout + done.stderr


def test_the_readmes_command_for_mpich_works(tmp_path):
    if "mpich" not in mpis():
        pytest.skip("mpich is not installed (./study test installs it in .study/mpich)")
    emitted(tmp_path / "tuning", 1, mpis()["mpich"])
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    watching = [f"'{word}'" for word in map(str, hydra.watching(mpis()["mpich"].build / "probe", tmp_path))]
    run_pasted(tmp_path, "mpich", "SELECTION_TUNING", *watching)
    assert set(proof.messages(tmp_path)) == PATTERNS["pipeline"](4, {})


def test_han_rules_by_hand():
    (found,) = placements(decisions({1: {1: "linear"}, 4: {1: "linear", 8: "chain", 64: "default"}}))
    assert numbers_in(writers.han_rules(found, "han", ["why"])) == [
        ["1"], ["bcast"], ["1"], ["global_communicator"], ["3"],
        ["1"], ["2"], ["0", "tuned"], ["2", "han"],
        ["4"], ["2"], ["0", "tuned"], ["64", "han"],
        ["5"], ["1"], ["0", "han"],
    ]  # fmt: skip


def test_han_is_the_default_of_an_open_mpi_5_on_several_nodes_only():
    one, two = (placements(decisions({4: {1: "linear"}}, nodes=nodes))[0] for nodes in (1, 2))
    old = {"provenance": {**STUDY["provenance"], "mpi_version": "4.1.4"}}
    simulated = {"provenance": {**STUDY["provenance"], "mpi": "smpi-openmpi", "mpi_version": "SimGrid 3.32"}}
    assert [rules.han_default(STUDY, place) for place in (one, two)] == [None, "han"]
    assert [rules.han_default(study, two) for study in (old, simulated)] == ["tuned", "tuned"]


def test_on_several_nodes_the_rules_act_through_coll_han_and_not_without_it(tmp_path):
    """Emulated nodes of the installed Open MPI 5; tests/slurm has real ones."""
    mpi = mpis()["openmpi"]
    if not openmpi.emulates_nodes(mpi):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    placement = emitted(tmp_path, 2)
    rules, han = emission.rules_path(tmp_path, "openmpi", placement), emission.han_path(tmp_path, placement)

    def pairs(size, *arguments):
        return frozenset(on_two_nodes(mpi, list(arguments), "bcast", 4, size))

    both = rules_arguments(rules, han=han)
    pipeline = PATTERNS["pipeline"](4, {})
    assert pairs(1023, *both) == pipeline
    alone = pairs(1024)
    assert pairs(1024, *both) == alone != pipeline
    # coll/tuned's rules alone: coll/han goes on as if they were not there.
    assert pairs(1023, *rules_arguments(rules)[3:]) == alone


def test_a_launch_that_hangs_is_tried_once_more(tmp_path, monkeypatch):
    monkeypatch.setattr("collstudy.tuning.library.LAUNCH_LIMIT_S", 0.5)
    once = f"[ -e '{tmp_path}/tried' ] || {{ touch '{tmp_path}/tried'; exec sleep 9; }}"
    launch(["sh", "-c", once], {}, tmp_path)
    assert (tmp_path / "tried").exists()
    with pytest.raises(StudyError, match="not finished after 0.5 s, twice"):
        launch(["sleep", "9"], {}, tmp_path)


def test_a_file_of_han_that_is_not_followed_is_named(tmp_path, monkeypatch):
    (found,) = placements(decisions({4: {1: "pipeline", 8: "default"}}))

    def deaf(mpi, arguments, collective, processes, size):
        return {(0, 99): 1}

    monkeypatch.setattr(check, "on_two_nodes", deaf)
    mpi = SimpleNamespace(version="5.x")
    findings = check.check_han(found, tmp_path / "a", tmp_path / "h.rules", "han", CATALOGUE, mpi, NUMBERS)
    with pytest.raises(
        StudyError, match=r"two emulated nodes does not follow .*\n *h\.rules: bcast, entry for 4 processes, 1 B"
    ):
        complain(findings)
    assert all(one.agrees for one in findings if one.rule == "default")


def test_intel_ranges_and_what_it_lacks():
    (found,) = placements(decisions({4: {1: "binomial", 8: "chain"}}))
    text = writers.intel_variables(found, CATALOGUE, [])
    assert "export I_MPI_ADJUST_BCAST='1:0-7@4-4'" in text
    assert "no equivalent of chain" in text


def test_intel_by_the_catalogues_numbers_and_the_variables_of_a_cell():
    (found,) = placements(decisions({4: {1: "preset_2"}}, collective="iallreduce"))
    text = writers.intel_variables(found, CATALOGUE, ["why"])
    assert exported(text) == {"I_MPI_ADJUST_IALLREDUCE": "2:0-1@4-4"}


def test_mpich_only_where_one_algorithm_serves_all_sizes():
    one = trees.variables(placements(decisions({4: {1: "binomial", 8: "binomial"}}))[0], CATALOGUE, [])
    assert "export MPIR_CVAR_BCAST_INTRA_ALGORITHM='binomial'" in one
    for sizes in ({1: "binomial", 8: "chain"}, {1: "binomial", 8: "default"}, {1: "default", 8: "default"}):
        table = {2: {1: "binomial", 8: "binomial"}, 4: sizes}
        left = trees.variables(placements(decisions(table))[0], CATALOGUE, [])
        assert "export" not in left
        assert "bcast: left to MPICH" in left
    nothing = trees.variables(placements(decisions({4: {1: "default", 8: "default"}}))[0], CATALOGUE, [])
    assert "export" not in nothing and "left to MPICH (default)" in nothing


def test_library_rules_say_where_ranks_are():
    (found,) = placements(decisions({4: {1: "binomial", 8: "default"}, 48: {1: "linear", 8: "default"}}))
    text = writers.library_rules(found, CATALOGUE, [], CONFIG.machine("thin"), {"bcast": [4, 48]})
    assert numbers_in(text) == [
        ["bcast", "1", "4", "7", "->", "ompi_binomial"], ["bcast", "1", "4", "*", "->", "default"],
        ["bcast", "2", "24", "7", "->", "ompi_linear"], ["bcast", "2", "24", "*", "->", "default"],
    ]  # fmt: skip


def test_a_file_of_other_content_is_another_cell():
    assert Rules("a").to_json() != Rules("b").to_json()


def test_boundaries_are_one_below_at_and_one_above():
    assert check.boundaries((Rule(0, "linear"), Rule(8, "chain"))) == [1, 7, 8, 9]


def obedient(table):
    """A library that follows the table it is given (the file's content is not looked at)."""

    def probe(path, collective, processes, size):
        rule = selected(table, processes, size) if path else Rule(0, "default")
        pairs = check.expected_pairs(CATALOGUE, collective, rule, processes, "openmpi") or {(0, 99)}
        return dict.fromkeys(pairs, check.expected_number(CATALOGUE, collective, rule, size, "openmpi") or 1)

    return Library("Open MPI x", "openmpi", probe, lambda placement, path: None)


def test_messages_of_no_known_pattern_are_compared_with_those_of_the_forced_algorithm(tmp_path):
    (found,) = placements(decisions({4: {1: "linear", 8: "rabenseifner"}}, collective="reduce"))
    asked = []

    def probe(choice, collective, processes, size):
        asked.append(choice)
        rule = selected(found.tables["reduce"], processes, size) if isinstance(choice, Path) else choice
        return {(0, hash(rule.text if rule and rule.algorithm != "default" else None)): 1}

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
    "collective", ["bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter", "barrier"]
)
def test_every_algorithm_of_the_library_is_an_answer_of_its_own(collective):
    mpi = mpis()["openmpi"]
    numbers = openmpi.algorithm_numbers(mpi.ompi_info, collective)
    told = {}
    for name, number in numbers.items():
        forced = [
            "--mca",
            "coll_tuned_use_dynamic_rules",
            "1",
            "--mca",
            f"coll_tuned_{collective}_algorithm",
            str(number),
        ]
        if number:
            told[name] = asking.ask(mpi, forced, collective, [(8, 64)]).get((8, 64))
    assert len(set(told.values())) == len(told) and all(told.values()), told


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


def test_few_entries_are_started_where_the_library_answers(tmp_path):
    (found,) = placements(decisions({n: {1: ("linear", "binomial")[n % 2], 8: "chain"} for n in range(3, 9)}))
    table, started = found.tables["bcast"], set()
    silent = obedient(table)

    def probe(choice, collective, processes, size):
        started.add(processes)
        return silent.probe(choice, collective, processes, size)

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
    # One that does not answer is started at every entry.
    started.clear()
    check.check_placement(found, tmp_path / "a.rules", CATALOGUE, replace(silent, probe=probe, ask=lambda *_: {}))
    assert started >= set(range(3, 9))
