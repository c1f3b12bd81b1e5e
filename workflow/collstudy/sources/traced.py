"""Source for applications: each is traced once, and the traces are replayed in the simulator. Both are work (study/traces.py)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.launch import tracefile
from collstudy.launch.openmpi import library
from collstudy.launch.toolchain import simulator_version
from collstudy.launch.trace import program_of
from collstudy.sources.source import Context, Rows, Source
from collstudy.study.catalogue import Catalogue, own_settings
from collstudy.study.cells import Versions, library_text, machine_identity, variable
from collstudy.study.description import Application, ReplayPlan, Study, Traced
from collstudy.study.machines import Machine
from collstudy.study.placement import place, whole_cycle
from collstudy.study.traces import REPLAY_IDENTITY, TRACE_IDENTITY, Replay, Trace
from collstudy.study.words import parameter_text
from collstudy.study.work import Work, content_digest
from collstudy.tuning.rules import placements, read_decisions
from collstudy.tuning.writers import in_library, library_entries, library_rules

#: Name of the replay to which the others are compared.
DEFAULT = "default"
#: Name of the replay with the tuning decisions of another study.
DECIDED = "decided"
#: Increase it when the meaning of the times of collectives in replays changes.
CALLS_VERSION = 1


class TracedSource(Source):
    """Traces of applications, and replays of the traces on simulated machines."""

    described_by = Traced

    def __init__(self, study: Study, context: Context):
        super().__init__(study, context)
        assert isinstance(study.source, Traced)
        self.traced = study.source
        self.applications, self.replay = study.source.applications, study.source.replay
        self.decided_by = self.replay.decisions if self.replay else ""

    @functools.cached_property
    def found(self) -> tuple[list[Trace | Replay], list[dict[str, str]]]:
        """Return all traces and replays, and the applications left out with the reason. Raises StudyError if a program is missing."""
        study, versions = self.study, self.context.versions
        if "openmpi" not in versions.mpi:
            raise StudyError("no Open MPI to run the applications; ./study setup installs one")
        found: list[Trace | Replay] = []
        left_out = []
        for application in self.applications:
            # On a cluster the program may be installed on compute nodes only.
            if study.machine.kind == "local" and program_of(application) is None:
                reason = f"the program of {application.command!r} is not installed"
                if not application.optional:
                    raise StudyError(f"{study.file}: applications.{application.name}: {reason}")
                left_out.append({"name": application.name, "label": application.label, "reason": reason})
                continue
            for number in range(1, self.replay.traces + 1 if self.replay else 2):
                trace = _trace(application, study.machine, versions, number)
                found.append(trace)
                if self.replay:
                    found += _replays(trace, self.replay, self.choice, self.context)
        if not found:
            raise StudyError(
                f"{study.file}: no application can run: "
                + "; ".join(f"{entry['name']}: {entry['reason']}" for entry in left_out)
            )
        return found, left_out

    @functools.cached_property
    def choice(self) -> Decided | None:
        """Return the decisions to replay; None if no study decides, or if it has not yet."""
        plan, context = self.replay, self.context
        return decided(plan, context) if plan and plan.decisions else None

    def work(self) -> list[Work]:
        """Return each trace, followed by its replays."""
        return list(self.found[0])

    def machine_of(self, work: Work) -> Machine:
        """Return the machine of the trace or replay; replays run on simulated machines."""
        assert isinstance(work, Trace | Replay)
        return work.machine

    def needs(self) -> set[str]:
        """Return the required parts: applications, the MPI library that starts them, and the simulator for replays."""
        return {"compiler", "applications", self.study.machine.mpi, *(["simulator"] if self.replay else [])}

    def remarks(self) -> list[str]:
        """Return a line if there are no decisions to replay yet."""
        plan = self.replay
        if not plan or not self.decided_by or self.choice:
            return []
        return [
            f"study {self.study.name}: replays with the decisions of {plan.decisions} are skipped, because {plan.decisions} "
            f"has none yet; run ./study run {plan.decisions} first"
        ]

    def beside(self) -> list[Path]:
        """Return the decisions to replay, and the measurements of their cells, from which the gain is predicted."""
        folder = self.context.results / self.decided_by
        own = [folder / "tuning" / "decisions.csv", folder / "measurements.csv"] if self.decided_by else []
        return super().beside() + own

    def programs(self) -> set[str]:
        """Return this project's applications, the trace library, and, for replays, their program and platform."""
        return {"apps", "trace", *(["replay", "fattree"] if self.replay else [])}

    def describe(self) -> dict[str, Any]:
        """Return the part of study.json about applications: folders of traces and replays, and settings of replays."""
        plan, (found, left_out) = self.replay, self.found
        traces = [job for job in found if isinstance(job, Trace)]
        replay: dict[str, Any] | None = None
        if plan:
            names = [machine.name for machine in plan.machines]
            replay = {"ranks": plan.ranks, "mapping": plan.mapping, "machines": names, "decisions": plan.decisions}
            if plan.decisions:
                machine, cycle = plan.machines[0], self.context.catalogue.mappings[plan.mapping]["cycle"]
                replay["rules"] = self.choice.listed if self.choice else []
                replay["nodes"] = [core.node for core in place(machine, cycle, machine.nodes, plan.ranks, None)]
        return {
            "collectives": {}, "decisions": {},
            "provenance": {
                "suite": "applications", "suite_version": "", "mpi": "openmpi", "mpi_version": library().version,
                "simulator": "SimGrid SMPI" if plan else "", "simulator_version": (simulator_version() or "") if plan else "",
                "oversubscribed": self.study.machine.oversubscribe,
            },
            "cells": content_digest([job.digest for job in found]),
            "applications": [
                _entry([trace for trace in traces if trace.application.name == first.application.name], found)
                for first in traces if first.number == 1
            ],
            "left_out": left_out, "replay": replay,
        }  # fmt: skip

    def files(self) -> dict[str, bytes]:
        """Also return study.json without replays of decisions: a change of these replays does not run the rule that plans them again."""
        found = super().files()
        if not self.replay or not self.decided_by:
            return found
        plain = replace(self.study, source=replace(self.traced, replay=replace(self.replay, decisions="")))
        return found | {"undecided.json": TracedSource(plain, self.context).study_json()}

    def rows(self) -> Rows:
        """Return each trace and replay with its status and its time.

        `collective` is the application; `algorithm` is `traced` or the replay's label; `latency_us` is the run time of the traced
        application, from MPI_Init to MPI_Finalize, or the makespan of the replay.
        """
        rows = Rows()
        for job in self.found[0]:
            record = self.context.read(job)
            trace = job if isinstance(job, Trace) else job.trace
            common = {
                "study": self.study.name, "machine": job.machine.name, "simulated": job.deterministic, "suite": "application",
                "mpi": job.mpi["name"], "collective": trace.application.name, "algorithm": "traced", "parameters": "",
                "mapping": "", "nodes": job.nodes, "processes": job.processes, "cell": job.digest[:16],
            }  # fmt: skip
            if isinstance(job, Replay):
                common |= {
                    "algorithm": job.variant,
                    "parameters": f"machine={job.machine.name}",
                    "mapping": job.mapping,
                }
            status, reason = record.status()
            rows.cells.append({**common, "status": status, "reason": reason, "launches": len(record.launches)})
            rows.measurements += [
                {**common, "launch": trace.number, **launch["samples"][0]} for launch in record.launches
            ]
        return rows


def _entry(traces: list[Trace], found: list[Trace | Replay]) -> dict[str, Any]:
    """Describe an application with its first trace; `further` has the others."""
    application = traces[0].application
    first, *further = (
        {
            "trace": trace.folder_text,
            "replays": [
                {
                    "label": job.variant, "machine": job.machine.name, "machine_label": job.machine.label,
                    "mapping": job.mapping, "algorithms": job.algorithms, "folder": job.folder_text,
                    "tree": job.machine.simulation.get("fat_tree"),
                }
                for job in found
                if isinstance(job, Replay) and job.trace.digest == trace.digest
            ],
        }
        for trace in traces
    )  # fmt: skip
    return {
        "name": application.name, "label": application.label, "description": application.description,
        "command": application.command, "ranks": application.ranks, **first, "further": further,
    }  # fmt: skip


def _trace(application: Application, machine: Machine, versions: Versions, number: int) -> Trace:
    program = program_of(application)
    identity = {
        "identity_version": TRACE_IDENTITY,
        "trace_version": tracefile.TABLE_VERSION,
        "machine": machine_identity(machine, versions.host) | {"oversubscribe": machine.oversubscribe},
        "mpi": versions.mpi["openmpi"],
        "name": application.name,
        "command": application.command,
        "prepare": application.prepare,
        "ranks": application.ranks,
        # The program determines the MPI calls, so a changed program needs a new trace.
        "program": file_digest(program) if program else None,
    } | ({"number": number} if number > 1 else {})
    return Trace(application, machine, identity, number)


def chosen_algorithms(catalogue: Catalogue, algorithms: dict[str, str]) -> dict[str, str]:
    """Return variables of the collectives library that make a replay use *algorithms*.

    Other collectives use Open MPI's default: that of the collectives library if it has one, otherwise SimGrid's copy of the tables.
    """
    environment = {"COLL_BASE": "ompi"}
    for collective, entries in catalogue.algorithms.items():
        if own := own_settings(entries[algorithms.get(collective, "default")]):
            environment[variable(collective)] = library_text(own)
    return environment


@dataclass(frozen=True)
class Decided:
    """Tuning decisions of a study as rules of the collectives library, the collectives that have such rules, and the rules as in
    study.json.
    """

    rules: str
    collectives: tuple[str, ...]
    listed: list[dict[str, Any]]


def decided(plan: ReplayPlan, context: Context) -> Decided | None:
    """Return the decisions of the plan's study for its mapping and machine; None if that study has none yet."""
    catalogue = context.catalogue
    try:
        rows = read_decisions(context.results / plan.decisions / "tuning" / "decisions.csv")
    except StudyError:
        return None
    chosen = [row for row in rows if row.mapping == plan.mapping]
    # As for a program that is tuned, because the sizes of the cells are typical ones of the programs' classes.
    found = [in_library(catalogue, placement) for placement in placements(chosen, of_program=True)]
    if not found:
        return None
    rules, listed = "", []
    for one in found:
        shapes = {name: one.used[name].items() for name in one.tables}
        rules += library_rules(one, catalogue, [], shapes, "ompi_default")
        listed += [
            {"operation": shape.collective, "nodes": shape.nodes, "per_node": shape.per_node, "ranks": shape.ranks}
            | {"from_bytes": rule.size, "algorithm": rule.algorithm, "parameters": parameter_text(rule.parameters)}
            for shape, rule, _ in library_entries(one, shapes)
        ]
    names = tuple(sorted({name for one in found for name in one.tables}))
    # If no rule applies, as for another rank count, use the default of a replay without decisions.
    for name in names:
        if own := own_settings(catalogue.algorithms[name]["default"]):
            rules += f"{name} * * * -> {library_text(own)}\n"
    return Decided(rules if names else "", names, listed)


def _replays(trace: Trace, plan: ReplayPlan, choice: Decided | None, context: Context) -> Iterator[Replay]:
    catalogue, versions = context.catalogue, context.versions
    tried: list[dict[str, Any]] = [{"label": DEFAULT}]
    tried += [
        entry
        for entry in plan.alternatives
        if trace.application.name in entry.get("applications", [trace.application.name])
    ]
    if choice:
        tried.append({"label": DECIDED})
    for number, machine in enumerate(plan.machines):
        # Alternatives are tried on the first machine only; the other machines show the effect of another network.
        for entry in tried if number == 0 else tried[:1]:
            mapping = entry.get("mapping", plan.mapping)
            algorithms = entry.get("algorithms", {})
            environment = chosen_algorithms(catalogue, algorithms)
            rules = ""
            if choice and entry["label"] == DECIDED:
                rules = choice.rules
                environment = {k: v for k, v in environment.items() if k not in map(variable, choice.collectives)}
            cycle = whole_cycle(machine.levels, catalogue.mappings[mapping]["cycle"])
            identity = {
                "identity_version": REPLAY_IDENTITY, "trace": trace.digest, "machine": machine_identity(machine, {}),
                "simulator": simulator_version(), "library_version": versions.library, "ranks": plan.ranks,
                "cycle": cycle, "environment": environment,
            }  # fmt: skip
            if "fat_tree" not in machine.simulation:
                identity["calls_version"] = CALLS_VERSION
            if rules:
                identity["rules"] = rules
            label = entry["label"]
            yield Replay(
                trace, machine, label, plan.ranks, mapping, cycle, algorithms, environment, identity, rules,
            )  # fmt: skip
