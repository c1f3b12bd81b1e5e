"""Ranks and nodes in the command of a program."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from collstudy.study.command import nodes_in, ranks_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a program."""
    program = tmp_path / "solver"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "ranks", "nodes"),
    [
        ("mpirun -n 8 ./solver", 8, None),
        ("env A=1 mpirun -np 8 --map-by core ./solver -N 2", 8, None),
        ("mpirun -N 2 -n 8 ./solver", 8, 4),
        ("mpirun -n 9 --map-by ppr:2:node:pe=2 ./solver", 9, 5),
        ("mpirun -n 9 --map-by ppr:2:socket ./solver", 9, None),
        ("mpirun -n 8 --npernode 3 ./solver", 8, 3),
        ("mpiexec.hydra -n 8 -ppn 8 ./solver", 8, 1),
        ("srun -N 2 --ntasks=8 ./solver", 8, 2),
        ("srun --nodes=3 -n 8 ./solver", 8, 3),
        ("srun --ntasks-per-node=4 -n 8 ./solver", 8, 2),
        ("srun -N2 -n8 ./solver -N 3", 8, 2),
        # Programs on PATH may have the name of a partition or an account.
        ("srun -p test -A env -N 2 -n 8 ./solver", 8, 2),
        ("srun -n 8 env A=1 ./solver -N 3", 8, None),
        ("./solver -n 8", None, None),
    ],
)
def test_ranks_and_nodes(folder: Path, command: str, ranks: int | None, nodes: int | None) -> None:
    words = shlex.split(command)
    assert ranks_in(words) == ranks
    assert nodes_in(words, ranks or 1, folder) == nodes
