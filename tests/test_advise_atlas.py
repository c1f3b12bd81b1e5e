"""What `./study advise` answers from the measured cells of other machines."""

from dataclasses import replace

import pytest
from collstudy.base.paths import ROOT
from collstudy.store.measurements import Measurement
from collstudy.study.config import Configuration
from collstudy.tuning import advise
from collstudy.tuning.nearest import Measured, Shape, atlas_answer, likeness, shape_of
from collstudy.tuning.question import Question
from conftest import Checkout, local_study, must

CATALOGUE = Configuration(ROOT / "config").catalogue


def test_a_machine_without_nodes_is_like_none():
    assert shape_of([("switch", 2), ("node", 4), ("core", 8)]) == Shape(8, 1)
    assert shape_of([("core", 8)]) is None
    assert likeness(None, Shape(8, 1))[0] == float("inf")


def atlas_of(*cells: tuple[str, str, int, int, int, float]) -> Measured:
    """Return a measured machine with two nodes of 16 cores; each cell: algorithm, mapping, nodes, processes, size, latency."""
    rows = [Measurement("bcast", cell[0], "", *cell[1:5], 1, cell[5], None) for cell in cells]
    return Measured("there", "A machine, Open MPI", [("node", 2), ("socket", 2), ("core", 8)], rows)


def pair(default: float, chain: float, mapping="core", processes=32, size=1024):
    """Return cells of the default and of a chain at one placement."""
    place = (mapping, 2, processes, size)
    return [("default", *place, default), ("chain", *place, chain)]


def test_the_atlas_answers_from_the_nearest_measured_cell():
    question = Question("bcast", "core", 2, 32, 1024)
    far = pair(9, 1, size=4096) + pair(9, 1, processes=20) + pair(9, 1, mapping="node")
    known, lines = atlas_answer(atlas_of(*pair(3, 2), *far), question)
    assert known and lines[0] == "Atlas: A machine, Open MPI, measured (study there):"
    assert lines[1] == "  use: chain, 2 us; the default takes 3 us (50 % more)"
    assert "2 algorithms in this cell; at least 1 launch each" in lines[2]
    _, lines = atlas_answer(atlas_of(*pair(2, 3, size=2048), *far), question)
    assert lines[1] == "  use: default (the fastest there)"
    assert "nearest measured cell: 32 processes on 2 nodes, mapping core, 2048 B" in lines[2]
    # By core, 8 ranks use one of the two allocated nodes.
    _, lines = atlas_answer(atlas_of(*pair(3, 2, processes=8)), Question("bcast", "core", 1, 8, 1024))
    assert "2 algorithms in this cell" in lines[2]
    _, lines = atlas_answer(atlas_of(*pair(3, 2, processes=8)), Question("bcast", "core", 1, 9, 1024))
    assert "nearest measured cell: 8 processes on 1 node, mapping core" in lines[2]
    _, lines = atlas_answer(atlas_of(*pair(1.04, 1)), question)
    assert lines[1] == "  use: default (within 4.0 % of the fastest, chain)"


def test_mappings_that_place_processes_alike_are_one_in_the_atlas():
    """With one process per node, and on one node by core and by node."""
    spread = replace(
        atlas_of(*pair(3, 2, mapping="node", processes=2)),
        levels=[("node", 64), ("core", 16)],
        spread=frozenset({("node", 2, 2)}),
    )
    _, lines = atlas_answer(spread, Question("bcast", "core", 2, 2, 1024))
    assert "2 algorithms in this cell" in lines[2]
    _, lines = atlas_answer(atlas_of(*pair(3, 2, processes=8)), Question("bcast", "node", 1, 8, 1024))
    assert "2 algorithms in this cell" in lines[2]
    _, lines = atlas_answer(atlas_of(*pair(3, 2, processes=8)), Question("bcast", "socket", 1, 8, 1024))
    assert "nearest measured cell: 8 processes on 1 node, mapping core" in lines[2]


def test_the_default_and_the_algorithm_that_it_runs_are_one_in_the_atlas():
    """Otherwise the faster one of two runs of the same messages would be advised."""
    question = Question("bcast", "core", 2, 32, 1024)
    measured = atlas_of(*pair(3, 2), ("binary_tree", "core", 2, 32, 1024, 2.4))
    ran = [replace(row, runs="chain" if row.name == "default" else "") for row in measured.rows]
    _, lines = atlas_answer(replace(measured, rows=ran), question)
    assert lines[1] == "  use: default (within 4.2 % of the fastest, binary_tree)"
    assert "3 algorithms in this cell; at least 1 launch each" in lines[2]
    _, lines = atlas_answer(replace(measured, rows=ran[:2]), question)
    assert lines[1] == "  use: default (the fastest there)"
    assert "2 algorithms in this cell; at least 1 launch each" in lines[2]


def test_launches_that_overlap_do_not_tell_algorithms_apart_in_the_atlas():
    """On a busy computer the medians of a few launches may differ by a factor of two by chance."""
    question = Question("bcast", "core", 2, 32, 1024)

    def used(default, chain):
        cells = [cell for a, b in zip(default, chain, strict=True) for cell in pair(a, b)]
        return atlas_answer(atlas_of(*cells), question)[1][1]

    assert used((1.2, 1.3, 1.5), (0.5, 0.6, 1.3)) == "  use: default (its launches overlap with those of chain)"
    assert used((1.2, 1.3, 1.5), (0.5, 0.6, 0.7)).startswith("  use: chain, 0.6 us; the default takes 1.3 us")
    # The range of two launches says little.
    assert used((1.2, 1.5), (0.5, 1.3)).startswith("  use: chain, 0.9 us")


@pytest.mark.parametrize(
    "cells",
    [
        pair(3, 2, processes=16),  # uses one node instead of two
        pair(3, 2, size=1 << 16),
        pair(3, 2)[:1],  # only the default
        pair(3, 2)[1:],  # no default
    ],
)
def test_the_atlas_does_not_guess(cells):
    assert atlas_answer(atlas_of(*cells), Question("bcast", "core", 2, 32, 1024)) == (False, [])


def test_measurements_that_two_studies_share_answer_once(tmp_path):
    one = atlas_of(*pair(3, 2))
    atlas = [one, replace(one, study="again"), replace(atlas_of(*pair(3, 2)), study="other", label="Another machine")]
    _, lines = advise.advise(tmp_path, Question("bcast", "core", 2, 32, 1024), None, CATALOGUE, None, atlas)
    assert [line for line in lines if line.startswith("Atlas")] == [
        "Atlas: A machine, Open MPI, measured (study there):", "Atlas: Another machine, measured (study other):",
    ]  # fmt: skip


def test_measurements_of_a_study_that_decides_are_not_told_again(tmp_path, monkeypatch):
    """Nor those of another study that imports the same files."""
    atlas = [replace(atlas_of(*pair(3, 2)), study=name) for name in ("again", "decides", "once-more")]
    path = tmp_path / "decides" / "tuning" / "decisions.csv"
    path.parent.mkdir(parents=True)
    path.touch()
    (path.parents[1] / "study.json").write_text('{"collectives": {"bcast": {}}, "provenance": {}}')
    monkeypatch.setattr(advise, "answer", lambda *_: (True, ["Study decides:"]))
    _, lines = advise.advise(tmp_path, Question("bcast", "core", 2, 32, 1024), None, CATALOGUE, None, atlas)
    assert lines[1:] == ["Study decides:"]


def test_a_fresh_checkout_answers_from_the_measured_machines_that_come_with_it(checkout: Checkout):
    asked = ("--collective", "allreduce", "--nodes", "512", "--ppn", "1", "--mapping", "node")
    done = must(checkout.collstudy("advise", *asked, "--size", "16KiB", "--machine", "thin"))
    assert "Atlas: Leonardo Booster, Open MPI, measured (study leonardo):" in done.stdout
    assert "differs from the requested machine: 32 cores per node in 1 socket; the requested one has 24" in done.stdout
    assert "in this cell" in done.stdout
    # Its runs had four processes on each of 256 nodes of 32 cores.
    by_core = ("--collective", "allgather", "--nodes", "256", "--ppn", "4", "--mapping", "core")
    assert "4 algorithms in this cell" in must(checkout.collstudy("advise", *by_core, "--size", "512KiB")).stdout
    done = checkout.collstudy("advise", *asked, "--size", "1GiB", "--machine", "thin")
    assert done.returncode == 0 and "nearest measured cell: 512 processes on 512 nodes" in done.stdout
    done = checkout.collstudy("advise", *asked[:2], "--nodes", "2", *asked[4:], "--size", "8")
    assert done.returncode == 1 and "no machine of the atlas was measured near it" in done.stdout
    done = checkout.collstudy("advise", "--collective", "brodcast", *asked[2:], "--size", "8")
    assert (
        done.returncode == 2
        and "--collective: unknown collective 'brodcast' (did you mean 'bcast'?); known: " in done.stderr
    )


@pytest.mark.long
def test_each_library_of_a_study_answers_for_itself(checkout: Checkout):
    """MPICH's launches say nothing about Open MPI's default; together, they would make the chain the fastest."""
    sweep = "collective: bcast, algorithms: [default, chain], sizes: {from: 1, to: 8}, mpi: [openmpi, mpich]"
    checkout.write("config/studies/mine.yaml", local_study(sweep))
    times = {("openmpi", "default"): 2, ("openmpi", "chain"): 3, ("mpich", "default"): 9, ("mpich", "chain"): 4}
    rows = [f"mine,{mpi},bcast,{name},,core,1,2,8,1,{us},\n" for (mpi, name), us in times.items()]
    header = "study,mpi,collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us,proved\n"
    checkout.write("results/mine/measurements.csv", header + "".join(rows))
    asked = ("--collective", "bcast", "--nodes", "1", "--ppn", "2", "--mapping", "core", "--size", "8")
    lines = must(checkout.collstudy("advise", *asked)).stdout.splitlines()
    for library, use in (("Open MPI", "default (the fastest there)"), ("MPICH", "chain, 4 us; the default takes 9 us")):
        said = lines[lines.index(f"Atlas: this machine, {library}, measured (study mine):") + 1]
        assert said.startswith(f"  use: {use}")


@pytest.mark.long
def test_cells_with_processes_per_node_use_all_nodes(checkout: Checkout):
    """By core, four ranks on each of two nodes of 24 cores are not eight on one."""
    levels = "levels: [{name: node, count: 2}, {name: core, count: 24}]\n"
    checkout.write("config/machines/mine.yaml", "kind: slurm\nlabel: Mine\nslurm: {partition: x}\n" + levels)
    sweep = "collective: bcast, algorithms: [default, chain], nodes: [2], sizes: {from: 1, to: 8}"
    text = local_study(sweep).replace("processes: [2]", "processes_per_node: [4]").replace("this-machine", "mine")
    checkout.write("config/studies/mine.yaml", text)
    header = "study,mpi,collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us,proved\n"
    rows = [f"mine,openmpi,bcast,{name},,core,2,8,8,1,{us},\n" for name, us in (("default", 5), ("chain", 3))]
    checkout.write("results/mine/measurements.csv", header + "".join(rows))
    for nodes, ppn, answers in ((2, 4, True), (1, 8, False)):
        asked = ("--collective", "bcast", "--nodes", str(nodes), "--ppn", str(ppn), "--mapping", "core", "--size", "8")
        assert (
            "Atlas: Mine, Open MPI, measured (study mine)" in checkout.collstudy("advise", *asked).stdout
        ) == answers


@pytest.mark.long
def test_a_checkout_that_cannot_be_written_answers(checkout: Checkout):
    """Nobody can create files in /sys: nothing is cached."""
    (checkout.folder / "results").mkdir()
    (checkout.folder / "results" / "imports").symlink_to("/sys/kernel")
    asked = ("--collective", "allreduce", "--nodes", "512", "--ppn", "1", "--mapping", "node", "--size", "16KiB")
    done = must(checkout.collstudy("advise", *asked))
    assert "Atlas: Leonardo Booster, Open MPI, measured (study leonardo):" in done.stdout
