"""`./study what-ran`: what the library really ran, compared with what was forced and with the library's own reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import ran, toolchain
from collstudy.launch.openmpi import AS_NODE, OVERSUBSCRIBED, emulates_nodes, library, winning_component
from collstudy.launch.toolchain import Mpi, installed, mpi_environment, mpis, version_of
from conftest import ROOT, compiled, csv_rows, executable, finish, write_mpi4py

TESTS = Path(__file__).resolve().parent
#: The library installed by set-up, and the system's if it has another version.
LAUNCHERS = {
    version: path
    for path in (library().mpirun, shutil.which("mpirun", path="/usr/bin"))
    if path and (version := version_of([path, "--version"], r"\(Open MPI\) (\S+)", Path(path).parent))
}
every_library = pytest.mark.parametrize("name", ["openmpi", "mpich", "impi"])
with_launchers = pytest.mark.parametrize("mpirun", LAUNCHERS.values(), ids=LAUNCHERS)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build tests/ran.c with the MPI library of the study."""
    return compiled("ran", tmp_path_factory.mktemp("a program"))


def what_ran(
    folder: Path, *words: str | Path, options: tuple[str, ...] = (), text: str | None = None, status: int = 0
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]]]:
    """Run the command like a user and check its exit status; return its output and the rows of its table."""
    target = folder / "ran.csv"
    target.unlink(missing_ok=True)
    feed = {"input": text} if text else {"stdin": subprocess.DEVNULL}
    command = [sys.executable, "-m", "collstudy", "what-ran", "--folder", folder, "--csv", target, *options]
    command += ["--", *words]
    done = finish(command, timeout=120, env=mpi_environment(), cwd=ROOT, **feed)
    rows = csv_rows(target) if target.exists() else []
    assert done.returncode == status, done.stdout + done.stderr
    assert not list(folder.glob(".what-ran-*"))
    return done, rows


def of(rows: list[dict[str, str]], collective: str) -> list[tuple[str, str, str, str]]:
    return [
        (row["communicator"], row["component"], row["algorithm"], row["known_by"])
        for row in rows
        if row["collective"] == collective
    ]


@with_launchers
def test_calls_sizes_and_communicators(program: Path, tmp_path: Path, mpirun: Path) -> None:
    done, rows = what_ran(tmp_path, mpirun, "-n", "4", *OVERSUBSCRIBED, program)
    seen = {(row["collective"], row["communicator"]): [0, set()] for row in rows}
    for row in rows:
        one = seen[row["collective"], row["communicator"]]
        one[0] += int(row["calls"])
        one[1] |= {int(row["min_bytes"]), int(row["max_bytes"])}
    world = "MPI_COMM_WORLD of 4 ranks"
    assert seen == {
        ("bcast", world): [4, {65536, 8}],
        ("allreduce", "2 communicators of 2 ranks"): [2, {20}],
        ("alltoall", world): [1, {16}],
        ("ibcast", world): [1, {8}],
        ("barrier", world): [1, {0}],
    }
    assert of(rows, "ibcast") == [(world, "libnbc", "?", "component")]
    # The library that ran is the launcher's.
    version = next(version for version, path in LAUNCHERS.items() if path == mpirun)
    assert f"library: Open MPI v{version}," in done.stdout


@with_launchers
@pytest.mark.parametrize(
    ("settings", "bcast", "allreduce"),
    [
        ({"bcast": 1, "allreduce": 3}, "basic_linear", "recursivedoubling"),
        (
            {"bcast": 2, "bcast_algorithm_segmentsize": 1024, "bcast_algorithm_chain_fanout": 2, "allreduce": 1},
            "chain[segment 1024, fan-out 2]",
            "basic_linear (reduce basic_linear + bcast basic_linear)",
        ),
        ({"bcast": 6, "allreduce": 2, "reduce": 5}, "binomial", "nonoverlapping (reduce binomial + bcast binomial)"),
    ],
)
def test_a_forced_algorithm_is_the_one_that_ran(
    program: Path, tmp_path: Path, mpirun: Path, settings: dict[str, int], bcast: str, allreduce: str
) -> None:
    forced = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
    for name, value in settings.items():
        forced += ["--mca", f"coll_tuned_{name}" + ("" if "_" in name else "_algorithm"), str(value)]
    _, rows = what_ran(tmp_path, mpirun, "-n", "4", *OVERSUBSCRIBED, *forced, program)
    assert of(rows, "bcast") == [("MPI_COMM_WORLD of 4 ranks", "tuned", bcast, "call")]
    assert of(rows, "allreduce") == [("2 communicators of 2 ranks", "tuned", allreduce, "call")]


@with_launchers
@pytest.mark.parametrize("chosen", [["coll_sm_priority", "90"], ["coll_sm_priority", "0"]])
def test_the_component_is_the_one_that_open_mpi_selects(
    program: Path, tmp_path: Path, mpirun: Path, chosen: list[str]
) -> None:
    options = [*OVERSUBSCRIBED, "--mca", *chosen, "--mca", "coll_base_verbose", "20"]
    done, rows = what_ran(tmp_path, mpirun, "-n", "2", *options, program)
    assert {component for _, component, _, _ in of(rows, "bcast")} == {winning_component(done.stdout)}


@with_launchers
def test_without_tuned_the_functions_of_basic_run(program: Path, tmp_path: Path, mpirun: Path) -> None:
    # The component with the highest priority there, libnbc, has no blocking collectives.
    _, rows = what_ran(tmp_path, mpirun, "-n", "2", *OVERSUBSCRIBED, "--mca", "coll", "basic,libnbc,self", program)
    world = "MPI_COMM_WORLD of 2 ranks"
    assert of(rows, "bcast") == [(world, "basic", "basic_linear", "call")]
    assert of(rows, "allreduce") == [("2 communicators of 1 rank", "self", "allreduce_intra", "table")]


def test_on_two_nodes_han_runs_algorithms_on_parts_of_the_communicator(program: Path, tmp_path: Path) -> None:
    if not emulates_nodes(library()):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    agent = tmp_path / AS_NODE.name
    agent.symlink_to(AS_NODE)
    nodes = ["--prtemca", "plm_ssh_agent", agent, "--host", "nodea:2,nodeb:2", "--map-by", "slot", "--bind-to", "none"]
    _, rows = what_ran(tmp_path, library().mpirun, *nodes, "-n", "4", program)
    # One rank of each node is in both parts, between nodes and within its node; the first call also determines the nodes.
    later = [row for row in rows if row["collective"] == "bcast" and row["calls"] == "2"]
    assert {(row["component"], row["algorithm"]) for row in later} == {
        ("han", "bintree + bintree on 2 of 4 ranks"), ("han", "bintree on 2 of 4 ranks"),
    }  # fmt: skip
    # With one rank per node, han gives up and leaves the call to tuned, which calls one algorithm.
    assert of(rows, "allreduce") == [("2 communicators of 2 ranks", "tuned", "recursivedoubling", "call")]


def test_a_launcher_in_the_folder_of_the_program(program: Path, tmp_path: Path) -> None:
    mpi = library()
    (tmp_path / "bin").symlink_to(mpi.bin)
    _, rows = what_ran(tmp_path, "bin/mpirun", "-n", "2", *OVERSUBSCRIBED, program)
    assert rows


def test_a_rank_that_dies_leaves_what_it_did(program: Path, tmp_path: Path) -> None:
    done, rows = what_ran(tmp_path, library().mpirun, "-n", "2", program, "die", status=2)
    assert "the table covers the calls until then: crash: mpirun ended with" in done.stderr
    assert {row["collective"] for row in rows} == {"bcast"}


def test_a_program_that_hangs_is_ended(program: Path, tmp_path: Path) -> None:
    done, rows = what_ran(tmp_path, library().mpirun, "-n", "2", program, "hang", options=("--limit", "6"), status=2)
    assert "time limit: not finished after 6 s" in done.stderr
    assert {row["collective"] for row in rows} == {"bcast"}


@with_launchers
def test_several_programs_in_one_launch(program: Path, tmp_path: Path, mpirun: Path) -> None:
    alone = [mpirun, "-n", "1", *OVERSUBSCRIBED, "sleep", "1", ":", "-n", "1", "sleep", "1"]
    if finish(alone, timeout=60, env=mpi_environment()).returncode < 0:
        pytest.skip("mpirun itself crashes with several programs (5.0.7 of Debian 13)")
    words = [mpirun, "-n", "1", *OVERSUBSCRIBED, program, ":", "-n", "1", program]
    _, rows = what_ran(tmp_path, *words, options=("--limit", "30"))
    assert of(rows, "barrier")


@with_launchers
def test_a_program_that_reads_its_input_finds_none(program: Path, tmp_path: Path, mpirun: Path) -> None:
    _, rows = what_ran(tmp_path, mpirun, "-n", "2", *OVERSUBSCRIBED, program, "reads", options=("--limit", "30"))
    assert of(rows, "barrier")


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["PROGRAM"], None, "no MPI launcher in the command; known: mpirun, "),
        (
            ["MPIRUN", "-n", "1", "PROGRAM", "silent"],
            None,
            "the program does not use MPI, starts it by MPI_Session_init, or uses a different MPI library than its launcher",
        ),
        (["MPIRUN", "-n", "1", *OVERSUBSCRIBED, "PROGRAM", "spawn"], None, "the program spawns ranks (MPI_Comm_spawn)"),
        (["MPIRUN", "-n", "1", "no-such-program"], None, "the program ended before MPI_Init returned: "),
        (["MPIRUN", "-n", "1", "PROGRAM"], "input\n", "standard input is not passed to the program"),
        (["no-such-folder/mpirun", "-n", "1", "PROGRAM"], None, "no-such-folder/mpirun: not found"),
        (["A=1", "MPIRUN", "-n", "1", "PROGRAM"], None, "A=1: not found; variables need env: env A=1 "),
        (["no-such-wrapper", "MPIRUN", "-n", "1", "PROGRAM"], None, "no-such-wrapper: No such file or directory"),
        (["WITHOUT", "MPIRUN", "-n", "1", "PROGRAM"], None, "without-interpreter: Exec format error"),
    ],
)
def test_what_cannot_be_followed_is_one_sentence(
    program: Path, tmp_path: Path, words: list[str], text: str | None, message: str
) -> None:
    script = executable(tmp_path / "without-interpreter", '"$@"\n')
    known = {"PROGRAM": str(program), "MPIRUN": str(library().mpirun), "WITHOUT": str(script)}
    done, rows = what_ran(tmp_path, *(known.get(word, word) for word in words), text=text, status=2)
    assert not rows
    assert done.stderr.count("\n") == 1 and message in done.stderr


def test_a_launcher_that_is_not_on_path_is_named_where_set_up_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(ran, "mpis", lambda: {"openmpi": Mpi("openmpi", "5.0.11", tmp_path)})
    (tmp_path / "mpirun").touch()
    with pytest.raises(StudyError, match=f"^mpirun: not found on PATH: load the module .*{tmp_path}/mpirun"):
        ran.launcher_of(["mpirun", "-n", "1", "program"])


def test_a_folder_that_does_not_exist_is_one_sentence(program: Path, tmp_path: Path) -> None:
    done, _ = what_ran(tmp_path, library().mpirun, "-n", "1", program, options=("--folder", "/no/folder"), status=2)
    assert done.stderr == "error: /no/folder: no such folder\n"


def test_ranks_have_the_environment_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the Python of this project; and libraries that the user preloads stay."""
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'workflow'}:/of/the/user")
    script = "echo preloaded $LD_PRELOAD; echo modules $PYTHONPATH; command -v python3"
    done, _ = what_ran(tmp_path, library().mpirun, "-n", "1", "sh", "-c", script, status=2)
    lines = done.stdout.splitlines()
    assert any(line.startswith("preloaded ") and line.endswith("libcolltrace.so:libm.so.6") for line in lines)
    assert "modules /of/the/user" in lines and not any(line.startswith(str(ROOT / ".study")) for line in lines)


@pytest.mark.parametrize("before", [False, True], ids=["option", "env"])
@pytest.mark.parametrize("launcher", [*LAUNCHERS.values(), "mpich"], ids=[*LAUNCHERS, "mpich"])
def test_libraries_that_the_command_adds_are_added(tmp_path: Path, launcher: str | Path, before: bool) -> None:
    """By an option of the launcher, or `env` before it; and a script may replace LD_LIBRARY_PATH."""
    name = "mpich" if launcher == "mpich" else "openmpi"
    if name not in mpis():
        pytest.skip(f"no {name}")
    launcher = mpis()[name].mpirun if name == "mpich" else launcher
    program, script = tmp_path / "ran", tmp_path / "script"
    command = [mpis()[name].mpicc, "-o", program, TESTS / "ran.c", "-lpthread"]
    subprocess.run(command, check=True, env=mpi_environment())
    script.write_text(f'#!/bin/sh\necho "of $LD_LIBRARY_PATH $LD_PRELOAD."\nLD_LIBRARY_PATH=/nowhere exec {program}\n')
    script.chmod(0o755)
    given = ["LD_LIBRARY_PATH=/of/user", "LD_PRELOAD=libm.so.6"]
    option = "-genv" if name == "mpich" else "-x"
    words = ["env", *given, launcher] if before else [launcher, option, given[0], option, given[1]]
    done, rows = what_ran(tmp_path, *words, "-n", "2", *(OVERSUBSCRIBED if name == "openmpi" else []), script)
    assert "/of/user " in done.stdout and "libcolltrace.so:libm.so.6." in done.stdout, done.stdout
    assert "bcast" in {row["collective"] for row in rows}


#: A program that calls Open MPI's Fortran functions without needing a Fortran compiler.
FORTRAN = """
void mpi_init_(int *), mpi_finalize_(int *), mpi_bcast_(void *, int *, int *, int *, int *, int *);
extern struct { int handle; } ompi_mpi_comm_world;
int MPI_Comm_c2f(void *), MPI_Type_c2f(void *);
extern char ompi_mpi_byte[];

int main(void) {
    int code, count = 24, root = 0;
    char data[24] = {0};
    mpi_init_(&code);
    int type = MPI_Type_c2f(ompi_mpi_byte), comm = MPI_Comm_c2f(&ompi_mpi_comm_world);
    for (int i = 0; i < 3; i++)
        mpi_bcast_(data, &count, &type, &root, &comm, &code);
    mpi_finalize_(&code);
}
"""


def test_a_program_in_fortran(tmp_path: Path) -> None:
    folder = Path("/usr/lib/x86_64-linux-gnu")
    bindings = folder / "libmpi_mpifh.so.40"
    if not bindings.exists() or not shutil.which("mpirun", path="/usr/bin"):
        pytest.skip("no Fortran bindings of Debian's Open MPI")
    source = tmp_path / "bound.c"
    source.write_text(FORTRAN)
    linked = [bindings, folder / "libmpi.so.40", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    subprocess.run(["gcc", "-w", "-o", tmp_path / "bound", source, *linked], check=True)
    _, rows = what_ran(tmp_path, "/usr/bin/mpirun", "-n", "2", *OVERSUBSCRIBED, "./bound")
    assert [(row["collective"], row["calls"], row["max_bytes"], row["known_by"]) for row in rows] == [
        ("bcast", "3", "24", "call"),
    ]  # fmt: skip


#: The same with the functions of Intel MPI's module mpi_f08 that have no buffers.
FORTRAN_2008 = """
void mpi_init_f08_(int *), mpi_finalize_f08_(int *), mpi_barrier_f08_(int *, int *);
void mpi_comm_split_f08_(int *, int *, int *, int *, int *);

int main(void) {
    int code, world = 0x44000000 /* MPI_COMM_WORLD */, same = 0, copy;
    mpi_init_f08_(&code);
    mpi_comm_split_f08_(&world, &same, &same, &copy, &code);
    mpi_barrier_f08_(&copy, &code);
    mpi_finalize_f08_(&code);
}
"""


def test_a_program_that_uses_mpi_f08(tmp_path: Path) -> None:
    mpi = mpis()["impi"]
    source = tmp_path / "bound.c"
    source.write_text(FORTRAN_2008)
    command = [mpi.mpicc, "-w", "-o", tmp_path / "bound", source, "-lmpifort"]
    subprocess.run(command, check=True, env=mpi.environment())
    _, rows = what_ran(tmp_path, mpi.mpirun, "-n", "2", "./bound")
    assert [(row["collective"], row["communicator"], row["calls"]) for row in rows] == [
        ("barrier", "a communicator of 2 ranks", "1")
    ]


@pytest.fixture
def same_on_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Select what Intel MPI's tuning data for the processor would select otherwise."""
    for collective, preset in (("BCAST", "1"), ("ALLREDUCE", "1"), ("ALLTOALL", "2")):
        monkeypatch.setenv(f"I_MPI_ADJUST_{collective}", preset)


@pytest.mark.usefixtures("same_on_all_processors")
def test_intel_mpis_functions_are_seen(tmp_path: Path) -> None:
    for preset, seen in (("1", "binomial"), ("8", "knomial + tree + tree_generic")):
        _, rows = with_library(tmp_path, "impi", options=("-genv", "I_MPI_ADJUST_BCAST", preset))
        assert of(rows, "bcast") == [("MPI_COMM_WORLD of 2 ranks", "-", seen, "call")]
        assert of(rows, "alltoall") == [("MPI_COMM_WORLD of 2 ranks", "-", "scattered", "call")]
        assert of(rows, "allreduce") == [("2 communicators of 1 rank", "-", "-", "nothing ran")]
    _, rows = with_library(tmp_path, "impi", "blocks", options=("-genv", "I_MPI_ADJUST_GATHERV", "1"))
    assert of(rows, "gatherv") == [("MPI_COMM_WORLD of 2 ranks", "-", "linear_ssend", "call")]


@every_library
@pytest.mark.usefixtures("same_on_all_processors")
def test_calls_that_are_not_recorded_are_named(tmp_path: Path, name: str) -> None:
    done, _ = with_library(tmp_path, name, "others")
    assert "called, but not recorded: MPI_Iscan, MPI_Neighbor_alltoall, calls on intercommunicators\n" in done.stdout
    done, _ = with_library(tmp_path, name)
    assert "not recorded" not in done.stdout


def test_of_threads_of_intel_mpi_nothing_is_claimed(tmp_path: Path) -> None:
    _, rows = with_library(tmp_path, "impi", "threads")
    assert of(rows, "allreduce") == [("2 communicators of 2 ranks", "?", "?", "-")]
    assert [row["calls"] for row in rows] == ["2000"]


def test_stripped_libraries_say_calls_and_sizes_alone(tmp_path: Path) -> None:
    done, rows = with_library(tmp_path, "mpich")
    assert {(row["component"], row["algorithm"], row["known_by"]) for row in rows} == {("?", "?", "-")}
    assert {row["collective"]: row["calls"] for row in rows} == {
        "bcast": "4", "allreduce": "2", "alltoall": "1", "ibcast": "1", "barrier": "1",
    }  # fmt: skip
    assert "known by -: this library does not show what ran" in done.stdout


def with_library(
    folder: Path, name: str, *words: str, options: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]]]:
    """Run the program `ran` on two ranks with one MPI library."""
    if name not in mpis():
        pytest.skip(f"no {name}")
    program, mpi = folder / "ran", installed(name)
    subprocess.run([mpi.mpicc, "-o", program, TESTS / "ran.c"], check=True, env=mpi.environment())
    return what_ran(folder, mpi.mpirun, "-n", "2", *options, program, *words)


def test_a_library_that_is_not_on_path_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "mpis", dict)
    with pytest.raises(StudyError, match="no impi: its mpicc is not the first one on PATH"):
        installed("impi")


def calls(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return [(row["communicator"], row["collective"], row["calls"], row["max_bytes"]) for row in rows]


@every_library
@pytest.mark.usefixtures("same_on_all_processors")
def test_communicators_are_told_apart_however_they_were_made(tmp_path: Path, name: str) -> None:
    _, rows = with_library(tmp_path, name, "communicators")
    assert calls(rows) == [("5 communicators of 2 ranks", "allreduce", "5", "4")]


@every_library
@pytest.mark.usefixtures("same_on_all_processors")
def test_large_types_and_counts(tmp_path: Path, name: str) -> None:
    _, rows = with_library(tmp_path, name, "large")
    # mpi4py calls MPI_Bcast_c where there is one.
    assert calls(rows) == [
        ("2 communicators of 1 rank", "bcast", "2", str(1 << 32)), ("MPI_COMM_WORLD of 2 ranks", "bcast", "1", "8"),
    ]  # fmt: skip


PYTHON = """
from mpi4py import MPI

world = MPI.COMM_WORLD
data = bytearray(1000)
world.Bcast(data, root=0)
world.Barrier()
"""


@with_launchers
def test_a_program_in_python(tmp_path: Path, mpirun: Path) -> None:
    write_mpi4py(tmp_path, PYTHON)
    words = [mpirun, "-n", "2", *OVERSUBSCRIBED, "-x", f"PYTHONPATH={tmp_path / 'lib'}", sys.executable, "program.py"]
    _, rows = what_ran(tmp_path, *words)
    assert [(row["collective"], row["calls"], row["max_bytes"], row["known_by"]) for row in rows] == [
        ("bcast", "1", "1000", "call"), ("barrier", "1", "0", "call"),
    ]  # fmt: skip


@every_library
def test_the_library_of_a_program_that_srun_starts_is_the_one_it_is_linked_with(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's srun starts programs of all libraries."""
    mpi = installed(name)
    executable(tmp_path / "srun", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(mpi.bin.parent / "lib"))
    program = mpi.build / "bench" / "collbench_bcast"
    assert ran.launcher_of(["srun", "-n", "2", str(program), "-m", "8"]).mpi == name
    assert ran.launcher_of(["srun", "-n", "2", sys.executable, "script.py"]).mpi == "openmpi"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("MPICH Version: 4.2.3", "mpich"),
        ("Intel(R) MPI Library 2021.13 for Linux* OS", "impi"),
        ("Open MPI v5.0.5", "openmpi"),
    ],
)
def test_the_library_of_a_python_program_that_srun_starts_is_that_of_mpi4py(
    version: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "srun", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("class rc:\n    initialize = True\n")
    # Importing it starts MPI, unless it is told not to.
    module = f"from mpi4py import rc\nassert not rc.initialize\ndef Get_library_version(): return {version!r}\n"
    (tmp_path / "mpi4py" / "MPI.py").write_text(module)
    assert ran.launcher_of(["srun", "-n", "2", sys.executable, "script.py"]).mpi == name


def test_the_python_of_a_command_is_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of set-up, which ./study puts first on PATH, and which the program does not get."""
    python = executable(
        tmp_path / "python3", '#!/bin/sh\necho MPICH Version: 4.2.3 of $PYTHONPATH >> "$0.said"; cat "$0.said"\n'
    )
    executable(tmp_path / "srun", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", os.pathsep.join([f"{ROOT}/.study/venv/bin", str(tmp_path), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'workflow'}")
    monkeypatch.setenv("COLLSTUDY_PYTHONPATH", "/of/the/user")
    assert ran.programs_in(["python3", "script.py"], tmp_path / "none") == [python]
    assert ran.launcher_of(["srun", "-n", "2", "python3", "script.py"]).mpi == "mpich"
    assert Path(f"{python}.said").read_text() == "MPICH Version: 4.2.3 of /of/the/user\n"
