"""Run a user's program once and measure its time: unchanged, with the trace library, or with a tuning file."""

from __future__ import annotations

import shlex
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from collstudy.launch.execute import Allocation, Ended, execute
from collstudy.launch.ran import launcher_of, ranks_in, rows_of, users_own, with_variables
from collstudy.launch.toolchain import installed
from collstudy.launch.tracefile import RankFile, is_collective
from collstudy.study.traces import Run


@dataclass(frozen=True)
class Timed:
    """One run: its sample, the command and its environment, wall time (s), and which algorithms ran, if recorded."""

    sample: dict[str, Any]
    command: list[str | Path]
    environment: dict[str, str]
    seconds: float
    ended: Ended
    ran: list[dict[str, Any]]


def run_once(run: Run, place: Allocation, shared: Path, log: TextIO) -> Timed:
    """Run the program in its folder. The ranks of a traced run write to *shared*, which all nodes see.

    The sample has `latency_us`, the time of the whole command, and, if traced, `comm_us`, the time in collectives (mean over
    ranks). Raises LaunchFailed if the program fails or exceeds its time limit, StudyError if it cannot be traced.
    """
    application = run.application
    words, folder = shlex.split(application.command), Path(application.folder)
    launcher = launcher_of(words, folder)
    with tempfile.TemporaryDirectory(prefix=".run-", dir=shared.resolve()) as name:
        traces = Path(name) if run.traced else None
        command, variables = with_variables(
            words, launcher, installed(launcher.mpi), run.machine.environment | run.environment, traces, ran=run.ran
        )
        environment = users_own({**place.users, **variables})
        clock = time.monotonic()
        ended = execute(command, application.limit_s or run.machine.launch_time_limit_s, log, environment, folder)
        seconds = time.monotonic() - clock
        sample: dict[str, Any] = {"latency_us": round(1e6 * seconds, 3)}
        ran: list[dict[str, Any]] = []
        if traces:
            files = ranks_in(traces, "")
            sample["comm_us"] = round(sum(map(in_collectives_ns, files)) / len(files) / 1000, 3)
            ran = rows_of(files, launcher.mpi) if run.ran else []
    return Timed(sample, command, environment, seconds, ended, ran)


def in_collectives_ns(file: RankFile) -> int:
    """Return the time (ns) that one rank spends in collective calls."""
    return sum(call.end - call.start for call in file.calls() if is_collective(call.operation))
