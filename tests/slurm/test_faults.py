"""Faults of a cluster: no measurement is lost or repeated, and the last lines of output say what to do."""

# Fixtures are imported, and their names are used again as arguments.
# ruff: noqa: F811
from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from collstudy.launch.openmpi import library
from collstudy.project.status import waiting
from conftest import executable
from processes import wait_until
from slurm_study import MACHINE, MEASURED, SlurmStudy, cluster, hosts_only, tiny, two  # noqa: F401


def test_time_limit_resumes_with_the_remaining_time(two, cluster) -> None:
    hosts_only(cluster)
    study = two(launches=20)
    process = study.start(MEASURED)
    kept = study.until_kept(12)
    asked = minutes(study.jobs()[0]["limit"])
    cluster.expire(int(study.jobs()[0]["id"]))
    assert process.wait(300) == 0, study.output() + study.logs()
    first, second = study.jobs()
    # FAILED: the runner noticed that Slurm was ending the job, and exited before Slurm killed it.
    assert first["state"] in ("TIMEOUT", "FAILED") and second["state"] == "COMPLETED"
    assert minutes(second["limit"]) < asked
    study.assert_complete(kept, 20)
    # The launches that Slurm ended do not count as failures of their cells.
    assert " 0 failed" in study.output() and "1 failed" not in study.output() and "4 failed" not in study.output()
    assert "Slurm is ending job" in study.logs()


def minutes(text: str) -> int:
    parts = [int(part) for part in text.split(":")]
    return parts[0] if len(parts) == 2 else 60 * parts[0] + parts[1]


def test_what_a_shared_limit_means_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Slurm does not say whether the job alone exceeds the limit."""
    executable(
        tmp_path / "squeue",
        # Submitted by another workflow, which uses this one with a prefix.
        f"#!/bin/sh\necho '7|PENDING|AssocGrpNodeLimit|rule_mpi_measure_block_wildcards_b_1|{tmp_path}'\n",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    first, second = waiting(tmp_path)
    assert first == "1 job waits in Slurm (AssocGrpNodeLimit)" and "never if it exceeds the limit alone" in second


@pytest.mark.long
def test_why_a_job_waits_is_said(two, cluster) -> None:
    """Also that it never starts; when the partition's limit is raised, it does."""
    study = two(launches=1)
    cluster.run(["scontrol", "update", "PartitionName=THIN", "MaxTime=00:01:00"])
    try:
        process = study.start(MEASURED)
        assert wait_until(lambda: "PartitionTimeLimit" in study.output(), 60), study.output()
        (job,) = study.jobs()
        waits = "1 job waits in Slurm (PartitionTimeLimit)\n"
        never = f"job {job['id']} never starts with Slurm's present limits (PartitionTimeLimit): end the run"
        assert wait_until(lambda: never in study.output(), 20), study.output()
        status = study.collstudy("status").stdout
        assert waits in status and never in status
    finally:
        cluster.run(["scontrol", "update", "PartitionName=THIN", "MaxTime=1-00:00:00"])
    assert process.wait(120) == 0, study.output() + study.logs()
    assert study.output().count(waits) == study.output().count(never) == 1
    study.assert_complete({}, 1)


@pytest.mark.long
def test_scancel_loses_nothing(two, cluster) -> None:
    """The block is automatically submitted once more; after another scancel, the run ends and says what to do; then it continues."""
    hosts_only(cluster)
    study = two(launches=10)
    process = study.start(MEASURED)
    study.until_kept(3)
    cluster.run(["scancel", study.jobs()[0]["id"]])
    assert wait_until(lambda: len(study.jobs()) == 2, 60), study.output()
    cluster.run(["scancel", study.jobs()[1]["id"]])
    assert process.wait(120) == 1
    kept = study.launches()
    assert "Measurements so far are stored" in study.output() and "Run the same command again" in study.output()
    assert "failed" in study.output()
    study.run()
    study.assert_complete(kept, 10)


def test_an_interrupted_run_cancels_its_jobs_and_loses_nothing(two, cluster) -> None:
    """At once: not at the next query of the jobs' states, which may be minutes later."""
    hosts_only(cluster)
    study = two(launches=12)
    study.environment["POLL_SECONDS"] = "600"
    process = study.start(MEASURED)
    study.until_kept(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 1, study.output()
    kept = study.launches()
    cluster.wait(int(study.jobs()[0]["id"]))
    assert [job["state"] for job in study.jobs()] == ["CANCELLED"]
    del study.environment["POLL_SECONDS"]
    study.run()
    study.assert_complete(kept, 12)


def test_a_run_interrupted_while_it_submits_leaves_no_job(two, cluster) -> None:
    study = two(launches=1)
    begun = study.folder / "begun"
    study.checkout.program("sbatch", f'#!/bin/sh\ntouch "{begun}"; sleep 1; exec /usr/bin/sbatch "$@"\n')
    study.environment["PATH"] = f"{study.folder}/bin:{os.environ['PATH']}"
    process = study.start(MEASURED)
    assert wait_until(begun.exists, 60), study.output()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 1, study.output()
    assert [job["state"] for job in study.jobs()] in ([], ["CANCELLED"])


def test_a_dead_node_loses_nothing(two, cluster) -> None:
    """First only slurmd dies (the job continues), then its whole node (the block is submitted again immediately)."""
    hosts_only(cluster)
    study = two(launches=12)
    # With accounting, Snakemake's plugin would exclude both nodes of the job from then on.
    accounting = study.checkout.write(
        "bin/sacct", "#!/bin/sh\ncase $* in *nodelist*) echo 'thin[001-002]' ;; *) exit 1 ;; esac\n"
    )
    accounting.chmod(0o755)
    study.environment["PATH"] = f"{accounting.parent}:{os.environ['PATH']}"
    process = study.start(MEASURED)
    study.until_kept(2)
    cluster.kill_slurmd("thin002")
    cluster.start_slurmd("thin002")
    kept = study.until_kept(10)
    cluster.kill_node("thin002")
    cluster.run(["scontrol", "update", "NodeName=thin002", "State=DOWN", "Reason=test"])
    cluster.start_node("thin002")
    assert process.wait(300) == 0, study.output() + study.logs()
    assert study.jobs()[0]["state"] == "NODE_FAIL" and study.jobs()[-1]["state"] == "COMPLETED"
    study.assert_complete(kept, 12)


def test_snakemake_killed_while_its_job_runs(two, cluster) -> None:
    """The Slurm job continues. A new run says so, waits for its locks, and does not measure again what the job stored."""
    hosts_only(cluster)
    # Enough launches for the job to be still running after the two commands below, even on a busy computer.
    study = two(launches=24)
    process = study.start(MEASURED)
    study.until_kept(2)
    assert "snakemake is already running here" in study.collstudy("unlock").stderr
    process.send_signal(signal.SIGKILL)
    process.wait()
    locked = study.run(MEASURED, status=1)
    assert "could not be locked" in locked or "lock" in locked.lower()
    unlocked = study.collstudy("unlock")
    assert unlocked.returncode == 0 and "removed the lock of a killed snakemake" in unlocked.stderr
    kept = study.launches()
    output = study.run()
    assert "still process blocks of this folder" in output and f"scancel {study.jobs()[0]['id']}" in output
    assert [job["state"] for job in study.jobs()] == ["COMPLETED"] * 2
    study.assert_complete(kept, 24)


def test_results_that_arrive_late_are_awaited(two, cluster) -> None:
    """As with NFS, whose clients remember for up to a minute that a file does not exist: a cell must not stay `missing` for ever."""
    hosts_only(cluster)
    study = two(launches=1)
    stored, hidden = study.folder / "results" / "cells" / "bcast", study.folder / "hidden"
    hidden.mkdir()
    # The job's marker appears, but two of its cells do not.
    hides = f'#!/bin/bash\nset -- {stored}/*.json -- "$@"; mv "$1" "$2" {hidden}\nexec /usr/bin/touch "${{@: -1}}"\n'
    study.checkout.program("touch", hides)
    study.environment |= {"PATH": f"{study.folder}/bin:{os.environ['PATH']}"}
    process = study.start("--latency-wait", "40", "--", MEASURED)
    assert wait_until(lambda: len(list(hidden.iterdir())) == 2, 120), study.output() + study.logs()
    late, later = hidden.iterdir()
    assert process.poll() is None
    shutil.move(late, stored)
    assert process.wait(120) == 1, study.output()
    assert "of two: the file of 1 cell is not visible here" in study.output()
    shutil.move(later, stored)
    jobs = len(study.jobs())
    study.run()
    study.assert_complete({}, 1)
    assert len(study.jobs()) == jobs


def test_a_job_that_slurm_no_longer_lists_has_ended(two, cluster) -> None:
    """With a short MinJobAge. Its block's marker shows that it succeeded."""
    hosts_only(cluster)
    study = two(mappings="core", launches=1)
    forgets = '#!/bin/sh\n/usr/bin/squeue "$@" | grep -v "[|]COMPLETED" || true\n'
    study.checkout.program("squeue", forgets)
    study.environment["PATH"] = f"{study.folder}/bin:{os.environ['PATH']}"
    study.run()
    assert len(study.jobs()) == 1
    study.assert_complete({}, 1)


CRASHING = """#!/bin/bash
case " $* " in *" -n 6 "*) echo "rank 3 died"; exit 139 ;; esac
exec REAL "$@"
"""


def test_a_cell_that_always_crashes_is_named_and_the_others_complete(two, cluster) -> None:
    hosts_only(cluster)
    study = two(mappings="core", launches=1)
    study.checkout.write("config/studies/two.yaml", study.study.replace("[4]", "[4, 6]"))
    real = library().mpirun  # not one on PATH that has no headers (Debian's openmpi-bin)
    folder = study.folder / "mpi"
    study.checkout.write("mpi/mpirun", CRASHING.replace("REAL", str(real))).chmod(0o755)
    for name in ("mpicc", "ompi_info"):
        (folder / name).symlink_to(real.with_name(name))
    study.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    study.run()
    status = {(row["algorithm"], row["processes"]): row["status"] for row in study.cells()}
    assert status == {(a, p): "measured" if p == "4" else "failed" for a in ("linear", "binomial") for p in ("4", "6")}
    verdict = study.collstudy("verdict", "two")
    assert verdict.returncode == 1 and "2 failed; output" in verdict.stderr
    assert (
        "failed: two: bcast linear mapping core processes 6: crash: mpirun ended with exit status 139" in verdict.stderr
    )
    assert "2 of 4 cells done, 2 failed;" in study.collstudy("status").stdout


@pytest.mark.long
def test_a_full_disk_loses_nothing(cluster, tiny) -> None:
    hosts_only(cluster)
    if tiny is None:
        pytest.skip("no tmpfs can be mounted here")
    study = SlurmStudy(cluster, tiny.parent / f"disk{os.getpid()}", launches=10)
    (study.folder / "results").symlink_to(tiny)
    process = study.start(MEASURED)
    study.until_kept(3)
    filler = tiny / "filler"
    with open(filler, "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    assert process.wait(120) == 1
    kept = study.launches()
    assert sum(map(len, kept.values())) >= 3
    logs = study.logs()
    assert "No space left on device" in logs and "Earlier measurements are stored" in logs
    assert "Run the same command again" in study.output()
    filler.unlink()
    study.run()
    study.assert_complete(kept, 10)
