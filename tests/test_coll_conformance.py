"""Other authors' MPI tests under the collectives library and the trace library: results must be the same as without them.

mpi4py's tests are in its source distribution. This and the wheel under test are downloaded from the package index by version and
checksum. The tests check every call that they make.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from collstudy.launch.toolchain import mpis
from conftest import ROOT, finish, must
from test_coll_library import ALGORITHMS, ROWS, build, place

pytestmark = pytest.mark.long

#: Version and checksums of mpi4py: the wheel under test, and the source distribution with the tests.
LOCK = ROOT / "envs" / "mpi4py.lock"
RANKS = 3
#: The tests about collectives, communicators, operations, errors and threads: those that call many replaced collectives,
OFTEN = (
    "test_cco_buf",
    "test_cco_obj",
    "test_comm",
    "test_op",
    "test_errhandler",
    "test_threads",
    "test_attributes",
    "test_msgzero",
)
#: those that call one of them (besides the barrier, which the others also call),
OF_ONE = {"ALLTOALLV": "test_cco_vec"}
#: and those that the library always passes on: inter-communicators, non-blocking collectives, topologies.
PASSED_ON = (
    "test_cco_buf_inter", "test_cco_vec_inter", "test_cco_nb_buf", "test_cco_nb_vec", "test_comm_inter", "test_comm_topo",
    "test_exceptions",
)  # fmt: skip
EVERY = (*OFTEN, *OF_ONE.values(), *PASSED_ON)


@pytest.fixture(scope="session")
def mpi4py(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folder from which to import mpi4py, and the folder of its sources with the tests."""
    folder = tmp_path_factory.mktemp("mpi4py")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    locked = ["--no-deps", "--require-hashes", "-r", LOCK]
    for command in (
        [*pip, "install", "--only-binary", ":all:", "--target", folder / "lib", *locked],
        # Not `:all:`, which would also build Cython, for ten minutes.
        [*pip, "download", "--no-binary", "mpi4py", "-d", folder, *locked],
    ):
        done = finish(command)
        if done.returncode != 0:
            pytest.skip(f"no mpi4py from the package index: {done.stderr[-300:]}")
    (archive,) = folder.glob("mpi4py-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / "lib", archive.with_name(archive.name.removesuffix(".tar.gz"))


def conforms(
    mpi4py: tuple[Path, Path], variables: dict[str, str], preload: Path | None, patterns: Iterable[str] = EVERY
) -> None:
    found = mpis().get("openmpi")
    if found is None:
        pytest.skip("no Open MPI")
    library, source = mpi4py
    libraries = os.pathsep.join([str(found.bin.parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = found.environment() | {"PYTHONPATH": str(library), "LD_LIBRARY_PATH": libraries} | variables
    exported = ["-x", f"LD_PRELOAD={preload}"] if preload else []
    given = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # --no-builddir: use the installed mpi4py, not one beside the tests.
    command = [found.mpirun, "-n", str(RANKS), *given, *exported, sys.executable, "test/main.py"]
    command += ["--no-builddir", "-q", *patterns]
    done = must(finish(command, cwd=source, env=environment, timeout=3600))
    assert done.stderr.count("\nOK") == RANKS, done.stderr[-4000:]
    assert "Ran 0 tests" not in done.stderr


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = mpis().get("openmpi")
    if found is None:
        pytest.skip("no Open MPI")
    return build(tmp_path_factory.mktemp("coll-conformance"), str(found.mpicc), "all") / "libcollstudy.so"


def test_without_a_library(mpi4py: tuple[Path, Path]) -> None:
    conforms(mpi4py, {}, None)


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_with_each_algorithm(mpi4py: tuple[Path, Path], library: Path, tmp_path: Path, row: int) -> None:
    """Run the tests of one collective in the rows with a new algorithm for it, and those of passed-on calls in the first row.

    mpi4py requests MPI_THREAD_MULTIPLE, but no threads create communicators.
    """
    of_one = [pattern for name, pattern in OF_ONE.items() if row < len(ALGORITHMS[name].split())]
    patterns = EVERY if row == 0 else (*OFTEN, *of_one)
    conforms(mpi4py, ROWS[row] | {"COLL_CREATE": "1"} | place(tmp_path, "cyclic", RANKS), library, patterns)


def test_without_more_communicators(mpi4py: tuple[Path, Path], library: Path, tmp_path: Path) -> None:
    conforms(mpi4py, ROWS[0] | place(tmp_path, "cyclic", RANKS), library)


def test_with_the_tracing_library(mpi4py: tuple[Path, Path], tmp_path: Path) -> None:
    conforms(mpi4py, {"COLLTRACE_FOLDER": str(tmp_path)}, mpis()["openmpi"].build / "trace" / "libcolltrace.so")
