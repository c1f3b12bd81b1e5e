"""Sampled studies: from points to cells, rounds in the workflow, interrupted and restarted, and cells that fail."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from collstudy.sources.sampled import POINT, SampledSource, grid
from collstudy.sources.source import Context
from conftest import TINY, Checkout, must
from made_cells import VERSIONS
from made_runs import cell_files, kill_midway, rows, run, with_faulty_simulator

SAMPLED = TINY.replace("[default, linear]", "[default, linear, chain]").replace("[2, 4]", "[4, 8, 12]") + (
    "sampling: {rounds: 2, first_pct: 20, round_pct: 30, target_regret_pct: 0}\n"
    "analysis: {tuning: {}, compare: {study: whole}}\n"
)
WHOLE = SAMPLED.partition("sampling:")[0]


@pytest.fixture
def sampled(checkout: Checkout) -> Checkout:
    """Write the sampled study `tiny`, and the study `whole` with the whole grid."""
    checkout.write("config/studies/tiny.yaml", SAMPLED)
    checkout.write("config/studies/whole.yaml", WHOLE)
    return checkout


def points(checkout: Checkout, name: str) -> list[tuple[str, ...]]:
    return [tuple(row[key] for key in POINT) for row in rows(checkout, name)]


def test_neighbouring_sizes_are_one_cell(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write("config/studies/tiny.yaml", SAMPLED)
    checkout.write("config/studies/whole.yaml", WHOLE)
    context = Context(checkout.configuration, tmp_path)
    context.__dict__["versions"] = VERSIONS
    source = SampledSource(context.configuration.study("tiny"), context)
    cells = source.grid
    asked = [("linear", 4, 1), ("linear", 4, 2), ("linear", 4, 8), ("linear", 8, 16), ("chain", 8, 32), ("gone", 8, 1)]
    lines = [f"bcast,{name},,core,2,{count},{size}" for name, count, size in asked]
    path = source.folder_of(1) / "selected.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([",".join(POINT), *lines]) + "\n")
    found = source.selected(1)
    assert [(cell.algorithm, cell.processes, cell.sizes) for cell in found] == [
        ("linear", 4, (1, 2)), ("linear", 4, (8, 8)), ("linear", 8, (16, 16)), ("chain", 8, (32, 32))
    ]  # fmt: skip
    assert len({cell.digest for cell in [*found, *cells]}) == len(found) + len(cells)
    assert source.selected(2) == []
    listed = list(csv.DictReader(grid(cells, lambda *point: 1.0).decode().splitlines()))
    assert len(listed) == 3 * 3 * 11 and {row["iterations"] for row in listed} == {"3"}


@pytest.mark.long
def test_rounds_killed_and_started_again(sampled: Checkout) -> None:
    tuned, judged = "results/tiny/tuning/README.md", "results/tiny/tables/index.csv"
    kept = kill_midway(sampled, tuned, (sampled.folder / "results/tiny/sampling/round-1/measurements.csv").exists)
    assert kept
    run(sampled, "--unlock")
    run(sampled, tuned, judged)
    assert kept.items() <= cell_files(sampled).items()
    # The measured points are those that the rounds selected, each once, and only a part of the grid.
    asked = [point for n in (1, 2) for point in points(sampled, f"results/tiny/sampling/round-{n}/selected.csv")]
    grid = points(sampled, "results/tiny/sampling/grid.csv")
    assert set(asked) < set(grid)
    assert {row["status"] for row in rows(sampled, "results/tiny/cells.csv")} == {"measured"}
    assert set(points(sampled, "results/tiny/measurements.csv")) == set(asked)
    # Rounds are judged on the complete study, decisions verified on new cells.
    rounds = rows(sampled, "results/tiny/tables/sampling-rounds.csv")
    assert [row["round"] for row in rounds] == [str(n + 1) for n in range(len(rounds))]
    assert all(float(row["node_minutes"]) > 0 for row in rounds)
    assert all(float(row["mean_regret_pct"]) >= float(row["geometric_mean_regret_pct"]) >= 0 for row in rounds)
    assert float(rounds[-1]["points_pct"]) == pytest.approx(100 * len(set(asked)) / len(grid))
    assert {row["verdict"] for row in rows(sampled, "results/tiny/tables/tuning-verification.csv")} <= {
        "faster", "tie", "slower"
    }  # fmt: skip
    assert any("tuned" in name for name in cell_files(sampled))
    # Nothing is left to do, even without Snakemake's records; only a lost cell is measured again.
    shutil.rmtree(sampled.folder / ".snakemake")
    before = cell_files(sampled)
    run(sampled, tuned)
    assert cell_files(sampled) == before
    cell = rows(sampled, "results/tiny/cells.csv")[0]["cell"]
    lost = next(name for name in before if cell in name)
    Path(lost).unlink()
    run(sampled, "results/tiny/measurements.csv")
    after = cell_files(sampled)
    assert set(after) == set(before) and [name for name in after if after[name] != before[name]] == [lost]


@pytest.mark.long
def test_a_cell_that_fails_is_named_and_tried_again(sampled: Checkout) -> None:
    with_faulty_simulator(sampled)
    text = SAMPLED.replace("[4, 8, 12]", "[4, 8]").replace("rounds: 2, first_pct: 20", "rounds: 1, first_pct: 60")
    sampled.write("config/studies/tiny.yaml", text)
    path = sampled.first_on_path
    measured = "results/tiny/measurements.csv"
    run(sampled, measured, environment={**path, "FAULT": "crash"})
    status = {row["processes"]: row["status"] for row in rows(sampled, "results/tiny/cells.csv")}
    assert status == {"4": "failed", "8": "measured"}
    before = cell_files(sampled)
    failed = [name for name in before if json.loads(Path(name).read_text())["failure"]]
    run(sampled, measured, environment=path)
    after = cell_files(sampled)
    assert {row["status"] for row in rows(sampled, "results/tiny/cells.csv")} == {"measured"}
    assert {name for name in before if after[name] != before[name]} == set(failed)
    # A cell of a round has some of the sizes of a cell of the grid; that is not a change of settings.
    assert sampled.project.source("tiny").remarks() == []


@pytest.mark.long
def test_where_nothing_can_be_decided_nothing_is_measured_and_the_default_stays(sampled: Checkout) -> None:
    sampled.write("config/studies/tiny.yaml", SAMPLED.replace("[default, linear, chain]", "[linear, chain]"))
    run(sampled, "results/tiny/tuning/README.md")
    assert rows(sampled, "results/tiny/cells.csv") == rows(sampled, "results/tiny/tables/tuning-verification.csv") == []
    decided = rows(sampled, "results/tiny/tuning/decisions.csv")
    assert {(row["algorithm"], row["reason"].partition(":")[0]) for row in decided} == {
        ("default", "no measurements of the default")
    }
    assert "0 of them other than the default" in (sampled.folder / "results/tiny/tuning/README.md").read_text()


@pytest.mark.long
def test_status_counts_what_was_asked_for(sampled: Checkout) -> None:
    """Also the blocks of a round; those of an interrupted one are in the list of the next run."""
    assert "tiny: 0 of 0 cells done, 0 failed" in sampled.collstudy("status", "tiny").stdout
    round_ = "results/tiny/sampling/round-1"
    run(sampled, f"{round_}/pending.txt")
    assert "blocks 1 not started, 0 running, 0 done" in sampled.collstudy("status", "tiny").stdout
    run(sampled, "results/tiny/pending.txt")
    assert "blocks 1 not started, 0 running, 0 done" in sampled.collstudy("status", "tiny").stdout


@pytest.mark.long
def test_blocks_that_verify_the_tuning_files_are_in_the_progress(sampled: Checkout) -> None:
    run(sampled, "results/tiny/tuning/pending.txt")
    told = sampled.collstudy("status", "tiny").stdout
    assert re.search(
        r"tiny: (\d+) of \1 cells done, 0 failed; verifying tuning files; blocks 1 not started, 0 running, \d+ done; about .* left",
        told,
    )


def test_a_damaged_list_of_points_is_one_message(sampled: Checkout) -> None:
    """Such as one that a spreadsheet has saved with semicolons."""
    name = "results/tiny/sampling/round-1/selected.csv"
    sampled.write(name, "collective;algorithm\nbcast;linear\n")
    for done in (sampled.collstudy("status", "tiny"), sampled.snakemake("-n")):
        assert done.returncode == 2, done.stderr
        said = f"error: {name} has no column collective: remove it, and ./study run tiny writes it again"
        assert said in done.stderr.splitlines(), done.stderr
    (sampled.folder / name).unlink()
    must(sampled.snakemake("-n", "results/tiny/measurements.csv"))


def test_node_hours_of_rounds_to_come_are_limited(sampled: Checkout) -> None:
    machine = "kind: slurm\nlabel: Two\nlike: thin\nmpi: openmpi\nslurm: {partition: THIN}\n"
    sampled.write("config/machines/two.yaml", machine)
    text = SAMPLED.replace("machine: thin", "machine: two").replace(", compare: {study: whole}", "")
    sampled.write("config/studies/tiny.yaml", text)
    limited = ("-n", "--config", "max_node_hours=1", "--", "results/tiny/measurements.csv")
    done = sampled.snakemake(*limited)
    assert (
        done.returncode != 0
        and "tiny: max_node_hours requires sampling.budget_node_minutes" in done.stdout + done.stderr
    )
    sampled.write("config/studies/tiny.yaml", text.replace("rounds: 2", "rounds: 2, budget_node_minutes: 90"))
    done = sampled.snakemake(*limited)
    assert done.returncode != 0 and "about 1.50 node-hours are needed" in done.stdout + done.stderr


@pytest.mark.long
def test_replays_on_complete_data_are_made_where_asked_for(checkout: Checkout) -> None:
    """Only planned, not run: the replay is tested in workflow/analysis/tests."""
    plan = ["--config", "studies=tiny", "--dry-run", "--", "results/complete.txt"]
    assert "replay_sampling" not in checkout.snakemake(*plan).stdout
    checkout.write("config/studies/tiny.yaml", TINY + "analysis: {replay_sampling: {}}\n")
    done = checkout.snakemake(*plan)
    assert done.returncode == 0 and "replay_sampling" in done.stdout, done.stdout + done.stderr
