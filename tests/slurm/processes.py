"""Find and end the processes of a test cluster: they have a mark in their environment and are never confused with later ones."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# Every process of an instance has this variable, by which leftovers are recognised.
MARK = "COLLSTUDY_TEST_CLUSTER"


@dataclasses.dataclass(frozen=True)
class Process:
    """A process, identified by its number and start time, so that a later process with the same number is not confused with it."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, start_time(pid))

    def alive(self) -> bool:
        return self.started != 0 and start_time(self.pid) == self.started


def start_time(pid: int) -> int:
    """Return the clock tick at which the process started; 0 if there is no such process, or only a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def stop(processes: Sequence[Process], patience_s: float = 3.0) -> None:
    """End the processes: first with SIGTERM, and after `patience_s` with SIGKILL."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        remaining = [process for process in processes if process.alive()]
        for process in remaining:
            with suppress(ProcessLookupError):
                os.kill(process.pid, sig)
        wait_until(lambda: not any(process.alive() for process in processes), patience_s, poll_s=0.05)


def wait_until(condition: Any, timeout_s: float, poll_s: float = 0.1) -> bool:
    """Wait until `condition` is true; return False if it is not true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


def marked_processes(mark: str) -> list[Process]:
    """Return all processes with the mark in their environment, except this one and its ancestors."""
    own, pid = set(), os.getpid()
    while pid > 1:
        own.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own:
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(Process.of(int(entry.name)))
        except OSError:
            continue
    return [process for process in found if process.started]
