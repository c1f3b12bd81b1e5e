"""The script ./study: help, errors, next step, status, completion, and the current folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from collstudy.launch.openmpi import library
from collstudy.launch.toolchain import mpi_environment
from conftest import ROOT, TINY, Checkout, finish, must
from made_runs import only_set_up, study, with_faulty_simulator


def test_help() -> None:
    for arguments in (["help"], ["--help"]):
        done = study(ROOT, *arguments)
        assert done.returncode == 0
        assert "./study run" in done.stdout and "test" in done.stdout


def test_every_command_has_help() -> None:
    for line in study(ROOT, "help").stdout.split("Examples:")[0].splitlines():
        command = re.match(r"  ([a-z]+) ", line)
        if command and command[1] != "help":
            done = study(ROOT, command[1], "--help")
            assert done.returncode == 0 and command[1] in done.stdout, command[1] + done.stderr
    assert "are passed to snakemake" in study(ROOT, "run", "--help").stdout


def test_unknown_command_and_option() -> None:
    done = study(ROOT, "rnu")
    assert done.returncode == 2
    assert done.stderr == "error: unknown command 'rnu'; ./study help lists the commands\n"
    assert study(ROOT, "advise").stderr.startswith("usage: ./study advise ")
    done = study(ROOT, "run", "--dry-run")
    assert done.returncode == 2 and "arguments after -- are passed to snakemake" in done.stderr


def test_wrong_arguments_are_told_before_anything_is_compiled(checkout: Checkout) -> None:
    checkout.copied_setup()
    source = checkout.folder / "workflow" / "native" / "probe" / "collprobe.c"
    source.write_text(source.read_text() + "/* changed */\n")
    for arguments in (
        ["what-ran"],
        ["tune", "--limt", "5", "--", "mpirun", "true"],
        ["reanalyse", "--all"],
        ["publish", "--too"],
    ):
        done = study(checkout.folder, *arguments)
        assert done.returncode == 2 and done.stderr.startswith("usage: ./study"), done.stderr
        assert "setup: " not in done.stderr + done.stdout


def test_a_misspelt_part_or_table_is_named_before_anything_is_set_up() -> None:
    for command in ("test", "bench"):
        done = study(ROOT, command, "lnt")
        assert done.returncode == 2 and re.search(r"unknown part 'lnt'; (allowed|known): ", done.stderr), done.stderr
        assert "setup: " not in done.stderr
    done = study(ROOT, "compact", "nosuch")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: no table 'nosuch': data/nosuch.yaml does not exist; known: orfeo-epyc-tallone,"
    )


def test_a_results_folder_that_cannot_be_written_is_one_message(checkout: Checkout, tmp_path: Path) -> None:
    taken = tmp_path / "a file"
    taken.write_text("")
    done = checkout.collstudy("--results", str(taken), "check", "orfeo-epyc-ladder")
    assert done.returncode == 2 and done.stderr == f"error: {taken}/imports: Not a directory\n"


def test_a_file_that_the_disk_refuses_is_one_message(checkout: Checkout) -> None:
    """Like a full disk, with the limit of a file's size as the example."""
    words = [sys.executable, "-m", "collstudy", "--results", "results", "check", "orfeo-epyc-ladder"]
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow")}
    done = finish(["prlimit", "--fsize=1000", *words], cwd=checkout.folder, env=environment)
    assert done.returncode == 2
    assert done.stderr == "error: results/imports/orfeo-epyc-ladder.json: File too large\n"


def test_info_prints_one_key_a_line(checkout: Checkout) -> None:
    done = checkout.collstudy("info")
    values = dict(line.split("=", 1) for line in done.stdout.splitlines())
    for key in ("mpicc", "mpirun", "smpicc", "smpirun", "suite_dir", "suite_dir_simulated", "r", "snakemake"):
        assert Path(values[key]).exists(), key
    for key in ("mpicc", "mpirun", "smpicc", "smpirun", "suite", "suite_simulated", "renderer", "r", "snakemake"):
        assert values[f"{key}_version"], key
    assert (Path(values["suite_dir"]) / "collbench_bcast").exists() or values["suite"].startswith("OSU")
    assert (Path(values["suite_dir_simulated"]) / "collbench_bcast").exists()


def test_without_a_command_it_says_what_is_next(checkout: Checkout, tmp_path: Path) -> None:
    assert "Nothing is set up yet" in study(only_set_up(tmp_path / "fresh")).stdout
    said = study(checkout.folder).stdout
    assert "tiny: nothing is simulated yet (4 cells)" in said and "./study run " in said
    assert checkout.snakemake("results/tiny/measurements.csv").returncode == 0
    said = study(checkout.folder).stdout
    assert "All studies are complete; the report is out of date for: tiny" in said
    checkout.write("config/studies/tiny.yaml", TINY + "analysis: {tuning: {}}\n")
    failed = checkout.write("results/tiny/tables/tuning-failed.csv", "processes\n3\n")
    assert "tiny: 1 cell that verifies the tuning files failed" in study(checkout.folder).stdout
    failed.unlink()
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 6]"))
    assert "tiny: 2 of 6 cells are not simulated" in study(checkout.folder).stdout
    # Studies that are run by name, such as those of ./study tune, whose study.json is known after the trace only.
    for name, file in (("mine", "study.json"), ("tune-mine", "program.json"), ("gone", "study.json")):
        checkout.write(f"results/{name}/{file}", "{}")
        checkout.write(f"config/studies/{name}.yaml", TINY)
    (checkout.folder / "config" / "studies" / "gone.yaml").unlink()
    line = "with results, but not in config/config.yaml: mine, tune-mine (./study status mine)"
    for command in ((), ("status",)):
        assert study(checkout.folder, *command).stdout.splitlines().count(line) == 1
    assert line not in study(checkout.folder, "status", "tiny").stdout
    checkout.write("config/studies/tiny.yaml", TINY.replace("iterations: 3", "iterations: 4"))
    assert "tiny: 4 of 4 cells are not simulated (new, changed or interrupted)" in study(checkout.folder).stdout
    checkout.write("config/studies/tiny.yaml", TINY.replace("linear", "linaer"))
    done = study(checkout.folder)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "linaer" in done.stderr


@pytest.mark.long
def test_status_again_and_again(checkout: Checkout) -> None:
    """`status --watch` ends when nothing is left."""
    assert checkout.snakemake("results/tiny/measurements.csv").returncode == 0
    done = study(checkout.folder, "status", "--watch")
    assert done.returncode == 0 and "tiny: 4 of 4 cells done, 0 failed" in done.stdout


@pytest.mark.parametrize(
    "file, parts",
    [
        ("workflow/native/coll/core/own.h", "c lint"),
        ("workflow/analysis/R/fit.R", "lint r report"),
        ("tests/test_report.py", "lint report"),
        ("tests/test_coll_layers.py", "c lint"),
        # tests/test_docs.py is in this part.
        ("docs/files.md", "lint python"),
    ],
)
def test_the_parts_that_test_a_change(file: str, parts: str, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for path in (ROOT / "tests").glob("test_*.py"):
        (tmp_path / "tests" / path.name).touch()
    shutil.copy(ROOT / "tests" / "run", tmp_path / "tests" / "run")
    for words in ("init -q", "add .", "-c user.name=a -c user.email=b commit -qm c"):
        must(finish(["git", *words.split()], cwd=tmp_path))
    changed = tmp_path / file
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text("changed")
    assert must(finish([tmp_path / "tests" / "run", "which"])).stdout == f"./study test {parts}\n"


def test_completion(checkout: Checkout) -> None:
    def complete(*words: str) -> list[str]:
        script = f"""source <("{checkout.folder}/study" completion bash); cd "{checkout.folder}"
        COMP_WORDS=(./study {" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words)}; _study; echo "${{COMPREPLY[@]}}" """
        done = must(finish(["bash", "-c", script]))
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("cal") == ["calibrate"]
    assert complete("run", "ti") == ["tiny"]
    assert complete("calibrate", "thin") == ["thin-fat-tree", "thin"]
    assert complete("test", "sl") == ["slurm"]
    assert complete("bench", "pi") == ["pipeline"]
    assert complete("status", "--w") == ["--watch"]
    assert complete("setup", "--t") == ["--tests"]
    # The program's checkout may be gone.
    (checkout.folder / "config" / "studies").rename(checkout.folder / "gone")
    assert complete("run", "ti") == []
    assert study(ROOT, "completion", "fish").returncode == 2


def test_a_study_and_a_target_of_ones_own(checkout: Checkout) -> None:
    done = must(study(checkout.folder, "run", "tiny", "--", "results/tiny/measurements.csv", "--dry-run"))
    assert "collect_measurements" in done.stdout + done.stderr


def test_a_home_folder_that_cannot_be_written_is_not_needed(checkout: Checkout) -> None:
    """Snakemake creates a cache in it, with a traceback where it cannot."""
    done = study(
        checkout.folder, "run", "tiny", "--", "--dry-run", environment={"HOME": "/dev/null", "XDG_CACHE_HOME": ""}
    )
    assert "tiny: 0 of 4 cells are stored" in must(done).stderr


@pytest.mark.long
def test_neither_home_nor_user_need_be_known(checkout: Checkout) -> None:
    """As in a service and in a container with a user without a name: Open MPI wants the folder, Snakemake the name."""
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "USER", "LOGNAME")}
    done = must(finish([checkout.folder / "study", "info"], env=environment))
    assert "\nmpirun_version=Open MPI" in done.stdout, done.stdout
    nameless = ["unshare", "--user", "--map-user=4321"]
    if finish([*nameless, "true"]).returncode:
        pytest.skip("namespaces are not permitted")
    done = must(finish([*nameless, checkout.folder / "study", "run", "tiny", "--", "--dry-run"], env=environment))
    assert "tiny: 0 of 4 cells are stored" in done.stderr


def test_settings_of_ones_own_do_not_replace_the_named_studies(checkout: Checkout) -> None:
    checkout.write("config/studies/other.yaml", TINY)
    done = must(study(checkout.folder, "run", "other", "--", "--dry-run", "--config", "max_node_hours=1"))
    assert "other: 0 of 4 cells are stored" in done.stderr
    assert "tiny" not in done.stdout + done.stderr


def test_activate_finds_its_own_checkout(checkout: Checkout) -> None:
    """It works from any folder, even if two checkouts share the products of set-up."""
    script = (
        f'source "{checkout.folder}/.study/activate" && command -v snakemake && echo "$PYTHONPATH" && echo "$R_LIBS"'
    )
    done = must(finish(["bash", "-c", script], cwd="/", env={**os.environ, "R_LIBS": "/of/the/user"}))
    snakemake, python_path, r_libraries = done.stdout.splitlines()
    assert snakemake == f"{checkout.folder}/.study/venv/bin/snakemake"
    assert python_path == f"{checkout.folder}/workflow"
    # R's packages may be those of a module.
    assert r_libraries == f"{checkout.folder}/.study/R:/of/the/user"


def test_a_search_path_of_cd_changes_nothing(checkout: Checkout, tmp_path: Path) -> None:
    """With CDPATH, `cd` may print the folder that it finds."""
    environment = {**os.environ, "CDPATH": f".:{tmp_path}"}
    done = must(finish(["bash", f"{checkout.folder.name}/study", "help"], cwd=checkout.folder.parent, env=environment))
    assert done.stdout.startswith("Usage: ./study")
    script = 'source .study/activate && echo "$PYTHONPATH"'
    done = must(finish(["bash", "-c", script], cwd=checkout.folder, env=environment))
    assert done.stdout == f"{checkout.folder}/workflow\n"


def test_python_packages_of_a_module_do_not_hide_those_of_the_workflow(checkout: Checkout, tmp_path: Path) -> None:
    """Python searches PYTHONPATH before the packages of .study/venv. Programs of the user still have it."""
    (tmp_path / "yaml.py").write_text("raise ImportError('built for another Python')\n")
    environment = {**mpi_environment(), "PYTHONPATH": str(tmp_path)}
    must(study(checkout.folder, "run", "tiny", "--", "--dry-run", environment=environment))
    words = [library().mpirun, "-n", "1", "sh", "-c", "echo modules $PYTHONPATH"]
    done = study(checkout.folder, "what-ran", "--", *map(str, words), environment=environment)
    assert f"modules {tmp_path}\n" in done.stdout, done.stderr


def test_programs_need_none_of_the_studies(checkout: Checkout) -> None:
    """Of the example studies, which a user may remove."""
    (checkout.folder / "config" / "studies" / "this-machine.yaml").unlink()
    for command in ("what-ran", "tune"):
        done = study(checkout.folder, command, "--", "true")
        assert done.returncode == 2 and "\nerror: true: no MPI launcher" in f"\n{done.stderr}", done.stderr


@pytest.mark.parametrize("option", ["-np", "--dryrun"])
def test_every_spelling_of_a_dry_run(checkout: Checkout, option: str) -> None:
    done = must(study(checkout.folder, "run", "tiny", "--", "results/tiny/measurements.csv", option))
    assert "collect_measurements" in done.stdout + done.stderr
    assert "measuring " not in done.stderr and "report:" not in done.stdout, done.stderr


@pytest.mark.parametrize("limit", ["0", "-1", "inf", "nan", "1e10", "an hour"])
def test_a_time_limit_is_a_number_of_seconds(checkout: Checkout, limit: str) -> None:
    done = checkout.collstudy("what-ran", f"--limit={limit}", "--", str(library().mpirun), "-n", "1", "true")
    assert done.returncode == 2
    assert f"argument --limit: {limit!r} is not a number above 0 and at most 1,000,000,000" in done.stderr, done.stderr


def test_an_unknown_option_is_told_with_the_usage_of_its_command(checkout: Checkout) -> None:
    done = study(checkout.folder, "status", "--wacth")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ./study status ") and "unrecognized arguments: --wacth" in done.stderr


def test_a_name_that_is_too_long_is_one_message(checkout: Checkout) -> None:
    done = checkout.collstudy("explain", "a" * 300)
    assert done.returncode == 2 and done.stderr == f"error: {'a' * 300}: File name too long\n", done.stderr


def test_a_link_to_the_script_is_the_script(checkout: Checkout, tmp_path: Path) -> None:
    """As in a folder on PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "study").symlink_to(checkout.folder / "study")
    assert must(finish([tmp_path / "bin" / "study", "help"])).stdout.startswith("Usage: ./study")


def test_paths_are_those_of_the_folder_that_one_is_in(tmp_path: Path) -> None:
    (tmp_path / "my.rules").write_text("1\n7\n1\n4\n2\n0 6 0 0\n1024 1 0 0\n")
    done = finish([ROOT / "study", "explain", "my.rules"], cwd=tmp_path, timeout=100)
    assert "my.rules" in done.stdout and "no such file" not in done.stderr.lower(), done.stderr


@pytest.mark.long
def test_a_run_whose_script_is_killed_ends(checkout: Checkout) -> None:
    """`kill` with the number of ./study reaches only its shell; the run went on without it."""
    text = TINY.replace("[2, 4]", "{from: 2, to: 48, step: 4}").replace("iterations: 3", "iterations: 40")
    checkout.write("config/studies/tiny.yaml", text)
    command = [checkout.folder / "study", "measure", "tiny"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(checkout.folder.glob("results/cells/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    # The end of the text is the end of all that write it.
    said = process.communicate(timeout=120)[1]
    assert "no further jobs are started; the run ends after the running ones (at once: SIGINT)" in said, said
    assert not (checkout.folder / "results" / "tiny" / "measurements.csv").exists()


def test_paths_are_those_of_the_results_folder(checkout: Checkout) -> None:
    """Of the report at the end of a run, with and without Snakemake, of a program's result, and of failed cells."""
    checkout.write("config/config.yaml", "studies: [tiny]\nresults: else where\n")
    folder = checkout.folder / "else where"
    for _ in range(2):
        path = must(study(checkout.folder, "run")).stdout.split("report: ")[1].splitlines()[0]
        assert path == str(folder / "report" / "index.html") and Path(path).is_file()
    written = must(checkout.collstudy("tune", "--name", "mine", "--", str(library().mpirun), "-n", "2", sys.executable))
    assert written.stdout == f"{folder / 'tune-mine'}\ntune-mine\n"
    for path in (folder / "cells").rglob("*.json"):
        path.unlink()
    with_faulty_simulator(checkout)
    failing = {**checkout.first_on_path, "FAULT": "crash"}
    assert study(checkout.folder, "measure", environment=failing).returncode
    assert "(why: else where/tiny/cells.csv, logs/measure/)" in must(study(checkout.folder)).stdout
