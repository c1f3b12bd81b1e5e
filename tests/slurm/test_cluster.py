"""The test cluster itself: two hosts, MPI between them, faults, and complete clean-up."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator

import pytest
from cluster import Cluster, ClusterError
from processes import marked_processes, wait_until

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    char host[MPI_MAX_PROCESSOR_NAME];
    int rank, size, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s, sum %d\n", rank, size, host, sum);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(name=f"self{os.getpid()}") as running:
        yield running


def test_both_nodes_are_idle_and_have_the_claimed_shape(cluster):
    assert cluster.idle_nodes() == ["thin001", "thin002"]
    assert cluster.run(["sinfo", "-h", "-o", "%X %Y %Z"]).stdout.split() == ["2", "12", "1"]


def test_nodes_are_hosts_of_their_own(cluster, tmp_path):
    if cluster.mode != "hosts":
        pytest.skip("mode loopback: one host for all nodes")
    output = tmp_path / "output"
    number = cluster.submit("touch /dev/shm/$(hostname); srun ls /dev/shm; srun hostname", "-N2", f"-o{output}")
    assert cluster.wait(number) == "COMPLETED"
    assert sorted(output.read_text().split()) == ["thin001", "thin001", "thin002"]


def test_mpi_runs_across_the_nodes_and_is_bound(cluster, tmp_path):
    mpicc = os.environ.get("MPICC") or shutil.which("mpicc")
    mpirun = os.environ.get("MPIRUN") or shutil.which("mpirun")
    if not mpicc or not mpirun:
        pytest.fail("no Open MPI: neither MPICC and MPIRUN nor a PATH with mpicc and mpirun")
    # In mode loopback one host is every node: programs see the host's own name, but Open MPI 5 expects that of the node.
    nodes = hosts = cluster.nodes
    if cluster.mode != "hosts":
        nodes, hosts = nodes[:1], [socket.gethostname()]
    source, program, output = tmp_path / "where.c", tmp_path / "where", tmp_path / "output"
    source.write_text(PROGRAM)
    cluster.run([mpicc, "-o", program, source])
    old = "(Open MPI) 4" in cluster.run([mpirun, "--version"]).stdout
    named = hosts if old else nodes
    ranks = [f"rank {rank}={named[rank % len(named)]} slot=1:{rank}" for rank in range(4)]
    (tmp_path / "ranks").write_text("\n".join(ranks) + "\n")
    mapping = f"--rankfile {tmp_path}/ranks" if old else f"--map-by rankfile:file={tmp_path}/ranks"
    script = f"{mpirun} -n 4 {mapping} --report-bindings {program}"
    number = cluster.submit(script, f"-N{len(nodes)}", "--exclusive", "--ntasks-per-node=24", f"-o{output}")
    assert cluster.wait(number) == "COMPLETED", output.read_text()
    text = output.read_text()
    for rank in range(4):
        assert f"rank {rank} of 4 on {hosts[rank % len(hosts)]}, sum 6" in text
    assert text.count("bound to socket 1" if old else "bound to package[1]") == 4


def test_a_time_limit_ends_a_job(cluster):
    number = cluster.submit("sleep 300", "-t5")
    cluster.wait_for_state(number, "RUNNING")
    cluster.expire(number)
    assert cluster.wait(number, 60) == "TIMEOUT"


def test_a_killed_slurmd_comes_back_and_its_job_goes_on(cluster, tmp_path):
    output = tmp_path / "output"
    started = tmp_path / "started"
    number = cluster.submit(f"touch {started}; sleep 4; echo done", "-wthin001", f"-o{output}")
    assert wait_until(started.exists, 30)
    cluster.kill_slurmd("thin001")
    cluster.start_slurmd("thin001")
    assert cluster.wait(number) == "COMPLETED"
    assert output.read_text() == "done\n"


def test_a_dead_node_is_noticed_and_can_be_started_again(cluster, tmp_path):
    if cluster.mode != "hosts":
        pytest.skip("mode loopback: nodes are not hosts")
    started = tmp_path / "started"
    number = cluster.submit(f"touch {started}; sleep 300", "-wthin002", "--no-requeue")
    # A job is RUNNING before its script starts: if the node dies in between, Slurm regards the start as failed and queues
    # the job again in spite of --no-requeue.
    assert wait_until(started.exists, 30)
    cluster.kill_node("thin002")
    cluster.run(["scontrol", "update", "NodeName=thin002", "State=DOWN", "Reason=test"])
    assert cluster.wait(number, 60) == "NODE_FAIL"
    cluster.start_node("thin002")
    assert cluster.idle_nodes() == ["thin001", "thin002"]


def test_a_command_on_the_login_node_can_be_killed_by_its_number(cluster):
    process = cluster.popen(["sleep", "60"])
    process.send_signal(signal.SIGKILL)
    assert process.wait(5) == -signal.SIGKILL


def test_two_instances_do_not_meet_and_leave_nothing():
    name = f"second{os.getpid()}"
    with Cluster(name=name, nodes=3) as second:
        assert second.idle_nodes() == ["thin001", "thin002", "thin003"]
        with pytest.raises(ClusterError, match="already up"):
            Cluster(name=name).up()
        second.submit("sleep 300", "-N3")
        state = second.state
    assert marked_processes(second.mark) == []
    assert not state.exists()


def test_what_a_crash_left_is_cleaned_by_the_next_start():
    name = f"crashed{os.getpid()}"
    crashed = Cluster(name=name)
    crashed.up()
    for process in crashed._daemons("slurmctld"):
        os.kill(process.pid, signal.SIGKILL)
    # On a busy computer a killed process takes a moment to end.
    assert wait_until(lambda: not crashed.is_up(), 30)
    before = {process.pid for process in marked_processes(crashed.mark)}
    assert before
    with Cluster(name=name) as fresh:
        assert fresh.idle_nodes() == ["thin001", "thin002"]
        assert not before & {process.pid for process in marked_processes(fresh.mark)}
    assert marked_processes(crashed.mark) == []


def test_loopback_runs_jobs(tmp_path):
    with Cluster(name=f"loop{os.getpid()}", mode="loopback") as loopback:
        output = tmp_path / "output"
        number = loopback.submit("srun -N2 sh -c 'echo $SLURMD_NODENAME'", "-N2", f"-o{output}")
        assert loopback.wait(number) == "COMPLETED"
        assert sorted(output.read_text().split()) == ["thin001", "thin002"]


@pytest.mark.long
def test_with_accounting_sacct_answers():
    if not shutil.which("slurmdbd", path="/usr/sbin:/usr/bin"):
        pytest.fail("not installed: slurmdbd mariadb-server")
    with Cluster(name=f"acct{os.getpid()}", accounting=True) as accounted:
        number = accounted.submit("true", "-o/dev/null")
        assert accounted.wait(number) == "COMPLETED"
        command = ["sacct", "-n", "-X", "-P", "-j", str(number), "-o", "State,Account"]
        assert accounted.run(command).stdout.strip() == "COMPLETED|study"
