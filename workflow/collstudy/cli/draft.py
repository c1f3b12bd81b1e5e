"""The command new: draft a study and the text of its chapter, or a study of the cells that an application uses."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.base.files import read_csv, write_atomically
from collstudy.cli.commands import add, positive
from collstudy.project.studies import Project
from collstudy.sources.account import sweeps_of, whole_turns, worth_measuring
from collstudy.study.description import Application
from collstudy.study.machines import Machine
from collstudy.study.names import check_name

STUDY = """\
# config/README.md explains every key. `./study run NAME -- --dry-run` shows the number of cells and the time they take.
title: Broadcast on this machine
question: >-
  Which broadcast algorithm is the fastest between the cores of this machine?
# A file of config/machines/; `./study probe` drafts one of this computer or cluster.
machine: this-machine
# Launches of each cell: at least min, at most max, until the confidence interval of the median is narrower than ci_width_pct.
launches: {min: 5, max: 10, ci_width_pct: 5}
# Each sweep is a grid: every algorithm with every mapping, number of processes and message size.
sweeps:
  - collective: bcast
    # Of config/algorithms.yaml; `default` is what the library chooses by itself.
    algorithms: [default, linear, chain, binomial]
    # Of config/mappings.yaml.
    mappings: [core]
    # A list, or {from, to, step | factor}; `cores`: as many as there are.
    processes: {from: 2, to: cores, factor: 2}
    # Bytes; each doubles the one before.
    sizes: {from: 1, to: 1048576}
    iterations: 100
    warmup: 10
# Decide by size and number of processes, write tuning files, and verify them with fresh launches:
# analysis:
#   tuning: {}
"""
#: Template for a study of the cells that an application uses.
CELLS = """\
# Drafted from what APPLICATION calls, results/STUDY/tables/TABLE.
title: "Collectives of APPLICATION"
question: >-
  Which algorithms should be used for the collectives of APPLICATION, at its numbers of ranks and message sizes?
machine: MACHINE
LAUNCHESSAMPLING# The collectives with the largest possible gain first. Ranks are on the first cores; those of a replay's
# communicators on as many nodes as there, if each has as many of them.
sweeps:
SWEEPS# Decide by size and number of processes, write tuning files, and verify them with fresh launches.
analysis:
  tuning: {}
chapter: tuning
"""
#: How a simulation calls each size: with ranks that start together (which they do not after a library's barrier), or with ranks that
#: arrive like those of the program, in each call at other times.
TOGETHER, APART = {"iterations": 3, "warmup": 1, "barrier": "aligned"}, {"iterations": 10, "warmup": 1}
#: Most messages of all timed calls of a linear all-to-all, of which there are at least two: 65 280 take 7 s to simulate.
MOST_MESSAGES = 100_000
TEXT = """\
---
# below: the generated chapter follows this text. none: this text is the chapter.
generated: below
---

<!--
The text of the study's chapter. Numbers, figures and tables are put in by name, so that they are those of the last run. Names are
in results/NAME/tables/index.csv, models/index.csv and figures/index.csv. What a study does not have is named in the report and in
its log. docs/adding.md (A text of your own) has every function. Within a text, between ` r and `:

  number("answer-collectives", "geometric_mean_pct", collective = "bcast")   a number with its unit
  see("bcast-sizes")                                                         a reference: Figure 3

In a code block like the one below: figure("bcast-sizes") and data_table("bcast-winners", columns = c("processes", "winner")).
-->

What I wanted to know, and what I found. `r see("bcast-sizes")` shows the latencies.

```{r}
#| results: asis
figure("bcast-sizes")
```
"""


def add_commands(commands: Any) -> None:
    """Add the command of this module to the parser."""
    drafting = add(commands, "new", new, "draft a study: its YAML and the text of its chapter")
    drafting.add_argument("name", help="name of the new study")
    drafting.add_argument(
        "--cells-of", metavar="STUDY", help="measure only the collectives that an application of this study calls"
    )
    drafting.add_argument(
        "--application", help="name of the application, if the study has several (default for replays: all)"
    )
    drafting.add_argument(
        "--budget", type=positive, metavar="MINUTES", help="node-minutes for the cells, which are then sampled"
    )


def new(arguments: argparse.Namespace) -> None:
    """Write config/studies/NAME.yaml and NAME.qmd with comments; existing files are not overwritten.

    With --cells-of the study has the collectives, numbers of ranks and message sizes of an application that was traced,
    with all algorithms; it decides, writes tuning files and verifies them.
    """
    name = arguments.name
    check_name(name, "a study")
    for option in ("application", "budget"):
        if getattr(arguments, option) is not None and not arguments.cells_of:
            raise StudyError(f"--{option} needs --cells-of")
    project = Project(results=arguments.results)
    project.configuration.drafted = name
    folder = project.configuration.folder / "studies"
    files = {folder / f"{name}.yaml": STUDY, folder / f"{name}.qmd": TEXT}
    if arguments.cells_of:
        text = cells_of(project, arguments.cells_of, arguments.application, arguments.budget)
        files = {folder / f"{name}.yaml": text}
    there = [str(path) for path in files if path.exists()]
    if there:
        raise StudyError(f"{' and '.join(there)}: already exists; choose another name")
    for path, text in files.items():
        write_atomically(path, text.replace("NAME", name).encode())
        print(path)
    project.source(name)  # raises StudyError if the draft cannot be read
    print(f"edit them, then: ./study run {name} -- --dry-run; ./study run {name}")


def cells_of(project: Project, name: str, application: str | None, budget: float | None) -> str:
    """Return the YAML for a study of a traced application's cells. Raises StudyError if its account is missing or nothing can be gained."""
    source = project.source(name)
    described = {entry.name: entry for entry in source.applications}
    if not described:
        raise StudyError(f"study {name} traces no applications")
    if application is not None:
        check_known(application, described, f"study {name} has no application {application!r}")
    machines = source.replay.machines if source.replay else ()
    timed = [machine for machine in machines if "fat_tree" not in machine.simulation]
    if timed:
        return _cells_of_replays(project, name, timed[0], described, application, budget)
    if application is None and len(described) > 1:
        raise StudyError(f"study {name} has several applications: choose one with --application" + allowed(described))
    label = described[application or next(iter(described))].label
    path = project.folder(name) / "tables" / "account-cells.csv"
    rows = [row for row in read_csv(path) if row["application"] == label]
    if not rows:
        raise StudyError(f"{label} was not analysed yet; ./study run {name} does it (each rank needs its own core)")
    return _study_of_cells(project, label, name, path, rows, source.study.machine, budget)


def _study_of_cells(
    project: Project, label: str, study: str, path: Path, rows: list[dict[str, str]], machine: Machine,
    budget: float | None,
) -> str:  # fmt: skip
    """Return the YAML for the cells in the account's rows."""
    if "typical_bytes" not in rows[0]:
        raise StudyError(f"{path}: written by an earlier version; ./study run {study} writes it again")
    worth = worth_measuring(rows, project.configuration.catalogue, machine.mpi)
    if not worth:
        raise StudyError(f"{path}: {label} calls no collective that can be measured and has algorithms to choose from")
    simulated = machine if machine.kind == "simulated" else None
    sweeps = []
    for collective, gain, algorithms, mine in worth:
        found = sweeps_of(collective, algorithms, mine, project.configuration.catalogue, machine.mpi, simulated)
        sweeps.append(f"  # {collective}: at most {gain:.2g} % of the run time\n")
        sweeps.append(_yaml([_calls(sweep) if simulated else sweep for sweep in found]))
    sampling = (
        f"sampling: {{rounds: 8, first_pct: 10, round_pct: 10, budget_node_minutes: {budget:g}}}\n" if budget else ""
    )
    # A simulated cell gives the same result in each launch.
    launches = "" if simulated else "launches: {min: 5, max: 10, ci_width_pct: 5}\n"
    parts = {
        "APPLICATION": label.replace('"', "'"), "STUDY": study, "TABLE": path.name, "MACHINE": machine.name,
        "LAUNCHES": launches,
    }  # fmt: skip
    text = CELLS
    for key, value in parts.items():
        text = text.replace(key, value)
    return text.replace("SAMPLING", sampling).replace("SWEEPS", "".join(sweeps))


def _cells_of_replays(
    project: Project, study: str, machine: Machine, described: dict[str, Application], application: str | None,
    budget: float | None,
) -> str:  # fmt: skip
    """Return the YAML for a study of the cells of replays: those of one application, or of all together."""
    labels = [entry.label for entry in described.values() if application in (None, entry.name)]
    path = project.folder(study) / "tables" / "gain-cells.csv"
    rows = [row for row in read_csv(path) if row["application"] in labels]
    if not rows:
        raise StudyError(f"{path}: no replays of {' or '.join(labels)}; ./study run {study} makes them")
    return _study_of_cells(
        project, labels[0] if len(labels) == 1 else f"study {study}", study, path, rows, machine, budget
    )


def _calls(sweep: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep with the calls of a simulation."""
    spread = sweep.get("spread_us")
    sweep = sweep | (APART if spread or sweep["collective"] == "barrier" else TOGETHER)
    if isinstance(spread, list):
        sweep["iterations"] = whole_turns(sweep["iterations"], spread)
    if sweep["collective"].startswith("alltoall"):
        ranks = sweep["processes"][0] if "processes" in sweep else sweep["nodes"][0] * sweep["processes_per_node"][0]
        sweep["iterations"] = min(sweep["iterations"], max(2, MOST_MESSAGES // ranks**2))
    return sweep


def _yaml(sweeps: list[dict[str, Any]]) -> str:
    """Format the sweeps of a collective as entries of a YAML list; one that has all keys of an earlier one lists what differs."""
    text, complete, name = "", {}, ""
    for number, sweep in enumerate(sweeps):
        if complete and complete.keys() <= sweep.keys():
            entry = f"<<: *{name}"
            shown = {key: value for key, value in sweep.items() if complete.get(key) != value}
        else:
            complete, name = sweep, sweep["collective"] + (f"_{number + 1}" if number else "")
            entry, shown = f"&{name}", sweep
        text += f"  - {entry}\n"
        for key, value in shown.items():
            text += f"    {key}: {json.dumps(value) if isinstance(value, list | dict) else value}\n".replace('"', "")
    return text
