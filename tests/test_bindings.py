"""Binding reports of Open MPI 4.1.4 and 5.0.11, recorded on two emulated nodes with 2 sockets x 12 cores; numbers of cores."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch.bindings import Binding, misplaced, parse_bindings, printed_by_ranks, processors_of_cores
from collstudy.launch.toolchain import Mpi, mpi_environment, mpis
from conftest import ROOT, executable, finish, must
from made_nodes import Numbering, alternating, make_node

RECORDED = Path(__file__).parent / "data" / "bindings"
HOSTS = ["thin001", "thin002"]
#: (node, core) of ranks 0 to 9 for each mapping.
ASKED = {
    "core": [(0, core) for core in range(10)],
    "socket": [(0, 12 * (rank % 2) + rank // 2) for rank in range(10)],
    "bfnf": [(rank % 2, rank // 2) for rank in range(10)],
    "bfsf": [(rank % 2, 12 * (rank // 2 % 2) + rank // 4) for rank in range(10)],
}


def places(mapping):
    return [SimpleNamespace(node=node, core_of_node=core) for node, core in ASKED[mapping]]


@pytest.mark.parametrize("version", ["4.1.4", "5.0.11"])
@pytest.mark.parametrize("mapping", ASKED)
def test_rank_files_put_the_ranks_where_they_were_asked(version, mapping):
    bindings = parse_bindings((RECORDED / f"openmpi-{version}-rankfile-{mapping}.txt").read_text())
    assert [binding.rank for binding in bindings] == list(range(10))
    assert all(binding.socket == binding.core // 12 for binding in bindings)
    assert misplaced(bindings, places(mapping), HOSTS) == []


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_the_report_agrees_with_what_the_processes_themselves_saw(path):
    text = path.read_text()
    threads = 2 if "thread" in path.name else 1
    seen = re.findall(r"^rank (\d+) of \d+ on (\S+) cpus (\S+),", text, re.MULTILINE)
    bindings = {binding.rank: binding for binding in parse_bindings(text)}
    if "display-map" in path.name:
        assert not bindings
        return
    for rank, host, cpus in seen:
        binding = bindings[int(rank)]
        # The second node of these recordings has one thread per core.
        divisor = threads if host == "thin001" else 1
        assert binding.host == host
        if "unbound" in path.name:
            assert binding.cores == () and binding.socket is None and binding.core is None
        else:
            assert {core for _, core in binding.cores} == {int(cpu) // divisor for cpu in cpus.split(",")}


@pytest.mark.parametrize("version", ["4.1.4", "5.0.11"])
def test_several_cores_are_all_reported(version):
    bindings = parse_bindings((RECORDED / f"openmpi-{version}-three-cores-a-rank.txt").read_text())
    assert bindings[3] == Binding(3, "thin002", ((0, 3), (0, 4), (0, 5)))
    assert bindings[3].core is None and bindings[3].socket == 0


def test_the_default_binding_of_map_by_node_differs_between_the_versions():
    sockets = {}
    for version in ("4.1.4", "5.0.11"):
        bindings = parse_bindings((RECORDED / f"openmpi-{version}-map-by-node-default-binding.txt").read_text())
        sockets[version] = [binding.socket for binding in bindings]
    assert sockets == {"4.1.4": [0, 0, 1, 1, 0, 0, 1, 1], "5.0.11": [0] * 8}


def test_reports_of_older_5_0_without_the_letter():
    text = "[n1:7] Rank 0 bound to package[1][core:12-13]\n"
    assert parse_bindings(text) == [Binding(0, "n1", ((1, 12), (1, 13)))]


def test_every_kind_of_disagreement_is_named():
    text = "[thin001.x:1] Rank 0 bound to package[0][core:L0]\n[thin001:1] Rank 1 bound to package[0][core:L5]\n"
    text += "[thin002:1] Rank 2 is not bound (or bound to all available processors)\n"
    assert misplaced(parse_bindings(text), places("core")[:4], HOSTS) == [
        "rank 1: requested thin001 core 1, placed on thin001 core 5",
        "rank 2: requested thin001 core 2, not bound on thin002",
        "rank 3: requested thin001 core 3, not reported",
    ]


def test_what_ranks_print():
    text = "rank 1 of 3 host b cpus 3,27 socket 1 core 12\nrank 0 of 3 host a.x cpus 0-1,5\nrank 2 of 3 host a cpus\n"
    assert printed_by_ranks(text) == [
        (Binding(0, "a.x", ()), "0-1,5"), (Binding(1, "b", ((1, 12),)), "3,27"), (Binding(2, "a", ()), "")
    ]  # fmt: skip


@pytest.fixture(scope="session")
def processors_48(tmp_path_factory):
    """A library with which a process believes in 48 processors."""
    library = tmp_path_factory.mktemp("fakecpu") / "libfakecpu.so"
    source = ROOT / "tests/slurm/fakecpu.c"
    must(finish(["gcc", "-O2", "-shared", "-fPIC", "-DFAKECPU_COUNT=48", "-o", library, source, "-ldl"], timeout=60))
    return library


def around(parts: int) -> Numbering:
    """Return processor numbers that alternate between the *parts* of both sockets."""
    each = 12 // parts
    return lambda socket, core, thread: 24 * thread + 2 * parts * (core % each) + 2 * (core // each) + socket


#: Servers with two sockets of 12 cores and two threads a core: numbers of processors, NUMA nodes and L3 caches a socket, and the
#: processors of the first cores of each socket.
SERVERS = {
    "alternating": (alternating, 1, 1, [0, 2, 4, 6, 8, 10, 12], [1, 3]),
    "consecutive": (
        lambda socket, core, thread: 24 * thread + 12 * socket + core,
        1,
        3,
        [0, 1, 2, 3, 4, 5, 6],
        [12, 13],
    ),
    "threads-adjacent": (lambda socket, core, thread: 24 * socket + 2 * core + thread, 1, 1, [0, 2, 4, 6], [24, 26]),
    "around-numa": (around(2), 2, 1, [0, 4, 8, 12, 16, 20, 2, 6, 10], [1, 5, 9, 13, 17, 21, 3]),
    "around-l3": (around(3), 1, 3, [0, 6, 12, 18, 2, 8, 14, 20, 4], [1, 7, 13, 19, 3]),
}


@pytest.mark.parametrize("server", SERVERS)
def test_cores_are_numbered_as_by_open_mpi(tmp_path, processors_48, server):
    """The number of a core is not that of its processor, which MPICH, Intel MPI and srun take."""
    mpi = mpis().get("openmpi")
    if mpi is None:
        pytest.skip("no Open MPI")
    number, numa, caches, first, second = SERVERS[server]
    make_node(tmp_path / "node", 2, 12, 2, number, numa, caches)
    node = {"HWLOC_FSROOT": str(tmp_path / "node"), "HWLOC_THISSYSTEM": "1", "LD_PRELOAD": str(processors_48)}
    probe = mpi.build / "probe"
    listed = [
        int(line) for line in must(finish([probe / "collcores"], timeout=60, env=os.environ | node)).stdout.split()
    ]
    assert len(listed) == 24 and listed[: len(first)] == first and listed[12 : 12 + len(second)] == second

    ranks = [(0, 1), (0, 6), (1, 3), (1, 6), (0, 11)]
    lines = (f"rank {rank}={platform.node()} slot={socket}:{core}\n" for rank, (socket, core) in enumerate(ranks))
    (tmp_path / "ranks").write_text("".join(lines))
    placing = ["--rankfile", "ranks"] if mpi.version.startswith("4.") else ["--map-by", "rankfile:file=ranks"]
    command = [mpi.mpirun, "-n", str(len(ranks)), *placing, "--report-bindings", "--mca", "mpi_yield_when_idle", "1"]
    done = must(
        finish([*command, probe / "collprobe", "barrier", "1"], timeout=60, env=mpi_environment() | node, cwd=tmp_path)
    )
    printed = printed_by_ranks(done.stdout)
    assert parse_bindings(done.stdout + done.stderr) == [binding for binding, _ in printed]
    assert [(binding.socket, binding.core) for binding, _ in printed] == [(s, 12 * s + core) for s, core in ranks]
    # Open MPI binds to both threads of a core, of which the first is listed.
    assert [int(cpus.split(",")[0]) for _, cpus in printed] == [listed[12 * socket + core] for socket, core in ranks]


def test_the_processors_of_another_node_are_asked_for_there(tmp_path, monkeypatch):
    """In an allocation of salloc, commands run on the login node."""
    executable(tmp_path / "srun", '#!/bin/sh\n[ "$1 $2 $3 $4" = "-N1 -n1 -w node7" ] && printf "0\\n2\\n"\n')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    mpi = Mpi("mpich", "1", tmp_path)
    assert processors_of_cores(mpi, "node7") == [0, 2]
    with pytest.raises(StudyError, match="collcores: exit status 1; no list of the cores of node8"):
        processors_of_cores(mpi, "node8")
