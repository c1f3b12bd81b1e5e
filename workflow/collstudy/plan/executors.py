"""Corrections of Snakemake's executors for the pinned versions (envs/): how jobs are started, awaited and cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import math
import os
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from collstudy.base.commands import SITES_SLURM, ask

#: What sbatch says if the user already has as many jobs as a site allows (AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, ...).
AS_MANY_AS_ALLOWED = re.compile(r"\b(?:Assoc|QOS)\w*Submit\w*Limit\b")
#: Seconds until such a job is submitted again.
SUBMIT_AGAIN_S = 20


def correct(workflow: Any) -> None:
    """Correct the executors of a Snakemake *workflow*, before it runs jobs."""
    from snakemake_interface_executor_plugins.executors.real import RealExecutor

    # Snakemake does not quote the path of its Python in the command of a job, and the path of the checkout may have a blank.
    unquoted = RealExecutor.format_job_exec
    RealExecutor.format_job_exec = lambda *of: unquoted(*of).replace(
        f"{sys.executable} -m snakemake", f"{shlex.quote(sys.executable)} -m snakemake"
    )
    slurm = sys.modules.get("snakemake_executor_plugin_slurm")
    if slurm is not None:
        _correct_submission(slurm)
        _wait_for_room(slurm)
        _correct_states(slurm, workflow)
        _correct_end(slurm)


def _correct_submission(slurm: Any) -> None:
    # The plugin would exclude all nodes of a job from later jobs if one of them died. Slurm itself avoids nodes that are down.
    submitting = slurm.get_submit_command
    slurm.get_submit_command = lambda *of, **how: submitting(*of, **{**how, "failed_nodes": None})
    # sbatch judges account and partition, or chooses them; the plugin would ask sacct, sacctmgr, sshare and sinfo. A site without
    # accounting lacks the first three, and then the plugin refuses or cannot submit the job.
    slurm.get_account = lambda logger: None
    slurm.validate_account = lambda account, logger: account
    slurm.get_default_partition = lambda job, logger: ""
    slurm.delete_slurm_environment = _leave_job
    # A machine's options are checked when its file is read; the plugin refuses some that sites require (--gres, --mem=0).
    slurm.validate_slurm_extra = lambda job: None


def _wait_for_room(slurm: Any) -> None:
    reporting, warned = slurm.Executor._report_job_error_threadsafe, set()

    def report_job_error(executor: Any, info: Any, message: str) -> None:
        """Report that a job was refused; while jobs of the user end, submit it again if there are as many as the site allows."""
        limit = AS_MANY_AS_ALLOWED.search(message)
        if limit and ask(["squeue", "--noheader", f"--user={getpass.getuser()}"]).stdout.strip():
            if limit[0] not in warned:
                warned.add(limit[0])
                executor.logger.warning(
                    f"Slurm allows no more jobs at once ({limit[0]}): the next are submitted when others have ended"
                )
            pool, until = executor._job_submission_executor, time.monotonic() + SUBMIT_AGAIN_S
            while executor.wait and not pool._shutdown and time.monotonic() < until:
                time.sleep(1)
            with contextlib.suppress(RuntimeError):  # the run has ended
                pool.submit(executor.run_job, info.job)
                return
        reporting(executor, info, message)

    slurm.Executor._report_job_error_threadsafe = report_job_error


def _correct_states(slurm: Any, workflow: Any) -> None:
    # They are for the eyes of the user, and may hide jobs.
    _drop(r"SQUEUE_")
    # With a short MinJobAge the plugin would replace squeue by sacct, which hangs without a database.
    slurm.get_min_job_age = lambda: math.inf
    checking, querying = slurm.Executor.check_active_jobs, slurm.query_job_status
    submitted: set[str] = set()

    async def check_active_jobs(executor: Any, jobs: Any) -> AsyncIterator[Any]:
        """Check the states of jobs, and note which they are."""
        submitted.clear()
        submitted.update(job.external_jobid for job in jobs)
        async for job in checking(executor, jobs):
            yield job

    async def query_job_status(command: str, *of: Any) -> tuple[dict[str, str], float]:
        """Return the states of jobs.

        A preempted job has ended, unless Slurm may requeue it, and so has a job that squeue does not list any more (MinJobAge): the
        plugin would wait for both for ever. Whether the latter succeeded is shown by its output.
        """
        states, seconds = await querying(command, *of)
        if states is None:
            # Slurm does not answer, as while its controller is restarted: the plugin would forget the jobs and wait for ever.
            return dict.fromkeys(submitted, "RUNNING"), 0.0
        if command.startswith("squeue"):
            states = dict.fromkeys(submitted, "UNKNOWN") | states
        if not workflow.executor_settings.requeue:
            ended = {"PREEMPTED": "CANCELLED"}
            states = {job: ended.get(state, state) for job, state in states.items()}
        return states, seconds

    slurm.Executor.check_active_jobs = check_active_jobs
    slurm.query_job_status = query_job_status


def _correct_end(slurm: Any) -> None:
    sleeping = slurm.Executor.sleep

    async def sleep(executor: Any) -> None:
        """Sleep until the next query of the jobs, or until the run ends: after Ctrl-C the plugin would sleep on for up to three minutes."""
        rest = asyncio.ensure_future(sleeping(executor))
        while executor.wait and not rest.done():
            await asyncio.wait([rest], timeout=1)
        rest.cancel()

    slurm.Executor.sleep = sleep
    cancelling = slurm.Executor.cancel_jobs

    def cancel_jobs(executor: Any, jobs: Any) -> None:
        """Cancel all jobs of the run: the plugin's list lacks those that are being submitted, or whose state is being queried."""
        cancelling(executor, jobs)
        executor._job_submission_executor.shutdown(cancel_futures=True)
        ask(["scancel", f"--user={getpass.getuser()}", f"--name={executor.run_uuid}"])

    slurm.Executor.cancel_jobs = cancel_jobs


def _leave_job() -> None:
    """Remove the variables of the Slurm job in which Snakemake runs, but not those that say which Slurm it is."""
    _drop(rf"SLURM_(?!{SITES_SLURM})")


def _drop(pattern: str) -> None:
    for name in [name for name in os.environ if re.match(pattern, name)]:
        del os.environ[name]
