"""Replays of traces whose calls the simulator or the program of the replay does not handle."""

from __future__ import annotations

import csv
import gzip
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from collstudy.launch import tracefile
from collstudy.launch.build import NATIVE, sources_of
from collstudy.launch.execute import Start, spawn
from collstudy.launch.replay import replay
from collstudy.plan.estimates import estimate_launch_s
from collstudy.project.studies import Project
from collstudy.sources.traced import chosen_algorithms
from collstudy.store.store import Store
from collstudy.study.description import Application
from collstudy.study.machines import Level, Machine
from collstudy.study.traces import Replay, Trace
from conftest import ROOT, finish

pytestmark = pytest.mark.skipif(shutil.which("smpirun") is None, reason="smpirun (SimGrid SMPI) is not on PATH")
CATALOGUE = Project(config=ROOT / "config").configuration.catalogue
NODES = (Level("node", 4, 1.0, 10.0), Level("core", 2, 1.0, 10.0))
TREE = (Level("group", 2, 1.0, 10.0), Level("node", 4, 1.0, 10.0), Level("core", 1, 1.0, 10.0))
LINKS = {"fat_tree": {"arity": 2, "stages": 3, "link_gb_s": 1, "link_us": 1, "routing": "deterministic"}}


def replayed(
    folder: Path, ranks: int, calls: list[dict[str, Any]], *, copies: int = 1, tree: bool = False,
    levels: tuple[Level, ...] = NODES, start: Start = spawn,
) -> dict[str, Any]:  # fmt: skip
    """Return what is stored of a replay of a trace in which each of *ranks* ranks makes *calls*, or those with its number."""
    machine = Machine("m", "simulated", "m", "smpi-openmpi", TREE if tree else levels, simulation=LINKS if tree else {})
    trace = Trace(Application("made", "Made", "made", ranks), machine, {"mpi": {}})
    environment = chosen_algorithms(CATALOGUE, {})
    one = Replay(trace, machine, "default", copies * ranks, "node", ("node",), {}, environment, {"simulator": "3"})
    store, stage, traced = Store(folder), folder / "stage", folder / "traced"
    stage.mkdir()
    traced.mkdir()
    with gzip.open(traced / "calls.csv.gz", "wt") as stream:
        writer = csv.DictWriter(stream, tracefile.COLUMNS)
        writer.writeheader()
        for rank in range(ranks):
            for call in calls:
                if call.get("rank", rank) == rank:
                    writer.writerow(dict.fromkeys(tracefile.COLUMNS, 0) | {"list": "", "rank": rank} | call)
    about = {"failure": "", "trace": {"communicators": [list(range(ranks))], "seconds": 1}, "provenance": {}}
    store.keep(trace, traced, about)
    return replay(one, store, stage, sys.stdout, start)


@pytest.mark.parametrize("operation", ["bcast", "reduce", "allreduce", "gather", "allgather", "alltoall", "scan"])
def test_a_collective_without_data_is_replayed(operation: str, tmp_path: Path) -> None:
    """SimGrid's own reductions divide by the number of elements."""
    about = replayed(tmp_path, 8, [{"operation": operation}, {"operation": "barrier"}])
    assert about["failure"] == "" and about["calls"] == 16


@pytest.mark.parametrize("operation", ["gatherv", "scatterv", "allgatherv", "alltoallv", "reduce_scatter"])
def test_blocks_of_different_sizes_on_a_communicator_of_one_rank(operation: str, tmp_path: Path) -> None:
    """MPI_COMM_SELF is not in the list of communicators."""
    call = {"operation": operation, "communicator": -1, "sent_bytes": 8, "received_bytes": 8, "list": "8;8"}
    about = replayed(tmp_path, 2, [call], copies=2)
    assert about["failure"] == "" and about["calls"] == 4


@pytest.mark.parametrize("operation", ["bsend", "ibsend", "isend"])
def test_messages_that_their_sender_does_not_wait_for_arrive(operation: str, tmp_path: Path) -> None:
    """MPI_Bsend and the wait for MPI_Ibsend return at once, and a program may free the request of MPI_Isend: a sender may end first."""
    calls = []
    for rank in (0, 1):
        sends = {"operation": operation, "request": int(operation != "bsend"), "to": 1 - rank, "sent_bytes": 1 << 20}
        waits = [{"operation": "wait", "list": "1;-1;-1"}] if operation == "ibsend" else []
        receives = {"operation": "recv", "from": 1 - rank, "received_bytes": 1 << 20, "compute_us": 1e6 * rank}
        calls += [{"rank": rank} | call for call in (sends, *waits, receives)]
    assert replayed(tmp_path, 2, calls)["failure"] == ""


def test_a_buffered_message_to_no_process(tmp_path: Path) -> None:
    assert replayed(tmp_path, 2, [{"operation": "bsend", "to": -2, "sent_bytes": 8}])["failure"] == ""


@pytest.mark.parametrize("operation", ["send", "recv", "sendrecv", "isend", "irecv"])
def test_no_message_to_no_process_of_a_communicator_of_one_rank(operation: str, tmp_path: Path) -> None:
    """As in an exchange with neighbours that a program with one rank in a direction makes on MPI_COMM_SELF."""
    call = {
        "operation": operation,
        "communicator": -1,
        "to": -2,
        "from": -2,
        "sent_bytes": 1 << 20,
        "received_bytes": 1 << 20,
    }
    waits = [{"operation": "wait", "list": "1;-2;-1"}] if operation.startswith("i") else []
    about = replayed(tmp_path, 2, [call | {"request": len(waits)}, *waits])
    # The ranks leave the barrier before the replay one message's time apart.
    assert about["failure"] == "" and about["makespan_us"] < 1.1


def test_a_replay_has_more_ranks_than_a_process_may_have_open_files(tmp_path: Path) -> None:
    """Linux allows 1,024 by default. Rows of many calls are written in parts."""
    call = {"operation": "barrier", "communicator": -1, "compute_us": 1}
    few = 'ulimit -n 64 && exec "$@"'
    about = replayed(
        tmp_path, 1, [call] * 2000, copies=96, levels=(Level("node", 48, 1.0, 10.0), NODES[1]),
        start=lambda words, environment, folder: spawn(["bash", "-c", few, "bash", *words], environment, folder),
    )  # fmt: skip
    assert (about["failure"], about["calls"]) == ("", 96 * 2000)
    with gzip.open(tmp_path / "stage" / "calls.csv.gz", "rt") as stream:
        found = [(int(row["rank"]), float(row["start_us"])) for row in csv.DictReader(stream)]
    assert found == sorted(found) and len(set(found)) == len(found)


def test_the_bytes_of_an_all_to_all_grow_with_the_ranks(tmp_path: Path) -> None:
    started = {"operation": "ialltoall", "request": 1, "sent_bytes": 400, "received_bytes": 400}
    calls = [{"operation": "alltoall", "sent_bytes": 400, "received_bytes": 400}, started]
    about = replayed(tmp_path, 4, [*calls, {"operation": "wait", "list": "1;0;0"}], copies=2)
    assert about["failure"] == ""
    with gzip.open(tmp_path / "stage" / "calls.csv.gz", "rt") as stream:
        found = {(row["operation"], row["ranks"], row["sent_bytes"]) for row in csv.DictReader(stream)}
    assert found == {("alltoall", "8", "800"), ("ialltoall", "8", "800")}


def test_a_replay_that_gives_up_says_why(tmp_path: Path) -> None:
    """In the simulator MPI_Abort ends with exit status 0 and a message about a deadlock."""
    long = {"operation": "bcast", "sent_bytes": 3 << 30, "received_bytes": 3 << 30}
    about = replayed(tmp_path, 8, [{"operation": "barrier"}, long], tree=True)
    assert about["failure"].startswith("replay: crash:") and "more than 2 GiB" in about["failure"]


def test_a_replay_without_the_collectives_library_is_not_built(tmp_path: Path) -> None:
    """Nothing is written into the sources, whose content decides what is built again."""
    native = shutil.copytree(NATIVE, tmp_path / "native")
    before = set(native.rglob("*"))
    done = finish(["make", "-C", native / "replay", "MPICC=smpicc", f"OUT={tmp_path / 'out'}"])
    assert done.returncode != 0 and "collstudy.o" in done.stderr
    assert set(native.rglob("*")) == before
    assert NATIVE / "coll" / "core" / "message.c" in sources_of("replay")


def test_replays_on_many_ranks_are_estimated_by_pairs_of_ranks() -> None:
    """They took 1 to 100 s on 48 ranks, 10 s to 50 min on 256 (before, all were estimated to take 20 s)."""
    of = {name: Project(ROOT / "config").source(name).work() for name in ("gain-thin-48", "gain-epyc-256")}
    small, large = ({estimate_launch_s(work) for work in works if isinstance(work, Replay)} for works in of.values())
    assert small == {20} and large == {320}
