"""Topology-aware collectives in a study: the library knows the ranks' nodes, set-up is separate, decisions can be used."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import replace

import pytest
from collstudy.launch.runner import run_block
from collstudy.plan.blocks import Block, Task
from collstudy.project.studies import Project
from collstudy.study.description import Policy
from collstudy.study.selection import Rules
from conftest import Checkout, csv_rows, must

STUDY = """
title: Topology-aware broadcast
question: Does it know the groups?
machine: csews
chapter: topology
sweeps:
  - &grid
    collective: bcast
    algorithms: [default, node, group, node_group, rank_reorder, seed001]
    mappings: [block, random]
    nodes: [8, 16]
    processes_per_node: [2]
    sizes: {from: 64, to: 262144, factor: 8}
    iterations: 1
    warmup: 1
  - <<: *grid
    collective: alltoallv
    nodes: [4]
    sizes: {from: 1024, to: 2048}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("topology") / "checkout")
    made.write("config/studies/aware.yaml", STUDY)
    parts = [f"results/aware/{part}/index.csv" for part in ("tables", "models", "figures")]
    must(made.snakemake("--config", "studies=aware", "--cores", "2", "--", *parts))
    return made


def rows(study: Checkout) -> list[dict[str, str]]:
    return csv_rows(study.folder / "results/aware/measurements.csv")


@pytest.mark.long
def test_hosts_in_random_order_cost_the_default_and_not_those_who_know(study: Checkout) -> None:
    slowest: dict[tuple[str, str], float] = {}
    for row in rows(study):
        if row["collective"] == "bcast" and row["nodes"] == "16" and row["size_bytes"] == "262144":
            slowest[row["algorithm"], row["mapping"]] = float(row["max_latency_us"])
    assert slowest["default", "random"] > 1.3 * slowest["default", "block"]
    assert slowest["node_group", "random"] == pytest.approx(slowest["node_group", "block"], rel=0.05)
    assert slowest["node_group", "random"] < slowest["default", "random"] / 1.5
    # 256 KiB to nodes with two ranks each: the hand-made rules use only the node level ([bijlani2021], section 2).
    assert slowest["seed001", "random"] == pytest.approx(slowest["node", "random"], rel=0.01)


def test_set_up_is_apart_from_the_call(study: Checkout) -> None:
    setups = defaultdict(set)
    for row in rows(study):
        setups[row["collective"], row["algorithm"]].add(float(row["setup_us"]))
        # With two ranks per node the hand-made rules leave every all-to-all to the MPI library ([bijlani2021], section 5.1).
        left = {} if row["collective"] == "bcast" else {"seed001": "100.0"}
        assert row["left_pct"] == left.get(row["algorithm"], "0.0")
    # The default creates no communicators of its own, except the private copy used by the barrier between calls.
    assert max(setups["bcast", "default"]) < min(setups["bcast", "node_group"])


def test_where_ranks_are_is_kept_with_the_launch(study: Checkout) -> None:
    cell = json.loads(next((study.folder / "results/cells/bcast").glob("*node_group_random*")).read_text())
    environment = cell["launches"][0]["provenance"]["environment"]
    assert environment["COLL_GROUPS"] == "0=node[0-3];1=node[4-7];2=node[8-11];3=node[12-15]"
    assert environment["COLL_BASE"] == "ompi"


def test_the_library_follows_the_learned_rules(study: Checkout) -> None:
    """With the decision file of the study in the simulator, every call matches a rule, and the best algorithms are used."""
    rules = study.folder / "results/aware/tables/decision-rules.txt"
    lines = rules.read_text().splitlines()
    assert all(line.startswith("#") or re.fullmatch(r"\w+ \d+ \d+ (\d+|\*) -> \w+", line) for line in lines)
    chosen = {tuple(line.split()[:3]): line.split()[-1] for line in lines if line[0] != "#" and " * " in line}
    assert set(chosen) == {("bcast", "8", "2"), ("bcast", "16", "2"), ("alltoallv", "4", "2")}


def test_at_every_leaf_a_run_does_what_the_tree_says(study: Checkout) -> None:
    """A simulation of the same cells with COLL_RULES gives the times of the algorithms that the file names."""
    results = study.folder / "results"
    text = (results / "aware/tables/decision-rules.txt").read_text()
    decided: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for line in text.splitlines():
        if not line.startswith("#"):
            collective, nodes, ppn, most, _, algorithm = line.split()
            assert ppn == "2"
            decided[collective, nodes].append([most, algorithm])
    assert (
        len(
            {
                algorithm
                for (collective, _), leaves in decided.items()
                if collective == "bcast"
                for _, algorithm in leaves
            }
        )
        > 1
    )
    measured = {
        (row["collective"], row["nodes"], row["size_bytes"], row["algorithm"]): float(row["max_latency_us"])
        for row in rows(study)
        if row["mapping"] == "random"
    }
    # The simulated default of the study is the library's copy of Open MPI's.
    own = re.sub(r"^(\w+ .*-> )default$", r"\1ompi_default", text, flags=re.MULTILINE)
    project = Project(study.folder / "config", results)
    question = project.study("aware")
    asked = []
    for cell in project.source("aware").work():
        if cell.algorithm == "default" and cell.mapping == "random":
            library = {"COLL_BARRIER": cell.selection.library["COLL_BARRIER"], "COLL_BASE": "ompi"}
            chosen = Rules(own, None, library, project.context.versions.library)
            asked.append(replace(cell, algorithm="learned", selection=chosen))
    for cell in asked:
        block = Block(question.machine, cell.mpi["name"], cell.nodes, (Task(cell, Policy(1, 1, 5)),))
        assert run_block(block, results, results / "learned.log") == {}
        seen = set()
        for sample in project.store.read(cell).launches[0]["samples"]:
            # Bytes of an all-to-all are all those that a rank sends.
            size = sample["size_bytes"]
            bytes_ = size * (cell.processes if cell.collective == "alltoallv" else 1)
            leaves = decided[cell.collective, str(cell.nodes)]
            leaf = next(leaf for leaf in leaves if leaf[0] == "*" or bytes_ <= int(leaf[0]))
            seen.add(tuple(leaf))
            of = {name: measured[cell.collective, str(cell.nodes), str(size), name] for _, name in leaves}
            # Equal except for the skew that smaller sizes, with another algorithm, leave among the ranks.
            near = [name for name, value in of.items() if sample["max_latency_us"] == pytest.approx(value, rel=1e-3)]
            assert near == [leaf[1]], (size, leaves)
        assert len(seen) == len(leaves)
    assert {(cell.collective, str(cell.nodes)) for cell in asked} == set(decided)
