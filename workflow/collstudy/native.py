"""Build the C programs for every MPI library that is there and for the simulator."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .config import ROOT
from .errors import StudyError
from .toolchain import SETUP, SIMULATED, mpi_environment, mpis, simulator_version


def build() -> list[Path]:
    """Run make for each compiler; returns the folders. make knows what is up to date. Raises StudyError with make's output."""
    targets = {mpi.build: str(mpi.mpicc) for mpi in mpis().values()}
    if simulator_version():
        targets[SETUP / "build" / SIMULATED] = "smpicc"
    for folder, compiler in targets.items():
        command = ["make", "-s", "-C", ROOT / "workflow" / "native", f"MPICC={compiler}", f"OUT={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment(), check=False)
        if done.returncode != 0:
            raise StudyError(f"make with {compiler} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return list(targets)
