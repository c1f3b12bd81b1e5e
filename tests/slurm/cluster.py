"""A real Slurm on one computer, for tests: munged, slurmctld and several slurmd, without systemd.

    python tests/slurm/cluster.py up [--nodes 2] [--accounting] [--mode auto|hosts|loopback] [--name NAME]
    python tests/slurm/cluster.py run COMMAND...     a command as a user on the login node would type it
    python tests/slurm/cluster.py status
    python tests/slurm/cluster.py down

In Python: `with Cluster(nodes=2) as cluster: cluster.run(["sinfo"])`.

Mode `hosts`: every node is its own host (network, UTS, IPC, mount and process namespaces, /dev/shm), joined by a
bridge, so MPI between nodes goes over TCP; it needs root. Mode `loopback`, where namespaces are not permitted: several
slurmd on 127.0.0.1; MPI works inside one node there. `auto` takes the first that works. Each node claims 2 sockets x
12 cores, whatever the computer has.

All state is in one folder under the temporary folder, named after the checkout and `--name`; two checkouts do not meet.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import accounting
import configuration
from hosts import SYSTEM_PATH, ClusterError, bridge, connect, entering, start_host, why_not_hosts
from processes import MARK, Process, marked_processes, stop, wait_until

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
PACKAGES = "munge slurmctld slurmd slurm-client iproute2 gcc libc6-dev"
ACCOUNTING_PACKAGES = "slurmdbd mariadb-server"


def free_ports(count: int) -> list[int]:
    """Return unused ports of the loopback device."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Cluster:
    """One emulated cluster. `up()` and `down()` may be called from different processes, because its state is in its folder."""

    def __init__(
        self,
        name: str = "cli",
        nodes: int = 2,
        sockets: int = 2,
        cores: int = 12,
        accounting: bool = False,
        mode: str = "auto",
        memory_mb: int = 24000,
        slurmd_timeout_s: int = 30,
    ) -> None:
        self.nodes = [f"thin{i:03d}" for i in range(1, nodes + 1)]
        self.sockets, self.cores, self.memory_mb = sockets, cores, memory_mb
        self.accounting, self.mode, self.slurmd_timeout_s = accounting, mode, slurmd_timeout_s
        self.mark = f"{hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]}-{name}"
        # Not $TMPDIR of a job, which differs between hosts. The path must be short: a socket's path has at most 108 characters.
        base = "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()
        self.state = Path(base) / f"collstudy-slurm-{self.mark}"
        self.hosts: dict[str, Process] = {}
        self.ports: dict[str, int] = {}
        self._load()

    # ---- life

    def __enter__(self) -> Cluster:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """Start the cluster and wait until all nodes are idle. First remove leftovers of a crashed instance."""
        with self._locked():
            if self.is_up():
                raise ClusterError(f"already up: {self.state}; stop it with `{Path(__file__).name} down`")
            self._stop_everything()
            self._check_programs()
            try:
                self._start()
            except BaseException as error:
                logs = self.log_tails()
                self._stop_everything(keep_logs=True)
                if isinstance(error, ClusterError | subprocess.SubprocessError | OSError):
                    raise ClusterError(f"the test cluster did not start: {describe(error)}\n{logs}") from error
                raise

    def down(self) -> None:
        """Stop the processes of this instance and remove its folder."""
        with self._locked():
            self._stop_everything()
        shutil.rmtree(self.state, ignore_errors=True)

    def is_up(self) -> bool:
        """Return whether the controller is running."""
        return any(process.alive() for process in self._daemons("slurmctld"))

    def _start(self) -> None:
        reason = "" if self.mode == "loopback" else why_not_hosts()
        if self.mode == "hosts" and reason:
            raise ClusterError(f"nodes cannot be separate hosts here ({reason})")
        self.mode = "loopback" if self.mode == "loopback" or reason else "hosts"
        for folder in ("log", "etc", "node-tmp", "slurmctld"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        self._choose_ports()
        configuration.write(self)
        self._save()
        self._start_munged()
        if self.mode == "hosts":
            self._start_hosts()
        if self.accounting:
            accounting.start(self)
        self.system(["slurmctld"], host="login")
        for node in self.nodes:
            self._run_slurmd(node)
        if not wait_until(lambda: len(self.idle_nodes()) == len(self.nodes), 30):
            states = self.run(["sinfo", "-N", "-h"], check=False)
            raise ClusterError(f"not all nodes became idle: {states.stdout or states.stderr}")

    def _stop_everything(self, keep_logs: bool = False) -> None:
        # Kill the hosts first: all their processes end with them, so there is nothing left to stop gracefully.
        for process in self.hosts.values():
            if process.alive() and process.pid != os.getpid():
                os.kill(process.pid, signal.SIGKILL)
        stop(marked_processes(self.mark))
        self.hosts = {}
        for path in self.state.glob("*"):
            if keep_logs and path.name in ("log", "etc"):
                continue
            if path.name != "lock":
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    # ---- for tests

    def run(
        self, command: Sequence[str | Path], check: bool = True, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node, in the caller's folder, and return its output as text."""
        options = {"capture_output": True, "text": True, **options}
        result = subprocess.run(self.on("login", command, options), **options)
        if check and result.returncode != 0:
            raise ClusterError(f"{' '.join(map(str, command))}: exit status {result.returncode}\n{result.stderr or ''}")
        return result

    def popen(self, command: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
        """Start a command on the login node. The returned process is the command itself, so its pid can be killed."""
        return subprocess.Popen(self.on("login", command, options), **options)

    def submit(self, script: str, *options: str, **how: Any) -> int:
        """Submit a batch script and return the job's number; *how* is passed to `run`."""
        answer = self.run(["sbatch", "--parsable", *options], input=f"#!/bin/bash\n{script}\n", **how).stdout
        return int(answer.strip().split(";")[0])

    def job(self, number: int) -> dict[str, str]:
        """Return the output of `scontrol show job` by key."""
        words = self.run(["scontrol", "-o", "show", "job", str(number)]).stdout.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait(self, number: int, timeout_s: float = 120) -> str:
        """Wait for the end of a job and return its state."""
        ended = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE"}
        if not wait_until(lambda: self.job(number)["JobState"] in ended, timeout_s, poll_s=0.25):
            raise ClusterError(f"job {number} is still {self.job(number)['JobState']} after {timeout_s} s")
        return self.job(number)["JobState"]

    def wait_for_state(self, number: int, state: str) -> None:
        """Wait until a job is in a state."""
        if not wait_until(lambda: self.job(number)["JobState"] == state, 30):
            raise ClusterError(f"job {number} is {self.job(number)['JobState']}, not {state}, after 30 s")

    def idle_nodes(self) -> list[str]:
        """Return the nodes that could accept a job now."""
        result = self.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N %t"], check=False)
        return [line.split()[0] for line in result.stdout.splitlines() if line.split()[1:] == ["idle"]]

    def expire(self, number: int) -> None:
        """Move the end of a running job's time limit to in 5 s, because Slurm rejects a past one. It checks limits every 30 s."""
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 5))
        self.run(["scontrol", "update", f"JobId={number}", f"EndTime={end}"])

    def kill_slurmd(self, node: str) -> None:
        """Kill the node's slurmd. Job steps continue, as on a real node."""
        self._require_node(node)
        processes = self._daemons(f"slurmd.{node}")
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
        if not processes or not wait_until(lambda: not any(process.alive() for process in processes), 5):
            raise ClusterError(f"{node}: no slurmd to kill")

    def _run_slurmd(self, node: str) -> None:
        """Start a slurmd that believes in the claimed processors, so that it binds ranks to them."""
        claimed = [
            f"LD_PRELOAD={self.state / 'libfakecpu.so'}",
            f"HWLOC_FSROOT={self.state / 'node'}",
            "HWLOC_THISSYSTEM=1",
        ]
        self.system(["env", *claimed, "slurmd", "-N", node], host=node)

    def start_slurmd(self, node: str) -> None:
        """Restart the node's slurmd and wait until the controller has contact with it."""
        self._require_node(node)
        self._run_slurmd(node)
        self.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=False)
        if not wait_until(lambda: self._answers(node), 30):
            raise ClusterError(f"{node} did not come back")

    def kill_node(self, node: str) -> None:
        """Kill a whole node: slurmd, job steps, network."""
        self._require_node(node)
        if self.mode != "hosts":
            raise ClusterError("a whole node can be killed in mode `hosts` only")
        os.kill(self.hosts[node].pid, signal.SIGKILL)
        wait_until(lambda: not self.hosts[node].alive(), 5, poll_s=0.02)

    def start_node(self, node: str) -> None:
        """Boot a node that was killed."""
        self._require_node(node)
        self._start_host(node)
        self._connect(node)
        self._save()
        self.start_slurmd(node)

    def log_tails(self) -> str:
        """Return the last lines of every daemon's log."""
        tails = []
        for path in sorted((self.state / "log").glob("*")):
            last = path.read_text(errors="replace").splitlines()[-15:]
            tails.append("\n".join([f"--- {path}", *last]))
        return "\n".join(tails)

    # ---- implementation

    @property
    def login_host(self) -> str:
        return "login" if self.mode == "hosts" else socket.gethostname().split(".")[0]

    def environment(self) -> dict[str, str]:
        """Return the variables that a login adds to the caller's environment."""
        return {MARK: self.mark, "SLURM_CONF": str(self.state / "etc" / "slurm.conf")}

    def on(self, host: str, command: Sequence[str | Path], options: dict[str, Any]) -> list[str]:
        """Return the command line that runs `command` on a host; complete the environment in `options`."""
        if not self.ports:
            raise ClusterError(f"the cluster is not up ({self.state})")
        base: Mapping[str, str] = options.get("env") or os.environ
        path = base.get("PATH", "")
        options["env"] = {**base, "PATH": f"{path}:{SYSTEM_PATH}" if path else SYSTEM_PATH, **self.environment()}
        words = [str(word) for word in command]
        if self.mode != "hosts":
            return words
        folder = os.path.abspath(options.get("cwd") or os.getcwd())
        return entering(self.hosts[host], host == "login", folder, words)

    def system(self, command: Sequence[str | Path], host: str = "login", timeout: float = 30) -> None:
        """Start a daemon or run another administrator's command with a clean environment."""
        options: dict[str, Any] = {"cwd": "/", "env": {"PATH": SYSTEM_PATH, "HOME": "/root", "LANG": "C.UTF-8"}}
        words = self.on(host, command, options)
        log = self.state / "log" / "start.log"
        # Daemons keep the pipes of their parents open; therefore output goes to a file.
        with open(log, "a") as sink:
            result = subprocess.run(words, stdout=sink, stderr=sink, timeout=timeout, **options)
        if result.returncode != 0:
            raise ClusterError(f"{command[0]} on {host}: exit status {result.returncode}\n{log.read_text()[-2000:]}")

    def _check_programs(self) -> None:
        names = ["munged", "slurmctld", "slurmd", "sbatch", "gcc"]
        names += ["ip", "nsenter", "unshare"] if self.mode != "loopback" else []
        names += ["slurmdbd", "mariadbd", "mariadb-install-db"] if self.accounting else []
        missing = [name for name in names if not shutil.which(name, path=SYSTEM_PATH)]
        if missing:
            packages = f"{PACKAGES} {ACCOUNTING_PACKAGES}" if self.accounting else PACKAGES
            install = f"apt-get install --no-install-recommends {packages}"
            raise ClusterError(f"not installed: {', '.join(missing)}. Debian: {install}")

    def _choose_ports(self) -> None:
        names = ["slurmctld", "slurmdbd", "mariadb", *self.nodes]
        ports = range(16817, 16817 + len(names)) if self.mode == "hosts" else free_ports(len(names))
        self.ports = dict(zip(names, ports, strict=True))

    def address(self, host: str) -> str:
        """Return the address of a node or of the login node."""
        if self.mode != "hosts":
            return "127.0.0.1"
        return f"10.77.0.{254 if host == 'login' else self.nodes.index(host) + 1}"

    def _start_munged(self) -> None:
        key = self.state / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "seed-file": "munge.seed"}
        options = [f"--{option}={self.state / file}" for option, file in files.items()]
        environment = {"PATH": SYSTEM_PATH, **self.environment()}
        # --force: munged rejects a log folder below /tmp.
        command = ["munged", "--force", *options, f"--log-file={self.state / 'log' / 'munged.log'}"]
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=20)

    def _start_hosts(self) -> None:
        for host in ("login", *self.nodes):
            self._start_host(host)
        bridge(self.hosts["login"])
        for node in self.nodes:
            self._connect(node)
        self._save()

    def _start_host(self, host: str) -> None:
        self.hosts[host] = start_host(host, self.state, self.environment())
        self._save()

    def _connect(self, node: str) -> None:
        connect(self.hosts["login"], self.hosts[node], self.nodes.index(node) + 1, self.address(node))

    def _daemons(self, name: str) -> list[Process]:
        """Return this instance's processes of a daemon, found by its name and mark."""
        program, _, node = name.partition(".")
        found = []
        for process in marked_processes(self.mark):
            try:
                words = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if os.path.basename(words[0]) == program and (not node or node in words):
                found.append(process)
        return found

    def _answers(self, node: str) -> bool:
        state = self.run(["sinfo", "-h", "-N", "-n", node, "-o", "%T"], check=False).stdout.strip()
        return state in ("idle", "allocated", "mixed", "completing")

    def _require_node(self, node: str) -> None:
        if node not in self.nodes:
            raise ClusterError(f"no node {node}; there are {', '.join(self.nodes)}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock, so that only one process starts or stops an instance at a time."""
        self.state.mkdir(parents=True, exist_ok=True)
        with open(self.state / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ClusterError(f"another process is starting or stopping {self.state}") from None
            yield

    def _save(self) -> None:
        keys = ("nodes", "sockets", "cores", "accounting", "mode", "ports")
        content: dict[str, Any] = {key: getattr(self, key) for key in keys}
        content["hosts"] = {host: dataclasses.asdict(process) for host, process in self.hosts.items()}
        temporary = self.state / "state.json.new"
        temporary.write_text(json.dumps(content, indent=1))
        temporary.rename(self.state / "state.json")

    def _load(self) -> None:
        """Adopt a running instance with this name."""
        try:
            content = json.loads((self.state / "state.json").read_text())
        except (OSError, ValueError):
            return
        self.hosts = {host: Process(**process) for host, process in content["hosts"].items()}
        if self.is_up():
            for key in ("nodes", "sockets", "cores", "accounting", "mode", "ports"):
                setattr(self, key, content[key])


def describe(error: BaseException) -> str:
    """Return the message of an error, with the output of a failed program."""
    return f"{error} {getattr(error, 'stderr', None) or ''}".strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="cli", help="name of the instance (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster")
    up.add_argument("--nodes", type=int, default=2)
    up.add_argument("--sockets", type=int, default=2)
    up.add_argument("--cores", type=int, default=12, help="cores of a socket")
    up.add_argument("--mode", choices=("auto", "hosts", "loopback"), default="auto")
    up.add_argument("--accounting", action="store_true", help="with slurmdbd and MariaDB, so that sacct works")
    commands.add_parser("down", help="stop it and remove its folder")
    commands.add_parser("status", help="is it up, and what does sinfo say")
    run = commands.add_parser("run", help="run a command on the login node")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    for action in ("kill-slurmd", "start-slurmd", "kill-node", "start-node"):
        commands.add_parser(action).add_argument("node")
    given = parser.parse_args(arguments)
    keys = ("nodes", "sockets", "cores", "mode", "accounting")
    shape = {key: getattr(given, key) for key in keys if hasattr(given, key)}
    try:
        cluster = Cluster(given.name, **shape)
        if given.command == "up":
            cluster.up()
            print(f"up, mode {cluster.mode}: {cluster.state}")
        elif given.command == "down":
            cluster.down()
        elif given.command == "status":
            if not cluster.is_up():
                print(f"down: {cluster.state}")
                return 1
            print(f"up, mode {cluster.mode}: {cluster.state}\n{cluster.run(['sinfo', '-N', '-l']).stdout}", end="")
        elif given.command == "run":
            return cluster.run(given.words or ["bash"], check=False, capture_output=False).returncode
        else:
            getattr(cluster, given.command.replace("-", "_"))(given.node)
    except ClusterError as error:
        print(f"cluster.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
