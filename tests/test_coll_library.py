"""The collectives library: the same results as the MPI library, the same messages as Open MPI's algorithms."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, must, quick

SOURCES = ROOT / "workflow" / "native" / "coll"
Run = Callable[..., subprocess.CompletedProcess[str]]

# Every algorithm, the segmented ones with several segment sizes. One launch takes one of each collective.
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
    "GATHER": "node group node_group rank_reorder seed001",
    "ALLTOALLV": "node group node_group rank_reorder node_gatherv seed001",
    "REDUCE_SCATTER": "pipelined pipelined:segment_bytes=1000 pipelined:segments=7 libnbc_binomial "
    "libnbc_binomial:segments=3",
}


def settings() -> Iterator[dict[str, str]]:
    lists = {f"COLL_{name}": text.split() for name, text in ALGORITHMS.items()}
    for i in range(max(map(len, lists.values()))):
        yield {variable: names[i % len(names)] for variable, names in lists.items()}


ROWS = list(settings())


def replaced_by(function: str) -> str:
    """The variable (without COLL_) whose algorithms replace an MPI function; empty if the library passes it on."""
    name = function.removeprefix("MPI_").removesuffix("_block").upper()
    return name if name in ALGORITHMS else ""


# Node of each rank: in blocks, round robin, and neither contiguous nor of equal numbers.
PLACEMENTS = {"blocks": "aaaabbbbccccddddeeee", "cyclic": "abcdeabcdeabcdeabcde", "uneven": "abacbbdacddcbaceebda"}
GROUPS = "left=a,b;right=c"  # d and e are groups of their own


def tool(name: str, variable: str) -> str:
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH, {variable} is not set")
    return found


def build(folder: Path, compiler: str, *flags: str) -> Path:
    command = ["make", "-s", "-j2", "-C", SOURCES, f"MPICC={compiler}", f"OUT={folder}", *flags]
    must(subprocess.run(command, capture_output=True, text=True, check=False))
    return folder / "coll"


def start(command: list[object], variables: dict[str, str], limit: float = 900) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COLL_")}
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, env=clean | variables, capture_output=True, text=True, check=False, timeout=limit)


def place(folder: Path, name: str, ranks: int) -> dict[str, str]:
    hosts = folder / f"{name}.txt"
    hosts.write_text("".join(f"{host}\n" for host in PLACEMENTS[name][:ranks]))
    return {"COLL_HOSTS": str(hosts), "COLL_GROUPS": GROUPS}


# ---- under the simulator ----


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("coll-smpi")
    launcher = tool("smpirun", "SMPIRUN")
    built = build(folder, tool("smpicc", "SMPICC"), "all", "test_coll")
    platform = folder / "platform.xml"
    platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<cluster id="c" prefix="n" suffix="" radical="0-4095" speed="1Gf" bw="1.25GBps" lat="1us"/></platform>'
    )
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"n{i}\n" for i in range(4096)))

    def run(ranks: int, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        simulation = ["--log=root.thresh:critical", "--cfg=smpi/simulate-computation:no"]
        command = [launcher, "-np", ranks, "-platform", platform, "-hostfile", hosts, *simulation]
        return start([*command, built / "test_coll", *arguments], variables)

    return run


def agrees(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0 differences\n"


@pytest.mark.parametrize("row", quick(range(len(ROWS)), 1, 2))
def test_results_simulated(simulated: Run, tmp_path: Path, row: int) -> None:
    name = list(PLACEMENTS)[row % len(PLACEMENTS)]
    agrees(simulated(5, ROWS[row] | place(tmp_path, name, 5)))


@pytest.mark.long
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_results_simulated_up_to_9_ranks(simulated: Run, tmp_path: Path, row: int, name: str) -> None:
    agrees(simulated(9, ROWS[row] | place(tmp_path, name, 9)))


def topology_rows() -> list[dict[str, str]]:
    """Of the rows, what knows nodes. (SimGrid's own allreduce divides by zero for no elements on 16 ranks and more.)"""
    known = re.compile("node|group|rank|seed")
    rows = [{name: value for name, value in row.items() if known.match(value)} for row in ROWS]
    return [row for row in rows if "COLL_BCAST" in row]


@pytest.mark.long
@pytest.mark.parametrize("row", topology_rows())
def test_results_simulated_17_ranks(simulated: Run, tmp_path: Path, row: dict[str, str]) -> None:
    agrees(simulated(17, row | place(tmp_path, "uneven", 17) | {"TEST_LEAST": "16"}))


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"COLL_BCAST": "tree"}, ["COLL_BCAST", "'tree'", "ompi_binomial", "node_group"]),
        ({"COLL_SCATTER": "linear"}, ["COLL_SCATTER", "COLL_BCAST", "COLL_REDUCE_SCATTER"]),
        ({"COLL_BCAST": "ompi_chain:width=4"}, ["'width'", "fanout", "segment_bytes"]),
        ({"COLL_BCAST": "ompi_chain:fanout=many"}, ["fanout", "'many'", "from 1 to 32"]),
        ({"COLL_BCAST": "default:fanout=1"}, ["no keys"]),
        ({"COLL_RULES": "/nowhere"}, ["COLL_RULES", "cannot read"]),
        ({"COLL_VERBOSE": "yes"}, ["COLL_VERBOSE", "0 or 1"]),
        ({"COLL_CREATE": "no"}, ["COLL_CREATE", "0 or 1"]),
    ],
)
def test_unknown_settings_stop_at_the_start(simulated: Run, variables: dict[str, str], words: list[str]) -> None:
    done = simulated(2, variables)
    assert done.returncode != 0
    line = next(line for line in done.stderr.splitlines() if line.startswith("libcollstudy:"))
    assert all(word in line for word in words), line


def test_rules_file(simulated: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("# by nodes and ppn\nbcast 5 1 100 ompi_linear\nbcast 5 1 * node # larger\nbcast 4 * * default\n")
    agrees(simulated(5, {"COLL_RULES": str(rules)}))
    done = simulated(5, {"COLL_RULES": str(rules), "COLL_VERBOSE": "1"}, "trace", "1", "0")
    assert "bcast" not in done.stderr  # the test program traces what is in a variable of its own
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


def test_many_simulated_ranks(simulated: Run) -> None:
    chosen = {"COLL_BCAST": "ompi_chain:segment_bytes=8192", "COLL_REDUCE": "ompi_binary", "COLL_BARRIER": "ompi_bruck"}
    must(simulated(1024, chosen, "trace", "1", "0"))


# ---- under a real MPI library: Open MPI or MPICH, whatever MPICC and MPIRUN name ----

AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
ROOT_VARIABLES = {name + suffix: "1" for name in AS_ROOT for suffix in ("", "_CONFIRM")}


@pytest.fixture(scope="session")
def mpicc() -> str:
    return tool("mpicc", "MPICC")


@pytest.fixture(scope="session")
def launch(mpicc: str) -> Run:
    beside = Path(mpicc).parent / "mpirun"
    launcher = os.environ.get("MPIRUN") or (str(beside) if beside.exists() else tool("mpirun", "MPIRUN"))
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
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
    return build(tmp_path_factory.mktemp("coll-mpi"), mpicc, "all", "test_coll", "test_order")


@pytest.mark.parametrize("row", quick(range(len(ROWS)), 0, 4))
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


#: Every collective by an algorithm on messages, and by one that keeps communicators or is not blocking.
CHOSEN = [
    {"BCAST": "ompi_binomial", "ALLREDUCE": "ompi_ring", "BARRIER": "ompi_bruck", "REDUCE": "ompi_binomial"}
    | {"GATHER": "node", "ALLTOALLV": "node", "REDUCE_SCATTER": "libnbc_binomial"},
    {"BCAST": "node_group", "ALLREDUCE": "pipelined", "BARRIER": "ompi_tree", "REDUCE": "node_group"}
    | {"GATHER": "node_group", "ALLTOALLV": "node_group", "REDUCE_SCATTER": "pipelined"},
]


@pytest.mark.parametrize("row", range(len(CHOSEN)))
@pytest.mark.parametrize(("what", "ranks"), [("errors", 2), ("inter", 4), ("threads", 3)])
def test_errors_intercommunicators_threads(
    launch: Run, built: Path, tmp_path: Path, what: str, ranks: int, row: int
) -> None:
    """In each of them every collective that is replaced."""
    variables = {f"COLL_{name}": algorithm for name, algorithm in CHOSEN[row].items()} | {"COLL_CREATE": "1"}
    agrees(launch(ranks, variables | place(tmp_path, "uneven", ranks), built / "test_coll", what))


def test_threads_that_create_communicators(launch: Run, built: Path, tmp_path: Path) -> None:
    """Without the library their 400 communicators are created correctly, so the library creates none beside them."""
    variables = {"COLL_ALLREDUCE": "ompi_ring", "COLL_BCAST": "node_group", "COLL_VERBOSE": "1"}
    done = launch(4, variables | place(tmp_path, "uneven", 4), built / "test_coll", "create")
    agrees(done)
    assert "allreduce: 401 calls, 400 left to the MPI library" in done.stderr
    # On MPI_COMM_WORLD, too: it needs communicators of nodes and groups.
    assert "bcast: 401 calls, 401 left to the MPI library" in done.stderr


@pytest.fixture(scope="session")
def plain_program(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is not written for the library."""
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


# ---- what each rank sends, receives and waits for, in order: this library against Open MPI's coll/tuned ----

NAMES = {  # this library's name: Open MPI's
    "bcast": {
        "ompi_linear": "basic_linear",
        "ompi_chain": "chain",
        "ompi_pipeline": "pipeline",
        "ompi_split_binary_tree": "split_binary_tree",
        "ompi_binary_tree": "binary_tree",
        "ompi_binomial": "binomial",
        "ompi_knomial": "knomial",
        "ompi_scatter_allgather": "scatter_allgather",
        "ompi_scatter_allgather_ring": "scatter_allgather_ring",
    },
    "reduce": {
        "ompi_linear": "linear",
        "ompi_chain": "chain",
        "ompi_pipeline": "pipeline",
        "ompi_binary": "binary",
        "ompi_binomial": "binomial",
        "ompi_in_order_binary": "in-order_binary",
        "ompi_rabenseifner": "rabenseifner",
    },
    "allreduce": {
        "ompi_linear": "basic_linear",
        "ompi_nonoverlapping": "nonoverlapping",
        "ompi_recursive_doubling": "recursive_doubling",
        "ompi_ring": "ring",
        "ompi_segmented_ring": "segmented_ring",
        "ompi_rabenseifner": "rabenseifner",
    },
    "barrier": {
        "ompi_linear": "linear",
        "ompi_double_ring": "double_ring",
        "ompi_recursive_doubling": "recursive_doubling",
        "ompi_bruck": "bruck",
        "ompi_tree": "tree",
    },
}
TUNED = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
OPTIONS = {
    "segment_bytes": "segmentsize",
    "fanout": "chain_fanout",
    "radix": "knomial_radix",
    "max_requests": "max_requests",
}


def compared() -> list[dict[str, str]]:
    """Algorithms to compare in one launch; ompi_default stands for Open MPI's own decision.

    An allreduce goes alone: some of Open MPI's call its bcast and its reduce, whatever these are told to be.
    """
    lists = {}
    for collective, names in NAMES.items():
        texts = ALGORITHMS[collective.upper()].split()
        lists[collective] = [text for text in texts if text.split(":")[0] in names] + ["ompi_default"]
    rows = [{"allreduce": text} for text in lists.pop("allreduce")]
    for i in range(max(map(len, lists.values()))):
        rows.append({collective: texts[i] for collective, texts in lists.items() if i < len(texts)})
    return rows


def name_row(row: dict[str, str]) -> str:
    return "+".join(f"{collective}={text}" for collective, text in row.items())


def forced(collective: str, text: str) -> list[str]:
    """Options of mpirun that make coll/tuned run this algorithm."""
    name, *keys = text.split(":")
    given = dict(key.split("=") for key in keys)
    options = []
    if name != "ompi_default":
        options += ["--mca", f"coll_tuned_{collective}_algorithm", NAMES[collective][name]]
    for key, value in given.items():
        options += ["--mca", f"coll_tuned_{collective}_algorithm_{OPTIONS[key]}", value]
    return options


def same_order(launch: Run, program: Path, ranks: int, row: dict[str, str]) -> None:
    variables = {f"COLL_{collective.upper()}": text for collective, text in row.items()}
    options = [option for item in row.items() for option in forced(*item)]
    done = launch(ranks, variables, *TUNED, "--mca", "coll", "tuned,basic,libnbc,self", *options, program)
    if done.returncode == 77:
        pytest.skip("neither Open MPI 4.1 nor 5.0")
    agrees(done)


# Of each collective the algorithm of this library, and coll/libnbc's number for it (4.1 and 5.0); ireduce_scatter has one.
LIBNBC = [
    {"bcast": ("binomial", 2), "allreduce": ("ring", 1), "reduce_scatter": ("binomial", None)},
    {"bcast": ("chain", 3), "allreduce": ("binomial", 2)},
    {"allreduce": ("recursive_doubling", 4)},
]


def name_libnbc(row: dict[str, tuple[str, int | None]]) -> str:
    return "+".join(f"i{collective}={name}" for collective, (name, _) in row.items())


def same_starts(launch: Run, program: Path, ranks: int, row: dict[str, tuple[str, int | None]]) -> None:
    """What Open MPI's non-blocking collectives start, in the same order; when they wait is up to their progress."""
    numbers = {collective: number for collective, (_, number) in row.items() if number}
    options = [part for c, number in numbers.items() for part in ("--mca", f"coll_libnbc_i{c}_algorithm", number)]
    variables = {f"COLL_{collective.upper()}": f"libnbc_{name}:segments=1" for collective, (name, _) in row.items()}
    done = launch(ranks, variables, "--mca", "coll", "tuned,basic,libnbc,self", *options, program)
    if done.returncode == 77:
        pytest.skip("neither Open MPI 4.1 nor 5.0")
    agrees(done)


@pytest.mark.parametrize("row", LIBNBC, ids=name_libnbc)
def test_starts_as_open_mpi(launch: Run, built: Path, row: dict[str, tuple[str, int | None]]) -> None:
    same_starts(launch, built / "test_order", 7, row)


@pytest.mark.long
@pytest.mark.parametrize("ranks", range(2, 18))
@pytest.mark.parametrize("row", LIBNBC, ids=name_libnbc)
def test_starts_as_open_mpi_2_to_17_ranks(
    launch: Run, built: Path, row: dict[str, tuple[str, int | None]], ranks: int
) -> None:
    same_starts(launch, built / "test_order", ranks, row)


def test_starts_see_a_difference(launch: Run, built: Path) -> None:
    options = ["--mca", "coll", "tuned,basic,libnbc,self", "--mca", "coll_libnbc_ibcast_algorithm", 3]
    assert launch(4, {"COLL_BCAST": "libnbc_binomial"}, *options, built / "test_order").returncode in (1, 77)


@pytest.mark.parametrize("row", quick(compared(), 0, 2), ids=name_row)
def test_order_as_open_mpi(launch: Run, built: Path, row: dict[str, str]) -> None:
    same_order(launch, built / "test_order", 5, row)


@pytest.mark.long
@pytest.mark.parametrize("ranks", range(2, 18))
@pytest.mark.parametrize("row", compared(), ids=name_row)
def test_order_as_open_mpi_2_to_17_ranks(launch: Run, built: Path, row: dict[str, str], ranks: int) -> None:
    same_order(launch, built / "test_order", ranks, row)


def test_order_sees_a_difference(launch: Run, built: Path) -> None:
    done = launch(7, {"COLL_BCAST": "ompi_chain"}, *TUNED, *forced("bcast", "ompi_pipeline"), built / "test_order")
    assert done.returncode in (1, 77)


# ---- the same pairs, bytes and messages in the eyes of Open MPI's component `monitoring` ----

MONITORED = re.compile(r"^([IE])\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent\t?([\d,]*)", re.MULTILINE)


def messages(launch: Run, program: Path, folder: Path, options: list[str], row: dict[str, str], times: tuple[int, ...]):
    """What each pair of ranks sent: bytes, messages, and messages by class of size (which I and E have in common)."""
    ranks, own, theirs = times
    output = folder / f"{own}-{theirs}"
    monitor = ["pml_monitoring_enable 2", "pml_monitoring_enable_output 3", f"pml_monitoring_filename {output}"]
    watched = [*monitor, "coll monitoring,tuned,basic,libnbc,self"]
    command = [*TUNED, *itertools.chain.from_iterable(["--mca", *option.split()] for option in watched), *options]
    must(launch(ranks, row, *command, program, "trace", own, theirs))
    seen, classes = {"E": Counter(), "I": Counter()}, {}
    for file in folder.glob(f"{own}-{theirs}.*.prof"):
        for kind, sender, receiver, size, number, histogram in MONITORED.findall(file.read_text()):
            seen[kind][sender, receiver, "bytes"] += int(size)
            seen[kind][sender, receiver, "messages"] += int(number)
            if kind == "E":
                classes[sender, receiver] = histogram
    return seen["E"], seen["E"] + seen["I"], classes


def same_messages(launch: Run, program: Path, folder: Path, ranks: int, row: dict[str, str]) -> None:
    """Twice this library must be the same as once this library and once Open MPI."""
    variables = {f"COLL_{collective.upper()}": text for collective, text in row.items()}
    options = [option for item in row.items() for option in forced(*item)]
    own, both, classes = messages(launch, program, folder, options, variables, (ranks, 1, 1))
    own_twice, twice, classes_twice = messages(launch, program, folder, options, variables, (ranks, 2, 0))
    assert own
    assert own_twice == Counter({key: 2 * number for key, number in own.items()})
    assert both == twice
    assert classes == classes_twice


@pytest.fixture(scope="session")
def monitored(launch: Run, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, program = tmp_path_factory.mktemp("monitoring"), built / "test_coll"
    try:
        own, _, _ = messages(launch, program, folder, [], {"COLL_BCAST": "ompi_linear"}, (2, 1, 0))
    except AssertionError:
        own = None
    if not own:
        pytest.skip("this MPI library has no working component `monitoring`")
    return program


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 7, 12])
@pytest.mark.parametrize("row", compared(), ids=name_row)
def test_messages_as_open_mpi(launch: Run, monitored: Path, tmp_path: Path, row: dict[str, str], ranks: int) -> None:
    same_messages(launch, monitored, tmp_path, ranks, row)
