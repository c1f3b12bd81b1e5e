"""Drafts of folders as other authors publish them; each test has the form of one of theirs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.errors import StudyError
from collstudy.sources.importing.files import from_name
from collstudy.sources.importing.formats import nccl_tests, omb
from collstudy.sources.importing.reading import read_all
from collstudy.sources.importing.strict import Problems
from collstudy.sources.importing.words import collective_in, field_of
from made_imports import CONFIGURATION, drafted, joined, output, read, write
from test_import_imb import BLOCKS, END, HEAD
from test_import_nccl import TIMES, printed


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("all_reduce-4-64.out", "allreduce"), ("osu-all-reduce.out", "allreduce"), ("AllGather.csv", "allgather"),
        ("MPI_Alltoall", "alltoall"), ("all_to_all.txt", "alltoall"), ("ReduceScatter.csv", "reduce_scatter"),
        ("reduce-scatter.csv", "reduce_scatter"), ("small_reduce.csv", "reduce"), ("Bcast", "bcast"), ("call_reduce.c", "reduce"),
        ("bcast_scatter_allgather_core.csv", "bcast"), ("broadcast-scatter-allgather-ring.txt", "bcast"),
        ("scatter_allgather_bcast.csv", "bcast"), ("reduce_scatter_ring.csv", "reduce_scatter"),
        ("allreduce_reduce_scatter_allgather.csv", "allreduce"), ("reduce_scatter_gather.csv", "reduce"),
    ],
)  # fmt: skip
def test_spellings_of_collectives(name: str, collective: str) -> None:
    assert collective_in(name, CONFIGURATION.catalogue) == collective


def test_outputs_of_several_benchmarks_with_the_same_names(tmp_path: Path) -> None:
    """Jobs of several benchmarks are numbered; only their output says what each of them is."""
    outputs = {
        "0-59987774": output("Broadcast", 0.25), "0-60016463": output("Allreduce", 0.5),
        "1-60045488": output("Broadcast", 0.26), "1-60074177": output("Allreduce", 0.51),
    }  # fmt: skip
    folder = write(tmp_path / "theirs", {f"linear/core/osu-2-iter-{job}.out": text for job, text in outputs.items()})
    entries, _ = drafted(folder)
    assert [entry["collective"] for entry in entries] == ["bcast", "allreduce"]
    assert sorted(row[4] for row in read(folder)) == [0.25, 0.26, 0.5, 0.51]


def test_an_entry_whose_collective_no_file_has(tmp_path: Path) -> None:
    """A wrong collective is still an error, not an empty import."""
    write(tmp_path, {"linear_core_np4.out": output("Reduce", 0.25)})
    entry = {"path": f"{tmp_path}/*.out", "format": "omb", "collective": "bcast", "constants": {"processes": 4}}
    source = SimpleNamespace(files=[entry], mpi="Open MPI", mpi_version="4.1.5")
    with pytest.raises(StudyError, match="output of reduce, not of bcast"):
        read_all(SimpleNamespace(name="theirs", file="theirs.yaml", source=source), CONFIGURATION.catalogue)


@pytest.mark.parametrize("runs", [3, 12])
def test_numbers_of_nodes_processes_and_runs_without_words(tmp_path: Path, runs: int) -> None:
    """all_reduce-NODES-PROCESSES-RUN.out."""
    outputs = {
        f"all_reduce-{nodes}-{16 * nodes}-{run}.out": output("Allreduce", nodes + run / 100)
        for nodes in (2, 4, 8) for run in range(1, runs + 1)
    }  # fmt: skip
    (entry,), questions = drafted(write(tmp_path, outputs))
    expected = "{algorithm}" if runs < 10 else "*"
    assert entry["path"] == f"all_reduce-{{nodes}}-{{processes}}-{expected}.out"
    assert "whether 2, 4, 8 in the names are numbers of nodes" in questions
    assert "whether 32, 64, 128 in the names are numbers of processes" in questions


def test_numbers_of_nodes_behind_the_word_job(tmp_path: Path) -> None:
    """jobNODES.sh.JOB.mpi: the question shows the numbers, which may be counts."""
    jobs = {2: 7194279, 4: 7194285, 16: 7194312}
    files = {f"job{nodes:02d}.sh.{job}.mpi": output("Allreduce", nodes) for nodes, job in jobs.items()}
    (entry,), questions = drafted(write(tmp_path, files))
    assert entry["path"] == "job*.sh.*.mpi"
    assert (
        "differ only in * (02, 04, 16) are launches of the same cells; if they are numbers of ranks or nodes"
        in questions
    )


def test_iterations_with_an_exponent_in_a_script(tmp_path: Path) -> None:
    """OMB reads 1e4 as 1."""
    script = "mpirun -np 4 --map-by core ../bin/osu_bcast \\\n  -i 1e4 \\\n  -x 1000 -m 1:8\n"
    files = {"linear_core_np4.out": output("Broadcast", 0.25), "scripts/run.sh": script}
    assert "scripts/run.sh: -i 1e4 is 1 for OMB" in drafted(write(tmp_path / "a", files))[1]
    files["scripts/run.sh"] = script.replace("1e4", "10000")
    assert "for OMB" not in drafted(write(tmp_path / "b", files))[1]


def test_outputs_of_buffers_in_gpu_memory(tmp_path: Path) -> None:
    host = output("Allreduce", 3.25)
    files = {"ring_core_np4.host": host, "ring_core_np8.gpu": host.replace("# OSU MPI ", "# OSU MPI-CUDA ")}
    folder = write(tmp_path / "theirs", files)
    assert host != files["ring_core_np8.gpu"]
    _, questions = drafted(folder)
    assert (
        ".gpu (1 file): outputs with buffers in GPU memory" in questions and ".host (1 file): outputs" not in questions
    )
    for name, count in (("ring_core_np4.host", 0), ("ring_core_np8.gpu", 1)):
        problems = Problems()
        assert (
            len(list(omb.rows(folder / name, {"collective": "allreduce", "path": str(folder / name)}, problems))) == 1
        )
        assert problems.counts.get("raw outputs with buffers in GPU memory", 0) == count


def test_counters_of_a_network_are_no_table_of_times(tmp_path: Path) -> None:
    """ifstat: interface, time in ns, bytes, and rates; most columns have no meaning."""
    rows = "".join(f"eno4 {10**18 + i} {10**8 * (i + 1)} 0.00 0.00 94.00 94.00 {9.5 + i:.2f} 0.00\n" for i in range(9))
    with pytest.raises(StudyError, match="1 file without a table of times that is recognised"):
        drafted(write(tmp_path, {"0-ifstat-allreduce-ring.txt": rows}))


def test_numbers_in_names_of_tables_that_have_all_columns(tmp_path: Path) -> None:
    rows = "algorithm,np,size,latency (us)\nring,64,8,4.5\nring,64,16,4.6\n"
    (entry,), questions = drafted(
        write(tmp_path, {f"allgather_results48_{nodes}_{ppn}.csv": rows for nodes, ppn in ((2, 8), (4, 8), (4, 16))})
    )
    assert entry["path"] == "allgather_results48_*.csv"
    assert "differ only in *" in questions


def test_a_table_without_header_and_ending_in_seconds(tmp_path: Path) -> None:
    rows = "".join(
        f"{ranks} {size} {algorithm} {1e-9 * size * algorithm + 3e-4:.10f} \n"
        for ranks in (10,) for size in range(8192, 163841, 8192) for algorithm in (1, 2)
    )  # fmt: skip
    (entry,), questions = drafted(
        write(tmp_path, {"scatter/csi_long_10": rows, "scatter/notes": "measured at night\n2 of 3 runs\n"})
    )
    assert entry["header"] == ["processes", "size_bytes", "algorithm", "latency_us"]
    assert (entry["collective"], entry["unit"]) == ("scatter", "?")
    assert "too short for us (`unit: s` or" in questions
    assert "notes" not in questions


def test_the_same_question_about_many_patterns_is_short(tmp_path: Path) -> None:
    table = "algorithm,np,size,us\nlinear,2,8,0.5\nlinear,2,16,0.6\n"
    _, questions = drafted(write(tmp_path, {f"x{letter}/bcast.csv": table for letter in "abcdefghijkl"}))
    assert "xa/bcast.csv (1 file), xb/bcast.csv (1 file), xc/bcast.csv (1 file) and 9 more: mapping" in questions
    assert max(map(len, questions.splitlines())) < 300


def test_output_of_earlier_versions_of_intels_benchmarks(tmp_path: Path) -> None:
    entries, _ = drafted(write(tmp_path, {"linear_core.out": HEAD.replace("Intel(R)", "Intel (R)") + BLOCKS + END}))
    assert [entry["collective"] for entry in entries] == ["bcast", "barrier"]


def test_benchmarks_that_are_not_imported_are_named(tmp_path: Path) -> None:
    multiple = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.3\n# [ pairs: 2 ]\n# Size   MB/s   Messages/s\n1  4.5  4500000\n"
    (entry,), questions = drafted(
        write(tmp_path, {"bcast_linear_core_np4.out": output("Broadcast", 0.25), "osu_mbw_mr.out": multiple})
    )
    assert entry["collective"] == "bcast"
    (asked,) = (line for line in questions.splitlines() if "osu_mbw_mr.out" in line)
    assert "multiple bandwidth / message rate" in asked


def test_output_of_earlier_versions_of_nccl_tests(tmp_path: Path) -> None:
    """Without the name of the program; the file's name has the collective, and a run's number for an ending."""
    lines = printed("allreduce", 1, TIMES).splitlines(keepends=True)[2:]
    names = [f"n2.g4/all_reduce_output.dat.{run}" for run in (1, 2)]
    write(tmp_path, dict.fromkeys([*names, "n2.g4/output.dat"], "".join(lines)))
    entries, questions = drafted(tmp_path)
    assert [(entry["path"], entry["collective"]) for entry in entries] == [
        ("n2.g4/all_reduce_output.dat.*", "allreduce"), ("n2.g4/output.dat", "?")
    ]  # fmt: skip
    assert "n2.g4/output.dat (1 file): collective" in questions
    assert len([*nccl_tests.rows(tmp_path / names[0], entries[0], Problems())]) == len(TIMES)


def test_output_of_several_programs_of_nccl_tests(tmp_path: Path) -> None:
    """A job runs several programs, one of them twice; sendrecv is not a collective."""
    run = printed("allreduce", 1, TIMES)
    path = tmp_path / "nccl_N1_G8.log"
    other = run.replace("all_reduce_perf", "sendrecv_perf")
    path.write_text(printed("allgather", 1, TIMES) + "\n" + other + run + run)
    entries, _ = drafted(tmp_path)
    assert [entry["collective"] for entry in entries] == ["allgather", "allreduce"]
    found = [len([*nccl_tests.rows(path, entry, Problems())]) for entry in entries]
    assert found == [len(TIMES), 2 * len(TIMES)]
    with pytest.raises(StudyError, match="line 2: collective is allgather, but the study has bcast"):
        list(nccl_tests.rows(path, {"path": str(path), "collective": "bcast"}, Problems()))


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("Tree_LL/all_reduce.txt", "{algorithm}_{protocol}/all_reduce.txt"),
        ("tree/LL/n2.g4/all_reduce_7.txt", "{algorithm}/{protocol}/n2.g4/all_reduce_*.txt"),
        ("all reduce tree LL.log", "all reduce {algorithm} {protocol}.log"),
    ],
)
def test_nccl_s_words_in_folders_and_between_blanks(tmp_path: Path, name: str, pattern: str) -> None:
    """They would have been imported as NCCL's default."""
    ((entry,), questions) = drafted(write(tmp_path, {name: printed("allreduce", 1, TIMES)}))
    assert (entry["path"], questions) == (pattern, "")
    found = from_name(tmp_path / name, {"path": f"{tmp_path}/{pattern}"})
    assert (found["algorithm"].lower(), found["protocol"]) == ("tree", "LL")


def test_nccl_s_default_is_asked_about(tmp_path: Path) -> None:
    """No question where the names or NCCL's lines tell what was chosen."""
    log = "gpu0:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring\ngpu0:1:2 [0] NCCL INFO NCCL_PROTO set by environment to LL"
    _, questions = drafted(write(tmp_path / "one", {"all_reduce.txt": printed("allreduce", 1, TIMES)}))
    assert "whether NCCL chose algorithm and protocol itself" in questions
    _, questions = drafted(write(tmp_path / "two", {"all_reduce.txt": printed("allreduce", 1, TIMES, chosen=log)}))
    assert questions == ""
    _, questions = drafted(write(tmp_path / "three", {"default/all_reduce.txt": printed("allreduce", 1, TIMES)}))
    assert questions == ""


def test_numbered_output_of_pairs_of_ranks(tmp_path: Path) -> None:
    """It needs neither ranks nor algorithm: the number is that of a run."""
    (entry,), questions = drafted(
        write(tmp_path, {f"osu_latency-{run}.out": output("", 0.2 + run / 100) for run in (1, 2, 3)})
    )
    assert (entry["path"], entry["collective"]) == ("osu_latency-*.out", "latency")
    assert "differ only in *" in questions


def test_tables_with_and_without_header_whose_names_are_alike(tmp_path: Path) -> None:
    """Each file belongs to one entry."""
    rows = "ring,64,8,4.5\nring,64,16,4.6\nring,64,512,4.6\n"
    files = {f"allgather_results_{run}.csv": "algorithm,np,size,us\n" * (run != 11) + rows for run in range(9, 13)}
    write(tmp_path, files)
    entries, _ = drafted(tmp_path)
    assert {entry["path"] for entry in entries} == {"allgather_results_*.csv", "allgather_results_11.csv"}


def test_words_before_a_node_that_is_no_mapping(tmp_path: Path) -> None:
    rows = "algorithm,np,size,us\nring,64,8,4.5\nring,64,16,4.6\n"
    entries, _ = drafted(
        write(tmp_path, {f"{name}/allgather.csv": rows for name in ("multi-node", "single-node", "by-core", "bynode")})
    )
    assert {entry["path"] for entry in entries} == {
        "multi-node/allgather.csv", "single-node/allgather.csv", "by-{mapping}/allgather.csv", "by{mapping}/allgather.csv"
    }  # fmt: skip


def test_a_failed_launch_between_outputs_is_named(tmp_path: Path) -> None:
    """The pattern of the others matches it."""
    write(tmp_path, {f"bcast_linear_core_np4.o{job}": output("Broadcast", 0.25) for job in (4711, 4712)})
    (entry,), questions = drafted(write(tmp_path, {"bcast_linear_core_np4.o4713": "launch failed on node 3\n"}))
    assert entry["path"] == "bcast_{algorithm}_{mapping}_np{processes}.o*"
    assert "np4.o4713 too, whose content is another; move it" in questions
    lines = Path(tmp_path / "failed.dat.1")
    lines.write_text("launch failed\n")
    with pytest.raises(StudyError, match="contains no output of nccl-tests"):
        list(nccl_tests.rows(lines, {"path": str(lines), "collective": "bcast"}, Problems()))


def test_latencies_of_empty_messages_are_no_fault(tmp_path: Path) -> None:
    text = "# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n0   0.19\n1   0.20\n2   0.21\n"
    write(tmp_path / "theirs", {"osu_latency_core.out": text})
    assert [row[3:] for row in read(tmp_path / "theirs")] == [(1, 0.20), (2, 0.21)]


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("linear_core", "\ufeffProcessi;Dimensione (byte);Latenza media (us)\r\n2;1;0,21\r\n2;1024;1.024,50\r\n",
         {"size_bytes": "Dimensione (byte)", "latency_us": "Latenza media (us)"}),
        ("linear_core", "size/procs;2;4;8\r\n1;0,2;0,4;0,6\r\n2;0,21;0,41;0,61\r\n", {"size_bytes": "size/procs"}),
        ("linear_core", "#@sync=MPI_Barrier\n test nrep count runtime_sec\n MPI_Bcast 0 1 0.0000032\n MPI_Bcast 1 1 0.0000031\n",
         {"size_bytes": "count", "latency_us": "runtime_sec"}),
    ],
    ids=["another language", "a corner", "ReproMPI"],
)  # fmt: skip
def test_headers(tmp_path: Path, name: str, text: str, columns: dict[str, str]) -> None:
    (entry,), _ = drafted(write(tmp_path, {f"bcast_{name}.csv": text}))
    assert entry["columns"] == columns
    assert entry.get("decimal") == ("comma" if ";" in text else None)
    assert entry.get("unit") == ("s" if "sec" in text else None)
    assert entry.get("wide") == ({"processes": {"2": 2, "4": 4, "8": 8}} if "/" in text else None)


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("latency (\u03bcs)", None), ("latency [\u00b5s]", None), ("latency_microseconds", None), ("latency mean (usec)", None),
        ("time (seconds)", "s"), ("avg time [milliseconds]", "ms"), ("nanoseconds", "ns"), ("time_secs", "s"), ("runtime_nsec", "ns"),
    ],
)  # fmt: skip
def test_units_of_times(tmp_path: Path, column: str, unit: str | None) -> None:
    """Also with a Greek letter instead of the micro sign, and in words."""
    (entry,), questions = drafted(write(tmp_path, {"bcast_linear_core.csv": f"np,size,{column}\n2,8,25\n2,16,26\n"}))
    assert (entry["columns"].get("latency_us"), entry.get("unit"), questions) == (column, unit, "")


@pytest.mark.parametrize(
    "names",
    [
        "lat_avg,lat_min,lat_max", "Avg Lat (us),Min Lat (us),Max Lat (us)", "t_avg_us,t_min_us,t_max_us",
        "mean_time,min_time,max_time", "latency_avg,latency_min,latency_max", "average,minimum,maximum",
    ],
)  # fmt: skip
def test_names_of_times(tmp_path: Path, names: str) -> None:
    (entry,), questions = drafted(write(tmp_path, {"bcast_linear_core.csv": f"np,size,{names}\n2,8,25,20,30\n"}))
    fields = ("latency_us", "min_latency_us", "max_latency_us")
    assert [entry["columns"].get(field) for field in fields] == names.split(",") and "meaning" not in questions
    assert field_of("t") is None and field_of("lat") == "latency_us"


def test_formats_that_are_not_read_are_named(tmp_path: Path) -> None:
    write(tmp_path, {f"bcast{k}.json": "[]" for k in range(9)})
    with pytest.raises(
        StudyError, match=r"bcast0.json, .*, bcast4.json, ...: this format is not read; write a CSV table"
    ):
        drafted(tmp_path)


@pytest.mark.parametrize(
    "name", ["results.tar.gz", "results.zip", "bcast_linear.csv.xz", "old/2025_01_01___10_00_00.tar.gz"]
)
def test_archives_that_are_not_read_are_named(tmp_path: Path, name: str) -> None:
    """Also runs of PICO without metadata beside them."""
    write(tmp_path, {"bcast_linear_core_np4.out": output("Broadcast", 0.25), name: b"packed\0"})
    entries, questions = drafted(tmp_path)
    assert (len(entries), questions) == (
        1,
        f"{name}: an archive is not read; unpack it, or put <system>_metadata.csv beside runs of PICO",
    )


def test_numbers_of_ranks_between_outputs(tmp_path: Path) -> None:
    """A script that prints the number of ranks, and appends the outputs of its loops to one file."""
    run = "".join(f"Processes: {ranks}\n{output('Broadcast', ranks / 10)}" for ranks in (2, 3, 4))
    folder = write(tmp_path / "theirs", {"linear_core.txt": f"Run number: 1\n{run}Run number: 2\n{run}Processes: 5\n"})
    (entry,), questions = drafted(folder)
    assert entry["path"] == "{algorithm}_{mapping}.txt" and "by_row" not in entry
    assert (
        "whether the 2 outputs of a number of ranks in a file are launches" in questions
        and "processes;" not in questions
    )
    assert [row[2::2] for row in read(folder)] == [(2, 0.2), (3, 0.3), (4, 0.4)] * 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Processes: 4", "4"), ("number of processes = 16", "16"), ("running with 8 MPI ranks", "8"), ("NP=32", "32"), ("64 tasks", "64"),
        ("srun --ntasks=12 ./osu_bcast -f", "12"),
        ("srun -N 2 --ntasks-per-node=24 ./osu_bcast", "48"), ("flux run -N4 --tasks-per-node=4 osu_bcast", "16"),
        ("mpirun -N 2 -np 4 ./osu_bcast", "4"), ("srun --ntasks-per-node=24 ./osu_bcast", ""),
        ("mpirun -n 6 ./osu_bcast", "6"), ("2 nodes, 24 processes per node", ""),
        ("# Processes: 4", "4"), ("Run number: 3", ""), ("4 processes and 8 ranks", ""), ("processes: 2.5", ""),
        ("mpirun -n 6 ./osu_reduce", ""),
    ],
)  # fmt: skip
def test_lines_with_a_number_of_ranks(line: str, said: str) -> None:
    assert omb.ranks_said(f"{line}\n{output('Broadcast', 0.5)}", "bcast") == ([said] if said else [])


TABLE = "# Size       Avg Latency(us)   Min Latency(us)  Iterations\n1    0.25   0.20   100\n2    0.50   0.40   100\n"


@pytest.mark.parametrize(
    "text",
    [
        TABLE,  # without the title
        "# Processos: 4\n# Configura\u00e7\u00e3o: 2 vCPU\n" + TABLE.replace("Size   ", "Tamanho (bytes)  "),
        "OSU MPI Broadcast Latency Test v5.9\n" + TABLE.replace("#", " "),
    ],
)
def test_output_that_a_script_changed(tmp_path: Path, text: str) -> None:
    """The names of its columns have single blanks."""
    folder = write(tmp_path / "theirs", {"bcast_linear_core_4procs.txt": text})
    (entry,), _ = drafted(folder)
    assert "header" not in entry and entry["columns"]["min_latency_us"] == "Min Latency(us)"
    assert read(folder) == [("linear", "core", 4, 1, 0.25), ("linear", "core", 4, 2, 0.5)]


def test_a_number_in_a_name_that_the_output_contradicts(tmp_path: Path) -> None:
    """It is not that of the ranks (but of nodes, or virtual machines) if no word says so."""
    texts = {
        f"{word}{nodes}_linear_core.txt": f"mpirun -np {8 * nodes} ./osu_bcast\n{output('Broadcast', nodes / 10)}"
        for word in ("vm_", "np") for nodes in (2, 4)
    }  # fmt: skip
    folder = write(tmp_path / "theirs", texts)
    entries, questions = drafted(folder)
    paths = {entry["path"] for entry in entries}
    assert paths == {"vm_*_{algorithm}_{mapping}.txt", "np{processes}_{algorithm}_{mapping}.txt"}
    assert "numbers of processes" not in questions
    assert sorted(row[2] for row in read(folder, problems=2)) == [2, 4, 16, 32]


def test_messages_between_two_ranks_have_two(tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {"osu_latency_core.txt": "allocated: 48 tasks\n" + output("", 0.5)})
    assert [row[2] for row in read(folder)] == [2]


def test_numbers_of_ranks_that_not_all_outputs_have(tmp_path: Path) -> None:
    texts = output("Broadcast", 0.5) + "Processes: 4\n" + output("Broadcast", 0.6)
    (entry,), questions = drafted(write(tmp_path, {"linear_core.txt": texts}))
    assert "processes; it can be set in `constants` or `by_row`" in questions


def test_the_number_of_ranks_of_a_name_is_kept(tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {"linear_core_np8.txt": "Processes: 4\n" + output("Broadcast", 0.5)})
    assert [row[2] for row in read(folder)] == [8]


SAME = "whether the files of a collective are launches of the same cells"


def test_files_that_differ_in_what_no_field_tells(tmp_path: Path) -> None:
    """Virtual and physical machines in two folders; of other algorithms, mappings, ranks or machines, files have other cells."""
    table = "Processes,Size,Latency (us)\n2,1,0.2\n"
    names = ("virtual/bcast_linear_core.csv", "physical/bcast_linear_core.csv", "physical/reduce_linear_core.csv",
             "other/bcast_chain_core.csv", "another/bcast_linear_node.csv", "one/bcast_binary_core_epyc.csv",
             "two/bcast_binary_core_thin.csv")  # fmt: skip
    ranks = dict.fromkeys(
        ("three/bcast_pipeline_core_np2.csv", "four/bcast_pipeline_core_np4.csv"), "Size,Latency (us)\n1,0.2\n"
    )
    _, questions = drafted(write(tmp_path, dict.fromkeys(names, table) | ranks))
    (asked,) = (line for line in questions.splitlines() if SAME in line)
    assert asked.startswith(
        "physical/bcast_{algorithm}_{mapping}.csv (1 file), virtual/bcast_{algorithm}_{mapping}.csv (1 file): "
    )


def test_files_of_two_clusters_whose_collective_is_not_known(tmp_path: Path) -> None:
    """No name says scatter: when it is filled in, the files of both clusters have the same cells."""
    rows = joined(
        [(10, 2**power, number, f"{2**power / 1e8:.10f}") for power in range(13, 21) for number in (1, 2)],
        separator=" ",
    )
    _, questions = drafted(write(tmp_path, {"csi_long_10": rows, "sonic_long_10": rows}))
    assert f"csi_long_10 (1 file), sonic_long_10 (1 file): {SAME}" in questions


def test_a_mapping_that_only_some_files_name(tmp_path: Path) -> None:
    """Socket: the transport of messages between nodes."""
    texts = dict.fromkeys(
        ("bcast_linear_internode_Socket_np2.txt", "bcast_linear_internode_np2.txt"), output("Broadcast", 0.5)
    )
    _, questions = drafted(write(tmp_path, texts))
    assert "whether Socket in the names is the mapping; other files name none" in questions


def test_documents_notebooks_and_programs_are_no_results(tmp_path: Path) -> None:
    text = output("Broadcast", 0.25)
    others = dict.fromkeys(("README.md", "bcast.ipynb", "bcast.json", "job.sh"), text) | {"osu_bcast.o": text + "\0"}
    (entry,), questions = drafted(write(tmp_path, {"linear_core_np4.txt": text, **others}))
    assert entry["path"] == "{algorithm}_{mapping}_np{processes}.txt"
    assert questions == "bcast.json: this format is not read; write a CSV table of its times"


def test_sentences_are_no_table(tmp_path: Path) -> None:
    sentences = "Broadcast time for 1 processes: 0.5 seconds\nCaught signal 11\nBroadcast failed\n"
    (entry,), questions = drafted(
        write(tmp_path, {"linear_core_np4.txt": output("Broadcast", 0.25), "slurm-4711.out": sentences})
    )
    assert (
        entry["format"] == "omb" and "1 file without a table of times that is recognised: slurm-4711.out" in questions
    )


@pytest.mark.parametrize("name", ["bandwidth_mb_s", "Bandwidth (MB/s)", "MB/s", "BW [MBps]"])
def test_columns_of_bandwidths(tmp_path: Path, name: str) -> None:
    """MB/s is not a time in seconds."""
    (entry,), questions = drafted(write(tmp_path, {"osu_bw_core.csv": f"size,{name}\n1,4.5\n2,9.0\n"}))
    assert entry["columns"] == {"size_bytes": "size", "bandwidth_mb_s": name} and "time" not in questions


def test_basic_linear_of_a_reduce(tmp_path: Path) -> None:
    table = "Algorithm,Mapping,np,size,us\nbasic_linear,core,2,8,0.5\nchain,core,2,8,0.6\n"
    (entry,), questions = drafted(write(tmp_path, {"reduce.csv": table}))
    assert entry["algorithms"] == {"basic_linear": "linear", "chain": "chain"}
    assert "whether the algorithm basic_linear is linear" in questions


def test_the_same_problem_of_many_files_is_short(tmp_path: Path) -> None:
    multiple = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.3\n# Size   MB/s   Messages/s\n1  4.5  4500000\n"
    files = {f"osu_mbw_mr_{letter}.out": multiple for letter in "abcde"}
    _, questions = drafted(write(tmp_path, {"linear_core_np4.txt": output("Broadcast", 0.25), **files}))
    assert questions == (
        "osu_mbw_mr_a.out, osu_mbw_mr_b.out, osu_mbw_mr_c.out, osu_mbw_mr_d.out, osu_mbw_mr_e.out: output of the "
        "benchmark multiple bandwidth / message rate, which is not imported"
    )


def test_names_that_several_patterns_fit(tmp_path: Path) -> None:
    """knomial-tree is one name, so binary-tree does not fit its pattern."""
    names = ("binary-tree", "knomial-tree", "chain")
    folder = write(tmp_path / "theirs", {f"core_np4/osu-bcast-{name}.txt": output("Broadcast", 0.5) for name in names})
    assert {row[0] for row in read(folder)} == {"binary_tree", "knomial", "chain"}


def test_a_pattern_that_takes_a_file_of_another_is_named(tmp_path: Path) -> None:
    """In ring_allgather, only ring is an algorithm."""
    table = "Processes,Size,Latency (us)\n2,1,0.2\n"
    names = ("bcast_scatter_allgather_core.csv", "bcast_ring_allgather_core.csv")
    _, questions = drafted(write(tmp_path, dict.fromkeys(names, table)))
    assert "bcast_{algorithm}_allgather_{mapping}.csv: matches " in questions
    assert "/bcast_scatter_allgather_core.csv too, whose content is another; move it" in questions


@pytest.mark.parametrize(
    "name",
    [
        "osu_linear_core-nr-32:nn-2:ppn-16.4711123.log",
        "linear_core-np=32,nodes=2.out",
        "linear_core_nodes=2_ppn=16.out",
    ],
)
def test_counts_between_colons_and_equals_signs(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "theirs", {name: output("Broadcast", 0.5)})
    (entry,), questions = drafted(folder)
    assert "{nodes}" in entry["path"] and questions == ""
    assert [row[2] for row in read(folder)] == [32]


def test_the_number_of_an_algorithm_in_a_column(tmp_path: Path) -> None:
    (entry,), questions = drafted(
        write(tmp_path, {"bcast_core.csv": "np,size,algorithm_id,us\n4,1,1,0.5\n4,1,2,0.6\n"})
    )
    assert (entry["columns"]["algorithm"], entry["algorithms"]) == ("algorithm_id", "numbers")
