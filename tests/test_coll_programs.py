"""The collectives library in any program: behaviour of legal programs, and settings that are rejected before communication."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from collstudy.launch.toolchain import mpis
from conftest import quick
from test_coll_library import ALGORITHMS, ROWS, Run, agrees, build, launch, mpicc, place, simulated, start

__all__ = ["launch", "mpicc", "simulated"]  # fixtures

BROADCASTS = ALGORITHMS["BCAST"].split()
#: For each kind of algorithm, one that keeps much data with a communicator.
CHOSEN = {"COLL_BCAST": "node_group", "COLL_ALLREDUCE": "ompi_ring", "COLL_BARRIER": "ompi_bruck"}
#: The settings that keep most data: communicators of levels for each collective that has them.
LEVELS = CHOSEN | {"COLL_REDUCE": "node_group", "COLL_GATHER": "node_group", "COLL_ALLTOALLV": "node_group"}


@pytest.fixture(scope="session")
def programs(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("coll-programs"), mpicc, "all", "test_programs") / "test_programs"


# ---- behaviour of programs ----

#: The message is sent in one piece, in segments by all ranks, in blocks, by non-blocking collectives, over levels.
TYPES = [
    "node_group_pipelined",
    "pipelined:segment_bytes=256",
    "ompi_chain:segment_bytes=100",
    "ompi_split_binary_tree:segment_bytes=512",
    "ompi_scatter_allgather",
    "node_group_chain:segment_bytes=512",
    "libnbc_chain",
    "seed001",
]


@pytest.mark.parametrize("algorithm", quick(TYPES, 0, 4))
def test_each_rank_may_describe_a_broadcast_by_a_type_of_its_own(
    launch: Run, programs: Path, tmp_path: Path, algorithm: str
) -> None:
    agrees(launch(5, {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", 5), programs, "types"))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("algorithm", BROADCASTS)
def test_types_of_every_algorithm(launch: Run, programs: Path, tmp_path: Path, algorithm: str, ranks: int) -> None:
    variables = {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", ranks)
    agrees(launch(ranks, variables, programs, "types", 100))
    agrees(launch(ranks, variables, programs, "types", 2000))


@pytest.mark.long
@pytest.mark.parametrize("algorithm", TYPES)
def test_types_under_sanitizers(
    launch: Run, mpicc: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, algorithm: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "coll-programs-sanitized"
    built = build(folder, mpicc, "CFLAGS=-O1 -g -fsanitize=address,undefined", "all", "test_programs")
    quiet = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    variables = {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", 5) | quiet
    agrees(launch(5, variables, built / "test_programs", "types"))


def test_communicators_that_are_not_freed_do_not_hinder_the_end(launch: Run, programs: Path, tmp_path: Path) -> None:
    agrees(launch(3, CHOSEN | place(tmp_path, "uneven", 3), programs, "leave"))


def test_communicators_come_and_go(launch: Run, programs: Path, tmp_path: Path) -> None:
    agrees(launch(3, LEVELS | place(tmp_path, "uneven", 3), programs, "churn", 60))


@pytest.mark.long
def test_a_hundred_thousand_communicators_leave_nothing_behind(launch: Run, programs: Path) -> None:
    agrees(launch(2, {**CHOSEN, "COLL_BCAST": "ompi_binomial"}, programs, "churn", 100000))


@pytest.mark.long
def test_ten_thousand_with_communicators_of_levels_leave_nothing_behind(
    launch: Run, programs: Path, tmp_path: Path
) -> None:
    agrees(launch(3, LEVELS | place(tmp_path, "uneven", 3), programs, "churn", 10000))


@pytest.mark.long
def test_functions_with_large_counts_go_to_the_mpi_library(tmp_path: Path) -> None:
    """Tested with MPICH, because Open MPI 5 has none of MPI-4's functions."""
    found = mpis().get("mpich")
    if found is None:
        pytest.skip("no MPICH")
    program = build(tmp_path, str(found.mpicc), "all", "test_programs") / "test_programs"
    environment = found.environment() | CHOSEN
    agrees(start([found.mpirun, "-n", 2, program, "large"], environment))


#: Messages of more than 2 GiB: whole, in segments, in blocks, over levels, by non-blocking collectives.
HUGE = [
    "ompi_binomial",
    "ompi_chain:segment_bytes=1048576",
    "ompi_scatter_allgather",
    "node_group",
    "pipelined:segments=8",
    "libnbc_chain:segments=8",
    "ompi_split_binary_tree",
]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", HUGE)
def test_broadcasts_of_more_bytes_than_an_int_counts(
    launch: Run, programs: Path, tmp_path: Path, algorithm: str
) -> None:
    agrees(launch(3, {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", 3), programs, "huge"))


@pytest.mark.long
def test_a_reduction_of_more_bytes_than_an_int_counts(launch: Run, programs: Path) -> None:
    agrees(launch(2, {"COLL_REDUCE": "ompi_linear"}, programs, "gaps"))


#: The rows of all algorithms of collectives with a block for each rank.
BLOCKS = [
    {name: row[name] for name in ("COLL_GATHER", "COLL_SCATTER", "COLL_ALLGATHER", "COLL_ALLTOALL")}
    for row in ROWS[: max(len(ALGORITHMS[name].split()) for name in ("GATHER", "SCATTER", "ALLGATHER", "ALLTOALL"))]
]


@pytest.mark.parametrize("row", range(len(BLOCKS)))
def test_blocks_may_alternate_in_memory(launch: Run, programs: Path, tmp_path: Path, row: int) -> None:
    """The type that places one block leaves no room for a second one behind it: two columns of a matrix, as in its transposition."""
    agrees(launch(5, BLOCKS[row] | place(tmp_path, "uneven", 5), programs, "columns"))


def test_a_program_whose_start_is_not_seen_ends(launch: Run, programs: Path) -> None:
    """A program in Fortran may call MPI_Init by bindings that do not call the C function, and MPI_Finalize in C."""
    agrees(launch(2, CHOSEN, programs, "unseen"))


#: Rows of algorithms: with a tree, with all ranks at once, with levels, with non-blocking collectives.
UNDEFINED = [
    {"COLL_REDUCE": "ompi_binary", "COLL_ALLREDUCE": "ompi_ring", "COLL_REDUCE_SCATTER": "libnbc_binomial"},
    {
        "COLL_REDUCE": "node_group_chain",
        "COLL_ALLREDUCE": "ompi_recursive_doubling",
        "COLL_REDUCE_SCATTER": "pipelined",
    },
]


@pytest.mark.parametrize("row", range(len(UNDEFINED)))
def test_operations_that_mpi_does_not_define_are_errors_on_every_rank(
    launch: Run, programs: Path, tmp_path: Path, row: int
) -> None:
    """MPICH's coll/oplxor hung: one rank of a tree had the error, and its parent waited for it."""
    agrees(launch(5, UNDEFINED[row] | place(tmp_path, "uneven", 5), programs, "undefined"))


# ---- settings ----

CHAIN = "COLL_BCAST=ompi_chain"
#: The setting, the content of its file (FILE stands for its path), and words of the single message.
WRONG = [
    ("COLL_BCAST=tree", None, ["COLL_BCAST", "'tree'", "ompi_binomial", "node_group"]),
    ("COLL_BCAST=default:fanout=1", None, ["no keys"]),
    ("COLL_SCAN=ompi_linear", None, ["COLL_SCAN", "Known:", "COLL_BCAST", "COLL_REDUCE_SCATTER", "COLL_HOSTS"]),
    (f"{CHAIN}:width=4", None, ["'width'", "fanout", "segment_bytes"]),
    (f"{CHAIN}:", None, ["COLL_BCAST", "no key ''", "fanout"]),
    (f"{CHAIN}:fanout=0", None, ["COLL_BCAST", "fanout", "from 1 to 32", "'0'"]),
    (f"{CHAIN}:fanout=-1", None, ["COLL_BCAST", "fanout", "from 1 to 32", "'-1'"]),
    (f"{CHAIN}:fanout=33", None, ["COLL_BCAST", "fanout", "from 1 to 32", "'33'"]),
    (f"{CHAIN}:fanout=4x", None, ["COLL_BCAST", "fanout", "from 1 to 32", "'4x'"]),
    (f"{CHAIN}:fanout= 4", None, ["COLL_BCAST", "fanout", "from 1 to 32", "' 4'"]),
    (f"{CHAIN}:fanout=+4", None, ["COLL_BCAST", "fanout", "from 1 to 32", "'+4'"]),
    (f"{CHAIN}:fanout", None, ["COLL_BCAST", "fanout", "from 1 to 32", "''"]),
    (f"{CHAIN}:fanout=3:fanout=4", None, ["COLL_BCAST", "duplicate key", "fanout=4"]),
    (f"{CHAIN}:segment_bytes=-8192", None, ["COLL_BCAST", "segment_bytes", "from 0"]),
    (f"{CHAIN}:segment_bytes=99999999999999999999", None, ["COLL_BCAST", "segment_bytes", "from 0"]),
    ("COLL_BCAST=pipelined:segments=0", None, ["COLL_BCAST", "segments", "from 1"]),
    ("COLL_MEMORY_LIMIT=-1", None, ["COLL_MEMORY_LIMIT", "at least 0", "'-1'"]),
    ("COLL_MEMORY_LIMIT=1GiB", None, ["COLL_MEMORY_LIMIT", "whole number", "'1GiB'"]),
    ("COLL_VERBOSE=2", None, ["COLL_VERBOSE", "0 or 1"]),
    ("COLL_CREATE=no", None, ["COLL_CREATE", "0 or 1"]),
    ("COLL_BASE=openmpi", None, ["COLL_BASE", "mpi", "ompi"]),
    ("COLL_RULES=/nowhere", None, ["COLL_RULES", "cannot read"]),
    ("COLL_RULES=/", None, ["COLL_RULES", "cannot read '/'", "directory"]),
    ("COLL_RULES=FILE", "bcast * * * ompi_chain:fanout=0\n", ["COLL_RULES", "from 1 to 32", "line 1"]),
    ("COLL_RULES=FILE", "bcast 2 -1 * node\n", ["COLL_RULES", "a rule is", "line 1"]),
    ("COLL_HOSTS=/nowhere", None, ["COLL_HOSTS", "cannot read '/nowhere'"]),
    ("COLL_HOSTS=/", None, ["COLL_HOSTS", "cannot read '/'"]),
    ("COLL_HOSTS=until:", None, ["COLL_HOSTS", "until:<text>"]),
    ("COLL_HOSTS=FILE", "a\n", ["COLL_HOSTS", "1 ranks", "MPI_COMM_WORLD has 2"]),
    ("COLL_HOSTS=FILE", "a\nb\nc\n", ["COLL_HOSTS", "3 ranks", "MPI_COMM_WORLD has 2"]),
    ("COLL_HOSTS=FILE", "", ["COLL_HOSTS", "0 ranks", "MPI_COMM_WORLD has 2"]),
    ("COLL_HOSTS=FILE", "a\nb slots=none\n", ["COLL_HOSTS", "slots=<ranks>", "line 2"]),
    ("COLL_HOSTS=FILE", "a:2\nb:0\n", ["COLL_HOSTS", "at least 1 rank", "line 2"]),
    ("COLL_HOSTS=FILE", "a\nb cores=2\n", ["COLL_HOSTS", "<host>:<ranks>", "line 2"]),
    ("COLL_GROUPS=/nowhere", None, ["COLL_GROUPS", "cannot read '/nowhere'"]),
    ("COLL_GROUPS=FILE", "a\n", ["COLL_GROUPS", "<host> <group>", "line 1"]),
    ("COLL_GROUPS=FILE", "a left more\n", ["COLL_GROUPS", "<host> <group>", "line 1"]),
    ("COLL_GROUPS=left=a;right", None, ["COLL_GROUPS", "<group>=<host>", "'right'"]),
    ("COLL_GROUPS=left=a;;right=b", None, ["COLL_GROUPS", "<group>=<host>"]),
    ("COLL_GROUPS=left=", None, ["COLL_GROUPS", "<group>=<host>"]),
    ("COLL_GROUPS=left=n[1-", None, ["COLL_GROUPS", "[<first>-<last>]", "'n[1-'"]),
    ("COLL_GROUPS=left=n[4-1]", None, ["COLL_GROUPS", "[<first>-<last>]", "'n[4-1]'"]),
    ("COLL_GROUPS=left=n[a-b]", None, ["COLL_GROUPS", "[<first>-<last>]", "'n[a-b]'"]),
]


def setting_of(folder: Path, setting: str, text: str | None) -> dict[str, str]:
    variable, _, value = setting.partition("=")
    if text is not None:
        file = folder / "setting.txt"
        file.write_text(text)
        value = value.replace("FILE", str(file))
    return {variable: value}


def refused(done: subprocess.CompletedProcess[str], words: list[str]) -> None:
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "libcollstudy:" in line]
    assert len(said) == 1, done.stderr
    assert [word for word in words if word not in said[0]] == []
    assert "differences" not in done.stdout  # the program never started its work


@pytest.mark.parametrize(("setting", "text", "words"), WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
def test_a_wrong_setting_is_said_once_before_anything_runs(
    simulated: Run, tmp_path: Path, setting: str, text: str | None, words: list[str]
) -> None:
    refused(simulated(2, setting_of(tmp_path, setting, text)), words)


@pytest.mark.parametrize(
    ("setting", "text", "words"),
    [case for case in WRONG if re.match("COLL_(HOSTS|GROUPS)=FILE|COLL_BCAST=ompi_chain:fanout=0", case[0])][:4],
)
def test_and_by_one_of_the_ranks_of_a_real_program(
    launch: Run, programs: Path, tmp_path: Path, setting: str, text: str | None, words: list[str]
) -> None:
    refused(launch(2, setting_of(tmp_path, setting, text), programs, "leave"), words)


def test_a_host_in_two_groups_is_said_by_the_rank_that_is_there(launch: Run, programs: Path, tmp_path: Path) -> None:
    hosts = place(tmp_path, "cyclic", 3)
    refused(launch(3, hosts | {"COLL_GROUPS": "x=a;y=b;z=b"}, programs, "leave"), ["host b is in two groups, y and z"])


def test_groups_of_other_hosts_are_refused(launch: Run, programs: Path) -> None:
    refused(
        launch(2, {"COLL_GROUPS": "x=elsewhere[1-9]"}, programs, "leave"),
        ["COLL_GROUPS", "lists none of the hosts of this program"],
    )


def test_a_file_that_is_wrong_on_one_rank_only_ends_all(launch: Run, programs: Path, tmp_path: Path) -> None:
    """Ranks with the same environment see different files, as on nodes with different disks; here because of their directories."""
    for name, text in (("good", "a\nb\n"), ("bad", "a\nb slots=\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hosts").write_text(text)
    command = [
        part for name in ("good", "bad") for part in ("-n", 1, "--wdir", tmp_path / name, programs, "leave", ":")
    ]
    done = launch(1, {"COLL_HOSTS": "hosts"}, *command[2:-1])
    refused(done, ["COLL_HOSTS", "slots=<ranks>", "line 2"])
