"""From traces of programs to the gain of decisions for their cells, on a simulated machine."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import tracefile
from collstudy.launch.actions import write_actions
from collstudy.launch.execute import LaunchFailed, spawn
from collstudy.launch.replay import refuse_deadlock, replay
from collstudy.project.studies import Project
from collstudy.study.traces import Replay
from conftest import Checkout, compiled, csv_rows, must
from made_runs import measured

MACHINE = """
kind: simulated
label: Two nodes of two cores
levels: [{name: node, count: 2, latency_us: 5, bandwidth_gb_s: 1}, {name: core, count: 2, latency_us: 0.5, bandwidth_gb_s: 4}]
"""
STUDY = """
title: Gained
question: What do decisions gain?
machine: traced-here
applications:
  - {name: known, label: Known calls, command: PROGRAM, ranks: 2}
replay:
  machines: [small]
  ranks: 4
"""
CELLS = """
title: Cells
question: Which algorithm?
machine: small
sweeps:
  - {collective: bcast, algorithms: [default, linear, binomial], mappings: [core], processes: [4], sizes: {from: 1, to: 1024}}
analysis: {tuning: {}}
"""
DECISIONS = """\
collective,mapping,nodes,allocated,processes,size_bytes,algorithm,parameters,reason,basis,expected_us,default_us,gain_pct,noise_pct,noise_from
bcast,core,2,2,4,256,linear,,,measured,9,10,10,,
bcast,core,2,2,4,512,default,,,measured,10,10,0,,
alltoall,core,2,2,4,16,pairwise,,,measured,9,10,10,,
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Build tests/traced.c with the MPI library of the study."""
    return compiled("traced", tmp_path)


def looped(one: Replay, project: Project, work: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Return what each rank computes (us) before the calls of a replay of a loop of barriers, with 10, 20, ... us before them."""
    table, header = work / "looped.csv.gz", tracefile.COLUMNS
    row = dict.fromkeys(header, "0") | {"operation": "barrier", "list": ""}
    with gzip.open(table, "wt") as stream:
        writer = csv.DictWriter(stream, header)
        writer.writeheader()
        writer.writerows(row | {"rank": rank, "compute_us": 10 * n + 10} for n in range(12) for rank in range(2))
    monkeypatch.setattr("collstudy.launch.replay.write_actions", lambda _, *rest: write_actions(table, *rest))
    (work / "looped").mkdir()
    assert not replay(one, project.store, work / "looped", io.StringIO(), spawn)["failure"]
    monkeypatch.undo()
    computed = []
    for rank in range(4):
        calls = [row for row in csv_rows(work / "looped" / "calls.csv.gz") if row["rank"] == str(rank)]
        ends = [0.0, *(float(call["end_us"]) for call in calls)]
        computed.append([float(call["start_us"]) - end for call, end in zip(calls, ends, strict=False)])
    return computed


@pytest.mark.long
def test_traces_are_replayed_with_and_without_decisions(
    checkout: Checkout, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.write("config/machines/small.yaml", MACHINE)
    checkout.write("config/studies/few.yaml", CELLS)
    study = STUDY.replace("PROGRAM", str(program)) + "  decisions: few\n"
    checkout.write("config/studies/gained.yaml", study)
    collected = ["--config", "studies=gained", "--", "results/gained/measurements.csv"]
    done = must(checkout.snakemake(*collected))
    # Nothing is decided yet: the replay uses the defaults.
    assert (
        "replays with the decisions of few are skipped, because few has none yet; run ./study run few first"
        in done.stderr
    )
    results = checkout.folder / "results"
    about = json.loads((results / "gained" / "study.json").read_text())
    assert [entry["label"] for entry in about["applications"][0]["replays"]] == ["default"]
    folder = results / about["applications"][0]["replays"][0]["folder"]
    calls = csv_rows(folder / "calls.csv.gz")
    # The two traced ranks are duplicated: collectives of all ranks have four ranks, the others are in each copy.
    assert {(row["operation"], row["ranks"]) for row in calls} >= {("bcast", "4"), ("alltoall", "4")}
    assert [row["sent_bytes"] for row in calls if row["operation"] == "alltoall"] == ["32"] * 4
    assert all(0 <= float(row["start_us"]) <= float(row["end_us"]) for row in calls)
    ranks = csv_rows(folder / "ranks.csv")
    assert [row["rank"] for row in ranks] == ["0", "1", "2", "3"]
    for row in ranks:
        inside = sum(float(row[key]) for key in ("compute_us", "point_to_point_us", "collectives_us"))
        assert inside == pytest.approx(float(row["end_us"]), abs=0.01)
        mine = [call for call in calls if call["rank"] == row["rank"]]
        time = sum(float(call["end_us"]) - float(call["start_us"]) for call in mine)
        assert time == pytest.approx(float(row["collectives_us"]), abs=0.01)
    # Replays share one start of the simulator; smpirun itself gives the same digits.
    project = Project(config=checkout.folder / "config", results=results)
    one = next(work for work in project.source("gained").work() if isinstance(work, Replay))
    (tmp_path / "alone").mkdir()
    assert not replay(one, project.store, tmp_path / "alone", io.StringIO(), spawn)["failure"]
    assert csv_rows(tmp_path / "alone" / "calls.csv.gz") == calls
    computed = looped(one, project, tmp_path, monkeypatch)
    first = [10 * n + 10 for n in range(1, 12)]
    assert computed[0][1:] == pytest.approx(first, abs=0.001) and computed[1][1:] == pytest.approx(first, abs=0.001)
    # The second copy computes before the eighth call, the first with seven others before it, what the first one does at the next.
    second = [10 * n + 10 for n in (*range(1, 7), 8, 9, 10, 11, 7)]
    assert computed[2][1:] == pytest.approx(second, abs=0.001) and computed[3][1:] == pytest.approx(second, abs=0.001)
    # Two ranks have a decision on one node, and another one on two nodes.
    more = "bcast,core,1,1,2,256,binomial,,,measured,9,10,10,,\nbcast,core,2,2,2,256,default,,,measured,10,10,0,,\n"
    checkout.write("results/few/tuning/decisions.csv", DECISIONS + more)
    done = must(checkout.snakemake(*collected))
    about = json.loads((results / "gained" / "study.json").read_text())
    default, decided = about["applications"][0]["replays"]
    assert (default["label"], decided["label"]) == ("default", "decided")
    identity = json.loads((results / decided["folder"] / "about.json").read_text())["identity"]
    # Sizes up to the next decision use the algorithm of the decision below; other rank counts use the default.
    assert [line.partition("#")[0].split() for line in identity["rules"].splitlines()][-1] == [
        "bcast", "*", "*", "*", "->", "ompi_default",
    ]  # fmt: skip
    assert "ompi_linear" in identity["rules"] and "COLL_BCAST" not in identity["environment"]
    assert "alltoall 2 2 31 -> ompi_pairwise" in identity["rules"]
    assert "bcast 1 2 511 -> ompi_binomial" in identity["rules"] and "bcast 2 1 * -> ompi_default" in identity["rules"]
    assert about["replay"]["nodes"] == [0, 0, 1, 1]
    # The analysis predicts from the same rules.
    shape = {"operation": "alltoall", "nodes": 2, "per_node": 2, "ranks": 4}
    rules = [rule for rule in about["replay"]["rules"] if rule["operation"] == "alltoall"]
    assert rules == [
        shape | {"from_bytes": size, "algorithm": algorithm, "parameters": ""}
        for size, algorithm in ((0, "default"), (16, "pairwise"), (32, "default"))
    ]
    # The replay without decisions is the same as before.
    assert (results / default["folder"]) == folder

    def time_of(entry: dict[str, str], operation: str) -> float:
        calls = csv_rows(results / entry["folder"] / "calls.csv.gz")
        return max(float(row["end_us"]) - float(row["start_us"]) for row in calls if row["operation"] == operation)

    assert time_of(decided, "alltoall") != time_of(default, "alltoall")
    # The analysis reads the latencies of the decisions, so it waits for the study that decides in the same run.
    checkout.write("config/config.yaml", "studies: [gained, few]\nresults: results\n")
    done = checkout.snakemake("--dry-run", "--", "results/gained/tables/index.csv")
    assert done.returncode == 0 and "decide_tuning" in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.long
def test_decisions_of_the_same_run_are_replayed(checkout: Checkout, program: Path) -> None:
    checkout.write("config/machines/small.yaml", MACHINE)
    checkout.write("config/studies/few.yaml", CELLS)
    study = STUDY.replace("PROGRAM", str(program)) + "  decisions: few\n  traces: 2\n"
    checkout.write("config/studies/gained.yaml", study)
    collected = ["--config", "studies=gained,few", "--", "results/gained/measurements.csv"]
    done = must(checkout.snakemake(*collected))
    assert "no decisions yet" not in done.stderr and "gained: 2 measured, 4 simulated" in done.stderr
    results = checkout.folder / "results"
    rows = csv_rows(results / "gained" / "cells.csv")
    assert [(row["algorithm"], row["status"]) for row in rows] == [
        ("traced", "measured"), ("default", "measured"), ("decided", "measured"),
    ] * 2  # fmt: skip
    assert [row["launch"] for row in csv_rows(results / "gained" / "measurements.csv")] == ["1"] * 3 + ["2"] * 3
    about = json.loads((results / "gained" / "study.json").read_text())
    (application,) = about["applications"]
    (further,) = application["further"]
    for one in (application, further):
        assert [entry["label"] for entry in one["replays"]] == ["default", "decided"]
    assert application["trace"] != further["trace"]
    # Nothing is left to do.
    assert "Nothing to be done" in must(checkout.snakemake("--dry-run", *collected)).stdout
    # New decisions, known only after that study, are replayed as well.
    checkout.write("config/studies/few.yaml", CELLS.replace("to: 1024", "to: 65536"))
    must(checkout.snakemake(*collected))
    assert {row["status"] for row in csv_rows(results / "gained" / "cells.csv")} == {"measured"}


@pytest.mark.parametrize("deciding", ["swept", "sampled"])
def test_decisions_that_need_r_are_not_awaited_without_it(checkout: Checkout, program: Path, deciding: str) -> None:
    """A sampled study is left out, the decisions of another one are not made."""
    checkout.own_setup("R")
    checkout.write("config/machines/small.yaml", MACHINE)
    checkout.write("config/studies/few.yaml", CELLS + "sampling: {}\n" * (deciding == "sampled"))
    checkout.write("config/studies/gained.yaml", STUDY.replace("PROGRAM", str(program)) + "  decisions: few\n")
    checkout.write("config/config.yaml", "studies: [gained, few]\nresults: results\n")
    done = must(checkout.snakemake("--dry-run"))
    planned = done.stdout + done.stderr
    assert "plan_gained" in planned and "decide_tuning" not in planned and "plan_replays" not in planned
    assert "study gained: replays with the decisions of few are skipped, because few has none yet" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("decisions: few", "decisions: sells"), "./study new sells --cells-of STUDY"),
        (("machines: [small]", "machines: [thin]"), "few decides for small, but the replays run on thin"),
        (("decisions: few", "decisions: this-machine"), "study this-machine makes no decisions"),
        (("decisions: few", "traces: 2"), "several traces of an application are only for the gain of `decisions`"),
        (("ranks: 4", "ranks: 8"), "8 is more than the 4 cores of small"),
    ],
)
def test_wrong_decisions_are_explained(checkout: Checkout, change: tuple[str, str], message: str) -> None:
    checkout.write("config/machines/small.yaml", MACHINE)
    checkout.write("config/studies/few.yaml", CELLS)
    checkout.write("config/studies/gained.yaml", (STUDY + "  decisions: few\n").replace(*change))
    with pytest.raises(StudyError, match=message):
        checkout.configuration.study("gained")


@pytest.mark.long
def test_decisions_that_simulated_ranks_cannot_follow_are_not_verified(checkout: Checkout) -> None:
    """The collectives library has no algorithm of this name: its rules are written for Open MPI, and only broadcasts are verified."""
    checkout.write("config/machines/small.yaml", MACHINE)
    alltoall = "  - {collective: alltoall, algorithms: [default, pairwise], mappings: [core], processes: [2], sizes: {from: 16, to: 32}}\n"
    measured(checkout, "few", CELLS.replace("analysis:", alltoall + "analysis:"))
    checkout.write("results/few/tuning/decisions.csv", DECISIONS.replace("2,2,4,16,pairwise", "1,2,2,16,two_proc"))
    must(checkout.collstudy("tuning", "emit", "few"))
    folder = checkout.folder / "results" / "few" / "tuning"
    assert "alltoall" in (folder / "openmpi-core-n2.rules").read_text()
    assert "alltoall" not in (folder / "coll-core-n2.rules").read_text()
    names = [Path(marker).name.split(".")[0] for marker in (folder / "pending.txt").read_text().split()]
    blocks = [json.loads((checkout.folder / "results" / "blocks" / f"{name}.json").read_text()) for name in names]
    assert {task["cell"]["collective"] for block in blocks for task in block["tasks"]} == {"bcast"}


def test_a_replay_that_stops_half_way_is_one_sentence() -> None:
    printed = (
        "[0.005] EngineImpl.cpp:718: [ker_engine/CRITICAL] Oops! Deadlock detected, some activities are still around"
    )
    with pytest.raises(
        LaunchFailed, match="deadlock: this trace cannot be replayed on this number of ranks: its messages do not match"
    ):
        refuse_deadlock(printed)
    refuse_deadlock("Simulated time: 0.005 seconds.")
