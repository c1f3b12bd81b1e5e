"""snakemake whose Slurm plugin looks at its jobs every 3 s: a test that waits for a job's end waits for the next look.

The plugin itself looks after 3 s, then 13 s, 23 s, 33 s later, and has no option for that.
"""

import asyncio

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(_: RemoteExecutor) -> None:
    await asyncio.sleep(3)


RemoteExecutor.sleep = sleep
main()
