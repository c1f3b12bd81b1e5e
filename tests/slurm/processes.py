"""Processes of a test cluster: found by a mark in their environment, never mistaken for later ones, and ended."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# Every process of an instance carries this variable; it is how leftovers are recognised as ours.
MARK = "COLLSTUDY_TEST_CLUSTER"


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, start_time(pid))

    def alive(self) -> bool:
        return self.started != 0 and start_time(self.pid) == self.started


def start_time(pid: int) -> int:
    """The clock tick at which the process started; 0 when there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def stop(processes: Sequence[Process], patience_s: float = 3.0) -> None:
    """Ends the processes: asks first, insists after `patience_s`."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        remaining = [process for process in processes if process.alive()]
        for process in remaining:
            with suppress(ProcessLookupError):
                os.kill(process.pid, sig)
        wait_until(lambda: not any(process.alive() for process in processes), patience_s, poll_s=0.05)


def wait_until(condition: Any, timeout_s: float, poll_s: float = 0.1) -> bool:
    """Whether `condition` became true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


def marked_processes(mark: str) -> list[Process]:
    """All processes that carry the mark in their environment, but neither this one nor its ancestors."""
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
