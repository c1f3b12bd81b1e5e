"""Start ranks with Slurm's srun instead of the MPI library's mpirun (`slurm: {launcher: srun}` of a machine)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collstudy.base.files import write_atomically
from collstudy.launch.bindings import processors_of_nodes
from collstudy.launch.toolchain import installed
from collstudy.study.cells import Cell
from collstudy.study.machines import Machine
from collstudy.study.placement import Core

#: How the ranks of each MPI library and srun find each other (srun --mpi), unless the machine's file says it (`srun_mpi`).
INTERFACES = {"openmpi": "pmix", "mpich": "pmi2", "impi": "pmi2"}


def starts(machine: Machine) -> bool:
    """Return whether srun starts the ranks of a machine."""
    return machine.kind == "slurm" and machine.slurm.get("launcher") == "srun"


def words(machine: Machine, mpi: str, ranks: int) -> list[str]:
    """Return the beginning of the command that starts ranks of an MPI library."""
    return ["srun", f"--mpi={machine.slurm.get('srun_mpi', INTERFACES[mpi])}", "-n", str(ranks)]


def command(
    machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str], variables: Mapping[str, str]
) -> list[str | Path]:
    """Return the command that precedes the program: a host file with one line per rank, one list of processors for all nodes, and
    *variables*.
    """
    file = folder / f"hosts-{cell.digest[:16]}.txt"
    write_atomically(file, "".join(f"{hosts[core.node]}\n" for core in placement).encode())
    found: list[str | Path] = [
        "env",
        f"SLURM_HOSTFILE={file}",
        *(f"{name}={value}" for name, value in variables.items()),
    ]
    found += [*words(machine, cell.mpi["name"], cell.processes), "-m", "arbitrary"]
    if machine.oversubscribe:
        return [*found, "--overcommit", "--cpu-bind=none"]
    processors = processors_of_nodes(cell, installed(cell.mpi["name"]), placement, hosts, "srun", "launcher: mpirun")
    return [*found, "--cpu-bind=map_cpu:" + processors]
