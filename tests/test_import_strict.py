"""Faulty input of other authors gives an error with file, line and reason, or is counted by reason; it never becomes a number."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_imports import RAW, Import, output

HEADER = "Algorithm,Mapping,P,Size,Avg,Min,Max"
SOUND = "0,core,4,8,1.5,1.0,2.0"
TABLE = f"{HEADER}\n{SOUND}\n"
STUDY = """
import:
  mpi_version: 4.1.6
  files:
    - path: {folder}/*.csv
      collective: bcast
      columns: {{algorithm: Algorithm, mapping: Mapping,
        processes: P, size_bytes: Size, latency_us: Avg, min_latency_us: Min, max_latency_us: Max}}
      algorithms: numbers
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Import:
    return Import(tmp_path)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0", 3, "binary"),
        (f"{HEADER}\n0,co\xe9r,4,8,1,1,1\n".encode("latin-1"), 2, "Latin-1"),
        (TABLE.encode("utf-16"), 1, "UTF-16"),
        (TABLE.encode("utf-16-le"), 1, "binary (or UTF-16)"),
        (f"{HEADER},Size\n{SOUND},8\n".encode(), 1, "column 'Size' appears twice in the header"),
        (f'{HEADER}\n{SOUND}\n0,"core,4,8,1,1,1\n{SOUND}\n'.encode(), 3, "unclosed quote"),
        (f'{HEADER}\n0,"co\nre",4,8,1,1,1\n'.encode(), 2, "a quoted field continues to line 3"),
        (HEADER.replace("Size", "Bytes").encode() + f"\n{SOUND}\n".encode(), 1, "no column 'Size' for size_bytes"),
        (HEADER.replace("P,", "N,").encode() + f"\n{SOUND}\n".encode(), 1, "no column 'P' for processes"),
        (
            HEADER.replace("Avg", "Mean").encode() + f"\n{SOUND}\n".encode(),
            1,
            "no column 'Avg' for latency_us; known: Algorithm, ",
        ),
    ],
)
def test_files_that_are_not_what_they_should_be(theirs: Import, content: bytes, line: int, reason: str) -> None:
    said = theirs.refused(STUDY, {"a.csv": content})
    assert f"a.csv: line {line}: " in said and reason in said


def test_optional_files_that_are_not_there_are_counted(theirs: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_DATA", str(theirs.data))
    entry = STUDY[STUDY.index("    - path") :]
    more = entry.replace("{folder}/*.csv", "${{THEIR_DATA}}/b/*.csv") + "      optional: true\n"
    theirs.collect(STUDY + more, {"a.csv": TABLE})
    ((reason, count),) = theirs.account["problems"].items()
    assert "optional patterns that match no file" in reason and count == 1 and "(first: b/*.csv)" in reason, reason


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0,core,4,8,-1,1,2", "latency_us is negative"),
        ("0,core,4,8,0,1,2", "latency_us is zero"),
        ("0,core,4,8,nan,1,2", "latency_us is not a number (NaN)"),
        ("0,core,4,8,inf,1,2", "latency_us is infinite"),
        ("0,core,4,8,1e400,1,2", "latency_us is too large"),
        ("0,core,4,8,1e12,1,2", "latency_us is too large"),
        ('0,core,4,8,"1,5",1,2', "latency_us has a decimal comma"),
        ("0,core,4,8,1_5,1,2", "latency_us has an underscore"),
        ("0,core,4,8,\u0661,1,2", "latency_us has digits other than 0 to 9"),
        ("0,core,4,8,,1,2", "latency_us is empty"),
        ("0,core,4,8,0x5,1,2", "latency_us is not a number"),
        ("0,core,0,8,1,1,2", "processes is 0"),
        ("0,core,-4,8,1,1,2", "processes is negative"),
        ("0,core,49,8,1,1,2", "processes are more than the 48 cores of 2 nodes"),
        ("0,core,4.5,8,1,1,2", "processes is not a whole number"),
        ("0,core,4,-8,1,1,2", "size_bytes is negative"),
        ("0,core,4,1.5,1,1,2", "size_bytes is not a whole number"),
        ("0,core,4,1e30,1,1,2", "size_bytes is too large"),
        ("0,core,4,8,1.5,2,1", "minimum is above the maximum"),
        ("0,core,4,8,1.5,nan,1", "min_latency_us is not a number (NaN)"),
        ("0,core,4,8,1.5", "fewer fields than the header"),
        ("0,core,4,8,1,5,1,2", "more fields than the header"),
    ],
)
def test_rows_that_are_no_numbers_are_counted_by_reason(theirs: Import, row: str, reason: str) -> None:
    theirs.collect(STUDY, {"a.csv": f"{TABLE}{row}\n{row}\n"})
    assert [r["latency_us"] for r in theirs.rows()] == ["1.5"]
    (told,) = [text for text in theirs.account["problems"] if reason in text]
    assert theirs.account["problems"][told] == 2 and "a.csv, line 3" in told


def test_files_without_rows_are_counted(theirs: Import) -> None:
    theirs.collect(STUDY, {"a.csv": TABLE, "b.csv": f"# of a job that failed\n{HEADER}\n", "c.csv": ""})
    assert [r["latency_us"] for r in theirs.rows()] == ["1.5"]
    assert theirs.account["problems"] == {"files without rows (first: b.csv)": 2}
    theirs.collect(RAW, {"linear_core_4.txt": OMB, "linear_core_8.txt": "\n"})
    assert theirs.account["problems"] == {"files without rows (first: linear_core_8.txt)": 1}


def test_an_import_without_a_row_is_an_error_with_the_reasons(theirs: Import) -> None:
    said = theirs.refused(STUDY, {"a.csv": f"{HEADER}\n0,core,4,8,0,1,2\n"})
    assert "no row can be used: 1 rows whose latency_us is zero (first: a.csv, line 2)" in said


@pytest.mark.parametrize("name", ["processes: P, ", "size_bytes: Size, ", "latency_us: Avg, "])
def test_a_study_that_names_too_few_columns(theirs: Import, name: str) -> None:
    said = theirs.refused(STUDY.replace(name, ""), {"a.csv": TABLE})
    assert f"no column, constant or part of the file's name gives {name.split(':')[0]}" in said


@pytest.mark.parametrize("text", ["latency: Avg, ", "speed: Avg, "])
def test_unknown_fields_of_columns(theirs: Import, text: str) -> None:
    said = theirs.refused(STUDY.replace("latency_us: Avg, ", text + "latency_us: Avg, "))
    assert "theirs.yaml" in said and text.split(":")[0] in said


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        ("10", "Open MPI 4.1.6 has no bcast algorithm 10; it has 0 to 9"),
        ("linear", "algorithm is not a number: 'linear'"),
    ],
)
def test_numbers_that_open_mpi_does_not_have(theirs: Import, algorithm: str, reason: str) -> None:
    assert reason in theirs.refused(STUDY, {"a.csv": f"{HEADER}\n{algorithm},core,4,8,1.5,1,2\n"})


OMB = """
# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       1.00              0.50              1.50        1000
2                       1.10              0.60              1.60        1000
4                       1.20              0.70              1.70        1000
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OMB.rstrip("\n"), "line 7: the output ends in the middle of a line"),
        (OMB[:-30], "line 7: "),
        (OMB + "mpirun noticed that process rank 3 exited on signal 11\n", "line 8: the run ended abnormally"),
        (OMB.replace("1.20", "-1.2"), "line 7: latency_us is -1.2"),
        (OMB.replace("1.20", " nan"), "line 7: latency_us is nan"),
        ("# OSU MPI Broadcast Latency Test v7.4\n", "contains no measurement"),
        (OMB.replace("Broadcast", "Allreduce"), "output of allreduce, not of bcast"),
    ],
)
def test_raw_output_that_is_cut_or_of_a_run_that_crashed(theirs: Import, text: str, reason: str) -> None:
    said = theirs.refused(RAW, {"linear_core_4.txt": text})
    assert "linear_core_4.txt" in said and reason in said


def test_raw_output_that_lacks_its_last_sizes_is_counted(theirs: Import) -> None:
    cut = "\n".join(OMB.splitlines()[:-1]) + "\n"
    theirs.collect(RAW, {"linear_core_4.txt": OMB, "linear_core_8.txt": cut})
    assert theirs.account["problems"] == {
        "raw outputs whose last sizes are missing (first: linear_core_8.txt ends at 2 bytes)": 1
    }
    assert {row["processes"]: row["reason"] for row in theirs.rows("cells")}["8"].startswith("1 of 3 sizes")
    # Files of several folders may have the same name.
    theirs.collect(
        RAW.replace("{{algorithm}}_{{mapping}}_{{processes}}", "{{processes}}/{{algorithm}}_{{mapping}}"),
        {"4/linear_core.txt": OMB, "8/linear_core.txt": cut},
    )
    assert theirs.account["problems"] == {
        "raw outputs whose last sizes are missing (first: linear_core.txt ends at 2 bytes)": 1
    }


def test_raw_output_whose_minimum_is_above_its_maximum(theirs: Import) -> None:
    theirs.collect(RAW, {"linear_core_4.txt": OMB.replace("1.70", "0.10")})
    assert [row["size_bytes"] for row in theirs.rows()] == ["1", "2"]
    assert list(theirs.account["problems"]) == [
        "rows whose minimum is above the maximum (first: linear_core_4.txt, line 7)"
    ]


LAYOUTS = """
import:
  mpi_version: 5.0.7
  files:
    - path: {folder}/bcast{{algorithm}}_{{mapping}}_thin.csv
      source: one
      mpi_version: 4.1.5
      unit: ms
      collective: bcast
      columns: {{size_bytes: Size, latency_us: [Latency, Avg]}}
      by_row: {{processes: {{from: 2, step: 2, every: 2}}}}
      algorithms: numbers
    - path: {folder}/calls.csv
      source: two
      collective: bcast
      unit: ns
      rows: iterations
      columns: {{algorithm: number, processes: ranks, latency_us: time}}
      constants: {{mapping: core}}
      by_row: {{size_bytes: {{from: 4, factor: 2, every: 5, count: 2}}}}
      algorithms: numbers
analysis:
  leave_out: [{{source: one, processes: 4, size_bytes: [2, 4], algorithm: chain, reason: the node was shared}}]
"""


def test_layouts_units_numbers_rows_and_single_calls(theirs: Import) -> None:
    calls = [f"6,2,{time}\n" for time in (1000, 4000, 2000, 3000, 5000, 7000, 7000, 7000, 7000, 7000)]
    files = {
        "bcast2_core_thin.csv": "Size,Latency\n2,0.001\n4,0.002\n2,0.003\n4,0.004\n",
        "bcast6_core_thin.csv": "Avg,Size\n0.005,2\n0.006,4\n",
        "calls.csv": "number,ranks,time\n" + "".join(calls),
    }
    theirs.collect(LAYOUTS, files)
    found = {
        (r["source"], r["algorithm"], r["processes"], r["size_bytes"], r["launch"]): float(r["latency_us"])
        for r in theirs.rows()
    }
    assert found == {
        ("one", "chain", "2", "2", "1"): 1.0, ("one", "chain", "2", "4", "1"): 2.0, ("one", "binomial", "2", "2", "1"): 5.0,
        ("one", "binomial", "2", "4", "1"): 6.0, ("two", "binomial", "2", "4", "2"): 3.0, ("two", "binomial", "2", "8", "1"): 7.0,
    }  # fmt: skip
    (calls_of_4,) = [row for row in theirs.rows() if row["source"] == "two" and row["size_bytes"] == "4"]
    assert (calls_of_4["q1_us"], calls_of_4["q3_us"], calls_of_4["iterations"]) == ("2.0", "4.0", "5")
    assert {row["statistic"] for row in theirs.rows()} == {"mean_over_ranks", "mean_over_ranks_median"}
    (left_out,) = theirs.account["left_out"]
    assert (left_out["rows"], left_out["reason"]) == (2, "the node was shared")


def test_leaving_out_what_is_not_there_is_an_error(theirs: Import) -> None:
    study = STUDY + "analysis: {{leave_out: [{{algorithm: chain, reason: why}}]}}\n"
    said = theirs.refused(study, {"a.csv": TABLE})
    assert "analysis.leave_out: no row has algorithm: chain" in said


def test_the_mean_over_ranks_and_the_slowest_rank_are_not_mixed(theirs: Import) -> None:
    entry = STUDY[STUDY.index("    - path") :] + "      statistic: slowest_rank\n"
    said = theirs.refused(STUDY + entry, {"a.csv": TABLE})
    assert "cannot be compared; split them into two studies" in said


SHEET = """
import:
  files:
    - path: {folder}/*.csv
      collective: bcast
      decimal: comma
      columns: {{processes: Processes, size_bytes: Message size, latency_us: Latency (us)}}
      constants: {{algorithm: linear, mapping: core}}
"""


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffsep=;\r\nProcesses;Message size;Latency (us)\r\n4;1.048.576;1.234,5\r\n4;2;0,5\r\n",
        "Processes;Message size;Latency (us);;\r\n4;1048576;1234,50;;\r\n4;2;,5;;\r\n;;;;\r\n",
        "  Processes   Message size   Latency (us)\n  4   1048576   1234,5\n\n  4   2   0,5\n",
    ],
    ids=["sep=; and points between thousands", "empty columns and rows", "blanks in names of columns"],
)
def test_tables_of_spreadsheets(theirs: Import, content: str) -> None:
    theirs.collect(SHEET, {"a.csv": content})
    assert [(row["size_bytes"], row["latency_us"]) for row in theirs.rows()] == [("2", "0.5"), ("1048576", "1234.5")]
    assert theirs.account["problems"] == {}


def test_barriers_that_a_loop_wrote_to_one_file(theirs: Import) -> None:
    output = "# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
    text = "".join(f"np={2**k}\n\n{output}        {k}.25     {k}.00     {k}.50      1000\n" for k in (1, 2, 3))
    study = RAW.replace("_{{processes}}", "").replace("bcast", "barrier")
    study += "      by_row: {{processes: {{from: 2, factor: 2}}}}\n"
    theirs.collect(study, {"linear_core.txt": text})
    assert {row["processes"]: row["latency_us"] for row in theirs.rows()} == {"2": "1.25", "4": "2.25", "8": "3.25"}


def test_equal_times_of_single_calls_are_kept(theirs: Import) -> None:
    study = RAW.replace(".txt", ".csv").replace("omb", "csv")
    study += "      columns: {{latency_us: us}}\n      constants: {{size_bytes: 4}}\n"
    theirs.collect(study, {"linear_core_4.csv": "us\n" + "0.5\n0.6\n0.5\n0.7\n" * 50})
    assert len(theirs.rows()) == 200 and theirs.account["exact_duplicates_dropped"] == 0
    theirs.collect(study + "      rows: iterations\n")
    (row,) = theirs.rows()
    assert (row["latency_us"], row["iterations"]) == ("0.55", "200")


@pytest.mark.parametrize(
    "ranks, number, found",
    [
        (16, 2, []),
        (8, 2, [("processes", "chain_core_16.txt: 8, not 16", "1 raw output whose command has another number of ranks")]),
        (16, 6, [("wrong algorithm", "chain_core_16.txt: binomial, not chain", "1 raw output whose command has another algorithm")]),
        (16, 99, []),
    ],
)  # fmt: skip
def test_the_command_in_raw_output(theirs: Import, ranks: int, number: int, found: list[tuple[str, str, str]]) -> None:
    """Scripts print the command; it says what ran. Commands of other benchmarks do not."""
    script = f"mpirun -np 4 osu_reduce\nmpirun -np {ranks} --mca coll_tuned_bcast_algorithm {number} ./osu_bcast -f\n"
    study = RAW.replace("import:\n", "import:\n  mpi_version: 4.1.6\n")
    theirs.collect(study, {"chain_core_16.txt": script + output("Broadcast", 0.25, 0.5)})
    assert [(row["check"], row["where"], row["found"]) for row in theirs.rows("import-checks")] == found


def test_raw_output_of_buffers_in_gpu_memory_is_a_finding(theirs: Import) -> None:
    text = output("Broadcast", 0.25, 0.5)
    theirs.collect(RAW, {"chain_core_16.txt": text})
    assert theirs.rows("import-checks") == []
    theirs.collect(RAW, {"chain_core_16.txt": text.replace("# OSU MPI ", "# OSU MPI-CUDA ")})
    found = [(row["check"], row["where"], row["found"], row["action"]) for row in theirs.rows("import-checks")]
    assert found == [("values", "chain_core_16.txt", "1 raw output with buffers in GPU memory", "kept unchanged")]
