"""Calibration: it recovers a ladder's costs, is reproducible, and rejects unsuitable input."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.calibration import calibrate
from collstudy.calibration.costs import LONG, SHORT, fitted_machine
from collstudy.calibration.fitting import NOT_IN_A_LADDER, Request, Simulator, fit_study, misfit, requests_for, search
from collstudy.calibration.measured import Data, Key, ladder_of, ladder_of_study, read_cells
from collstudy.calibration.writing import write_fit
from collstudy.launch.platforms import line
from collstudy.sources.source import MEASUREMENT_COLUMNS
from collstudy.study.cells import machine_identity
from collstudy.study.config import Configuration
from collstudy.study.document import read_yaml
from collstudy.study.machines import Level, Machine
from conftest import ROOT, TINY, Checkout, csv_rows, executable, must

LEVELS = (Level("node", 2), Level("socket", 2), Level("core", 2))
MACHINE = Machine("m", "simulated", "m", "smpi-openmpi", LEVELS)
MACHINE_OF_FOUR = dataclasses.replace(MACHINE, levels=(Level("node", 2), Level("core", 2)))
MAPPINGS = {"node": "node", "socket": "socket", "core": "core"}
EAGER = 16384


def one_way(level: str, size: int) -> float:
    """Return the time (us) on a known machine: latency and bandwidth of each level, and a step at the eager limit."""
    latency, rate = {"core": (0.2, 8e3), "socket": (0.4, 6e3), "node": (1.0, 4e3)}[level]
    return latency + (1.5 if size >= EAGER else 0) + size / rate


def data() -> Data:
    sizes = [2**k for k in range(21)]
    ladder = {level: {size: one_way(level, size) for size in sizes} for level in ("core", "socket")}
    send = [(1, SHORT["send_1"]), (EAGER // 2, SHORT["send_eager"])]
    cells: dict[Key, float] = {}
    for level, mapping in MAPPINGS.items():
        cells["barrier", "default", mapping, 2, None] = one_way(level, 1)
        for size in sizes:
            short = (one_way(level, size) + one_way(level, 1) + line(send, size)) / 2
            cells["bcast", "linear", mapping, 2, size] = short if size < EAGER else one_way(level, size)
    return Data(ladder, cells)


@pytest.mark.parametrize("level", ["core", "socket", "node"])
def test_the_costs_of_a_level_add_up_to_its_ladder(level: str) -> None:
    values = SHORT | LONG | {"send_1": 0.05, "send_eager": 0.1, "receive": 0.03}
    known = data()
    send = [(1, 0.05), (EAGER // 2, values["send_eager"])]
    for mapping in MAPPINGS.values():  # measurements of two ranks include the sender's own time
        for size in (2**k for k in range(14)):
            change = (line(send, size) - line([(1, SHORT["send_1"]), (EAGER // 2, SHORT["send_eager"])], size)) / 2
            known.cells["bcast", "linear", mapping, 2, size] += change
    machine = fitted_machine(MACHINE, known, values, EAGER)
    of = next(entry for entry in machine.levels if entry.name == level)
    costs = machine.simulation
    for size, delay in costs["delay_us"][level]:
        total = line(costs["send_us"], size) + delay + size / of.bandwidth_gb_s * 1e-3
        total += line(costs["receive_us"], size) if size < EAGER else 0
        assert total == pytest.approx(one_way(level, size), rel=0.02, abs=0.002)


def test_the_ladder_is_the_median_over_the_pairs_of_a_level() -> None:
    rows = [[0, 0, 1, 99], [0, 1, 1, 0.2], [2, 3, 1, 0.4], [1, 0, 1, 0.3], [0, 2, 1, 0.5], [0, 9, 1, 7]]
    assert ladder_of(rows, MACHINE) == {"core": {1: 0.3}, "socket": {1: 0.5}}


def test_the_search_repeats_and_finds_the_minimum() -> None:
    def cost(at: dict[str, float]) -> float:
        return abs(math.log(at["a"] / 3)) + abs(math.log(at["b"] / 0.2))

    found, undetermined = search({"a": 1.0, "b": 1.0, "c": 1.0}, cost, steps=(2, 1.3, 1.05))
    assert found == search({"a": 1.0, "b": 1.0, "c": 1.0}, cost, steps=(2, 1.3, 1.05))[0]
    assert undetermined == ["c"]
    assert found["a"] == pytest.approx(3, rel=0.1)
    assert found["b"] == pytest.approx(0.2, rel=0.1)


@pytest.mark.long
def test_the_eager_limit_is_the_one_that_fits_best(capsys: pytest.CaptureFixture[str]) -> None:
    simulator = Simulator(Configuration(ROOT / "config"), 2)
    truth = fitted_machine(MACHINE, data(), SHORT | LONG, 8192)
    block = {
        "algorithms": ["linear", "chain"], "barriers": ["default"], "mappings": ["core", "node"], "processes": [4],
        "largest_bytes": 65536,
    }  # fmt: skip
    pairs = [Request("bcast", "linear", mapping, 2, (1, 1048576)) for mapping in MAPPINGS]
    pairs += [Request("barrier", "default", mapping, 2, None) for mapping in MAPPINGS]
    known = Data(data().ladder, simulator.all(truth, [*pairs, *sum(requests_for(block, 8192), [])]))
    fitted, *_ = fit_study(MACHINE, known, block, simulator)
    assert fitted.simulation["eager_limit_bytes"] == 8192
    assert "eager limit: 8192 bytes\n" in capsys.readouterr().out


def test_a_simulation_without_results_names_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator(Configuration(ROOT / "config"), 1)
    executable(tmp_path / "bin" / "smpirun", "#!/bin/sh\necho Deadlock detected >&2\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(
        StudyError, match=r"simulation of bcast linear .* processes 4 on .*incomplete(.|\n)*Deadlock detected"
    ):
        simulator.all(Configuration(ROOT / "config").machine("thin"), [Request("bcast", "linear", "core", 4, (8, 8))])


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(
        StudyError, match="fit was measured, such as bcast linear mapped by core with 2 processes and 1 byte$"
    ):
        misfit({("bcast", "linear", "core", 2, 1): 1.0}, {})


def calibrate_plain(checkout: Checkout, machine: str) -> Machine:
    checkout.write("config/machines/plain.yaml", machine)
    calibrate.calibrate(checkout.configuration, "plain", checkout.folder / "results")
    return checkout.configuration.machine("plain")


PLAIN = """
kind: simulated
label: Plain
levels:
  - {name: node, count: 2, latency_us: 9, bandwidth_gb_s: 10, shared_gb_s: 12, full_duplex: true}
  - {name: core, count: 2, latency_us: 0.1, bandwidth_gb_s: 20}
fitted: plain.fitted.yaml
calibration:
  ladder: [[0, 1, 2, 0.3], [0, 2, 2, 1.5], [1, 3, 2, 1.7]]
simulation: {send_overhead_us: 0.05, receive_overhead_us: 0.05}
"""
#: A machine file before its first calibration: no costs, and a level with only one unit.
UNKNOWN = """
kind: simulated
label: Unknown
levels:
  - {name: node, count: 2}
  - {name: socket, count: 1}
  - {name: core, count: 2}
fitted: plain.fitted.yaml
calibration:
  ladder: rungs
  eager_limit_bytes: 16384
"""


def fitted_of(checkout: Checkout, name: str) -> dict[str, Any]:
    return read_yaml(checkout.folder / f"config/machines/{name}.fitted.yaml", "fitted")["about"]


def test_a_ladder_of_one_size_gives_latencies_and_says_what_it_does_not_give(checkout: Checkout) -> None:
    fitted = calibrate_plain(checkout, PLAIN)
    assert [level.bandwidth_gb_s for level in fitted.levels] == [10, 20] and fitted.levels[0].full_duplex
    found = Simulator(checkout.configuration, 1).all(
        fitted, [Request("latency", "default", f"level-{name}", 2, (2, 2)) for name in ("node", "core")]
    )
    assert list(found.values()) == pytest.approx([1.6, 0.3], abs=2e-4)
    said = fitted_of(checkout, "plain")
    assert said["not_fitted"] == ["bandwidth_gb_s", "shared_gb_s", "simulation"]
    assert said["median_abs_error_pct"] == {"node": 0, "core": 0}
    paths = [checkout.folder / f"config/machines/plain.{end}" for end in ("yaml", "fitted.yaml")]
    written = [path.read_text() for path in paths]
    assert calibrate_plain(checkout, PLAIN) == fitted and [path.read_text() for path in paths] == written


def write_rungs(checkout: Checkout, sizes: list[int]) -> None:
    """Write a ladder study's measurements: two launches of each size, and all pairs of one size."""
    rows = ["collective,mapping,size_bytes,from_rank,to_rank,latency_us,algorithm,parameters,nodes,processes,launch"]
    for level in ("node", "core"):
        for size in sizes:
            us = one_way(level, size)
            rows += [f"latency,level-{level},{size},,,{us * factor},default,,2,2,1" for factor in (0.99, 1.01)]
    rows += [f"pairs,core,3,{pair},default,,2,4,1" for pair in ("0,1,0.25", "2,3,0.35", "0,3,1.25")]
    checkout.write("results/rungs/measurements.csv", "\n".join(rows) + "\n")


def test_the_ladder_of_a_study_with_all_sizes_gives_every_cost_of_a_message(checkout: Checkout) -> None:
    write_rungs(checkout, [2**k for k in range(21)])
    fitted = calibrate_plain(checkout, UNKNOWN)
    said = fitted_of(checkout, "plain")
    assert said["not_fitted"] == NOT_IN_A_LADDER
    assert set(fitted.simulation) - {"delay_us", "waited_us", "waited_gb_s", "eager_gb_s"} <= set(NOT_IN_A_LADDER)
    assert max(said["median_abs_error_pct"].values()) < 1
    rows = csv_rows(checkout.folder / "results/calibration/plain.csv")
    assert said["points"] == len(rows) == 42
    for row in rows:
        level, size = row["mapping"].removeprefix("level-"), int(row["size_bytes"])
        assert float(row["measured_us"]) == pytest.approx(one_way(level, size))
        assert float(row["simulated_us"]) == pytest.approx(one_way(level, size), rel=0.03)
    assert fitted.levels[1].latency_us == fitted.levels[2].latency_us
    configuration = checkout.configuration
    everyone = Request("bcast", "binomial", "core", 4, (1, 1048576))
    assert min(Simulator(configuration, 1).all(fitted, [everyone]).values()) > 0


#: A machine of which only exchanges of all ranks were measured, one rank per node.
EXCHANGED = """
kind: simulated
label: Exchanged
levels:
  - {name: group, count: 2}
  - {name: node, count: 8}
  - {name: core, count: 1}
fitted: plain.fitted.yaml
calibration:
  study: rungs
  exchanges: {allreduce: [recursive_doubling, ring]}
  mappings: [node]
  processes: [4, 8, 16]
  allocations: ALLOCATIONS
  eager_limit_bytes: 16384
  largest_bytes: 1048576
"""


def exchanged_us(algorithm: str, processes: int, size: int) -> float:
    """Return the time (us) of an allreduce on a machine of known costs, half of whose ranks are in each group."""

    def message(of: float, crosses: float) -> float:
        return 1.5 + 0.5 * crosses + of * 1e-4

    if algorithm == "ring":  # two ranks of P send to the other group
        return (processes - 1) * (2 * message(size / processes, 2 / processes) + size / processes * 2e-4)
    steps = processes.bit_length() - 1
    return (steps - 1) * message(size, 0) + message(size, 1) + steps * size * 2e-4


@pytest.mark.long
def test_exchanges_give_the_costs_of_a_message_without_a_ladder(checkout: Checkout) -> None:
    rows = ["collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us"]
    sizes = [2**k for k in range(5, 21, 3)]
    for count in (4, 8, 16):
        for name, first in (("recursive_doubling", 0), ("ring", count * 4)):
            of = [(size, exchanged_us(name, count, size)) for size in sizes if size >= first]
            rows += [f"allreduce,{name},,node,16,{count},{size},1,{us}" for size, us in of]
    checkout.write("results/rungs/measurements.csv", "\n".join(rows) + "\n")
    runs = [f"r,{count},1,0-{count // 2 - 1} 8-{8 + count // 2 - 1}" for count in (4, 8, 16)]
    table = checkout.write("runs.csv", "\n".join(["run,processes,per_node,nodes", *runs]) + "\n")
    fitted = calibrate_plain(checkout, EXCHANGED.replace("ALLOCATIONS", str(table)))
    group, node = (fitted.simulation["delay_us"][name] for name in ("group", "node"))
    assert [level.latency_us for level in fitted.levels[:2]] == pytest.approx([2, 1.5], rel=0.02)
    added = [one[1] - other[1] for one, other in zip(group, node, strict=True) if one[0] <= 8192]
    assert added == pytest.approx([0.5] * 14, rel=0.1)
    assert fitted.levels[1].bandwidth_gb_s == pytest.approx(10, rel=0.05)
    assert fitted.simulation["reduce_gb_s"] == pytest.approx(5, rel=0.02)
    said = fitted_of(checkout, "plain")
    assert said["points"] == len(rows) - 1
    # Between nodes, a core's messages of 16 to 256 KiB leave one after the other; the simulated ring is a little slower.
    assert max(said["median_abs_error_pct"].values()) < 5


def test_exchanges_must_be_such_algorithms_and_measured(checkout: Checkout) -> None:
    rows = ["collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us"]
    rows += [f"allreduce,{name},,node,16,4,1024,1,9" for name in ("ring", "linear")]
    checkout.write("results/rungs/measurements.csv", "\n".join(rows) + "\n")
    table = checkout.write("runs.csv", "run,processes,per_node,nodes\nr,4,1,0-3\n")
    checkout.write("config/studies/rungs.yaml", TINY)
    described = EXCHANGED.replace("ALLOCATIONS", str(table)).replace("[4, 8, 16]", "[4]")
    with pytest.raises(StudyError, match="rungs has no allreduce recursive_doubling mapped by node with 4 processes"):
        calibrate_plain(checkout, described)
    with pytest.raises(StudyError, match="allreduce linear of 1024 bytes on 4 ranks does not consist of exchanges"):
        calibrate_plain(checkout, described.replace("recursive_doubling, ring", "linear"))
    ring = described.replace("recursive_doubling, ring", "ring")
    with pytest.raises(StudyError, match="largest_bytes: the study has no vectors of at most 512 bytes"):
        calibrate_plain(checkout, ring.replace("1048576", "512"))
    with pytest.raises(StudyError, match="allocations: .*runs.csv has no run with 8 processes; known: 4"):
        calibrate_plain(checkout, ring.replace("[4]", "[4, 8]"))


def test_pairs_of_a_study_are_part_of_its_ladder(checkout: Checkout) -> None:
    write_rungs(checkout, [1, 2])
    found = ladder_of_study(checkout.folder / "results/rungs/measurements.csv", MACHINE_OF_FOUR)
    assert found["core"] == pytest.approx({1: one_way("core", 1), 2: one_way("core", 2), 3: 0.3})
    assert found["node"][3] == pytest.approx(1.25)


def test_an_empty_message_is_no_rung(checkout: Checkout) -> None:
    """Benchmarks of other authors begin with 0 bytes, which a simulated benchmark does not send."""
    write_rungs(checkout, [0, 1, 2])
    found = ladder_of_study(checkout.folder / "results/rungs/measurements.csv", MACHINE_OF_FOUR)
    assert set(found["core"]) == {1, 2, 3}


def test_a_message_without_duration_is_named(checkout: Checkout) -> None:
    write_rungs(checkout, [2**k for k in range(21)])
    path = checkout.folder / "results/rungs/measurements.csv"
    path.write_text(re.sub(r"(?m)^(latency,level-core,1,,,)[^,]*", r"\g<1>0.0", path.read_text()))
    with pytest.raises(StudyError, match="a message of 1 bytes across level core took no time"):
        calibrate_plain(checkout, UNKNOWN)


def test_cells_measured_in_several_ways_are_refused(checkout: Checkout) -> None:
    rows = "collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us\n"
    rows += "".join(f"allreduce,ring,,node,{nodes},4,1024,1,9\n" for nodes in (2, 4))
    path = checkout.write("results/rungs/measurements.csv", rows)
    block = {"exchanges": {"allreduce": ["ring"]}, "mappings": ["node"]}
    with pytest.raises(StudyError, match="allreduce ring mapped by node with 4 processes was measured with several"):
        read_cells(path, block)
    assert read_cells(path, block | {"mappings": ["core"]})


@pytest.mark.parametrize(
    ("ladder", "message"),
    [
        ("[[0, 1, 2, 0.3]]", "plain.yaml: calibration.ladder has no pair of cores that differ first at node"),
        ("[[0, 1, 2, 0.05], [0, 2, 2, 1]]", "core is faster than the overheads of the simulation"),
        ("[[0, 1, 2]]", "calibration.ladder"),
        ("nowhere", "nowhere/measurements.csv does not exist"),
        ("{study: nowhere}", "calibration.ladder"),
    ],
)
def test_a_ladder_that_does_not_do_is_named(checkout: Checkout, ladder: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        calibrate_plain(checkout, re.sub("ladder: .*", f"ladder: {ladder}", PLAIN))


def test_short_messages_tell_no_bandwidth(checkout: Checkout) -> None:
    write_rungs(checkout, [1, 2])
    with pytest.raises(StudyError, match="does not determine bandwidths: set bandwidth_gb_s of level node, core"):
        calibrate_plain(checkout, UNKNOWN)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fat-tree", r"the key `calibration` \(ladder and study\) is missing"),
        ("csew", "no such file.*csews"),
    ],
)
def test_a_machine_that_cannot_be_calibrated_is_said_before_anything_runs(
    checkout: Checkout, name: str, message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        calibrate.calibrate(checkout.configuration, name, checkout.folder / "results")


@pytest.mark.long
def test_calibrating_collects_the_study_that_it_takes(checkout: Checkout) -> None:
    machine = checkout.folder / "config/machines/thin.yaml"
    fit = checkout.folder / "config/machines/thin.fitted.yaml"
    fit_before = fit.read_text()
    asked = (
        machine.read_text().replace("algorithms: [linear, chain]", "algorithms: [linear]").replace("[12, 40]", "[4]")
    )
    machine.write_text(asked)
    done = must(checkout.snakemake("--config", "calibrate=thin", "--", "results/calibration/thin.csv"))
    assert "eager limit:" in done.stdout + done.stderr
    assert (checkout.folder / "results/orfeo-thin/measurements.csv").exists()
    assert "send_us" in fit.read_text() and fit.read_text() != fit_before
    assert machine.read_text() == asked
    assert "eager limit:" in (checkout.folder / "logs/calibrate/thin.log").read_text()


@pytest.mark.long
def test_the_epyc_machine_is_what_its_ladder_gives(checkout: Checkout) -> None:
    path = checkout.folder / "config/machines/orfeo-epyc.fitted.yaml"
    committed = checkout.configuration.machine("orfeo-epyc")
    path.write_text(re.sub(r"latency_us: [\d.]+", "latency_us: 0.5", path.read_text()))
    must(checkout.snakemake("--config", "calibrate=orfeo-epyc", "--", "results/calibration/orfeo-epyc.csv"))
    assert checkout.configuration.machine("orfeo-epyc").levels == committed.levels


@pytest.mark.parametrize(("name", "algorithm"), [("thin", "recursive_doubling"), ("csews", "rabenseifner")])
def test_what_messages_share_does_not_depend_on_how_simgrid_updates_it(
    name: str, algorithm: str, tmp_path: Path
) -> None:
    configuration = Configuration(ROOT / "config")
    own = dataclasses.replace(configuration.machine(name), kind="simulated", mpi="smpi-openmpi")
    full = dataclasses.replace(own, simulation={**own.simulation, "smpi": {"network/optim": "Full"}})
    request = Request("allreduce", algorithm, "core", 48, (16384, 16384))
    found = []
    for name, machine in (("own", own), ("full", full)):
        (tmp_path / name).mkdir()
        found += Simulator(configuration, 1).one(machine, request, tmp_path / name).values()
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_fit_is_a_file_of_its_own_and_is_read_back(checkout: Checkout) -> None:
    own = checkout.folder / "config" / "machines" / "thin.yaml"
    fit = own.with_name("thin.fitted.yaml")
    configuration = checkout.configuration
    before, written, machine = own.read_text(), fit.read_text(), configuration.machine("thin")
    plain = configuration.machine("thin", fitting=True)
    assert plain.simulation == {} and plain.levels[0].latency_us is None
    about = read_yaml(fit, "fitted")["about"]
    write_fit(fit, plain, machine, about)
    assert fit.read_text() == written and own.read_text() == before
    write_fit(
        fit, plain, dataclasses.replace(machine, simulation={**machine.simulation, "gap_us": {"node": 0.5}}), about
    )
    again = configuration.machine("thin")
    assert again.simulation == {**machine.simulation, "gap_us": {"node": 0.5}}
    assert again.levels == machine.levels and own.read_text() == before


@pytest.mark.parametrize("name", ["thin", "orfeo-epyc", "thin-fat-tree", "orfeo-thin-slurm"])
def test_where_a_cost_is_written_does_not_change_a_machine(checkout: Checkout, name: str) -> None:
    """Stored cells have the machine in their identity: costs in one file or in two describe the same machine."""
    machines = checkout.folder / "config/machines"
    before = machine_identity(checkout.configuration.machine(name), {})
    for fit in machines.glob("*.fitted.yaml"):
        own = machines / fit.name.replace(".fitted.yaml", ".yaml")
        document, costs = (yaml.safe_load(path.read_text()) for path in (own, fit))
        document = {key: value for key, value in document.items() if key not in ("fitted", "calibration")}
        document["levels"] = [level | costs["levels"].get(level["name"], {}) for level in document["levels"]]
        document["simulation"] = document.get("simulation", {}) | costs.get("simulation", {})
        own.write_text(yaml.safe_dump(document, sort_keys=False))
        fit.unlink()
    assert machine_identity(checkout.configuration.machine(name), {}) == before


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (None, r"plain.yaml, line 7: fitted: .*plain.fitted.yaml does not exist; ./study calibrate plain writes it"),
        (
            "about: {}\nlevels: {socket: {latency_us: 1}}\n",
            "plain.fitted.yaml, line 2: levels.socket: machine plain has no level 'socket'.*core",
        ),
        ("about: {}\nlevels: {node: {latency: 1}}\n", "plain.fitted.yaml, line 2: unknown key 'latency'"),
        (
            "about: {}\nlevels: {node: {latency_us: -1}}\n",
            "plain.fitted.yaml, line 2: levels.node.latency_us is -1; it must be more than 0",
        ),
        ("about: {}\nlevels: {}\nsimulation: {poll_us: {node: 1}}\n", "simulation lacks the key 'eager_limit_bytes'"),
    ],
)
def test_a_fit_that_is_missing_or_wrong_is_named(checkout: Checkout, fit: str | None, message: str) -> None:
    checkout.write("config/machines/plain.yaml", PLAIN)
    if fit is not None:
        checkout.write("config/machines/plain.fitted.yaml", fit)
    with pytest.raises(StudyError, match=message):
        checkout.configuration.machine("plain")


def test_a_calibration_without_a_file_for_the_fit_is_refused(checkout: Checkout) -> None:
    checkout.write("config/machines/plain.yaml", PLAIN.replace("fitted: plain.fitted.yaml\n", ""))
    with pytest.raises(StudyError, match="'fitted' is a dependency of 'calibration'"):
        checkout.configuration.machine("plain")


def test_what_the_study_lacks_is_named_with_the_files_that_have_it(checkout: Checkout) -> None:
    """Without fantuzzi's files, which may not be redistributed, `orfeo-thin` has no barrier."""
    row = {
        "study": "orfeo-thin",
        "machine": "orfeo-thin",
        "simulated": "FALSE",
        "collective": "bcast",
        "mapping": "core",
    }
    row |= {"nodes": "2", "processes": "8", "size_bytes": "1", "launch": "1", "latency_us": "1.5"}
    lines = [",".join(MEASUREMENT_COLUMNS)]
    for algorithm in ("linear", "chain"):
        lines.append(",".join({**row, "algorithm": algorithm}.get(name, "") for name in MEASUREMENT_COLUMNS))
    checkout.write("results/orfeo-thin/measurements.csv", "\n".join(lines) + "\n")
    done = checkout.collstudy("--results", "results", "calibrate", "thin")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "study orfeo-thin" not in done.stdout and "orfeo-thin has no barrier default mapped by core" in done.stderr
    assert "orfeo-thin-fantuzzi/barrier_*.csv (set STUDY_REFERENCE_DATA, or ./study fetch)" in done.stderr


def test_a_machine_takes_the_fit_of_the_one_it_is_like(checkout: Checkout) -> None:
    configuration = checkout.configuration
    assert configuration.machine("thin-fat-tree").simulation == configuration.machine("thin").simulation
    checkout.write(
        "config/machines/wide.yaml", "kind: simulated\nlabel: W\nlike: thin\nlevels: [{name: node, count: 4}]\n"
    )
    assert configuration.machine("wide").levels[0].latency_us == configuration.machine("thin").levels[0].latency_us
    # The fitted file alone is not a machine.
    with pytest.raises(StudyError) as error:
        configuration.machine("thine")
    assert "thin" in str(error.value) and "fitted" not in str(error.value)
