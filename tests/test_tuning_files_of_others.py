"""Tuning files of libraries other than Open MPI, as read by `./study explain`."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.cli.main import main
from collstudy.tuning.readers.dispatch import read
from test_tuning_files import explained, faults, known, refused, written

MPICH = """{
 "collective=reduce": {
  "comm_type=intra": {
   "comm_size<=4": {"algorithm=MPIR_Reduce_intra_binomial": {}},
   "comm_size=pow2": {
    "is_commutative=yes": {"avg_msg_size<=1023": {"algorithm=MPIR_Reduce_intra_binomial": {}},
                           "avg_msg_size=any": {"algorithm=MPIR_Reduce_intra_reduce_scatter_gather": {}}},
    "is_commutative=no": {"algorithm=MPIR_Reduce_intra_smp": {}}
   },
   "comm_size<=2": {"algorithm=MPIR_Reduce_intra_smp": {}},
   "comm_size<=64": {"avg_msg_size<10": {"algorithm=MPIR_Reduce_intra_binomial": {}}}
  }
 }
}
"""


def test_a_tree_of_mpich(tmp_path, capsys):
    path = written(tmp_path, MPICH)
    text = explained(capsys, path, "--ranks", "8", "--size", "1KiB", status=1)
    assert "if is_commutative=yes: rabenseifner (in the file: MPIR_Reduce_intra_reduce_scatter_gather) (line 7" in text
    assert "  MPIR_Reduce_intra_smp (line 8" in text
    assert "binomial" in explained(capsys, path, "--ranks", "3", "--size", "1KiB", status=1)
    found = [(fault.line, fault.text) for fault in read(path, known()).faults]
    assert any(line == 10 and "never applies: line 4 applies first" in words for line, words in found)
    assert any(line == 11 and "no `any` after avg_msg_size<10" in words for line, words in found)
    assert any(line == 3 and "no `any` after comm_size<=64" in words for line, words in found)


def test_a_segment_size_of_mpich_that_is_no_number(tmp_path):
    """MPICH reads it with atoi()."""
    tree = '{"tree_type=kary": {}, "k=1": {}, "chunk_size=8 KiB": {}}'
    text = f'{{"collective=bcast": {{"comm_type=intra": {{"algorithm=MPIR_Bcast_intra_pipelined_tree": {tree}}}}}}}'
    assert faults(tmp_path, text) == [(1, "bcast: chunk_size=8KiB is not a number: MPICH takes 8")]
    assert read(written(tmp_path, text), known()).rules[0].text == "pipeline:segment_bytes=8"


def test_variables_of_intel_mpi(tmp_path, capsys):
    text = "# mine\nexport I_MPI_ADJUST_BCAST='1:0-1023;8:1024-4095;99:8192-9000'\nI_MPI_ADJUST_NOTHING=1\n"
    path = written(tmp_path, text)
    assert "knomial (in the file: 8)" in explained(
        capsys, path, "--ranks", "8", "--size", "1KiB", "--collective", "bcast", status=1
    )
    assert [(line, "unknown collective" in words) for line, words in faults(tmp_path, text)] == [(3, True)]
    assert faults(tmp_path, "I_MPI_ADJUST_BCAST=one\n") == [
        (1, "bcast: 'one' is not <number>:<first>-<last>@<first>-<last>")
    ]


def test_intel_mpi_ignores_starts_and_leaves_no_call_to_its_default(tmp_path):
    """As observed with 2021.18.1; test_intel_mpi_applies_its_variables_as_they_are_read compares it with an installed one."""

    def spans(value: str) -> list[tuple]:
        found = read(written(tmp_path, f"I_MPI_ADJUST_ALLREDUCE={value}\n"), known())
        return [(rule.word, rule.ranks.high, rule.sizes.high) for rule in found.rules]

    assert spans("14:1000-1999") == [("14", None, None)]
    assert spans("14:1000-1999;5:3000-3999") == [("14", None, 1999), ("5", None, None)]
    assert spans("14:0-1999@2-2;5:0-3999@8-8") == [("14", 2, None), ("5", None, None)]
    assert spans("14:0-1999@2-2;5:2000-3999@2-2") == [("5", None, None)]


def test_explain_says_how_intel_mpi_applies_its_variables(tmp_path, capsys):
    path = written(tmp_path, "I_MPI_ADJUST_ALLREDUCE=2:0-1999@2-2;5:2000-3999@2-2\n")
    text = explained(capsys, path, status=1)
    assert "as Intel MPI 2021.18.1 applies it" in text and "starts are ignored" in text
    assert "line 1: allreduce 2: never applies: a later rule has the same ranks" in text


def test_the_tune_string_of_ucc(tmp_path, capsys):
    text = "UCC_TL_UCP_TUNE=allgather:0-4k:[2-8]:@ring:inf#bcast:@knomial:host#alltoall:4k-inf:@9bruck:x9!\n"
    path = written(tmp_path, text)
    out = explained(capsys, path, "--ranks", "8", "--size", "512", "--collective", "allgather", status=1)
    assert ": ring (line 1: 2 to 8 ranks, up to 4096 bytes of all ranks together)" in out
    assert "no rule" in explained(capsys, path, "--ranks", "8", "--size", "513", "--collective", "allgather", status=1)
    assert "if memory host: knomial" in explained(
        capsys, path, "--ranks", "2", "--size", "1", "--collective", "bcast", status=1
    )
    assert "UCC cannot parse 'x9!'" in faults(tmp_path, text)[0][1]


def ucc_spans(tmp_path: Path, tune: str) -> list[tuple[str, int, int | None]]:
    found = read(written(tmp_path, f"UCC_TL_UCP_TUNE={tune}\n"), known())
    assert not found.ignored, found.faults
    return [(rule.word, *rule.sizes) for rule in found.rules]


def test_a_limit_belongs_to_the_higher_score_in_ucc(tmp_path):
    """As observed with UCC 1.10 for broadcasts of these sizes among four processes (built from source, messages counted)."""
    assert ucc_spans(tmp_path, "bcast:1000-1999:@dbt:inf") == [("dbt", 1000, 1999)]
    assert ucc_spans(tmp_path, "bcast:1000-1999:@dbt:11") == [("dbt", 1000, 1999)]
    # Without a score, or with UCC's own score, the last byte is UCC's own.
    assert (
        ucc_spans(tmp_path, "bcast:1000-1999:@dbt")
        == ucc_spans(tmp_path, "bcast:1000-1999:@2:10")
        == [("dbt", 1000, 1998)]
    )
    assert ucc_spans(tmp_path, "bcast:1000-1999:@dbt:5") == [("dbt", 1001, 1998)]
    # With equal scores, the larger sizes have it.
    shared = [("dbt", 0, 4095), ("sag_knomial", 4096, None)]
    assert ucc_spans(tmp_path, "bcast:0-4k:@dbt#bcast:4k-inf:@sag_knomial") == shared
    assert ucc_spans(tmp_path, "bcast:0-4k:@dbt:inf#bcast:4k-inf:@sag_knomial:inf") == shared
    assert ucc_spans(tmp_path, "bcast:0-4k:[2-8]:@dbt:inf#bcast:4k-inf:[9-inf]:@1:inf") == [
        ("dbt", 0, 4096), ("sag_knomial", 4096, None)
    ]  # fmt: skip


def test_sections_of_uccs_file_are_for_other_teams(tmp_path, capsys):
    """In the form of UCC's contrib/ucc.conf, whose sections have the same sizes for other processors, ranks and nodes."""
    text = """UCC_CL_BASIC_TLS=^sharp,nccl
[vendor=intel model=broadwell team_size=28 ppn=28 nnodes=1]
UCC_TL_UCP_ALLREDUCE_KN_RADIX=2
UCC_TL_UCP_TUNE=allreduce:0-4k:@0#allreduce:4k-inf:@1
[vendor=intel model=broadwell team_size=2 ppn=1 nnodes=2]
UCC_TL_UCP_TUNE=allreduce:0-128k:@0#allreduce:128k-inf:@4
[vendor=amd model=rome team_size=2 ppn=1 nnodes=2]
UCC_TL_UCP_TUNE=allreduce:0-inf:@ring
"""
    path = written(tmp_path, text, "ucc.conf")
    out = explained(capsys, path, "--ranks", "28", "--size", "4KiB", "--nodes", "1")
    assert (
        "if vendor=intel and model=broadwell: sra_knomial (line 4: 28 ranks, from 4096 bytes on" in out
        and "no errors" in out
    )
    more = text + "[vendor=amd nnodes=2 model=rome sock=1]\nUCC_TL_UCP_TUNE=allreduce:0-inf:@dbt\n"
    assert faults(tmp_path, more) == []
    assert faults(tmp_path, more, notes=True) == [(10, "the section of line 8 also applies there: UCC uses either")]
    path = written(tmp_path, text, "ucc.conf")
    out = explained(capsys, path, "--ranks", "2", "--size", "128KiB", "--nodes", "2")
    assert "model=broadwell: ring (line 6" in out and "model=rome: ring (line 8" in out and "line 4" not in out


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ("bcast:0-1023:@nosuch:inf", "UCC has no bcast algorithm 'nosuch' (known: 0 knomial, 1 sag_knomial, 2 dbt"),
        ("bcast:0-1023:@9:inf", "UCC has no bcast algorithm '9'"),
        ("barrier:@knomial:inf", "barrier has no algorithms to choose from"),
        ("bcast:0-2k:@dbt:inf#bcast:1k-4k:@sag_knomial:inf", "overlaps the sizes of another token"),
        ("bcast:0-1k:wr0ng:@dbt", "UCC cannot parse 'wr0ng'"),
    ],
)
def test_ucc_ignores_the_variable_for_one_token(tmp_path, capsys, tune, words):
    path = written(tmp_path, f"UCC_TL_UCP_TUNE={tune}\n")
    assert any(
        words in text and "ignores the whole variable" in text
        for _, text in faults(tmp_path, f"UCC_TL_UCP_TUNE={tune}\n")
    )
    assert "The library ignores this file" in explained(capsys, path, status=1)
    assert words in refused(capsys, "convert", path, "--to", "openmpi")


NCCL = """# colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks
allreduce,0,65535,tree,ll,-1,1,-1
allreduce,65536,1048575,ring,simple,4,-1,16
allreduce,0,100,ring,ll,-1,1,8
gather,0,100,ring,simple,-1,-1,-1
bcast,0,10
"""


def test_the_csv_of_nccls_tuner(tmp_path, capsys):
    path = written(tmp_path, NCCL)
    text = explained(capsys, path, "--ranks", "16", "--size", "64KiB", "--collective", "allreduce", status=1)
    assert "ring (in the file: ring simple, 4 channels) (line 3" in text
    found = faults(tmp_path, NCCL)
    assert any(line == 4 and "never applies: line 2 applies first" in words for line, words in found)
    assert any(line == 5 and "'gather': NCCL's plugin takes allreduce" in words for line, words in found)
    assert any(line == 6 and "3 fields" in words for line, words in found)


COLL = """# A study
bcast 2 24 511 -> ompi_chain:fanout=4:segment_bytes=1024 # 48 processes
bcast 2 24 1023 -> default
bcast 2 24 * -> node
alltoallv * * 999 node
barrier 1 8 * ompi_tree
"""


def test_rules_of_the_collectives_library(tmp_path, capsys):
    path = written(tmp_path, COLL)
    every = explained(capsys, path)
    assert "COLL_RULES of this project's collectives library; 5 rules for bcast, alltoallv, barrier" in every
    assert "barrier: tree (in the file: ompi_tree) 8 ranks, on 1 node (line 6)" in every
    few = explained(capsys, path, "--collective", "bcast", "--ranks", "47", "--nodes", "2", "--size", "256")
    assert "bcast, 47 ranks on 2 nodes, 256 bytes per rank: chain (in the file: ompi_chain:fanout=4" in few
    assert "segments of 1 KiB" in few and "(line 2: 47 to 48 ranks, up to 511 bytes, on 2 nodes)" in few
    more = explained(capsys, path, "--collective", "bcast", "--ranks", "48", "--nodes", "2", "--size", "512")
    assert "the library's own decision (line 3: 47 to 48 ranks, 512 to 1023 bytes, on 2 nodes)" in more
    fewer = explained(capsys, path, "--collective", "bcast", "--ranks", "46", "--nodes", "2", "--size", "512")
    assert "no rule: the library's own decision" in fewer
    # The library counts all that a rank sends: 4 blocks of 250 B are more than 999 B.
    for size, said in (("249", "node"), ("250", "no rule")):
        assert said in explained(capsys, path, "--collective", "alltoallv", "--ranks", "4", "--size", size)


def test_errors_in_rules_of_the_collectives_library(tmp_path):
    text = COLL + "bcast 2 24 * ->\nbroadcast 2 24 * -> node\nbcast 2 24 4096 -> node\n"
    found = dict(faults(tmp_path, text))
    assert (
        "not `<collective> <nodes> <ranks per node> <max bytes> <algorithm>`: the library ends the program" in found[7]
    )
    assert found[8].startswith("collective 'broadcast': the library ends the program")
    assert "never applies: line 4 applies first in all its cases" in found[9]


def test_all_gaps_between_numbers_of_ranks_are_one_note(tmp_path):
    text = "".join(f"bcast 1 {2**i} * -> node\n" for i in range(9))
    said = "bcast: no rule for 3, 5 to 7, 9 to 15, ..., 129 to 255 ranks: the library decides"
    assert faults(tmp_path, text, notes=True) == [(2, said)]


def test_nobody_converts_to_rules_of_the_collectives_library(tmp_path, capsys):
    path = written(tmp_path, COLL)
    with pytest.raises(SystemExit):
        main(["convert", str(path), "--to", "coll"])
    assert "invalid choice: 'coll'" in capsys.readouterr().err
