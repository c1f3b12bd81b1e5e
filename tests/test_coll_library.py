"""The collectives library gives the same results as the MPI library."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, finish, must, quick, tool

SOURCES = ROOT / "workflow" / "native" / "coll"
Run = Callable[..., subprocess.CompletedProcess[str]]

# Every algorithm, the segmented ones with several segment sizes. One launch uses one algorithm of each collective.
ALGORITHMS = {
    "BCAST": "ompi_default ompi_linear ompi_chain ompi_chain:segment_bytes=1024 ompi_chain:fanout=2:segment_bytes=100 "
    "ompi_pipeline ompi_pipeline:segment_bytes=1000 ompi_split_binary_tree ompi_split_binary_tree:segment_bytes=512 "
    "ompi_binary_tree ompi_binary_tree:segment_bytes=512 ompi_binomial ompi_binomial:segment_bytes=3000 ompi_knomial "
    "ompi_knomial:radix=3:segment_bytes=777 ompi_scatter_allgather ompi_scatter_allgather_ring node group node_group "
    "node_group_pipelined node_group_pipelined:segment_bytes=512 node_group_chain:segment_bytes=512 rank_reorder seed001 pipelined "
    "pipelined:segment_bytes=1000 libnbc_binomial libnbc_chain libnbc_chain:segments=3",
    "BARRIER": "ompi_default ompi_linear ompi_double_ring ompi_recursive_doubling ompi_bruck ompi_two_proc ompi_tree",
    "REDUCE": "ompi_default ompi_linear ompi_chain ompi_chain:segment_bytes=1024 ompi_chain:fanout=2:segment_bytes=100 "
    "ompi_chain:segment_bytes=512:max_requests=2 ompi_pipeline ompi_pipeline:segment_bytes=1000 ompi_binary "
    "ompi_binary:segment_bytes=512 ompi_binomial ompi_binomial:segment_bytes=3000:max_requests=1 ompi_in_order_binary "
    "ompi_in_order_binary:segment_bytes=512 ompi_rabenseifner node group node_group node_group_chain:segment_bytes=512 rank_reorder "
    "seed001",
    "ALLREDUCE": "ompi_default ompi_linear ompi_nonoverlapping ompi_recursive_doubling ompi_ring ompi_segmented_ring "
    "ompi_segmented_ring:segment_bytes=256 ompi_segmented_ring:segment_bytes=64 ompi_rabenseifner pipelined "
    "pipelined:segment_bytes=1000 pipelined:segments=7 libnbc_ring libnbc_ring:segments=5 libnbc_recursive_doubling "
    "libnbc_recursive_doubling:segment_bytes=1000 libnbc_binomial libnbc_binomial:segments=3",
    "GATHER": "ompi_default ompi_linear ompi_binomial ompi_linear_sync node group node_group rank_reorder seed001",
    "SCATTER": "ompi_default ompi_linear ompi_binomial ompi_linear_nb ompi_linear_nb:max_requests=3",
    "ALLGATHER": "ompi_default ompi_linear ompi_bruck ompi_recursive_doubling ompi_ring ompi_neighbor_exchange ompi_two_proc "
    "ompi_sparbit",
    "ALLTOALL": "ompi_default ompi_linear ompi_pairwise ompi_bruck ompi_linear_sync ompi_linear_sync:max_requests=2 ompi_two_proc node "
    "group node_group rank_reorder",
    "ALLTOALLV": "ompi_default ompi_linear ompi_pairwise node group node_group rank_reorder node_gatherv seed001",
    "REDUCE_SCATTER": "ompi_default ompi_nonoverlapping ompi_recursive_halving ompi_ring ompi_butterfly pipelined "
    "pipelined:segment_bytes=1000 pipelined:segments=7 libnbc_binomial libnbc_binomial:segments=3",
}


def settings() -> Iterator[dict[str, str]]:
    lists = {f"COLL_{name}": text.split() for name, text in ALGORITHMS.items()}
    for i in range(max(map(len, lists.values()))):
        yield {variable: names[i % len(names)] for variable, names in lists.items()}


ROWS = list(settings())


def replaced_by(function: str) -> str:
    """Return the variable (without COLL_) for the algorithms that replace an MPI function; "" if the library passes it on."""
    name = function.removeprefix("MPI_").removesuffix("_block").upper()
    return name if name in ALGORITHMS else ""


# The node of each rank: in blocks, round robin, and neither contiguous nor in equal numbers.
PLACEMENTS = {"blocks": "aaaabbbbccccddddeeee", "cyclic": "abcdeabcdeabcdeabcde", "uneven": "abacbbdacddcbaceebda"}
GROUPS = "left=a,b;right=c"  # d and e are groups of their own


def build(folder: Path, compiler: str, *flags: str) -> Path:
    command = ["make", "-s", "-j2", "-C", SOURCES, f"MPICC={compiler}", f"OUT={folder}", *flags]
    must(finish(command))
    return folder / "coll"


def start(command: list[object], variables: dict[str, str], limit: float = 900) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COLL_")}
    arguments = [str(part) for part in command]
    return finish(arguments, env=clean | variables, timeout=limit)


def place(folder: Path, name: str, ranks: int) -> dict[str, str]:
    hosts = folder / f"{name}.txt"
    hosts.write_text("".join(f"{host}\n" for host in PLACEMENTS[name][:ranks]))
    return {"COLL_HOSTS": str(hosts), "COLL_GROUPS": GROUPS}


# ---- with the simulator ----


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("coll-smpi")
    launcher = tool("smpirun", "SMPIRUN")
    built = build(folder, tool("smpicc", "SMPICC"), "all", "test_coll", "test_trace")
    platform = folder / "platform.xml"
    platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<cluster id="c" prefix="n" suffix="" radical="0-4095" speed="1Gf" bw="1.25GBps" lat="1us"/></platform>'
    )
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"n{i}\n" for i in range(4096)))

    def run(
        ranks: int, variables: dict[str, str], program: str = "test_coll", *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        # SimGrid's own alltoall of small blocks between more than 12 ranks (Bruck) needs one type on all ranks.
        reference = "--cfg=smpi/alltoall:basic_linear"
        simulation = ["--log=root.thresh:critical", "--cfg=smpi/simulate-computation:no", reference]
        command = [launcher, "-np", ranks, "-platform", platform, "-hostfile", hosts, *simulation]
        return start([*command, built / program, *arguments], variables)

    return run


def agrees(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0 differences\n"


@pytest.mark.parametrize("row", quick(range(len(ROWS)), 1, 4))
def test_results_simulated(simulated: Run, tmp_path: Path, row: int) -> None:
    name = list(PLACEMENTS)[row % len(PLACEMENTS)]
    agrees(simulated(5, ROWS[row] | place(tmp_path, name, 5)))


@pytest.mark.parametrize("name", PLACEMENTS)
def test_results_with_own_collectives_at_each_level(simulated: Run, tmp_path: Path, name: str) -> None:
    row = dict.fromkeys(("COLL_BCAST", "COLL_REDUCE", "COLL_GATHER"), "node_group") | {"COLL_BASE": "ompi"}
    agrees(simulated(9, row | place(tmp_path, name, 9)))


@pytest.mark.long
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_results_simulated_up_to_9_ranks(simulated: Run, tmp_path: Path, row: int, name: str) -> None:
    agrees(simulated(9, ROWS[row] | place(tmp_path, name, 9)))


def topology_rows() -> list[dict[str, str]]:
    """Return the rows that use nodes. (SimGrid's own allreduce divides by zero for no elements on 16 ranks and more.)"""
    known = re.compile("node|group|rank|seed")
    rows = [{name: value for name, value in row.items() if known.match(value)} for row in ROWS]
    return [row for row in rows if "COLL_BCAST" in row]


@pytest.mark.long
@pytest.mark.parametrize("row", topology_rows())
def test_results_simulated_17_ranks(simulated: Run, tmp_path: Path, row: dict[str, str]) -> None:
    agrees(simulated(17, row | place(tmp_path, "uneven", 17) | {"TEST_LEAST": "16"}))


def test_rules_file(simulated: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("# by nodes and ppn\nbcast 5 1 100 ompi_linear\nbcast 5 1 * node # larger\nbcast 4 * * default\n")
    agrees(simulated(5, {"COLL_RULES": str(rules)}))
    done = simulated(5, {"COLL_RULES": str(rules), "COLL_VERBOSE": "1"}, "test_trace", "1", "0")
    assert "bcast" not in done.stderr  # the test program traces what is in its own variable
    rules.write_text("bcast 5 1 100\n")
    assert "(line 1)" in simulated(2, {"COLL_RULES": str(rules)}).stderr


def test_memory_limit_falls_back_and_is_reported(simulated: Run, tmp_path: Path) -> None:
    limited = {"COLL_MEMORY_LIMIT": "100", "COLL_VERBOSE": "1", "COLL_GATHER": "node", "COLL_ALLTOALLV": "node_group"}
    done = simulated(5, limited | place(tmp_path, "uneven", 5))
    agrees(done)
    for collective in ("gather", "alltoallv"):
        report = re.search(rf"{collective}: (\d+) calls, (\d+) left to the MPI library \((\d+) above", done.stderr)
        assert report is not None, done.stderr
        calls, left, above = map(int, report.groups())
        assert calls > left > 0
        assert above > 0


@pytest.mark.long
def test_many_simulated_ranks(simulated: Run) -> None:
    chosen = {"COLL_BCAST": "ompi_chain:segment_bytes=8192", "COLL_REDUCE": "ompi_binary", "COLL_BARRIER": "ompi_bruck"}
    must(simulated(1024, chosen, "test_trace", "1", "0"))


# ---- with a real MPI library: Open MPI or MPICH, as given by MPICC and MPIRUN ----

AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
ROOT_VARIABLES = {name + suffix: "1" for name in AS_ROOT for suffix in ("", "_CONFIRM")}


@pytest.fixture(scope="session")
def mpicc() -> str:
    return tool("mpicc", "MPICC")


@pytest.fixture(scope="session")
def launch(mpicc: str) -> Run:
    beside = Path(mpicc).parent / "mpirun"
    launcher = os.environ.get("MPIRUN") or (str(beside) if beside.exists() else tool("mpirun", "MPIRUN"))
    version = finish([launcher, "--version"]).stdout
    open_mpi = "Open MPI" in version or "OpenRTE" in version
    given = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"] if open_mpi else []

    def run(
        ranks: int, variables: dict[str, str], *command: object, limit: float = 900
    ) -> subprocess.CompletedProcess[str]:
        if not open_mpi and "--mca" in command:
            pytest.skip("needs Open MPI")
        return start([launcher, "-n", ranks, *given, *command], ROOT_VARIABLES | variables, limit)

    return run


@pytest.fixture(scope="session")
def built(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = [f"test_{name}" for name in ("coll", "order", "errors", "threads", "trace")]
    return build(tmp_path_factory.mktemp("coll-mpi"), mpicc, "all", *programs)


@pytest.mark.parametrize("row", quick(range(len(ROWS)), 0, 8))
def test_results_real(launch: Run, built: Path, tmp_path: Path, row: int) -> None:
    agrees(launch(4, ROWS[row] | place(tmp_path, "uneven", 4), built / "test_coll"))


@pytest.mark.long
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_results_real_up_to_9_ranks(launch: Run, built: Path, tmp_path: Path, row: int, name: str) -> None:
    agrees(launch(9, ROWS[row] | place(tmp_path, name, 9), built / "test_coll"))


@pytest.fixture(scope="session")
def sanitized(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = "CFLAGS=-O1 -g -fsanitize=address,undefined"
    return build(tmp_path_factory.mktemp("coll-asan"), mpicc, flags, "all", "test_coll")


@pytest.mark.long
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_address_sanitizer(launch: Run, sanitized: Path, tmp_path: Path, row: int) -> None:
    quiet = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    agrees(launch(6, ROWS[row] | place(tmp_path, "uneven", 6) | quiet, sanitized / "test_coll"))


#: Each collective by an algorithm that uses messages only, and by one that keeps communicators or is non-blocking.
CHOSEN = [
    {"BCAST": "ompi_binomial", "ALLREDUCE": "ompi_ring", "BARRIER": "ompi_bruck", "REDUCE": "ompi_binomial"}
    | {"GATHER": "node", "ALLTOALL": "ompi_bruck", "ALLTOALLV": "node", "REDUCE_SCATTER": "libnbc_binomial"}
    | {"SCATTER": "ompi_binomial", "ALLGATHER": "ompi_ring"},
    {"BCAST": "node_group", "ALLREDUCE": "pipelined", "BARRIER": "ompi_tree", "REDUCE": "node_group"}
    | {"GATHER": "node_group", "ALLTOALL": "node_group", "ALLTOALLV": "ompi_linear", "REDUCE_SCATTER": "pipelined"}
    | {"SCATTER": "ompi_linear_nb", "ALLGATHER": "ompi_linear"},
]


@pytest.mark.parametrize("row", range(len(CHOSEN)))
@pytest.mark.parametrize(("what", "ranks"), [("errors wrong", 2), ("errors inter", 4), ("threads use", 3)])
def test_errors_intercommunicators_threads(
    launch: Run, built: Path, tmp_path: Path, what: str, ranks: int, row: int
) -> None:
    """Test every replaced collective in each of these situations."""
    variables = {f"COLL_{name}": algorithm for name, algorithm in CHOSEN[row].items()} | {"COLL_CREATE": "1"}
    program, case = what.split()
    agrees(launch(ranks, variables | place(tmp_path, "uneven", ranks), built / f"test_{program}", case))


def test_threads_that_create_communicators(launch: Run, built: Path, tmp_path: Path) -> None:
    """The 400 communicators are created correctly without the library, so the library creates none in addition."""
    variables = {"COLL_ALLREDUCE": "ompi_ring", "COLL_BCAST": "node_group", "COLL_VERBOSE": "1"}
    done = launch(4, variables | place(tmp_path, "uneven", 4), built / "test_threads", "create")
    agrees(done)
    assert "allreduce: 401 calls, 400 left to the MPI library" in done.stderr
    # On MPI_COMM_WORLD as well, because it would need communicators of nodes and groups.
    assert "bcast: 401 calls, 401 left to the MPI library" in done.stderr


@pytest.fixture(scope="session")
def plain_program(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a program that was not written for the library."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.c").write_text(
        "#include <mpi.h>\nint main(int c, char **v)\n{\n    int x = 1;\n    MPI_Init(&c, &v);\n"
        "    MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD);\n    MPI_Finalize();\n    return x != 1;\n}\n"
    )
    subprocess.run([mpicc, folder / "plain.c", "-o", folder / "plain"], check=True)
    return folder / "plain"


def test_preloaded(launch: Run, built: Path, plain_program: Path) -> None:
    library = {"LD_PRELOAD": str(built / "libcollstudy.so"), "COLL_VERBOSE": "1"}
    preload = ["env", *(f"{k}={v}" for k, v in library.items()), "COLL_BCAST=ompi_chain"]
    done = must(launch(3, {}, *preload, plain_program))
    assert "bcast: 1 calls, 0 left to the MPI library" in done.stderr


def test_settings_that_differ_between_ranks_stop(launch: Run, built: Path) -> None:
    program = built / "test_coll"
    done = launch(1, {}, "env", "COLL_BCAST=ompi_chain", program, ":", "-n", 1, program)
    assert done.returncode != 0
    assert "differ between ranks" in done.stderr
