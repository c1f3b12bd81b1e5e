"""`./study probe`: draft a machine file from the output of lscpu, hwloc, sinfo and ompi_info on this computer."""

from __future__ import annotations

import json
import os
import platform
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError

#: hwloc's objects that correspond to levels of a machine file, outermost first -> name of the level.
OBJECTS = {"Package": "socket", "NUMANode": "numa", "L3Cache": "ccx", "Core": "core"}


@dataclass(frozen=True)
class Partition:
    """A line of sinfo: nodes of one shape in one partition."""

    name: str
    default: bool
    nodes: int
    sockets: int
    cores: int
    threads: int
    features: str
    time_limit: str


def run(command: list[str]) -> str:
    """Return the output of a program; "" if it is missing, fails or does not answer."""
    done = ask(command)
    return done.stdout if done.returncode == 0 else ""


def topology(xml: str) -> list[tuple[str, int]]:
    """Return the levels inside a node as (name, count per enclosing unit), from hwloc's XML. Raises StudyError if irregular."""
    counts = Counter(element.get("type") for element in ElementTree.fromstring(xml).iter("object"))
    if not counts["Core"]:
        raise StudyError("hwloc reports no cores")
    levels, outside = [], 1
    for kind, name in OBJECTS.items():
        number = counts[kind]
        # A level that is missing, or has as many units as its parent, carries no information; one that spans several parents is no level.
        if kind not in ("Package", "Core") and number <= outside:
            continue
        number = max(number, 1)
        if number % outside:
            raise StudyError(f"the topology is not regular: {number} {kind} in {outside} of the enclosing level")
        levels.append((name, number // outside))
        outside = number
    return levels


def topology_of_lscpu(text: str) -> list[tuple[str, int]]:
    """Return the levels from `lscpu -J`, used if hwloc is missing: sockets, NUMA domains and cores."""
    fields: dict[str, str] = {}

    def read(entries: list[dict]) -> None:
        for entry in entries:
            fields[entry["field"].rstrip(":")] = str(entry.get("data") or "")
            read(entry.get("children", []))

    read(json.loads(text)["lscpu"])
    sockets = int(re.sub(r"\D", "", fields.get("Socket(s)", "1")) or 1)
    cores = int(re.sub(r"\D", "", fields.get("Core(s) per socket", "1")) or 1)
    numa = int(re.sub(r"\D", "", fields.get("NUMA node(s)", "1")) or 1)
    inside = numa // sockets if numa > sockets and numa % sockets == 0 and cores % (numa // sockets) == 0 else 1
    levels = [("socket", sockets)]
    if inside > 1:
        levels.append(("numa", inside))
    return [*levels, ("core", cores // inside)]


def partitions(text: str) -> list[Partition]:
    """Return the partitions from the output of `sinfo -h -e -o '%P|%D|%X|%Y|%Z|%f|%l'`, the default one first."""
    found = []
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != 7 or not all(part.isdigit() for part in parts[1:5]):
            continue
        name = parts[0].rstrip("*")
        numbers = [int(part) for part in parts[1:5]]
        features = "" if parts[5] == "(null)" else parts[5]
        found.append(Partition(name, parts[0].endswith("*"), *numbers, features=features, time_limit=parts[6]))
    return sorted(found, key=lambda p: not p.default)


def governor() -> str:
    """Return the frequency governor of the first processor; "" if the kernel does not report it."""
    try:
        return Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    except OSError:
        return ""


def draft() -> str:
    """Return the text of the machine file; unknown values are marked with TODO."""
    xml = run(["lstopo-no-graphics", "--of", "xml"]) or run(["lstopo", "--of", "xml"])
    lscpu = run(["lscpu", "-J"])
    if not xml and not lscpu:
        raise StudyError("neither lstopo (hwloc) nor lscpu is available; one of them is needed for a draft")
    levels = topology(xml) if xml else topology_of_lscpu(lscpu)
    slurm = partitions(run(["sinfo", "-h", "-e", "-o", "%P|%D|%X|%Y|%Z|%f|%l"]))
    model = re.search(r"model name\s*:\s*(.+)", run(["cat", "/proc/cpuinfo"]))
    mpi = re.search(r"Open MPI v?(\S+)", run(["ompi_info", "--version"]))
    lines = [
        f"# Drafted by ./study probe on {platform.node()}; check every line, above all those with TODO.",
        f"# Processor: {model.group(1).strip() if model else 'unknown'}. Topology from {'hwloc' if xml else 'lscpu'}.",
    ]
    if mpi:
        lines.append(f"# Open MPI {mpi.group(1)} is on PATH.")
    else:
        lines.append("# TODO: no Open MPI (ompi_info) on PATH; load its module before ./study run.")
    if governor() not in ("", "performance"):
        lines.append(f"# The frequency governor is {governor()}: results vary more than with the governor performance.")
    lines += _slurm_lines(slurm, levels) if slurm else _local_lines(levels)
    return "\n".join(lines) + "\n"


def _local_lines(levels: list[tuple[str, int]]) -> list[str]:
    return [
        "# Slurm (sinfo) does not answer: a local machine, whose levels are read from the system at each run:",
        *(f"#   {name}: {count}" for name, count in levels),
        *("kind: local", f"label: {json.dumps(platform.node())}", "mpi: openmpi", "launch_time_limit_s: 60"),
    ]


def _slurm_lines(slurm: list[Partition], levels: list[tuple[str, int]]) -> list[str]:
    lines = ["# Partitions (sinfo), nodes x sockets x cores, features, time limit:"]
    for p in slurm:
        lines.append(
            f"#   {p.name}: {p.nodes} x {p.sockets} x {p.cores}, {p.features or 'no features'}, {p.time_limit}"
        )
    chosen = slurm[0]
    here = (dict(levels)["socket"], _cores_of_socket(levels))
    lines += [f"kind: slurm\nlabel: Partition {chosen.name}", "mpi: openmpi", "levels:"]
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
    lines += ["  exclusive: true", "  launcher: mpirun", "  setup_minutes: 2"]
    lines += [
        "# Minutes that one job may take; a study that needs more is split.",
        "block_minutes: 60",
        "launch_time_limit_s: 120",
    ]
    return lines


def _cores_of_socket(levels: list[tuple[str, int]]) -> int:
    cores = 1
    for name, count in levels:
        cores *= 1 if name == "socket" else count
    return cores


def write(name: str, folder: Path) -> Path:
    """Write the draft to `config/machines/<name>.yaml`. Raises StudyError if the file exists."""
    path = folder / f"{name}.yaml"
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise StudyError(f"{name!r} is not a valid machine name; allowed: letters, digits, dot, hyphen and underscore")
    text = draft()
    try:
        with open(path, "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise StudyError(f"{os.path.relpath(path)} already exists; choose another name") from None
    return path
