"""Traces of applications, replays of these in the simulator, and runs of a program, as work."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from collstudy.study.description import Application
from collstudy.study.machines import Level, Machine
from collstudy.study.work import Work

#: Raise it when the meaning of a trace's, a replay's or a run's identity changes: stored ones are then no longer used.
TRACE_IDENTITY, REPLAY_IDENTITY, RUN_IDENTITY = 1, 1, 1


def machine_from(raw: dict[str, Any]) -> Machine:
    """A machine from the output of `asdict`."""
    return Machine(**{**raw, "levels": tuple(Level(**level) for level in raw["levels"])})


class _Kept(Work):
    """Common base of traces and replays."""

    in_folder = True
    machine: Machine

    @property
    def folder_text(self) -> str:
        """Its folder in the results folder."""
        return self.path_text.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The folder's name: readable parts and the first digits of the digest."""
        return self.folder_text.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The name."""
        return self.name

    @property
    def point(self) -> tuple[Any, ...]:
        """Each is its own."""
        return (self.digest,)


class _Launched(Work):
    """Common base of traces and runs: an application on its smallest sufficient number of nodes."""

    application: Application
    machine: Machine
    decides: dict[str, Any]

    def identity(self) -> dict[str, Any]:
        """Everything that determines the result."""
        return self.decides

    @property
    def mpi(self) -> dict[str, str]:
        """The MPI library that runs it."""
        return self.decides["mpi"]

    @property
    def processes(self) -> int:
        """Its ranks."""
        return self.application.ranks

    @property
    def nodes(self) -> int:
        """The smallest sufficient number of nodes."""
        return nodes_of(self)


@dataclass(frozen=True)
class Trace(_Launched, _Kept):
    """One application to be traced on one machine; *decides* is its identity."""

    application: Application
    machine: Machine
    decides: dict[str, Any]

    @property
    def path_text(self) -> str:
        """Its `about.json`."""
        readable = f"{self.application.name}_{self.machine.name}_p{self.application.ranks}"
        return f"traces/{readable}-{self.digest[:16]}/about.json"

    def document(self) -> dict[str, Any]:
        """All of it."""
        return {"trace": {field.name: _plain(getattr(self, field.name)) for field in fields(self)}}


@dataclass(frozen=True)
class Replay(_Kept):
    """A trace, to be replayed on a simulated machine; *decides* is its identity."""

    trace: Trace
    machine: Machine
    variant: str
    processes: int
    mapping: str
    cycle: tuple[str, ...]
    algorithms: dict[str, str]
    environment: dict[str, str]
    smpi: dict[str, str]
    decides: dict[str, Any]
    #: Decisions as rules of the collectives library.
    rules: str = ""

    deterministic = True
    memory_mb = 4000

    def identity(self) -> dict[str, Any]:
        """Everything that determines the result."""
        return self.decides

    @property
    def on_tree(self) -> bool:
        """Whether it is on a fat tree, which logs the traffic; any other machine logs the times of collectives."""
        return "fat_tree" in self.machine.simulation

    @property
    def path_text(self) -> str:
        """Its `about.json`."""
        readable = f"{self.trace.application.name}_{self.machine.name}_{self.mapping}_p{self.processes}"
        return f"replays/{readable}-{self.digest[:16]}/about.json"

    @property
    def mpi(self) -> dict[str, str]:
        """Open MPI's algorithms, simulated."""
        return {"name": "smpi-openmpi", "version": f"SimGrid {self.decides['simulator']}"}

    @property
    def nodes(self) -> int:
        """All of the simulated machine."""
        return self.machine.nodes

    @property
    def needs(self) -> tuple[Work, ...]:
        """The trace."""
        return (self.trace,)

    def document(self) -> dict[str, Any]:
        """All of it, the trace's included."""
        own = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "trace"}
        return {"replay": own | self.trace.document()}


@dataclass(frozen=True)
class Run(_Launched):
    """One way to run a program, stored as one file: each launch is a run. Ways to be compared are launched in turn.

    *variant* is its name; with *traced* the trace library is preloaded, with *ran* it notes what ran as well, which takes time;
    *environment* has the variables that are set; *decides* is its identity.
    """

    application: Application
    machine: Machine
    variant: str
    traced: bool
    ran: bool
    environment: dict[str, str]
    decides: dict[str, Any]

    @property
    def path_text(self) -> str:
        """Its file."""
        readable = f"{self.application.name}_{self.machine.name}_p{self.processes}_{self.variant}"
        return f"runs/{readable}-{self.digest[:16]}.json"

    @property
    def label(self) -> str:
        """One line for messages."""
        return f"{self.application.name} {self.variant} on {self.machine.name}"

    @property
    def row_sizes(self) -> list[None]:
        """A run has one time, without a message size."""
        return [None]

    @property
    def point(self) -> tuple[Any, ...]:
        """All ways to run the program."""
        return ("run", self.application.name)

    def document(self) -> dict[str, Any]:
        """All of it."""
        return {"run": {field.name: _plain(getattr(self, field.name)) for field in fields(self)}}


def nodes_of(work: Trace | Run) -> int:
    """The smallest number of nodes that has a core for each rank."""
    return min(work.machine.nodes, math.ceil(work.processes / work.machine.cores_per_node))


def run_from(raw: dict[str, Any]) -> Run:
    """A run from a block's file."""
    return Run(**{**raw, "application": Application(**raw["application"]), "machine": machine_from(raw["machine"])})


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Application | Machine) else value


def trace_from(raw: dict[str, Any]) -> Trace:
    """A trace from a block's file."""
    return Trace(Application(**raw["application"]), machine_from(raw["machine"]), raw["decides"])


def replay_from(raw: dict[str, Any]) -> Replay:
    """A replay from a block's file."""
    raw = {**raw, "trace": trace_from(raw["trace"]), "machine": machine_from(raw["machine"])}
    return Replay(**{**raw, "cycle": tuple(raw["cycle"])})
