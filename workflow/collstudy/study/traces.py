"""Units of work for applications: traces, replays of traces in the simulator, and runs of a program."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from collstudy.study.description import Application
from collstudy.study.machines import Level, Machine
from collstudy.study.work import Work

#: Increase it when the meaning of the identity of a trace, replay or run changes; stored ones are then no longer used.
#: Traces: 2 since communicators of all origins and functions with counts of type MPI_Count are recorded.
TRACE_IDENTITY, REPLAY_IDENTITY, RUN_IDENTITY = 2, 3, 1


def machine_from(raw: dict[str, Any]) -> Machine:
    """Rebuild a machine from the output of `asdict`."""
    return Machine(**{**raw, "levels": tuple(Level(**level) for level in raw["levels"])})


class _OfApplication(Work):
    """Common base of traces, replays and runs; *decides* is the identity."""

    machine: Machine
    decides: dict[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the result."""
        return self.decides

    def document(self) -> dict[str, Any]:
        """Return all fields as plain values, including those of the trace of a replay."""
        return {self.noun: asdict(self)}


class _StoredInFolder(_OfApplication):
    """Common base of traces and replays."""

    in_folder = True

    @property
    def folder_text(self) -> str:
        """Return its folder, relative to the results folder."""
        return self.path_text.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Return the folder's name: readable parts and the first 16 digits of the digest."""
        return self.folder_text.rpartition("/")[2]

    @property
    def label(self) -> str:
        """Return the name."""
        return self.name

    @property
    def point(self) -> tuple[Any, ...]:
        """Return the digest: each trace or replay has a block of its own."""
        return (self.digest,)


class _Launched(_OfApplication):
    """Common base of traces and runs: an application on the smallest sufficient number of nodes."""

    application: Application

    @property
    def mpi(self) -> dict[str, str]:
        """Return name and version of the MPI library."""
        return self.decides["mpi"]

    @property
    def processes(self) -> int:
        """Return the number of ranks."""
        return self.application.ranks

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return nodes_of(self)


@dataclass(frozen=True)
class Trace(_Launched, _StoredInFolder):
    """One application to be traced on one machine; *decides* is its identity, *number* counts the traces of an application."""

    application: Application
    machine: Machine
    decides: dict[str, Any]
    number: int = 1

    noun = "trace"

    @property
    def path_text(self) -> str:
        """Return the path of its `about.json`."""
        readable = f"{self.application.name}_{self.machine.name}_p{self.application.ranks}"
        return f"traces/{readable}-{self.digest[:16]}/about.json"


@dataclass(frozen=True)
class Replay(_StoredInFolder):
    """A trace to be replayed on a simulated machine; *decides* is its identity."""

    trace: Trace
    machine: Machine
    variant: str
    processes: int
    mapping: str
    cycle: tuple[str, ...]
    algorithms: dict[str, str]
    environment: dict[str, str]
    decides: dict[str, Any]
    #: Tuning decisions as rules of the collectives library.
    rules: str = ""

    noun = "replay"
    deterministic = True
    memory_mb = 4000

    @property
    def on_tree(self) -> bool:
        """Return whether the machine is a fat tree, where the replay logs traffic; on others it logs the times of collectives."""
        return "fat_tree" in self.machine.simulation

    @property
    def path_text(self) -> str:
        """Return the path of its `about.json`."""
        readable = f"{self.trace.application.name}_{self.machine.name}_{self.mapping}_p{self.processes}"
        return f"replays/{readable}-{self.digest[:16]}/about.json"

    @property
    def mpi(self) -> dict[str, str]:
        """Return SMPI with Open MPI's algorithms, and the version of SimGrid."""
        return {"name": "smpi-openmpi", "version": f"SimGrid {self.decides['simulator']}"}

    @property
    def nodes(self) -> int:
        """Return the number of nodes: all of the simulated machine."""
        return self.machine.nodes

    @property
    def needs(self) -> tuple[Work, ...]:
        """Return the trace."""
        return (self.trace,)


@dataclass(frozen=True)
class Run(_Launched):
    """A variant of a program's run, stored as one file; each launch is one run. Variants to be compared are launched in turn.

    *variant* is its name. *traced*: the trace library is preloaded; *ran*: it also records which algorithms ran, which takes time.
    *environment* has the variables to set; *decides* is the identity.
    """

    application: Application
    machine: Machine
    variant: str
    traced: bool
    ran: bool
    environment: dict[str, str]
    decides: dict[str, Any]

    noun = "run"

    @property
    def path_text(self) -> str:
        """Return the path of its file."""
        return f"{self.variants_text}{self.variant}-{self.digest[:16]}.json"

    @property
    def variants_text(self) -> str:
        """Return the beginning of the paths of all variants of this run."""
        return f"runs/{self.application.name}_{self.machine.name}_p{self.processes}_"

    @property
    def label(self) -> str:
        """Return one line that describes the run in messages."""
        return f"{self.application.name} {self.variant} on {self.machine.name}"

    @property
    def row_sizes(self) -> list[None]:
        """Return [None]: a run has a single time and no message size."""
        return [None]

    @property
    def point(self) -> tuple[Any, ...]:
        """Return the key shared by all variants of the program's runs."""
        return ("run", self.application.name)


def nodes_of(work: Trace | Run) -> int:
    """Return the number of nodes that the command asks for, otherwise the smallest one that has a core for each rank."""
    return work.application.nodes or min(work.machine.nodes, math.ceil(work.processes / work.machine.cores_per_node))


def run_from(raw: dict[str, Any]) -> Run:
    """Rebuild a run from a block's file."""
    return Run(**{**raw, "application": Application(**raw["application"]), "machine": machine_from(raw["machine"])})


def trace_from(raw: dict[str, Any]) -> Trace:
    """Rebuild a trace from a block's file."""
    return Trace(Application(**raw["application"]), machine_from(raw["machine"]), raw["decides"], raw.get("number", 1))


def replay_from(raw: dict[str, Any]) -> Replay:
    """Rebuild a replay from a block's file."""
    raw = {**raw, "trace": trace_from(raw["trace"]), "machine": machine_from(raw["machine"])}
    return Replay(**{**raw, "cycle": tuple(raw["cycle"])})
