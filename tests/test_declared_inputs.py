"""No rule reads a result that it does not name: each makes the same outputs in a folder that has its inputs alone."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from conftest import Checkout

#: Tuned and verified, so that every rule from measurements to the verdict has something to do.
STUDY = """
title: A tuned study
question: Which broadcast?
machine: thin
sweeps:
  - collective: bcast
    algorithms: [default, linear, chain]
    mappings: [core]
    processes: [2, 4, 6, 8]
    sizes: {from: 1, to: 1024, factor: 4}
    iterations: 3
    warmup: 1
analysis:
  tuning: {mpi: [openmpi]}
"""
#: Not inputs but kept beside them: the store, which has a file for each cell (their digests are in study.json and in the blocks'
#: markers), and what several rules add to (`python -m collstudy made` and the plan).
SHARED = ("cells", "blocks")


def jobs(folder: Path) -> dict[str, tuple[set[str], set[str]]]:
    """Inputs and outputs of each rule's job, as Snakemake keeps them."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path in (folder / ".snakemake" / "metadata").rglob("*"):
        if path.is_file():
            output = base64.b64decode(path.name).decode()
            record = json.loads(path.read_text())
            inputs, outputs = found.setdefault(record["rule"], (set(), set()))
            inputs.update(record["input"])
            outputs.add(output)
    return found


@pytest.mark.long
def test_every_rule_names_what_it_reads(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write("config/studies/tiny.yaml", STUDY)
    done = checkout.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    ran = jobs(checkout.folder)
    expected = {"collect_measurements", "analyse_study", "decide_tuning", "emit_tuning", "keep_tuning", "tell_tuning"}
    assert expected | {"render_report", "give_verdict"} <= set(ran), set(ran)
    for rule in sorted(expected | {"render_report", "give_verdict"}):
        inputs, outputs = ran[rule]
        alone = Checkout(_made(tmp_path / rule))
        for name in ("config/studies/tiny.yaml", "config/config.yaml"):
            alone.write(name, (checkout.folder / name).read_text())
        for name in SHARED:
            shutil.copytree(checkout.folder / "results" / name, alone.folder / "results" / name)
        for name in inputs:
            if not Path(name).is_absolute():
                (alone.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout.folder / name, alone.folder / name)
        again = alone.snakemake("--allowed-rules", rule, "--rerun-triggers", "mtime", "--", *sorted(outputs))
        assert again.returncode == 0, rule + again.stdout + again.stderr
        for name in outputs:
            first, second = checkout.folder / name, alone.folder / name
            if first.suffix in (".csv", ".json", ".txt", ".md"):
                assert second.read_text() == first.read_text(), f"{rule}: {name}"
            else:
                assert second.exists() == first.exists(), f"{rule}: {name}"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
