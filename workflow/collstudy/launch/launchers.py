"""Launchers: Open MPI's mpirun (openmpi.py), Hydra for MPICH and Intel MPI (hydra.py), SimGrid's smpirun (simulator.py).

Each of these modules implements `Launcher`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from collstudy.launch import hydra, openmpi, simulator
from collstudy.study.cells import Cell
from collstudy.study.machines import Machine
from collstudy.study.placement import Core


class Launcher(Protocol):
    """How an MPI library starts a cell's ranks, and how algorithm and placement are verified."""

    def prepare(
        self, machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
    ) -> list[str | Path]:
        """Write the input files of a launch to *folder* and return its command, without the benchmark's own arguments."""

    def environment(
        self, machine: Machine, cell: Cell, chosen: dict[str, str], base: dict[str, str], folder: Path
    ) -> dict[str, str]:
        """Return the environment of a launch: *base*, and the variables *chosen* of the collectives library if it is used."""

    def proof_command(
        self, machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
    ) -> list[str | Path]:
        """Return the command of the untimed launch that reports the library's behaviour and the placement."""

    def watched(self, cell: Cell) -> bool:
        """Return whether the verification of a cell counts messages."""

    def judge(
        self, cell: Cell, output: str, folder: Path, placement: Sequence[Core], hosts: Sequence[str], bound: bool
    ) -> dict[str, Any]:
        """Read the files of the verification launch; return {component, used, placed, detail, pattern, binding}.

        `used`: whether the forced algorithm ran (None if nothing is forced, or the library does not show it); `placed`: whether
        every rank is on the requested core (None if ranks are not *bound*, because there are more ranks than cores); `detail`: the
        reasons if not.
        """


def launcher_of(cell: Cell) -> Launcher:
    """Return the launcher of a cell."""
    if cell.deterministic:
        return cast(Launcher, simulator)
    return cast(Launcher, hydra if cell.mpi["name"] in hydra.LIBRARIES else openmpi)
