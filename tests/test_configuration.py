"""Invalid input gives one message that names file, key and allowed values, before anything runs."""

from __future__ import annotations

import re

import pytest
from conftest import TINY, Checkout, csv_rows, must

THIN = """
kind: simulated
label: x
levels:
  - {name: node, count: 2, latency_us: 1.4, bandwidth_gb_s: 11.0}
  - {name: core, count: 2, latency_us: 0.2, bandwidth_gb_s: 8.0}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("machine: thin", "machina: thin",
         ["studies/tiny.yaml, line 4", "unknown key 'machina' in the file (did you mean 'machine'?)", "known:"]),
        ("machine: thin", "machine: thick", ["machines/thick.yaml", "no such file", "thin"]),
        ("[default, linear]", "[default, lineal]", ["sweeps.0.algorithms", "'lineal'", "known:", "linear"]),
        ("[core]", "[cores]", ["sweeps.0.mappings", "'cores'", "socket"]),
        ("[2, 4]", "[2, 49]", ["sweeps.0.processes", "49", "48 cores", "thin"]),
        ("[2, 4]", "{from: 4, to: 2}", ["sweeps.0.processes is empty"]),
        ("[2, 4]", "[]", ["sweeps.0.processes is empty"]),
        ("{from: 1, to: 1024}", "{from: 1024, to: 1}", ["sweeps.0.sizes is empty"]),
        ("title: A tiny", "title: [A tiny", ["tiny.yaml, line", "not valid YAML"]),
        ("collective: bcast", "collective: brodcast", ["sweeps.0.collective", "'brodcast'", "bcast"]),
        ("iterations: 3", "iterations: none", ["tiny.yaml, line 11", "iterations", "integer"]),
        ("sweeps:", "nothing:", ["unknown key 'nothing'", "sweeps"]),
        ("[default, linear]", "[default, default]", ["listed twice"]),
    ],
)  # fmt: skip
def test_wrong_study(checkout: Checkout, old: str, new: str, expected: list[str]) -> None:
    assert old in TINY
    checkout.write("config/studies/tiny.yaml", TINY.replace(old, new))
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    for text in expected:
        assert text in done.stderr
    assert not (checkout.folder / "results").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: simulated", "kind: imagined", ["kind is 'imagined'", "known:", "simulated"]),
        ("latency_us: 0.2", "latency_us: 2.0", ["latency_us of level node is smaller than that of core"]),
        ("name: core", "name: socket", ["the last (innermost) of the levels must be core"]),
        (", latency_us: 1.4", "", ["level node needs latency_us"]),
    ],
)
def test_wrong_machine(checkout: Checkout, old: str, new: str, expected: list[str]) -> None:
    assert old in THIN
    checkout.write("config/machines/thin.yaml", THIN.replace(old, new))
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2
    for text in [*expected, "config/machines/thin.yaml"]:
        assert text in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sampling: {}\n", "sampling selects points that could change a decision and therefore needs analysis: {tuning: {}}"),
        ("sampling: {rounds: 0}\nanalysis: {tuning: {}}\n", "tiny.yaml, line 13: sampling.rounds"),
        ("sampling: {first: 1}\nanalysis: {tuning: {}}\n",
         "line 13: unknown key 'first' in sampling (did you mean 'first_pct'?); known: budget_node_minutes"),
        (
            "  - {collective: latency, levels: [node], sizes: {from: 1, to: 8}}\nsampling: {}\nanalysis: {tuning: {}}\n",
            "sweeps.1: sampling compares algorithms, but latency has only one; remove this sweep or `sampling`",
        ),
    ],
)  # fmt: skip
def test_wrong_sampling(checkout: Checkout, text: str, expected: str) -> None:
    checkout.write("config/studies/tiny.yaml", TINY + text)
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2 and expected in done.stderr, done.stderr


def test_mapping_needs_its_level(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    checkout.write("config/studies/tiny.yaml", TINY.replace("[core]", "[socket]"))
    done = checkout.collstudy("status", "tiny")
    assert "socket needs level 'socket', which machine thin lacks; known: core, node" in done.stderr


def test_tuning_is_of_one_mpi_library(checkout: Checkout) -> None:
    text = (
        TINY.replace("    warmup: 1", "    warmup: 1\n    mpi: [smpi-openmpi, smpi-mpich]") + "analysis: {tuning: {}}\n"
    )
    checkout.write("config/studies/tiny.yaml", text)
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2
    assert "analysis.tuning: tuning needs one MPI library, the sweeps have smpi-openmpi, smpi-mpich" in done.stderr


def test_unknown_study(checkout: Checkout) -> None:
    done = checkout.collstudy("status", "tinny")
    assert done.returncode == 2
    assert "config/studies/tinny.yaml does not exist (did you mean 'tiny'?); known: " in done.stderr


def test_sizes_by_a_factor(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    checkout.write(
        "config/studies/tiny.yaml", re.sub(r"sizes: {[^}]*}", "sizes: {from: 1, to: 4096, factor: 16}", TINY)
    )
    must(checkout.snakemake("--", "results/tiny/measurements.csv"))
    assert {row["size_bytes"] for row in csv_rows(checkout.folder / "results/tiny/measurements.csv")} == {
        "1",
        "16",
        "256",
        "4096",
    }


def test_a_list_of_sizes(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    checkout.write("config/studies/tiny.yaml", re.sub(r"sizes: {[^}]*}", "sizes: [100, 4, 8, 24]", TINY))
    must(checkout.snakemake("--", "results/tiny/measurements.csv"))
    rows = csv_rows(checkout.folder / "results/tiny/measurements.csv")
    by_cell: dict[str, list[str]] = {}
    for row in rows:
        by_cell.setdefault(row["cell"], []).append(row["size_bytes"])
    assert set(map(tuple, by_cell.values())) == {("4", "8"), ("24",), ("100",)}


def test_companions_run_as_well(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    checkout.write("config/studies/tiny.yaml", TINY + "companions: [twin]\n")
    # Companions may name each other.
    checkout.write("config/studies/twin.yaml", TINY.replace("binomial", "chain") + "companions: [tiny]\n")
    done = checkout.collstudy("status", "tiny")
    assert [line.split(":")[0] for line in done.stdout.splitlines() if "cells" in line] == ["tiny", "twin"], done.stdout
    checkout.write("config/studies/twin.yaml", TINY + "companions: [triplet]\n")
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2 and "twin.yaml, line 13: companions.0: no study 'triplet'; known: " in done.stderr


def test_a_key_of_an_earlier_version_names_its_successor(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    checkout.write("config/studies/tiny.yaml", TINY + "with: [twin]\n")
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2 and "tiny.yaml, line 13: with: the key is now called `companions`" in done.stderr


def test_snakemake_says_the_same_before_anything_runs(checkout: Checkout) -> None:
    checkout.write("config/studies/tiny.yaml", TINY.replace("[core]", "[cores]"))
    done = checkout.snakemake()
    assert done.returncode != 0
    assert "'cores'" in done.stderr
    assert not (checkout.folder / "results").exists()


def test_an_algorithm_a_mapping_and_a_machine_are_edits_of_yaml(checkout: Checkout) -> None:
    folder = checkout.folder / "config"
    (folder / "mappings.yaml").write_text((folder / "mappings.yaml").read_text() + "\nspread: {cycle: [node]}\n")
    extra = "bcast:\n  wide_chain:\n    label: Wide chain\n    simulated: {algorithm: ompi_chain, fanout: 8}\n"
    catalogue = (folder / "algorithms.yaml").read_text()
    (folder / "algorithms.yaml").write_text(catalogue.replace("bcast:\n", extra, 1))
    checkout.write("config/machines/mine.yaml", THIN)
    text = TINY.replace("machine: thin", "machine: mine").replace("[core]", "[spread]").replace("linear", "wide_chain")
    checkout.write("config/studies/tiny.yaml", text)
    done = must(checkout.collstudy("status", "tiny"))
    assert "0 of 4 cells done, 0 failed, 4 remaining" in done.stdout
