"""PICO's result archives: a folder or .tar.gz per run, its metadata and its allocation."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.project.studies import Project
from collstudy.sources.importing.formats import pico
from collstudy.sources.importing.reading import read_all, used_of
from collstudy.study import allocations
from conftest import csv_rows, reference_data
from made_imports import Import, drafted

STUDY = """
import:
  mpi: Open MPI
  files:
    - path: {folder}/2025*
      format: pico
      where: {{gpu_awareness: "no"}}
"""
METADATA = (
    "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib_version,gpu_awareness\n"
    "2025_01_01,0,4,1,BCAST,4.1.6,no\n2025_01_01,1,4,1,ALLGATHER,4.1.6,no\n2025_01_01,2,4,1,BCAST,4.1.6,yes\n"
)
CALLS = "highest\n9000000\n1000\n3000\n2000\n4000\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Import:
    return Import(tmp_path, "leonardo")


def write_run(theirs: Import, archive: bool = True, hosts: int = 4, **files: str) -> Path:
    (theirs.data / "x_metadata.csv").write_text(METADATA)
    run = theirs.folder / "2025_01_01"
    content = {
        "0/8_binomial_ompi_int32.csv": CALLS, "0/8_default_ompi_int32.csv": CALLS, "0/8_bine_lat_over_int32.csv": CALLS,
        "1/16_ring_ompi_int32.csv": CALLS, "2/8_binomial_ompi_int32.csv": CALLS,
        "alloc.csv": "MPI_Rank,allocation\n" + "".join(f"{i},node{i * 4 // hosts}\n" for i in range(hosts)),
    }  # fmt: skip
    for name, text in {**content, **files}.items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if not archive:
        return run.rename(theirs.data / "2025_01_01")
    packed = theirs.data / "2025_01_01.tar.gz"
    with tarfile.open(packed, "w:gz") as stream:
        stream.add(run, "2025_01_01")
    return packed


@pytest.mark.parametrize("archive", [True, False])
def test_the_draft_of_runs(theirs: Import, archive: bool) -> None:
    """The files in a run's folder are not drafted beside it."""
    run = write_run(theirs, archive)
    run.rename(run.with_name(run.name.replace("2025_01_01", "2025_01_01___10_00_00")))
    entries, questions = drafted(theirs.data, "leonardo")
    assert [(entry["path"], entry.get("format")) for entry in entries] == [("20*" + ".tar.gz" * archive, "pico")]
    assert questions == ""


def test_the_draft_of_packed_and_unpacked_runs(theirs: Import) -> None:
    write_run(theirs).rename(theirs.data / "2025_01_01___10_00_00.tar.gz")
    write_run(theirs, archive=False).rename(theirs.data / "2025_01_02___10_00_00")
    assert [entry["path"] for entry in drafted(theirs.data, "leonardo")[0]] == ["20*"]


@pytest.mark.parametrize("archive", [True, False])
def test_a_run(theirs: Import, archive: bool) -> None:
    write_run(theirs, archive)
    theirs.collect(STUDY)
    rows = {(r["collective"], r["algorithm"]): r for r in theirs.rows()}
    assert set(rows) == {("bcast", "binomial"), ("bcast", "default"), ("allgather", "ring")}
    row = rows["bcast", "binomial"]
    assert (row["latency_us"], row["q1_us"], row["q3_us"], row["iterations"]) == ("2.5", "1.75", "3.25", "4")
    assert (row["size_bytes"], row["nodes"], row["processes"], row["mapping"]) == ("32", "4", "4", "node")
    assert row["statistic"] == "slowest_rank_median"
    # PICO counts the whole buffer; a rank of an allgather sends its part of it.
    assert rows["allgather", "ring"]["size_bytes"] == "16"
    problems = theirs.account["problems"]
    assert [count for text, count in problems.items() if "not Open MPI's" in text] == [1]
    assert [count for text, count in problems.items() if "does not select (where)" in text] == [1]


def test_calls_that_are_no_times_are_counted(theirs: Import) -> None:
    write_run(theirs, **{"0/8_binomial_ompi_int32.csv": "highest\n70000\n1000\n0\n-5\nnan\n3000\n2,5\n20"})
    theirs.collect(STUDY)
    (row,) = [r for r in theirs.rows() if r["algorithm"] == "binomial"]
    assert (row["latency_us"], row["iterations"]) == ("2.0", "2")
    told = " ".join(theirs.account["problems"])
    for reason in (
        "time is zero",
        "time is negative",
        "time is not a number",
        "another number of fields",
        "line is truncated",
    ):
        assert reason in told


def test_an_allocation_of_another_number_of_ranks(theirs: Import) -> None:
    write_run(theirs, hosts=16)
    said = theirs.refused(STUDY)
    assert "tests whose allocation and metadata disagree on the number of ranks" in said and "16 instead of 4" in said
    theirs.collect(STUDY.replace("format: pico", "format: pico\n      ranks: allocation"))
    assert {(r["nodes"], r["processes"], r["mapping"]) for r in theirs.rows()} == {("4", "16", "core")}


def test_the_output_of_a_run_says_its_ranks(theirs: Import) -> None:
    """As in 2025_03_20___12_52_50: several tests with 4, 2 and 1 ranks per node, but only the allocation of the first."""
    printed = "\x1b[1mBENCH: BCAST -> {} processes (4 nodes)\x1b[0m\n"
    said = "".join(
        f"  • Results Directory: /home/x/2025_01_01/{i}\n" + printed.format(n) for i, n in enumerate((16, 4))
    )
    write_run(theirs, hosts=16, **{"slurm_1.out": said})
    theirs.collect(STUDY.replace("format: pico", "format: pico\n      ranks: allocation"))
    assert {(r["collective"], r["processes"], r["mapping"], r["size_bytes"]) for r in theirs.rows()} == {
        ("bcast", "16", "core", "32"),
        ("allgather", "4", "node", "16"),
    }


def test_ranks_are_on_the_nodes_of_the_allocation(theirs: Import) -> None:
    packed = write_run(theirs, **{"alloc.csv": "MPI_Rank,allocation\n0,n0003.x\n1,n0180.x\n2,n0181.x\n3,n0182.x\n"})
    allocations.write_nodes(theirs.data / "nodes.csv", pico.allocations(packed))
    assert (theirs.data / "nodes.csv").read_text().splitlines()[1:] == ["2025_01_01,4,1,2 179-181"]
    theirs.collect(STUDY.replace("format: pico", "format: pico\n      allocations: {folder}/nodes.csv"))
    rows = csv_rows(theirs.folder / "results" / "theirs" / "ranks.csv")
    assert [(row["rank"], row["group"], row["node"]) for row in rows] == [
        ("0", "0", "2"),
        ("1", "0", "179"),
        ("2", "1", "180"),
        ("3", "1", "181"),
    ]


def test_a_table_of_nodes_has_every_rank(tmp_path: Path) -> None:
    allocations.write_nodes(tmp_path / "n.csv", [("a", 8, [0, 0, 1, 1, 2, 2, 5, 5]), ("b", 2, [7, 3])])
    # Includes one rank per node; if nodes are not in order, the ranks' nodes are unknown.
    assert allocations.read_nodes(tmp_path / "n.csv") == {("a", 8): (0, 0, 1, 1, 2, 2, 5, 5), ("a", 4): (0, 1, 2, 5)}
    (tmp_path / "n.csv").write_text("run,processes\na,x\n")
    with pytest.raises(StudyError, match="not a table of allocations"):
        allocations.read_nodes(tmp_path / "n.csv")


def test_what_was_read_is_cached_by_content(theirs: Import) -> None:
    packed = write_run(theirs)
    theirs.collect(STUDY)
    (stored,) = (theirs.folder / "results" / "imports").glob("pico-*.json")
    first = theirs.rows()
    # A damaged cache file is not used.
    for path in (stored, theirs.folder / "results" / "imports" / "theirs.json"):
        path.write_text(path.read_text().replace("2500.0", "1.0").replace("2.5", "1.0"))
    theirs.collect(STUDY)
    assert theirs.rows() == first
    for path in (stored, theirs.folder / "results" / "imports" / "theirs.json"):
        path.write_text("null")
    theirs.collect(STUDY)
    assert theirs.rows() == first
    packed.unlink()
    write_run(theirs, **{"0/8_binomial_ompi_int32.csv": CALLS.replace("3000", "5000")})
    theirs.collect(STUDY)
    assert "3.0" in {row["latency_us"] for row in theirs.rows()}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"0/8_binomial_ompi_int32.csv": "lowest\n1\n"}, "line 1: the first column is 'lowest', not 'highest'"),
        ({"0/8_binomial_ompi_complex.csv": CALLS}, "the type 'complex' has no known size"),
    ],
)
def test_files_that_are_not_picos(theirs: Import, files: dict[str, str], reason: str) -> None:
    write_run(theirs, **files)
    assert reason in theirs.refused(STUDY)


def test_an_archive_that_is_damaged(theirs: Import) -> None:
    """Also inside of a file, which is read later than its name."""
    calls = "highest\n" + "".join(f"{number * 7919 % 99991}\n" for number in range(1, 50000))
    packed = write_run(theirs, **{"0/8_binomial_ompi_int32.csv": calls})
    content = packed.read_bytes()
    for at in (20, len(content) // 2):
        packed.write_bytes(content[:at] + b"\xff" * 64 + content[at + 64 :])
        assert "2025_01_01.tar.gz: the archive cannot be read" in theirs.refused(STUDY)


def test_a_test_whose_shape_or_times_are_not_given(theirs: Import) -> None:
    """A run that was killed leaves an empty file."""
    write_run(theirs, **{"1/16_ring_ompi_int32.csv": ""})
    (theirs.data / "x_metadata.csv").write_text(METADATA.replace("_01,0,4,", "_01,0,four,"))
    assert "no row can be used" in theirs.refused(STUDY)
    (theirs.data / "x_metadata.csv").write_text(METADATA)
    theirs.collect(STUDY)
    assert {row["collective"] for row in theirs.rows()} == {"bcast"}
    assert sum("files without a time" in text for text in theirs.account["problems"]) == 1


def test_an_archive_that_is_cut(theirs: Import) -> None:
    packed = write_run(theirs)
    packed.write_bytes(packed.read_bytes()[:200])
    assert "2025_01_01.tar.gz: the archive cannot be read" in theirs.refused(STUDY)


def test_the_published_archives_give_their_authors_medians(theirs: Import) -> None:
    """The medians equal those in PICO's own summary for three of the archives (aggregated_results_summary.csv)."""
    folder = reference_data() / "pico-leonardo"
    project = Project(results=theirs.folder / "results")
    study = project.study("leonardo")
    rows = used_of(study, read_all(study, project.context.catalogue)[0])
    found = {
        (row["collective"], row["algorithm"], row["nodes"], row["size_bytes"]): row["latency_us"]
        for row in rows
        if row["run"] == "2025_03_28___17_42_08/0"
    }
    with tarfile.open(folder / "2025_03_28___17_42_08.tar.gz") as archive:
        lines = archive.extractfile("2025_03_28___17_42_08/aggregated_results_summary.csv").read().decode().splitlines()
    header = lines[0].split(",")
    names = {
        "recursive_doubling_ompi": "recursive_doubling",
        "default_ompi": "default",
        "rabenseifner_ompi": "rabenseifner",
    }
    theirs_say = [dict(zip(header, line.split(","), strict=True)) for line in lines[1:]]
    compared = 0
    for row in theirs_say:
        if row["collective_type"] == "ALLREDUCE" and row["algo_name"] in names and row["test_id"] == "0":
            ours = found["allreduce", names[row["algo_name"]], 1024, int(row["buffer_size"])]
            assert ours == pytest.approx(float(row["median"]) / 1e3)
            compared += 1
    assert compared >= 9
