"""Tuning files of Open MPI written by others, as read by `./study explain`."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.base.paths import ROOT
from collstudy.cli.main import main
from collstudy.study.config import Configuration
from collstudy.tuning.convert import convert
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.readers.known import Known

CATALOGUE = Configuration(ROOT / "config").catalogue

GOOD = """# Some rules
2 # collectives
7 # bcast
2 # communicator sizes
2
2
0 6 0 0
4096 3 0 8192
24
3
0 5 0 0
1024 2 4 8192
65536 9 0 0
0 # allgather
2
2
2
0 2 0 0
4096 4 0 0
32
2
0 4 0 0
100 2 0 0
"""


def known(version: str = "5.0.11") -> Known:
    return Known(CATALOGUE, version)


def written(tmp_path: Path, text: str | bytes, name: str = "rules") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def faults(tmp_path: Path, text: str, version: str = "5.0.11", notes: bool = False) -> list[tuple[int, str]]:
    """Return lines and texts of the faults that `explain` lists."""
    found = read(written(tmp_path, text), known(version)).faults
    return [(fault.line, fault.text) for fault in found if fault.note == notes]


def converted(tmp_path: Path, text: str, to: str, version: str = "5.0.11"):
    return convert(read(written(tmp_path, text), known(version)), to, known(version))


def explained(capsys, path: Path, *arguments: str, status: int = 0) -> str:
    assert main(["explain", str(path), *arguments]) == status
    return capsys.readouterr().out


def refused(capsys, *arguments: object) -> str:
    assert main([str(word) for word in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "Traceback" not in error
    return error


def test_what_a_file_says_for_some_ranks_and_bytes(tmp_path, capsys):
    path = written(tmp_path, GOOD)
    text = explained(capsys, path, "--ranks", "48", "--size", "64KiB")
    assert (
        "bcast, 48 ranks, 65536 bytes per rank: scatter allgather ring (in the file: 9 scatter_allgather_ring) (line 13"
        in text
    )
    assert "no errors" in text
    text = explained(capsys, path, "--ranks", "48", "--size", "65535", "--collective", "bcast")
    assert "chain (in the file: 2 chain), fan-out 4, segments of 8 KiB (line 12" in text
    assert "allgather," not in text
    # Open MPI counts the bytes of all ranks: 2 bytes on each of 48 are 96, 3 are 144.
    for size, algorithm in (("2", "ring"), ("3", "bruck")):
        assert f": {algorithm} (" in explained(
            capsys, path, "--ranks", "48", "--size", size, "--collective", "allgather"
        )
    everything = explained(capsys, path)
    assert everything.count("(line ") == 9


def test_every_fault_is_named_with_its_line(tmp_path):
    text = """3 # collectives
7 # bcast
2
4
3
0 12 0 0
1024 6 3 8192
512 1 0 4096
2
1
0 3 0 65536
0 # allgather
1
8
3 # one too many
0 4 0 0
4096 1 0 0
4 # alltoallv
1
2
2
0 1 0 0
8 2 0 0
"""
    found = faults(tmp_path, text)
    for line, words in (
        (6, "has no bcast algorithm 12; it has 0 to 9"),
        (7, "fanout 3: Open MPI 5.0.11's bcast binomial ignores it"),
        (7, "1024 bytes: never applies"),
        (8, "512 bytes after 1024"),
        (8, "segment bytes 4096: Open MPI 5.0.11's bcast basic_linear ignores it"),
        (9, "2 ranks after 4"),
        (15, "3 message sizes are announced, 2 follow"),
        (23, "never applies: Open MPI does not know the size of alltoallv"),
    ):
        assert [line for at, fault in found if at == line and words in fault], (line, words, found)
    assert len(found) == 8
    assert [line for line, _ in faults(tmp_path, text, notes=True)] == [4, 14]


def test_a_file_with_faults_has_another_exit_status(tmp_path, capsys):
    path = written(tmp_path, GOOD.replace("0 6 0 0", "0 66 0 0"))
    assert "1 error:\n  line 7: " in explained(capsys, path, status=1)


def test_counts_that_do_not_fit_are_told_where_the_numbers_come_to_an_end(tmp_path):
    one_less = GOOD.replace("3\n0 5 0 0", "2\n0 5 0 0")
    assert [line for line, text in faults(tmp_path, one_less) if "2 message sizes are announced, 3 follow" in text] == [
        10
    ]
    another = GOOD.replace("7 # bcast\n2", "7 # bcast\n3")
    assert [line for line, text in faults(tmp_path, another) if "3 communicator sizes are announced, 2 follow" in text]
    # The last list is short: the file does not count as truncated if others are short, too, which shows how it was written.
    both = GOOD.replace("2\n0 6 0 0", "3\n0 6 0 0").replace("2\n0 4 0 0\n", "3\n0 4 0 0\n")
    assert [line for line, text in faults(tmp_path, both) if "3 message sizes" in text] == [6, 21]
    assert len(read(written(tmp_path, both), known()).of("allgather")) == 4


def test_a_file_may_have_its_numbers_in_any_lines(tmp_path):
    alone = " ".join(line.split("#")[0] for line in GOOD.splitlines())
    in_lines, in_one = (read(written(tmp_path, text), known()) for text in (GOOD, alone))
    assert not in_one.faults
    assert [rule.text for rule in in_lines.rules] == [rule.text for rule in in_one.rules]
    assert [rule.ranks for rule in in_lines.rules] == [rule.ranks for rule in in_one.rules]


def test_the_first_size_must_be_0_or_the_file_is_ignored(tmp_path, capsys):
    path = written(tmp_path, GOOD.replace("0 5 0 0", "1 5 0 0"))
    text = explained(capsys, path, status=1)
    assert "line 11: bcast: the first message size is 1, not 0: Open MPI" in text and "ignores this file" in text
    assert "line 11" in refused(capsys, "convert", path, "--to", "openmpi-2")


def test_the_first_entry_applies_below_and_up_to_a_smaller_second_one(tmp_path):
    """Open MPI stops at the first communicator size above the call's, and then uses the first entry."""
    found = read(written(tmp_path, "1\n7\n2\n16\n1\n0 6 0 0\n4\n1\n0 1 0 0\n"), known())
    for ranks, algorithm in ((2, "binomial"), (8, "binomial"), (15, "binomial"), (16, "linear"), (48, "linear")):
        assert [rule.algorithm for rule in found.at("bcast", ranks, 0)] == [algorithm], ranks


@pytest.mark.parametrize(("old", "new", "line"), [
    ("1024 2 4 8192", "1024 2 -1 8192", 12),
    ("65536 9 0 0", "65536 -1 0 0", 13),
    ("65536 9 0 0", "65536 9 0 -1", 13),
])  # fmt: skip
def test_a_negative_number_makes_open_mpi_ignore_the_file(tmp_path, capsys, old, new, line):
    path = written(tmp_path, GOOD.replace(old, new))
    text = explained(capsys, path, status=1)
    assert "ignores this file" in text and f"line {line}: the number -" in text
    assert f"line {line}: " in refused(capsys, "convert", path, "--to", "openmpi-2")


def test_a_file_that_is_misread_is_not_said_to_be_ignored(tmp_path, capsys):
    """After a wrong count Open MPI takes other numbers for sizes: whether it then ignores the file depends on them."""
    path = written(tmp_path, GOOD.replace("24\n3\n", "24\n"))
    text = explained(capsys, path, status=1)
    assert "Open MPI misreads or ignores this file" in text and "The library ignores" not in text
    refused(capsys, "convert", path, "--to", "openmpi-2")


@pytest.mark.parametrize("collective", ["exscan", "scan"])
def test_rules_for_scans_do_not_depend_on_the_size_of_the_message(tmp_path, capsys, collective):
    """coll_tuned_decision_dynamic.c passes the size of the type times the ranks, in 4.1 to 6.0."""
    number = {"exscan": 8, "scan": 14}[collective]
    text = f"1\n{number}\n1\n2\n2\n0 1 0 0\n1024 2 0 0\n"
    path = written(tmp_path, text)
    said = explained(capsys, path, "--ranks", "48", "--size", "64KiB", status=1)
    assert "if up to 1023 bytes of one element times the ranks: linear" in said
    assert "if from 1024 bytes of one element times the ranks on: recursive doubling" in said
    assert "line 7: " in said and "not the size of the message" in said
    assert "cannot express the condition" in refused(capsys, "convert", path, "--to", "mpich-5.1")
    path = written(tmp_path, f"1\n{number}\n1\n2\n1\n0 2 0 0\n")
    assert "recursive doubling (in the file: 2 recursive_doubling) (line 6: always)" in explained(
        capsys, path, "--ranks", "48", "--size", "64KiB"
    )


def test_json_rules_without_the_size_of_a_call(tmp_path):
    """For alltoallv and barrier Open MPI passes size 0, so that rules from another size on never apply."""
    sizes = '"rules": [{"msg_size_max": 7, "alg": 1}, {"msg_size_min": 8, "alg": 2}]'
    found = read(
        written(tmp_path, f'{{"collectives": {{"alltoallv": [{{{sizes}}}], "scan": [{{{sizes}}}]}}}}'), known()
    )
    assert [rule.text for rule in found.at("alltoallv", 4, 65536)] == ["linear"]
    assert any("never applies: Open MPI does not know the size of alltoallv" in fault.text for fault in found.faults)
    assert [rule.text for rule in found.at("scan", 4, 65536)] == ["linear", "recursive_doubling"]


@pytest.mark.parametrize(("version", "reads"), [("4.1.4", False), ("4.1.8", True), ("5.0.6", False), ("5.0.7", True)])
def test_version_2_is_ignored_by_releases_before_it(tmp_path, version, reads):
    path = written(tmp_path, "rule-file-version-2\n" + GOOD)
    found = read(path, known(version))
    assert (found.format, found.ignored) == ("openmpi-2", not reads)
    assert [fault.line for fault in found.faults] == ([] if reads else [1])


def test_the_version_must_be_the_first_word(tmp_path):
    found = faults(tmp_path, "# Mine\nrule-file-version-2\n" + GOOD)
    assert found and found[0][0] == 2 and "must be the first word" in found[0][1]


def test_version_1_has_no_fifth_number_and_version_2_may_have_one(tmp_path):
    text = "1\n3\n1\n2\n1\n0 4 0 0 7\n"
    assert [(line, "five numbers" in words) for line, words in faults(tmp_path, text)] == [(6, True)]
    (rule,) = read(written(tmp_path, "rule-file-version-2\n" + text), known()).rules
    assert (rule.algorithm, rule.parameters) == ("linear_sync", (("max_requests", 7),))


def test_versions_have_other_algorithms(tmp_path):
    text = "1\n0\n1\n2\n1\n0 7 0 0\n"
    assert "Open MPI 4.1.4 has no allgather algorithm 7" in faults(tmp_path, text, "4.1.4")[0][1]
    assert not faults(tmp_path, text, "5.0.11")
    text = "1\n11\n1\n2\n1\n0 8 4 0\n"
    assert "Open MPI 5.0.11 has no reduce algorithm 8" in faults(tmp_path, text)[0][1]
    assert not faults(tmp_path, text, "6.0")


def test_open_mpi_6_reads_communicator_sizes_of_the_classic_format_one_entry_off(tmp_path):
    found = read(written(tmp_path, GOOD), known("6.0"))
    assert any("applies each communicator-size entry to the range below it" in fault.text for fault in found.faults)
    # The entry for 24 ranks starts at the rank count of the previous entry.
    assert found.at("bcast", 4, 0)[0].algorithm == "binary_tree"
    assert read(written(tmp_path, GOOD), known("5.0.11")).at("bcast", 4, 0)[0].algorithm == "binomial"


@pytest.mark.parametrize(("content", "words"), [
    (b"", "is empty"),
    (b" \n\n", "is empty"),
    (b"# only words\n", "contains only comments, no rule"),
    (b"\x7fELF\x00\x01", "is not a text file"),
    (b"\xff\xfe7\x00", "is not a text file"),
    (b"title: a study\n", "not a tuning file of a known format"),
    (b"collective,mapping,nodes,ranks\nbcast,core,1,8\n", "not a tuning file of a known format"),
    (b'{"a": 1}', "neither rules of Open MPI 6.0 nor a selection tree of MPICH"),
    (b'{"collectives": {"bcast": [', "line 1: invalid JSON (truncated?)"),
    (b"[" * 100000, "not a tuning file: too many nested levels"),
    (GOOD[: GOOD.index("65536 9")].encode(), "line 12: truncated"),
    (b"export I_MPI_ADJUST_BCAST='1:0-10", "line 1: truncated: no closing '"),
])  # fmt: skip
@pytest.mark.parametrize("command", ["explain", "convert"])
def test_what_is_no_tuning_file_is_one_message(tmp_path, capsys, content, words, command):
    path = written(tmp_path, content)
    more = ["--to", "openmpi"] if command == "convert" else []
    error = refused(capsys, command, path, *more)
    assert words in error and str(path) in error and error.count("\n") == 1


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"# f\xfcr zwei Knoten\n", b"\xef\xbb\xbf# Some rules\n"])
def test_comments_in_any_encoding_and_a_byte_order_mark(tmp_path, start):
    """Open MPI looks for numbers in the bytes of the file."""
    found = read(written(tmp_path, start + GOOD.encode()), known())
    assert found.format == "openmpi" and not found.faults and found.at("bcast", 30, 65536)[0].word.startswith("9 ")
    # The version must be the first word.
    assert read(written(tmp_path, b"\xef\xbb\xbfrule-file-version-2\n" + GOOD.encode()), known()).ignored


def test_folders_and_missing_files_are_one_message(tmp_path, capsys):
    assert "is a folder" in refused(capsys, "explain", tmp_path)
    assert "No such file" in refused(capsys, "explain", tmp_path / "none")
    path = written(tmp_path, GOOD)
    assert "has no rules for reduce; known: allgather, bcast" in refused(
        capsys, "explain", path, "--collective", "reduce"
    )
    assert "depend on the size; add --size" in refused(capsys, "explain", path, "--ranks", 4)
    assert "known: 4.1, 5.0, 6.0" in refused(capsys, "explain", path, "--open-mpi", "3.1")
    for option, value in (("--size", "64KiB"), ("--nodes", "2")):
        assert f"{option} needs --ranks" in refused(capsys, "explain", path, option, value)


JSON = """{
  "rule_file_version": 3,
  "module": "tuned",
  "collectives": {
    "bcast": [
      {
        "comm_size_min": 2, "comm_size_max": 8, "comm_rank_distribution": "single-node",
        "rules": [
          {"msg_size_max": 1023, "alg": "binomial"},
          {"msg_size_min": 4096, "alg": 3, "seg_size": 8192},
          {"msg_size_min": 8192, "alg": 1}
        ]
      },
      {"comm_size_min": 16, "rules": [{"alg": 12}, {"alg": "chain", "faninout": 2, "colour": 1}]}
    ]
  }
}
"""


def test_json_rules_as_open_mpis_reader_takes_them(tmp_path, capsys):
    path = written(tmp_path, JSON)
    found = read(path, known())
    assert [(rule.line, rule.text) for rule in found.rules] == [
        (9, "binomial"), (10, "pipeline:segment_bytes=8192"), (11, "linear"), (14, "chain:fanout=2")
    ]  # fmt: skip
    texts = [(fault.line, fault.text) for fault in found.faults]
    assert any(line == 11 and "never applies: line 10 applies first" in text for line, text in texts)
    assert any(
        line == 14 and "12 is not an algorithm of Open MPI 6.0: it ignores this rule" in text for line, text in texts
    )
    assert any(line == 14 and "unknown key 'colour'" in text for line, text in texts)
    assert any(line == 9 and "no rule for 1024 to 4095 bytes" in text for line, text in texts)
    assert any("no rule for 9 to 15 ranks" in text for _, text in texts)
    text = explained(capsys, path, "--ranks", "4", "--size", "1", status=1)
    assert "if on 1 node: binomial" in text and "otherwise no rule" in text
    assert "ranks on 1 node, 1 bytes per rank: binomial" in explained(
        capsys, path, "--ranks", "4", "--size", "1", "--nodes", "1", status=1
    )
    assert "no rule" in explained(capsys, path, "--ranks", "4", "--size", "1", "--nodes", "2", status=1)


def test_no_limit_of_ranks_is_a_key_that_is_left_out(tmp_path):
    """Open MPI stores "inf" as -1 there, so that the rules never apply; for bytes "inf" is correct."""
    text = '{"collectives": {"bcast": [{"comm_size_max": "inf", "rules": [{"msg_size_max": "inf", "alg": 1}]}]}}'
    found = read(written(tmp_path, text), known())
    assert not found.rules and "never apply; leave the key out" in found.faults[0].text
    assert len(read(written(tmp_path, text.replace('"comm_size_max": "inf", ', "")), known()).rules) == 1
    assert "comm_size_max" not in converted(tmp_path, "1\n7\n1\n2\n1\n0 1 0 0\n", "openmpi-json").text


def test_a_collective_by_the_name_of_the_schema_is_not_read_by_open_mpi(tmp_path):
    """The schema calls it reducescatter, the reader reduce_scatter; with another name the reader ignores the file."""
    found = read(written(tmp_path, '{"collectives": {"reducescatter": [{"rules": [{"alg": 1}]}]}}'), known())
    assert found.ignored and "'reducescatter' is not a collective of Open MPI" in found.faults[0].text


def test_a_distribution_of_ranks_that_is_no_string_makes_open_mpi_ignore_the_file(tmp_path):
    text = '{"collectives": {"bcast": [{"comm_rank_distribution": ["single-node"], "rules": [{"alg": 1}]}]}}'
    found = read(written(tmp_path, text), known())
    assert found.ignored and "comm_rank_distribution ['single-node'] is not a string" in found.faults[0].text
