"""Group cells that share an allocation into blocks, one job each; a block is a self-contained file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .cells import Cell, canonical
from .config import Level, Machine, Policy
from .store import Record, write_if_changed


@dataclass(frozen=True)
class Task:
    """A cell that needs launches, and how many it has."""

    cell: Cell
    policy: Policy
    have: int = 0

    def seconds(self) -> float:
        """Rough wall time of what is left, for time limits and progress; never part of an identity."""
        launches = 1 if self.cell.deterministic else max(self.policy.maximum - self.have, 1)
        return launches * estimate_launch_s(self.cell)


def estimate_launch_s(cell: Cell) -> float:
    """Rough wall time of one launch (s): start-up, then iterations of what a message of each size may take."""
    p = cell.processes
    bytes_swept = sum(size or 8 for size in cell.size_list)
    calls = (cell.iterations + cell.warmup) * len(cell.size_list)
    if cell.deterministic:
        return 0.05 + 2e-6 * calls * p * math.log2(p + 1)
    return 1.5 + 0.05 * p + calls * 20e-6 * math.log2(p + 1) + (cell.iterations + cell.warmup) * bytes_swept * p / 10e9


@dataclass(frozen=True)
class Block:
    """Tasks that share machine, MPI library and number of nodes, and fit the time budget."""

    machine: Machine
    mpi: str
    nodes: int
    tasks: tuple[Task, ...]

    @property
    def seconds(self) -> float:
        """Estimated wall time."""
        return sum(task.seconds() for task in self.tasks)

    @property
    def processes(self) -> int:
        """The most processes that one of its cells starts."""
        return max(task.cell.processes for task in self.tasks)

    @property
    def name(self) -> str:
        """Readable parts and a digest of what is to be done: the same work, the same name."""
        work = [(task.cell.digest, task.have, asdict(task.policy)) for task in self.tasks]
        return f"{self.machine.name}_{self.mpi}_n{self.nodes}-{hashlib.sha256(canonical(work)).hexdigest()[:12]}"

    def document(self) -> dict[str, Any]:
        """Everything that the runner needs, as plain JSON."""
        return {
            "name": self.name,
            "machine": asdict(self.machine),
            "mpi": self.mpi,
            "nodes": self.nodes,
            "tasks": [
                {"cell": task.cell.identity(), "pattern": task.cell.pattern, "policy": asdict(task.policy)}
                for task in self.tasks
            ],
        }


def pack(tasks: Iterable[tuple[Machine, Task]]) -> list[Block]:
    """Group tasks by machine, MPI and nodes, and split each group by the machine's time budget (`block_minutes`).

    Neighbours in the study's order are dealt out round robin, so that the parts of a group take about as long as each
    other and the algorithms of a comparison meet in one block.
    """
    groups: dict[tuple[str, str, int], list[Task]] = {}
    machines: dict[str, Machine] = {}
    for machine, task in tasks:
        machines[machine.name] = machine
        groups.setdefault((machine.name, task.cell.mpi["name"], task.cell.nodes), []).append(task)
    blocks = []
    for (name, mpi, nodes), members in groups.items():
        machine = machines[name]
        total = sum(task.seconds() for task in members)
        parts = max(1, math.ceil(total / (60 * machine.block_minutes)))
        # What is compared stays together: same collective, mapping and processes, all algorithms.
        points: dict[tuple, list[Task]] = {}
        for task in members:
            cell = task.cell
            points.setdefault((cell.collective, cell.mapping, cell.processes, cell.per_node), []).append(task)
        chunks: list[list[Task]] = [[] for _ in range(min(parts, len(points)))]
        for index, point in enumerate(points.values()):
            chunks[index % len(chunks)].extend(point)
        blocks += [Block(machine, mpi, nodes, tuple(chunk)) for chunk in chunks]
    return blocks


def write_block(block: Block, folder: Path) -> Path:
    """Write the block's file, named after its content, and return its path."""
    path = folder / f"{block.name}.json"
    write_if_changed(path, json.dumps(block.document(), indent=1).encode() + b"\n")
    return path


def read_block(path: Path) -> Block:
    """Read what write_block wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    raw = dict(document["machine"])
    raw["levels"] = tuple(Level(**level) for level in raw["levels"])
    tasks = tuple(
        Task(cell_from(entry["cell"], entry["pattern"]), Policy(**entry["policy"])) for entry in document["tasks"]
    )
    return Block(Machine(**raw), document["mpi"], document["nodes"], tasks)


def cell_from(identity: dict[str, Any], pattern: str | None = None) -> Cell:
    """Rebuild a cell from its identity."""
    fields = {key: value for key, value in identity.items() if key != "identity_version"}
    fields["parameters"] = tuple((name, value) for name, value in fields["parameters"])
    fields["cycle"] = tuple(fields["cycle"])
    fields["sizes"] = tuple(fields["sizes"]) if fields["sizes"] else None
    return Cell(**fields, pattern=pattern)


def pending(cell: Cell, record: Record, policy: Policy) -> Task | None:
    """The task of a cell that is not complete; None for a complete one."""
    if record.failure is None and record.stop(cell, policy):
        return None
    return Task(cell, policy, len(record.launches))
