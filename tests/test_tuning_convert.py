"""`./study convert`: independent parsers of the new files, modelled on the libraries' readers."""

from __future__ import annotations

import json
import re

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.launch.toolchain import mpis
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import check, rules, writers
from collstudy.tuning.convert import convert
from collstudy.tuning.findings import complain
from collstudy.tuning.library import library_of
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.rules import Placement, Rule
from test_tuning_files import CATALOGUE, GOOD, JSON, converted, known, refused, written
from test_tuning_files_of_others import MPICH


def classic_says(text: str, collective: str, ranks: int, size: int) -> list[int]:
    """Return algorithm and parameters that coll/tuned selects: 4.1's reader and look-up (coll_tuned_dynamic_{file,rules}.c)."""
    words = iter(re.sub(r"#.*", "", text).split())
    first = next(words)
    two = first == "rule-file-version-2"
    count = int(next(words) if two else first)
    for _ in range(count):
        number = int(next(words))
        entries = []
        for _ in range(int(next(words))):
            least = int(next(words))
            entries.append(
                (least, [[int(next(words)) for _ in range(5 if two else 4)] for _ in range(int(next(words)))])
            )
        if number == rules.COLLTYPES.index(collective):
            best = entries[0][1]
            for least, lines in entries:
                if least > ranks:
                    break
                best = lines
            unit = size * ranks if collective in ("allgather", "alltoall", "gather", "scatter") else size
            return [line for i, line in enumerate(best) if i == 0 or line[0] <= unit][-1][1:]
    return [0, 0, 0]


def json_says(text: str, collective: str, ranks: int, size: int) -> list[int]:
    """Return the same for main's JSON reader: the first matching communicator rule, then its first matching message rule."""
    unit = size * ranks if collective in ("allgather", "alltoall", "gather", "scatter") else size
    infinite = {"inf": 2**63}
    document = json.loads(text)
    assert set(document) == {"rule_file_version", "module", "collectives"}
    assert set(document["collectives"]) <= set(rules.COLLTYPES)
    for scope in document["collectives"].get(collective, []):
        assert set(scope) <= {"comm_size_min", "comm_size_max", "comm_rank_distribution", "rules"}
        # "inf" is the largest 64-bit number, which its 32-bit field stores as -1.
        high = scope.get("comm_size_max", 2**31 - 1)
        if not scope.get("comm_size_min", 0) <= ranks <= (-1 if high == "inf" else high):
            continue
        for rule in scope["rules"]:
            assert set(rule) <= {"msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs"}
            high = rule.get("msg_size_max", "inf")
            if rule.get("msg_size_min", 0) <= unit <= infinite.get(high, high):
                return [rule["alg"], rule.get("faninout", 0), rule.get("seg_size", 0)]
        return [0, 0, 0]
    return [0, 0, 0]


POINTS = [
    (collective, ranks, size)
    for collective in ("bcast", "allgather")
    for ranks in (2, 3, 23, 24, 31, 32, 33, 100)
    for size in (0, 1, 2, 3, 4, 50, 127, 128, 1023, 1024, 4095, 4096, 65535, 65536, 10**9)
]


@pytest.mark.parametrize("to", ["openmpi", "openmpi-2", "openmpi-json"])
def test_open_mpis_formats_say_the_same(tmp_path, to):
    found = converted(tmp_path, GOOD, to)
    assert not found.losses
    says = json_says if to == "openmpi-json" else classic_says
    for point in POINTS:
        assert says(found.text, *point)[:3] == classic_says(GOOD, *point), point
    if to != "openmpi-json":
        back = convert(read(written(tmp_path, found.text), known()), "openmpi-json", known())
        assert back.text == converted(tmp_path, GOOD, "openmpi-json").text


@pytest.mark.parametrize("taken", ["folder", "file/x"])
def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path, capsys, taken):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    command = ["convert", str(written(tmp_path, GOOD)), "--to", "openmpi-2", "--output", str(tmp_path / taken)]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/{taken.removesuffix('/x')}: ")


def test_json_becomes_the_classic_format_and_what_it_cannot_tell_is_listed(tmp_path):
    text = JSON.replace(', "comm_rank_distribution": "single-node"', "").replace('{"alg": 12}, ', "")
    found = converted(tmp_path, text, "openmpi")
    in_numbers = text.replace('"binomial"', "6").replace('"chain"', "2").replace(', "colour": 1', "")
    for ranks in (2, 8, 9, 15, 16, 99):
        for size in (0, 1023, 1024, 4095, 4096, 10**6):
            point = ("bcast", ranks, size)
            assert classic_says(found.text, *point) == json_says(in_numbers, *point), point
    lost = converted(tmp_path, JSON, "openmpi").losses
    assert [loss.line for loss in lost] == [9, 10, 11]
    assert all("cannot express the condition on the number of nodes" in loss.text for loss in lost)


def test_requests_survive_between_open_mpis_formats(tmp_path):
    text = "rule-file-version-2\n1\n3\n1\n2\n1\n0 4 0 0 7\n"
    assert classic_says(converted(tmp_path, text, "openmpi-2").text, "alltoall", 4, 8) == [4, 0, 0, 7]
    (scope,) = json.loads(converted(tmp_path, text, "openmpi-json").text)["collectives"]["alltoall"]
    assert scope["rules"][0]["reqs"] == 7
    with pytest.raises(StudyError, match="line 7: alltoall linear_sync:max_requests=7: no equivalent in"):
        converted(tmp_path, text, "openmpi")


def test_intel_gets_what_it_has_and_the_rest_is_listed(tmp_path, capsys):
    """Intel MPI applies a variable to all calls of its collective, so the rules of one that it cannot express entirely are lost."""
    path = written(
        tmp_path, "3\n7\n1\n2\n2\n0 6 0 0\n4096 9 0 0\n0\n1\n2\n2\n0 2 0 0\n99 0 0 0\n3\n1\n2\n2\n0 4 0 0\n9 2 0 0\n"
    )
    assert main(["convert", str(path), "--to", "intel"]) == 0
    out, error = capsys.readouterr()
    assert "export I_MPI_ADJUST_BCAST='1:0-4095;3:4096-2147483647'" in out
    assert "ALLGATHER=" not in out and "ALLTOALL=" not in out
    assert "allgather: not converted: Intel MPI's variable applies to all sizes and ranks" in error
    assert "line 20: alltoall pairwise" in error or "alltoall" in error


def test_ucc_and_nccl_get_rings(tmp_path):
    text = "2\n2\n1\n2\n2\n0 4 0 0\n1000 3 0 0\n0\n2\n2\n1\n0 4 0 0\n5\n2\n0 1 0 0\n1000 4 0 0\n"
    ucc = converted(tmp_path, text, "ucc")
    tokens = re.search(r"TUNE='(.*)'", ucc.text).group(1).split("#")
    assert tokens == [
        "allreduce:0-999:[2-inf]:@ring:inf", "allgather:0-inf:[2-4]:@ring:inf", "allgather:1000-inf:[5-inf]:@ring:inf"
    ]  # fmt: skip
    assert any("requires counts divisible by the number of ranks" in loss.text for loss in ucc.losses)
    nccl = converted(tmp_path, text, "nccl")
    rows = [line.split(",") for line in nccl.text.splitlines() if not line.startswith("#")]
    assert all(len(row) == 8 and row[3:7] == ["ring", "simple", "-1", "-1"] for row in rows)
    assert [[row[0], row[1], row[2], row[7]] for row in rows] == [
        ["allreduce", "0", "999", "-1"], *(["allgather", "0", str(2**64 - 1), str(ranks)] for ranks in (2, 3, 4)),
    ]  # fmt: skip
    texts = [loss.text for loss in nccl.losses]
    assert any(
        "allgather ring from 5 ranks on not written: NCCL's tuner needs one line per rank count" in one for one in texts
    )
    assert any("protocols" in one for one in texts)
    # Convert back: each line has one rank count.
    assert classic_says(converted(tmp_path, nccl.text, "openmpi").text, "allgather", 4, 7) == [4, 0, 0]


def test_limits_of_one_rank_in_a_format_that_counts_all_are_listed(tmp_path):
    text = "UCC_TL_UCP_TUNE=alltoall:0-4095:@pairwise#alltoall:4096-inf:@bruck\n"
    assert not converted(tmp_path, text, "openmpi").losses
    (loss,) = converted(tmp_path, "allgather,0,4095,ring,simple,-1,-1,-1\n", "openmpi").losses or [None]
    assert loss is None or loss.line == 1
    tree = MPICH.replace("collective=reduce", "collective=bcast").replace("Reduce", "Bcast").replace("avg_", "total_")
    losses = converted(tmp_path, tree.replace("comm_size=pow2", "comm_size<=32"), "openmpi").losses
    assert any("limits in bytes of all ranks become bytes of one rank" in loss.text for loss in losses)


def test_powers_of_two_of_mpich_become_numbers_of_ranks(tmp_path):
    found = converted(tmp_path, MPICH, "openmpi")
    rabenseifner, binomial = NUMBERS["reduce"]["rabenseifner"], NUMBERS["reduce"]["binomial"]
    for ranks, size, number in (
        (3, 5000, binomial), (8, 1023, binomial), (8, 1024, rabenseifner), (9, 1024, 0), (9, 9, binomial), (64, 2048, rabenseifner),
        (65, 8, 0),
    ):  # fmt: skip
        assert classic_says(found.text, "reduce", ranks, size)[0] == number, (ranks, size)
    texts = [loss.text for loss in found.losses]
    assert any(
        "the condition is_commutative=yes was dropped; the rule now applies to all calls" in text for text in texts
    )
    assert any("MPIR_Reduce_intra_smp: no equivalent in" in text for text in texts)


def test_nothing_to_say_is_an_error_with_the_reasons(tmp_path, capsys):
    path = written(tmp_path, "1\n7\n1\n2\n1\n0 5 0 0\n")
    error = refused(capsys, "convert", path, "--to", "intel")
    assert "none of its rules can be expressed as" in error and "line 6: bcast binary_tree: no equivalent" in error
    assert "--check supports Open MPI's rules and MPICH's trees" in refused(
        capsys, "convert", path, "--to", "intel", "--check"
    )


def test_the_files_that_studies_write_are_read_as_they_were_meant(tmp_path):
    """Each writer's file has the rules of its placement, at every limit and one below and above."""
    table = {
        4: (Rule(0, "binomial"), Rule(1024, "pipeline", (("segment_bytes", 8192),)), Rule(65536, "default")),
        8: (Rule(0, "default"), Rule(4096, "chain", (("fanout", 4),))),
    }
    elsewhere = {0: (Rule(0, "default"),), 16: (Rule(0, "default"),)}
    placement = Placement("core", 2, {"bcast": {0: elsewhere[0], **table, 16: elsewhere[16]}})
    for name, text in {
        "openmpi": writers.openmpi_rules(placement, CATALOGUE, ["x"], NUMBERS),
        "openmpi-2": writers.openmpi_rules(placement, CATALOGUE, ["x"], NUMBERS, version=2),
        "openmpi-json": writers.openmpi_json(placement, CATALOGUE, NUMBERS),
    }.items():
        found = read(written(tmp_path, text), known())
        assert found.format == name and not [fault for fault in found.faults if not fault.note]
        for ranks in (2, 3, 4, 7, 8, 15, 16, 99):
            for size in (0, 1, 1023, 1024, 4095, 4096, 65535, 65536):
                meant = rules.selected(placement.tables["bcast"], ranks, size)
                at = found.at("bcast", ranks, size)
                said = (at[0].algorithm, at[0].parameters) if at else ("default", ())
                assert said == (meant.algorithm, meant.parameters), (name, ranks, size)


def test_sizes_of_all_ranks_are_checked_for_more_ranks_than_are_started(tmp_path):
    """If a file counts the bytes of all ranks, the copy for fewer ranks must have limits for these ranks."""
    own = library_of(mpis()["openmpi"], CATALOGUE, NUMBERS)
    table = {2: (Rule(0, "default"),), 24: (Rule(0, "ring"), Rule(64, "bruck"))}
    placement = Placement("core", 1, {"allgather": table})
    path = tmp_path / "openmpi.rules"
    own.write(placement, path)
    findings = check.check_placement(placement, path, CATALOGUE, own)
    complain(findings)
    assert {one.rule for one in findings if one.tells_apart} >= {"ring", "bruck"}


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_the_installed_library_follows_a_converted_file(tmp_path, capsys, mpi):
    if mpi not in mpis():
        pytest.skip(f"no {mpi} here")
    path = written(tmp_path, "1\n7\n2\n2\n1\n0 6 0 0\n8\n2\n0 6 0 0\n4096 5 0 0\n")
    output = tmp_path / "new.rules"
    assert main(["convert", str(path), "--to", mpi, "--output", str(output), "--check"]) == 0
    assert re.search(
        r": [1-9]\d* sizes around rule boundaries checked; at [1-9]\d* of them a wrong rule would have been noticed",
        capsys.readouterr().out,
    )
    # A library that deviates from the file is detected.
    output.write_text(output.read_text().replace("0 6 0 0", "0 1 0 0").replace("intra_binomial", "intra_smp"))
    if mpi == "openmpi":
        found = convert(read(path, known(mpis()[mpi].version)), mpi, known(mpis()[mpi].version))
        own = library_of(mpis()[mpi], CATALOGUE, NUMBERS)
        with pytest.raises(StudyError, match="runs another algorithm"):
            complain(check.check_placement(found.placement, output, CATALOGUE, own))


def test_a_rule_for_empty_messages_only_stays_one(tmp_path):
    text = converted(tmp_path, "bcast * * 0 -> ompi_binomial\n", "openmpi-2").text
    assert [classic_says(text, "bcast", 4, size)[0] for size in (0, 1)] == [NUMBERS["bcast"]["binomial"], 0]
