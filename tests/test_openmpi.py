"""Forcing an algorithm of Open MPI, and verifying that it ran."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi
from collstudy.launch.openmpi import AS_NODE, UNBOUND
from collstudy.launch.toolchain import Mpi, chosen
from collstudy.study.cells import Cell
from collstudy.study.machines import Level, Machine
from collstudy.study.patterns import PATTERNS
from collstudy.study.placement import Core, place
from collstudy.study.selection import Default, Library, Switch
from conftest import Checkout, executable, finish
from made_cells import cells_of

# Recorded by the monitoring component of Open MPI 5.0.11 for 7 ranks (coll_tuned_<op>_algorithm forced).
SEEN = {
    "chain": "0>1 0>3 0>5 0>6 1>2 3>4",
    "barrier_linear": "0>1 0>2 0>3 0>4 0>5 0>6 1>0 2>0 3>0 4>0 5>0 6>0",
    "double_ring": "0>1 1>2 2>3 3>4 4>5 5>6 6>0",
    "recursive_doubling": "0>1 0>2 0>4 1>0 1>3 1>5 2>0 2>3 2>6 3>1 3>2 4>0 5>1 6>2",
    "bruck": "0>1 0>2 0>4 1>2 1>3 1>5 2>3 2>4 2>6 3>0 3>4 3>5 4>1 4>5 4>6 5>0 5>2 5>6 6>0 6>1 6>3",
    "barrier_tree": "0>1 0>2 0>4 1>0 2>0 2>3 3>2 4>0 4>5 4>6 5>4 6>4",
}
SEEN_11 = {"binary": "0>1 0>2 1>3 1>5 2>4 2>6 3>7 4>8 5>9 6>10", "binomial": "0>1 0>2 0>4 0>8 1>3 1>5 1>9 2>6 2>10 3>7"}


@pytest.mark.parametrize(("p", "name", "seen"), [(7, *i) for i in SEEN.items()] + [(11, *i) for i in SEEN_11.items()])
def test_patterns_are_those_of_the_library(p: int, name: str, seen: str) -> None:
    pairs = frozenset(tuple(int(r) for r in pair.split(">")) for pair in seen.split())
    assert PATTERNS[name](p, {}) == pairs


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_every_rank_takes_part(name: str) -> None:
    for p in range(2, 50):
        edges = PATTERNS[name](p, {})
        assert {rank for edge in edges for rank in edge} == set(range(p))


@pytest.fixture
def cell(checkout: Checkout) -> Cell:
    template = cells_of(checkout)[0]
    return dataclasses.replace(
        template,
        algorithm="linear",
        selection=Switch("openmpi", {"algorithm": "basic_linear"}),
        pattern="linear",
        processes=3,
    )


LINES = """
[vm:11] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:12] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:11] coll:base:comm_select: selecting       basic, priority  10, Enabled
[vm:12] coll:base:comm_select: selecting       basic, priority  10, Enabled
[vm:11] coll:base:comm_select: selecting       WINNER, priority  30, Enabled
[vm:11] coll:base:comm_select: selecting  monitoring, priority 100, Enabled
[vm:11] coll:base:comm_select: new communicator: MPI_COMM_SELF (cid 1)
[vm:11] coll:base:comm_select: selecting        self, priority  75, Enabled
rank 0 of 3 host vm cpus 0 socket 0 core 0
rank 1 of 3 host vm cpus 1 socket 0 core 1
rank 2 of 3 host vm cpus 2 socket 0 core 2
"""


def judged(cell: Cell, folder: Path, winner: str, pairs: str, text: str = LINES, messages: int = 1) -> dict:
    lines = [
        f"I\t{a}\t{b}\t100 bytes\t{messages} msgs sent\t0,1" for a, b in (pair.split(">") for pair in pairs.split())
    ]
    (folder / "messages.0.prof").write_text(
        "# POINT TO POINT\n" + "\n".join(lines) + "\nI\t2\t0\t0 bytes\t0 msgs sent\t0\n"
    )
    placement = [Core((0, rank), 0, rank) for rank in range(3)]
    return openmpi.judge(cell, text.replace("WINNER", winner), folder, placement, ["vm"], bound=True)


def test_proved(cell: Cell, tmp_path: Path) -> None:
    proof = judged(cell, tmp_path, "tuned", "0>1 0>2")
    assert (proof["component"], proof["used"], proof["placed"], proof["detail"]) == ("tuned", True, True, "")


def test_another_component_won(cell: Cell, tmp_path: Path) -> None:
    proof = judged(cell, tmp_path, "han", "0>1 0>2")
    assert proof["used"] is False and "component han ran" in proof["detail"]


def test_other_messages_than_the_algorithms(cell: Cell, tmp_path: Path) -> None:
    proof = judged(cell, tmp_path, "tuned", "0>1 1>2")
    assert proof["used"] is False and "do not match pattern linear" in proof["detail"]


def test_other_segments_than_asked_for(cell: Cell, tmp_path: Path) -> None:
    chain = {"algorithm": "chain", "fanout": 1, "segment_bytes": 256}
    cell = dataclasses.replace(cell, selection=Switch("openmpi", chain), pattern="chain", sizes=(1, 1024))
    # One byte is one message, 1024 bytes are four.
    assert judged(cell, tmp_path, "tuned", "0>1 1>2", messages=5)["used"] is True
    proof = judged(cell, tmp_path, "tuned", "0>1 1>2", messages=2)
    assert proof["used"] is False and "5 messages between two ranks expected, 2 counted" in proof["detail"]


def test_the_default_forces_nothing(cell: Cell, tmp_path: Path) -> None:
    default = dataclasses.replace(cell, selection=Default(), pattern=None)
    proof = judged(default, tmp_path, "han", "0>1")
    assert proof["used"] is None and proof["component"] == "han"


@pytest.mark.parametrize(
    ("seen", "detail"),
    [
        ("cpus 1 socket 0 core 1", "rank 2: requested vm core 2, placed on vm core 1"),
        ("cpus 1,2", "rank 2: requested vm core 2, not bound to one core on vm"),
        # The number of the processor is not that of the core.
        ("cpus 2 socket 1 core 12", "rank 2: requested vm core 2, placed on vm core 12"),
    ],
)
def test_ranks_on_other_cores_are_noticed(cell: Cell, tmp_path: Path, seen: str, detail: str) -> None:
    proof = judged(cell, tmp_path, "tuned", "0>1 0>2", LINES.replace("cpus 2 socket 0 core 2", seen))
    assert (proof["placed"], proof["detail"]) == (False, detail)


def test_numbers_come_from_the_installed_library() -> None:
    numbers = openmpi.algorithm_numbers(openmpi.library().ompi_info, "bcast")
    assert numbers["basic_linear"] == 1 and len(numbers) > 5


def test_an_ompi_info_that_fails_is_an_error(tmp_path: Path) -> None:
    """An empty answer would look like a library without algorithms."""
    broken = executable(tmp_path / "ompi_info", "#!/bin/sh\nexit 3\n")
    for program in (broken, tmp_path / "missing"):
        with pytest.raises(StudyError, match="failed or did not answer"):
            openmpi.algorithm_numbers(program, "bcast")


def test_the_launch_agent_of_a_checkout_whose_path_has_blanks(tmp_path: Path) -> None:
    """Open MPI passes it a command that names files of the checkout without quotes."""
    if not openmpi.emulates_nodes(openmpi.library()):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    root = tmp_path / "a folder"
    agent = root / "workflow" / "scripts" / AS_NODE.name
    agent.parent.mkdir(parents=True)
    shutil.copy(AS_NODE, agent)
    executable(root / "program", '#!/bin/sh\necho "$PREFIX: $1 on $(hostname)"\n')
    linked = tmp_path / "agent.sh"
    linked.symlink_to(agent)
    command = [linked, "nodeb", f"PREFIX={root};export PREFIX;", f"{root}/program", "started"]
    done = finish(command)
    assert done.stdout == f"{root}: started on nodeb\n", done.stderr


def test_emulated_nodes_without_root() -> None:
    """Only root may set a host's name: each daemon becomes root of a namespace, and Open MPI would refuse to run as root."""
    mpi = openmpi.library()
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if not openmpi.emulates_nodes(mpi) or finish([*user, AS_NODE, "node", "true"]).returncode:
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    environment = {name: value for name, value in os.environ.items() if "ALLOW_RUN_AS_ROOT" not in name}
    arguments = ["--prtemca", "plm_ssh_agent", AS_NODE, "--host", "nodea:1,nodeb:1", "--map-by", "slot", *UNBOUND]
    # Not hostname alone: on a busy computer, mpirun does not end after one in ten programs that end at once without MPI.
    program = ["sh", "-c", "hostname; sleep 1"]
    done = finish([*user, mpi.mpirun, "-n", "2", *arguments, *program], env=environment, timeout=60)
    assert sorted(done.stdout.split()) == ["nodea", "nodeb"], done.stderr


@pytest.mark.parametrize(
    ("levels", "slots"),
    [
        ("node 1 socket 2 core 2", ["0:0", "0:1", "1:0", "1:1"]),
        # Open MPI 4.1 rejects core 2 of socket 0; that of the node is the same in 4.1 and 5.0.
        ("node 1 core 4", ["0", "1", "2", "3"]),
        ("node 1 numa 2 core 2", ["0", "1", "2", "3"]),
    ],
)
def test_rank_files_of_machines_with_and_without_sockets(
    cell: Cell, tmp_path: Path, levels: str, slots: list[str]
) -> None:
    words = levels.split()
    found = tuple(Level(name, int(count)) for name, count in zip(words[::2], words[1::2], strict=True))
    machine = Machine("m", "slurm", "m", "openmpi", found)
    placement = place(machine, [], 1, 4, None)
    openmpi.placement_arguments(machine, cell, Mpi("openmpi", "4.1.6", tmp_path), placement, tmp_path, ["n1"])
    (file,) = tmp_path.glob("ranks-*.txt")
    assert file.read_text() == "".join(f"rank {rank}=n1 slot={slot}\n" for rank, slot in enumerate(slots))


def test_components_that_variables_enable_are_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As HPC-X enables coll/hcoll, which then runs the default's collectives."""
    monkeypatch.setenv("OMPI_MCA_coll_hcoll_enable", "1")
    monkeypatch.setenv("OMPI_MCA_pml", "ucx")
    assert chosen("openmpi") == {"OMPI_MCA_coll_hcoll_enable": "1"}
    # Intel MPI has a file of tuned choices, and hcoll, too.
    monkeypatch.setenv("I_MPI_TUNING_BIN", "/theirs.dat")
    monkeypatch.setenv("I_MPI_COLL_EXTERNAL", "1")
    monkeypatch.setenv("I_MPI_FABRICS", "ofi")
    assert chosen("impi") == {"I_MPI_COLL_EXTERNAL": "1", "I_MPI_TUNING_BIN": "/theirs.dat"}


def test_all_nodes_know_the_groups(cell: Cell, tmp_path: Path) -> None:
    """A launcher may not forward the environment: ranks that do not know the groups would run another algorithm."""
    found = (Level("group", 2), Level("node", 1), Level("core", 2))
    machine = Machine("m", "slurm", "m", "openmpi", found, groups="a=n1;b=n2")
    cell = dataclasses.replace(cell, selection=Library({"COLL_BCAST": "group"}, "1"), processes=2)
    words = openmpi.launcher(machine, cell, place(machine, ["node"], 2, 2, None), tmp_path, ["n1", "n2"], [])
    exported = {word for option, word in itertools.pairwise(words) if option == "-x"}
    assert exported >= {"COLL_BCAST", "COLL_GROUPS", "LD_PRELOAD"}
