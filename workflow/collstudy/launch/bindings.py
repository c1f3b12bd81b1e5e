"""Determine on which processors ranks start, read where they ran, and compare it with the requested placement.

Each rank of the untimed launch prints where it runs (workflow/native/place/place.h), with the number of its core in hwloc's order:

    rank 4 of 8 host thin001 cpus 2 socket 0 core 1
    rank 5 of 8 host thin001 cpus 0,1,2,3

Open MPI's own report (`--report-bindings`) is not used: on nodes without hardware threads, Open MPI 5.0 prints the operating
system's numbers of processors as those of cores.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.launch.slurm_env import short
from collstudy.launch.toolchain import Mpi
from collstudy.study.cells import Cell
from collstudy.study.placement import Core

LINE = re.compile(r"^rank (\d+) of \d+ host (\S+) cpus ?(\S*?)(?: socket (\d+) core (\d+))?$", re.MULTILINE)


@dataclass(frozen=True)
class Binding:
    """Where a rank runs: host, list of processors, and socket and core on the node; None for these if it is not bound to one core."""

    rank: int
    host: str
    cpus: str
    socket: int | None = None
    core: int | None = None


def read_bindings(text: str) -> list[Binding]:
    """Return the bindings in the output of a launch, ordered by rank."""
    found = [
        Binding(int(rank), host, cpus, *(map(int, (socket, core)) if core else ()))
        for rank, host, cpus, socket, core in LINE.findall(text)
    ]
    return sorted(found, key=lambda binding: binding.rank)


def misplaced(bindings: Sequence[Binding], requested: Sequence[Core], hosts: Sequence[str]) -> list[str]:
    """Return a sentence for each rank that is not at its requested place; *hosts* has the names of the nodes."""
    by_rank = {binding.rank: binding for binding in bindings}
    problems = []
    for rank, place in enumerate(requested):
        wanted = f"{hosts[place.node]} core {place.core_of_node}"
        binding = by_rank.get(rank)
        if binding is None:
            problems.append(f"rank {rank}: requested {wanted}, not reported")
        elif binding.core is None:
            problems.append(f"rank {rank}: requested {wanted}, not bound to one core on {binding.host}")
        elif (short(binding.host), binding.core) != (short(hosts[place.node]), place.core_of_node):
            problems.append(f"rank {rank}: requested {wanted}, placed on {binding.host} core {binding.core}")
    return problems


def processors_of_nodes(
    cell: Cell, mpi: Mpi, placement: Sequence[Core], hosts: Sequence[str], launcher: str, instead: str
) -> str:
    """Return the processors (the operating system's numbers) of a node in the order of its ranks, as `0,4,1`.

    They must be the same for all nodes, whose cores are taken to be numbered like those of the first; verification shows whether
    they are. Raises StudyError if the nodes differ; the message says what to use *instead* of *launcher*.
    """
    cores: dict[int, list[int]] = {}
    for core in placement:
        cores.setdefault(core.node, []).append(core.core_of_node)
    longest = max(cores.values(), key=len)
    if any(own != longest[: len(own)] for own in cores.values()):
        raise StudyError(
            f"{launcher} cannot realise mapping {cell.mapping}: the order of cores differs between nodes; use {instead}"
        )
    first = hosts[placement[0].node]
    processors = processors_of_cores(mpi, first)
    if max(longest) >= len(processors):
        raise StudyError(
            f"mapping {cell.mapping} uses core {max(longest)} of a node, but {first} has cores 0 to {len(processors) - 1} for this job"
        )
    return ",".join(str(processors[core]) for core in longest)


@functools.cache
def processors_of_cores(mpi: Mpi, host: str) -> list[int]:
    """Return a processor of each core of a host, in hwloc's order of cores (workflow/native/place/cores.h)."""
    # A site may bind tasks of srun to a core each.
    there = [] if short(host) == short(platform.node()) else ["srun", "-N1", "-n1", "-w", host, "--cpu-bind=none"]
    command = [*there, mpi.build / "place" / "collcores"]
    # This may be a step of srun itself, for whose end another one would wait.
    done = ask(command, 60, os.environ | {"SLURM_OVERLAP": "1"})
    if done.returncode != 0:
        raise StudyError(
            f"{' '.join(map(str, command))}: exit status {done.returncode}; no list of the cores of {host}: {done.stderr.strip()}"
        )
    return [int(line) for line in done.stdout.split()]
