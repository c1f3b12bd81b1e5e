"""A folder with the /sys of a made node, as hwloc and workflow/native/place/cores.h read it below HWLOC_FSROOT."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

#: Number of the operating system for a socket, a core of the socket, and a thread of the core.
Numbering = Callable[[int, int, int], int]


def alternating(socket: int, core: int, thread: int = 0) -> int:
    """Return processor numbers that alternate between the two sockets, as on many servers; 12 cores a socket."""
    return 24 * thread + 2 * core + socket


def make_node(
    root: Path, sockets: int, cores: int, threads: int = 1, number: Numbering = alternating, numa: int = 1, l3: int = 1
) -> None:
    """Write the /sys of a node with *cores* a socket, each with *threads*, and *numa* NUMA nodes and *l3* caches a socket to *root*."""
    system = root / "sys/devices/system"
    places = {
        number(socket, core, thread): (socket, core * numa // cores, core)
        for socket in range(sockets)
        for core in range(cores)
        for thread in range(threads)
    }

    def write(file: str, text: object) -> None:
        (system / file).parent.mkdir(parents=True, exist_ok=True)
        (system / file).write_text(f"{text}\n")

    def write_set(file: str, kernels_list: str, members: Iterable[int]) -> None:
        numbers = sorted(members)
        mask = sum(1 << number for number in numbers)
        write(file, ",".join(f"{mask >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(32))))
        write(kernels_list, ",".join(map(str, numbers)))

    for processor, (socket, domain, core) in places.items():
        folder = f"cpu/cpu{processor}/topology"
        write(f"{folder}/physical_package_id", socket)
        write(f"{folder}/core_id", core)
        for name, length in (("package_cpus", 1), ("core_cpus", 3)):
            same = [one for one, place in places.items() if place[:length] == (socket, domain, core)[:length]]
            write_set(f"{folder}/{name}", f"{folder}/{name}_list", same)
        cache = f"cpu/cpu{processor}/cache/index3"
        for name, value in {"level": 3, "type": "Unified", "size": "32768K", "coherency_line_size": 64}.items():
            write(f"{cache}/{name}", value)
        same = [one for one, (s, _, c) in places.items() if (s, c * l3 // cores) == (socket, core * l3 // cores)]
        write_set(f"{cache}/shared_cpu_map", f"{cache}/shared_cpu_list", same)
    for name in ("online", "possible", "present"):
        write(f"cpu/{name}", ",".join(map(str, sorted(places))))
    for node in range(sockets * numa):
        own = [one for one, place in places.items() if place[:2] == divmod(node, numa)]
        write_set(f"node/node{node}/cpumap", f"node/node{node}/cpulist", own)
        write(f"node/node{node}/distance", " ".join(["10"] * sockets * numa))
    write("node/online", f"0-{sockets * numa - 1}")
