"""The description of a job and the launcher's environment, from recorded output of Slurm 22.05."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.launch import execute, runner, slurm_env
from collstudy.launch.execute import Allocation
from collstudy.launch.launches import Launches
from collstudy.plan.blocks import Block
from collstudy.study.config import Configuration
from collstudy.study.placement import Core
from conftest import ROOT, executable

RECORDED = (Path(__file__).parent / "data" / "slurm" / "scontrol-show-job-22.05.txt").read_text()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[001-003,7],m1", ["n001", "n002", "n003", "n7", "m1"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("r[1-2]n[01-02]-ib", ["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"]),
        ("a.example.org,b-2", ["a.example.org", "b-2"]),
    ],
)
def test_hostlists_expand_in_order(text, names):
    assert slurm_env.expand_hostlist(text) == names


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[3-1]", "", "n1,,n2", "n1]"])
def test_a_broken_hostlist_is_an_error(text):
    with pytest.raises(StudyError):
        slurm_env.expand_hostlist(text)


@pytest.mark.parametrize(("counts", "text"), [((24, 24, 12), "24(x2),12"), ((1,), "1"), ((4, 8, 8, 4), "4,8(x2),4")])
def test_counts_have_a_short_form(counts, text):
    assert slurm_env.compress_counts(counts) == text


def test_the_job_is_read_with_blanks_and_equals_signs_in_its_comment():
    job = slurm_env.parse_job(RECORDED)
    assert (job.id, job.state, job.partition) == ("3", "RUNNING", "THIN")
    assert job.nodes == ("thin001", "thin002")
    assert job.cpus == (24, 24)
    assert job.end == datetime.datetime(2026, 11, 21, 0, 52, 12)


def test_nodes_of_different_sizes_keep_their_own_counts():
    text = RECORDED.replace("thin[001-002] CPU_IDs=0-23", "thin001 CPU_IDs=0-3,8 Mem=1 GRES=   Nodes=thin002 CPU_IDs=5")
    assert slurm_env.parse_job(text).cpus == (5, 1)


def test_a_pending_job_has_no_nodes():
    text = RECORDED.replace(" NodeList=thin[001-002]", " NodeList=(null)").replace("CPU_IDs=0-23", "")
    assert slurm_env.parse_job(text).nodes == ()


def test_output_that_is_no_job_is_an_error():
    with pytest.raises(StudyError, match="scontrol show job: cannot parse"):
        slurm_env.parse_job("slurm_load_jobs error: Invalid job id specified")


def test_the_environment_is_rebuilt_and_what_was_stale_is_gone():
    stale = {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_NODELIST": "other",
        "SLURM_MEM_PER_CPU": "100000",
        "SLURM_TASKS_PER_NODE": "1",
        "SRUN_CPUS_PER_TASK": "24",
        "PMIX_RANK": "3",
        "OMPI_COMM_WORLD_RANK": "2",
        "OMPI_MCA_btl": "tcp,self",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
    }
    built = slurm_env.launcher_environment(stale, slurm_env.parse_job(RECORDED))
    assert built == {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "OMPI_MCA_btl": "tcp,self",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "SLURM_JOB_ID": "3",
        "SLURM_JOBID": "3",
        "SLURM_JOB_NODELIST": "thin001,thin002",
        "SLURM_NODELIST": "thin001,thin002",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_NNODES": "2",
        "SLURM_JOB_CPUS_PER_NODE": "24(x2)",
        "SLURM_TASKS_PER_NODE": "24(x2)",
    }


@pytest.mark.parametrize(("step", "overlap"), [("0", "1"), ("4294967290", None), (None, None)])
def test_launches_in_a_step_of_srun_do_not_wait_for_its_end(step, overlap):
    """As in `srun --pty bash`; the shell of salloc is a step of another kind."""
    environment = {"SLURM_STEP_ID": step} if step else {}
    built = slurm_env.launcher_environment(environment, slurm_env.parse_job(RECORDED))
    assert built.get("SLURM_OVERLAP") == overlap and "SLURM_STEP_ID" not in built


def test_outside_of_a_job_there_is_none():
    assert slurm_env.current_job({"PATH": "/bin"}, "login") is None


def test_a_job_number_that_was_left_over_is_recognised(monkeypatch):
    answer = subprocess.CompletedProcess([], 0, RECORDED, "")
    monkeypatch.setattr(slurm_env.subprocess, "run", lambda *_, **__: answer)
    assert slurm_env.current_job({"SLURM_JOB_ID": "3"}, "thin001.cluster") is not None
    assert slurm_env.current_job({"SLURM_JOB_ID": "3", "SLURM_SUBMIT_HOST": "login"}, "login") is None


def test_the_shell_of_salloc_is_in_its_job(monkeypatch):
    """It runs where salloc was started, unless the site says otherwise."""
    answer = subprocess.CompletedProcess([], 0, RECORDED.replace("BatchFlag=1", "BatchFlag=0"), "")
    monkeypatch.setattr(slurm_env.subprocess, "run", lambda *_, **__: answer)
    environment = {"SLURM_JOB_ID": "3", "SLURM_SUBMIT_HOST": "login.cluster"}
    assert slurm_env.current_job(environment, "login") is not None
    assert slurm_env.current_job(environment, "other") is None


def test_a_job_that_slurm_has_forgotten_is_none(monkeypatch):
    """As in a shell that was started in a job of yesterday."""
    answer = subprocess.CompletedProcess([], 1, "", "slurm_load_jobs error: Invalid job id specified\n")
    monkeypatch.setattr(slurm_env.subprocess, "run", lambda *_, **__: answer)
    assert slurm_env.current_job({"SLURM_JOB_ID": "3"}, "thin001") is None
    answer.stderr = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    with pytest.raises(StudyError, match="scontrol show job 3: .*Unable to contact slurm controller"):
        slurm_env.current_job({"SLURM_JOB_ID": "3"}, "thin001")


def answering(answers: dict[str, str]):
    """Return a function that answers `scontrol ... show KIND ...` by the kind."""

    def run(command, **_):
        return subprocess.CompletedProcess(command, 0, answers[command[command.index("show") + 1]], "")

    return run


def test_the_nodes_of_a_job_may_call_themselves_otherwise(monkeypatch):
    """Slurm has own names for nodes (NodeHostName in slurm.conf), which launchers use; ranks report those of the hosts."""
    node = "NodeName=thin00{0} Arch=x86_64 CoresPerSocket=12 NodeAddr=10.0.0.{0} NodeHostName=ip-10-0-0-{0} Version=22.05\n"
    answers = {"job": RECORDED, "node": node.format(1) + node.format(2)}
    monkeypatch.setattr(slurm_env.subprocess, "run", answering(answers))
    monkeypatch.setattr(execute, "describe_nodes", lambda *_: {})
    monkeypatch.setattr(execute.platform, "node", lambda: "ip-10-0-0-1")
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    place = execute.allocation(Configuration(ROOT / "config").machine("orfeo-thin-slurm"), 1)
    assert (place.hosts, place.reported) == (["thin001"], ["ip-10-0-0-1"])
    monkeypatch.setattr(execute.platform, "node", lambda: "ip-10-0-0-3")
    with pytest.raises(StudyError, match="ip-10-0-0-3 is not in a Slurm job"):
        execute.allocation(Configuration(ROOT / "config").machine("orfeo-thin-slurm"), 1)


def test_the_task_of_an_array_is_one_of_several_records(monkeypatch):
    """The last task of an array has the number of the array, for which scontrol shows all tasks."""
    other = (
        RECORDED.replace("JobId=3 ", "JobId=4 ").replace("thin", "fat").replace("JobState=RUNNING", "JobState=FAILED")
    )
    monkeypatch.setattr(slurm_env.subprocess, "run", answering({"job": other + RECORDED, "node": ""}))
    job = slurm_env.current_job({"SLURM_JOB_ID": "3"}, "thin001")
    assert job is not None and job.nodes == job.hostnames == ("thin001", "thin002") and len(job.cpus) == 2
    running = RECORDED.replace("EndTime=2026", "EndTime=2126")
    monkeypatch.setattr(slurm_env.subprocess, "run", answering({"job": other + running}))
    assert slurm_env.why_ending("3", {}) == ""


def test_text_that_is_not_utf_8_is_read(monkeypatch, tmp_path):
    """As the comment of a job."""
    executable(tmp_path / "scontrol", f"#!/bin/sh\nprintf '%s' '{RECORDED.strip()}'; printf ' Comment=M\\374ller\\n'\n")
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "3"}
    monkeypatch.setenv("PATH", path["PATH"])
    assert slurm_env.current_job(path, "thin001") is not None
    assert ask(["printf", r"M\374ller"]).stdout == "M\ufffdller"


def test_cells_of_this_computer_do_not_run_on_the_nodes_of_a_job(monkeypatch):
    """As in an allocation on a login node; a program is started as the user would."""
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    place = execute.allocation(Configuration(ROOT / "config").machine("this-machine"), 1)
    assert "SLURM_JOB_ID" not in place.environment and place.users["SLURM_JOB_ID"] == "3"


def test_ranks_of_a_program_fill_cores_not_threads(monkeypatch):
    job = slurm_env.parse_job(RECORDED)
    monkeypatch.setattr(execute, "current_job", lambda *_: replace(job, cpus=(48, 48)))
    monkeypatch.setattr(execute, "describe_nodes", lambda *_: {})
    place = execute.allocation(Configuration(ROOT / "config").machine("orfeo-thin-slurm"), 2)
    assert place.environment["SLURM_TASKS_PER_NODE"] == "48(x2)"
    assert place.users["SLURM_TASKS_PER_NODE"] == "24(x2)"


def test_more_ranks_than_processors_are_one_sentence():
    machine = Configuration(ROOT / "config").machine("orfeo-thin-slurm")
    facts = {"slurm": {"job": "3", "cpus": [24, 1]}}
    launches = object.__new__(Launches)
    launches.machine, launches.place = machine, Allocation(["thin001", "thin002"], {}, {}, facts)
    cores = [Core((node, core), node, core) for node in (0, 1) for core in (0, 1)]
    with pytest.raises(StudyError, match="Slurm job 3 has 1 processor on thin002, but 2 ranks are placed there"):
        launches._placement(SimpleNamespace(place=lambda _: cores))


def test_without_scontrol_the_message_says_so(tmp_path):
    with pytest.raises(StudyError, match="scontrol, which lists the job's nodes, is not on PATH"):
        slurm_env.current_job({"SLURM_JOB_ID": "3", "PATH": str(tmp_path)}, "thin001")


def test_a_block_says_why_slurm_ended_it_when_the_signal_comes_first(monkeypatch, tmp_path, capfd):
    """Slurm signals launches and this process together: no launch may have failed yet."""
    cancelled = subprocess.CompletedProcess([], 0, RECORDED.replace("JobState=RUNNING", "JobState=CANCELLED"), "")
    monkeypatch.setattr(slurm_env.subprocess, "run", lambda *_, **__: cancelled)
    monkeypatch.setattr(runner, "allocation", lambda *_: Allocation(["thin001"], {}, {}, {"slurm": {"job": "3"}}))
    monkeypatch.setattr(runner.BlockRunner, "run", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    machine = Configuration(ROOT / "config").machine("thin")
    before = {number: signal.getsignal(number) for number in runner.ENDING}
    try:
        with pytest.raises(SystemExit):
            runner.run_block(Block(machine, "openmpi", 1, ()), tmp_path, tmp_path / "log")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert "Slurm is ending job 3 (CANCELLED)" in capfd.readouterr().out
