"""The workflow through its outermost interface: snakemake on a small simulated study, its reruns, and its report."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import shlex
import shutil
import time
from pathlib import Path

import pytest
import snakemake_logger_plugin_collstudy
from collstudy.base.clock import clock
from conftest import IMPORTED, TINY, Checkout, executable, finish, local_study, must
from made_runs import MEASURED, cell_files, cell_rows, measured, rows, run, with_faulty_simulator, with_mpirun
from snakemake.scheduling import job_scheduler
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_collstudy import LogHandler


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.6, "4 s"), (59.7, "1 min 0 s"), (114, "1 min 54 s"), (7500, "2 h 5 min")]
)
def test_durations_have_units(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_measure_rerun_change(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    first = (checkout.folder / MEASURED).read_bytes()
    assert len(rows(checkout)) == 4 * 11
    asked = rows(checkout, "results/tiny/cells.csv")
    assert {row["status"] for row in asked} == {"measured"}
    # A simulator needs more than a millisecond and more than a megabyte.
    assert all(float(row["seconds"]) > 0.001 and float(row["peak_memory_mb"]) > 1 for row in asked)
    assert all(float(row["latency_us"]) > 0 and row["simulated"] == "TRUE" for row in rows(checkout))
    cells = cell_files(checkout)
    # Nothing has changed: nothing to do.
    assert "Nothing to be done" in run(checkout, MEASURED)
    # One more process count: two new cells, the four old files are untouched.
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 6]"))
    assert "2 to simulate in 1 block," in run(checkout, MEASURED)
    after = cell_files(checkout)
    assert len(after) == 6 and cells.items() <= after.items()
    assert len(rows(checkout)) == 6 * 11
    # Change it back: nothing is measured, and the table is identical to the first one.
    checkout.write("config/studies/tiny.yaml", TINY)
    assert "to simulate" not in run(checkout, MEASURED)
    assert (checkout.folder / MEASURED).read_bytes() == first
    # The same after deleting everything: simulation is deterministic.
    shutil.rmtree(checkout.folder / "results")
    run(checkout, MEASURED)
    assert (checkout.folder / MEASURED).read_bytes() == first


@pytest.mark.long
def test_cells_whose_ranks_were_not_bound_say_so(checkout: Checkout) -> None:
    """Without the machine's `oversubscribe` the cells of bound ranks are measured; the others are kept."""
    study = local_study("collective: barrier, algorithms: [default]")
    machine = checkout.folder / "config" / "machines" / "this-machine.yaml"
    bound = machine.read_text()
    checkout.oversubscribe()
    measured(checkout, "local", study)
    (cell,) = cell_rows(checkout, "local")
    assert (cell["status"], cell["bound"]) == ("measured", "FALSE")
    machine.write_text(bound)
    measured(checkout, "local")
    assert cell_rows(checkout, "local")[0]["bound"] == "TRUE"
    assert len(cell_files(checkout)) == 2
    checkout.oversubscribe()
    measured(checkout, "local")
    assert cell_rows(checkout, "local") == [cell]


@pytest.mark.long
def test_the_scheduler_does_not_look_again_each_second(checkout: Checkout) -> None:
    """The timers of Snakemake's rate limit multiply with the number of ended jobs."""
    script = (
        "import sys, threading\n"
        "started, start = [], threading.Timer.start\n"
        "def count(timer):\n"
        "    if timer.function.__module__.startswith('snakemake.'):\n"
        "        started.append(timer)\n"
        "    start(timer)\n"
        "threading.Timer.start = count\n"
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
    """The root's Snakefile includes the workflow's, and an included file cannot set the default target."""
    printed = run(checkout, "--dry-run")
    assert "give_verdict" in printed and "Nothing to be done" not in printed


@pytest.mark.long
def test_results_are_complete_without_snakemakes_memory(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert "Nothing to be done" in run(checkout, MEASURED)
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text() + "\nblock_minutes: 7\nlaunch_time_limit_s: 30\n")
    assert "to simulate" not in run(checkout, MEASURED)


@pytest.mark.long
@pytest.mark.parametrize("deleted", [["cells"], ["cells", "blocks"]])
def test_deleted_cells_are_measured_again(checkout: Checkout, deleted: list[str]) -> None:
    run(checkout, MEASURED)
    results = checkout.folder / "results"
    before = sorted(path.name for path in (results / "cells").rglob("*.json"))
    for name in deleted:
        shutil.rmtree(results / name)
    run(checkout, MEASURED)
    assert sorted(path.name for path in (results / "cells").rglob("*.json")) == before


@pytest.mark.long
def test_a_deleted_folder_of_a_study_is_made_again(checkout: Checkout) -> None:
    target = "results/measured.txt"
    run(checkout, target)
    measured = checkout.folder / "results" / "tiny" / "measurements.csv"
    before = measured.read_bytes()
    shutil.rmtree(measured.parent)
    assert "to simulate" not in run(checkout, target)
    assert measured.read_bytes() == before
    assert "Nothing to be done" in run(checkout, target)
    # The list of the first run's blocks went with the folder, so this run's blocks have the same names.
    for name in ("cells", "blocks"):
        shutil.rmtree(checkout.folder / "results" / name)
    assert "4 to simulate" in run(checkout, target)
    assert len(cell_files(checkout)) == 4 and measured.read_bytes() == before


def test_a_study_waits_for_the_cells_that_another_one_measures(checkout: Checkout) -> None:
    checkout.write("config/studies/same.yaml", TINY)
    checkout.write("config/studies/more.yaml", TINY.replace("[2, 4]", "[2, 4, 6]"))
    targets = [f"results/{study}/measurements.csv" for study in ("same", "more", "tiny")]
    run(checkout, "--config", "studies=tiny,same,more", "--", *targets)
    for study, ranks in (("same", 2), ("more", 3)):
        assert len(rows(checkout, f"results/{study}/measurements.csv")) == 2 * ranks * 11
        assert {row["status"] for row in rows(checkout, f"results/{study}/cells.csv")} == {"measured"}


def test_jobs_that_run_silently_are_named_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is never silent for long, although jobs of the analysis print nothing themselves."""
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
    line = "still tables, models and figures of one (0 s); rendering the report (0 s)"
    assert line in read(line)
    for number in (2, 3):
        shown.emit(logging.makeLogRecord({"event": LogEvent.JOB_FINISHED, "job_id": number}))
    shown.emit(started(4, "decide_tuning", study="two"))
    line = "still selecting algorithms for two (0 s)"
    assert line in read(line).splitlines()
    shown.emit(logging.makeLogRecord({"event": LogEvent.JOB_ERROR, "jobid": 4, "rule_name": "decide_tuning"}))
    capsys.readouterr()
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_a_run_that_is_terminated_says_once_that_running_jobs_finish(capsys: pytest.CaptureFixture[str]) -> None:
    shown = object.__new__(LogHandler)
    shown.__post_init__()
    text = "Will exit after finishing currently running jobs (scheduler)."
    assert text in Path(job_scheduler.__file__).read_text()
    said = {"msg": text, "levelno": logging.INFO}
    for _ in range(2):
        shown.emit(logging.makeLogRecord(said))
    line = "no further jobs are started; the run ends after the running ones (at once: SIGINT)"
    assert capsys.readouterr().err.splitlines() == [line]


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
    assert shown < next(at for at, line in enumerate(lines) if "simulating" in line), done.stderr
    assert "figures: results/tiny/figures/" in lines


@pytest.mark.long
def test_the_environment_of_a_machine_reaches_its_launches_and_tells_its_cells_apart(checkout: Checkout) -> None:
    seen = 'case " $* " in *" -n "*) echo "$UCX_TLS" >> {folder}/seen;; esac'
    with_mpirun(checkout, f'#!/bin/sh\n{seen}\nexec {{real}} "$@"\n')
    checkout.write("config/machines/shm.yaml", "kind: local\nlabel: Here\nenvironment: {UCX_TLS: 'shm,self'}\n")
    study = local_study("collective: barrier, algorithms: [default], iterations: 5, warmup: 1")
    users = {**checkout.first_on_path, "UCX_TLS": "tcp"}
    measured(checkout, "local", study, users)
    measured(checkout, "shm", study.replace("this-machine", "shm"), users)
    # Verification and launch: those of the machine with an environment have its value instead of the user's.
    assert (checkout.folder / "bin" / "seen").read_text().split() == ["tcp", "tcp", "shm,self", "shm,self"]
    documents = [json.loads(Path(name).read_text()) for name in cell_files(checkout)]
    kept = {d["cell"]["machine"]["name"]: d["launches"][0]["provenance"]["environment"]["UCX_TLS"] for d in documents}
    assert kept == {"this-machine": "tcp", "shm": "shm,self"}
    described = json.loads((checkout.folder / "results" / "shm" / "study.json").read_text())
    assert described["machine"]["environment"] == {"UCX_TLS": "shm,self"}
    # Another value is another machine.
    checkout.write("config/machines/shm.yaml", "kind: local\nlabel: Here\nenvironment: {UCX_TLS: self}\n")
    measured(checkout, "shm", environment=users)
    assert len(cell_files(checkout)) == 3


@pytest.mark.long
def test_launches_are_added_to_the_same_file(checkout: Checkout) -> None:
    """Real launches: when more are requested later, the first ones are kept."""
    study = local_study(
        "collective: bcast, algorithms: [default, linear], sizes: {from: 1, to: 64}, iterations: 20, warmup: 2"
    )
    first = measured(checkout, "local", study)
    assert len(first) == 2 * 7
    assert "differing" not in cell_rows(checkout, "local")[0]
    more = study.replace("max: 1", "max: 2").replace("min: 1", "min: 2")
    second = measured(checkout, "local", more, {"UCX_TLS": "shm"})
    assert len(second) == 2 * 14 and [row for row in second if row["launch"] == "1"] == first
    # Their settings are not the same.
    assert {row["differing"] for row in cell_rows(checkout, "local")} == {"UCX_TLS"}
    assert len(cell_files(checkout)) == 2
    document = json.loads(Path(next(name for name in cell_files(checkout) if "linear" in name)).read_text())
    assert document["proof"]["component"] == "tuned" and document["proof"]["used"] is True
    launcher = shlex.split(document["launches"][1]["provenance"]["command"])[0]
    assert launcher.endswith("/mpirun") and Path(launcher).is_absolute()
    assert {row["proved"] for row in second if row["algorithm"] == "linear"} == {"TRUE"}


@pytest.mark.long
def test_after_an_aligned_barrier_all_ranks_start_together(checkout: Checkout) -> None:
    """No rank then has its message before one message time (0.19 us); after a tree barrier, late ranks find their message waiting."""

    def fastest(barrier: str) -> float:
        study = TINY.replace("[default, linear]", "[linear]").replace("[2, 4]", "[16]")
        checkout.write("config/studies/tiny.yaml", study + f"    barrier: {barrier}\n")
        run(checkout, "--", MEASURED)
        return min(float(row["min_latency_us"]) for row in rows(checkout))

    assert fastest("tree") < 0.15
    assert fastest("aligned") > 0.19


#: The study config/studies/this-machine.yaml for a machine with {cores} cores, simulated so that any machine can run it.
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
        assert ("with two ranks, most algorithms send the same messages" in page.lower()) == (cores == 2)
        assert "There are no figures and tables" not in page
        for image in re.findall(r'<img src="([^"]+)"', page):
            assert (report / image).stat().st_size > 0


def test_from_the_question_to_the_report(checkout: Checkout) -> None:
    """The whole path of a small study with a failing cell: the report shows it as missing, and the run names it at the end."""
    barrier = "  - {collective: barrier, algorithms: [default, linear], mappings: [core], processes: [2, 4, 6], iterations: 3, warmup: 1}\n"
    checkout.write("config/studies/tiny.yaml", TINY.replace("[2, 4]", "[2, 4, 6]") + barrier)
    # Another project's repository, in which the checkout is unpacked, has nothing to do with it.
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x", "--allow-empty"]):
        must(finish(["git", *command], cwd=checkout.folder.parent))
    foreign = must(finish(["git", "describe", "--always"], cwd=checkout.folder.parent)).stdout.strip()
    run(checkout)
    pages = "".join(page.read_text() for page in (checkout.folder / "results" / "report").glob("*.html"))
    assert "A tiny study" in pages and "simulated" in pages and "SimGrid" in pages and foreign not in pages
    pdf = checkout.folder / "results" / "report" / "report.pdf"
    text = must(finish(["pdftotext", pdf, "-"])).stdout
    assert "A tiny study" in text and "simulated" in text
    assert "Nothing to be done" in run(checkout)
    # Snakemake's own report has the main figures: drawing, category (the study), and caption from the index.
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
    # A failing cell is in the report with its reason; other results remain, and the run ends with the cell's name.
    with_faulty_simulator(checkout)
    checkout.write(
        "config/studies/tiny.yaml",
        TINY.replace("[2, 4]", "[2, 4, 6]").replace("iterations: 3", "iterations: 4") + barrier,
    )
    done = checkout.snakemake(environment={**checkout.first_on_path, "FAULT": "crash"})
    assert done.returncode != 0
    assert "failed: tiny: bcast linear mapping core processes 4: crash" in done.stdout + done.stderr
    pages = "".join(page.read_text() for page in (checkout.folder / "results" / "report").glob("*.html"))
    assert "crash: smpirun ended with exit status 139" in " ".join(pages.split())


@pytest.mark.long
def test_jobs_load_the_modules_of_a_profile(checkout: Checkout, tmp_path: Path) -> None:
    said = tmp_path / "modules"
    profile = (checkout.folder / "profiles" / "default" / "profile.yaml").read_text()
    checkout.write("profiles/site/profile.yaml", profile + "software-deployment-method: env-modules\n")
    checkout.write("config/config.yaml", "studies: [tiny]\nresults: results\nmodules: [gcc/13.2.0, openmpi/5.0.5]\n")
    words = ("--workflow-profile", "profiles/site", "--", "results/tiny/measurements.csv")
    done = checkout.snakemake(*words, environment={"BASH_ENV": ""})
    assert done.returncode == 2 and "a job's shell (bash -c) has no command `module`" in done.stderr, done.stderr
    # As Lmod and Environment Modules define the command in every shell.
    (tmp_path / "init").write_text('module() { [ "$1" != load ]; }\n')
    done = checkout.snakemake(*words, environment={"BASH_ENV": str(tmp_path / "init")})
    assert done.returncode == 1 and "module load gcc/13.2.0 openmpi/5.0.5 failed; nothing is measured" in done.stderr
    assert not list(checkout.folder.glob("results/cells/**/*.json"))
    # A module may come with a Python of its own; jobs keep theirs.
    executable(tmp_path / "other" / "python", "#!/bin/sh\nexit 9\n")
    (tmp_path / "init").write_text(
        f'module() {{ echo "$@" >> {said}; export PATH="{tmp_path}/other:$PATH" PYTHONPATH="{tmp_path}/other"; }}\n'
    )
    must(checkout.snakemake(*words, environment={"BASH_ENV": str(tmp_path / "init")}))
    assert said.read_text().splitlines()[:2] == ["purge", "load gcc/13.2.0 openmpi/5.0.5"]


# A fake Apptainer for Snakemake: runs the command of `apptainer exec OPTIONS IMAGE bash -c COMMAND` on this computer.
APPTAINER = """#!/bin/sh
[ "$1" != --version ] || { echo apptainer version 1.3.4; exit; }
while [ "$1" != bash ]; do image=$1; shift; done
echo "$image $APPTAINERENV_PREPEND_PATH $APPTAINERENV_R_LIBS $3" | tr '\\n' ' ' >> "$SAID"
echo >> "$SAID"
exec "$@"
"""


@pytest.mark.long
def test_analysis_and_report_run_in_an_image(checkout: Checkout, tmp_path: Path) -> None:
    checkout.program("apptainer", APPTAINER)
    checkout.write("collstudy.sif", "")
    said = tmp_path / "said"
    environment = {**checkout.first_on_path, "SAID": str(said)}
    must(checkout.snakemake("--sdm", "apptainer", "--config", "image=collstudy.sif", environment=environment))
    calls = [line.split(" ", 3) for line in said.read_text().splitlines()]
    assert [Path(image).name for image, *_ in calls] == ["collstudy.sif"] * 3
    assert {(python, r) for _, python, r, _ in calls} == {("/collstudy/.study/venv/bin", "/collstudy/.study/R")}
    assert "analyse.R" in calls[0][3]
    assert " front " in calls[1][3] and " render " in calls[2][3]
