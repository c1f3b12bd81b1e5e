"""MPICH and Intel MPI beside Open MPI: how they are started, how algorithms are selected, and measuring all in one study."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import bindings, hydra, mpich, toolchain
from collstudy.launch.proof import messages
from collstudy.launch.rulesfile import exported
from collstudy.launch.toolchain import Mpi, exporting, mpis
from collstudy.sources import needs
from collstudy.sources.needs import to_set_up
from collstudy.sources.swept import inside_of
from collstudy.study.cells import Cell, Versions, cell_from, expand
from collstudy.study.config import Configuration
from collstudy.study.selection import Default, Rules, Switch
from collstudy.study.sweeps import Choice
from collstudy.tuning import check, trees
from collstudy.tuning.findings import complain
from collstudy.tuning.library import Library, library_of
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.readers.known import Known
from collstudy.tuning.rules import Placement, Rule, placements
from collstudy.tuning.writers import intel_variables
from conftest import ROOT, Checkout, csv_rows, executable, finish, must
from made_nodes import alternating
from made_runs import cell_rows, measured
from test_tuning import decisions

LIBRARIES = ("openmpi", "mpich", "impi")
CONFIGURATION = Configuration(ROOT / "config")
CATALOGUE = CONFIGURATION.catalogue
OF_MPICH = [(c, a) for c, every in CATALOGUE.algorithms.items() for a, entry in every.items() if "mpich" in entry]
WITH_RADIX = [(c, a) for c, a in OF_MPICH if "radix" in CATALOGUE.algorithms[c][a]["mpich"]]
HERE = CONFIGURATION.machine("this-machine")

STUDY = """
title: Three libraries
question: Which is fastest?
machine: this-machine
chapter: pipelining
launches: {min: 1, max: 1}
sweeps:
  - &all
    collective: iallreduce
    mpi: [openmpi, mpich]
    algorithms: [default, ring]
    mappings: [core]
    processes: [2]
    sizes: {from: 1024, to: 2048}
    iterations: 5
    warmup: 1
  - {<<: *all, mpi: [impi], algorithms: [default, preset_1]}
  - {<<: *all, collective: allreduce, algorithms: [default, {name: pipelined_ring, segments: 4}]}
  - {<<: *all, collective: allreduce, mpi: [impi], algorithms: [default, {name: pipelined, segments: 4}]}
"""


TUNED = """
title: MPICH alone
question: Which is fastest?
machine: this-machine
chapter: tuning
launches: {min: 3, max: 3}
sweeps:
  - collective: bcast
    mpi: [mpich]
    algorithms: [default, pipeline, binomial]
    mappings: [core]
    processes: [2, 3]
    sizes: {from: 1024, to: 4096}
    iterations: 5
    warmup: 1
analysis:
  tuning: {}
"""


def installed(name: str) -> None:
    if name not in mpis():
        pytest.skip(f"{name} is not installed (./study test installs it in .study/{name})")


def cells_of(checkout: Checkout, text: str = STUDY) -> list[Cell]:
    checkout.write("config/studies/three.yaml", text)
    configuration = checkout.configuration
    suites = {name: {"name": "collbench", "version": "1"} for name in LIBRARIES}
    versions = Versions(suites, {name: {"name": name, "version": "1"} for name in LIBRARIES}, "1.0", {"processor": "x"})
    return expand(configuration.study("three"), configuration.catalogue, versions)


def test_each_library_is_told_in_its_own_words(checkout: Checkout) -> None:
    found = {(c.mpi["name"], c.collective, c.algorithm): c for c in cells_of(checkout)}
    told = hydra.selection_environment
    assert told(found["mpich", "iallreduce", "ring"]) == {
        "MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM": "tsp_ring",
        "MPIR_CVAR_IALLREDUCE_DEVICE_COLLECTIVE": "0",
    }
    assert told(found["impi", "iallreduce", "preset_1"]) == {"I_MPI_ADJUST_IALLREDUCE": "1"}
    assert told(found["mpich", "iallreduce", "default"]) == {}
    pipelined = found["mpich", "allreduce", "pipelined_ring"]
    assert pipelined.selection.library == {"COLL_ALLREDUCE": "pipelined:segments=4"}
    assert told(pipelined)["MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM"] == "tsp_ring"
    assert found["openmpi", "allreduce", "pipelined_ring"].selection.inside == {
        "collective": "iallreduce", "algorithm": "ring",
    }  # fmt: skip


def test_study_json_names_what_is_inside_of_a_pipelined_algorithm(checkout: Checkout) -> None:
    checkout.write("config/studies/three.yaml", STUDY)
    catalogue = checkout.configuration.catalogue
    inside = {name: inside_of(Choice(name), catalogue, "allreduce") for name in ("ring", "pipelined_ring", "pipelined")}
    assert inside == {"ring": "", "pipelined_ring": "Ring", "pipelined": "Library's choice"}


def forced(
    collective: str, algorithm: str, processes: int = 4, sizes: tuple[int, ...] = (1024, 32768), **parameters: int
) -> Cell:
    """Return a cell of the installed MPICH with an algorithm of the catalogue (Rabenseifner's needs one element per rank)."""
    settings = CATALOGUE.settings(collective, algorithm, parameters, "mpich")
    return Cell(
        {"name": "this-machine", "kind": "local", "levels": []}, {}, {"name": "mpich", "version": mpis()["mpich"].version},
        collective, algorithm, (), Switch("mpich", settings), "core", (), 1,
        processes, None, sizes, 1, 0, pattern=CATALOGUE.pattern(collective, algorithm, "mpich"),
    )  # fmt: skip


def proof(cell: Cell, folder: Path, nodes: tuple[str, str] = ("MPIR_CVAR_NOLOCAL", "1")) -> dict:
    """Return the result of the verification launch of *cell*; *nodes* replaces the variable that makes each rank its own node."""
    machine = replace(HERE, oversubscribe=True)
    words = [str(word) for word in hydra.proof_command(machine, cell, [], folder, [])]
    if "MPIR_CVAR_NOLOCAL" in words:
        at = words.index("MPIR_CVAR_NOLOCAL")
        words[at : at + 2] = nodes
    environment = mpis()[cell.mpi["name"]].environment() | hydra.selection_environment(cell)
    done = must(finish(words, env=environment, timeout=60))
    return hydra.judge(cell, done.stdout, folder, [], [], bound=False)


@pytest.mark.parametrize("name", ["mpich", "impi"])
def test_where_the_ranks_are_is_proved(tmp_path: Path, name: str) -> None:
    installed(name)
    machine = HERE
    if machine.cores_per_node < 2:
        pytest.skip("one core")
    cell = Cell(
        {"name": "this-machine", "kind": "local", "levels": []}, {}, {"name": name, "version": mpis()[name].version},
        "bcast", "default", (), Default(), "core", (), 1, 2, None, (1, 8), 1, 0,
    )  # fmt: skip
    placement, hosts = cell.place(machine), [platform.node()]
    words = [str(word) for word in hydra.proof_command(machine, cell, placement, tmp_path, hosts)]

    def told(*words: str) -> str:
        environment = mpis()[name].environment()
        return must(finish(words, env=environment, timeout=60)).stdout

    bound = told(*words)
    seen = hydra.judge(cell, bound, tmp_path, placement, hosts, bound=True)
    assert (seen["used"], seen["placed"], seen["detail"]) == (None, True, "")
    assert hydra.judge(cell, bound, tmp_path, placement, ["elsewhere"], bound=True)["placed"] is False
    words[:3] = [words[0], *(["-genv", "I_MPI_PIN", "0"] if name == "impi" else []), "-n", "2"]
    at = words.index("-bind-to" if name == "mpich" else "I_MPI_PIN_PROCESSOR_LIST") - (name == "impi")
    del words[at : at + (2 if name == "mpich" else 3)]
    unbound = hydra.judge(cell, told(*words), tmp_path, placement, hosts, bound=True)
    assert unbound["placed"] is False and "not bound to one core" in unbound["detail"]


def test_intel_is_told_its_ranges(checkout: Checkout) -> None:
    cell = next(cell for cell in cells_of(checkout) if cell.mpi["name"] == "impi")
    cell = replace(cell, selection=Rules("export I_MPI_ADJUST_IALLREDUCE='1:0-7@4-4'\n"))
    assert hydra.selection_environment(cell) == {"I_MPI_ADJUST_IALLREDUCE": "1:0-7@4-4"}


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    OF_MPICH,
)
def test_mpich_sends_the_messages_of_the_algorithm(tmp_path: Path, collective: str, algorithm: str) -> None:
    installed("mpich")
    ranks = 8 if CATALOGUE.algorithms[collective][algorithm]["mpich"].get("power_of_two") else 7
    seen = proof(forced(collective, algorithm, ranks), tmp_path)
    known = seen["pattern"] is not None
    assert (seen["used"], seen["detail"]) == (True if known else None, "")


@pytest.mark.parametrize(("ranks", "radix"), [(7, 3), (11, 3), (6, 4), (3, 4)])
@pytest.mark.parametrize(("collective", "algorithm"), WITH_RADIX)
def test_a_radix_of_mpich_is_used(tmp_path: Path, collective: str, algorithm: str, ranks: int, radix: int) -> None:
    installed("mpich")
    seen = proof(forced(collective, algorithm, ranks, radix=radix), tmp_path)
    assert (seen["used"], seen["detail"]) == (True, "")
    other = forced(collective, algorithm, ranks)
    if ranks > 3:  # the messages of radix 2 are others
        assert hydra.judge(other, "", tmp_path, [], [], bound=False)["used"] is False


@pytest.mark.parametrize("algorithm", ["scatter_allgather", "scatter_allgather_ring"])
@pytest.mark.parametrize("size", [1, 8, 30])
def test_mpich_scatters_short_messages_to_some_ranks_only(tmp_path: Path, algorithm: str, size: int) -> None:
    installed("mpich")
    seen = proof(forced("bcast", algorithm, 7, (size, size)), tmp_path)
    assert (seen["used"], seen["detail"]) == (True, "")


def test_mpich_refuses_ranks_that_are_no_power_of_two(tmp_path: Path) -> None:
    installed("mpich")
    cell = forced("allgather", "recursive_doubling", 6)
    with pytest.raises(AssertionError, match="not usable"):
        proof(cell, tmp_path)


def test_another_algorithm_of_mpich_is_noticed(tmp_path: Path) -> None:
    installed("mpich")
    cell = forced("bcast", "binomial")
    seen = proof(replace(cell, pattern="ring"), tmp_path)
    assert seen["used"] is False and "do not match pattern ring" in seen["detail"]


def intel(collective: str, algorithm: str, processes: int = 4, sizes: tuple[int, int] = (64, 64)) -> Cell:
    """Return a cell of the installed Intel MPI with an algorithm of the catalogue."""
    installed("impi")
    settings, mpi = (
        CATALOGUE.algorithms[collective][algorithm]["impi"],
        {"name": "impi", "version": mpis()["impi"].version},
    )
    cell = replace(forced("bcast", "binomial", processes), mpi=mpi, collective=collective, algorithm=algorithm)
    return replace(cell, selection=Switch("impi", settings), sizes=sizes, pattern=None)


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        pytest.param(c, a, marks=() if i % 3 == 0 else pytest.mark.long)
        for c, all_ in CATALOGUE.algorithms.items()
        for i, a in enumerate(a for a, e in all_.items() if "function" in e.get("impi", {}))
    ],
)
def test_intel_mpi_runs_the_function_of_the_algorithm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collective: str, algorithm: str
) -> None:
    # Intel's tuning data for some processors replace the functions within a node.
    monkeypatch.setenv("I_MPI_TUNING_MODE", "none")
    seen = proof(intel(collective, algorithm), tmp_path)
    assert (seen["used"], seen["detail"]) == (True, "")


def test_a_study_of_intel_mpis_algorithms_needs_the_trace_library(checkout: Checkout) -> None:
    named = STUDY.replace("algorithms: [default, {name: pipelined, segments: 4}]", "algorithms: [default, ring]")
    for text, needed in ((STUDY, set()), (named, {"trace"})):
        checkout.write("config/studies/three.yaml", text)
        assert checkout.project.source("three").programs() == needed


def test_an_algorithm_that_intel_mpi_replaces_is_noticed(tmp_path: Path) -> None:
    seen = proof(intel("bcast", "shumilin", 2), tmp_path)
    assert (seen["used"], seen["detail"]) == (False, "shumilin did not run, but binomial")


def test_intel_mpi_applies_its_variables_as_they_are_read(tmp_path: Path) -> None:
    """Other than Intel's reference says, a call outside of all ranges does not get the library's default."""
    installed("impi")
    library, names = library_of(mpis()["impi"], CATALOGUE, {}), {14: "ring", 5: "reduce binomial"}
    path = tmp_path / "variables.sh"
    for value in (
        "14:1000-1999", "14:1000-1999;5:3000-3999", "14:0-1999@2-2;5:0-3999@8-8", "14:0-99@3-3;5:100-200@3-3"
    ):  # fmt: skip
        path.write_text(f"export I_MPI_ADJUST_ALLREDUCE='{value}'\n")
        file = read(path, Known(CATALOGUE, "5.0.11"))
        for ranks, size in ((2, 500), (2, 2500), (3, 1500)):
            chosen = file.at("allreduce", ranks, size)[0].word
            assert names[int(chosen)] in library.probe(path, "allreduce", ranks, [size])[size], (value, ranks, size)


@pytest.mark.long
def test_the_check_of_intel_mpis_variables_notices_a_wrong_limit(tmp_path: Path) -> None:
    installed("impi")
    library = library_of(mpis()["impi"], CATALOGUE, {})
    placement = Placement("core", 1, {"allreduce": {0: (Rule(0, "nonoverlapping"), Rule(512, "ring"))}})
    path = tmp_path / "variables.sh"
    library.write(placement, path)
    found = check.check_placement(placement, path, CATALOGUE, library)
    complain(found)
    assert any(one.tells_apart for one in found)
    path.write_text(path.read_text().replace("0-511", "0-512").replace("512-", "513-"))
    with pytest.raises(StudyError, match="variables.sh: allreduce, entry for 0 processes, 512 B: the file has ring"):
        complain(check.check_placement(placement, path, CATALOGUE, library))


def test_mpich_starts_with_a_forced_algorithm_on_one_node(tmp_path: Path) -> None:
    """MPI_Init makes an allreduce of its own, of fewer elements than Rabenseifner's algorithm needs."""
    installed("mpich")
    machine = replace(HERE, oversubscribe=True)
    cell, mpi = forced("allreduce", "rabenseifner", 2), mpis()["mpich"]
    environment = mpi.environment() | hydra.selection_environment(cell)
    command = [*hydra.launcher(machine, cell, [], tmp_path, []), mpi.build / "probe" / "collprobe", "allreduce", "1024"]
    must(finish(command, env=environment, timeout=60))
    # The verification still fails if MPICH would use another algorithm: one element is too few for two ranks.
    words = hydra.proof_command(machine, replace(cell, sizes=(1, 1)), [], tmp_path, [])
    ended = [finish(words, env=environment, timeout=60) for _ in range(5)]
    assert all(done.returncode != 0 for done in ended)
    # On a busy machine Hydra may end before it has forwarded what the ranks print.
    assert any("not usable for the provided arguments" in done.stderr for done in ended)


def test_mpich_does_not_split_a_forced_algorithm_by_node(tmp_path: Path) -> None:
    """With ranks 0 and 2 on one emulated node and 1 and 3 on the other, only messages between the nodes can be observed."""
    installed("mpich")
    proof(forced("bcast", "binomial"), tmp_path, ("MPIR_CVAR_NUM_CLIQUES", "2"))
    assert set(messages(tmp_path)) == {(0, 1), (2, 3)}  # a split by node would give one message between the first ranks


def mpich_rules() -> tuple[Library, Placement]:
    """Return the installed MPICH, and a placement on one node with rules that depend on size and rank count."""
    installed("mpich")
    rows = decisions({4: {1: "default", 64: "pipeline:segment_bytes=100", 512: "binomial"}}, nodes=1)
    rows += decisions({3: {1: "rabenseifner", 512: "ring"}}, collective="allreduce", nodes=1)
    gathers = {4: {1: "recursive_doubling", 64: "ring"}, 6: {1: "bruck", 64: "recursive_exchange_halving", 512: "ring"}}
    rows += decisions(gathers, collective="allgather", nodes=1)
    rows += decisions({5: {1: "bruck", 512: "ring"}}, collective="allgatherv", nodes=1)
    rows += decisions({5: {8: "pairwise", 512: "recursive_doubling"}}, collective="reduce_scatter", nodes=1)
    rows += decisions({5: {8: "pairwise", 64: "recursive_halving"}}, collective="reduce_scatter_block", nodes=1)
    rows += decisions({5: {1: "bruck_radix:radix=3", 64: "bruck", 512: "linear"}}, collective="alltoall", nodes=1)
    rows += decisions({5: {8: "recursive_doubling"}}, collective="scan", nodes=1)
    rows += decisions({5: {8: "recursive_doubling", 64: "default"}}, collective="exscan", nodes=1)
    rows += decisions({5: {8: "binomial"}}, collective="gather", nodes=1)
    return library_of(mpis()["mpich"], CATALOGUE, {}), trees.as_mpich_reads(placements(rows)[0])


@pytest.mark.long
def test_mpich_does_what_its_selection_file_says(tmp_path: Path) -> None:
    library, placement = mpich_rules()
    path = tmp_path / "mpich.json"
    library.write(placement, path)
    found = check.check_placement(placement, path, CATALOGUE, library)
    complain(found)
    apart = {one.collective for one in found if one.tells_apart}
    assert apart >= {"bcast", "allreduce", "allgather", "reduce_scatter", "reduce_scatter_block", "alltoall"}
    sizes = {one.size_bytes for one in found if one.collective == "bcast" and one.entry == 4}
    assert sizes >= {63, 64, 65, 511, 512, 513}
    # The ranks are no power of two: the call is left to MPICH.
    assert library.probe(path, "allgather", 5, [8]) == library.probe(None, "allgather", 5, [8])
    # A file with other rules is noticed.
    path.write_text(path.read_text().replace("avg_msg_size<=511", "avg_msg_size<=512"))
    assert set(library.probe(path, "bcast", 4, [512])[512]) == check.PATTERNS["pipeline"](4, {})


def test_mpich_splits_by_node_where_nothing_was_decided_and_only_there(tmp_path: Path) -> None:
    library, placement = mpich_rules()
    path = tmp_path / "mpich.json"
    library.write(placement, path)
    mpi = mpis()["mpich"]
    given = exporting(mpi.name, hydra.watching(mpi, tmp_path))
    command = [mpi.mpirun, "-n", "4", *given, mpi.build / "probe" / "collprobe"]
    halves = ["MPIR_CVAR_NUM_CLIQUES", "2"]
    for size, between in ((1, set()), (600, {(0, 1), (2, 3)})):
        words = [str(word) for word in [*command, "bcast", size]]
        at = words.index("MPIR_CVAR_NOLOCAL")
        words[at : at + 2] = halves
        subprocess.run(
            words, env=mpi.environment() | mpich.environment(path), check=True, timeout=60, capture_output=True
        )
        assert set(messages(tmp_path)) == between


@pytest.mark.long
def test_a_study_of_mpich_is_tuned_to_the_end(checkout: Checkout) -> None:
    installed("mpich")
    checkout.write("config/studies/three.yaml", TUNED)
    checkout.oversubscribe()
    must(checkout.snakemake("--config", "studies=three", "--cores", "2", "--", "results/three/tuning/README.md"))
    rows = csv_rows(checkout.folder / "results/three/tables/tuning-verification.csv")
    assert rows and {row["verdict"] for row in rows} <= {"faster", "tie", "slower"}
    cells = [json.loads(path.read_text()) for path in (checkout.folder / "results/cells/bcast").glob("*_tuned_*")]
    told = [cell["launches"][0]["provenance"]["environment"] for cell in cells]
    assert told and all("MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE" in variables for variables in told)
    folder = checkout.folder / "results/three/tuning"
    file, newer = sorted(folder.glob("mpich-*n1.json"), key=lambda path: "5.1" in path.name)
    assert "collective=bcast" in json.loads(file.read_text())
    assert "name=main" in json.loads(newer.read_text())
    assert not list(folder.glob("openmpi*"))


def test_an_algorithm_that_a_library_lacks_is_named(checkout: Checkout) -> None:
    with pytest.raises(StudyError, match="iallreduce ring has no entry for impi"):
        cells_of(checkout, STUDY.replace("preset_1", "ring"))
    with pytest.raises(StudyError, match="allreduce pipelined_ring with segments=4 has no entry for impi"):
        cells_of(checkout, STUDY.replace("{name: pipelined, segments: 4}", "{name: pipelined_ring, segments: 4}"))


def test_ranks_on_several_nodes(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed("mpich")
    processors = [alternating(socket, core) for socket in range(2) for core in range(12)]
    monkeypatch.setattr(bindings, "processors_of_cores", lambda _mpi, _host: processors)
    machine = replace(checkout.configuration.machine("thin"), kind="slurm", mpi="mpich")
    spread = {"nodes": 2, "processes": 4, "mapping": "node", "cycle": ["node", "socket"]}
    identity = cells_of(checkout)[2].identity() | spread
    cell = cell_from(identity | {"mpi": {"name": "mpich", "version": "1"}})
    command = [str(part) for part in hydra.prepare(machine, cell, cell.place(machine), tmp_path, ["a", "b"])]
    assert command[command.index("-bind-to") + 1] == "user:0,1"
    assert Path(command[command.index("-machinefile") + 1]).read_text().split() == ["a:1", "b:1"]
    uneven = cell_from(identity | {"mpi": cell.mpi, "hosts": {"shuffle": "core", "seed": 2}})
    with pytest.raises(StudyError, match="the order of cores differs between nodes"):
        hydra.prepare(machine, uneven, uneven.place(machine), tmp_path, ["a", "b"])
    del processors[12:]
    with pytest.raises(StudyError, match="mapping node uses core 12 of a node, but a has cores 0 to 11 for this job"):
        hydra.prepare(machine, cell, cell.place(machine), tmp_path, ["a", "b"])


def test_no_host_is_listed_twice_where_one_round_says_the_same() -> None:
    for order, lines in (
        ("aabb", "a:2 b:2"),
        ("ababa", "a:1 b:1"),
        ("aabbaab", "a:2 b:2"),
        ("aaa", "a:3"),
        ("abba", "a:1 b:2"),
        ("abaab", "a:1 b:1 a:2 b:1"),
    ):
        assert hydra.host_file(list(order)).split() == lines.split()


def test_three_libraries_in_one_study(checkout: Checkout) -> None:
    for name in LIBRARIES:
        installed(name)
    checkout.write("config/studies/three.yaml", STUDY)
    wanted = {line.split()[0] for line in checkout.collstudy("needs", "three").stdout.splitlines()}
    # The system's Open MPI, if it has headers, is used and not installed.
    assert wanted == {*filter(to_set_up, LIBRARIES), "compiler", "r"}
    checkout.oversubscribe()
    rows = measured(checkout, "three")
    assert {row["status"] for row in cell_rows(checkout, "three")} == {"measured"}
    assert {row["mpi"] for row in rows} == set(LIBRARIES)
    assert all(float(row["latency_us"]) > 0 for row in rows)
    # The library executed every pipelined allreduce, with each MPI library.
    assert [row["left_pct"] for row in rows if row["algorithm"].startswith("pipelined")] == ["0.0"] * 6
    cell = json.loads(next((checkout.folder / "results/cells/iallreduce").glob("*_mpich_ring_*")).read_text())
    assert cell["launches"][0]["provenance"]["environment"]["MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM"] == "tsp_ring"


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_unmodified_benchmark_runs_the_librarys_collectives(name: str) -> None:
    """Test the README's example: mpirun -x LD_PRELOAD=.../libcollstudy.so -x COLL_BCAST=node osu_bcast."""
    installed(name)
    mpi = mpis()[name]
    assert "LD_PRELOAD=$HOME/build/coll/libcollstudy.so -x COLL_BCAST=node" in (ROOT / "README.md").read_text()
    environment = mpi.environment() | {
        "LD_PRELOAD": str(mpi.build / "coll" / "libcollstudy.so"), "COLL_BCAST": "node", "COLL_VERBOSE": "1",
    }  # fmt: skip
    options = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if name == "openmpi" else []
    program = mpi.build / "bench" / "collbench_bcast"
    command = [mpi.mpirun, "-n", "2", *options, program, "-c", "-m", "8:65536", "-i", "3", "-x", "1"]
    done = must(finish(command, env=environment, timeout=120))
    assert len(re.findall(r"^\d+ .* Pass$", done.stdout, re.MULTILINE)) == 14
    assert re.search(r"libcollstudy: bcast: [1-9]\d* calls, 0 left to the MPI library", done.stdout + done.stderr)


def test_an_mpi_without_headers_is_passed_over(tmp_path: Path) -> None:
    """As with Debian's openmpi-bin, which is only for running programs: its mpicc finds no mpi.h."""
    answers = {
        "mpirun": 'echo "mpirun (Open MPI) 4.1.4"',
        "mpicc": "echo 'fatal error: mpi.h: No such file' >&2; exit 1",
    }
    for name, answer in answers.items():
        executable(tmp_path / name, f"#!/bin/sh\n{answer}\n")
    code = "from collstudy.launch.toolchain import mpis; print(mpis()['openmpi'].bin)"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = must(finish([sys.executable, "-c", code], env=environment))
    assert Path(done.stdout.strip()) == ROOT / ".study" / "openmpi" / "bin"


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_library_without_mpirun_is_the_one_of_its_header(
    checkout: Checkout, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries built for Slurm have no mpirun; a machine whose ranks mpirun would start is refused before anything runs."""
    installed(name)
    whole = mpis()[name]
    executable(tmp_path / "mpicc", f"#!/bin/sh\nexec '{whole.mpicc}' \"$@\"\n")
    mpi = toolchain.identify(tmp_path)
    assert mpi == Mpi(name, whole.version, tmp_path)
    with pytest.raises(StudyError, match=rf"{whole.version} in {tmp_path} has no mpirun"):
        mpi.mpirun  # noqa: B018
    sweep = f"{{collective: barrier, algorithms: [default], mpi: [{name}], mappings: [core], processes: [2]}}"
    text = f"title: t\nquestion: q\nmachine: this-machine\nsweeps:\n  - {sweep}\n"
    checkout.write("config/studies/local.yaml", text)
    monkeypatch.setattr(needs, "has_r", lambda: True)
    source = checkout.project.source("local")
    assert needs.why_not(source) == ""
    monkeypatch.setattr(toolchain, "mpis", lambda: {name: replace(whole, bin=tmp_path)})
    assert "has no mpirun; only machines with `slurm: {launcher: srun}`" in needs.why_not(source)


@pytest.mark.parametrize(
    ("macros", "library"),
    [
        # Its mpi.h has MPICH's macros as well, and its mpirun answers like MPICH's.
        ('#define MPICH_VERSION "3.2.1"\n#define MVAPICH2_VERSION "2.3.7"\n', ("mvapich2", "2.3.7")),
        # The alternatives of Debian's mpicc and mpirun can be set to different libraries.
        (
            "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 4\n",
            ("openmpi", "4.1.4"),
        ),
    ],
)
def test_an_mpicc_of_another_library_than_mpirun_is_passed_over(
    tmp_path: Path, macros: str, library: tuple[str, str]
) -> None:
    executable(tmp_path / "mpicc", f"#!/bin/sh\ncat <<'END'\n{macros}END\n")
    executable(tmp_path / "mpirun", "#!/bin/sh\nprintf 'HYDRA build details:\\n    Version:  3.2.1\\n'\n")
    assert toolchain.declared(tmp_path) == library
    code = "from collstudy.launch.toolchain import mpis; print(*(mpi.bin for mpi in mpis().values()))"
    done = must(finish([sys.executable, "-c", code], env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}))
    assert str(tmp_path) not in done.stdout and done.stdout.strip()


def test_an_mpicc_that_is_passed_over_hides_no_library(tmp_path: Path) -> None:
    """The first mpicc on PATH has no mpi.h; that of mpirun's own folder has."""
    installed("openmpi")
    executable(tmp_path / "first" / "mpicc", "#!/bin/sh\nexit 1\n")
    for name in ("mpicc", "mpirun"):
        executable(tmp_path / "second" / name, f"#!/bin/sh\nexec '{mpis()['openmpi'].bin / name}' \"$@\"\n")
    code = "from collstudy.launch.toolchain import mpis; print(mpis()['openmpi'].bin)"
    path = f"{tmp_path}/first:{tmp_path}/second:{os.environ['PATH']}"
    done = must(finish([sys.executable, "-c", code], env={**os.environ, "PATH": path}))
    assert Path(done.stdout.strip()) == tmp_path / "second"


def startup(mpi: Mpi, variables: dict[str, str]) -> str:
    """Return Intel MPI's start-up messages about its variables."""
    command = [mpi.mpirun, "-n", "2", mpi.build / "bench" / "collbench_barrier", "-i", "1", "-x", "0"]
    done = must(finish(command, env=mpi.environment() | variables | {"I_MPI_DEBUG": "30"}, timeout=60))
    return done.stdout


def test_intel_mpi_understands_the_variables_that_are_written() -> None:
    installed("impi")
    mpi = mpis()["impi"]
    own = {name: [key for key, one in all_.items() if "impi" in one] for name, all_ in CATALOGUE.algorithms.items()}
    tables = {
        name: {2: tuple(Rule(1024 * at, key) for at, key in enumerate(keys))} for name, keys in own.items() if keys
    }
    text = intel_variables(Placement("core", 1, tables), CATALOGUE, [])
    variables = exported(text)
    assert set(variables) == {f"I_MPI_ADJUST_{collective.upper()}" for collective in tables}
    said = startup(mpi, variables)
    assert "Incorrect" not in said and all(f"{name}={value}" in said for name, value in variables.items())
    # Intel MPI reports what it does not understand.
    assert "Incorrect algorithm: BCAST=99" in startup(mpi, {"I_MPI_ADJUST_BCAST": "99:0-1023@2-8"})
    assert "Incorrect adjust value: BCAST=1:0-x" in startup(mpi, {"I_MPI_ADJUST_BCAST": "1:0-x"})
