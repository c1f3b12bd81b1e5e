"""./study import: the draft of a study from a folder of results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.sources.importing.drafting.draft import draft
from collstudy.sources.importing.formats import omb
from collstudy.study.config import Configuration
from conftest import Checkout, must
from made_imports import CONFIGURATION, GRID, Import, drafted, joined, output, read, write


def test_the_draft_of_numbered_files(tmp_path: Path) -> None:
    table = "Processes,Size,Avg Latency (ns),Notes\n2,1,200,x\n"
    write(tmp_path, dict.fromkeys(("bcast1_core_thin.csv", "bcast1_node_thin.csv", "bcast6_core_thin.csv"), table))
    (entry,), questions = drafted(tmp_path)
    assert entry["path"] == "bcast{algorithm}_{mapping}_thin.csv"
    assert (entry["collective"], entry["unit"], entry["algorithms"]) == ("bcast", "ns", "numbers")
    assert entry["columns"] == {"processes": "Processes", "size_bytes": "Size", "latency_us": "Avg Latency (ns)"}
    assert "the meaning of the column 'Notes'" in questions
    assert "whether the algorithms 1, 6 are Open MPI's numbers" in questions


def test_the_command_writes_the_draft_and_names_the_next_step(checkout: Checkout) -> None:
    checkout.write("measured/bcast_core.csv", "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n")
    done = must(checkout.collstudy("import", "measured", "--name", "theirs"))
    assert (checkout.folder / "config/studies/theirs.yaml").read_text().startswith("# Drafted by ./study import")
    assert done.stdout.endswith("/config/studies/theirs.yaml\n")
    assert done.stderr.endswith("next: complete the study by hand, then ./study run theirs\n")


def test_a_machine_that_has_no_import(checkout: Checkout) -> None:
    checkout.write("measured/bcast_core.csv", "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n")
    drafting = ("import", "measured", "--name", "theirs", "--machine")
    done = checkout.collstudy(*drafting, "thin")
    assert done.returncode == 2 and not (checkout.folder / "config/studies/theirs.yaml").exists()
    assert done.stderr.startswith("error: --machine: thin is of kind simulated; an import needs kind imported; known: ")
    done = must(checkout.collstudy(*drafting, "orfeo-thn"))
    assert (
        "config/machines/orfeo-thn.yaml does not exist yet (did you mean 'orfeo-thin'?): kind: imported" in done.stderr
    )


def test_the_draft_of_named_algorithms(tmp_path: Path) -> None:
    rows = [("Binomial", "core", 2, 1, 0.5), ("In-order binary", "rack", 2, 1, 0.5), ("Mine", "core", 2, 1, 0.5)]
    write(tmp_path, {"reduce_a.csv": joined(rows, "Algorithm,Allocation,Processes,MessageSize,Latency")})
    (entry,), questions = drafted(tmp_path, None)
    assert entry["algorithms"] == {"Binomial": "binomial", "In-order binary": "in_order_binary", "Mine": "?"}
    assert entry["mappings"] == {"rack": "?"}
    assert "the algorithms Mine; known: " in questions
    assert "machine: the machine of the measurements" in questions


def test_repeated_rows_of_a_cell_are_launches_or_calls(tmp_path: Path) -> None:
    """Calls that are taken for launches make intervals much too narrow."""
    header = "algorithm,mapping,np,size,us"
    asked = "rows of a cell are launches, or single calls (`rows: iterations`)"
    write(tmp_path, {"bcast.csv": joined([row for row in GRID for _ in range(30)], header)})
    assert f"whether the 30 {asked}" in drafted(tmp_path)[1]
    runs = [(*row, run) for row in GRID for run in range(30)]
    write(tmp_path, {"bcast.csv": joined(runs, f"{header},iteration")})
    assert f"whether the 30 {asked}" in drafted(tmp_path)[1]
    write(tmp_path, {"bcast.csv": joined(runs, f"{header},run")})
    assert asked not in drafted(tmp_path)[1]
    write(tmp_path, {"bcast.csv": joined(GRID, header)})
    assert asked not in drafted(tmp_path)[1]
    titles = [("chain", "core", 2, "#", word) for word in ("OSU", "Datatype:", "Size")]
    write(tmp_path, {"bcast.csv": joined([*titles, *GRID], header)})
    assert asked not in drafted(tmp_path)[1]


def test_a_column_of_another_collective_than_the_name_says(tmp_path: Path) -> None:
    """The column takes precedence over the file name; no question is asked about a column that was understood."""
    table = joined([("MPI_Reduce", *row) for row in GRID], "Collective,algorithm,mapping,np,size,us")
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert entry["collective"] == "reduce" and "'Collective'" not in questions
    # A column without the name of a collective is asked about.
    table = joined([("short", *row) for row in GRID], "Test,algorithm,mapping,np,size,us")
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert entry["collective"] == "bcast"
    assert "the column 'Test' has short, which names no collective" in questions


def test_a_table_of_several_collectives(tmp_path: Path) -> None:
    rows = [(name, *row) for name in ("Broadcast", "Gather") for row in GRID if row[0] == "linear"]
    folder = write(tmp_path / "theirs", {"results.csv": joined(rows, "Type,algorithm,mapping,NP,size,latency")})
    entries, _ = drafted(folder)
    assert [entry["collective"] for entry in entries] == ["bcast", "gather"]
    assert {entry["columns"]["collective"] for entry in entries} == {"Type"}
    linear = [(*row[:4], float(row[4])) for row in GRID if row[0] == "linear"]
    assert sorted(read(folder)) == sorted(linear + linear)


def test_raw_output_with_numbers_in_the_names(tmp_path: Path) -> None:
    names = ("bcast1_core_np2.out", "bcast2_node_np4.out")
    assert read(write(tmp_path / "theirs", dict.fromkeys(names, output("Broadcast", 0.25, 0.5)))) == [
        ("linear", "core", 2, 1, 0.25), ("linear", "core", 2, 2, 0.5), ("chain", "node", 4, 1, 0.25), ("chain", "node", 4, 2, 0.5)
    ]  # fmt: skip


def test_tables_of_several_algorithms_and_dates(tmp_path: Path) -> None:
    """Their pattern has words and dates in place of *."""
    header = "Algorithm,Allocation,Processes,MessageSize,Latency"
    files = {f"bcast_{name}_{date}.csv": joined([row for row in GRID if row[0] == name], header)
             for name in ("linear", "chain") for date in (14052024194115, 15052024182217)}  # fmt: skip
    (entry,), questions = drafted(write(tmp_path, files))
    assert entry["path"] == "bcast_*_*.csv" and "(a date, the number of a job or a run) are launches" in questions
    single = write(tmp_path / "single", {name: text for name, text in files.items() if "1405" in name})
    assert "are launches" not in drafted(single)[1]


def test_rows_above_a_second_header_are_no_titles(tmp_path: Path) -> None:
    text = "Algorithm,Processes,Size\nlinear,2,1,0.25\nAlgorithm,Processes,Size,Latency\nlinear,2,1,0.25\n"
    _, questions = drafted(write(tmp_path / "theirs", {"bcast_core.csv": text}))
    assert "3 of 3 rows have another number of fields than the header" in questions


def test_raw_output_of_jobs(tmp_path: Path) -> None:
    """Files without an ending, or with the job's number as ending, below the output of the job itself."""
    job = "srun: job 4711 queued\nWARNING: No preset parameters\n"
    times = {"osu_bcast_linear_core.o4711": 0.25, "osu_bcast_linear_core.o4712": 0.27, "osu_bcast_chain_core": 0.5}
    folder = write(tmp_path / "theirs", {f"np4/{name}": job + output("Broadcast", us) for name, us in times.items()})
    (folder / "osu_bcast").write_bytes(b"\x7fELF\0\0")
    _, questions = drafted(folder)
    assert "differ only in * (4711, 4712) are launches of the same cells" in questions
    found = [("chain", 0.5), ("linear", 0.25), ("linear", 0.27)]
    assert sorted(read(folder)) == [(name, "core", 4, 1, us) for name, us in found]


def test_the_title_of_raw_output_names_the_collective(tmp_path: Path) -> None:
    """Also of the outputs of several benchmarks that a job wrote to one file."""
    titles = ("Broadcast", "All-to-All Personalized Exchange", "Reduce", "Multi-Broadcast of a friend")
    outputs = "".join(output(title, k + 0.25) for k, title in enumerate(titles))
    folder = write(tmp_path / "theirs", {"linear/core_np4/slurm-4711.out": outputs})
    entries, questions = drafted(folder)
    assert [entry["collective"] for entry in entries] == ["bcast", "alltoall", "reduce"]
    assert questions.endswith(
        "slurm-4711.out: output of the benchmark multi-broadcast of a friend, which is not imported"
    )
    assert sorted(read(folder)) == [("linear", "core", 4, 1, us) for us in (0.25, 1.25, 2.25)]
    assert omb.titled("# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.4") == "iallreduce"
    assert omb.titled("# OSU MPI Bandwidth Test v7.4") == "bw"


def test_a_table_of_elements_and_other_columns(tmp_path: Path) -> None:
    """As of a program of one's own; all columns that are not understood are one question."""
    table = "algorithm_name,k,b,nprocs,send_count,time,is_correct\nring,2,8,4,16,0.00052,1\nring,2,8,4,32,0.00061,1\n"
    folder = write(tmp_path / "theirs", {"all_gather_core.csv": table})
    (entry,), questions = drafted(folder)
    assert (entry["columns"]["size_bytes"], entry["size_unit"]) == ("send_count", "?")
    assert "whether the column 'send_count' is the number of elements of a message" in questions
    assert "the meaning of the columns 'b', 'is_correct'" in questions and "size_bytes" not in questions
    theirs = Import(tmp_path)
    columns = {"algorithm": "algorithm_name", "processes": "nprocs", "size_bytes": "send_count", "latency_us": "time"}
    written = {"path": str(folder / "*.csv"), "collective": "allgather", "columns": columns, "unit": "s", "size_unit": 4,
               "constants": {"mapping": "core"}}  # fmt: skip
    theirs.collect(yaml.safe_dump({"import": {"files": [written]}}).replace("{", "{{").replace("}", "}}"))
    assert [row["size_bytes"] for row in theirs.rows()] == ["64", "128"]


def software(folder: Path) -> tuple[dict[str, str], str]:
    """Return the software of a folder's draft, and the questions about it."""
    text, questions = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    found = yaml.safe_load(text)["import"]
    del found["files"]
    return found, "\n".join(question for question in questions if question.startswith(("mpi, ", "suite")))


def test_the_version_of_the_suite_is_that_of_the_outputs(tmp_path: Path) -> None:
    """It is asked for if the outputs have several."""
    one = {"bcast_linear_core_np4.txt": output("Broadcast", 0.5)}
    found, questions = software(write(tmp_path, one))
    assert (found["suite"], found["suite_version"]) == ("OSU Micro-Benchmarks", "7.4") and "suite" not in questions
    table = joined(GRID, "algorithm,mapping,np,size,us")
    found, questions = software(write(tmp_path, {"bcast.csv": table}))
    assert found["suite_version"] == "7.4"
    assert "suite, suite_version: the benchmark suite and its version; 1 of 2 files says 7.4" in questions
    other = output("Reduce", 0.5).replace("v7.4", "v5.6.2")
    found, questions = software(write(tmp_path, {"reduce_linear_core_np4.txt": other}))
    assert "suite_version" not in found
    assert "the benchmark suite and its version; 2 of 3 files say 5.6.2, 7.4" in questions


def test_software_that_no_file_names_is_left_open(tmp_path: Path) -> None:
    found, questions = software(write(tmp_path, {"bcast.csv": joined(GRID, "algorithm,mapping,np,size,us")}))
    assert found == {"suite": "?", "mpi": "?"}
    assert questions.splitlines() == [
        "mpi, mpi_version: the MPI library and its version, which no file names (`unknown` if nothing tells)",
        "suite, suite_version: the benchmark suite and its version, which no file names (`unknown` if nothing tells)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "library", "word"),
    [
        ("run.sh", "module load openMPI/4.1.5/gnu/12.2.1\nmpirun ./osu_bcast\n", "Open MPI", "openMPI/4.1.5/gnu/12.2.1"),
        ("job.slurm", "mpirun -np 4 --mca coll_tuned_use_dynamic_rules 1 ./a\n", "Open MPI", "--mca coll_tuned_use_dynamic_rules"),
        ("job.sbatch", "export I_MPI_ADJUST_BCAST=4\n", "Intel MPI", "I_MPI_ADJUST_BCAST"),
        ("run.sh", "module load cray-mpich/8.1.32\n", "MPICH", "cray-mpich/8.1.32"),
        ("run.sh", "wget https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-7.3.tar.gz\n", "?", ""),
        ("run.sh", "module load mpi/mvapich2-2.2\n", "MVAPICH", "mvapich2-2.2"),
        ("README.md", "Measured with OpenMPI.\n", "Open MPI", "OpenMPI"),
        ("openmpi/bcast_chain_core_np4.txt", output("Broadcast", 0.5), "Open MPI", "openmpi/bcast_chain_core_np4.txt"),
    ],
)  # fmt: skip
def test_software_that_a_file_names(tmp_path: Path, name: str, text: str, library: str, word: str) -> None:
    write(tmp_path, {"bcast_linear_core_np4.txt": output("Broadcast", 0.5), name: text})
    found, questions = software(tmp_path)
    assert found["mpi"] == library
    assert (
        not word
        or f"mpi, mpi_version: the MPI library and its version; {name} has {word}: {library}\n" in questions + "\n"
    )


def test_scripts_say_more_than_documents_and_results_more_than_scripts(tmp_path: Path) -> None:
    """If files of a kind name several libraries, it is asked for."""
    write(
        tmp_path, {"bcast.csv": joined(GRID, "algorithm,mapping,np,size,us"), "README.md": "Unlike MPICH or Open MPI\n"}
    )
    assert "; README.md has Open MPI: Open MPI; README.md has MPICH: MPICH" in software(tmp_path)[1]
    write(tmp_path, {"job/run.sh": "module load openmpi\n./osu-micro-benchmarks-7.3/c/osu_bcast -i 1000\n"})
    found, questions = software(tmp_path)
    assert (found["mpi"], found["suite"], found["suite_version"]) == ("Open MPI", "OSU Micro-Benchmarks", "7.3")
    assert "; job/run.sh has osu-micro-benchmarks-7.3: OSU Micro-Benchmarks; scripts say 7.3" in questions
    write(tmp_path, {"job/other.sh": "export I_MPI_ADJUST_BCAST=1\n"})
    assert software(tmp_path)[0]["mpi"] == "?"
    write(tmp_path, {"impi/reduce.csv": joined(GRID, "algorithm,mapping,np,size,us")})
    assert software(tmp_path)[0]["mpi"] == "Intel MPI"


def test_raw_output_of_another_collective_than_the_name_says(tmp_path: Path) -> None:
    """A script for reductions called osu_allreduce."""
    (entry,), questions = drafted(write(tmp_path, {"reduce_linear_core_np4.txt": output("Allreduce", 0.5, 0.6)}))
    assert entry["collective"] == "allreduce"
    assert "output of allreduce, although the names of the files say reduce" in questions


def test_commands_with_several_algorithms_in_a_file(tmp_path: Path) -> None:
    command = "mpirun -np 4 --mca coll_tuned_bcast_algorithm {} ./osu_bcast\n" + output("Broadcast", 0.5)
    _, questions = drafted(write(tmp_path, {"core.log": command.format(1) + command.format(6)}))
    assert "force Open MPI's numbers 1, 6 (`algorithms: numbers`): split the file by algorithm" in questions
    (tmp_path / "core.log").unlink()
    files = {f"{name}_core.log": command.format(number) for name, number in (("one", 1), ("two", 6))}
    _, questions = drafted(write(tmp_path, files))
    assert "force Open MPI's numbers 1 (`algorithms: numbers`)" in questions and "split" not in questions


def test_numbers_in_names_are_asked_about(tmp_path: Path) -> None:
    names = ("4/bcast_linear_core.csv", "8/bcast_linear_core.csv")
    _, questions = drafted(write(tmp_path, dict.fromkeys(names, "Size,Latency (us)\n1,0.2\n")))
    assert "whether 4, 8 in the names are numbers of processes" in questions


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        ("bcast_{}_{}_core.txt", "bcast_{algorithm}_{processes}_{mapping}.txt"),
        ("bcast/{}/{}_core.txt", "bcast/{algorithm}/{processes}_{mapping}.txt"),
        ("bcast_linear_{}_{}_core.txt", "bcast_{algorithm}_*_{processes}_{mapping}.txt"),
    ],
)
def test_digits_beside_numbers_of_ranks(tmp_path: Path, names: str, pattern: str) -> None:
    """They are numbers of algorithms, or of runs of the one that is named; 0 and 1 are no numbers of ranks."""
    files = [names.format(number, ranks) for number in (0, 1, 5) for ranks in (4, 8, 16)]
    (entry,), questions = drafted(write(tmp_path, dict.fromkeys(files, output("Broadcast", 0.5))))
    assert entry["path"] == pattern
    asked = "launches of the same cells" if "*" in pattern else "whether the algorithms 0, 1, 5 are Open MPI's numbers"
    assert asked in questions and "whether 4, 8, 16 in the names are numbers of processes" in questions


def test_two_digits_beside_numbers_of_ranks(tmp_path: Path) -> None:
    """The number of an algorithm, and that of a run."""
    names = [f"bcast_{a}_core_{p}_{r}.txt" for a in (1, 5) for p in (4, 8, 16) for r in (1, 2, 3)]
    (entry,), questions = drafted(write(tmp_path, dict.fromkeys(names, output("Broadcast", 0.5))))
    assert entry["path"] == "bcast_{algorithm}_{mapping}_{processes}_*.txt"
    assert (
        "whether the algorithms 1, 5 are Open MPI's numbers" in questions and "launches of the same cells" in questions
    )


@pytest.mark.parametrize(
    ("names", "numbers", "paths"),
    [
        ("bcast_{a}_core_np4_r{r}.txt", (1, 2, 3), {"bcast_{algorithm}_{mapping}_np{processes}_r*.txt"}),
        ("r{r}/bcast_{a}_core_np4.txt", (0, 1), {"r*/bcast_{algorithm}_{mapping}_np{processes}.txt"}),
        # Ranks, or the numbers of reductions.
        ("bcast_{a}_core_r{r}.txt", (1, 4), {f"bcast_{{algorithm}}_{{mapping}}_r{r}.txt" for r in (1, 4)}),
        ("reduce_r{r}_core_np4.txt", (1, 2, 3), {"reduce_r{algorithm}_{mapping}_np{processes}.txt"}),
    ],
)
def test_the_letter_r_and_the_number_of_a_run(
    tmp_path: Path, names: str, numbers: tuple[int, ...], paths: set[str]
) -> None:
    """Runs are counted from 0 or 1 without gaps, and are no entries of their own."""
    title = "Reduce" if names.startswith("reduce") else "Broadcast"
    files = {names.format(a=a, r=r): output(title, 0.5) for a in ("linear", "chain") for r in numbers}
    entries, questions = drafted(write(tmp_path, files))
    assert {entry["path"] for entry in entries} == paths
    assert ("differ only in * (a date, the number of a job or a run)" in questions) == any(
        "*" in path for path in paths
    )


@pytest.mark.parametrize(
    ("name", "asked"), [("2n", True), ("n2", True), ("N2_n16", False), ("np16", False), ("16procs", False)]
)
def test_numbers_beside_n_are_asked_about(tmp_path: Path, name: str, asked: bool) -> None:
    """They may be those of nodes, as in 2n_16t."""
    _, questions = drafted(write(tmp_path, {f"bcast_linear_core_{name}.txt": output("Broadcast", 0.5)}))
    assert questions.endswith("whether 2 in the names are numbers of processes") if asked else questions == ""


@pytest.mark.parametrize("name", ["n2_p48", "n2_np48", "n_2_np_48", "2n_48procs", "n2-48ranks"])
def test_n_beside_a_number_of_ranks_is_one_of_nodes(tmp_path: Path, name: str) -> None:
    texts = {f"bcast_linear_core_{name}.txt": output("Broadcast", 0.5)}
    (entry,), questions = drafted(write(tmp_path, texts))
    assert entry["path"].count("{nodes}") == entry["path"].count("{processes}") == 1 and questions == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run[1]/bcast.csv", "run\\[1\\]/bcast.csv: \\[\\] in a path is part of a pattern; rename the file"),
        ("bcast.xlsx", "bcast.xlsx: a spreadsheet is not read; export its sheets as CSV"),
        ("bcast.csv", "bcast.csv: line 1: unclosed quote"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, message: str) -> None:
    write(tmp_path, {name: '"Algorithm,Processes,Size,Latency\nlinear,2,1,0.5\n'})
    with pytest.raises(StudyError, match=message):
        drafted(tmp_path)


def test_files_without_rows_are_named_and_may_stay(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "bcast1_core.csv": "Processes,Size,Latency (us)\n2,1,0.2\n",
            "bcast2_core.csv": "",
            "bcast3_core.csv": "Processes,Size,Latency (us)\n",
        },
    )
    _, questions = drafted(tmp_path)
    assert "2 files without rows: bcast2_core.csv, bcast3_core.csv" in questions and "matches" not in questions


def test_a_folder_without_results(tmp_path: Path) -> None:
    nothing = (
        r"contains no readable CSV file, no output of a known suite \(OSU Micro-Benchmarks, .*\), and no archive of"
    )
    with pytest.raises(StudyError, match=nothing):
        drafted(tmp_path, None)
    (tmp_path / "bcast.csv").write_bytes(joined(GRID).encode("utf-16"))
    with pytest.raises(StudyError, match=f"{nothing}.*the file is UTF-16; convert it"):
        drafted(tmp_path, None)


def test_control_characters_of_a_damaged_file_are_not_written(tmp_path: Path) -> None:
    table = "Algorithm,Mapping,np,Size,us,\x1b[1m\x07\nlinear,core,2,1,0.5,x\n"
    entries, questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert entries and "\x1b" not in questions


def test_commas_of_thousands_are_asked_about(tmp_path: Path) -> None:
    table = 'Algorithm,Mapping,np,Size,us\nlinear,core,2,1,0.5\nlinear,core,2,8,"1,234.5"\n'
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert "decimal" not in entry
    assert "the commas in '1,234.5'; numbers must not have separators of thousands" in questions


@pytest.mark.parametrize(
    ("times", "asked"),
    [
        (["0,5", "1,234"], ""),
        (["1,25", "12"], ""),
        (["0.500", "1.234"], ""),
        (["1.234", "12.345"], ""),  # three decimals in all of them
        (["950", "1,234"], "whether the commas in '1,234' are decimal (`decimal: comma`), or separate thousands"),
        (["1,234", "12,345"], "whether the commas in '1,234' are decimal (`decimal: comma`), or separate thousands"),
        (["950", "1.234"], "whether the points in '1.234' are decimal (`decimal: point`), or separate thousands"),
    ],
)
def test_separators_that_may_be_those_of_thousands(tmp_path: Path, times: list[str], asked: str) -> None:
    """A wrong guess would take 1234 ns for 1.234 ns, but 950 ns for 950 ns."""
    rows = "".join(f"linear;core;2;{2**k};{us}\n" for k, us in enumerate(times))
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": f"Algorithm;Mapping;np;Size;ns\n{rows}"}))
    assert entry.get("decimal") == ("?" if asked else "comma" if "," in "".join(times) else None)
    assert asked in questions and bool(questions) == bool(asked)


def test_empty_cells_of_algorithm_and_mapping(tmp_path: Path) -> None:
    """A spreadsheet's merged cells, or a line of units below the header; the other rows are imported."""
    rows = "linear,core,2,1,0.5\n,,2,2,0.6\nlinear,,2,4,0.7\nlinear,core,2,8,0.8\n"
    folder = write(tmp_path / "theirs", {"bcast.csv": f"algo,map,np,size,time_us\n,,,B,\n{rows}"})
    (entry,), questions = drafted(folder)
    assert entry["algorithms"] == {"linear": "linear"} and "mappings" not in entry
    assert questions == "\n".join(
        f"bcast.csv (1 file): some cells of the column {name!r} are empty; their rows are not used"
        for name in ("algo", "map")
    )
    assert [row[3:] for row in read(folder, problems=3)] == [(1, 0.5), (8, 0.8)]


@pytest.mark.parametrize("size", ["1,024", "1'024", "1 024", "1\u202f024"])
def test_sizes_with_separators_of_thousands_are_asked_about(tmp_path: Path, size: str) -> None:
    """Their rows would be missing from the import."""
    table = f"Algorithm;Mapping;np;Size;us\nlinear;core;2;512;0.5\nlinear;core;2;{size};0.6\n"
    _, questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert questions.endswith(f"the {size!r} in the column 'Size'; numbers must not have separators of thousands")


def test_the_name_of_a_drafted_study(checkout: Checkout) -> None:
    checkout.write("my results (1)/bcast_core.csv", "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n")
    done = must(checkout.collstudy("import", "my results (1)"))
    assert done.stdout.endswith("/config/studies/my-results-1.yaml\n")
    done = checkout.collstudy("import", "my results (1)", "--name", "my results")
    assert (done.returncode, done.stderr[:45]) == (2, "error: a study cannot be called 'my results';")
    done = checkout.collstudy("import", "my results (1)/bcast_core.csv")
    assert done.stderr == "error: my results (1)/bcast_core.csv: a file; name its folder\n"


def test_files_of_several_machines_are_asked_about(tmp_path: Path) -> None:
    for names, asked in ((("bcastEPYC", "bcast_core"), False), (("barrierTHIN",), True)):
        tables = {f"{name}.csv": joined(GRID, "algorithm,mapping,np,size,latency") for name in names}
        _, questions = drafted(write(tmp_path, tables))
        assert ("files: their names say epyc and thin; give each machine a study of its own" in questions) is asked


def test_several_outputs_in_a_file_are_asked_about(tmp_path: Path) -> None:
    """A script that appends the outputs of a loop to one file; point-to-point tests have no algorithm."""
    loop = output("", 0.14, 0.15) + "Testing with cores: 0 and 4\n" + output("", 0.14, 0.15)
    _, questions = drafted(write(tmp_path, {"latency.txt": loop}))
    assert "whether the 2 outputs in a file are launches of the same cells" in questions
    assert "algorithm" not in questions and "processes" not in questions and "mapping; it can be set" in questions


def test_an_algorithm_that_nothing_names_is_not_the_default(tmp_path: Path) -> None:
    write(tmp_path / "theirs", {"bcast_mine_core.csv": "Processes,Size,Latency (us)\n2,1,0.2\n"})
    with pytest.raises(StudyError, match="files.0.constants.algorithm: still '\\?', as drafted; replace it$"):
        read(tmp_path / "theirs")


def test_what_a_draft_leaves_open_is_named_when_it_is_run(tmp_path: Path) -> None:
    config = tmp_path / "config"
    shutil.copytree(ROOT / "config", config)
    text = "title: t\nquestion: '?'\nmachine: '?'\nimport: {files: [{path: x.csv, collective: '?'}]}\n"
    (config / "studies" / "theirs.yaml").write_text(text)
    with pytest.raises(
        StudyError, match=r"theirs.yaml, line 3: machine: still '\?', as drafted; replace it \(1 more\)"
    ):
        Configuration(config).study("theirs")


def test_numbers_of_algorithms_need_a_version(tmp_path: Path) -> None:
    write(tmp_path / "theirs", {"bcast1_core.csv": "Processes,Size,Latency\n2,1,0.2\n"})
    with pytest.raises(StudyError, match="`algorithms: numbers` needs import.mpi_version"):
        read(tmp_path / "theirs", version=None)


def test_a_collective_in_a_folder_s_name_is_asked_about(tmp_path: Path) -> None:
    names = ("gather_data/output.csv", "gather_data/bcast_all.csv")
    write(tmp_path, dict.fromkeys(names, joined(GRID, "algorithm,mapping,np,size,latency")))
    entries, questions = drafted(tmp_path)
    assert {entry["path"]: entry["collective"] for entry in entries} == dict(
        zip(names, ("gather", "bcast"), strict=True)
    )
    (asked,) = (line for line in questions.splitlines() if "whether the collective is" in line)
    assert asked == "gather_data/output.csv (1 file): whether the collective is gather, as a folder's name says"


def test_probable_algorithms_are_asked_about(tmp_path: Path) -> None:
    rows = [(name, "core", 2, 0.5) for name in ("ring", "ignore", "basic", "tree")]
    (entry,), questions = drafted(write(tmp_path, {"barrier.csv": joined(rows, "algorithm,mapping,np,latency")}))
    assert entry["algorithms"] == {"ring": "double_ring", "ignore": "default", "basic": "basic", "tree": "tree"}
    for text in (
        "the algorithm ring is double_ring",
        "the algorithm ignore is default",
        "basic is Open MPI's component",
    ):
        assert f"whether {text}" in questions
    assert "tree" not in questions


def test_sizes_and_rows_that_are_missing_are_asked_about(tmp_path: Path) -> None:
    table = "Processes,Latency,Notes\n2,0.5,\n4,0.7\n"
    _, questions = drafted(write(tmp_path, {"bcast_linear_core.csv": table, "notes.txt": "measured on a Sunday\n"}))
    assert "size_bytes; it can be set in `constants` or `by_row`" in questions
    assert "1 of 2 rows has another number of fields than the header" in questions
    assert "1 file without a table of times that is recognised: notes.txt" in questions


def test_ranks_behind_the_mapping_by_node(tmp_path: Path) -> None:
    """chain_node_16 beside chain_core_16 is the mapping and 16 ranks; without the latter, 16 nodes."""
    names = [f"bcast_chain_{mapping}_{ranks}.out" for mapping in ("core", "node") for ranks in (2, 16)]
    (entry,), questions = drafted(write(tmp_path, dict.fromkeys(names, output("Broadcast", 0.21))))
    assert entry["path"] == "bcast_{algorithm}_{mapping}_{processes}.out"
    assert "whether 2, 16 in the names are numbers of processes" in questions


def test_joined_files_repeat_their_header(tmp_path: Path) -> None:
    """As of `cat *.csv`; a header whose columns have another order would exchange them."""
    header = "algorithm,mapping,np,size,latency"
    folder = write(tmp_path / "theirs", {"bcast.csv": joined(GRID[:20], header) + joined(GRID[20:], header)})
    assert len(read(folder)) == len(GRID)
    other = joined(GRID[20:], "algorithm,mapping,size,np,latency")
    write(folder, {"bcast.csv": joined(GRID[:20], header) + other})
    with pytest.raises(StudyError, match="line 22: a second header, whose columns have another order; split the file"):
        drafted(folder)


def test_ranks_of_a_node_need_the_number_of_nodes(tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {"bcast.csv": joined(GRID, "algorithm,mapping,ppn,size,latency")})
    _, questions = drafted(folder)
    assert "bcast.csv (1 file): nodes; it can be set in `constants`" in questions
    with pytest.raises(StudyError, match="no column, constant or part of the file's name gives nodes"):
        read(folder)


@pytest.mark.parametrize(("forced", "several"), [((1, 6), True), ((6, 6), False)])
def test_algorithms_that_only_commands_name_are_told(tmp_path: Path, forced: tuple[int, ...], several: bool) -> None:
    """Outputs of jobs, whose names are alike, would all be launches of one algorithm."""
    command = "+ mpirun -np 4 --map-by core --mca coll_tuned_bcast_algorithm {} osu_bcast\n"
    texts = [command.format(number) + output("Broadcast", 0.25, 0.5) for number in forced]
    files = {f"slurm-{482 + job}.out": text for job, text in enumerate(texts)}
    _, questions = drafted(write(tmp_path, files))
    asked = next(line for line in questions.splitlines() if "algorithm; it can be set" in line)
    assert f"Open MPI's numbers {'1, 6' if several else '6'} (`algorithms: numbers`)" in asked
    assert ("an entry of its own" in asked) == several


def test_times_in_several_units_are_asked_about(tmp_path: Path) -> None:
    """An entry has one unit: that of the times, without bounds in another one."""
    names = "algorithm,mapping,processes,size,latency (ms),min latency (us)"
    table = joined([(*row, 1000 * float(row[-1])) for row in GRID], names)
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": table}))
    assert entry["unit"] == "ms" and "min_latency_us" not in entry["columns"]
    assert questions.endswith("the units of the times, ms and us: those of an entry have only one")


def test_times_with_a_unit_in_each_cell_are_asked_about(tmp_path: Path) -> None:
    table = "algorithm,mapping,processes,size,latency\nchain,core,2,1 B,{}\nchain,core,4,1 B,{}\n"
    _, questions = drafted(write(tmp_path / "one", {"bcast.csv": table.format("0.3 us", "0.5 us")}))
    assert "the times, such as '0.3 us': they must be numbers" in questions
    _, questions = drafted(write(tmp_path / "two", {"bcast.csv": table.format("0.3", "n/a")}))
    assert "they must be numbers" not in questions


COMMAND = (
    "mpirun --map-by core -np $np --mca coll_tuned_use_dynamic_rules {rules} --mca coll_tuned_{of}_algorithm {number} "
)


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (COMMAND.format(rules="true", of="bcast", number=1) + "./osu_bcast", ""),
        (COMMAND.format(rules="false", of="bcast", number=0) + "./osu_bcast", ""),
        (
            COMMAND.format(rules="true", of="bcast", number="$algo") + "build/osu_barrier",
            "coll_tuned_bcast_algorithm has no effect on osu_barrier",
        ),
        (COMMAND.format(rules="1", of="broadcast", number=1) + "\\\n  $BENCH", "Open MPI has no coll_tuned_broadcast_algorithm"),
        (
            COMMAND.format(rules="false", of="bcast", number=1) + "./osu_bcast",
            "coll_tuned_bcast_algorithm 1 has no effect with coll_tuned_use_dynamic_rules false",
        ),
        (
            "mpirun -mca coll_tuned_bcast_algorithm 1 ./osu_bcast",
            "coll_tuned_bcast_algorithm 1 has no effect without coll_tuned_use_dynamic_rules",
        ),
        ("export OMPI_MCA_coll_tuned_use_dynamic_rules=1\nmpirun -mca coll_tuned_bcast_algorithm 1 ./osu_bcast", ""),
    ],
)  # fmt: skip
def test_algorithms_that_a_script_does_not_force(tmp_path: Path, command: str, asked: str) -> None:
    write(
        tmp_path,
        {"bcast.csv": joined(GRID, "algorithm,mapping,np,size,us"), "job.sh": f"#!/bin/bash\n{command} -i 1000\n"},
    )
    assert drafted(tmp_path)[1] == (f"job.sh: {asked}" if asked else "")


def test_columns_of_all_ranks(tmp_path: Path) -> None:
    """Of all nodes."""
    for name in ("NP_total", "total_ranks", "Total Processes"):
        (entry,), questions = drafted(write(tmp_path, {"bcast.csv": joined(GRID, f"algorithm,mapping,{name},size,us")}))
        assert (entry["columns"]["processes"], questions) == (name, "")
