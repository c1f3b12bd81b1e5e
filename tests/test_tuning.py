"""From decisions to rules files: merging, units, and every format."""

import json
from dataclasses import replace

import pytest
from collstudy.base.paths import ROOT
from collstudy.launch.rulesfile import exported
from collstudy.store.measurements import Measurement
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.study.selection import Rules
from collstudy.tuning import intel, rules, trees, writers
from collstudy.tuning.rules import Decision, placements, selected

CONFIG = Configuration(ROOT / "config")
CATALOGUE = CONFIG.catalogue


def _choice(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Convert `chain:fanout=2;segment_bytes=8192` to name and parameters."""
    name, _, parameters = text.partition(":")
    return name, rules.parse_parameters(parameters)


def decisions(table, collective="bcast", nodes=2, mapping="core"):
    """Return decisions from {processes: {size: algorithm}}, with a gain of 10 % unless it is the default."""
    return [
        Decision(collective, mapping, nodes, p, size, *_choice(name), 10.0 * (name != "default"))
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


def test_one_file_serves_all_numbers_of_nodes_that_the_ranks_determine():
    rows = [*decisions({4: {1: "linear"}}, nodes=1), *decisions({8: {1: "chain"}})]
    (found,) = placements([*rows, *decisions({4: {1: "linear"}}, "reduce", nodes=1)])
    assert found.name == "core-n2" and found.used == {"bcast": {4: 1, 8: 2}, "reduce": {4: 1}}
    assert [selected(found.tables["bcast"], count, 1).algorithm for count in (4, 8)] == ["linear", "chain"]
    # Decisions for the same ranks on other nodes, even of another collective, would compete for one rule.
    one, two = placements([*rows, *decisions({4: {1: "chain"}}, "reduce")])
    assert (one.name, one.used, two.name) == ("core-n1", {"bcast": {4: 1}}, "core-n2")
    assert two.used == {"bcast": {8: 2}, "reduce": {4: 2}}
    # Other mappings have files of their own.
    assert [one.name for one in placements([*rows, *decisions({4: {1: "chain"}}, mapping="node")])] == [
        "core-n2",
        "node-n2",
    ]


def test_beyond_what_was_measured_the_library_decides():
    (found,) = placements(decisions({4: {1: "linear", 1024: "chain"}}))
    table = found.tables["bcast"]
    assert selected(table, 4, 2047).algorithm == "chain"
    for processes, size in ((4, 2048), (3, 1), (5, 1), (1, 1)):
        assert selected(table, processes, size).algorithm == "default"
    assert selected(table, 4, 0).algorithm == "linear"


def test_rules_of_a_program_apply_only_to_its_classes_of_sizes_and_its_ranks():
    rows = decisions({4: {12: "linear", 20: "linear", 5000: "chain"}, 8: {1: "linear"}})
    (found,) = placements(rows, of_program=True)
    table = found.tables["bcast"]
    assert [(rule.size, rule.algorithm) for rule in table[4]] == [
        (0, "default"), (8, "linear"), (32, "default"), (4096, "chain"), (8192, "default"),
    ]  # fmt: skip
    assert [(rule.size, rule.algorithm) for rule in table[8]] == [(0, "default"), (1, "linear"), (2, "default")]
    assert {selected(table, processes, 12).algorithm for processes in (3, 5, 7, 9)} == {"default"}
    # Open MPI uses the rule of size 0 for all sizes of these.
    (found,) = placements(decisions({4: {12: "linear"}}, "alltoallv"), of_program=True)
    assert rules.as_openmpi_reads(found, CATALOGUE).tables["alltoallv"][4] == (rules.Rule(0, "linear", (), 10.0),)


def test_a_rule_of_a_program_begins_where_its_algorithm_becomes_faster():
    """Within its class or the one before, if that has a rule; rules of a grid begin at measured sizes."""

    def starts(first, second, size, **options):
        rows = decisions({4: {first: "linear", second: "chain"}})
        (found,) = placements([rows[0], replace(rows[1], from_size=size)], **options)
        assert {rules.decision_at(rows[:1] + [replace(rows[1], from_size=size)], at, **options).algorithm
                for at in (first, second)} == {"linear", "chain"}  # fmt: skip
        return [(rule.size, rule.algorithm) for rule in found.tables["bcast"][4]]

    def program(first, second, size):
        return starts(first, second, size, of_program=True)

    before = [(0, "default"), (128, "linear")]
    assert program(152, 504, None) == [*before, (256, "chain"), (512, "default")]
    assert program(152, 504, 480) == [*before, (480, "chain"), (512, "default")]
    assert program(152, 504, 200) == [*before, (200, "chain"), (512, "default")]
    assert program(152, 250, 170) == [*before, (170, "chain"), (256, "default")]
    # No rule in the class in between.
    assert program(152, 1000, 400) == [*before, (256, "default"), (512, "chain"), (1024, "default")]
    assert starts(152, 504, 480, of_program=False) == [
        (0, "default"),
        (76, "linear"),
        (504, "chain"),
        (1008, "default"),
    ]


def test_a_rule_for_empty_messages_is_for_these_only():
    """A rule of 0 B ends before 1 B, also in the JSON format, where a last size of -1 would mean no limit."""
    (found,) = placements(decisions({4: {0: "linear", 64: "chain"}}), of_program=True)
    sizes = [(rule.size, rule.algorithm) for rule in found.tables["bcast"][4]]
    assert sizes == [(0, "linear"), (1, "default"), (64, "chain"), (128, "default")]
    assert '"msg_size_max": 0,' in writers.openmpi_json(found, CATALOGUE, NUMBERS)
    (found,) = placements(decisions({4: {0: "linear"}}))
    chosen = [selected(found.tables["bcast"], 4, size).algorithm for size in (0, 1, 1 << 20)]
    assert chosen == ["linear", "default", "default"]


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
    """Compare with the order of COLLTYPE_T in coll_base_functions.h."""
    words = """allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather gatherv reduce reduce_scatter
        reduce_scatter_block scan scatter scatterv"""
    order = words.split()
    assert all(order[number] == name for name, number in rules.COLLECTIVE_IDS.items())
    assert {"allgatherv", "alltoallv", "reduce_scatter"} <= set(rules.COLLECTIVE_IDS)


@pytest.mark.parametrize(("collective", "number", "algorithm"), [
    ("allgatherv", 1, "ring"), ("reduce_scatter", 12, "recursive_halving"),
])  # fmt: skip
def test_a_file_of_every_collective_that_open_mpi_tunes(collective, number, algorithm):
    (found,) = placements(decisions({4: {8: algorithm}}, collective))
    known = NUMBERS[collective][algorithm]
    text = numbers_in(writers.openmpi_rules(found, CATALOGUE, [], NUMBERS))
    assert text[1] == [str(number)] and [str(known)] in [words[1:2] for words in text]
    # The benchmark counts like the library: no size is multiplied by the number of processes.
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


def test_han_rules_by_hand():
    (found,) = placements(decisions({1: {1: "linear"}, 4: {1: "linear", 8: "chain", 64: "default"}}))
    assert numbers_in(writers.han_rules(found, CATALOGUE, "han", ["why"])) == [
        ["1"], ["bcast"], ["1"], ["global_communicator"], ["3"],
        ["1"], ["2"], ["0", "tuned"], ["2", "han"],
        ["4"], ["2"], ["0", "tuned"], ["64", "han"],
        ["5"], ["1"], ["0", "han"],
    ]  # fmt: skip


def test_han_keeps_its_own_default_where_the_other_file_has_no_rule():
    """Open MPI has one radix for all rules, and no algorithm of the collectives library."""
    (found,) = placements(
        decisions({4: {1: "knomial:radix=4", 8: "knomial:radix=4", 64: "knomial:radix=8", 512: "node"}})
    )
    text = writers.openmpi_rules(found, CATALOGUE, [], NUMBERS)
    assert numbers_in(text)[-6:-3] == [["2"], ["0", "7", "0", "0"], ["64", "0", "0", "0"]]
    assert numbers_in(writers.han_rules(found, CATALOGUE, "han", []))[-7:-3] == [
        ["4"],
        ["2"],
        ["0", "tuned"],
        ["64", "han"],
    ]


def test_an_algorithm_that_only_the_collectives_library_has_is_left_to_open_mpi():
    for collective, entries in CATALOGUE.algorithms.items():
        for name, entry in entries.items():
            if collective in writers.LIBRARY and "library" in entry and "openmpi" not in entry:
                (found,) = placements(decisions({4: {1: name}}, collective))
                for version in (1, 2):
                    text = writers.openmpi_rules(found, CATALOGUE, [], NUMBERS, version)
                    assert numbers_in(text)[-1][:2] == ["0", "0"], f"{collective} {name}: {text}"
                assert json.loads(writers.openmpi_json(found, CATALOGUE, NUMBERS))["collectives"] == {}


def test_intel_ranges_and_what_it_lacks():
    """A variable applies to all calls: no range of it leaves some to the library, and ranges are of sizes or of ranks."""

    def written(table):
        return writers.intel_variables(placements(decisions(table))[0], CATALOGUE, []).strip()

    export = "export I_MPI_ADJUST_BCAST="
    assert written({4: {1: "binomial", 8: "knomial"}}) == export + "'1:0-7;8:8-2147483647'"
    by_ranks = {4: {1: "binomial", 8: "binomial"}, 8: {1: "knomial", 8: "knomial"}}
    assert written(by_ranks) == export + "'1:0-2147483647@4-7;8:0-2147483647@8-2147483647'"
    all_calls = "# bcast: left to Intel MPI: its variable would apply to all calls"
    assert written({4: {1: "binomial", 8: "default"}}) == all_calls
    assert written({4: {1: "binomial", 8: "knomial"}, 8: {1: "binomial", 8: "binomial"}}) == all_calls
    assert written({4: {1: "binomial", 8: "chain"}}) == "# bcast: left to Intel MPI: no equivalent of chain"


@pytest.mark.parametrize(
    ("other_us", "small_weight", "chosen"),
    [
        (11.0, 1.0, ["knomial", "binomial"]),  # 10 % slower at one size, and 50 % faster at the other
        (30.0, 1.0, ["default", "default"]),
        (30.0, 0.1, ["knomial", "binomial"]),
        (None, 1.0, ["default", "default"]),  # nothing else was measured there
    ],
)
def test_intel_default_is_replaced_where_the_collective_gains(other_us, small_weight, chosen):
    """The default is decided at 8 bytes, and binomial, twice as fast as the default, at 1024."""
    rows = decisions({4: {8: "default", 1024: "binomial"}})
    rows = [replace(one, gain_pct=100.0 * (one.algorithm != "default")) for one in rows]
    times = [("default", 8, 10.0), ("default", 1024, 20.0), ("binomial", 1024, 10.0)]
    times += [("knomial", 8, other_us), ("linear", 8, other_us * 2)] if other_us else []
    measured = [
        Measurement("bcast", name, "", "core", 2, 4, size, launch, us, None)
        for name, size, us in times
        for launch in (1, 2)
    ]
    found = intel.settled(rows, measured, lambda collective, processes, size: small_weight if size == 8 else 1.0)
    assert [one.algorithm for one in found] == chosen


def test_intel_default_stays_where_nothing_else_was_decided():
    """Even if another algorithm has a lower median, within the noise."""
    rows = decisions({4: {8: "default"}})
    measured = [
        Measurement("bcast", name, "", "core", 2, 4, 8, 1, us, None)
        for name, us in (("default", 2.0), ("knomial", 1.9))
    ]
    assert [one.algorithm for one in intel.settled(rows, measured, lambda *_: 1.0)] == ["default"]


def test_intel_by_the_catalogues_numbers_and_the_variables_of_a_cell():
    (found,) = placements(decisions({4: {1: "preset_2"}}, collective="iallreduce"))
    text = writers.intel_variables(found, CATALOGUE, ["why"])
    assert exported(text) == {"I_MPI_ADJUST_IALLREDUCE": "2:0-2147483647"}


def test_mpich_only_where_one_algorithm_serves_all_sizes():
    one = trees.variables(placements(decisions({4: {1: "binomial", 8: "binomial"}}))[0], CATALOGUE, [])
    assert "export MPIR_CVAR_BCAST_INTRA_ALGORITHM='binomial'" in one
    for sizes in ({1: "binomial", 8: "chain"}, {1: "binomial", 8: "default"}, {1: "default", 8: "default"}):
        table = {2: {1: "binomial", 8: "binomial"}, 4: sizes}
        left = trees.variables(placements(decisions(table))[0], CATALOGUE, [])
        assert "export" not in left
        assert "bcast: left to MPICH" in left
    above = trees.variables(placements(decisions({4: {64: "binomial", 128: "binomial"}}))[0], CATALOGUE, [])
    assert above == one
    nothing = trees.variables(placements(decisions({4: {1: "default", 8: "default"}}))[0], CATALOGUE, [])
    assert "export" not in nothing and "left to MPICH (default)" in nothing


def test_library_rules_say_where_ranks_are():
    (found,) = placements(decisions({4: {1: "binomial", 8: "default"}, 48: {1: "linear", 8: "default"}}))
    text = writers.library_rules(found, CATALOGUE, [], {"bcast": [(4, 1), (48, 2)]})
    assert numbers_in(text) == [
        ["bcast", "1", "4", "7", "->", "ompi_binomial"], ["bcast", "1", "4", "*", "->", "default"],
        ["bcast", "2", "24", "7", "->", "ompi_linear"], ["bcast", "2", "24", "*", "->", "default"],
    ]  # fmt: skip


def test_library_rules_of_indistinguishable_counts_are_those_of_the_largest():
    (found,) = placements(decisions({47: {1: "default"}, 48: {1: "linear"}}))
    text = writers.library_rules(found, CATALOGUE, [], {"bcast": [(47, 2), (48, 2)]})
    assert numbers_in(text) == [
        ["bcast", "2", "24", "1", "->", "ompi_linear"], ["bcast", "2", "24", "*", "->", "default"],
    ]  # fmt: skip


def test_library_rules_for_alltoallv_count_all_that_a_rank_sends():
    (found,) = placements(decisions({48: {8: "node", 64: "pairwise"}}, "alltoallv"))
    text = writers.library_rules(found, CATALOGUE, [], {"alltoallv": [(48, 2)]})
    assert numbers_in(text)[:2] == [
        ["alltoallv", "2", "24", str(64 * 48 - 1), "->", "node"],
        ["alltoallv", "2", "24", str(128 * 48 - 1), "->", "ompi_pairwise"],
    ]  # fmt: skip


def test_open_mpis_files_have_no_algorithm_of_the_collectives_library():
    (found,) = placements(decisions({48: {16: "node", 64: "linear"}}))
    numbers = [words for words in numbers_in(writers.openmpi_rules(found, CATALOGUE, [], NUMBERS)) if len(words) == 4]
    linear = str(NUMBERS["bcast"]["basic_linear"])
    assert numbers[1:3] == [["0", "0", "0", "0"], ["64", linear, "0", "0"]]
    (scope,) = json.loads(writers.openmpi_json(found, CATALOGUE, NUMBERS))["collectives"]["bcast"]
    assert [rule["msg_size_min"] for rule in scope["rules"]] == [64]


def test_a_file_of_other_content_is_another_cell():
    assert Rules("a").to_json() != Rules("b").to_json()
