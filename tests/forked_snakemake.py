"""Run Snakemake in forks of a process that has imported it already: its imports are two seconds of CPU time in each start."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# The process that forks imports nothing of a checkout: each fork finds the modules of its own.
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["snakemake.cli"])


def snakemake(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `snakemake ARGUMENTS` in a folder with an environment; return its status and output.

    Raises:
        subprocess.TimeoutExpired: if it takes longer than *timeout* seconds.
    """
    with tempfile.TemporaryDirectory() as made:
        streams = [Path(made, name) for name in ("stdout", "stderr")]
        fork = _forks.Process(target=_main, args=([*arguments], folder, environment, streams))
        fork.start()
        fork.join(timeout)
        if fork.is_alive():
            fork.kill()
            raise subprocess.TimeoutExpired(["snakemake", *arguments], timeout)
        output = [path.read_text(encoding="utf-8") for path in streams]
        return subprocess.CompletedProcess(["snakemake", *arguments], fork.exitcode, *output)


def _main(arguments: list[str], folder: Path, environment: dict[str, str], streams: list[Path]) -> None:
    from snakemake.cli import main

    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = ["snakemake", *arguments]
    main()
