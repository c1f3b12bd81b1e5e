"""The workflow from its outermost interface: snakemake on a small simulated study, its reruns, and what goes wrong."""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import snakemake_logger_plugin_collstudy
from collstudy.launch.toolchain import installed
from conftest import IMPORTED, ROOT, TINY, Checkout, csv_rows, local_study, must
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_collstudy import LogHandler

MEASURED = "results/tiny/measurements.csv"


def rows(checkout: Checkout, name: str = MEASURED) -> list[dict[str, str]]:
    return csv_rows(checkout.folder / name)


def run(checkout: Checkout, *arguments: str, environment: dict[str, str] | None = None) -> str:
    done = must(checkout.snakemake(*arguments, environment=environment))
    return done.stdout + done.stderr


def cell_files(checkout: Checkout) -> dict[str, int]:
    """Cell files with the time at which each was written."""
    return {str(p): p.stat().st_mtime_ns for p in (checkout.folder / "results" / "cells").rglob("*.json")}


def test_measure_rerun_change(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    first = (checkout.folder / MEASURED).read_bytes()
    assert len(rows(checkout)) == 4 * 11
    asked = rows(checkout, "results/tiny/cells.csv")
    assert {row["status"] for row in asked} == {"measured"}
    # A simulator is not started in a millisecond, nor in a megabyte.
    assert all(float(row["seconds"]) > 0.001 and float(row["peak_memory_mb"]) > 1 for row in asked)
    assert all(float(row["latency_us"]) > 0 and row["simulated"] == "TRUE" for row in rows(checkout))
    cells = cell_files(checkout)
    # Nothing changed: nothing to do.
    assert "Nothing to be done" in run(checkout, MEASURED)
    # One process count more: two new cells, the four old files untouched.
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 6]"))
    assert "2 to measure in 1 block," in run(checkout, MEASURED)
    after = cell_files(checkout)
    assert len(after) == 6 and cells.items() <= after.items()
    assert len(rows(checkout)) == 6 * 11
    # And back: nothing is measured, the table is the first one again, byte for byte.
    checkout.write("config/studies/tiny.yaml", TINY)
    assert "to measure" not in run(checkout, MEASURED)
    assert (checkout.folder / MEASURED).read_bytes() == first
    # The same from nothing: simulation is deterministic.
    shutil.rmtree(checkout.folder / "results")
    run(checkout, MEASURED)
    assert (checkout.folder / MEASURED).read_bytes() == first


@pytest.mark.long
def test_the_scheduler_does_not_look_again_each_second(checkout: Checkout) -> None:
    """Timers of Snakemake's rate limit multiply with the jobs that have ended."""
    script = (
        "import sys, threading\n"
        "started, start = [], threading.Timer.start\n"
        "threading.Timer.start = lambda timer: (started.append(timer), start(timer))\n"
        "from collstudy.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('timers', len(started))\n"
    )
    words = ("-c", script, "run", "--studies", "tiny", "--")
    assert "timers 0" in checkout.python(*words, MEASURED).stdout
    shutil.rmtree(checkout.folder / "results")
    limited = checkout.python(*words, "--max-jobs-per-timespan", "9/1s", "--", MEASURED).stdout
    assert "timers" in limited and "timers 0" not in limited


def test_without_a_target_everything_is_made(checkout: Checkout) -> None:
    """The root's Snakefile includes the workflow's, and an included file has no say in the default target."""
    printed = run(checkout, "--dry-run")
    assert "give_verdict" in printed and "Nothing to be done" not in printed


def test_results_are_complete_without_snakemakes_memory(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert "Nothing to be done" in run(checkout, MEASURED)
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text() + "\nblock_minutes: 7\nlaunch_time_limit_s: 30\n")
    assert "to measure" not in run(checkout, MEASURED)


def test_a_study_waits_for_the_cells_that_another_one_measures(checkout: Checkout) -> None:
    checkout.write("config/studies/same.yaml", TINY)
    checkout.write("config/studies/more.yaml", TINY.replace("[2, 4]", "[2, 4, 6]"))
    targets = [f"results/{study}/measurements.csv" for study in ("same", "more", "tiny")]
    run(checkout, "--config", "studies=tiny,same,more", "--", *targets)
    for study, ranks in (("same", 2), ("more", 3)):
        assert len(rows(checkout, f"results/{study}/measurements.csv")) == 2 * ranks * 11
        assert {row["status"] for row in rows(checkout, f"results/{study}/cells.csv")} == {"measured"}


def test_a_damaged_cell_is_set_aside_and_measured_again(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    first = (checkout.folder / MEASURED).read_bytes()
    for _ in range(2):
        victim = sorted((checkout.folder / "results" / "cells").rglob("*.json"))[0]
        victim.write_text(victim.read_text()[:100])
        printed = run(checkout, MEASURED)
        assert "1 to measure" in printed and "damaged cell file set aside" in printed and victim.name in printed
        assert (checkout.folder / MEASURED).read_bytes() == first
    assert len(list((checkout.folder / "results" / "cells").rglob("*.damaged-*"))) == 2


FAULTY = """#!/bin/bash
# A launcher that fails in the way that FAULT says when 4 processes are asked for.
real={real}
case " $* " in
  *" -wrapper printf "*) exit 1 ;; # simulations share no start
  *" -np 4 "*)
    case $FAULT in
      crash) echo "about to crash"; exit 139 ;;
      hang) exec sleep 300 ;;
      garbage) echo "no benchmark measures it"; exit 0 ;;
      truncated) "$real" "$@" | head -8; exit 0 ;;
    esac ;;
esac
exec "$real" "$@"
"""


@pytest.fixture
def faulty(checkout: Checkout) -> Checkout:
    launcher = checkout.write("bin/smpirun", FAULTY.format(real=shutil.which("smpirun")))
    launcher.chmod(0o755)
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text() + "\nlaunch_time_limit_s: 4\n")
    return checkout


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "crash: smpirun ended with exit status 139"),
        pytest.param("hang", "time limit: not finished after 4 s", marks=pytest.mark.long),
        ("garbage", "output: the output is not complete"),
        pytest.param("truncated", "output: the output is not complete", marks=pytest.mark.long),
    ],
)
def test_a_launch_that_fails_fails_its_cell_alone(faulty: Checkout, fault: str, reason: str) -> None:
    path = {"PATH": f"{faulty.folder / 'bin'}:{os.environ['PATH']}"}
    run(faulty, MEASURED, environment={**path, "FAULT": fault})
    status = {(row["algorithm"], row["processes"]): row for row in rows(faulty, "results/tiny/cells.csv")}
    assert [status[a, "2"]["status"] for a in ("default", "linear")] == ["measured"] * 2
    assert [status[a, "4"]["status"] for a in ("default", "linear")] == ["failed"] * 2
    assert reason in status["linear", "4"]["reason"]
    verdict = faulty.collstudy("--results", "results", "verdict", "tiny")
    assert verdict.returncode == 1
    assert "failed: tiny: bcast linear mapping core processes 4: " + reason in verdict.stderr
    logs = "".join(p.read_text() for p in (faulty.folder / "logs" / "measure").glob("*.log"))
    if fault in ("crash", "garbage"):
        assert {"crash": "about to crash", "garbage": "no benchmark measures it"}[fault] in logs
    # The next run, without the fault, measures just the failed cells and is complete.
    before = cell_files(faulty)
    assert "2 to measure" in run(faulty, MEASURED, environment=path)
    assert len(rows(faulty)) == 4 * 11
    changed = [name for name, when in cell_files(faulty).items() if before[name] != when]
    assert len(changed) == 2 and all("_p4-" in name for name in changed)


#: An mpirun whose first launches of a benchmark, as many as the file `crashes` has lines, end with an error.
CRASHING = """\
#!/bin/bash
case "$*" in *bench_*)
  echo "$TMPDIR" >> {folder}/sessions
  if [ -s {folder}/crashes ]; then sed -i 1d {folder}/crashes; exit 1; fi ;;
esac
exec {real} "$@"
"""


@pytest.mark.parametrize(("crashes", "status"), [(1, "measured"), (2, "failed")])
def test_a_cell_that_crashed_is_launched_once_more(checkout: Checkout, crashes: int, status: str) -> None:
    programs = checkout.folder / "bin"
    checkout.write("bin/crashes", "x\n" * crashes)
    mpi = installed("openmpi")
    for program in (mpi.mpicc, mpi.ompi_info):
        checkout.write(f"bin/{program.name}", f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n').chmod(0o755)
    quoted = {"folder": shlex.quote(str(programs)), "real": shlex.quote(str(mpi.mpirun))}
    checkout.write("bin/mpirun", CRASHING.format(**quoted)).chmod(0o755)
    checkout.write(
        "config/studies/tiny.yaml", local_study("collective: barrier, algorithms: [linear], iterations: 5, warmup: 1")
    )
    done = must(checkout.snakemake("--", MEASURED, environment={"PATH": f"{programs}:{os.environ['PATH']}"}))
    (cell,) = rows(checkout, "results/tiny/cells.csv")
    assert cell["status"] == status and not (programs / "crashes").read_text()
    assert (done.stdout + done.stderr).count("it is launched once more") == 1
    # What a killed launcher leaves is never in the way of another: all is below a folder of the run, which is gone.
    sessions = {Path(line) for line in (programs / "sessions").read_text().splitlines()}
    assert sessions and all("collstudy-" in str(path) and not path.exists() for path in sessions)


def test_a_run_by_study_says_what_failed_and_nothing_around_it(faulty: Checkout) -> None:
    path = {"PATH": f"{faulty.folder / 'bin'}:{os.environ['PATH']}", "FAULT": "crash"}
    done = faulty.snakemake("--logger", "collstudy", "--", "measure", environment=path)
    printed = done.stdout + done.stderr
    assert done.returncode == 1
    assert printed.count("failed: tiny: bcast linear mapping core processes 4: crash") == 1
    assert "] measuring thin_smpi" in printed and "] collecting the measurements of tiny" in printed
    for words in (
        "WorkflowError",
        "Error in rule",
        "RuleException",
        "Exiting",
        "Building DAG",
        "Traceback",
        "steps (",
        "measure failed",
    ):
        assert words not in printed, printed


def test_failed_rules_are_named_again_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    def record(text: str = "", **fields: object) -> logging.LogRecord:
        return logging.makeLogRecord({"msg": text, "levelno": logging.ERROR, **fields})

    def lines(*between: logging.LogRecord) -> list[str]:
        shown = object.__new__(LogHandler)
        shown.__post_init__()
        job = {"jobid": 1, "rule_name": "decide_tuning", "log": ["logs/one.log"], "wildcards": {"study": "one"}}
        error = record(event=LogEvent.JOB_ERROR, jobid=1)
        for one in (
            record(event=LogEvent.JOB_INFO, **job),
            error,
            *between,
            record("Exiting because a job execution failed."),
        ):
            shown.emit(one)
        return capsys.readouterr().err.splitlines()

    said = "decide_tuning failed; its output is in logs/one.log"
    assert lines() == ["deciding for one", said]
    other = {"jobid": 2, "rule_name": "decide_tuning", "log": [], "wildcards": {"study": "two"}}
    assert lines(record(event=LogEvent.JOB_INFO, **other)) == ["deciding for one", said, "deciding for two", said]


def test_jobs_that_run_silently_are_named_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is never silent for long: jobs of the analysis print nothing of their own."""
    monkeypatch.setattr(snakemake_logger_plugin_collstudy, "SILENCE_S", 0.05)
    shown = object.__new__(LogHandler)
    shown.__post_init__()

    def started(number: int, rule: str, **wildcards: str) -> logging.LogRecord:
        job = {"jobid": number, "rule_name": rule, "log": [], "wildcards": wildcards}
        return logging.makeLogRecord({"msg": "", "levelno": logging.INFO, "event": LogEvent.JOB_INFO, **job})

    def read(until: str) -> str:
        said, deadline = "", time.monotonic() + 20
        while until not in said and time.monotonic() < deadline:
            time.sleep(0.02)
            said += capsys.readouterr().err
        return said

    shown.emit(started(1, "measure_block", block="b"))
    shown.emit(started(2, "analyse_study", study="one"))
    shown.emit(started(3, "render_report"))
    line = "still tables, models and figures of one (0:00); rendering the report (0:00)"
    assert line in read(line)
    for number in (2, 3):
        shown.emit(logging.makeLogRecord({"event": LogEvent.JOB_FINISHED, "job_id": number}))
    shown.emit(started(4, "decide_tuning", study="two"))
    line = "still deciding for two (0:00)"
    assert line in read(line).splitlines()
    shown.emit(logging.makeLogRecord({"event": LogEvent.JOB_ERROR, "jobid": 4, "rule_name": "decide_tuning"}))
    capsys.readouterr()
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_imported_studies_have_figures_before_others_are_measured(checkout: Checkout) -> None:
    checkout.write("config/studies/theirs.yaml", IMPORTED)
    lines = ["Processes,Size,Latency", *(f"{ranks},{size},{ranks * size}" for ranks in (2, 4) for size in (1, 2))]
    checkout.write("data/somebodys/bcast.csv", "\n".join(lines) + "\n")
    studies = ["tiny", "next", "last", "theirs"]
    for study, ranks in zip(studies[1:3], ("[6, 8]", "[10, 12]"), strict=True):
        checkout.write(f"config/studies/{study}.yaml", TINY.replace("[2, 4]", ranks))
    checkout.write("config/config.yaml", f"studies: [{', '.join(studies)}]\nresults: results\n")
    targets = [f"results/{study}/figures/index.csv" for study in studies]
    done = must(checkout.snakemake("--logger", "collstudy", "--cores", "1", *targets))
    lines = done.stderr.splitlines()
    shown = lines.index("figures: results/theirs/figures/")
    assert shown < next(at for at, line in enumerate(lines) if "measuring" in line), done.stderr
    assert "figures: results/tiny/figures/" in lines


def test_killed_and_started_again(checkout: Checkout) -> None:
    text = TINY.replace("[2, 4]", "{from: 2, to: 48, step: 2}")
    checkout.write("config/studies/tiny.yaml", text)
    process = subprocess.Popen(
        ["snakemake", MEASURED], cwd=checkout.folder, start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(checkout.folder / "workflow")},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(cell_files(checkout)) < 5 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1.5)  # launches that the kill left behind end by themselves
    kept = cell_files(checkout)
    assert 5 <= len(kept) < 48
    printed = run(checkout, "--unlock") + run(checkout, MEASURED)
    assert f"{len(kept)} of 48 cells are stored" in printed or "cells are stored" in printed
    after = cell_files(checkout)
    assert kept.items() <= after.items() and len(after) == 48
    assert len(rows(checkout)) == 48 * 11
    assert not list((checkout.folder / "results").rglob("*.tmp"))


def test_interrupted_and_started_again(checkout: Checkout) -> None:
    """Ctrl-C ends a run with a line, without tracebacks and without calling jobs failed that it ended."""
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "{from: 2, to: 48, step: 2}"))
    command = [sys.executable, "-m", "collstudy", "run", "--studies", "tiny", "--", MEASURED]
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow")}
    process = subprocess.Popen(
        command, cwd=checkout.folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        # A test that runs in the background inherits an ignored signal.
        env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(cell_files(checkout)) < 5 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode != 0
    assert "interrupted: ending the jobs that run" in said.splitlines()
    assert "Traceback" not in said and "_block failed" not in said, said
    kept = cell_files(checkout)
    assert 5 <= len(kept) < 48
    again = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    after = cell_files(checkout)
    assert kept.items() <= after.items() and len(after) == 48


@pytest.mark.long
def test_launches_are_added_to_the_same_file(checkout: Checkout) -> None:
    """Real launches: more of them are asked for later, and the first ones stay."""
    study = local_study(
        "collective: bcast, algorithms: [default, linear], sizes: {from: 1, to: 64}, iterations: 20, warmup: 2"
    )
    measured = "results/local/measurements.csv"
    checkout.write("config/studies/local.yaml", study)
    run(checkout, "--config", "studies=local", "--", measured)
    first = rows(checkout, measured)
    assert len(first) == 2 * 7
    checkout.write("config/studies/local.yaml", study.replace("max: 1", "max: 2").replace("min: 1", "min: 2"))
    run(checkout, "--config", "studies=local", "--", measured)
    second = rows(checkout, measured)
    assert len(second) == 2 * 14 and [row for row in second if row["launch"] == "1"] == first
    assert len(cell_files(checkout)) == 2
    document = json.loads(Path(next(name for name in cell_files(checkout) if "linear" in name)).read_text())
    assert document["proof"]["component"] == "tuned" and document["proof"]["used"] is True
    launcher = shlex.split(document["launches"][1]["provenance"]["command"])[0]
    assert launcher.endswith("/mpirun") and Path(launcher).is_absolute()
    assert {row["proved"] for row in second if row["algorithm"] == "linear"} == {"TRUE"}


def test_a_forced_algorithm_that_another_component_ran_is_marked(checkout: Checkout) -> None:
    """coll/tuned is kept out by the environment of a system: what is forced does not run, and the cell says so."""
    study = local_study("collective: barrier, algorithms: [linear], iterations: 20, warmup: 2")
    checkout.write("config/studies/local.yaml", study)
    environment = {"OMPI_MCA_coll_tuned_priority": "1"}
    run(checkout, "--config", "studies=local", "--", "results/local/measurements.csv", environment=environment)
    (cell,) = rows(checkout, "results/local/cells.csv")
    assert cell["status"] == "unproved" and "not tuned" in cell["reason"]
    assert {row["proved"] for row in rows(checkout, "results/local/measurements.csv")} == {"FALSE"}


@pytest.mark.long
def test_after_an_aligned_barrier_all_ranks_start_together(checkout: Checkout) -> None:
    """No rank then has its message before one message time (0.19 us); after a tree barrier late ranks find theirs waiting."""

    def fastest(barrier: str) -> float:
        study = TINY.replace("[default, linear]", "[linear]").replace("[2, 4]", "[16]")
        checkout.write("config/studies/tiny.yaml", study + f"    barrier: {barrier}\n")
        run(checkout, "--", MEASURED)
        return min(float(row["min_latency_us"]) for row in rows(checkout))

    assert fastest("tree") < 0.15
    assert fastest("aligned") > 0.19


#: What config/studies/this-machine.yaml is on a machine of so many cores, simulated so that any machine can run it.
ON_CORES = """
title: On {cores} cores
question: Which is fastest?
machine: thin
sweeps:
  - {{collective: bcast, algorithms: [default, linear, chain, binomial], mappings: [core],
      processes: {{from: 2, to: {cores}, factor: 2}}, sizes: {{from: 1, to: 65536, factor: 16}}, iterations: 2, warmup: 1}}
  - {{collective: barrier, algorithms: [default, linear, recursive_doubling], mappings: [core],
      processes: {{from: 2, to: {cores}, factor: 2}}, iterations: 2, warmup: 1}}
"""


@pytest.mark.long
def test_nothing_empty_is_shown_however_many_cores(checkout: Checkout) -> None:
    """Two, four and sixteen cores; on one core the study is left out with a message (test_draft.py)."""
    for cores in (2, 4, 16):
        checkout.write(f"config/studies/cores-{cores}.yaml", ON_CORES.format(cores=cores))
    checkout.write("config/config.yaml", "studies: [cores-2, cores-4, cores-16]\nresults: results\n")
    run(checkout)
    report = checkout.folder / "results" / "report"
    for cores in (2, 4, 16):
        page = (report / f"sec-cores-{cores}.html").read_text()
        tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
        assert tables and all("<td" in table for table in tables)
        assert ("two ranks cannot tell algorithms apart" in page.lower()) == (cores == 2)
        assert "There are no figures and tables" not in page
        for image in re.findall(r'<img src="([^"]+)"', page):
            assert (report / image).stat().st_size > 0


def test_from_the_question_to_the_report(checkout: Checkout) -> None:
    """The whole path of a small study, with a cell that fails: the report shows it as missing, the run says so at the end."""
    barrier = "  - {collective: barrier, algorithms: [default, linear], mappings: [core], processes: [2, 4, 6], iterations: 3, warmup: 1}\n"
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 6]") + barrier)
    run(checkout)
    pages = "".join(page.read_text() for page in (checkout.folder / "results" / "report").glob("*.html"))
    assert "A tiny study" in pages and "simulated" in pages and "SimGrid" in pages
    pdf = checkout.folder / "results" / "report" / "report.pdf"
    text = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True).stdout
    assert "A tiny study" in text and "simulated" in text
    assert "Nothing to be done" in run(checkout)
    # Snakemake's own report has the main figures: drawing, category (the study) and the caption that the index gives.
    run(checkout, "--report", "own.html")
    own = (checkout.folder / "own.html").read_text()
    shown, categories = (
        json.JSONDecoder().raw_decode(own, own.index(text) + len(text) - 1)[0]
        for text in ("var results = {", "var categories = {")
    )
    captions = {row["id"]: row["caption"] for row in rows(checkout, "results/tiny/figures/index.csv")}
    assert {"bcast-decision-map", "barrier-decision-map"} <= {Path(name).stem for name in shown}
    for name, figure in shown.items():
        assert base64.b64encode((checkout.folder / name).read_bytes()).decode() in figure["data_uri"]
        assert html.unescape(re.sub("<[^>]+>", "", figure["caption"])).strip() == captions[Path(name).stem]
    assert list(categories) == ["tiny"]
    # A cell that fails is in the report with its reason; the other results stay, and the run ends with its name.
    launcher = checkout.write("bin/smpirun", FAULTY.format(real=shutil.which("smpirun")))
    launcher.chmod(0o755)
    checkout.write(
        "config/studies/tiny.yaml",
        TINY.replace("[2, 4]", "[2, 4, 6]").replace("iterations: 3", "iterations: 4") + barrier,
    )
    path = f"{checkout.folder / 'bin'}:{os.environ['PATH']}"
    done = checkout.snakemake(environment={"PATH": path, "FAULT": "crash"})
    assert done.returncode != 0
    assert "failed: tiny: bcast linear mapping core processes 4: crash" in done.stdout + done.stderr
    pages = "".join(page.read_text() for page in (checkout.folder / "results" / "report").glob("*.html"))
    assert "crash: smpirun ended with exit status 139" in " ".join(pages.split())


def test_jobs_load_the_modules_of_a_profile(checkout: Checkout, tmp_path: Path) -> None:
    said = tmp_path / "modules"
    profile = (checkout.folder / "profiles" / "default" / "profile.yaml").read_text()
    checkout.write("profiles/site/profile.yaml", profile + "software-deployment-method: env-modules\n")
    checkout.write("config/config.yaml", "studies: [tiny]\nresults: results\nmodules: [gcc/13.2.0, openmpi/5.0.5]\n")
    # As Lmod and Environment Modules define the command for every shell.
    (tmp_path / "init").write_text(f'module() {{ echo "$@" >> {said}; }}\n')
    done = checkout.snakemake(
        "--workflow-profile", "profiles/site", "--", "results/tiny/measurements.csv",
        environment={"BASH_ENV": str(tmp_path / "init")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert said.read_text().splitlines()[:2] == ["purge", "load gcc/13.2.0 openmpi/5.0.5"]


# Apptainer as far as Snakemake uses it: runs the command of `apptainer exec OPTIONS IMAGE bash -c COMMAND` on this computer.
APPTAINER = """#!/bin/sh
[ "$1" != --version ] || { echo apptainer version 1.3.4; exit; }
while [ "$1" != bash ]; do image=$1; shift; done
echo "$image $APPTAINERENV_PREPEND_PATH $APPTAINERENV_R_LIBS $3" | tr '\\n' ' ' >> "$SAID"
echo >> "$SAID"
exec "$@"
"""


def test_analysis_and_report_run_in_an_image(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write("bin/apptainer", APPTAINER).chmod(0o755)
    checkout.write("collstudy.sif", "")
    path, said = f"{checkout.folder / 'bin'}:{os.environ['PATH']}", tmp_path / "said"
    done = checkout.snakemake(
        "--sdm", "apptainer", "--config", "image=collstudy.sif",
        environment={"PATH": path, "SAID": str(said)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    calls = [line.split(" ", 3) for line in said.read_text().splitlines()]
    assert [Path(image).name for image, *_ in calls] == ["collstudy.sif", "collstudy.sif"]
    assert {(python, r) for _, python, r, _ in calls} == {("/collstudy/.study/venv/bin", "/collstudy/.study/R")}
    assert "analyse.R" in calls[0][3]
    assert " render " in calls[1][3]


def test_an_analysis_package_of_another_checkout_is_refused(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stamps").mkdir()
    (tmp_path / "stamps" / "r").write_text("0" * 64 + "\n")
    assert checkout.snakemake("--", "results/tiny/sentences.csv").returncode == 0
    monkeypatch.setenv("R_LIBS", str(tmp_path / "R"))
    done = checkout.collstudy("made", "tiny", "analyse")
    assert done.returncode == 2
    assert "was not installed from workflow/analysis of this checkout: run ./study setup" in done.stderr
    shutil.copy(ROOT / ".study" / "stamps" / "r", tmp_path / "stamps" / "r")
    done = must(checkout.collstudy("made", "tiny", "analyse"))
