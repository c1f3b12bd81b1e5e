"""The drafted machine file: lscpu's topologies, sinfo's lines, and validity of the draft."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli import probe
from collstudy.launch.toolchain import Mpi
from conftest import Checkout


def printed(sockets: int, numa: int, caches: int, cores: int, threads: int, between: str = ",") -> str:
    """Return lscpu's output for *cores* in each of so many caches in each of so many NUMA domains in each socket."""
    lines = [f"# Socket,Node,{between.join(('L1d', 'L1i', 'L2', 'L3'))},Core"]
    for core in range(sockets * numa * caches * cores):
        cache = core // cores
        numbers = (cache // caches // numa, cache // caches, between.join(map(str, (core, core, core, cache))), core)
        lines += [",".join(map(str, numbers))] * threads
    return "# The following is the parsable format\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("units", "levels"),
    [
        ((2, 1, 1, 12, 1), [("socket", 2), ("core", 12)]),
        ((2, 4, 4, 4, 2, ":"), [("socket", 2), ("numa", 4), ("ccx", 4), ("core", 4)]),
        ((1, 1, 2, 4, 1), [("socket", 1), ("ccx", 2), ("core", 4)]),
        ((2, 4, 1, 16, 1), [("socket", 2), ("numa", 4), ("core", 16)]),
    ],
)
def test_levels_of_lscpu(units: tuple, levels: list[tuple[str, int]]) -> None:
    assert probe.topology(printed(*units)) == levels


def test_caches_that_lscpu_does_not_know_are_no_level() -> None:
    assert probe.topology("# Socket,Node,,L1d,L1i,L2,Core\n0,0,,0,0,0,0\n0,0,,1,1,1,1\n") == [
        ("socket", 1),
        ("core", 2),
    ]


def test_sockets_with_other_numbers_of_cores_are_no_level() -> None:
    with pytest.raises(StudyError, match="not regular: 3 of core in 2"):
        probe.topology("# Socket,Node,,L1d,L1i,L2,L3,Core\n0,0,,0,0,0,0,0\n0,0,,1,1,1,0,1\n1,1,,2,2,2,1,2\n")


def test_the_default_partition_is_first() -> None:
    found = probe.partitions("EPYC|8|2|64|epyc,ib|3-00:00:00\nTHIN*|12|2|12|(null)|1-00:00:00\n")
    assert [(p.name, p.nodes, p.cores, p.features) for p in found] == [("THIN", 12, 12, ""), ("EPYC", 8, 64, "epyc,ib")]


def test_a_draft_is_a_valid_machine(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = checkout.folder / "config" / "machines"
    checkout.program("sinfo", "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", checkout.first_on_path["PATH"])
    probe.write("plain", machines)
    checkout.program("sinfo", "#!/bin/sh\necho 'THIN*|2|2|12|(null)|1-00:00:00'\n")
    checkout.program("lscpu", f"#!/bin/sh\ncat <<'END'\n{printed(2, 2, 1, 6, 1)}END\n")
    probe.write("cluster", machines)
    configuration = checkout.configuration
    assert configuration.machine("plain").kind == "local"
    drafted = configuration.machine("cluster")
    assert (drafted.kind, drafted.nodes, drafted.slurm["partition"]) == ("slurm", 2, "THIN")
    assert drafted.cores_per_node == 24
    with pytest.raises(StudyError, match="exists"):
        probe.write("cluster", machines)


def test_a_draft_has_the_nodes_and_the_time_of_the_partition(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes with other features have lines of their own; a job that asks for more time than the partition allows never starts."""
    lines = [
        "THIN*|1|2|64|fat|30:00",
        "THIN*|3|2|12|old,ib|30:00",
        "THIN*|4|2|12|new,ib|30:00",
        "EPYC|9|2|64|(null)|infinite",
    ]
    checkout.program("sinfo", "#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    monkeypatch.setenv("PATH", checkout.first_on_path["PATH"])
    probe.write("cluster", checkout.folder / "config" / "machines")
    drafted = checkout.configuration.machine("cluster")
    assert (drafted.nodes, drafted.cores_per_node, drafted.block_minutes) == (7, 24, 30)
    assert [probe.minutes(limit) for limit in ("1-00:00:00", "2:30:00", "5:30", "infinite")] == [
        1440,
        150,
        5.5,
        float("inf"),
    ]


def test_a_failed_draft_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "run", lambda command: "")
    with pytest.raises(StudyError, match="lscpu .* is not available"):
        probe.write("mine", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_draft_names_the_library_that_a_run_would_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """On PATH or of set-up: a user who has no module to load is not told to load one."""
    monkeypatch.setattr(probe, "mpis", lambda: {"openmpi": Mpi("openmpi", "5.0.11", Path("/here/.study/openmpi/bin"))})
    assert (
        "# Open MPI 5.0.11 in /here/.study/openmpi/bin; " in probe.draft() and "TODO: no Open MPI" not in probe.draft()
    )
    monkeypatch.setattr(probe, "mpis", dict)
    assert "# TODO: no Open MPI" in probe.draft() and "\nmpi: openmpi\n" in probe.draft()
    # That of a loaded module comes before the Open MPI that set-up has installed for another study.
    found = {
        "impi": Mpi("impi", "2021.18", Path("/opt/impi/bin")),
        "openmpi": Mpi("openmpi", "5.0.11", Path("/here/bin")),
    }
    monkeypatch.setattr(probe, "mpis", lambda: found)
    assert "# Intel MPI 2021.18 in /opt/impi/bin; " in probe.draft() and "\nmpi: impi\n" in probe.draft()
    # It has no mpirun.
    monkeypatch.setattr(probe, "partitions", lambda printed: [probe.Partition("THIN", True, 2, 2, 12, "", "30:00")])
    assert "\n  launcher: srun  # Intel MPI has no mpirun here\n" in probe.draft()


def test_the_draft_for_a_host_named_by_a_number(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers are named by hexadecimal digits."""
    monkeypatch.setattr(probe.platform, "node", lambda: "123456789012")
    probe.write("container", checkout.folder / "config" / "machines")
    assert checkout.configuration.machine("container").label == "123456789012"


@pytest.mark.parametrize("name", [".hidden", "-n", "a" * 65, "a b"])
def test_a_name_that_no_study_can_use_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="a machine cannot be called"):
        probe.write(name, tmp_path)
    assert not list(tmp_path.iterdir())
