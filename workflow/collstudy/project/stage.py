"""Staging of the files that are planned while the Snakefile is read, in the folder of Snakemake's own files.

Reading the Snakefile must not write into the results, because dry runs read it as well. A rule copies a staged file to its
target if the content differs; Snakemake detects this by its time stamp.
"""

from __future__ import annotations

import os
from pathlib import Path

from collstudy.base.files import write_atomically
from collstudy.plan.blocks import Block, block_bytes


class Stage:
    """The folder of staged files, with the same names as in the results folder."""

    def __init__(self, folder: Path, results: Path):
        self.folder = folder
        self.results = results

    def write(self, name: str, content: bytes) -> Path:
        """Stage a file: newer than its target if the content differs, older if it is the same."""
        path, target = self.folder / name, self.results / name
        write_atomically(path, content)
        try:
            if target.read_bytes() == content:
                before = target.stat().st_mtime_ns - 1_000_000_000
                os.utime(path, ns=(before, before))
        except FileNotFoundError:
            pass
        return path

    def make_newest(self, path: Path, folder: Path) -> Path:
        """Make a staged file newer than every file of *folder*, including one with a time stamp in the future."""
        newest = max((file.lstat().st_mtime_ns for file in folder.rglob("*")), default=0)
        if path.stat().st_mtime_ns <= newest:
            os.utime(path, ns=(newest + 1_000_000_000,) * 2)
        return path

    def write_block(self, block: Block) -> Path:
        """Stage the file of a block."""
        return self.write(f"blocks/{block.name}.json", block_bytes(block))

    def find(self, name: str) -> Path:
        """A file in the results folder or, if it does not exist yet, the staged one."""
        path = self.results / name
        return path if path.exists() else self.folder / name
