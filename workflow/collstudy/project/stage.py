"""Stage files that are planned while the Snakefile is read, in the folder of Snakemake's own files.

Dry runs read the Snakefile, too, so reading it must not write to the results. A rule copies a staged file to its target if
the content differs, which Snakemake recognises by the time stamp.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from collstudy.base.files import write_atomically
from collstudy.plan.blocks import Block, block_bytes


class Stage:
    """The folder of staged files, which have the same names as in the results folder."""

    def __init__(self, folder: Path, results: Path):
        self.folder = folder
        self.results = results

    def write(self, name: str, content: bytes) -> Path:
        """Stage a file: it is newer than its target if the content differs, and older if it is the same."""
        path, target = self.folder / name, self.results / name
        write_atomically(path, content)
        try:
            if target.read_bytes() == content:
                before = target.stat().st_mtime_ns - 1_000_000_000
                os.utime(path, ns=(before, before))
        except FileNotFoundError:
            pass
        return path

    def trigger(self, name: str, content: bytes) -> Path:
        """Stage a file that makes a job run, even if its other inputs and outputs are as before. It begins with the time, because
        Snakemake compares contents as well as time stamps.
        """
        return self.write(name, f"# {time.time_ns()}\n".encode() + content)

    def make_newest(self, path: Path, folder: Path) -> Path:
        """Make a staged file newer than every file in *folder*, even if their time stamps are in the future."""
        newest = max((file.lstat().st_mtime_ns for file in folder.rglob("*")), default=0)
        if path.stat().st_mtime_ns <= newest:
            os.utime(path, ns=(newest + 1_000_000_000,) * 2)
        return path

    def write_block(self, block: Block) -> Path:
        """Stage the file of a block."""
        return self.write(f"blocks/{block.name}.json", block_bytes(block))

    def find(self, name: str) -> Path:
        """Return the path of a file in the results folder or, if it does not exist yet, of the staged one."""
        path = self.results / name
        return path if path.exists() else self.folder / name
