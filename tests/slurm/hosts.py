"""Emulated hosts: each has its own network, host name, processes and mounts, and a bridge connects all of them. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from processes import Process

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = ("--net", "--uts", "--ipc", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")

# The first process of a host in mode `hosts`. It reports its process id outside the namespace, sets up the host's view of the
# file system, and then only reaps ended processes. Killing it ends everything on that host, including its network.
FIRST_PROCESS = r"""
set -e
read -r outside _ < /proc/self/stat
hostname "$1"
[ "$2" = 1 ] && mount -t proc proc /proc
mount --bind "$3/hosts" /etc/hosts
mount --bind "$3/etc" /etc/slurm
mount -t tmpfs -o size=4g tmpfs /dev/shm
mount -t tmpfs -o size=2g tmpfs "$3/node-tmp"
ip link set lo up
echo "$outside"
exec > /dev/null 2>&1 < /dev/null
while :; do sleep 86400 & wait; done
"""


class ClusterError(RuntimeError):
    """The cluster cannot be started, or does not answer."""


def why_not_hosts() -> str:
    """Return why nodes cannot be separate hosts here; "" if they can."""
    if os.geteuid() != 0:
        return "not root"
    probe = "mount -t proc proc /proc && ip link add b0 type bridge && ip link add v0 type veth peer name v1"
    command = ["unshare", *NAMESPACES, "sh", "-c", probe]
    result = subprocess.run(command, capture_output=True, text=True, env={"PATH": SYSTEM_PATH})
    return "" if result.returncode == 0 else f"namespaces: {result.stderr.strip() or result.returncode}"


def start_host(host: str, state: Path, environment: Mapping[str, str]) -> Process:
    """Start a host and return its first process, which must exist as long as the host; *state* is the folder of the cluster."""
    # Commands on the login node share the caller's process ids, so that a test can kill what it started.
    own_processes = host != "login"
    namespaces = [flag for flag in NAMESPACES if own_processes or flag not in ("--pid", "--kill-child")]
    arguments = [host, "1" if own_processes else "0", str(state)]
    with open(state / "log" / "start.log", "a") as log:
        starter = subprocess.Popen(
            ["unshare", *namespaces, "bash", "-c", FIRST_PROCESS, "bash", *arguments], stdout=subprocess.PIPE, stderr=log,
            stdin=subprocess.DEVNULL, env={"PATH": SYSTEM_PATH, **environment}, start_new_session=True, cwd="/", text=True,
        )  # fmt: skip
    assert starter.stdout
    with starter.stdout:
        answer = starter.stdout.readline()
    if not answer.strip():
        raise ClusterError(f"host {host} did not start: {(state / 'log' / 'start.log').read_text()[-1000:]}")
    return Process.of(int(answer))


def bridge(login: Process) -> None:
    """Create the bridge on the login node, before any host is connected to it."""
    _ip(login, ["link add br0 type bridge", "link set br0 up", "address add 10.77.0.254/24 dev br0"])


def connect(login: Process, host: Process, number: int, address: str) -> None:
    """Connect a host to the bridge with *address*; *number* is the host's own number."""
    wire = f"link add p{number} type veth peer name eth0 netns {host.pid}"
    _ip(login, [wire, f"link set p{number} master br0 up"])
    _ip(host, [f"address add {address}/24 dev eth0", "link set eth0 up"])


def entering(host: Process, is_login: bool, folder: str, words: Sequence[str]) -> list[str]:
    """Return the command that runs *words* on a host, in *folder*, because entering a mount namespace resets the working folder."""
    flags = ["--net", "--uts", "--ipc", "--mount"] + ([] if is_login else ["--pid"])
    enter = ["nsenter", "--target", str(host.pid), *flags]
    return [*enter, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", folder, *words]


def _ip(host: Process, lines: Sequence[str]) -> None:
    command = ["nsenter", "--target", str(host.pid), "--net", "ip", "-batch", "-"]
    text = "\n".join(lines) + "\n"
    subprocess.run(command, input=text, check=True, capture_output=True, text=True, env={"PATH": SYSTEM_PATH})
