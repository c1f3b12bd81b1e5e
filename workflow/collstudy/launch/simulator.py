"""Run a cell in SimGrid SMPI: write its platform (`platforms.py`) and host file, and build the command."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from collstudy.launch import programs
from collstudy.launch.platforms import calibrated, platform
from collstudy.launch.toolchain import SIMULATED, SIMULATED_WITH_LIBRARY, built_for, suite
from collstudy.study.cells import Cell, variable
from collstudy.study.machines import DEFAULTS, Machine
from collstudy.study.names import APPLICATIONS
from collstudy.study.placement import Core

#: SimGrid's names for the decision logic of each library.
SELECTORS = {"smpi-openmpi": "ompi", "smpi-mpich": "mpich", "smpi-impi": "impi"}


def about_nodes(machine: Machine, placement: list[Core], path: Path) -> dict[str, str]:
    """Return variables for the collectives library: the node of each rank (written to *path*), the group of each node, and the
    rate of reductions.
    """
    nodes = [(node, len(list(ranks))) for node, ranks in itertools.groupby(core.node for core in placement)]
    path.write_text("".join(f"node{node} slots={ranks}\n" for node, ranks in nodes), encoding="ascii")
    found = {"COLL_HOSTS": str(path)}
    groups = next((level.count for level in machine.levels if level.name == "group"), 0)
    if groups:
        each = machine.nodes // groups
        found["COLL_GROUPS"] = ";".join(f"{g}=node[{g * each}-{(g + 1) * each - 1}]" for g in range(groups))
    if "reduce_gb_s" in machine.simulation:
        found["COLL_REDUCE_MB_S"] = str(round(1000 * machine.simulation["reduce_gb_s"]))
    return found


def environment(
    machine: Machine, cell: Cell, chosen: dict[str, str], base: dict[str, str], folder: Path
) -> dict[str, str]:
    """Return the environment of a launch; the collectives library is linked in and identifies cores by name."""
    path = folder / f"nodes-{cell.digest[:16]}.txt"
    own = chosen | about_nodes(machine, cell.place(machine), path) if chosen else {}
    return {**base, **own}


def wrapper(variables: dict[str, str]) -> list[str]:
    """Return the arguments of smpirun that set variables for the simulator."""
    return ["-wrapper", " ".join(["env", *(f"{key}={value}" for key, value in variables.items())])] if variables else []


def options(machine: Machine, cell: Cell) -> list[str]:
    """Return SimGrid's configuration options for a cell."""
    algorithms = {}
    if cell.selection.library.get(variable(cell.collective), "").startswith("ompi_"):
        # SMPI numbers new communicators by a broadcast; its default passes the number around a ring of all ranks, for minutes.
        algorithms["bcast"] = "binomial_tree"
    if settings := cell.selection.settings("smpi"):
        algorithms[cell.collective] = settings["algorithm"]
    chosen = options_of(machine, cell.mpi["name"], algorithms)
    # All ranks share one copy of the benchmark, which supports this (coll/core/own.h); an application needs one per rank.
    return chosen + ([] if cell.collective in APPLICATIONS else ["--cfg=smpi/privatization:no"])


def options_of(machine: Machine, mpi: str, algorithms: dict[str, str]) -> list[str]:
    """Return SimGrid's configuration options: deterministic, without values calibrated for another cluster.

    *algorithms* are SimGrid's own, by collective.
    """
    values = {**DEFAULTS, **machine.simulation}
    send, receive = values["send_overhead_us"] * 1e-6, values["receive_overhead_us"] * 1e-6
    settings = {
        "smpi/simulate-computation": "no",
        "smpi/coll-selector": SELECTORS[mpi],
        "smpi/os": f"0:{send:.9g}:0",
        "smpi/ois": f"0:{send:.9g}:0",
        "smpi/or": f"0:{receive:.9g}:0",
        "smpi/send-is-detached-thresh": values["eager_limit_bytes"],
        "smpi/async-small-thresh": values["async_small_bytes"],
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
        "network/weight-S": "0",
        # Overheads are tens of nanoseconds: resolve picoseconds, and let reading the clock cost nothing.
        "surf/precision": "1e-12",
        "smpi/wtime": "0",
    }
    if "fat_tree" in machine.simulation:
        # No factors. traffic.cpp reads the progress of each flow after each step, which lazy updates do not provide.
        settings |= {"network/model": "CM02", "network/optim": "Full"}
    elif calibrated(machine):
        # Costs by level require a model without factors of its own. A short message leaves as soon as it is sent.
        settings["network/model"] = "CM02"
        # Without it, the bandwidth of a link would not bound the rate of each message.
        settings["network/TCP-gamma"] = "1e30"
        settings["smpi/async-small-thresh"] = values["eager_limit_bytes"]
    else:
        settings |= {"smpi/lat-factor": "0:1", "smpi/bw-factor": "0:1"}
        if "core_gb_s" in machine.simulation:
            # With the FATPIPE links of platform_xml(), the lazy updates of SimGrid 3.32 are wrong by up to a fifth.
            settings["network/optim"] = "Full"
    settings |= values.get("smpi", {})
    settings |= {f"smpi/{collective}": name for collective, name in algorithms.items()}
    return [f"--cfg={key}:{value}" for key, value in settings.items()]


def prepare(
    machine: Machine, cell: Cell, placement: list[Core], folder: Path, hosts: Sequence[str] = ()
) -> list[str | Path]:
    """Write the platform and the host file to *folder* and return the command of one launch; *hosts* is ignored.

    The output has more decimals than OMB's two (0.01 us), because simulated times have a much finer resolution.
    """
    names = folder / f"hosts-{cell.digest[:16]}.txt"
    names.write_text("".join(core.name + "\n" for core in placement), encoding="ascii")
    if cell.collective in APPLICATIONS:
        program = programs.command(cell, built_for(SIMULATED))
    else:
        found = suite(SIMULATED_WITH_LIBRARY if cell.selection.by_library else SIMULATED)
        program = [found.program(cell.collective), "-d", "6"]
    described, variables = platform(machine, names, folder, cell.collective)
    command = [
        "smpirun",
        *wrapper(variables),
        "-np",
        str(cell.processes),
        "-platform",
        described,
        "-hostfile",
        names,
        *options(machine, cell),
    ]
    # smpi_host warns for every host that the costs of levels.so take precedence over its own.
    return [*command, "--log=root.thres:warning", "--log=smpi_host.thres:error", *program]
