"""Point-to-point ladders: pairs of cores at each level of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi, output, toolchain
from collstudy.study import cells as cells_module
from collstudy.study.machines import Level, Machine
from collstudy.study.placement import first_difference, nodes_of_pairs, place
from collstudy.study.selection import Default
from conftest import Checkout, csv_rows, finish, must
from made_cells import cells_of
from made_runs import measured

LADDER = """
title: A ladder
question: How far is it?
machine: thin
sweeps:
  - collective: latency
    levels: [core, socket, node]
    sizes: {from: 1, to: 8}
    iterations: 2
    warmup: 1
"""
EPYC = Machine(
    "epyc", "simulated", "EPYC", "smpi-openmpi",
    tuple(Level(n, c) for n, c in (("node", 2), ("socket", 2), ("numa", 4), ("ccd", 2), ("ccx", 2), ("core", 4))),
)  # fmt: skip


@pytest.mark.parametrize(
    ("level", "core"), [("core", 1), ("ccx", 4), ("ccd", 8), ("numa", 16), ("socket", 64), ("node", 128)]
)
def test_a_pair_is_core_0_and_the_first_core_across_the_level(level: str, core: int) -> None:
    nodes = nodes_of_pairs(EPYC, level, 1)
    first, second = place(EPYC, [level], nodes, 2, None)
    assert nodes == (2 if level == "node" else 1)
    assert (first.core_of_node, 128 * second.node + second.core_of_node) == (0, core)
    assert first_difference(EPYC.levels, first, second) == level


def test_three_pairs_all_cross_the_level() -> None:
    cores = place(EPYC, ["socket"], nodes_of_pairs(EPYC, "socket", 3), 6, None)
    assert {first_difference(EPYC.levels, cores[r], cores[r + 3]) for r in range(3)} == {"socket"}


@pytest.mark.parametrize(
    ("level", "pairs", "message"),
    [("socket", 2, "ranks 0 and 2 would differ at level core"), ("core", 3, "ranks 1 and 4 would differ at level ccx")],
)
def test_pairs_that_do_not_cross_the_level_are_refused(level: str, pairs: int, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        nodes_of_pairs(EPYC, level, pairs)


def test_a_level_with_one_unit_is_refused() -> None:
    machine = Machine("one", "local", "one", "openmpi", (Level("node", 1), Level("socket", 1), Level("core", 2)))
    with pytest.raises(StudyError, match="machine one: 1 pair across level socket: there is only one socket"):
        nodes_of_pairs(machine, "socket", 1)


def test_a_ladder_is_one_cell_a_level(checkout: Checkout) -> None:
    cells = cells_of(checkout, LADDER)
    assert [(c.mapping, c.cycle, c.nodes, c.processes) for c in cells] == [
        ("level-core", ("core",), 1, 2), ("level-socket", ("socket",), 1, 2), ("level-node", ("node",), 2, 2),
    ]  # fmt: skip
    assert all(c.selection == Default() and c.algorithm == "default" for c in cells)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("socket, node", "numa, node", "levels: machine thin has no level 'numa'.*node, socket"),
        ("latency\n", "bcast\n", "levels: bcast is not a point-to-point test"),
        ("    iterations: 2", "    pairs: [3]\n    iterations: 2", "latency uses one pair; use multi_lat for several"),
        (
            "    iterations: 2",
            "    mappings: [core]\n    iterations: 2",
            "levels determine the placement; remove mappings",
        ),
        ("    levels: [core, socket, node]\n", "", "lacks the key 'algorithms', 'mappings'"),
        ("machine: thin", "machine: ethernet-lab", None),
        ("[core, socket, node]", "all-cores", "levels is 'all-cores', which is not allowed"),
        (
            "latency\n    levels: [core, socket, node]",
            "bw\n    levels: all-pairs",
            "all-pairs needs the collective latency, not bw",
        ),
        ("[core, socket, node]", "all-pairs\n    processes: [4]", "a rank on every core; remove processes"),
    ],
)
def test_bad_ladders_are_named(checkout: Checkout, old: str, new: str, message: str | None) -> None:
    assert old in LADDER
    if message is None:
        assert len(cells_of(checkout, LADDER.replace(old, new))) == 3
        return
    with pytest.raises(StudyError, match=message):
        cells_of(checkout, LADDER.replace(old, new))


def test_more_processes_than_the_machine_has(checkout: Checkout) -> None:
    text = (
        (Path(checkout.folder) / "config/studies/collectives-epyc.yaml").read_text().replace("192, 256]", "192, 512]")
    )
    with pytest.raises(StudyError, match="processes: 512 is more than the 256 cores of 2 nodes of machine orfeo-epyc"):
        cells_of(checkout, text)


def test_the_identity_of_other_cells_has_no_new_field(checkout: Checkout) -> None:
    (cell, *_) = cells_of(checkout, LADDER)
    assert set(cell.identity()) == {
        "identity_version", "machine", "suite", "mpi", "collective", "algorithm", "parameters", "selection", "mapping",
        "cycle", "nodes", "processes", "per_node", "sizes", "iterations", "warmup",
    }  # fmt: skip
    assert cells_module.IDENTITY_VERSION == 1


PLAIN = """
kind: simulated
label: Two plain nodes
levels:
  - {name: node, count: 2, latency_us: 3.0, bandwidth_gb_s: 100}
  - {name: socket, count: 2, latency_us: 2.0, bandwidth_gb_s: 100}
  - {name: core, count: 2, latency_us: 1.0, bandwidth_gb_s: 100}
"""


def test_a_simulated_ladder_gives_the_machine_its_latencies(checkout: Checkout) -> None:
    checkout.write("config/machines/plain.yaml", PLAIN)
    rows = measured(checkout, "tiny", LADDER.replace("machine: thin", "machine: plain"))
    assert [round(float(row["latency_us"]), 2) for row in rows if row["size_bytes"] == "1"] == [1, 2, 3]


def test_all_pairs_are_one_launch_with_a_rank_on_every_core(checkout: Checkout) -> None:
    checkout.write("config/machines/plain.yaml", PLAIN)
    text = LADDER.replace("machine: thin", "machine: plain").replace("[core, socket, node]", "all-pairs")
    checkout.write("config/studies/tiny.yaml", text)
    made = [f"results/tiny/{part}/index.csv" for part in ("tables", "figures")]
    must(checkout.snakemake("--cores", "1", "--", *made))
    rows = csv_rows(checkout.folder / "results/tiny/measurements.csv")
    assert len(rows) == 28 * 4 and {row["processes"] for row in rows} == {"8"}
    # Cores 0 to 7 are two nodes x two sockets x two cores.
    ones = [row for row in rows if row["size_bytes"] == "1"]
    of = {(int(row["from_rank"]), int(row["to_rank"])): round(float(row["latency_us"]), 1) for row in ones}
    assert [of[0, 1], of[0, 2], of[1, 3], of[0, 4], of[3, 7], of[6, 7]] == [1, 2, 2, 3, 3, 1]
    assert "pairs-matrix" in (checkout.folder / "results/tiny/figures/index.csv").read_text()


def test_every_pair_with_real_messages() -> None:
    found = toolchain.embedded("openmpi")
    if found is None:
        pytest.skip("no Open MPI")
    mpirun = toolchain.mpis()["openmpi"].mpirun
    command = [mpirun, "-n", "3", "--map-by", "core:OVERSUBSCRIBE", "--mca", "mpi_yield_when_idle", "1"]
    command += [found.program("pairs"), "-m", "1:2", "-i", "3", "-x", "1"]
    done = must(finish(command, timeout=60, env=toolchain.mpi_environment()))
    rows = output.parse(done.stdout, [1, 1, 1, 2, 2, 2])
    assert [(row["from_rank"], row["to_rank"]) for row in rows] == [(0, 1), (0, 2), (1, 2)] * 2
    refused = finish([found.program("pairs")], timeout=60, env=toolchain.mpi_environment())
    assert refused.returncode != 0 and "needs at least 2 processes" in refused.stderr


def test_a_pair_between_nodes_that_stayed_on_one_is_not_proved(checkout: Checkout) -> None:
    cell = cells_of(checkout, LADDER)[2]
    placement = place(checkout.configuration.machine("thin"), ["node"], 2, 2, None)

    def judged(second: str) -> dict:
        told = f"rank 0 of 2 host a cpus 0 socket 0 core 0\nrank 1 of 2 host {second} cpus 0 socket 0 core 0\n"
        return openmpi.judge(cell, told, checkout.folder, placement, ["a", "b"], bound=True)

    assert judged("b")["placed"] is True
    assert judged("a")["placed"] is False and judged("a")["detail"] == "rank 1: requested b core 0, placed on a core 0"
