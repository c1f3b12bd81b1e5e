"""What a study is: the dataclasses that `config.py` reads from its YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from collstudy.study.machines import Machine
from collstudy.study.sweeps import Sweep


@dataclass(frozen=True)
class Policy:
    """Number of launches of a cell: at least `minimum`, then until the interval is narrow enough or `maximum` is reached.

    `ci_width_pct` is the width of the confidence interval of the median, in percent of the median.
    """

    minimum: int = 3
    maximum: int = 10
    ci_width_pct: float = 5.0


@dataclass(frozen=True)
class Sampling:
    """Settings of a sampled study (config/README.md). Budgets in node-minutes, start-up in s."""

    rounds: int = 5
    first_pct: float = 1.0
    round_pct: float = 2.0
    target_regret_pct: float = 2.5
    budget_node_minutes: float | None = None
    startup_s: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Application:
    """A program to be traced: `mpirun -n ranks command`, in a folder of its own after `prepare` (a shell command).

    An `optional` one is left out if its program is not installed. With a `folder` the command has a launcher of its own
    (`mpirun -n ...`) and runs there; `limit_s` (s) is then its time limit instead of the machine's.
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


@dataclass(frozen=True)
class ReplayPlan:
    """Replays of a study's traces: simulated machines, number of ranks, and alternatives.

    An alternative is {label, algorithms: {collective: name}, mapping, applications}; omitted keys are those of the plan.
    *decisions* is the study whose decisions are tried, if any.
    """

    machines: tuple[Machine, ...]
    ranks: int
    mapping: str
    alternatives: tuple[dict[str, Any], ...] = ()
    decisions: str = ""


@dataclass(frozen=True)
class Swept:
    """Source of numbers: every point of the sweeps."""

    sweeps: tuple[Sweep, ...]
    policy: Policy


@dataclass(frozen=True)
class Sampled(Swept):
    """Source of numbers: the points selected by rounds."""

    sampling: Sampling


@dataclass(frozen=True)
class Tuned(Sampled):
    """Source of numbers: a program, traced, and the cells that it uses, sampled. Its sweeps are known from its trace.

    *runs* is the number of pairs of runs that are compared; its cells are measured if perfect collectives could save *worth_pct*
    of the run time.
    """

    program: Application
    runs: int
    worth_pct: float


@dataclass(frozen=True)
class Imported:
    """Source of numbers: files (entries of the study's YAML), with their suite and MPI library."""

    files: tuple[dict[str, Any], ...]
    suite: str = "unknown"
    suite_version: str = "unknown"
    mpi: str = "unknown"
    mpi_version: str = "unknown"
    #: By collective and algorithm: the name printed in a publication, if it is not the true one.
    printed: dict[str, dict[str, str]] = field(default_factory=dict)


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
    """One research question; see config/README.md, Studies."""

    name: str
    title: str
    question: str
    machine: Machine
    source: Swept | Sampled | Tuned | Imported | Traced | Gathered
    analysis: dict[str, Any]
    chapter: str = ""
    companions: tuple[str, ...] = ()

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The sweeps of the study, if any."""
        return self.source.sweeps if isinstance(self.source, Swept) else ()
