"""Verification: its cells and pairs, verdicts, and withdrawn rules."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.paths import ROOT
from collstudy.launch import openmpi
from collstudy.project import tuner
from collstudy.project.studies import Project
from collstudy.sources import verifier_of, verifying
from collstudy.study.cells import expand
from collstudy.study.config import Configuration
from collstudy.study.description import Study
from collstudy.study.selection import Default
from collstudy.tuning import rules
from collstudy.tuning.rules import Rule
from conftest import csv_rows, must
from made_cells import VERSIONS
from test_tuning import decisions

CONFIG = Configuration(ROOT / "config")


@pytest.fixture
def cell():
    study: Study = CONFIG.study("tuning")
    return next(c for c in expand(study, CONFIG.catalogue, VERSIONS) if c.algorithm == "default" and c.processes == 24)


def test_verified_counts_are_on_and_off_the_grid():
    found = verifying.verified_counts([2, 4, 8, 16, 24, 32, 48])
    assert [count for count, on_grid in found if on_grid] == [4, 16, 24, 48]
    assert all(count not in (2, 4, 8, 16, 24, 32, 48) for count, on_grid in found if not on_grid)
    assert verifying.verified_counts([2]) == [(2, True)]
    # Over a range of 512 and more only midpoints are decided, which R rounds to even numbers (fill_counts() in tuning.R).
    assert verifying.verified_counts([127, 1024]) == [(127, True), (1024, True), (576, False)]


def test_sizes_between_those_that_decided():
    assert verifying.size_ranges((1, 1024)) == [((1, 1024), True), ((3, 1024), False)]
    assert verifying.size_ranges((512, 1024)) == [((512, 1024), True)]
    assert verifying.size_ranges(None) == [(None, True)]


def test_arms_are_cells_of_their_own_and_the_content_of_the_file_is_part_of_them(cell):
    default, tuned = verifying.arms(cell, {"library": "a", "own": "b"})
    assert len({cell.digest, default.digest, tuned.digest}) == 3
    assert tuned.algorithm == "tuned"
    assert tuned.selection.library == {"COLL_BARRIER": cell.selection.library["COLL_BARRIER"]}
    assert verifying.arms(cell, {"library": "c", "own": "b"})[1].digest != tuned.digest
    assert verifying.arms(cell, {"library": "a", "own": "x"})[1].digest == tuned.digest
    real = replace(cell, machine={**cell.machine, "kind": "local"}, selection=Default())
    assert verifying.arms(real, {"library": "a", "own": "b"})[1].selection.text == "b"
    several = verifying.arms(real, {"library": "a", "own": "b", "han": "h"})[1]
    told = openmpi.selection_arguments(several, None)
    assert [
        Path(told[told.index(f"coll_{name}_dynamic_rules_filename") + 1]).read_text() for name in ("tuned", "han")
    ] == ["b", "h"]
    assert "coll" not in told and several.digest != verifying.arms(real, {"library": "a", "own": "b"})[1].digest


VARIANTS = """
title: Variants
question: Which segments, how many chains?
machine: thin
chapter: tuning
sweeps:
  - collective: bcast
    algorithms:
      - default
      - {name: chain, fanout: 8, segment_bytes: 16384}
      - {name: chain, fanout: 4, segment_bytes: 65536}
    mappings: [core]
    processes: [48]
    sizes: {from: 32768, to: 524288}
    iterations: 1
    warmup: 1
analysis:
  tuning: {}
"""


@pytest.mark.long
def test_segments_and_fan_out_are_candidates_from_the_decision_to_the_advice(checkout):
    checkout.write("config/studies/tiny.yaml", VARIANTS)
    must(checkout.snakemake("--cores", "2", "--", "results/tiny/tuning/README.md"))
    folder = checkout.folder / "results" / "tiny"

    def rows(name):
        return csv_rows(folder / name)

    # The best variant depends on the simulator: each row below must name the same one.
    variants = {
        int(row["size_bytes"]): row["parameters"]
        for row in rows("tuning/decisions.csv")
        if row["algorithm"] != "default"
    }
    assert len(set(variants.values())) == 2, variants
    texts = {
        size: rules.library_text({"algorithm": "chain", **dict(rules.parse_parameters(name))})
        for size, name in variants.items()
    }
    own = {row["size_bytes"]: row for row in rows("tables/tuning-verification.csv") if row["on_grid"] == "TRUE"}
    checked = {
        row["rule"] for row in rows("tuning/check.csv") if (row["agrees"], row["tells_apart"]) == ("TRUE", "TRUE")
    }
    classic = (folder / "tuning" / "openmpi-core-n2.rules").read_text()
    for size, text in texts.items():
        parameters = dict(rules.parse_parameters(variants[size]))
        assert f" 2 {parameters['fanout']} {parameters['segment_bytes']} # {text}" in classic
        assert f"-> ompi_{text} " in (folder / "tuning" / "coll-core-n2.rules").read_text()
        assert text in checked
        assert own[str(size)]["rule"] == text and own[str(size)]["verdict"] == "faster"
        # A new simulation of the rules file equals one of the variant itself.
        measured = [
            row["latency_us"]
            for row in rows("measurements.csv")
            if (row["size_bytes"], row["parameters"]) == (str(size), variants[size])
        ]
        assert [own[str(size)]["tuned_us"]] == measured
        asked = ["--collective", "bcast", "--nodes", "2", "--ppn", "24", "--mapping", "core", "--size", str(size)]
        answer = checkout.collstudy("advise", *asked)
        assert f"use: chain [{variants[size]}] " in answer.stdout, answer.stdout + answer.stderr
        assert (
            "verified on fresh launches: faster" in answer.stdout
            and f"{folder.name}/tuning/openmpi-core-n2.rules" in answer.stdout
        )


def verifies(cells, decided):
    """Return a source that verifies decisions for simulated *cells*."""
    source = object.__new__(verifying.VerifyingSource)
    source.study, source.context = CONFIG.study("tuning"), SimpleNamespace(catalogue=CONFIG.catalogue)
    source.document, source.grid, source.placements = {"simulated": True}, cells, rules.placements(decided)
    return source


def test_a_rules_file_is_verified_by_launches_that_begin_with_it():
    """Turns of a shared launch can select an algorithm, but the library reads a rules file when it starts."""
    study = CONFIG.study("tuning")
    shared = tuple(replace(sweep, start="shared") for sweep in study.sweeps)
    source = verifies(None, [])
    del source.grid
    source.study = replace(study, source=replace(study.source, sweeps=shared))
    source.context.versions = VERSIONS
    assert source.grid == expand(study, CONFIG.catalogue, VERSIONS)


def test_the_best_known_latency_is_of_algorithms_that_ran(tmp_path):
    head = "collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us,proved\n"
    rows = "bcast,default,,core,1,4,8,1,3,\nbcast,chain,,core,1,4,8,1,1,FALSE\n"
    (tmp_path / "measurements.csv").write_text(head + rows)
    found = tuner.Tuner.best_known(SimpleNamespace(folder=tmp_path))
    assert found == {("bcast", "core", 1, 4, 8): (3.0, "default")}


def test_without_a_default_arm_there_is_nothing_to_verify(cell):
    assert verifies([replace(cell, algorithm="linear")], decisions({24: {1: "default"}}, nodes=1)).pairs() == []


def test_all_sweeps_of_a_collective_are_verified(cell):
    cells = [
        replace(cell, processes=count, sizes=(size, size))
        for size, counts in ((64, (8, 48)), (512, (48,)))
        for count in counts
    ]
    decided = [*decisions({8: {64: "linear"}}, nodes=1), *decisions({48: {64: "linear", 512: "chain"}})]
    pairs = verifies(cells, decided).pairs()
    found = {(pair.processes, pair.default.sizes, pair.on_grid) for pair in pairs}
    assert found == {
        (8, (64, 64), True), (28, (64, 64), False), (48, (64, 64), True), (48, (512, 512), True),
    }  # fmt: skip


def test_ranks_that_the_simulated_library_cannot_tell_apart_are_verified_with_the_same_rule(cell):
    """By node, three and four ranks on two nodes have at most two on each (writers.library_rules())."""
    cells = [
        replace(cell, mapping="node", nodes=2, processes=count, cycle=("node", "socket"), sizes=(64, 64))
        for count in (2, 4)
    ]
    decided = decisions({2: {64: "linear"}, 3: {64: "chain"}, 4: {64: "binomial"}}, mapping="node")
    source = verifies(cells, decided)
    found = {pair.processes: source.rule_of(pair, 64).algorithm for pair in source.pairs()}
    assert found == {2: "linear", 3: "binomial", 4: "binomial"}


def test_a_file_for_all_numbers_of_nodes_is_verified_on_all(cell):
    cells = [replace(cell, nodes=n, processes=4 * n, per_node=4, sizes=(1, 1)) for n in (1, 2)]
    decided = [*decisions({4: {1: "linear"}}, nodes=1), *decisions({8: {1: "chain"}})]
    pairs = verifies(cells, decided).pairs()
    assert [(pair.placement.name, pair.nodes, pair.processes) for pair in pairs] == [
        ("core-n2", 1, 4),
        ("core-n2", 2, 8),
    ]
    # With a file for each number of nodes, only its own.
    cells.append(replace(cells[1], processes=4, per_node=2))
    pairs = verifies(cells, [*decided, *decisions({4: {1: "chain"}})]).pairs()
    assert {(pair.placement.name, pair.nodes, pair.processes) for pair in pairs if pair.on_grid} == {
        ("core-n1", 1, 4), ("core-n2", 2, 4), ("core-n2", 2, 8),
    }  # fmt: skip


def test_ranks_that_fill_one_of_the_allocated_nodes_are_verified_for_one_node(cell, tmp_path):
    """The best known latency is that of the cell, whose number of nodes in measurements.csv is that of the allocation."""
    (pair,) = verifies([replace(cell, sizes=(1, 1))], decisions({24: {1: "linear"}}, nodes=1)).pairs()
    assert (cell.nodes, pair.nodes) == (2, 1)
    rule = rules.selected(pair.placement.tables["bcast"], 24, 1)
    head = "collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us,proved\n"
    (tmp_path / "measurements.csv").write_text(head + "bcast,chain,,core,2,24,1,1,3,\n")
    fake = SimpleNamespace(folder=tmp_path, tie_pct=2, document={"simulated": True})
    fake.best_known = lambda: tuner.Tuner.best_known(fake)
    tuner.Tuner.write_verification(fake, [verifying.Verified(pair, 1, rule, [4.0], [3.5])], [])
    (row,) = csv_rows(tmp_path / "tables" / "tuning-verification.csv")
    assert (row["nodes"], row["best_known_us"], row["best_known"]) == ("1", "3.0", "chain")


def test_ranks_per_node_are_those_of_the_sweep(cell):
    cells = [replace(cell, processes=2 * count, per_node=count, sizes=(1, 1)) for count in (1, 4)]
    pairs = verifies(cells, decisions({2: {1: "linear"}, 8: {1: "chain"}})).pairs()
    for pair in pairs:
        assert {pair.default.per_node, pair.tuned.per_node} == {-(-pair.processes // 2)}
        scopes = [line.split()[1:3] for line in pair.tuned.selection.text.splitlines()]
        assert scopes[0] == ["2", "1"] and scopes[-1] == ["2", "4"], pair.tuned.selection.text
    assert [pair.processes for pair in pairs] == [2, 8, 5]


def verified(placement, processes, size, default, tuned):
    table = placement.tables["bcast"]
    rule = rules.selected(table, processes, size)
    pair = verifying.Pair(placement, "bcast", placement.used["bcast"][8], processes, True, None, None, processes)
    return verifying.Verified(pair, size, rule, default, tuned)


@pytest.mark.parametrize(
    "default, tuned, word",
    [
        ([10.0], [8.0], "faster"), ([10.0], [9.95], "tie"), ([8.0], [10.0], "slower"),
        ([10, 10, 10], [8, 9, 12], "tie"), ([10, 11, 10], [8, 9, 8], "faster"),
    ],
)  # fmt: skip
def test_verdicts(default, tuned, word):
    (placement,) = rules.placements(decisions({8: {1: "linear"}}))
    assert verified(placement, 8, 1, default, tuned).verdict(2) == word


def test_what_verifies_files_is_found_by_the_kind_of_source(tmp_path):
    project = Project(ROOT / "config", tmp_path)
    (placement,) = rules.placements(decisions({8: {1: "linear"}}), set())
    assert verifier_of(project.source("tuning"), []) is None
    assert verifier_of(project.source("orfeo-thin"), [placement]) is None
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / "study.json").write_text('{"simulated": false, "provenance": {"mpi": "smpi-openmpi"}}')
    assert isinstance(verifier_of(project.source("tuning"), [placement]), verifying.VerifyingSource)


def fake_tuner(rows, folder):
    source = SimpleNamespace(judged_by_runs=False)
    fake = SimpleNamespace(folder=folder, decisions=rows, withdrawn=set(), tie_pct=2, source=source)
    fake._is_withdrawn = lambda *a, **k: tuner.Tuner._is_withdrawn(fake, *a, **k)
    return fake


def test_a_rule_slower_on_average_goes_with_all_its_cells(tmp_path):
    rows = decisions({8: {1: "linear", 2: "linear", 4: "chain"}, 9: {1: "linear", 2: "linear", 4: "chain"}})
    (placement,) = rules.placements(rows)
    fake = fake_tuner(rows, tmp_path)
    tuner.Tuner.withdraw(fake, [verified(placement, 9, 2, [10.0], [12.0]), verified(placement, 8, 4, [10.0], [8.0])])
    assert fake.withdrawn == {("bcast", "core", 2, p, s) for p in (8, 9) for s in (1, 2)}
    (again,) = rules.placements(rows, fake.withdrawn)
    assert again.tables["bcast"][8][0] == Rule(0, "default")
    assert "linear" in (tmp_path / "tables" / "tuning-withdrawn.csv").read_text()


def test_of_a_rule_faster_on_average_only_the_slower_cell_goes(tmp_path):
    rows = decisions({8: {1: "linear", 2: "linear"}})
    (placement,) = rules.placements(rows)
    fake = fake_tuner(rows, tmp_path)
    tuner.Tuner.withdraw(fake, [verified(placement, 8, 1, [10.0], [2.0]), verified(placement, 8, 3, [10.0], [12.0])])
    assert fake.withdrawn == {("bcast", "core", 2, 8, 2)}


def test_a_slower_size_far_above_its_decision_withdraws_it(tmp_path):
    """With `sizes: {factor: 4}`, a decision applies up to four times its size."""
    rows = decisions({8: {4: "linear", 16: "linear", 64: "chain"}})
    (placement,) = rules.placements(rows)
    fake = fake_tuner(rows, tmp_path)
    tuner.Tuner.withdraw(fake, [verified(placement, 8, 4, [10.0], [2.0]), verified(placement, 8, 48, [10.0], [12.0])])
    assert fake.withdrawn == {("bcast", "core", 2, 8, 16)}
