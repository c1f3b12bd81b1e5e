"""From the account of a program's time to cells, and from its runs to a verdict on the tuning file, without running anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.project import trial
from collstudy.project.studies import Project
from collstudy.sources.account import node_of_rank, sweeps_of, worth_measuring
from collstudy.sources.program import ProgramSource
from collstudy.store.records import Record
from collstudy.study.cells import selected_by
from collstudy.study.document import Place
from collstudy.study.machines import Machine
from collstudy.study.sweeps import read_sweeps
from conftest import ROOT

CATALOGUE = Project(config=ROOT / "config").configuration.catalogue


def account_row(ranks: str, typical: str, operation: str = "bcast", **more: str) -> dict[str, str]:
    """Return a row of an account."""
    row = {"operation": operation, "ranks": ranks, "typical_bytes": typical, "gain_pct": "1", "spread_us": "3"}
    return row | {"transfer_us": "5"} | more


def test_the_cells_of_an_account_are_its_sizes_and_ranks() -> None:
    rows = [account_row(*row) for row in (("4", "8"), ("4", "24"), ("4", "70000"), ("4", "140000"), ("2", "65536"))]
    entries = sweeps_of("bcast", ["default", "chain"], rows, CATALOGUE)
    assert not any("spread_us" in entry for entry in entries)
    found = [(entry["processes"], entry["algorithms"], entry["sizes"]) for entry in entries]
    # Of four ranks, a chain with the default's fan-out of 4 is linear.
    chain = {"name": "chain", "fanout": 2}
    assert found == [
        ([2], ["default", "chain"], [65536]),
        ([4], ["default", "chain"], [8, 24, 70000, 140000]),
        ([4], [chain], [8, 24, 70000, 140000]),
        ([4], [{"name": "chain", "segment_bytes": 8192}, {**chain, "segment_bytes": 8192}], [70000, 140000]),
        ([4], [{"name": "chain", "segment_bytes": 65536}, {**chain, "segment_bytes": 65536}], [140000]),
    ]
    rows = [account_row("4", "8", "allgather"), account_row("2", "8", "allgather")]
    entries = sweeps_of("allgather", ["default", "two_proc"], rows, CATALOGUE)
    assert [entry["algorithms"] for entry in entries] == [["default", "two_proc"], ["default"]]


@pytest.mark.parametrize("collective", ["allgatherv", "reduce_scatter_block", "scan", "exscan"])
def test_collectives_with_algorithms_are_measured(collective: str) -> None:
    """All collectives for which Open MPI's coll/tuned has several algorithms; not those of which it has one."""
    rows = [account_row("4", "1024", name, size_bytes="1024") for name in (collective, "scatterv")]
    ((found, _, algorithms, _),) = worth_measuring(rows, CATALOGUE)
    entries = CATALOGUE.algorithms[collective]
    assert found == collective
    assert set(algorithms) == {name for name, entry in entries.items() if name == "default" or "openmpi" in entry}


@pytest.mark.parametrize(
    ("mpi", "collective", "segmented", "fanned"),
    [
        (
            "openmpi",
            "bcast",
            {"chain", "pipeline", "binary_tree", "split_binary_tree", "binomial", "knomial"},
            {"chain"},
        ),
        ("openmpi", "reduce", {"chain", "pipeline", "binary", "binomial", "in_order_binary"}, {"chain"}),
        ("openmpi", "allreduce", {"segmented_ring"}, set()),
        ("smpi-openmpi", "reduce", {"chain", "pipeline", "binary", "binomial", "in_order_binary"}, {"chain"}),
        ("mpich", "bcast", {"pipeline", "binary_tree"}, set()),
        ("impi", "bcast", set(), set()),
    ],
)
def test_the_algorithms_that_take_segments_and_fan_outs(
    mpi: str, collective: str, segmented: set[str], fanned: set[str]
) -> None:
    rows = [account_row("24", "1048576", collective, size_bytes="1048576")]
    machine = Project(config=ROOT / "config").configuration.machine("thin") if mpi == "smpi-openmpi" else None
    ((_, _, algorithms, _),) = worth_measuring(rows, CATALOGUE, mpi)
    entries = sweeps_of(collective, algorithms, rows, CATALOGUE, mpi, machine)
    variants = [way for entry in entries[1:] for way in entry["algorithms"]]
    assert {way["name"] for way in variants if "segment_bytes" in way} == segmented
    assert {(way["name"], way["fanout"]) for way in variants if "fanout" in way} == {
        (name, fanout) for name in fanned for fanout in (2, 8)
    }
    own = machine or Project(config=ROOT / "config").configuration.machine("this-machine")
    own = replace(own, oversubscribe=True)
    for entry in entries:
        asked = entry if machine else entry | {"mpi": [mpi]}
        for sweep in read_sweeps(asked, own, CATALOGUE, Place(Path("cells.csv"), {})):
            assert all(selected_by(CATALOGUE, collective, choice, mpi, "0") for choice in sweep.algorithms)


@pytest.mark.parametrize(
    ("placements", "placed", "algorithms"),
    [
        ("2 x 3, 1 x 6", {"nodes": [2], "processes_per_node": [3]}, ["default", "node"]),
        ("1 x 6, 2 x 3", {"processes": [6]}, ["default"]),
        ("2 x 1-5", {"processes": [6]}, ["default"]),
        ("", {"processes": [6]}, ["default"]),
    ],
)
def test_simulated_cells_are_on_as_many_nodes_as_the_communicators_of_the_replay(
    placements: str, placed: dict[str, list[int]], algorithms: list[str]
) -> None:
    machine = Project(config=ROOT / "config").configuration.machine("thin")
    row = account_row("6", "8", "alltoall", placements=placements)
    (entry,) = sweeps_of("alltoall", ["default", "node"], [row], CATALOGUE, machine.mpi, machine)
    assert {key: entry[key] for key in entry if key in ("nodes", "processes", "processes_per_node")} == placed
    assert entry["algorithms"] == algorithms


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("0*1 1*1", (0, 1)),
        ("0*1 1*2 0*1", (0, 1, 1, 0)),
        ("0*24 1*2", None),  # the first cores of the first nodes
        ("0*1 1*25", None),  # more than the 24 cores of a node
        ("", None),
    ],
)
def test_cells_are_placed_like_the_communicators_of_the_program(text: str, nodes: tuple[int, ...] | None) -> None:
    machine = Project(config=ROOT / "config").configuration.machine("thin")
    assert node_of_rank({"node_of_rank": text}, machine) == nodes


def test_hydra_does_not_return_to_a_node_that_has_ranks_already() -> None:
    """Except in turn: it would start a second proxy there, which binds its ranks to the same cores; Slurm refuses it."""
    machine = Project(config=ROOT / "config").configuration.machine("thin")
    irregular, in_turn = {"node_of_rank": "0*1 1*1 0*2 1*1"}, {"node_of_rank": "0*1 1*2 0*1 1*2"}
    assert node_of_rank(irregular, machine, "openmpi") == (0, 1, 0, 0, 1)
    assert node_of_rank(irregular, machine, "mpich") is None
    assert node_of_rank(in_turn, machine, "mpich") == node_of_rank(in_turn, machine, "impi") == (0, 1, 1, 0, 1, 1)


@pytest.mark.parametrize(
    ("gains", "kept"), [(("10", "0.05", "0.04"), ["8"]), (("10", "0.05", "0.06"), ["64", "8"]), (("1",), ["8"])]
)
def test_sizes_with_hardly_anything_to_gain_are_not_measured(gains: tuple[str, ...], kept: list[str]) -> None:
    rows = [
        account_row("4", size, size_bytes=size, gain_pct=gain)
        for size, gain in zip(("8", "16", "64"), gains, strict=False)
    ]
    ((_, _, _, measured),) = worth_measuring(rows, Project(config=ROOT / "config").configuration.catalogue)
    assert [row["typical_bytes"] for row in measured] == kept


def test_cells_have_the_spread_of_arrivals_where_it_is_longer_than_the_transfer() -> None:
    def spreads(operation: str, spread: str, machine: Machine | None = None) -> dict[int, float | None]:
        rows = [account_row("3", "8", operation, spread_us=spread), account_row("3", "16", operation, spread_us="1000")]
        # The same size, of another program with less to gain.
        rows.append(account_row("3", "8", operation, gain_pct="0.5", spread_us="300"))
        found = sweeps_of(operation, ["default"], rows, CATALOGUE, machine=machine)
        return {size: entry.get("spread_us") for entry in found for size in entry["sizes"]}

    # Three ranks that arrive uniformly over 80 us are 40 us apart in the median; 64 is the nearest power of two.
    assert spreads("allreduce", "40") == {8: 64, 16: 2048}
    assert spreads("allreduce", "4") == {8: None, 16: 2048}
    simulated = Project(config=ROOT / "config").configuration.machine("thin")
    assert spreads("allreduce", "4", simulated) == {8: 8, 16: 2048}
    # Spreads are not used for rooted collectives.
    assert spreads("bcast", "40") == {8: None, 16: None}


@pytest.mark.parametrize(
    ("spreads", "turns"),
    [
        ("200*40", 64),
        # A site whose ranks arrive closer together than the transfer takes.
        ("300*40 100*4", [0, 64, 64, 64]),
        # Sites whose spreads are rounded to the same.
        ("20*39 10*41 30*300", [64, 512]),
        # A site of one call in a hundred.
        ("99*2 1*1000", None),
        ("99*40 1*1000", 64),
        ("60*40 30*80 10*4", [0, 64, 64, 64, 64, 64, 128, 128]),
    ],
)
def test_cells_have_the_spreads_of_call_sites_in_proportion_to_their_calls(spreads: str, turns: object) -> None:
    (entry,) = sweeps_of("allreduce", ["default"], [account_row("3", "8", "allreduce", spreads=spreads)], CATALOGUE)
    assert entry.get("spread_us") == turns
    assert not isinstance(turns, list) or entry["iterations"] % len(turns) == 0


@pytest.mark.parametrize(
    ("tuned", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0, 1.2], "faster"),
        ([2.0, 1.1, 2.2, 1.0, 1.2], "tie"),
        ([3.0] * 5, "slower"),
        ([1.999] * 5, "tie"),
    ],
)
def test_clearly_faster_means_that_the_interval_is_above_one(tuned: list[float], verdict: str) -> None:
    row = trial.judge("whole", ([2.0] * 5, tuned), 2.0)
    assert row["verdict"] == verdict and row["pairs"] == 5 and row["confidence_pct"] == pytest.approx(93.75)


def source_of(used: list[dict[str, str]], mpi: str, *measured: str, ordered: bool = False) -> ProgramSource:
    """Return the source of a program that was traced, without its files."""
    source = object.__new__(ProgramSource)
    store = SimpleNamespace(about=lambda trace: {"trace": {"unrecorded": ["MPI_Iscan"]}})
    vars(source).update(
        used=used, ordered=ordered, trace=None, launcher=SimpleNamespace(mpi=mpi), tuned=SimpleNamespace(worth_pct=2.0),
        gridded=SimpleNamespace(sweeps=[SimpleNamespace(collective=name) for name in measured]),
        context=SimpleNamespace(store=store, read=lambda trace: Record()),
    )  # fmt: skip
    return source


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        (
            [],
            "the program spends too little time in blocking collectives; ideal (zero-cost) ones would save less than 2 % of its run "
            "time. Not judged, because they are not recorded: MPI_Iscan.",
        ),
        ([account_row("2", "8")], "no algorithms of impi are known for bcast, where the program spends its time"),
    ],
)
def test_a_library_without_known_algorithms_is_told_from_a_quiet_program(
    used: list[dict[str, str]], reason: str
) -> None:
    assert source_of(used, "impi").nothing_to_measure().startswith(f": {reason}")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("failed,crash: exit status 1", "failed, the first one by: crash: exit status 1."),
        # As with srun on a cluster whose Slurm does not bind ranks.
        ("unproved,ranks not bound", "failed or could not be verified, the first one by: ranks not bound."),
    ],
)
def test_cells_without_a_latency_are_not_said_to_be_as_good_as_the_default(
    tmp_path: Path, row: str, reason: str
) -> None:
    tuner = SimpleNamespace(source=source_of([], "openmpi", "bcast"), folder=tmp_path)
    (tmp_path / "cells.csv").write_text(f"collective,status,reason\nbcast,{row}\nprogram,measured,\n")
    expected = f"No tuning file: all measurements for the program {reason}"
    assert trial.why_not(tuner, None, []) == expected


def test_collectives_without_alternatives_are_named(tmp_path: Path) -> None:
    used = [
        account_row("2", "8", name, gain_pct=gain)
        for name, gain in (("bcast", "1"), ("alltoall", "7"), ("scan", "0.01"))
    ]
    tuner = SimpleNamespace(source=source_of(used, "mpich", "bcast"), folder=tmp_path)
    reason = "No tuning file: the library's default is the best for the measured cells of the program, or within noise of it."
    assert trial.why_not(tuner, None, []) == (
        f"{reason} Not measured, because mpich has no known algorithms to choose from, or no benchmark: alltoall (at most 7 %)."
    )


def test_messages_that_the_benchmark_cannot_send_are_not_measured_and_named(tmp_path: Path) -> None:
    def row(operation: str, size: int) -> dict[str, str]:
        return account_row("4", str(size), operation, size_bytes=str(size), gain_pct="7")

    catalogue = Project(config=ROOT / "config").configuration.catalogue
    used = [row("bcast", 3 << 30), row("bcast", 8), row("alltoall", 256 << 20), row("reduce", 1 << 29)]
    measured = {name: [row["typical_bytes"] for row in rows] for name, _, _, rows in worth_measuring(used, catalogue)}
    assert measured == {"bcast": ["8"], "reduce": [str(1 << 29)]}
    why = (
        "Not measured, because the benchmark's buffers have at most 512 MiB: bcast of 3072 MiB on 4 ranks (at most 7 %), "
        "alltoall of 256 MiB on 4 ranks (at most 7 %)."
    )
    tuner = SimpleNamespace(source=source_of(used, "openmpi", "bcast", "reduce"), folder=tmp_path)
    assert trial.why_not(tuner, None, []).endswith(f"or within noise of it. {why}")
    assert source_of(used[:1] + used[2:3], "openmpi").nothing_to_measure() == f". {why}"


def test_reductions_with_operations_that_do_not_commute_are_not_tuned() -> None:
    source = source_of([account_row("2", "8", "allreduce", gain_pct="7")], "openmpi", ordered=True)
    assert source.nothing_to_measure() == (
        ". Not measured, because the program has an operation that does not commute, with which algorithms of openmpi "
        "may give wrong results: allreduce (at most 7 %)."
    )
