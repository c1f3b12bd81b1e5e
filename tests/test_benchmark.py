"""collbench, the embedded benchmark: columns, options, measuring loop, validation; run in the simulator, where times are exact."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from collstudy.launch.execute import execute
from conftest import ROOT, finish, must

SOURCES = ROOT / "workflow" / "native" / "bench"
COLLECTIVES = [
    "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter",
    "reduce_scatter_block", "scan", "exscan",
]  # fmt: skip
NON_BLOCKING = ["ibcast", "iallreduce", "ireduce_scatter"]
BENCHMARKS = [*COLLECTIVES, *NON_BLOCKING, "barrier", "latency", "bw"]

# Each host has its own link of 50 us and 1 GB/s to the switch, so a message between two hosts takes 100 us. SMPI's own factors and
# overheads (from:value, from:fixed:per-byte) are off.
LATENCY_US = 100.0
BYTES_PER_US = 1000.0
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h-" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="50us"/>
</platform>
"""
SIMULATION = [
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/lat-factor:0:1",
    "--cfg=smpi/bw-factor:0:1",
    "--cfg=smpi/os:0:0:0",
    "--cfg=smpi/or:0:0:0",
    "--cfg=smpi/ois:0:0:0",
    "--cfg=smpi/host-speed:1Gf",
    "--log=root.thres:critical",
]

pytestmark = pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc (SimGrid SMPI) is not on PATH")


def build(out: Path, compiler: str, *settings: str) -> Path:
    command = ["make", "-s", "-j2", "-C", SOURCES, f"MPICC={compiler}", f"OUT={out}", *settings]
    must(finish(command))
    return out / "bench"


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("collbench"), "smpicc")


@pytest.fixture(scope="module")
def platform(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("platform") / "platform.xml"
    path.write_text(PLATFORM)
    return path


@pytest.fixture(scope="module")
def run(programs, platform):
    """Return a function that runs a benchmark with options on some ranks and returns the finished process."""

    def run_in(benchmark: str, *options: str, ranks: int = 2, folder: Path = programs):
        program = folder / f"collbench_{benchmark}"
        command = ["smpirun", "-np", str(ranks), "-platform", platform, *SIMULATION, program, *options]
        return finish(command, timeout=120)

    return run_in


def header(done) -> list[str]:
    """Return the names of the columns: the last comment line, split at two or more blanks."""
    line = [line for line in done.stdout.splitlines() if line.startswith("#")][-1]
    return re.split(r"\s{2,}", line.removeprefix("#").strip())


def rows(done) -> list[list[str]]:
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]


# Columns


@pytest.mark.parametrize("benchmark", COLLECTIVES)
def test_collective_prints_a_line_for_each_size(run, benchmark):
    done = run(benchmark, "-m", "1:32", "-i", "2", "-x", "1", ranks=3)
    assert done.stdout.startswith(f"# collbench 1.0 MPI_{benchmark.capitalize()} latency test\n")
    assert "OSU" not in done.stdout
    assert header(done) == ["Size", "Avg Latency(us)"]
    assert [row[0] for row in rows(done)] == ["1", "2", "4", "8", "16", "32"]
    assert all(float(row[1]) > 0 for row in rows(done))


def test_sizes_may_grow_by_another_factor(run):
    done = run("bcast", "-m", "1:64:8", "-i", "1", "-x", "0")
    assert [row[0] for row in rows(done)] == ["1", "8", "64"]
    wrong = run("bcast", "-m", "1:64:1")
    assert wrong.returncode != 0 and "factor of at least 2" in wrong.stderr


@pytest.mark.parametrize("benchmark", NON_BLOCKING)
def test_non_blocking_columns_are_those_of_omb(run, benchmark):
    """Columns and their order match print_only_header_nbc() in c/util/osu_util_mpi.c of OMB 7.4."""
    brief = run(benchmark, "-m", "1024:1024", "-i", "2", "-x", "1", ranks=3)
    assert header(brief) == ["Size", "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"]
    done = run(benchmark, "-f", "-m", "65536:65536", "-i", "2", "-x", "1", "-d6", ranks=3)
    assert header(done) == ["Size", "Overall(us)", "Compute(us)", "Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)",
                            "Pure Comm.(us)", "Min Comm.(us)", "Max Comm.(us)", "Overlap(%)"]  # fmt: skip
    _, overall, compute, init, test, wait, pure, least, most, overlap = map(float, rows(done)[0])
    assert overall == pytest.approx(init + compute + test + wait, rel=0.01)
    # The computation takes as long as the communication did, and hides at most all of it.
    assert compute == pytest.approx(pure, rel=0.01)
    assert least <= pure <= most
    assert 0 <= overlap <= 100


def test_full_columns(run):
    done = run("bcast", "-f", "-m", "4096:16384", "-i", "3", "-x", "1", ranks=4)
    assert header(done) == ["Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"]
    for _, mean, least, most, iterations in rows(done):
        assert float(least) < float(mean) < float(most)
        assert iterations == "3"


def test_barrier_prints_one_line_without_size(run):
    done = run("barrier", "-f", "-i", "5", ranks=4)
    assert header(done) == ["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"]
    assert len(rows(done)) == 1
    assert len(rows(done)[0]) == 4


@pytest.mark.parametrize(
    ("benchmark", "value", "percentile"),
    [("latency", "Avg Latency(us)", "Tail Lat(us)"), ("bw", "Bandwidth (MB/s)", "Tail BW(MB/s)")],
)
def test_point_to_point_columns(run, benchmark, value, percentile):
    done = run(benchmark, "-m", "8", "-i", "4", "-x", "1", "-z5,95")
    assert header(done) == ["Size", value, f"P5 {percentile}", f"P95 {percentile}"]
    assert len(rows(done)) == 4


@pytest.mark.parametrize("option", ["-z", "--tail-lat"])
def test_percentiles_by_default(run, option):
    done = run("reduce", option, "-m", "8:8", "-i", "10", ranks=4)
    assert header(done)[2:] == ["P50 Tail Lat(us)", "P90 Tail Lat(us)", "P99 Tail Lat(us)"]
    _, mean, *percentiles = rows(done)[0]
    assert percentiles == [mean] * 3  # no noise


def test_percentiles_of_a_varying_time(run):
    """Without warm-up the first call starts with late ranks, so its time appears in the highest percentiles."""
    done = run("bcast", "-z0,100", "-m", "4:8", "-i", "10", "-x", "0", "-d9", ranks=4)
    _, mean, least, most = map(float, rows(done)[-1])
    assert least < mean < most


def test_all_columns_in_omb_order(run):
    done = run("allgather", "-c", "-f", "-z50", "-m", "4:4", "-i", "2", ranks=3)
    assert header(done)[1:] == ["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations", "Validation",
                                "P50 Tail Lat(us)"]  # fmt: skip
    assert rows(done)[0][5] == "Pass"


def test_recorded_omb_columns_are_the_same(run):
    recorded = (ROOT / "tests" / "data" / "omb-7.4" / "openmpi-bcast-2-validation-percentiles.txt").read_text()
    expected = [line for line in recorded.splitlines() if line.startswith("# Size")]
    done = run("bcast", "-f", "-c", "-z5,50,95", "-m", "4:4", "-i", "2")
    assert [line for line in done.stdout.splitlines() if line.startswith("# Size")] == expected


@pytest.mark.parametrize(("decimals", "digits"), [("0", 0), ("2", 2), ("9", 9)])
def test_decimals(run, decimals, digits):
    value = rows(run("bcast", "-d", decimals, "-m", "8:8", "-i", "2"))[0][1]
    assert len(value.partition(".")[2]) == digits


# The measuring loop


@pytest.mark.parametrize("benchmark", ["bcast", "reduce", "alltoall"])
def test_default_iterations(run, benchmark):
    assert [row[-1] for row in rows(run(benchmark, "-f", "-m", "8192:16384"))] == ["1000", "100"]


def test_default_sizes(run):
    assert [int(row[0]) for row in rows(run("bcast", "-i", "1"))] == [2**n for n in range(21)]
    assert [int(row[0]) for row in rows(run("latency", "-i", "1"))] == [2**n for n in range(23)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [("4", [1, 2, 4]), ("3:13", [3, 6, 12]), (":2", [1, 2]), ("524288:", [524288, 1048576]), ("7:7", [7])],
)
def test_sizes(run, sizes, expected):
    assert [int(row[0]) for row in rows(run("bcast", "-m", sizes, "-i", "1"))] == expected


@pytest.mark.parametrize("size", [1, 1024, 65536, 1048576])
def test_latency_is_that_of_the_link(run, size):
    done = run("latency", "-m", f"{size}:{size}", "-i", "5", "-x", "1", "-d6")
    assert float(rows(done)[0][1]) == pytest.approx(LATENCY_US + size / BYTES_PER_US, rel=0.01)


def test_bandwidth_is_that_of_the_link(run):
    bandwidth = float(rows(run("bw", "-m", "4194304:4194304", "-i", "2"))[0][1])
    assert bandwidth == pytest.approx(BYTES_PER_US, rel=0.05)


@pytest.mark.parametrize("size", [1, 4096, 1048576])
def test_broadcast_between_two_ranks_is_within_physical_bounds(run, size):
    """The slower rank waits for at least one message, and for at most a few (the segments of a pipeline overlap)."""
    slowest = float(rows(run("bcast", "-f", "-m", f"{size}:{size}", "-i", "5"))[0][3])
    message = LATENCY_US + size / BYTES_PER_US
    assert 0.99 * message <= slowest <= 3 * message


def simgrid_version() -> str:
    text = finish(["smpirun", "-version"]).stdout
    return re.search(r"SimGrid version ([\d.]+)|$", text).group(1) or "unknown"


RECORDED = [
    pytest.param(path.stem, marks=pytest.mark.long if re.search("-48-|-all", path.stem) else ())
    for path in sorted((ROOT / "tests" / "data" / "omb-7.4").glob("smpi-*-full.txt"))
]


@pytest.mark.parametrize("recorded", [*RECORDED, "smpi-latency-2", "smpi-bw-2"])
def test_latencies_are_those_of_omb(programs, recorded):
    """Every column and size agrees within 1 % with the output of OMB 7.4 in the same simulation."""
    if not simgrid_version().startswith("3.32"):
        pytest.skip(f"OMB was recorded with SimGrid 3.32, here is {simgrid_version()}")
    data = ROOT / "tests" / "data" / "omb-7.4"
    _, benchmark, ranks, *full = recorded.split("-")
    options = ["-i", "20", "-x", "5", *(["-f"] if full else [])]
    if benchmark in COLLECTIVES and benchmark not in ("bcast", "reduce"):
        options += ["-m", "1:16384"]
    machine = ["-platform", data / "platform.xml", "-hostfile", data / "hosts.txt"]
    simulation = ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/host-speed:1Gf", "--log=root.thres:critical"]
    command = ["smpirun", "-np", ranks, *machine, *simulation, programs / f"collbench_{benchmark}", *options]
    done = finish(command, timeout=120)
    omb = [line.split() for line in (data / f"{recorded}.txt").read_text().splitlines() if re.match(r"\s*\d", line)]
    assert len(rows(done)) == len(omb)
    for ours, theirs in zip(rows(done), omb, strict=True):
        assert list(map(float, ours)) == pytest.approx(list(map(float, theirs)), rel=0.01, abs=0.0)


def test_repeated_run_gives_the_same_output(run):
    outputs = {run("alltoall", "-f", "-d9", "-m", "4096", "-i", "3", ranks=5).stdout for _ in range(2)}
    assert len(outputs) == 1


# Data validation


@pytest.mark.parametrize("benchmark", [*COLLECTIVES, *NON_BLOCKING])
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_right_data_pass(run, benchmark, ranks):
    done = run(benchmark, "-c", "-m", "4096", "-i", "2", "-x", "1", ranks=ranks)
    assert {row[-1] for row in rows(done)} == {"Pass"}


@pytest.mark.parametrize("benchmark", ["latency", "bw"])
def test_right_point_to_point_data_pass(run, benchmark):
    assert {row[-1] for row in rows(run(benchmark, "-c", "-m", "256", "-i", "2"))} == {"Pass"}


def test_validation_is_not_timed(run):
    """In the steady state, a validated call takes as long as one without validation."""
    plain, checked = (run("bcast", "-m", "512:512", "-i", "5", "-d6", *extra, ranks=2) for extra in ([], ["-c"]))
    assert float(rows(checked)[0][1]) == pytest.approx(float(rows(plain)[0][1]), rel=0.01)


BROKEN_MPI = """
#include <mpi.h>
/* Spoils the last byte of broadcasts and receives of 64 bytes, on the rank that gets them. */
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int code = PMPI_Bcast(buffer, count, type, root, comm), rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank != root && count == 64)
        ((char *)buffer)[count - 1] ^= 1;
    return code;
}
int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    if (count == 64)
        ((char *)buffer)[count - 1] ^= 1;
    return code;
}
/* Lacks the data of the last rank that it should have, as an exclusive scan on all ranks but the first would. */
int MPI_Scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return count == 64 ? PMPI_Exscan(send, recv, count, type, op, comm) : PMPI_Scan(send, recv, count, type, op, comm);
}
/* Has those of one rank more. */
int MPI_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return count == 64 ? PMPI_Scan(send, recv, count, type, op, comm) : PMPI_Exscan(send, recv, count, type, op, comm);
}
/* All ranks get the first rank's block. */
int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return count == 64 ? PMPI_Allreduce(send, recv, count, type, op, comm)
                       : PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}
/* Fails for messages of 64 bytes. */
int MPI_Gather(const void *send, int sends, MPI_Datatype st, void *recv, int recvs, MPI_Datatype rt, int root,
               MPI_Comm comm) {
    return sends == 64 ? MPI_ERR_COUNT : PMPI_Gather(send, sends, st, recv, recvs, rt, root, comm);
}
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    """Build the programs with an MPI library that makes errors."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken.c").write_text(BROKEN_MPI)
    return build(folder, "smpicc", f"LDLIBS={folder / 'broken.c'}")


@pytest.mark.parametrize("benchmark", ["bcast", "latency", "scan", "exscan", "reduce_scatter_block"])
def test_wrong_data_fail(run, broken, benchmark):
    done = run(benchmark, "-c", "-m", "128", "-i", "2", "-x", "0", folder=broken)
    assert done.returncode != 0
    results = [line.split() for line in done.stdout.splitlines() if re.match(r"\d", line)]
    assert [row[-1] for row in results] == ["Pass"] * 6 + ["Fail"]
    assert f"collbench_{benchmark}: data validation failed" in done.stderr
    assert "at message size 64" in done.stderr


def test_failed_mpi_call_is_reported(run, broken):
    done = run("gather", "-m", "64:64", "-i", "1", "-x", "0", folder=broken)
    assert done.returncode != 0
    assert re.search(r"collbench_gather: .*measure_collective.c:\d+: .*call.* failed: .*MPI error", done.stderr)


# Wrong use


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_version_and_help(run, benchmark):
    assert run(benchmark, "-v", ranks=3).stdout == "collbench 1.0\n"
    done = run(benchmark, "-h", ranks=3)  # SimGrid intercepts --help
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: collbench_{benchmark} [options]\n")


@pytest.mark.parametrize(
    ("benchmark", "options", "complaint"),
    [
        ("bcast", ["-i", "0"], "option -i: '0' is invalid; allowed: a whole number from 1"),
        ("bcast", ["-i", "10x"], "option -i: '10x' is invalid"),
        ("bcast", ["-i", "99999999999999999999"], "option -i: '99999999999999999999' is invalid"),
        ("bcast", ["-x", "-1"], "option -x: '-1' is invalid; allowed: a whole number from 0"),
        ("bcast", ["-m", "0:8"], "option -m: '0:8' is invalid; allowed: MAX, MIN:MAX"),
        ("bcast", ["-m", ":"], "option -m: ':' is invalid"),
        ("bcast", ["-m", "1:2:1"], "option -m: '1:2:1' is invalid"),
        ("bcast", ["-m", "4294967296"], "option -m: '4294967296' is invalid"),
        ("bcast", ["-m", "16:8"], "smallest message size, 16 bytes, is above the largest, 8 bytes"),
        ("bcast", ["-f", "-m"], "option -m needs a value"),
        ("bcast", ["-s", "1,"], "option -s: '1,' is invalid; allowed: up to 8 numbers of microseconds from 0"),
        ("bcast", ["-s", "1,1,1,1,1,1,1,1,1"], "option -s: '1,1,1,1,1,1,1,1,1' is invalid"),
        ("bcast", ["-s", "0,-1"], "option -s: '0,-1' is invalid"),
        ("bcast", ["-z101"], "option -z: '101' is invalid; allowed: at most 5 whole numbers from 0 to 100"),
        ("bcast", ["-z1,2,3,4,5,6"], "option -z: '1,2,3,4,5,6' is invalid"),
        ("bcast", ["-z50,"], "option -z: '50,' is invalid"),
        ("bcast", ["-z", "50"], "unexpected argument '50'"),
        ("bcast", ["-d", "10"], "option -d: '10' is invalid; allowed: a whole number from 0 to 9"),
        ("bcast", ["-fq"], "unknown option -q"),
        ("bcast", ["--nonsense"], "unknown option --nonsense"),
        ("bcast", ["extra"], "unexpected argument 'extra'"),
        ("barrier", ["-c"], "unknown option -c"),
        ("latency", ["-f"], "unknown option -f"),
        ("alltoall", ["-M", "1048576", "-m", "1048576:"], "exceed the memory limit of 1048576 bytes"),
    ],
)
def test_wrong_option_is_explained_once(run, benchmark, options, complaint):
    done = run(benchmark, *options)
    assert done.returncode != 0
    assert done.stderr.count(f"collbench_{benchmark}: ") == 1
    assert complaint in done.stderr
    assert "# Size" not in done.stdout


@pytest.mark.parametrize(
    ("benchmark", "ranks", "complaint"),
    [
        ("bcast", 1, "needs at least 2 processes, started with 1"),
        ("latency", 1, "needs exactly 2 processes, started with 1"),
        ("bw", 3, "needs exactly 2 processes, started with 3"),
    ],
)
def test_wrong_number_of_ranks(run, benchmark, ranks, complaint):
    done = run(benchmark, ranks=ranks)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_sizes_above_the_memory_limit_are_left_out_with_a_message(run):
    done = run("allgather", "-M", "1048576", "-m", "131072:1048576", "-i", "1", ranks=4)
    assert [row[0] for row in rows(done)] == ["131072", "262144"]
    assert "skipping sizes above 262144 bytes" in done.stderr


@pytest.mark.parametrize("benchmark", ["alltoallv", "allgatherv"])
def test_sizes_whose_displacements_exceed_an_int_are_left_out(programs, platform, benchmark):
    program = programs / f"collbench_{benchmark}"
    run = " ".join(["smpirun -np 3 -platform", str(platform), *SIMULATION, str(program)])
    limited = f"ulimit -v 3000000; exec {run} -M 9999999999 -m 1073741824:1073741824 -i 1 -x 0"
    done = finish(["bash", "-c", limited], timeout=120)
    assert done.returncode != 0
    assert f"collbench_{benchmark}: skipping sizes above 715827882 bytes: their displacements would" in done.stderr


@pytest.mark.long
def test_too_little_memory_is_reported(programs, platform):
    program = programs / "collbench_alltoall"
    run = " ".join(["smpirun -np 2 -platform", str(platform), *SIMULATION, str(program)])
    limited = f"ulimit -v 3000000; exec {run} -M 9999999999 -m 1073741824:1073741824 -i 1 -x 0"
    done = finish(["bash", "-c", limited], timeout=120)
    assert done.returncode != 0
    assert re.search(r"collbench_alltoall: rank \d: cannot allocate 2147483648 bytes to (send|receive)", done.stderr)


def test_full_disk_is_reported(programs, platform):
    run = " ".join(["smpirun -np 2 -platform", str(platform), *SIMULATION, str(programs / "collbench_barrier")])
    done = subprocess.run(["bash", "-c", f"{run} -i 1 >/dev/full"], stderr=subprocess.PIPE, text=True, check=False)
    assert "collbench_barrier: cannot write to standard output" in done.stderr
    assert done.returncode != 0


# The build


@pytest.mark.long
def test_top_makefile_builds_where_paths_have_blanks(tmp_path):
    """Build with blanks in the paths of the checkout, its output folder and the compiler."""
    native = tmp_path / "my checkout" / "workflow" / "native"
    shutil.copytree(SOURCES.parent, native)
    compiler = tmp_path / "my checkout" / "smpicc"
    compiler.symlink_to(shutil.which("smpicc"))
    out = tmp_path / "my checkout" / "out"
    command = ["make", "-j2", "-C", native, f"MPICC={compiler}", f"OUT={out}"]
    subprocess.run(command, check=True, capture_output=True)
    assert sorted(path.name for path in (out / "bench").glob("collbench_*")) == sorted(
        f"collbench_{b}" for b in [*BENCHMARKS, "all", "multi_lat", "pairs"]
    )
    again = must(finish(command))
    assert "-o" not in again.stdout.split()  # nothing is compiled again
    must(finish([*command, "clean"]))
    assert not [path for path in out.rglob("*") if path.is_file()]


def test_buffers_are_as_large_as_the_largest_message_that_is_sent(
    programs: Path, platform: Path, tmp_path: Path
) -> None:
    # 8 bytes, and then 512 MiB, which exceeds the limit of 256 MiB.
    sizes = ["-m", "8:268435456:67108864", "-M", str(2**30), "-i", "1", "-x", "0"]
    command = ["smpirun", "-np", "4", "-platform", platform, *SIMULATION, programs / "collbench_allreduce", *sizes]
    assert execute(command, 60, io.StringIO(), dict(os.environ), tmp_path).peak_memory_mb < 500


def test_windows_are_for_blocking_collectives_without_validation(run):
    assert "options -w and -c" in run("bcast", "-w", "-c").stderr
    assert "options -w and -c" in run("bcast", "-c", "-t", "s=1").stderr
    assert "unknown option -w" in run("ibcast", "-w").stderr
    assert "unknown option -w" in run("latency", "-w").stderr
