"""Run other programs and capture what they print."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Names, after `SLURM_`, of the variables that say which Slurm the commands talk to; others are those of a job.
SITES_SLURM = r"(CONF|CONF_SERVER|JWT|CLUSTERS)$"


def ask(
    command: Sequence[str | Path], timeout_s: float = 60, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a command and capture its output. A missing command or a timeout returns exit status 127 and no output."""
    try:
        # Names of other users' jobs, for example, need not be UTF-8.
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s, env=environment, cwd=folder, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return subprocess.CompletedProcess(command, 127, "", "")
