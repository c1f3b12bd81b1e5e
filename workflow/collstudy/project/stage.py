"""Stage files that are planned while the Snakefile is read, in the folder of Snakemake's own files.

Dry runs read the Snakefile, too, so reading it must not write to the results. A rule copies a staged file to its target if
the content differs, which Snakemake recognises by the time stamp.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path

from collstudy.base.files import write_atomically
from collstudy.plan.blocks import Block, block_bytes


class Stage:
    """The folder of staged files, which have the same names as in the results folder."""

    def __init__(self, folder: Path, results: Path):
        self.folder = folder
        self.results = results
        #: Whether a result, and therefore its staged file, may have a time stamp in the future.
        self.ahead = False

    def write(self, name: str, content: bytes) -> Path:
        """Stage a file: it is newer than its target if the content differs, and older if it is the same."""
        path, target = self.folder / name, self.results / name
        write_atomically(path, content)
        try:
            newest = target.stat().st_mtime_ns
            if target.read_bytes() == content:
                os.utime(path, ns=(newest - 1_000_000_000,) * 2)
            else:
                self._make_newer(path, newest)
        except FileNotFoundError:
            pass
        return path

    def differs(self, name: str) -> bool:
        """Return whether the target of a staged file is a file with another content."""
        target = self.results / name
        return target.is_file() and target.read_bytes() != (self.folder / name).read_bytes()

    def _make_newer(self, path: Path, newest: int) -> None:
        """Make a staged file newer than a time stamp (ns), which may be in the future."""
        if path.stat().st_mtime_ns <= newest:
            os.utime(path, ns=(newest + 1_000_000_000,) * 2)
            self.ahead = True

    def trigger(self, name: str, content: bytes) -> Path:
        """Stage a file that makes a job run, even if its other inputs and outputs are as before. It begins with the time, because
        Snakemake compares contents as well as time stamps.
        """
        return self.write(name, f"# {time.time_ns()}\n".encode() + content)

    def make_newest(self, path: Path, folder: Path) -> Path:
        """Make a staged file newer than every file in *folder*, even if their time stamps are in the future."""
        self._make_newer(path, max((file.lstat().st_mtime_ns for file in folder.rglob("*")), default=0))
        return path

    def settle(self, newest: Iterable[Path]) -> None:
        """Reset time stamps in the future (the clock was corrected), which Snakemake rejects; *newest*: the newest files of the store.
        The plan must be complete: it compares the time stamps.
        """
        now = time.time()
        if self.ahead or any(path.stat().st_mtime > now for path in newest):
            for path in itertools.chain(self.folder.rglob("*"), self.results.rglob("*")):
                with contextlib.suppress(FileNotFoundError):
                    if path.lstat().st_mtime > now:
                        os.utime(path, follow_symlinks=False)

    def write_block(self, block: Block) -> Path:
        """Stage the file of a block."""
        return self.write(f"blocks/{block.name}.json", block_bytes(block))

    def find(self, name: str) -> Path:
        """Return the path of a staged file or, if a later step of the run wrote the file, of that in the results folder."""
        path = self.folder / name
        return path if path.exists() else self.results / name
