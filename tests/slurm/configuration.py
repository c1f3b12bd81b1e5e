"""Configuration files of a test cluster."""

from __future__ import annotations

import getpass
import string
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster import Cluster

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from made_nodes import make_node  # noqa: E402

PARTITION = "THIN"
TASK_PROLOG = """\
#!/bin/sh
# Every task of a job sees the node's claimed processors, and may run Open MPI as root.
echo "export HWLOC_FSROOT={state}/node"
echo "export HWLOC_THISSYSTEM=1"
echo "export LD_PRELOAD={state}/libfakecpu.so${{LD_PRELOAD:+:$LD_PRELOAD}}"
# More ranks than real processors: without yielding they are 20 to 40 times slower.
echo "export OMPI_MCA_mpi_yield_when_idle=1"
for layer in OMPI PRTE; do
  echo "export ${{layer}}_ALLOW_RUN_AS_ROOT=1"
  echo "export ${{layer}}_ALLOW_RUN_AS_ROOT_CONFIRM=1"
done
mkdir -p "{state}/node-tmp/$SLURMD_NODENAME"
echo "export TMPDIR={state}/node-tmp/$SLURMD_NODENAME"
"""


def write(cluster: Cluster) -> None:
    """Write slurm.conf and the files that the nodes need."""
    shape = f"Sockets={cluster.sockets} CoresPerSocket={cluster.cores} ThreadsPerCore=1 RealMemory={cluster.memory_mb}"
    nodes = []
    for node in cluster.nodes:
        own_name = "" if cluster.mode == "hosts" else f" NodeHostname={cluster.login_host}"
        nodes.append(f"NodeName={node}{own_name} NodeAddr={cluster.address(node)} Port={cluster.ports[node]} {shape}")
    accounting = "AccountingStorageType=accounting_storage/none"
    if cluster.accounting:
        accounting = (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost={cluster.address('login')}\nAccountingStoragePort={cluster.ports['slurmdbd']}\n"
            # slurmdbd uses munge's socket as its password.
            f"AccountingStoragePass={cluster.state / 'munge.socket'}"
        )
    values = {
        "cluster": "thin",
        "state": cluster.state,
        "user": getpass.getuser(),
        "controller": cluster.login_host,
        "controller_address": cluster.address("login"),
        "controller_port": cluster.ports["slurmctld"],
        "mpi_ports": "18000-18999",
        "slurmd_timeout": cluster.slurmd_timeout_s,
        "accounting": accounting,
        "nodes": "\n".join(nodes),
        "partition": PARTITION,
    }
    template = string.Template((HERE / "slurm.conf.in").read_text())
    (cluster.state / "etc" / "slurm.conf").write_text(template.substitute(values))
    hosts = ["127.0.0.1 localhost", f"{cluster.address('login')} {cluster.login_host}"]
    hosts += [f"{cluster.address(node)} {node}" for node in cluster.nodes]
    (cluster.state / "hosts").write_text("\n".join(hosts) + "\n")
    prolog = cluster.state / "task-prolog"
    prolog.write_text(TASK_PROLOG.format(state=cluster.state, sockets=cluster.sockets, cores=cluster.cores))
    prolog.chmod(0o755)
    make_node(
        cluster.state / "node",
        cluster.sockets,
        cluster.cores,
        number=lambda socket, core, _: cluster.sockets * core + socket,
    )
    library = cluster.state / "libfakecpu.so"
    count = f"-DFAKECPU_COUNT={cluster.sockets * cluster.cores}"
    compiler = ["gcc", "-O2", "-shared", "-fPIC", count, "-o", str(library), str(HERE / "fakecpu.c"), "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True, text=True)
