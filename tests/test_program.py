"""`./study tune`: from a program to a tuning file that makes it faster, or to a sentence that says why there is none."""

from __future__ import annotations

import functools
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.paths import SETUP
from collstudy.launch import trace
from collstudy.launch.execute import allocation
from collstudy.launch.openmpi import library
from collstudy.launch.ran import launcher_of
from collstudy.launch.runner import BlockRunner
from collstudy.launch.toolchain import identify, mpi_environment, versions
from collstudy.plan.blocks import Block, Task, lacking
from collstudy.project.studies import Project
from collstudy.store.records import Record
from collstudy.store.store import Store
from collstudy.study.description import Policy
from collstudy.study.traces import Run
from conftest import Checkout, compiled, csv_rows, finish, must, write_mpi4py

#: A default that is slower than all other algorithms, for the benchmark and the program alike.
WRONG = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
    "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "512",
}
#: Message size and number of broadcasts; the slow default sends each in 128 segments.
BYTES, CALLS = "65536", "3000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs `tuned` and `ran`."""
    path = tmp_path_factory.mktemp("of a user")
    for name in ("tuned", "ran"):
        compiled(name, path)
    return path


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout for all tests, so that the second study finds the cells of the first one measured."""
    checkout = Checkout(tmp_path_factory.mktemp("tuning") / "checkout")
    with open(checkout.folder / "config" / "machines" / "this-machine.yaml", "a", encoding="utf-8") as machine:
        machine.write("environment: {OF_SITE: a b}\n")
    return checkout


def tune(
    user: Checkout, name: str, folder: Path, *words: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run `./study tune` like a user, from the program's folder."""
    command = [user.folder / "study", "tune", "--name", name, "--runs", "5", "--budget", "1", *options, "--"]
    command += [library().mpirun, "-n", "2", *words]
    return finish(command, cwd=folder, timeout=900, stdin=subprocess.DEVNULL, env={**mpi_environment(), **WRONG})


def write(
    user: Checkout, folder: Path, *words: str | Path, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the part of `./study tune` that writes the study."""
    feed = {"input": text} if text else {"stdin": subprocess.DEVNULL}
    command = [sys.executable, "-m", "collstudy", "tune", "--folder", folder, *words]
    environment = {**mpi_environment(), "PYTHONPATH": str(user.folder / "workflow")}
    return finish(command, cwd=user.folder, timeout=120, env=environment, **feed)


def table(user: Checkout, name: str, file: str) -> list[dict[str, str]]:
    return csv_rows(user.folder / "results" / f"tune-{name}" / file)


def tuning_files(user: Checkout, name: str) -> list[str]:
    tuning = user.folder / "results" / f"tune-{name}" / "tuning"
    return [path.name for kind in ("openmpi-*", "intel-*", "mpich-*", "coll-*") for path in tuning.glob(kind)]


@pytest.fixture(scope="module")
def gained(user: Checkout, folder: Path) -> str:
    """Return the output of `./study tune` for a program with a slow default."""
    done = must(tune(user, "gained", folder, "./tuned", "plain", BYTES, CALLS))
    return done.stdout


@pytest.mark.timed
def test_a_program_with_a_wrong_default_gets_a_file(user: Checkout, folder: Path, gained: str) -> None:
    said, line = gained.strip().splitlines()[-2:]
    assert said.startswith("With the tuning file the program is ") and "over 5 pairs of runs" in said
    assert "openmpi-core-n1.rules" in tuning_files(user, "gained")
    rules = (user.folder / "results" / "tune-gained" / "tuning" / "openmpi-core-n1.rules").read_text()
    assert "on 2 ranks, launched as when it was traced; no other placement" in rules
    judged = {row["part"]: row for row in table(user, "gained", "tables/tuning-judged.csv")}
    assert set(judged) == {"whole", "collectives"} and {row["verdict"] for row in judged.values()} == {"faster"}
    assert all(1 < float(row["low"]) <= float(row["speedup"]) <= float(row["high"]) for row in judged.values())
    assert len(table(user, "gained", "tables/tuning-pairs.csv")) == 10
    # The effect of the file is visible in the program itself.
    ran = {row["file"]: row for row in table(user, "gained", "tables/tuning-ran.csv")}
    assert ran["default"]["algorithm"].startswith("pipeline[segment 512") and ran["tuned"]["known_by"] == "call"
    assert ran["tuned"]["algorithm"] != ran["default"]["algorithm"]
    # The program runs with the environment of the machine, with and without the file.
    runs = [json.loads(path.read_text()) for path in (user.folder / "results" / "runs").glob("tune-gained_*.json")]
    launched = [launch["provenance"]["command"] for run in runs for launch in run["launches"]]
    assert launched and all("OF_SITE=a b" in shlex.split(command) for command in launched)
    assert shlex.split(line)[:2] == ["export", "OF_SITE=a b"]
    # The printed line is complete: pasted into a script, it makes the same algorithm run.
    target = folder / "ran.csv"
    command = [sys.executable, "-m", "collstudy", "what-ran", "--folder", folder, "--csv", target, "--"]
    command += [library().mpirun, "-n", "2", "./tuned", "plain", BYTES, "3"]
    environment = {**mpi_environment(), **WRONG, "PYTHONPATH": str(user.folder / "workflow")}
    script = f"{line}\n{shlex.join(map(str, command))}\n"
    subprocess.run(["bash", "-c", script], check=True, env=environment, cwd=user.folder, stdin=subprocess.DEVNULL)
    (row,) = csv_rows(target)
    assert (row["component"], row["algorithm"]) == (ran["tuned"]["component"], ran["tuned"]["algorithm"])


@pytest.mark.timed
def test_runs_that_judge_the_file_are_checked(user: Checkout, gained: str) -> None:
    environment = {**mpi_environment(), **WRONG, "PYTHONPATH": str(user.folder / "workflow")}
    verify = functools.partial(
        finish, [sys.executable, "-m", "collstudy", "verify", "tune-gained"], cwd=user.folder, env=environment
    )
    assert "missing" not in must(verify()).stdout
    names = [row["file"] for row in table(user, "gained", "tuning/cells.csv")]
    assert len(names) == 6 and all(name.startswith("runs/tune-gained_") for name in names)
    (path,) = (user.folder / "results" / name for name in names if "_tuned-traced-" in name)
    text = path.read_text()
    path.write_text(text.replace('"latency_us": ', '"latency_us": 1', 1))
    damaged = verify()
    path.write_text(text)
    assert damaged.returncode == 1
    assert f"tune-gained: damaged: results/runs/{path.name}: its content was changed" in damaged.stdout


@pytest.mark.timed
def test_the_report_has_the_four_pictures(user: Checkout, gained: str) -> None:
    results = user.folder / "results" / "tune-gained"
    drawn = [results / "figures" / f"{name}.svg" for name in ("account-cells", "cells-measured", "decided-gain")]
    assert all(path.stat().st_size > 0 for path in [*drawn, results / "tuning" / "pairs.svg"])
    (page,) = [path for path in (user.folder / "results" / "report").glob("*.html") if "tune-gained" in path.name]
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "Tracing changes the run time by" in text and "Time of the program with and without the tuning file" in text


@pytest.mark.timed
def test_only_the_cells_of_the_program_are_measured(user: Checkout, gained: str) -> None:
    points = table(user, "gained", "sampling/grid.csv")
    assert {(row["collective"], row["processes"], row["size_bytes"]) for row in points} == {("bcast", "2", "65536")}
    assert sum(float(row["weight"]) for row in points if row["algorithm"] == "default") <= 100


@pytest.mark.timed
def test_the_command_says_the_same_as_the_study(user: Checkout, folder: Path, gained: str) -> None:
    study = user.folder / "config" / "studies" / "tune-gained.yaml"
    assert f'folder: "{folder}"' in study.read_text() and "runs: 5" in study.read_text()
    done = user.snakemake("--config", "studies=tune-gained", "--dry-run", environment={**mpi_environment(), **WRONG})
    assert "Nothing to be done" in done.stdout + done.stderr, done.stdout + done.stderr
    done = tune(user, "gained", folder, "./tuned", "plain", BYTES, "1")
    assert done.returncode == 2 and "tune-gained.yaml already exists with different content" in done.stderr


@pytest.mark.timed
def test_a_file_that_does_not_make_the_program_faster_is_not_kept(user: Checkout, folder: Path, gained: str) -> None:
    before = len(list((user.folder / "results" / "cells").rglob("*.json")))
    done = must(tune(user, "slower", folder, "./tuned", "slower", BYTES, CALLS))
    # The cells are those of the other program.
    assert len(list((user.folder / "results" / "cells").rglob("*.json"))) == before
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith(
        "No tuning file: the program is not clearly faster with it. With the tuning file the program is 0."
    )
    assert tuning_files(user, "slower") == []
    # Nor the launcher that would start programs with it.
    tuning = user.folder / "results" / "tune-slower" / "tuning"
    assert not any((tuning / name).exists() for name in ("mpirun-tuned", "shapes.json"))
    (row,) = [row for row in table(user, "slower", "tables/tuning-judged.csv") if row["part"] == "whole"]
    assert row["verdict"] == "slower"
    # Collectives are faster with the file, and withdrawn rules are listed.
    assert table(user, "slower", "tables/tuning-withdrawn.csv")
    assert "# No tuning file" in (tuning / "README.md").read_text()


@pytest.mark.long
def test_a_program_that_hardly_communicates_gets_that_answer(user: Checkout, folder: Path) -> None:
    done = must(tune(user, "quiet", folder, "./tuned", "quiet", "8", "3"))
    assert (
        done.stdout.strip()
        .splitlines()[-1]
        .startswith("No tuning file: the program spends too little time in blocking collectives;")
    )
    assert not list((user.folder / "results" / "tune-quiet" / "sampling").glob("round-*"))
    assert tuning_files(user, "quiet") == []


@pytest.mark.parametrize(
    ("name", "words", "options", "reason"),
    [
        ("dies", ["./ran", "die"], (), "crash: mpirun ended with"),
        pytest.param(
            "hangs", ["./ran", "hang"], ("--limit", "4"), "time limit: not finished after 4 s", marks=pytest.mark.long
        ),
        pytest.param(
            "spawns",
            ["./ran", "spawn"],
            (),
            "the program spawns ranks (MPI_Comm_spawn), which is not supported",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "silent",
            ["./ran", "silent"],
            (),
            "the program does not use MPI, starts it by MPI_Session_init, or uses a different MPI library than its launcher",
            marks=pytest.mark.long,
        ),
        pytest.param("threads", ["./tuned", "threads", "8", "3"], (), "", marks=pytest.mark.long),
    ],
)
def test_programs_that_cannot_be_followed_are_one_sentence(
    user: Checkout, folder: Path, name: str, words: list[str], options: tuple[str, ...], reason: str
) -> None:
    must(write(user, folder, "--name", name, "--runs", "5", *options, "--", library().mpirun, "-n", "2", *words))
    measured = ("--config", f"studies=tune-{name}", "--", f"results/tune-{name}/measurements.csv")
    must(user.snakemake(*measured, environment=mpi_environment()))
    rows = {row["algorithm"]: row for row in table(user, name, "cells.csv")}
    assert set(rows) == {"trace", "plain", "traced"}
    assert rows["trace"]["status"] == ("failed" if reason else "measured") and reason in rows["trace"]["reason"]
    assert "\n" not in rows["trace"]["reason"]


PYTHON = """
import time
from mpi4py import MPI

MPI.COMM_WORLD.Bcast(bytearray(1000), root=0)
time.sleep(1)
"""


@pytest.mark.long
def test_a_program_in_python(user: Checkout, folder: Path) -> None:
    write_mpi4py(folder, PYTHON)
    words = [library().mpirun, "-n", "2", "-x", f"PYTHONPATH={folder / 'lib'}", sys.executable, "program.py"]
    done = write(user, folder, "--runs", "5", "--", *words)
    assert done.returncode == 0 and done.stdout.splitlines()[1:] == ["tune-program"], done.stderr
    target = "results/tune-program/measurements.csv"
    done = must(user.snakemake("--config", "studies=tune-program", "--", target, environment=mpi_environment()))
    assert {row["status"] for row in table(user, "program", "cells.csv")} == {"measured"}
    # The program hardly communicates.
    assert table(user, "program", "sampling/grid.csv") == []


def test_the_name_of_a_program_is_not_that_of_an_argument(user: Checkout, folder: Path) -> None:
    """`test` is a program on PATH, too."""
    done = must(write(user, folder, "--", library().mpirun, "-n", "2", "./tuned", "test"))
    assert done.stdout.splitlines()[1] == "tune-tuned"
    (user.folder / "config" / "studies" / "tune-tuned.yaml").unlink()


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["MPIRUN", "-n", "1", "./tuned"], None, "a single rank does not communicate"),
        (["MPIRUN", "./tuned"], None, "error: COMMAND: the number of ranks is missing; add -n N after the launcher"),
        (["MPIRUN", "-n", "1", "./tuned", ":", "-n", "1", "./ran"], None, "several programs in one launch (:)"),
        (["MPIRUN", "-n", "4000", "./tuned"], None, "4000 ranks are more than the "),
        (["./tuned", "-n", "2"], None, "no MPI launcher in the command"),
        (
            ["MPIRUN", "-n", "2", "--mca", "coll_tuned_priority", "0", "./tuned"],
            None,
            "not the benchmark that measures its collectives; remove it from the command and use export OMPI_MCA_coll_tuned_priority=",
        ),
        (["MPIRUN", "-n", "2", "-x", "UCX_TLS=tcp", "./tuned"], None, "and use export UCX_TLS=tcp"),
        (
            ["env", "OMPI_MCA_coll_tuned_priority=0", "MPIRUN", "-n", "2", "./tuned"],
            None,
            "not the benchmark that measures its collectives; remove it from the command and use export OMPI_MCA_coll_tuned_priority=",
        ),
        (["nice", "-n", "5", "MPIRUN", "-n", "1", "./tuned"], None, "a single rank does not communicate"),
        (["--machine", "thin", "--", "MPIRUN", "-n", "2", "./tuned"], None, "error: --machine: a program needs a "),
        (
            ["MPIRUN", "-n", "2", "--tune", "own.conf", "./tuned"],
            None,
            "error: --tune own.conf: only the program would run with it",
        ),
        (["MPIRUN", "-n", "2", "no-such-program"], None, "no executable program in this command"),
        (["MPIRUN", "-n", "2", "./tuned"], "input\n", "standard input is not passed to the program"),
        (["--runs", "2", "--", "MPIRUN", "-n", "2", "./tuned"], None, "error: --runs is 2; it must be at least 5"),
        (
            ["--budget", "-3", "--", "MPIRUN", "-n", "2", "./tuned"],
            None,
            "error: --budget is -3; it must be more than 0",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_runs(
    user: Checkout, folder: Path, words: list[str], text: str | None, message: str
) -> None:
    before = sorted((user.folder / "config" / "studies").iterdir())
    words = [str(library().mpirun) if word == "MPIRUN" else word for word in words]
    done = write(user, folder, "--name", "refused", *(words if "--" in words else ["--", *words]), text=text)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert sorted((user.folder / "config" / "studies").iterdir()) == before


def test_more_nodes_than_the_cluster_has_are_refused(user: Checkout, folder: Path) -> None:
    levels = "[{name: node, count: 2}, {name: core, count: 4}]"
    user.write("config/machines/small.yaml", f"kind: slurm\nlabel: Small\nmpi: openmpi\nlevels: {levels}\n")
    words = ["--machine", "small", "--", library().mpirun, "-n", "4", "-N", "1", "./tuned"]
    done = write(user, folder, "--name", "refused", *words)
    assert done.returncode == 2 and "it uses 4 nodes, machine small has 2" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_arguments_reach_the_program_as_they_were_typed(user: Checkout, folder: Path) -> None:
    """Also options of the program that the launcher must not have."""
    typed = [
        str(library().mpirun),
        "-n",
        "2",
        "./tuned",
        *("", "a b", "q'uo\"te", "$HOME", "\N{GRINNING FACE}", "a\nb"),
    ]
    typed += ["{x}", "\\", "--tune", "-x", "coll_"]
    done = write(user, folder, "--name", "typed", "--", *typed)
    assert done.returncode == 0, done.stderr
    source = Project(user.folder / "config").source("tune-typed")
    assert shlex.split(source.program.command) == typed
    done = write(user, folder, "--name", "bytes", "--", *typed, os.fsdecode(b"\xff"))
    assert done.returncode == 2 and done.stderr == "error: command and folder must be UTF-8\n", done.stderr


def test_ranks_on_another_computer_than_the_cells_are_refused(
    user: Checkout, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a login node, in an allocation or with a host file."""
    must(write(user, folder, "--name", "far", "--", library().mpirun, "-n", "2", "./tuned", "plain", "8", "1"))
    traced = Project(user.folder / "config").source("tune-far").trace
    here = platform.node().split(".")[0]
    monkeypatch.setattr(trace.system, "node", lambda: "login")
    with open(tmp_path / "log", "w") as log:
        about = trace.trace(traced, allocation(traced.machine, 1), tmp_path, log)
    assert about["failure"].startswith(f"the ranks ran on {here}, but machine this-machine"), about["failure"]


def test_runs_of_an_interrupted_round_are_made_up_first(user: Checkout, folder: Path, tmp_path: Path) -> None:
    must(write(user, folder, "--name", "cut", "--", library().mpirun, "-n", "2", "./tuned", "plain", "8", "1"))
    source = Project(user.folder / "config").source("tune-cut")
    runs = [source.run(name, {}) for name in ("default", "tuned", "default-traced")]
    made: list[tuple[str, int]] = []

    def block_of(launches: dict[str, int]) -> BlockRunner:
        tasks = tuple(Task(run, Policy(n, n)) for run, n in zip(runs, launches.values(), strict=True))
        runner = BlockRunner(Block(source.study.machine, "openmpi", 1, tasks), tmp_path, log, print)
        runner.launches = SimpleNamespace(run=launch, close=lambda: None)
        return runner

    def launch(run: Run, scratch: Path, number: int, order: dict[str, object]) -> dict[str, object]:
        made.append((run.variant, number))
        return {"launch": number, "samples": [{"latency_us": 1.0}], "ran": [], "provenance": {"order": order}}

    with open(tmp_path / "log", "w") as log:
        block_of({"default": 2, "tuned": 1, "default-traced": 2}).run()
        made.clear()
        block_of({"default": 4, "tuned": 4, "default-traced": 4}).run()
    # The speed-up is that of the n-th runs of both, so these must follow each other.
    assert [number for _, number in made] == [2, 3, 3, 3, 4, 4, 4]


def test_runs_are_planned_with_the_duration_of_other_variants(user: Checkout, folder: Path, tmp_path: Path) -> None:
    """Without any, a job must allow for the time limit of each run."""
    must(write(user, folder, "--name", "timed", "--", library().mpirun, "-n", "2", "./tuned", "plain", "8", "1"))
    source, store = Project(user.folder / "config").source("tune-timed"), Store(tmp_path)
    plain, tuned = (source.run(name, {}) for name in ("plain", "tuned"))
    assert store.summaries([tuned])[0][0].seconds is None
    launches = [
        {"launch": number, "samples": [{"latency_us": 1.0}], "ran": [], "provenance": {"seconds": seconds}}
        for number, seconds in ((1, 2.0), (2, 3.0))
    ]
    store.write(plain, Record(launches=tuple(launches)), None)
    (task,) = lacking([tuned], store.summaries([tuned]), source.policy_of)
    assert (task.have, task.seconds()) == (0, 2.5 * source.tuned.runs)


def test_a_tuning_file_in_the_environment_is_refused_and_the_study_stays(
    user: Checkout, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--name", "filed", "--", library().mpirun, "-n", "2", "./tuned"]
    assert write(user, folder, *words).returncode == 0
    monkeypatch.setenv("OMPI_MCA_coll_tuned_dynamic_rules_filename", "/some/file.rules")
    done = write(user, folder, *words)
    assert done.returncode == 2 and "so the program would already run with a tuning file; unset it" in done.stderr
    assert (user.folder / "config" / "studies" / "tune-filed.yaml").exists()


def test_a_default_that_the_environment_selects_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = versions().mpi["openmpi"]
    selecting = {
        "OMPI_MCA_coll": "^han", "OMPI_MCA_coll_sm_priority": "90", "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
    }  # fmt: skip
    for name, value in {**selecting, "OMPI_MCA_btl": "self,sm", "OMPI_MCA_coll_base_verbose": "9"}.items():
        monkeypatch.setenv(name, value)
    assert versions().mpi["openmpi"] == plain | selecting


def test_a_study_for_slurm_runs_in_jobs(user: Checkout, folder: Path) -> None:
    done = write(
        user, folder, "--name", "jobs", "--machine", "csews-slurm", "--", library().mpirun, "-n", "2", "./tuned"
    )
    assert done.returncode == 0 and done.stdout.splitlines()[1:] == ["tune-jobs -- --profile slurm"], done.stderr


def test_another_version_than_the_benchmarks_is_refused(user: Checkout, folder: Path) -> None:
    installed = (identify(place) for place in (Path("/usr/bin"), SETUP / "openmpi" / "bin"))
    others = [mpi for mpi in installed if mpi and mpi.name == "openmpi" and mpi.version != library().version]
    if not others:
        pytest.skip("no Open MPI of another version than the benchmark's")
    done = write(user, folder, "--name", "other", "--", others[0].mpirun, "-n", "2", "./tuned")
    assert done.returncode == 2 and f"but the benchmark is built for {library().version}" in done.stderr


def test_the_study_of_lammps_says_the_same_as_the_command(user: Checkout, folder: Path) -> None:
    words = ["--name", "same", "--folder", folder, "--", library().mpirun, "-n", "2", "./tuned"]
    must(write(user, folder, *words))
    project = Project(user.folder / "config", results=user.folder / "results")
    ours, typed = (project.source(name) for name in ("tune-lammps", "tune-same"))
    assert (ours.study.machine.name, ours.study.analysis) == (typed.study.machine.name, typed.study.analysis)
    assert (ours.tuned.runs, ours.policy, ours.sampling) == (typed.tuned.runs, typed.policy, typed.sampling)
    # If the command has no folder, the launcher is that of the benchmark.
    found, *rest = shlex.split(ours.program.command)
    assert rest == ["-n", "2", "lmp", "-in", "in.melt", "-log", "none"]
    launcher = launcher_of([found])
    assert launcher.path.samefile(library().mpirun) and launcher.version == library().version
    assert ours.program.limit_s == typed.program.limit_s
