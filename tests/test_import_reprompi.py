"""Import of ReproMPI's output. All numbers are invented; the lines are those that `mpibenchmark` prints (versions of 2016 to 2024)."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.sources.importing.drafting.draft import draft
from made_imports import CONFIGURATION, Import, drafted, read, write
from made_imports import output as raw

SHA = "00325471f9a39c5ffc35796f360fb02838cbef84"
END = "# Benchmark started at Mon Oct 12 22:14:38 2020\n# Execution time: 0s\n"
#: The seconds of a call of each collective at one byte, without the ranks' share.
CALLS = {"MPI_Bcast": 10e-6, "MPI_Allreduce": 20e-6}


def settings(ranks: int = 4, bytes_per_element: int = 1, *more: str) -> str:
    """Return the lines above a table, with *more* settings at their end."""
    return "\n".join([
        "#MPI calls:", *(f"#\t{name}" for name in CALLS), "#Message sizes:", "#\t8", "#@operation=MPI_BOR", "#@datatype=MPI_BYTE",
        f"#@datatype_extent_bytes={bytes_per_element}", f"#@datatype_size_bytes={bytes_per_element}", "#@root_proc=0",
        f"#@reproMPIcommitSHA1={SHA}", f"#@nprocs={ranks}", "#@clocktype=local", "#@clock=MPI_Wtime", "#@sync=MPI_Barrier", *more,
        "#@nrep=3", "",
    ])  # fmt: skip


def table(*rows: tuple, names: str = "test nrep count runtime_sec") -> str:
    """Return a table; texts are printed as ReproMPI prints them, times with ten decimals."""
    printed = [
        names.split(),
        *([f"{value:.10f}" if isinstance(value, float) else str(value) for value in row] for row in rows),
    ]
    wide = 51 if names.startswith("test") else 8
    return "".join(f"{row[0]:>{wide - 1}} " + " ".join(f"{text:>14}" for text in row[1:]) + " \n" for row in printed)


def calls(test: str, count: int, *us: float) -> list[tuple]:
    return [(test, number, count, time / 1e6) for number, time in enumerate(us)]


def output(ranks: int, tests: dict[str, float] = CALLS, sizes: tuple[int, ...] = (8, 16)) -> str:
    """Return the output of a run whose calls take the time of the test + ranks + size us, less or more than that by one."""
    rows = [
        row for size in sizes for test, s in tests.items()
        for row in calls(test, size, *(s * 1e6 + ranks + size + more for more in (-1, 0, 1)))
    ]  # fmt: skip
    return "#Command-line arguments:  ./bin/mpibenchmark --nrep=3\n" + settings(ranks) + table(*rows) + END


def study_of(collective: str = "bcast", algorithms: str = "") -> str:
    """Return the study of all files of a folder; *algorithms* is the text of the key."""
    return f"""
import:
  files:
    - path: {{folder}}/*.dat
      format: reprompi
      collective: {collective}
      constants:
        mapping: core
{algorithms}"""


def collected(folder: Path, text: str, collective: str = "bcast", algorithms: str = "") -> Import:
    """Return the collected study of a file."""
    study = Import(folder)
    study.collect(study_of(collective, algorithms), {"run.dat": text})
    return study


def cells(study: Import) -> list[tuple[int, int, int, float, int]]:
    """Return ranks, size, launch, latency and number of calls of the rows."""
    return [
        (int(row["processes"]), int(row["size_bytes"] or 0), int(row["launch"]), round(float(row["latency_us"]), 4), int(row["iterations"]))
        for row in study.rows()
    ]  # fmt: skip


def test_a_folder_is_drafted_and_read(tmp_path: Path) -> None:
    """The files have an entry for each collective; they tell the number of ranks, but neither mapping nor the library's settings."""
    folder = write(tmp_path / "theirs", {f"core/run_{ranks}.dat": output(ranks) for ranks in (4, 8)})
    text, questions = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    assert "suite: ReproMPI\n" in text and f"suite_version: {SHA}\n" in text
    assert questions == [
        "{mapping}/run_*.dat (2 files): whether the library chose the algorithm itself (default); if not, set it in `constants`",
        "mpi, mpi_version: the MPI library and its version, which no file names (`unknown` if nothing tells)",
    ]
    assert {(*row[:4], round(row[4], 4)) for row in read(folder)} == {
        ("default", "core", ranks, size, round(time * 1e6 + ranks + size, 4))
        for time in CALLS.values() for ranks in (4, 8) for size in (8, 16)
    }  # fmt: skip


def test_an_algorithm_in_the_name_is_not_the_default(tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {"bcast_binomial_core_4.dat": output(4, {"MPI_Bcast": 10e-6}, (8,))})
    (entry,), questions = drafted(folder)
    assert (entry["path"], questions) == ("bcast_{algorithm}_{mapping}_{processes}.dat", "")
    assert read(folder) == [("binomial", "core", 4, 8, pytest.approx(22))]


def test_calls_become_median_quartiles_and_number(tmp_path: Path) -> None:
    """The runs that --output-file collects are launches, also of other numbers of ranks; the statistic is that of the slowest rank."""
    rows = calls("MPI_Bcast", 8, 1, 2, 3, 4, 9)
    study = collected(tmp_path, settings(4) + table(*rows) + END + 2 * (settings(2) + table(*rows[:3]) + END))
    assert cells(study) == [(2, 8, 1, 2, 3), (2, 8, 2, 2, 3), (4, 8, 1, 3, 5)]
    assert [round(float(study.rows()[-1][name]), 4) for name in ("q1_us", "q3_us")] == [2, 4]
    assert {row["statistic"] for row in study.rows()} == {"slowest_rank_median"}
    assert study.account["problems"] == {} and study.account["statistics"] == ["slowest_rank_median"]


@pytest.mark.parametrize(
    ("test", "size"),
    [
        ("MPI_Bcast", 80), ("MPI_Allgather", 80), ("MPI_Gather", 80), ("MPI_Scatter", 80), ("MPI_Alltoall", 80),
        ("MPI_Reduce_scatter", 320), ("MPI_Reduce_scatter_block", 80), ("MPI_Scan", 80),
    ],
)  # fmt: skip
def test_counts_are_elements_of_a_ranks_part(tmp_path: Path, test: str, size: int) -> None:
    """10 elements of 8 bytes on 4 ranks. The size of a reduce-scatter is here that of the whole vector, with equal blocks of one."""
    study = collected(tmp_path, settings(4, 8) + table(*calls(test, 10, 5)) + END, test.removeprefix("MPI_").lower())
    assert cells(study) == [(4, size, 1, 5, 1)]


def test_sizes_in_bytes_and_of_the_earliest_version(tmp_path: Path) -> None:
    """`msize_bytes` is a choice of the build; `msize` has elements, whose size the settings of 2016 lack."""
    names = "test nrep {} runtime_sec"
    rows = calls("MPI_Bcast", 16, 5)
    early = "".join(line for line in settings(2, 8).splitlines(keepends=True) if "#@datatype_" not in line)
    text = settings(4, 8) + table(*rows, names=names.format("msize_bytes")) + END
    study = collected(tmp_path, text + early + table(*rows, names=names.format("msize")) + END)
    assert cells(study) == [(2, 16, 1, 5, 1), (4, 16, 1, 5, 1)]
    text = early.replace("MPI_BYTE", "MPI_DOUBLE") + table(*rows, names=names.format("msize")) + END
    message = study.refused(study_of(), {"run.dat": text})
    assert "run.dat: line 16: the size of MPI_DOUBLE is not in the settings above" in message


def test_a_barrier_has_one_cell_for_all_sizes(tmp_path: Path) -> None:
    rows = [*calls("MPI_Barrier", 8, 1, 2), *calls("MPI_Barrier", 16, 3, 4, 5)]
    assert cells(collected(tmp_path, settings() + table(*rows) + END, "barrier")) == [(4, 0, 1, 3, 5)]


def test_calls_outside_of_their_window_are_not_used(tmp_path: Path) -> None:
    rows = [("MPI_Bcast", number, 8, code, 1e-6 * number) for number, code in enumerate((0, 1, 0, 2, 0))]
    study = collected(tmp_path, settings() + table(*rows, names="test nrep count errorcode runtime_sec") + END)
    assert cells(study) == [(4, 8, 1, 3, 2)]
    assert study.account["problems"] == {
        "calls whose time is zero (first: run.dat, line 18)": 1,
        "calls whose error code says that they began or ended outside of their window (first: run.dat, line 18)": 2,
    }


@pytest.mark.parametrize(
    ("clock", "us"),
    [("#@runtime_type=local", 4), ("#@runtime_type=global", 6), ("#@clocktype=global", 6)],
)
def test_times_of_every_rank(tmp_path: Path, clock: str, us: float) -> None:
    """-v prints all calls of a rank, then those of the next: the longest local time, or from the first start to the last end."""
    names = "process test nrep count loc_tstart_sec loc_tend_sec gl_tstart_sec gl_tend_sec"
    rows = [
        (rank, "MPI_Bcast", number, 8, 100.0 + at, 100.0 + at + (3 + rank) * 1e-6, 7.0 + at + 2e-6 * rank, 7.0 + at + (3 + 3 * rank) * 1e-6)
        for rank in (0, 1) for number, at in enumerate((0.1, 0.2))
    ]  # fmt: skip
    # A list of jobs may have a size twice; the last call lacks a rank.
    study = collected(tmp_path, settings(2, 1, clock) + table(*rows, *rows[:3], names=names) + END)
    assert cells(study) == [(2, 8, 1, us, 3)]
    assert study.account["problems"] == {"calls whose times of some ranks are missing (first: run.dat, line 19)": 1}


def test_summaries(tmp_path: Path) -> None:
    """The median is used, otherwise the mean; both are of the slowest rank."""
    head = "test count total_nrep valid_nrep"
    text = settings(2) + table(("MPI_Bcast", 8, 10, 9, 5e-6, 4e-6), names=f"{head} mean_sec median_sec") + END
    text += settings(4) + table(("MPI_Bcast", 8, 10, 10, 5e-6, 1e-6), names=f"{head} mean_sec min_sec") + END
    study = collected(tmp_path, text)
    assert cells(study) == [(2, 8, 1, 4, 9), (4, 8, 1, 5, 10)]
    assert [row["statistic"] for row in study.rows()] == ["slowest_rank_median", "slowest_rank"]
    assert [*study.account["problems"].values()] == [1]
    text = settings(2) + table(("MPI_Bcast", 8, 10, 9, 5e-6), names=f"{head} max_sec") + END
    message = study.refused(study_of(), {"run.dat": text})
    assert "run.dat: line 18: not all of what a row needs is above" in message


def test_mock_ups_are_algorithms_of_their_own(tmp_path: Path) -> None:
    """PGMPITuneLib says at the end what it ran by size; early versions of ReproMPI had benchmarks of the mock-ups."""
    early = table(
        *calls("MPI_Allgather", 8, 5), *calls("GL_Allgather_as_Allreduce", 8, 6), *calls("MPI_Allgather", 16, 7)
    )
    ran = "#@pgmpi alg MPI_Allgather 8 default\n#@pgmpi alg MPI_Allgather 16 allgather_as_gather_bcast\n"
    text = settings() + early + END + ran
    (entry,), questions = drafted(write(tmp_path / "theirs", {"core.dat": text}))
    assert entry["collective"] == "allgather"
    assert entry["algorithms"] == {"allgather_as_allreduce": "?", "allgather_as_gather_bcast": "?"}
    assert "the algorithms allgather_as_allreduce, allgather_as_gather_bcast" in questions
    algorithms = "      algorithms:\n        allgather_as_allreduce: ring\n        allgather_as_gather_bcast: linear\n"
    study = collected(tmp_path, text, "allgather", algorithms)
    assert {row["algorithm"]: (row["size_bytes"], round(float(row["latency_us"]), 4)) for row in study.rows()} == {
        "default": ("8", 5), "ring": ("8", 6), "linear": ("16", 7)
    }  # fmt: skip


def test_truncated_and_damaged_output_is_counted(tmp_path: Path) -> None:
    """A run that was aborted lacks the end; its last time may lack digits, and the output of ranks may mix."""
    text = settings() + table(*calls("MPI_Bcast", 8, 5, 6, 7), *calls("MPI_Bcast", 16, 8, 9))
    study = collected(tmp_path, text.rstrip()[:-4].replace("0.0000060000", "0.0000060000 0.00001"))
    assert cells(study) == [(4, 8, 1, 6, 2), (4, 16, 1, 8, 1)]
    assert study.account["problems"] == {
        "rows with other columns than ReproMPI's (first: run.dat, line 19)": 2,
        "ReproMPI outputs without their end, possibly of aborted runs (first: run.dat)": 1,
    }
    message = study.refused(study_of(), {"run.dat": text + "srun: error: node1: task 3: Killed\n"})
    assert "run.dat: line 23: the run ended abnormally" in message
    message = study.refused(study_of("reduce"), {"run.dat": text})
    assert "contains no times of reduce" in message
    message = study.refused(study_of(), {"run.dat": table(*calls("MPI_Bcast", 8, 5))})
    assert "line 2: not all of what a row needs is above: settings (#@nprocs)" in message


def test_other_output_beside_it(tmp_path: Path) -> None:
    """Output of ReproMPI's library and of its point-to-point tests is named; that of other collectives is counted."""
    library = (
        f"#@nrep=3\n#@reproMPIcommitSHA1={SHA}\n#@nprocs=4\n        measure_type    proc     nrep      runtime_sec\n"
    )
    files = {"core/a.dat": output(4), "b.dat": library, "c.dat": settings() + table(*calls("Sendrecv", 8, 5)) + END}
    entries, questions = drafted(write(tmp_path / "theirs", files))
    assert [entry["collective"] for entry in entries] == ["bcast", "allreduce"]
    assert "b.dat, c.dat: output of the benchmark ?, which is not imported" in questions
    other = settings() + table(*calls("MPI_Scan", 8, 5)) + END
    study = Import(tmp_path)
    study.collect(study_of(), {"a.dat": output(4), "b.dat": other})
    assert len(study.rows()) == 2
    assert study.account["problems"] == {"raw outputs of other benchmarks (first: b.dat)": 1}


def test_the_slowest_rank_is_not_compared_with_the_mean_over_ranks(tmp_path: Path) -> None:
    other = "    - path: {folder}/omb.txt\n      format: omb\n      collective: bcast\n      constants: {{mapping: core, processes: 4}}\n"
    files = {"run.dat": output(4), "omb.txt": raw("Broadcast", 0.5)}
    message = Import(tmp_path).refused(study_of() + other, files)
    assert "bcast has rows of mean_over_ranks and of slowest_rank_median, which cannot be compared" in message
