"""Say on which processors ranks start, read where they ran, and compare it with the requested placement.

Open MPI 4.1 and 5.0 report it (`mpirun --report-bindings`) by one line per rank with the number of the core on its node; with other
launchers the ranks of the untimed launch print it (workflow/native/probe/collprobe.c), with hwloc's numbers of cores, too:

    4.1: [thin001:01286] MCW rank 4 bound to socket 0[core 1[hwt 0]]: [./B/./.][./././.]
    5.0: [thin001:01312] Rank 4 bound to package[0][core:L1]
    both: ... is not bound (or bound to all available processors)
    ranks: rank 4 of 8 host thin001 cpus 2 socket 0 core 1
           rank 4 of 8 host thin001 cpus 0,1,2,3
"""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.launch.slurm_env import expand_ranges, short
from collstudy.launch.toolchain import Mpi
from collstudy.study.cells import Cell
from collstudy.study.placement import Core

LINE = re.compile(r"\[([\w.-]+):\d+\] (?:MCW rank|Rank) (\d+) (?:is (not bound)|bound to (.*))")
# 5.0.11 writes L before logical numbers; releases without the letter are supported, too.
PACKAGE = re.compile(r"package\[(\d+)\]\[core:L?([\d,-]+)\]")
OF_RANK = re.compile(r"^rank (\d+) of \d+ host (\S+) cpus ?(\S*?)(?: socket (\d+) core (\d+))?$", re.MULTILINE)
SOCKET_CORE = re.compile(r"socket (\d+)\[core (\d+)\[")


@dataclass(frozen=True)
class Binding:
    """Binding of a rank: its host and its cores as (socket, core number on the node); no cores if it is not bound."""

    rank: int
    host: str
    cores: tuple[tuple[int, int], ...]

    @property
    def socket(self) -> int | None:
        """Return the socket; None if the rank is not bound to exactly one."""
        sockets = {socket for socket, _ in self.cores}
        return sockets.pop() if len(sockets) == 1 else None

    @property
    def core(self) -> int | None:
        """Return the core number on the node; None if the rank is not bound to exactly one."""
        return self.cores[0][1] if len(self.cores) == 1 else None


def parse_bindings(text: str) -> list[Binding]:
    """Return the bindings in the output of a launch, ordered by rank. Other lines, and repeated lines of a rank, are ignored."""
    found: dict[int, Binding] = {}
    for host, rank, unbound, places in LINE.findall(text):
        cores = () if unbound else tuple(_cores(places))
        found.setdefault(int(rank), Binding(int(rank), host, cores))
    return [found[rank] for rank in sorted(found)]


def printed_by_ranks(text: str) -> list[tuple[Binding, str]]:
    """Return the bindings, and the processors, that the ranks of the untimed launch printed, ordered by rank."""
    found = [
        (Binding(int(rank), host, ((int(socket), int(core)),) if core else ()), processors)
        for rank, host, processors, socket, core in OF_RANK.findall(text)
    ]
    return sorted(found, key=lambda one: one[0].rank)


def _cores(places: str) -> Iterable[tuple[int, int]]:
    if "package[" in places:
        for socket, cores in PACKAGE.findall(places):
            yield from ((int(socket), core) for core in expand_ranges(cores))
    else:
        yield from ((int(socket), int(core)) for socket, core in SOCKET_CORE.findall(places))


def misplaced(bindings: Sequence[Binding], requested: Sequence[Core], hosts: Sequence[str]) -> list[str]:
    """Return a sentence for each rank that is not at its requested place; *hosts* has the names of the nodes."""
    by_rank = {binding.rank: binding for binding in bindings}
    problems = []
    for rank, place in enumerate(requested):
        wanted = f"{hosts[place.node]} core {place.core_of_node}"
        binding = by_rank.get(rank)
        if binding is None:
            problems.append(f"rank {rank}: requested {wanted}, not reported")
        elif not binding.cores:
            problems.append(f"rank {rank}: requested {wanted}, not bound on {binding.host}")
        elif (short(binding.host), binding.core) != (short(hosts[place.node]), place.core_of_node):
            cores = ",".join(str(core) for _, core in binding.cores)
            problems.append(f"rank {rank}: requested {wanted}, placed on {binding.host} core {cores}")
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
    """Return a processor of each core of a host, in hwloc's order of cores (workflow/native/probe/cores.h)."""
    there = [] if short(host) == short(platform.node()) else ["srun", "-N1", "-n1", "-w", host]
    command = [*there, mpi.build / "probe" / "collcores"]
    done = ask(command, 60)
    if done.returncode != 0:
        raise StudyError(
            f"{' '.join(map(str, command))}: exit status {done.returncode}; no list of the cores of {host}: {done.stderr.strip()}"
        )
    return [int(line) for line in done.stdout.split()]
