"""Invalid input gives one message that names file, key and allowed values, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.calibration.costs import FORWARD, LONG, SHORT
from collstudy.study.config import Configuration
from conftest import ROOT, TINY, Checkout, must
from made_runs import measured

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
        ("linear]", "linaer]", ["no bcast algorithm 'linaer' in config/algorithms.yaml (did you mean 'linear'?); known: "]),
    ],
)  # fmt: skip
def test_wrong_study(checkout: Checkout, old: str, new: str, expected: list[str]) -> None:
    """What is refused, and in which words, is in test_strict_input.py."""
    assert old in TINY
    checkout.write("config/studies/tiny.yaml", TINY.replace(old, new))
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    for text in expected:
        assert text in done.stderr
    assert not (checkout.folder / "results").exists()


def test_unknown_study(checkout: Checkout) -> None:
    done = checkout.collstudy("status", "tinny")
    assert done.returncode == 2
    assert "config/studies/tinny.yaml does not exist (did you mean 'tiny'?); known: " in done.stderr


def test_the_machines_of_the_checkout_are_known_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.yaml").write_text(TINY.replace("machine: thin", "machine: tihn"))
    with pytest.raises(
        StudyError, match=r"tihn.yaml: no such file \(did you mean 'thin'\?\); known: .*csews, .*thin, "
    ):
        Configuration(tmp_path).study("tiny")


def test_a_limit_that_is_no_number_is_refused(checkout: Checkout) -> None:
    """Every number of node-hours would be below nan."""
    checkout.write("config/studies/tiny.yaml", TINY)
    for limit in ("nan", "many"):
        done = checkout.snakemake("-n", "--config", f"max_node_hours={limit}")
        assert done.returncode != 0 and f"max_node_hours is {limit}, not a number" in done.stdout + done.stderr


def test_a_missing_file_of_a_fixed_name_has_no_other_name(checkout: Checkout) -> None:
    (checkout.folder / "config" / "config.yaml").unlink()
    done = checkout.collstudy("status")
    assert done.returncode == 2 and done.stderr == "error: config/config.yaml: no such file\n"


def test_a_misspelt_parameter_of_a_calibration_is_an_error_of_the_machine(checkout: Checkout) -> None:
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text().replace("send_1: ", "send_one: "))
    done = checkout.collstudy("status", "tiny")
    assert done.returncode == 2
    assert "unknown key 'send_one' in calibration.start (did you mean 'send_1'?); known: " in done.stderr


def test_the_schema_has_the_parameters_of_a_calibration() -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/machine.schema.yaml").read_text())
    names = schema["properties"]["calibration"]["properties"]["start"]["propertyNames"]["enum"]
    assert sorted(names) == sorted(SHORT | LONG | FORWARD)


def test_a_label_has_no_comma() -> None:
    """Labels are parts of lists in sentences."""
    catalogue = Configuration(ROOT / "config").catalogue
    labels = [one["label"] for of in catalogue.algorithms.values() for one in of.values() if isinstance(one, dict)]
    assert labels and not [label for label in labels if "," in label]


def test_sizes_by_a_factor(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    rows = measured(checkout, "tiny", re.sub(r"sizes: {[^}]*}", "sizes: {from: 1, to: 4096, factor: 16}", TINY))
    assert {row["size_bytes"] for row in rows} == {"1", "16", "256", "4096"}


def test_a_list_of_sizes(checkout: Checkout) -> None:
    checkout.write("config/machines/thin.yaml", THIN)
    by_cell: dict[str, list[str]] = {}
    for row in measured(checkout, "tiny", re.sub(r"sizes: {[^}]*}", "sizes: [100, 4, 8, 24]", TINY)):
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
