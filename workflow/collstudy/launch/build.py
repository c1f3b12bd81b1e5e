"""Build the C programs for MPI libraries and for the simulator; a part is rebuilt only if the content of its sources has changed."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT, SETUP
from collstudy.launch.toolchain import (
    SIMULATED,
    SIMULATED_WITH_LIBRARY,
    built_for,
    mpi_environment,
    mpis,
    simulator_version,
)

NATIVE = ROOT / "workflow" / "native"
#: The file that marks a subfolder of workflow/native as a part.
MAKEFILE = "Makefile"
#: Parts that most studies need, the slowest to build first. A study names further ones (Source.programs()), built during set-up.
USUAL = ("simulator", "coll", "bench", "probe", "place")
#: Time without output (s) after which the number of compiled files is reported; on a terminal it is updated in one line.
SILENCE_S, ON_TERMINAL_S = 4.0, 0.5


def all_parts() -> list[str]:
    """Return all parts of workflow/native, the usual ones first."""
    found = sorted(path.parent.name for path in NATIVE.glob(f"*/{MAKEFILE}"))
    return [*USUAL, *(part for part in found if part not in USUAL)]


def build(names: Iterable[str] | None = None, parts: Iterable[str] | None = None) -> list[Path]:
    """Build for the installed MPI libraries in *names* and for the simulator (SIMULATED); without *names*, for all.

    *parts* are built in addition to the usual ones; without it, all parts are built. Returns the folders of the builds. Reports
    progress on standard error. Raises StudyError with make's output.
    """
    chosen = all_parts() if parts is None else [part for part in all_parts() if part in {*USUAL, *parts}]
    wanted = {*mpis(), SIMULATED} if names is None else set(names)
    builds = [(str(mpi.mpicc), mpi.build, mpi.environment()) for name, mpi in mpis().items() if name in wanted]
    simulated = built_for(SIMULATED)
    if SIMULATED in wanted and simulator_version():
        builds.append(("smpicc", simulated, mpi_environment()))
    # The builds run concurrently: each uses all cores only until its last files compile.
    with _Progress() as progress, ThreadPoolExecutor(max_workers=len(builds) or 1) as pool:
        for name, mpi in mpis().items():
            if name in wanted and not mpi.bin.is_relative_to(SETUP) and _changed(mpi.build, chosen):
                progress.say(f"{mpi.label} {mpi.version} in {mpi.bin} is used")
        list(pool.map(lambda one: _build_parts(progress, *one, chosen), builds))
    folders = [folder for _, folder, _ in builds]
    if simulated in folders:
        # LD_PRELOAD does not reach simulated ranks: build the benchmark again with the collectives library linked in.
        library, objects = (
            os.path.relpath(simulated / place, NATIVE / "bench") for place in ("coll/collstudy.o", "bench")
        )
        with _Progress() as progress:
            linked = [f"LDLIBS={library} -Wl,-Bsymbolic", f"OBJECTS={objects}"]
            target = built_for(SIMULATED_WITH_LIBRARY)
            _build_parts(progress, "smpicc", target, mpi_environment(), ["bench"], linked, ["coll"])
    return folders


class _Progress(threading.Thread):
    """Progress report of builds on standard error: one line for each, and the number of compiled files after a pause."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.when, self.over, self.terminal = time.monotonic(), threading.Event(), sys.stderr.isatty()
        #: Compiled and all files of each build that is running.
        self.done: dict[str, int] = {}
        self.all: dict[str, int] = {}

    def __enter__(self) -> _Progress:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        if self.terminal:
            self._write("\r\033[K")

    def run(self) -> None:
        while not self.over.wait(0.5):
            if time.monotonic() - self.when < (ON_TERMINAL_S if self.terminal else SILENCE_S):
                continue
            if running := [f"{name} {self.done[name]}/{files}" for name, files in [*self.all.items()]]:
                text = f"setup: compiled files: {', '.join(running)}"
                width = shutil.get_terminal_size().columns - 1
                self._write(f"\r{text[:width]}\033[K" if self.terminal else f"{text}\n")

    def begin(self, name: str, parts: Iterable[str], files: int) -> None:
        """Report a build for the MPI library *name*."""
        self.say(f"compiling for {name}: {', '.join(parts)} ({files} file{'s' * (files != 1)})")
        self.done[name], self.all[name] = 0, files

    def say(self, text: str) -> None:
        """Write a line."""
        self._write("\r\033[K" * self.terminal + f"setup: {text}\n")

    def _write(self, text: str) -> None:
        """Write in a single call, because builds run concurrently."""
        self.when = time.monotonic()
        sys.stderr.write(text)
        sys.stderr.flush()


def sources_of(part: str) -> list[Path]:
    """Return the files that a part of workflow/native depends on: its own, and those of the parts that its Makefile names."""
    named = re.findall(r"\.\./([a-z]+)\b", (NATIVE / part / MAKEFILE).read_text(encoding="utf-8"))
    folders = {part, *(name for name in named if (NATIVE / name / MAKEFILE).exists())}
    files = {path for folder in folders for path in (NATIVE / folder).rglob("*") if path.is_file()}
    return sorted(path for path in files if path.suffix not in (".md", ".o"))


def digest_of(parts: Iterable[str]) -> str:
    """Return the digest of the names and contents of the parts' sources."""
    found = hashlib.sha256()
    for path in sorted({path for part in parts for path in sources_of(part)}):
        found.update(f"{path.relative_to(NATIVE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def _changed(target: Path, parts: Iterable[str], linked: Iterable[str] = ()) -> dict[str, str]:
    """Return the parts to build in folder *target*, with the digests of their sources and of the parts *linked* into them."""
    digests = {part: digest_of([part, *linked]) for part in parts}
    return {part: digest for part, digest in digests.items() if built(target, part) != digest}


def _build_parts(
    progress: _Progress,
    compiler: str,
    target: Path,
    environment: dict[str, str],
    parts: Iterable[str],
    variables: Iterable[str] = (),
    linked: Iterable[str] = (),
) -> None:
    """Build the parts whose sources, or those of the parts *linked* into them, have changed."""
    changed = _changed(target, parts, linked)
    if not changed:
        return
    # Do not rely on make here: after a copy or a change of branch, time stamps are meaningless.
    for part in changed:
        _stamp(target, part).unlink(missing_ok=True)
        shutil.rmtree(target / part, ignore_errors=True)
    # make does not support blanks in names: with relative paths, the checkout's path may contain them.
    command = ["make", f"-j{os.cpu_count() or 1}", "--no-print-directory", "-C", NATIVE, f"MPICC={compiler}"]
    command += [f"OUT={os.path.relpath(target, NATIVE)}", *variables, *changed]
    planned = subprocess.run(
        [*command, "--dry-run"], capture_output=True, text=True, errors="replace", env=environment, check=False
    )
    progress.begin(target.name, changed, sum(map(_compiles, planned.stdout.splitlines())))
    output: deque[str] = deque(maxlen=60)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        for line in process.stdout or ():
            output.append(line)
            progress.done[target.name] += _compiles(line)
    progress.all.pop(target.name)
    if process.returncode != 0:
        raise StudyError(f"make with {compiler} failed:\n{''.join(output)}")
    for part in changed:
        stamp = _stamp(target, part)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(changed[part] + "\n", encoding="utf-8")


def _stamp(target: Path, part: str) -> Path:
    return target / ".sources" / part


def built(target: Path, part: str) -> str | None:
    """Return the digest of the sources of a part's last build in folder *target*; None if it was not built."""
    try:
        return _stamp(target, part).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _compiles(line: str) -> bool:
    """Return whether a line of make is the command of a compiler, with the option -o."""
    try:
        return "-o" in shlex.split(line)[:-1]
    except ValueError:
        return False
