"""Run a cell in SimGrid SMPI: platform and host file from the machine's levels, and the command.

Model. Levels form nested zones; a message between two cores climbs to the outermost level at which they differ and pays
that level's latency (half of the difference to the level inside of it on each side, so that the sum is the level's value)
and bandwidth. `shared_gb_s` is a link that every message crossing a unit shares.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from .cells import Cell, canonical
from .config import Level, Machine
from .placement import Core
from .store import write_atomically
from .toolchain import SIMULATED, suite

#: SimGrid's names for the decision logic of each library.
SELECTORS = {"smpi-openmpi": "ompi", "smpi-mpich": "mpich", "smpi-impi": "impi"}

DEFAULTS: dict[str, Any] = {
    "send_overhead_us": 0.0,
    "receive_overhead_us": 0.0,
    "eager_limit_bytes": 65536,
    "async_small_bytes": 0,
    "latency_factor": "1.0",
    "bandwidth_factor": "1.0",
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
    """The zone of one unit: its children (zones, or hosts at the innermost level), all linked to its router."""
    level = levels[depth]
    name = "-".join(map(str, at))
    innermost = depth == len(levels) - 1
    inside_latency = 0.0 if innermost else levels[depth + 1].latency_us
    own_latency = (level.latency_us - inside_latency) / 2
    zone, router = f"z{name}", f"r{name}"
    # Sub-zones first, then links, then routes: every link of a zone must come before its first route.
    lines = [f'{indent}<zone id="{zone}" routing="Floyd">']
    children = [at + (index,) for index in range(level.count)]
    for child in children:
        child_name = "-".join(map(str, child))
        if innermost:
            lines.append(f'{indent}  <host id="c-{child_name}" speed="1Gf"/>')
        else:
            lines += _zone(levels, depth + 1, child, indent + "  ")
    if innermost:
        lines.append(f'{indent}  <router id="{router}"/>')
    else:  # a route between zones must end in a zone: the centre is one that holds nothing but the router
        lines.append(f'{indent}  <zone id="{zone}-centre" routing="None"><router id="{router}"/></zone>')
    shared = level.shared_gb_s is not None
    for child in children:
        child_name = "-".join(map(str, child))
        lines.append(_link(f"l{child_name}", level.bandwidth_gb_s, own_latency, indent + "  "))
        if shared and not innermost:
            lines.append(_link(f"s{child_name}", level.shared_gb_s, 0, indent + "  "))
    if shared and innermost:
        lines.append(_link(f"s{name}", level.shared_gb_s, 0, indent + "  "))
    for child in children:
        child_name = "-".join(map(str, child))
        contents = f'<link_ctn id="l{child_name}"/>'
        if shared:
            contents += f'<link_ctn id="s{name if innermost else child_name}"/>'
        if innermost:
            lines.append(f'{indent}  <route src="c-{child_name}" dst="{router}">{contents}</route>')
        else:
            gateway = f"r{child_name}"
            lines.append(
                f'{indent}  <zoneRoute src="z{child_name}" dst="{zone}-centre" gw_src="{gateway}" gw_dst="{router}">'
                f"{contents}</zoneRoute>"
            )
    lines.append(f"{indent}</zone>")
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
        "precision/timing": "1e-10",
        "precision/work-amount": "1e-7",
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
    found = suite(SIMULATED)
    command = ["smpirun", "-np", str(cell.processes), "-platform", platform, "-hostfile", hosts, *options(machine, cell)]
    return command + ["--log=root.thres:warning", found.program(cell.collective), "-d", "6"]
