"""`./study probe`: draft a machine file from the output of lscpu and sinfo on this computer, and the Open MPI found there."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.launch.execute import processor_state
from collstudy.launch.toolchain import Mpi, host, mpis
from collstudy.study.names import check_name

#: lscpu's columns that correspond to levels of a machine file, outermost first -> name of the level.
COLUMNS = {"Socket": "socket", "Node": "numa", "L3": "ccx", "Core": "core"}


@dataclass(frozen=True)
class Partition:
    """A line of sinfo: nodes of one shape in one partition."""

    name: str
    default: bool
    nodes: int
    sockets: int
    cores: int
    features: str
    time_limit: str


def run(command: list[str]) -> str:
    """Return the output of a program; "" if it is missing, fails or does not answer."""
    done = ask(command)
    return done.stdout if done.returncode == 0 else ""


def topology(text: str) -> list[tuple[str, int]]:
    """Return the levels inside a node as (name, count per enclosing unit), from the output of `lscpu -p=SOCKET,NODE,CACHE,CORE`: a line
    of numbers per processor. Raises StudyError if they are irregular.
    """
    # Older versions separate caches by colons.
    lines = [re.split("[,:]", line.removeprefix("# ")) for line in text.splitlines()]
    header = next((fields for fields in lines if fields[0] == "Socket"), [])
    units = {name: {row[at] for row in lines if row[0].isdecimal()} for at, name in enumerate(header)}
    levels, outside = [], 1
    for column, name in COLUMNS.items():
        number = max(len(units.get(column, ())), 1)
        # A level that is missing, or has as many units as its parent, carries no information; one that spans several parents is no level.
        if name not in ("socket", "core") and number <= outside:
            continue
        if number % outside:
            raise StudyError(f"the topology is not regular: {number} of {name} in {outside} of the enclosing level")
        levels.append((name, number // outside))
        outside = number
    return levels


def partitions(text: str) -> list[Partition]:
    """Return the partitions from the output of `sinfo -h -e -o '%P|%D|%X|%Y|%f|%l'`, the default one first."""
    found = []
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != 6 or not all(part.isdigit() for part in parts[1:4]):
            continue
        name = parts[0].rstrip("*")
        numbers = [int(part) for part in parts[1:4]]
        features = "" if parts[4] == "(null)" else parts[4]
        found.append(Partition(name, parts[0].endswith("*"), *numbers, features=features, time_limit=parts[5]))
    return sorted(found, key=lambda p: not p.default)


def most_common(slurm: list[Partition]) -> Partition:
    """Return the nodes of one shape of which the first partition has most; nodes with other features have lines of their own."""
    mine = [p for p in slurm if p.name == slurm[0].name]
    count: Counter[tuple[int, int]] = Counter()
    for p in mine:
        count[p.sockets, p.cores] += p.nodes
    shape, nodes = count.most_common(1)[0]
    largest = max((p for p in mine if (p.sockets, p.cores) == shape), key=lambda p: p.nodes)
    return replace(largest, nodes=nodes)


def minutes(limit: str) -> float:
    """Return the minutes of a time limit of Slurm: `1-00:00:00`, `30:00` or `infinite`."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:
        return math.inf
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 60 * (24 * days + hours) + minutes + seconds / 60


def draft() -> str:
    """Return the text of the machine file; unknown values are marked with TODO."""
    printed = run(["lscpu", "-p=SOCKET,NODE,CACHE,CORE"])
    if not printed:
        raise StudyError("lscpu (util-linux) is not available; it is needed for a draft")
    levels = topology(printed)
    slurm = partitions(run(["sinfo", "-h", "-e", "-o", "%P|%D|%X|%Y|%f|%l"]))
    # The first one is on PATH, if one is there: a user who has loaded a module wants its library.
    mpi = next(iter(mpis().values()), None)
    governor = processor_state().get("governor", "performance")
    lines = [
        f"# Drafted by ./study probe on {platform.node()}; check every line, above all those with TODO.",
        f"# Processor: {host()['processor']}. Topology from lscpu.",
        f"# {mpi.label} {mpi.version} in {mpi.bin}; one on PATH (a module, loaded before ./study run) comes first." if mpi
        else "# TODO: no Open MPI: load its module; otherwise ./study run installs one in .study/openmpi.",
    ]  # fmt: skip
    if governor != "performance":
        lines.append(f"# The frequency governor is {governor}: results vary more than with the governor performance.")
    lines += _slurm_lines(slurm, levels, mpi) if slurm else _local_lines(levels, mpi)
    lines += ["# Environment variables of all launches, such as:", '# environment: {UCX_TLS: "rc,self,sm"}']
    return "\n".join(lines) + "\n"


def _local_lines(levels: list[tuple[str, int]], mpi: Mpi | None) -> list[str]:
    return [
        "# Slurm (sinfo) does not answer: a local machine, whose levels are read from the system at each run:",
        *(f"#   {name}: {count}" for name, count in levels),
        *(
            "kind: local",
            f"label: {json.dumps(platform.node())}",
            f"mpi: {mpi.name if mpi else 'openmpi'}",
            "launch_time_limit_s: 60",
        ),
    ]


def _slurm_lines(slurm: list[Partition], levels: list[tuple[str, int]], mpi: Mpi | None) -> list[str]:
    lines = ["# Partitions (sinfo), nodes x sockets x cores, features, time limit:"]
    for p in slurm:
        lines.append(
            f"#   {p.name}: {p.nodes} x {p.sockets} x {p.cores}, {p.features or 'no features'}, {p.time_limit}"
        )
    chosen = most_common(slurm)
    here = (dict(levels)["socket"], math.prod(count for name, count in levels if name != "socket"))
    lines += [f"kind: slurm\nlabel: Partition {chosen.name}", f"mpi: {mpi.name if mpi else 'openmpi'}", "levels:"]
    lines.append(f"  - {{name: node, count: {chosen.nodes}}}")
    if (chosen.sockets, chosen.cores) == here:
        lines += [f"  - {{name: {name}, count: {count}}}" for name, count in levels]
    else:
        lines += [
            f"  # TODO: this host ({here[0]} x {here[1]} cores) is not a node of {chosen.name}: run ./study probe on one (srun) to see",
            "  # NUMA domains and caches between socket and core.",
            f"  - {{name: socket, count: {chosen.sockets}}}",
            f"  - {{name: core, count: {chosen.cores}}}",
        ]
    lines += ["slurm:", f"  partition: {json.dumps(chosen.name)}", "  # TODO: account, where the site wants one."]
    if chosen.features:
        lines.append(f"  # TODO: a feature that all nodes of a study share: {chosen.features}\n  # constraint: ")
    launcher = "mpirun  # or srun" if mpi is None or mpi.has_mpirun else f"srun  # {mpi.label} has no mpirun here"
    lines += ["  exclusive: true", f"  launcher: {launcher}", "  setup_minutes: 2"]
    lines += [
        "# Minutes that one job asks for at most; a study that needs more is split.",
        f"block_minutes: {math.floor(min(60, minutes(chosen.time_limit)))}",
        "launch_time_limit_s: 120",
    ]
    return lines


def write(name: str, folder: Path) -> Path:
    """Write the draft to `<name>.yaml` in a folder of machines. Raises StudyError if the file exists."""
    path = folder / f"{name}.yaml"
    check_name(name, "a machine")
    text = draft()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise StudyError(f"{os.path.relpath(path)} already exists; choose another name") from None
    return path
