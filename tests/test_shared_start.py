"""Cells that share a start: one launch measures all algorithms of all collectives in turn."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import output
from collstudy.launch.execute import LaunchFailed, execute
from collstudy.launch.launches import in_turn
from collstudy.launch.openmpi import SHARED_ARGUMENTS, library
from collstudy.launch.ran import ran_in_turns
from collstudy.launch.runner import together
from collstudy.launch.toolchain import mpi_environment
from collstudy.launch.tracefile import rank_files
from collstudy.plan.blocks import Task
from collstudy.study.cells import cell_from
from collstudy.study.description import Policy
from conftest import Checkout, finish, must
from made_runs import cell_rows, measured

STUDY = """
title: Local
question: q
machine: this-machine
launches: {min: 1, max: 1}
sweeps:
"""
OTHERS = "linear, {name: pipeline, segment_bytes: 8192}"
SWEEP = """\
  - collective: bcast
    algorithms: [default, linear, {name: pipeline, segment_bytes: 8192}, binomial]
    mappings: [core]
    processes: [2]
    sizes: {from: 4, to: 65536}
    iterations: 50
    warmup: 5
    start: shared
"""


def stored(checkout: Checkout) -> dict[str, dict]:
    found = [json.loads(path.read_text()) for path in (checkout.folder / "results" / "cells").rglob("*.json")]
    return {document["cell"]["algorithm"]: document for document in found}


def test_one_launch_measures_all_algorithms_and_each_is_proved(checkout: Checkout) -> None:
    measured(checkout, "local", STUDY + SWEEP)
    cells = stored(checkout)
    launches = {name: document["launches"][0] for name, document in cells.items()}
    assert set(launches) == {"default", "linear", "binomial", "pipeline"}
    # All are from the same launch: one command, a different turn each.
    assert len({launch["provenance"]["command"] for launch in launches.values()}) == 1
    assert {launch["provenance"]["order"]["turn"] for launch in launches.values()} == {0, 1, 2, 3}
    assert {launch["provenance"]["order"]["turns"] for launch in launches.values()} == {4}
    assert all(document["proof"]["component"] == "tuned" for document in cells.values())
    used = {name: document["proof"]["used"] for name, document in cells.items()}
    assert used == {"default": None, "linear": True, "binomial": True, "pipeline": True}
    assert all(document["proof"]["placed"] for document in cells.values())
    assert {row["status"] for row in cell_rows(checkout, "local")} == {"measured"}


def test_another_default_component_does_not_run_what_is_forced(checkout: Checkout) -> None:
    measured(checkout, "local", STUDY + SWEEP, {"OMPI_MCA_coll_basic_priority": "90"})
    proofs = {name: document["proof"] for name, document in stored(checkout).items()}
    components = {name: proof["component"] for name, proof in proofs.items()}
    assert components == {"default": "basic", "linear": "tuned", "binomial": "tuned", "pipeline": "tuned"}
    assert all(proof["used"] for name, proof in proofs.items() if name != "default")


def turns_ran(folder: Path, *arguments: str) -> list[set[str]]:
    """Return what ran in three turns of collbench_all: a default, a forced algorithm, and the default again."""
    sizes, folder = "m=1:1048576", folder / f"{len(arguments)}"
    folder.mkdir()
    turns = [f"b=bcast {sizes}", f"b=bcast {sizes} prefer=tuned coll_tuned_bcast_algorithm=1", f"b=bcast {sizes}"]
    preload = library().build / "trace" / "libcolltrace.so"
    command = [library().mpirun, "-n", "3", "--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none", *arguments]
    command += ["--mca", "mpi_yield_when_idle", "1"]
    command += ["env", f"LD_PRELOAD={preload}", f"COLLTRACE_FOLDER={folder}", "COLLTRACE_RAN=1"]
    command += [library().build / "bench" / "collbench_all", "-i", "1", "-x", "0"]
    must(finish([*command, *(word for turn in turns for word in ("-t", turn))], env=mpi_environment(), cwd=folder))
    return [algorithms for _, algorithms in ran_in_turns(rank_files(folder, 3), ["bcast"] * 3)]


def test_the_arguments_of_a_shared_launch_do_not_change_the_default(tmp_path: Path) -> None:
    default, forced, again = turns_ran(tmp_path, *SHARED_ARGUMENTS)
    assert forced == {"basic_linear"} and default == again and len(default) > 1
    unforced = [turn for turn in turns_ran(tmp_path) if turn != {"basic_linear"}]
    assert unforced and all(turn == default for turn in unforced)


def test_a_damaged_text_of_what_ran_is_one_sentence(tmp_path: Path) -> None:
    turns_ran(tmp_path)
    path = tmp_path / "0" / "rank-000001.trace"
    content = path.read_bytes()
    assert b"tuned|" in content
    path.write_bytes(content.replace(b"tuned|", b"tuned "))
    with pytest.raises(
        StudyError, match="rank-000001.trace: text [0-9]+ does not say what ran a collective: the file is damaged"
    ):
        ran_in_turns(rank_files(tmp_path / "0", 3), ["bcast"] * 3)


def cells_of(checkout: Checkout, sweep: str = SWEEP) -> list:
    checkout.write("config/studies/local.yaml", STUDY + sweep)
    return checkout.project.source("local").cells()


def test_a_start_is_part_of_the_identity(checkout: Checkout) -> None:
    shared = cells_of(checkout)
    own = cells_of(checkout, SWEEP.replace("    start: shared\n", ""))
    assert all(cell.shares_start for cell in shared) and not any(cell.shares_start for cell in own)
    assert {cell.digest for cell in shared}.isdisjoint(cell.digest for cell in own)
    assert all("start" not in cell.identity()["suite"] for cell in own)


def test_cells_of_a_placement_share_a_launch(checkout: Checkout) -> None:
    own = SWEEP.replace("    start: shared\n", "").replace("from: 4, to: 65536", "from: 1, to: 2")
    others = SWEEP.replace("bcast", "allreduce").replace("{name: pipeline, segment_bytes: 8192}, binomial", "ring")
    more = SWEEP.replace("from: 4, to: 65536", "from: 131072, to: 131072").replace("default, linear, ", "")
    tasks = [Task(cell, Policy(1, 1)) for cell in cells_of(checkout, SWEEP + own + others + more)]
    assert sorted(map(len, together(tasks))) == [1, 1, 1, 1, 9]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            (f"bcast\n    algorithms: [default, {OTHERS}", "ibcast\n    algorithms: [default"),
            "start: shared needs a blocking collective and the default barrier",
        ),
        (("[default, linear,", "[default, sm,"), "sm is not an algorithm of Open MPI's coll/tuned"),
        (
            ("start: shared", "start: shared\n    barrier: window"),
            "start: shared needs a blocking collective and the default barrier",
        ),
        (
            ("start: shared", "start: shared\n    mpi: [mpich]"),
            "start: shared needs a real Open MPI",
        ),
        (
            (f"bcast\n    algorithms: [default, {OTHERS}, binomial", "allgatherv\n    algorithms: [default"),
            "and a collective other than allgatherv",
        ),
    ],
)
def test_what_cannot_share_a_start_is_refused(checkout: Checkout, change: tuple[str, str], reason: str) -> None:
    with pytest.raises(StudyError, match=reason):
        cells_of(checkout, SWEEP.replace(*change))


def test_a_crash_is_held_against_the_cell_whose_turn_it_was() -> None:
    printed = "warning\n# Turn 0\n# Size  Avg Latency(us)\n4 1.0\n# Turn 1\n# Size"
    assert len(output.turns(printed)) == 2
    assert in_turn(LaunchFailed("crash", printed), [5, 6, 7]) == {6}
    assert in_turn(LaunchFailed("crash", "nothing"), [5, 6, 7]) == {5, 6, 7}


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("coll_tuned_no_such_variable=1", "no variable coll_tuned_no_such_variable"),
        ("coll_tuned_bcast_algorithm=two", "coll_tuned_bcast_algorithm needs a whole number, not 'two'"),
        ("coll_tuned_bcast_algorithm", "'coll_tuned_bcast_algorithm' is not NAME=VALUE"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, setting: str, complaint: str) -> None:
    program = library().build / "bench" / "collbench_bcast"
    command = [library().mpirun, "-n", "2", "--bind-to", "none", program, "-t", f"m=4:4 {setting}"]
    done = finish(command, env=mpi_environment(), cwd=tmp_path)
    assert done.returncode != 0 and complaint in done.stderr


def test_a_cell_with_a_spread_of_arrivals_is_another_one(checkout: Checkout) -> None:
    together_there = cells_of(checkout)
    apart = cells_of(checkout, SWEEP.replace("start: shared", "start: shared\n    spread_us: 20"))
    assert all(cell.identity()["spread_us"] == 20 for cell in apart)
    assert all("spread_us" not in cell.identity() for cell in together_there)
    in_turn = cells_of(checkout, SWEEP.replace("start: shared", "start: shared\n    spread_us: [0, 64]"))
    assert all(cell.identity()["spread_us"] == (0, 64) and " spread 0,64 us " in cell.label for cell in in_turn)
    # From a block's file, where the identity is JSON.
    assert [cell_from(json.loads(json.dumps(cell.identity())), cell.pattern) for cell in in_turn] == in_turn
    assert {cell.digest for cell in apart}.isdisjoint(cell.digest for cell in together_there)
    with pytest.raises(StudyError, match="spread_us: needs a blocking collective and the default barrier"):
        cells_of(checkout, SWEEP.replace("start: shared", "barrier: window\n    spread_us: 20"))
    with pytest.raises(StudyError, match=r"spread_us: \[0, 0\] spreads nothing; at least one must be more than 0"):
        cells_of(checkout, SWEEP.replace("start: shared", "start: shared\n    spread_us: [0, 0]"))


@pytest.mark.parametrize("option", [["-s", "200"], ["-s", "0,200"], ["-t", "b=allreduce m=8:8 s=0,200"]])
def test_calls_with_a_spread_of_arrivals_are_in_windows(tmp_path: Path, option: list[str]) -> None:
    program = library().build / "bench" / "collbench_allreduce"
    sizes = ["-m", "8:8"] if option[0] == "-s" else []
    # With only fifty calls, all could be late if other programs use the cores.
    command = [library().mpirun, "-n", "2", "--bind-to", "none", program]
    command += [*sizes, "-i", "500", "-x", "5", "-f", *option]
    done = must(finish(command, env=mpi_environment(), cwd=tmp_path))
    (sample,) = output.parse(done.stdout, [8])
    assert sample["iterations"] + sample["late"] == 500


def test_the_time_limit_is_that_of_one_turn(tmp_path: Path) -> None:
    """A cell that hung had ended a launch only after the limits of all its cells; Slurm ended the job before, in each run."""
    turn = 'i=0; while [ $i -lt {0} ]; do echo "# Turn $i"; sleep 0.7; i=$((i + 1)); done; {1}'

    def count(printed: str) -> int:
        return len(output.turns(printed))

    def run(script: str) -> str:
        return execute(["sh", "-c", script], 1, io.StringIO(), dict(os.environ), tmp_path, parts=count).printed

    assert count(run(turn.format(4, "true"))) == 4
    with pytest.raises(LaunchFailed, match="time limit: not finished after 1 s") as failed:
        run(turn.format(2, "sleep 60"))
    assert in_turn(failed.value, [7, 8]) == {8}
    # Without turns, it is that of the launch.
    with pytest.raises(LaunchFailed, match="time limit"):
        execute(["sh", "-c", "echo 1; sleep 60"], 1, io.StringIO(), dict(os.environ), tmp_path)
