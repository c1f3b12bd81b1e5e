"""Invalid input is rejected with one line that names file, line, key and allowed values."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.study import checks
from collstudy.study.config import Configuration
from collstudy.study.document import FITTED_SUFFIX, read_yaml
from collstudy.study.names import RESERVED
from conftest import TINY, Checkout

MACHINE = """kind: simulated
label: x
levels:
  - {name: node, count: 2, latency_us: 1.4, bandwidth_gb_s: 11.0}
  - {name: socket, count: 2, latency_us: 0.5, bandwidth_gb_s: 9.0}
  - {name: core, count: 12, latency_us: 0.2, bandwidth_gb_s: 8.0}
"""
#: A machine with costs by size, as written by `./study calibrate`.
COSTS = """simulation:
  eager_limit_bytes: 4096
  core_gb_s: 28.0
  send_us: [[1, 0.08], [2048, 0.28]]
  receive_us: [[1, 0.1], [2048, 0.01]]
  delay_us: {core: [[1, 0.01], [64, 0.04]], socket: [[1, 0.2]], node: [[1, 0.8]]}
  forward_gb_s: {core: 5.0}
"""
ANALYSIS = """analysis:
  size_classes: [{label: Small, from: 1, to: 64}, {label: Large, from: 65, to: 1024}]
  process_classes: [{label: Few, from: 2, to: 3}, {label: Many, from: 4, to: 8}]
  best_excludes: []
  figure_sizes: [1, 1024]
  extrapolation: {fit_up_to: 2}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a copy of config/ with the study `tiny` on a machine `mine`."""
    folder = tmp_path / "config"
    shutil.copytree(ROOT / "config", folder)
    (folder / "machines" / "mine.yaml").write_text(MACHINE)
    (folder / "studies" / "tiny.yaml").write_text(TINY.replace("machine: thin", "machine: mine"))
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (old, text)
    path.write_text(text.replace(old, new))


def refusal(config: Path, study: str = "tiny") -> str:
    """Return the single-line error of reading a study."""
    with pytest.raises(StudyError) as caught:
        Configuration(config).study(study)
    text = str(caught.value)
    assert "\n" not in text and "Traceback" not in text
    return text


def assert_said(text: str, *expected: str) -> None:
    for part in expected:
        assert part in text, text


def test_what_is_edited_here_is_right(config: Path) -> None:
    (config / "studies" / "tiny.yaml").write_text((config / "studies" / "tiny.yaml").read_text() + ANALYSIS)
    (config / "machines" / "mine.yaml").write_text(MACHINE + COSTS)
    assert Configuration(config).study("tiny").name == "tiny"


def test_every_study_and_machine_of_the_checkout_is_right() -> None:
    configuration = Configuration(ROOT / "config")
    for name in configuration.study_names():
        assert configuration.study(name).name == name
    for path in (ROOT / "config" / "machines").glob("*.yaml"):
        if not path.name.endswith(FITTED_SUFFIX):
            assert configuration.machine(path.stem).name == path.stem


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    iterations: 3\n", "    iterations: 3\n    iterations: 4\n",
         ["tiny.yaml, line 12", "duplicate key sweeps.0.iterations", "line 11"]),
        ("sizes: {from: 1, to: 1024}", "sizes: {from: 1, to: 1024, to: 64}", ["line 10", "duplicate key sweeps.0.sizes.to"]),
        ("iterations: 3", "iterations: 1:30", ["line 11", "sweeps.0.iterations", "'1:30' is not an integer"]),
        ("iterations: 3", "iterations: 1_000", ["line 11", "'1_000' is not an integer"]),
        ("iterations: 3", "iterations: yes", ["line 11", "'yes' is not an integer"]),
        ("iterations: 3", "iterations: 3.0", ["line 11", "3.0 is not an integer"]),
        ("iterations: 3", "iterations: true", ["line 11", "true is not an integer"]),
        ("iterations: 3", "iterations: [{a: false}, null]", ["line 11", "[{a: false}, null] is not an integer"]),
        ("from: 1,", "from: 1.5,", ["line 10", "sweeps.0.sizes.from", "1.5 is not an integer"]),
        ("[2, 4]", "[2.0]", ["line 9", "2.0 is not an integer"]),
        ("[2, 4]", "[2, 2]", ["line 9", "[2, 2] has an entry twice"]),
        ("sizes: {from: 1, to: 1024}", "sizes: 64KiB", ["line 10", "'64KiB' is not a list or '64KiB' is not a mapping (key: value)"]),
        ("[2, 4]", "{from: 2, to: 8, step: 2, factor: 2}", ["line 9: sweeps.0.processes", "both step and factor", "{from, to, step}"]),
        ("[2, 4]", "{from: 1, to: 1000000}", ["line 9: sweeps.0.processes", "1000000 numbers", "at most"]),
        ("iterations: 3", f"iterations: {10**30}", ["line 11", "sweeps.0.iterations", "at most 10000000"]),
        ("to: 1024", f"to: {10**30}", ["line 10", "sweeps.0.sizes.to", "at most"]),
        ("[default, linear]", f"[{{name: chain, fanout: {10**30}}}]", ["line 7", "fanout", "at most 1000000"]),
        ("machine: mine", "machine: mine\nlaunches: {ci_width_pct: .nan}", ["line 5", ".nan is not a finite number"]),
        ("machine: mine", "machine: mine\nlaunches: {ci_width_pct: 1e400}", ["line 5", "1e400 is not a finite number"]),
        ("machine: mine", "machine: mine\nlaunches: {min: 5, max: 3}", ["line 5: launches.max: 3 is smaller"]),
        ("[2, 4]", "[2, 49]", ["sweeps.0.processes", "49", "48 cores", "mine"]),
        ("[2, 4]", "[1, 4]", ["line 9: sweeps.0.processes", "1 is too few; a collective needs at least 2 ranks"]),
        ("[2, 4]", "{from: 4, to: 2}", ["sweeps.0.processes is empty"]),
        ("[2, 4]", "[]", ["sweeps.0.processes is empty"]),
        ("{from: 1, to: 1024}", "{from: 1024, to: 1}", ["sweeps.0.sizes is empty"]),
        ("[default, linear]", "[default, lineal]", ["sweeps.0.algorithms", "'lineal'", "known:", "linear"]),
        ("[default, linear]", "[default, default]", ["listed twice"]),
        ("[default, linear]", "[{name: chain, fan_out: 2}]", ["unknown key 'fan_out' in sweeps.0.algorithms.0 (did you mean 'fanout'?)"]),
        ("    warmup: 1\n", "    warmup: 1\nanalysis: {best_excludes: [default]}\n",
         ["line 13: analysis.best_excludes.0", "the default is compared with the other algorithms; name one of these"]),
        ("    warmup: 1\n", "    warmup: 1\nanalysis: {leave_out: [{processes: 2, reason: busy}]}\n",
         ["line 13: analysis.leave_out", "is for imported measurements"]),
        ("collective: bcast", "collective: brodcast", ["sweeps.0.collective", "'brodcast'", "bcast"]),
        ("[core]", "[cores]", ["sweeps.0.mappings", "'cores'", "socket"]),
        ("[core]", "[group]", ["group needs level 'group', which machine mine lacks; known: core, node, socket"]),
        ("sweeps:", "nothing:", ["unknown key 'nothing'", "sweeps"]),
        ("machine: mine", "machine: mine\nwith: [twin]", ["line 5: with: the key is now called `companions`"]),
        ("algorithms:", "algoritms:", ["line 7", "unknown key 'algoritms' in sweeps.0", "algorithms"]),
        ("machine: mine", "machine: mine\ncompanions: [tiny]", ["line 5: companions.0", "'tiny' is this study itself"]),
        ("machine: mine", "machine: mine\nchapter: congestion",
         ["line 5: chapter", "congestion needs applications", "suitable chapters: collectives"]),
        ("machine: mine", "machine: mine\nchapter: svd", ["chapter svd needs sweeps of svd"]),
        ("machine: mine", "machine: mine\nchapter: ladder", ["chapter ladder needs a point-to-point test"]),
        ("machine: mine", "machine: mine\nchapter: tuning", ["chapter tuning needs analysis.tuning"]),
        ("machine: mine", "machine: mine\nchapter: accuracy", ["chapter accuracy needs analysis.compare"]),
        ("machine: mine", "machine: mine\nchapter: mapping", ["chapter mapping needs sweeps of a collective with two mappings"]),
        ("machine: mine", "machine: mine\nchapter: pipelining", ["chapter pipelining needs sweeps with a pipelined algorithm"]),
        ("machine: mine", "machine: ../mine", ["a machine cannot be called '../mine'", "letters", "at most 64"]),
        ("    warmup: 1\n", "    warmup: 1\n    mpi: [mpich]\n",
         ["line 13: sweeps.0.mpi", "'mpich' cannot run on machine mine of kind simulated", "known: smpi-impi, smpi-mpich, smpi-openmpi"]),
        ("    warmup: 1\n", "    warmup: 1\n    mpi: [smpi-openmpi, smpi-mpich]\nanalysis: {tuning: {}}\n",
         ["analysis.tuning: tuning needs one MPI library, the sweeps have smpi-openmpi, smpi-mpich"]),
        ("title: A tiny study", "title: &a [*a]", ["line 2", "an alias that contains itself"]),
        ("title: A tiny study", "title: !!binary aGk=", ["line 2", "tag"]),
        ("title: A tiny study", "1: 2\ntitle: A tiny study", ["line 2", "the key '1' is not a string"]),
        ("title: A tiny study", "%YAML 1.1\n---\ntitle: A tiny study", ["directives", "1.2"]),
        ("title: A tiny study", "title: A tiny study\n---\na: 1", ["tiny.yaml, line 3", "not valid YAML"]),
    ],
)  # fmt: skip
def test_a_wrong_study(config: Path, old: str, new: str, expected: list[str]) -> None:
    edit(config / "studies" / "tiny.yaml", old, new)
    assert_said(refusal(config), "studies/tiny.yaml" if "../" not in new else "", *expected)


def second_sweep(config: Path, **other: Any) -> None:
    """Add a sweep that is the first one with other values."""
    path = config / "studies" / "tiny.yaml"
    study = yaml.safe_load(path.read_text())
    first = study["sweeps"][0]
    study["sweeps"].append({key: value for key, value in {**first, **other}.items() if value is not None})
    path.write_text(yaml.safe_dump(study))


def test_of_a_mistake_in_two_sweeps_the_first_is_reported(config: Path) -> None:
    second_sweep(config, sizes=[2048])
    path = config / "studies" / "tiny.yaml"
    path.write_text(path.read_text().replace("algorithms:", "algoritms:"))
    assert "unknown key 'algoritms' in sweeps.0" in refusal(config)


def edit_first_sweep(config: Path, **other: Any) -> None:
    """Change values of the first sweep."""
    path = config / "studies" / "tiny.yaml"
    study = yaml.safe_load(path.read_text())
    study["sweeps"][0] |= other
    path.write_text(yaml.safe_dump(study))


@pytest.mark.parametrize(
    ("other", "setting"),
    [
        ({"iterations": 9, "sizes": {"from": 1024, "to": 4096}}, "iterations"),
        ({"warmup": 2, "sizes": [3, 8]}, "warmup"),
        ({"barrier": "aligned", "processes": [4, 8]}, "barrier"),
        ({"spread_us": 5}, "spread_us"),
        ({"processes": None, "processes_per_node": [2]}, "processes_per_node"),
    ],
)
def test_a_cell_with_other_settings_in_another_sweep(config: Path, other: dict[str, Any], setting: str) -> None:
    second_sweep(config, **other)
    assert_said(refusal(config), "sweeps.1: bcast on ", f" has other {setting} than in sweeps.0", "another study")


def test_algorithms_are_not_compared_at_other_places(config: Path) -> None:
    second_sweep(config, algorithms=["chain"], processes=None, processes_per_node=[2])
    said = (
        "sweeps.1: bcast on 4 processes and 2 nodes has other processes_per_node than in sweeps.0, for the same mapping"
    )
    assert_said(refusal(config), said)


@pytest.mark.parametrize("ranks", [[2, 4], [3], [3, 7]])
def test_decisions_have_one_place_for_the_ranks_of_a_mapping(config: Path, ranks: list[int]) -> None:
    """Two and four ranks, one or two on each node; others in their range would be on the first node."""
    second_sweep(config, collective="reduce", processes=None, processes_per_node=[1, 2])
    edit_first_sweep(config, processes=ranks)
    assert_said(refusal(config), "sweeps.1: reduce on ", " 2 nodes has other processes_per_node than in sweeps.0")


def test_models_have_one_place_for_the_ranks_of_all_collectives(config: Path, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("run,processes,per_node,nodes\na,2,1,0-1\nb,4,2,0-1\n")
    second_sweep(config, collective="reduce", allocations=str(table))
    assert_said(refusal(config), "sweeps.1: reduce on 2 processes and 2 nodes has other allocations than in sweeps.0")


def test_sweeps_may_have_other_settings_for_other_cells(config: Path) -> None:
    second_sweep(config, iterations=9, sizes={"from": 2048, "to": 4096})
    second_sweep(config, iterations=8, processes=[8])
    second_sweep(config, iterations=7, mappings=["node"])
    second_sweep(config, iterations=6, algorithms=["chain"])
    # On one node they are the same ranks at the same places.
    second_sweep(config, processes=[12], nodes=[1])
    second_sweep(config, processes=None, processes_per_node=[12], nodes=[1])
    # With as many ranks as cores, or node by node, a number for each node changes nothing.
    second_sweep(config, processes=[48], nodes=[2])
    second_sweep(config, processes=None, processes_per_node=[24], nodes=[2])
    second_sweep(config, mappings=["node"], processes=None, processes_per_node=[2], iterations=7)
    assert len(Configuration(config).study("tiny").sweeps) == 10


def test_numbers_are_those_of_yaml_1_2(config: Path) -> None:
    """010 is ten; a date and `no` are strings."""
    edit(config / "studies" / "tiny.yaml", "iterations: 3", "iterations: 010")
    edit(config / "studies" / "tiny.yaml", "title: A tiny study", "title: 2026-11-21")
    study = Configuration(config).study("tiny")
    assert study.sweeps[0].iterations == 10 and study.title == "2026-11-21"


def test_what_is_merged_in_may_be_overridden(config: Path) -> None:
    path = config / "studies" / "tiny.yaml"
    edit(path, "  - collective: bcast", "  - &first\n    collective: bcast")
    path.write_text(path.read_text() + "  - {<<: *first, collective: reduce, processes: [3]}\n")
    sweep = Configuration(config).study("tiny").sweeps[1]
    assert (sweep.collective, sweep.processes, sweep.iterations) == ("reduce", (3,), 3)
    edit(path, "iterations: 3", "iterations: 3.5")
    assert_said(refusal(config), "tiny.yaml, line 12")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"title: caf\xe9\n", "byte 11 is not UTF-8"),
        ("title: x\n".encode("utf-16"), "is not UTF-8"),
        (b"\x00\x01\x02", "not valid YAML"),
        (b"[" * 60 + b"]" * 60, "50 levels"),
        (b"- - - - [a, b", "not valid YAML"),
        (b"just a text\n", "'just a text' is not a mapping (key: value)"),
        (b"", "the file is empty"),
    ],
)
def test_a_file_that_is_no_yaml(config: Path, content: bytes, expected: str) -> None:
    (config / "studies" / "tiny.yaml").write_bytes(content)
    assert_said(refusal(config), "tiny.yaml", expected)


def test_a_folder_in_place_of_a_file(config: Path) -> None:
    (config / "studies" / "tiny.yaml").unlink()
    (config / "studies" / "tiny.yaml").mkdir()
    assert_said(refusal(config), "tiny.yaml cannot be read: Is a directory")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("latency_us: 0.2,", "latency_us: .nan,", ["mine.yaml, line 6", ".nan is not a finite number"]),
        ("bandwidth_gb_s: 8.0", "bandwidth_gb_s: .inf", ["mine.yaml, line 6", ".inf is not a finite number"]),
        ("latency_us: 0.2,", "latency_us: 1e300,", ["mine.yaml, line 6", "levels.2.latency_us is 1e+300", "at most"]),
        ("label: x", "label: x\ncore_gflops: .nan", ["mine.yaml, line 3", "finite"]),
        ("label: x", "label: x\nlaunch_time_limit_s: 0.001", ["line 3", "launch_time_limit_s is 0.001", "at least 1"]),
        ("label: x", "label: x\nlaunch_time_limit_s: 1e30", ["launch_time_limit_s", "at most 604800"]),
        ("label: x", "label: x\nblock_minutes: 0.001", ["block_minutes", "at least 1"]),
        ("count: 12", "count: 12.0", ["line 6", "12.0 is not an integer"]),
        ("count: 12", "count: 1000000", ["mine.yaml, line 3: levels", "4000000 cores", "at most 1048576"]),
        ("name: node", "name: ccx", ["line 5: levels.1", "socket cannot be inside ccx", "group, node, socket"]),
        ("label: x", "label: x\nmpi: openmpi", ["line 3: mpi", "'openmpi' does not run on a machine of kind simulated"]),
        ("label: x", "label: x\nslurm: {partition: a}", ["line 3: slurm", "slurm is only for machines of kind slurm"]),
        ("label: x", "label: x\nenvironment: {UCX_TLS: rc}",
         ["line 3: environment", "environment is only for machines of kind local or slurm; this one is of kind simulated"]),
        ("kind: simulated", "kind: slurm\nenvironment: {OMPI_MCA_coll_tuned_bcast_algorithm: 3}",
         ["line 2: environment.OMPI_MCA_coll_tuned_bcast_algorithm", "which a study does by `algorithms`"]),
        ("kind: simulated", "kind: slurm\nenvironment: {I_MPI_ADJUST_BCAST: 3}", ["environment.I_MPI_ADJUST_BCAST", "selects"]),
        ("kind: simulated", "kind: slurm\nenvironment: {LD_PRELOAD: x.so}", ["LD_PRELOAD: the workflow sets this variable itself"]),
        ("kind: simulated", "kind: slurm\nenvironment: {UCX-TLS: rc}", ["line 2", "the name of an environment variable"]),
        ("kind: simulated", "kind: slurm\nenvironment: {UCX_TLS: [rc, sm]}", ["environment.UCX_TLS", "not a string or an integer"]),
        ("kind: simulated", "kind: slurm\nslurm: {extra: '--reservation=r -p fat'}",
         ["slurm.extra: option -p is not allowed here: use the key slurm.partition"]),
        ("kind: simulated", "kind: slurm\nslurm: {extra: --output=log}", ["--output is not allowed here: the workflow sets it"]),
        ("kind: simulated", "kind: slurm\nslurm: {extra: --comment='}", ["slurm.extra: No closing quotation"]),
        ("latency_us: 0.2,", "latency_us: 0.2, added_latency_us: 1,", ["line 3: levels", "added_latency_us of level core"]),
        ("  - {name: core", "  - {name: core, name: core", ["line 6", "duplicate key levels.2.name"]),
        ("kind: simulated", "kind: imagined", ["kind is 'imagined'", "known:", "simulated"]),
        ("latency_us: 0.2", "latency_us: 2.0", ["latency_us of level socket is smaller than that of core"]),
        ("name: core", "name: socket", ["the last (innermost) of the levels must be core"]),
        (", latency_us: 1.4", "", ["level node needs latency_us"]),
        ("label: x", "label: x\nsimulation: {async_small_bytes: 65537}",
         ["line 3: simulation.async_small_bytes is 65537", "at most eager_limit_bytes, which is 65536"]),
    ],
)  # fmt: skip
def test_a_wrong_machine(config: Path, old: str, new: str, expected: list[str]) -> None:
    edit(config / "machines" / "mine.yaml", old, new)
    assert_said(refusal(config), "machines/mine.yaml", *expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: local\nlabel: x\nmpi: smpi-openmpi\n", ["line 3: mpi", "kind local", "known: impi, mpich, openmpi"]),
        ("kind: local\nlabel: x\nsimulation: {core_gb_s: 1}\n", ["line 3: simulation", "only for machines of kind simulated"]),
        ("kind: local\nlabel: x\nslurm: {partition: a}\n", ["line 3: slurm", "only for machines of kind slurm"]),
        ("kind: local\nlabel: x\nfitted: x.fitted.yaml\ncalibration: {ladder: ladder}\n",
         ["line 4: calibration", "only for machines of kind simulated"]),
    ],
)  # fmt: skip
def test_a_machine_of_another_kind(config: Path, text: str, expected: list[str]) -> None:
    (config / "machines" / "mine.yaml").write_text(text)
    assert_said(refusal(config), "machines/mine.yaml", *expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[[1, 0.08], [2048, 0.28]]", "[[2048, 0.28], [1, 0.08]]", ["line 10: simulation.send_us.1", "ascending"]),
        ("[[1, 0.1], [2048, 0.01]]", "[[1, 0.1], [1, 0.01]]", ["line 11: simulation.receive_us.1", "ascending"]),
        ("[[1, 0.01], [64, 0.04]]", "[[64, 0.01], [1, 0.04]]", ["line 12: simulation.delay_us.core.1", "ascending"]),
        ("[1, 0.08]", "[1, -0.08]", ["line 10", "simulation.send_us.0.1 is -0.08", "at least 0"]),
        ("[1, 0.08]", "[1.5, 0.08]", ["line 10", "1.5 is not an integer"]),
        ("socket: [[1, 0.2]]", "numa: [[1, 0.2]]", ["line 12: simulation.delay_us.numa", "no level 'numa'", "known: core, node, socket"]),
        ("{core: 5.0}", "{ccx: 5.0}", ["line 13: simulation.forward_gb_s.ccx", "no level 'ccx'"]),
        ("  forward", "  gap_us: {nde: 0.1}\n  forward", ["line 13: simulation.gap_us.nde", "no level 'nde'", "known: core, node, socket"]),
        ("  forward", "  share: {ccx: 1}\n  forward", ["line 13: simulation.share.ccx", "no level 'ccx'"]),
        ("  forward", "  waited_us: {core: [[64, 1], [1, 1]]}\n  forward", ["line 13: simulation.waited_us.core.1", "ascending"]),
        ("{core: [[1, 0.01], [64, 0.04]], ", "{", ["delay_us lacks the innermost level 'core'"]),
        ("  forward", "  waited_us: {socket: [[1, 1]]}\n  forward", ["waited_us lacks the innermost level 'core'"]),
        ("  forward", "  waited_limit_bytes: 65536\n  forward", ["simulation", "'waited_us' is a dependency of 'waited_limit_bytes'"]),
        ("  eager", "  smpi: {smpi/init: 1 2}\n  eager", ["simulation.smpi.smpi/init is '1 2'", "without blanks"]),
    ],
)  # fmt: skip
def test_wrong_costs(config: Path, old: str, new: str, expected: list[str]) -> None:
    (config / "machines" / "mine.yaml").write_text(MACHINE + COSTS)
    edit(config / "machines" / "mine.yaml", old, new)
    assert_said(refusal(config), "machines/mine.yaml", *expected)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("smpi/latfactor: 1", ["Bad config key: smpi/latfactor", "known: ", "smpi/wtime"]),
        ("smpi/os: abc", ["abc"]),
        ("smpi/init: abc", ["abc"]),
        ("smpi/bcast: fastest", ["has no algorithm 'fastest'", "binomial_tree"]),
        ("smpi/lat-factor: abc", ["abc"]),
    ],
)
def test_an_option_that_simgrid_refuses(config: Path, option: str, expected: list[str]) -> None:
    path = config / "machines" / "mine.yaml"
    path.write_text(MACHINE + f"simulation:\n  smpi: {{{option}}}\n")
    assert_said(refusal(config), "mine.yaml, line 8: simulation.smpi: SimGrid rejects it: ", *expected)


def test_an_option_that_simgrid_takes() -> None:
    assert checks.refused_by_simgrid((("smpi/init", 0.1), ("smpi/bcast", "binomial_tree"))) == ""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("fit_up_to: 2", "fit_up_to: -1", ["line 18", "fit_up_to is -1", "at least 1"]),
        ("fit_up_to: 2", "fit_up_to: 4", ["line 18: analysis.extrapolation.fit_up_to", "2 to 4"]),
        ("fit_up_to: 2", "fit_up_to: 1", ["analysis.extrapolation.fit_up_to", "2 to 4"]),
        ("{label: Small, from: 1, to: 64}", "{label: Small, from: 64, to: 1}", ["line 14: analysis.size_classes.0", "'Small' is empty"]),
        ("from: 65, to: 1024", "from: 64, to: 1024", ["line 14: analysis.size_classes.1", "overlaps 'Small' (1 to 64)"]),
        ("label: Many", "label: Few", ["line 15: analysis.process_classes.1.label", "'Few' is used twice"]),
        ("label: Few, from: 2", "label: Few, from: .nan", ["line 15", "finite"]),
        ("figure_sizes: [1, 1024]", "figure_sizes: [1, 3]", ["line 17: analysis.figure_sizes.1", "size 3 is not measured"]),
        ("best_excludes: []", "best_excludes: [linear]", ["line 16: analysis.best_excludes", "no bcast algorithm is left"]),
        ("best_excludes: []", "best_excludes: [linaer]", ["line 16: analysis.best_excludes.0", "no algorithm 'linaer'"]),
        ("best_excludes: []", "barrier_tree_knots: [3, .nan]", ["line 16", "finite"]),
        ("best_excludes: []", "barrier_tree_knots: [3, 2]", ["line 16: analysis.barrier_tree_knots", "ascending"]),
        ("best_excludes: []", "compare: {study: tiny}", ["line 16: analysis.compare.study", "'tiny' is this study itself"]),
        ("best_excludes: []", "compare: {study: thin, fitted: {bcast: [x]}}", ["analysis.compare.fitted.bcast", "no bcast algorithm 'x'"]),
    ],
)  # fmt: skip
def test_a_wrong_analysis(config: Path, old: str, new: str, expected: list[str]) -> None:
    path = config / "studies" / "tiny.yaml"
    path.write_text(path.read_text() + ANALYSIS)
    edit(path, old, new)
    assert_said(refusal(config), "studies/tiny.yaml", *expected)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ("first_pct: .nan", "finite"),
        ("round_pct: .inf", "finite"),
        ("startup_s: 1e30", "at most"),
        ("rounds: 1.0", "integer"),
        ("rounds: 0", "sampling.rounds"),
        ("first: 1", "unknown key 'first' in sampling (did you mean 'first_pct'?); known: budget_node_minutes"),
    ],
)
def test_wrong_sampling(config: Path, sampling: str, expected: str) -> None:
    path = config / "studies" / "tiny.yaml"
    path.write_text(path.read_text() + f"sampling: {{{sampling}}}\nanalysis: {{tuning: {{}}}}\n")
    assert_said(refusal(config), "tiny.yaml, line 13", expected)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("sampling: {}\n", "sampling selects points that could change a decision and therefore needs analysis: {tuning: {}}"),
        ("  - {collective: latency, levels: [node], sizes: {from: 1, to: 8}}\nsampling: {}\nanalysis: {tuning: {}}\n",
         "sweeps.1: sampling compares algorithms, but latency has only one; remove this sweep or `sampling`"),
    ],
)  # fmt: skip
def test_sampling_needs_something_to_decide(config: Path, more: str, expected: str) -> None:
    path = config / "studies" / "tiny.yaml"
    path.write_text(path.read_text() + more)
    assert_said(refusal(config), "studies/tiny.yaml", expected)


@pytest.mark.parametrize("name", RESERVED)
def test_a_study_does_not_write_into_the_workflows_own_folders(config: Path, name: str) -> None:
    shutil.copy(config / "studies" / "tiny.yaml", config / "studies" / f"{name}.yaml")
    assert_said(
        refusal(config, name),
        f"a study cannot be called '{name}'",
        f"results/{name} is reserved for the workflow",
        "cells",
    )


def test_what_the_rules_write_beside_studies_is_reserved() -> None:
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    written = set(re.findall(r'RESULTS / "([\w.]+)"', rules))
    assert written and written <= set(RESERVED), written - set(RESERVED)


@pytest.mark.parametrize(
    "name",
    ["a b", "it's", 'a"b', "a=b", "a;b", "$(id)", "{study}", "größe", "x" * 65, "x" * 250, "-n", ".hidden", "..", "a/b", "a\nb"],
)  # fmt: skip
def test_a_name_that_is_none(config: Path, name: str) -> None:
    said = refusal(config, name)
    assert_said(said, "a study cannot be called", "letters (A to Z, a to z), digits, '.', '_' and '-', at most 64")
    assert len(said) < 300


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("x: {label: X, simulated: {algorithm: ompi_linear, fanoot: 4}}",
         ["unknown key 'fanoot' in bcast.x.simulated (did you mean 'fanout'?)", "known: algorithm, fanout"]),
        ("x: {label: X, mpich: {algoritm: a}}", ["unknown key 'algoritm'", "known: algorithm"]),
        ("x: {label: X, library: {algorithm: nodal}}", ["bcast.x.library.algorithm", "no bcast algorithm 'nodal'", "node_group"]),
        ("x: {label: X, pattern: circle}", ["bcast.x.pattern", "unknown pattern 'circle'", "known: "]),
        ("x: {label: X, library: {algorithm: pipelined}, inside: x}", ["bcast.x.inside", "no ibcast algorithm 'x'"]),
        ("a b: {label: X}", ["unknown key 'a b' in bcast", "letters"]),
        ("default: {label: X}", ["duplicate key bcast.default"]),
    ],
)  # fmt: skip
def test_a_wrong_catalogue(config: Path, entry: str, expected: list[str]) -> None:
    path = config / "algorithms.yaml"
    path.write_text(re.sub(r"^bcast:\n", f"bcast:\n  {entry}\n", path.read_text(), count=1, flags=re.MULTILINE))
    assert_said(refusal(config), "algorithms.yaml, line ", *expected)


def test_a_collective_that_does_not_exist(config: Path) -> None:
    path = config / "algorithms.yaml"
    path.write_text(path.read_text() + "broadcast:\n  default: {label: Default}\n")
    assert_said(refusal(config), "algorithms.yaml, line ", "unknown collective 'broadcast'", "known: allgather")


def test_a_mapping_cycles_over_levels(config: Path) -> None:
    path = config / "mappings.yaml"
    path.write_text(path.read_text() + "odd: {cycle: [rack]}\n")
    assert_said(refusal(config), "mappings.yaml, line ", "odd.cycle.0 is 'rack'", "known: ccd, ccx, core")


def test_the_lines_are_those_of_the_file(tmp_path: Path) -> None:
    """Line numbers are correct below a comment and a blank line, and in a list on one line."""
    path = tmp_path / "x.yaml"
    path.write_text("# A comment\n\nkind: simulated\nlabel: x\n\nlevels: [{name: core, count: 0}]\n")
    with pytest.raises(StudyError, match=r"x\.yaml, line 6: levels\.0\.count is 0; it must be at least 1"):
        read_yaml(path, "machine")


@pytest.mark.parametrize("name", ["n" * 64, "x" + "-." * 20])
def test_a_name_that_snakemake_takes_for_a_loop_is_refused(name: str, checkout: Checkout) -> None:
    """Snakemake found nothing to do for it, and the run succeeded."""
    checkout.write(f"config/studies/{name}.yaml", TINY)
    done = checkout.collstudy("status", name)
    assert done.returncode == 2 and "ends with the same characters 20 times" in done.stderr
