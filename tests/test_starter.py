"""Simulations that share one start of the simulator: same output as with smpirun, limits, failures, and other versions."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from collstudy.base.paths import ROOT
from collstudy.launch import simulator
from collstudy.launch.execute import Crashed, LaunchFailed, execute
from collstudy.launch.starter import Starter
from collstudy.project.studies import Project
from collstudy.study.cells import Cell
from conftest import executable, finish, must

pytestmark = pytest.mark.skipif(shutil.which("smpirun") is None, reason="smpirun (SimGrid SMPI) is not on PATH")
PROJECT = Project(config=ROOT / "config")
MACHINE = PROJECT.study("thin").machine


@pytest.fixture
def starter() -> Iterator[Starter]:
    one = Starter()
    yield one
    one.close()


def a_cell(collective: str, algorithm: str, processes: int) -> Cell:
    return next(
        cell for cell in PROJECT.source("thin").work()
        if (cell.collective, cell.algorithm, cell.processes) == (collective, algorithm, processes)
    )  # fmt: skip


def prepared(cell: Cell, folder: Path, *arguments: str) -> tuple[list[str | Path], dict[str, str]]:
    command = simulator.prepare(MACHINE, cell, cell.place(MACHINE), folder)
    return [*command, *arguments], simulator.environment(
        MACHINE, cell, cell.selection.library, dict(os.environ), folder
    )


def test_the_memory_is_in_mb(starter: Starter, tmp_path: Path) -> None:
    """The program fills 1500 MB (1430 MiB). Loading SimGrid takes 25 to 65 MB, of which the kernel may have reclaimed a part."""
    source = tmp_path / "fill.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n#include <string.h>\nint main(int argc, char **argv) {\n"
        "MPI_Init(&argc, &argv);\nchar *filled = malloc(1500000000);\nmemset(filled, 1, 1500000000);\n"
        "int end = filled[MPI_Wtime() > 1e9];\nMPI_Finalize();\nreturn end - 1;\n}\n"
    )
    must(finish(["smpicc", source, "-o", tmp_path / "fill"]))
    command, environment = prepared(a_cell("bcast", "chain", 4), tmp_path)
    place = command.index("-np")
    command[place + 1] = "1"
    program = next(at for at, word in enumerate(command) if "collbench" in str(word))
    command = [*command[:program], tmp_path / "fill"]
    alone = execute(command, 60, io.StringIO(), environment, tmp_path)
    shared = execute(command, 60, io.StringIO(), environment, tmp_path, starter.start)
    assert all(1500 <= run.peak_memory_mb < 1600 for run in (alone, shared)), (
        alone.peak_memory_mb,
        shared.peak_memory_mb,
    )


@pytest.mark.parametrize(
    ("collective", "algorithm"), [("bcast", "chain"), ("bcast", "default"), ("barrier", "tree"), ("barrier", "default")]
)
def test_the_output_is_that_of_smpirun(starter: Starter, tmp_path: Path, collective: str, algorithm: str) -> None:
    for processes in (4, 16, 4):
        command, environment = prepared(a_cell(collective, algorithm, processes), tmp_path, "-f", "-i", "5", "-x", "1")
        alone = execute(command, 60, io.StringIO(), environment, tmp_path)
        shared = execute(command, 60, io.StringIO(), environment, tmp_path, starter.start)
        assert shared.printed == alone.printed and "# " in alone.printed
    assert starter.shares


@pytest.mark.parametrize(
    ("collective", "algorithm", "processes"),
    [("bcast", "chain", 48), ("bcast", "default", 48), ("barrier", "tree", 48), ("barrier", "default", 48)],
)
def test_ranks_of_one_copy_of_the_program_give_the_times_of_a_copy_for_each(
    starter: Starter, tmp_path: Path, collective: str, algorithm: str, processes: int
) -> None:
    command, environment = prepared(a_cell(collective, algorithm, processes), tmp_path, "-f", "-i", "3", "-x", "1")
    # Each rank counts its calls; the largest numbers are printed.
    environment["COLL_VERBOSE"] = "1"
    assert "--cfg=smpi/privatization:no" in command
    copies = ["--cfg=smpi/privatization:1" if word == "--cfg=smpi/privatization:no" else word for word in command]
    printed = execute(command, 60, io.StringIO(), environment, tmp_path, starter.start).printed
    assert printed == execute(copies, 60, io.StringIO(), environment, tmp_path, starter.start).printed
    assert printed == execute(copies, 60, io.StringIO(), environment, tmp_path).printed


def test_a_simulation_at_its_limit_is_ended_and_the_next_one_starts(starter: Starter, tmp_path: Path) -> None:
    cell = a_cell("bcast", "linear", 48)
    command, environment = prepared(cell, tmp_path, "-f", "-i", "100000", "-x", "0")
    started = time.monotonic()
    with pytest.raises(LaunchFailed, match="time limit: not finished after 1 s"):
        execute(command, 1, io.StringIO(), environment, tmp_path, starter.start)
    assert time.monotonic() - started < 30
    command, environment = prepared(cell, tmp_path, "-f", "-i", "1", "-x", "0", "-m", "8:8")
    assert execute(command, 60, io.StringIO(), environment, tmp_path, starter.start).status == 0


def test_a_failure_is_that_of_one_simulation(starter: Starter, tmp_path: Path) -> None:
    cell = a_cell("barrier", "tree", 4)
    log = io.StringIO()
    command, environment = prepared(cell, tmp_path, "--no-such-option")
    with pytest.raises(Crashed, match="smpirun ended with exit status 1"):
        execute(command, 60, log, environment, tmp_path, starter.start)
    assert log.getvalue().splitlines()[1] == "collbench_barrier: unknown option --no-such-option (-h lists the options)"
    environment["COLLSTUDY_PLATFORM"] = "none"
    broken = [word.replace("machine.txt", "nothing.txt") if isinstance(word, str) else word for word in command[:-1]]
    with pytest.raises(Crashed, match="signal 6"):
        execute(broken, 60, log, environment, tmp_path, starter.start)
    command, environment = prepared(cell, tmp_path, "-f", "-i", "1")
    assert execute(command, 60, log, environment, tmp_path, starter.start).status == 0


def run_with(script: str, starter: Starter, folder: Path) -> None:
    """Simulate a barrier with *script* in the place of smpirun."""
    other = executable(folder / "bin" / "smpirun", script)
    command, environment = prepared(a_cell("barrier", "tree", 4), folder, "-f", "-i", "1")
    path = f"{other.parent}:{os.environ['PATH']}"
    assert execute(command, 60, io.StringIO(), environment | {"PATH": path}, folder, starter.start).status == 0


def test_another_smpirun_starts_each_simulation_itself(starter: Starter, tmp_path: Path) -> None:
    """For a version of SimGrid whose script calls smpimain with an additional option."""
    script = Path(shutil.which("smpirun") or "").read_text()
    script = script.replace('SIMOPTS="--cfg', 'SIMOPTS="--cfg=smpi/reduce:default --cfg', 1)
    run_with(script, starter, tmp_path)
    assert starter.shares is False


def test_the_smpirun_of_simgrid_4_shares_the_start(starter: Starter, tmp_path: Path) -> None:
    """It has other words for two options, which later ones replace."""
    script = Path(shutil.which("smpirun") or "").read_text()
    for old, new in (("SMPI_PRIVATIZATION:-1", "SMPI_PRIVATIZATION:-ON"), ("surf/precision", "precision/timing")):
        script = script.replace(old, new)
    assert "precision/timing:1e-9" in script and "PRIVATIZATION:-ON" in script
    run_with(script, starter, tmp_path)
    assert starter.shares


def test_nothing_runs_on_after_its_program_was_killed(tmp_path: Path) -> None:
    """Slurm kills a job's processes; their children must not occupy the node."""
    command, environment = prepared(a_cell("bcast", "linear", 48), tmp_path, "-f", "-i", "100000", "-x", "0")
    (tmp_path / "run.py").write_text(
        f"import io\nfrom pathlib import Path\nfrom collstudy.launch.execute import execute\n"
        f"from collstudy.launch.starter import Starter\n"
        f"execute({[str(word) for word in command]!r}, 600, io.StringIO(), {environment!r}, Path({str(tmp_path)!r}), Starter().start)\n"
    )
    process = subprocess.Popen(
        [sys.executable, tmp_path / "run.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not (mine := simulations(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    process.kill()
    process.wait()
    while (left := simulations(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    for number in left:
        os.kill(int(number), signal.SIGKILL)
    assert mine and not left


def simulations(folder: Path) -> list[str]:
    """Return the processes that run in a folder, except zombies."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder.resolve() and "State:\tZ" not in (process / "status").read_text():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_starter_that_was_killed_is_replaced(starter: Starter, tmp_path: Path) -> None:
    """A simulation could not be handed to it: the block had ended with exit status 0, and its cells were not measured."""
    command, environment = prepared(a_cell("barrier", "tree", 4), tmp_path, "-f", "-i", "1", "-x", "0")
    execute(command, 60, io.StringIO(), environment, tmp_path, starter.start)
    starter._process.kill()
    starter._process.wait()
    with pytest.raises(LaunchFailed, match="crash: the program that starts simulations has ended"):
        execute(command, 60, io.StringIO(), environment, tmp_path, starter.start)
    assert execute(command, 60, io.StringIO(), environment, tmp_path, starter.start).status == 0
