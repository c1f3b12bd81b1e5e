"""collbench -w: calls at given times of synchronised clocks, with the installed Open MPI (simulated clocks are always equal)."""

from __future__ import annotations

import subprocess

import pytest
from collstudy.launch import output
from collstudy.launch.openmpi import AS_NODE, emulates_nodes, library
from conftest import finish, must

SKEW = """
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int other = -1;
    char host[64];
    if (other < 0)
        other = gethostname(host, sizeof host) == 0 && strcmp(host, "nodeb") == 0;
    int code = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_MONOTONIC && other) {
        double fraction = now->tv_nsec * 1e-9 + (now->tv_sec + now->tv_nsec * 1e-9);
        now->tv_sec += 1000 + (long)fraction;
        now->tv_nsec = (fraction - (long)fraction) * 1e9;
    }
    return code;
}
"""


#: A clock that advances by a millisecond whenever it is read: no rank sees the instant at which its window begins.
SLOW = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static long reads;
    int code = syscall(SYS_clock_gettime, id, now);
    long nanoseconds = now->tv_nsec + ++reads * 1000000;
    now->tv_sec += nanoseconds / 1000000000;
    now->tv_nsec = nanoseconds % 1000000000;
    return code;
}
"""


def in_windows(mpi, tmp_path, *before: str) -> list[dict]:
    """Return the samples of broadcasts in windows by two ranks of the installed Open MPI."""
    program = mpi.build / "bench" / "collbench_bcast"
    options = ["-w", "-f", "-m", "1:256:16", "-i", "500", "-x", "10"]
    command = [mpi.mpirun, "-n", "2", "--bind-to", "none", *before, program, *options]
    done = must(finish(command, timeout=120, env=mpi.environment(), cwd=tmp_path))
    return output.parse(done.stdout, [1, 16, 256])


def test_late_calls_are_dropped_and_counted(tmp_path):
    samples = in_windows(library(), tmp_path, "--map-by", "core:OVERSUBSCRIBE")
    assert all(sample["iterations"] + sample["late"] == 500 and sample["iterations"] > 0 for sample in samples)
    assert all(sample["min_latency_us"] <= sample["latency_us"] <= sample["max_latency_us"] for sample in samples)


def test_if_all_calls_are_late_one_rank_says_so(tmp_path):
    mpi = library()
    (tmp_path / "slow.c").write_text(SLOW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "slow.so", "slow.c"], cwd=tmp_path, check=True)
    program = [mpi.build / "bench" / "collbench_bcast", "-w", "-m", "4:4", "-i", "2", "-x", "0"]
    start = [mpi.mpirun, "-n", "2", "--bind-to", "none", "env", f"LD_PRELOAD={tmp_path / 'slow.so'}"]
    done = finish([*start, *program], timeout=60, env=mpi.environment(), cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.count("in every call of 4 bytes some rank started late") == 1


def test_clocks_of_nodes_are_synchronised(tmp_path):
    """The other emulated node's clock is 1000 s ahead and twice as fast; neither affects the latencies."""
    mpi = library()
    if not emulates_nodes(mpi):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    (tmp_path / "skew.c").write_text(SKEW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "skew.so", "skew.c"], cwd=tmp_path, check=True)
    (tmp_path / "agent").symlink_to(AS_NODE)
    nodes = ["--prtemca", "plm_ssh_agent", str(tmp_path / "agent"), "--host", "nodea:1,nodeb:1"]
    skewed = ["--map-by", "node:OVERSUBSCRIBE", "env", f"LD_PRELOAD={tmp_path / 'skew.so'}"]
    samples = in_windows(mpi, tmp_path, *nodes, *skewed)
    # Ignoring the offset of 1000 s would give 10^9 us; ignoring the rate would double the difference with each call.
    assert all(0 < sample["latency_us"] < 1e6 for sample in samples)
