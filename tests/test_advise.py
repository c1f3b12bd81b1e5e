"""`./study advise`: its decisions, their basis, and its answer without a decision."""

import argparse
import json
import shutil

import pytest
from collstudy.base.paths import ROOT
from collstudy.cli.main import main
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import advise, emission, rules, trees, writers
from collstudy.tuning.advise import answer
from collstudy.tuning.question import Question, parse_size
from test_advise_atlas import atlas_of, pair

CATALOGUE = Configuration(ROOT / "config").catalogue
HEADER = (
    "collective,mapping,nodes,allocated,processes,size_bytes,algorithm,parameters,reason,basis,expected_us,default_us,gain_pct,"
    "noise_pct,noise_from\n"
)


def decide(folder, *rows):
    (folder / "tuning" / "decisions.csv").write_text(HEADER + "".join(f"{row}\n" for row in rows))


def answered(folder, nodes=2, processes=8, size=1024, collective="bcast"):
    """Return whether a decision for a collective by core is known, and the answer."""
    known, lines = answer(folder, Question(collective, "core", nodes, processes, size), CATALOGUE)
    return known, "\n".join(lines)


def describe(folder, **changes):
    """Change the description of the study."""
    document = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(document | changes))


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a study, in the folder of all results."""
    study = tmp_path / "toy"
    (study / "tuning").mkdir(parents=True)
    (study / "tables").mkdir()
    document = {
        "name": "toy",
        "simulated": False,
        "machine": {"label": "Toy"},
        "provenance": {"mpi": "mpich"},
        "collectives": {"bcast": {"algorithms": [{"name": "default"}, {"name": "chain"}]}},
    }
    (study / "study.json").write_text(json.dumps(document))
    decide(
        study,
        "bcast,core,2,2,8,1,default,,within noise,measured,1,1,0,2,launches",
        "bcast,core,2,2,8,1024,chain,,better,measured,10,12,20,2,launches",
        "bcast,core,2,2,9,1024,chain,,better,interpolated,11,13,18,2,launches",
        "bcast,core,2,2,10,1024,chain,,better,measured,12,14,17,2,launches",
    )
    rows = ["collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us"]
    rows += [f"bcast,chain,,core,2,8,1024,{n},{9 + n / 2}" for n in range(1, 4)]
    rows += ["bcast,default,,core,2,8,1024,1,12", "bcast,chain,,core,2,10,1024,1,12"]
    (study / "measurements.csv").write_text("\n".join(rows) + "\n")
    return study


def test_sizes():
    assert [parse_size(text) for text in ("64KiB", "64k", "1MiB", "8", "2kb")] == [65536, 65536, 1 << 20, 8, 2000]
    with pytest.raises(argparse.ArgumentTypeError, match="not a size"):
        parse_size("much")


def test_a_measured_cell(folder):
    known, text = answered(folder)
    assert known and "use: chain" in text and "10 us, [9.5, 10.5] us over 3 launches" in text
    assert "the default takes 20 % longer (12 us)" in text and "measured, at 8 processes" in text
    assert "not verified" in text and "rules file: none; add `analysis: {tuning: {}}`" in text
    (folder / "tuning" / "mpich-core-n2.json").write_text("{}")
    assert f"rules file: {folder}/tuning/mpich-core-n2.json" in answered(folder)[1]


def test_the_interval_of_one_launch_says_where_its_noise_is_from(folder):
    def interval(noise):
        decide(folder, f"bcast,core,2,2,10,1024,chain,,better,measured,12,14,17,{noise}")
        return next(line for line in answered(folder, processes=10)[1].splitlines() if "expected" in line).split(
            "us, "
        )[1]

    assert interval("10,neighbours") == "[9.65, 14.4] us (one launch; noise from neighbouring cells)"
    assert interval("10,launches") == "[9.65, 14.4] us (one launch; noise from launches of other cells)"
    assert (
        interval("10,same messages") == "[9.65, 14.4] us (one launch; noise from algorithms that were measured twice)"
    )
    assert interval(",unknown") == "one launch: no interval"
    # The decision may expect another latency, that of the default and of the algorithm that it runs together.
    decide(folder, "bcast,core,2,2,10,1024,chain,,better,measured,13,14,17,10,neighbours")
    assert "expected latency: 12 us, [9.65, 14.4] us" in answered(folder, processes=10)[1]


@pytest.mark.parametrize("size", [600, 1500])
def test_a_size_that_was_not_measured_has_the_decision_of_another(folder, size):
    """The smallest one of a shape also decides from half of its size on."""
    known, text = answered(folder, processes=10, size=size)
    assert known and f"{size} B was not measured; the decision for 1024 B applies" in text


def test_launches_that_an_import_check_flagged_count_nowhere(folder):
    head, *rows = (folder / "measurements.csv").read_text().splitlines()
    rows = [f"{row}," for row in rows] + ["bcast,chain,,core,2,8,1024,4,900,outlier"]
    (folder / "measurements.csv").write_text("\n".join([f"{head},flag", *rows]) + "\n")
    assert "10 us, [9.5, 10.5] us over 3 launches" in answered(folder)[1]


def test_a_study_without_the_default(folder):
    """It recommends the default, but says nothing of its latency."""
    why = "no measurements of the default: it is kept"
    decide(folder, f"bcast,core,2,2,8,1024,default,,{why},,,,,2,launches")
    rows = (folder / "measurements.csv").read_text().splitlines()
    (folder / "measurements.csv").write_text("\n".join(row for row in rows if ",default," not in row) + "\n")
    _, text = answered(folder)
    assert f"use: default ({why})" in text and "expected latency: not known\n" in text
    assert "based on: 1 algorithm, measured, but not default" in text


def test_an_algorithm_with_parameters(folder):
    for name in ("measurements.csv", "tuning/decisions.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(",chain,,", ",chain,fanout=2,"))
    known, text = answered(folder)
    assert known and "use: chain [fanout=2]" in text
    assert "10 us, [9.5, 10.5] us over 3 launches" in text
    assert "based on: chain fanout=2 and 1 other algorithm, measured, at 8 processes" in text


def test_a_simulated_study_says_how_far_it_is_off(tmp_path, folder):
    describe(folder, simulated=True, machine={"name": "toy", "label": "Toy, simulated"})
    assert "no study compares the machine with a real one" in answered(folder)[1]
    compared = tmp_path / "judge"
    (compared / "tables").mkdir(parents=True)
    (compared / "study.json").write_text(json.dumps({"name": "judge", "machine": {"name": "toy"}, "provenance": {}}))
    (compared / "tables" / "accuracy.csv").write_text(
        "collective,algorithm,mapping,held_out,cells,median_abs_error_pct,p90_abs_error_pct\n"
        "bcast,all,all,TRUE,90,11.2,29\nbcast,chain,core,FALSE,9,1,2\nbcast,all,core,TRUE,30,8.4,24.6\n"
    )
    _, text = answered(folder)
    assert "(Toy, simulated):" in text
    assert "simulated, typically off by 8 % (median of 30 held-out cells, mapping core" in text
    assert "more than 25 %; study judge" in text


def test_between_measured_counts(folder):
    known, text = answered(folder, 2, 9, 1500)
    assert known and "interpolated, between the neighbours' 10 and 12 us" in text
    assert "at 8 and 10 processes" in text and "1500 B was not measured" in text


def test_a_sampled_study_rests_on_its_model(folder):
    describe(folder, sampling={"rounds": 2})
    with open(folder / "tuning" / "decisions.csv", "a") as stream:
        stream.write("bcast,core,2,2,11,1024,default,,no default arm,interpolated,,,,,unknown\n")
    _, text = answered(folder, 2, 9, 1024)
    assert "11 us, interpolated\n" in text and "based on: a model of 3 points measured in rounds" in text
    _, text = answered(folder, 2, 11, 1024)
    assert "use: default (no default arm)" in text and "expected latency: not known" in text


@pytest.mark.parametrize("processes, size", [(48, 1024), (8, 4096)])
def test_it_does_not_know(folder, processes, size):
    known, text = answered(folder, 2, processes, size)
    assert not known
    assert "no decision" in text and "cells to measure: bcast with default, chain" in text
    assert "decided on 2 nodes: 8 to 10 processes, 1 to 1024 B" in text


def test_a_withdrawn_rule_is_not_advised(folder):
    (folder / "tables" / "tuning-withdrawn.csv").write_text(
        "collective,mapping,nodes,processes,size_bytes,rule,speedup\nbcast,core,2,8,1024,chain,0.9\n"
    )
    assert "use: default (chain was slower on fresh launches)" in answered(folder)[1]


def test_a_withdrawn_rules_latency_is_not_that_of_the_default(folder):
    """At nine processes nothing was measured: the expected latencies are those of the decision."""
    (folder / "tables" / "tuning-withdrawn.csv").write_text(
        "collective,mapping,nodes,processes,size_bytes,rule,speedup\nbcast,core,2,9,1024,chain,0.9\n"
    )
    _, text = answered(folder, 2, 9)
    assert (
        "use: default (chain was slower on fresh launches)" in text and "expected latency: 13 us, interpolated" in text
    )


HOW = {
    "suite": "",
    "suite_version": "",
    "mpi": "openmpi",
    "mpi_version": "5.0.11",
    "simulator": "",
    "simulator_version": "",
}
PLACE = "measured,10,12,20,2,launches"


def written(folder, withdrawn=(), of_program=False):
    """Write the rules file of the decisions for Open MPI 5.0.11, without the *withdrawn* ones."""
    describe(folder, provenance=HOW, title="Toy", judged_by_runs=of_program)
    decisions = rules.read_decisions(folder / "tuning" / "decisions.csv")
    (found,) = rules.placements(decisions, set(withdrawn), of_program)
    emission.rules_path(folder / "tuning", "openmpi", found).write_text(
        writers.openmpi_rules(found, CATALOGUE, [], NUMBERS)
    )


def test_the_rule_of_the_file_is_advised(folder):
    written(folder)
    _, text = answered(folder, 2, 9, 1500)
    assert "use: chain" in text and f"rules file: {folder}/tuning/openmpi-core-n2.rules (usage" in text


def test_a_rule_that_was_withdrawn_with_others_is_not_advised(folder):
    """tuning-withdrawn.csv lists the verified cells that were slower, and the file has lost the whole rule."""
    (folder / "tables" / "tuning-withdrawn.csv").write_text(
        "collective,mapping,nodes,processes,size_bytes,rule,speedup\nbcast,core,2,8,1024,chain,0.9\n"
    )
    written(folder, [("bcast", "core", 2, processes, 1024) for processes in (8, 9, 10)])
    _, text = answered(folder, 2, 9)
    assert "use: default (the rule chain was withdrawn: it was slower on fresh launches)" in text
    assert "expected latency: 13 us" in text and "rules file" not in text


def test_a_decision_that_the_format_cannot_express_is_not_in_the_file(folder):
    decide(
        folder,
        f"bcast,core,2,2,8,1024,knomial,radix=4,better,{PLACE}", f"bcast,core,2,2,8,2048,knomial,radix=4,better,{PLACE}",
        f"bcast,core,2,2,8,4096,knomial,radix=8,better,{PLACE}",
        # Open MPI ignores the size.
        f"alltoallv,core,2,2,8,64,linear,,better,{PLACE}", f"alltoallv,core,2,2,8,4096,pairwise,,better,{PLACE}",
    )  # fmt: skip
    written(folder)
    where = "openmpi-core-n2.rules selects the library's default here: its format cannot express the decision"
    for collective, size, algorithm in (("bcast", 4096, "knomial [radix=8]"), ("alltoallv", 64, "linear")):
        _, text = answered(folder, size=size, collective=collective)
        assert f"use: {algorithm}" in text and where in text
    assert "(usage: README.md beside it)" in answered(folder, size=1024)[1]


def test_a_decision_that_mpich_cannot_express_was_not_withdrawn(folder):
    """MPICH knows no size of scans: with two rules, the file leaves all sizes to MPICH."""
    decide(
        folder, f"scan,core,2,2,8,64,recursive_doubling,,better,{PLACE}", "scan,core,2,2,8,4096,default,,tied,measured,12,12,0,2,"
    )  # fmt: skip
    describe(folder, provenance=HOW | {"mpi": "mpich", "mpi_version": "5.0.2"}, title="Toy")
    (found,) = rules.placements(rules.read_decisions(folder / "tuning" / "decisions.csv"))
    path = emission.rules_path(folder / "tuning", "mpich", found)
    own = {"collective=scan": {"comm_type=intra": {"algorithm=MPIR_Scan_intra_smp": {}}}}
    device = {"collective=scan": {"comm_type=intra": {"composition=MPIDI_Scan_intra_composition_alpha": {}}}}
    path.write_text(json.dumps(trees.trees(found, CATALOGUE, (own, device))[0]))
    _, text = answered(folder, size=64, collective="scan")
    assert "use: recursive_doubling" in text and "its format cannot express the decision" in text, text


def test_rules_of_a_program_are_for_its_classes_of_sizes(folder):
    decide(folder, f"bcast,core,2,2,8,20,linear,,better,{PLACE}", f"bcast,core,2,2,8,1500,chain,,better,{PLACE}")
    written(folder, of_program=True)
    for size, algorithm in ((16, "linear"), (31, "linear"), (1024, "chain"), (2047, "chain")):
        known, text = answered(folder, size=size)
        assert known and f"use: {algorithm}" in text and "(usage: README.md beside it)" in text
    assert not any(answered(folder, size=size)[0] for size in (15, 32, 1023, 2048))


def test_the_file_of_intel_mpi_may_select_another_algorithm_than_the_default(folder):
    """Its variables leave no size to the library (intel.settled())."""
    describe(folder, provenance=HOW | {"mpi": "impi"})
    (folder / "tuning" / "intel-core-n2.sh").write_text("export I_MPI_ADJUST_BCAST='1'\n")
    _, text = answered(folder, size=1)
    assert "use: default" in text and "intel-core-n2.sh selects binomial here: its format" in text


def test_a_program_without_a_tuning_file_keeps_the_default(folder):
    (folder / "tuning" / "result.txt").write_text("No tuning file: the program is not clearly faster with it.\n")
    _, text = answered(folder)
    assert "use: default (the program keeps no tuning file)" in text and "analysis" not in text


def test_the_file_of_nccl_is_named(folder):
    describe(folder, provenance=HOW | {"mpi": "nccl"})
    decide(folder, f"bcast,core,2,2,8,1024,ring,protocol=ll,better,{PLACE}")
    (folder / "tuning" / "nccl-core.csv").write_text("broadcast,1024,2047,ring,ll,-1,2,8\n")
    assert "tuning/nccl-core.csv (usage" in answered(folder)[1]


def test_a_file_for_several_numbers_of_nodes_answers_for_each(folder):
    """By core, eight ranks fill the first of two allocated nodes, and twelve use both; sixteen have run on two of four."""
    decide(
        folder,
        "bcast,core,1,2,8,1024,chain,,better,measured,10,12,20,2,launches",
        "bcast,core,2,2,12,1024,chain,,better,interpolated,11,13,18,2,launches",
        "bcast,core,2,4,16,1024,chain,,better,measured,12,14,17,2,launches",
    )
    with open(folder / "measurements.csv", "a") as stream:
        stream.write("bcast,chain,,core,4,16,1024,1,12\nbcast,chain,,core,2,16,1024,1,99\n")
    (folder / "tuning" / "mpich-core-n2.json").write_text("{}")
    known, text = answered(folder, 1, 8, 1024)
    assert known and "10 us, [9.5, 10.5] us over 3 launches" in text and "tuning/mpich-core-n2.json" in text
    known, text = answered(folder, 2, 12, 1024)
    assert (
        known and "interpolated, between the neighbours' 10 and 12 us" in text and "tuning/mpich-core-n2.json" in text
    )
    # Eight ranks on two nodes, four on each, were not measured.
    known, text = answered(folder)
    assert not known and "mapping core, 2 nodes, 8 processes" in text
    assert "decided on 1 node: 8 processes, 1024 B" in text and "decided on 2 nodes: 12 to 16 processes" in text


def test_with_a_file_for_each_number_of_nodes_its_own_answers(folder):
    decide(
        folder,
        "bcast,core,1,1,8,1024,linear,,better,measured,5,6,20,2,launches",
        "bcast,core,2,2,8,1024,chain,,better,measured,10,12,20,2,launches",
    )
    for nodes, algorithm in ((1, "linear"), (2, "chain")):
        (folder / "tuning" / f"mpich-core-n{nodes}.json").write_text("{}")
        _, text = answered(folder, nodes, 8, 1024)
        assert f"use: {algorithm}" in text and f"tuning/mpich-core-n{nodes}.json" in text


def test_decisions_of_an_earlier_version_are_none(folder):
    path = folder / "tuning" / "decisions.csv"
    path.write_text(path.read_text().replace("allocated", "other"))
    known, text = answered(folder)
    assert not known and "of an earlier version (no column allocated); ./study run toy decides again" in text


def test_the_command_says_what_is_missing(tmp_path):
    with pytest.raises(advise.StudyError, match="needs --size"):
        advise.advise(tmp_path, Question("bcast", "core", 2, 8, None), None, CATALOGUE)
    with pytest.raises(advise.StudyError, match="no decisions yet"):
        advise.advise(tmp_path, Question("bcast", "core", 2, 8, 8), None, CATALOGUE)
    with pytest.raises(advise.StudyError, match="study thin has no decisions: .*analysis: .* ./study run thin"):
        advise.advise(tmp_path, Question("bcast", "core", 2, 8, 8), "thin", CATALOGUE)


def test_studies_without_the_collective_are_one_line(tmp_path, folder):
    results = tmp_path / "results"
    for name, collective in (("first", "bcast"), ("second", "reduce"), ("third", "gather")):
        shutil.copytree(folder, results / name)
        describe(results / name, name=name, collectives={collective: {"algorithms": [{"name": "default"}]}})
    known, lines = advise.advise(results, Question("bcast", "core", 2, 8, 1024), None, CATALOGUE)
    assert known and "use: chain" in lines[2] and lines[-1] == "No bcast in: second, third"
    known, lines = advise.advise(results, Question("scan", "core", 2, 8, 1024), None, CATALOGUE)
    assert not known and lines[1:] == [
        "No study has a decision for this call, and no machine of the atlas was measured near it.",
        "No scan in: first, second, third",
    ]


def test_the_most_similar_machine_answers_first(tmp_path, folder):
    results = tmp_path / "results"
    for name, cores in (("large", 64), ("small", 12)):
        shutil.copytree(folder, results / name)
        levels = [{"name": "node", "count": 2}, {"name": "socket", "count": 2}, {"name": "core", "count": cores}]
        describe(results / name, name=name, machine={"label": name.title(), "levels": levels})
    asker = [("node", 4), ("socket", 2), ("core", 12)]
    known, lines = advise.advise(results, Question("bcast", "core", 2, 8, 1024), None, CATALOGUE, asker)
    heads = [line for line in lines if line.startswith("Study")]
    assert known and heads == ["Study small (Small, MPICH, measured):", "Study large (Large, MPICH, measured):"]
    assert lines[2] == "  the same shape as the requested machine: 24 cores per node in 2 sockets"
    assert (
        "  differs from the requested machine: 128 cores per node in 2 sockets; the requested one has 24 cores per node in 2 sockets"
        in lines
    )


def test_a_study_that_has_decided_goes_before_its_cells(tmp_path, folder):
    folder.rename(tmp_path / "there")
    atlas = [atlas_of(*pair(3, 2, processes=8))]
    _, lines = advise.advise(tmp_path, Question("bcast", "core", 2, 8, 1024), None, CATALOGUE, None, atlas)
    assert "Study toy (Toy, MPICH, measured):" in lines and not any(line.startswith("Atlas") for line in lines)


def test_the_version_of_the_library_is_named(folder):
    describe(folder, provenance={"mpi": "mpich", "mpi_version": "5.0.2"})
    assert "Study toy (Toy, MPICH 5.0.2, measured):" in answered(folder)[1]
    describe(folder, simulated=True, machine={"name": "toy", "label": "Toy, simulated"})
    assert "Study toy (Toy, simulated):" in answered(folder)[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--nodes", "0"), "argument --nodes: '0' is not a whole number of 1 or more"),
        (("--ppn", "many"), "argument --ppn: 'many' is not a whole number of 1 or more"),
        (("--nodes", "1", "--ppn", "1"), "a collective needs at least two processes (--nodes times --ppn)"),
        (("--mapping", "cor"), "--mapping: unknown mapping 'cor' (did you mean 'core'?); known: BFNF,"),
        (("--study", "leonrdo"), "no study 'leonrdo': config/studies/leonrdo.yaml does not exist (did you mean 'leonardo'?)"),
        (("--machine", "thn"), "config/machines/thn.yaml: no such file (did you mean 'thin'?); known: "),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered(capsys, wrong, message):
    asked = ["--collective", "bcast", "--nodes", "2", "--ppn", "4", "--mapping", "core", "--size", "8", *wrong]
    try:
        assert main(["advise", *asked]) == 2
    except SystemExit as ended:
        assert ended.code == 2
    assert message in capsys.readouterr().err


def test_labels_of_questions_are_singular_for_one():
    assert Question("bcast", "core", 1, 8, 4).label == "bcast on 1 node, 8 processes, mapping core, 4 B"
