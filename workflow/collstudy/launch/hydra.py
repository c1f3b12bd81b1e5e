"""Run a cell with MPICH or Intel MPI: both use Hydra's mpirun (or srun) and select algorithms by environment variables.

Neither library reports which algorithm ran. An untimed launch verifies it: there MPICH is configured to fail instead of falling
back silently, and its messages are counted (workflow/native/probe/messages.c); of Intel MPI, which only numbers its choices, the
functions are observed (workflow/native/trace/symbols.c). The placement of ranks is verified for both.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically
from collstudy.base.paths import SETUP
from collstudy.launch import mpich, srun
from collstudy.launch.bindings import processors_of_nodes
from collstudy.launch.programs import benchmark
from collstudy.launch.proof import judgement, messages, other_messages, placed_as_asked, probe
from collstudy.launch.ran import functions
from collstudy.launch.rulesfile import exported, rules_file
from collstudy.launch.toolchain import Mpi, exporting, installed, preloaded, recording, with_library
from collstudy.launch.tracefile import rank_files
from collstudy.study.cells import Cell
from collstudy.study.machines import Machine
from collstudy.study.placement import Core
from collstudy.study.selection import Rules

#: Libraries whose ranks Hydra starts.
LIBRARIES = ("mpich", "impi")


def environment(
    machine: Machine, cell: Cell, chosen: dict[str, str], base: dict[str, str], folder: Path
) -> dict[str, str]:
    """Return the environment of a launch, including the variables that select the algorithm."""
    mpi = installed(cell.mpi["name"])
    return mpi.environment(with_library(machine, mpi, chosen, base)) | selection_environment(cell)


def selection_environment(cell: Cell) -> dict[str, str]:
    """Return the variables that select the cell's algorithm, or that of the non-blocking collective inside it."""
    name = cell.mpi["name"]
    selection = cell.selection
    if isinstance(selection, Rules):
        return mpich.environment_of_both(rules_file(selection.text)) if name == "mpich" else exported(selection.text)
    forced = selection.forced(name, cell.collective)
    if not forced:
        return {}
    operation, chosen = forced
    if name == "impi":
        return {f"I_MPI_ADJUST_{operation.upper()}": str(chosen["algorithm"])}
    return mpich.forcing_environment(operation, chosen)


def launcher(machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]) -> list[str | Path]:
    """Write the host file to *folder* and return the launcher command that precedes the program.

    Each rank is bound to its core. Both libraries accept one list of processors for all nodes, in the order of the ranks on a node.
    """
    mpi = installed(cell.mpi["name"])
    if srun.starts(machine):
        unpinned = {"I_MPI_PIN": "0"} if machine.oversubscribe and mpi.name == "impi" else {}
        return srun.command(machine, cell, placement, folder, hosts, unpinned)
    file = folder / f"hosts-{cell.digest[:16]}.txt"
    write_atomically(file, host_file([hosts[core.node] for core in placement]).encode())
    command: list[str | Path] = [mpi.mpirun, "-n", str(cell.processes)]
    if machine.kind == "slurm":
        # The scratch folder of the launch exists on one node only; MPICH's proxies fail if their working folder is missing.
        command += ["-machinefile", file, "-wdir", SETUP]
    if not machine.oversubscribe:
        processors = processors_of_nodes(cell, mpi, placement, hosts, mpi.name, "openmpi")
        if mpi.name == "impi":
            command += ["-genv", "I_MPI_PIN_PROCESSOR_LIST", processors]
        else:
            command += ["-bind-to", f"user:{processors}"]
    elif mpi.name == "impi":
        command += ["-genv", "I_MPI_PIN", "0"]
    return command


def prepare(machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]) -> list[str | Path]:
    """Return the command of one launch, without the benchmark's own arguments."""
    return [*launcher(machine, cell, placement, folder, hosts), *benchmark(cell, installed(cell.mpi["name"]))]


def proof_command(
    machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
) -> list[str | Path]:
    """Return the command of the untimed launch that reports the placement and, with MPICH, the messages, with Intel MPI functions."""
    mpi = installed(cell.mpi["name"])
    command = launcher(machine, cell, placement, folder, hosts)
    settings: dict[str, str] = {}
    if cell.selection.forced("mpich", cell.collective) and cell.mpi["name"] == "mpich":
        # Not in timed launches, where the collectives of MPI_Init need the fallback.
        settings["MPIR_CVAR_COLLECTIVE_FALLBACK"] = "error"
    if watched(cell):
        settings |= watching(mpi, folder)
    if expected_function(cell):
        settings |= tracing(mpi, folder)
    given = (
        ["env", *(f"{k}={v}" for k, v in settings.items())] if srun.starts(machine) else exporting(mpi.name, settings)
    )
    return [*command, *given, *probe(cell, mpi.build)]


def watched(cell: Cell) -> bool:
    """Return whether verification counts messages: only if MPICH is forced to an algorithm with a known message pattern."""
    return cell.selection.settings("mpich") is not None and cell.pattern is not None


def expected_function(cell: Cell) -> str | None:
    """Return the function that Intel MPI must run if it is forced to an algorithm; None if nothing is forced or it is not known."""
    return (cell.selection.settings("impi") or {}).get("function")


def watching(mpi: Mpi, folder: Path) -> dict[str, str]:
    """Return the variables with which each rank records the messages it receives in *folder*."""
    # Ranks on one node must communicate through UCX, too, because only its messages can be intercepted.
    settings = {"COLLPROBE_MESSAGES": str(folder / "messages"), "MPIR_CVAR_NOLOCAL": "1"}
    return settings | preloaded(mpi.build / "probe" / "libmessages.so", mpi.environment())


def tracing(mpi: Mpi, folder: Path) -> dict[str, str]:
    """Return the variables with which each rank records what it runs in *folder*."""
    return recording(mpi, folder, mpi.environment())


def functions_ran(collective: str, processes: int, folder: Path) -> list[list[str]]:
    """Return the functions of each call of a collective on each rank, which the trace library recorded in *folder*."""
    calls = [call for file in rank_files(folder, processes) for call in file.calls() if call.operation == collective]
    return [functions(call.ran.algorithms, collective) if call.ran else [] for call in calls]


def judge(
    cell: Cell, output: str, folder: Path, placement: Sequence[Core], hosts: Sequence[str], bound: bool
) -> dict[str, Any]:
    """Read the files of the verification launch and return the verdict, as described for `Launcher`."""
    placed, problems, binding = placed_as_asked(cell, output, placement, hosts, bound)
    used = None
    if watched(cell) and cell.processes > 1:
        if messages(folder):
            wrong = other_messages(cell, cell.selection.settings("mpich"), folder)
            used = not wrong
            problems += wrong
        else:
            problems.append(
                "no message was counted: this MPICH does not send through UCX, so its algorithm cannot be verified"
            )
    if (function := expected_function(cell)) and cell.processes > 1:
        seen = functions_ran(cell.collective, cell.processes, folder)
        others = next((call for call in seen if function not in call), None)
        if any(seen):
            used = others is None
            problems += [] if used else [f"{function} did not run, but {' + '.join(others or []) or 'nothing'}"]
        else:
            problems.append("no function was seen: this Intel MPI has no symbols, so its algorithm cannot be verified")
    return judgement(cell, None, used, placed, problems, binding)


def host_file(host_of_rank: list[str]) -> str:
    """Return the lines `host:ranks` of a host file, to which Hydra assigns ranks cyclically.

    Hydra would start a host that is listed twice twice, and Slurm's srun has no second node of that name. Therefore a
    round-robin order is reduced to its first round.
    """
    blocks = [(host, len(list(ranks))) for host, ranks in itertools.groupby(host_of_rank)]
    for size in range(1, len(blocks)):
        dealt = [
            host for host, ranks in itertools.islice(itertools.cycle(blocks[:size]), len(blocks)) for _ in range(ranks)
        ]
        if dealt[: len(host_of_rank)] == host_of_rank:
            blocks = blocks[:size]
            break
    return "".join(f"{host}:{ranks}\n" for host, ranks in blocks)
