"""Applications: the command and output of a cell's program. One launch is one run; its time to solution is measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch.toolchain import Mpi, suite_of
from collstudy.study.cells import Cell
from collstudy.study.names import APPLICATIONS
from collstudy.study.selection import Rate

#: Fields of the program's output line (`key=value ...`, workflow/native/apps/svd/README.md) -> field of a sample, unit factor.
FIELDS = {
    "seconds": ("latency_us", 1e6),
    "comm_mean_seconds": ("comm_us", 1e6),
    "sweeps": ("sweeps", 1),
    "flops": ("flops", 1),
    "residual": ("residual", 1),
}


def command(cell: Cell, build: Path) -> list[str | Path]:
    """Return the program of *cell* with its arguments; *build* is the folder of programs built with the cell's MPI library."""
    n = str(dict(cell.parameters)["n"])
    words = [build / "apps" / cell.collective, "--random", n, n]
    if isinstance(cell.selection, Rate):
        words += ["--flops-rate", str(cell.selection.core_gflops)]
    return words


def benchmark(cell: Cell, mpi: Mpi) -> list[str | Path]:
    """Return the program that measures *cell* with an MPI library: a benchmark without its arguments, or an application with them."""
    found = suite_of(cell)
    if found is None:
        return command(cell, mpi.build)
    decimals = ["-d", "3"] if found.embedded else []
    return [found.program("all" if cell.shares_start else cell.collective), *decimals]


def parse(printed: str) -> list[dict[str, Any]]:
    """Return the only sample of a run: times in us; flops and sweeps of the whole run. Raises StudyError if a field is missing."""
    line = next((line for line in printed.splitlines() if line.startswith("P=")), "")
    fields = dict(re.findall(r"(\w+)=(\S+)", line))
    sample = {}
    for key, (name, factor) in FIELDS.items():
        try:
            value = float(fields[key])
        except (KeyError, ValueError):
            raise StudyError(f"no line with {key}=<number>, but {line!r}") from None
        sample[name] = value * factor
    return [sample]


def complaint(printed: str) -> str:
    """Return the error message of an application or a replay in parentheses with a leading blank; "" if there is none."""
    names = tuple(f"{name}: " for name in (*APPLICATIONS, "replay"))
    said = [line for line in printed.splitlines() if line.startswith(names)]
    return f" ({said[-1]})" if said else ""
