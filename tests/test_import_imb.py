"""Import of Intel MPI Benchmarks output. The text is the shortened output of IMB-MPI1 2021.11 with 2 ranks of Intel MPI."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.sources.importing.drafting.draft import draft
from collstudy.sources.importing.formats import imb
from collstudy.sources.importing.strict import Problems
from made_imports import CONFIGURATION, Import, drafted, read, write

HEAD = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
#----------------------------------------------------------------
# MPI_Datatype for reductions    :   MPI_FLOAT
# List of Benchmarks to run:

# Bcast
# Barrier
# PingPong
"""
BLOCKS = """
#----------------------------------------------------------------
# Benchmarking Bcast
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0           20         0.03         0.03         0.03
            8           20         1.91         2.92         2.41
           16           20         0.37         0.45         0.41

#----------------------------------------------------------------
# Benchmarking Bcast
# #processes = 4
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0           20         0.03         0.03         0.03
            8           20         2.91         3.92         3.41

#---------------------------------------------------
# Benchmarking Barrier
# #processes = 2
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           20         0.38         0.39         0.38

#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            8           20         2.47         3.24
"""
END = "\n\n# All processes entering MPI_Finalize\n\n"


def rows(folder: Path, text: str, collective: str) -> tuple[list[dict[str, str]], dict[str, int]]:
    problems, path = Problems(), folder / "imb.out"
    path.write_text(text)
    return [row for _, row in imb.rows(path, {"collective": collective}, problems)], problems.counted()


def test_blocks_of_one_collective(tmp_path: Path) -> None:
    found, problems = rows(tmp_path, HEAD + BLOCKS + END, "bcast")
    assert [(row["processes"], row["size_bytes"], row["latency_us"]) for row in found] == [
        ("2", "8", "2.41"), ("2", "16", "0.41"), ("4", "8", "3.41")
    ]  # fmt: skip
    assert (found[0]["min_latency_us"], found[0]["max_latency_us"], found[0]["iterations"]) == ("1.91", "2.92", "20")
    assert not problems
    found, _ = rows(tmp_path, HEAD + BLOCKS + END, "barrier")
    assert found == [
        {"iterations": "20", "min_latency_us": "0.38", "max_latency_us": "0.39", "latency_us": "0.38", "processes": "2"}
    ]


def test_a_draft_has_an_entry_for_each_collective(tmp_path: Path) -> None:
    one = HEAD + BLOCKS.partition("# Benchmarking Barrier")[0] + END
    several = HEAD + BLOCKS.replace("Barrier", "Allreduce", 1) + END
    folder = write(tmp_path / "theirs", {"binomial_core.out": several, "linear_node.out": one})
    text, questions = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    assert "suite: Intel MPI Benchmarks" in text and not any("latency_us" in question for question in questions)
    assert read(write(folder, {"binomial_core.out": one})) == [
        (algorithm, mapping, *row)
        for algorithm, mapping in (("binomial", "core"), ("linear", "node"))
        for row in ((2, 8, 2.41), (2, 16, 0.41), (4, 8, 3.41))
    ]


def test_a_number_in_the_name_is_the_process_count_of_the_file(tmp_path: Path) -> None:
    one = HEAD + BLOCKS.partition("# Benchmarking Bcast\n# #processes = 4")[0] + END
    (entry,), questions = drafted(write(tmp_path / "one", {"bcast_linear_core_2.out": one}))
    assert (entry["path"], questions) == ("bcast_{algorithm}_{mapping}_{processes}.out", "")
    (entry, *_), questions = drafted(write(tmp_path / "several", {"bcast_core_6.out": HEAD + BLOCKS + END}))
    assert entry["path"] == "bcast_{mapping}_{algorithm}.out"
    assert "whether the algorithms 6 are Open MPI's numbers" in questions


def test_numbered_files_of_other_process_counts_are_no_launches(tmp_path: Path) -> None:
    one = HEAD + BLOCKS.partition("# Benchmarking Bcast\n# #processes = 4")[0] + END
    four = one.replace("#processes = 2", "#processes = 4")
    (entry,), questions = drafted(
        write(tmp_path, {"bcast_linear_core_run_1.out": one, "bcast_linear_core_run_2.out": four})
    )
    assert (entry["path"], questions) == ("bcast_{algorithm}_{mapping}_run_*.out", "")
    _, questions = drafted(write(tmp_path, {"bcast_linear_core_run_3.out": one}))
    assert "whether files whose names differ only in *" in questions


def test_faults(tmp_path: Path) -> None:
    _, problems = rows(tmp_path, HEAD + BLOCKS, "bcast")
    assert [text.partition(" (")[0] for text in problems] == ["IMB outputs without their end, possibly of aborted runs"]
    with pytest.raises(StudyError, match="contains no times of reduce"):
        rows(tmp_path, HEAD + BLOCKS + END, "reduce")
    with pytest.raises(StudyError, match="line 12: the run ended abnormally"):
        rows(tmp_path, HEAD + "\n\nmpirun noticed that process rank 1 exited on signal 9\n", "bcast")
    found, problems = rows(tmp_path, HEAD + BLOCKS.replace("         0.41\n", "\n") + END, "bcast")
    assert len(found) == 2 and any("rows with other columns than IMB's" in text for text in problems)


def test_ranks_per_node_need_the_number_of_nodes(tmp_path: Path) -> None:
    study = Import(tmp_path)
    entry = "{{path: '{folder}/*.out', format: imb, collective: bcast, constants: {{mapping: core, processes_per_node: 2}}}}"
    message = study.refused(f"\nimport:\n  files:\n    - {entry}\n", {"imb.out": HEAD + BLOCKS + END})
    assert "no column, constant or part of the file's name gives nodes" in message


def test_output_of_benchmarks_that_are_not_imported(tmp_path: Path) -> None:
    block = BLOCKS[BLOCKS.index("# Benchmarking PingPong") :]
    with pytest.raises(StudyError) as caught:
        drafted(write(tmp_path, {"pingpong.txt": HEAD + block + END}))
    assert "pingpong.txt: output of the benchmark pingpong, which is not imported" in str(caught.value)
    _, questions = drafted(write(tmp_path, {"linear_core.txt": HEAD + BLOCKS + END}))
    assert "linear_core.txt, pingpong.txt: output of the benchmark pingpong, which is not imported" in questions


def test_a_csv_file_with_the_columns_of_a_block(tmp_path: Path) -> None:
    header = "#bytes,#repetitions,t_min[usec],t_max[usec],t_avg[usec],benchmark,algorithm,processes"
    folder = write(tmp_path / "theirs", {"core.csv": f"{header}\n8,20,1.91,2.92,2.41,Bcast,linear,4\n"})
    text, questions = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    assert "suite: Intel MPI Benchmarks" in text
    assert "the benchmark suite and its version; core.csv has t_avg[usec]: Intel MPI Benchmarks" in questions.pop()
    assert [question.partition(":")[0] for question in questions] == ["mpi, mpi_version"]
    assert read(folder) == [("linear", "core", 4, 8, 2.41)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (HEAD + BLOCKS + END + "".join(f"epilogue of the job, line {n}\n" for n in range(9)), 0),
        (HEAD + BLOCKS + END + HEAD + BLOCKS + END, 0),
        (HEAD + BLOCKS + HEAD + BLOCKS + END, 1),
    ],
)
def test_the_end_of_an_output_need_not_be_that_of_its_file(tmp_path: Path, text: str, cut: int) -> None:
    problems = Problems()
    path = write(tmp_path, {"bcast.txt": text}) / "bcast.txt"
    assert list(imb.rows(path, {"path": str(path), "collective": "bcast"}, problems))
    assert problems.counts == dict.fromkeys(["IMB outputs without their end, possibly of aborted runs"][:cut], 1)
