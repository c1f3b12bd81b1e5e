"""No rule reads a result that it does not declare: each rule makes the same outputs in a folder with only its inputs."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from collstudy.launch.openmpi import library
from conftest import Checkout, compiled, must

#: The studies take a minute and a half.
pytestmark = pytest.mark.long

#: The whole grid, on which sampling is replayed.
TINY = """
title: A whole study
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
  replay_sampling: {}
"""
#: The same study, sampled, tuned and verified.
ROUNDS = TINY.partition("analysis:")[0] + "sampling: {rounds: 2, first_pct: 50}\nanalysis: {tuning: {}}\n"
#: A study of this machine.
HERE = TINY.partition("analysis:")[0].replace("thin", "this-machine").replace("2, 4, 6, 8", "2").replace(", chain", "")
#: An imported study, so that checks have findings, and a study that gathers it.
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
#: A study with which a machine is calibrated.
LADDER = """
title: Ladder
question: Which costs?
machine: thin
sweeps:
  - {collective: latency, levels: [node, core], sizes: {from: 1, to: 1048576}, iterations: 1, warmup: 1}
"""
PLAIN = """
kind: simulated
label: Plain
levels: [{name: node, count: 2}, {name: core, count: 2}]
fitted: plain.fitted.yaml
calibration: {ladder: ladder, eager_limit_bytes: 16384}
"""
#: A program, whose trace determines the cells to measure; {mpirun} is the installed one.
PROGRAM = """
title: Program
question: Which broadcast?
machine: this-machine
program: {{command: '"{mpirun}" -n 2 ./tuned plain 65536 30', folder: "{folder}"}}
launches: {{min: 3, max: 3}}
sampling: {{}}
analysis: {{tuning: {{}}}}
"""
ROWS = [
    f"{a},core,{p},{s},{p * s / 7 + len(a)}"
    for a in ("linear", "chain", "default")
    for p in (2, 4, 8)
    for s in (1, 8, 64)
]
#: Not inputs but kept beside them: the store, which has a file for each cell and each run of a program, and a folder for each trace
#: (their digests are in study.json, program.json and in the blocks' markers). Rules that measure start without it.
STORE = ("cells", "blocks", "traces", "runs")
MEASURING = ("measure_block", "measure_here")


def jobs(folder: Path) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Return inputs and outputs of each job, as recorded by Snakemake, by rule and folder in the results."""
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for path in (folder / ".snakemake" / "metadata").rglob("*"):
        if path.is_file():
            output = base64.b64decode(path.name).decode()
            record = json.loads(path.read_text())
            inputs, outputs = found.setdefault((record["rule"], Path(output).parts[1]), (set(), set()))
            inputs.update(record["input"])
            outputs.add(output)
    return found


JOBS = [
    ("measure_block", "blocks"), ("measure_here", "blocks"), ("collect_measurements", "tiny"),
    ("collect_measurements", "rounds"), ("analyse_study", "tiny"),
    ("analyse_study", "theirs"), ("analyse_study", "all"), ("select_points", "rounds"), ("collect_round", "rounds"),
    ("decide_tuning", "rounds"), ("decide_tuning", "theirs"), ("replay_sampling", "tiny"), ("emit_tuning", "rounds"),
    ("keep_tuning", "rounds"), ("tell_tuning", "rounds"), ("write_front", "front"), ("render_report", "report"),
    ("give_verdict", "complete.txt"), ("measure", "measured.txt"), ("calibrate", "calibration"), ("account_program", "program"),
]  # fmt: skip
#: Rules that copy a file which is created when the Snakefile is read.
OTHERS = {"all", "describe_study", "note_sources"}
STUDIES = {"tiny": TINY, "rounds": ROUNDS, "here": HERE, "theirs": THEIRS, "all": ALL, "ladder": LADDER}
#: Arguments to request rules that do not belong to the configured studies.
ASKED = {"calibrate": ("--config", "calibrate=plain"), "account_program": ("--config", "studies=program")}
TARGETS = (
    (), ("--", "results/measured.txt"), (*ASKED["calibrate"], "--", "results/calibration/plain.csv"),
    (*ASKED["account_program"], "--", "results/program/sampling/cells.csv"),
)  # fmt: skip


def checkout(folder: Path, data: Path) -> Checkout:
    """Create a checkout with the studies; the imported ones read files in *data*."""
    made = Checkout(folder)
    for name, text in STUDIES.items():
        imported = "import:" in text
        made.write(f"config/studies/{name}.yaml", text.format(folder=data) if imported else text)
    made.write("config/config.yaml", f"studies: [{', '.join(STUDIES)}]\nresults: results\n")
    made.write("config/studies/program.yaml", PROGRAM.format(mpirun=library().mpirun, folder=data))
    made.write("config/machines/plain.yaml", PLAIN)
    return made


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout in which everything was made."""
    folder = tmp_path_factory.mktemp("complete")
    made = checkout(folder / "checkout", folder)
    (folder / "bcast_all.csv").write_text("\n".join(["A,M,P,S,L", *ROWS, ""]))
    compiled("tuned", folder)
    for target in TARGETS:
        must(made.snakemake(*target))
    return made


def give(name: str, source: Path, target: Path) -> None:
    """Copy one input; for an index, also the files beside it, which it names."""
    if Path(name).name == "index.csv":
        shutil.copytree((source / name).parent, (target / name).parent, dirs_exist_ok=True)
    elif not Path(name).is_absolute():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)


def texts(folder: Path, name: str, others: set[str]) -> dict[str, str]:
    """Return the texts of an output by path; for an index and for a page of the report, also those of the files beside it, without
    outputs of other rules. In tuning/, rules write files that are no outputs, so its index is compared alone.
    """
    path = folder / name
    whole = path.name in ("index.csv", "index.html") and path.parent.name != "tuning"
    beside = path.parent.iterdir() if whole else [path]
    # The appendix lists the folders of the results.
    beside = [one for one in beside if one.name != "sec-appendix.html"]
    # pending.txt depends on what the store lacked at that time; a guide contains its own location.
    shown = [
        one for one in beside if one.suffix in (".csv", ".json", ".txt", ".md", ".html") and one.name != "pending.txt"
    ]
    found = {str(one.relative_to(folder)): one.read_text().replace(str(folder), "") for one in shown}
    return {path: text for path, text in found.items() if path not in others}


def test_every_rule_is_looked_at(complete: Checkout) -> None:
    listed = must(complete.snakemake("--list-rules", "--config", "studies=tiny,program"))
    # The cells of the program are not measured: a rule that only copies writes their blocks.
    rules = set(listed.stdout.split()) - {"plan_program"}
    assert {rule for rule, _ in JOBS} | OTHERS >= rules >= {rule for rule, _ in JOBS}


@pytest.mark.parametrize(("rule", "folder"), JOBS)
def test_a_rule_reads_nothing_but_what_it_names(complete: Checkout, tmp_path: Path, rule: str, folder: str) -> None:
    made = jobs(complete.folder)
    inputs, outputs = made.pop((rule, folder))
    others = set[str]().union(*(outputs for _, outputs in made.values()))
    alone = checkout(tmp_path / "alone", complete.folder.parent)
    if rule not in MEASURING:
        for name in STORE:
            shutil.copytree(complete.folder / "results" / name, alone.folder / "results" / name)
    for name in inputs:
        give(name, complete.folder, alone.folder)
    asked = ASKED.get(rule, ())
    must(alone.snakemake("--allowed-rules", rule, "--rerun-triggers", "mtime", *asked, "--", *sorted(outputs)))
    assert jobs(alone.folder).keys() == {(rule, folder)}, (
        "an input was made again: the rule that made it names less than it reads"
    )
    for name in outputs:
        assert (alone.folder / name).exists(), name
        assert texts(alone.folder, name, others) == texts(complete.folder, name, others), name
