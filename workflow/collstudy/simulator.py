"""Run a cell in SimGrid SMPI: platform and host file from the machine's levels, and the command.

Model. Levels form nested zones; a message between two cores climbs to the outermost level at which they differ and pays
that level's latency (half of the difference to the level inside of it on each side, so that the sum is the level's value)
and bandwidth. `shared_gb_s` is a link that every message crossing a unit shares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from .cells import Cell
from .config import Level, Machine
from .placement import Core
from .store import write_atomically
from .toolchain import SIMULATED, SIMULATED_WITH_LIBRARY, suite

#: SimGrid's names for the decision logic of each library.
SELECTORS = {"smpi-openmpi": "ompi", "smpi-mpich": "mpich", "smpi-impi": "impi"}

DEFAULTS: dict[str, Any] = {
    "send_overhead_us": 0.0,
    "receive_overhead_us": 0.0,
    "eager_limit_bytes": 65536,
    "async_small_bytes": 0,
    "latency_factor": "0:1",
    "bandwidth_factor": "0:1",
}


def platform_xml(levels: tuple[Level, ...]) -> str:
    """Platform description for SimGrid 3.32: one host a core, one zone a unit of each level above the core."""
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
    ]
    lines += _zone(levels, 0, (), "  ")
    return "\n".join(lines + ["</platform>", ""])


def _link(identifier: str, bandwidth_gb_s: float, latency_us: float, indent: str) -> str:
    return f'{indent}<link id={quoteattr(identifier)} bandwidth="{bandwidth_gb_s * 1e9:.6g}Bps" latency="{max(latency_us, 0) * 1e-6:.6g}s"/>'


def _zone(levels: tuple[Level, ...], depth: int, at: tuple[int, ...], indent: str) -> list[str]:
    """The zone of one unit: its children (cores, or zones) hang on its router like the rays of a star.

    A route between zones must end in a zone, so the router of a zone of zones sits in a zone of its own (zr...).
    """
    level = levels[depth]
    name = "-".join(map(str, at))
    innermost = depth == len(levels) - 1
    children = ["-".join(map(str, (*at, index))) for index in range(level.count)]
    inside = indent + "  "
    lines = [f'{indent}<zone id="z{name}" routing="Floyd">']
    for index, child in enumerate(children):
        if innermost:
            lines.append(f'{inside}<host id="c-{child}" speed="1Gf"/>')
        else:
            lines += _zone(levels, depth + 1, (*at, index), inside)
    router = f'<router id="r{name}"/>'
    lines.append(inside + (router if innermost else f'<zone id="zr{name}" routing="None">{router}</zone>'))
    lines += _links(levels, depth, name, children, inside)
    for child in children:
        crossed = [f"l{child}"] + ([f"s{name if innermost else child}"] if level.shared_gb_s else [])
        links = "".join(f'<link_ctn id="{link}"/>' for link in crossed)
        if innermost:
            lines.append(f'{inside}<route src="c-{child}" dst="r{name}">{links}</route>')
        else:
            lines.append(
                f'{inside}<zoneRoute src="z{child}" dst="zr{name}" gw_src="r{child}" gw_dst="r{name}">{links}</zoneRoute>'
            )
    lines.append(f"{indent}</zone>")
    return lines


def _links(levels: tuple[Level, ...], depth: int, name: str, children: list[str], indent: str) -> list[str]:
    """Links of a zone: one a child, and what its messages share. They must come before the zone's first route."""
    level = levels[depth]
    innermost = depth == len(levels) - 1
    inner_latency = 0.0 if innermost else levels[depth + 1].latency_us
    lines = [
        _link(f"l{child}", level.bandwidth_gb_s, (level.latency_us - inner_latency) / 2, indent) for child in children
    ]
    if level.shared_gb_s:
        lines += [_link(f"s{unit}", level.shared_gb_s, 0, indent) for unit in ([name] if innermost else children)]
    return lines


def options(machine: Machine, cell: Cell) -> list[str]:
    """SimGrid's configuration for a cell: deterministic, nothing left at values calibrated for another cluster."""
    values = {**DEFAULTS, **machine.simulation}
    send, receive = values["send_overhead_us"] * 1e-6, values["receive_overhead_us"] * 1e-6
    settings = {
        "smpi/simulate-computation": "no",
        "smpi/coll-selector": SELECTORS[cell.mpi["name"]],
        "smpi/os": f"0:{send:.9g}:0",
        "smpi/ois": f"0:{send:.9g}:0",
        "smpi/or": f"0:{receive:.9g}:0",
        "smpi/send-is-detached-thresh": values["eager_limit_bytes"],
        "smpi/async-small-thresh": values["async_small_bytes"],
        "smpi/lat-factor": values["latency_factor"],
        "smpi/bw-factor": values["bandwidth_factor"],
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
        "network/weight-S": "0",
        # The overheads are tens of nanoseconds: resolve picoseconds, and let reading the clock cost nothing.
        "surf/precision": "1e-12",
        "smpi/wtime": "0",
        **values.get("smpi", {}),
    }
    chosen = cell.selection.get("smpi")
    if chosen:
        settings[f"smpi/{cell.collective}"] = chosen["algorithm"]
    return [f"--cfg={key}:{value}" for key, value in settings.items()]


def prepare(machine: Machine, cell: Cell, placement: list[Core], folder: Path) -> list[str | Path]:
    """Write the platform and the host file to *folder* and return the command of one launch.

    Floating-point output has nine decimals: the simulator resolves far less than OMB's 0.01 us.
    """
    platform = folder / "platform.xml"
    hosts = folder / f"hosts-{cell.digest[:16]}.txt"
    if not platform.exists():
        write_atomically(platform, platform_xml(machine.levels).encode())
    write_atomically(hosts, "".join(core.name + "\n" for core in placement).encode())
    found = suite(SIMULATED_WITH_LIBRARY if "library" in cell.selection else SIMULATED)
    command = [
        "smpirun",
        "-np",
        str(cell.processes),
        "-platform",
        platform,
        "-hostfile",
        hosts,
        *options(machine, cell),
    ]
    return command + ["--log=root.thres:warning", found.program(cell.collective), "-d", "6"]
