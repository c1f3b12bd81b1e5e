"""Machines: topology levels, costs and limits, read from `config/machines/`."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, check_known
from collstudy.study import checks
from collstudy.study.document import Place, read_document, shown
from collstudy.study.names import MPIS

#: Keys of a machine's `simulation` that are replaced by costs fitted by level and size.
REPLACED_BY_FIT = ("send_overhead_us", "receive_overhead_us", "async_small_bytes", "bandwidth_by_level")
#: Values of keys that a machine's `simulation` omits.
DEFAULTS: dict[str, Any] = {
    "send_overhead_us": 0.0,
    "receive_overhead_us": 0.0,
    "eager_limit_bytes": 65536,
    "async_small_bytes": 0,
}


@dataclass(frozen=True)
class Level:
    """One level of a machine's topology: `count` units in each unit of the enclosing level.

    Latency (us) and bandwidth (GB/s) apply to messages between cores whose outermost difference is at this level;
    `shared_gb_s` is the bandwidth shared by all messages that enter or leave one unit (a socket's memory bus, a node's NIC), with
    `full_duplex` separately for each direction. Keys that a file omits are None, so that identities do not change.
    """

    name: str
    count: int
    latency_us: float | None = None
    bandwidth_gb_s: float | None = None
    shared_gb_s: float | None = None
    full_duplex: bool | None = None


@dataclass(frozen=True)
class Machine:
    """The system on which cells run; see config/README.md, Machines."""

    name: str
    kind: str
    label: str
    mpi: str
    levels: tuple[Level, ...]
    simulation: dict[str, Any] = field(default_factory=dict)
    slurm: dict[str, Any] = field(default_factory=dict)
    oversubscribe: bool = False
    core_gflops: float | None = None
    launch_time_limit_s: float = 600.0
    block_minutes: float = 60.0
    groups: str = ""
    emulated_nodes: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def bound(self) -> bool:
        """Return whether each rank is bound to a core of its own."""
        return not self.oversubscribe and self.emulated_nodes == 1

    @property
    def nodes(self) -> int:
        """Return the number of nodes: the product of the counts of the levels group and node."""
        return math.prod(level.count for level in self.levels if level.name in ("group", "node"))

    @property
    def cores_per_node(self) -> int:
        """Return the number of cores of one node."""
        return math.prod(level.count for level in self.levels if level.name not in ("group", "node"))


def _check_costs(levels: tuple[Level, ...], simulation: dict[str, Any], where: Place) -> None:
    for level in levels:
        if (level.latency_us is None or level.bandwidth_gb_s is None) and "fat_tree" not in simulation:
            raise StudyError(
                f"{where}: level {level.name} needs latency_us and bandwidth_gb_s to be simulated"
                " (./study calibrate fits them to a ladder)"
            )
    for outer, inner in zip(levels, levels[1:], strict=False):
        # A level with delays of its own may be faster than an inner one, as neighbouring levels can be within the noise of a ladder.
        if (outer.latency_us or 0) < (inner.latency_us or 0) and outer.name not in simulation.get("delay_us", ()):
            raise StudyError(
                f"{where}: latency_us of level {outer.name} is smaller than that of {inner.name}, which is inside of it"
            )


def _check_limits(simulation: dict[str, Any], where: Place) -> None:
    values = DEFAULTS | simulation
    # A calibrated machine takes the eager limit for both.
    if values["async_small_bytes"] > values["eager_limit_bytes"] and "delay_us" not in simulation:
        raise StudyError(
            f"{where / 'async_small_bytes'} is {values['async_small_bytes']}; SimGrid allows at most eager_limit_bytes, "
            f"which is {values['eager_limit_bytes']}"
        )


def read_machine(name: str, path_of: Callable[[str], Path], fitting: bool = False) -> Machine:
    """Read the file of a machine (*path_of* maps a name to its path); a local machine gets the levels of this computer.

    With *fitting*, the costs fitted by `./study calibrate` are not read, and costs of levels may be missing.
    """
    path = path_of(name)
    raw, at = _like(*read_document(path, "machine"), path_of)
    checks.check_kind(raw, at)
    if not fitting:
        raw, at = _with_fit(raw, at)
    levels = _levels(raw.get("levels", []), at("levels"))
    kind, simulation = raw["kind"], raw.get("simulation", {})
    if kind == "local":
        if levels:
            raise StudyError(f"{at('levels')}: levels are read from the system for kind local; remove them")
        levels = shared_by(raw.get("emulated_nodes", 1), local_levels())
    elif not levels:
        raise StudyError(f"{shown(path)}: kind {kind} needs levels, from the outermost to core")
    checks.check_levels([level.name for level in levels], [level.count for level in levels], at("levels"))
    checks.check_slurm(raw.get("slurm", {}), at("slurm"))
    checks.check_environment(raw.get("environment", {}), at("environment"))
    if kind == "simulated":
        _check_fat_tree(simulation, levels, at("simulation"))
        checks.check_simulation(simulation, [level.name for level in levels], at("simulation"))
        _check_limits(simulation, at("simulation"))
        if not fitting:
            _check_costs(levels, simulation, at("levels"))
    given = {one.name: raw[one.name] for one in fields(Machine) if one.name in raw}
    environment = {variable: str(value) for variable, value in sorted(raw.get("environment", {}).items())}
    return Machine(**{"mpi": MPIS[kind][0], **given, "name": name, "levels": levels, "environment": environment})


def _levels(given: list[dict[str, Any]], where: Place) -> tuple[Level, ...]:
    """Return the levels of a machine file. With `added_latency_us`, a level's latency is so much longer than that of the next inner
    level, and its bandwidth the same unless given, so that both follow a new calibration.
    """
    found: list[Level] = []
    for values in reversed(given):
        own = dict(values)
        if (added := own.pop("added_latency_us", None)) is not None:
            if not found or "latency_us" in own:
                raise StudyError(
                    f"{where}: added_latency_us of level {own['name']} is added to latency_us of the next inner level and replaces"
                    " its own latency_us"
                )
            if (inner := found[-1].latency_us) is not None:
                own["latency_us"] = round(inner + added, 6)
            own.setdefault("bandwidth_gb_s", found[-1].bandwidth_gb_s)
        found.append(Level(**own))
    return tuple(reversed(found))


def _like(
    raw: dict[str, Any], where: Place, path_of: Callable[[str], Path]
) -> tuple[dict[str, Any], Callable[[str], Place]]:
    """Add the keys that this file omits from the machine named by `like`; those that depend on the kind only if both have the same.

    A level in both files keeps the values of this file; levels that only this file has enclose those of the other. Also
    returns a function that gives the place of a key, which may be in the other file.
    """
    if "like" not in raw:
        return raw, where.__truediv__
    other, there = read_document(path_of(raw["like"]), "machine")
    if "like" in other:
        raise StudyError(
            f"{where / 'like'}: machine {raw['like']} itself uses `like`; name the last machine of the chain"
        )
    other, known_at = _with_fit(other, there.__truediv__)
    same = other["kind"] == raw["kind"]
    of_kind = () if same else ("mpi", "simulation", "slurm", "calibration", "environment")
    merged = {key: value for key, value in other.items() if key not in ("kind", "label", *of_kind)} | raw
    if "levels" in raw and "levels" in other:
        mine = {level["name"]: level for level in raw["levels"]}
        merged["levels"] = [mine[name] for name in mine if name not in {level["name"] for level in other["levels"]}]
        merged["levels"] += [level | mine.get(level["name"], {}) for level in other["levels"]]
    return merged, lambda key: where / key if key in raw or key not in other else known_at(key)


def _with_fit(raw: dict[str, Any], at: Callable[[str], Place]) -> tuple[dict[str, Any], Callable[[str], Place]]:
    """Merge a machine's file with the costs of its `fitted` file, and remove the keys `fitted` and `calibration`.

    Also returns a function that gives the place of a key, which may be in the file of costs.
    """
    rest = {key: value for key, value in raw.items() if key not in ("fitted", "calibration")}
    if "fitted" not in raw:
        return rest, at
    where = at("fitted")
    machine = where.file.stem
    file = where.file.with_name(raw["fitted"])
    if not file.exists():
        raise StudyError(f"{where}: {shown(file)} does not exist; ./study calibrate {machine} writes it")
    fit, there = read_document(file, "fitted")
    known = [level["name"] for level in raw.get("levels", ())]
    for name in fit["levels"]:
        check_known(name, known, f"{there / 'levels' / name}: machine {machine} has no level {name!r}")
    rest["levels"] = [level | fit["levels"].get(level["name"], {}) for level in raw["levels"]]
    if "simulation" in fit:
        own = {key: value for key, value in raw.get("simulation", {}).items() if key not in REPLACED_BY_FIT}
        rest["simulation"] = own | fit["simulation"]
    return rest, lambda key: there / key if key in fit else at(key)


def _check_fat_tree(simulation: dict[str, Any], levels: tuple[Level, ...], where: Place) -> None:
    """Check that a fat tree has the levels group (first-stage switch), node (`arity` per group) and core (one per node)."""
    if "fat_tree" not in simulation:
        return
    arity, stages = simulation["fat_tree"]["arity"], simulation["fat_tree"]["stages"]
    wanted = (("group", arity ** (stages - 1)), ("node", arity), ("core", 1))
    if tuple((level.name, level.count) for level in levels) != wanted:
        raise StudyError(
            f"{where}: a fat tree of arity {arity} with {stages} stages has the levels "
            + ", ".join(f"{{name: {name}, count: {count}}}" for name, count in wanted)
        )


@functools.cache
def local_levels() -> tuple[Level, ...]:
    """Return the sockets and cores of this computer that this process may use, from /sys (one hardware thread per core)."""
    cores: dict[int, set[int]] = {}
    for cpu in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            socket = int((topology / "physical_package_id").read_text())
            core = int((topology / "core_id").read_text())
        except (OSError, ValueError):
            socket, core = 0, cpu
        cores.setdefault(socket, set()).add(core)
    # All sockets must have the same number of cores: use the smallest number available.
    return (Level("node", 1), Level("socket", len(cores)), Level("core", min(len(c) for c in cores.values())))


def shared_by(nodes: int, levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Divide the cores of a computer among emulated nodes, at least one core each; for one node return *levels* unchanged."""
    if nodes == 1:
        return levels
    return (Level("node", nodes), Level("core", max(math.prod(level.count for level in levels) // nodes, 1)))
