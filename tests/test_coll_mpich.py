"""MPICH's own tests under the collectives library and the tracing library: what passes without them passes with them.

The tests come with Debian's source package of MPICH, which apt fetches by version; its checksum is compared.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from collstudy.launch.toolchain import mpis
from test_coll_library import ROWS, Run, build, launch, mpicc, place

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
#: What of the tests is about collectives and communicators.
FOLDERS = ("coll", "comm", "topo", "errors/coll", "errors/comm", "errors/topo", "threads/coll", "threads/comm")
LEFT_OUT = ("fortran", "cxx", "romio", "spawn", "rma", "part", "long-double-complex", "dependency-tracking")
#: Programs that call collectives which the library replaces; inter-communicators, which it passes on, are among them.
REPLACED = re.compile(
    r"coll/(allred|bcast|reduce|red|gather|alltoallv|coll\d|op|longuser|ic(allred|bcast|gather|reduce|barrier|alltoallv))"
)
MOST_RANKS = 10


class Program(NamedTuple):
    """A line of the suite's lists: a program in its folder, its number of ranks and its arguments."""

    path: Path
    ranks: int
    arguments: tuple[str, ...] = ()

    def run(self, launch: Run, variables: dict[str, str], preload: str = "") -> str:
        """What it said; empty if it passed."""
        before = ["env", f"LD_PRELOAD={preload}"] if preload else []
        try:
            done = launch(self.ranks, variables, *before, self.path, *self.arguments)
        except subprocess.TimeoutExpired:
            return f"{self}: no end"
        passed = done.returncode == 0 and " No Errors" in done.stdout
        return "" if passed else f"{self}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"


def fetched(folder: Path) -> Path:
    """The unpacked tests."""
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
        done = subprocess.run([*apt, *command], cwd=folder, capture_output=True, text=True, check=False)
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
def suite(mpicc: str, launch: Run, tmp_path_factory: pytest.TempPathFactory) -> list[Program]:
    """The programs that compile: some need what only MPICH has."""
    source = fetched(tmp_path_factory.mktemp("mpich"))
    options = [f"--disable-{name}" for name in LEFT_OUT]
    configured = subprocess.run(
        ["./configure", f"CC={mpicc}", f"MPICC={mpicc}", *options],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert configured.returncode == 0, configured.stdout[-2000:] + configured.stderr[-2000:]
    programs = []
    for name in ("util", "dtpools", *FOLDERS):
        subprocess.run(["make", "-k", "-s", "-j2", "-C", name], cwd=source, capture_output=True, check=False)
        if name in FOLDERS:
            programs += listed(source / name)
    assert len(programs) > 200
    return programs


def listed(folder: Path) -> list[Program]:
    """The programs of a folder that were compiled, without those that need many ranks, much memory or much time."""
    found = []
    for line in (folder / "testlist").read_text().splitlines():
        name, *words = line.partition("#")[0].split() or [""]
        if (
            not name
            or not (folder / name).is_file()
            or int(words[0]) > MOST_RANKS
            or re.search("mem=|timeLimit=", line)
        ):
            continue
        arguments = tuple(word.removeprefix("arg=") for word in words if word.startswith("arg="))
        found.append(Program(folder / name, int(words[0]), arguments))
    return found


def mixed(suite: list[Program], ranks: int) -> Program:
    """Broadcasts of a type of an int and a double, described by each rank in another way."""
    (folder,) = {program.path.parent for program in suite if program.path.parent.parts[-2:] == ("mpi", "coll")}
    given = ("-type=MPI_INT:1+MPI_DOUBLE:1", "-count=100", "-seed=100", "-testsize=20")
    return Program(folder / "bcast", ranks, (*given, "-evenmemtype=host", "-oddmemtype=host"))


def agrees(programs: list[Program], launch: Run, variables: Callable[[Program], dict[str, str]], preload: str) -> None:
    """Each program passes, or does not pass without the library either."""
    wrong, alone = [], []
    for program in programs:
        if said := program.run(launch, variables(program), preload):
            (alone if program.run(launch, {}) else wrong).append(said)
    assert wrong == []
    assert len(alone) < len(programs) / 10, alone


@pytest.fixture(scope="session")
def library(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("coll-mpich"), mpicc, "all") / "libcollstudy.so")


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_with_each_algorithm(suite: list[Program], library: str, launch: Run, tmp_path: Path, row: int) -> None:
    """The programs that call replaced collectives with all algorithms, and each of the others with one row of them."""
    replaced = [program for program in suite if REPLACED.search(str(program.path))]
    others = [program for program in suite if program not in replaced]
    assert len(replaced) > 50
    chosen = [*replaced, *others[row :: len(ROWS)], mixed(suite, 4), mixed(suite, 5)]
    agrees(chosen, launch, lambda program: ROWS[row] | place(tmp_path, "uneven", program.ranks), library)


def test_with_the_tracing_library(suite: list[Program], launch: Run, tmp_path: Path) -> None:
    library = str(mpis()["openmpi"].build / "trace" / "libcolltrace.so")
    agrees(suite, launch, lambda program: {"COLLTRACE_FOLDER": str(tmp_path / program.path.name)}, library)


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
    for ranks in (4, 5):
        variables = {"COLL_BCAST": algorithm} | place(tmp_path, "uneven", ranks) | quiet
        assert mixed(suite, ranks).run(launch, variables, ":".join([*first, str(built)])) == ""
