"""MPICH 5.1's named subtrees: written, read back, and searched like in its own code (csel.c of pull request 7547)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from collstudy.base.errors import StudyError
from collstudy.tuning import emission, trees
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.rules import Placement, Rule, selected
from test_tuning import decisions, placements
from test_tuning_emitted import STUDY
from test_tuning_files import CATALOGUE, converted, explained, faults, known, written


def holds(key: str, call: dict[str, Any]) -> bool:
    """Return whether a condition is true for a call (`MPII_Csel_parse_operator` and `MPII_Csel_run_condition`)."""
    if key == "any" or key.endswith("(any)"):
        return True
    if key.startswith("collective="):
        return key.removeprefix("collective=") == f"{call['collective']}-intra"
    negated = key.startswith("!")
    key = key.removeprefix("!")
    for name in ("comm_size", "avg_msg_size", "total_msg_size"):
        if key.startswith(name):
            bound = key.removeprefix(name)
            if bound.startswith("("):
                found = call[name] <= int(bound[1:-1])
            elif bound.startswith("<="):
                found = call[name] <= int(bound[2:])
            elif bound.startswith("<"):
                found = call[name] < int(bound[1:])
            elif bound.startswith(">="):
                found = call[name] >= int(bound[2:])
            else:
                found = call[name] > int(bound[1:])
            return found != negated
    return call[key] != negated


def search(named: dict[str, Any], tree: Any, call: dict[str, Any]) -> tuple[str, dict]:
    """Return the algorithm that `MPIR_Csel_search` finds, or the name of the library's own subtree. There is no backtracking."""
    if isinstance(tree, str):
        assert tree.startswith("call=")
        name = tree.removeprefix("call=")
        if name == "auto" or name.endswith("-intra-auto"):  # a subtree of MPICH itself
            return name, {}
        return search(named, named[f"name={name}"], call)
    for key, below in tree.items():
        if key.startswith("algorithm="):
            return key.removeprefix("algorithm="), below
        if holds(key, call):
            return search(named, below, call)
    raise AssertionError(f"MPICH has no algorithm for {call}")


def said(text: str, collective: str, ranks: int, size: int, **more: bool) -> tuple[str, dict]:
    named = json.loads(text)
    assert all(key.startswith("name=") and len(key) < 50 for key in named)
    usual = {"builtin_op": True, "commutative": True, "count_ge_pof2": True, "inplace": False}
    usual["pof2"] = ranks & (ranks - 1) == 0
    call = {"collective": collective, "comm_size": ranks, "avg_msg_size": size, "total_msg_size": ranks * size}
    return search(named, named["name=main"], call | usual | more)


TABLES = {
    "bcast": {
        0: (Rule(0, "default"),),
        4: (Rule(0, "binomial"), Rule(1024, "pipeline", (("segment_bytes", 8192),)), Rule(65536, "default")),
        16: (Rule(0, "default"),),
    },
    "reduce": {0: (Rule(0, "default"),), 8: (Rule(0, "binomial"), Rule(2048, "rabenseifner"))},
}


def test_decisions_are_named_subtrees_beside_the_library_s_own(tmp_path: Path) -> None:
    placement = Placement("core", 2, TABLES)
    text = trees.subtrees_text(placement, CATALOGUE)
    found = read(written(tmp_path, text), known())
    assert found.format == "mpich-5.1"
    assert not found.faults
    for collective, table in TABLES.items():
        for ranks in (2, 3, 4, 7, 8, 15, 16, 99):
            for size in (0, 1, 1023, 1024, 2047, 2048, 65535, 65536):
                meant = selected(table, ranks, size)
                rule = next(
                    one for one in found.at(collective, ranks, size) if "is_op_built_in=no" not in one.conditions
                    and "is_commutative=no" not in one.conditions and "count<pow2" not in one.conditions
                )  # fmt: skip
                assert (rule.algorithm, rule.parameters) == (meant.algorithm, meant.parameters), (ranks, size)
                name, parameters = said(text, collective, ranks, size)
                if meant.algorithm == "default":
                    assert name == f"{collective}-intra-auto"
                else:
                    word = CATALOGUE.settings(collective, meant.algorithm, dict(meant.parameters), "mpich")["algorithm"]
                    assert name == f"MPIR_{collective.capitalize()}_intra_{word}"
                if meant.algorithm == "pipeline":
                    keys = {key.partition("=")[0] for key in parameters}
                    assert keys == {"tree_type", "k", "is_non_blocking", "chunk_size", "recv_pre_posted"}
                    assert "chunk_size=8192" in parameters
    assert said(text, "alltoall", 8, 1) == ("auto", {})


@pytest.mark.parametrize("lacking", ["builtin_op", "count_ge_pof2"])
def test_calls_that_an_algorithm_cannot_serve_are_left_to_the_library(lacking: str) -> None:
    text = trees.subtrees_text(Placement("core", 2, TABLES), CATALOGUE)
    assert said(text, "reduce", 8, 4096)[0] == "MPIR_Reduce_intra_reduce_scatter_gather"
    assert said(text, "reduce", 8, 4096, **{lacking: False})[0] == "reduce-intra-auto"


def test_sizes_are_in_the_units_that_mpich_knows() -> None:
    """MPICH aborts if a condition on a size does not exist for a collective (get_avg_msgsize and get_total_msgsize of csel.c)."""
    rules = (Rule(0, "recursive_doubling"), Rule(1024, "pairwise"))
    gathers = (Rule(0, "recursive_doubling"), Rule(1024, "ring"))
    tables = {
        "allgather": {0: (Rule(0, "default"),), 8: gathers},
        "allgatherv": {8: gathers},
        "reduce_scatter": {8: rules},
        "reduce_scatter_block": {8: rules},
        "scan": {0: (Rule(0, "default"),), 8: (Rule(0, "recursive_doubling"), Rule(1024, "default"))},
        "exscan": {8: (Rule(0, "recursive_doubling"),)},
        "alltoall": {8: (Rule(0, "bruck"), Rule(64, "bruck_radix", (("radix", 4),)), Rule(512, "pairwise"))},
    }
    text = trees.subtrees_text(Placement("core", 1, tables), CATALOGUE)
    for collective in ("allgather", "allgatherv"):
        # Below, sizes are of one rank: total_msg_size is 8 times as much.
        assert said(text, collective, 8, 1023)[0] == f"MPIR_{collective.capitalize()}_intra_recursive_doubling"
        assert said(text, collective, 8, 1024)[0] == f"MPIR_{collective.capitalize()}_intra_ring"
        assert said(text, collective, 9, 8)[0] == f"{collective}-intra-auto"  # no power of two
    assert said(text, "reduce_scatter_block", 8, 1023)[0] == "MPIR_Reduce_scatter_block_intra_recursive_doubling"
    assert said(text, "reduce_scatter_block", 8, 1024)[0] == "MPIR_Reduce_scatter_block_intra_pairwise"
    assert said(text, "reduce_scatter_block", 8, 1024, commutative=False)[0] == "reduce_scatter_block-intra-auto"
    assert said(text, "reduce_scatter", 8, 127)[0] == "MPIR_Reduce_scatter_intra_recursive_doubling"
    assert said(text, "reduce_scatter", 8, 128)[0] == "MPIR_Reduce_scatter_intra_pairwise"
    assert said(text, "scan", 8, 8)[0] == "scan-intra-auto"  # two rules, but MPICH does not know the size
    assert said(text, "exscan", 8, 8)[0] == "MPIR_Exscan_intra_recursive_doubling"
    assert said(text, "alltoall", 8, 63)[0] == "MPIR_Alltoall_intra_brucks"
    assert said(text, "alltoall", 8, 64) == ("MPIR_Alltoall_intra_k_brucks", {"k=4": {}, "single_phase_recv=0": {}})
    assert said(text, "alltoall", 8, 512)[0] == "MPIR_Alltoall_intra_pairwise"
    assert said(text, "alltoall", 8, 512, inplace=True)[0] == "alltoall-intra-auto"
    conditions = json.dumps({name: tree for name, tree in json.loads(text).items() if "alltoall" not in name})
    assert "avg_msg_size" not in conditions


def test_radixes_and_sizes_of_the_whole_vector_are_read_back(tmp_path: Path) -> None:
    tables = {
        "alltoall": {8: (Rule(0, "bruck"), Rule(64, "bruck_radix", (("radix", 4),)))},
        "reduce_scatter": {8: (Rule(0, "recursive_doubling"), Rule(1024, "pairwise"))},
    }
    found = read(written(tmp_path, trees.subtrees_text(Placement("core", 1, tables), CATALOGUE)), known())
    for collective, table in tables.items():
        for size in (63, 64, 1023, 1024):
            meant = selected(table, 8, size)
            rules = [one for one in found.at(collective, 8, size) if one.algorithm != "default"]
            assert (rules[0].algorithm, rules[0].parameters) == (meant.algorithm, meant.parameters)


OTHERS = """{
 "name=main": {"collective=bcast-intra": "call=mine", "collective=bcast-inter": "call=bcast-inter-auto", "any": "call=auto"},
 "name=mine": {
  "comm_size(8)": {"algorithm=MPIR_Bcast_intra_binomial": {}},
  "pof2": {"avg_msg_size>=1024": {"algorithm=MPIR_Bcast_intra_scatter_ring_allgather": {}},
           "any": "call=bcast-intra-auto"},
  "comm_size(any)": {"!total_msg_size(4096)": {"algorithm=MPIR_Bcast_intra_scatter_ring_allgather": {}},
                     "any": "call=small"}
 },
 "name=small": {"algorithm=MPIR_Bcast_intra_binomial": {}}
}
"""


def test_files_of_others_are_read_as_mpich_searches_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(written(tmp_path, OTHERS), known())
    assert not found.faults
    for ranks in (2, 8, 9, 16, 24):
        for size in (0, 100, 1023, 1024, 5000):
            word = found.at("bcast", ranks, size)[0].word.removeprefix("call=")
            assert word == said(OTHERS, "bcast", ranks, size)[0], (ranks, size)
    assert found.at("bcast", 16, 1024)[0].algorithm == "scatter_allgather_ring"
    text = explained(capsys, written(tmp_path, OTHERS), "--ranks", "16", "--size", "1KiB")
    assert "MPIR_Bcast_intra_scatter_ring_allgather) (line 5" in text


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("call=small", "call=large", 7, "is neither an object nor a subtree of the file or of MPICH"),
        ('{"algorithm=MPIR_Bcast_intra_binomial": {}}\n}', '"call=mine"\n}', 7, "calls itself"),
        ('"pof2"', '"pof3"', 5, "unknown condition 'pof3'"),
        ('"comm_size(any)"', '"comm_size(99)"', 3, "no `any` after"),
        ('"name=small"', '"small"', 1, "only `name=...` is allowed at the top level"),
    ],
)
def test_faults_of_named_subtrees_have_their_lines(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in OTHERS
    found = faults(tmp_path, OTHERS.replace(old, new))
    assert any(words in text for _, text in found), found
    assert any(at == line and words in text for at, text in found), found


def test_a_subtree_without_main_replaces_the_library_s(tmp_path: Path) -> None:
    text = '{"name=bcast-intra-auto": {"algorithm=MPIR_Bcast_intra_binomial": {}}}'
    (rule,) = read(written(tmp_path, text), known()).rules
    assert (rule.collective, rule.algorithm) == ("bcast", "binomial")


def test_files_are_converted_to_named_subtrees_and_back(tmp_path: Path) -> None:
    text = "1\n7\n2\n2\n1\n0 6 0 0\n8\n2\n0 6 0 0\n4096 3 0 8192\n"
    new = converted(tmp_path, text, "mpich-5.1").text
    assert said(new, "bcast", 4, 99999)[0] == "MPIR_Bcast_intra_binomial"
    assert said(new, "bcast", 8, 4096)[0] == "MPIR_Bcast_intra_pipelined_tree"
    assert not converted(tmp_path, new, "openmpi").losses
    with pytest.raises(StudyError, match="none of its rules can be expressed as"):
        converted(tmp_path, "1\n7\n1\n2\n1\n0 7 0 0\n", "mpich-5.1")


def test_rules_by_size_of_a_collective_without_size_are_named_as_lost(tmp_path: Path) -> None:
    of_open_mpi = "1\n9\n2\n2\n1\n0 2 0 0\n8\n2\n0 2 0 0\n4096 1 0 0\n"  # gather: binomial, or linear from 4 KiB on
    found = converted(tmp_path, of_open_mpi, "mpich-5.1")
    assert any("gather: MPICH ignores the message size" in fault.text for fault in found.losses), found.losses
    assert said(found.text, "gather", 4, 8)[0] == "MPIR_Gather_intra_binomial"
    assert said(found.text, "gather", 8, 8)[0] == "gather-intra-auto"


def test_a_study_of_mpich_gets_named_subtrees_beside_its_trees(tmp_path: Path) -> None:
    study = {**STUDY, "provenance": {**STUDY["provenance"], "mpi": "mpich", "mpi_version": "5.0.2"}}
    found = placements(decisions({4: {1: "binomial", 1024: "default"}}))
    emission.emit(study, found, CATALOGUE, tmp_path, write_trees=lambda *_: None)
    text = (tmp_path / "mpich-5.1-core-n2.json").read_text()
    assert said(text, "bcast", 4, 8)[0] == "MPIR_Bcast_intra_binomial"
    assert said(text, "bcast", 4, 1024)[0] == "bcast-intra-auto"
    (command,) = [line for line in (tmp_path / "README.md").read_text().splitlines() if "COLL_SELECTION_JSON" in line]
    assert command == ('    mpirun -genv MPIR_CVAR_COLL_SELECTION_JSON_FILE "$TUNING/mpich-5.1-core-n2.json" ./program')
