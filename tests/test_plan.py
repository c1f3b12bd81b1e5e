"""What remains to be measured: cells of overlapping sweeps, blocks, and cells that studies share."""

from __future__ import annotations

import datetime
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import runner
from collstudy.launch.execute import LaunchFailed, Started, execute
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import Block, Task, block_bytes, pack, pending, read_block, slurm_resources, write_blocks
from collstudy.store.records import Record, Summary
from collstudy.store.store import Store
from collstudy.study.cells import Cell
from collstudy.study.description import Policy
from collstudy.study.selection import Library
from conftest import TINY, Checkout, local_study, must
from made_cells import cells_of
from made_runs import with_mpirun

SWEEP = TINY.partition("sweeps:\n")[2]


@pytest.mark.parametrize(
    ("other", "sizes"),
    [
        ({}, []),
        ({"from: 1": "from: 8", "1024": "4096"}, [(2048, 4096)]),
        ({"from: 1": "from: 512", "1024": "1024, factor: 4"}, []),
        ({"{from: 1, to: 1024}": "[1, 3, 6, 1024, 2048]"}, [(3, 6), (2048, 2048)]),
        ({"from: 1, to: 1024": "from: 9, to: 36"}, [(9, 36)]),
    ],
)
def test_sizes_that_an_earlier_sweep_has_are_not_measured_again(
    checkout: Checkout, other: dict[str, str], sizes: list[tuple[int, ...]]
) -> None:
    again = SWEEP.replace("[2, 4]", "[4, 8]")
    for old, new in other.items():
        assert old in again
        again = again.replace(old, new)
    first, cells = cells_of(checkout), cells_of(checkout, TINY + again)
    assert cells[: len(first)] == first and len({cell.digest for cell in cells}) == len(cells)
    for algorithm in ("default", "linear"):
        mine = [cell.sizes for cell in cells[len(first) :] if (cell.algorithm, cell.processes) == (algorithm, 4)]
        assert mine == sizes
    points = [(c.algorithm, c.processes, size) for c in cells for size in c.size_list]
    assert len(set(points)) == len(points)


def test_a_cell_without_sizes_in_two_sweeps_is_one(checkout: Checkout) -> None:
    text = TINY.replace("collective: bcast", "collective: barrier").replace("    sizes: {from: 1, to: 1024}\n", "")
    sweep = text.partition("sweeps:\n")[2]
    per_node = sweep.replace("processes: [2, 4]", "processes_per_node: [4, 6]\n    nodes: [1]")
    cells = cells_of(checkout, text.replace("processes:", "nodes: [1]\n    processes:") + per_node)
    assert [cell.processes for cell in cells if cell.algorithm == "linear"] == [2, 4, 6]


def block_of(checkout: Checkout) -> Block:
    cells = cells_of(checkout)
    machine = checkout.configuration.machine("thin")
    return Block(machine, "smpi-openmpi", 2, tuple(Task(cell, Policy()) for cell in cells))


def test_a_block_has_the_name_of_its_whole_content(checkout: Checkout, tmp_path: Path) -> None:
    """Snakemake does not write an existing file again: another time limit or partition must give another name."""
    block = block_of(checkout)
    (marker,) = write_blocks([block], tmp_path / "blocks")
    read = read_block(tmp_path / "blocks" / f"{block.name}.json")
    assert read.name == block.name == marker.name.rsplit(".", 2)[0]
    assert block_bytes(read) == block_bytes(block)
    first = block.tasks[0]
    others = [
        replace(block, machine=replace(block.machine, launch_time_limit_s=9.0)),
        replace(block, machine=replace(block.machine, slurm={"partition": "other"})),
        replace(block, tasks=(replace(first, have=1), *block.tasks[1:])),
        replace(block, tasks=(replace(first, work=replace(first.work, pattern="chain")), *block.tasks[1:])),
    ]
    assert len({one.name for one in (block, *others)}) == 5


def test_a_job_has_time_for_a_launch_that_hangs(checkout: Checkout, tmp_path: Path) -> None:
    """Otherwise Slurm ends every job before the launch's own time limit, and its cell never counts as failed."""
    block = block_of(checkout)
    hanging = replace(block, machine=replace(block.machine, kind="slurm", launch_time_limit_s=900.0))
    assert 2 + 15 <= slurm_resources(hanging, Store(tmp_path))["runtime"] <= 2 + 15 + 1
    # The margin of a long block suffices.
    long = replace(hanging, tasks=tuple(replace(task, seen_s=1000.0, have=9) for task in hanging.tasks))
    long = replace(long, machine=replace(long.machine, block_minutes=1000.0))
    assert long.minutes() == math.ceil(2 + 1.5 * long.seconds / 60)


def test_no_job_is_longer_than_block_minutes(checkout: Checkout) -> None:
    """A queue may not allow it, and then the job never starts."""
    block = block_of(checkout)
    machine = replace(block.machine, kind="slurm", launch_time_limit_s=120.0, block_minutes=30.0)
    tasks = [
        replace(task, seen_s=100.0 + 10 * number, work=replace(task.work, processes=number + 2))
        for number, task in enumerate(block.tasks * 5)
    ]
    blocks = pack((machine, task) for task in tasks)
    assert sum(len(one.tasks) for one in blocks) == len(tasks) and len(blocks) > 1
    assert {one.minutes() <= 30 for one in blocks} == {True}, [one.minutes() for one in blocks]
    # Four points of ten minutes in three jobs would be two in one of them.
    four = [replace(task, seen_s=600.0, have=9, policy=Policy(10, 10)) for task in tasks[:4]]
    short = replace(machine, block_minutes=20.0)
    assert [one.minutes() for one in pack((short, task) for task in four)] == [17] * 4
    # Not even one launch fits.
    slow = replace(machine, launch_time_limit_s=3600.0)
    assert max(one.minutes() for one in pack((slow, task) for task in tasks)) > 60


def test_cells_of_two_studies_get_the_launches_that_both_need(checkout: Checkout) -> None:
    text = local_study("collective: barrier, algorithms: [linear]").replace("[2]", "[2, 3]")
    checkout.oversubscribe()
    few, many = ("min: 2, max: 2", "min: 1, max: 5, ci_width_pct: 1")
    checkout.write("config/studies/few.yaml", text.replace("min: 1, max: 1", few))
    checkout.write("config/studies/many.yaml", text.replace("min: 1, max: 1", many).replace("[2, 3]", "[3, 4]"))
    project = checkout.project
    states = [project.state(project.source(name)) for name in ("few", "many")]
    found = {
        name: {task.work.processes: task.policy for block in of[0] for task in block.tasks}
        for name, of in project.blocks(states).items()
    }
    least, most = Policy(2, 2), Policy(1, 5, 1.0)
    assert found == {"few": {2: least, 3: least.with_(most)}, "many": {4: most}}
    cell = states[0].work[0]
    for count, width in ((1, None), (2, 0.5), (2, 2.0), (4, 2.0), (5, 2.0)):
        have = Summary(count, width)
        lacking = any(pending(cell, have, policy) for policy in (least, most))
        assert bool(pending(cell, have, least.with_(most))) == lacking


#: An mpirun that records the beginning and the end of each launch, and at each end whether another one ran.
RECORDING = """\
#!/bin/bash
case "$*" in *--version*) exec {real} "$@" ;; esac
echo begin >> {folder}/record
sleep 0.3
{real} "$@"; status=$?
echo end >> {folder}/record
exit $status
"""


def environment_with(checkout: Checkout, mpirun: str) -> dict[str, str]:
    """Write an mpirun; return the environment in which blocks run with it."""
    with_mpirun(checkout, mpirun)
    return {**os.environ, **checkout.first_on_path, "PYTHONPATH": str(checkout.folder / "workflow")}


def blocks_of(checkout: Checkout, sweeps: list[str]) -> list[Path]:
    """Return the files of one block per sweep of this machine."""
    names = []
    for number, sweep in enumerate(sweeps):
        checkout.write(f"config/studies/s{number}.yaml", local_study(sweep))
        names.append(f"s{number}")
    project = checkout.project
    of = project.blocks([project.state(project.source(name)) for name in names])
    markers = write_blocks([block for name in names for block in of[name][0]], checkout.folder / "results" / "blocks")
    return [marker.with_name(marker.name.rsplit(".", 2)[0] + ".json") for marker in markers]


def test_launches_of_two_blocks_on_the_same_cores_take_turns(checkout: Checkout) -> None:
    environment = environment_with(checkout, RECORDING)
    barriers = [f"collective: barrier, algorithms: [linear], iterations: {n}, warmup: 0" for n in (5, 6)]
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "collstudy", "--results", "results", "measure", path, "--log", f"{number}.log"],
            cwd=checkout.folder, env=environment, stdout=subprocess.PIPE, text=True,
        )
        for number, path in enumerate(blocks_of(checkout, barriers))
    ]  # fmt: skip
    said = "".join(run.communicate(timeout=120)[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert said.count("takes turns with another block or run on the same cores (/tmp/") in (1, 2), said
    assert (checkout.folder / "bin" / "record").read_text().split() == ["begin", "end"] * 4


#: An mpirun that hangs and needs some time to end its ranks.
HANGING = """\
#!/bin/bash
case "$*" in *--version*) exec {real} "$@" ;; esac
record={folder}/record
trap 'sleep 1; echo ended >> "$record"; exit 143' TERM
echo begun >> "$record"
sleep 60 & wait
"""


def heed_signals() -> None:
    """Undo that tests in the background ignore SIGINT, and under nohup SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_block_ends_its_launch(checkout: Checkout, number: signal.Signals) -> None:
    """A launch that continues, for example after a terminal was closed, would disturb those of the next run; a second signal does not
    change that.
    """
    environment, record = environment_with(checkout, HANGING), checkout.folder / "bin" / "record"
    (path,) = blocks_of(checkout, ["collective: barrier, algorithms: [linear], iterations: 5, warmup: 0"])
    runner = subprocess.Popen(
        [sys.executable, "-m", "collstudy", "--results", "results", "measure", path, "--log", "log"],
        cwd=checkout.folder, env=environment,
        preexec_fn=heed_signals,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not record.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)  # until the runner waits for the launch
    runner.send_signal(number)
    time.sleep(0.3)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(120) == 128 + number
    assert record.read_text().split() == ["begun", "ended"]


def test_a_signal_that_also_ended_the_starter_ends_the_block(tmp_path: Path) -> None:
    """Slurm signals all processes of a job: the launch that it ended has not failed."""
    answers: list[BaseException] = [SystemExit(143), LaunchFailed("the starter has ended")]

    def wait(_: float) -> None:
        raise answers.pop(0)

    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with pytest.raises(SystemExit), open(tmp_path / "log", "w") as log:
        execute(["sleep"], 60, log, {}, tmp_path, lambda *_: Started(process.pid, wait))
    assert process.wait(10) == -signal.SIGTERM


def test_a_block_that_continues_makes_new_rounds(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of one round are compared with each other, so they must not be from two runs of the block."""
    (path,) = blocks_of(checkout, ["collective: barrier, algorithms: [linear, double_ring], iterations: 5, warmup: 0"])
    block = read_block(path)
    tasks = tuple(replace(task, policy=Policy(2, 2)) for task in block.tasks)
    block, results = replace(block, tasks=tasks), checkout.folder / "results"
    write = Store.write

    def interrupted(*arguments: Any) -> None:
        write(*arguments)
        sys.exit(143)

    with monkeypatch.context() as first, pytest.raises(SystemExit):
        first.setattr(Store, "write", interrupted)
        run_block(block, results, checkout.folder / "first.log")
    assert run_block(block, results, checkout.folder / "second.log") == {}
    records = [Store(results).read(task.work) for task in tasks]
    rounds = [[launch["provenance"]["order"]["seed"] for launch in record.launches] for record in records]
    assert [len(set(own)) for own in rounds] == [2, 2] and len({seed for own in rounds for seed in own}) == 3


def test_a_job_that_ends_soon_does_not_retry_what_may_hang(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells that hang for longer than the rest of every job would let Slurm end each of them, and no report would be made."""
    (path,) = blocks_of(checkout, ["collective: barrier, algorithms: [linear, double_ring], iterations: 5, warmup: 0"])
    block, store = read_block(path), Store(checkout.folder / "results")
    hung, other = (task.work for task in block.tasks)
    assert isinstance(hung, Cell)
    store.write(hung, Record(failure={"reason": "time limit: not finished after 60 s", "log": "", "time": ""}), None)
    place = runner.allocation(block.machine, 1)
    why = "time limit: not finished after 60 s (not retried: it may take 1 min 0 s, and Slurm ends the job before)"
    for minutes, failed in ((0.5, {hung.label: why}), (60, {})):
        end = datetime.datetime.now() + datetime.timedelta(minutes=minutes)
        monkeypatch.setattr(runner, "allocation", lambda *_, end=end: replace(place, end=end))
        assert run_block(block, store.results, checkout.folder / "log") == failed
        assert len(store.read(other).launches) == 1 and len(store.read(hung).launches) == 1 - len(failed)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"suite": {"name": "OSU Micro-Benchmarks", "version": "7.4"}},
            "planned with OSU Micro-Benchmarks 7.4, but this job",
        ),
        ({"mpi": {"name": "openmpi", "version": "1.2"}}, "planned with Open MPI 1.2, but this job"),
        ({"OMPI_MCA_coll_tuned_bcast_algorithm": "1"}, "OMPI_MCA_coll_tuned_bcast_algorithm=1"),
        ({"library": "0.1"}, "planned with collectives library 0.1, but this job"),
    ],
)
def test_a_job_with_other_software_than_planned_measures_nothing(
    checkout: Checkout, change: dict[str, Any], said: str
) -> None:
    """For example, modules that were loaded only where snakemake was started."""
    (path,) = blocks_of(checkout, ["collective: bcast, algorithms: [linear], sizes: {from: 1, to: 1}"])
    block = read_block(path)
    cell = block.tasks[0].work
    assert isinstance(cell, Cell)
    if "library" in change:
        cell = replace(cell, selection=Library({"COLL_BCAST": "linear"}, change["library"]))
    elif next(iter(change)).startswith("OMPI"):
        cell = replace(cell, mpi={**cell.mpi, **change})
    else:
        cell = replace(cell, **change)
    block = replace(block, tasks=(replace(block.tasks[0], work=cell),))
    with pytest.raises(StudyError, match=said):
        run_block(block, checkout.folder / "results", checkout.folder / "log")


def test_a_study_may_have_the_name_of_a_number(checkout: Checkout) -> None:
    """Snakemake turns such values of --config into numbers."""
    checkout.write("config/studies/2026.yaml", TINY)
    target = "results/2026/measurements.csv"
    of_script = checkout.collstudy("run", "--studies", "2026", "--plan", "--", "-n", target)
    of_snakemake = checkout.snakemake("-n", "--config", "studies=2026", "--", target)
    for done in (of_script, of_snakemake):
        assert "2026: 0 of 4 cells are stored" in must(done).stderr


@pytest.mark.long
def test_a_change_of_settings_is_said_before_cells_are_measured_again(checkout: Checkout) -> None:
    table = "results/tiny/measurements.csv"
    checkout.write("config/studies/tiny.yaml", TINY)
    assert "other settings" not in must(checkout.snakemake("--", table)).stderr
    more = TINY.replace("[2, 4]", "[2, 4, 6]")
    checkout.write("config/studies/tiny.yaml", more)
    assert "other settings" not in must(checkout.snakemake("-n", "--", table)).stderr
    checkout.write("config/studies/tiny.yaml", more.replace("iterations: 3", "iterations: 4"))
    said = must(checkout.snakemake("-n", "--", table)).stderr
    assert "study tiny: 4 cells of the last run had other settings (iterations); what is not stored" in said


def test_an_update_of_the_simulator_is_said_before_all_is_measured_again(checkout: Checkout) -> None:
    checkout.write("config/studies/tiny.yaml", TINY)
    must(checkout.snakemake("--config", "studies=tiny", "--", "results/tiny/study.json"))
    project = checkout.project
    path = project.folder("tiny") / "study.json"
    assert project.available(["tiny"], explicit=True)[1] == []
    document = json.loads(path.read_text())
    now = document["provenance"]["mpi_version"]
    document["provenance"]["mpi_version"] = "SimGrid 3.31"
    path.write_text(json.dumps(document))
    (line,) = project.available(["tiny"], explicit=True)[1]
    assert f" is {now} now and was SimGrid 3.31: its cells are measured again; the earlier ones stay in " in line
    # Set-up asks for the studies before the library is installed.
    bare = checkout.project
    bare.context.versions = replace(bare.context.versions, mpi={})
    assert [source.study.name for source in bare.available(["tiny"], True, whatever_is_here=True)[0]] == ["tiny"]
    # Another library, suite or an earlier version's file is no update.
    document["provenance"] |= {"mpi": "openmpi", "mpi_version": "5.0.1"}
    path.write_text(json.dumps(document))
    assert project.available(["tiny"], explicit=True)[1] == []
    path.write_text("{}")
    assert project.available(["tiny"], explicit=True)[1] == []
