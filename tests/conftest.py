"""Fixtures: a modifiable copy of the checkout, and the results of the imported study."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from collstudy.launch.openmpi import library
from collstudy.launch.toolchain import mpi_environment
from collstudy.project.studies import Project
from collstudy.study.config import Configuration
from forked_snakemake import snakemake

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("Snakefile", "study", "CITATION.cff", "LICENSE", "config", "data", "profiles", "workflow", "report", "envs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into failures in CI, where everything is installed: a test that skips itself has found a missing part.

    The only exception is a host that forbids namespaces: its test cluster uses loopback and emulates no nodes; its message says so.
    """
    report = yield
    permitted = any(text in str(report.longrepr) for text in ("mode loopback", "namespaces are not permitted"))
    if report.skipped and os.environ.get("CI") == "true" and not permitted:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skips in CI: {report.longrepr}"
    return report


def reference_data() -> Path:
    """Return the folder of the reference data; without the data, skip the test."""
    folder = Path(os.environ.get("STUDY_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "orfeo-thin" / "bcast_default.csv").exists():
        pytest.skip(f"no reference data in {folder} (set STUDY_REFERENCE_DATA)")
    return folder


def finish(command: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and capture its output."""
    return subprocess.run(command, **{"capture_output": True, "text": True, "check": False, **options})


def must(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Return the result of a command; fail the test if the command failed."""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done


def tool(name: str, variable: str = "") -> str:
    """Return the path of a program: that in an environment variable, or the one on PATH; without it, skip the test."""
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH" + f", {variable} is not set" * bool(variable))
    return found


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, which may be compressed."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def quick(values: Iterable, first: int, step: int) -> list:
    """Mark all but every *step*-th value of a parameter, starting at *first*, as long tests."""
    return [pytest.param(value, marks=() if i % step == first else pytest.mark.long) for i, value in enumerate(values)]


def executable(path: Path, text: str) -> Path:
    """Write a program; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Checkout:
    """A copy of this checkout in its own folder; it shares the products of set-up."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.o"))
            else:
                shutil.copy2(source, folder / name)
        (folder / ".study").symlink_to(ROOT / ".study")

    def own_setup(self, *left_out: str) -> Path:
        """Give it a folder .study of its own, with links to the products of set-up except those in *left_out*."""
        made = self.folder / ".study"
        made.unlink()
        made.mkdir()
        for path in (ROOT / ".study").iterdir():
            if path.name not in left_out:
                (made / path.name).symlink_to(path)
        return made

    def copied_setup(self) -> Path:
        """Give it a copy of .study, made of hard links."""
        made = self.folder / ".study"
        made.unlink()
        subprocess.run(["cp", "-al", ROOT / ".study", made], check=True)
        return made

    def oversubscribe(self) -> None:
        """Let studies of this machine have more ranks than it has cores."""
        machine = self.folder / "config" / "machines" / "this-machine.yaml"
        machine.write_text(machine.read_text() + "\noversubscribe: true\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def configuration(self) -> Configuration:
        """Return the configuration as it is now."""
        return Configuration(self.folder / "config")

    @property
    def project(self) -> Project:
        """Return the project with the configuration as it is now."""
        return Project(self.folder / "config", self.folder / "results")

    def program(self, name: str, text: str) -> None:
        """Write a program to the folder bin, which is first on `first_on_path`."""
        executable(self.folder / "bin" / name, text)

    @property
    def first_on_path(self) -> dict[str, str]:
        """Return the variable with which programs in the folder bin are found before others."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def snakemake(self, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run snakemake like a user in the set-up environment."""
        return snakemake(arguments, self.folder, self._environment | (environment or {}), timeout=600)

    def collstudy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line of the Python part."""
        return self.python("-m", "collstudy", *arguments)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the checkout's modules."""
        return finish([sys.executable, *arguments], cwd=self.folder, timeout=600, env=self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder / "workflow")}


#: A study of four simulated cells that take little time.
TINY = """
title: A tiny study
question: Does it work?
machine: thin
sweeps:
  - collective: bcast
    algorithms: [default, linear]
    mappings: [core]
    processes: [2, 4]
    sizes: {from: 1, to: 1024}
    iterations: 3
    warmup: 1
"""

#: A study of one imported file.
IMPORTED = """
title: Imported
question: q
machine: orfeo-thin
import:
  suite: OMB
  suite_version: '1'
  mpi: Open MPI
  mpi_version: '1'
  files:
    - path: data/somebodys/bcast.csv
      collective: bcast
      columns: {processes: Processes, size_bytes: Size, latency_us: Latency}
      constants: {algorithm: default, mapping: core, nodes: 1}
"""


def local_study(sweep: str) -> str:
    """Return a study of this machine with one launch per cell of *sweep* (YAML), on two ranks."""
    return f"""
title: Local
question: q
machine: this-machine
launches: {{min: 1, max: 1}}
sweeps:
  - {{mappings: [core], processes: [2], {sweep}}}
"""


@pytest.fixture(autouse=True)
def temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own folder for temporary files. A killed mpirun leaves a session folder named by its process id, in which a
    later mpirun with the same id would fail. The path is short, as paths of sockets must be.
    """
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Create a checkout with a blank in its path and the study `tiny`."""
    made = Checkout(tmp_path / "a checkout")
    made.write("config/studies/tiny.yaml", TINY)
    made.write("config/config.yaml", "studies: [tiny]\nresults: results\n")
    return made


@pytest.fixture(scope="session")
def printed_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results/orfeo-thin-published after collecting and analysing [zampar2024]'s files under their printed names."""
    data = {"STUDY_REFERENCE_DATA": str(reference_data())}
    made = Checkout(tmp_path_factory.mktemp("orfeo") / "checkout")
    parts = [f"results/orfeo-thin-published/{part}/index.csv" for part in ("tables", "models")]
    must(made.snakemake("--config", "studies=orfeo-thin-published", "--", *parts, environment=data))
    return made.folder / "results" / "orfeo-thin-published"


def compiled(name: str, folder: Path) -> Path:
    """Compile tests/NAME.c to *folder* with the MPI library of the study; return the program."""
    command = [library().mpicc, "-o", folder / name, ROOT / "tests" / f"{name}.c", "-lpthread"]
    subprocess.run(command, check=True, env=mpi_environment())
    return folder / name


def write_mpi4py(folder: Path, text: str) -> None:
    """Write `program.py` to a folder and install mpi4py in `lib`; skip the test if the package index cannot be reached."""
    uv = ROOT / ".study" / "uv" / "bin" / "uv"
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
    command += ["--target", folder / "lib", "-r", ROOT / "envs" / "mpi4py.lock"]
    done = finish(command)
    if done.returncode != 0:
        pytest.skip(f"no mpi4py from the package index: {done.stderr[-300:]}")
    (folder / "program.py").write_text(text)
