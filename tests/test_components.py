"""Components of Open MPI as algorithms, and parameters as dimensions: from a study's file to what the library really ran."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch.openmpi import emulates_nodes, library
from collstudy.launch.toolchain import coll_components
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS, reads_version_2
from collstudy.tuning import check, rules, writers
from collstudy.tuning.findings import Finding, complain
from collstudy.tuning.library import library_of
from collstudy.tuning.rules import Decision, placements
from conftest import ROOT, Checkout, csv_rows, must

CATALOGUE = Configuration(ROOT / "config").catalogue

ARMS = """title: Components
question: Which one?
chapter: components
machine: this-machine
launches: {min: 1, max: 1}
sweeps:
  - collective: bcast
    algorithms: [default, tuned, sm, adapt, han, xhc, ucc, linear]
    mappings: [core]
    processes: [2]
    sizes: {from: 1, to: 64}
    iterations: 3
    warmup: 1
"""
TUNED = """title: Requests
question: How many?
machine: this-machine
launches: {min: 3, max: 3}
sweeps:
  - collective: alltoall
    algorithms: [default, {name: linear_sync, max_requests: [1, 3]}]
    mappings: [core]
    processes: [2]
    sizes: {from: 1, to: 64}
    iterations: 3
    warmup: 1
analysis: {tuning: {}}
"""


def measured(checkout: Checkout, name: str, text: str) -> tuple[dict[str, dict[str, str]], str]:
    """Measure a study; return its cells by algorithm, and the output."""
    checkout.write(f"config/studies/{name}.yaml", text)
    checkout.oversubscribe()
    target = f"results/{name}/measurements.csv"
    done = must(checkout.snakemake("--config", f"studies={name}", "--cores", "2", "--", target))
    return {row["algorithm"]: row for row in csv_rows(checkout.folder / f"results/{name}/cells.csv")}, done.stderr


def test_the_component_that_was_asked_for_runs_and_is_proved(checkout: Checkout) -> None:
    assert {"tuned", "sm", "adapt", "han"} <= coll_components()
    lacking = sorted({"xhc", "ucc"} - coll_components())
    cells, said = measured(checkout, "arms", ARMS)
    shown = {name: (cell["status"], cell["component"]) for name, cell in cells.items() if name not in ("xhc", "ucc")}
    assert shown == {
        "default": ("measured", "tuned"), "tuned": ("measured", "tuned"), "sm": ("measured", "sm"),
        "adapt": ("measured", "adapt"), "linear": ("measured", "tuned"),
        # All ranks are on one node, so coll/han declines, whatever its priority.
        "han": ("unproved", "tuned"),
    }  # fmt: skip
    assert cells["han"]["reason"] == "component tuned ran the bcast, not han"
    assert not set(lacking) & set(cells)
    version = library().version
    assert f"study arms: Open MPI {version} has no component {', '.join(lacking)}: left out" in said.splitlines()


def test_on_emulated_nodes_han_runs(checkout: Checkout) -> None:
    if not emulates_nodes(library()):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    machine = "kind: local\nlabel: two\nemulated_nodes: 2\noversubscribe: true\n"
    checkout.write("config/machines/two.yaml", machine)
    text = ARMS.replace("machine: this-machine", "machine: two").replace("processes: [2]", "processes_per_node: [2]")
    cells, _ = measured(checkout, "arms", text.replace("tuned, sm, adapt, han, xhc, ucc, linear", "tuned, han"))
    assert {name: (cell["status"], cell["component"], cell["nodes"]) for name, cell in cells.items()} == {
        "default": ("measured", "han", "2"), "tuned": ("measured", "tuned", "2"), "han": ("measured", "han", "2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("launches:", "analysis: {tuning: {}}\nlaunches:", "a tuning file chooses algorithms of coll/tuned, not components; move tuned,"),
        ("tuned, sm, adapt, han, xhc, ucc, linear", "tuned, linear", "needs sweeps with two components of Open MPI"),
        ("linear]", "{name: scatter_allgather, segment_bytes: [0, 8]}]", "bcast scatter_allgather ignores segment_bytes"),
        ("linear]", "{name: tuned, segment_bytes: [0, 8]}]", "bcast tuned ignores segment_bytes"),
        ("linear]", "{name: chain, fanout: [2, 2]}]", "fanout"),
        ("linear]", "{name: chain, fanout: []}]", "fanout"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(checkout: Checkout, old: str, new: str, why: str) -> None:
    checkout.write("config/studies/arms.yaml", ARMS.replace(old, new, 1))
    with pytest.raises(StudyError, match=re.escape(why)):
        checkout.configuration.study("arms")


def test_emulated_nodes_are_for_open_mpi_on_a_local_machine(checkout: Checkout) -> None:
    checkout.write("config/machines/two.yaml", "kind: local\nlabel: two\nemulated_nodes: 2\n")
    text = ARMS.replace("machine: this-machine", "machine: two")
    checkout.write("config/studies/arms.yaml", text.replace("linear]", "linear]\n    mpi: [mpich]"))
    configuration = checkout.configuration
    with pytest.raises(StudyError, match="'mpich' does not run on emulated nodes"):
        configuration.study("arms")
    checkout.write(
        "config/machines/two.yaml", "kind: slurm\nlabel: two\nemulated_nodes: 2\nlevels: [{name: core, count: 1}]\n"
    )
    with pytest.raises(StudyError, match="emulated_nodes is only for machines of kind local"):
        configuration.study("arms")


def test_lists_of_parameters_are_all_their_combinations(checkout: Checkout) -> None:
    listed = "{name: chain, fanout: [2, 4], segment_bytes: [0, 8192]}, {name: knomial, radix: [2, 8]}]"
    checkout.write("config/studies/arms.yaml", ARMS.replace("linear]", listed))
    study = checkout.configuration.study("arms")
    assert [choice.parameter_text for choice in study.sweeps[0].algorithms if choice.parameters] == [
        "fanout=2;segment_bytes=0", "fanout=2;segment_bytes=8192", "fanout=4;segment_bytes=0",
        "fanout=4;segment_bytes=8192", "radix=2", "radix=8",
    ]  # fmt: skip


def test_rounds_sample_every_value(checkout: Checkout) -> None:
    text = TUNED.replace("analysis:", "sampling: {rounds: 2}\nanalysis:")
    checkout.write("config/studies/requests.yaml", text)
    source = checkout.project.source("requests")
    grid = source.files()["sampling/grid.csv"].decode()
    assert {row["parameters"] for row in csv.DictReader(grid.splitlines())} == {"", "max_requests=1", "max_requests=3"}


def decided(collective: str, chosen: dict[int, tuple[str, tuple[tuple[str, int], ...]]]) -> rules.Placement:
    """Return the placement for decisions by message size, for 4 processes."""
    return placements([Decision(collective, "core", 1, 4, size, *choice, 5.0) for size, choice in chosen.items()])[0]


def checked(tmp_path: Path, placement: rules.Placement, text: str) -> list[Finding]:
    """Check how the installed Open MPI uses a file for the placement."""
    path = tmp_path / "some.rules"
    path.write_text(text)
    return check.check_placement(placement, path, CATALOGUE, library_of(library(), CATALOGUE, NUMBERS))


LIMITED = {8: ("linear_sync", (("max_requests", 1),)), 64: ("linear_sync", (("max_requests", 3),))}


def test_requests_are_in_version_2() -> None:
    placement = decided("alltoall", LIMITED)
    assert (rules.own_version(placement, "5.0.11"), rules.own_version(placement, "5.0.6")) == (2, 1)
    assert rules.own_version(placement, "4.1.4") == 1
    # Version 1 cannot express it: there the library decides.
    first = rules.as_openmpi_reads(placement, CATALOGUE, 1)
    assert {rule.algorithm for own in first.tables["alltoall"].values() for rule in own} == {"default"}


def test_the_library_is_seen_to_limit_requests(tmp_path: Path) -> None:
    if not reads_version_2(library().version):
        pytest.skip(f"Open MPI {library().version} does not read version 2 of rules files")
    placement = decided("alltoall", LIMITED)
    text = writers.openmpi_rules(placement, CATALOGUE, [], NUMBERS, 2)
    findings = checked(tmp_path, placement, text)
    complain(findings)
    assert any(one.tells_apart for one in findings if one.rule == "linear_sync:max_requests=3")
    # The same file with another limit: the messages are the same, the call is not.
    wrong = re.sub(r"^(\d+ 4 0 0) 3", r"\1 2", text, flags=re.MULTILINE)
    assert wrong != text
    with pytest.raises(StudyError, match="linear_sync:max_requests=3"):
        complain(checked(tmp_path, placement, wrong))


def test_one_radix_is_in_the_file_and_the_library_follows_it(tmp_path: Path) -> None:
    chosen = {
        8: ("knomial", (("radix", 2),)),
        64: ("linear", ()),
        512: ("knomial", (("radix", 2),)),
        4096: ("knomial", (("radix", 3),)),
    }
    placement = rules.as_openmpi_reads(decided("bcast", chosen), CATALOGUE)
    assert rules.radix_of(placement) == 2
    kept = [(rule.size, rule.algorithm) for rule in placement.tables["bcast"][4]]
    assert kept == [(0, "knomial"), (64, "linear"), (512, "knomial"), (4096, "default")]
    text = writers.openmpi_rules(placement, CATALOGUE, [], NUMBERS)
    assert "# mca coll_tuned_bcast_algorithm_knomial_radix 2" in text.splitlines()
    complain(checked(tmp_path, placement, text))
    with pytest.raises(StudyError, match="knomial:radix=2"):
        complain(checked(tmp_path, placement, text.replace("knomial_radix 2", "knomial_radix 4")))


@pytest.mark.long
def test_a_study_of_requests_ends_with_a_file_that_has_them(checkout: Checkout) -> None:
    cells, _ = measured(checkout, "requests", TUNED)
    assert set(cells) == {"default", "linear_sync"}
    folder = checkout.folder / "results" / "requests"
    assert {row["parameters"] for row in csv_rows(folder / "cells.csv")} == {"", "max_requests=1", "max_requests=3"}
    target = "results/requests/tuning/README.md"
    must(checkout.snakemake("--config", "studies=requests", "--cores", "2", "--", target))
    table = csv_rows(folder / "tuning" / "decisions.csv")
    assert table and {row["algorithm"] for row in table} <= {"default", "linear_sync"}
    assert {row["parameters"] for row in table if row["algorithm"] == "linear_sync"} <= {
        "max_requests=1",
        "max_requests=3",
    }
    assert all(row["agrees"] == "TRUE" for row in csv_rows(folder / "tuning" / "check.csv"))
