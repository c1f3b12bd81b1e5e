"""Software in use, with versions: `./study info`, and versions.json of a data package."""

from __future__ import annotations

import shutil

from collstudy.base.errors import StudyError
from collstudy.launch.toolchain import SIMULATED, mpis, simulator_version, suite, version_of
from collstudy.publish.renderers import choose_renderer


def renderer() -> tuple[str, str, str]:
    """Return name, version (of pandoc, if Quarto is not used) and path of the renderer."""
    try:
        found = choose_renderer("auto")
    except StudyError:
        return "none", "", ""
    return found.name, found.version or found.pandoc, found.executable


def info() -> dict[str, str]:
    """Return the output of `./study info`: all software in use, with versions; "" if missing."""
    mpi = mpis().get("openmpi")
    real, simulated, simgrid = suite("openmpi"), suite(SIMULATED), simulator_version()
    name, version, path = renderer()
    r = shutil.which("Rscript")
    snakemake = shutil.which("snakemake")
    r_version = version_of([r, "--version"], r"version (\S+)") if r else ""
    values = {
        "mpicc": mpi.mpicc if mpi else "",
        "mpirun": mpi.mpirun if mpi and mpi.has_mpirun else "",
        "mpicc_version": f"Open MPI {mpi.version}" if mpi else "",
        "mpirun_version": f"Open MPI {mpi.version}" if mpi and mpi.has_mpirun else "",
        "smpicc": shutil.which("smpicc") or "",
        "smpirun": shutil.which("smpirun") or "",
        "smpicc_version": f"SimGrid {simgrid}" if simgrid else "",
        "smpirun_version": f"SimGrid {simgrid}" if simgrid else "",
        "suite": real.name if real else (simulated.name if simulated else ""),
        "suite_version": real.version if real else "",
        "suite_dir": real.folder if real else "",
        "suite_simulated": simulated.name if simulated and simgrid else "",
        "suite_simulated_version": simulated.version if simulated and simgrid else "",
        "suite_dir_simulated": simulated.folder if simulated and simgrid else "",
        "renderer": name,
        "renderer_version": version,
        "renderer_path": path,
        "r": r or "",
        "r_version": r_version or "",
        "snakemake": snakemake or "",
        "snakemake_version": (version_of([snakemake, "--version"], r"(\S+)") or "") if snakemake else "",
    }
    values |= {f"mpi_{key}": f"{found.bin} {found.version}" for key, found in mpis().items()}
    return {key: str(value) for key, value in values.items()}
