"""Run a cell with MPICH or Intel MPI: both start programs by Hydra's mpirun and read algorithms from the environment.

Neither library tells which algorithm ran, so their cells carry no proof. MPICH refuses names that it does not know and is told
to fail where it would fall back silently; Intel MPI names its choices by number only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cells import Cell
from .config import Machine
from .errors import StudyError
from .placement import Core
from .store import write_atomically
from .toolchain import Mpi, mpis, suite


def library(name: str) -> Mpi:
    """The installed library. Raises StudyError where there is none."""
    if name not in mpis():
        raise StudyError(f"no {name}: ./study run STUDY installs it in .study/{name} for a study that names it")
    return mpis()[name]


def selection_environment(cell: Cell) -> dict[str, str]:
    """The variables that select the cell's algorithm, or that of the non-blocking collective inside of it."""
    name = cell.mpi["name"]
    inside = cell.selection.get("inside")
    chosen: dict[str, Any] | None = inside or cell.selection.get(name)
    if not chosen:
        return {}
    operation = (inside["collective"] if inside else cell.collective).upper()
    if name == "impi":
        return {f"I_MPI_ADJUST_{operation}": str(chosen["algorithm"])}
    return {
        f"MPIR_CVAR_{operation}_INTRA_ALGORITHM": str(chosen["algorithm"]),
        "MPIR_CVAR_COLLECTIVE_FALLBACK": "error",
    }


def prepare(machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]) -> list[str | Path]:
    """Write the host file to *folder* and return the command of one launch, without the benchmark's own arguments.

    Every rank is bound to its core. Both libraries take one list of cores for all nodes, in the order of the ranks there.
    """
    mpi = library(cell.mpi["name"])
    file = folder / f"hosts-{cell.digest[:16]}.txt"
    write_atomically(file, "".join(f"{hosts[core.node]}:1\n" for core in placement).encode())
    command: list[str | Path] = [mpi.mpirun, "-n", str(cell.processes)]
    if machine.kind == "slurm":
        command += ["-machinefile", file]
    if not machine.oversubscribe:
        cores = cores_of_nodes(cell, placement)
        if mpi.name == "impi":
            command += ["-genv", "I_MPI_PIN_PROCESSOR_LIST", cores]
        else:
            command += ["-bind-to", f"user:{cores}"]
    elif mpi.name == "impi":
        command += ["-genv", "I_MPI_PIN", "0"]
    found = suite(mpi.name)
    return [*command, found.program(cell.collective), *(["-d", "3"] if found.embedded else [])]


def cores_of_nodes(cell: Cell, placement: list[Core]) -> str:
    """Cores of a node in the order of its ranks, the same for all nodes. Raises StudyError where they differ."""
    cores: dict[int, list[int]] = {}
    for core in placement:
        cores.setdefault(core.node, []).append(core.core_of_node)
    longest = max(cores.values(), key=len)
    if any(own != longest[: len(own)] for own in cores.values()):
        raise StudyError(
            f"{cell.mpi['name']} cannot give mapping {cell.mapping} its cores: their order differs from node to node; use openmpi"
        )
    return ",".join(map(str, longest))
