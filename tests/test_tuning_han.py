"""Rules files of Open MPI's coll/han: reading, explaining and converting."""

from __future__ import annotations

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.tuning import writers
from collstudy.tuning.convert import convert
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.rules import Placement, Rule
from test_tuning_files import GOOD, known, written

HAN_FILE = """# coll/han
2 # collectives
allreduce
2 # topologic levels
intra_node
1
1
1
0 sm
global_communicator
2 # communicator sizes
1
1
0 tuned
16
2
0 han@simple
65536 basic
6 # barrier, by its number
1
2
1
1
1
0 han
"""


def test_hans_rules_in_words(tmp_path, capsys):
    """`./study explain` reads coll/han's own files: components, levels, sizes."""
    path = written(tmp_path, HAN_FILE)
    assert main(["explain", str(path), "--ranks", "24", "--size", "64KiB", "--collective", "allreduce"]) == 0
    said = capsys.readouterr().out
    assert "rules of Open MPI's coll/han; 5 rules for allreduce, barrier" in said
    assert "if coll/han's level intra_node: sm (line 9: with" in said
    assert "basic (line 18: from 16 ranks on, from 65536 bytes on)" in said
    found = read(path, known())
    assert [rule.algorithm for rule in found.at("barrier", 4, 0)] == ["han"]
    assert [rule.word for rule in found.at("allreduce", 16, 8)] == ["sm", "han@simple"]
    assert [rule.word for rule in found.at("allreduce", 15, 8)] == ["sm", "tuned"]


@pytest.mark.parametrize(
    ("old", "new", "fault", "ignored"),
    [
        ("0 tuned", "0 tuend", "line 14: 'tuend' is not a component known to coll/han", True),
        ("0 tuned", "8 tuned", "line 14: the first message size is 8; allowed: 0 to 1", True),
        ("0 tuned", "0 tuned@1", "line 14: @ after tuned: only han has algorithms here", True),
        ("\n1\n1\n0 tuned", "\n2\n1\n0 tuned", "line 12: the first communicator size is 2; allowed: 1", True),
        ("intra_node", "inside", "line 5: 'inside' is not a topologic level", True),
        ("allreduce", "allredude", "line 3: 'allredude' is not a collective", True),
        ("allreduce", "alltoall", "line 3: coll/han has no alltoall: these rules never apply", False),
        ("0 sm", "0 han", "line 9: allreduce: han at the level intra_node", False),
        ("65536 basic", "0 basic", "line 18: allreduce: 0 bytes after 0: message sizes must ascend", False),
        ("16\n2\n", "1\n2\n", "line 15: allreduce: 1 ranks after 1: communicator sizes must ascend", False),
        ("0 han\n", "0 han\n7\n", "line 26: not read", False),
    ],
)  # fmt: skip
def test_faults_of_hans_rules_have_lines(tmp_path, capsys, old, new, fault, ignored):
    text = HAN_FILE.replace(old, new, 1) if old != "0 han\n" else HAN_FILE + "7\n"
    path = written(tmp_path, text)
    assert main(["explain", str(path)]) == 1
    said = capsys.readouterr().out
    assert fault in said
    assert ("The library ignores this file" in said) == ignored


def test_hans_file_that_is_cut_off(tmp_path):
    with pytest.raises(StudyError, match="line 18: truncated: the file ends where a component is expected"):
        read(written(tmp_path, HAN_FILE[: HAN_FILE.index(" basic")]), known())


def test_hans_rules_and_other_formats(tmp_path):
    """Other formats have no levels and components; a file of coll/tuned becomes one of coll/han that delegates to coll/tuned."""
    with pytest.raises(StudyError, match="none of its rules can be expressed as I_MPI_ADJUST"):
        convert(read(written(tmp_path, HAN_FILE), known()), "intel", known())
    same = convert(read(written(tmp_path, HAN_FILE.replace("han@simple", "adapt")), known()), "openmpi-han", known())
    assert (
        "allreduce sm: not converted: rules of Open MPI's coll/han cannot express the condition on coll/han's level intra_node"
        in same.losses[0].text
    )
    again = read(written(tmp_path, same.text, "again"), known())
    assert [rule.word for rule in again.at("allreduce", 16, 65536)] == ["basic"]
    beside = convert(read(written(tmp_path, GOOD), known()), "openmpi-han", known())
    found = read(written(tmp_path, beside.text, "beside"), known())
    assert not found.faults and {rule.word for rule in found.rules} <= {"tuned", "han"}
    assert [rule.word for rule in found.at("bcast", 24, 1)] == ["tuned"]
    assert any("beside that of coll/han" in loss.text for loss in beside.losses)


def test_the_files_of_studies_for_han_are_read(tmp_path):
    placement = Placement("core", 2, {"bcast": {0: (Rule(0, "default"),), 4: (Rule(0, "chain"), Rule(64, "default"))}})
    found = read(written(tmp_path, writers.han_rules(placement, known().catalogue, "han", ["x"])), known())
    assert not found.faults
    assert [found.at("bcast", ranks, size)[0].word for ranks, size in ((2, 8), (4, 8), (4, 64))] == [
        "han",
        "tuned",
        "han",
    ]
