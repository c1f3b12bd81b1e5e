"""The dataclasses that describe a study; `config.py` creates them from YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from collstudy.study.machines import Machine
from collstudy.study.sweeps import Sweep


@dataclass(frozen=True)
class Policy:
    """Number of launches of a cell: at least `minimum`, then more until the interval is narrow enough or `maximum` is reached.

    `ci_width_pct` is the required width of the confidence interval of the median, in percent of the median.
    """

    minimum: int = 3
    maximum: int = 10
    ci_width_pct: float = 5.0

    def with_(self, other: Policy) -> Policy:
        """Return the policy after which neither this one nor *other* needs another launch."""
        return Policy(
            max(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            min(self.ci_width_pct, other.ci_width_pct),
        )


@dataclass(frozen=True)
class Sampling:
    """Settings of a sampled study (config/README.md). The budget is in node-minutes, the start-up time in seconds."""

    rounds: int = 5
    first_pct: float = 1.0
    round_pct: float = 2.0
    target_regret_pct: float = 2.5
    budget_node_minutes: float | None = None
    startup_s: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Application:
    """A program to be traced: `mpirun -n ranks command`, in its own folder after `prepare` (a shell command).

    An `optional` program is skipped if it is not installed. If `folder` is set, the command includes its launcher
    (`mpirun -n ...`) and runs in that folder; `limit_s` (s) then replaces the machine's time limit, and `nodes` is the number of
    nodes that the command asks for, if it does.
    """

    name: str
    label: str
    command: str
    ranks: int
    prepare: str = ""
    description: str = ""
    optional: bool = False
    folder: str = ""
    limit_s: float | None = None
    nodes: int | None = None


@dataclass(frozen=True)
class ReplayPlan:
    """Replays of a study's traces: simulated machines, number of ranks, and alternatives.

    An alternative is {label, algorithms: {collective: name}, mapping, applications}; omitted keys have the plan's values.
    *decisions* is the study whose tuning decisions are replayed, if any; *traces* is the number of traces of each application.
    """

    machines: tuple[Machine, ...]
    ranks: int
    mapping: str
    alternatives: tuple[dict[str, Any], ...] = ()
    decisions: str = ""
    traces: int = 1


@dataclass(frozen=True)
class Swept:
    """Source of numbers: all points of the sweeps."""

    sweeps: tuple[Sweep, ...]
    policy: Policy


@dataclass(frozen=True)
class Sampled(Swept):
    """Source of numbers: points of the sweeps, selected in rounds."""

    sampling: Sampling


@dataclass(frozen=True)
class Tuned(Sampled):
    """Source of numbers: a traced program and the sampled cells of the collectives it calls. The sweeps follow from the trace.

    *runs* is the number of pairs of runs to compare. The cells are measured only if ideal (zero-cost) collectives would save at least
    *worth_pct* percent of the run time.
    """

    program: Application
    runs: int
    worth_pct: float


@dataclass(frozen=True)
class Imported:
    """Source of numbers: imported files (entries of the study's YAML), with their benchmark suite and MPI library."""

    files: tuple[dict[str, Any], ...]
    suite: str = "unknown"
    suite_version: str = "unknown"
    mpi: str = "unknown"
    mpi_version: str = "unknown"
    #: By collective and algorithm: the name printed in the publication, if it differs from the true one.
    printed: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions of the MPI library of the entries."""
        return tuple(str(entry.get("mpi_version", self.mpi_version)) for entry in self.files)


@dataclass(frozen=True)
class Gathered:
    """Source of numbers: the measurements of other studies."""

    gather: tuple[str, ...]


@dataclass(frozen=True)
class Traced:
    """Source of numbers: traces of applications and their replays."""

    applications: tuple[Application, ...]
    replay: ReplayPlan | None = None


@dataclass(frozen=True)
class Study:
    """A study of one research question; see config/README.md, Studies. *file* is the path of its YAML, for messages."""

    name: str
    title: str
    question: str
    machine: Machine
    source: Swept | Sampled | Tuned | Imported | Traced | Gathered
    analysis: dict[str, Any]
    chapter: str = ""
    companions: tuple[str, ...] = ()
    file: str = ""

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Return the sweeps of the study; empty if its source has none."""
        return self.source.sweeps if isinstance(self.source, Swept) else ()

    @property
    def imported_files(self) -> tuple[dict[str, Any], ...]:
        """Return the entries of the imported files; empty if the study imports nothing."""
        return self.source.files if isinstance(self.source, Imported) else ()
