"""Run a cell with Open MPI: build the command of a launch, and verify the algorithm.

Algorithm numbers come from the installed library's own list. Components other than coll/tuned (han, sm, adapt, ucc, hcoll)
may be selected for a communicator and then ignore the forced algorithm; therefore forcing restricts the components as well.
A component itself is selected by giving it the highest priority; the communicator's table shows which one ran (ran.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError, allowed
from collstudy.base.files import write_atomically
from collstudy.base.paths import ROOT
from collstudy.launch import mca, srun
from collstudy.launch.programs import benchmark
from collstudy.launch.proof import judgement, other_messages, placed_as_asked, probe
from collstudy.launch.ran import is_algorithm, ran_in_turns, rows_of
from collstudy.launch.rulesfile import rules_arguments, rules_file
from collstudy.launch.toolchain import (
    Mpi,
    embedded,
    installed,
    mpi_environment,
    ompi_info_says,
    recording,
    with_library,
)
from collstudy.launch.tracefile import rank_files
from collstudy.study.catalogue import names_of
from collstudy.study.cells import Cell
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS, NON_BLOCKING, POINT_TO_POINT
from collstudy.study.placement import Core
from collstudy.study.selection import Default, Rules

#: Priority that selects a component for a collective: the highest allowed one. Other components keep theirs.
FIRST_PRIORITY = 100
#: Arguments of a launch whose ranks are not bound, and of one with more ranks than cores.
UNBOUND = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
OVERSUBSCRIBED = ["--map-by", "core:OVERSUBSCRIBE", *UNBOUND]
#: Arguments of a launch that cells share: Open MPI 4.1 cannot change this variable after MPI_Init. As long as no algorithm is
#: forced, coll/tuned decides as without it.
SHARED_ARGUMENTS = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
#: Script that starts a command as if on another (emulated) node of this computer.
AS_NODE = ROOT / "workflow" / "scripts" / "as_node.sh"


def component_of(collective: str) -> str:
    """Return the component that implements a collective's algorithms: tuned, or libnbc for the non-blocking ones."""
    return "libnbc" if collective in NON_BLOCKING else "tuned"


@functools.cache
def algorithm_numbers(ompi_info: Path, collective: str) -> dict[str, int]:
    """Return names and numbers of a collective's algorithms in the installed library (`ompi_info`)."""
    component = component_of(collective)
    arguments = ("--param", "coll", component, "--level", "9", "--parsable")
    printed = ompi_info_says(ompi_info, *arguments, environment=mpi_environment())
    found = re.findall(rf":coll_{component}_{collective}_algorithm:enumerator:value:(\d+):(\S+)", printed)
    return {name: int(number) for number, name in found}


def selection_arguments(cell: Cell, mpi: Mpi, monitored: bool = False) -> list[str]:
    """Return the `--mca` arguments that select the cell's algorithm; *monitored* allows the monitoring component."""
    selection = cell.selection
    if isinstance(selection, Rules):
        han = rules_file(selection.han) if selection.han else None
        return rules_arguments(rules_file(selection.text), monitored, han, selection.text)
    forced = selection.forced("openmpi", cell.collective)
    if component := component_asked(cell):
        # ucc and hcoll are disabled by default, whatever their priority.
        enabling = {f"coll_{component}_enable": 1} if component in ("ucc", "hcoll") else {}
        return mca.arguments_of({f"coll_{component}_priority": FIRST_PRIORITY, **enabling})
    return forcing_arguments(*forced, mpi, cell.algorithm, monitored) if forced else []


def component_asked(cell: Cell) -> str | None:
    """Return the component that the cell compares as an algorithm; None if the cell selects an algorithm within a component."""
    return (cell.selection.settings("openmpi") or {}).get("component")


def forcing_arguments(
    collective: str, chosen: dict[str, Any], mpi: Mpi, requested_by: str, monitored: bool = False
) -> list[str]:
    """Return the `--mca` arguments that force the algorithm *chosen* of a collective; *requested_by* is named in errors."""
    names = names_of(chosen)
    numbers = algorithm_numbers(mpi.ompi_info, collective)
    known = [name for name in names if name in numbers]
    if not known:
        raise StudyError(
            f"config/algorithms.yaml: {requested_by}: Open MPI {mpi.version} has no {collective} algorithm "
            + " or ".join(names)
            + allowed(numbers)
        )
    prefix = f"coll_{component_of(collective)}_{collective}_algorithm"
    components = mca.MONITORED if monitored else mca.COMPONENTS
    settings = {"coll": components, "coll_tuned_use_dynamic_rules": 1, prefix: numbers[known[0]]}
    if "segment_bytes" in chosen:
        settings[f"{prefix}_segmentsize"] = chosen["segment_bytes"]
    if "fanout" in chosen:
        # Each kind of tree has its own parameter; the algorithm reads the one of its tree.
        settings[f"{prefix}_chain_fanout"] = settings[f"{prefix}_tree_fanout"] = chosen["fanout"]
    if "radix" in chosen:
        settings[f"{prefix}_knomial_radix"] = chosen["radix"]
    if "max_requests" in chosen:
        settings[f"{prefix}_max_requests"] = chosen["max_requests"]
    return mca.arguments_of(settings)


def emulates_nodes(mpi: Mpi) -> bool:
    """Return whether *mpi* can run on emulated nodes: it must be Open MPI 5, and the system must allow a host name for each node."""
    if mpi.name != "openmpi" or int(mpi.version.split(".")[0]) < 5 or not mpi.has_mpirun:
        return False
    return ask([AS_NODE, "node", "true"]).returncode == 0


def emulating(folder: Path) -> list[str]:
    """Return the arguments with which mpirun starts its daemons on emulated nodes; writes a link to *folder*."""
    agent = folder / AS_NODE.name
    if not agent.exists():  # Open MPI splits the agent's path at blanks
        agent.symlink_to(AS_NODE)
    return ["--prtemca", "plm_ssh_agent", str(agent)]


def placement_arguments(
    machine: Machine, cell: Cell, mpi: Mpi, placement: list[Core], folder: Path, hosts: list[str]
) -> list[str]:
    """Return the arguments that place each rank on its core: a rank file, which 4.1 and 5.0 interpret alike.

    On emulated nodes ranks are not bound; a host file in rank order places them.
    """
    if machine.emulated_nodes > 1:
        file = folder / f"hosts-{cell.digest[:16]}.txt"
        write_atomically(file, "".join(f"{hosts[core.node]}\n" for core in placement).encode())
        return [*emulating(folder), "--hostfile", str(file), "--map-by", "seq:OVERSUBSCRIBE", *UNBOUND]
    if machine.oversubscribe:
        return [*OVERSUBSCRIBED]
    # A machine's file may leave out the sockets: then cores are numbered over the whole node.
    with_sockets = any(level.name == "socket" for level in machine.levels)
    lines = []
    for rank, core in enumerate(placement):
        socket, inside = divmod(core.core_of_node, cores_per_socket(machine))
        slot = f"{socket}:{inside}" if with_sockets else core.core_of_node
        lines.append(f"rank {rank}={hosts[core.node]} slot={slot}\n")
    path = folder / f"ranks-{cell.digest[:16]}.txt"
    write_atomically(path, "".join(lines).encode())
    if mpi.version.startswith("4."):
        return ["--rankfile", str(path)]
    return ["--map-by", f"rankfile:file={path}"]


def cores_per_socket(machine: Machine) -> int:
    """Return the number of cores of one socket."""
    sockets = next((level.count for level in machine.levels if level.name == "socket"), 1)
    return machine.cores_per_node // sockets


def library() -> Mpi:
    """Return the Open MPI in use. Raises StudyError if there is none."""
    return installed("openmpi")


def environment(
    machine: Machine, cell: Cell, chosen: dict[str, str], base: dict[str, str], folder: Path
) -> dict[str, str]:
    """Return the environment of a launch; the algorithm is selected by arguments."""
    found = library().environment(with_library(machine, library(), chosen, base))
    if machine.kind != "slurm":
        # mpirun names its session folder by its process id, and fails if a killed mpirun with the same id left one behind.
        found["TMPDIR"] = str(folder)
    return found


def launcher(
    machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str], arguments: list[str]
) -> list[str | Path]:
    """Return the command that precedes the program: mpirun or srun, the placement, and `--mca` *arguments*."""
    mpi = library()
    if srun.starts(machine):
        settings = {f"OMPI_MCA_{name}": value for name, value in mca.parameters_of(arguments).items()}
        return srun.command(machine, cell, placement, folder, hosts, settings)
    command = [mpi.mpirun, "-n", str(cell.processes)]
    command += placement_arguments(machine, cell, mpi, placement, folder, hosts)
    if machine.kind == "slurm":
        # Some launchers do not forward the environment to other nodes.
        names = [*with_library(machine, mpi, cell.selection.library, {})]
        names += (name for name in machine.environment if not name.startswith("OMPI_MCA_"))
        command += [part for name in names for part in ("-x", name)]
    return [*command, *arguments]


def prepare(machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]) -> list[str | Path]:
    """Write the rank file to *folder* and return the command of one launch, without the benchmark's own arguments."""
    # For cells that share a start, each turn selects its algorithm.
    selected = SHARED_ARGUMENTS if cell.shares_start else selection_arguments(cell, library())
    return [*launcher(machine, cell, placement, folder, hosts, selected), *benchmark(cell, library())]


def turn_of(cell: Cell) -> str:
    """Return a cell's turn in a shared launch, as the value of collbench_all's option -t: collective, sizes, component, and Open
    MPI's variables.
    """
    settings = mca.parameters_of(selection_arguments(cell, library()))
    if settings:
        # A list of components would apply to all turns of the launch; the preference of a communicator has the same effect.
        settings = {name: value for name, value in settings.items() if name not in ("coll", SHARED_ARGUMENTS[1])}
        settings["prefer"] = "tuned"
    sizes = ["m=" + ":".join(map(str, cell.sizes))] if cell.sizes else []
    sizes += [f"s={cell.spread_text}"] if cell.spread_us else []
    return " ".join([f"b={cell.collective}", *sizes, *(f"{name}={value}" for name, value in settings.items())])


def proof_command(
    machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: list[str]
) -> list[str | Path]:
    """Return the command of the untimed launch that reports component, messages and binding."""
    mpi = library()
    traced = shows_component(cell, mpi)
    if cell.shares_start:
        arguments, program = SHARED_ARGUMENTS, [embedded("openmpi").program("all"), "-p"]
    else:
        arguments, program = selection_arguments(cell, mpi, monitored=not traced), probe(cell, mpi.build)
    if not traced:
        arguments = [*arguments, "--mca", "coll_base_verbose", "20", *monitoring(folder)]
    command = launcher(machine, cell, placement, folder, hosts, arguments)
    if traced:
        command += ["env", *(f"{name}={value}" for name, value in recording(mpi, folder, mpi.environment()).items())]
    return [*command, *program]


def monitoring(folder: Path) -> list[str]:
    """Return the arguments with which Open MPI's monitoring component writes the messages of each rank to *folder*."""
    settings = {"enable": 2, "enable_output": 3, "filename": folder / "messages"}
    return mca.arguments_of({f"pml_monitoring_{key}": value for key, value in settings.items()})


def shows_component(cell: Cell, mpi: Mpi) -> bool:
    """Return whether verification reads the component from the communicator's table, using the trace library.

    This is the case for a component as algorithm, for cells that share a start, and for the default if the trace library is built.
    """
    if component_asked(cell) or cell.shares_start:
        return True
    free = type(cell.selection) is Default and cell.collective not in (*POINT_TO_POINT, *APPLICATIONS)
    return free and mpi.trace_library.exists()


def watched(cell: Cell) -> bool:
    """Return whether verification counts messages: only if Open MPI is forced to an algorithm with a known message pattern."""
    return not cell.shares_start and cell.selection.settings("openmpi") is not None and cell.pattern is not None


def judge_turns(
    cells: Sequence[Cell], output: str, folder: Path, placement: Sequence[Core], hosts: Sequence[str], bound: bool
) -> list[dict[str, Any]]:
    """Judge like `judge` for cells with turns in one launch; the library itself shows which algorithm ran.

    An algorithm with a known pattern must have run at all sizes. Others may fall back at some sizes, so only the component counts.
    """
    found = []
    seen = ran_in_turns(rank_files(folder, cells[0].processes), [cell.collective for cell in cells])
    for cell, (components, algorithms) in zip(cells, seen, strict=True):
        placed, problems, binding = placed_as_asked(cell, output, placement, hosts, bound)
        chosen, used = cell.selection.settings("openmpi"), None
        if chosen:
            names = names_of(chosen)
            used = components == {"tuned"} and (cell.pattern is None or all(is_algorithm(a, names) for a in algorithms))
            if segment := chosen.get("segment_bytes"):
                used = used and all(f"segment {segment}" in algorithm for algorithm in algorithms)
            problems += [] if used else [f"{', '.join(sorted(components))} ran {', '.join(sorted(algorithms))}"]
        found.append(judgement(cell, ", ".join(sorted(components)), used, placed, problems, binding))
    return found


def judge(
    cell: Cell, output: str, folder: Path, placement: Sequence[Core], hosts: Sequence[str], bound: bool
) -> dict[str, Any]:
    """Read the files of the verification launch and return the verdict, as described for `Launcher`."""
    traced = component_asked(cell) or next(folder.glob("rank-*.trace"), None)
    component = _component_ran(cell, folder) if traced else winning_component(output)
    placed, problems, binding = placed_as_asked(cell, output, placement, hosts, bound)
    used = None
    if asked := component_asked(cell):
        used = component == asked
        problems += [] if used else [f"component {component} ran the {cell.collective}, not {asked}"]
    # The component of a non-blocking collective is not reported; only libnbc has the algorithms.
    elif cell.selection.settings("openmpi") and cell.collective not in NON_BLOCKING:
        used = component == "tuned"
        if not used:
            problems.append(f"component {component} ran the {cell.collective}, not tuned")
        if used and cell.pattern:
            wrong = other_messages(cell, cell.selection.settings("openmpi"), folder)
            used = not wrong
            problems += wrong
    return judgement(cell, component, used, placed, problems, binding)


def _component_ran(cell: Cell, folder: Path) -> str:
    """Return the components that ran the cell's collective on MPI_COMM_WORLD in the traced launch, separated by `, `."""
    rows = rows_of(rank_files(folder, cell.processes), "openmpi")
    world = f"MPI_COMM_WORLD of {cell.processes} rank"
    found = [r["component"] for r in rows if r["collective"] == cell.collective and r["communicator"].startswith(world)]
    return ", ".join(dict.fromkeys(found)) or "?"


def winning_component(output: str) -> str | None:
    """Return the component with the highest priority on MPI_COMM_WORLD, from the output of `coll_base_verbose`.

    Lines start with [host:pid], and lines of different ranks are interleaved. One rank suffices, because all select the same.
    """
    by_process: dict[str, list[str]] = {}
    for prefix, text in re.findall(r"^(\[\S+:\d+\])\s*(coll:base:comm_select: .*)$", output, re.MULTILINE):
        by_process.setdefault(prefix, []).append(text)
    for lines in by_process.values():
        ranked, world = [], False
        for text in lines:
            if "new communicator:" in text:
                world = "MPI_COMM_WORLD" in text
            chosen = re.search(r"selecting\s+(\S+), priority\s+(\d+), Enabled", text)
            if world and chosen and chosen.group(1) != "monitoring":
                ranked.append((int(chosen.group(2)), chosen.group(1)))
        if ranked:
            return max(ranked)[1]
    return None
