"""The command new: a study of one's own to begin with, and the text of its chapter."""

from __future__ import annotations

import argparse
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import write_atomically
from collstudy.cli.commands import add
from collstudy.project.studies import Project
from collstudy.study.names import check_name

STUDY = """\
# config/README.md explains every key. `./study run NAME -- --dry-run` says how many cells this is, and how long it takes.
title: Broadcast on this machine
question: >-
  Which broadcast algorithm is the fastest between the cores of this machine?
# A file of config/machines/; `./study probe` drafts one of this computer or cluster.
machine: this-machine
# Launches of each cell: at least and at most so many, until the 95 % interval of the median is narrower than this.
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
# Decide by size and number of processes, write tuning files, and verify them on fresh launches:
# analysis:
#   tuning: {}
"""
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

In a code block as the one below, figure("bcast-sizes") and data_table("bcast-winners", columns = c("processes", "winner")).
-->

What I wanted to know, and what I found. `r see("bcast-sizes")` shows the latencies.

```{r}
#| results: asis
figure("bcast-sizes")
```
"""


def add_commands(commands: Any) -> None:
    """Add it."""
    drafting = add(commands, "new", new, "a study of your own to begin with: its YAML, and the text of its chapter")
    drafting.add_argument("name")


def new(arguments: argparse.Namespace) -> None:
    """Write config/studies/NAME.yaml and NAME.qmd with comments; files that are there are left alone."""
    name = arguments.name
    check_name(name, "a study")
    project = Project(results=arguments.results)
    folder = project.configuration.folder / "studies"
    files = {folder / f"{name}.yaml": STUDY, folder / f"{name}.qmd": TEXT}
    there = [str(path) for path in files if path.exists()]
    if there:
        raise StudyError(f"{' and '.join(there)}: there already; choose another name")
    for path, text in files.items():
        write_atomically(path, text.replace("NAME", name).encode())
        print(path)
    project.source(name)  # what is drafted can be read
    print(f"edit them, then: ./study run {name} -- --dry-run; ./study run {name}")
