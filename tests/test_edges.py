"""Placement and message trees reach the analysis as used by the launchers; its rules read only files that they declare."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from collstudy.base.files import to_csv
from collstudy.sources import edges
from collstudy.sources.source import Context
from collstudy.sources.swept import SweptSource
from collstudy.study import names
from collstudy.study.cells import expand
from collstudy.study.exchanges import EXCHANGES, messages, steps_of
from collstudy.study.patterns import PATTERNS
from conftest import ROOT, Checkout, finish, must
from made_cells import VERSIONS

EXAMPLE = ROOT / "workflow" / "analysis" / "inst" / "extdata" / "example"
ANALYSE = ROOT / "workflow" / "scripts" / "analyse.R"
STUDY = """\
title: Placed
question: Where?
machine: xeon-edr
sweeps:
  - collective: bcast
    algorithms: [linear, chain]
    mappings: [{mapping}]
    nodes: [2, 3]
    {count}
    sizes: {{from: 8, to: 16}}
"""


def rscript(*arguments: str | Path) -> str:
    """Return the output of an R script."""
    environment = {**os.environ, "R_LIBS": str(ROOT / ".study" / "R")}
    done = must(finish(["Rscript", *map(str, arguments)], env=environment))
    return done.stdout


@pytest.mark.parametrize(
    ("mapping", "count"),
    [("shuffled", "processes: [6, 7]"), ("block", "processes_per_node: [2, 3]"), ("random", "processes_per_node: [3]")],
)
def test_hops_are_those_of_the_placement_that_is_launched(
    checkout: Checkout, tmp_path: Path, mapping: str, count: str
) -> None:
    checkout.write("config/studies/placed.yaml", STUDY.format(mapping=mapping, count=count))
    configuration = checkout.configuration
    study = configuration.study("placed")
    cells = expand(study, configuration.catalogue, VERSIONS)
    edges.write(study, edges.of_cells(cells), configuration.catalogue, tmp_path)
    context = Context(configuration, tmp_path)
    context.versions = VERSIONS
    (tmp_path / "study.json").write_bytes(SweptSource(study, context).study_json())
    with open(tmp_path / "measurements.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        columns = "collective,algorithm,parameters,mpi,mapping,nodes,processes,size_bytes,launch,latency_us"
        writer.writerow(columns.split(","))
        for cell in cells:
            row = ["bcast", cell.algorithm, "", cell.mpi["name"], cell.mapping, cell.nodes, cell.processes, 8, 1, 1.0]
            writer.writerow(row)
    script = tmp_path / "hops.R"
    script.write_text(
        "r <- collanalysis::read_results(commandArgs(TRUE)[1]); n <- asNamespace('collanalysis')\n"
        "for (i in seq_len(nrow(r$medians))) { m <- r$medians[i, ]\n"
        "  h <- n$count_hops(r$study, 'bcast', m$algorithm, m$mapping, m$processes)\n"
        "  nodes <- r$study$places$nodes[r$study$places$mapping == m$mapping & r$study$places$processes == m$processes]\n"
        "  cat(m$algorithm, nodes[1], m$processes, h[, 'messages_node'], '\\n') }\n"
    )
    found = {tuple(line.split()[:3]): int(line.split()[3]) for line in rscript(script, tmp_path).splitlines()}
    for cell in cells:
        node = [core.node for core in cell.place(study.machine)]
        tree = PATTERNS[cell.algorithm](cell.processes, {})
        crossing = sum(node[sender] != node[receiver] for sender, receiver in tree)
        assert found[cell.algorithm, str(cell.nodes), str(cell.processes)] == crossing, cell.label
    assert len(found) == len(cells)


def test_counts_share_what_they_have_in_common_and_nothing_else(checkout: Checkout) -> None:
    checkout.write("config/studies/placed.yaml", STUDY.format(mapping="block", count="processes: [4, 5, 6, 9]"))
    configuration = checkout.configuration
    study = configuration.study("placed")
    launched = edges.of_cells(expand(study, configuration.catalogue, VERSIONS))
    rows = edges.edges(launched, configuration.catalogue)
    for algorithm in ("linear", "chain"):
        for count in (4, 5, 6, 9):
            tree = {
                (row["parent"], row["rank"])
                for row in rows
                if row["algorithm"] == algorithm and row["parameters"] == "" and row["collective"] == "bcast"
                and row["from_processes"] <= count <= row["to_processes"] and row["rank"] < count
            }  # fmt: skip
            assert tree == PATTERNS[algorithm](count, {})
    linear = [row for row in rows if (row["algorithm"], row["collective"]) == ("linear", "bcast")]
    assert len(linear) == 8


def test_analysis_reads_nothing_but_the_inputs_of_its_rule(tmp_path: Path) -> None:
    rules = {name: (ROOT / "workflow" / "rules" / f"{name}.smk").read_text() for name in ("analyse", "measure")}
    declared = rules["analyse"].partition("output:")[0]
    measured = re.search(r"for name in \((.*)\)\n}", rules["measure"]).group(1)
    assert "**MEASURED," in declared and '"study.json"' in declared
    inputs = ["study.json", *(f"{name}.csv" for name in re.findall(r'"(\w+)"', measured))]
    assert {"measurements.csv", "cells.csv", "ranks.csv", "edges.csv", "exchanges.csv"} < set(inputs)
    made = []
    for name in ("alone", "crowded"):
        folder = tmp_path / name
        folder.mkdir()
        for file in inputs:
            shutil.copy(EXAMPLE / file, folder)
        if name == "crowded":
            # Left by an earlier run; must not be used.
            for file in ("models/bcast-comparison.csv", "models/comparison.csv", "models/selection.csv"):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_text("no,table\n")
        rscript(ANALYSE, "study", folder)
        made.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.csv")})
    assert made[0] == made[1]
    assert {Path("sentences.csv"), Path("figures/index.csv"), Path("models/comparison.csv")} <= set(made[0])


def test_example_study_has_the_tables_that_python_writes(tmp_path: Path) -> None:
    for path in EXAMPLE.iterdir():
        shutil.copy(path, tmp_path)
    tables = ("ranks.csv", "edges.csv", "exchanges.csv")
    for name in tables:
        (tmp_path / name).unlink()
    script = ROOT / "workflow" / "analysis" / "tests" / "testthat" / "launched.py"
    subprocess.run(["python", script, tmp_path], check=True)
    for name in tables:
        assert (tmp_path / name).read_text() == (EXAMPLE / name).read_text()


def test_the_analysis_finds_the_same_messages_in_a_step(tmp_path: Path) -> None:
    launched = [edges.Launched("openmpi", *of, (), "core", (), 1, p) for of in EXCHANGES for p in (6, 12, 16)]
    rows = edges.exchanges(launched)
    (tmp_path / "exchanges.csv").write_bytes(to_csv(edges.EXCHANGE_COLUMNS, rows))
    script = tmp_path / "messages.R"
    script.write_text(
        "steps <- do.call(rbind, collanalysis:::read_exchanges(commandArgs(TRUE)[1]))\n"
        "for (i in which(steps$partner != 'call')) {\n"
        "  step <- steps[i, ]\n"
        "  ends <- collanalysis:::ends_of(step, step$processes)\n"
        "  cat(step$collective, step$algorithm, step$processes, step$step, paste(ends$from, ends$to), sep = ',')\n"
        "  cat('\\n')\n"
        "}\n"
    )
    found = {tuple(line.split(",")[:4]): sorted(line.split(",")[4:]) for line in rscript(script, tmp_path).splitlines()}
    expected = {
        tuple(str(row[name]) for name in ("collective", "algorithm", "processes", "step")):
            sorted(f"{one} {other}" for one, other in messages(step, row["processes"]))
        for row in rows
        for step in [steps_of(row["collective"], row["algorithm"], {}, row["processes"])[row["step"] - 1]]
        if step.partner != "call"
    }  # fmt: skip
    assert found == expected and len(found) > 100


@pytest.mark.parametrize("kind", ["POINT_TO_POINT", "APPLICATIONS", "ROOTED"])
def test_the_analysis_knows_the_same_kinds_of_collectives(kind: str) -> None:
    assert tuple(rscript("-e", f"cat(collanalysis:::{kind.lower()})").split()) == getattr(names, kind)


def test_the_analysis_has_the_same_labels_of_mpi_libraries() -> None:
    said = rscript("-e", 'l <- collanalysis::mpi_labels(); cat(paste0(names(l), "=", l), sep = "\\n")').splitlines()
    assert names.LIBRARIES.items() <= dict(line.split("=") for line in said).items()


@pytest.mark.long
def test_exports_are_up_to_date_and_the_examples_of_their_manual_pages_run(tmp_path: Path) -> None:
    package = tmp_path / "analysis"
    shutil.copytree(ROOT / "workflow" / "analysis", package)
    if rscript("-e", "cat(nzchar(system.file(package = 'roxygen2')))") != "TRUE":
        pytest.skip("roxygen2 is not installed (envs/debian.txt)")
    rscript("-e", f"roxygen2::roxygenise('{package}')")
    assert (package / "NAMESPACE").read_text() == (ROOT / "workflow" / "analysis" / "NAMESPACE").read_text()
    # An exported function without an example is an error, too.
    script = tmp_path / "examples.R"
    script.write_text(
        "library(collanalysis)\n"
        "for (page in list.files(commandArgs(TRUE)[1], full.names = TRUE)) {\n"
        "  if (grepl('-package', page)) next\n"
        "  code <- tempfile(); tools::Rd2ex(page, code)\n"
        "  if (!file.exists(code)) stop(page, ' has no example')\n"
        "  source(code, local = new.env())\n"
        "}\n"
    )
    rscript(script, package / "man")
