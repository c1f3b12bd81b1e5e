"""Where ranks run: what they print, the numbers of cores and processors, and comparison with the requested placement."""

from __future__ import annotations

import os
import platform
from types import SimpleNamespace

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch.bindings import Binding, misplaced, processors_of_cores, read_bindings
from collstudy.launch.toolchain import Mpi, mpi_environment, mpis
from conftest import ROOT, executable, finish, must
from made_nodes import Numbering, alternating, make_node

CORES = [SimpleNamespace(node=0, core_of_node=core) for core in range(4)]


def test_every_kind_of_disagreement_is_named():
    text = "rank 0 of 4 host n1.x cpus 0 socket 0 core 0\nrank 1 of 4 host n1 cpus 5 socket 0 core 5\n"
    text += "rank 2 of 4 host n2 cpus 2,3\n"
    assert misplaced(read_bindings(text), CORES, ["n1"]) == [
        "rank 1: requested n1 core 1, placed on n1 core 5",
        "rank 2: requested n1 core 2, not bound to one core on n2",
        "rank 3: requested n1 core 3, not reported",
    ]
    assert misplaced(read_bindings(text), CORES[:1], ["n1.y"]) == []


def test_what_ranks_print():
    text = "rank 1 of 3 host b cpus 3,27 socket 1 core 12\nrank 0 of 3 host a.x cpus 0-1,5\nrank 2 of 3 host a cpus\n"
    assert read_bindings(text) == [Binding(0, "a.x", "0-1,5"), Binding(1, "b", "3,27", 1, 12), Binding(2, "a", "")]


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
    listed = must(finish([mpi.build / "place" / "collcores"], timeout=60, env=os.environ | node)).stdout.split()
    processors = [int(line) for line in listed]
    assert len(processors) == 24 and processors[: len(first)] == first and processors[12 : 12 + len(second)] == second

    ranks = [(0, 1), (0, 6), (1, 3), (1, 6), (0, 11)]
    lines = (f"rank {rank}={platform.node()} slot={socket}:{core}\n" for rank, (socket, core) in enumerate(ranks))
    (tmp_path / "ranks").write_text("".join(lines))
    placing = ["--rankfile", "ranks"] if mpi.version.startswith("4.") else ["--map-by", "rankfile:file=ranks"]
    command = [mpi.mpirun, "-n", str(len(ranks)), *placing, "--mca", "mpi_yield_when_idle", "1"]
    command += [mpi.build / "probe" / "collprobe", "barrier", "1"]
    done = must(finish(command, timeout=60, env=mpi_environment() | node, cwd=tmp_path))
    bindings = read_bindings(done.stdout)
    assert [(binding.socket, binding.core) for binding in bindings] == [(s, 12 * s + core) for s, core in ranks]
    # Open MPI binds to all threads of a core, of which the first is listed.
    assert [int(binding.cpus.split(",")[0]) for binding in bindings] == [processors[12 * s + core] for s, core in ranks]


def test_the_processors_of_another_node_are_asked_for_there(tmp_path, monkeypatch):
    """In an allocation of salloc, commands run on the login node; or in a step of srun, in which another one would wait."""
    asked = '"$* $SLURM_OVERLAP" = "-N1 -n1 -w node7 --cpu-bind=none $COLLCORES 1"'
    executable(tmp_path / "srun", f'#!/bin/sh\n[ {asked} ] && printf "0\\n2\\n"\n')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    mpi = Mpi("mpich", "1", tmp_path)
    monkeypatch.setenv("COLLCORES", str(mpi.build / "place" / "collcores"))
    assert processors_of_cores(mpi, "node7") == [0, 2]
    with pytest.raises(StudyError, match="collcores: exit status 1; no list of the cores of node8"):
        processors_of_cores(mpi, "node8")


def test_processors_that_the_kernel_does_not_tell(tmp_path):
    """As where there are more than a mask of the usual size has."""
    mpi = mpis().get("openmpi")
    if mpi is None:
        pytest.skip("no Open MPI")
    source, library = tmp_path / "refuse.c", tmp_path / "refuse.so"
    source.write_text("#include <errno.h>\nint sched_getaffinity(void) { errno = EINVAL; return -1; }\n")
    must(finish(["gcc", "-shared", "-fPIC", "-fno-builtin", "-o", library, source], timeout=60))
    done = finish([mpi.build / "place" / "collcores"], timeout=60, env=os.environ | {"LD_PRELOAD": str(library)})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "collcores: the processors of this process: Invalid argument\n"
