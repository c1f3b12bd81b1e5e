"""Run snakemake with a Slurm plugin that polls its jobs every 3 s (or POLL_SECONDS), so that tests wait less for the end of a job.

The original plugin polls after 3 s and then 13 s, 23 s, 33 s later, and has no option for that.
"""

import asyncio
import os
import signal

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(_: RemoteExecutor) -> None:
    await asyncio.sleep(float(os.environ.get("POLL_SECONDS", "3")))


RemoteExecutor.sleep = sleep
# Tests in the background ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
