"""Cost of blocks and of the block runner on the test cluster (tests/slurm/cluster.py); prints one line per result.

    python bench/slurm.py [jobs] [overhead] [noop]        (default: all three)

jobs: 50 cells of one shape, with one Slurm job per cell against one job for all cells, including polling.
overhead: time per launch that the block runner adds to mpirun.
noop: `snakemake --profile slurm -n` for a complete study of 10 000 cells.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "slurm"), str(ROOT / "workflow")]

from cluster import Cluster  # noqa: E402
from conftest import Checkout  # noqa: E402
from slurm_study import MACHINE  # noqa: E402

STUDY = """
title: Bench
question: q
machine: pair
launches: {min: 1, max: 1}
sweeps:
  - {collective: bcast, algorithms: [ALGORITHMS], mappings: [MAPPINGS], processes: PROCESSES, sizes: {from: 1, to: 64},
     iterations: 5, warmup: 1}
"""


def checkout(folder: Path, algorithms: list[str], mappings: str, processes: str) -> Checkout:
    """Create a checkout with one study on two nodes."""
    made = Checkout(folder)
    (folder / "slurm").symlink_to("profiles/slurm")
    made.write("config/machines/pair.yaml", MACHINE)
    text = STUDY.replace("ALGORITHMS", ", ".join(algorithms)).replace("MAPPINGS", mappings)
    made.write("config/studies/bench.yaml", text.replace("PROCESSES", processes))
    made.write("config/config.yaml", "studies: [bench]\nresults: results\n")
    return made


def environment(made: Checkout) -> dict[str, str]:
    """Return the environment that set-up provides."""
    return {**os.environ, "PYTHONPATH": str(made.folder / "workflow"), "R_LIBS": str(ROOT / ".study" / "R")}


def segments(count: int) -> list[str]:
    """Return *count* algorithms that behave alike."""
    return ["linear", *(f"{{name: chain, segment_bytes: {1024 * (n + 1)}}}" for n in range(count - 1))]


def jobs(cluster: Cluster, folder: Path) -> None:
    """Run 50 cells in blocks, and with one job per cell (blocks that have room for one cell only)."""
    took = {}
    for name in ("blocks", "cells"):
        made = checkout(folder / name, segments(25), "core, node", "[4]")
        if name == "cells":
            source = made.folder / "workflow" / "collstudy" / "plan" / "blocks.py"
            text = source.read_text()
            # Put each cell into its own block; the split by points must not keep cells together.
            for part, other in (
                ("parts = max(1,", "parts = max(len(members),"),
                ("task.work.point", "task.work.digest"),
            ):
                assert part in text
                text = text.replace(part, other)
            source.write_text(text)
        start = time.monotonic()
        command = ["snakemake", "--profile", "slurm", "results/bench/measurements.csv"]
        cluster.run(command, cwd=made.folder, env=environment(made))
        took[name] = time.monotonic() - start
        cells = len(list((made.folder / "results" / "cells").rglob("*.json")))
        submitted = len(list((made.folder / "results" / "blocks").glob("*.done")))
        assert cells == 50
        print(f"jobs: {cells} cells in {submitted} jobs: {took[name]:.0f} s", flush=True)
    print(f"jobs: blocks are {took['cells'] / took['blocks']:.1f} times faster (target: 4)", flush=True)


def overhead(folder: Path) -> None:
    """Launch the same command directly and through the runner, alternating, on this computer."""
    from collstudy.launch import launches
    from collstudy.launch.runner import run_block
    from collstudy.plan.blocks import Block, pending
    from collstudy.project.studies import Project
    from collstudy.store.records import Summary

    made = checkout(folder / "overhead", ["linear"], "core", "[2]")
    text = (made.folder / "config/studies/bench.yaml").read_text()
    count = 40
    text = text.replace("pair", "this-machine").replace("min: 1, max: 1", f"min: {count}, max: {count}")
    made.write("config/studies/bench.yaml", text)
    os.chdir(made.folder)
    project = Project(config=made.folder / "config", results=made.folder / "results")
    study = project.study("bench")
    (cell,) = project.source("bench").work()
    task = pending(cell, Summary(), study.source.policy)
    assert task
    bare, execute = [], launches.execute

    def timed(*arguments):  # the launch itself, as the runner starts it
        start = time.monotonic()
        try:
            return execute(*arguments)
        finally:
            bare.append(time.monotonic() - start)

    launches.execute = timed
    start = time.monotonic()
    run_block(Block(study.machine, "openmpi", 1, (task,)), project.results, Path("log"))
    whole = time.monotonic() - start
    each = 1000 * (whole - sum(bare)) / len(bare)
    print(
        f"overhead: {each:.1f} ms a launch over mpirun's {1000 * sum(bare) / len(bare):.0f} ms (target: 30)", flush=True
    )


def noop(folder: Path) -> None:
    """Plan a complete study of 10 000 cells whose files look like real ones."""
    made = checkout(
        folder / "noop", segments(60), "core, socket, node, DFNF, DFSF, BFNF, BFSF", "{from: 2, to: 48, step: 2}"
    )
    code = """
import os
from collstudy.base.files import write_atomically
from collstudy.project.studies import Project
from collstudy.store.records import Record
os.fsync = lambda *_: None
project = Project(results="results")
source = project.source("bench")
cells = source.work()
print(len(cells))
for cell in cells:
    samples = [{"size_bytes": s, "latency_us": 1.5, "min_latency_us": 1.0, "max_latency_us": 2.0} for s in cell.size_list]
    binding = [{"rank": r, "host": "thin001", "socket": 0, "cores": [r], "cpus": str(r)} for r in range(cell.processes)]
    launch = {"launch": 1, "samples": samples, "provenance": {"seconds": 1.0, "command": "mpirun " * 40}}
    proof = {"component": "tuned", "used": True, "placed": True, "detail": "", "binding": binding}
    project.store.write(cell, Record((launch,), proof), "limit")
for name, content in source.files().items():
    write_atomically(project.folder("bench") / name, content)
source.rows().write(project.folder("bench"))
"""
    env = environment(made)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=made.folder, env=env, check=True, capture_output=True, text=True
    )
    command = ["snakemake", "--profile", "slurm", "-n", "results/bench/measurements.csv"]
    for what in ("first", "then"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        output = subprocess.run(command, cwd=made.folder, env=env, check=True, capture_output=True, text=True)
        took = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "Nothing to be done" in output.stdout + output.stderr
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        megabytes = after.ru_maxrss / 1024
        print(
            f"noop: {done.stdout.strip()} cells, {what}: {took:.1f} s ({used:.1f} s of processor), at most {megabytes:.0f} MB "
            "(target: 4 s, 300 MB)",
            flush=True,
        )


def main() -> None:
    """Run the parts that the command line names."""
    wanted = sys.argv[1:] or ["noop", "overhead", "jobs"]
    print(json.dumps({"load": os.getloadavg(), "processors": os.cpu_count()}))
    with tempfile.TemporaryDirectory(prefix="collstudy-bench-") as name:
        if "noop" in wanted:
            noop(Path(name))
        if "overhead" in wanted:
            overhead(Path(name))
        if "jobs" in wanted:
            with Cluster(name=f"bench{os.getpid()}") as cluster:
                jobs(cluster, Path(name))


if __name__ == "__main__":
    main()
