"""Group cells that share an allocation into blocks. Each block is one job and a self-contained file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically, write_if_changed
from collstudy.plan.estimates import MARGIN, estimate_launch_s, limit_s
from collstudy.store.records import Summary
from collstudy.store.store import Store
from collstudy.study.cells import cell_from
from collstudy.study.description import Policy
from collstudy.study.machines import Machine
from collstudy.study.traces import machine_from, replay_from, run_from, trace_from
from collstudy.study.work import Work, content_digest

#: Minutes between the start of a Slurm job and its first launch, unless the machine has `setup_minutes`.
SETUP_MINUTES = 2.0

#: Target for the wall time (s) of a block of simulated cells.
SIMULATED_BLOCK_SECONDS = 5.0


@dataclass(frozen=True)
class Task:
    """A piece of work that needs launches, how many it already has, and the mean duration of a launch (s)."""

    work: Work
    policy: Policy
    have: int = 0
    seen_s: float | None = None

    def seconds(self, ratio: float = 1.0) -> float:
        """Return the rough wall time (s) of the remaining launches, for time limits and progress; never part of an identity.

        *ratio* is measured over estimated launch time, used for work without launches.
        """
        each = estimate_launch_s(self.work) * ratio if self.seen_s is None else self.seen_s
        if self.work.deterministic:
            return each
        # There may be one more launch: the verification of the algorithm.
        return each * (max(self.policy.maximum - self.have, 1) + (self.have == 0 and self.work.proved))


def seconds_of(tasks: Sequence[Task]) -> float:
    """Return the estimated wall time (s) of tasks; existing launches correct the estimate of the others."""
    seen = [task for task in tasks if task.seen_s is not None]
    ratio = 1.0
    if seen:
        ratio = sum(task.seen_s or 0 for task in seen) / sum(estimate_launch_s(task.work) for task in seen)
    return sum(task.seconds(ratio) for task in tasks)


@dataclass(frozen=True)
class Block:
    """Tasks that share machine, MPI library and number of nodes, and fit the time budget."""

    machine: Machine
    mpi: str
    nodes: int
    tasks: tuple[Task, ...]

    @property
    def seconds(self) -> float:
        """Return the estimated wall time (s) of its launches."""
        return seconds_of(self.tasks)

    @property
    def setup_minutes(self) -> float:
        """Return the minutes between the start of its job and its first launch."""
        return self.machine.slurm.get("setup_minutes", SETUP_MINUTES)

    @property
    def hanging_s(self) -> float:
        """Return the longest time (s) that one of its launches may hang."""
        return max(limit_s(task.work, self.machine) for task in self.tasks)

    @property
    def node_hours(self) -> float:
        """Return the estimated node-hours including the set-up of the job; simulated and local launches cost none."""
        if self.machine.kind != "slurm":
            return 0.0
        return self.nodes * (self.seconds / 3600 + self.setup_minutes / 60)

    def minutes(self, attempt: int = 1) -> int:
        """Return the time limit (minutes) of the Slurm job: set-up, and the remaining launches with a margin.

        If an attempt stored nothing, the estimate was too low, so the next attempt requests more. There is time for one launch that
        hangs until its own limit: if Slurm always ended it first, its cell would never count as failed, and no run would complete.
        Otherwise the limit is at most `block_minutes`: with a longer one, a partition might never start the job.
        """
        factor = attempt if all(task.seen_s is None for task in self.tasks) else 1
        least = self.setup_minutes + (self.seconds + self.hanging_s) / 60
        with_margin = self.setup_minutes + factor * MARGIN * self.seconds / 60
        return max(1, math.ceil(max(least, min(with_margin, self.machine.block_minutes))))

    @property
    def budget_s(self) -> float:
        """Return the time (s) that the launches of one of its parts may take, if it is split."""
        # Simulations need no allocation: small blocks keep all cores of this computer busy until the end.
        if self.machine.kind == "simulated":
            return SIMULATED_BLOCK_SECONDS
        budget = 60 * self.machine.block_minutes
        if self.machine.kind != "slurm":
            return budget
        launches = budget - 60 * self.setup_minutes
        fits = min(launches / MARGIN, launches - self.hanging_s)
        # No job of this length has time for a launch that hangs: any job is longer.
        return fits if fits > 0 else budget

    @property
    def processes(self) -> int:
        """Return the largest number of processes of its work."""
        return max(task.work.processes for task in self.tasks)

    @cached_property
    def name(self) -> str:
        """Return readable parts and a digest of the content: an existing file of this name need not be written again."""
        return f"{self.machine.name}_{self.mpi}_n{self.nodes}-{content_digest(self.document())[:12]}"

    def document(self) -> dict[str, Any]:
        """Return everything that the runner needs, as plain JSON values."""
        return {
            "machine": asdict(self.machine),
            "mpi": self.mpi,
            "nodes": self.nodes,
            "tasks": [
                {**task.work.document(), "policy": asdict(task.policy), "have": task.have} for task in self.tasks
            ],
        }


def pack(tasks: Iterable[tuple[Machine, Task]]) -> list[Block]:
    """Group tasks by machine, MPI and nodes, and split each group by the machine's time budget (`block_minutes`).

    Points are distributed over the parts of a group round robin in the study's order, so that the parts take similar times, and
    the algorithms of a comparison share a block.
    """
    groups: dict[tuple[str, str, int], list[Task]] = {}
    machines: dict[str, Machine] = {}
    for machine, task in tasks:
        machines[machine.name] = machine
        groups.setdefault((machine.name, task.work.mpi["name"], task.work.nodes), []).append(task)
    blocks = []
    for (name, mpi, nodes), members in groups.items():
        whole = Block(machines[name], mpi, nodes, tuple(members))
        parts = max(1, math.ceil(whole.seconds / whole.budget_s))
        # Cells to be compared stay together: same collective, mapping and processes, all algorithms.
        points: dict[tuple, list[Task]] = {}
        for task in members:
            points.setdefault(task.work.point, []).append(task)
        made = _deal(whole, list(points.values()), parts)
        longest = whole.machine.block_minutes
        if whole.machine.kind == "slurm" and all(
            one.minutes() <= longest for one in _deal(whole, [*points.values()], len(points))
        ):
            # Few points may be dealt unevenly.
            while any(one.minutes() > longest for one in made):
                parts += 1
                made = _deal(whole, list(points.values()), parts)
        blocks += made
    return blocks


def _deal(whole: Block, points: Sequence[Sequence[Task]], parts: int) -> list[Block]:
    """Return *parts* blocks, or one for each point if there are fewer."""
    hands: list[list[Task]] = [[] for _ in range(min(parts, len(points)))]
    for index, point in enumerate(points):
        hands[index % len(hands)].extend(point)
    return [replace(whole, tasks=tuple(hand)) for hand in hands]


def block_bytes(block: Block) -> bytes:
    """Return the content of the block's file, with one line per task: indenting everything would take ten times as long."""
    document = block.document()
    tasks = ",\n".join(json.dumps(task) for task in document.pop("tasks"))
    return f'{json.dumps(document)[:-1]}, "tasks": [\n{tasks}\n]}}\n'.encode()


def marker(block: Block, folder: Path) -> Path:
    """Return the file that marks a block as done, which is the target given to Snakemake.

    A marker that exists belongs to an earlier run: the next free number is used.
    """
    attempt = 1
    kind = "here" if block.machine.kind == "local" else "done"
    while (path := folder / f"{block.name}.{attempt}.{kind}").exists():
        attempt += 1
    return path


def write_blocks(blocks: Iterable[Block], folder: Path) -> list[Path]:
    """Write the files of blocks, named by their content, and return their markers."""
    found = []
    for block in blocks:
        write_if_changed(folder / f"{block.name}.json", block_bytes(block))
        found.append(marker(block, folder))
    return found


def pending_bytes(markers: Iterable[Path]) -> bytes:
    """Return the content of a list of markers, for which a rule waits."""
    return "".join(f"{marker}\n" for marker in markers).encode()


def write_pending(path: Path, markers: Iterable[Path]) -> None:
    """Write a list of markers."""
    write_atomically(path, pending_bytes(markers))


def read_pending(path: Path) -> list[Path]:
    """Read a list of markers; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Path(line) for line in lines if not line.startswith("#")]


def read_block(path: Path) -> Block:
    """Read a block's file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    tasks = tuple(
        Task(_work_from(entry), Policy(**entry["policy"]), entry.get("have", 0)) for entry in document["tasks"]
    )
    return Block(machine_from(document["machine"]), document["mpi"], document["nodes"], tasks)


def _work_from(entry: dict[str, Any]) -> Work:
    if "trace" in entry:
        return trace_from(entry["trace"])
    if "run" in entry:
        return run_from(entry["run"])
    return replay_from(entry["replay"]) if "replay" in entry else cell_from(entry["cell"], entry["pattern"])


def pending(work: Work, have: Summary, policy: Policy) -> Task | None:
    """Return the task for a piece of work; None if it is complete."""
    if not have.failed and have.stop(work, policy):
        return None
    return Task(work, policy, have.count, have.seconds)


def lacking(
    works: Sequence[Work], found: Sequence[tuple[Summary, int]], policy_of: Callable[[Work], Policy]
) -> list[Task]:
    """Return the tasks for work that is incomplete in the store (`Store.summaries`), and for all work that depends on it."""
    tasks: list[Task] = []
    again: set[str] = set()
    for work, (have, _) in zip(works, found, strict=True):
        policy = policy_of(work)
        task = pending(work, have, policy)
        if task is None and any(needed.digest in again for needed in work.needs):
            task = Task(work, policy, have.count, have.seconds)
        if task:
            tasks.append(task)
            again.add(work.digest)
    return tasks


def slurm_resources(block: Block, store: Store, attempt: int = 1) -> dict[str, Any]:
    """Return the Slurm resources of a block's job, as keys of Snakemake's Slurm plugin; the time covers the remaining work only.

    Requests all cores of the nodes, because rank files may use any of them. A simulation is a job with one core; a local
    block requests nothing.
    """
    machine = block.machine
    if machine.kind == "local":
        return {}
    rest = left(block, store)
    request: dict[str, Any] = {"runtime": rest.minutes(attempt) if rest.tasks else 1}
    if machine.kind == "simulated":
        return request | {"tasks": 1, "mem_mb": max(task.work.memory_mb for task in block.tasks)}
    return request | slurm_request(machine, block.nodes)


def slurm_request(machine: Machine, nodes: int) -> dict[str, Any]:
    """Return the Slurm resources of a job on *nodes* nodes of a machine, except its time."""
    slurm = machine.slurm
    names = {"slurm_partition": "partition", "slurm_account": "account", "constraint": "constraint", "qos": "qos"}
    request: dict[str, Any] = {ours: slurm[key] for ours, key in names.items() if key in slurm}
    extra = []
    request["nodes"] = nodes
    # The plugin rejects one task per node for MPI jobs, and starts every job with `mpi` without srun.
    if machine.cores_per_node > 1:
        request |= {"mpi": "mpirun", "tasks_per_node": machine.cores_per_node}
    elif nodes > 1:
        request |= {"mpi": "mpirun", "tasks": nodes}
        extra.append("--ntasks-per-node=1")
    else:
        request["tasks"] = 1
    # Zero makes the plugin omit the option, so that the partition's default, or --mem in `extra`, applies.
    request["mem_mb"] = slurm.get("mem_mb", 0)
    if slurm.get("exclusive", True):
        extra.append("--exclusive")
    if slurm.get("extra"):
        extra.append(slurm["extra"])
    if extra:
        request["slurm_extra"] = " ".join(extra)
    return request


def left(block: Block, store: Store) -> Block:
    """Return the block with only the work that the store still lacks."""
    return replace(block, tasks=tuple(still_lacking(block.tasks, store)))


def still_lacking(tasks: Sequence[Task], store: Store) -> list[Task]:
    """Return the tasks that the store still lacks."""
    found = store.summaries([task.work for task in tasks])
    rest = (pending(task.work, have, task.policy) for task, (have, _) in zip(tasks, found, strict=True))
    return [task for task in rest if task]
