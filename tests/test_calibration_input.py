"""What a calibration cannot use is said before anything runs, and what it writes can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.calibration import calibrate
from collstudy.calibration.costs import fitted_machine
from collstudy.calibration.fitting import Request, Simulator, fit_study, requests_for, starts
from collstudy.calibration.measured import Data, Key, ladder_of_study
from collstudy.launch.platforms import line
from collstudy.study.config import Configuration
from collstudy.study.machines import Level, Machine
from conftest import IMPORTED, Checkout, csv_rows, must
from made_runs import study

LEVELS = """
kind: simulated
label: Plain
levels:
  - {name: node, count: 2, latency_us: 9, bandwidth_gb_s: 10}
  - {name: core, count: 4, latency_us: 0.1, bandwidth_gb_s: 20}
fitted: plain.fitted.yaml
calibration:
"""
STUDY = """
  ladder: rungs
  study: rungs
  algorithms: [linear, chain]
  barriers: []
  mappings: [core, BFNF]
  processes: [4]
  eager_limit_bytes: 16384
  largest_bytes: 1048576
"""
EXCHANGES = """
  study: rungs
  exchanges: {allreduce: [ring]}
  mappings: [node]
  processes: [2]
  allocations: nowhere.csv
  eager_limit_bytes: 16384
  largest_bytes: 1048576
"""


def ladder(latencies: dict[int, float], sizes: list[int]) -> str:
    """Return the block of a ladder: *latencies* (us) by partner of core 0, at 10 GB/s."""
    rows = [[0, other, size, us + size / 10e3] for other, us in latencies.items() for size in sizes]
    return f"  ladder: {rows}\n"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (STUDY.replace("[core, BFNF]", "[core, nose]"), "calibration.mappings.1: unknown mapping 'nose' .*'node'.*; known: .*node"),
        (STUDY.replace("[core, BFNF]", "[core, socket]"), "calibration.mappings.1: socket needs level 'socket', which machine plain lacks"),
        (STUDY.replace("[4]", "[4, 9]"), "calibration.processes.1: 9 is more than the 8 cores"),
        (STUDY.replace("1048576", "8192"), "calibration.largest_bytes is 8192; it must be at least 16384, the first power of two from "),
        (STUDY.replace("16384", "20000").replace("1048576", "20000"), "largest_bytes is 20000; it must be at least 32768"),
        (STUDY.replace("1048576", "8192").replace("  eager_limit_bytes: 16384\n", ""),
         "largest_bytes is 8192; it must be at least 65536, the largest eager limit that is tried"),
        (STUDY.replace("16384", "2"), "calibration.eager_limit_bytes is 2; it must be at least 4"),
        (STUDY + "  start: {slower_core: 0}\n", "calibration.start.slower_core is 0; it must be more than 0"),
        (STUDY + "  start: {shared_node: 0}\n", "calibration.start.shared_node is 0; it must be more than 0"),
        (STUDY + "  shared: [node, ccd]\n", "calibration.shared.1: 'ccd' has no bandwidth that can be fitted; known: node"),
        (STUDY + "  allocations: nowhere.csv\n", "calibration.allocations has no effect without exchanges"),
        (EXCHANGES + "  ladder: rungs\n", "calibration.ladder has no effect with exchanges"),
        (EXCHANGES + "  search: false\n", "calibration.search has no effect with exchanges"),
        ("  ladder: rungs\n  start: {send_1: 1}\n", "calibration.start has no effect without a study"),
        ("  ladder: rungs\n  largest_bytes: 99\n", "calibration.largest_bytes has no effect without a study"),
    ],
)  # fmt: skip
def test_a_calibration_block_is_checked_before_its_studies_run(checkout: Checkout, block: str, message: str) -> None:
    checkout.write("config/machines/plain.yaml", LEVELS + block.lstrip("\n"))
    with pytest.raises(StudyError, match=f"plain.yaml, line [0-9]+: .*{message}"):
        calibrate.studies_of_machine(checkout.configuration, "plain")


def test_a_ladder_of_several_libraries_is_refused(checkout: Checkout) -> None:
    rows = "collective,mapping,size_bytes,latency_us,algorithm,parameters,nodes,processes,launch,mpi\n"
    rows += "".join(f"latency,level-core,1,{us},default,,1,2,1,{mpi}\n" for us, mpi in ((1, "MPICH"), (2, "Open MPI")))
    path = checkout.write("results/rungs/measurements.csv", rows)
    machine = Machine("m", "simulated", "m", "smpi-openmpi", (Level("node", 1), Level("core", 2)))
    with pytest.raises(StudyError, match="measured with MPICH and Open MPI; calibration.ladder needs a study with one"):
        ladder_of_study(path, machine)


def test_neighbouring_levels_may_be_in_the_wrong_order_within_the_noise_of_a_ladder(checkout: Checkout) -> None:
    checkout.write("config/machines/plain.yaml", LEVELS + ladder({1: 0.31, 4: 0.3}, [2**k for k in range(21)]))
    configuration = checkout.configuration
    calibrate.calibrate(configuration, "plain", checkout.folder / "results")
    outer, inner = configuration.machine("plain").levels
    assert outer.latency_us < inner.latency_us


def test_short_messages_that_are_faster_across_an_outer_level_are_refused(checkout: Checkout) -> None:
    """Without delays by level, the outer level's own latency would be negative; nothing is written."""
    checkout.write("config/machines/plain.yaml", LEVELS + ladder({1: 0.31, 4: 0.3}, [8]))
    with pytest.raises(StudyError, match="calibration.ladder: node is faster than core, which is inside of it"):
        calibrate.calibrate(checkout.configuration, "plain", checkout.folder / "results")
    assert not (checkout.folder / "config/machines/plain.fitted.yaml").exists()


def test_a_ladder_without_sizes_between_the_eager_limits_gives_blocking_sends_no_limit_of_their_own(
    checkout: Checkout,
) -> None:
    """They would have no delay at all between the two limits: 32 KiB would take 3.3 instead of 5.3 us."""
    block = ladder({1: 2.0, 4: 2.0}, [8, 1048576]) + "  eager_limit_bytes: 16384\n"
    checkout.write("config/machines/plain.yaml", LEVELS + block)
    configuration = checkout.configuration
    calibrate.calibrate(configuration, "plain", checkout.folder / "results")
    asked = Request("latency", "default", "level-core", 2, (32768, 32768))
    (found,) = Simulator(configuration, 1).all(configuration.machine("plain"), [asked]).values()
    assert found == pytest.approx(2.0 + 32768 / 10e3, rel=0.02)


def test_any_eager_limit_leaves_sizes_that_were_measured() -> None:
    block = {"algorithms": ["linear"], "barriers": [], "mappings": ["core"], "processes": [4], "largest_bytes": 65536}
    for eager, last, first in ((8192, 4096, 8192), (8256, 8192, 16384)):
        short, long = requests_for(block, eager)
        assert {request.sizes for request in short} == {(1, last)}
        assert {request.sizes for request in long} == {(first, 65536)}


@pytest.mark.parametrize("largest", [8192, 16384, 32768])
def test_a_study_may_have_shorter_messages_than_its_ladder(largest: int) -> None:
    """A sender is busy with any long message for as long as with its announcement: the ladder has times of up to 1 MiB."""
    machine = Machine("m", "simulated", "m", "smpi-openmpi", (Level("node", 2), Level("core", 4)))
    sizes = [2**k for k in range(21)]
    ladder_ = {name: {size: us + size / 10e3 for size in sizes} for name, us in (("node", 1.0), ("core", 0.2))}
    block = {"algorithms": ["linear"], "barriers": [], "mappings": ["core"], "processes": [4], "largest_bytes": 32768}
    short, long, fixed = starts(machine, block)
    cells: dict[Key, float] = {("bcast", "linear", "core", 4, size): 1.0 for size in sizes if size <= largest}
    costs = fitted_machine(machine, Data(ladder_, cells), short | long | fixed, 16384).simulation["send_us"]
    assert [size for size, _ in costs] == [1, 8192, 16384, 32768]
    assert line(costs, 8192) > line(costs, 16384) == line(costs, 1 << 20) == 0.035


def test_parameters_that_the_cells_do_not_determine_are_named() -> None:
    """Four ranks of one node tell nothing about messages between nodes."""
    machine = Machine("m", "simulated", "m", "smpi-openmpi", (Level("node", 2), Level("core", 4)))
    block = {
        "algorithms": ["linear"], "barriers": [], "mappings": ["core"], "processes": [4], "largest_bytes": 131072,
        "eager_limit_bytes": 16384,
    }  # fmt: skip
    sizes = [2**k for k in range(18)]
    known: dict[str, dict[int, float]] = {
        name: {size: us + size / 10e3 for size in sizes} for name, us in (("node", 1.0), ("core", 0.2))
    }
    simulator = Simulator(Configuration(Path(__file__).parents[1] / "config"), 2)
    short, long, fixed = starts(machine, block)
    truth = fitted_machine(machine, Data(known, {}), short | long | fixed, 16384)
    cells: dict[Key, float] = simulator.all(truth, sum(requests_for(block, 16384), []))
    *_, undetermined = fit_study(machine, Data(known, cells), block, simulator)
    assert {"poll_node", "gap_node", "busy_node", "shared_node"} <= set(undetermined)
    assert not {"send_1", "busy_within", "share_core"} & set(undetermined)


@pytest.mark.parametrize("settings", [("--config", "results=again"), ("--config=results=again",)])
def test_a_calibration_says_which_files_it_wrote(checkout: Checkout, settings: tuple[str, ...]) -> None:
    checkout.write("config/machines/plain.yaml", LEVELS.replace("plain.f", "other.f") + ladder({1: 0.2, 4: 1}, [8]))
    done = must(study(checkout.folder, "calibrate", "plain", "--", *settings))
    written = re.findall(r"\S[^:\n]*/(?:other|plain)[.]\S+", "\n".join(done.stdout.splitlines()[-2:]))
    assert [Path(path).name for path in written] == ["other.fitted.yaml", "plain.csv"]
    assert (checkout.folder / "config/machines/other.fitted.yaml").exists()
    assert len(csv_rows(checkout.folder / "again/calibration/plain.csv")) == 2


def test_data_that_are_missing_are_one_message_also_if_a_run_would_leave_them_out(checkout: Checkout) -> None:
    """Where config.yaml has just the studies of the machine."""
    checkout.write("config/studies/ladder.yaml", IMPORTED)
    checkout.write("config/config.yaml", "studies: [tiny, ladder]\nresults: results\n")
    text = (checkout.folder / "config" / "machines" / "thin.yaml").read_text()
    text = re.sub(r"(?m)^  ladder: .*$", "  ladder: tiny", text)
    checkout.write("config/machines/thin.yaml", re.sub(r"(?m)^  study: .*$", "  study: ladder", text))
    done = checkout.snakemake("--dry-run", "--config", "calibrate=thin")
    assert done.returncode == 2 and "error: config/studies/ladder.yaml: " in done.stderr, done.stderr
