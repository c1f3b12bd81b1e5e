"""Build the C programs for every MPI library that is there and for the simulator."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT, SETUP
from collstudy.launch.toolchain import SIMULATED, SIMULATED_WITH_LIBRARY, mpi_environment, mpis, simulator_version

NATIVE = ROOT / "workflow" / "native"


def build() -> list[Path]:
    """Run make for each compiler; returns the folders. make knows what is up to date. Raises StudyError with make's output."""
    for mpi in mpis().values():
        _make(NATIVE, str(mpi.mpicc), mpi.build, environment=mpi.environment())
    folders = [mpi.build for mpi in mpis().values()]
    if simulator_version():
        simulated = SETUP / "build" / SIMULATED
        _make(NATIVE, "smpicc", simulated)
        # LD_PRELOAD does not reach simulated ranks: the same benchmark once more, with the collectives library linked in.
        bench = NATIVE / "bench"
        library = os.path.relpath(simulated / "coll" / "collstudy.o", bench)
        _make(bench, "smpicc", SETUP / "build" / SIMULATED_WITH_LIBRARY, f"LDLIBS={library} -Wl,-Bsymbolic")
        folders.append(simulated)
    return folders


def _make(
    folder: Path, compiler: str, target: Path, *variables: str, environment: dict[str, str] | None = None
) -> None:
    # make cannot have blanks in names: a checkout in a folder with one is named from inside.
    command = ["make", "-s", "-C", folder, f"MPICC={compiler}", f"OUT={os.path.relpath(target, folder)}", *variables]
    done = subprocess.run(command, capture_output=True, text=True, env=environment or mpi_environment(), check=False)
    if done.returncode != 0:
        raise StudyError(f"make with {compiler} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
