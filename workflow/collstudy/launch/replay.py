"""Replay a trace in the simulator and store the result: the log of the network traffic on a fat tree, the times of collectives
on any other machine.
"""

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
from collstudy.launch import simulator
from collstudy.launch.actions import write_actions
from collstudy.launch.execute import LaunchFailed, Start, execute
from collstudy.launch.platforms import platform
from collstudy.launch.toolchain import SIMULATED, built_for
from collstudy.store.store import Store
from collstudy.study.placement import place
from collstudy.study.traces import Replay

#: Columns of calls.csv.gz, one row per collective call of each rank: ranks of the communicator, times since the start.
CALL_COLUMNS = ("rank", "operation", "start_us", "end_us", "communicator", "ranks", "sent_bytes", "received_bytes")
#: Columns of ranks.csv: time of each rank in computation, point-to-point calls and collectives, and when it ended.
RANK_COLUMNS = ("rank", "compute_us", "point_to_point_us", "collectives_us", "end_us")


def replay(replay: Replay, store: Store, stage: Path, log: TextIO, start: Start) -> dict[str, Any]:
    """Replay in a simulator started by *start*; write the log of the traffic, or the times of collectives, to *stage*."""
    traced = store.about(replay.trace)
    about: dict[str, Any] = {
        "failure": "", "label": replay.variant, "machine": replay.machine.name, "mapping": replay.mapping,
        "algorithms": replay.algorithms, "calls_sha256": traced.get("calls_sha256"),
    }  # fmt: skip
    if not traced or traced["failure"]:
        return about | {"failure": "no complete trace to replay"}
    if traced["trace"].get("threads"):
        return about | {"failure": "several threads of a rank call MPI, which a replay cannot reproduce"}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=stage) as name:
        work = Path(name)
        (work / "log").mkdir()
        clock = time.monotonic()
        try:
            command, environment = replay_command(replay, store.file(replay.trace).parent, traced, work)
            refuse_deadlock(execute(command, replay.machine.launch_time_limit_s, log, environment, work, start).printed)
            found = (
                keep_traffic(work / "log", stage)
                if replay.on_tree
                else keep_calls(work / "log", replay.processes, stage)
            )
        except (LaunchFailed, StudyError, OSError) as problem:
            return about | {"failure": f"replay: {problem}"}
    return about | {
        **found,
        "provenance": {
            "command": shlex.join(str(word) for word in command),
            "environment": replay.environment,
            "seconds": round(time.monotonic() - clock, 3),
            "host": system.node(),
        },
    }


def refuse_deadlock(printed: str) -> None:
    """Raise LaunchFailed if the simulator reports a deadlock in *printed*; its exit status does not show it."""
    if "Deadlock detected" in printed:
        raise LaunchFailed(
            "deadlock: this trace cannot be replayed on this number of ranks: its messages do not match when the traced ranks "
            "are duplicated (docs/methodology.md, section 12), or depend on the order of arrival"
        )


def keep_traffic(log: Path, stage: Path) -> dict[str, Any]:
    """Move the traffic log of a fat tree to *stage*; return its totals."""
    run = {row["key"]: float(row["value"]) for row in read_csv(log / "run.csv")}
    for file in ("ports.csv", "intervals.csv", "operations.csv", "pairs.csv"):
        shutil.move(log / file, stage / file)
    with open(log / "links.csv", "rb") as plain, gzip.open(stage / "links.csv.gz", "wb", 4) as packed:
        shutil.copyfileobj(plain, packed)
    return {"makespan_us": run["makespan_us"], "messages": int(run["messages"]), "interval_us": run["interval_us"]}


def keep_calls(log: Path, ranks: int, stage: Path) -> dict[str, Any]:
    """Write the collective calls of all ranks to one table in *stage*, and how each rank spent its time; return the totals."""
    calls = 0
    with gzip.open(stage / "calls.csv.gz", "wt", encoding="ascii", compresslevel=4, newline="") as stream:
        stream.write(",".join(CALL_COLUMNS) + "\n")
        for rank in range(ranks):
            text = (log / f"rank-{rank:06d}.calls").read_text(encoding="ascii")
            calls += text.count("\n")
            stream.write(text)
    lines = sorted(
        (log / "ranks.csv").read_text(encoding="ascii").splitlines(), key=lambda line: int(line.split(",")[0])
    )
    write_atomically(stage / "ranks.csv", "\n".join([",".join(RANK_COLUMNS), *lines, ""]).encode())
    return {"makespan_us": max(float(line.rpartition(",")[2]) for line in lines), "calls": calls}


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
    # smpirun requires a file name without blanks.
    loaded = f"./loaded{described.suffix}"
    (work / loaded).symlink_to(described.resolve())
    if replay.on_tree:
        variables |= {"COLLSTUDY_TRAFFIC": "log", "COLLSTUDY_PLATFORM_LIBRARY": loaded}
    chosen = dict(replay.environment)
    if not replay.on_tree:
        chosen |= simulator.about_nodes(machine, placement, work / "nodes.txt") | {"COLLSTUDY_CALLS": "log"}
    if replay.rules:
        write_atomically(work / "decided.rules", replay.rules.encode())
        chosen["COLL_RULES"] = "decided.rules"
    command: list[str | Path] = ["smpirun", *simulator.wrapper(variables), "-np", str(replay.processes)]
    command += ["-platform", loaded, "-hostfile", hosts.name]
    # The library broadcasts for the program. SMPI's own broadcast numbers new communicators: its default, a ring of all ranks, would
    # make those of algorithms by topology ten times as long.
    command += simulator.options_of(machine, "smpi-openmpi", {"bcast": "binomial_tree"})
    program = built_for(SIMULATED) / "replay" / "replay"
    logs = ["--log=root.thres:warning", *([] if replay.on_tree else ["--log=smpi_host.thres:error"])]
    return [*command, *logs, program, ".", str(ranks)], {**os.environ, **chosen}
