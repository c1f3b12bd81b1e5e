"""Overhead of the collectives library if it is loaded but no variable selects a collective: `python bench/pass_through.py [pairs]`.

Runs the 2-rank 8-byte broadcast of the embedded benchmark in pairs with and without LD_PRELOAD, in alternating order. Prints
the medians, and the median of the pairs' ratios with its 95 % interval from order statistics (Le Boudec 2010). The runs of a
pair share the state of the machine, so their ratio varies less than the medians.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from collstudy.base.statistics import median_interval  # noqa: E402
from collstudy.launch.openmpi import library  # noqa: E402
from collstudy.launch.toolchain import mpi_environment  # noqa: E402

ITERATIONS = 200_000


def latency_us(preload: bool) -> float:
    """Return the mean latency (us) of one launch."""
    mpi = library()
    environment = {key: value for key, value in mpi_environment().items() if not key.startswith("COLL_")}
    if preload:
        environment["LD_PRELOAD"] = str(mpi.build / "coll" / "libcollstudy.so")
    program = mpi.build / "bench" / "collbench_bcast"
    command = [mpi.mpirun, "-n", "2", "--bind-to", "core", program, "-m", "8:8"]
    command += ["-i", str(ITERATIONS), "-x", "1000", "-d", "5"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return float(re.findall(r"^8\s+([\d.]+)", done.stdout, re.MULTILINE)[0])


def main() -> None:
    """Run the pairs and print the results."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    if pairs < 2:
        sys.exit(f"pairs is {pairs}; it must be at least 2")
    latency_us(preload=True)  # warm up: afterwards all files are in memory
    plain, loaded = [], []
    for number in range(pairs):
        for preload in (False, True) if number % 2 else (True, False):
            (loaded if preload else plain).append(latency_us(preload))
    ratios = [100 * (b / a - 1) for a, b in zip(plain, loaded, strict=True)]
    low, high = median_interval(ratios)
    load = os.getloadavg()[0]
    print(
        f"without: {statistics.median(plain):.4f} us, with: {statistics.median(loaded):.4f} us ({pairs} pairs, load {load:.1f})"
    )
    print(
        f"pass-through overhead: {statistics.median(ratios):+.2f} % (95 % interval {low:+.2f} to {high:+.2f}); target 1 %"
    )
    print(f"fastest runs: {min(plain):.4f} and {min(loaded):.4f} us, {100 * (min(loaded) / min(plain) - 1):+.2f} %")


if __name__ == "__main__":
    main()
