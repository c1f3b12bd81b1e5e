"""The collectives library sends the same messages as Open MPI's algorithms, in the same order."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import must, quick
from test_coll_library import ALGORITHMS, Run, agrees, built, launch, mpicc

__all__ = ["built", "launch", "mpicc"]  # fixtures

# ---- what each rank sends, receives and waits for, in order: this library against Open MPI's coll/tuned ----

# Algorithms that are called ompi_<name> here, and those that have another name in Open MPI.
SAME = {
    "bcast": "linear chain pipeline split_binary_tree binary_tree binomial knomial scatter_allgather scatter_allgather_ring",
    "reduce": "linear chain pipeline binary binomial in_order_binary rabenseifner",
    "allreduce": "linear nonoverlapping recursive_doubling ring segmented_ring rabenseifner",
    "barrier": "linear double_ring recursive_doubling bruck tree",
    "gather": "linear binomial linear_sync",
    "scatter": "linear binomial linear_nb",
    "allgather": "linear bruck recursive_doubling ring neighbor_exchange sparbit",
    "alltoall": "linear pairwise bruck linear_sync",
    "alltoallv": "linear pairwise",
    "reduce_scatter": "nonoverlapping recursive_halving ring butterfly",
}
OTHERWISE = {
    ("bcast", "linear"): "basic_linear",
    ("allreduce", "linear"): "basic_linear",
    ("gather", "linear"): "basic_linear",
    ("scatter", "linear"): "basic_linear",
    ("reduce", "in_order_binary"): "in-order_binary",
    ("allgather", "neighbor_exchange"): "neighbor",
    ("alltoall", "bruck"): "modified_bruck",
    ("alltoallv", "linear"): "basic_linear",
    ("reduce_scatter", "nonoverlapping"): "non-overlapping",
}
NAMES = {
    collective: {f"ompi_{name}": OTHERWISE.get((collective, name), name) for name in names.split()}
    for collective, names in SAME.items()
}
COMPOSED = ("allreduce", "allgather", "reduce_scatter")
TUNED = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
OPTIONS = {
    "segment_bytes": "segmentsize",
    "fanout": "chain_fanout",
    "radix": "knomial_radix",
    "max_requests": "max_requests",
}


def compared() -> list[dict[str, str]]:
    """Return the algorithms to compare in one launch; ompi_default stands for Open MPI's own decision.

    Some algorithms of the collectives in COMPOSED call Open MPI's bcast, reduce or gather, whichever algorithms are forced there:
    these collectives are compared without the others.
    """
    lists = {}
    for collective, names in NAMES.items():
        texts = ALGORITHMS[collective.upper()].split()
        lists[collective] = [text for text in texts if text.split(":")[0] in names] + ["ompi_default"]
    composed = {collective: lists.pop(collective) for collective in COMPOSED}
    return [
        {collective: texts[i] for collective, texts in part.items() if i < len(texts)}
        for part in (composed, lists)
        for i in range(max(map(len, part.values())))
    ]


def name_row(row: dict[str, str]) -> str:
    return "+".join(f"{collective}={text}" for collective, text in row.items())


def forced(collective: str, text: str) -> list[str]:
    """Return options of mpirun that force coll/tuned to use this algorithm."""
    name, *keys = text.split(":")
    given = dict(key.split("=") for key in keys)
    options = []
    if name != "ompi_default":
        options += ["--mca", f"coll_tuned_{collective}_algorithm", NAMES[collective][name]]
    for key, value in given.items():
        options += ["--mca", f"coll_tuned_{collective}_algorithm_{OPTIONS[key]}", value]
    return options


def known(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Return *done* unless Open MPI lacks an algorithm that it was told to use: 4.1 has no sparbit."""
    if "An invalid value was supplied for an enum variable" in done.stderr:
        pytest.skip("this Open MPI lacks the algorithm")
    return done


def agrees_with_open_mpi(done: subprocess.CompletedProcess[str]) -> None:
    """Check the result of test_order, which ends with 77 if it does not know the installed Open MPI."""
    if done.returncode == 77:
        pytest.skip("neither Open MPI 4.1 nor 5.0")
    agrees(done)


def same_order(launch: Run, program: Path, ranks: int, row: dict[str, str]) -> None:
    # Which request of this algorithm ends first, and is replaced by the next, differs between calls.
    row = {collective: text for collective, text in row.items() if not text.startswith("ompi_linear_sync:max_requests")}
    variables = {f"COLL_{collective.upper()}": text for collective, text in row.items()}
    options = [option for item in row.items() for option in forced(*item)]
    agrees_with_open_mpi(
        known(launch(ranks, variables, *TUNED, "--mca", "coll", "tuned,basic,libnbc,self", *options, program))
    )


# For each collective, this library's algorithm and its number in coll/libnbc (4.1 and 5.0); ireduce_scatter has only one.
LIBNBC = [
    {"bcast": ("binomial", 2), "allreduce": ("ring", 1), "reduce_scatter": ("binomial", None)},
    {"bcast": ("chain", 3), "allreduce": ("binomial", 2)},
    {"allreduce": ("recursive_doubling", 4)},
]


def name_libnbc(row: dict[str, tuple[str, int | None]]) -> str:
    return "+".join(f"i{collective}={name}" for collective, (name, _) in row.items())


@pytest.mark.parametrize("ranks", quick(range(2, 18), 5, 16))
@pytest.mark.parametrize("row", LIBNBC, ids=name_libnbc)
def test_starts_as_open_mpi(launch: Run, built: Path, row: dict[str, tuple[str, int | None]], ranks: int) -> None:
    """Non-blocking collectives start the same operations as Open MPI's, in order; when they wait depends on progress."""
    numbers = {collective: number for collective, (_, number) in row.items() if number}
    options = [part for c, number in numbers.items() for part in ("--mca", f"coll_libnbc_i{c}_algorithm", number)]
    variables = {f"COLL_{collective.upper()}": f"libnbc_{name}:segments=1" for collective, (name, _) in row.items()}
    agrees_with_open_mpi(
        launch(ranks, variables, "--mca", "coll", "tuned,basic,libnbc,self", *options, built / "test_order")
    )


def test_starts_see_a_difference(launch: Run, built: Path) -> None:
    options = ["--mca", "coll", "tuned,basic,libnbc,self", "--mca", "coll_libnbc_ibcast_algorithm", 3]
    assert launch(4, {"COLL_BCAST": "libnbc_binomial"}, *options, built / "test_order").returncode in (1, 77)


@pytest.mark.parametrize("row", quick(compared(), 0, 4), ids=name_row)
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


# ---- the same pairs, bytes and messages, as seen by Open MPI's component `monitoring` ----

MONITORED = re.compile(r"^([IE])\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent\t?([\d,]*)", re.MULTILINE)


def messages(launch: Run, program: Path, folder: Path, options: list[str], row: dict[str, str], times: tuple[int, ...]):
    """Return what each pair of ranks sent: bytes, messages, and messages by size class (common to I and E)."""
    ranks, own, theirs = times
    output = folder / f"{own}-{theirs}"
    monitor = ["pml_monitoring_enable 2", "pml_monitoring_enable_output 3", f"pml_monitoring_filename {output}"]
    watched = [*monitor, "coll monitoring,tuned,basic,libnbc,self"]
    command = [*TUNED, *itertools.chain.from_iterable(["--mca", *option.split()] for option in watched), *options]
    must(known(launch(ranks, row, *command, program, own, theirs)))
    seen, classes = {"E": Counter(), "I": Counter()}, {}
    for file in folder.glob(f"{own}-{theirs}.*.prof"):
        for kind, sender, receiver, size, number, histogram in MONITORED.findall(file.read_text()):
            seen[kind][sender, receiver, "bytes"] += int(size)
            seen[kind][sender, receiver, "messages"] += int(number)
            if kind == "E":
                classes[sender, receiver] = histogram
    return seen["E"], seen["E"] + seen["I"], classes


def same_messages(launch: Run, program: Path, folder: Path, ranks: int, row: dict[str, str]) -> None:
    """Check that two calls of this library send the same as one call of this library and one of Open MPI."""
    variables = {f"COLL_{collective.upper()}": text for collective, text in row.items()}
    options = [option for item in row.items() for option in forced(*item)]
    _, both, classes = messages(launch, program, folder, options, variables, (ranks, 1, 1))
    own_twice, twice, classes_twice = messages(launch, program, folder, options, variables, (ranks, 2, 0))
    # Alone: beside them, Open MPI's messages count as the program's where it starts persistent requests.
    own, _, _ = messages(launch, program, folder, options, variables, (ranks, 1, 0))
    assert own
    assert own_twice == Counter({key: 2 * number for key, number in own.items()})
    # From 5.0 on Open MPI's pairwise alltoalls send a rank its own block; here no rank sends to itself.
    own_blocks = {key for key in both if key[0] == key[1]}
    assert own_blocks.isdisjoint(twice)
    assert Counter({key: number for key, number in both.items() if key not in own_blocks}) == twice
    assert {pair: number for pair, number in classes.items() if pair[0] != pair[1]} == classes_twice


@pytest.fixture(scope="session")
def monitored(launch: Run, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, program = tmp_path_factory.mktemp("monitoring"), built / "test_trace"
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
