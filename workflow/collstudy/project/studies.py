"""A checkout with its results folder: its studies, their missing work, and the locations of files."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.plan.blocks import Block, Task, lacking, pack, write_blocks, write_pending
from collstudy.sources import needs, source_of
from collstudy.sources.source import Context, Source
from collstudy.store.store import Store
from collstudy.study.config import Configuration
from collstudy.study.description import Policy, Study
from collstudy.study.document import read_yaml
from collstudy.study.work import Work


@dataclass(frozen=True)
class StudyState:
    """The state of a study in the store: its work, the incomplete work by round, and the file that changed last."""

    source: Source
    work: tuple[Work, ...]
    tasks: dict[int, tuple[Task, ...]]
    failed: int
    newest: Path | None

    @property
    def lacking(self) -> list[Task]:
        """Return all incomplete work without duplicates."""
        return list({task.work.digest: task for tasks in self.tasks.values() for task in tasks}.values())


class Project:
    """The interface for the Snakefile and the command line. Configuration errors are raised here, before anything runs."""

    def __init__(self, config: Path | None = None, results: Path | None = None):
        self.configuration = Configuration(config or Path(os.environ.get("COLLSTUDY_CONFIG") or ROOT / "config"))
        raw = read_yaml(self.configuration.folder / "config.yaml", "config")
        self.default_studies = split_names(raw["studies"])
        self.results = Path(results or raw.get("results", "results"))
        self.context = Context(self.configuration, self.results)
        self._sources: dict[str, Source] = {}
        self._studies: dict[str, Study] = {}

    @property
    def store(self) -> Store:
        """Return the store of measurements."""
        return self.context.store

    def folder(self, name: str) -> Path:
        """Return the folder of a study's results."""
        return self.results / name

    def study(self, name: str) -> Study:
        """Return the checked study with that name."""
        if name not in self._studies:
            self._studies[name] = self.configuration.study(name)
        return self._studies[name]

    def source(self, name: str) -> Source:
        """Return the source of a study's numbers."""
        if name not in self._sources:
            self._sources[name] = source_of(self.study(name), self.context)
        return self._sources[name]

    def state(self, source: Source) -> StudyState:
        """Compare a study with the store."""
        works = list({work.digest: work for mine in source.rounds().values() for work in mine}.values())
        found = dict(zip((work.digest for work in works), self.store.summaries(works), strict=True))
        tasks = {
            number: tuple(lacking(mine, [found[work.digest] for work in mine], source.policy_of))
            for number, mine in source.rounds().items()
        }
        newest = max(((found[work.digest][1], work.path_text) for work in works if found[work.digest][1]), default=None)
        failed = sum(have.failed for have, _ in found.values())
        return StudyState(source, tuple(works), tasks, failed, self.results / newest[1] if newest else None)

    def await_files(self, source: Source, latency_s: float) -> None:
        """Wait until all that Slurm jobs on other nodes have stored is visible here. Raises StudyError after *latency_s*: taken as
        missing, it would be collected, or judged, by no later run.
        """
        if source.study.machine.kind != "slurm":
            return
        until = time.monotonic() + latency_s
        while True:
            works = [task.work for task in self.state(source).lacking]
            late = sum(not have.failed for have, _ in self.store.summaries(works))
            if not late:
                return
            if time.monotonic() >= until:
                raise StudyError(
                    f"results of {source.study.name}: the file of {late} cell{'s' * (late != 1)} is not visible here after "
                    f"{latency_s:g} s, although the jobs have ended: run again (option --latency-wait of snakemake: seconds to wait)"
                )
            time.sleep(1)

    def available(
        self, names: list[str], explicit: bool, whatever_is_here: bool = False
    ) -> tuple[list[Source], list[str]]:
        """Return the studies to run, each followed by its companions, and one line for each study left out.

        A study is left out if its data, simulator or MPI library is missing (with *whatever_is_here*: only if its data is missing). If
        the user named a study that cannot run, StudyError is raised.
        """
        sources, left_out = [], []
        for name in self.with_companions(names):
            source = self.source(name)
            reason = source.absent()
            if reason and explicit and name in names:
                source.check()
            if not reason and not whatever_is_here:
                reason = needs.why_not(source)
                if reason and explicit and name in names:
                    raise StudyError(f"study {name}: {reason}")
            if reason:
                left_out.append(f"study {name} is left out: {reason}")
            else:
                sources.append(source)
        here = {source.study.name for source in sources}
        for source in sources:
            if not whatever_is_here and source.decided_by not in here:
                left_out += source.remarks()
        if not sources:
            raise StudyError("nothing to do: " + "; ".join(left_out or ["no study is named"]))
        return sources, left_out

    def named(self, text: str, whatever_is_here: bool = False) -> tuple[list[Source], list[str]]:
        """Return what `available` returns for names as the user typed them (`a,b`); without names, for the studies of config.yaml."""
        names = split_names(text)
        return self.available(names or self.default_studies, bool(names), whatever_is_here)

    def also_run(self) -> list[str]:
        """Return a line about the studies that have results but are not in config.yaml, such as those of ./study tune; [] if none has."""
        folder, known = self.configuration.folder, set(self.with_companions(self.default_studies))
        # A program's study.json is known after its trace.
        found = {path.parent.name for name in ("study.json", "program.json") for path in self.results.glob(f"*/{name}")}
        names = sorted(name for name in found - known if (folder / "studies" / f"{name}.yaml").exists())
        if not names:
            return []
        where = os.path.relpath(folder / "config.yaml")
        return [f"with results, but not in {where}: {', '.join(names)} (./study status {names[0]})"]

    def with_companions(self, names: list[str]) -> list[str]:
        """Return the names, each followed by the companions of its study."""
        found: list[str] = []
        todo = list(names)
        while todo:
            name = todo.pop(0)
            if name not in found:
                found.append(name)
                todo = [*self.study(name).companions, *todo]
        return found

    def blocks(self, states: list[StudyState]) -> dict[str, dict[int, list[Block]]]:
        """Return the blocks of each study's missing work by round; work shared by two studies is only in a block of the first, with as
        many launches as both need.
        """
        policies: dict[str, Policy] = {}
        for task in (task for state in states for task in state.lacking):
            policies[task.work.digest] = task.policy.with_(policies.get(task.work.digest, task.policy))
        taken: set[str] = set()
        blocks: dict[str, dict[int, list[Block]]] = {}
        for state in states:
            mine = blocks.setdefault(state.source.study.name, {})
            for number, tasks in state.tasks.items():
                # The list of a round (after 0) must contain all blocks for which it waits.
                rest = [task for task in tasks if number or task.work.digest not in taken]
                taken |= {task.work.digest for task in rest}
                rest = [replace(task, policy=policies[task.work.digest]) for task in rest]
                mine[number] = pack((state.source.machine_of(task.work), task) for task in rest)
        return blocks

    def request(self, source: Source, number: int, pending: Path) -> None:
        """Write the blocks of a round's missing work, and the list of their markers to *pending*."""
        blocks = self.blocks([self.state(source)])[source.study.name][number]
        write_pending(pending, write_blocks(blocks, self.results / "blocks"))


@functools.cache
def opened(results: Path | None) -> Project:
    """Return the project of this process, so that `./study run` and the Snakefile read the configuration only once."""
    return Project(results=results)


def split_names(value: str | int | list[str]) -> list[str]:
    """Convert `a,b` or [a, b] to a list without duplicates; Snakemake's option --config makes a number of a name like 2026."""
    names = map(str, value) if isinstance(value, list) else [name.strip() for name in str(value).split(",")]
    return list(dict.fromkeys(name for name in names if name))
