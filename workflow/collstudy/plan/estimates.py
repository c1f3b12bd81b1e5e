"""Rough estimates of wall time, for time limits and progress; never part of an identity."""

from __future__ import annotations

import math

from collstudy.study.cells import Cell
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS
from collstudy.study.traces import Replay, Run, Trace
from collstudy.study.work import Work

#: Factor by which time limits exceed the estimate.
MARGIN = 1.5
#: Collectives in which every rank sends to every other one, and the number of ranks from which these messages slow each other down.
ALL_TO_ALL = ("alltoall", "alltoallv")
SHARING_RANKS = 16
#: Assumed duration (s) of programs on this computer, where nothing depends on it.
HERE_S = 60.0
#: Assumed duration (s) of a replay on up to so many ranks, beyond which it grows with the square of their number. The programs in
#: config/studies took 1 to 20 s on 48 ranks (Quantum ESPRESSO 100 s), 10 s to 9 min on 256, with linear alltoalls up to 50 min.
REPLAY_S, REPLAY_RANKS = 20.0, 64


def limit_s(work: Work, machine: Machine) -> float:
    """Return the time limit (s) of one launch."""
    own = work.application.limit_s if isinstance(work, Trace | Run) else None
    return own or machine.launch_time_limit_s


def estimate_launch_s(work: Work) -> float:
    """Return the rough wall time (s) of one launch."""
    if isinstance(work, Trace | Run):
        # The duration of an application is unknown: assume its time limit, for which a job must allow.
        limit = limit_s(work, work.machine)
        return (limit if work.machine.kind == "slurm" else min(limit, HERE_S)) / MARGIN
    if isinstance(work, Replay):
        return REPLAY_S * max(1.0, work.processes / REPLAY_RANKS) ** 2
    assert isinstance(work, Cell)
    return _launch_of_cell_s(work)


def _launch_of_cell_s(cell: Cell) -> float:
    """Return the start-up time, plus the iterations with an estimated time per message of each size (s)."""
    if cell.collective in APPLICATIONS:
        return _run_of_application_s(cell)
    p = cell.processes
    bytes_swept = sum(size or 8 for size in cell.size_list)
    calls = (cell.iterations + cell.warmup) * len(cell.row_sizes)
    if cell.collective == "pairs":
        return 1.5 + 0.05 * p + 2e-5 * calls
    if cell.deterministic:
        messages = p * math.log2(p + 1)
        if cell.collective in ALL_TO_ALL:
            # The more messages share links, the longer each takes: 10 s for a call of 256 ranks, 0.05 s for one of 48.
            messages = p * p * max(1, p / SHARING_RANKS)
        return 0.1 + 6e-6 * calls * messages
    # Cells that share a start have a fraction of the start-up time; their number is only known at launch.
    start = 0.2 if cell.shares_start else 1.5
    return (
        start + 0.05 * p + calls * 20e-6 * math.log2(p + 1) + (cell.iterations + cell.warmup) * bytes_swept * p / 10e9
    )


def _run_of_application_s(cell: Cell) -> float:
    """Return the rough wall time (s) of one run: some 80 flops per entry and column (12 sweeps), at 5 GFlop/s per core."""
    run = 80 * dict(cell.parameters)["n"] ** 3 / 5e9
    # A simulation does the arithmetic of all processes on one core.
    return 0.5 + (run if cell.deterministic else run / cell.processes)
