"""Expansion of studies to cells, and the identity and placement of cells."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.launch import openmpi
from collstudy.plan.estimates import estimate_launch_s
from collstudy.study.cells import machine_identity
from collstudy.study.machines import Level, Machine, read_machine
from collstudy.study.placement import place, whole_cycle
from collstudy.study.sweeps import expand_integers
from conftest import ROOT, TINY, Checkout
from made_cells import cells_of


def test_expansion_is_the_product(checkout: Checkout) -> None:
    cells = cells_of(checkout)
    assert [(c.algorithm, c.processes) for c in cells] == [("default", 2), ("default", 4), ("linear", 2), ("linear", 4)]
    assert cells[0].size_list == [2**k for k in range(11)]


def test_simulated_all_to_alls_are_estimated_by_pairs_of_ranks(checkout: Checkout) -> None:
    """Three calls of 256 ranks took 14 to 30 s on this project's machines, those of a broadcast less than 1 s."""
    cell = dataclasses.replace(cells_of(checkout)[0], processes=256, sizes=(8, 8), iterations=2, warmup=1)
    assert estimate_launch_s(cell) < 1
    assert 10 < estimate_launch_s(dataclasses.replace(cell, collective="alltoallv")) < 60


def test_study_json_has_the_tables_of_every_default_that_runs(checkout: Checkout) -> None:
    # In a non-overlapping allreduce, reduce and broadcast are selected by their own tables.
    for text, names in ((TINY, ["bcast"]), (TINY.replace("bcast", "allreduce"), ["allreduce", "reduce", "bcast"])):
        text = text.replace("[default, linear]", "[default]")
        cells_of(checkout, text)
        tables = checkout.project.source("tiny").describe()["decisions"]
        assert list(tables) == names
        # The last row applies to all calls that no other row covers.
        assert all(rows[-1]["ranks"] is rows[-1]["bytes"] is None for rows in tables.values())


def test_study_json_names_all_suites(checkout: Checkout) -> None:
    svd = "  - {collective: svd, mappings: [core], processes: [2], problem_sizes: [24]}\n"
    checkout.write("config/studies/tiny.yaml", TINY + svd)
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    machine.write_text(machine.read_text() + "\ncore_gflops: 5\n" * ("core_gflops" not in machine.read_text()))
    how = json.loads(checkout.project.source("tiny").study_json())["provenance"]
    assert how["suite"] == "collbench, svd" and len(how["suite_version"].split(", ")) == 2


def test_study_json_names_barriers_and_arrivals_of_all_sweeps(checkout: Checkout) -> None:
    def how(*settings: str) -> tuple[list[str] | None, list[float] | None]:
        sweep = TINY.partition("sweeps:\n")[2]
        sweeps = [
            sweep.replace("bcast", name) + f"    {s}\n" * bool(s)
            for name, s in zip(("bcast", "reduce"), settings, strict=False)
        ]
        checkout.write("config/studies/tiny.yaml", TINY.partition("  - ")[0] + "".join(sweeps))
        found = json.loads(checkout.project.source("tiny").study_json())["provenance"]
        return found["barriers"], found.get("spreads_us")

    assert how("", "") == ([], None)
    assert how("barrier: aligned") == (["aligned"], None)
    assert how("barrier: aligned", "") == (["aligned", "default"], None)
    assert how("", "spread_us: 5") == ([], [0, 5])


def test_same_question_same_file_and_changed_question_new_file(checkout: Checkout) -> None:
    first = cells_of(checkout)
    assert [c.path_text for c in cells_of(checkout)] == [c.path_text for c in first]
    assert {c.digest for c in cells_of(checkout, TINY.replace("iterations: 3", "iterations: 4"))}.isdisjoint(
        c.digest for c in first
    )


def test_what_cannot_change_the_number_is_not_in_the_identity(checkout: Checkout) -> None:
    first = [c.digest for c in cells_of(checkout)]
    machine = checkout.folder / "config" / "machines" / "thin.yaml"
    document = yaml.safe_load(machine.read_text())
    document |= {"launch_time_limit_s": 7, "block_minutes": 3, "label": "other"}
    machine.write_text(yaml.safe_dump(document))
    text = TINY.replace("sweeps:", "launches: {min: 7, max: 9, ci_width_pct: 1}\nsweeps:").replace("A tiny", "Another")
    assert [c.digest for c in cells_of(checkout, text)] == first


def test_where_a_job_waits_is_not_in_the_identity(checkout: Checkout) -> None:
    found = []
    for slurm in ("{partition: a}", "{partition: b, account: c, setup_minutes: 9}"):
        checkout.write("config/machines/mine.yaml", f"kind: slurm\nlabel: x\nlike: thin\nslurm: {slurm}\n")
        found.append(machine_identity(checkout.configuration.machine("mine"), {}))
    assert found[0] == found[1]


def test_the_environment_of_a_machine_is_in_the_identity_if_there_is_any(checkout: Checkout) -> None:
    def identity(more: str = "") -> dict:
        checkout.write("config/machines/mine.yaml", f"kind: slurm\nlabel: x\nlike: thin\n{more}")
        return machine_identity(checkout.configuration.machine("mine"), {})

    assert "environment" not in identity()
    # The order of the lines, and whether a number is quoted, do not matter.
    two = {"UCX_RNDV_THRESH": "8192", "UCX_TLS": "rc,self,sm"}
    assert identity("environment: {UCX_TLS: 'rc,self,sm', UCX_RNDV_THRESH: 8192}\n")["environment"] == two
    assert list(identity("environment: {UCX_RNDV_THRESH: '8192', UCX_TLS: 'rc,self,sm'}\n")["environment"].items()) == [
        *two.items()
    ]
    # A machine like another one has its environment, but a simulated one has none.
    levels = "levels: [{name: node, count: 2}, {name: core, count: 4}]\n"
    checkout.write("config/machines/first.yaml", f"kind: slurm\nlabel: x\n{levels}environment: {{UCX_TLS: rc}}\n")
    for kind, wanted in (("slurm", {"UCX_TLS": "rc"}), ("imported", {})):
        checkout.write("config/machines/mine.yaml", f"kind: {kind}\nlabel: x\nlike: first\n")
        assert checkout.configuration.machine("mine").environment == wanted


def test_ranks_on_other_nodes_get_the_environment_of_the_machine(checkout: Checkout, tmp_path: Path) -> None:
    variables = {"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc,self,sm"}
    machine = dataclasses.replace(checkout.configuration.machine("thin"), kind="slurm", environment=variables)
    (cell, *_) = cells_of(checkout)
    words = openmpi.launcher(machine, cell, cell.place(machine), tmp_path, ["a", "b"], [])
    # Open MPI passes its own variables on.
    assert words[-2:] == ["-x", "UCX_TLS"] and "OMPI_MCA_pml" not in words


def test_cells_of_bound_ranks_are_not_those_of_ranks_that_share_cores(checkout: Checkout) -> None:
    def identity(kind: str, more: str = "") -> dict:
        checkout.write("config/machines/mine.yaml", f"kind: {kind}\nlabel: x\n{more}")
        return machine_identity(checkout.configuration.machine("mine"), {})

    # With oversubscribe no rank is bound, whether or not it has a core of its own.
    for kind, more in (("local", ""), ("slurm", "like: thin\n")):
        bound = identity(kind, more)
        assert "oversubscribe" not in bound
        assert identity(kind, f"{more}oversubscribe: false\n") == bound
        assert identity(kind, f"{more}oversubscribe: true\n") != bound
    # On emulated nodes they never are.
    for kind, more in (("simulated", "like: thin\n"), ("local", "emulated_nodes: 2\n")):
        assert identity(kind, f"{more}oversubscribe: true\n") == identity(kind, more)


def test_versions_and_machine_are_in_the_identity(checkout: Checkout) -> None:
    cell = cells_of(checkout)[0]
    for change in (
        {"mpi": {"name": "smpi-openmpi", "version": "SimGrid 3.33"}},
        {"suite": {"name": "collbench", "version": "2"}},
        {"machine": {**cell.machine, "levels": []}},
        {"parameters": (("segment_bytes", 1024),)},
        {"mapping": "socket"},
    ):
        assert dataclasses.replace(cell, **change).digest != cell.digest


def test_parameters_reach_the_selection(checkout: Checkout) -> None:
    cells = cells_of(checkout, TINY.replace("linear]", "{name: chain, fanout: 2, segment_bytes: 8192}]"))
    assert cells[-1].selection.library["COLL_BCAST"] == "ompi_chain:fanout=2:segment_bytes=8192"
    assert "segment_bytes8192" in cells[-1].path_text


@pytest.mark.parametrize(
    ("spec", "expected"),
    [([4, 2], (2, 4)), ({"from": 2, "to": 7, "step": 2}, (2, 4, 6)), ({"from": 1, "to": 9, "factor": 2}, (1, 2, 4, 8))],
)
def test_expand_integers(spec: object, expected: tuple[int, ...]) -> None:
    assert expand_integers(spec, "here") == expected


LEVELS = (Level("node", 2), Level("socket", 2), Level("core", 2))


@pytest.mark.parametrize(
    ("cycle", "expected"),
    [
        # (node, core of the node); cores 0 and 1 are on socket 0
        ([], [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]),
        (["socket"], [(0, 0), (0, 2), (0, 1), (0, 3), (1, 0), (1, 2), (1, 1), (1, 3)]),
        (["node", "socket"], [(0, 0), (1, 0), (0, 2), (1, 2), (0, 1), (1, 1), (0, 3), (1, 3)]),
        (["node"], [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]),
    ],
)
def test_mappings_as_mpirun_defines_them(cycle: list[str], expected: list[tuple[int, int]]) -> None:
    machine = Machine("m", "simulated", "m", "smpi-openmpi", LEVELS)
    assert [(core.node, core.core_of_node) for core in place(machine, cycle, 2, 8, None)] == expected


def test_processes_per_node() -> None:
    machine = Machine("m", "simulated", "m", "smpi-openmpi", LEVELS)
    assert [core.node for core in place(machine, [], 2, 4, 2)] == [0, 0, 1, 1]
    with pytest.raises(StudyError, match="do not fit"):
        place(machine, [], 1, 5, None)


MACHINE = Machine("m", "simulated", "m", "smpi-openmpi", (Level("group", 2), Level("node", 2), Level("core", 2)))


def nodes(hosts: dict, processes: int = 8, used: int = 4) -> list[int]:
    return [core.node for core in place(MACHINE, [], used, processes, None, hosts)]


def test_shuffled_lines_keep_the_ranks_of_a_node_together() -> None:
    order = nodes({"shuffle": "node", "seed": 1})
    assert order[::2] == order[1::2]
    assert sorted(order) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert order == nodes({"shuffle": "node", "seed": 1})
    assert len({tuple(nodes({"shuffle": "node", "seed": seed})) for seed in range(9)}) > 3


def test_random_slots_use_every_core_once() -> None:
    cores = place(MACHINE, [], 4, 8, None, {"shuffle": "core", "seed": 1})
    assert len({core.name for core in cores}) == 8
    assert any(a.node != b.node for a, b in zip(cores[::2], cores[1::2], strict=True))


def test_listed_hosts() -> None:
    cores = place(MACHINE, [], 2, 4, None, {"ranks": [0, 1, 1, 0]})
    assert [(core.node, core.core_of_node) for core in cores] == [(0, 0), (1, 0), (1, 1), (0, 1)]
    for listed, used, processes in (([0, 1], 2, 3), ([0, 2], 2, 2), ([0, 0, 0], 1, 3)):
        with pytest.raises(StudyError, match="the mapping lists"):
            place(MACHINE, [], used, processes, None, {"ranks": listed})


def test_an_order_of_hosts_is_in_the_identity_and_its_absence_is_not(checkout: Checkout) -> None:
    assert "hosts" not in cells_of(checkout)[0].identity()
    text = TINY.replace("[core]", "[block, shuffled, random]").replace("[2, 4]", "[4]")
    digests = {cell.mapping: cell.digest for cell in cells_of(checkout, text) if cell.algorithm == "default"}
    assert len(set(digests.values())) == 3
    mappings = checkout.folder / "config" / "mappings.yaml"
    mappings.write_text(mappings.read_text().replace("{shuffle: node, seed: 1}", "{shuffle: node, seed: 2}"))
    again = {cell.mapping: cell.digest for cell in cells_of(checkout, text) if cell.algorithm == "default"}
    assert {name for name in digests if digests[name] != again[name]} == {"shuffled"}


def test_ranks_are_on_the_nodes_of_real_runs(checkout: Checkout) -> None:
    table = checkout.write("runs.csv", "run,processes,per_node,nodes\na,2,1,1 0\nb,4,2,0-1\nc,2,1,0-1\n")
    text = TINY.replace("    sizes:", f"    allocations: {table}\n    sizes:")
    found = {cell.processes: cell for cell in cells_of(checkout, text)}
    # A run notices a change of the table, wherever it is.
    source = checkout.project.source("tiny")
    assert source.inputs() == [table] and source.folders() == [str(table)]
    assert "tiny: 0 of 4 cells done" in checkout.collstudy("status", "tiny").stdout
    assert found[2].hosts == {"ranks": [1, 0]} and found[4].hosts == {"ranks": [0, 0, 1, 1]}
    machine = read_machine("thin", lambda name: ROOT / f"config/machines/{name}.yaml")
    assert [core.node for core in found[2].place(machine)] == [1, 0]
    for wrong, message in (
        (
            text.replace("[2, 4]", "[2, 8]"),
            r"line 10: sweeps.0.allocations: .*runs.csv has no run with 8 processes; known: 2, 4",
        ),
        (text.replace("processes:", "processes_per_node:"), "allocations: the table gives the node of each rank"),
        (text.replace(str(table), "nowhere.csv"), "allocations: .*nowhere.csv does not exist"),
    ):
        with pytest.raises(StudyError, match=message):
            cells_of(checkout, wrong)
    checkout.write("runs.csv", "run,processes,per_node,nodes\na,2,1,0 2\nb,4,2,0-1\n")
    with pytest.raises(StudyError, match="runs.csv has node 2; the machine has the nodes 0 to 1"):
        cells_of(checkout, text)


def test_a_study_whose_ranks_do_not_fit_is_named(checkout: Checkout) -> None:
    text = TINY.replace("[core]", "[one-node-each-half]").replace("[2, 4]", "[16]")
    checkout.write("config/studies/tiny.yaml", text)
    with pytest.raises(
        StudyError, match="^study tiny: the mapping lists 8 ranks on 2 nodes; it does not fit 16 processes"
    ):
        assert checkout.project.source("tiny").grid
    said = checkout.collstudy("check", "tiny").stderr
    assert said.startswith("error: study tiny: the mapping lists 8 ranks on 2 nodes") and said.count("\n") == 1


def test_groups_count_as_nodes() -> None:
    levels = (Level("group", 2), Level("node", 2), Level("core", 2))
    machine = Machine("m", "simulated", "m", "smpi-openmpi", levels)
    assert (machine.nodes, machine.cores_per_node) == (4, 2)
    assert [core.node for core in place(machine, [], 4, 8, None)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_paths_are_relative(checkout: Checkout) -> None:
    assert all(cell.path_text.startswith("cells/") for cell in cells_of(checkout))


def test_nodes_alternate_over_all_groups(checkout: Checkout) -> None:
    """As with mpirun --map-by node. Before, the nodes of the first group were filled first: four ranks on four nodes used two."""
    assert [core.node for core in place(MACHINE, ["node"], 4, 6, None)] == [0, 1, 2, 3, 0, 1]
    assert [core.node for core in place(MACHINE, ["node"], 3, 6, None)] == [0, 1, 2, 0, 1, 2]
    assert [core.node for core in place(MACHINE, ["group"], 4, 4, None)] == [0, 2, 0, 2]
    # Cells that were measured on other cores are measured again; with one core per node nothing changes.
    assert whole_cycle(MACHINE.levels, ["node"]) == ("node", "group")
    assert whole_cycle((Level("group", 2), Level("node", 2), Level("core", 1)), ["node"]) == ("node",)
    groups = "like: thin\nlevels: [{name: group, count: 2, added_latency_us: 1}, {name: node, count: 1}]\n"
    checkout.write("config/machines/grouped.yaml", f"kind: simulated\nlabel: Grouped\n{groups}")
    text = TINY.replace("[core]", "[node]")
    assert {cell.cycle for cell in cells_of(checkout, text)} == {("node", "socket")}
    text = text.replace("machine: thin", "machine: grouped")
    assert {cell.cycle for cell in cells_of(checkout, text)} == {("node", "group", "socket")}
