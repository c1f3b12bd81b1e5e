"""The simulated platform: a message has the latency and the bandwidth of the outermost level that it crosses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from collstudy.base.paths import SETUP
from collstudy.launch import output
from collstudy.launch.platforms import platform_xml
from collstudy.study.machines import Level
from conftest import Checkout, finish, must
from made_runs import measured

LEVELS = (Level("node", 2, 10.0, 12.0, 12.0), Level("socket", 2, 2.0, 4.0), Level("core", 2, 1.0, 8.0))
PROGRAM = SETUP / "build" / "simulated" / "bench" / "collbench_latency"

pytestmark = pytest.mark.skipif(shutil.which("smpirun") is None, reason="smpirun (SimGrid SMPI) is not on PATH")


def start(ranks: int) -> list[str]:
    """Return the command that starts ranks on platform.xml and hosts.txt, with no costs besides their messages."""
    model = "simulate-computation:no lat-factor:0:1 bw-factor:0:1 os:0:0:0 ois:0:0:0 or:0:0:0 wtime:0"
    options = [f"--cfg=smpi/{option}" for option in model.split()]
    options += [f"--cfg=network/{option}" for option in ("TCP-gamma:0", "crosstraffic:0", "weight-S:0")]
    options += [
        "--cfg=smpi/send-is-detached-thresh:1000000000",
        "--cfg=surf/precision:1e-12",
        "--log=root.thres:critical",
    ]
    return ["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts.txt", *options]


@pytest.mark.parametrize("core_gb_s", [None, 20.0])
@pytest.mark.parametrize(
    ("other", "latency_us", "gb_s"), [("c-0-0-1", 1.0, 8.0), ("c-0-1-0", 2.0, 4.0), ("c-1-0-0", 10.0, 12.0)]
)
def test_bandwidth_by_level(
    tmp_path: Path, other: str, latency_us: float, gb_s: float, core_gb_s: float | None
) -> None:
    (tmp_path / "platform.xml").write_text(platform_xml(LEVELS, core_gb_s, "level"))
    (tmp_path / "hosts.txt").write_text(f"c-0-0-0\n{other}\n")
    command = [*start(2), PROGRAM, "-d6", "-m", "1:8388608", "-i", "1", "-x", "1"]
    done = must(finish(command, cwd=tmp_path, timeout=60))
    found = {int(size): float(us) for size, us in re.findall(r"^(\d+)\s+([\d.]+)$", done.stdout, re.MULTILINE)}
    assert found[1] == pytest.approx(latency_us, rel=0.01)
    assert found[8388608] == pytest.approx(latency_us + 8388608 / (gb_s * 1e3), rel=0.01)


@pytest.mark.parametrize(("spread_us", "mean"), [("0", 2 / 3), ("1000", 4 / 9), ("0,1000", 5 / 9)])
def test_ranks_that_arrive_at_different_times(tmp_path: Path, spread_us: str, mean: float) -> None:
    """The root of a broadcast sends to two ranks, 1 us away: the slowest rank leaves 1 us after the last of the three arrived."""
    levels = (Level("node", 1, 1.0, 8.0), Level("core", 3, 1.0, 8.0))
    (tmp_path / "platform.xml").write_text(platform_xml(levels, None, "level"))
    (tmp_path / "hosts.txt").write_text("c-0-0\nc-0-1\nc-0-2\n")
    program = PROGRAM.with_name("collbench_bcast")
    command = [*start(3), "--cfg=smpi/bcast:flattree", program, "-d6", "-f", "-m", "1:1", "-i", "400", "-x", "1"]
    command += ["-s", spread_us] if spread_us != "0" else ["-w"]
    sample = output.parse(must(finish(command, cwd=tmp_path, timeout=60)).stdout, [1])[0]
    assert (sample["iterations"], sample["late"]) == (400, 0)
    assert sample["max_latency_us"] == pytest.approx(1.0, rel=0.01)
    # A rank that already has its message when the last rank arrives has left: the slowest rank differs between calls.
    assert sample["latency_us"] == pytest.approx(mean, rel=0.05)
    assert sample["min_latency_us"] == 0.0


MANY = 6144
MACHINE = f"""
kind: simulated
label: many ranks
levels:
  - {{name: node, count: {MANY // 64}, latency_us: 1.5, bandwidth_gb_s: 12}}
  - {{name: core, count: 64, latency_us: 0.5, bandwidth_gb_s: 12}}
"""
STUDY = f"""
title: t
question: q
machine: many
sweeps:
  - collective: bcast
    algorithms: [binomial]
    mappings: [core]
    processes: [{MANY}]
    sizes: {{from: 8, to: 8}}
    iterations: 1
    warmup: 0
    barrier: aligned
"""


@pytest.mark.long
def test_more_ranks_than_a_process_has_room_for_copies(checkout: Checkout) -> None:
    checkout.write("config/machines/many.yaml", MACHINE)
    (row,) = measured(checkout, "many", STUDY)
    assert int(row["processes"]) == MANY and float(row["latency_us"]) > 1.5
