"""Replay a trace in the simulator and store the log of the network traffic."""

from __future__ import annotations

import gzip
import os
import platform as system
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv, write_atomically
from collstudy.base.paths import SETUP
from collstudy.launch import simulator
from collstudy.launch.actions import write_actions
from collstudy.launch.execute import LaunchFailed, execute
from collstudy.launch.platforms import platform
from collstudy.launch.toolchain import SIMULATED
from collstudy.store.store import Store
from collstudy.study.placement import place
from collstudy.study.traces import Replay


def replay(replay: Replay, store: Store, stage: Path, log: TextIO) -> dict[str, Any]:
    """Replay in the simulator; the log of the traffic goes to *stage*."""
    traced = store.about(replay.trace)
    about: dict[str, Any] = {
        "failure": "", "label": replay.variant, "machine": replay.machine.name, "mapping": replay.mapping,
        "algorithms": replay.algorithms, "calls_sha256": traced.get("calls_sha256"),
    }  # fmt: skip
    if not traced or traced["failure"]:
        return about | {"failure": "there is no complete trace to replay"}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=stage) as name:
        work = Path(name)
        (work / "traffic").mkdir()
        clock = time.monotonic()
        try:
            command, environment = replay_command(replay, store.file(replay.trace).parent, traced, work)
            execute(command, replay.machine.launch_time_limit_s, log, environment, work)
            run_ = {row["key"]: float(row["value"]) for row in read_csv(work / "traffic" / "run.csv")}
        except (LaunchFailed, StudyError, OSError) as problem:
            return about | {"failure": f"replay: {problem}"}
        for file in ("ports.csv", "intervals.csv", "operations.csv", "pairs.csv"):
            shutil.move(work / "traffic" / file, stage / file)
        with open(work / "traffic" / "links.csv", "rb") as plain, gzip.open(stage / "links.csv.gz", "wb", 4) as packed:
            shutil.copyfileobj(plain, packed)
    return about | {
        "makespan_us": run_["makespan_us"],
        "messages": int(run_["messages"]),
        "interval_us": run_["interval_us"],
        "provenance": {
            "command": shlex.join(str(word) for word in command),
            "environment": replay.environment,
            "seconds": round(time.monotonic() - clock, 3),
            "host": system.node(),
        },
    }


def replay_command(
    replay: Replay, folder: Path, traced: dict[str, Any], work: Path
) -> tuple[list[str | Path], dict[str, str]]:
    """Write the input files of a replay to *work*; return the command, to be run there, and its environment."""
    machine = replay.machine
    ranks = replay.trace.application.ranks
    write_actions(folder / "calls.csv.gz", traced["trace"]["communicators"], ranks, work)
    hosts = work / "hosts.txt"
    placement = place(machine, list(replay.cycle), machine.nodes, replay.processes, None)
    write_atomically(hosts, "".join(core.name + "\n" for core in placement).encode())
    described, variables = platform(machine, hosts, work)
    # The library with the log's functions: the name by which smpirun loads it must not contain blanks.
    (work / "platform.so").symlink_to(described.resolve())
    variables |= {"COLLSTUDY_TRAFFIC": "traffic", "COLLSTUDY_PLATFORM_LIBRARY": "./platform.so"}
    command: list[str | Path] = ["smpirun", *simulator.wrapper(variables), "-np", str(replay.processes)]
    command += ["-platform", "./platform.so", "-hostfile", hosts.name]
    command += simulator.options_of(machine, "smpi-openmpi", replay.smpi)
    program = SETUP / "build" / SIMULATED / "replay" / "replay"
    return [*command, "--log=root.thres:warning", program, ".", str(ranks)], {**os.environ, **replay.environment}
