"""What starts cells: Open MPI's mpirun (openmpi.py), Hydra's for MPICH and Intel MPI (hydra.py), SimGrid's smpirun (simulator.py).

Each of these modules is a `Launcher`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from collstudy.launch import hydra, openmpi, simulator
from collstudy.study.cells import Cell
from collstudy.study.config import Machine
from collstudy.study.placement import Core


class Launcher(Protocol):
    """How one kind of library starts a cell's ranks, and how it is proved that they did what was asked."""

    def prepare(
        self, machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
    ) -> list[str | Path]:
        """Write what a launch reads to *folder* and return its command, without the benchmark's own arguments."""

    def environment(
        self, machine: Machine, cell: Cell, chosen: dict[str, str], base: dict[str, str], folder: Path
    ) -> dict[str, str]:
        """The environment of a launch: *base*, and the variables *chosen* of the collectives library, if it takes part."""

    def proof_command(
        self, machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
    ) -> list[str | Path]:
        """The command of the untimed launch that shows what the library did, and where the ranks are."""

    def watched(self, cell: Cell) -> bool:
        """Whether the messages of a cell's proof are watched."""

    def judge(
        self, cell: Cell, output: str, folder: Path, placement: Sequence[Core], hosts: Sequence[str], bound: bool
    ) -> dict[str, Any]:
        """Read what the proof's launch left behind: {component, used, placed, detail, pattern, binding}."""


def launcher_of(cell: Cell) -> Launcher:
    """What starts a cell."""
    if cell.deterministic:
        return cast(Launcher, simulator)
    return cast(Launcher, hydra if cell.mpi["name"] in hydra.LIBRARIES else openmpi)
