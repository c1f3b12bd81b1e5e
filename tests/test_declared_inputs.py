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
  tuning: {}
"""
#: Imported, so that checks have something to say, and gathered with the other one.
THEIRS = """
title: Theirs
question: Which broadcast?
machine: orfeo-thin
import:
  files:
    - path: {folder}/bcast_*.csv
      collective: bcast
      columns: {{algorithm: A, mapping: M, processes: P, size_bytes: S, latency_us: L}}
"""
ALL = "title: All\nquestion: Where?\nmachine: all-measured\nchapter: atlas\ngather: [theirs]\n"
ROWS = [
    f"{a},core,{p},{s},{p * s / 7 + len(a)}"
    for a in ("linear", "chain", "default")
    for p in (2, 4, 8)
    for s in (1, 8, 64)
]
#: Not inputs but kept beside them: the store, which has a file for each cell (their digests are in study.json and in the blocks'
#: markers), and what several rules add to (`python -m collstudy made` and the plan).
SHARED = ("cells", "blocks")


def jobs(folder: Path) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Inputs and outputs of each job, as Snakemake keeps them, by its rule and its folder in the results."""
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for path in (folder / ".snakemake" / "metadata").rglob("*"):
        if path.is_file():
            output = base64.b64decode(path.name).decode()
            record = json.loads(path.read_text())
            inputs, outputs = found.setdefault((record["rule"], Path(output).parts[1]), (set(), set()))
            inputs.update(record["input"])
            outputs.add(output)
    return found


RULES = (
    "collect_measurements", "analyse_study", "decide_tuning", "emit_tuning", "keep_tuning", "tell_tuning",
)  # fmt: skip
JOBS = [
    *((rule, "tiny") for rule in RULES), ("analyse_study", "theirs"), ("analyse_study", "all"), ("decide_tuning", "theirs"),
    ("render_report", "report"), ("give_verdict", "complete.txt"),
]  # fmt: skip
WRITTEN = ("config/studies/tiny.yaml", "config/studies/theirs.yaml", "config/studies/all.yaml", "config/config.yaml")


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which everything was made."""
    made = Checkout(_made(tmp_path_factory.mktemp("complete") / "checkout"))
    made.write("theirs/bcast_all.csv", "\n".join(["A,M,P,S,L", *ROWS, ""]))
    texts = (
        STUDY,
        THEIRS.format(folder=made.folder / "theirs"),
        ALL,
        "studies: [tiny, theirs, all]\nresults: results\n",
    )
    for name, text in zip(WRITTEN, texts, strict=True):
        made.write(name, text)
    done = made.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.mark.long
@pytest.mark.parametrize(("rule", "folder"), JOBS)
def test_a_rule_reads_nothing_but_what_it_names(complete: Checkout, tmp_path: Path, rule: str, folder: str) -> None:
    inputs, outputs = jobs(complete.folder)[rule, folder]
    alone = Checkout(_made(tmp_path / rule))
    for name in WRITTEN:
        alone.write(name, (complete.folder / name).read_text())
    for name in SHARED:
        shutil.copytree(complete.folder / "results" / name, alone.folder / "results" / name)
    for name in inputs:
        source, target = complete.folder / name, alone.folder / name
        if Path(name).is_absolute():
            continue
        if target.name == "index.csv":
            # An index names the files beside it.
            shutil.copytree(source.parent, target.parent, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    again = alone.snakemake("--allowed-rules", rule, "--rerun-triggers", "mtime", "--", *sorted(outputs))
    assert again.returncode == 0, again.stdout + again.stderr
    assert jobs(alone.folder).keys() == {(rule, folder)}, (
        "an input was made again: the rule that made it names less than it reads"
    )
    for name in outputs:
        first, second = complete.folder / name, alone.folder / name
        assert second.exists(), name
        # pending.txt says what the store lacked at that time, a guide says where it is.
        if first.suffix in (".csv", ".json", ".txt", ".md") and first.name != "pending.txt":
            expected = first.read_text().replace(str(complete.folder), str(alone.folder))
            assert second.read_text() == expected, name


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
