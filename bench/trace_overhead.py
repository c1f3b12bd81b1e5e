"""Overhead of tracing: python bench/trace_overhead.py [pairs [ranks]]  (default: 10 pairs of launches on 2 ranks).

Runs each application of the study `congestion` with and without the trace library, alternating. Prints the medians of wall time
and of the processor time of all ranks, the overhead computed from the medians and, as its noise, the quartiles of the pairs'
overheads.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from collstudy.launch.toolchain import mpi_environment  # noqa: E402
from collstudy.launch.trace import command_words, program_of, trace_command  # noqa: E402
from collstudy.study.config import Configuration  # noqa: E402
from collstudy.study.traces import Trace  # noqa: E402


def launch(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the wall time and the processor time (s) of one launch."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=mpi_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure every installed application."""
    pairs, ranks = (int(word) for word in (*sys.argv[1:], *("10", "2")[len(sys.argv) - 1 :]))
    if pairs < 2:
        sys.exit(f"pairs is {pairs}; it must be at least 2")
    study = Configuration(ROOT / "config").study("congestion")
    for application in study.source.applications:
        if program_of(application) is None:
            print(f"{application.name}: not installed")
            continue
        application = replace(application, ranks=ranks)
        with tempfile.TemporaryDirectory(prefix="trace-overhead-") as name:
            folder, traced = Path(name), Path(name) / "trace"
            traced.mkdir()
            if application.prepare:
                subprocess.run(["bash", "-euc", application.prepare], cwd=folder, check=True)
            command, _ = trace_command(Trace(application, study.machine, {}), traced)
            words = [str(word) for word in command]
            plain = [word for word in words if not word.startswith(("LD_PRELOAD=", "COLLTRACE_FOLDER="))]
            for index in range(len(plain) - 1, 0, -1):
                if plain[index - 1] == "-x" and "=" not in plain[index]:
                    del plain[index - 1]
            assert plain[-len(command_words(application)) :] == command_words(application)
            launch(plain, folder)
            found = [(launch(plain, folder), launch(words, folder)) for _ in range(pairs)]
            if not any(traced.iterdir()):
                sys.exit(
                    f"{application.name}: nothing was traced; build the trace library first (./study setup --tests)"
                )
        for clock, what in enumerate(("clock", "processor")):
            without = statistics.median(pair[0][clock] for pair in found)
            under = statistics.median(pair[1][clock] for pair in found)
            each = sorted(100 * (pair[1][clock] / pair[0][clock] - 1) for pair in found)
            low, _, high = statistics.quantiles(each, n=4)
            print(
                f"{application.name} {what}: {without:.3f} s, traced {under:.3f} s, overhead {100 * (under / without - 1):+.1f} % "
                f"(pairs: {low:+.1f} to {high:+.1f} %)",
                flush=True,
            )


if __name__ == "__main__":
    main()
