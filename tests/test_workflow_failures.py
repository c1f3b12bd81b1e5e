"""Failures in a run of the workflow: damaged files, failing launches, killed or interrupted runs."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, TINY, Checkout, finish, local_study, must, quick
from made_runs import (
    MEASURED,
    cell_files,
    cell_rows,
    kill_midway,
    measured,
    rows,
    run,
    study,
    with_faulty_simulator,
    with_mpirun,
)
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_collstudy import LogHandler


@pytest.mark.long
def test_a_damaged_cell_is_set_aside_and_measured_again(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    first = (checkout.folder / MEASURED).read_bytes()
    for _ in range(2):
        victim = sorted((checkout.folder / "results" / "cells").rglob("*.json"))[0]
        victim.write_text(victim.read_text()[:100])
        printed = run(checkout, MEASURED)
        assert "1 to simulate" in printed and "damaged cell file set aside" in printed and victim.name in printed
        assert (checkout.folder / MEASURED).read_bytes() == first
    assert len(list((checkout.folder / "results" / "cells").rglob("*.damaged-*"))) == 2


def test_a_full_disk_is_named_by_the_rules_that_copy(checkout: Checkout) -> None:
    full = "#!/bin/bash\necho \"cp: error writing '${@: -1}': No space left on device\" >&2\nexit 1\n"
    checkout.program("cp", full)
    done = checkout.snakemake("--", MEASURED, environment=checkout.first_on_path)
    assert done.returncode != 0
    assert "cp: error writing 'results/tiny/pending.txt': No space left on device" in done.stdout + done.stderr


@pytest.fixture
def faulty(checkout: Checkout) -> Checkout:
    with_faulty_simulator(checkout)
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text() + "\nlaunch_time_limit_s: 4\n")
    return checkout


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "crash: smpirun ended with exit status 139"),
        pytest.param("hang", "time limit: not finished after 4 s", marks=pytest.mark.long),
        pytest.param("garbage", "output: the output is incomplete", marks=pytest.mark.long),
        pytest.param("truncated", "output: the output is incomplete", marks=pytest.mark.long),
    ],
)
def test_a_launch_that_fails_fails_its_cell_alone(faulty: Checkout, fault: str, reason: str) -> None:
    path = faulty.first_on_path
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
    # The next run, without the fault, measures only the failed cells and is then complete.
    before = cell_files(faulty)
    assert "2 to simulate" in run(faulty, MEASURED, environment=path)
    assert len(rows(faulty)) == 4 * 11
    changed = [name for name, when in cell_files(faulty).items() if before[name] != when]
    assert len(changed) == 2 and all("_p4-" in name for name in changed)


@pytest.mark.long
def test_a_launch_that_cannot_verify_tuning_files_is_named_and_retried(faulty: Checkout) -> None:
    faulty.write("config/studies/tiny.yaml", TINY + "analysis: {tuning: {}}\n")
    target = "results/tiny/tuning/index.csv"
    path = faulty.first_on_path
    # Three ranks are not in the study: the tuning files are verified there, because they are between two and four.
    printed = run(faulty, target, environment={**path, "FAULT": "crash", "FAULTY_RANKS": "3"})
    assert "verified" in printed
    failed = rows(faulty, "results/tiny/tables/tuning-failed.csv")
    assert {(row["algorithm"], row["processes"]) for row in failed} == {("default", "3"), ("tuned", "3")}
    verified = "results/tiny/tables/tuning-verification.csv"
    assert {row["processes"] for row in rows(faulty, verified)} == {"2", "4"}
    assert "tables/tuning-failed.csv" in {row["file"] for row in rows(faulty, target)}
    verdict = faulty.collstudy("--results", "results", "verdict", "tiny")
    where = "bcast tuned mapping core processes 3: crash: smpirun ended with exit status 139"
    assert verdict.returncode == 1 and f"failed: tiny: verification of the tuning files: {where}" in verdict.stderr
    assert f"{len(failed)} failed; output" in verdict.stderr
    before = cell_files(faulty)
    run(faulty, target)
    assert {row["processes"] for row in rows(faulty, verified)} == {"2", "3", "4"}
    assert not rows(faulty, "results/tiny/tables/tuning-failed.csv")
    changed = {name for name, when in cell_files(faulty).items() if before.get(name) != when}
    assert changed == {name for name in before if "_p3-" in name}
    assert faulty.collstudy("--results", "results", "verdict", "tiny").returncode == 0
    assert "Nothing to be done" in run(faulty, target)


#: An mpirun whose first launches of a benchmark fail, as many as the file `crashes` has lines.
CRASHING = """\
#!/bin/bash
case "$*" in *bench_*)
  echo "$TMPDIR" >> {folder}/sessions
  if [ -s {folder}/crashes ]; then sed -i 1d {folder}/crashes; exit 1; fi ;;
esac
exec {real} "$@"
"""


@pytest.mark.long
@pytest.mark.parametrize(("crashes", "status"), [(1, "measured"), (2, "failed")])
def test_a_cell_that_crashed_is_launched_once_more(checkout: Checkout, crashes: int, status: str) -> None:
    programs = checkout.folder / "bin"
    checkout.write("bin/crashes", "x\n" * crashes)
    with_mpirun(checkout, CRASHING)
    checkout.write(
        "config/studies/tiny.yaml", local_study("collective: barrier, algorithms: [linear], iterations: 5, warmup: 1")
    )
    done = must(checkout.snakemake("--", MEASURED, environment=checkout.first_on_path))
    (cell,) = rows(checkout, "results/tiny/cells.csv")
    assert cell["status"] == status and not (programs / "crashes").read_text()
    assert (done.stdout + done.stderr).count("relaunching once") == 1
    # Leftovers of a killed launcher cannot disturb others: they are in a folder of the run, which is removed.
    sessions = {Path(line) for line in (programs / "sessions").read_text().splitlines()}
    assert sessions and all("collstudy-" in str(path) and not path.exists() for path in sessions)


def test_a_run_by_study_says_what_failed_and_nothing_around_it(faulty: Checkout) -> None:
    environment = {**faulty.first_on_path, "FAULT": "crash"}
    done = faulty.snakemake("--logger", "collstudy", "--", "measure", environment=environment)
    printed = done.stdout + done.stderr
    assert done.returncode == 1
    assert printed.count("failed: tiny: bcast linear mapping core processes 4: crash") == 1
    assert "] simulating thin_smpi" in printed and "] collecting the measurements of tiny" in printed
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


def test_a_run_with_failed_cells_that_did_not_complete_says_so(faulty: Checkout) -> None:
    """A table of another study cannot be written, so no rule lists the failed cells."""
    environment = {**faulty.first_on_path, "FAULT": "crash"}
    complete = "failed (listed above; output in logs/measure/); all else is complete"
    assert complete in faulty.snakemake("measure", environment=environment).stderr
    faulty.write("config/studies/other.yaml", TINY)
    (faulty.folder / "results" / "other" / "ranks.csv" / "folder").mkdir(parents=True)
    done = faulty.snakemake("measure", "--config", "studies=tiny,other", environment=environment)
    assert done.returncode == 1 and complete not in done.stderr
    assert "The run did not complete" in done.stderr


def test_ctrl_c_while_modules_are_imported_prints_no_traceback(tmp_path: Path) -> None:
    """Jobs are often at their beginning when a run is interrupted."""
    (tmp_path / "argparse.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'workflow'}"}
    done = finish(
        [sys.executable, "-m", "collstudy", "status"], cwd=ROOT, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_errors_of_snakemake_that_the_user_caused_are_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = threading.Event()
    monkeypatch.setattr("snakemake_logger_plugin_collstudy.INTERRUPTED", interrupted)
    shown = object.__new__(LogHandler)
    shown.__post_init__()
    text = "Error: Directory cannot be locked. Please make sure that no other Snakemake process"
    record = logging.makeLogRecord({"msg": text, "levelno": logging.ERROR, "event": LogEvent.ERROR})
    assert shown.line(record).startswith("error: another run has just started in this folder")
    text = "InputFunctionException in rule measure_block:\nError:\n  KeyboardInterrupt: "
    record = logging.makeLogRecord({"msg": text, "levelno": logging.ERROR, "event": LogEvent.ERROR})
    assert shown.line(record) == text
    interrupted.set()
    assert shown.line(record) == ""


def test_a_run_goes_on_when_its_output_is_cut(checkout: Checkout) -> None:
    """As with `./study run | head`: every block had ended at its first line of progress, with exit status 0 and nothing measured."""
    command = [sys.executable, "-m", "collstudy", "run", "--studies", "tiny"]
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow")}

    def cut(*arguments: str) -> int:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=checkout.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        process.stdout.readline()
        process.stdout.close()
        return process.wait(timeout=300)

    assert cut("--plan", "--", "--dry-run") == -signal.SIGPIPE
    assert cut("--", MEASURED) == 0
    assert len(rows(checkout)) == 4 * 11


RUN = (sys.executable, "-m", "collstudy", "run", "--")


@pytest.mark.parametrize("command", [("snakemake",), RUN])
@pytest.mark.parametrize(
    "said", ["sbatch: error: invalid partition: NOPE", "sbatch: error: QOSMaxSubmitJobPerUserLimit"]
)
def test_why_slurm_refuses_a_job_is_printed(checkout: Checkout, command: tuple[str, ...], said: str) -> None:
    """Also that it allows too few jobs, if the user has none: waiting for one to end would be in vain."""
    machine = "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {partition: NOPE}\n"
    why = f"SLURM sbatch failed. The error message was '{said}'."
    checkout.write("config/machines/theirs.yaml", machine)
    checkout.write("config/studies/tiny.yaml", TINY.replace("machine: thin", "machine: theirs"))
    checkout.program("sbatch", f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    for name in ("squeue", "sacct", "scontrol", "sinfo"):
        checkout.program(name, "#!/bin/sh\n")
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow"), **checkout.first_on_path}
    arguments = ["--profile", "profiles/slurm", MEASURED]
    done = finish([*command, *arguments], cwd=checkout.folder, env=environment, timeout=300)
    assert done.returncode == 1
    # It is submitted twice.
    failed = re.findall(
        rf"^(?:measure_block failed|failed: measuring \S+): {re.escape(why)}$", done.stderr, re.MULTILINE
    )
    assert len(failed) == 2, done.stderr
    assert "sbatch call" not in done.stderr and "Traceback" not in done.stderr
    # The same command would be refused again.
    (last,) = re.findall("^.*the same command again.*$", done.stderr, re.MULTILINE)
    assert (
        last.startswith("Slurm refused a job (above)")
        and "change config/machines/theirs.yaml (under `slurm:` partition" in last
        and "or add --jobs N if only so many jobs are allowed" in last
    )


@pytest.mark.parametrize(
    ("slurm", "asked"),
    [
        ("{partition: theirs, account: theirs}", " -A theirs -p theirs "),
        ("{}", ""),
        ("{extra: --gres=gpu:4 --mem=0}", " --exclusive --gres=gpu:4 --mem=0 "),
    ],
)
def test_what_sbatch_gets_is_sbatchs_business(checkout: Checkout, slurm: str, asked: str) -> None:
    """A site without accounting has no sacct and no sacctmgr, or they do not answer."""
    checkout.write(
        "config/machines/theirs.yaml", f"kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {slurm}\n"
    )
    checkout.write("config/studies/tiny.yaml", TINY.replace("machine: thin", "machine: theirs"))
    checkout.program("sbatch", '#!/bin/sh\necho "$@" > asked\nexit 1\n')
    for name in ("sacct", "sacctmgr", "sshare", "sinfo"):
        checkout.program(name, "#!/no/such/program\n")
    for name in ("squeue", "scontrol"):
        checkout.program(name, "#!/bin/sh\n")
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow"), **checkout.first_on_path}
    command = [*RUN, "--profile", "profiles/slurm", MEASURED]
    done = finish(command, cwd=checkout.folder, env=environment, timeout=300)
    assert "SLURM sbatch failed" in done.stderr and "No such file" not in done.stderr, done.stderr
    words = (checkout.folder / "asked").read_text()
    assert asked in words and (asked or (" -A " not in words and " -p " not in words))


def run_on_fake_slurm(checkout: Checkout, squeue: str, min_job_age_s: int, *options: str, refusing: str = ":") -> str:
    """Run a study whose jobs start nowhere, with *squeue* as the script of this command and *refusing* before that of sbatch; return
    what the run printed.
    """
    machine = "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {partition: THIN}\n"
    checkout.write("config/machines/theirs.yaml", machine)
    checkout.write("config/studies/tiny.yaml", TINY.replace("machine: thin", "machine: theirs"))
    checkout.program("sbatch", f"#!/bin/sh\n{refusing}\necho job >> jobs\nwc -l < jobs\n")
    checkout.program("squeue", f"#!/bin/sh\n{squeue}\n")
    checkout.program("scontrol", f"#!/bin/sh\necho 'MinJobAge = {min_job_age_s} sec'\n")
    # There is no database.
    for name in ("sacct", "sinfo"):
        checkout.program(name, "#!/bin/sh\nexit 1\n")
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow"), **checkout.first_on_path}
    command = [*RUN, "--profile", "profiles/slurm", *options, MEASURED]
    done = finish(command, cwd=checkout.folder, env=environment, timeout=120)
    assert done.returncode == 1 and (checkout.folder / "jobs").read_text().count("job") == 2
    return done.stderr


@pytest.mark.long
def test_jobs_are_not_forgotten_while_slurm_does_not_answer(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while its controller is restarted. Snakemake's plugin asks five times at once, and then would wait for ever."""
    monkeypatch.setenv("STUDY_PROGRESS_SECONDS", "1")
    down = """\
case "$*" in *--name*) [ -e since ] || date +%s > since ;; esac
if [ -e since ] && [ "$(date +%s)" -lt "$(($(cat since) + 6))" ]; then
  echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2
  exit 1
fi"""
    options = ["--latency-wait", "1", "--slurm-init-seconds-before-status-checks", "1"]
    printed = run_on_fake_slurm(checkout, down, 3600, *options)
    said = "squeue does not answer (slurm_load_jobs error: Unable to contact slurm controller (connect failure))"
    assert printed.count(said) == 1


#: What sbatch prints if a site allows no more jobs of a user.
NO_MORE_JOBS = """\
sbatch: error: QOSMaxSubmitJobPerUserLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"""


@pytest.mark.long
def test_with_as_many_jobs_as_a_site_allows_the_next_waits_for_one_to_end(checkout: Checkout) -> None:
    refusing = f'[ "$(wc -l < refused)" = 2 ] || {{ echo no >> refused; echo "{NO_MORE_JOBS}" >&2; exit 1; }}'
    checkout.write("refused", "")
    others = 'case "$*" in *--user=*) echo "7 other RUNNING" ;; esac'
    printed = run_on_fake_slurm(checkout, others, 3600, "--latency-wait", "1", refusing=refusing)
    assert (checkout.folder / "refused").read_text() == "no\nno\n"
    assert (
        printed.count("Slurm allows no more jobs at once (QOSMaxSubmitJobPerUserLimit): the next are submitted when")
        == 1
    )
    assert "SLURM sbatch failed" not in printed and "Slurm refused a job" not in printed, printed


@pytest.mark.long
def test_what_the_user_wants_to_see_of_squeue_does_not_hide_jobs(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUEUE_PARTITION", "other")
    run_on_fake_slurm(checkout, 'echo "${SQUEUE_PARTITION-all}" >> seen', 3600, "--latency-wait", "1")
    assert set((checkout.folder / "seen").read_text().split()) == {"all"}


def test_in_an_allocation_jobs_go_to_the_same_slurm(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --profile slurm in an allocation, the variables of its job are dropped, but not those that say which Slurm it is."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    checkout.write(
        "config/machines/theirs.yaml",
        "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {partition: THIN}\n",
    )
    checkout.write("config/studies/tiny.yaml", TINY.replace("machine: thin", "machine: theirs"))
    checkout.program("sbatch", '#!/bin/sh\necho "$SLURM_CONF ${SLURM_JOB_ID-none}" > asked\nexit 1\n')
    for name in ("squeue", "scontrol", "sacct", "sinfo"):
        checkout.program(name, "#!/bin/sh\n")
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "workflow"), **checkout.first_on_path}
    command = [*RUN, "--profile", "profiles/slurm", MEASURED]
    done = finish(command, cwd=checkout.folder, env=environment, timeout=300)
    assert (checkout.folder / "asked").read_text() == "/site/slurm.conf none\n", done.stderr
    assert (
        "with --profile slurm each block is a job of its own, outside of the Slurm job in which this runs"
        in done.stderr
    )
    assert "You are running snakemake" not in done.stderr


def test_a_slurm_machine_without_a_job_is_an_error_before_anything_runs(checkout: Checkout) -> None:
    """Before, each block printed it, among the lines about its log and its cells."""
    checkout.write("config/machines/theirs.yaml", "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {}\n")
    checkout.write("config/studies/tiny.yaml", TINY.replace("machine: thin", "machine: theirs"))
    done = study(checkout.folder, "run", "tiny")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("tiny: 0 of 4 cells are stored")
    here = r"error: machine theirs is of kind slurm, but \S+ is not in a Slurm job: use ./study run STUDY -- --profile slurm, "
    assert re.fullmatch(here + r"or run in an allocation \(salloc\)", lines[1]) and len(lines) == 2, lines
    assert not (checkout.folder / "results").exists()
    assert not any((checkout.folder / ".snakemake").glob("locks/*"))
    # What needs no job is made.
    for other in ("--dry-run", "results/tiny/study.json"):
        must(study(checkout.folder, "run", "tiny", "--", other))


def test_in_an_allocation_nothing_runs_beside_a_block(checkout: Checkout) -> None:
    """Snakemake may run on a node that is measured: blocks of simulations and the analysis would take its cores."""
    checkout.write("config/machines/theirs.yaml", "kind: slurm\nlabel: Theirs\nlike: thin\nmpi: openmpi\nslurm: {}\n")
    checkout.write("config/studies/real.yaml", TINY.replace("machine: thin", "machine: theirs"))

    def threads(name: str) -> list[str]:
        words = ["--quiet", "host", "--config", f"studies={name}", "--cores", "7"]
        done = must(checkout.snakemake("-n", *words, "--", f"results/{name}/measurements.csv"))
        (block,) = re.findall(r"rule measure_block:\n((?:    .*\n)+)", done.stdout + done.stderr)
        return re.findall(r"threads: (\d+)", block)

    assert threads("real") == ["7"] and threads("tiny") == []


@pytest.mark.long
def test_a_preempted_job_is_submitted_again(checkout: Checkout) -> None:
    """Snakemake's plugin would wait for ever for Slurm to resume a job that was submitted with --no-requeue."""
    printed = run_on_fake_slurm(checkout, 'for job in 1 2; do echo "$job|PREEMPTED"; done', 3600)
    assert "We leave it to SLURM" not in printed and re.search(r"failed: measuring \S+: SLURM-job '2' failed", printed)


@pytest.mark.long
def test_a_job_that_slurm_no_longer_lists_has_ended(checkout: Checkout) -> None:
    """With a short MinJobAge. It did not write its marker, so it is submitted once more."""
    assert "Run the same command again" in run_on_fake_slurm(checkout, "", 2, "--latency-wait", "1")


def test_failed_rules_are_named_again_at_the_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / "slurm").mkdir(parents=True)
    for name in ("logs/one.log", "logs/slurm/7.log"):
        (tmp_path / name).touch()

    def record(text: str = "", **fields: object) -> logging.LogRecord:
        return logging.makeLogRecord({"msg": text, "levelno": logging.ERROR, **fields})

    def lines(*between: logging.LogRecord) -> list[str]:
        shown = object.__new__(LogHandler)
        shown.__post_init__()
        job = {"jobid": 1, "rule_name": "decide_tuning", "log": ["logs/one.log"], "wildcards": {"study": "one"}}
        # With the log of Slurm, which alone has the output of a job that died before its rule began.
        log = ["logs/one.log", "logs/slurm/7.log", "logs/none.log"]
        error = record(event=LogEvent.JOB_ERROR, jobid=1, rule_name="decide_tuning", log=log)
        for one in (
            record(event=LogEvent.JOB_INFO, **job),
            error,
            *between,
            record("Exiting because a job execution failed."),
        ):
            shown.emit(one)
        if shown.reminder:
            shown.reminder.cancel()
        return capsys.readouterr().err.splitlines()

    said = "failed: selecting algorithms for one; its output is in logs/one.log, logs/slurm/7.log"
    assert lines() == ["selecting algorithms for one", said]
    other = {"jobid": 2, "rule_name": "decide_tuning", "log": [], "wildcards": {"study": "two"}}
    assert lines(record(event=LogEvent.JOB_INFO, **other)) == [
        "selecting algorithms for one",
        said,
        "selecting algorithms for two",
        said,
    ]


def test_why_a_slurm_job_failed_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is in Slurm's log. A job that failed twice is named once at the end, one that then succeeded is not."""
    said, log = "error: block: Permission denied: results/x", tmp_path / "7.log"
    log.write_text(f"rule measure_block:\n{said}\nWorkflowError:\n")
    shown = object.__new__(LogHandler)
    shown.__post_init__()
    why = "SLURM-job '7' failed, SLURM status is: 'FAILED'. Detailed failure reason unavailable (status command is not 'sacct')."
    for job, event in (
        *((1, LogEvent.JOB_ERROR), (1, LogEvent.JOB_ERROR), (2, LogEvent.JOB_ERROR), (2, LogEvent.JOB_FINISHED)),
    ):
        fields = {
            "event": event,
            "jobid": job,
            "job_id": job,
            "rule_name": f"rule{job}",
            "rule_msg": why,
            "log": [str(log)],
        }
        shown.emit(logging.makeLogRecord({"msg": "", "levelno": logging.ERROR, **fields}))
    shown.emit(logging.makeLogRecord({"msg": "Exiting because a job execution failed.", "levelno": logging.ERROR}))
    line = f"failed: rule1: SLURM-job '7' failed, SLURM status is: 'FAILED'. {said.removeprefix('error: ')}; its output is in {log}"
    assert capsys.readouterr().err.splitlines() == [line, line, line.replace("rule1", "rule2"), line]


@pytest.mark.long
def test_killed_and_started_again(checkout: Checkout) -> None:
    text = TINY.replace("[2, 4]", "{from: 2, to: 48, step: 2}")
    checkout.write("config/studies/tiny.yaml", text)
    kept = kill_midway(checkout, MEASURED, lambda: len(cell_files(checkout)) >= 5)
    assert 5 <= len(kept) < 48
    printed = run(checkout, "--unlock") + run(checkout, MEASURED)
    assert f"{len(kept)} of 48 cells are stored" in printed or "cells are stored" in printed
    after = cell_files(checkout)
    assert kept.items() <= after.items() and len(after) == 48
    assert len(rows(checkout)) == 48 * 11
    assert not list((checkout.folder / "results").rglob("*.tmp"))


def interrupt_group(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)


def interrupt_process(pid: int) -> None:
    os.kill(pid, signal.SIGINT)


def interrupt_twice(pid: int) -> None:
    os.kill(pid, signal.SIGINT)
    time.sleep(0.3)
    os.kill(pid, signal.SIGINT)


@pytest.mark.parametrize("interrupt", quick([interrupt_group, interrupt_process, interrupt_twice], 0, 3))
def test_interrupted_and_started_again(checkout: Checkout, interrupt: Callable[[int], None]) -> None:
    """Ctrl-C (to the jobs as well) and `kill -INT` (only to the run) end a run with one line, without tracebacks and without reporting
    the jobs that they ended as failed.
    """
    text = TINY.replace("[2, 4]", "{from: 2, to: 48, step: 4}").replace("iterations: 3", "iterations: 40")
    checkout.write("config/studies/tiny.yaml", text)
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
    interrupt(process.pid)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "interrupted: ending the jobs that run" in said.splitlines()
    assert "Traceback" not in said and "failed:" not in said, said
    kept = cell_files(checkout)
    assert 5 <= len(kept) < 24
    must(finish(command, cwd=checkout.folder, env=environment))
    after = cell_files(checkout)
    assert kept.items() <= after.items() and len(after) == 24


@pytest.mark.long
def test_a_forced_algorithm_that_another_component_ran_is_marked(checkout: Checkout) -> None:
    """The system's environment excludes coll/tuned: the forced algorithm does not run, and the cell reports it."""
    study = local_study("collective: barrier, algorithms: [linear], iterations: 20, warmup: 2")
    found = measured(checkout, "local", study, {"OMPI_MCA_coll_tuned_priority": "1"})
    (cell,) = cell_rows(checkout, "local")
    assert cell["status"] == "unproved" and "not tuned" in cell["reason"]
    assert {row["proved"] for row in found} == {"FALSE"}
    # The verdict says so, and how to measure it again.
    said = must(checkout.collstudy("--results", "results", "verdict", "local")).stderr
    assert (
        "unproved: local: cells that are not verified and not compared: 1, such as barrier linear mapping core" in said
    )
    (path,) = re.findall(r"\((results/cells/.*\.json)\)", said)
    (file,) = checkout.folder.glob(path)
    file.unlink()
    measured(checkout, "local")
    assert cell_rows(checkout, "local")[0]["status"] == "measured"


@pytest.mark.long
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
