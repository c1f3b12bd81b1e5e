#!/usr/bin/env python3
"""All benchmarks that have a baseline, as one table: `./study bench` writes bench/results.md.

Every figure is a ratio against a baseline that runs just before or after it on the same computer, because seconds of two
computers, or of a busy and a quiet one, say little beside each other. Takes some minutes; the machine should be quiet, and the
table says how busy it was.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import json
import math
import os
import platform
import random
import re
import resource
import runpy
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench" / "results.md"
copy_checkout = runpy.run_path(str(ROOT / "bench" / "study"))["copy_checkout"]
#: Maximum number of processes in the study that is generated for the analysis; use fewer to try the benchmark.
MOST_PROCESSES = int(os.environ.get("BENCH_PROCESSES", "256"))


@dataclass(frozen=True)
class Row:
    """One line of the table: time (s) of the measured operation and of its baseline; `target` is for the time or for the ratio."""

    what: str
    seconds: float
    baseline: str
    baseline_seconds: float
    target: str

    @property
    def line(self) -> str:
        """Return the row as Markdown."""
        ratio = self.seconds / self.baseline_seconds
        return f"| {self.what} | {self.seconds:.2f} | {self.baseline} | {self.baseline_seconds:.2f} | {ratio:.2f} | {self.target} |"


class Skipped(Exception):
    """The reason why a benchmark cannot run here."""


#: The variables that the workflow sets for R (workflow/rules/common.smk).
SET_FOR_R = {"R_GC_MEM_GROW": "3"}


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> tuple[float, float, str]:
    """Run a command; return its wall time and processor time (s), and its output. Raises Skipped with its last line if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    own = {**os.environ, **SET_FOR_R, **(environment or {})}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=own)
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise Skipped(f"`{' '.join(command)}` failed: {last[0]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout


def fastest(command: list[str], folder: Path, times: int = 3) -> float:
    """Return the smallest wall time (s) of some runs, because other activity can only increase the time."""
    return min(run(command, folder)[0] for _ in range(times))


def empty_workflow(folder: Path) -> float:
    """Measure `snakemake -n` for a workflow without anything to do."""
    folder.mkdir()
    (folder / "Snakefile").write_text("rule all:\n    input: []\n")
    return fastest(["snakemake", "--dry-run", "--cores", "1"], folder)


def start(folder: Path) -> Iterator[Row]:
    """Measure the start-up of a job."""
    plain = fastest([sys.executable, "-c", "import argparse, json, pathlib, subprocess"], folder)
    loaded = fastest([sys.executable, "-c", "import collstudy.cli.main"], ROOT / "workflow")
    yield Row("loading `collstudy`, as every job does", loaded, "Python with a few standard modules", plain, "")


def plan(folder: Path) -> Iterator[Row]:
    """Measure the time that a run needs before its first job."""
    empty = empty_workflow(folder / "empty")
    run(["./study", "run", "--", "--dry-run"], ROOT)  # warm up: sets up what is missing
    planned = fastest(["./study", "run", "--", "--dry-run", "--quiet", "all"], ROOT)
    yield Row("`./study run -- --dry-run`, default studies", planned, "`snakemake -n`, empty workflow", empty, "1.5 s")


def analysis_rows(_: Path) -> Iterator[Row]:
    """Measure the tables for a million rows."""
    _, _, said = run(["Rscript", "bench/analysis_rows.R"], ROOT)
    found = dict(line.split("=") for line in said.splitlines() if re.fullmatch(r"\w+=[\d.]+", line))
    yield Row(
        "reading and tables of 1 000 000 rows (processor time)", float(found["total_cpu_s"]),
        "`readr` and one `group_by`", float(found["plain_cpu_s"]), "10 s",
    )  # fmt: skip


#: A study with the shape of a real data set: 255 process counts, 3 mappings, 12 sizes, 4 algorithms.
SHAPE = """
title: Generated, not measured
question: How long does the analysis of many process counts take?
machine: orfeo-epyc-nodes
companions: [orfeo-epyc-ladder]
import:
  suite: generated
  mpi: Open MPI
  mpi_version: 4.1.5
  files:
    - path: generated/bcast.csv
      collective: bcast
      columns: {processes: processes, size_bytes: size, latency_us: latency, algorithm: algorithm, mapping: mapping}
      algorithms: {default: default, linear: linear, chain: chain, binary_tree: binary_tree}
    - path: generated/barrier.csv
      collective: barrier
      columns: {processes: processes, latency_us: latency, algorithm: algorithm, mapping: mapping}
      algorithms: {default: default, linear: linear, recursive_doubling: recursive_doubling, bruck: bruck}
"""


def generate(folder: Path, most: int) -> None:
    """Generate latencies of plausible size with 3 % noise, for 2 to *most* processes."""
    chance = random.Random(1)
    depth: dict[str, Callable[[int], float]] = {
        "default": lambda p: 1.1 * math.log2(p), "linear": lambda p: 0.4 * p, "chain": lambda p: 0.25 * p + 1,
        "binary_tree": lambda p: 1.3 * math.log2(p), "recursive_doubling": math.log2, "bruck": lambda p: 1.2 * math.log2(p),
    }  # fmt: skip
    folder.mkdir()
    for collective, algorithms, sizes in (
        ("bcast", ("default", "linear", "chain", "binary_tree"), [4**k for k in range(12)]),
        ("barrier", ("default", "linear", "recursive_doubling", "bruck"), [0]),
    ):
        lines = ["algorithm,mapping,processes,size,latency"]
        for algorithm, (mapping, far), processes, size in itertools.product(
            algorithms, (("core", 1.0), ("socket", 1.3), ("node", 1.8)), range(2, most + 1), sizes
        ):
            exact = far * (0.3 + depth[algorithm](processes) * (0.4 + size / 8000))
            lines.append(f"{algorithm},{mapping},{processes},{size},{exact * math.exp(chance.gauss(0, 0.03)):.3f}")
        (folder / f"{collective}.csv").write_text("\n".join(lines) + "\n")


def analysis_shape(folder: Path) -> Iterator[Row]:
    """Measure tables, models and figures of a study with many process counts."""
    checkout = folder / "checkout"
    checkout.mkdir()
    copy_checkout(checkout)
    shutil.copytree(ROOT / "data", checkout / "data")
    (checkout / "config" / "studies" / "shape.yaml").write_text(SHAPE)
    generate(checkout / "generated", MOST_PROCESSES)
    made = ("study.json", "measurements.csv", "cells.csv", "ranks.csv", "edges.csv", "exchanges.csv")
    own = {"PYTHONPATH": str(checkout / "workflow")}
    targets = [f"results/{study}/{name}" for study in ("shape", "orfeo-epyc-ladder") for name in made]
    ask = [sys.executable, "-m", "collstudy", "run", "--studies", "shape", "--"]
    run([*ask, *targets], checkout, own)
    study = checkout / "results" / "shape"
    _, cpu, _ = run(["Rscript", "workflow/scripts/analyse.R", "study", str(study)], checkout)
    plain = (
        "suppressPackageStartupMessages(library(dplyr)); rows <- readr::read_csv(commandArgs(TRUE)[1], show_col_types = FALSE);"
        "invisible(summarise(group_by(rows, collective, algorithm, mapping, processes, size_bytes), median(latency_us)))"
    )
    _, base, _ = run(["Rscript", "-e", plain, str(study / "measurements.csv")], ROOT)
    rows = (study / "measurements.csv").read_bytes().count(b"\n") - 1
    yield Row(
        f"analysis of {rows} generated rows, {MOST_PROCESSES - 1} process counts (processor time)", cpu,
        "`readr` and one `group_by`", base, "20 s",
    )  # fmt: skip
    (checkout / "config" / "studies" / "shape.yaml").write_text(SHAPE + "analysis: {tuning: {}}\n")
    targets = [f"results/shape/tuning/{name}" for name in ("decisions.csv", "check-emitted.csv")]
    run([*ask, targets[0]], checkout, own)
    checked, _, _ = run([*ask, targets[1]], checkout, own)
    with open(checkout / targets[1]) as stream:
        entries = sum(1 for _ in stream) - 1
    launch = ["mpirun", "--oversubscribe", "-n", "8", "true"]
    openmpi = {"PATH": f"{ROOT / '.study/openmpi/bin'}:{os.environ['PATH']}"} | {
        f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1" for prefix in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")
    }
    yield Row(
        f"tuning files of these, {entries} boundaries checked with the library's reader", checked,
        "8 processes started by `mpirun`, without MPI", min(run(launch, checkout, openmpi)[0] for _ in range(3)), "",
    )  # fmt: skip


def report(folder: Path) -> Iterator[Row]:
    """Measure the report of the last complete run: in full, with one changed study, and unchanged."""
    complete = ROOT / "results" / "complete.txt"
    if not complete.is_file():
        raise Skipped(
            "results/complete.txt is not here: `./study run` makes it and the results that a report is rendered from"
        )
    studies = complete.read_text().split()
    results = folder / "results"
    kept = shutil.ignore_patterns(".pages", ".analysis", "cells", "blocks", "report", "traces", "replays", "imports")
    shutil.copytree(ROOT / "results", results, ignore=kept)
    page = folder / "page.md"
    page.write_text("# A page\n")
    base = fastest(["pandoc", "--standalone", "--output", str(folder / "page.html"), str(page)], folder)
    command = [
        sys.executable, "-m", "collstudy", "--results", str(results), "render", "--output", str(folder / "report"), "--studies",
        *studies,
    ]  # fmt: skip
    for what, target in (
        (f"report of all {len(studies)} studies", "60 s"),
        ("one changed study", "10 s"),
        ("none changed", ""),
    ):
        if what == "one changed study":
            captions = results / studies[-1] / "tables" / "index.csv"
            captions.write_text(captions.read_text().replace(".", "!", 1))
        yield Row(what, run(command, ROOT)[0], "pandoc, an empty page", base, target)


def pipeline(_: Path) -> Iterator[Row]:
    """Measure the workflow against a hand-written shell loop, and its no-op against an empty workflow."""
    _, _, said = run([sys.executable, "bench/study"], ROOT)
    number = {key: float(value) for key, value in re.findall(r"^(.*?): ([\d.]+) s", said, re.MULTILINE)}
    of = {
        part: value
        for part in ("shell loop", "./study run", "no-op", "asking no-op", "10000 files more", "100000 files more")
        for key, value in number.items()
        if key.startswith(part)
    }
    yield Row(
        "576 simulated cells, two jobs at a time",
        of["./study run"],
        "shell loop of the same launches",
        of["shell loop"],
        "ratio 0.52",
    )
    with tempfile.TemporaryDirectory() as name:
        empty = empty_workflow(Path(name) / "empty")
    yield Row("`./study run thin` with nothing to do", of["no-op"], "`snakemake -n`, empty workflow", empty, "1.5 s")
    for files, target in (("10 000", "3 s"), ("100 000", "10 s")):
        took = of[f"{files.replace(' ', '')} files more"]
        yield Row(f"the same with {files} stored files more", took, "`snakemake -n`, empty workflow", empty, target)
    yield Row("the same, where Snakemake is asked", of["asking no-op"], "`snakemake -n`, empty workflow", empty, "")


def full_grid(points: list[dict[str, str]]) -> str:
    """Return a study with all algorithms of these points; one launch of the OSU benchmark sweeps all sizes of an algorithm."""
    sweeps: dict[tuple[str, str], tuple[dict[str, None], list[int]]] = {}
    for point in points:
        names, sizes = sweeps.setdefault((point["collective"], point["parameters"]), ({}, []))
        names[point["algorithm"]] = None
        sizes += [int(point["size_bytes"])] if point["size_bytes"] else []
    text = "title: Full grid\nquestion: How long does it take?\nmachine: this-machine\n"
    text += "launches: {min: 3, max: 5, ci_width_pct: 5}\nsweeps:\n"
    for (collective, parameters), (names, sizes) in sweeps.items():
        more = "".join(f", {one.replace('=', ': ')}" for one in parameters.split())
        algorithms = ", ".join(f"{{name: {name}{more}}}" for name in names)
        first, last = (2 ** int(math.log2(min(sizes))), 2 ** math.ceil(math.log2(max(sizes)))) if sizes else (0, 0)
        swept = f", sizes: {{from: {first}, to: {last}}}" if sizes else ""
        text += (
            f"  - {{collective: {collective}, algorithms: [{algorithms}], mappings: [core], processes: [2], iterations: 200, "
            f"warmup: 20{swept}}}\n"
        )
    return text


def program(folder: Path) -> Iterator[Row]:
    """Measure the cells of LAMMPS's inputs on two ranks, as sampled by `./study tune` and as a full grid."""
    examples = Path("/usr/share/lammps/examples")
    if shutil.which("lmp") is None or not examples.is_dir():
        raise Skipped("LAMMPS is not installed (Debian's lammps and lammps-examples)")
    checkout = folder / "checkout"
    checkout.mkdir()
    copy_checkout(checkout)
    cells = checkout / "results" / "cells"
    for name in ("melt", "peptide"):
        shutil.rmtree(checkout / "results", ignore_errors=True)  # or the second one would find cells of the first
        shutil.copytree(examples / name, folder / name)
        script = [str(checkout / "study"), "tune", "--name", f"bench-{name}", "--worth", "0", "--"]
        run([*script, str(ROOT / ".study/openmpi/bin/mpirun"), "-n", "2", "lmp", "-in", f"in.{name}"], folder / name)
        sampled = checkout / "results" / f"tune-bench-{name}"
        with open(sampled / "sampling" / "grid.csv", newline="") as stream:
            points = list(csv.DictReader(stream))
        with open(sampled / "tables" / "sampling-rounds.csv", newline="") as stream:
            took = 60 * sum(float(row["node_minutes"]) for row in list(csv.DictReader(stream))[-1:])
        (checkout / "config" / "studies" / f"full-{name}.yaml").write_text(full_grid(points))
        known = set(cells.rglob("*.json"))
        run([str(checkout / "study"), "run", f"full-{name}", "--", f"results/full-{name}/measurements.csv"], checkout)
        launches = [
            one for path in set(cells.rglob("*.json")) - known for one in json.loads(path.read_text())["launches"]
        ]
        yield Row(
            f"{len(points)} points of LAMMPS's {name} on 2 ranks, sampled",
            took,
            f"full grid of the same sizes, {len(launches)} launches",
            sum(one["provenance"]["seconds"] for one in launches),
            "ratio 0.1",
        )


PARTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "start": start, "plan": plan, "analysis-rows": analysis_rows, "analysis-shape": analysis_shape, "report": report,
    "pipeline": pipeline, "program": program,
}  # fmt: skip


def machine() -> str:
    """Describe the machine: processor, usable cores, kernel."""
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"{model[1] if model else platform.machine()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"
    )


def write_table(lines: list[str], skipped: list[str], busy: list[float]) -> None:
    """Write bench/results.md: the rows so far, the skipped parts with reasons, and the load before and after."""
    cores = len(os.sched_getaffinity(0))
    verdict = (
        "others used the machine, too: times are too long, ratios rough" if busy[0] > cores / 2 else "it was quiet"
    )
    text = [
        "# Results of the benchmarks",
        "",
        textwrap.fill(
            f"`./study bench` on {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC: {machine()}. "
            f"Load before the first one {busy[0]:.1f}, in the end {busy[-1]:.1f} ({verdict}).",
            100,
        ),
        "",
        "| what | s | baseline in the same run | s | ratio | target |",
        "|---|---|---|---|---|---|",
        *lines,
        *(["", "Not run:", "", *skipped] if skipped else []),
        "",
    ]
    OUTPUT.write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    """Run the parts, and write the table after each part, so that an interrupted run keeps its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all")
    parts = parser.parse_args().parts or list(PARTS)
    os.environ["PATH"] = f"{ROOT / '.study/venv/bin'}:{os.environ['PATH']}"
    os.environ["PYTHONPATH"], os.environ["R_LIBS"] = str(ROOT / "workflow"), str(ROOT / ".study" / "R")
    busy = [os.getloadavg()[0]]
    lines, skipped = [], [f"- {part}: not asked for" for part in PARTS if part not in parts]
    with tempfile.TemporaryDirectory(prefix="collstudy-bench-") as name:
        for at, part in enumerate(parts):
            folder = Path(name) / part
            folder.mkdir()
            try:
                for row in PARTS[part](folder):
                    lines.append(row.line)
                    print(row.line, flush=True)
            except Skipped as reason:
                skipped.append(f"- {part}: {reason}")
                print(skipped[-1], file=sys.stderr, flush=True)
            busy.append(os.getloadavg()[0])
            write_table(lines, [*skipped, *(f"- {later}: interrupted before" for later in parts[at + 1 :])], busy)
    print(OUTPUT)


if __name__ == "__main__":
    main()
