"""MPICH's own tests under the collectives library and the trace library: tests that pass without them must pass with them.

The tests are in Debian's source package of MPICH, which apt downloads by version; its checksum is compared.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from collstudy.launch.toolchain import mpis
from conftest import finish, must
from test_coll_library import ALGORITHMS, ROWS, Run, build, launch, mpicc, place, replaced_by

__all__ = ["launch", "mpicc"]  # fixtures
pytestmark = pytest.mark.long

VERSION = "4.0.2"
PACKAGE = f"mpich={VERSION}-3"
CHECKSUM = "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = f"""Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: {KEYS}
"""
#: Folders with tests about collectives, communicators and the datatypes of their messages.
FOLDERS = (
    "coll",
    "comm",
    "datatype",
    "topo",
    "errors/coll",
    "errors/comm",
    "errors/topo",
    "threads/coll",
    "threads/comm",
)
LEFT_OUT = ("fortran", "cxx", "romio", "spawn", "rma", "part", "long-double-complex", "dependency-tracking")
#: Number of programs to run at once: a short program spends most of its time waiting for its launcher.
AT_ONCE = 3
#: The suite's own time limit of a program (s).
LIMIT = 180
MOST_RANKS = 10
#: Programs that do not end with Open MPI even without any library: their ranks wait for each other after an error (of gatherlength with
#: the algorithm linear_sync), they create communicators until no more are available, or they call functions that Open MPI lacks.
ENDLESS = (
    "noalias2", "bcastlength", "gatherlength", "allreducelength", "ireducelength", "iallreducelength", "alltoalllength",
    "too_many_comms", "too_many_comms2", "too_many_comms3", "too_many_icomms", "too_many_icomms2",
    "comm_idup_nb", "comm_idup_isend", "idup_comm_gen", "idup_deadlock", "dup_leak_test",
)  # fmt: skip

NO_END = "no end"


class Program(NamedTuple):
    """A line of the suite's lists: a program with its ranks and arguments, and the replaced collectives that it calls."""

    path: Path
    ranks: int
    arguments: tuple[str, ...]
    calls: frozenset[str]

    def run(self, launch: Run, variables: dict[str, str], preload: str = "", limit: float = LIMIT) -> str:
        """Run the program; return its output, or "" if it passed."""
        before = ["env", f"LD_PRELOAD={preload}"] if preload else []
        try:
            done = launch(self.ranks, variables, *before, self.path, *self.arguments, limit=limit)
        except subprocess.TimeoutExpired:
            return f"{self}: {NO_END}"
        passed = done.returncode == 0 and " No Errors" in done.stdout
        return "" if passed else f"{self}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"

    def runs_in(self, row: int, number: int) -> bool:
        """Return whether the row has a new algorithm for what the program calls; programs without such calls run in one row each."""
        rows = max((len(ALGORITHMS[name].split()) for name in self.calls), default=0)
        return row < rows if rows else row == number % len(ROWS)


def fetched(folder: Path) -> Path:
    """Download and unpack the tests."""
    if shutil.which("apt-get") is None or not KEYS.is_file():
        pytest.skip("no apt-get with Debian's keys")
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "debian.sources").write_text(SOURCES)
    places = {
        "Etc::sourcelist": folder / "debian.sources",
        "Etc::sourceparts": folder / "parts",
        "State::lists": folder / "lists",
        "Cache": folder / "cache",
    }
    apt = ["apt-get", "-q", *(part for name, place in places.items() for part in ("-o", f"Dir::{name}={place}"))]
    for command in ("update",), ("source", "--download-only", PACKAGE):
        done = finish([*apt, *command], cwd=folder)
        if done.returncode != 0:
            pytest.skip(f"no source package of MPICH: {done.stderr[-300:]}")
    archive = folder / f"mpich_{VERSION}.orig.tar.xz"
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == CHECKSUM
    top = f"mpich-{VERSION}"
    with tarfile.open(archive) as opened:
        wanted = [member for member in opened if member.name.startswith((f"{top}/test/mpi/", f"{top}/confdb/"))]
        opened.extractall(folder, wanted, filter="data")
    return folder / top / "test" / "mpi"


@pytest.fixture(scope="session")
def suite(mpicc: str, pytestconfig: pytest.Config) -> list[Program]:
    """Return the programs that compile (some need what only MPICH has). Pytest's cache keeps them per compiler."""
    compiler = hashlib.sha256(f"{mpicc} {Path(mpicc).stat().st_mtime_ns}".encode()).hexdigest()[:12]
    kept = pytestconfig.cache.mkdir(f"mpich-{VERSION}-{compiler}")
    source = kept / f"mpich-{VERSION}" / "test" / "mpi"
    if not (kept / "compiled").exists():
        shutil.rmtree(kept)
        compile_suite(fetched(kept), mpicc)
        (kept / "compiled").touch()
    programs = list(dict.fromkeys(program for name in FOLDERS for program in listed(source / name)))
    assert len(programs) > 200
    return programs


def compile_suite(source: Path, mpicc: str) -> None:
    options = [f"--disable-{name}" for name in LEFT_OUT]
    must(finish(["./configure", f"CC={mpicc}", f"MPICC={mpicc}", *options], cwd=source))
    for name in ("util", "dtpools", *FOLDERS):
        subprocess.run(["make", "-k", "-s", "-j2", "-C", name], cwd=source, capture_output=True, check=False)


def listed(folder: Path) -> list[Program]:
    """Return the compiled programs of a folder, without those that need many ranks, much memory or much time."""
    found = []
    for line in (folder / "testlist").read_text().splitlines():
        name, *words = line.partition("#")[0].split() or [""]
        if (
            not name
            or not (folder / name).is_file()
            or int(words[0]) > MOST_RANKS
            or re.search("mem=|timeLimit=", line)
            or name in ENDLESS
        ):
            continue
        arguments = tuple(word.removeprefix("arg=") for word in words if word.startswith("arg="))
        found.append(Program(folder / name, int(words[0]), arguments, called(folder, name)))
    return found


@functools.cache
def called(folder: Path, name: str) -> frozenset[str]:
    """Return the variables of the replaced collectives that a program's own objects call, without the suite's helpers.

    Programs that only use inter-communicators do not count, because the library always passes such calls on.
    """
    objects = [folder / f"{name}.o", *folder.glob(f"{name}-*.o")]
    undefined = subprocess.check_output(["nm", "-u", *(file for file in objects if file.exists())], text=True)
    if "MTestGetIntercomm" in undefined and "MTestGetIntracomm" not in undefined:
        return frozenset()
    return frozenset(replaced_by(function) for function in re.findall(r"U (MPI_\w+)", undefined)) - {""}


def mixed(suite: list[Program]) -> list[Program]:
    """Return broadcasts of a type with an int and a double, which each rank describes differently, on 4 and 5 ranks."""
    (folder,) = {program.path.parent for program in suite if program.path.parent.parts[-2:] == ("mpi", "coll")}
    given = ("-type=MPI_INT:1+MPI_DOUBLE:1", "-count=100", "-seed=100", "-testsize=20")
    memory = ("-evenmemtype=host", "-oddmemtype=host")
    return [Program(folder / "bcast", ranks, (*given, *memory), frozenset({"BCAST"})) for ranks in (4, 5)]


def run_all(programs: list[Program], run: Callable[[Program], str]) -> dict[Program, str]:
    """Run the programs; return the output of those that did not pass."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = dict(zip(programs, pool.map(run, programs), strict=True))
    return {program: text for program, text in said.items() if text}


@pytest.fixture(scope="session")
def passing(suite: list[Program], launch: Run) -> set[Program]:
    """Return the programs that pass without a library; many tests of errors expect checks that only MPICH has."""
    failed = run_all(suite, lambda program: program.run(launch, {}))
    assert len(failed) < len(suite) / 5, failed
    return set(suite) - set(failed)


def all_pass(
    programs: list[Program], launch: Run, variables: Callable[[Program], dict[str, str]], preload: str
) -> None:
    """Run a program that exceeds the time limit again, alone and with twice the limit, to tell a hang from a busy machine."""
    failed = run_all(programs, lambda program: program.run(launch, variables(program), preload))
    for program, text in failed.items():
        if text.endswith(NO_END):
            failed[program] = program.run(launch, variables(program), preload, 2 * LIMIT)
    assert [text for text in failed.values() if text] == []


@pytest.fixture(scope="session")
def library(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("coll-mpich"), mpicc, "all") / "libcollstudy.so")


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_with_each_algorithm(
    suite: list[Program], passing: set[Program], library: str, launch: Run, tmp_path: Path, row: int
) -> None:
    """Run every program with every algorithm of every collective that it calls."""
    chosen = [program for number, program in enumerate(suite) if program in passing and program.runs_in(row, number)]
    assert chosen
    settings = {}
    for ranks in range(1, MOST_RANKS + 1):
        (tmp_path / str(ranks)).mkdir()
        settings[ranks] = ROWS[row] | place(tmp_path / str(ranks), "uneven", ranks)
    all_pass([*chosen, *mixed(suite)], launch, lambda program: settings[program.ranks], library)


def test_with_the_tracing_library(suite: list[Program], passing: set[Program], launch: Run, tmp_path: Path) -> None:
    library = str(mpis()["openmpi"].build / "trace" / "libcolltrace.so")
    folders = {program: str(tmp_path / str(number)) for number, program in enumerate(suite)}
    all_pass(sorted(passing), launch, lambda program: {"COLLTRACE_FOLDER": folders[program]}, library)


PIPELINED = ["node_group_pipelined", "node_group_pipelined:segment_bytes=256", "pipelined:segment_bytes=256"]


@pytest.mark.parametrize("algorithm", PIPELINED)
def test_mixed_types_under_sanitizers(
    suite: list[Program],
    mpicc: str,
    launch: Run,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    algorithm: str,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "coll-mpich-sanitized"
    built = build(folder, mpicc, "CFLAGS=-O1 -g -fsanitize=address,undefined", "all") / "libcollstudy.so"
    names = ("libasan.so", "libubsan.so")
    first = [subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip() for name in names]
    quiet = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    for program in mixed(suite):
        variables = {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", program.ranks) | quiet
        assert program.run(launch, variables, ":".join([*first, str(built)])) == ""
